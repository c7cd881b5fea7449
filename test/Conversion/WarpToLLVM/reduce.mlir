// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

#acc = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#rows = #warp.layout<[16], register = [[8]], lane = [[0], [0], [1], [2], [4]]>

// Rows of an accumulator: four registers a row in three steps, then the two lane bits that move along the row. No shared memory.
// CHECK-LABEL: llvm.func @rows
// CHECK-COUNT-6: llvm.intr.maxnum
// CHECK: nvvm.shfl.sync bfly {{.*}}
// CHECK: llvm.intr.maxnum
// CHECK-COUNT-3: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @rows(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<16x16x!tile.ptr<f32>, #acc>
    %x = tile.load %b : tensor<16x16x!tile.ptr<f32>, #acc>
    %m = tile.reduce %x {axis = 1 : i32} : (tensor<16x16xf32, #acc>) -> tensor<16xf32, #rows> {
    ^bb0(%s: f32, %t: f32):
      %u = arith.maxnumf %s, %t : f32
      tile.yield %u : f32
    }
    return
  }
}

// -----

#four = #warp.layout<[256], register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[64], [128]]>

// Over four warps: one lane of each writes; after the barrier four lanes read one each, and exchange them.
// CHECK-LABEL: llvm.func @warps
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$0 st.shared.b32 $1, $2;", "b,*m,r,~{memory}"
// CHECK-NEXT: nvvm.barrier
// CHECK-COUNT-1: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK-NOT: llvm.load
// CHECK-COUNT-2: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @warps(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>, #four>
    %x = tile.load %b : tensor<256x!tile.ptr<f32>, #four>
    %m = tile.reduce %x {axis = 0 : i32, warp.scratch = 0 : i64} : (tensor<256xf32, #four>) -> f32 {
    ^bb0(%s: f32, %t: f32):
      %u = arith.addf %s, %t : f32
      tile.yield %u : f32
    }
    return
  }
}

// -----

#columns = #warp.layout<[16, 64], register = [[0, 1], [0, 2], [8, 0]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], warp = [[2, 0], [4, 0]]>
#sums = #warp.layout<[64], register = [[1], [2]], lane = [[4], [8], [16], [32], [0]], warp = [[0], [0]]>

// Columns over four warps: the four neighbours that a thread holds are one access. Two lanes hold the same sums: each reads two of the four partial results
// and exchanges what it makes of them.
// CHECK-LABEL: llvm.func @columns
// CHECK: "@$0 st.shared.v4.b32 $1, {$2, $3, $4, $5};", "b,*m,r,r,r,r,~{memory}"
// CHECK-NEXT: nvvm.barrier
// CHECK-COUNT-2: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-NOT: llvm.load
// CHECK-COUNT-4: nvvm.shfl.sync bfly
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @columns(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<16x64x!tile.ptr<f32>, #columns>
    %x = tile.load %b : tensor<16x64x!tile.ptr<f32>, #columns>
    %m = tile.reduce %x {axis = 0 : i32, warp.scratch = 0 : i64} : (tensor<16x64xf32, #columns>) -> tensor<64xf32, #sums> {
    ^bb0(%s: f32, %t: f32):
      %u = arith.addf %s, %t : f32
      tile.yield %u : f32
    }
    return
  }
}

// -----

#many = #warp.layout<[32, 64], register = [[0, 1], [0, 2], [16, 0]], lane = [[0, 4], [0, 8], [0, 16], [0, 32], [1, 0]], warp = [[2, 0], [4, 0], [8, 0]]>
#of_many = #warp.layout<[64], register = [[1], [2]], lane = [[4], [8], [16], [32], [0]], warp = [[0], [0], [0]]>

// Columns over eight warps, of which each would read all partial results: eight neighbouring lanes bring one sum together at a time, 32 of a warp's four groups
// and two rounds, and write it behind them, 8 · (64 + 4) · 4 bytes further. Lanes of a group read 68 words apart.
// CHECK-LABEL: llvm.func @columns_in_turn
// CHECK: "@$0 st.shared.v4.b32 $1, {$2, $3, $4, $5};", "b,*m,r,r,r,r,~{memory}"
// CHECK-NEXT: nvvm.barrier
// CHECK-COUNT-1: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK-COUNT-3: nvvm.shfl.sync bfly
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$0 st.shared.b32 $1, $2;", "b,*m,r,~{memory}"
// CHECK-COUNT-1: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK-COUNT-3: nvvm.shfl.sync bfly
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$0 st.shared.b32 $1, $2;", "b,*m,r,~{memory}"
// CHECK-NEXT: nvvm.barrier
// CHECK-COUNT-1: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<4xi32>
// CHECK-NOT: llvm.load
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @columns_in_turn(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<32x64x!tile.ptr<f32>, #many>
    %x = tile.load %b : tensor<32x64x!tile.ptr<f32>, #many>
    %m = tile.reduce %x {axis = 0 : i32, warp.scratch = 0 : i64} : (tensor<32x64xf32, #many>) -> tensor<64xf32, #of_many> {
    ^bb0(%s: f32, %t: f32):
      %u = arith.addf %s, %t : f32
      tile.yield %u : f32
    }
    return
  }
}

// -----

#whole = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]]>

// Integers of a whole warp, by one operation, are one instruction; narrow ones are widened, by their sign where that
// counts. Not so where something else is computed of them.
// CHECK-LABEL: llvm.func @integers
// CHECK: %[[A:.*]] = llvm.add
// CHECK-NEXT: nvvm.redux.sync add %[[A]]
// CHECK: %[[M:.*]] = llvm.intr.smax{{.*}} : (i8, i8) -> i8
// CHECK-NEXT: %[[W:.*]] = llvm.sext %[[M]] : i8 to i32
// CHECK-NEXT: nvvm.redux.sync max %[[W]]
// CHECK-NOT: nvvm.redux
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @integers(%p: !tile.ptr<i32>, %q: !tile.ptr<i8>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>, #whole>
    %x = tile.load %b : tensor<64x!tile.ptr<i32>, #whole>
    %c = tile.splat %q : !tile.ptr<i8> -> tensor<64x!tile.ptr<i8>, #whole>
    %y = tile.load %c : tensor<64x!tile.ptr<i8>, #whole>
    %sum = tile.reduce %x {axis = 0 : i32} : (tensor<64xi32, #whole>) -> i32 {
    ^bb0(%s: i32, %t: i32):
      %u = arith.addi %s, %t : i32
      tile.yield %u : i32
    }
    %most = tile.reduce %y {axis = 0 : i32} : (tensor<64xi8, #whole>) -> i8 {
    ^bb0(%s: i8, %t: i8):
      %u = arith.maxsi %s, %t : i8
      tile.yield %u : i8
    }
    %product = tile.reduce %x {axis = 0 : i32} : (tensor<64xi32, #whole>) -> i32 {
    ^bb0(%s: i32, %t: i32):
      %u = arith.muli %s, %t : i32
      tile.yield %u : i32
    }
    return
  }
}

// -----

#whole = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]]>

// Those of 64 bits are two instructions, the lower half's where the upper is the extreme; of a sum three, as the lower
// half's parts carry.
// CHECK-LABEL: llvm.func @wide_integers
// CHECK: %[[UP:.*]] = nvvm.redux.sync max
// CHECK: %[[SAME:.*]] = llvm.icmp "eq" %{{.*}}, %[[UP]] : i32
// CHECK: %[[LOW:.*]] = llvm.select %[[SAME]]
// CHECK: nvvm.redux.sync umax %[[LOW]]
// CHECK-COUNT-3: nvvm.redux.sync add
// CHECK-NOT: nvvm.redux
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @wide_integers(%p: !tile.ptr<i64>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<i64> -> tensor<64x!tile.ptr<i64>, #whole>
    %x = tile.load %b : tensor<64x!tile.ptr<i64>, #whole>
    %most = tile.reduce %x {axis = 0 : i32} : (tensor<64xi64, #whole>) -> i64 {
    ^bb0(%s: i64, %t: i64):
      %u = arith.maxsi %s, %t : i64
      tile.yield %u : i64
    }
    %sum = tile.reduce %x {axis = 0 : i32} : (tensor<64xi64, #whole>) -> i64 {
    ^bb0(%s: i64, %t: i64):
      %u = arith.addi %s, %t : i64
      tile.yield %u : i64
    }
    return
  }
}

// -----

#one = #warp.layout<[64], register = [[32], [0]], lane = [[1], [2], [4], [8], [16]], warp = [[0]]>

// A maximum and where it is: two operands move together. Register 2 repeats register 0, and counts once.
// CHECK-LABEL: llvm.func @two_operands
// CHECK-COUNT-1: llvm.fcmp "ogt"
// CHECK: nvvm.shfl.sync bfly
// CHECK-NEXT: llvm.bitcast
// CHECK: nvvm.shfl.sync bfly
// CHECK-COUNT-5: llvm.fcmp "ogt"
// CHECK-NOT: llvm.fcmp
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @two_operands(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
    %i = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #one>
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #one>
    %q = tile.addptr %b, %i : tensor<64x!tile.ptr<f32>, #one>, tensor<64xi32, #one>
    %x = tile.load %q : tensor<64x!tile.ptr<f32>, #one>
    %m:2 = tile.reduce %x, %i {axis = 0 : i32} : (tensor<64xf32, #one>, tensor<64xi32, #one>) -> (f32, i32) {
    ^bb0(%s: f32, %si: i32, %t: f32, %ti: i32):
      %g = arith.cmpf ogt, %s, %t : f32
      %u = arith.select %g, %s, %t : f32
      %ui = arith.select %g, %si, %ti : i32
      tile.yield %u, %ui : f32, i32
    }
    return
  }
}

// -----

#two = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>

// Products that are only added join the sum one by one, a tensor of them after another, in two chains, so that each is
// part of an addition; what nobody asks for goes. Where
// someone else asks for what is added, that is what the lanes' sums are of.
// CHECK-LABEL: llvm.func @products
// CHECK: %[[X0:.*]] = llvm.fmul
// CHECK: %[[X1:.*]] = llvm.fmul
// CHECK: %[[Y0:.*]] = llvm.fmul
// CHECK: %[[Y1:.*]] = llvm.fmul
// CHECK: llvm.fadd %[[X0]], %[[Y0]] : f32
// CHECK-NEXT: llvm.fadd %[[X1]], %[[Y1]] : f32
// CHECK-NEXT: %[[A:.*]] = llvm.fadd %[[X0]], %[[Y0]] : f32
// CHECK-NEXT: %[[B:.*]] = llvm.fadd %[[X1]], %[[Y1]] : f32
// CHECK-NEXT: llvm.fadd %[[A]], %[[B]] : f32
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK-LABEL: llvm.func @asked
// CHECK: %[[S0:.*]] = llvm.fadd
// CHECK-NEXT: %[[S1:.*]] = llvm.fadd
// CHECK-NEXT: llvm.fadd %[[S0]], %[[S1]] : f32
// CHECK-COUNT-5: nvvm.shfl.sync bfly
module attributes {warp.target = "sm_80"} {
  func.func @products(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #two>
    %x = tile.load %b : tensor<64x!tile.ptr<f32>, #two>
    %d = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #two>
    %y = tile.load %d : tensor<64x!tile.ptr<f32>, #two>
    %xx = arith.mulf %x, %x : tensor<64xf32, #two>
    %xy = arith.mulf %x, %y : tensor<64xf32, #two>
    %z = arith.addf %xx, %xy : tensor<64xf32, #two>
    %m = tile.reduce %z {axis = 0 : i32} : (tensor<64xf32, #two>) -> f32 {
    ^bb0(%s: f32, %t: f32):
      %u = arith.addf %s, %t : f32
      tile.yield %u : f32
    }
    return
  }
  func.func @asked(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #two>
    %x = tile.load %b : tensor<64x!tile.ptr<f32>, #two>
    %d = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #two>
    %y = tile.load %d : tensor<64x!tile.ptr<f32>, #two>
    %xx = arith.mulf %x, %x : tensor<64xf32, #two>
    %xy = arith.mulf %x, %y : tensor<64xf32, #two>
    %z = arith.addf %xx, %xy : tensor<64xf32, #two>
    %m = tile.reduce %z {axis = 0 : i32} : (tensor<64xf32, #two>) -> f32 {
    ^bb0(%s: f32, %t: f32):
      %u = arith.addf %s, %t : f32
      tile.yield %u : f32
    }
    tile.store %d, %z : tensor<64x!tile.ptr<f32>, #two>
    return
  }
}

// -----

#rows_of_lanes = #warp.layout<[4, 32], register = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]>
#sums_of_rows = #warp.layout<[4], register = [[1], [2]], lane = [[0], [0], [0], [0], [0]]>

// Four sums that every lane has at the end. Lanes exchange two of four and then one of two, and bring what is left together over eight lanes; each lane then
// reads four sums from where they are: 10 exchanges, not 20.
// CHECK-LABEL: llvm.func @halves
// CHECK: [[LOWER:%.*]] = llvm.select [[UPPER:%.*]], [[B:%.*]], [[A:%.*]] : i1, f32
// CHECK: llvm.select [[UPPER]], [[A]], [[B]]
// CHECK-COUNT-3: nvvm.shfl.sync bfly
// CHECK-COUNT-3: nvvm.shfl.sync bfly
// CHECK-COUNT-4: nvvm.shfl.sync idx
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @halves(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<4x32x!tile.ptr<f32>, #rows_of_lanes>
    %x = tile.load %b : tensor<4x32x!tile.ptr<f32>, #rows_of_lanes>
    %m = tile.reduce %x {axis = 1 : i32} : (tensor<4x32xf32, #rows_of_lanes>) -> tensor<4xf32, #sums_of_rows> {
    ^bb0(%s: f32, %t: f32):
      %u = arith.addf %s, %t : f32
      tile.yield %u : f32
    }
    return
  }
}

// -----

#tall = #warp.layout<[32, 32], register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [8, 0], [16, 0]]>
#line = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]], warp = [[0], [0], [0]]>

// Wanted in another layout than the warps' shares: a thread reads the one element that is its own there, of eight partial results.
// CHECK-LABEL: llvm.func @placed
// CHECK-NOT: idx
// CHECK: nvvm.barrier
// CHECK-COUNT-8: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK-NOT: llvm.load
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @placed(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>, #tall>
    %x = tile.load %b : tensor<32x32x!tile.ptr<f32>, #tall>
    %m = tile.reduce %x {axis = 0 : i32, warp.scratch = 0 : i64} : (tensor<32x32xf32, #tall>) -> tensor<32xf32, #line> {
    ^bb0(%s: f32, %t: f32):
      %u = arith.addf %s, %t : f32
      tile.yield %u : f32
    }
    return
  }
}

// -----

#eights = #warp.layout<[4, 8], lane = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0]]>
#of_eights = #warp.layout<[4], lane = [[0], [0], [0], [1], [2]]>

// Truths of eight lanes each: a vote of the warp, of which each lane looks at its own eight's, 255 moved by 8 or 16 lanes.
// CHECK-LABEL: llvm.func @votes
// CHECK: %[[VOTES:.*]] = nvvm.vote.sync ballot
// CHECK: %[[ASKED:.*]] = llvm.shl
// CHECK: %[[OWN:.*]] = llvm.and %[[VOTES]], %[[ASKED]]
// CHECK: llvm.icmp "eq" %[[OWN]], %[[ASKED]]
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @votes(%t: i1) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %x = tile.splat %t : i1 -> tensor<4x8xi1, #eights>
    %m = tile.reduce %x {axis = 1 : i32} : (tensor<4x8xi1, #eights>) -> tensor<4xi1, #of_eights> {
    ^bb0(%s: i1, %u: i1):
      %v = arith.andi %s, %u : i1
      tile.yield %v : i1
    }
    return
  }
}

// -----

#twice = #warp.layout<[64, 2], register = [[0, 1], [32, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
#whole = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]]>
#column = #warp.layout<[64, 1], register = [[32, 0]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>

// Whether one of a warp's elements is true: each of a thread's once, then one vote.
// CHECK-LABEL: llvm.func @any
// CHECK: %[[A:.*]] = llvm.icmp "slt"
// CHECK: %[[B:.*]] = llvm.icmp "slt"
// CHECK-NOT: llvm.icmp
// CHECK: %[[O:.*]] = llvm.or %[[A]], %[[B]] : i1
// CHECK-NOT: llvm.or
// CHECK: nvvm.vote.sync any %{{.*}}, %[[O]] -> i1
module attributes {warp.target = "sm_80"} {
  func.func @any(%p: !tile.ptr<i32>, %out: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %c0 = arith.constant dense<0> : tensor<64xi32, #whole>
    %one = arith.constant 1 : i32
    %b = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>, #whole>
    %x = tile.load %b : tensor<64x!tile.ptr<i32>, #whole>
    %t = arith.cmpi slt, %x, %c0 : tensor<64xi32, #whole>
    %u = tile.expand_dims %t {axis = 1 : i32} : tensor<64xi1, #whole> -> tensor<64x1xi1, #column>
    %v = tile.broadcast %u : tensor<64x1xi1, #column> -> tensor<64x2xi1, #twice>
    %any = warp.any %v : tensor<64x2xi1, #twice>
    scf.if %any {
      tile.store %out, %one : !tile.ptr<i32>
    }
    return
  }
}

// -----

#row = #warp.layout<[128], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>

// Truths of four warps: whether all are, or any is, is a vote of each warp, and of what they found one more; how many are
// true is counted, and exchanged.
// CHECK-LABEL: llvm.func @decisions
// CHECK: nvvm.vote.sync all {{.*}} -> i1
// CHECK-NOT: nvvm.shfl
// CHECK: nvvm.vote.sync all {{.*}} -> i1
// CHECK-NOT: nvvm.shfl
// CHECK: nvvm.vote.sync any {{.*}} -> i1
// CHECK-NOT: nvvm.shfl
// CHECK: nvvm.vote.sync any {{.*}} -> i1
// CHECK: nvvm.vote.sync ballot
// CHECK: nvvm.shfl
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @decisions(%t: i1) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %x = tile.splat %t : i1 -> tensor<128xi1, #row>
    %all = tile.reduce %x {axis = 0 : i32, warp.scratch = 0 : i32} : (tensor<128xi1, #row>) -> i1 {
    ^bb0(%s: i1, %u: i1):
      %v = arith.andi %s, %u : i1
      tile.yield %v : i1
    }
    %any = tile.reduce %x {axis = 0 : i32, warp.scratch = 16 : i32} : (tensor<128xi1, #row>) -> i1 {
    ^bb0(%s: i1, %u: i1):
      %v = arith.ori %s, %u : i1
      tile.yield %v : i1
    }
    %odd = tile.reduce %x {axis = 0 : i32, warp.scratch = 32 : i32} : (tensor<128xi1, #row>) -> i1 {
    ^bb0(%s: i1, %u: i1):
      %v = arith.xori %s, %u : i1
      tile.yield %v : i1
    }
    return
  }
}

// -----

#row = #warp.layout<[512], register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]]>

// How many of four warps' elements are above zero: a thread adds one for each of its truths; of the warps' four counts each
// lane has one, eight lanes the same, so that those past the fourth give zero to the instruction. The greatest needs no such.
// CHECK-LABEL: llvm.func @counted
// CHECK: %[[N:.*]] = llvm.inline_asm {{.*}}"selp.u32 $0, 1, 0, $1; @$2 add.s32 $0, $0, 1; @$3 add.s32 $0, $0, 1; @$4 add.s32 $0, $0, 1;", "=r,b,b,b,b"
// CHECK: nvvm.redux.sync add %[[N]]
// CHECK: nvvm.barrier
// CHECK: %[[P:.*]] = llvm.load {{.*}} : !llvm.ptr<3> -> i32
// CHECK: %[[O:.*]] = llvm.select %{{.*}}, %[[P]], %{{.*}} : i1, i32
// CHECK-NEXT: nvvm.redux.sync add %[[O]]
// CHECK: nvvm.barrier
// CHECK: %[[M:.*]] = llvm.load {{.*}} : !llvm.ptr<3> -> i32
// CHECK-NEXT: nvvm.redux.sync max %[[M]]
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @counted(%p: !tile.ptr<i32>, %o: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<i32> -> tensor<512x!tile.ptr<i32>, #row>
    %x = tile.load %b : tensor<512x!tile.ptr<i32>, #row>
    %z = arith.constant dense<0> : tensor<512xi32, #row>
    %t = arith.cmpi sgt, %x, %z : tensor<512xi32, #row>
    %w = arith.extui %t : tensor<512xi1, #row> to tensor<512xi32, #row>
    %n = tile.reduce %w {axis = 0 : i32, warp.scratch = 0 : i64} : (tensor<512xi32, #row>) -> i32 {
    ^bb0(%s: i32, %u: i32):
      %v = arith.addi %s, %u : i32
      tile.yield %v : i32
    }
    %m = tile.reduce %x {axis = 0 : i32, warp.scratch = 16 : i64} : (tensor<512xi32, #row>) -> i32 {
    ^bb0(%s: i32, %u: i32):
      %v = arith.maxsi %s, %u : i32
      tile.yield %v : i32
    }
    %both = arith.addi %n, %m : i32
    tile.store %o, %both : !tile.ptr<i32>
    return
  }
}

// -----

#row = #warp.layout<[512], register = [[1], [2], [4], [256]], lane = [[8], [16], [32], [64], [128]]>

// The largest of sizes that were widened: eight words of two, then the two halves, which alone are widened.
// CHECK-LABEL: llvm.func @of_halves
// CHECK-COUNT-8: llvm.intr.fabs({{.*}}) : (vector<2xbf16>) -> vector<2xbf16>
// CHECK-COUNT-7: llvm.intr.maxnum({{.*}}) : (vector<2xbf16>, vector<2xbf16>) -> vector<2xbf16>
// CHECK: llvm.intr.maxnum({{.*}}) : (f32, f32) -> f32
// CHECK-NEXT: llvm.bitcast
// CHECK: nvvm.shfl.sync bfly
module attributes {warp.target = "sm_80"} {
  func.func @of_halves(%p: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %i = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #row>
    %b = tile.splat %p : !tile.ptr<bf16> -> tensor<512x!tile.ptr<bf16>, #row>
    %a = tile.addptr %b, %i : tensor<512x!tile.ptr<bf16>, #row>, tensor<512xi32, #row>
    %x = tile.load %a {warp.contiguity = 8 : i32} : tensor<512x!tile.ptr<bf16>, #row>
    %w = arith.extf %x : tensor<512xbf16, #row> to tensor<512xf32, #row>
    %s = math.absf %w : tensor<512xf32, #row>
    %m = tile.reduce %s {axis = 0 : i32} : (tensor<512xf32, #row>) -> f32 {
    ^bb0(%l: f32, %r: f32):
      %u = arith.maxnumf %l, %r : f32
      tile.yield %u : f32
    }
    tile.store %q, %m : !tile.ptr<f32>
    return
  }
}

// -----

#row = #warp.layout<[512], register = [[1], [2], [4], [256]], lane = [[8], [16], [32], [64], [128]]>

// A sum is of float32: its numbers would be rounded.
// CHECK-LABEL: llvm.func @sums_are_wide
// CHECK-NOT: vector<2xf16>, vector<2xf16>
// CHECK-COUNT-15: llvm.fadd {{.*}} : f32
module attributes {warp.target = "sm_80"} {
  func.func @sums_are_wide(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %i = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #row>
    %b = tile.splat %p : !tile.ptr<f16> -> tensor<512x!tile.ptr<f16>, #row>
    %a = tile.addptr %b, %i : tensor<512x!tile.ptr<f16>, #row>, tensor<512xi32, #row>
    %x = tile.load %a {warp.contiguity = 8 : i32} : tensor<512x!tile.ptr<f16>, #row>
    %w = arith.extf %x : tensor<512xf16, #row> to tensor<512xf32, #row>
    %m = tile.reduce %w {axis = 0 : i32} : (tensor<512xf32, #row>) -> f32 {
    ^bb0(%l: f32, %r: f32):
      %u = arith.addf %l, %r : f32
      tile.yield %u : f32
    }
    tile.store %q, %m : !tile.ptr<f32>
    return
  }
}

// -----

#columns = #warp.layout<[8, 64], register = [[0, 1], [1, 0], [2, 0], [4, 0]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]]>
#of_columns = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
#row = #warp.layout<[1, 64], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]]>

// Of columns, the halves of a word belong to two results.
// CHECK-LABEL: llvm.func @of_columns
// CHECK-NOT: vector<2xf16>, vector<2xf16>
// CHECK-COUNT-14: llvm.intr.maxnum({{.*}}) : (f32, f32) -> f32
module attributes {warp.target = "sm_80"} {
  func.func @of_columns(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %i = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #of_columns>
    %j = tile.expand_dims %i {axis = 0 : i32} : tensor<64xi32, #of_columns> -> tensor<1x64xi32, #row>
    %k = tile.broadcast %j : tensor<1x64xi32, #row> -> tensor<8x64xi32, #columns>
    %b = tile.splat %p : !tile.ptr<f16> -> tensor<8x64x!tile.ptr<f16>, #columns>
    %a = tile.addptr %b, %k : tensor<8x64x!tile.ptr<f16>, #columns>, tensor<8x64xi32, #columns>
    %x = tile.load %a {warp.contiguity = 2 : i32} : tensor<8x64x!tile.ptr<f16>, #columns>
    %w = arith.extf %x : tensor<8x64xf16, #columns> to tensor<8x64xf32, #columns>
    %m = tile.reduce %w {axis = 0 : i32} : (tensor<8x64xf32, #columns>) -> tensor<64xf32, #of_columns> {
    ^bb0(%l: f32, %r: f32):
      %u = arith.maxnumf %l, %r : f32
      tile.yield %u : f32
    }
    %c = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #of_columns>
    %d = tile.addptr %c, %i : tensor<64x!tile.ptr<f32>, #of_columns>, tensor<64xi32, #of_columns>
    tile.store %d, %m : tensor<64x!tile.ptr<f32>, #of_columns>
    return
  }
}

// -----

#whole = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]]>

// The largest and smallest floats of a whole warp are one instruction where the target has it, with or without numbers
// that are none; those of 16 bits are widened. Sums are not, nor what is of 64 bits.
// CHECK-LABEL: llvm.func @floats_of_a_warp
// CHECK: %[[A:.*]] = llvm.intr.maxnum
// CHECK-NEXT: nvvm.redux.sync fmax %[[A]], %{{.*}} : f32 -> f32
// CHECK: %[[M:.*]] = llvm.intr.minimum{{.*}} : (f16, f16) -> f16
// CHECK-NEXT: %[[W:.*]] = llvm.fpext %[[M]] : f16 to f32
// CHECK: nvvm.redux.sync fmin %[[W]], %{{.*}} {nan = true} : f32 -> f32
// CHECK-NEXT: llvm.fptrunc %{{.*}} : f32 to f16
// CHECK-NOT: nvvm.redux
// CHECK-COUNT-15: nvvm.shfl.sync bfly
// CHECK: llvm.return
module attributes {warp.target = "sm_100a"} {
  func.func @floats_of_a_warp(%p: !tile.ptr<f32>, %q: !tile.ptr<f16>, %r: !tile.ptr<f64>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #whole>
    %x = tile.load %b : tensor<64x!tile.ptr<f32>, #whole>
    %c = tile.splat %q : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>, #whole>
    %y = tile.load %c : tensor<64x!tile.ptr<f16>, #whole>
    %d = tile.splat %r : !tile.ptr<f64> -> tensor<64x!tile.ptr<f64>, #whole>
    %z = tile.load %d : tensor<64x!tile.ptr<f64>, #whole>
    %most = tile.reduce %x {axis = 0 : i32} : (tensor<64xf32, #whole>) -> f32 {
    ^bb0(%s: f32, %t: f32):
      %u = arith.maxnumf %s, %t : f32
      tile.yield %u : f32
    }
    %least = tile.reduce %y {axis = 0 : i32} : (tensor<64xf16, #whole>) -> f16 {
    ^bb0(%s: f16, %t: f16):
      %u = arith.minimumf %s, %t : f16
      tile.yield %u : f16
    }
    %sum = tile.reduce %x {axis = 0 : i32} : (tensor<64xf32, #whole>) -> f32 {
    ^bb0(%s: f32, %t: f32):
      %u = arith.addf %s, %t : f32
      tile.yield %u : f32
    }
    %wide = tile.reduce %z {axis = 0 : i32} : (tensor<64xf64, #whole>) -> f64 {
    ^bb0(%s: f64, %t: f64):
      %u = arith.maxnumf %s, %t : f64
      tile.yield %u : f64
    }
    return
  }
}

// -----

#whole = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]]>

// Without it they are exchanged.
// CHECK-LABEL: llvm.func @floats_by_exchanges
// CHECK-NOT: nvvm.redux
// CHECK-COUNT-5: nvvm.shfl.sync bfly
// CHECK: llvm.return
module attributes {warp.target = "sm_90a"} {
  func.func @floats_by_exchanges(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #whole>
    %x = tile.load %b : tensor<64x!tile.ptr<f32>, #whole>
    %most = tile.reduce %x {axis = 0 : i32} : (tensor<64xf32, #whole>) -> f32 {
    ^bb0(%s: f32, %t: f32):
      %u = arith.maxnumf %s, %t : f32
      tile.yield %u : f32
    }
    return
  }
}

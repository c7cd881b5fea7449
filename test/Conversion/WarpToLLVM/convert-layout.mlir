// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

#acc = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#swapped = #warp.layout<[16, 16], register = [[0, 8], [0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// A permutation of registers is nothing: register 1 of the accumulator is register 2 of the result.
// CHECK-LABEL: llvm.func @permutation
// CHECK: %[[V:.*]] = llvm.fadd
// CHECK-NOT: shfl
// CHECK-NOT: llvm.store
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @permutation(%x: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %s = tile.splat %x : f32 -> tensor<16x16xf32, #acc>
    %v = arith.addf %s, %s : tensor<16x16xf32, #acc>
    %r = warp.convert_layout %v : tensor<16x16xf32, #acc> -> tensor<16x16xf32, #swapped>
    return
  }
}

// -----

#rows = #warp.layout<[32], register = [[8], [16]], lane = [[0], [0], [1], [2], [4]], warp = [[0]]>
#one = #warp.layout<[32], register = [], lane = [[1], [2], [4], [8], [16]], warp = [[0]]>

// Rows of an accumulator, four lanes each, to one row a lane: a shuffle for each of the four registers a lane may want, then a choice by its two upper bits.
// CHECK-LABEL: llvm.func @shuffles
// CHECK-COUNT-4: nvvm.shfl.sync idx
// CHECK-COUNT-2: llvm.select
// CHECK: llvm.select
// CHECK-NOT: nvvm.shfl
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @shuffles(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
    %i = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #rows>
    %r = warp.convert_layout %i : tensor<32xi32, #rows> -> tensor<32xi32, #one>
    return
  }
}

// -----

#sums = #warp.layout<[8], register = [[1], [2], [4]], lane = [[0], [0], [0], [0], [0]]>
#shared = #warp.layout<[8], register = [[1], [2]], lane = [[4], [0], [0], [0], [0]]>

// What all lanes have, each takes from itself.
// CHECK-LABEL: llvm.func @own
// CHECK-NOT: nvvm.shfl
// CHECK-COUNT-4: llvm.select
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @own(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %i = tile.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #sums>
    %r = warp.convert_layout %i : tensor<8xi32, #sums> -> tensor<8xi32, #shared>
    return
  }
}

// -----

#all = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = [[0], [0]]>
#each = #warp.layout<[64], register = [[2]], lane = [[4], [8], [16], [0], [0]], warp = [[1], [32]]>

// What all warps have, each takes its own of inside it: the lower bit of its number says from which lane, the upper of which register.
// CHECK-LABEL: llvm.func @each_warp
// CHECK-COUNT-2: nvvm.shfl.sync idx
// CHECK: llvm.select
// CHECK-COUNT-2: nvvm.shfl.sync idx
// CHECK: llvm.select
// CHECK-NOT: nvvm.shfl
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @each_warp(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %i = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #all>
    %r = warp.convert_layout %i : tensor<64xi32, #all> -> tensor<64xi32, #each>
    return
  }
}

// -----

#acc = #warp.layout<[32, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#rows = #warp.layout<[32, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0]]>

// Through shared memory otherwise: pairs are written, pieces of 16 bytes are read without a bank conflict, a barrier lies between.
// CHECK-LABEL: llvm.func @memory
// CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 4 : i64} : vector<2xf16>, !llvm.ptr<3>
// CHECK-NEXT: nvvm.barrier
// CHECK-COUNT-1: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8xf16>
// CHECK-NOT: llvm.load
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @memory(%x: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
    %s = tile.splat %x : f16 -> tensor<32x16xf16, #acc>
    %r = warp.convert_layout %s {warp.scratch = 0 : i64} : tensor<32x16xf16, #acc> -> tensor<32x16xf16, #rows>
    return
  }
}

// -----

#low = #warp.layout<[64], register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32]]>
#high = #warp.layout<[64], register = [], lane = [[2], [4], [8], [16], [32]], warp = [[1]]>

// Truth values travel as bytes, pointers as 64-bit integers.
// CHECK-LABEL: llvm.func @elements
// CHECK: llvm.zext %{{.*}} : i1 to i8
// CHECK: llvm.store %{{.*}} : i8, !llvm.ptr<3>
// CHECK: llvm.trunc %{{.*}} : i8 to i1
// CHECK: llvm.store %{{.*}} : i64, !llvm.ptr<3>
// CHECK: llvm.inttoptr %{{.*}} : i64 to !llvm.ptr<1>
module attributes {warp.target = "sm_80"} {
  func.func @elements(%x: i1, %p: !tile.ptr<f16>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
    %s = tile.splat %x : i1 -> tensor<64xi1, #low>
    %r = warp.convert_layout %s {warp.scratch = 0 : i64} : tensor<64xi1, #low> -> tensor<64xi1, #high>
    %t = tile.splat %p : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>, #low>
    %u = warp.convert_layout %t {warp.scratch = 0 : i64} : tensor<64x!tile.ptr<f16>, #low> -> tensor<64x!tile.ptr<f16>, #high>
    return
  }
}

// -----

#low = #warp.layout<[64], register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32]]>
#high = #warp.layout<[64], register = [], lane = [[2], [4], [8], [16], [32]], warp = [[1]]>

module attributes {warp.target = "sm_80"} {
  func.func @unallocated(%x: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
    %s = tile.splat %x : f32 -> tensor<64xf32, #low>
    // expected-error @below {{has no scratch memory; run 'warp-allocate-shared' before}}
    %r = warp.convert_layout %s : tensor<64xf32, #low> -> tensor<64xf32, #high>
    return
  }
}

// -----

#loaded = #warp.layout<[16, 64], register = [[0, 1], [0, 2], [0, 4], [4, 0], [8, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]]>
#operand = #warp.layout<[16, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// Rows in pieces of 16 bytes are stored as they are, and operands of matrix instructions read by ldmatrix. The block is
// one warp, whose lanes wait for each other.
// CHECK-LABEL: llvm.func @matrices
// CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
// CHECK-NEXT: nvvm.bar.warp.sync
// CHECK-COUNT-4: ldmatrix.sync.aligned.m8n8.x4.b16
// CHECK-NOT: ldmatrix
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @matrices(%x: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %s = tile.splat %x : f16 -> tensor<16x64xf16, #loaded>
    %r = warp.convert_layout %s {warp.scratch = 0 : i64} : tensor<16x64xf16, #loaded> -> tensor<16x64xf16, #operand>
    return
  }
}

// -----

#columns = #warp.layout<[64, 64], register = [[1, 0], [2, 0], [4, 0], [0, 16], [0, 32]], lane = [[8, 0], [16, 0], [32, 0], [0, 1], [0, 2]], warp = [[0, 4], [0, 8]]>
#turned = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [0, 32], [32, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[8, 0], [16, 0]]>

// Columns that lanes hold in full vectors become rows by ldmatrix.trans. Lines whose rows make a matrix, 0, 1, 8 and so on, lie
// in different banks.
// CHECK-LABEL: llvm.func @turned
// CHECK-COUNT-4: llvm.store %{{.*}} {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
// CHECK-NEXT: nvvm.barrier
// CHECK-COUNT-4: ldmatrix.sync.aligned.m8n8.x4.trans.b16
// CHECK-NOT: ldmatrix
// CHECK-NOT: llvm.load
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @turned(%x: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %s = tile.splat %x : f16 -> tensor<64x64xf16, #columns>
    %r = warp.convert_layout %s {warp.scratch = 0 : i64} : tensor<64x64xf16, #columns> -> tensor<64x64xf16, #turned>
    return
  }
}

// -----

#sums = #warp.layout<[64, 32], register = [[0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[32, 0]]>
#operand = #warp.layout<[64, 32], register = [[1, 0], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0]]>

// Sums that become an operand B: wider pieces would be fewer, but of elements that are put together two by two.
// CHECK-LABEL: llvm.func @pairs_along_k
// CHECK-COUNT-16: llvm.store %{{.*}} : {{.*}}, !llvm.ptr<3>
// CHECK-NOT: llvm.store
// CHECK-COUNT-8: ldmatrix.sync.aligned.m8n8.x4.trans.b16
// CHECK-NOT: ldmatrix
// CHECK-NOT: llvm.load
module attributes {warp.target = "sm_80"} {
  func.func @pairs_along_k(%x: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
    %s = tile.splat %x : f16 -> tensor<64x32xf16, #sums>
    %r = warp.convert_layout %s {warp.scratch = 0 : i64} : tensor<64x32xf16, #sums> -> tensor<64x32xf16, #operand>
    return
  }
}

// -----

#in = #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], warp = [[32]]>
#out = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [0]], warp = [[16]]>

// Joined ones write, all of them; then all are read behind one barrier.
// CHECK-LABEL: llvm.func @joined
// CHECK-COUNT-2: llvm.store %{{.*}} : {{.*}}, !llvm.ptr<3>
// CHECK-NOT: llvm.store
// CHECK: nvvm.barrier0
// CHECK-NOT: nvvm.barrier0
// CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr<3>
// CHECK-NOT: nvvm.barrier0
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @joined(%x: f32, %y: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
    %s = tile.splat %x : f32 -> tensor<64xf32, #in>
    %t = tile.splat %y : f32 -> tensor<64xf32, #in>
    %p = warp.convert_layout %s {warp.joined, warp.scratch = 0 : i64} : tensor<64xf32, #in> -> tensor<64xf32, #out>
    %q = warp.convert_layout %t {warp.scratch = 256 : i64} : tensor<64xf32, #in> -> tensor<64xf32, #out>
    return
  }
}

// -----

#in = #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], warp = [[32]]>
#out = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [0]], warp = [[16]]>
#slots = #warp.layout<[8], offset = [[1], [2], [4]]>

// What other passes have put between is no end of a group; the exchange before it, which has a barrier, is.
// CHECK-LABEL: llvm.func @joined_past_others
// CHECK: nvvm.barrier0
// CHECK-COUNT-2: llvm.load %{{.*}} : !llvm.ptr<3>
// CHECK: llvm.store %{{.*}} : {{.*}}, !llvm.ptr<3>
// CHECK: mbarrier.try_wait
// CHECK: llvm.store %{{.*}} : {{.*}}, !llvm.ptr<3>
// CHECK: nvvm.barrier0
// CHECK-COUNT-4: llvm.load %{{.*}} : !llvm.ptr<3>
// CHECK: llvm.return
module attributes {warp.target = "sm_100a"} {
  func.func @joined_past_others(%x: f32, %y: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
    %slots = warp.alloc {offset = 512 : i64, pitch = 64 : i64} : !warp.shared<8xi64, #slots>
    %s = tile.splat %x : f32 -> tensor<64xf32, #in>
    %t = tile.splat %y : f32 -> tensor<64xf32, #in>
    %r = warp.convert_layout %s {warp.scratch = 256 : i64} : tensor<64xf32, #in> -> tensor<64xf32, #out>
    %p = warp.convert_layout %s {warp.joined, warp.scratch = 0 : i64} : tensor<64xf32, #in> -> tensor<64xf32, #out>
    warp.tensor_wait %slots {pending = 0 : i32} : !warp.shared<8xi64, #slots>
    %q = warp.convert_layout %t {warp.scratch = 256 : i64} : tensor<64xf32, #in> -> tensor<64xf32, #out>
    %sum = arith.addf %p, %q : tensor<64xf32, #out>
    return
  }
}

// -----

#columns = #warp.layout<[4, 32], register = [[1, 0], [2, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]]>
#turned = #warp.layout<[4, 32], register = [[1, 0], [2, 0]], lane = [[0, 16], [0, 2], [0, 4], [0, 8], [0, 1]]>
#traded = #warp.layout<[4, 32], register = [[1, 0], [0, 1]], lane = [[2, 0], [0, 2], [0, 4], [0, 8], [0, 16]]>

// Elements of 16 bits go two at once, a word, where two of a lane's registers come from one lane, whichever it chooses: two
// shuffles for four elements, and where a lane chooses between two registers, two for each word.
// CHECK-LABEL: llvm.func @halves
// CHECK-COUNT-2: nvvm.shfl.sync idx
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
// CHECK-LABEL: llvm.func @chosen_halves
// CHECK-COUNT-4: nvvm.shfl.sync idx
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
// CHECK-LABEL: llvm.func @words
// CHECK-COUNT-4: nvvm.shfl.sync idx
// CHECK-NOT: nvvm.shfl
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @halves(%x: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %v = tile.splat %x : f16 -> tensor<4x32xf16, #columns>
    %s = arith.addf %v, %v : tensor<4x32xf16, #columns>
    %r = warp.convert_layout %s : tensor<4x32xf16, #columns> -> tensor<4x32xf16, #turned>
    return
  }
  func.func @chosen_halves(%x: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %v = tile.splat %x : f16 -> tensor<4x32xf16, #columns>
    %s = arith.addf %v, %v : tensor<4x32xf16, #columns>
    %r = warp.convert_layout %s : tensor<4x32xf16, #columns> -> tensor<4x32xf16, #traded>
    return
  }
  func.func @words(%x: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %v = tile.splat %x : f32 -> tensor<4x32xf32, #columns>
    %s = arith.addf %v, %v : tensor<4x32xf32, #columns>
    %r = warp.convert_layout %s : tensor<4x32xf32, #columns> -> tensor<4x32xf32, #turned>
    return
  }
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

#blocked = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>

// In registers first, then over the five lane bits: each lane takes in what those before it have.
// CHECK-LABEL: llvm.func @forward
// CHECK: llvm.fadd
// CHECK: llvm.icmp "uge"
// CHECK: nvvm.shfl.sync up
// CHECK: llvm.select
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
// CHECK-LABEL: llvm.func @reverse
// CHECK: llvm.xor
// CHECK: llvm.icmp "uge"
// CHECK: nvvm.shfl.sync down
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @forward(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #blocked>
    %x = tile.load %b : tensor<64x!tile.ptr<f32>, #blocked>
    %m = tile.scan %x {axis = 0 : i32} : (tensor<64xf32, #blocked>) -> tensor<64xf32, #blocked> {
    ^bb0(%s: f32, %t: f32):
      %u = arith.addf %s, %t : f32
      tile.yield %u : f32
    }
    return
  }
  func.func @reverse(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #blocked>
    %x = tile.load %b : tensor<64x!tile.ptr<f32>, #blocked>
    %m = tile.scan %x {axis = 0 : i32, reverse} : (tensor<64xf32, #blocked>) -> tensor<64xf32, #blocked> {
    ^bb0(%s: f32, %t: f32):
      %u = arith.addf %s, %t : f32
      tile.yield %u : f32
    }
    return
  }
}

// -----

// The upper warp bit walks first: exchanges are in the order of the axis, not of the warps.
#warps = #warp.layout<[128], register = [], lane = [[1], [2], [4], [8], [16]], warp = [[64], [32]]>

// Over warps through scratch memory, a bit at a time; the second exchange waits until the first has been read.
// CHECK-LABEL: llvm.func @over_warps
// CHECK: llvm.store %{{.*}} : i32, !llvm.ptr<3>
// CHECK-NEXT: nvvm.barrier
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK: nvvm.barrier
// CHECK: llvm.store %{{.*}} : i32, !llvm.ptr<3>
// CHECK-NEXT: nvvm.barrier
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
// CHECK-NOT: nvvm.barrier
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @over_warps(%p: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %x = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #warps>
    %m = tile.scan %x {axis = 0 : i32, warp.scratch = 0 : i64} : (tensor<128xi32, #warps>) -> tensor<128xi32, #warps> {
    ^bb0(%s: i32, %t: i32):
      %u = arith.addi %s, %t : i32
      tile.yield %u : i32
    }
    return
  }
}

// -----

#mixed = #warp.layout<[32], register = [], lane = [[1], [3], [4], [8], [16]]>

module attributes {warp.target = "sm_80"} {
  func.func @mixed() attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %x = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #mixed>
    // expected-error @below {{cannot be scanned in a layout that does not walk along axis 0 by single bits}}
    %m = tile.scan %x {axis = 0 : i32} : (tensor<32xi32, #mixed>) -> tensor<32xi32, #mixed> {
    ^bb0(%s: i32, %t: i32):
      %u = arith.addi %s, %t : i32
      tile.yield %u : i32
    }
    return
  }
}

// -----

#neighbours = #warp.layout<[128], register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>

// A lane's neighbours are one block once they are joined: lanes exchange its total, five times, and once more what comes
// before all of it, which its registers but the last take in.
// CHECK-LABEL: llvm.func @carried
// CHECK-COUNT-6: nvvm.shfl.sync up
// CHECK-NOT: nvvm.shfl
// CHECK-COUNT-3: llvm.select
// CHECK-NOT: llvm.select
// CHECK: llvm.return
// CHECK-LABEL: llvm.func @chosen
// CHECK-COUNT-5: nvvm.shfl.sync up
// CHECK: nvvm.shfl.sync up
// CHECK-COUNT-3: llvm.select
// CHECK-NOT: llvm.select
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @carried(%p: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %x = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #neighbours>
    %m = tile.scan %x {axis = 0 : i32} : (tensor<128xi32, #neighbours>) -> tensor<128xi32, #neighbours> {
    ^bb0(%s: i32, %t: i32):
      %u = arith.addi %s, %t : i32
      tile.yield %u : i32
    }
    return
  }
  func.func @chosen(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %x = arith.constant dense<1.0> : tensor<128xf32, #neighbours>
    %m = tile.scan %x {axis = 0 : i32} : (tensor<128xf32, #neighbours>) -> tensor<128xf32, #neighbours> {
    ^bb0(%s: f32, %t: f32):
      %u = arith.addf %s, %t : f32
      tile.yield %u : f32
    }
    return
  }
}

// -----

#four = #warp.layout<[128], register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>

// What a lane holds is joined one after another: three sums of four.
// CHECK-LABEL: llvm.func @neighbours
// CHECK: %[[A:.*]] = llvm.add %[[X0:.*]], %[[X1:.*]] : i32
// CHECK-NEXT: %[[B:.*]] = llvm.add %[[A]], %{{.*}} : i32
// CHECK-NEXT: llvm.add %[[B]], %{{.*}} : i32
// CHECK-NOT: llvm.add
// CHECK: nvvm.shfl.sync
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @neighbours(%p: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>, #four>
    %x = tile.load %b : tensor<128x!tile.ptr<i32>, #four>
    %m = tile.scan %x {axis = 0 : i32} : (tensor<128xi32, #four>) -> tensor<128xi32, #four> {
    ^bb0(%s: i32, %t: i32):
      %u = arith.addi %s, %t : i32
      tile.yield %u : i32
    }
    return
  }
}

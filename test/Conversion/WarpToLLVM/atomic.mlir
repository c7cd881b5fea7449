// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file %s | FileCheck %s

#full = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = []>

// Every thread holds its own elements: no condition, and no exchange.
// CHECK-LABEL: llvm.func @own
// CHECK-NOT: llvm.cond_br
// CHECK-COUNT-2: llvm.atomicrmw fadd %{{.*}}, %{{.*}} syncscope("device") acq_rel : !llvm.ptr<1>, f32
// CHECK-NOT: nvvm.barrier0
module attributes {warp.target = "sm_80"} {
  func.func @own(%x: !tile.ptr<f32>, %s: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #full>
    %b = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #full>
    %p = tile.addptr %b, %r : tensor<64x!tile.ptr<f32>, #full>, tensor<64xi32, #full>
    %v = tile.splat %s : f32 -> tensor<64xf32, #full>
    %old = tile.atomic_rmw fadd %p, %v : (tensor<64x!tile.ptr<f32>, #full>, tensor<64xf32, #full>) -> tensor<64xf32, #full>
    tile.store %p, %old : tensor<64x!tile.ptr<f32>, #full>
    return
  }
}

// -----

// One thread acts for a scalar; the old value goes round through shared memory, between two barriers.
// CHECK-LABEL: llvm.func @scalar
// CHECK: %[[FIRST:.*]] = llvm.icmp "eq" %{{.*}}, %{{.*}} : i32
// CHECK: llvm.cond_br %[[FIRST]], ^[[ACTS:.*]], ^[[JOINS:.*]](%{{.*}} : i32)
// CHECK: ^[[ACTS]]:
// CHECK: llvm.atomicrmw add %{{.*}} syncscope("device") monotonic
// CHECK: ^[[JOINS]](%[[OLD:.*]]: i32):
// CHECK: nvvm.barrier0
// CHECK: llvm.store %[[OLD]], %{{.*}} : i32, !llvm.ptr<3>
// CHECK: nvvm.barrier0
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
module attributes {warp.target = "sm_80"} {
  func.func @scalar(%x: !tile.ptr<i32>, %s: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %old = tile.atomic_rmw add %x, %s {order = #tile<order relaxed>} : (!tile.ptr<i32>, i32) -> i32
    tile.store %x, %old : !tile.ptr<i32>
    return
  }
}

// -----

// A result that nobody reads is not handed round; a failed exchange only acquires.
// CHECK-LABEL: llvm.func @unread
// CHECK: llvm.cmpxchg %{{.*}} syncscope("device") acq_rel acquire
// CHECK-NOT: nvvm.barrier0
module attributes {warp.target = "sm_80"} {
  func.func @unread(%x: !tile.ptr<i32>, %s: i32) attributes {tile.kernel} {
    %old = tile.atomic_cas %x, %s, %s : (!tile.ptr<i32>, i32, i32) -> i32
    return
  }
}

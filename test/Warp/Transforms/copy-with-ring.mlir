// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --canonicalize --cse --tile-to-warp=target=sm_90a --warp-stage-wgmma --warp-stage-operands --warp-pipeline --canonicalize --cse --warp-copy-with-ring --canonicalize --cse | FileCheck %s

// What every product of a loop reads comes with the loop's first tiles, as a box, on their barrier: no thread copies it, or waits for it.

// CHECK-LABEL: func.func @scores
// CHECK-DAG: %[[OFQ:.*]] = warp.tensor_map %arg0
// CHECK-DAG: %[[OFK:.*]] = warp.tensor_map %arg1
// CHECK-NOT: warp.async_
// CHECK: %[[Q:.*]] = warp.alloc : <64x64xf16
// CHECK: warp.mbarrier_init
// CHECK: scf.if
// CHECK-NEXT: %[[FULL:.*]] = warp.stage
// CHECK-NEXT: warp.mbarrier_expect %[[FULL]] {bytes = 16384 : i64}
// CHECK-NEXT: warp.box_copy %[[OFQ]][%c0_i32, %c0_i32] to %[[Q]] on %[[FULL]]
// CHECK-NEXT: %[[TILE:.*]] = warp.stage
// CHECK-NEXT: warp.box_copy %[[OFK]][%c0_i32, %c0_i32] to %[[TILE]] on %[[FULL]]
// CHECK: scf.for
// CHECK: warp.mbarrier_wait
// CHECK: warp.mbarrier_expect {{.*}} {bytes = 8192 : i64}
// CHECK: warp.wgmma %[[Q]],
func.func @scores(%q: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %k: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %out: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32)
    attributes {tile.kernel, tile.orders_accesses, tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %range = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %column = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %row = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %width = arith.constant dense<64> : tensor<64x1xi32>
  %lines = arith.muli %column, %width : tensor<64x1xi32>
  %far = tile.broadcast %lines : tensor<64x1xi32> -> tensor<64x64xi32>
  %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
  %offsets = arith.addi %far, %near : tensor<64x64xi32>
  %qs = tile.splat %q : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %qp = tile.addptr %qs, %offsets : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %query = tile.load %qp : tensor<64x64x!tile.ptr<f16>>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %first = arith.muli %i, %c64 : i32
    %start = arith.muli %first, %c64 : i32
    %kb = tile.addptr %k, %start : !tile.ptr<f16>, i32
    %ks = tile.splat %kb : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
    %kp = tile.addptr %ks, %offsets : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %key = tile.load %kp : tensor<64x64x!tile.ptr<f16>>
    %turned = tile.permute %key {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
    %next = tile.dot %query, %turned, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %os = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %op = tile.addptr %os, %offsets : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  tile.store %op, %sum : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// A second loop reads it whose warps need not have waited for the first one's tiles: there may be none. It has a barrier of its own, and who reads first waits there.

// CHECK-LABEL: func.func @twice
// CHECK: %[[OFQ:.*]] = warp.tensor_map %arg0
// CHECK-NOT: warp.async_
// CHECK: %[[Q:.*]] = warp.alloc : <64x64xf16
// CHECK-NEXT: %[[OWN:.*]] = warp.alloc : <1xi64
// CHECK-NEXT: warp.mbarrier_init %[[OWN]]
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: %[[ACTS:.*]] = warp.is_first_thread
// CHECK-NEXT: scf.if %[[ACTS]] {
// CHECK-NEXT: warp.mbarrier_expect %[[OWN]] {bytes = 8192 : i64}
// CHECK-NEXT: warp.box_copy %[[OFQ]][%c0_i32, %c0_i32] to %[[Q]] on %[[OWN]]
// CHECK: warp.mbarrier_expect {{.*}} {bytes = 8192 : i64}
// CHECK: warp.mbarrier_wait %[[OWN]], %c0_i32
// CHECK-NEXT: scf.for
// CHECK: warp.wgmma %[[Q]],
// CHECK-NOT: warp.mbarrier_wait %[[OWN]]
// CHECK: return
func.func @twice(%q: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %k: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %out: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32)
    attributes {tile.kernel, tile.orders_accesses, tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %range = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %column = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %row = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %width = arith.constant dense<64> : tensor<64x1xi32>
  %lines = arith.muli %column, %width : tensor<64x1xi32>
  %far = tile.broadcast %lines : tensor<64x1xi32> -> tensor<64x64xi32>
  %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
  %offsets = arith.addi %far, %near : tensor<64x64xi32>
  %qs = tile.splat %q : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %qp = tile.addptr %qs, %offsets : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %query = tile.load %qp : tensor<64x64x!tile.ptr<f16>>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %first = arith.muli %i, %c64 : i32
    %start = arith.muli %first, %c64 : i32
    %kb = tile.addptr %k, %start : !tile.ptr<f16>, i32
    %ks = tile.splat %kb : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
    %kp = tile.addptr %ks, %offsets : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %key = tile.load %kp : tensor<64x64x!tile.ptr<f16>>
    %turned = tile.permute %key {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
    %next = tile.dot %query, %turned, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %again = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %sum) -> (tensor<64x64xf32>) : i32 {
    %first = arith.muli %i, %c64 : i32
    %start = arith.muli %first, %c64 : i32
    %kb = tile.addptr %k, %start : !tile.ptr<f16>, i32
    %ks = tile.splat %kb : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
    %kp = tile.addptr %ks, %offsets : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %key = tile.load %kp : tensor<64x64x!tile.ptr<f16>>
    %turned = tile.permute %key {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
    %next = tile.dot %query, %turned, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %os = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %op = tile.addptr %os, %offsets : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  tile.store %op, %again : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// Its begin is not known to be aligned: it is no box.

// CHECK-LABEL: func.func @unaligned
// CHECK: warp.async_copy
// CHECK: warp.mbarrier_expect {{.*}} {bytes = 8192 : i64}
func.func @unaligned(%q: !tile.ptr<f16> {tile.divisibility = 8 : i32}, %k: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %out: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32)
    attributes {tile.kernel, tile.orders_accesses, tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %range = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %column = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %row = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %width = arith.constant dense<64> : tensor<64x1xi32>
  %lines = arith.muli %column, %width : tensor<64x1xi32>
  %far = tile.broadcast %lines : tensor<64x1xi32> -> tensor<64x64xi32>
  %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
  %offsets = arith.addi %far, %near : tensor<64x64xi32>
  %qs = tile.splat %q : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %qp = tile.addptr %qs, %offsets : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %query = tile.load %qp : tensor<64x64x!tile.ptr<f16>>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %first = arith.muli %i, %c64 : i32
    %start = arith.muli %first, %c64 : i32
    %kb = tile.addptr %k, %start : !tile.ptr<f16>, i32
    %ks = tile.splat %kb : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
    %kp = tile.addptr %ks, %offsets : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %key = tile.load %kp : tensor<64x64x!tile.ptr<f16>>
    %turned = tile.permute %key {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
    %next = tile.dot %query, %turned, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %os = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %op = tile.addptr %os, %offsets : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  tile.store %op, %sum : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// A cluster's blocks share what they copy.

// CHECK-LABEL: func.func @cluster
// CHECK: warp.async_copy
// CHECK: warp.mbarrier_expect {{.*}} {bytes = 8192 : i64}
func.func @cluster(%q: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %k: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %out: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32)
    attributes {tile.kernel, tile.orders_accesses, tile.schedule = #tile.schedule<warps = 4, stages = 2, cluster = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %range = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %column = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %row = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %width = arith.constant dense<64> : tensor<64x1xi32>
  %lines = arith.muli %column, %width : tensor<64x1xi32>
  %far = tile.broadcast %lines : tensor<64x1xi32> -> tensor<64x64xi32>
  %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
  %offsets = arith.addi %far, %near : tensor<64x64xi32>
  %qs = tile.splat %q : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %qp = tile.addptr %qs, %offsets : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %query = tile.load %qp : tensor<64x64x!tile.ptr<f16>>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %first = arith.muli %i, %c64 : i32
    %start = arith.muli %first, %c64 : i32
    %kb = tile.addptr %k, %start : !tile.ptr<f16>, i32
    %ks = tile.splat %kb : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
    %kp = tile.addptr %ks, %offsets : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %key = tile.load %kp : tensor<64x64x!tile.ptr<f16>>
    %turned = tile.permute %key {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
    %next = tile.dot %query, %turned, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  %os = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %op = tile.addptr %os, %offsets : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  tile.store %op, %sum : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// Its bytes may be those that warps exchange before: a bulk copy would have to wait for them.

// CHECK-LABEL: func.func @exchange
// CHECK: tile.reduce
// CHECK: warp.async_copy
// CHECK: warp.mbarrier_expect {{.*}} {bytes = 8192 : i64}
func.func @exchange(%q: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %k: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %out: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32)
    attributes {tile.kernel, tile.orders_accesses, tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %range = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %column = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %row = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %width = arith.constant dense<64> : tensor<64x1xi32>
  %lines = arith.muli %column, %width : tensor<64x1xi32>
  %far = tile.broadcast %lines : tensor<64x1xi32> -> tensor<64x64xi32>
  %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
  %offsets = arith.addi %far, %near : tensor<64x64xi32>
  %os = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %op = tile.addptr %os, %offsets : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  %old = tile.load %op : tensor<64x64x!tile.ptr<f32>>
  %most = tile.reduce %old {axis = 0 : i32} : (tensor<64x64xf32>) -> tensor<64xf32> {
  ^bb0(%x: f32, %y: f32):
    %m = arith.maximumf %x, %y : f32
    tile.yield %m : f32
  }
  %ms = tile.splat %out : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %mp = tile.addptr %ms, %range : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  tile.store %mp, %most : tensor<64x!tile.ptr<f32>>
  %qs = tile.splat %q : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %qp = tile.addptr %qs, %offsets : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %query = tile.load %qp : tensor<64x64x!tile.ptr<f16>>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
    %first = arith.muli %i, %c64 : i32
    %start = arith.muli %first, %c64 : i32
    %kb = tile.addptr %k, %start : !tile.ptr<f16>, i32
    %ks = tile.splat %kb : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
    %kp = tile.addptr %ks, %offsets : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %key = tile.load %kp : tensor<64x64x!tile.ptr<f16>>
    %turned = tile.permute %key {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
    %next = tile.dot %query, %turned, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  tile.store %op, %sum : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// Each branch that reads it waits; behind them all do, as somebody may have taken another.

// CHECK-LABEL: func.func @branch
// CHECK-NOT: warp.async_
// CHECK: %[[OWN:.*]] = warp.alloc : <1xi64
// CHECK-NEXT: warp.mbarrier_init %[[OWN]]
// CHECK: warp.mbarrier_expect %[[OWN]] {bytes = 8192 : i64}
// CHECK: scf.if %{{.*}} -> (tensor<64x64xf32
// CHECK: warp.mbarrier_init
// CHECK: warp.mbarrier_wait %[[OWN]], %c0_i32
// CHECK-NEXT: scf.for
// CHECK: } else {
// CHECK: warp.mbarrier_wait %[[OWN]], %c0_i32
// CHECK: warp.wgmma
// CHECK: warp.mbarrier_wait %[[OWN]], %c0_i32
// CHECK: return
func.func @branch(%q: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %k: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %out: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32)
    attributes {tile.kernel, tile.orders_accesses, tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %range = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %column = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %row = tile.expand_dims %range {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %width = arith.constant dense<64> : tensor<64x1xi32>
  %lines = arith.muli %column, %width : tensor<64x1xi32>
  %far = tile.broadcast %lines : tensor<64x1xi32> -> tensor<64x64xi32>
  %near = tile.broadcast %row : tensor<1x64xi32> -> tensor<64x64xi32>
  %offsets = arith.addi %far, %near : tensor<64x64xi32>
  %qs = tile.splat %q : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %qp = tile.addptr %qs, %offsets : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %query = tile.load %qp : tensor<64x64x!tile.ptr<f16>>
  %any = arith.cmpi sgt, %n, %c64 : i32
  %sum = scf.if %any -> (tensor<64x64xf32>) {
    %inner = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %zero) -> (tensor<64x64xf32>) : i32 {
      %first = arith.muli %i, %c64 : i32
      %start = arith.muli %first, %c64 : i32
      %kb = tile.addptr %k, %start : !tile.ptr<f16>, i32
      %ks = tile.splat %kb : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
      %kp = tile.addptr %ks, %offsets : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
      %key = tile.load %kp : tensor<64x64x!tile.ptr<f16>>
      %turned = tile.permute %key {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
      %next = tile.dot %query, %turned, %acc : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
      scf.yield %next : tensor<64x64xf32>
    }
    scf.yield %inner : tensor<64x64xf32>
  } else {
    %again = tile.dot %query, %query, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
    scf.yield %again : tensor<64x64xf32>
  }
  %os = tile.splat %out : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %op = tile.addptr %os, %offsets : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  tile.store %op, %sum : tensor<64x64x!tile.ptr<f32>>
  return
}

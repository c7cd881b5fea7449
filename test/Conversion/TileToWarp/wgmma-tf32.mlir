// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_90a --remarks-filter-missed=products 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

// Operands of f32 are rounded before they go to shared memory, each value once, whichever way round it is taken.
// CHECK-LABEL: func.func @rounded
// CHECK: %[[LOAD:.*]] = tile.load
// CHECK: %[[B:.*]] = warp.round_tf32 %[[LOAD]]
// CHECK-NOT: warp.round_tf32 %[[LOAD]]
// CHECK: %[[T:.*]] = tile.permute %[[B]]
// CHECK: %[[D:.*]] = warp.wgmma {{.*}}, %[[T]], {{.*}} {shape = array<i32: 64, 64, 8>} : tensor<64x32xf32, {{.*}}> * tensor<32x64xf32, {{.*}}> -> tensor<64x64xf32
// CHECK: warp.wgmma %[[B]], {{.*}} {shape = array<i32: 64, 64, 8>}
// REMARK-NOT: Function=rounded
func.func @rounded(%p: !tile.ptr<f32>, %x: f32, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : f32 -> tensor<64x32xf32>
  %k = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %ke = tile.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %kb = tile.broadcast %ke : tensor<1x32xi32> -> tensor<64x32xi32>
  %base = tile.splat %p : !tile.ptr<f32> -> tensor<64x32x!tile.ptr<f32>>
  %ptrs = tile.addptr %base, %kb : tensor<64x32x!tile.ptr<f32>>, tensor<64x32xi32>
  %b = tile.load %ptrs : tensor<64x32x!tile.ptr<f32>>
  %t = tile.permute %b {order = array<i32: 1, 0>} : tensor<64x32xf32> -> tensor<32x64xf32>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %a, %t, %z : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
  %s = tile.permute %a {order = array<i32: 1, 0>} : tensor<64x32xf32> -> tensor<32x64xf32>
  %e = tile.dot %b, %s, %d : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  tile.store %out, %e : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// Numbers that TF32 has are not rounded.
// CHECK-LABEL: func.func @widened
// CHECK-NOT: warp.round_tf32
// CHECK: warp.wgmma
func.func @widened(%x: f16, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %h = tile.splat %x : f16 -> tensor<64x32xf16>
  %a = arith.extf %h : tensor<64x32xf16> to tensor<64x32xf32>
  %t = tile.permute %a {order = array<i32: 1, 0>} : tensor<64x32xf32> -> tensor<32x64xf32>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %a, %t, %z : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// A product by three of TF32 is three where instructions of warpgroups take them all; each value is split once. What the
// two with rests come to, made finite, goes to the sum before the large one.
// CHECK-LABEL: func.func @three
// CHECK: %[[LOAD:.*]] = tile.load
// CHECK: %[[HIGH:.*]] = warp.round_tf32 %[[LOAD]]
// CHECK: %[[REST:.*]] = arith.subf %[[LOAD]], %[[HIGH]]
// CHECK: %[[LOW:.*]] = warp.round_tf32 %[[REST]]
// CHECK: %[[T:.*]] = tile.permute %[[HIGH]]
// CHECK: %[[TL:.*]] = tile.permute %[[LOW]]
// CHECK: %[[S:.*]] = warp.wgmma %[[LOW]], %[[T]], %{{.*}} {shape = array<i32: 64, 64, 8>}
// CHECK: %[[SW:.*]] = warp.wgmma_wait %[[S]]
// CHECK: %[[L:.*]] = warp.wgmma %[[HIGH]], %[[TL]], %[[SW]] {shape
// CHECK: %[[LW:.*]] = warp.wgmma_wait %[[L]]
// CHECK: %[[ABOVE:.*]] = arith.maxnumf %[[LW]]
// CHECK: %[[FINITE:.*]] = arith.minnumf %[[ABOVE]]
// CHECK: %[[SUM:.*]] = arith.addf %{{.*}}, %[[FINITE]]
// CHECK: warp.wgmma %[[HIGH]], %[[T]], %[[SUM]] {shape
// CHECK-NOT: warp.mma
// REMARK-NOT: Function=three
func.func @three(%p: !tile.ptr<f32>, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %k = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %ke = tile.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %kb = tile.broadcast %ke : tensor<1x32xi32> -> tensor<64x32xi32>
  %base = tile.splat %p : !tile.ptr<f32> -> tensor<64x32x!tile.ptr<f32>>
  %ptrs = tile.addptr %base, %kb : tensor<64x32x!tile.ptr<f32>>, tensor<64x32xi32>
  %b = tile.load %ptrs : tensor<64x32x!tile.ptr<f32>>
  %t = tile.permute %b {order = array<i32: 1, 0>} : tensor<64x32xf32> -> tensor<32x64xf32>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %b, %t, %z {precision = #tile<precision tf32x3>} : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// A loop that goes on with the sum carries that of the rests beside it; both are added behind the loop.
// CHECK-LABEL: func.func @carried
// CHECK: %[[BOTH:.*]]:2 = scf.for {{.*}} iter_args(%[[LARGE:.*]] = %{{.*}}, %[[SMALL:.*]] = %{{.*}})
// CHECK: %[[FIRST:.*]] = warp.wgmma %{{.*}}, %{{.*}}, %[[SMALL]]
// CHECK: %[[RESTS:.*]] = warp.wgmma %
// CHECK: %[[OF:.*]] = warp.wgmma_wait %[[RESTS]]
// CHECK-NOT: arith.addf
// CHECK: %[[NEXT:.*]] = warp.wgmma %{{.*}}, %{{.*}}, %[[LARGE]]
// CHECK: %[[WHOLE:.*]] = warp.wgmma_wait %[[NEXT]]
// CHECK: scf.yield %[[WHOLE]], %[[OF]]
// CHECK: %[[ABOVE:.*]] = arith.maxnumf %[[BOTH]]#1
// CHECK: %[[FINITE:.*]] = arith.minnumf %[[ABOVE]]
// CHECK: arith.addf %[[BOTH]]#0, %[[FINITE]]
func.func @carried(%p: !tile.ptr<f32>, %o: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %base = tile.splat %p : !tile.ptr<f32> -> tensor<64x32x!tile.ptr<f32>>
  %b = tile.load %base : tensor<64x32x!tile.ptr<f32>>
  %t = tile.permute %b {order = array<i32: 1, 0>} : tensor<64x32xf32> -> tensor<32x64xf32>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %z) -> (tensor<64x64xf32>) : i32 {
    %d = tile.dot %b, %t, %sum {precision = #tile<precision tf32x3>} : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
    scf.yield %d : tensor<64x64xf32>
  }
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  tile.store %out, %r : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// Where they do not, registers are split as they are.
// CHECK-LABEL: func.func @large
// CHECK-NOT: warp.wgmma
// CHECK-NOT: warp.round_tf32
// CHECK: warp.mma {{.*}}precision = #tile<precision tf32x3>
// REMARK: Function=large | Reason="the product is made by instructions of single warps: both parts of its operands have no room in shared memory, or its chain has other instructions"
func.func @large(%x: f32, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : f32 -> tensor<64x256xf32>
  %b = tile.splat %x : f32 -> tensor<256x64xf32>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %a, %b, %z {precision = #tile<precision tf32x3>} : tensor<64x256xf32> * tensor<256x64xf32> -> tensor<64x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// CHECK-LABEL: func.func @exact
// CHECK-NOT: warp.wgmma
// REMARK: Function=exact | Reason="the product is made by instructions of single warps: f32 is multiplied more precisely than as TF32"
func.func @exact(%x: f32, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : f32 -> tensor<64x32xf32>
  %b = tile.splat %x : f32 -> tensor<32x64xf32>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %a, %b, %z {precision = #tile<precision ieee>} : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// CHECK-LABEL: func.func @written
// CHECK-NOT: warp.wgmma
// CHECK: warp.mma
// REMARK: Function=written | Reason="the product is made by instructions of single warps: a program's products of f32 are made where their operands are rounded"
func.func @written(%x: f32, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.orders_accesses, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : f32 -> tensor<64x32xf32>
  %b = tile.splat %x : f32 -> tensor<32x64xf32>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %a, %b, %z : tensor<64x32xf32> * tensor<32x64xf32> -> tensor<64x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x64x!tile.ptr<f32>>
  return
}

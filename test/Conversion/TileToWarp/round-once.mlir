// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Operands of TF32 of single warps that are computed are rounded where they are computed, where several warps or products
// would round the same. (ptxas makes three instructions of a rounding, two where a matrix instruction alone reads it.)
// RUN: weft-opt %s --tile-to-warp=target=sm_80 --split-input-file | FileCheck %s

// Each of four warps would round all columns of the second operand.

// CHECK-LABEL: func.func @shared_by_warps
// CHECK: %[[SQUARE:.*]] = arith.mulf
// CHECK: %[[EVEN:.*]] = warp.round_tf32 %[[SQUARE]]
// CHECK-NOT: warp.round_tf32
// CHECK: %[[B:.*]] = warp.convert_layout %[[EVEN]]
// CHECK: warp.mma %{{.*}}, %[[B]],
func.func @shared_by_warps(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %c = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %size = arith.constant dense<64> : tensor<64xi32>
  %starts = arith.muli %r, %size : tensor<64xi32>
  %down = tile.expand_dims %starts {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %right = tile.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %short = tile.expand_dims %c {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %downs = tile.broadcast %down : tensor<64x1xi32> -> tensor<64x64xi32>
  %rights = tile.broadcast %right : tensor<1x64xi32> -> tensor<64x64xi32>
  %i = arith.addi %downs, %rights : tensor<64x64xi32>
  %downs16 = tile.broadcast %down : tensor<64x1xi32> -> tensor<64x16xi32>
  %shorts = tile.broadcast %short : tensor<1x16xi32> -> tensor<64x16xi32>
  %j = arith.addi %downs16, %shorts : tensor<64x16xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %i : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  %a = tile.load %xp : tensor<64x64x!tile.ptr<f32>>
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<64x16x!tile.ptr<f32>>
  %yp = tile.addptr %ys, %j : tensor<64x16x!tile.ptr<f32>>, tensor<64x16xi32>
  %loaded = tile.load %yp : tensor<64x16x!tile.ptr<f32>>
  %b = arith.mulf %loaded, %loaded : tensor<64x16xf32>
  %zero = arith.constant dense<0.0> : tensor<64x16xf32>
  %d = tile.dot %a, %b, %zero {precision = #tile<precision tf32>} : tensor<64x64xf32> * tensor<64x16xf32> -> tensor<64x16xf32>
  tile.store %yp, %d : tensor<64x16x!tile.ptr<f32>>
  func.return
}

// -----

// Each warp has rows of its own of the first operand: it rounds them once, as matrix instructions read them. What is
// loaded goes to shared memory as it is.

// CHECK-LABEL: func.func @of_one_warp
// CHECK-NOT: warp.round_tf32
// CHECK: warp.mma
func.func @of_one_warp(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %c = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %size = arith.constant dense<64> : tensor<64xi32>
  %starts = arith.muli %r, %size : tensor<64xi32>
  %down = tile.expand_dims %starts {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %right = tile.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %short = tile.expand_dims %c {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %downs = tile.broadcast %down : tensor<64x1xi32> -> tensor<64x64xi32>
  %rights = tile.broadcast %right : tensor<1x64xi32> -> tensor<64x64xi32>
  %i = arith.addi %downs, %rights : tensor<64x64xi32>
  %downs16 = tile.broadcast %down : tensor<64x1xi32> -> tensor<64x16xi32>
  %shorts = tile.broadcast %short : tensor<1x16xi32> -> tensor<64x16xi32>
  %j = arith.addi %downs16, %shorts : tensor<64x16xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %i : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  %loaded = tile.load %xp : tensor<64x64x!tile.ptr<f32>>
  %a = arith.mulf %loaded, %loaded : tensor<64x64xf32>
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<64x16x!tile.ptr<f32>>
  %yp = tile.addptr %ys, %j : tensor<64x16x!tile.ptr<f32>>, tensor<64x16xi32>
  %b = tile.load %yp : tensor<64x16x!tile.ptr<f32>>
  %zero = arith.constant dense<0.0> : tensor<64x16xf32>
  %d = tile.dot %a, %b, %zero {precision = #tile<precision tf32>} : tensor<64x64xf32> * tensor<64x16xf32> -> tensor<64x16xf32>
  tile.store %yp, %d : tensor<64x16x!tile.ptr<f32>>
  func.return
}

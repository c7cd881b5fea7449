// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_80 | FileCheck %s
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_90a | FileCheck %s --check-prefix=HOPPER

// A product of what was widened is one of 16 bits; what else is computed of it stays f32.
// CHECK-LABEL: func.func @transposed
// CHECK: warp.mma {{.*}}xbf16, {{.*}}xbf16,
// CHECK: tile.store
// HOPPER-LABEL: func.func @transposed
// HOPPER: warp.wgmma {{.*}}xbf16
func.func @transposed(%x: !tile.ptr<bf16>, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %p = tile.splat %x : !tile.ptr<bf16> -> tensor<64x64x!tile.ptr<bf16>>
  %v = tile.load %p : tensor<64x64x!tile.ptr<bf16>>
  %a = arith.extf %v : tensor<64x64xbf16> to tensor<64x64xf32>
  %b = tile.permute %a {order = array<i32: 1, 0>} : tensor<64x64xf32> -> tensor<64x64xf32>
  %n = arith.negf %b : tensor<64x64xf32>
  %c = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %a, %n, %c : tensor<64x64xf32> * tensor<64x64xf32> -> tensor<64x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// Choices between what was widened and constants that 16 bits hold; an integer of 8 bits goes where the other operand is.
// CHECK-LABEL: func.func @chosen
// CHECK: arith.sitofp {{.*}}i8{{.*}} to {{.*}}f16
// CHECK: warp.mma {{.*}}xf16, {{.*}}xf16,
// HOPPER-LABEL: func.func @chosen
// HOPPER: warp.wgmma {{.*}}xf16, {{.*}}xf16,
func.func @chosen(%x: f16, %y: i8, %m: i1, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %v = tile.splat %x : f16 -> tensor<64x32xf16>
  %w = arith.extf %v : tensor<64x32xf16> to tensor<64x32xf32>
  %half = arith.constant dense<0.5> : tensor<64x32xf32>
  %masks = tile.splat %m : i1 -> tensor<64x32xi1>
  %a = arith.select %masks, %w, %half : tensor<64x32xi1>, tensor<64x32xf32>
  %i = tile.splat %y : i8 -> tensor<32x16xi8>
  %b = arith.sitofp %i : tensor<32x16xi8> to tensor<32x16xf32>
  %c = arith.constant dense<0.0> : tensor<64x16xf32>
  %d = tile.dot %a, %b, %c {precision = #tile<precision tf32x3>} : tensor<64x32xf32> * tensor<32x16xf32> -> tensor<64x16xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x16x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x16x!tile.ptr<f32>>
  return
}

// -----

// A constant that has more bits, operands of two kinds, one that was f32, and products whose every sum is rounded: as they are.
// CHECK-LABEL: func.func @stay
// CHECK-COUNT-3: warp.mma {{.*}}xf32, {{.*}}xf32,
// CHECK: tile.dot {{.*}}xf32, {{.*}}xf32,
// HOPPER-LABEL: func.func @stay
// HOPPER-COUNT-3: warp.wgmma {{.*}}xf32, {{.*}}xf32,
// HOPPER: tile.dot {{.*}}xf32, {{.*}}xf32,
func.func @stay(%x: f16, %y: bf16, %z: f32, %m: i1, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %v = tile.splat %x : f16 -> tensor<64x32xf16>
  %a = arith.extf %v : tensor<64x32xf16> to tensor<64x32xf32>
  %more = arith.constant dense<0.3333333> : tensor<32x16xf32>
  %w = tile.splat %x : f16 -> tensor<32x16xf16>
  %b = arith.extf %w : tensor<32x16xf16> to tensor<32x16xf32>
  %masks = tile.splat %m : i1 -> tensor<32x16xi1>
  %chosen = arith.select %masks, %b, %more : tensor<32x16xi1>, tensor<32x16xf32>
  %u = tile.splat %y : bf16 -> tensor<32x16xbf16>
  %other = arith.extf %u : tensor<32x16xbf16> to tensor<32x16xf32>
  %whole = tile.splat %z : f32 -> tensor<32x16xf32>
  %c = arith.constant dense<0.0> : tensor<64x16xf32>
  %1 = tile.dot %a, %chosen, %c : tensor<64x32xf32> * tensor<32x16xf32> -> tensor<64x16xf32>
  %2 = tile.dot %a, %other, %1 : tensor<64x32xf32> * tensor<32x16xf32> -> tensor<64x16xf32>
  %3 = tile.dot %a, %whole, %2 : tensor<64x32xf32> * tensor<32x16xf32> -> tensor<64x16xf32>
  %4 = tile.dot %a, %b, %3 {precision = #tile<precision ieee>} : tensor<64x32xf32> * tensor<32x16xf32> -> tensor<64x16xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x16x!tile.ptr<f32>>
  tile.store %out, %4 : tensor<64x16x!tile.ptr<f32>>
  return
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %S/../Inputs/matmul_tf32.mlir --tile-to-warp=target=sm_90a --remarks-filter-missed=products -o /dev/null 2>&1 | FileCheck %s --allow-empty --check-prefix=NONE
// RUN: weft-opt %S/../Inputs/matmul_tf32.mlir --tile-to-warp=target=sm_80 --remarks-filter-missed=products -o /dev/null 2>&1 | FileCheck %s --allow-empty --check-prefix=NONE
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_90a --remarks-filter-missed=products -o /dev/null 2>&1 | FileCheck %s

// NONE-NOT: warpgroup-products

// CHECK: remark: [Missed] warpgroup-products | Category:products | Function=two_warps | Reason="the product is made by instructions of single warps: 2 warps are no whole warpgroups of 4"
// CHECK: Function=low | Reason="the product is made by instructions of single warps: a product of 32 × 64 × 16 does not fill an instruction of 64 × 16 × 16"
// CHECK: Function=many_warps | Reason="the product is made by instructions of single warps: 8 warps are more than a product of 64 × 16 fills"
// CHECK: Function=large | Reason="the product is made by instructions of single warps: sums of 256 × 128 for each warpgroup do not fit registers"
// CHECK: Function=long | Reason="the product is made by instructions of single warps: a block's shared memory does not hold the 262144 bytes of operands"
// CHECK: Function=chain | Reason="the product is made by instructions of single warps: a product of 64 × 8 × 16 does not fill an instruction of 64 × 16 × 16"
// CHECK: Function=chain | Reason="the product is made by instructions of single warps: a product that its rows go to or come from has none: a product of 64 × 8 × 16 does not fill an instruction of 64 × 16 × 16"

func.func @two_warps(%x: f16, %c: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
  %a = tile.splat %x : f16 -> tensor<64x16xf16>
  %b = tile.splat %x : f16 -> tensor<16x64xf16>
  %z = tile.splat %c : f32 -> tensor<64x64xf32>
  %d = tile.dot %a, %b, %z : tensor<64x16xf16> * tensor<16x64xf16> -> tensor<64x64xf32>
  return
}

// -----

func.func @low(%x: f16, %c: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : f16 -> tensor<32x16xf16>
  %b = tile.splat %x : f16 -> tensor<16x64xf16>
  %z = tile.splat %c : f32 -> tensor<32x64xf32>
  %d = tile.dot %a, %b, %z : tensor<32x16xf16> * tensor<16x64xf16> -> tensor<32x64xf32>
  return
}

// -----

func.func @many_warps(%x: f16, %c: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 1>} {
  %a = tile.splat %x : f16 -> tensor<64x16xf16>
  %b = tile.splat %x : f16 -> tensor<16x16xf16>
  %z = tile.splat %c : f32 -> tensor<64x16xf32>
  %d = tile.dot %a, %b, %z : tensor<64x16xf16> * tensor<16x16xf16> -> tensor<64x16xf32>
  return
}

// -----

func.func @large(%x: f16, %c: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : f16 -> tensor<256x16xf16>
  %b = tile.splat %x : f16 -> tensor<16x128xf16>
  %z = tile.splat %c : f32 -> tensor<256x128xf32>
  %d = tile.dot %a, %b, %z : tensor<256x16xf16> * tensor<16x128xf16> -> tensor<256x128xf32>
  return
}

// -----

func.func @long(%x: f16, %y: f16, %c: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : f16 -> tensor<64x1024xf16>
  %b = tile.splat %y : f16 -> tensor<1024x64xf16>
  %z = tile.splat %c : f32 -> tensor<64x64xf32>
  %d = tile.dot %a, %b, %z : tensor<64x1024xf16> * tensor<1024x64xf16> -> tensor<64x64xf32>
  return
}

// -----

func.func @chain(%x: f16, %c: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : f16 -> tensor<64x16xf16>
  %b = tile.splat %x : f16 -> tensor<16x16xf16>
  %v = tile.splat %x : f16 -> tensor<16x8xf16>
  %z = tile.splat %c : f32 -> tensor<64x16xf32>
  %o = tile.splat %c : f32 -> tensor<64x8xf32>
  %s = tile.dot %a, %b, %z : tensor<64x16xf16> * tensor<16x16xf16> -> tensor<64x16xf32>
  %p = arith.truncf %s : tensor<64x16xf32> to tensor<64x16xf16>
  %d = tile.dot %p, %v, %o : tensor<64x16xf16> * tensor<16x8xf16> -> tensor<64x8xf32>
  return
}

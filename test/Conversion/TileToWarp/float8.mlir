// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_90a --remarks-filter-missed=products 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_80 --remarks-filter-missed=products 2>&1 | FileCheck %s --check-prefix=OLD
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_89 --remarks-filter-missed=products 2>&1 | FileCheck %s --check-prefixes=ADA,SHORT
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_120 --remarks-filter-missed=products 2>&1 | FileCheck %s --check-prefixes=ADA,WHOLE

// A sum of a product is added in f32 to what was there before.
// CHECK-LABEL: func.func @promoted
// CHECK: %[[C:.*]] = tile.splat %{{.*}} : f32
// CHECK: %[[OWN:.*]] = warp.wgmma {{.*}}f8E4M3FN
// CHECK: %[[DONE:.*]] = warp.wgmma_wait {{.*}}%[[OWN]]
// CHECK: arith.addf %[[C]], %[[DONE]]
// REMARK-NOT: Function=promoted
// OLD-NOT: remark
// OLD-LABEL: func.func @promoted
// OLD: arith.extf {{.*}}f8E4M3FN{{.*}} to {{.*}}f16
// OLD: warp.mma {{.*}}f16
// OLD-NOT: arith.addf
// ADA-NOT: remark
// ADA-LABEL: func.func @promoted
// ADA: warp.mma {{.*}}f8E4M3FN
// SHORT: arith.addf
// WHOLE-NOT: arith.addf
// ADA: return
func.func @promoted(%x: f8E4M3FN, %y: f32, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : f8E4M3FN -> tensor<64x32xf8E4M3FN>
  %b = tile.splat %x : f8E4M3FN -> tensor<32x16xf8E4M3FN>
  %c = tile.splat %y : f32 -> tensor<64x16xf32>
  %d = tile.dot %a, %b, %c : tensor<64x32xf8E4M3FN> * tensor<32x16xf8E4M3FN> -> tensor<64x16xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x16x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x16x!tile.ptr<f32>>
  return
}

// -----

// Or by the instruction, where that may be.
// CHECK-LABEL: func.func @imprecise
// CHECK: warp.wgmma {{.*}}f8E5M2
// CHECK-NOT: arith.addf
// CHECK-NOT: imprecise_sums
// CHECK: return
// REMARK-NOT: Function=imprecise
// OLD-LABEL: func.func @imprecise
// OLD-NOT: imprecise_sums
// OLD: return
// ADA-LABEL: func.func @imprecise
// ADA-NOT: arith.addf
// ADA: warp.mma {{.*}}f8E5M2
// ADA-NOT: arith.addf
// ADA: return
func.func @imprecise(%x: f8E5M2, %y: f32, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : f8E5M2 -> tensor<64x32xf8E5M2>
  %b = tile.splat %x : f8E5M2 -> tensor<32x16xf8E5M2>
  %c = tile.splat %y : f32 -> tensor<64x16xf32>
  %d = tile.dot %a, %b, %c {tile.imprecise_sums} : tensor<64x32xf8E5M2> * tensor<32x16xf8E5M2> -> tensor<64x16xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x16x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x16x!tile.ptr<f32>>
  return
}

// -----

// Neighbours along N: converted, the product of its rows (whose operands lie along K) is taken as it is.
// CHECK-LABEL: func.func @along_n
// CHECK: warp.wgmma {{.*}}f8E4M3FN
// CHECK: warp.wgmma {{.*}}f16
// REMARK: Function=along_n | Reason="operands of f8E4M3FN are converted to f16: its instructions take operands of this type whose neighbours in memory follow along K"
// REMARK-NOT: Function=along_n
// OLD-LABEL: func.func @along_n
// ADA-LABEL: func.func @along_n
// ADA: warp.mma {{.*}}f8E4M3FN
// ADA: warp.mma {{.*}}f8E4M3FN
func.func @along_n(%p: !tile.ptr<f8E4M3FN>, %x: f8E4M3FN, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %q = tile.splat %x : f8E4M3FN -> tensor<64x32xf8E4M3FN>
  %k = tile.splat %x : f8E4M3FN -> tensor<32x32xf8E4M3FN>
  %n = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %ne = tile.expand_dims %n {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %nb = tile.broadcast %ne : tensor<1x64xi32> -> tensor<32x64xi32>
  %base = tile.splat %p : !tile.ptr<f8E4M3FN> -> tensor<32x64x!tile.ptr<f8E4M3FN>>
  %ptrs = tile.addptr %base, %nb : tensor<32x64x!tile.ptr<f8E4M3FN>>, tensor<32x64xi32>
  %v = tile.load %ptrs : tensor<32x64x!tile.ptr<f8E4M3FN>>
  %z = arith.constant dense<0.0> : tensor<64x32xf32>
  %s = tile.dot %q, %k, %z : tensor<64x32xf8E4M3FN> * tensor<32x32xf8E4M3FN> -> tensor<64x32xf32>
  %e = arith.truncf %s : tensor<64x32xf32> to tensor<64x32xf8E4M3FN>
  %zo = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %e, %v, %zo : tensor<64x32xf8E4M3FN> * tensor<32x64xf8E4M3FN> -> tensor<64x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// Too few rows for a warpgroup: all of its chain is converted.
// CHECK-LABEL: func.func @few_rows
// CHECK-NOT: warp.wgmma
// CHECK: warp.mma {{.*}}f16
// REMARK: Function=few_rows | Reason="operands of f8E5M2 are converted to f16: a product of 16 × 16 × 32 does not fill an instruction of 64 × 16 × 32"
func.func @few_rows(%x: f8E5M2, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : f8E5M2 -> tensor<16x32xf8E5M2>
  %b = tile.splat %x : f8E5M2 -> tensor<32x16xf8E5M2>
  %z = arith.constant dense<0.0> : tensor<16x16xf32>
  %d = tile.dot %a, %b, %z : tensor<16x32xf8E5M2> * tensor<32x16xf8E5M2> -> tensor<16x16xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<16x16x!tile.ptr<f32>>
  tile.store %out, %d : tensor<16x16x!tile.ptr<f32>>
  return
}

// -----

// What was converted to f16 goes in as it was where sums are of f32 all the same.
// WHOLE-LABEL: func.func @widened
// WHOLE-NOT: arith.extf
// WHOLE: warp.mma {{.*}}f8E4M3FN
// SHORT-LABEL: func.func @widened
// SHORT: warp.mma {{.*}}f16
func.func @widened(%x: f8E4M3FN, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : f8E4M3FN -> tensor<64x32xf8E4M3FN>
  %b = tile.splat %x : f8E4M3FN -> tensor<16x32xf8E4M3FN>
  %wa = arith.extf %a : tensor<64x32xf8E4M3FN> to tensor<64x32xf16>
  %wb = arith.extf %b : tensor<16x32xf8E4M3FN> to tensor<16x32xf16>
  %t = tile.permute %wb {order = array<i32: 1, 0>} : tensor<16x32xf16> -> tensor<32x16xf16>
  %z = arith.constant dense<0.0> : tensor<64x16xf32>
  %d = tile.dot %wa, %t, %z : tensor<64x32xf16> * tensor<32x16xf16> -> tensor<64x16xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x16x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x16x!tile.ptr<f32>>
  return
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %S/../../Inputs/matmul_f16.mlir --canonicalize --cse --tile-to-warp=target=sm_90a | FileCheck %s --check-prefix=MATMUL
// RUN: weft-opt %S/../../Inputs/flash_causal_64.mlir --canonicalize --cse --tile-to-warp=target=sm_90a | FileCheck %s --check-prefix=FLASH
// RUN: weft-opt %S/../../Inputs/matmul_tf32.mlir --canonicalize --cse --tile-to-warp=target=sm_90a | FileCheck %s --check-prefix=TF32

// Operands are taken as they are loaded: shared memory is where they go.

// MATMUL: #[[$ACC:.*]] = #warp.layout<[128, 128], register = {{\[}}[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64], [64, 0]], lane = {{.*}}, warp = {{\[}}[16, 0], [32, 0]]>
// MATMUL-LABEL: func.func @matmul
// MATMUL: scf.for
// MATMUL: %[[A:.*]] = tile.load
// MATMUL: %[[B:.*]] = tile.load
// MATMUL-NOT: warp.convert_layout
// MATMUL: %[[D:.*]] = warp.wgmma %[[A]], %[[B]], %{{.*}} {shape = array<i32: 64, 128, 16>} : {{.*}} -> tensor<128x128xf32, #[[$ACC]]>
// MATMUL-NEXT: %[[E:.*]] = warp.wgmma_wait %[[D]] {pending = 0 : i32}
// MATMUL: scf.yield %[[E]]

// The weights are the second product's operand in the registers where they are.

// FLASH-LABEL: func.func @flash_attention
// FLASH: scf.for
// FLASH: %[[S:.*]] = warp.wgmma {{.*}} -> tensor<128x64xf32, #[[ACC:.*]]>
// FLASH-NEXT: warp.wgmma_wait %[[S]]
// FLASH-NOT: warp.convert_layout
// FLASH: %[[P:.*]] = arith.truncf {{.*}} : tensor<128x64xf32, #[[ACC]]> to tensor<128x64xf16, #[[ACC]]>
// FLASH-NOT: warp.convert_layout
// FLASH: warp.wgmma %[[P]], %{{.*}} : tensor<128x64xf16, #[[ACC]]> * {{.*}} -> tensor<128x64xf32, #[[ACC]]>
// FLASH-NOT: warp.convert_layout
// FLASH: scf.yield

// f32 is rounded on its way to shared memory. Of an operand whose neighbours in memory follow along N, a lane has blocks, four elements either way, that it stores along K.

// TF32: #[[$BLOCKS:.*]] = #warp.layout<[32, 64], register = {{\[}}[0, 1], [0, 2], [1, 0], [2, 0]], lane = {{\[}}[4, 0], [8, 0], [0, 4], [0, 8], [0, 16]], warp = {{\[}}[0, 32], [16, 0]]>
// TF32-LABEL: func.func @matmul
// TF32: %[[B:.*]] = tile.load {{.*}}tensor<32x64x!tile.ptr<f32>, #[[$BLOCKS]]>
// TF32: %[[EVEN:.*]] = warp.round_tf32 %[[B]]
// TF32: warp.wgmma {{.*}}, %[[EVEN]], {{.*}} {shape = array<i32: 64, 64, 8>}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --tile-to-warp=target=sm_80 %S/../Inputs/flash_causal_64.mlir | weft-opt --warp-stage-operands --warp-pipeline --canonicalize --cse --loop-invariant-code-motion --warp-allocate-shared --warp-insert-barriers --convert-warp-to-llvm | weft-translate --mlir-to-ptx | FileCheck %s
// The loop of a causal flash-attention kernel, 128 x 64 rows and columns, 64 channels, 4 warps: a warp owns 32 rows. Each iteration has
// 2 * (64 / 8) * (64 / 16) instructions for the scores and as many for the output.
// CHECK: .visible .entry flash_attention(
// CHECK-COUNT-128: mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
// CHECK-NOT: mma.sync

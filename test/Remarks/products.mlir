// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %S/../Inputs/matmul_ieee.mlir --tile-to-warp=target=sm_80 --remarks-filter-missed=products -o /dev/null 2>&1 | FileCheck %s --check-prefix=IEEE
// RUN: weft-opt %S/../Inputs/matmul_tf32.mlir --tile-to-warp=target=sm_80 --warp-stage-operands --warp-stage-values --warp-reload-operands --warp-pipeline --warp-allocate-shared --convert-warp-to-llvm --remarks-filter-missed=products -o /dev/null 2>&1 | FileCheck %s --check-prefix=TF32
// RUN: weft-opt %S/../Inputs/flash_causal_64.mlir --tile-to-warp=target=sm_80 --warp-stage-operands --warp-stage-values --warp-reload-operands --warp-pipeline --warp-allocate-shared --convert-warp-to-llvm --remarks-filter-missed=products -o /dev/null 2>&1 | FileCheck %s --check-prefix=HELD

// IEEE: remark: [Missed] matrix-instruction | Category:products | Function=matmul | Reason="products of f32 are made by fused multiply-adds, as 'ieee' precision asks; matrix instructions take f32 as tf32"
// TF32: remark: [Missed] ldmatrix | Category:products | Function=matmul | Reason="an operand of 32 bits an element is read by plain loads: ldmatrix turns elements of 16 bits alone"
// HELD: remark: [Missed] held-operands | Category:products | Function=flash_attention | Reason="registers do not hold the operand, 32 of a thread, beside what lives in the loop, so shared memory is read in every iteration"

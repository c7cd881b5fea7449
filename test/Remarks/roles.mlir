// Part of Weft. SPDX-License-Identifier: Apache-2.0
// DEFINE: %{wide} = sed -E -e 's/(32|1|128)x128/\1x256/g' -e '/%(cBN|range_n|n0s|columns|columns_e) =/s/128/256/g' %S/../Inputs/matmul_f16.mlir
// DEFINE: %{passes} = weft-opt --canonicalize --cse --tile-to-warp=target=sm_90a --warp-stage-wgmma --warp-pipeline --warp-specialise --remarks-filter-missed=loops
// RUN: %{passes} %S/../Inputs/matmul_f16.mlir 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: %{wide} | sed -e 's/warps = 4/warps = 16/' | %{passes} 2>&1 | FileCheck %s --check-prefix=REGISTERS
// RUN: %{wide} | sed -e 's/warps = 4, stages = 3/warps = 8, stages = 4/' -e 's/to %K step/to %cBM step/' | %{passes} 2>&1 | FileCheck %s --check-prefix=SHORT
// RUN: %{wide} | sed -e 's/warps = 4/warps = 8/' -e 's/%b: !tile.ptr<f16> {tile.divisibility = 16/%b: !tile.ptr<f16> {tile.divisibility = 8/' | %{passes} 2>&1 | FileCheck %s --check-prefix=BESIDE
// RUN: %{wide} | sed -e 's/warps = 4/warps = 8/' -e 's/\(.\)pid_n = tile.program_id y : i32/\1number = tile.program_id y : i32\n\1pid_n = tile.inline_asm "mov.u32 $0, $1;", "=r,r" pack 1 \1number : (i32) -> i32/' | %{passes} 2>&1 | FileCheck %s --check-prefix=FOREIGN
// RUN: %{wide} | sed -e 's/warps = 4/warps = 8/' | %{passes} 2>&1 | FileCheck %s --check-prefix=TAKEN
// Where two blocks would hide the waits, a loop may ask for it.
// RUN: sed -e '/scf.yield/,/^  }/s/^  }/  } {tile.warp_specialize}/' %S/../Inputs/matmul_f16.mlir | %{passes} 2>&1 | FileCheck %s --check-prefix=TAKEN

// SHARED: remark: [Missed] warp-roles | Category:loops | Function=matmul | Reason="one thread of the warps that compute makes the loop's copies: a multiprocessor holds two blocks, of which one computes while the other waits"
// REGISTERS: remark: [Missed] warp-roles | Category:loops | Function=matmul | Reason="one thread of the warps that compute makes the loop's copies: the other warps would have fewer registers"
// SHORT: remark: [Missed] warp-roles | Category:loops | Function=matmul | Reason="one thread of the warps that compute makes the loop's copies: the loop ends before its ring is filled twice"
// BESIDE: remark: [Missed] warp-roles | Category:loops | Function=matmul | Reason="one thread of the warps that compute makes the loop's copies: threads copy tiles beside it"
// FOREIGN: remark: [Missed] warp-roles | Category:loops | Function=matmul | Reason="one thread of the warps that compute makes the loop's copies: inline PTX may count on all warps"
// TAKEN-NOT: warp-roles
// TAKEN: warp.produce

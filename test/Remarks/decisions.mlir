// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the compiler decides: layouts with their costs, conversions, widths of accesses, copies ahead, the map of shared
// memory. Decisions are analyses; nothing but them is said where only they are asked for, and none where none are.
// RUN: weft-opt %s --weft-tile-to-llvm --remarks-filter-analyse=.* -o /dev/null 2>&1 | FileCheck %s
// RUN: weft-opt %s --weft-tile-to-llvm --remarks-filter-missed=.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=QUIET --allow-empty
// RUN: weft-opt %S/../Inputs/matmul_f16.mlir --canonicalize --cse --tile-to-warp=target=sm_80 --remarks-filter-analyse=.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=MATMUL
// RUN: not weft-opt %S/../Warp/Transforms/allocate-shared.mlir --pass-pipeline='builtin.module(func.func(warp-allocate-shared))' --split-input-file --remarks-filter-analyse=.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=MAP
// RUN: weft-opt %S/../Warp/Transforms/pipeline.mlir --split-input-file --warp-pipeline --remarks-filter-analyse=.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=AHEAD
// RUN: not weft-opt %S/../Conversion/WarpToLLVM/boxes.mlir --split-input-file --convert-warp-to-llvm --remarks-filter-analyse=.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=BOX
// RUN: not weft-opt %S/../Conversion/WarpToLLVM/shared.mlir --split-input-file --convert-warp-to-llvm --remarks-filter-analyse=.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=SHARED
// RUN: weft-opt %S/../Conversion/TileToWarp/search-layouts.mlir --split-input-file --tile-to-warp=target=sm_80 --remarks-filter-analyse=.* -o /dev/null 2>&1 | FileCheck %s --check-prefix=SEARCH
// QUIET-NOT: [Analysis]

// SEARCH: remark: [Analysis] conversion | Category:layouts | Function=meet | Reason="16xf32 is converted from registers 4, lanes 4 repeated 8 times, warps 1 to registers 1, lanes 16 repeated 2 times, warps 1 inside the warp, about 3 instructions of a warp"
// SEARCH: remark: [Analysis] layout | Category:layouts | Function=meet | Reason="64xbf16 lies as {{.*}} the next best, registers 2 (2 neighbours along axis 0), lanes 32, warps 1, 1873"
// SEARCH: remark: [Analysis] layout | Category:layouts | Function=read_once | Reason="128xbf16 lies as registers 1, lanes 32, warps 4; {{.*}} are about 136 in all; the next best, registers 4 (4 neighbours along axis 0), lanes 32, warps 1 repeated 4 times, 106, but more is read, or less of each sector filled, or the search ended before"
// SEARCH: remark: [Analysis] layout | Category:layouts | Function=written_vector | Reason="256xi32 lies as {{.*}} are about 334 in all; {{.*}}, 208, but the kernel's schedule was chosen for the first"

// MATMUL: remark: [Analysis] layout | Category:layouts | Function={{.*}} | Reason="{{.*}}xf16 lies as registers {{.*}}, which copies most at once: products take it from shared memory"

// MAP: remark: [Analysis] shared-memory | Category:memory | Function=lifetimes | Reason="a block takes 6144 of at most 166912 bytes of shared memory"
// MAP: remark: [Analysis] shared-memory | Category:memory | Function=lifetimes | Reason="32x32xf16 at byte 4096: 2048 bytes, freed after line 21"
// MAP: remark: [Analysis] shared-memory | Category:memory | Function=rings | Reason="2 stages of 32x32xf16 at byte 0: 4096 bytes, a stage every 6144, freed after line 71"
// MAP: remark: [Analysis] shared-memory | Category:memory | Function=rings | Reason="2 stages of 64x32xf16 at byte 2048: 8192 bytes, a stage every 6144, freed after line 71"
// MAP: remark: [Analysis] shared-memory | Category:memory | Function=scratch | Reason="an exchange of 'warp.convert_layout' at byte 4096: 2048 bytes"

// AHEAD: remark: [Analysis] copies-ahead | Category:loops | Function=three_stages | Reason="every thread copies the tile 2 iterations before it is read, into a ring of 3 stages"
// AHEAD: remark: [Analysis] copies-ahead | Category:loops | Function=table | Reason="every thread copies the tile 1 iteration before it is read, into a ring of 2 stages"

// BOX: remark: [Analysis] access | Category:memory | Function=boxes | Reason="one thread copies a box of 3 dimensions to shared memory"

// SHARED: remark: [Analysis] access | Category:memory | Function=straight | Reason="a warp reads 16x16xf16 from shared memory by 1 instruction of 'ldmatrix', of 4 matrices each"
// SHARED: remark: [Analysis] access | Category:memory | Function=vectors | Reason="a thread writes 16x32xf16 to shared memory by 2 instructions of 16 bytes"
// SHARED: remark: [Analysis] access | Category:memory | Function=vectors | Reason="a thread reads 16x32xf16 from shared memory by 2 instructions of 16 bytes"
// SHARED: remark: [Analysis] access | Category:memory | Function=copy | Reason="a thread copies 32x32xf16 to shared memory by 2 instructions of 16 bytes"

// A tile is stored turned: it is converted to what ldmatrix.trans gives, which is cheaper than the layout that suits the
// store alone. Nothing else comes into question for the load.
// CHECK: remark: [Analysis] layout | Category:layouts | Function=turn | Reason="64x64xf16 lies as registers 4x8 (8 neighbours along axis 1), lanes 4x8, warps 4x1; with it a warp's instructions for layouts, arithmetic and accesses are about 130 in all; nothing in the kernel suggests another"
// CHECK: remark: [Analysis] layout | Category:layouts | Function=turn | Reason="64x64xf16 lies as registers 8x4 (8 neighbours along axis 0), lanes 8x4, warps 1x4"
// CHECK: remark: [Analysis] conversion | Category:layouts | Function=turn | Reason="64x64xf16 is converted from registers 8x4 (8 neighbours along axis 0), lanes 8x4, warps 1x4 to registers 2x16 (8 neighbours along axis 1), lanes 8x4, warps 4x1 through shared memory, about 84 instructions of a warp"
// CHECK: remark: [Analysis] layout | Category:layouts | Function=turn | Reason="64x64xf16 lies as registers 2x16 (8 neighbours along axis 1), lanes 8x4, warps 4x1; with it a warp's instructions for layouts, arithmetic and accesses are about 130 in all; the next best, registers 4x8 (8 neighbours along axis 1), lanes 4x8, warps 4x1, 178"
// CHECK: remark: [Analysis] layout | Category:layouts | Function=turn | Reason="64xi32 lies as registers 1, lanes 32, warps 2 repeated 2 times; with it
// CHECK: remark: [Analysis] shared-memory | Category:memory | Function=turn | Reason="a block takes 8192 of at most 166912 bytes of shared memory"
// CHECK: remark: [Analysis] access | Category:memory | Function=turn | Reason="a thread loads 64x64xf16 by 4 instructions of 16 bytes"
// CHECK: remark: [Analysis] access | Category:memory | Function=turn | Reason="a thread stores 64x64xf16 by 4 instructions of 16 bytes"
// CHECK: remark: [Analysis] access | Category:memory | Function=turn | Reason="a thread changes 64xi32 by 1 instruction, each of one element"
module attributes {warp.target = "sm_80"} {
  func.func @turn(%arg0: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %arg1: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %arg2: !tile.ptr<i32> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
    %0 = tile.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
    %1 = tile.expand_dims %0 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %cst = arith.constant dense<64> : tensor<64x1xi32>
    %2 = arith.muli %1, %cst : tensor<64x1xi32>
    %3 = tile.splat %arg0 : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %4 = tile.addptr %3, %2 : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %5 = tile.expand_dims %0 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %6 = tile.broadcast %4 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %7 = tile.broadcast %5 : tensor<1x64xi32> -> tensor<64x64xi32>
    %8 = tile.addptr %6, %7 : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %9 = tile.load %8 : tensor<64x64x!tile.ptr<f16>>
    %10 = tile.expand_dims %0 {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
    %cst_0 = arith.constant dense<64> : tensor<64x1xi32>
    %11 = arith.muli %10, %cst_0 : tensor<64x1xi32>
    %12 = tile.splat %arg1 : !tile.ptr<f16> -> tensor<64x1x!tile.ptr<f16>>
    %13 = tile.addptr %12, %11 : tensor<64x1x!tile.ptr<f16>>, tensor<64x1xi32>
    %14 = tile.expand_dims %0 {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
    %15 = tile.broadcast %13 : tensor<64x1x!tile.ptr<f16>> -> tensor<64x64x!tile.ptr<f16>>
    %16 = tile.broadcast %14 : tensor<1x64xi32> -> tensor<64x64xi32>
    %17 = tile.addptr %15, %16 : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
    %18 = tile.permute %9 {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
    tile.store %17, %18 : tensor<64x64x!tile.ptr<f16>>
    %19 = tile.splat %arg2 : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
    %20 = tile.addptr %19, %0 : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
    %cst_1 = arith.constant dense<1> : tensor<64xi32>
    %21 = tile.atomic_rmw  add %20, %cst_1 : (tensor<64x!tile.ptr<i32>>, tensor<64xi32>) -> tensor<64xi32>
    return
  }
}

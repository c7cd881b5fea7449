// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm %s | weft-translate --mlir-to-ptx | FileCheck %s
// RUN: sed -e '/warp.producer/,+1d' %s | weft-opt --convert-warp-to-llvm | weft-translate --mlir-to-ptx | FileCheck %s --check-prefix=KEPT

// Where roles share out registers, the second loop's bound is computed behind the first loop.
// CHECK-LABEL: .entry loops(
// CHECK: shl.b32 %{{.*}}, 7;
// CHECK: [[FIRST:\$L__BB[0-9_]+]]:
// CHECK: bra{{.*}}[[FIRST]]
// CHECK: mov.u32 %[[PLACE:r[0-9]+]], %ctaid.x;
// CHECK: shl.b32 %[[START:r[0-9]+]], %[[PLACE]], 7;
// CHECK: add.s32 %{{.*}}, %[[START]], 128;
// CHECK: [[SECOND:\$L__BB[0-9_]+]]:
// CHECK: bra{{.*}}[[SECOND]]

// In other kernels it is computed once.
// KEPT-LABEL: .entry loops(
// KEPT: mov.u32 %{{.*}}, %ctaid.x;
// KEPT-NOT: %ctaid.x
module attributes {warp.target = "sm_90a"} {
  func.func @loops(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c128 = arith.constant 128 : i32
    warp.producer warps = 4 registers = 24 others = 240 {
    }
    %at = tile.program_id x : i32
    %start = arith.muli %at, %c128 : i32
    %end = arith.addi %start, %c128 : i32
    scf.for %i = %c0 to %start step %c1 : i32 {
      %to = tile.addptr %p, %i : !tile.ptr<i32>, i32
      tile.store %to, %i : !tile.ptr<i32>
    }
    scf.for %i = %c0 to %end step %c1 : i32 {
      %to = tile.addptr %q, %i : !tile.ptr<i32>, i32
      tile.store %to, %i : !tile.ptr<i32>
    }
    return
  }
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --convert-warp-to-llvm | FileCheck %s

module attributes {warp.target = "sm_90a"} {

// The grid of a persistent kernel's programs is passed behind its own parameters and its tensor maps.
// CHECK-LABEL: llvm.func @own
// CHECK-SAME: (%[[P:.*]]: !llvm.ptr<1>, %{{.*}}: i8, %[[X:[^:]*]]: i32, %{{[^:]*}}: i32, %[[Z:[^:]*]]: i32)
// CHECK-SAME: warp.programs = 12 : i64
// CHECK: %[[SUM:.*]] = {{.*}}add{{.*}}%[[X]], %[[Z]]
func.func @own(%p: !tile.ptr<i32>, %n: i8) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %x, %y, %z = warp.programs
  %sum = arith.addi %x, %z : i32
  tile.store %p, %sum : !tile.ptr<i32>
  return
}

// CHECK-LABEL: llvm.func @behind_maps
// CHECK-SAME: warp.programs = 192 : i64
func.func @behind_maps(%q: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %p: !tile.ptr<i32>, %n: i64, %s: i64)
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %map = warp.tensor_map %q sizes(%n, %n) strides(%s) {box = array<i32: 64, 8>} : !tile.ptr<f16>
  %x, %y, %z = warp.programs
  tile.store %p, %y : !tile.ptr<i32>
  return
}
}

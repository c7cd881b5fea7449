// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Of a module in which one function has a division, the function alone stays.
// RUN: weft-reduce %s --reduction-tree='traversal-mode=0 test=%S/Inputs/has-division.sh' | FileCheck %s
// CHECK-NOT: func.func
// CHECK: func.func @divides(
// CHECK: arith.divsi
// CHECK-NOT: func.func
func.func @keeps(%x: !tile.ptr<f32>, %y: f32) attributes {tile.kernel} {
  tile.store %x, %y : !tile.ptr<f32>
  return
}
func.func @divides(%x: i32, %y: i32) -> i32 {
  %z = arith.divsi %x, %y : i32
  return %z : i32
}
func.func @adds(%x: i32, %y: i32) -> i32 {
  %z = arith.addi %x, %y : i32
  return %z : i32
}

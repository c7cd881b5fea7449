// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm %s | weft-translate --mlir-to-ptx | FileCheck %s

// Bits that are counted by shifts and masks are counted by an instruction; other shifts and masks stay what they are.

#lanes = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]]>

// CHECK-LABEL: .entry counts
// CHECK: ld.global.b32 %[[X:r[0-9]+]]
// CHECK-NOT: shr
// CHECK: popc.b32 %{{r[0-9]+}}, %[[X]]
// CHECK-NOT: shr
// CHECK: ret
// CHECK-LABEL: .entry halves
// CHECK: shr.u32
// CHECK-NOT: popc
// CHECK: ret
module attributes {warp.target = "sm_80"} {
func.func @counts(%p: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %pairs = arith.constant dense<0x55555555> : tensor<32xi32, #lanes>
  %fours = arith.constant dense<0x33333333> : tensor<32xi32, #lanes>
  %eights = arith.constant dense<0x0f0f0f0f> : tensor<32xi32, #lanes>
  %bytes = arith.constant dense<0x01010101> : tensor<32xi32, #lanes>
  %c1 = arith.constant dense<1> : tensor<32xi32, #lanes>
  %c2 = arith.constant dense<2> : tensor<32xi32, #lanes>
  %c4 = arith.constant dense<4> : tensor<32xi32, #lanes>
  %c24 = arith.constant dense<24> : tensor<32xi32, #lanes>
  %r = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #lanes>
  %b = tile.splat %p : !tile.ptr<i32> -> tensor<32x!tile.ptr<i32>, #lanes>
  %a = tile.addptr %b, %r : tensor<32x!tile.ptr<i32>, #lanes>, tensor<32xi32, #lanes>
  %x = tile.load %a : tensor<32x!tile.ptr<i32>, #lanes>
  %s1 = arith.shrui %x, %c1 : tensor<32xi32, #lanes>
  %m1 = arith.andi %s1, %pairs : tensor<32xi32, #lanes>
  %n1 = arith.subi %x, %m1 : tensor<32xi32, #lanes>
  %l2 = arith.andi %n1, %fours : tensor<32xi32, #lanes>
  %s2 = arith.shrui %n1, %c2 : tensor<32xi32, #lanes>
  %h2 = arith.andi %s2, %fours : tensor<32xi32, #lanes>
  %n2 = arith.addi %l2, %h2 : tensor<32xi32, #lanes>
  %s4 = arith.shrui %n2, %c4 : tensor<32xi32, #lanes>
  %t4 = arith.addi %n2, %s4 : tensor<32xi32, #lanes>
  %n4 = arith.andi %t4, %eights : tensor<32xi32, #lanes>
  %all = arith.muli %n4, %bytes : tensor<32xi32, #lanes>
  %n = arith.shrui %all, %c24 : tensor<32xi32, #lanes>
  tile.store %a, %n : tensor<32x!tile.ptr<i32>, #lanes>
  func.return
}

func.func @halves(%p: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %pairs = arith.constant dense<0x55555555> : tensor<32xi32, #lanes>
  %c1 = arith.constant dense<1> : tensor<32xi32, #lanes>
  %r = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #lanes>
  %b = tile.splat %p : !tile.ptr<i32> -> tensor<32x!tile.ptr<i32>, #lanes>
  %a = tile.addptr %b, %r : tensor<32x!tile.ptr<i32>, #lanes>, tensor<32xi32, #lanes>
  %x = tile.load %a : tensor<32x!tile.ptr<i32>, #lanes>
  %s1 = arith.shrui %x, %c1 : tensor<32xi32, #lanes>
  %m1 = arith.andi %s1, %pairs : tensor<32xi32, #lanes>
  %n1 = arith.subi %x, %m1 : tensor<32xi32, #lanes>
  tile.store %a, %n1 : tensor<32x!tile.ptr<i32>, #lanes>
  func.return
}
}

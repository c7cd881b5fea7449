// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-translate --mlir-to-ptx %s | FileCheck %s

// A loop that tests before each iteration tests at its end: one branch an iteration, and one test before the first.
// CHECK-LABEL: .entry halve(
// CHECK: setp
// CHECK: bra
// CHECK: $L__BB0_[[LOOP:[0-9]+]]:
// CHECK-NOT: bra
// CHECK: shr.u32
// CHECK: setp
// CHECK: bra {{.*}}L__BB0_[[LOOP]]
// CHECK-NOT: bra.uni $L__BB0_[[LOOP]]
// CHECK: ret
module attributes {warp.target = "sm_80"} {
  llvm.func @halve(%start: i32, %least: i32, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^test(%start, %c0 : i32, i32)
  ^test(%x: i32, %steps: i32):
    %goes = llvm.icmp "ugt" %x, %least : i32
    llvm.cond_br %goes, ^body(%x, %steps : i32, i32), ^end(%steps : i32)
  ^body(%y: i32, %count: i32):
    %half = llvm.lshr %y, %c1 : i32
    %next = llvm.add %count, %c1 : i32
    llvm.br ^test(%half, %next : i32, i32)
  ^end(%total: i32):
    llvm.store %total, %out : i32, !llvm.ptr<1>
    llvm.return
  }
}

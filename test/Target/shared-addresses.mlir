// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-translate --mlir-to-ptx %s | FileCheck %s

// Rows at one column: the column is added once, and each row's address is one multiplication with addition.
// CHECK-LABEL: .entry rows(
// CHECK: mad.wide.s32 [[COLUMN:%rd[0-9]+]], %r{{[0-9]+}}, 2, %rd{{[0-9]+}};
// CHECK-COUNT-2: mad.wide.s32 %rd{{[0-9]+}}, %r{{[0-9]+}}, 2, [[COLUMN]];
// CHECK-NOT: add.s64
// CHECK: ret

// One row alone stays as it is, and so do numbers, which are of the instruction that loads.
// CHECK-LABEL: .entry alone(
// CHECK-COUNT-2: ld.global.b16 %rs{{[0-9]+}}, [%rd{{[0-9]+}}+{{[0-9]+}}];
// CHECK: ret

// What a loop counts up from is as it was.
// CHECK-LABEL: .entry counted(
// CHECK: mul.wide.s32 [[LANE:%rd[0-9]+]], %r{{[0-9]+}}, 2;
// CHECK: add.s64 %rd{{[0-9]+}}, %rd{{[0-9]+}}, [[LANE]];
// CHECK: add.s64 %rd{{[0-9]+}}, %rd{{[0-9]+}}, [[LANE]];
// CHECK: $L__BB2_[[LOOP:[0-9]+]]:
// CHECK-NOT: mad.wide
// CHECK: bra {{.*}}L__BB2_[[LOOP]]
module attributes {warp.target = "sm_80"} {
  llvm.func @rows(%p: !llvm.ptr<1>, %row0: i32, %row1: i32, %column: i32, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %a = llvm.getelementptr %p[%row0] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    %b = llvm.getelementptr %a[%column] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    %c = llvm.getelementptr %p[%row1] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    %d = llvm.getelementptr %c[%column] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    %x = llvm.load %b : !llvm.ptr<1> -> i16
    %y = llvm.load %d : !llvm.ptr<1> -> i16
    %z = llvm.add %x, %y : i16
    llvm.store %z, %out : i16, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @alone(%p: !llvm.ptr<1>, %row0: i32, %row1: i32, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %a = llvm.getelementptr %p[%row0] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    %b = llvm.getelementptr %a[64] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i16
    %c = llvm.getelementptr %p[%row1] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    %d = llvm.getelementptr %c[64] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i16
    %x = llvm.load %b : !llvm.ptr<1> -> i16
    %y = llvm.load %d : !llvm.ptr<1> -> i16
    %z = llvm.add %x, %y : i16
    llvm.store %z, %out : i16, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @counted(%p: !llvm.ptr<1>, %row0: i32, %row1: i32, %column: i32, %n: i32) attributes {nvvm.kernel} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %a = llvm.getelementptr %p[%row0] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    %b = llvm.getelementptr %a[%column] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    %c = llvm.getelementptr %p[%row1] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    %d = llvm.getelementptr %c[%column] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.br ^loop(%b, %d, %c0 : !llvm.ptr<1>, !llvm.ptr<1>, i32)
  ^loop(%u: !llvm.ptr<1>, %v: !llvm.ptr<1>, %at: i32):
    %x = llvm.load %u : !llvm.ptr<1> -> i16
    llvm.store %x, %v : i16, !llvm.ptr<1>
    %un = llvm.getelementptr %u[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i16
    %vn = llvm.getelementptr %v[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i16
    %next = llvm.add %at, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^loop(%un, %vn, %next : !llvm.ptr<1>, !llvm.ptr<1>, i32), ^end
  ^end:
    llvm.return
  }
}

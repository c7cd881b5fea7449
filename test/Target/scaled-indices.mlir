// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-translate --mlir-to-ptx %s | FileCheck %s

// A program's number is scaled by the bytes of an element as it is widened; its product with a stride and the pointer are
// one multiplication with addition.
// CHECK-LABEL: .entry of_program(
// CHECK: mul.wide.u32 [[NUMBER:%rd[0-9]+]], %r{{[0-9]+}}, 4;
// CHECK-NOT: shl.b64
// CHECK: mad.lo.s64 %rd{{[0-9]+}}, [[NUMBER]], %rd{{[0-9]+}}, %rd{{[0-9]+}};
// CHECK: ret

// Of a number that might lose a bit, the product is shifted.
// CHECK-LABEL: .entry of_any(
// CHECK: shl.b64
// CHECK: ret

// In a loop, whose addresses have a shape of their own, nothing is changed.
// CHECK-LABEL: .entry in_loop(
// CHECK-NOT: mad.lo.s64
// CHECK: ret
module attributes {warp.target = "sm_80"} {
  llvm.func @of_program(%p: !llvm.ptr<1>, %stride: i64, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %y = nvvm.read.ptx.sreg.ctaid.y : i32
    %wide = llvm.zext %y : i32 to i64
    %place = llvm.mul %wide, %stride : i64
    %a = llvm.getelementptr %p[%place] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    %x = llvm.load %a : !llvm.ptr<1> -> i32
    llvm.store %x, %out : i32, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @of_any(%p: !llvm.ptr<1>, %y: i32, %stride: i64, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %wide = llvm.zext %y : i32 to i64
    %place = llvm.mul %wide, %stride : i64
    %a = llvm.getelementptr %p[%place] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    %x = llvm.load %a : !llvm.ptr<1> -> i32
    llvm.store %x, %out : i32, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @in_loop(%p: !llvm.ptr<1>, %stride: i64, %n: i32, %out: !llvm.ptr<1>) attributes {nvvm.kernel} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    llvm.br ^body(%zero : i32)
  ^body(%i: i32):
    %wide = llvm.zext %i : i32 to i64
    %place = llvm.mul %wide, %stride : i64
    %a = llvm.getelementptr %p[%place] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i32
    %x = llvm.load volatile %a : !llvm.ptr<1> -> i32
    llvm.store %x, %out : i32, !llvm.ptr<1>
    %next = llvm.add %i, %one : i32
    %again = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %again, ^body(%next : i32), ^end
  ^end:
    llvm.return
  }
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-translate --mlir-to-ptx %s | FileCheck %s

// A stride is widened before the loop, its product with a row is of 32 bits all the same: by signs, or by zeros.
// CHECK-LABEL: .entry by_signs(
// CHECK-NOT: mul.lo.s64
// CHECK: mul.wide.s32
// CHECK-NOT: mul.lo.s64
// CHECK: ret
// CHECK-LABEL: .entry by_zeros(
// CHECK-NOT: mul.lo.s64
// CHECK: mul.wide.u32
// CHECK-NOT: mul.lo.s64
// CHECK: ret

// A factor that is widened by its sign times one that is not, and any number of 64 bits, are left alone.
// CHECK-LABEL: .entry of_two_kinds(
// CHECK: mul.lo.s64
// CHECK: ret
// CHECK-LABEL: .entry of_64_bits(
// CHECK: mul.lo.s64
// CHECK: ret
module attributes {warp.target = "sm_80"} {
  llvm.func @by_signs(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %stride: i32, %n: i32) attributes {nvvm.kernel} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %wide = llvm.sext %stride : i32 to i64
    llvm.br ^body(%zero : i32)
  ^body(%i: i32):
    %row = llvm.load volatile %q : !llvm.ptr<1> -> i32
    %r = llvm.sext %row : i32 to i64
    %place = llvm.mul %r, %wide : i64
    llvm.store volatile %place, %p : i64, !llvm.ptr<1>
    %next = llvm.add %i, %one : i32
    %again = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %again, ^body(%next : i32), ^end
  ^end:
    llvm.return
  }
  llvm.func @by_zeros(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %stride: i32, %n: i32) attributes {nvvm.kernel} {
    %zero = llvm.mlir.constant(0 : i32) : i32
    %one = llvm.mlir.constant(1 : i32) : i32
    %wide = llvm.zext %stride : i32 to i64
    llvm.br ^body(%zero : i32)
  ^body(%i: i32):
    %row = llvm.load volatile %q : !llvm.ptr<1> -> i32
    %r = llvm.zext %row : i32 to i64
    %place = llvm.mul %r, %wide : i64
    llvm.store volatile %place, %p : i64, !llvm.ptr<1>
    %next = llvm.add %i, %one : i32
    %again = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %again, ^body(%next : i32), ^end
  ^end:
    llvm.return
  }
  llvm.func @of_two_kinds(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %stride: i32) attributes {nvvm.kernel} {
    %wide = llvm.sext %stride : i32 to i64
    %row = llvm.load volatile %q : !llvm.ptr<1> -> i32
    %r = llvm.zext %row : i32 to i64
    %place = llvm.mul %r, %wide : i64
    llvm.store volatile %place, %p : i64, !llvm.ptr<1>
    llvm.return
  }
  llvm.func @of_64_bits(%p: !llvm.ptr<1>, %q: !llvm.ptr<1>, %stride: i64) attributes {nvvm.kernel} {
    %row = llvm.load volatile %q : !llvm.ptr<1> -> i32
    %r = llvm.sext %row : i32 to i64
    %place = llvm.mul %r, %stride : i64
    llvm.store volatile %place, %p : i64, !llvm.ptr<1>
    llvm.return
  }
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-translate --mlir-to-ptx %s | FileCheck %s

// Twelve addresses that a loop counts up together, and is ahead of: the constant is added once, and each is the sum of a
// base and a product of 32 bits.
// CHECK-LABEL: .entry ahead(
// CHECK-NOT: mad.wide.s32
// CHECK-COUNT-12: mul.wide.s32 %{{rd[0-9]+}}, %{{r[0-9]+}}, 2;
// CHECK-NOT: mad.wide.s32
// CHECK: $L__BB{{.*}}:
// CHECK: add.s64 [[AHEAD:%rd[0-9]+]], [[BASE:%rd[0-9]+]], 128;
// CHECK-COUNT-12: add.s64 %{{.*}}, [[AHEAD]], %{{.*}};
// CHECK: add.s64 [[BASE]], [[BASE]], 64;
module attributes {warp.target = "sm_80"} {
  llvm.func @ahead(%p: !llvm.ptr<1>, %i0: i32, %i1: i32, %i2: i32, %i3: i32, %i4: i32, %i5: i32, %i6: i32, %i7: i32, %i8: i32, %i9: i32, %i10: i32, %i11: i32, %n: i32) attributes {nvvm.kernel} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %c64 = llvm.mlir.constant(64 : i32) : i32
    %i0a = llvm.add %i0, %c64 overflow<nsw> : i32
    %i1a = llvm.add %i1, %c64 overflow<nsw> : i32
    %i2a = llvm.add %i2, %c64 overflow<nsw> : i32
    %i3a = llvm.add %i3, %c64 overflow<nsw> : i32
    %i4a = llvm.add %i4, %c64 overflow<nsw> : i32
    %i5a = llvm.add %i5, %c64 overflow<nsw> : i32
    %i6a = llvm.add %i6, %c64 overflow<nsw> : i32
    %i7a = llvm.add %i7, %c64 overflow<nsw> : i32
    %i8a = llvm.add %i8, %c64 overflow<nsw> : i32
    %i9a = llvm.add %i9, %c64 overflow<nsw> : i32
    %i10a = llvm.add %i10, %c64 overflow<nsw> : i32
    %i11a = llvm.add %i11, %c64 overflow<nsw> : i32
    llvm.br ^loop(%p, %c0 : !llvm.ptr<1>, i32)
  ^loop(%base: !llvm.ptr<1>, %at: i32):
    %a0 = llvm.getelementptr %base[%i0a] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a0 : (!llvm.ptr<1>) -> ()
    %a1 = llvm.getelementptr %base[%i1a] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a1 : (!llvm.ptr<1>) -> ()
    %a2 = llvm.getelementptr %base[%i2a] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a2 : (!llvm.ptr<1>) -> ()
    %a3 = llvm.getelementptr %base[%i3a] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a3 : (!llvm.ptr<1>) -> ()
    %a4 = llvm.getelementptr %base[%i4a] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a4 : (!llvm.ptr<1>) -> ()
    %a5 = llvm.getelementptr %base[%i5a] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a5 : (!llvm.ptr<1>) -> ()
    %a6 = llvm.getelementptr %base[%i6a] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a6 : (!llvm.ptr<1>) -> ()
    %a7 = llvm.getelementptr %base[%i7a] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a7 : (!llvm.ptr<1>) -> ()
    %a8 = llvm.getelementptr %base[%i8a] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a8 : (!llvm.ptr<1>) -> ()
    %a9 = llvm.getelementptr %base[%i9a] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a9 : (!llvm.ptr<1>) -> ()
    %a10 = llvm.getelementptr %base[%i10a] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a10 : (!llvm.ptr<1>) -> ()
    %a11 = llvm.getelementptr %base[%i11a] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a11 : (!llvm.ptr<1>) -> ()
    %next = llvm.getelementptr %base[32] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i16
    %after = llvm.add %at, %c1 : i32
    %more = llvm.icmp "slt" %after, %n : i32
    llvm.cond_br %more, ^loop(%next, %after : !llvm.ptr<1>, i32), ^end
  ^end:
    llvm.return
  }
}

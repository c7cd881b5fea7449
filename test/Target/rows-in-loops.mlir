// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-translate --mlir-to-ptx %s | FileCheck %s

// Rows that an argument sets apart, at an index that counts up: each row's address is one addition, of the index that all
// share. Rows at fixed distances have one address.
// CHECK-LABEL: .entry rows(
// CHECK: $L__BB0_[[LOOP:[0-9]+]]:
// CHECK: {{shl.b64|mul.wide.s32}} [[AT:%rd[0-9]+]], %{{.*}}, {{1|2}};
// CHECK-COUNT-8: add.s64 %{{rd[0-9]+}}, %{{rd[0-9]+}}, [[AT]];
// CHECK-NOT: add.s64
// CHECK: bra {{.*}}L__BB0_[[LOOP]]

// What counts up goes last, so that rows are added before the loop.
// CHECK-LABEL: .entry counted_first(
// CHECK: $L__BB1_[[LOOP:[0-9]+]]:
// CHECK: shl.b64 [[AT:%rd[0-9]+]], %{{.*}}, 1;
// CHECK-COUNT-8: add.s64 %{{rd[0-9]+}}, %{{rd[0-9]+}}, [[AT]];
// CHECK: add.s64 %{{rd[0-9]+}}, %{{rd[0-9]+}}, 32;
// CHECK-NOT: add.s64
// CHECK: bra {{.*}}L__BB1_[[LOOP]]

// Of two rows the back end decides.
// CHECK-LABEL: .entry few(
// CHECK: $L__BB2_[[LOOP:[0-9]+]]:
// CHECK-NOT: shl.b64
// CHECK: bra {{.*}}L__BB2_[[LOOP]]
module attributes {warp.target = "sm_80"} {
  llvm.func @rows(%p0: !llvm.ptr<1>, %n: i32, %stride: i64, %lane: i32) attributes {nvvm.kernel} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %p1 = llvm.getelementptr %p0[%stride] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    %p2 = llvm.getelementptr %p1[%stride] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    %p3 = llvm.getelementptr %p2[%stride] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    %p4 = llvm.getelementptr %p3[%stride] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    %p5 = llvm.getelementptr %p4[%stride] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    %p6 = llvm.getelementptr %p5[%stride] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    %p7 = llvm.getelementptr %p6[%stride] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.br ^loop(%c0 : i32)
  ^loop(%at: i32):
    %sum = llvm.add %at, %lane overflow<nsw> : i32
    %index = llvm.sext %sum : i32 to i64
    %a0 = llvm.getelementptr %p0[%index] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a0 : (!llvm.ptr<1>) -> ()
    %a1 = llvm.getelementptr %p1[%index] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a1 : (!llvm.ptr<1>) -> ()
    %a2 = llvm.getelementptr %p2[%index] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a2 : (!llvm.ptr<1>) -> ()
    %a3 = llvm.getelementptr %p3[%index] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a3 : (!llvm.ptr<1>) -> ()
    %a4 = llvm.getelementptr %p4[%index] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a4 : (!llvm.ptr<1>) -> ()
    %a5 = llvm.getelementptr %p5[%index] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a5 : (!llvm.ptr<1>) -> ()
    %a6 = llvm.getelementptr %p6[%index] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a6 : (!llvm.ptr<1>) -> ()
    %a7 = llvm.getelementptr %p7[%index] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a7 : (!llvm.ptr<1>) -> ()
    %next = llvm.add %at, %c32 overflow<nsw> : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^loop(%next : i32), ^end
  ^end:
    llvm.return
  }
  llvm.func @counted_first(%p: !llvm.ptr<1>, %n: i32, %i0: i64, %i1: i64, %i2: i64, %i3: i64, %i4: i64, %i5: i64, %i6: i64, %i7: i64) attributes {nvvm.kernel} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c32 = llvm.mlir.constant(32 : i32) : i32
    llvm.br ^loop(%c0 : i32)
  ^loop(%at: i32):
    %sum = llvm.add %at, %c32 overflow<nsw> : i32
    %index = llvm.sext %sum : i32 to i64
    %base = llvm.getelementptr %p[%index] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    %a0 = llvm.getelementptr %base[%i0] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a0 : (!llvm.ptr<1>) -> ()
    %a1 = llvm.getelementptr %base[%i1] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a1 : (!llvm.ptr<1>) -> ()
    %a2 = llvm.getelementptr %base[%i2] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a2 : (!llvm.ptr<1>) -> ()
    %a3 = llvm.getelementptr %base[%i3] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a3 : (!llvm.ptr<1>) -> ()
    %a4 = llvm.getelementptr %base[%i4] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a4 : (!llvm.ptr<1>) -> ()
    %a5 = llvm.getelementptr %base[%i5] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a5 : (!llvm.ptr<1>) -> ()
    %a6 = llvm.getelementptr %base[%i6] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a6 : (!llvm.ptr<1>) -> ()
    %a7 = llvm.getelementptr %base[%i7] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a7 : (!llvm.ptr<1>) -> ()
    %next = llvm.add %at, %c32 overflow<nsw> : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^loop(%next : i32), ^end
  ^end:
    llvm.return
  }
  llvm.func @few(%p0: !llvm.ptr<1>, %n: i32, %stride: i64, %lane: i32) attributes {nvvm.kernel} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c32 = llvm.mlir.constant(32 : i32) : i32
    %p1 = llvm.getelementptr %p0[%stride] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.br ^loop(%c0 : i32)
  ^loop(%at: i32):
    %sum = llvm.add %at, %lane overflow<nsw> : i32
    %index = llvm.sext %sum : i32 to i64
    %a0 = llvm.getelementptr %p0[%index] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a0 : (!llvm.ptr<1>) -> ()
    %a1 = llvm.getelementptr %p1[%index] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i16
    llvm.inline_asm has_side_effects "mma [$0];", "l" %a1 : (!llvm.ptr<1>) -> ()
    %next = llvm.add %at, %c32 overflow<nsw> : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^loop(%next : i32), ^end
  ^end:
    llvm.return
  }
}

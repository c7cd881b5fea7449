// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-translate --mlir-to-ptx --registers=10 --remarks %s 2>&1 | FileCheck %s
// RUN: weft-translate --mlir-to-ptx --remarks %s 2>&1 | FileCheck %s --check-prefix=FITS

// Eight numbers of a thread's own, which a loop stores. Where a thread has ten registers, the loop computes them from the
// thread's number, which then lives in their place; otherwise they stay before it.
// CHECK: remark: [Missed] register-order | Category:products | Function=stored | Reason="registers lack for {{[2-8]}} indices beside the values of loops, so that they are computed again where they are used"
// CHECK: mov.u32 [[T:%r[0-9]+]], %tid.x;
// CHECK: $L__BB0_1:
// CHECK: xor.b32 [[X:%r[0-9]+]], [[T]],
// CHECK: st.volatile.global.b32 [%rd{{[0-9]+}}], [[X]];

// FITS-NOT: remark
// FITS: %tid.x;
// FITS: xor.b32
// FITS: $L__BB0_1:
// FITS-NOT: xor.b32
module attributes {warp.target = "sm_80"} {
  llvm.func @stored(%p: !llvm.ptr<1>, %n: i32) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
    %c0 = llvm.mlir.constant(0 : i32) : i32
    %c1 = llvm.mlir.constant(1 : i32) : i32
    %k0 = llvm.mlir.constant(3 : i32) : i32
    %k1 = llvm.mlir.constant(5 : i32) : i32
    %k2 = llvm.mlir.constant(7 : i32) : i32
    %k3 = llvm.mlir.constant(9 : i32) : i32
    %k4 = llvm.mlir.constant(11 : i32) : i32
    %k5 = llvm.mlir.constant(13 : i32) : i32
    %k6 = llvm.mlir.constant(15 : i32) : i32
    %k7 = llvm.mlir.constant(17 : i32) : i32
    %t = nvvm.read.ptx.sreg.tid.x : i32
    %x0 = llvm.xor %t, %k0 : i32
    %x1 = llvm.xor %t, %k1 : i32
    %x2 = llvm.xor %t, %k2 : i32
    %x3 = llvm.xor %t, %k3 : i32
    %x4 = llvm.xor %t, %k4 : i32
    %x5 = llvm.xor %t, %k5 : i32
    %x6 = llvm.xor %t, %k6 : i32
    %x7 = llvm.xor %t, %k7 : i32
    llvm.br ^loop(%c0 : i32)
  ^loop(%i: i32):
    llvm.store volatile %x0, %p : i32, !llvm.ptr<1>
    llvm.store volatile %x1, %p : i32, !llvm.ptr<1>
    llvm.store volatile %x2, %p : i32, !llvm.ptr<1>
    llvm.store volatile %x3, %p : i32, !llvm.ptr<1>
    llvm.store volatile %x4, %p : i32, !llvm.ptr<1>
    llvm.store volatile %x5, %p : i32, !llvm.ptr<1>
    llvm.store volatile %x6, %p : i32, !llvm.ptr<1>
    llvm.store volatile %x7, %p : i32, !llvm.ptr<1>
    %next = llvm.add %i, %c1 : i32
    %more = llvm.icmp "slt" %next, %n : i32
    llvm.cond_br %more, ^loop(%next : i32), ^end
  ^end:
    llvm.return
  }
}

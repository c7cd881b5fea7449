// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-translate --mlir-to-ptx --registers=5 %s | FileCheck %s --check-prefix=LACK
// RUN: weft-translate --mlir-to-ptx %s | FileCheck %s --check-prefix=FIT

// Four values live across a barrier in any order, beside an address of two registers: of a kernel that has to spill,
// ptxas is told that one block on a multiprocessor is enough. Of others it finds by itself how many to keep there.
// LACK-LABEL: .entry four(
// LACK: .reqntid 32
// LACK: .minnctapersm 1
// LACK-LABEL: .entry two(
// LACK-NOT: minnctapersm
// FIT-NOT: minnctapersm
module attributes {warp.target = "sm_80"} {
  llvm.func @four(%p: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
    %a1 = llvm.getelementptr %p[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %a2 = llvm.getelementptr %p[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %a3 = llvm.getelementptr %p[3] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %x0 = llvm.load %p : !llvm.ptr<1> -> i32
    %x1 = llvm.load %a1 : !llvm.ptr<1> -> i32
    %x2 = llvm.load %a2 : !llvm.ptr<1> -> i32
    %x3 = llvm.load %a3 : !llvm.ptr<1> -> i32
    nvvm.barrier
    llvm.store %x3, %p : i32, !llvm.ptr<1>
    llvm.store %x2, %a1 : i32, !llvm.ptr<1>
    llvm.store %x1, %a2 : i32, !llvm.ptr<1>
    llvm.store %x0, %a3 : i32, !llvm.ptr<1>
    llvm.return
  }

  llvm.func @two(%p: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
    %a1 = llvm.getelementptr %p[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %x0 = llvm.load %p : !llvm.ptr<1> -> i32
    %x1 = llvm.load %a1 : !llvm.ptr<1> -> i32
    nvvm.barrier
    llvm.store %x1, %p : i32, !llvm.ptr<1>
    llvm.store %x0, %a1 : i32, !llvm.ptr<1>
    llvm.return
  }
}

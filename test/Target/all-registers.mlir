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
// LACK-LABEL: .entry seven(
// FIT-LABEL: .entry four(
// FIT-NOT: minnctapersm

// Of so many threads each has eight registers.
// FIT-LABEL: .entry seven(
// FIT: .minnctapersm 1
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

  llvm.func @seven(%p: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 8192>} {
    %a1 = llvm.getelementptr %p[1] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %a2 = llvm.getelementptr %p[2] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %a3 = llvm.getelementptr %p[3] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %a4 = llvm.getelementptr %p[4] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %a5 = llvm.getelementptr %p[5] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %a6 = llvm.getelementptr %p[6] : (!llvm.ptr<1>) -> !llvm.ptr<1>, i32
    %x0 = llvm.load %p : !llvm.ptr<1> -> i32
    %x1 = llvm.load %a1 : !llvm.ptr<1> -> i32
    %x2 = llvm.load %a2 : !llvm.ptr<1> -> i32
    %x3 = llvm.load %a3 : !llvm.ptr<1> -> i32
    %x4 = llvm.load %a4 : !llvm.ptr<1> -> i32
    %x5 = llvm.load %a5 : !llvm.ptr<1> -> i32
    %x6 = llvm.load %a6 : !llvm.ptr<1> -> i32
    nvvm.barrier
    llvm.store %x6, %p : i32, !llvm.ptr<1>
    llvm.store %x5, %a1 : i32, !llvm.ptr<1>
    llvm.store %x4, %a2 : i32, !llvm.ptr<1>
    llvm.store %x3, %a3 : i32, !llvm.ptr<1>
    llvm.store %x2, %a4 : i32, !llvm.ptr<1>
    llvm.store %x1, %a5 : i32, !llvm.ptr<1>
    llvm.store %x0, %a6 : i32, !llvm.ptr<1>
    llvm.return
  }
}

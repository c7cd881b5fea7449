// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

// CHECK-LABEL: llvm.func @program
// CHECK: nvvm.read.ptx.sreg.ctaid.x
// CHECK: nvvm.read.ptx.sreg.nctaid.z
// CHECK: nvvm.barrier0
module attributes {warp.target = "sm_80"} {
  func.func @program(%x: !tile.ptr<i32>) attributes {tile.kernel} {
    %i = tile.program_id x : i32
    %n = tile.num_programs z : i32
    tile.barrier
    %s = arith.addi %i, %n : i32
    tile.store %x, %s : !tile.ptr<i32>
    return
  }
}

// -----

// A block of one warp needs no barrier of the block.
// CHECK-LABEL: llvm.func @one_warp
// CHECK-NOT: nvvm.barrier
// CHECK: nvvm.bar.warp.sync
// CHECK-NOT: nvvm.barrier
module attributes {warp.target = "sm_80"} {
  func.func @one_warp() attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    tile.barrier
    return
  }
}

// -----

module attributes {warp.target = "sm_80"} {
  func.func @unknown(%x: i32) attributes {tile.kernel} {
    // expected-error @+1 {{cannot be lowered to LLVM}}
    %c = arith.ceildivsi %x, %x : i32
    return
  }
}

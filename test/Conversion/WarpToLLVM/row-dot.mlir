// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm %s | FileCheck %s

#a = #warp.layout<[16, 32], register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#r = #warp.layout<[16], register = [[8]], lane = [[0], [0], [1], [2], [4]]>

// Rows 0-7 and rows 8-15, two steps of 16 channels each: the words of an A fragment are the B fragments of its rows. Each sum is passed around its quad.
// CHECK-LABEL: llvm.func @rows
// CHECK: %[[D0:.*]] = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"(%[[A0:[^,]*]], %[[A1:[^,]*]], %[[A2:[^,]*]], %[[A3:[^,]*]], %[[B0:[^,]*]], %[[B2:[^,]*]], %{{.*}})
// CHECK: %[[S0:.*]] = llvm.extractvalue %[[D0]][0]
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"({{.*}}, %[[S0]], %{{.*}}, %{{.*}}, %{{.*}}) :
// CHECK: llvm.select
// CHECK: nvvm.shfl.sync idx
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.bf16"(%[[A0]], %[[A1]], %[[A2]], %[[A3]], %{{.*}}
// CHECK: llvm.nvvm.mma.m16n8k16
// CHECK: nvvm.shfl.sync idx
// CHECK-NOT: llvm.nvvm.mma
module attributes {warp.target = "sm_80"} {
  func.func @rows(%x: bf16, %y: bf16, %p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %a = tile.splat %x : bf16 -> tensor<16x32xbf16, #a>
    %b = tile.splat %y : bf16 -> tensor<16x32xbf16, #a>
    %d = tile.row_dot %a, %b : tensor<16x32xbf16, #a> -> tensor<16xf32, #r>
    return
  }
}

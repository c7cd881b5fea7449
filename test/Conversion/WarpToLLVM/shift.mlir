// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file %s | FileCheck %s

#a = #warp.layout<[1, 32, 16], register = [[0, 0, 1], [0, 8, 0], [0, 0, 8], [0, 16, 0]], lane = [[0, 0, 2], [0, 0, 4], [0, 1, 0], [0, 2, 0], [0, 4, 0]]>
#s = #warp.layout<[1, 32, 16], offset = [[0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 8], [0, 1, 0], [0, 2, 0], [0, 4, 8], [0, 8, 0], [0, 16, 0]]>
!shared = !warp.shared<1x32x16xf16, #s>

// Operand A moved by one row: the first 16 rows have one from outside, which is read from the nearest one and then 0 where the lane's row is below the shift; the others are read as they are.
// CHECK-LABEL: llvm.func @rows
// CHECK-DAG: %[[ONE:.*]] = llvm.mlir.constant(1 : i32)
// CHECK-DAG: %[[ROWS:.*]] = llvm.mlir.constant(32 : i32)
// CHECK: llvm.intr.smax
// CHECK: llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3
// CHECK: %[[FROM:.*]] = llvm.sub %{{.*}}, %[[ONE]]
// CHECK: %[[IN:.*]] = llvm.icmp "ult" %[[FROM]], %[[ROWS]]
// CHECK: llvm.select %[[IN]]
// CHECK: llvm.select %[[IN]]
// CHECK-NOT: llvm.select
// CHECK-NOT: smax
// CHECK: llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3
// CHECK-NOT: llvm.select
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @rows() attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %s = warp.alloc {offset = 0 : i64} : !shared
    %a = warp.load_shifted %s {axis = 1 : i32, offset = 1 : i32} : !shared -> tensor<1x32x16xf16, #a>
    return
  }
}

// -----

#v = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
#s = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
!shared = !warp.shared<64xf32, #s>

// Along the axis that is shifted nothing is read in pieces.
// CHECK-LABEL: llvm.func @vector
// CHECK: llvm.intr.smin
// CHECK: llvm.load {{.*}} : !llvm.ptr<3> -> f32
// CHECK: llvm.load {{.*}} : !llvm.ptr<3> -> f32
// CHECK: llvm.select
// CHECK: llvm.select
module attributes {warp.target = "sm_80"} {
  func.func @vector() attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %s = warp.alloc {offset = 0 : i64} : !shared
    %a = warp.load_shifted %s {axis = 0 : i32, offset = -3 : i32} : !shared -> tensor<64xf32, #v>
    return
  }
}

// -----

#a = #warp.layout<[1, 32, 16], register = [[0, 0, 1], [0, 8, 0], [0, 0, 8], [0, 16, 0]], lane = [[0, 0, 2], [0, 0, 4], [0, 1, 0], [0, 2, 0], [0, 4, 0]]>
#s = #warp.layout<[1, 32, 16], offset = [[0, 0, 1], [0, 0, 2], [0, 0, 4], [0, 0, 8], [0, 1, 0], [0, 2, 0], [0, 4, 0], [0, 8, 0], [0, 16, 0]]>
!shared = !warp.shared<1x32x16xf16, #s, margin = 1>

// Zeros are stored before and behind the rows, two pieces of 16 bytes each. Lines are 48 bytes apart: a shift is a constant of each address, and nothing is replaced.
// CHECK-LABEL: llvm.func @margin
// CHECK: %[[FOUR:.*]] = llvm.mlir.constant(4 : i32)
// CHECK: %[[OWNER:.*]] = llvm.icmp "ult" %{{.*}}, %[[FOUR]]
// CHECK: @$5 st.shared.v4.b32
// CHECK: llvm.getelementptr %{{.*}}[816]
// CHECK: llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3
// CHECK: llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3
// CHECK-NOT: llvm.select
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @margin(%x: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %s = warp.alloc {offset = 0 : i64} : !shared
    %t = tile.splat %x : f16 -> tensor<1x32x16xf16, #a>
    warp.store_shared %t, %s : tensor<1x32x16xf16, #a> -> !shared
    %a = warp.load_shifted %s {axis = 1 : i32, offset = 1 : i32} : !shared -> tensor<1x32x16xf16, #a>
    return
  }
}

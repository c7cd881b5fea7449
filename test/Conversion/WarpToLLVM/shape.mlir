// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

#row = #warp.layout<[8], register = [[1]], lane = [[2], [4], [0], [0], [0]], warp = []>
#rows = #warp.layout<[1, 8], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]], warp = []>
#tile = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = []>
#turned = #warp.layout<[8, 16], register = [[0, 8], [1, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = []>

// A row spread over a tile, and turned: names of registers only. The range is the lane's part, computed once, plus the register's.
// CHECK-LABEL: llvm.func @renamed
// CHECK-DAG: %[[TID:.*]] = nvvm.read.ptx.sreg.tid.x range <i32, 0, 32>
// CHECK: %[[BITS:.*]] = llvm.and %[[TID]], %{{.*}} : i32
// CHECK: %[[LANE:.*]] = llvm.shl %[[BITS]]
// CHECK: %[[NEXT:.*]] = llvm.add %[[LANE]], %{{.*}} overflow<nsw, nuw> : i32
// CHECK-NOT: llvm.add
// CHECK: llvm.store %[[LANE]]
// CHECK: llvm.store %[[LANE]]
// CHECK: llvm.store %[[NEXT]]
// CHECK: llvm.store %[[NEXT]]
module attributes {warp.target = "sm_80"} {
  func.func @renamed(%x: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32, #row>
    %e = tile.expand_dims %r {axis = 0 : i32} : tensor<8xi32, #row> -> tensor<1x8xi32, #rows>
    %b = tile.broadcast %e : tensor<1x8xi32, #rows> -> tensor<16x8xi32, #tile>
    %t = tile.permute %b {order = array<i32: 1, 0>} : tensor<16x8xi32, #tile> -> tensor<8x16xi32, #turned>
    %p = tile.splat %x : !tile.ptr<i32> -> tensor<8x16x!tile.ptr<i32>, #turned>
    tile.store %p, %t : tensor<8x16x!tile.ptr<i32>, #turned>
    return
  }
}

// -----

#one = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]]>
#two = #warp.layout<[32, 2], register = [[0, 1]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>

// What join puts together split takes apart.
// CHECK-LABEL: llvm.func @joined
// CHECK-SAME: %[[A:[a-z0-9]*]]: i32, %[[B:[a-z0-9]*]]: i32)
// CHECK: llvm.store %[[B]]
// CHECK: llvm.store %[[A]]
module attributes {warp.target = "sm_80"} {
  func.func @joined(%x: !tile.ptr<i32>, %a: i32, %b: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %l = tile.splat %a : i32 -> tensor<32xi32, #one>
    %r = tile.splat %b : i32 -> tensor<32xi32, #one>
    %j = tile.join %l, %r : tensor<32xi32, #one> -> tensor<32x2xi32, #two>
    %s, %t = tile.split %j : tensor<32x2xi32, #two> -> tensor<32xi32, #one>, tensor<32xi32, #one>
    %p = tile.splat %x : !tile.ptr<i32> -> tensor<32x!tile.ptr<i32>, #one>
    tile.store %p, %t : tensor<32x!tile.ptr<i32>, #one>
    tile.store %p, %s : tensor<32x!tile.ptr<i32>, #one>
    return
  }
}

// -----

#one = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]]>
#other = #warp.layout<[32, 1], lane = [[2, 0], [1, 0], [4, 0], [8, 0], [16, 0]]>

module attributes {warp.target = "sm_80"} {
  func.func @moved(%a: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %l = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #one>
    // expected-error @+1 {{changes the layout in a way that needs a 'warp.convert_layout'}}
    %e = tile.expand_dims %l {axis = 1 : i32} : tensor<32xi32, #one> -> tensor<32x1xi32, #other>
    return
  }
}

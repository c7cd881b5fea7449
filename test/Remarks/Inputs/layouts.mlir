// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Layouts in which a thread's elements, and the rows of a tile in shared memory, are not together.
#apart = #warp.layout<[512], register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>
#a = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[16, 8], register = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#c = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#mixed = #warp.layout<[16, 16], offset = [[1, 0], [0, 1], [2, 0], [0, 2], [4, 0], [0, 4], [8, 0], [0, 8]]>
module attributes {warp.target = "sm_80"} {
  func.func @far_apart(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #apart>
    %b = tile.splat %x : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #apart>
    %p = tile.addptr %b, %r : tensor<512x!tile.ptr<f32>, #apart>, tensor<512xi32, #apart>
    %v = tile.load %p {warp.contiguity = 4 : i32} : tensor<512x!tile.ptr<f32>, #apart>
    tile.store %p, %v {warp.contiguity = 4 : i32} : tensor<512x!tile.ptr<f32>, #apart>
    return
  }
  func.func @scattered(%x: f16, %y: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %s = warp.alloc {offset = 0 : i64} : !warp.shared<16x16xf16, #mixed>
    %a = warp.load_shared %s : !warp.shared<16x16xf16, #mixed> -> tensor<16x16xf16, #a>
    %b = tile.splat %x : f16 -> tensor<16x8xf16, #b>
    %c = tile.splat %y : f32 -> tensor<16x8xf32, #c>
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<16x16xf16, #a> * tensor<16x8xf16, #b> -> tensor<16x8xf32, #c>
    return
  }
}

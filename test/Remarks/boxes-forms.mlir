// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-pipeline --remarks-filter-missed=memory -o /dev/null 2>&1 | FileCheck %s

// Tiles that are no box of a tensor; the last two are: rows whose mask ends where the tensor begins, and a remainder times a stride.
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// CHECK: remark: [Missed] box-copy | Category:memory | Function=element | Reason="threads copy pieces of the tile, and no bulk copy all of it: it is no vector, nor a matrix of elements of 16 or 8 bits"
module attributes {warp.target = "sm_90a"} {
func.func @element(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #l>
  scf.for %i = %c0 to %n step %c64 : i32 {
    %is = tile.splat %i : i32 -> tensor<64xi32, #r>
    %row = arith.addi %is, %rows : tensor<64xi32, #r>
    %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %far = arith.muli %row1, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %columns2 : tensor<64x64xi32, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f32>, #l>, tensor<64x64xi32, #l>
    %tile = warp.alloc : !warp.shared<64x64xf32, #s>
    warp.async_copy %ptrs to %tile {contiguity = 4 : i32} : tensor<64x64x!tile.ptr<f32>, #l> -> !warp.shared<64x64xf32, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %read = warp.load_shared %tile : !warp.shared<64x64xf32, #s> -> tensor<64x64xf32, #l>
    warp.dealloc %tile : !warp.shared<64x64xf32, #s>
  }
  return
}
}

// -----

#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]]>

// CHECK: remark: [Missed] box-copy | Category:memory | Function=lines | Reason="threads copy pieces of the tile, and no bulk copy all of it: its tile does not lie in lines as bulk copies write them"
module attributes {warp.target = "sm_90a"} {
func.func @lines(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  scf.for %i = %c0 to %n step %c64 : i32 {
    %is = tile.splat %i : i32 -> tensor<64xi32, #r>
    %row = arith.addi %is, %rows : tensor<64xi32, #r>
    %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %far = arith.muli %row1, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %columns2 : tensor<64x64xi32, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %tile = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %ptrs to %tile {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %read = warp.load_shared %tile : !warp.shared<64x64xf16, #s> -> tensor<64x64xf16, #l>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
  }
  return
}
}

// -----

#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// CHECK: remark: [Missed] box-copy | Category:memory | Function=apart | Reason="threads copy pieces of the tile, and no bulk copy all of it: its addresses are no box of a tensor with strides"
module attributes {warp.target = "sm_90a"} {
func.func @apart(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  scf.for %i = %c0 to %n step %c64 : i32 {
    %is = tile.splat %i : i32 -> tensor<64xi32, #r>
    %row = arith.addi %is, %rows : tensor<64xi32, #r>
    %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %two = arith.constant dense<2> : tensor<64x64xi32, #l>
    %apart = arith.muli %columns2, %two : tensor<64x64xi32, #l>
    %far = arith.muli %row1, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %apart : tensor<64x64xi32, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %tile = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %ptrs to %tile {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
  }
  return
}
}

// -----

#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// CHECK: remark: [Missed] box-copy | Category:memory | Function=axes | Reason="threads copy pieces of the tile, and no bulk copy all of it: its address is a sum of more strides than a tensor map has axes"
module attributes {warp.target = "sm_90a"} {
func.func @axes(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>, %s0: i32 {tile.divisibility = 16 : i32}, %s1: i32 {tile.divisibility = 16 : i32}, %s2: i32 {tile.divisibility = 16 : i32}, %s3: i32 {tile.divisibility = 16 : i32})
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %o0 = arith.muli %x, %s0 : i32
  %o1 = arith.muli %x, %s1 : i32
  %o2 = arith.muli %x, %s2 : i32
  %o3 = arith.muli %x, %s3 : i32
  %o01 = arith.addi %o0, %o1 : i32
  %o23 = arith.addi %o2, %o3 : i32
  %o = arith.addi %o01, %o23 : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  scf.for %i = %c0 to %n step %c64 : i32 {
    %is = tile.splat %i : i32 -> tensor<64xi32, #r>
    %row = arith.addi %is, %rows : tensor<64xi32, #r>
    %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %os = tile.splat %o : i32 -> tensor<64x64xi32, #l>
    %far = arith.muli %row1, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %near = arith.addi %far2, %columns2 : tensor<64x64xi32, #l>
    %offset = arith.addi %near, %os : tensor<64x64xi32, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %tile = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %ptrs to %tile {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
  }
  return
}
}

// -----

#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// CHECK: remark: [Missed] box-copy | Category:memory | Function=wide | Reason="threads copy pieces of the tile, and no bulk copy all of it: a coordinate is of 64 bits"
module attributes {warp.target = "sm_90a"} {
func.func @wide(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>, %table: !tile.ptr<i64>)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %first = tile.load %table : !tile.ptr<i64>
  %s64 = arith.extsi %stride : i32 to i64
  %begin = arith.muli %first, %s64 : i64
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  scf.for %i = %c0 to %n step %c64 : i32 {
    %is = tile.splat %i : i32 -> tensor<64xi32, #r>
    %row = arith.addi %is, %rows : tensor<64xi32, #r>
    %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %os = tile.splat %begin : i64 -> tensor<64x64xi64, #l>
    %far = arith.muli %row1, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %near = arith.addi %far2, %columns2 : tensor<64x64xi32, #l>
    %near64 = arith.extsi %near : tensor<64x64xi32, #l> to tensor<64x64xi64, #l>
    %offset = arith.addi %near64, %os : tensor<64x64xi64, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi64, #l>
    %tile = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %ptrs to %tile {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
  }
  return
}
}

// -----

#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// CHECK: remark: [Missed] box-copy | Category:memory | Function=elsewhere | Reason="threads copy pieces of the tile, and no bulk copy all of it: its mask begins elsewhere than the tensor"
module attributes {warp.target = "sm_90a"} {
func.func @elsewhere(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  scf.for %i = %c0 to %n step %c64 : i32 {
    %is = tile.splat %i : i32 -> tensor<64xi32, #r>
    %row = arith.addi %is, %rows : tensor<64xi32, #r>
    %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %far = arith.muli %row1, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %columns2 : tensor<64x64xi32, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %ones = arith.constant dense<1> : tensor<64x1xi32, #rr>
    %in = arith.cmpi sge, %row1, %ones : tensor<64x1xi32, #rr>
    %mask = tile.broadcast %in : tensor<64x1xi1, #rr> -> tensor<64x64xi1, #l>
    %tile = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %ptrs masked %mask to %tile {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi1, #l> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
  }
  return
}
}

// -----

#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// CHECK: remark: [Missed] box-copy | Category:memory | Function=ends | Reason="threads copy pieces of the tile, and no bulk copy all of it: its mask has two ends"
module attributes {warp.target = "sm_90a"} {
func.func @ends(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>, %m: i32)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  scf.for %i = %c0 to %n step %c64 : i32 {
    %is = tile.splat %i : i32 -> tensor<64xi32, #r>
    %row = arith.addi %is, %rows : tensor<64xi32, #r>
    %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %far = arith.muli %row1, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %columns2 : tensor<64x64xi32, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %es = tile.splat %n : i32 -> tensor<64x1xi32, #rr>
    %fs = tile.splat %m : i32 -> tensor<64x1xi32, #rr>
    %in1 = arith.cmpi slt, %row1, %es : tensor<64x1xi32, #rr>
    %in2 = arith.cmpi slt, %row1, %fs : tensor<64x1xi32, #rr>
    %in = arith.andi %in1, %in2 : tensor<64x1xi1, #rr>
    %mask = tile.broadcast %in : tensor<64x1xi1, #rr> -> tensor<64x64xi1, #l>
    %tile = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %ptrs masked %mask to %tile {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi1, #l> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
  }
  return
}
}

// -----

#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// CHECK: remark: [Missed] box-copy | Category:memory | Function=before | Reason="threads copy pieces of the tile, and no bulk copy all of it: it may begin before its base, and no mask says that nothing is there"
module attributes {warp.target = "sm_90a"} {
func.func @before(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  scf.for %i = %c0 to %n step %c64 : i32 {
    %back = arith.subi %c0, %i : i32
    %is = tile.splat %back : i32 -> tensor<64xi32, #r>
    %row = arith.addi %is, %rows : tensor<64xi32, #r>
    %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %far = arith.muli %row1, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %columns2 : tensor<64x64xi32, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %tile = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %ptrs to %tile {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
  }
  return
}
}

// -----

#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// A coordinate of its own for what is subtracted would be below 0, though the sum is not.
// CHECK: remark: [Missed] box-copy | Category:memory | Function=summed | Reason="threads copy pieces of the tile, and no bulk copy all of it: it may begin before its base, and no mask says that nothing is there"
module attributes {warp.target = "sm_90a"} {
func.func @summed(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %head: i32 {tile.divisibility = 16 : i32}, %heads: i32, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>)
    attributes {tile.orders_accesses, tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  scf.for %i = %c0 to %n step %c64 : i32 {
    %least = arith.minsi %x, %i : i32
    %less = arith.muli %least, %heads : i32
    %left = arith.subi %i, %less : i32
    %of = arith.muli %left, %head : i32
    %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %far = arith.muli %row1, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %inside = arith.addi %far2, %columns2 : tensor<64x64xi32, #l>
    %outer = tile.splat %of : i32 -> tensor<64x64xi32, #l>
    %offset = arith.addi %inside, %outer : tensor<64x64xi32, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %tile = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %ptrs to %tile {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
  }
  return
}
}

// -----

#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// CHECK-NOT: box-copy
module attributes {warp.target = "sm_90a"} {
func.func @within(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  scf.for %i = %c0 to %n step %c64 : i32 {
    %back = arith.subi %c0, %i : i32
    %is = tile.splat %back : i32 -> tensor<64xi32, #r>
    %row = arith.addi %is, %rows : tensor<64xi32, #r>
    %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %far = arith.muli %row1, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %columns2 : tensor<64x64xi32, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %zero = arith.constant dense<0> : tensor<64x1xi32, #rr>
    %in = arith.cmpi sge, %row1, %zero : tensor<64x1xi32, #rr>
    %mask = tile.broadcast %in : tensor<64x1xi1, #rr> -> tensor<64x64xi1, #l>
    %tile = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %ptrs masked %mask to %tile {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi1, #l> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
  }
  return
}
}

// -----

#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// Remainders are one coordinate, never below 0.
// CHECK-NOT: box-copy
module attributes {warp.target = "sm_90a"} {
func.func @remainder(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %head: i32 {tile.divisibility = 16 : i32}, %heads: i32, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>)
    attributes {tile.orders_accesses, tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  scf.for %i = %c0 to %n step %c64 : i32 {
    %quotient = arith.divsi %i, %heads : i32
    %whole = arith.muli %heads, %quotient : i32
    %left = arith.subi %i, %whole : i32
    %negative = arith.cmpi slt, %left, %c0 : i32
    %one = arith.constant 1 : i32
    %lower = arith.subi %quotient, %one : i32
    %floor = arith.select %negative, %lower, %quotient : i32
    %full = arith.muli %floor, %heads : i32
    %modulo = arith.subi %i, %full : i32
    %sum = arith.addi %left, %modulo : i32
    %of = arith.muli %sum, %head : i32
    %row1 = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %far = arith.muli %row1, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %inside = arith.addi %far2, %columns2 : tensor<64x64xi32, #l>
    %outer = tile.splat %of : i32 -> tensor<64x64xi32, #l>
    %offset = arith.addi %inside, %outer : tensor<64x64xi32, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %tile = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %ptrs to %tile {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
  }
  return
}
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-pipeline --remarks-filter-missed=memory -o /dev/null 2>&1 | FileCheck %s

#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// CHECK: remark: [Missed] box-copy | Category:memory | Function=stride | Reason="threads copy pieces of the tile, and no bulk copy all of it: a stride is not known to be a multiple of what bulk copies ask for"
module attributes {warp.target = "sm_90a"} {
func.func @stride(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %sum = scf.for %i = %c0 to %n step %c64 iter_args(%t = %z) -> (tensor<64x64xf32, #acc>) : i32 {
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
    %d = warp.wgmma %a, %tile, %t {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    scf.yield %e : tensor<64x64xf32, #acc>
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

// CHECK: remark: [Missed] box-copy | Category:memory | Function=begin | Reason="threads copy pieces of the tile, and no bulk copy all of it: its begin is not known to be aligned"
module attributes {warp.target = "sm_90a"} {
func.func @begin(%p: !tile.ptr<f16>, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %sum = scf.for %i = %c0 to %n step %c64 iter_args(%t = %z) -> (tensor<64x64xf32, #acc>) : i32 {
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
    %d = warp.wgmma %a, %tile, %t {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    scf.yield %e : tensor<64x64xf32, #acc>
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

// CHECK: remark: [Missed] box-copy | Category:memory | Function=gathered | Reason="threads copy pieces of the tile, and no bulk copy all of it: its addresses are no sums of an argument and strides"
module attributes {warp.target = "sm_90a"} {
func.func @gathered(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %sum = scf.for %i = %c0 to %n step %c64 iter_args(%t = %z) -> (tensor<64x64xf32, #acc>) : i32 {
    %is = tile.splat %i : i32 -> tensor<64xi32, #r>
    %row = arith.addi %is, %rows : tensor<64xi32, #r>
    %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %some = arith.divsi %row1, %ss : tensor<64x1xi32, #rr>
    %far = arith.muli %some, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %columns2 : tensor<64x64xi32, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %tile = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %ptrs to %tile {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %t {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    scf.yield %e : tensor<64x64xf32, #acc>
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

// CHECK: remark: [Missed] box-copy | Category:memory | Function=end | Reason="threads copy pieces of the tile, and no bulk copy all of it: its mask ends where the launch does not know"
module attributes {warp.target = "sm_90a"} {
func.func @end(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %x = tile.program_id x : i32
  %c64 = arith.constant 64 : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %sum = scf.for %i = %c0 to %n step %c64 iter_args(%t = %z) -> (tensor<64x64xf32, #acc>) : i32 {
    %is = tile.splat %i : i32 -> tensor<64xi32, #r>
    %row = arith.addi %is, %rows : tensor<64xi32, #r>
    %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %far = arith.muli %row1, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %columns2 : tensor<64x64xi32, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %tile = warp.alloc : !warp.shared<64x64xf16, #s>
    %ms = tile.splat %x : i32 -> tensor<64x1xi32, #rr>
    %in = arith.cmpi slt, %row1, %ms : tensor<64x1xi32, #rr>
    %mask = tile.broadcast %in : tensor<64x1xi1, #rr> -> tensor<64x64xi1, #l>
    warp.async_copy %ptrs masked %mask to %tile {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi1, #l> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %t {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    scf.yield %e : tensor<64x64xf32, #acc>
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

// CHECK: remark: [Missed] box-copy | Category:memory | Function=unequal | Reason="threads copy pieces of the tile, and no bulk copy all of it: its mask is no box"
module attributes {warp.target = "sm_90a"} {
func.func @unequal(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %sum = scf.for %i = %c0 to %n step %c64 iter_args(%t = %z) -> (tensor<64x64xf32, #acc>) : i32 {
    %is = tile.splat %i : i32 -> tensor<64xi32, #r>
    %row = arith.addi %is, %rows : tensor<64xi32, #r>
    %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %far = arith.muli %row1, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %columns2 : tensor<64x64xi32, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %tile = warp.alloc : !warp.shared<64x64xf16, #s>
    %ms = tile.splat %n : i32 -> tensor<64x1xi32, #rr>
    %in = arith.cmpi ne, %row1, %ms : tensor<64x1xi32, #rr>
    %mask = tile.broadcast %in : tensor<64x1xi1, #rr> -> tensor<64x64xi1, #l>
    warp.async_copy %ptrs masked %mask to %tile {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi1, #l> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %t {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    scf.yield %e : tensor<64x64xf32, #acc>
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

// CHECK: remark: [Missed] box-copy | Category:memory | Function=cache | Reason="threads copy pieces of the tile, and no bulk copy all of it: bulk copies do not go through L1"
module attributes {warp.target = "sm_90a"} {
func.func @cache(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %sum = scf.for %i = %c0 to %n step %c64 iter_args(%t = %z) -> (tensor<64x64xf32, #acc>) : i32 {
    %is = tile.splat %i : i32 -> tensor<64xi32, #r>
    %row = arith.addi %is, %rows : tensor<64xi32, #r>
    %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32, #r> -> tensor<64x1xi32, #rr>
    %far = arith.muli %row1, %ss : tensor<64x1xi32, #rr>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #rr> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %columns2 : tensor<64x64xi32, #l>
    %ptrs = tile.addptr %ps, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %tile = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %ptrs to %tile {contiguity = 8 : i32, throughL1} : tensor<64x64x!tile.ptr<f16>, #l> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %t {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    scf.yield %e : tensor<64x64xf32, #acc>
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

// CHECK: remark: [Missed] box-copy | Category:memory | Function=written | Reason="threads copy pieces of the tile, and no bulk copy all of it: the kernel may write what is copied"
module attributes {warp.target = "sm_90a"} {
func.func @written(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>)
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %h = arith.constant 0.0 : f16
  tile.store %p, %h : !tile.ptr<f16>
  %c64 = arith.constant 64 : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %sum = scf.for %i = %c0 to %n step %c64 iter_args(%t = %z) -> (tensor<64x64xf32, #acc>) : i32 {
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
    %d = warp.wgmma %a, %tile, %t {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    scf.yield %e : tensor<64x64xf32, #acc>
  }
  return
}
}

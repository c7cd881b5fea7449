// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-pipeline | FileCheck %s
// RUN: weft-opt %s --split-input-file --warp-pipeline --remarks-filter-missed=memory -o /dev/null 2>&1 | FileCheck %s --check-prefix=REMARK

// Vectors that lie one element behind another are boxes too, whose bytes arrive at the matrices' barrier.
// CHECK-LABEL: func.func @vector
// CHECK: warp.tensor_map %arg2 sizes(%{{.*}}, %{{.*}}) strides(%{{.*}}) {box = array<i32: 64, 1>, vector} : <f32>
// CHECK: warp.mbarrier_expect %{{.*}} {bytes = 8448 : i64}
// CHECK-NOT: warp.async_copy
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#one = #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], warp = [[32], [0]]>
#read = #warp.layout<[64], register = [[1], [8], [16], [32]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>
#v = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
module attributes {warp.target = "sm_90a"} {
func.func @vector(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %batch: i32 {tile.divisibility = 4 : i32},
    %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ones = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #one>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %begin = arith.muli %x, %batch : i32
  %q1 = tile.addptr %q, %begin : !tile.ptr<f32>, i32
  %qs = tile.splat %q1 : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #one>
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
    %i1 = tile.splat %i : i32 -> tensor<64xi32, #one>
    %at = arith.addi %i1, %ones : tensor<64xi32, #one>
    %vptrs = tile.addptr %qs, %at : tensor<64x!tile.ptr<f32>, #one>, tensor<64xi32, #one>
    %vector = warp.alloc : !warp.shared<64xf32, #v>
    warp.async_copy %vptrs to %vector {contiguity = 1 : i32} : tensor<64x!tile.ptr<f32>, #one> -> !warp.shared<64xf32, #v>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    warp.async_wait {pending = 0 : i32}
    %f = warp.load_shared %vector : !warp.shared<64xf32, #v> -> tensor<64xf32, #read>
    warp.dealloc %vector : !warp.shared<64xf32, #v>
  }
  return
}
}

// -----

// Where a mask ends it, so does the map.
// CHECK-LABEL: func.func @masked
// CHECK: %[[N:.*]] = arith.extsi %arg4 : i32 to i64
// CHECK: warp.tensor_map %arg2 sizes(%[[N]], %{{.*}}) strides(%{{.*}}) {box = array<i32: 64, 1>, vector} : <i32>
// CHECK-NOT: warp.async_copy
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#one = #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], warp = [[32], [0]]>
#read = #warp.layout<[64], register = [[1], [8], [16], [32]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>
#v = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
module attributes {warp.target = "sm_90a"} {
func.func @masked(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %q: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %batch: i32 {tile.divisibility = 4 : i32},
    %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ones = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #one>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %begin = arith.muli %x, %batch : i32
  %q1 = tile.addptr %q, %begin : !tile.ptr<i32>, i32
  %qs = tile.splat %q1 : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>, #one>
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
    %i1 = tile.splat %i : i32 -> tensor<64xi32, #one>
    %at = arith.addi %i1, %ones : tensor<64xi32, #one>
    %left = tile.splat %n : i32 -> tensor<64xi32, #one>
    %inside = arith.cmpi slt, %at, %left : tensor<64xi32, #one>
    %vptrs = tile.addptr %qs, %at : tensor<64x!tile.ptr<i32>, #one>, tensor<64xi32, #one>
    %vector = warp.alloc : !warp.shared<64xi32, #v>
    warp.async_copy %vptrs masked %inside to %vector {contiguity = 1 : i32} : tensor<64x!tile.ptr<i32>, #one>, tensor<64xi1, #one> -> !warp.shared<64xi32, #v>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    warp.async_wait {pending = 0 : i32}
    %f = warp.load_shared %vector : !warp.shared<64xi32, #v> -> tensor<64xi32, #read>
    warp.dealloc %vector : !warp.shared<64xi32, #v>
  }
  return
}
}

// -----

// Threads that copy a matrix copy its vector.
// CHECK-LABEL: func.func @mixed
// CHECK: warp.async_copy %{{.*}} : tensor<64x!tile.ptr<f32>
// REMARK: remark: [Missed] box-copy | Category:memory | Function=mixed | Reason="threads copy pieces of the tile, and no bulk copy all of it: threads copy another tile of its loop"
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#one = #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], warp = [[32], [0]]>
#read = #warp.layout<[64], register = [[1], [8], [16], [32]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>
#v = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
module attributes {warp.target = "sm_90a"} {
func.func @mixed(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 4 : i32}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %batch: i32 {tile.divisibility = 4 : i32},
    %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ones = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #one>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %begin = arith.muli %x, %batch : i32
  %q1 = tile.addptr %q, %begin : !tile.ptr<f32>, i32
  %qs = tile.splat %q1 : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #one>
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
    %i1 = tile.splat %i : i32 -> tensor<64xi32, #one>
    %at = arith.addi %i1, %ones : tensor<64xi32, #one>
    %vptrs = tile.addptr %qs, %at : tensor<64x!tile.ptr<f32>, #one>, tensor<64xi32, #one>
    %vector = warp.alloc : !warp.shared<64xf32, #v>
    warp.async_copy %vptrs to %vector {contiguity = 1 : i32} : tensor<64x!tile.ptr<f32>, #one> -> !warp.shared<64xf32, #v>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    warp.async_wait {pending = 0 : i32}
    %f = warp.load_shared %vector : !warp.shared<64xf32, #v> -> tensor<64xf32, #read>
    warp.dealloc %vector : !warp.shared<64xf32, #v>
  }
  return
}
}

// -----

// CHECK-LABEL: func.func @exchanged
// CHECK: warp.async_copy %{{.*}} : tensor<64x!tile.ptr<f32>
// REMARK: remark: [Missed] box-copy | Category:memory | Function=exchanged | Reason="threads copy pieces of the tile, and no bulk copy all of it: its elements do not lie one behind another"
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#one = #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], warp = [[32], [0]]>
#read = #warp.layout<[64], register = [[1], [8], [16], [32]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>
#v = #warp.layout<[64], offset = [[2], [1], [4], [8], [16], [32]]>
module attributes {warp.target = "sm_90a"} {
func.func @exchanged(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %batch: i32 {tile.divisibility = 4 : i32},
    %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ones = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #one>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %begin = arith.muli %x, %batch : i32
  %q1 = tile.addptr %q, %begin : !tile.ptr<f32>, i32
  %qs = tile.splat %q1 : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #one>
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
    %i1 = tile.splat %i : i32 -> tensor<64xi32, #one>
    %at = arith.addi %i1, %ones : tensor<64xi32, #one>
    %vptrs = tile.addptr %qs, %at : tensor<64x!tile.ptr<f32>, #one>, tensor<64xi32, #one>
    %vector = warp.alloc : !warp.shared<64xf32, #v>
    warp.async_copy %vptrs to %vector {contiguity = 1 : i32} : tensor<64x!tile.ptr<f32>, #one> -> !warp.shared<64xf32, #v>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    warp.async_wait {pending = 0 : i32}
    %f = warp.load_shared %vector : !warp.shared<64xf32, #v> -> tensor<64xf32, #read>
    warp.dealloc %vector : !warp.shared<64xf32, #v>
  }
  return
}
}

// -----

// Two elements are 8 bytes.
// CHECK-LABEL: func.func @few
// CHECK: warp.async_copy %{{.*}} : tensor<64x!tile.ptr<i32>
// REMARK: remark: [Missed] box-copy | Category:memory | Function=few | Reason="threads copy pieces of the tile, and no bulk copy all of it: a stride is not known to be a multiple of what bulk copies ask for"
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#one = #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], warp = [[32], [0]]>
#read = #warp.layout<[64], register = [[1], [8], [16], [32]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>
#v = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
module attributes {warp.target = "sm_90a"} {
func.func @few(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %q: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %batch: i32 {tile.divisibility = 2 : i32},
    %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ones = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #one>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %begin = arith.muli %x, %batch : i32
  %q1 = tile.addptr %q, %begin : !tile.ptr<i32>, i32
  %qs = tile.splat %q1 : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>, #one>
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
    %i1 = tile.splat %i : i32 -> tensor<64xi32, #one>
    %at = arith.addi %i1, %ones : tensor<64xi32, #one>
    %vptrs = tile.addptr %qs, %at : tensor<64x!tile.ptr<i32>, #one>, tensor<64xi32, #one>
    %vector = warp.alloc : !warp.shared<64xi32, #v>
    warp.async_copy %vptrs to %vector {contiguity = 1 : i32} : tensor<64x!tile.ptr<i32>, #one> -> !warp.shared<64xi32, #v>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    warp.async_wait {pending = 0 : i32}
    %f = warp.load_shared %vector : !warp.shared<64xi32, #v> -> tensor<64xi32, #read>
    warp.dealloc %vector : !warp.shared<64xi32, #v>
  }
  return
}
}

// -----

// CHECK-LABEL: func.func @unaligned
// CHECK: warp.async_copy %{{.*}} : tensor<64x!tile.ptr<f32>
// REMARK: remark: [Missed] box-copy | Category:memory | Function=unaligned | Reason="threads copy pieces of the tile, and no bulk copy all of it: its begin is not known to be aligned"
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#one = #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], warp = [[32], [0]]>
#read = #warp.layout<[64], register = [[1], [8], [16], [32]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>
#v = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
module attributes {warp.target = "sm_90a"} {
func.func @unaligned(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32> {tile.divisibility = 8 : i32}, %batch: i32 {tile.divisibility = 4 : i32},
    %n: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ones = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #one>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %begin = arith.muli %x, %batch : i32
  %q1 = tile.addptr %q, %begin : !tile.ptr<f32>, i32
  %qs = tile.splat %q1 : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #one>
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
    %i1 = tile.splat %i : i32 -> tensor<64xi32, #one>
    %at = arith.addi %i1, %ones : tensor<64xi32, #one>
    %vptrs = tile.addptr %qs, %at : tensor<64x!tile.ptr<f32>, #one>, tensor<64xi32, #one>
    %vector = warp.alloc : !warp.shared<64xf32, #v>
    warp.async_copy %vptrs to %vector {contiguity = 1 : i32} : tensor<64x!tile.ptr<f32>, #one> -> !warp.shared<64xf32, #v>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    warp.async_wait {pending = 0 : i32}
    %f = warp.load_shared %vector : !warp.shared<64xf32, #v> -> tensor<64xf32, #read>
    warp.dealloc %vector : !warp.shared<64xf32, #v>
  }
  return
}
}

// -----

// A box may not begin between two pieces of 16 bytes of its lines.
// CHECK-LABEL: func.func @ragged
// CHECK: warp.async_copy %{{.*}} : tensor<64x!tile.ptr<f32>
// REMARK: remark: [Missed] box-copy | Category:memory | Function=ragged | Reason="threads copy pieces of the tile, and no bulk copy all of it: where it begins along its lines is not known to be aligned"
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#one = #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], warp = [[32], [0]]>
#read = #warp.layout<[64], register = [[1], [8], [16], [32]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>
#v = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
module attributes {warp.target = "sm_90a"} {
func.func @ragged(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %batch: i32 {tile.divisibility = 4 : i32},
    %n: i32, %first: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ones = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #one>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %begin = arith.muli %x, %batch : i32
  %q1 = tile.addptr %q, %begin : !tile.ptr<f32>, i32
  %qs = tile.splat %q1 : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #one>
  %least = arith.maxsi %first, %c0 : i32
  %two = arith.constant 2 : i32
  %lower = arith.muli %least, %two : i32
  scf.for %i = %lower to %n step %c64 : i32 {
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
    %i1 = tile.splat %i : i32 -> tensor<64xi32, #one>
    %at = arith.addi %i1, %ones : tensor<64xi32, #one>
    %vptrs = tile.addptr %qs, %at : tensor<64x!tile.ptr<f32>, #one>, tensor<64xi32, #one>
    %vector = warp.alloc : !warp.shared<64xf32, #v>
    warp.async_copy %vptrs to %vector {contiguity = 1 : i32} : tensor<64x!tile.ptr<f32>, #one> -> !warp.shared<64xf32, #v>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    warp.async_wait {pending = 0 : i32}
    %f = warp.load_shared %vector : !warp.shared<64xf32, #v> -> tensor<64xf32, #read>
    warp.dealloc %vector : !warp.shared<64xf32, #v>
  }
  return
}
}

// -----

// Four elements of a vector are such a piece.
// CHECK-LABEL: func.func @fours
// CHECK: warp.tensor_map %arg2 {{.*}}vector} : <f32>
// CHECK-NOT: warp.async_copy
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#rr = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#cc = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#one = #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], warp = [[32], [0]]>
#read = #warp.layout<[64], register = [[1], [8], [16], [32]], lane = [[2], [4], [0], [0], [0]], warp = [[0], [0]]>
#v = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
module attributes {warp.target = "sm_90a"} {
func.func @fours(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %stride: i32 {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %batch: i32 {tile.divisibility = 4 : i32},
    %n: i32, %first: i32, %z: tensor<64x64xf32, #acc>, %a: tensor<64x64xf16, #acc>) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c64 = arith.constant 64 : i32
  %x = tile.program_id x : i32
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c>
  %ones = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #one>
  %ss = tile.splat %stride : i32 -> tensor<64x1xi32, #rr>
  %columns1 = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c> -> tensor<1x64xi32, #cc>
  %columns2 = tile.broadcast %columns1 : tensor<1x64xi32, #cc> -> tensor<64x64xi32, #l>
  %ps = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
  %begin = arith.muli %x, %batch : i32
  %q1 = tile.addptr %q, %begin : !tile.ptr<f32>, i32
  %qs = tile.splat %q1 : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #one>
  %least = arith.maxsi %first, %c0 : i32
  %four = arith.constant 4 : i32
  %lower = arith.muli %least, %four : i32
  scf.for %i = %lower to %n step %c64 : i32 {
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
    %i1 = tile.splat %i : i32 -> tensor<64xi32, #one>
    %at = arith.addi %i1, %ones : tensor<64xi32, #one>
    %vptrs = tile.addptr %qs, %at : tensor<64x!tile.ptr<f32>, #one>, tensor<64xi32, #one>
    %vector = warp.alloc : !warp.shared<64xf32, #v>
    warp.async_copy %vptrs to %vector {contiguity = 1 : i32} : tensor<64x!tile.ptr<f32>, #one> -> !warp.shared<64xf32, #v>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %a, %tile, %z {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #acc> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #acc>
    warp.dealloc %tile : !warp.shared<64x64xf16, #s>
    warp.async_wait {pending = 0 : i32}
    %f = warp.load_shared %vector : !warp.shared<64xf32, #v> -> tensor<64xf32, #read>
    warp.dealloc %vector : !warp.shared<64xf32, #v>
  }
  return
}
}

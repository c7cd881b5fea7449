// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-store-boxes --remarks-filter-missed=memory -o /dev/null 2>&1 | FileCheck %s

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// CHECK: remark: [Missed] box-store | Category:memory | Function=cost | Reason="threads store pieces of the tile, and no bulk copy all of it: a warp would take 24 instructions and passes, instead of 24"
module attributes {warp.target = "sm_90a"} {
  func.func @cost(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to, %y {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// CHECK: remark: [Missed] box-store | Category:memory | Function=cached | Reason="threads store pieces of the tile, and no bulk copy all of it: bulk copies have no such cache modifier or eviction priority"
module attributes {warp.target = "sm_90a"} {
  func.func @cached(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to, %y, %mask {warp.contiguity = 8 : i32, eviction = #tile<eviction evict_first>} : tensor<64x64x!tile.ptr<f16>, #l>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// CHECK: remark: [Missed] box-store | Category:memory | Function=ordered | Reason="threads store pieces of the tile, and no bulk copy all of it: it orders other accesses"
module attributes {warp.target = "sm_90a"} {
  func.func @ordered(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf32, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f32>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #l>
    %old = tile.atomic_rmw fadd %to, %y, %mask {} : (tensor<64x64x!tile.ptr<f32>, #l>, tensor<64x64xf32, #l>, tensor<64x64xi1, #l>) -> tensor<64x64xf32, #l>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// CHECK: remark: [Missed] box-store | Category:memory | Function=systems | Reason="threads store pieces of the tile, and no bulk copy all of it: other devices may look on"
module attributes {warp.target = "sm_90a"} {
  func.func @systems(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf32, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f32>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf32, #acc> -> tensor<64x64xf32, #l>
    %old = tile.atomic_rmw fadd %to, %y, %mask {order = #tile<order relaxed>, scope = #tile<scope sys>} : (tensor<64x64x!tile.ptr<f32>, #l>, tensor<64x64xf32, #l>, tensor<64x64xi1, #l>) -> tensor<64x64xf32, #l>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// CHECK: remark: [Missed] box-store | Category:memory | Function=unsigned | Reason="threads store pieces of the tile, and no bulk copy all of it: bulk copies combine no such elements"
module attributes {warp.target = "sm_90a"} {
  func.func @unsigned(%p: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xi32, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<i32> -> tensor<64x64x!tile.ptr<i32>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<i32>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xi32, #acc> -> tensor<64x64xi32, #l>
    %old = tile.atomic_rmw umax %to, %y, %mask {order = #tile<order relaxed>} : (tensor<64x64x!tile.ptr<i32>, #l>, tensor<64x64xi32, #l>, tensor<64x64xi1, #l>) -> tensor<64x64xi32, #l>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// CHECK: remark: [Missed] box-store | Category:memory | Function=barrier | Reason="threads store pieces of the tile, and no bulk copy all of it: a barrier or inline PTX of the program may count on what threads have written"
module attributes {warp.target = "sm_90a"} {
  func.func @barrier(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to, %y, %mask {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    tile.barrier
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// CHECK: remark: [Missed] box-store | Category:memory | Function=told | Reason="threads store pieces of the tile, and no bulk copy all of it: the kernel tells other programs what it has written"
module attributes {warp.target = "sm_90a"} {
  func.func @told(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>, %flag: !tile.ptr<i32>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to, %y, %mask {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    %one = arith.constant 1 : i32
    %told = tile.atomic_rmw add %flag, %one {order = #tile<order release>} : (!tile.ptr<i32>, i32) -> i32
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// CHECK: remark: [Missed] box-store | Category:memory | Function=touched | Reason="threads store pieces of the tile, and no bulk copy all of it: the kernel may touch the same memory elsewhere"
module attributes {warp.target = "sm_90a"} {
  func.func @touched(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>, %q: !tile.ptr<f16>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to, %y, %mask {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    %seen = tile.load %p : !tile.ptr<f16>
    tile.store %q, %seen : !tile.ptr<f16>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// CHECK: remark: [Missed] box-store | Category:memory | Function=wide | Reason="threads store pieces of the tile, and no bulk copy all of it: it is no matrix of elements that tensor maps have"
module attributes {warp.target = "sm_90a"} {
  func.func @wide(%p: !tile.ptr<f64> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf64, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f64> -> tensor<64x64x!tile.ptr<f64>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f64>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf64, #acc> -> tensor<64x64xf64, #l>
    tile.store %to, %y, %mask {warp.contiguity = 2 : i32} : tensor<64x64x!tile.ptr<f64>, #l>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// CHECK: remark: [Missed] box-store | Category:memory | Function=huge | Reason="threads store pieces of the tile, and no bulk copy all of it: its mask is no box"
module attributes {warp.target = "sm_90a"} {
  func.func @huge(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi ult, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to, %y, %mask {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>

// CHECK: remark: [Missed] box-store | Category:memory | Function=far | Reason="threads store pieces of the tile, and no bulk copy all of it: its begin is not known to be aligned"
module attributes {warp.target = "sm_90a"} {
  func.func @far(%p: !tile.ptr<f16>, %n: i32, %x: tensor<64x64xf16, #acc>)
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to, %y, %mask {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#l = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#r = #warp.layout<[64, 1], register = [[16, 0], [32, 0]], lane = [[0, 0], [0, 0], [0, 0], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#c = #warp.layout<[1, 64], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [0, 16], [0, 32], [0, 0], [0, 0]], warp = [[0, 0], [0, 0]]>
#r1 = #warp.layout<[64], register = [[16], [32]], lane = [[0], [0], [0], [1], [2]], warp = [[4], [8]]>
#c1 = #warp.layout<[64], register = [[1], [2], [4]], lane = [[8], [16], [32], [0], [0]], warp = [[0], [0]]>
#half = #warp.layout<[512, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0], [256, 0]]>
#less = #warp.layout<[128, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0]]>
#least = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]]>

// CHECK: remark: [Missed] box-store | Category:memory | Function=full | Reason="threads store pieces of the tile, and no bulk copy all of it: shared memory has no room for the tile beside what lives with it"
module attributes {warp.target = "sm_90a"} {
  func.func @full(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32, %x: tensor<64x64xf16, #acc>, %q: !tile.ptr<f16> {tile.divisibility = 16 : i32})
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c64 = arith.constant 64 : i32
    %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #r1>
    %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #c1>
    %column = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32, #c1> -> tensor<1x64xi32, #c>
    %t0 = warp.alloc : !warp.shared<512x64xf16, #half>
    %t1 = warp.alloc : !warp.shared<512x64xf16, #half>
    %t2 = warp.alloc : !warp.shared<512x64xf16, #half>
    %t3 = warp.alloc : !warp.shared<128x64xf16, #less>
    %t4 = warp.alloc : !warp.shared<64x64xf16, #least>
    %i = tile.program_id x : i32
    %from = arith.muli %i, %c64 : i32
    %first = tile.splat %from : i32 -> tensor<64xi32, #r1>
    %row1 = arith.addi %first, %rows : tensor<64xi32, #r1>
    %row = tile.expand_dims %row1 {axis = 1 : i32} : tensor<64xi32, #r1> -> tensor<64x1xi32, #r>
    %end = tile.splat %n : i32 -> tensor<64x1xi32, #r>
    %inside = arith.cmpi slt, %row, %end : tensor<64x1xi32, #r>
    %mask = tile.broadcast %inside : tensor<64x1xi1, #r> -> tensor<64x64xi1, #l>
    %stride = tile.splat %c64 : i32 -> tensor<64x1xi32, #r>
    %far = arith.muli %row, %stride : tensor<64x1xi32, #r>
    %far2 = tile.broadcast %far : tensor<64x1xi32, #r> -> tensor<64x64xi32, #l>
    %near = tile.broadcast %column : tensor<1x64xi32, #c> -> tensor<64x64xi32, #l>
    %offset = arith.addi %far2, %near : tensor<64x64xi32, #l>
    %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to = tile.addptr %base, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to, %y, %mask {warp.contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    %base2 = tile.splat %q : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>, #l>
    %to2 = tile.addptr %base2, %offset : tensor<64x64x!tile.ptr<f16>, #l>, tensor<64x64xi32, #l>
    %y2 = warp.convert_layout %x : tensor<64x64xf16, #acc> -> tensor<64x64xf16, #l>
    tile.store %to2, %y2, %mask {warp.contiguity = 1 : i32} : tensor<64x64x!tile.ptr<f16>, #l>
    return
  }
}

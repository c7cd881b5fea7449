// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_80 | FileCheck %s

// Additions in memory are one instruction an element: neighbours are in neighbouring lanes.

// CHECK: #[[$L:.*]] = #warp.layout<[1024], register = {{\[\[}}128], [256], [512]], lane = {{\[\[}}1], [2], [4], [8], [16]], warp =
// CHECK-LABEL: func.func @additions
// CHECK: tile.load {{.*}}#[[$L]]>
// CHECK-NOT: warp.convert_layout
// CHECK: tile.atomic_rmw fadd
func.func @additions(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %a = tile.addptr %b, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %x = tile.load %a : tensor<1024x!tile.ptr<f32>>
  %d = tile.splat %q : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %c = tile.addptr %d, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %old = tile.atomic_rmw fadd %c, %x : (tensor<1024x!tile.ptr<f32>>, tensor<1024xf32>) -> tensor<1024xf32>
  func.return
}

// -----

// What is read as f16 and stored as f32 is loaded in the store's layout: 16 bytes of the store a lane, without gaps.

// CHECK: #[[$L:.*]] = #warp.layout<[1024], register = {{\[\[}}1], [2], [512]], lane = {{\[\[}}4], [8],
// CHECK-LABEL: func.func @widened
// CHECK: tile.load {{.*}} {warp.contiguity = 4 : i32{{.*}}} : tensor<1024x!tile.ptr<f16>, #[[$L]]>
// CHECK: tile.store {{.*}} {warp.contiguity = 4 : i32{{.*}}} : tensor<1024x!tile.ptr<f32>, #[[$L]]>
func.func @widened(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tile.splat %p : !tile.ptr<f16> -> tensor<1024x!tile.ptr<f16>>
  %a = tile.addptr %b, %r : tensor<1024x!tile.ptr<f16>>, tensor<1024xi32>
  %x = tile.load %a : tensor<1024x!tile.ptr<f16>>
  %w = arith.extf %x : tensor<1024xf16> to tensor<1024xf32>
  %d = tile.splat %q : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %c = tile.addptr %d, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  tile.store %c, %w : tensor<1024x!tile.ptr<f32>>
  func.return
}

// -----

// A reduction behind a loop runs in the layout that the loop's body gives its result, which is known only after the body.

// CHECK-LABEL: func.func @behind_a_loop
// CHECK: scf.for
// CHECK-NOT: warp.convert_layout
// CHECK: tile.reduce
// CHECK: return
func.func @behind_a_loop(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32x64xf32>
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %e = tile.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %i = tile.broadcast %e : tensor<1x64xi32> -> tensor<32x64xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<32x64x!tile.ptr<f32>>
  %a = tile.addptr %b, %i : tensor<32x64x!tile.ptr<f32>>, tensor<32x64xi32>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %zero) -> tensor<32x64xf32> : i32 {
    %x = tile.load %a : tensor<32x64x!tile.ptr<f32>>
    %t = arith.addf %s, %x : tensor<32x64xf32>
    scf.yield %t : tensor<32x64xf32>
  }
  %m = tile.reduce %sum {axis = 0 : i32} : (tensor<32x64xf32>) -> tensor<64xf32> {
  ^bb0(%s: f32, %t: f32):
    %u = arith.addf %s, %t : f32
    tile.yield %u : f32
  }
  %d = tile.splat %q : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %c = tile.addptr %d, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  tile.store %c, %m : tensor<64x!tile.ptr<f32>>
  func.return
}

// -----

// Neighbours that no vector joins, as each has a mask of its own, still count up: one address serves a thread's. What is
// only promised, and may not hold past a matrix's end, does not count, nor what is not known to fit where it is cut or
// taken to be unsigned.
// CHECK-LABEL: func.func @runs
// CHECK: tile.load {{.*}} {warp.contiguity = 1 : i32, warp.runs = array<i32: 512>}
// CHECK: tile.load {{.*}} {warp.contiguity = 1 : i32} : tensor
// CHECK: tile.load {{.*}} {warp.contiguity = 1 : i32} : tensor
// CHECK: tile.load {{.*}} {warp.contiguity = 1 : i32} : tensor
// CHECK: tile.load {{.*}} {warp.contiguity = 1 : i32, warp.runs = array<i32: 512>}
func.func @runs(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32)
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %r = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %limit = tile.splat %n : i32 -> tensor<512xi32>
  %mask = arith.cmpi slt, %r, %limit : tensor<512xi32>
  %b = tile.splat %x : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>>
  %p = tile.addptr %b, %r : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %v = tile.load %p, %mask : tensor<512x!tile.ptr<f32>>
  %wrapped = arith.remsi %r, %limit {tile.contiguity = 512 : i32, tile.divisibility = 512 : i32} : tensor<512xi32>
  %q = tile.addptr %b, %wrapped : tensor<512x!tile.ptr<f32>>, tensor<512xi32>
  %w = tile.load %q : tensor<512x!tile.ptr<f32>>
  %three = arith.constant dense<3> : tensor<512xi32>
  %before = arith.subi %r, %three : tensor<512xi32>
  %unsigned = arith.extui %before : tensor<512xi32> to tensor<512xi64>
  %q1 = tile.addptr %b, %unsigned : tensor<512x!tile.ptr<f32>>, tensor<512xi64>
  %w1 = tile.load %q1, %mask : tensor<512x!tile.ptr<f32>>
  %cut = arith.trunci %r : tensor<512xi32> to tensor<512xi8>
  %q2 = tile.addptr %b, %cut : tensor<512x!tile.ptr<f32>>, tensor<512xi8>
  %w2 = tile.load %q2, %mask : tensor<512x!tile.ptr<f32>>
  %known = arith.extui %r : tensor<512xi32> to tensor<512xi64>
  %q3 = tile.addptr %b, %known : tensor<512x!tile.ptr<f32>>, tensor<512xi64>
  %w3 = tile.load %q3, %mask : tensor<512x!tile.ptr<f32>>
  %sum1 = arith.addf %v, %w : tensor<512xf32>
  %sum2 = arith.addf %w1, %w2 : tensor<512xf32>
  %sum3 = arith.addf %sum1, %sum2 : tensor<512xf32>
  %sum = arith.addf %sum3, %w3 : tensor<512xf32>
  tile.store %p, %sum, %mask : tensor<512x!tile.ptr<f32>>
  return
}

// -----

// Eight sums that all lanes have are stored by two lanes, a vector each: one instruction fills the sector.
// CHECK-DAG: #[[$SUMS:.*]] = #warp.layout<[8], register = {{\[\[}}1], [2], [4]], lane = {{\[\[}}0], [0], [0], [0], [0]]>
// CHECK-DAG: #[[$SHARED:.*]] = #warp.layout<[8], register = {{\[\[}}1], [2]], lane = {{\[\[}}4], [0], [0], [0], [0]]>
// CHECK-LABEL: func.func @sums
// CHECK: warp.convert_layout {{.*}} : tensor<8xf32, #[[$SUMS]]> -> tensor<8xf32, #[[$SHARED]]>
// CHECK: tile.store {{.*}} {warp.contiguity = 4 : i32} : tensor<8x!tile.ptr<f32>, #[[$SHARED]]>
func.func @sums(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32})
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %r = tile.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %c = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %r1 = tile.expand_dims %r {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %c1 = tile.expand_dims %c {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %r2 = tile.broadcast %r1 : tensor<8x1xi32> -> tensor<8x32xi32>
  %c2 = tile.broadcast %c1 : tensor<1x32xi32> -> tensor<8x32xi32>
  %width = arith.constant dense<32> : tensor<8x32xi32>
  %o = arith.muli %r2, %width : tensor<8x32xi32>
  %i = arith.addi %o, %c2 : tensor<8x32xi32>
  %three = arith.constant dense<3> : tensor<8x32xi32>
  %apart = arith.muli %i, %three : tensor<8x32xi32>
  %b = tile.splat %x : !tile.ptr<f32> -> tensor<8x32x!tile.ptr<f32>>
  %p = tile.addptr %b, %apart : tensor<8x32x!tile.ptr<f32>>, tensor<8x32xi32>
  %v = tile.load %p : tensor<8x32x!tile.ptr<f32>>
  %s = tile.reduce %v {axis = 1 : i32} : (tensor<8x32xf32>) -> tensor<8xf32> {
  ^bb0(%a: f32, %d: f32):
    %t = arith.addf %a, %d : f32
    tile.yield %t : f32
  }
  %q = tile.splat %y : !tile.ptr<f32> -> tensor<8x!tile.ptr<f32>>
  %to = tile.addptr %q, %r : tensor<8x!tile.ptr<f32>>, tensor<8xi32>
  tile.store %to, %s : tensor<8x!tile.ptr<f32>>
  return
}

// -----

// What fills a sector stays where it is.
// CHECK-LABEL: func.func @full
// CHECK-NOT: warp.convert_layout
// CHECK: return
func.func @full(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32})
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %r = tile.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %b = tile.splat %x : !tile.ptr<f32> -> tensor<8x!tile.ptr<f32>>
  %p = tile.addptr %b, %r : tensor<8x!tile.ptr<f32>>, tensor<8xi32>
  %v = tile.load %p : tensor<8x!tile.ptr<f32>>
  %q = tile.splat %y : !tile.ptr<f32> -> tensor<8x!tile.ptr<f32>>
  %to = tile.addptr %q, %r : tensor<8x!tile.ptr<f32>>, tensor<8xi32>
  tile.store %to, %v : tensor<8x!tile.ptr<f32>>
  return
}

// -----

// A tile of 2-byte elements is stored turned from where ldmatrix.trans brings it: four lanes along a row, eight rows.
// CHECK-DAG: #[[$TURNED:.*]] = #warp.layout<[64, 64], register = {{.*}}, lane = {{\[\[}}0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = {{.*}}>
// CHECK-LABEL: func.func @turned
// CHECK: tile.store {{.*}} {warp.contiguity = 8 : i32{{.*}}} : tensor<64x64x!tile.ptr<f16>, #[[$TURNED]]>
func.func @turned(%x: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f16> {tile.divisibility = 16 : i32})
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %r1 = tile.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c1 = tile.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %r2 = tile.broadcast %r1 : tensor<64x1xi32> -> tensor<64x64xi32>
  %c2 = tile.broadcast %c1 : tensor<1x64xi32> -> tensor<64x64xi32>
  %d = arith.constant dense<64> : tensor<64x64xi32>
  %o = arith.muli %r2, %d : tensor<64x64xi32>
  %i = arith.addi %o, %c2 : tensor<64x64xi32>
  %b = tile.splat %x : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %p = tile.addptr %b, %i : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  %v = tile.load %p : tensor<64x64x!tile.ptr<f16>>
  %t = tile.permute %v {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
  %q = tile.splat %y : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %to = tile.addptr %q, %i : tensor<64x64x!tile.ptr<f16>>, tensor<64x64xi32>
  tile.store %to, %t : tensor<64x64x!tile.ptr<f16>>
  return
}

// -----

// Wider elements, which ldmatrix does not turn, are stored as memory has them. Threads have four rows of four columns, in
// vectors along either.
// CHECK-DAG: #[[$ROWS:.*]] = #warp.layout<[64, 64], register = {{\[\[}}0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], lane = {{\[\[}}0, 4], [0, 8], [0, 16], [0, 32], [8, 0]], warp = {{.*}}>
// CHECK-LABEL: func.func @wide
// CHECK: tile.load {{.*}} : tensor<64x64x!tile.ptr<f32>, #[[$ROWS]]>
// CHECK: tile.store {{.*}} {warp.contiguity = 4 : i32{{.*}}} : tensor<64x64x!tile.ptr<f32>, #[[$ROWS]]>
func.func @wide(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32})
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %r1 = tile.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c1 = tile.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %r2 = tile.broadcast %r1 : tensor<64x1xi32> -> tensor<64x64xi32>
  %c2 = tile.broadcast %c1 : tensor<1x64xi32> -> tensor<64x64xi32>
  %d = arith.constant dense<64> : tensor<64x64xi32>
  %o = arith.muli %r2, %d : tensor<64x64xi32>
  %i = arith.addi %o, %c2 : tensor<64x64xi32>
  %b = tile.splat %x : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %p = tile.addptr %b, %i : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  %v = tile.load %p : tensor<64x64x!tile.ptr<f32>>
  %t = tile.permute %v {order = array<i32: 1, 0>} : tensor<64x64xf32> -> tensor<64x64xf32>
  %q = tile.splat %y : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %to = tile.addptr %q, %i : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  tile.store %to, %t : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// Bytes, too: sixteen columns of the two rows that a thread has.
// CHECK-DAG: #[[$BYTES:.*]] = #warp.layout<[64, 64], register = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [1, 0]], lane = {{.*}}, warp = {{.*}}>
// CHECK-LABEL: func.func @bytes
// CHECK: tile.load {{.*}} : tensor<64x64x!tile.ptr<i8>, #[[$BYTES]]>
// CHECK: tile.store {{.*}} {warp.contiguity = 16 : i32{{.*}}} : tensor<64x64x!tile.ptr<i8>, #[[$BYTES]]>
func.func @bytes(%x: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %y: !tile.ptr<i8> {tile.divisibility = 16 : i32})
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %r1 = tile.expand_dims %r {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %c1 = tile.expand_dims %r {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %r2 = tile.broadcast %r1 : tensor<64x1xi32> -> tensor<64x64xi32>
  %c2 = tile.broadcast %c1 : tensor<1x64xi32> -> tensor<64x64xi32>
  %d = arith.constant dense<64> : tensor<64x64xi32>
  %o = arith.muli %r2, %d : tensor<64x64xi32>
  %i = arith.addi %o, %c2 : tensor<64x64xi32>
  %b = tile.splat %x : !tile.ptr<i8> -> tensor<64x64x!tile.ptr<i8>>
  %p = tile.addptr %b, %i : tensor<64x64x!tile.ptr<i8>>, tensor<64x64xi32>
  %v = tile.load %p : tensor<64x64x!tile.ptr<i8>>
  %t = tile.permute %v {order = array<i32: 1, 0>} : tensor<64x64xi8> -> tensor<64x64xi8>
  %q = tile.splat %y : !tile.ptr<i8> -> tensor<64x64x!tile.ptr<i8>>
  %to = tile.addptr %q, %i : tensor<64x64x!tile.ptr<i8>>, tensor<64x64xi32>
  tile.store %to, %t : tensor<64x64x!tile.ptr<i8>>
  return
}

// -----

// Of eight columns that count up from a multiple of eight, all are below a multiple of sixteen or none is, and they are
// four in each half: what is compared, divided and loaded is one for all. What is promised does not count, nor a bound
// of which nothing is known.
// CHECK-LABEL: func.func @repeats
// CHECK: arith.divsi {{.*}} {warp.constancy = array<i32: 4>}
// CHECK: arith.cmpi slt, {{.*}} {warp.constancy = array<i32: 16>}
// CHECK: arith.cmpi slt, {{.*}} : tensor
// CHECK: tile.load {{.*}} {warp.constancy = array<i32: 4>, warp.contiguity = 1 : i32} : tensor
// CHECK: tile.load {{.*}} {warp.contiguity = 4 : i32, {{.*}}} : tensor
func.func @repeats(%x: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 16 : i32}, %m: i32)
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %four = arith.constant dense<4> : tensor<256xi32>
  %r = tile.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %quarter = arith.divsi %r, %four : tensor<256xi32>
  %limit = tile.splat %n : i32 -> tensor<256xi32>
  %mask = arith.cmpi slt, %r, %limit : tensor<256xi32>
  %any = tile.splat %m : i32 -> tensor<256xi32>
  %other = arith.cmpi slt, %r, %any : tensor<256xi32>
  %b = tile.splat %x : !tile.ptr<i32> -> tensor<256x!tile.ptr<i32>>
  %p = tile.addptr %b, %quarter : tensor<256x!tile.ptr<i32>>, tensor<256xi32>
  %v = tile.load %p, %mask : tensor<256x!tile.ptr<i32>>
  %c = tile.splat %y : !tile.ptr<i32> -> tensor<256x!tile.ptr<i32>>
  %q = tile.addptr %c, %r : tensor<256x!tile.ptr<i32>>, tensor<256xi32>
  %old = tile.load %q, %mask : tensor<256x!tile.ptr<i32>>
  %all = arith.select %other, %old, %v : tensor<256xi1>, tensor<256xi32>
  tile.store %q, %all, %mask : tensor<256x!tile.ptr<i32>>
  return
}

// -----

// Shifts are quotients: of numbers that may be below zero nothing is said.
// CHECK-LABEL: func.func @shifts
// CHECK: arith.shrsi {{.*}} {warp.constancy = array<i32: 4>}
// CHECK: arith.shrsi {{.*}} : tensor
func.func @shifts(%y: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %two = arith.constant dense<2> : tensor<256xi32>
  %r = tile.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %quarter = arith.shrsi %r, %two : tensor<256xi32>
  %any = tile.splat %n : i32 -> tensor<256xi32>
  %below = arith.subi %r, %any : tensor<256xi32>
  %other = arith.shrsi %below, %two : tensor<256xi32>
  %sum = arith.addi %quarter, %other : tensor<256xi32>
  %c = tile.splat %y : !tile.ptr<i32> -> tensor<256x!tile.ptr<i32>>
  %q = tile.addptr %c, %r : tensor<256x!tile.ptr<i32>>, tensor<256xi32>
  tile.store %q, %sum : tensor<256x!tile.ptr<i32>>
  return
}

// -----

// Sums of what nothing was loaded for, which others meet that were: they lie alike.

// CHECK-LABEL: func.func @alike
// CHECK: tile.load {{.*}} : tensor<4x256x!tile.ptr<f32>, #[[$L:.*]]>
// CHECK: tile.reduce {{.*}} (tensor<4x256xf32, #[[$L]]>)
// CHECK: tile.reduce {{.*}} (tensor<4x256xi32, #[[$L]]>)
func.func @alike(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32>, %k: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %n = tile.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %m = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %c = arith.constant dense<256> : tensor<4xi32>
  %row = arith.muli %m, %c : tensor<4xi32>
  %rows = tile.expand_dims %row {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %columns = tile.expand_dims %n {axis = 0 : i32} : tensor<256xi32> -> tensor<1x256xi32>
  %r = tile.broadcast %rows : tensor<4x1xi32> -> tensor<4x256xi32>
  %s = tile.broadcast %columns : tensor<1x256xi32> -> tensor<4x256xi32>
  %i = arith.addi %r, %s : tensor<4x256xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<4x256x!tile.ptr<f32>>
  %at = tile.addptr %b, %i : tensor<4x256x!tile.ptr<f32>>, tensor<4x256xi32>
  %x = tile.load %at : tensor<4x256x!tile.ptr<f32>>
  %sum = tile.reduce %x {axis = 1 : i32} : (tensor<4x256xf32>) -> tensor<4xf32> {
  ^bb0(%e: f32, %f: f32):
    %g = arith.addf %e, %f : f32
    tile.yield %g : f32
  }
  %scalar = tile.splat %k : i32 -> tensor<4x256xi32>
  %twice = arith.xori %i, %scalar : tensor<4x256xi32>
  %most = tile.reduce %twice {axis = 1 : i32} : (tensor<4x256xi32>) -> tensor<4xi32> {
  ^bb0(%e: i32, %f: i32):
    %g = arith.maxsi %e, %f : i32
    tile.yield %g : i32
  }
  %float = arith.sitofp %most : tensor<4xi32> to tensor<4xf32>
  %both = arith.addf %sum, %float : tensor<4xf32>
  %d = tile.splat %q : !tile.ptr<f32> -> tensor<4x!tile.ptr<f32>>
  %to = tile.addptr %d, %m : tensor<4x!tile.ptr<f32>>, tensor<4xi32>
  tile.store %to, %both : tensor<4x!tile.ptr<f32>>
  func.return
}

// -----

// Pages of 16 keys by a table, of which eight channels lie together: a lane has these, and lanes go on with the keys whose
// channels lie behind them. Values lie the other way round: masks keep vectors apart, but not lanes.
// CHECK-DAG: #[[$KEYS:.*]] = #warp.layout<[64, 32], register = {{\[\[}}1, 0], [2, 0], [4, 0], [16, 0], [32, 0]], lane = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], warp = {{\[\[}}8, 0]]>
// CHECK-DAG: #[[$VALUES:.*]] = #warp.layout<[32, 64], {{.*}}lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]
// CHECK-LABEL: func.func @pages
// CHECK: tile.load {{.*}} {warp.contiguity = 8 : i32} : tensor<64x32x!tile.ptr<f16>, #[[$KEYS]]>
// CHECK: tile.load {{.*}} {warp.contiguity = 1 : i32} : tensor<32x64x!tile.ptr<f16>, #[[$VALUES]]>
func.func @pages(%k: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %v: !tile.ptr<f16> {tile.divisibility = 16 : i32},
                 %table: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %out: !tile.ptr<f16> {tile.divisibility = 16 : i32},
                 %length: i32)
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
  %n = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %d = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %limit = tile.splat %length : i32 -> tensor<32xi32>
  %in = arith.cmpi slt, %n, %limit : tensor<32xi32>
  %page_size = arith.constant dense<16> : tensor<32xi32>
  %eight = arith.constant dense<8> : tensor<64xi32>
  %number = arith.divsi %n, %page_size : tensor<32xi32>
  %slot = arith.remsi %n, %page_size : tensor<32xi32>
  %tables = tile.splat %table : !tile.ptr<i32> -> tensor<32x!tile.ptr<i32>>
  %entries = tile.addptr %tables, %number : tensor<32x!tile.ptr<i32>>, tensor<32xi32>
  %none = arith.constant dense<0> : tensor<32xi32>
  %page = tile.load %entries, %in, %none : tensor<32x!tile.ptr<i32>>
  %page_elements = arith.constant dense<1024> : tensor<32xi32>
  %page_at = arith.muli %page, %page_elements : tensor<32xi32>

  %group = arith.divsi %d, %eight : tensor<64xi32>
  %inner = arith.remsi %d, %eight : tensor<64xi32>
  %group_elements = arith.constant dense<128> : tensor<64xi32>
  %group_at = arith.muli %group, %group_elements : tensor<64xi32>
  %channel_at = arith.addi %group_at, %inner : tensor<64xi32>
  %eight_n = arith.constant dense<8> : tensor<32xi32>
  %slot_at = arith.muli %slot, %eight_n : tensor<32xi32>
  %key_at = arith.addi %page_at, %slot_at : tensor<32xi32>
  %kd = tile.expand_dims %channel_at {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %kn = tile.expand_dims %key_at {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %kd2 = tile.broadcast %kd : tensor<64x1xi32> -> tensor<64x32xi32>
  %kn2 = tile.broadcast %kn : tensor<1x32xi32> -> tensor<64x32xi32>
  %ki = arith.addi %kd2, %kn2 : tensor<64x32xi32>
  %kb = tile.splat %k : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>>
  %kp = tile.addptr %kb, %ki : tensor<64x32x!tile.ptr<f16>>, tensor<64x32xi32>
  %x = tile.load %kp : tensor<64x32x!tile.ptr<f16>>

  %sixteen = arith.constant dense<16> : tensor<64xi32>
  %value_d = arith.muli %d, %sixteen : tensor<64xi32>
  %value_n = arith.addi %page_at, %slot : tensor<32xi32>
  %vn = tile.expand_dims %value_n {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %vd = tile.expand_dims %value_d {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %vn2 = tile.broadcast %vn : tensor<32x1xi32> -> tensor<32x64xi32>
  %vd2 = tile.broadcast %vd : tensor<1x64xi32> -> tensor<32x64xi32>
  %vi = arith.addi %vn2, %vd2 : tensor<32x64xi32>
  %vb = tile.splat %v : !tile.ptr<f16> -> tensor<32x64x!tile.ptr<f16>>
  %vp = tile.addptr %vb, %vi : tensor<32x64x!tile.ptr<f16>>, tensor<32x64xi32>
  %in1 = tile.expand_dims %in {axis = 1 : i32} : tensor<32xi1> -> tensor<32x1xi1>
  %in2 = tile.broadcast %in1 : tensor<32x1xi1> -> tensor<32x64xi1>
  %y = tile.load %vp, %in2 : tensor<32x64x!tile.ptr<f16>>
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %s = tile.dot %y, %x, %zero : tensor<32x64xf16> * tensor<64x32xf16> -> tensor<32x32xf32>
  %t = arith.truncf %s : tensor<32x32xf32> to tensor<32x32xf16>
  %row = arith.muli %n, %page_elements : tensor<32xi32>
  %row1 = tile.expand_dims %row {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %col1 = tile.expand_dims %n {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %row2 = tile.broadcast %row1 : tensor<32x1xi32> -> tensor<32x32xi32>
  %col2 = tile.broadcast %col1 : tensor<1x32xi32> -> tensor<32x32xi32>
  %oi = arith.addi %row2, %col2 : tensor<32x32xi32>
  %ob = tile.splat %out : !tile.ptr<f16> -> tensor<32x32x!tile.ptr<f16>>
  %op = tile.addptr %ob, %oi : tensor<32x32x!tile.ptr<f16>>, tensor<32x32xi32>
  tile.store %op, %t : tensor<32x32x!tile.ptr<f16>>
  return
}

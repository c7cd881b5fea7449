// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_80 | FileCheck %s

// Narrow and wide elements of one tile meet in a loop behind arithmetic: the narrow ones are loaded as the wide ones lie, in
// pieces of 8 bytes, and so is the row of narrow ones that each iteration loads, so that nothing is exchanged.

// CHECK: #[[$L:.*]] = #warp.layout<[16, 64], register = {{\[\[}}0, 1], [0, 2], [0, 32], [4, 0], [8, 0]], lane = {{\[\[}}0, 4], [0, 8], [0, 16], [1, 0], [2, 0]]>
// CHECK-LABEL: func.func @meet
// CHECK: tile.load {{.*}} {warp.contiguity = 4 : i32{{.*}}} : tensor<16x64x!tile.ptr<bf16>, #[[$L]]>
// CHECK: tile.load {{.*}} {warp.contiguity = 4 : i32{{.*}}} : tensor<16x64x!tile.ptr<f32>, #[[$L]]>
// CHECK: scf.for
// CHECK: tile.load {{.*}} {warp.contiguity = 4 : i32{{.*}}} : tensor<64x!tile.ptr<bf16>,
// CHECK-NOT: warp.convert_layout
// CHECK: tile.reduce
// CHECK: return
func.func @meet(%q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %g: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 2>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c64 = arith.constant 64 : i32
  %one = arith.constant dense<0.0> : tensor<16xf32>
  %rs = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %cs = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %size = arith.constant dense<64> : tensor<16xi32>
  %starts = arith.muli %rs, %size : tensor<16xi32>
  %down = tile.expand_dims %starts {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %right = tile.expand_dims %cs {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %downs = tile.broadcast %down : tensor<16x1xi32> -> tensor<16x64xi32>
  %rights = tile.broadcast %right : tensor<1x64xi32> -> tensor<16x64xi32>
  %i = arith.addi %downs, %rights : tensor<16x64xi32>
  %qb = tile.splat %q : !tile.ptr<bf16> -> tensor<16x64x!tile.ptr<bf16>>
  %qp = tile.addptr %qb, %i : tensor<16x64x!tile.ptr<bf16>>, tensor<16x64xi32>
  %x = tile.load %qp : tensor<16x64x!tile.ptr<bf16>>
  %wide = arith.extf %x : tensor<16x64xbf16> to tensor<16x64xf32>
  %gb = tile.splat %g : !tile.ptr<f32> -> tensor<16x64x!tile.ptr<f32>>
  %gp = tile.addptr %gb, %i : tensor<16x64x!tile.ptr<f32>>, tensor<16x64xi32>
  %y = tile.load %gp : tensor<16x64x!tile.ptr<f32>>
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %sum = scf.for %k = %c0 to %n step %c1 iter_args(%s = %one) -> tensor<16xf32> : i32 {
    %at = arith.muli %k, %c64 : i32
    %base = tile.addptr %q, %at : !tile.ptr<bf16>, i32
    %rb = tile.splat %base : !tile.ptr<bf16> -> tensor<64x!tile.ptr<bf16>>
    %rp = tile.addptr %rb, %r : tensor<64x!tile.ptr<bf16>>, tensor<64xi32>
    %row = tile.load %rp : tensor<64x!tile.ptr<bf16>>
    %roww = arith.extf %row : tensor<64xbf16> to tensor<64xf32>
    %line = tile.expand_dims %roww {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
    %lines = tile.broadcast %line : tensor<1x64xf32> -> tensor<16x64xf32>
    %d = arith.subf %y, %lines : tensor<16x64xf32>
    %e = math.exp2 %d : tensor<16x64xf32>
    %m = arith.mulf %wide, %lines : tensor<16x64xf32>
    %p = arith.mulf %m, %e : tensor<16x64xf32>
    %t = tile.reduce %p {axis = 1 : i32} : (tensor<16x64xf32>) -> tensor<16xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    %next = arith.addf %s, %t : tensor<16xf32>
    scf.yield %next : tensor<16xf32>
  }
  %r16 = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %ob = tile.splat %o : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
  %op = tile.addptr %ob, %r16 : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
  tile.store %op, %sum : tensor<16x!tile.ptr<f32>>
  func.return
}

// -----

// In kernels whose accesses are ordered, which the compiler writes, tiles come to lie alike, too.

// CHECK-LABEL: func.func @written
// CHECK: tile.load {{.*}} {warp.contiguity = 4 : i32{{.*}}} : tensor<16x64x!tile.ptr<bf16>, #[[$TILE:.*]]>
// CHECK: tile.load {{.*}} : tensor<16x64x!tile.ptr<f32>, #[[$TILE]]>
// CHECK: math.exp2
// CHECK-NOT: warp.convert_layout {{.*}}16x64
// CHECK: return
func.func @written(%q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %g: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.orders_accesses, tile.schedule = #tile.schedule<warps = 1, stages = 2>} {
  %rs = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %cs = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %size = arith.constant dense<64> : tensor<16xi32>
  %starts = arith.muli %rs, %size : tensor<16xi32>
  %down = tile.expand_dims %starts {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %right = tile.expand_dims %cs {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %downs = tile.broadcast %down : tensor<16x1xi32> -> tensor<16x64xi32>
  %rights = tile.broadcast %right : tensor<1x64xi32> -> tensor<16x64xi32>
  %i = arith.addi %downs, %rights : tensor<16x64xi32>
  %qb = tile.splat %q : !tile.ptr<bf16> -> tensor<16x64x!tile.ptr<bf16>>
  %qp = tile.addptr %qb, %i : tensor<16x64x!tile.ptr<bf16>>, tensor<16x64xi32>
  %x = tile.load %qp : tensor<16x64x!tile.ptr<bf16>>
  %wide = arith.extf %x : tensor<16x64xbf16> to tensor<16x64xf32>
  %gb = tile.splat %g : !tile.ptr<f32> -> tensor<16x64x!tile.ptr<f32>>
  %gp = tile.addptr %gb, %i : tensor<16x64x!tile.ptr<f32>>, tensor<16x64xi32>
  %y = tile.load %gp : tensor<16x64x!tile.ptr<f32>>
  %e = math.exp2 %y : tensor<16x64xf32>
  %p = arith.mulf %wide, %e : tensor<16x64xf32>
  %t = tile.reduce %p {axis = 1 : i32} : (tensor<16x64xf32>) -> tensor<16xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %ob = tile.splat %g : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
  %op = tile.addptr %ob, %rs : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
  tile.store %op, %t : tensor<16x!tile.ptr<f32>>
  func.return
}

// -----

// A row that each of four warps would have to read for itself is read once, and exchanged.

// CHECK-LABEL: func.func @read_once
// CHECK: tile.load {{.*}} {warp.contiguity = 1 : i32} : tensor<128x!tile.ptr<bf16>,
// CHECK: warp.convert_layout
// CHECK: arith.extf
// CHECK: return
func.func @read_once(%q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %g: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %rs = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %cs = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %size = arith.constant dense<128> : tensor<32xi32>
  %starts = arith.muli %rs, %size : tensor<32xi32>
  %down = tile.expand_dims %starts {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %right = tile.expand_dims %cs {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %downs = tile.broadcast %down : tensor<32x1xi32> -> tensor<32x128xi32>
  %rights = tile.broadcast %right : tensor<1x128xi32> -> tensor<32x128xi32>
  %i = arith.addi %downs, %rights : tensor<32x128xi32>
  %gb = tile.splat %g : !tile.ptr<f32> -> tensor<32x128x!tile.ptr<f32>>
  %gp = tile.addptr %gb, %i : tensor<32x128x!tile.ptr<f32>>, tensor<32x128xi32>
  %y = tile.load %gp : tensor<32x128x!tile.ptr<f32>>
  %qb = tile.splat %q : !tile.ptr<bf16> -> tensor<128x!tile.ptr<bf16>>
  %qp = tile.addptr %qb, %r : tensor<128x!tile.ptr<bf16>>, tensor<128xi32>
  %x = tile.load %qp : tensor<128x!tile.ptr<bf16>>
  %wide = arith.extf %x : tensor<128xbf16> to tensor<128xf32>
  %line = tile.expand_dims %wide {axis = 0 : i32} : tensor<128xf32> -> tensor<1x128xf32>
  %lines = tile.broadcast %line : tensor<1x128xf32> -> tensor<32x128xf32>
  %p = arith.mulf %y, %lines : tensor<32x128xf32>
  tile.store %gp, %p : tensor<32x128x!tile.ptr<f32>>
  func.return
}

// -----

// One of fewer elements than there are threads each warp reads for itself: an exchange would be a barrier.

// CHECK-LABEL: func.func @few
// CHECK: tile.load {{.*}} {warp.contiguity = 4 : i32{{.*}}} : tensor<64x!tile.ptr<bf16>,
// CHECK-NOT: warp.convert_layout
// CHECK: arith.extf
// CHECK: return
func.func @few(%q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %g: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %rs = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %cs = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %size = arith.constant dense<64> : tensor<32xi32>
  %starts = arith.muli %rs, %size : tensor<32xi32>
  %down = tile.expand_dims %starts {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %right = tile.expand_dims %cs {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %downs = tile.broadcast %down : tensor<32x1xi32> -> tensor<32x64xi32>
  %rights = tile.broadcast %right : tensor<1x64xi32> -> tensor<32x64xi32>
  %i = arith.addi %downs, %rights : tensor<32x64xi32>
  %gb = tile.splat %g : !tile.ptr<f32> -> tensor<32x64x!tile.ptr<f32>>
  %gp = tile.addptr %gb, %i : tensor<32x64x!tile.ptr<f32>>, tensor<32x64xi32>
  %y = tile.load %gp : tensor<32x64x!tile.ptr<f32>>
  %qb = tile.splat %q : !tile.ptr<bf16> -> tensor<64x!tile.ptr<bf16>>
  %qp = tile.addptr %qb, %r : tensor<64x!tile.ptr<bf16>>, tensor<64xi32>
  %x = tile.load %qp : tensor<64x!tile.ptr<bf16>>
  %wide = arith.extf %x : tensor<64xbf16> to tensor<64xf32>
  %line = tile.expand_dims %wide {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
  %lines = tile.broadcast %line : tensor<1x64xf32> -> tensor<32x64xf32>
  %p = arith.mulf %y, %lines : tensor<32x64xf32>
  tile.store %gp, %p : tensor<32x64x!tile.ptr<f32>>
  func.return
}

// -----

// 256 indices are compared with 32 numbers: where they are compared a lane has 64 of them. They are loaded as they lie,
// each once, and exchanged.

// CHECK-LABEL: func.func @compare
// CHECK: tile.load {{.*}} : tensor<256x!tile.ptr<i32>, #[[$ONCE:.*]]>
// CHECK: warp.convert_layout {{.*}} : tensor<256xi32, #[[$ONCE]]>
// CHECK: tile.reduce
func.func @compare(%x: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %out: !tile.ptr<i32> {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %at = tile.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %bins = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %xs = tile.splat %x : !tile.ptr<i32> -> tensor<256x!tile.ptr<i32>>
  %p = tile.addptr %xs, %at : tensor<256x!tile.ptr<i32>>, tensor<256xi32>
  %v = tile.load %p : tensor<256x!tile.ptr<i32>>
  %rows = tile.expand_dims %v {axis = 1 : i32} : tensor<256xi32> -> tensor<256x1xi32>
  %columns = tile.expand_dims %bins {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %a = tile.broadcast %rows : tensor<256x1xi32> -> tensor<256x32xi32>
  %b = tile.broadcast %columns : tensor<1x32xi32> -> tensor<256x32xi32>
  %same = arith.cmpi eq, %a, %b : tensor<256x32xi32>
  %ones = arith.extui %same : tensor<256x32xi1> to tensor<256x32xi32>
  %count = tile.reduce %ones {axis = 0 : i32} : (tensor<256x32xi32>) -> tensor<32xi32> {
  ^bb0(%l: i32, %r: i32):
    %s = arith.addi %l, %r : i32
    tile.yield %s : i32
  }
  %os = tile.splat %out : !tile.ptr<i32> -> tensor<32x!tile.ptr<i32>>
  %q = tile.addptr %os, %bins : tensor<32x!tile.ptr<i32>>, tensor<32xi32>
  tile.store %q, %count : tensor<32x!tile.ptr<i32>>
  func.return
}

// -----

// Their vectors keep the layouts that their schedules were chosen for.

// CHECK-LABEL: func.func @written_vector
// CHECK-NOT: warp.convert_layout {{.*}}256xi32
// CHECK: tile.reduce
func.func @written_vector(%x: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %out: !tile.ptr<i32> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.orders_accesses} {
  %at = tile.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %bins = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %xs = tile.splat %x : !tile.ptr<i32> -> tensor<256x!tile.ptr<i32>>
  %p = tile.addptr %xs, %at : tensor<256x!tile.ptr<i32>>, tensor<256xi32>
  %v = tile.load %p : tensor<256x!tile.ptr<i32>>
  %rows = tile.expand_dims %v {axis = 1 : i32} : tensor<256xi32> -> tensor<256x1xi32>
  %columns = tile.expand_dims %bins {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %a = tile.broadcast %rows : tensor<256x1xi32> -> tensor<256x32xi32>
  %b = tile.broadcast %columns : tensor<1x32xi32> -> tensor<256x32xi32>
  %same = arith.cmpi eq, %a, %b : tensor<256x32xi32>
  %ones = arith.extui %same : tensor<256x32xi1> to tensor<256x32xi32>
  %count = tile.reduce %ones {axis = 0 : i32} : (tensor<256x32xi32>) -> tensor<32xi32> {
  ^bb0(%l: i32, %r: i32):
    %s = arith.addi %l, %r : i32
    tile.yield %s : i32
  }
  %os = tile.splat %out : !tile.ptr<i32> -> tensor<32x!tile.ptr<i32>>
  %q = tile.addptr %os, %bins : tensor<32x!tile.ptr<i32>>, tensor<32xi32>
  tile.store %q, %count : tensor<32x!tile.ptr<i32>>
  func.return
}

// -----

// What is scanned down its rows has neighbours in registers, then in lanes, then in warps: which rows a thread has is all
// the same to memory.

// CHECK: #[[$DOWN:.*]] = #warp.layout<[64, 64], register = {{\[}}[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], lane = {{\[}}[0, 4], [0, 8], [0, 16], [0, 32], [8, 0]], warp = {{\[}}[16, 0], [32, 0]]>
// CHECK-LABEL: func.func @scan_down
// CHECK: tile.load {{.*}} : tensor<64x64x!tile.ptr<f32>, #[[$DOWN]]>
// CHECK-NOT: warp.convert_layout
// CHECK: return
func.func @scan_down(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.orders_accesses, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %rs = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %size = arith.constant dense<64> : tensor<64xi32>
  %starts = arith.muli %rs, %size : tensor<64xi32>
  %down = tile.expand_dims %starts {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %right = tile.expand_dims %rs {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %downs = tile.broadcast %down : tensor<64x1xi32> -> tensor<64x64xi32>
  %rights = tile.broadcast %right : tensor<1x64xi32> -> tensor<64x64xi32>
  %i = arith.addi %downs, %rights : tensor<64x64xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  %p = tile.addptr %xs, %i : tensor<64x64x!tile.ptr<f32>>, tensor<64x64xi32>
  %v = tile.load %p : tensor<64x64x!tile.ptr<f32>>
  %sums = tile.scan %v {axis = 0 : i32} : (tensor<64x64xf32>) -> tensor<64x64xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  tile.store %p, %sums : tensor<64x64x!tile.ptr<f32>>
  func.return
}

// -----

// Rows of four halves whose neighbours are loaded one by one, as they begin between words, and weighed and stored whole:
// a lane takes a row, so that its weights are one load, and the store is one instruction.

// CHECK: #[[$ROW:.*]] = #warp.layout<[128, 4], register = {{\[\[}}0, 1], [0, 2]], lane = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = {{\[\[}}32, 0], [64, 0]]>
// CHECK-LABEL: func.func @shift_rows
// CHECK: tile.load {{.*}} : tensor<128x4x!tile.ptr<f16>, #[[$ROW]]>
// CHECK-NOT: warp.convert_layout
// CHECK: tile.store {{.*}} {warp.contiguity = 4 : i32} : tensor<128x4x!tile.ptr<f16>, #[[$ROW]]>
func.func @shift_rows(%x: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %w: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %out: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel} {
  %rs = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %cs = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %four = arith.constant dense<4> : tensor<128xi32>
  %one = arith.constant dense<1> : tensor<128x4xi32>
  %starts = arith.muli %rs, %four : tensor<128xi32>
  %down = tile.expand_dims %starts {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %right = tile.expand_dims %cs {axis = 0 : i32} : tensor<4xi32> -> tensor<1x4xi32>
  %downs = tile.broadcast %down : tensor<128x1xi32> -> tensor<128x4xi32>
  %rights = tile.broadcast %right : tensor<1x4xi32> -> tensor<128x4xi32>
  %i = arith.addi %downs, %rights : tensor<128x4xi32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<128x4x!tile.ptr<f16>>
  %p = tile.addptr %xs, %i : tensor<128x4x!tile.ptr<f16>>, tensor<128x4xi32>
  %next = tile.addptr %p, %one : tensor<128x4x!tile.ptr<f16>>, tensor<128x4xi32>
  %v = tile.load %next : tensor<128x4x!tile.ptr<f16>>
  tile.store %p, %v : tensor<128x4x!tile.ptr<f16>>
  %ws = tile.splat %w : !tile.ptr<f16> -> tensor<128x4x!tile.ptr<f16>>
  %wp = tile.addptr %ws, %i : tensor<128x4x!tile.ptr<f16>>, tensor<128x4xi32>
  %weights = tile.load %wp : tensor<128x4x!tile.ptr<f16>>
  %product = arith.mulf %v, %weights : tensor<128x4xf16>
  %wide = arith.extf %product : tensor<128x4xf16> to tensor<128x4xf32>
  %sum = tile.reduce %wide {axis = 1 : i32} : (tensor<128x4xf32>) -> tensor<128xf32> {
  ^bb0(%l: f32, %r: f32):
    %s = arith.addf %l, %r : f32
    tile.yield %s : f32
  }
  %os = tile.splat %out : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %q = tile.addptr %os, %rs : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  tile.store %q, %sum : tensor<128x!tile.ptr<f32>>
  func.return
}

// -----

// Of rows of 64 the two halves, which lanes have between them as they load: they exchange a half of what they hold, and
// hold neighbours of either.

// CHECK: #[[$PAIRS:.*]] = #warp.layout<[16, 32, 2], register = {{\[\[}}0, 0, 1], [0, 1, 0], [0, 2, 0], [0, 4, 0]], lane = {{\[\[}}0, 8, 0], [0, 16, 0], [8, 0, 0], [1, 0, 0], [2, 0, 0]]
// CHECK-LABEL: func.func @halves
// CHECK: warp.convert_layout {{.*}} -> tensor<16x32x2xf16, #[[$PAIRS]]>
// CHECK-NEXT: tile.split
// CHECK-NOT: warp.convert_layout
// CHECK: tile.store
func.func @halves(%x: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f16> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 2>} {
  %c = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<f16> -> tensor<1024x!tile.ptr<f16>>
  %p = tile.addptr %xs, %c : tensor<1024x!tile.ptr<f16>>, tensor<1024xi32>
  %v = tile.load %p : tensor<1024x!tile.ptr<f16>>
  %r = tile.reshape %v : tensor<1024xf16> -> tensor<16x2x32xf16>
  %t = tile.permute %r {order = array<i32: 0, 2, 1>} : tensor<16x2x32xf16> -> tensor<16x32x2xf16>
  %a, %b = tile.split %t : tensor<16x32x2xf16> -> tensor<16x32xf16>, tensor<16x32xf16>
  %d = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %e = tile.reshape %d : tensor<512xi32> -> tensor<16x32xi32>
  %ys = tile.splat %y : !tile.ptr<f16> -> tensor<16x32x!tile.ptr<f16>>
  %q = tile.addptr %ys, %e : tensor<16x32x!tile.ptr<f16>>, tensor<16x32xi32>
  tile.store %q, %a : tensor<16x32x!tile.ptr<f16>>
  func.return
}

// -----

// A state that a loop multiplies by vectors and sums along its rows: two lanes have a row of 16, by pieces of four, so that
// sums take one exchange, and a lane loads half of each vector.

// CHECK: #[[$STATE:.*]] = #warp.layout<[32, 16], register = {{\[\[}}0, 1], [0, 2], [0, 8], [16, 0]], lane = {{\[\[}}0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>
// CHECK: #[[$VECTOR:.*]] = #warp.layout<[16], register = {{\[\[}}1], [2], [8]], lane = {{\[\[}}4], [0], [0], [0], [0]]>
// CHECK-LABEL: func.func @recurrence
// CHECK: scf.for {{.*}} -> (tensor<32x16xf32, #[[$STATE]]>)
// CHECK: tile.load {{.*}} {warp.contiguity = 4 : i32{{.*}}} : tensor<16x!tile.ptr<f32>, #[[$VECTOR]]>
// CHECK-NOT: warp.convert_layout
// CHECK: tile.reduce {{.*}} : (tensor<32x16xf32, #[[$STATE]]>)
// CHECK: return
func.func @recurrence(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 2>} {
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %size = arith.constant 16 : i32
  %rows = arith.constant 32 : i32
  %none = arith.constant dense<0.0> : tensor<32x16xf32>
  %c = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %r = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %state = scf.for %i = %zero to %n step %one iter_args(%s = %none) -> tensor<32x16xf32> : i32 {
    %at = arith.muli %i, %size : i32
    %xb = tile.addptr %x, %at : !tile.ptr<f32>, i32
    %xs = tile.splat %xb : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
    %xp = tile.addptr %xs, %c : tensor<16x!tile.ptr<f32>>, tensor<16xi32>
    %v = tile.load %xp : tensor<16x!tile.ptr<f32>>
    %line = tile.expand_dims %v {axis = 0 : i32} : tensor<16xf32> -> tensor<1x16xf32>
    %lines = tile.broadcast %line : tensor<1x16xf32> -> tensor<32x16xf32>
    %e = math.exp2 %lines : tensor<32x16xf32>
    %d = arith.mulf %s, %e : tensor<32x16xf32>
    %t = arith.addf %d, %lines : tensor<32x16xf32>
    %m = arith.mulf %t, %lines : tensor<32x16xf32>
    %sum = tile.reduce %m {axis = 1 : i32} : (tensor<32x16xf32>) -> tensor<32xf32> {
    ^bb0(%a: f32, %b: f32):
      %u = arith.addf %a, %b : f32
      tile.yield %u : f32
    }
    %to = arith.muli %i, %rows : i32
    %yb = tile.addptr %y, %to : !tile.ptr<f32>, i32
    %ys = tile.splat %yb : !tile.ptr<f32> -> tensor<32x!tile.ptr<f32>>
    %yp = tile.addptr %ys, %r : tensor<32x!tile.ptr<f32>>, tensor<32xi32>
    tile.store %yp, %sum : tensor<32x!tile.ptr<f32>>
    scf.yield %t : tensor<32x16xf32>
  }
  func.return
}

// -----

// Bytes of two numbers each, which are made floats and stored one after another: a lane loads the two bytes whose four
// floats it stores, and not sixteen, of which the floats would be exchanged.

// CHECK: #[[$BYTES:.*]] = #warp.layout<[1024], register = {{\[\[}}1], [64], [128], [256], [512]], lane = {{\[\[}}2], [4], [8], [16], [32]]>
// CHECK: #[[$FLOATS:.*]] = #warp.layout<[2048], register = {{\[\[}}1], [2], [128], [256], [512], [1024]], lane = {{\[\[}}4], [8], [16], [32], [64]]>
// CHECK-LABEL: func.func @unpacked
// CHECK: tile.load {{.*}} {warp.contiguity = 2 : i32{{.*}}} : tensor<1024x!tile.ptr<i8>, #[[$BYTES]]>
// CHECK-NOT: warp.convert_layout
// CHECK: tile.store {{.*}} {warp.contiguity = 4 : i32{{.*}}} : tensor<2048x!tile.ptr<f32>, #[[$FLOATS]]>
func.func @unpacked(%x: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 2>} {
  %nibble = arith.constant dense<15> : tensor<1024xi32>
  %four = arith.constant dense<4> : tensor<1024xi32>
  %c = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<i8> -> tensor<1024x!tile.ptr<i8>>
  %p = tile.addptr %xs, %c : tensor<1024x!tile.ptr<i8>>, tensor<1024xi32>
  %v = tile.load %p : tensor<1024x!tile.ptr<i8>>
  %w = arith.extui %v : tensor<1024xi8> to tensor<1024xi32>
  %low = arith.andi %w, %nibble : tensor<1024xi32>
  %high = arith.shrui %w, %four : tensor<1024xi32>
  %a = arith.uitofp %low : tensor<1024xi32> to tensor<1024xf32>
  %b = arith.uitofp %high : tensor<1024xi32> to tensor<1024xf32>
  %pairs = tile.join %a, %b : tensor<1024xf32> -> tensor<1024x2xf32>
  %all = tile.reshape %pairs : tensor<1024x2xf32> -> tensor<2048xf32>
  %d = tile.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32>
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<2048x!tile.ptr<f32>>
  %q = tile.addptr %ys, %d : tensor<2048x!tile.ptr<f32>>, tensor<2048xi32>
  tile.store %q, %all : tensor<2048x!tile.ptr<f32>>
  func.return
}

// -----

// Halves that lie far apart where they are stored are no registers of one lane beside each other: each is loaded as wide as it
// can be.

// CHECK: #[[$WIDE:.*]] = #warp.layout<[1024], register = {{\[\[}}1], [2], [4], [8], [512]]
// CHECK-LABEL: func.func @halves
// CHECK: tile.load {{.*}} {warp.contiguity = 16 : i32{{.*}}} : tensor<1024x!tile.ptr<i8>, #[[$WIDE]]>
// CHECK: tile.store {{.*}} : tensor<2048x!tile.ptr<i8>
func.func @halves(%x: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %y: !tile.ptr<i8> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 2>} {
  %one = arith.constant dense<1> : tensor<1024xi8>
  %c = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<i8> -> tensor<1024x!tile.ptr<i8>>
  %p = tile.addptr %xs, %c : tensor<1024x!tile.ptr<i8>>, tensor<1024xi32>
  %v = tile.load %p : tensor<1024x!tile.ptr<i8>>
  %w = arith.addi %v, %one : tensor<1024xi8>
  %pairs = tile.join %v, %w : tensor<1024xi8> -> tensor<1024x2xi8>
  %apart = tile.permute %pairs {order = array<i32: 1, 0>} : tensor<1024x2xi8> -> tensor<2x1024xi8>
  %all = tile.reshape %apart : tensor<2x1024xi8> -> tensor<2048xi8>
  %d = tile.make_range {start = 0 : i32, end = 2048 : i32} : tensor<2048xi32>
  %ys = tile.splat %y : !tile.ptr<i8> -> tensor<2048x!tile.ptr<i8>>
  %q = tile.addptr %ys, %d : tensor<2048x!tile.ptr<i8>>, tensor<2048xi32>
  tile.store %q, %all : tensor<2048x!tile.ptr<i8>>
  func.return
}

// -----

// What is kept of a row goes to places side by side, which a scan counts: lanes side by side store it, though the scan
// has neighbours in a lane. What is loaded for it alone lies so, too.

// CHECK-DAG: #[[$PIECES:.*]] = #warp.layout<[1024], register = {{\[\[}}1], [2], [512]]
// CHECK-DAG: #[[$LANES:.*]] = #warp.layout<[1024], register = {{.*}}, lane = {{\[\[}}1], [2], [4], [8], [16]]
// CHECK-LABEL: func.func @kept
// CHECK: tile.load {{.*}}x!tile.ptr<f32>, #[[$LANES]]>
// CHECK: tile.load {{.*}}x!tile.ptr<i8>, #[[$PIECES]]>
// CHECK: tile.scan {{.*}} -> tensor<1024xi32, #[[$PIECES]]>
// CHECK: tile.store {{.*}}x!tile.ptr<f32>, #[[$LANES]]>
func.func @kept(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %m: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32})
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
  %one = arith.constant dense<1> : tensor<1024xi32>
  %zero = arith.constant dense<0> : tensor<1024xi8>
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %v = tile.load %xp : tensor<1024x!tile.ptr<f32>>
  %ms = tile.splat %m : !tile.ptr<i8> -> tensor<1024x!tile.ptr<i8>>
  %mp = tile.addptr %ms, %r : tensor<1024x!tile.ptr<i8>>, tensor<1024xi32>
  %mv = tile.load %mp : tensor<1024x!tile.ptr<i8>>
  %keep = arith.cmpi ne, %mv, %zero : tensor<1024xi8>
  %count = arith.extui %keep : tensor<1024xi1> to tensor<1024xi32>
  %sum = tile.scan %count {axis = 0 : i32} : (tensor<1024xi32>) -> tensor<1024xi32> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tile.yield %c : i32
  }
  %at = arith.subi %sum, %one : tensor<1024xi32>
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %yp = tile.addptr %ys, %at : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  tile.store %yp, %v, %keep : tensor<1024x!tile.ptr<f32>>
  return
}

// -----

// Of what other functions scan nothing is known: it is stored as it lies.

// CHECK-LABEL: func.func @largest
// CHECK-NOT: warp.convert_layout
// CHECK: return
func.func @largest(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %m: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32})
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
  %one = arith.constant dense<1> : tensor<1024xi32>
  %zero = arith.constant dense<0> : tensor<1024xi8>
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %xs = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %xp = tile.addptr %xs, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %v = tile.load %xp : tensor<1024x!tile.ptr<f32>>
  %ms = tile.splat %m : !tile.ptr<i8> -> tensor<1024x!tile.ptr<i8>>
  %mp = tile.addptr %ms, %r : tensor<1024x!tile.ptr<i8>>, tensor<1024xi32>
  %mv = tile.load %mp : tensor<1024x!tile.ptr<i8>>
  %keep = arith.cmpi ne, %mv, %zero : tensor<1024xi8>
  %count = arith.extui %keep : tensor<1024xi1> to tensor<1024xi32>
  %sum = tile.scan %count {axis = 0 : i32} : (tensor<1024xi32>) -> tensor<1024xi32> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.maxsi %a, %b : i32
    tile.yield %c : i32
  }
  %at = arith.subi %sum, %one : tensor<1024xi32>
  %ys = tile.splat %y : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %yp = tile.addptr %ys, %at : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  tile.store %yp, %v, %keep : tensor<1024x!tile.ptr<f32>>
  return
}

// -----

// Sums of rows that are stored 8 bytes apart: a warp has neighbouring rows, which its lanes share out, so that its store
// fills two sectors and not eight.
// CHECK: #[[$APART:.*]] = #warp.layout<[32], lane = {{\[\[}}1], [2], [4], [0], [0]], warp = {{\[\[}}8], [16]]>
// CHECK-LABEL: func.func @apart
// CHECK: tile.store {{.*}} : tensor<32x!tile.ptr<f32>, #[[$APART]]>
func.func @apart(%x: !tile.ptr<f32>, %o: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %r = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %width = tile.splat %n : i32 -> tensor<32xi32>
  %starts = arith.muli %r, %width : tensor<32xi32>
  %down = tile.expand_dims %starts {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %right = tile.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %downs = tile.broadcast %down : tensor<32x1xi32> -> tensor<32x32xi32>
  %rights = tile.broadcast %right : tensor<1x32xi32> -> tensor<32x32xi32>
  %i = arith.addi %downs, %rights : tensor<32x32xi32>
  %b = tile.splat %x : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>>
  %p = tile.addptr %b, %i : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xi32>
  %v = tile.load %p : tensor<32x32x!tile.ptr<f32>>
  %s = tile.reduce %v {axis = 1 : i32} : (tensor<32x32xf32>) -> tensor<32xf32> {
  ^bb0(%c: f32, %d: f32):
    %t = arith.addf %c, %d : f32
    tile.yield %t : f32
  }
  %two = arith.constant dense<2> : tensor<32xi32>
  %to = arith.muli %r, %two : tensor<32xi32>
  %q = tile.splat %o : !tile.ptr<f32> -> tensor<32x!tile.ptr<f32>>
  %a = tile.addptr %q, %to : tensor<32x!tile.ptr<f32>>, tensor<32xi32>
  tile.store %a, %s : tensor<32x!tile.ptr<f32>>
  return
}

// -----

// As far apart as nobody knows, and of what was compared, not loaded: a warp has neighbouring rows where that takes no more.
// CHECK: #[[$APART:.*]] = #warp.layout<[64], lane = {{\[\[}}1], [2], [4], [8], [0]], warp = {{\[\[}}16], [32]]>
// CHECK-LABEL: func.func @apart_by_stride
// CHECK: tile.store {{.*}} : tensor<64x!tile.ptr<i32>, #[[$APART]]>
func.func @apart_by_stride(%x: !tile.ptr<f32>, %o: !tile.ptr<i32>, %n: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %b = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %p = tile.addptr %b, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %v = tile.load %p : tensor<64x!tile.ptr<f32>>
  %down = tile.expand_dims %v {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %right = tile.expand_dims %v {axis = 0 : i32} : tensor<64xf32> -> tensor<1x64xf32>
  %downs = tile.broadcast %down : tensor<64x1xf32> -> tensor<64x64xf32>
  %rights = tile.broadcast %right : tensor<1x64xf32> -> tensor<64x64xf32>
  %less = arith.cmpf olt, %downs, %rights : tensor<64x64xf32>
  %ones = arith.extui %less : tensor<64x64xi1> to tensor<64x64xi32>
  %s = tile.reduce %ones {axis = 1 : i32} : (tensor<64x64xi32>) -> tensor<64xi32> {
  ^bb0(%c: i32, %d: i32):
    %t = arith.addi %c, %d : i32
    tile.yield %t : i32
  }
  %width = tile.splat %n : i32 -> tensor<64xi32>
  %to = arith.muli %r, %width : tensor<64xi32>
  %q = tile.splat %o : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>>
  %a = tile.addptr %q, %to : tensor<64x!tile.ptr<i32>>, tensor<64xi32>
  tile.store %a, %s : tensor<64x!tile.ptr<i32>>
  return
}

// -----

// What is summed along one axis, and then along another: warps lie along the third, so that neither sum crosses them.
// CHECK: #[[$TILE:.*]] = #warp.layout<[4, 4, 32], register = {{\[\[}}1, 0, 0], [2, 0, 0]], lane = {{.*}}, warp = {{\[\[}}0, 1, 0], [0, 2, 0]]>
// CHECK-LABEL: func.func @summed_twice
// CHECK: tile.load {{.*}} : tensor<4x4x32x!tile.ptr<f32>, #[[$TILE]]>
func.func @summed_twice(%x: !tile.ptr<f32>, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %r = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32>
  %i = tile.reshape %r : tensor<512xi32> -> tensor<4x4x32xi32>
  %b = tile.splat %x : !tile.ptr<f32> -> tensor<4x4x32x!tile.ptr<f32>>
  %p = tile.addptr %b, %i : tensor<4x4x32x!tile.ptr<f32>>, tensor<4x4x32xi32>
  %v = tile.load %p : tensor<4x4x32x!tile.ptr<f32>>
  %s = tile.reduce %v {axis = 2 : i32} : (tensor<4x4x32xf32>) -> tensor<4x4xf32> {
  ^bb0(%c: f32, %d: f32):
    %t = arith.addf %c, %d : f32
    tile.yield %t : f32
  }
  %u = tile.reduce %s {axis = 0 : i32} : (tensor<4x4xf32>) -> tensor<4xf32> {
  ^bb0(%c: f32, %d: f32):
    %t = arith.maximumf %c, %d : f32
    tile.yield %t : f32
  }
  %to = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %q = tile.splat %o : !tile.ptr<f32> -> tensor<4x!tile.ptr<f32>>
  %a = tile.addptr %q, %to : tensor<4x!tile.ptr<f32>>, tensor<4xi32>
  tile.store %a, %u : tensor<4x!tile.ptr<f32>>
  return
}

// -----

// Columns are loaded, and twice stored as rows: what was loaded is exchanged once, while it is narrow, and scanned as it is
// stored.
// CHECK-DAG: #[[$LOADED:.*]] = #warp.layout<[8, 128], register = {{\[\[}}1, 0], [2, 0], [4, 0]], lane =
// CHECK-DAG: #[[$STORED:.*]] = #warp.layout<[8, 128], register = {{\[\[}}0, 1], [0, 2], [4, 0]], lane = {{\[\[}}0, 4], [0, 8], [0, 16], [0, 32], [0, 64]],
// CHECK-LABEL: func.func @scanned
// CHECK: tile.load {{.*}}#[[$LOADED]]>
// CHECK: warp.convert_layout {{.*}} : tensor<8x128xf16, #[[$LOADED]]> -> tensor<8x128xf16, #[[$STORED]]>
// CHECK-NOT: warp.convert_layout
// CHECK: tile.store {{.*}}#[[$STORED]]>
// CHECK: tile.scan {{.*}}#[[$STORED]]>
// CHECK-NOT: warp.convert_layout
// CHECK: return
func.func @scanned(%x: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %c: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 8 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %h = tile.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi32>
  %t = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %pitch = tile.splat %n : i32 -> tensor<128xi32>
  %starts = arith.muli %t, %pitch : tensor<128xi32>
  %h1 = tile.expand_dims %h {axis = 1 : i32} : tensor<8xi32> -> tensor<8x1xi32>
  %t1 = tile.expand_dims %t {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %s1 = tile.expand_dims %starts {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %h2 = tile.broadcast %h1 : tensor<8x1xi32> -> tensor<8x128xi32>
  %t2 = tile.broadcast %t1 : tensor<1x128xi32> -> tensor<8x128xi32>
  %s2 = tile.broadcast %s1 : tensor<1x128xi32> -> tensor<8x128xi32>
  %from = arith.addi %h2, %s2 : tensor<8x128xi32>
  %xb = tile.splat %x : !tile.ptr<f16> -> tensor<8x128x!tile.ptr<f16>>
  %xp = tile.addptr %xb, %from : tensor<8x128x!tile.ptr<f16>>, tensor<8x128xi32>
  %v = tile.load %xp : tensor<8x128x!tile.ptr<f16>>
  %w = arith.extf %v : tensor<8x128xf16> to tensor<8x128xf32>
  %e = math.exp2 %w : tensor<8x128xf32>
  %width = arith.constant dense<128> : tensor<8x128xi32>
  %rows = arith.muli %h2, %width : tensor<8x128xi32>
  %to = arith.addi %rows, %t2 : tensor<8x128xi32>
  %ob = tile.splat %o : !tile.ptr<f32> -> tensor<8x128x!tile.ptr<f32>>
  %op = tile.addptr %ob, %to : tensor<8x128x!tile.ptr<f32>>, tensor<8x128xi32>
  tile.store %op, %e : tensor<8x128x!tile.ptr<f32>>
  %sum = tile.scan %e {axis = 1 : i32} : (tensor<8x128xf32>) -> tensor<8x128xf32> {
  ^bb0(%a: f32, %b: f32):
    %d = arith.addf %a, %b : f32
    tile.yield %d : f32
  }
  %cb = tile.splat %c : !tile.ptr<f32> -> tensor<8x128x!tile.ptr<f32>>
  %cp = tile.addptr %cb, %to : tensor<8x128x!tile.ptr<f32>>, tensor<8x128xi32>
  tile.store %cp, %sum : tensor<8x128x!tile.ptr<f32>>
  return
}

// -----

// Sums of a row, with and without its own elements, stored one by one as the row was loaded: the sums are exchanged once,
// and what is computed of them and the row lies as both are stored.
// CHECK-DAG: #[[$ROW:.*]] = #warp.layout<[1024], register = {{\[\[}}128], [256], [512]], lane = {{\[\[}}1],
// CHECK-DAG: #[[$RUNS:.*]] = #warp.layout<[1024], register = {{\[\[}}1], [2], [512]],
// CHECK-LABEL: func.func @with_and_without
// CHECK: tile.load {{.*}}#[[$ROW]]>
// CHECK: warp.convert_layout {{.*}}#[[$ROW]]> -> tensor<1024xf32, #[[$RUNS]]>
// CHECK: tile.scan {{.*}}#[[$RUNS]]>
// CHECK: warp.convert_layout {{.*}}#[[$RUNS]]> -> tensor<1024xf32, #[[$ROW]]>
// CHECK-NOT: warp.convert_layout
// CHECK: arith.addf {{.*}}#[[$ROW]]>
// CHECK-NOT: warp.convert_layout
// CHECK: return
func.func @with_and_without(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32, %before: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %ends = tile.splat %n : i32 -> tensor<1024xi32>
  %in = arith.cmpi slt, %r, %ends : tensor<1024xi32>
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %b = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %p = tile.addptr %b, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %v = tile.load %p, %in, %zero : tensor<1024x!tile.ptr<f32>>
  %s = tile.scan %v {axis = 0 : i32} : (tensor<1024xf32>) -> tensor<1024xf32> {
  ^bb0(%a: f32, %c: f32):
    %d = arith.addf %a, %c : f32
    tile.yield %d : f32
  }
  %carry = tile.splat %before : f32 -> tensor<1024xf32>
  %with = arith.addf %s, %carry : tensor<1024xf32>
  %without = arith.subf %with, %v : tensor<1024xf32>
  %ob = tile.splat %o : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %op = tile.addptr %ob, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  tile.store %op, %with, %in : tensor<1024x!tile.ptr<f32>>
  %oq = tile.addptr %op, %ends : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  tile.store %oq, %without, %in : tensor<1024x!tile.ptr<f32>>
  return
}

// -----

// Ones that say which rows are of which column are counted down the columns: nothing is loaded of their shape, but a thread
// has neighbouring rows, which it joins by itself. What is stored at places of them is so by lanes of their own.

// CHECK-DAG: #[[$HOT:.*]] = #warp.layout<[256, 16], register = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], lane =
// CHECK-DAG: #[[$EACH:.*]] = #warp.layout<[256], register = {{\[\[}}128]], lane = {{\[\[}}1], [2], [4], [8], [16]], warp =
// CHECK-LABEL: func.func @ranks
// CHECK: tile.scan {{.*}} : (tensor<256x16xi32, #[[$HOT]]>)
// CHECK: tile.store {{.*}} : tensor<256x!tile.ptr<i32>, #[[$EACH]]>
func.func @ranks(%x: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %out: !tile.ptr<i32> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %at = tile.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %bins = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %xs = tile.splat %x : !tile.ptr<i32> -> tensor<256x!tile.ptr<i32>>
  %p = tile.addptr %xs, %at : tensor<256x!tile.ptr<i32>>, tensor<256xi32>
  %v = tile.load %p : tensor<256x!tile.ptr<i32>>
  %rows = tile.expand_dims %v {axis = 1 : i32} : tensor<256xi32> -> tensor<256x1xi32>
  %columns = tile.expand_dims %bins {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %a = tile.broadcast %rows : tensor<256x1xi32> -> tensor<256x16xi32>
  %b = tile.broadcast %columns : tensor<1x16xi32> -> tensor<256x16xi32>
  %same = arith.cmpi eq, %a, %b : tensor<256x16xi32>
  %ones = arith.extui %same : tensor<256x16xi1> to tensor<256x16xi32>
  %ranks = tile.scan %ones {axis = 0 : i32} : (tensor<256x16xi32>) -> tensor<256x16xi32> {
  ^bb0(%l: i32, %r: i32):
    %s = arith.addi %l, %r : i32
    tile.yield %s : i32
  }
  %own = arith.muli %ranks, %ones : tensor<256x16xi32>
  %place = tile.reduce %own {axis = 1 : i32} : (tensor<256x16xi32>) -> tensor<256xi32> {
  ^bb0(%l: i32, %r: i32):
    %s = arith.addi %l, %r : i32
    tile.yield %s : i32
  }
  %os = tile.splat %out : !tile.ptr<i32> -> tensor<256x!tile.ptr<i32>>
  %q = tile.addptr %os, %place : tensor<256x!tile.ptr<i32>>, tensor<256xi32>
  tile.store %q, %at : tensor<256x!tile.ptr<i32>>
  func.return
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Every op and type of the dialect, printed and read back.
// RUN: weft-opt %s | weft-opt | FileCheck %s
// RUN: weft-opt --mlir-print-op-generic %s | weft-opt | FileCheck %s

// Layouts are printed once, at the top; registers, lanes and warps apart from offsets.
// CHECK-DAG: #[[$ACC:layout[0-9]*]] = #warp.layout<[32, 16], register = {{\[\[}}0, 1], [8, 0], [0, 8]], lane = {{\[\[}}0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = {{\[\[}}16, 0]]>
// CHECK-DAG: #[[$B:layout[0-9]*]] = #warp.layout<[16, 16], register = {{\[\[}}1, 0], [8, 0], [0, 8]], lane = {{\[\[}}2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = {{\[\[}}0, 0]]>
// CHECK-DAG: #[[$S:shared[0-9]*]] = #warp.layout<[16, 16], offset = {{\[\[}}0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
// CHECK-DAG: #[[$T:shared[0-9]*]] = #warp.layout<[16, 16], offset = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>
// CHECK-DAG: #[[$BLOCKS:layout[0-9]*]] = #warp.layout<[64], lane = {{\[\[}}1], [2], [4], [8], [16]], block = {{\[\[}}32]]>
#acc = #warp.layout<[32, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#a = #warp.layout<[32, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#b = #warp.layout<[16, 16], register = [[1, 0], [8, 0], [0, 8]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0]]>
#p = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[0, 0]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
#t = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>

// CHECK-LABEL: func.func @exchange
// CHECK: warp.convert_layout %{{.*}} : tensor<16x16xf16, #[[$P:layout[0-9]*]]> -> tensor<16x16xf16, #[[$B]]>
// CHECK: warp.mma %{{.*}}, %{{.*}}, %{{.*}} {shape = array<i32: 16, 8, 16>} : tensor<32x16xf16, #[[$ACC]]> * tensor<16x16xf16, #[[$B]]> -> tensor<32x16xf32, #[[$ACC]]>
func.func @exchange(%x: tensor<32x16xf16, #a>, %y: tensor<16x16xf16, #p>, %z: tensor<32x16xf32, #acc>) {
  %b = warp.convert_layout %y : tensor<16x16xf16, #p> -> tensor<16x16xf16, #b>
  %d = warp.mma %x, %b, %z {shape = array<i32: 16, 8, 16>} : tensor<32x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<32x16xf32, #acc>
  return
}

// CHECK-LABEL: func.func @memory
// CHECK: %[[R:.*]] = warp.alloc {offset = 256 : i64} : <stages = 2, 16x16xf16, #[[$S]]>
// CHECK: %[[S0:.*]] = warp.stage %[[R]][%{{.*}}] : <stages = 2, 16x16xf16, #[[$S]]> -> <16x16xf16, #[[$S]]>
// CHECK: warp.async_copy %{{.*}} to %[[S0]] {contiguity = 8 : i32} : tensor<16x16x!tile.ptr<f16>, #[[$P]]> -> <16x16xf16, #[[$S]]>
// CHECK: warp.async_copy %{{.*}} masked %{{.*}} to %[[S0]] {contiguity = 2 : i32} : tensor<16x16x!tile.ptr<f16>, #[[$P]]>, tensor<16x16xi1, #[[$P]]> -> <16x16xf16, #[[$S]]>
// CHECK: warp.async_commit
// CHECK: warp.async_wait {pending = 1 : i32}
// CHECK: warp.async_copy %{{.*}} masked %{{.*}} to %[[S0]] {contiguity = 8 : i32, throughL1, undefined} :
// CHECK: warp.fence
// CHECK: warp.barrier
// CHECK: warp.permute_shared %[[S0]] {order = array<i32: 1, 0>} : <16x16xf16, #[[$S]]> -> <16x16xf16, #[[$T]]>
// CHECK: warp.load_shared %{{.*}} : <16x16xf16, #[[$T]]> -> tensor<16x16xf16, #[[$B]]>
// CHECK: warp.load_shifted %{{.*}} {axis = 0 : i32, offset = 1 : i32} : <16x16xf16, #[[$T]]> -> tensor<16x16xf16, #[[$B]]>
// CHECK: warp.store_shared %{{.*}}, %[[S0]] : tensor<16x16xf16, #[[$B]]> -> <16x16xf16, #[[$S]]>
// CHECK: warp.dealloc %[[R]] : <stages = 2, 16x16xf16, #[[$S]]>
func.func @memory(%q: tensor<16x16x!tile.ptr<f16>, #p>, %m: tensor<16x16xi1, #p>, %i: i32) {
  %r = warp.alloc {offset = 256 : i64} : !warp.shared<stages = 2, 16x16xf16, #s>
  %s = warp.stage %r[%i] : !warp.shared<stages = 2, 16x16xf16, #s> -> !warp.shared<16x16xf16, #s>
  warp.async_copy %q to %s {contiguity = 8 : i32} : tensor<16x16x!tile.ptr<f16>, #p> -> !warp.shared<16x16xf16, #s>
  warp.async_copy %q masked %m to %s {contiguity = 2 : i32} : tensor<16x16x!tile.ptr<f16>, #p>, tensor<16x16xi1, #p> -> !warp.shared<16x16xf16, #s>
  warp.async_commit
  warp.async_wait {pending = 1 : i32}
  warp.async_copy %q masked %m to %s {contiguity = 8 : i32, throughL1, undefined} : tensor<16x16x!tile.ptr<f16>, #p>, tensor<16x16xi1, #p> -> !warp.shared<16x16xf16, #s>
  warp.fence
  warp.barrier
  %t = warp.permute_shared %s {order = array<i32: 1, 0>} : !warp.shared<16x16xf16, #s> -> !warp.shared<16x16xf16, #t>
  %v = warp.load_shared %t : !warp.shared<16x16xf16, #t> -> tensor<16x16xf16, #b>
  %moved = warp.load_shifted %t {axis = 0 : i32, offset = 1 : i32} : !warp.shared<16x16xf16, #t> -> tensor<16x16xf16, #b>
  warp.store_shared %v, %s : tensor<16x16xf16, #b> -> !warp.shared<16x16xf16, #s>
  warp.dealloc %r : !warp.shared<stages = 2, 16x16xf16, #s>
  return
}

// A scalar's tile, and a layout over blocks.
// CHECK-LABEL: func.func @corners
// CHECK-SAME: !warp.shared<1xf32, #{{[a-z0-9]+}}>
// CHECK-SAME: tensor<64xf32, #[[$BLOCKS]]>
func.func @corners(%x: !warp.shared<1xf32, #warp.layout<[1]>>,
                   %y: tensor<64xf32, #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], block = [[32]]>>) {
  return
}

#line = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#one = #warp.layout<[1], offset = []>

// CHECK-LABEL: func.func @boxes
// CHECK: %[[MAP:.*]] = warp.tensor_map %{{.*}} sizes(%{{.*}}, %{{.*}}) strides(%{{.*}}) {box = array<i32: 64, 8>} : <f16>
// CHECK: warp.mbarrier_init %[[RING:.*]] : <stages = 2, 1xi64,
// CHECK: %[[FULL:.*]] = warp.stage %[[RING]]
// CHECK: warp.is_first_thread
// CHECK: warp.mbarrier_expect %[[FULL]] {bytes = 1024 : i64} : <1xi64,
// CHECK: warp.box_copy %[[MAP]][%{{.*}}, %{{.*}}] to %{{.*}} on %[[FULL]] : <8x64xf16, #{{.*}}>, <1xi64,
// CHECK: warp.mbarrier_wait %[[FULL]], %{{.*}} : <1xi64,
// CHECK: warp.box_store %[[TILE:.*]] to %[[MAP]][%{{.*}}, %{{.*}}] : <8x64xf16, #{{.*}}>
// CHECK: warp.box_store %[[TILE]] to %[[MAP]][%{{.*}}, %{{.*}}] {combine = #tile<atomic fadd>, offset = 512 : i64} : <8x64xf16, #{{.*}}>
// CHECK: warp.box_commit
// CHECK: warp.box_wait %[[TILE]] : !warp.shared<8x64xf16, #{{.*}}>
// CHECK: warp.box_wait %[[TILE]], %[[TILE]] {written} : !warp.shared<8x64xf16, #{{.*}}>, !warp.shared<8x64xf16, #{{.*}}>
// CHECK: warp.mbarrier_inval %[[RING]] : <stages = 2, 1xi64,
func.func @boxes(%p: !tile.ptr<f16>, %size: i64, %stride: i64, %i: i32) {
  %map = warp.tensor_map %p sizes(%size, %size) strides(%stride) {box = array<i32: 64, 8>} : <f16>
  %tile = warp.alloc : !warp.shared<8x64xf16, #line>
  %ring = warp.alloc : !warp.shared<stages = 2, 1xi64, #one>
  warp.mbarrier_init %ring : !warp.shared<stages = 2, 1xi64, #one>
  %full = warp.stage %ring[%i] : !warp.shared<stages = 2, 1xi64, #one> -> !warp.shared<1xi64, #one>
  %first = warp.is_first_thread
  scf.if %first {
    warp.mbarrier_expect %full {bytes = 1024 : i64} : !warp.shared<1xi64, #one>
    warp.box_copy %map[%i, %i] to %tile on %full : !warp.shared<8x64xf16, #line>, !warp.shared<1xi64, #one>
  }
  warp.mbarrier_wait %full, %i : !warp.shared<1xi64, #one>
  warp.box_store %tile to %map[%i, %i] : !warp.shared<8x64xf16, #line>
  warp.box_store %tile to %map[%i, %i] {combine = #tile<atomic fadd>, offset = 512 : i64} : !warp.shared<8x64xf16, #line>
  warp.box_commit
  warp.box_wait %tile : !warp.shared<8x64xf16, #line>
  warp.box_wait %tile, %tile {written} : !warp.shared<8x64xf16, #line>, !warp.shared<8x64xf16, #line>
  warp.mbarrier_inval %ring : !warp.shared<stages = 2, 1xi64, #one>
  return
}

// -----

#two = #warp.layout<[2], offset = [[1]]>

// CHECK-LABEL: func.func @roles
// CHECK: warp.mbarrier_init %{{.*}} {arrivals = array<i64: 1, 8>} : <stages = 2, 2xi64,
// CHECK: warp.barrier {withProducer}
// CHECK: warp.produce {
// CHECK-NEXT: warp.mbarrier_expect
// CHECK: warp.producer warps = 4 registers = 24 others = 240 {
// CHECK-NEXT: warp.mbarrier_wait %{{.*}}, %{{.*}} {index = 1 : i64} : <2xi64,
// CHECK: warp.producer warps = 1 {
// CHECK: warp.mbarrier_arrive %{{.*}} {index = 1 : i64, together} : <2xi64,
func.func @roles(%ring: !warp.shared<stages = 2, 2xi64, #two>, %to: !warp.shared<2xi64, #two>, %parity: i32) {
  warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #two>
  warp.barrier {withProducer}
  warp.produce {
    warp.mbarrier_expect %to {bytes = 16 : i64} : !warp.shared<2xi64, #two>
  }
  warp.producer warps = 4 registers = 24 others = 240 {
    warp.mbarrier_wait %to, %parity {index = 1 : i64} : !warp.shared<2xi64, #two>
  }
  warp.producer warps = 1 {
  }
  warp.mbarrier_arrive %to {index = 1 : i64, together} : !warp.shared<2xi64, #two>
  return
}

#span_rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#span = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// CHECK-LABEL: func.func @spans
// CHECK: warp.span_select %{{.*}}, %{{.*}} from %{{.*}} end(%{{.*}}) {axis = 1 : i32} : tensor<16x8xf32,
// CHECK: warp.span_select %{{.*}}, %{{.*}} from %{{.*}} lower(%{{.*}} plus %{{.*}} : tensor<16x1xi32, #{{.*}}>) upper(%{{.*}} plus %{{.*}} : tensor<16x1xi32, #{{.*}}>) least(%{{.*}}) end(%{{.*}}) {axis = 1 : i32} : tensor<16x8xf32,
func.func @spans(%x: tensor<16x8xf32, #span>, %y: tensor<16x8xf32, #span>, %begin: i32, %n: i32, %row: tensor<16x1xi32, #span_rows>) {
  %0 = warp.span_select %x, %y from %begin end(%n) {axis = 1 : i32} : tensor<16x8xf32, #span>
  %1 = warp.span_select %x, %y from %begin lower(%row plus %n : tensor<16x1xi32, #span_rows>) upper(%row plus %begin : tensor<16x1xi32, #span_rows>) least(%n) end(%begin) {axis = 1 : i32} : tensor<16x8xf32, #span>
  return
}

// CHECK-LABEL: func.func @extremes
// CHECK: warp.extreme %{{.*}} {greatest} : tensor<16x1xi32,
// CHECK: warp.extreme %{{.*}} : tensor<16x1xi32,
func.func @extremes(%row: tensor<16x1xi32, #span_rows>) -> (i32, i32) {
  %0 = warp.extreme %row {greatest} : tensor<16x1xi32, #span_rows>
  %1 = warp.extreme %row : tensor<16x1xi32, #span_rows>
  return %0, %1 : i32, i32
}

// CHECK-LABEL: func.func @any
// CHECK: warp.any %{{.*}} : tensor<16x1xi1,
func.func @any(%truths: tensor<16x1xi1, #span_rows>) -> i1 {
  %0 = warp.any %truths : tensor<16x1xi1, #span_rows>
  return %0 : i1
}

// CHECK-LABEL: func.func @round_tf32
// CHECK: warp.round_tf32 %{{.*}} : tensor<64x16xf32>
func.func @round_tf32(%x: tensor<64x16xf32>) -> tensor<64x16xf32> {
  %y = warp.round_tf32 %x : tensor<64x16xf32>
  return %y : tensor<64x16xf32>
}

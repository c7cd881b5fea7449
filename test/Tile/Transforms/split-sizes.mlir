// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --tile-split-sizes --split-input-file | FileCheck %s
// Tensors of any sizes become pieces whose sizes are powers of two, op by op.

// CHECK-LABEL: @left_alone
func.func @left_alone(%x: !tile.ptr<f32>) {
  // CHECK: tile.splat %{{.*}} -> tensor<64x!tile.ptr<f32>>
  // CHECK-NEXT: tile.load %{{.*}} : tensor<64x!tile.ptr<f32>>
  %p = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %v = tile.load %p : tensor<64x!tile.ptr<f32>>
  tile.store %p, %v : tensor<64x!tile.ptr<f32>>
  return
}

// -----

// CHECK-LABEL: @piece_by_piece
// CHECK: tile.make_range {end = 64 : i32, start = 0 : i32} : tensor<64xi32>
// CHECK: tile.make_range {end = 80 : i32, start = 64 : i32} : tensor<16xi32>
// CHECK: tile.addptr %{{.*}} {tile.contiguity = array<i32: 16>, tile.divisibility = array<i32: 96>} : tensor<64x!tile.ptr<f32>>
// CHECK: tile.addptr %{{.*}} {tile.contiguity = array<i32: 16>, tile.divisibility = array<i32: 32>} : tensor<16x!tile.ptr<f32>>
// CHECK: arith.addf %{{.*}} : tensor<64xf32>
// CHECK: arith.addf %{{.*}} : tensor<16xf32>
// CHECK: tile.store %{{.*}} : tensor<64x!tile.ptr<f32>>
// CHECK: tile.store %{{.*}} : tensor<16x!tile.ptr<f32>>
func.func @piece_by_piece(%x: !tile.ptr<f32>) {
  %p = tile.splat %x : !tile.ptr<f32> -> tensor<80x!tile.ptr<f32>>
  %i = tile.make_range {start = 0 : i32, end = 80 : i32} : tensor<80xi32>
  %a = tile.addptr %p, %i {tile.divisibility = array<i32: 96>, tile.contiguity = array<i32: 48>} : tensor<80x!tile.ptr<f32>>, tensor<80xi32>
  %v = tile.load %a : tensor<80x!tile.ptr<f32>>
  %c = arith.constant dense<1.0> : tensor<80xf32>
  %s = arith.addf %v, %c : tensor<80xf32>
  tile.store %a, %s : tensor<80x!tile.ptr<f32>>
  return
}

// -----

// CHECK-LABEL: @constants
// CHECK: arith.constant dense<[1, 2]> : tensor<2xi32>
// CHECK: arith.constant dense<3> : tensor<1xi32>
// CHECK: tile.print " x: ", %{{.*}} : tensor<2xi32> {first = array<i32: 0>}
// CHECK: tile.print " x: ", %{{.*}} : tensor<1xi32> {first = array<i32: 2>}
func.func @constants() {
  %c = arith.constant dense<[1, 2, 3]> : tensor<3xi32>
  tile.print " x: ", %c : tensor<3xi32>
  return
}

// -----

// Rows of 64 + 8 and an inner axis of 16 + 8: each piece of the product adds up two; 8 rows are filled up to 16.
// CHECK-LABEL: @product
// CHECK: %[[HIGH:.*]] = tile.dot %{{.*}} : tensor<64x16xf16> * tensor<16x16xf16> -> tensor<64x16xf32>
// CHECK: tile.dot %{{.*}}, %{{.*}}, %[[HIGH]] : tensor<64x8xf16> * tensor<8x16xf16> -> tensor<64x16xf32>
// CHECK: tile.join %{{.*}} : tensor<8x16xf32> -> tensor<8x16x2xf32>
// CHECK: %[[LOW:.*]] = tile.dot %{{.*}} : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
// CHECK: %[[SUM:.*]] = tile.dot %{{.*}}, %{{.*}}, %[[LOW]] : tensor<16x8xf16> * tensor<8x16xf16> -> tensor<16x16xf32>
// CHECK: %{{.*}}, %{{.*}} = tile.split %{{.*}} : tensor<8x16x2xf32> -> tensor<8x16xf32>, tensor<8x16xf32>
func.func @product(%x: !tile.ptr<f16>, %y: !tile.ptr<f32>) {
  %pa = tile.splat %x : !tile.ptr<f16> -> tensor<72x24x!tile.ptr<f16>>
  %pb = tile.splat %x : !tile.ptr<f16> -> tensor<24x16x!tile.ptr<f16>>
  %pc = tile.splat %y : !tile.ptr<f32> -> tensor<72x16x!tile.ptr<f32>>
  %a = tile.load %pa : tensor<72x24x!tile.ptr<f16>>
  %b = tile.load %pb : tensor<24x16x!tile.ptr<f16>>
  %c = tile.load %pc : tensor<72x16x!tile.ptr<f32>>
  %d = tile.dot %a, %b, %c : tensor<72x24xf16> * tensor<24x16xf16> -> tensor<72x16xf32>
  tile.store %pc, %d : tensor<72x16x!tile.ptr<f32>>
  return
}

// -----

// A reduction takes piece after piece; its region is applied to tensors, what it takes from outside is spread.
// CHECK-LABEL: @reduce
// CHECK: %[[A:.*]] = tile.reduce %{{.*}} {axis = 1 : i32} : (tensor<4x2xf32>) -> tensor<4xf32>
// CHECK: %[[B:.*]] = tile.reduce %{{.*}} {axis = 1 : i32} : (tensor<4x1xf32>) -> tensor<4xf32>
// CHECK: %[[S:.*]] = arith.addf %[[A]], %[[B]] : tensor<4xf32>
// CHECK: %[[F:.*]] = tile.splat %{{.*}} : f32 -> tensor<4xf32>
// CHECK: arith.mulf %[[S]], %[[F]] : tensor<4xf32>
func.func @reduce(%x: !tile.ptr<f32>, %f: f32) -> tensor<4xf32> {
  %p = tile.splat %x : !tile.ptr<f32> -> tensor<4x3x!tile.ptr<f32>>
  %v = tile.load %p : tensor<4x3x!tile.ptr<f32>>
  %s = tile.reduce %v {axis = 1 : i32} : (tensor<4x3xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    %d = arith.mulf %c, %f : f32
    tile.yield %d : f32
  }
  return %s : tensor<4xf32>
}

// -----

// A region that branches combines two results by a reduction of both.
// CHECK-LABEL: @reduce_branching
// CHECK: tile.join %{{.*}} : tensor<4xf32> -> tensor<4x2xf32>
// CHECK: tile.reduce %{{.*}} {axis = 1 : i32} : (tensor<4x2xf32>) -> tensor<4xf32>
func.func @reduce_branching(%x: !tile.ptr<f32>) -> tensor<4xf32> {
  %p = tile.splat %x : !tile.ptr<f32> -> tensor<4x3x!tile.ptr<f32>>
  %v = tile.load %p : tensor<4x3x!tile.ptr<f32>>
  %s = tile.reduce %v {axis = 1 : i32} : (tensor<4x3xf32>) -> tensor<4xf32> {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    %c = scf.if %less -> f32 {
      scf.yield %a : f32
    } else {
      scf.yield %b : f32
    }
    tile.yield %c : f32
  }
  return %s : tensor<4xf32>
}

// -----

// A function of scalars takes each piece, with its region.
// CHECK-LABEL: @map
// CHECK: tile.map %{{.*}} {pack = 2 : i32} : (tensor<2xi32>) -> tensor<2xi32>
// CHECK: tile.map %{{.*}} {pack = 2 : i32} : (tensor<1xi32>) -> tensor<1xi32>
func.func @map(%x: !tile.ptr<i32>) {
  %p = tile.splat %x : !tile.ptr<i32> -> tensor<3x!tile.ptr<i32>>
  %v = tile.load %p : tensor<3x!tile.ptr<i32>>
  %s = tile.map %v {pack = 2 : i32} : (tensor<3xi32>) -> tensor<3xi32> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.muli %a, %a : i32
    %d = arith.muli %b, %b : i32
    tile.yield %c, %d : i32, i32
  }
  tile.store %p, %s : tensor<3x!tile.ptr<i32>>
  return
}

// -----

// In reverse, the last piece is first; what it begins with is combined with all elements before.
// CHECK-LABEL: @scan
// CHECK: %[[LAST:.*]] = tile.scan %{{.*}} {axis = 0 : i32, reverse} : (tensor<1xi32>) -> tensor<1xi32>
// CHECK: %[[FIRST:.*]] = tile.scan %{{.*}} {axis = 0 : i32, reverse} : (tensor<2xi32>) -> tensor<2xi32>
// CHECK: %[[PICKED:.*]] = tile.gather %[[LAST]]
// CHECK: %[[CARRY:.*]] = tile.broadcast %[[PICKED]] : tensor<1xi32> -> tensor<2xi32>
// CHECK: arith.addi %[[CARRY]], %[[FIRST]] : tensor<2xi32>
func.func @scan(%x: !tile.ptr<i32>) {
  %p = tile.splat %x : !tile.ptr<i32> -> tensor<3x!tile.ptr<i32>>
  %v = tile.load %p : tensor<3x!tile.ptr<i32>>
  %s = tile.scan %v {axis = 0 : i32, reverse} : (tensor<3xi32>) -> tensor<3xi32> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tile.yield %c : i32
  }
  tile.store %p, %s : tensor<3x!tile.ptr<i32>>
  return
}

// -----

// A loop carries each piece.
// CHECK-LABEL: @loop
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<2xf32>, tensor<1xf32>)
// CHECK: scf.if
// CHECK: scf.yield %{{.*}}, %{{.*}} : tensor<2xf32>, tensor<1xf32>
func.func @loop(%x: !tile.ptr<f32>, %n: i32, %c: i1) {
  %p = tile.splat %x : !tile.ptr<f32> -> tensor<3x!tile.ptr<f32>>
  %v = tile.load %p : tensor<3x!tile.ptr<f32>>
  %zero = arith.constant 0 : i32
  %one = arith.constant 1 : i32
  %r = scf.for %i = %zero to %n step %one iter_args(%s = %v) -> tensor<3xf32> : i32 {
    %t = scf.if %c -> tensor<3xf32> {
      %u = arith.addf %s, %v : tensor<3xf32>
      scf.yield %u : tensor<3xf32>
    } else {
      scf.yield %s : tensor<3xf32>
    }
    scf.yield %t : tensor<3xf32>
  }
  tile.store %p, %r : tensor<3x!tile.ptr<f32>>
  return
}

// -----

// [3, 32] as 96: the pieces' elements lie in one order, and nothing is moved.
// CHECK-LABEL: @reshape
// CHECK: tile.reshape %{{.*}} : tensor<2x32xf32> -> tensor<64xf32>
// CHECK-NEXT: tile.reshape %{{.*}} : tensor<1x32xf32> -> tensor<32xf32>
// CHECK-NOT: tile.join
func.func @reshape(%x: !tile.ptr<f32>) {
  %p = tile.splat %x : !tile.ptr<f32> -> tensor<3x32x!tile.ptr<f32>>
  %v = tile.load %p : tensor<3x32x!tile.ptr<f32>>
  %q = tile.splat %x : !tile.ptr<f32> -> tensor<96x!tile.ptr<f32>>
  %r = tile.reshape %v : tensor<3x32xf32> -> tensor<96xf32>
  tile.store %q, %r : tensor<96x!tile.ptr<f32>>
  return
}

// -----

// Of two pieces the later one counts where the index lies in it.
// CHECK-LABEL: @gather
// CHECK: tile.gather %{{.*}} : tensor<2xf32>[tensor<4xi32>] -> tensor<4xf32>
// CHECK: %[[WITHIN:.*]] = arith.subi
// CHECK: %[[BOUNDED:.*]] = arith.andi %[[WITHIN]]
// CHECK: tile.gather %{{.*}}[%[[BOUNDED]]] {{.*}} : tensor<1xf32>[tensor<4xi32>] -> tensor<4xf32>
// CHECK: arith.cmpi sge, %[[WITHIN]]
// CHECK: arith.select
func.func @gather(%x: !tile.ptr<f32>, %i: tensor<4xi32>) -> tensor<4xf32> {
  %p = tile.splat %x : !tile.ptr<f32> -> tensor<3x!tile.ptr<f32>>
  %v = tile.load %p : tensor<3x!tile.ptr<f32>>
  %g = tile.gather %v[%i] {axis = 0 : i32} : tensor<3xf32>[tensor<4xi32>] -> tensor<4xf32>
  return %g : tensor<4xf32>
}

// -----

// CHECK-LABEL: @histogram
// CHECK-COUNT-4: tile.histogram
// CHECK-NOT: tile.histogram
func.func @histogram(%x: !tile.ptr<i32>) {
  %p = tile.splat %x : !tile.ptr<i32> -> tensor<3x!tile.ptr<i32>>
  %v = tile.load %p : tensor<3x!tile.ptr<i32>>
  %q = tile.splat %x : !tile.ptr<i32> -> tensor<12x!tile.ptr<i32>>
  %h = tile.histogram %v : tensor<3xi32> -> tensor<12xi32>
  tile.store %q, %h : tensor<12x!tile.ptr<i32>>
  return
}

// A function that branches is applied to what comes before and after by a scan of the two.
// CHECK-LABEL: @branching_scan
// CHECK: %[[FIRST:.*]] = tile.scan %{{.*}} {axis = 0 : i32} : (tensor<2xf32>) -> tensor<2xf32>
// CHECK: %[[REST:.*]] = tile.scan %{{.*}} {axis = 0 : i32} : (tensor<1xf32>) -> tensor<1xf32>
// CHECK: %[[BEFORE:.*]] = tile.gather %[[FIRST]]
// CHECK: %[[CARRY:.*]] = tile.broadcast %[[BEFORE]]
// CHECK: %[[PAIR:.*]] = tile.join %[[CARRY]], %[[REST]]
// CHECK: %[[BOTH:.*]] = tile.scan %[[PAIR]] {axis = 1 : i32} : (tensor<1x2xf32>) -> tensor<1x2xf32>
// CHECK: tile.split %[[BOTH]]
func.func @branching_scan(%x: !tile.ptr<f32>) {
  %p = tile.splat %x : !tile.ptr<f32> -> tensor<3x!tile.ptr<f32>>
  %v = tile.load %p : tensor<3x!tile.ptr<f32>>
  %s = tile.scan %v {axis = 0 : i32} : (tensor<3xf32>) -> tensor<3xf32> {
  ^bb0(%a: f32, %b: f32):
    %less = arith.cmpf olt, %a, %b : f32
    %c = scf.if %less -> f32 {
      scf.yield %a : f32
    } else {
      scf.yield %b : f32
    }
    tile.yield %c : f32
  }
  tile.store %p, %s : tensor<3x!tile.ptr<f32>>
  return
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --split-input-file --tile-unroll-loops --canonicalize %s | FileCheck %s

// The loop inside goes first; then the one around it is short.
// CHECK-LABEL: func.func @stencil(
// CHECK-SAME:    %[[X:.*]]: tensor<128xi32>
// CHECK-NOT:     scf.for
// CHECK-COUNT-6: arith.muli
// CHECK-NOT:     arith.muli
// CHECK:         return
func.func @stencil(%x: tensor<128xi32>) -> tensor<128xi32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %c3 = arith.constant 3 : i32
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%outer = %x) -> (tensor<128xi32>) : i32 {
    %rows = tile.splat %i : i32 -> tensor<128xi32>
    %s = scf.for %j = %c0 to %c3 step %c1 iter_args(%inner = %outer) -> (tensor<128xi32>) : i32 {
      %moved = arith.addi %inner, %rows : tensor<128xi32>
      %next = arith.muli %moved, %inner : tensor<128xi32>
      scf.yield %next : tensor<128xi32>
    }
    scf.yield %s : tensor<128xi32>
  }
  return %r : tensor<128xi32>
}

// -----

// Eight warps hold 16 elements of 4,096 each: 32 iterations are 512 instructions, and 1,024 on four warps.
// CHECK-LABEL: func.func @eight
// CHECK-NOT:     scf.for
func.func @eight(%x: tensor<4096xf32>) -> tensor<4096xf32> attributes {tile.schedule = #tile.schedule<warps = 8, stages = 3>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %r = scf.for %i = %c0 to %c32 step %c1 iter_args(%sum = %x) -> (tensor<4096xf32>) : i32 {
    %next = arith.addf %sum, %x : tensor<4096xf32>
    scf.yield %next : tensor<4096xf32>
  }
  return %r : tensor<4096xf32>
}

// -----

// CHECK-LABEL: func.func @four
// CHECK:         scf.for
func.func @four(%x: tensor<4096xf32>) -> tensor<4096xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c32 = arith.constant 32 : i32
  %r = scf.for %i = %c0 to %c32 step %c1 iter_args(%sum = %x) -> (tensor<4096xf32>) : i32 {
    %next = arith.addf %sum, %x : tensor<4096xf32>
    scf.yield %next : tensor<4096xf32>
  }
  return %r : tensor<4096xf32>
}

// -----

// How often it runs is not known.
// CHECK-LABEL: func.func @unknown
// CHECK:         scf.for
func.func @unknown(%x: f32, %n: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %x) -> (f32) : i32 {
    %next = arith.addf %sum, %sum : f32
    scf.yield %next : f32
  }
  return %r : f32
}

// -----

// Copies run ahead of products, and what a loop adds up threads bring together behind it.
// CHECK-LABEL: func.func @products
// CHECK:         scf.for
// CHECK:         scf.for
func.func @products(%a: tensor<16x16xf16>, %x: tensor<16x16xf32>) -> (tensor<16x16xf32>, f32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %zero = arith.constant 0.0 : f32
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%acc = %x) -> (tensor<16x16xf32>) : i32 {
    %next = tile.dot %a, %a, %acc : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  }
  %t = scf.for %i = %c0 to %c2 step %c1 iter_args(%sum = %zero) -> (f32) : i32 {
    %row = tile.reduce %x {axis = 0 : i32} : (tensor<16x16xf32>) -> tensor<16xf32> {
    ^bb0(%p: f32, %q: f32):
      %s = arith.addf %p, %q : f32
      tile.yield %s : f32
    }
    %all = tile.reduce %row {axis = 0 : i32} : (tensor<16xf32>) -> f32 {
    ^bb0(%p: f32, %q: f32):
      %s = arith.addf %p, %q : f32
      tile.yield %s : f32
    }
    %next = arith.addf %sum, %all : f32
    scf.yield %next : f32
  }
  return %r, %t : tensor<16x16xf32>, f32
}

// -----

// Largest numbers of a block of 128, which are no sums: two iterations are 2 · (1 + 10) instructions and some.
// CHECK-LABEL: func.func @largest
// CHECK-NOT:     scf.for
// CHECK-COUNT-2: tile.reduce
func.func @largest(%p: tensor<128x!tile.ptr<f32>>, %x: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%most = %x) -> (f32) : i32 {
    %steps = tile.splat %i : i32 -> tensor<128xi32>
    %at = tile.addptr %p, %steps : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
    %v = tile.load %at : tensor<128x!tile.ptr<f32>>
    %largest = tile.reduce %v {axis = 0 : i32} : (tensor<128xf32>) -> f32 {
    ^bb0(%a: f32, %b: f32):
      %m = arith.maximumf %a, %b : f32
      tile.yield %m : f32
    }
    %next = arith.maximumf %most, %largest : f32
    scf.yield %next : f32
  }
  return %r : f32
}

// -----

// Each of 64 rows' largest number is five exchanges; four warps share the rows: eight iterations are more than 600.
// CHECK-LABEL: func.func @largest_of_rows
// CHECK:         scf.for
func.func @largest_of_rows(%x: tensor<64x64xf32>, %y: tensor<64xf32>) -> tensor<64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c8 = arith.constant 8 : i32
  %r = scf.for %i = %c0 to %c8 step %c1 iter_args(%most = %y) -> (tensor<64xf32>) : i32 {
    %largest = tile.reduce %x {axis = 1 : i32} : (tensor<64x64xf32>) -> tensor<64xf32> {
    ^bb0(%a: f32, %b: f32):
      %m = arith.maximumf %a, %b : f32
      tile.yield %m : f32
    }
    %next = arith.maximumf %most, %largest : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// -----

// Who wrote the kernel says how many iterations' loads run ahead.
// CHECK-LABEL: func.func @said
// CHECK:         scf.for
func.func @said(%x: f32, %p: !tile.ptr<f32>) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%sum = %x) -> (f32) : i32 {
    %at = tile.addptr %p, %i : !tile.ptr<f32>, i32
    %v = tile.load %at : !tile.ptr<f32>
    %next = arith.addf %sum, %v : f32
    scf.yield %next : f32
  } {tile.num_stages = 4 : i32}
  return %r : f32
}

// -----

// Loads under a condition do not run ahead, however many stages are asked for.
// CHECK-LABEL: func.func @under_a_condition
// CHECK-NOT:     scf.for
// CHECK-COUNT-2: tile.load
// CHECK-NOT:     tile.load
// CHECK:         return
func.func @under_a_condition(%x: f32, %p: !tile.ptr<f32>, %n: i32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%sum = %x) -> (f32) : i32 {
    %inside = arith.cmpi slt, %i, %n : i32
    %next = scf.if %inside -> (f32) {
      %at = tile.addptr %p, %i : !tile.ptr<f32>, i32
      %v = tile.load %at : !tile.ptr<f32>
      %more = arith.addf %sum, %v : f32
      scf.yield %more : f32
    } else {
      scf.yield %sum : f32
    }
    scf.yield %next : f32
  } {tile.num_stages = 2 : i32}
  return %r : f32
}

// -----

// Warps of their own are asked for.
// CHECK-LABEL: func.func @specialised
// CHECK:         scf.for
func.func @specialised(%x: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c2 = arith.constant 2 : i32
  %r = scf.for %i = %c0 to %c2 step %c1 iter_args(%sum = %x) -> (f32) : i32 {
    %next = arith.addf %sum, %sum : f32
    scf.yield %next : f32
  } {tile.num_stages = 2 : i32, tile.warp_specialize}
  return %r : f32
}

// -----

// Two iterations a turn, as is asked for, and another loop for what is left; no more of a loop with a product.
// CHECK-LABEL: func.func @by_a_factor
// CHECK:         scf.for
// CHECK-COUNT-2: arith.muli %{{.*}} : tensor<128xi32>
// CHECK:         scf.yield
// CHECK:         scf.for
// CHECK-COUNT-1: arith.muli %{{.*}} : tensor<128xi32>
// CHECK:         scf.yield
// CHECK-NOT:     tile.unroll_factor
// CHECK:         scf.for
// CHECK-COUNT-1: tile.dot
// CHECK:         scf.yield
// CHECK-NOT:     scf.for
// CHECK:         return
func.func @by_a_factor(%x: tensor<128xi32>, %a: tensor<16x16xf16>, %n: i32) -> (tensor<128xi32>, tensor<16x16xf32>) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x) -> (tensor<128xi32>) : i32 {
    %s = tile.splat %i : i32 -> tensor<128xi32>
    %moved = arith.addi %y, %s : tensor<128xi32>
    %next = arith.muli %moved, %y : tensor<128xi32>
    scf.yield %next : tensor<128xi32>
  } {tile.unroll_factor = 2 : i32}
  %d = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<16x16xf32>) : i32 {
    %next = tile.dot %a, %a, %sum : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
    scf.yield %next : tensor<16x16xf32>
  } {tile.unroll_factor = 2 : i32}
  return %r, %d : tensor<128xi32>, tensor<16x16xf32>
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --split-input-file --tile-hoist-loads %s | FileCheck %s

// What is the same in all iterations is read once, where the loop runs at all; what moves is not.
// CHECK-LABEL: func.func @rows
// CHECK-SAME:    %[[P:[a-z0-9]+]]: tensor<64x!tile.ptr<f32>>, %[[M:[a-z0-9]+]]: tensor<64xi1>
// CHECK:         %[[RUNS:.*]] = arith.cmpi slt, %c0_i32, %[[N:.*]] : i32
// CHECK:         %[[ALL:.*]] = tile.splat %[[RUNS]] : i1 -> tensor<64xi1>
// CHECK:         %[[MASK:.*]] = arith.andi %[[M]], %[[ALL]]
// CHECK:         %[[X:.*]] = tile.load %[[P]], %[[MASK]], %{{.*}} : tensor<64x!tile.ptr<f32>>
// CHECK:         scf.for
// CHECK-COUNT-1: tile.load
// CHECK-NOT:     tile.load
// CHECK:         return
func.func @rows(%p: tensor<64x!tile.ptr<f32>>, %m: tensor<64xi1>, %n: i32) -> tensor<64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<64xf32>
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %zero) -> (tensor<64xf32>) : i32 {
    %x = tile.load %p, %m, %zero : tensor<64x!tile.ptr<f32>>
    %steps = tile.splat %i : i32 -> tensor<64xi32>
    %q = tile.addptr %p, %steps : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
    %y = tile.load %q, %m, %zero : tensor<64x!tile.ptr<f32>>
    %xy = arith.mulf %x, %y : tensor<64xf32>
    %next = arith.addf %sum, %xy : tensor<64xf32>
    scf.yield %next : tensor<64xf32>
  }
  return %r : tensor<64xf32>
}

// -----

// A loop that is known to run needs no mask; out of a loop inside of another, and out of that.
// CHECK-LABEL: func.func @known
// CHECK-NOT:     scf.for
// CHECK:         tile.load %{{[a-z0-9]+}} : !tile.ptr<f32>
// CHECK:         scf.for
// CHECK:         scf.for
// CHECK-NOT:     tile.load
func.func @known(%p: !tile.ptr<f32>, %y: f32) -> f32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %c9 = arith.constant 9 : i32
  %r = scf.for %i = %c0 to %c9 step %c1 iter_args(%outer = %y) -> (f32) : i32 {
    %s = scf.for %j = %c0 to %c9 step %c1 iter_args(%inner = %outer) -> (f32) : i32 {
      %x = tile.load %p : !tile.ptr<f32>
      %next = arith.mulf %inner, %x : f32
      scf.yield %next : f32
    }
    scf.yield %s : f32
  }
  return %r : f32
}

// -----

// What the loop, or a loop inside of it, writes might be what is read.
// CHECK-LABEL: func.func @written
// CHECK:         scf.for
// CHECK:         tile.load
func.func @written(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32) {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  scf.for %i = %c0 to %n step %c1 : i32 {
    %x = tile.load %p : !tile.ptr<f32>
    scf.for %j = %c0 to %n step %c1 : i32 {
      tile.store %q, %x : !tile.ptr<f32>
    }
  }
  return
}

// -----

// Others may change what is volatile, or read under a condition that an iteration finds.
// CHECK-LABEL: func.func @waited_for
// CHECK:         scf.for
// CHECK:         tile.load {{.*}}isVolatile
// CHECK:         scf.if
// CHECK:         tile.load
func.func @waited_for(%p: !tile.ptr<i32>, %n: i32) -> i32 {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %c0) -> (i32) : i32 {
    %x = tile.load %p {isVolatile} : !tile.ptr<i32>
    %is = arith.cmpi eq, %x, %c1 : i32
    %y = scf.if %is -> (i32) {
      %v = tile.load %p : !tile.ptr<i32>
      scf.yield %v : i32
    } else {
      scf.yield %x : i32
    }
    scf.yield %y : i32
  }
  return %r : i32
}

// -----

// Four warps would keep 64 registers of a thread.
// CHECK-LABEL: func.func @large
// CHECK:         scf.for
// CHECK:         tile.load
func.func @large(%p: tensor<64x128x!tile.ptr<f32>>, %y: tensor<64x128xf32>, %n: i32) -> tensor<64x128xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %y) -> (tensor<64x128xf32>) : i32 {
    %x = tile.load %p : tensor<64x128x!tile.ptr<f32>>
    %next = arith.mulf %sum, %x : tensor<64x128xf32>
    scf.yield %next : tensor<64x128xf32>
  }
  return %r : tensor<64x128xf32>
}

// -----

// Two tiles of 32 registers each: one is kept.
// CHECK-LABEL: func.func @two
// CHECK:         tile.load %[[FIRST:[a-z0-9]+]],
// CHECK:         scf.for
// CHECK-NOT:     tile.load %[[FIRST]]
// CHECK:         tile.load
func.func @two(%p: tensor<64x64x!tile.ptr<f32>>, %q: tensor<64x64x!tile.ptr<f32>>, %y: tensor<64x64xf32>, %n: i32) -> tensor<64x64xf32> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %y) -> (tensor<64x64xf32>) : i32 {
    %x = tile.load %p : tensor<64x64x!tile.ptr<f32>>
    %z = tile.load %q : tensor<64x64x!tile.ptr<f32>>
    %xz = arith.mulf %x, %z : tensor<64x64xf32>
    %next = arith.mulf %sum, %xz : tensor<64x64xf32>
    scf.yield %next : tensor<64x64xf32>
  }
  return %r : tensor<64x64xf32>
}

// -----

// The compiler's own kernels stay as they are.
// CHECK-LABEL: func.func @own
// CHECK:         scf.for
// CHECK:         tile.load
func.func @own(%p: !tile.ptr<f32>, %y: f32, %n: i32) -> f32 attributes {tile.orders_accesses} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %y) -> (f32) : i32 {
    %x = tile.load %p : !tile.ptr<f32>
    %next = arith.mulf %sum, %x : f32
    scf.yield %next : f32
  }
  return %r : f32
}

// RUN: weft-opt %s --cse --loop-invariant-code-motion | FileCheck %s
// What the ops' memory effects let common-subexpression elimination and loop-invariant code motion do.

// CHECK-LABEL: func.func @loads_between_stores
func.func @loads_between_stores(%p: !tile.ptr<f32>) -> (f32, f32, f32) {
  // Two loads with nothing between are one; a store ends that.
  // CHECK: %[[A:.*]] = tile.load
  // CHECK-NEXT: tile.store
  // CHECK-NEXT: %[[B:.*]] = tile.load
  // CHECK-NEXT: return %[[A]], %[[A]], %[[B]]
  %0 = tile.load %p : !tile.ptr<f32>
  %1 = tile.load %p : !tile.ptr<f32>
  tile.store %p, %1 : !tile.ptr<f32>
  %2 = tile.load %p : !tile.ptr<f32>
  return %0, %1, %2 : f32, f32, f32
}

// CHECK-LABEL: func.func @volatile_loads
func.func @volatile_loads(%p: !tile.ptr<f32>) -> (f32, f32) {
  // CHECK: tile.load
  // CHECK: tile.load
  %0 = tile.load %p {isVolatile} : !tile.ptr<f32>
  %1 = tile.load %p {isVolatile} : !tile.ptr<f32>
  return %0, %1 : f32, f32
}

// CHECK-LABEL: func.func @barrier_between_loads
func.func @barrier_between_loads(%p: !tile.ptr<f32>) -> (f32, f32) {
  // CHECK: tile.load
  // CHECK: tile.barrier
  // CHECK: tile.load
  %0 = tile.load %p : !tile.ptr<f32>
  tile.barrier
  %1 = tile.load %p : !tile.ptr<f32>
  return %0, %1 : f32, f32
}

// CHECK-LABEL: func.func @loop
func.func @loop(%n: index, %p: !tile.ptr<f32>, %s: f32, %x: tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // What only computes leaves the loop, what touches memory stays.
  // CHECK: tile.splat
  // CHECK: tile.reduce
  // CHECK: scf.for
  scf.for %i = %c0 to %n step %c1 {
    %0 = tile.splat %s : f32 -> tensor<8xf32>
    %sum = arith.addf %0, %x : tensor<8xf32>
    %1 = tile.reduce %sum {axis = 0 : i32} : (tensor<8xf32>) -> f32 {
    ^bb0(%a: f32, %b: f32):
      %c = arith.addf %a, %b : f32
      tile.yield %c : f32
    }
    // CHECK: tile.load
    %2 = tile.load %p : !tile.ptr<f32>
    %3 = arith.addf %1, %2 : f32
    // CHECK: tile.store
    tile.store %p, %3 : !tile.ptr<f32>
    // CHECK: tile.atomic_rmw
    %4 = tile.atomic_rmw fadd %p, %s : (!tile.ptr<f32>, f32) -> f32
  }
  return
}

// RUN: weft-opt %s --canonicalize | FileCheck %s
// Folds and canonical forms, by family.

//===-- Splats --------------------------------------------------------------------------------------------------------===//

// CHECK-LABEL: func.func @splat_of_constant
func.func @splat_of_constant() -> tensor<8xf32> {
  // CHECK: %[[R:.*]] = arith.constant dense<1.500000e+00> : tensor<8xf32>
  // CHECK: return %[[R]]
  %c = arith.constant 1.5 : f32
  %0 = tile.splat %c : f32 -> tensor<8xf32>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @shapes_of_constant
func.func @shapes_of_constant() -> tensor<16x4xi32> {
  // CHECK: %[[R:.*]] = arith.constant dense<7> : tensor<16x4xi32>
  // CHECK: return %[[R]]
  %c = arith.constant dense<7> : tensor<4xi32>
  %0 = tile.expand_dims %c {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %1 = tile.broadcast %0 : tensor<4x1xi32> -> tensor<4x16xi32>
  %2 = tile.permute %1 {order = array<i32: 1, 0>} : tensor<4x16xi32> -> tensor<16x4xi32>
  return %2 : tensor<16x4xi32>
}

// CHECK-LABEL: func.func @shapes_of_splat
// CHECK-SAME: (%[[S:.*]]: f32)
func.func @shapes_of_splat(%s: f32) -> tensor<64xf32> {
  // CHECK-NEXT: %[[R:.*]] = tile.splat %[[S]] : f32 -> tensor<64xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = tile.splat %s : f32 -> tensor<4xf32>
  %1 = tile.expand_dims %0 {axis = 1 : i32} : tensor<4xf32> -> tensor<4x1xf32>
  %2 = tile.broadcast %1 : tensor<4x1xf32> -> tensor<4x16xf32>
  %3 = tile.permute %2 {order = array<i32: 1, 0>} : tensor<4x16xf32> -> tensor<16x4xf32>
  %4 = tile.reshape %3 : tensor<16x4xf32> -> tensor<64xf32>
  return %4 : tensor<64xf32>
}

// CHECK-LABEL: func.func @not_a_splat
func.func @not_a_splat() -> tensor<2x1xi32> {
  // CHECK: tile.expand_dims
  %c = arith.constant dense<[1, 2]> : tensor<2xi32>
  %0 = tile.expand_dims %c {axis = 1 : i32} : tensor<2xi32> -> tensor<2x1xi32>
  return %0 : tensor<2x1xi32>
}

// CHECK-LABEL: func.func @range_of_one
func.func @range_of_one() -> tensor<1xi32> {
  // CHECK: arith.constant dense<5> : tensor<1xi32>
  %0 = tile.make_range {start = 5 : i32, end = 6 : i32} : tensor<1xi32>
  return %0 : tensor<1xi32>
}

//===-- Shapes --------------------------------------------------------------------------------------------------------===//

// CHECK-LABEL: func.func @identities
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
func.func @identities(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: return %[[X]]
  %0 = tile.broadcast %x : tensor<4x8xf32> -> tensor<4x8xf32>
  %1 = tile.reshape %0 : tensor<4x8xf32> -> tensor<4x8xf32>
  %2 = tile.permute %1 {order = array<i32: 0, 1>} : tensor<4x8xf32> -> tensor<4x8xf32>
  return %2 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @transpose_of_square_stays
func.func @transpose_of_square_stays(%x: tensor<8x8xf32>) -> tensor<8x8xf32> {
  // CHECK: tile.permute
  %0 = tile.permute %x {order = array<i32: 1, 0>} : tensor<8x8xf32> -> tensor<8x8xf32>
  return %0 : tensor<8x8xf32>
}

// CHECK-LABEL: func.func @transpose_twice
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
func.func @transpose_twice(%x: tensor<4x8xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: return %[[X]]
  %0 = tile.permute %x {order = array<i32: 1, 0>} : tensor<4x8xf32> -> tensor<8x4xf32>
  %1 = tile.permute %0 {order = array<i32: 1, 0>} : tensor<8x4xf32> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @permute_of_permute
// CHECK-SAME: (%[[X:.*]]: tensor<2x4x8xf32>)
func.func @permute_of_permute(%x: tensor<2x4x8xf32>) -> tensor<8x2x4xf32> {
  // CHECK-NEXT: %[[R:.*]] = tile.permute %[[X]] {order = array<i32: 2, 0, 1>} : tensor<2x4x8xf32> -> tensor<8x2x4xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = tile.permute %x {order = array<i32: 1, 2, 0>} : tensor<2x4x8xf32> -> tensor<4x8x2xf32>
  %1 = tile.permute %0 {order = array<i32: 1, 2, 0>} : tensor<4x8x2xf32> -> tensor<8x2x4xf32>
  return %1 : tensor<8x2x4xf32>
}

// CHECK-LABEL: func.func @reshape_of_reshape
// CHECK-SAME: (%[[X:.*]]: tensor<4x8xf32>)
func.func @reshape_of_reshape(%x: tensor<4x8xf32>) -> (tensor<2x16xf32>, tensor<4x8xf32>) {
  // CHECK-NEXT: %[[R:.*]] = tile.reshape %[[X]] : tensor<4x8xf32> -> tensor<2x16xf32>
  // CHECK-NEXT: return %[[R]], %[[X]]
  %0 = tile.reshape %x : tensor<4x8xf32> -> tensor<32xf32>
  %1 = tile.reshape %0 : tensor<32xf32> -> tensor<2x16xf32>
  %2 = tile.reshape %0 : tensor<32xf32> -> tensor<4x8xf32>
  return %1, %2 : tensor<2x16xf32>, tensor<4x8xf32>
}

// CHECK-LABEL: func.func @reshape_of_expand_dims
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>)
func.func @reshape_of_expand_dims(%x: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: return %[[X]]
  %0 = tile.expand_dims %x {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xf32>
  %1 = tile.reshape %0 : tensor<1x8xf32> -> tensor<8xf32>
  return %1 : tensor<8xf32>
}

// CHECK-LABEL: func.func @broadcast_of_broadcast
// CHECK-SAME: (%[[X:.*]]: tensor<1x1xf32>)
func.func @broadcast_of_broadcast(%x: tensor<1x1xf32>) -> tensor<4x8xf32> {
  // CHECK-NEXT: %[[R:.*]] = tile.broadcast %[[X]] : tensor<1x1xf32> -> tensor<4x8xf32>
  // CHECK-NEXT: return %[[R]]
  %0 = tile.broadcast %x : tensor<1x1xf32> -> tensor<4x1xf32>
  %1 = tile.broadcast %0 : tensor<4x1xf32> -> tensor<4x8xf32>
  return %1 : tensor<4x8xf32>
}

// CHECK-LABEL: func.func @split_of_join
// CHECK-SAME: (%[[X:.*]]: tensor<8xf32>, %[[Y:.*]]: tensor<8xf32>)
func.func @split_of_join(%x: tensor<8xf32>, %y: tensor<8xf32>) -> (tensor<8xf32>, tensor<8xf32>) {
  // CHECK-NEXT: return %[[X]], %[[Y]]
  %0 = tile.join %x, %y : tensor<8xf32> -> tensor<8x2xf32>
  %1:2 = tile.split %0 : tensor<8x2xf32> -> tensor<8xf32>, tensor<8xf32>
  return %1#0, %1#1 : tensor<8xf32>, tensor<8xf32>
}

// CHECK-LABEL: func.func @join_of_split
// CHECK-SAME: (%[[X:.*]]: tensor<8x2xf32>)
func.func @join_of_split(%x: tensor<8x2xf32>) -> (tensor<8x2xf32>, tensor<8x2xf32>) {
  // CHECK: %[[LHS:.*]], %[[RHS:.*]] = tile.split %[[X]]
  // CHECK-NEXT: %[[SWAPPED:.*]] = tile.join %[[RHS]], %[[LHS]]
  // CHECK-NEXT: return %[[X]], %[[SWAPPED]]
  %0:2 = tile.split %x : tensor<8x2xf32> -> tensor<8xf32>, tensor<8xf32>
  %1 = tile.join %0#0, %0#1 : tensor<8xf32> -> tensor<8x2xf32>
  %2 = tile.join %0#1, %0#0 : tensor<8xf32> -> tensor<8x2xf32>
  return %1, %2 : tensor<8x2xf32>, tensor<8x2xf32>
}

//===-- Pointers ------------------------------------------------------------------------------------------------------===//

// CHECK-LABEL: func.func @addptr_by_zero
// CHECK-SAME: (%[[P:.*]]: tensor<8x!tile.ptr<f32>>)
func.func @addptr_by_zero(%p: tensor<8x!tile.ptr<f32>>) -> tensor<8x!tile.ptr<f32>> {
  // CHECK-NEXT: return %[[P]]
  %c = arith.constant dense<0> : tensor<8xi32>
  %0 = tile.addptr %p, %c : tensor<8x!tile.ptr<f32>>, tensor<8xi32>
  return %0 : tensor<8x!tile.ptr<f32>>
}

// CHECK-LABEL: func.func @addptr_of_addptr
// CHECK-SAME: (%[[P:.*]]: !tile.ptr<f32>)
func.func @addptr_of_addptr(%p: !tile.ptr<f32>) -> !tile.ptr<f32> {
  // CHECK: %[[C:.*]] = arith.constant 5 : i32
  // CHECK-NEXT: %[[R:.*]] = tile.addptr %[[P]], %[[C]]
  // CHECK-NEXT: return %[[R]]
  %c8 = arith.constant 8 : i32
  %cm3 = arith.constant -3 : i32
  %0 = tile.addptr %p, %c8 : !tile.ptr<f32>, i32
  %1 = tile.addptr %0, %cm3 : !tile.ptr<f32>, i32
  return %1 : !tile.ptr<f32>
}

// CHECK-LABEL: func.func @addptr_of_addptr_tensor
func.func @addptr_of_addptr_tensor(%p: tensor<8x!tile.ptr<f32>>) -> tensor<8x!tile.ptr<f32>> {
  // CHECK: arith.constant dense<12> : tensor<8xi64>
  // CHECK-NEXT: tile.addptr
  // CHECK-NOT: tile.addptr
  %c8 = arith.constant dense<8> : tensor<8xi64>
  %c4 = arith.constant dense<4> : tensor<8xi64>
  %0 = tile.addptr %p, %c8 : tensor<8x!tile.ptr<f32>>, tensor<8xi64>
  %1 = tile.addptr %0, %c4 : tensor<8x!tile.ptr<f32>>, tensor<8xi64>
  return %1 : tensor<8x!tile.ptr<f32>>
}

// The offsets are widened before they are added, so that 2^31 - 1 + 1 elements are not -2^31.
// CHECK-LABEL: func.func @addptr_overflow_stays
func.func @addptr_overflow_stays(%p: !tile.ptr<f32>) -> !tile.ptr<f32> {
  // CHECK: tile.addptr
  // CHECK: tile.addptr
  %most = arith.constant 2147483647 : i32
  %c1 = arith.constant 1 : i32
  %0 = tile.addptr %p, %most : !tile.ptr<f32>, i32
  %1 = tile.addptr %0, %c1 : !tile.ptr<f32>, i32
  return %1 : !tile.ptr<f32>
}

// CHECK-LABEL: func.func @address_casts
// CHECK-SAME: (%[[P:.*]]: !tile.ptr<f32>, %[[I:.*]]: i64)
func.func @address_casts(%p: !tile.ptr<f32>, %i: i64) -> (!tile.ptr<f32>, i64, !tile.ptr<f32>) {
  // CHECK-NEXT: return %[[P]], %[[I]], %[[P]]
  %0 = tile.ptr_to_int %p : !tile.ptr<f32> -> i64
  %1 = tile.int_to_ptr %0 : i64 -> !tile.ptr<f32>
  %2 = tile.int_to_ptr %i : i64 -> !tile.ptr<f16>
  %3 = tile.ptr_to_int %2 : !tile.ptr<f16> -> i64
  %4 = tile.ptr_cast %p : !tile.ptr<f32> -> !tile.ptr<i8>
  %5 = tile.ptr_cast %4 : !tile.ptr<i8> -> !tile.ptr<f32>
  return %1, %3, %5 : !tile.ptr<f32>, i64, !tile.ptr<f32>
}

//===-- Memory --------------------------------------------------------------------------------------------------------===//

// CHECK-LABEL: func.func @load_all_true
// CHECK-SAME: (%[[P:.*]]: tensor<8x!tile.ptr<f32>>, %{{.*}})
func.func @load_all_true(%p: tensor<8x!tile.ptr<f32>>, %other: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: %[[R:.*]] = tile.load %[[P]] {cache = #tile<cache cg>} : tensor<8x!tile.ptr<f32>>
  // CHECK-NEXT: return %[[R]]
  %true = arith.constant dense<true> : tensor<8xi1>
  %0 = tile.load %p, %true, %other {cache = #tile<cache cg>} : tensor<8x!tile.ptr<f32>>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @load_all_false
// CHECK-SAME: (%{{.*}}, %[[OTHER:.*]]: tensor<8xf32>)
func.func @load_all_false(%p: tensor<8x!tile.ptr<f32>>, %other: tensor<8xf32>) -> tensor<8xf32> {
  // CHECK-NEXT: return %[[OTHER]]
  %false = arith.constant dense<false> : tensor<8xi1>
  %0 = tile.load %p, %false, %other : tensor<8x!tile.ptr<f32>>
  return %0 : tensor<8xf32>
}

// CHECK-LABEL: func.func @load_unknown_mask
func.func @load_unknown_mask(%p: tensor<2x!tile.ptr<f32>>, %m: tensor<2xi1>, %other: tensor<2xf32>) -> (tensor<2xf32>, tensor<2xf32>) {
  // CHECK: tile.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} :
  // CHECK: tile.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} :
  %mixed = arith.constant dense<[true, false]> : tensor<2xi1>
  %0 = tile.load %p, %m, %other : tensor<2x!tile.ptr<f32>>
  %1 = tile.load %p, %mixed, %other : tensor<2x!tile.ptr<f32>>
  return %0, %1 : tensor<2xf32>, tensor<2xf32>
}

// What is made of a load, element by element, is stored under the load's mask, or a narrower one: nobody sees the other value.
// CHECK-LABEL: func.func @load_unseen
// CHECK: tile.load %{{[^,]*}}, %[[MASK:[^,]*]] : tensor<32x!tile.ptr<f16>>
// CHECK: tile.store %{{[^,]*}}, %{{[^,]*}}, %[[MASK]] :
// CHECK: tile.store
func.func @load_unseen(%p: tensor<32x!tile.ptr<f16>>, %q: tensor<32x!tile.ptr<f32>>, %m: tensor<32xi1>, %n: tensor<32xi1>) {
  %other = arith.constant dense<0.0> : tensor<32xf16>
  %v = tile.load %p, %m, %other : tensor<32x!tile.ptr<f16>>
  %w = arith.extf %v : tensor<32xf16> to tensor<32xf32>
  %e = math.exp2 %w : tensor<32xf32>
  tile.store %q, %e, %m : tensor<32x!tile.ptr<f32>>
  %narrow = arith.andi %n, %m : tensor<32xi1>
  tile.store %p, %v, %narrow : tensor<32x!tile.ptr<f16>>
  return
}

// Sums see it, and so do stores under another mask, addresses, floats of 8 bits, of which several are computed in one word,
// and whoever takes the result.
// CHECK-LABEL: func.func @load_seen
// CHECK-COUNT-5: tile.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} :
func.func @load_seen(%p: tensor<32x!tile.ptr<i32>>, %q: tensor<32x!tile.ptr<f8E5M2>>, %b: !tile.ptr<i32>, %m: tensor<32xi1>, %n: tensor<32xi1>,
                     %other: tensor<32xi32>) -> (i32, tensor<32xi32>) {
  %zero = arith.constant dense<0.0> : tensor<32xf8E5M2>
  %v = tile.load %p, %m, %other : tensor<32x!tile.ptr<i32>>
  %sum = "tile.reduce"(%v) <{axis = 0 : i32}> ({
  ^bb0(%x: i32, %y: i32):
    %z = arith.addi %x, %y : i32
    "tile.yield"(%z) : (i32) -> ()
  }) : (tensor<32xi32>) -> i32
  %w = tile.load %p, %m, %other : tensor<32x!tile.ptr<i32>>
  tile.store %p, %w, %n : tensor<32x!tile.ptr<i32>>
  %at = tile.load %p, %m, %other : tensor<32x!tile.ptr<i32>>
  %base = tile.splat %b : !tile.ptr<i32> -> tensor<32x!tile.ptr<i32>>
  %to = tile.addptr %base, %at : tensor<32x!tile.ptr<i32>>, tensor<32xi32>
  tile.store %to, %other, %m : tensor<32x!tile.ptr<i32>>
  %f = tile.load %q, %m, %zero : tensor<32x!tile.ptr<f8E5M2>>
  %g = arith.extf %f : tensor<32xf8E5M2> to tensor<32xf32>
  %square = arith.mulf %g, %g : tensor<32xf32>
  %h = arith.truncf %square : tensor<32xf32> to tensor<32xf8E5M2>
  tile.store %q, %h, %m : tensor<32x!tile.ptr<f8E5M2>>
  %r = tile.load %p, %m, %other : tensor<32x!tile.ptr<i32>>
  return %sum, %r : i32, tensor<32xi32>
}

// CHECK-LABEL: func.func @load_dead
func.func @load_dead(%p: tensor<8x!tile.ptr<f32>>) {
  // CHECK-NEXT: tile.load %{{.*}} {isVolatile}
  // CHECK-NEXT: return
  %0 = tile.load %p : tensor<8x!tile.ptr<f32>>
  %1 = tile.load %p {isVolatile} : tensor<8x!tile.ptr<f32>>
  return
}

// CHECK-LABEL: func.func @store_all_true
func.func @store_all_true(%p: tensor<8x!tile.ptr<f32>>, %v: tensor<8xf32>) {
  // CHECK-NEXT: tile.store %{{[^,]*}}, %{{[^,]*}} : tensor<8x!tile.ptr<f32>>
  %true = arith.constant dense<true> : tensor<8xi1>
  tile.store %p, %v, %true : tensor<8x!tile.ptr<f32>>
  return
}

// CHECK-LABEL: func.func @store_all_false
func.func @store_all_false(%p: !tile.ptr<f32>, %v: f32) {
  // CHECK-NEXT: return
  %false = arith.constant false
  tile.store %p, %v, %false : !tile.ptr<f32>
  return
}

// CHECK-LABEL: func.func @assert_true
func.func @assert_true(%m: tensor<8xi1>) {
  // CHECK-NEXT: tile.assert %{{.*}}, "kept"
  // CHECK-NEXT: return
  %true = arith.constant dense<true> : tensor<8xi1>
  tile.assert %true, "dropped" : tensor<8xi1>
  tile.assert %m, "kept" : tensor<8xi1>
  return
}

// CHECK-LABEL: func.func @assume_true
func.func @assume_true(%c: i1) {
  // CHECK-NEXT: tile.assume %{{.*}} : i1
  // CHECK-NEXT: return
  %true = arith.constant true
  tile.assume %true : i1
  tile.assume %c : i1
  return
}

//===-- Products ------------------------------------------------------------------------------------------------------===//

// The zero is what the accumulator's registers start from: nothing is gained by another form.
// CHECK-LABEL: func.func @dot_of_zero
func.func @dot_of_zero(%a: tensor<16x16xf16>) -> tensor<16x16xf32> {
  // CHECK: %[[ZERO:.*]] = arith.constant dense<0.000000e+00>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %[[ZERO]]
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %0 = tile.dot %a, %a, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  return %0 : tensor<16x16xf32>
}

//===-- Products ------------------------------------------------------------------------------------------------------===//

// What is added to a product is where it begins, whichever operand it is, of floats and of integers.
// CHECK-LABEL: func.func @begins_with_sum
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<16x16xf16>, %[[B:[a-z0-9]*]]: tensor<16x16xf16>, %[[I:[a-z0-9]*]]: tensor<16x32xi8>, %[[J:[a-z0-9]*]]: tensor<32x16xi8>, %[[X:[a-z0-9]*]]: tensor<16x16xf32>, %[[Y:[a-z0-9]*]]: tensor<16x16xi32>
func.func @begins_with_sum(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %i: tensor<16x32xi8>, %j: tensor<32x16xi8>, %x: tensor<16x16xf32>, %y: tensor<16x16xi32>) -> (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xi32>) {
  // CHECK-DAG: %[[P:.*]] = tile.dot %[[A]], %[[B]], %[[X]] :
  // CHECK-DAG: %[[Q:.*]] = tile.dot %[[A]], %[[B]], %[[X]] {precision = #tile<precision tf32x3>} :
  // CHECK-DAG: %[[R:.*]] = tile.dot %[[I]], %[[J]], %[[Y]] :
  // CHECK: return %[[P]], %[[Q]], %[[R]]
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %none = arith.constant dense<0> : tensor<16x16xi32>
  %0 = tile.dot %a, %b, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %1 = arith.addf %0, %x : tensor<16x16xf32>
  %2 = tile.dot %a, %b, %zero {precision = #tile<precision tf32x3>} : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %3 = arith.addf %x, %2 : tensor<16x16xf32>
  %4 = tile.dot %i, %j, %none : tensor<16x32xi8> * tensor<32x16xi8> -> tensor<16x16xi32>
  %5 = arith.addi %y, %4 : tensor<16x16xi32>
  return %1, %3, %5 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xi32>
}

// A sum that is made after the product has it wait; of two products the later begins with the earlier.
// CHECK-LABEL: func.func @waits_for_sum
func.func @waits_for_sum(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %x: tensor<16x16xf32>) -> (tensor<16x16xf32>, tensor<16x16xf32>) {
  // CHECK: %[[X:.*]] = arith.mulf
  // CHECK: %[[P:.*]] = tile.dot %{{.*}}, %{{.*}}, %[[X]] :
  // CHECK: %[[Q:.*]] = tile.dot %[[A:.*]], %[[B:.*]], %cst :
  // CHECK: %[[R:.*]] = tile.dot %[[B]], %[[A]], %[[Q]] :
  // CHECK: return %[[P]], %[[R]]
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %0 = tile.dot %a, %b, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %1 = arith.mulf %x, %x : tensor<16x16xf32>
  %2 = arith.addf %0, %1 : tensor<16x16xf32>
  %3 = tile.dot %a, %b, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %4 = tile.dot %b, %a, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %5 = arith.addf %3, %4 : tensor<16x16xf32>
  return %2, %5 : tensor<16x16xf32>, tensor<16x16xf32>
}

// Products of a batch lie one after another in a tile of two axes, and the sum has three: it takes their shape before.
// CHECK-LABEL: func.func @begins_with_sum_in_another_shape
// CHECK-SAME: %[[A:[a-z0-9]*]]: tensor<32x16xf16>, %{{.*}}, %[[X:[a-z0-9]*]]: tensor<2x16x16xf32>, %[[Y:[a-z0-9]*]]: tensor<1x32x16xf32>
func.func @begins_with_sum_in_another_shape(%a: tensor<32x16xf16>, %b: tensor<16x32xf16>, %c: tensor<16x16xf16>, %x: tensor<2x16x16xf32>, %y: tensor<1x32x16xf32>) -> (tensor<2x16x16xf32>, tensor<1x32x16xf32>, tensor<2x16x16xf32>, tensor<32x16xf32>) {
  // CHECK-DAG: %[[FLAT:.*]] = tile.reshape %[[X]] : tensor<2x16x16xf32> -> tensor<32x16xf32>
  // CHECK-DAG: %[[P:.*]] = tile.dot %[[A]], %{{.*}}, %[[FLAT]] {batch = 2 : i32} :
  // CHECK-DAG: %[[WHOLE:.*]] = tile.reshape %[[P]] : tensor<32x16xf32> -> tensor<2x16x16xf32>
  // CHECK-DAG: %[[ROWS:.*]] = tile.reshape %[[Y]] : tensor<1x32x16xf32> -> tensor<32x16xf32>
  // CHECK-DAG: %[[Q:.*]] = tile.dot %[[A]], %{{.*}}, %[[ROWS]] :
  // CHECK-DAG: %[[ONE:.*]] = tile.reshape %[[Q]] : tensor<32x16xf32> -> tensor<1x32x16xf32>
  // A product that is used in its own shape, too, begins at zero.
  // CHECK-DAG: %[[R:.*]] = tile.dot %[[A]], %{{.*}}, %cst {batch = 2 : i32} :
  // CHECK: %[[SUM:.*]] = arith.addf
  // CHECK: return %[[WHOLE]], %[[ONE]], %[[SUM]], %[[R]]
  %zero = arith.constant dense<0.0> : tensor<32x16xf32>
  %0 = tile.dot %a, %b, %zero {batch = 2 : i32} : tensor<32x16xf16> * tensor<16x32xf16> -> tensor<32x16xf32>
  %1 = tile.reshape %0 : tensor<32x16xf32> -> tensor<2x16x16xf32>
  %2 = arith.addf %x, %1 : tensor<2x16x16xf32>
  %3 = tile.dot %a, %c, %zero : tensor<32x16xf16> * tensor<16x16xf16> -> tensor<32x16xf32>
  %4 = tile.expand_dims %3 {axis = 0 : i32} : tensor<32x16xf32> -> tensor<1x32x16xf32>
  %5 = arith.addf %4, %y : tensor<1x32x16xf32>
  %6 = tile.dot %a, %b, %zero {batch = 2 : i32} : tensor<32x16xf16> * tensor<16x32xf16> -> tensor<32x16xf32>
  %7 = tile.reshape %6 : tensor<32x16xf32> -> tensor<2x16x16xf32>
  %8 = arith.addf %x, %7 : tensor<2x16x16xf32>
  return %2, %5, %8, %6 : tensor<2x16x16xf32>, tensor<1x32x16xf32>, tensor<2x16x16xf32>, tensor<32x16xf32>
}

// Not so: a product that something else uses too, that begins elsewhere, is of 8-bit floats or summed in f16; a row that is repeated; what is loaded
// after the product, which hides it; a sum in another block.
// CHECK-LABEL: func.func @begins_at_zero
func.func @begins_at_zero(%a: tensor<16x16xf16>, %e: tensor<16x32xf8E4M3FN>, %f: tensor<32x16xf8E4M3FN>, %x: tensor<16x16xf32>, %h: tensor<16x16xf16>, %row: tensor<1x16xf32>, %p: tensor<16x16x!tile.ptr<f32>>, %c: i1)
    -> (tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf16>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>) {
  // CHECK-COUNT-6: arith.addf
  // CHECK: scf.if
  // CHECK: arith.addf
  %zero = arith.constant dense<0.0> : tensor<16x16xf32>
  %none = arith.constant dense<0.0> : tensor<16x16xf16>
  %0 = tile.dot %a, %a, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %1 = arith.addf %0, %x : tensor<16x16xf32>
  %2 = tile.dot %a, %a, %x : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %3 = arith.addf %2, %x : tensor<16x16xf32>
  %4 = tile.dot %e, %f, %zero : tensor<16x32xf8E4M3FN> * tensor<32x16xf8E4M3FN> -> tensor<16x16xf32>
  %5 = arith.addf %4, %x : tensor<16x16xf32>
  %6 = tile.dot %a, %a, %none : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf16>
  %7 = arith.addf %6, %h : tensor<16x16xf16>
  %8 = tile.broadcast %row : tensor<1x16xf32> -> tensor<16x16xf32>
  %9 = tile.dot %a, %a, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %10 = arith.addf %9, %8 : tensor<16x16xf32>
  %11 = tile.dot %a, %a, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %12 = tile.load %p : tensor<16x16x!tile.ptr<f32>>
  %13 = arith.addf %11, %12 : tensor<16x16xf32>
  %14 = tile.dot %a, %a, %zero : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  %15 = scf.if %c -> (tensor<16x16xf32>) {
    %16 = arith.addf %14, %x : tensor<16x16xf32>
    scf.yield %16 : tensor<16x16xf32>
  } else {
    scf.yield %x : tensor<16x16xf32>
  }
  return %0, %1, %3, %5, %7, %10, %13, %15 : tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf16>, tensor<16x16xf32>, tensor<16x16xf32>, tensor<16x16xf32>
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --split-input-file --tile-narrow-indices %s | FileCheck %s

// What all elements share moves the pointer and the bound; a product by a number stays in 32 bits.
// CHECK-LABEL: func.func @rows(
// CHECK-SAME:    %[[P:.*]]: !tile.ptr<f32>, %[[N:.*]]: i32
func.func @rows(%p: !tile.ptr<f32>, %n: i32) -> (tensor<64x!tile.ptr<f32>>, tensor<64xi1>) {
  %c64 = arith.constant 64 : i64
  %stride = arith.constant dense<128> : tensor<64xi64>
  // CHECK-DAG: %[[PID:.*]] = tile.program_id x
  // CHECK-DAG: %[[PID64:.*]] = arith.extsi %[[PID]]
  // CHECK-DAG: %[[BEGIN:.*]] = arith.muli %[[PID64]], %{{.*}} : i64
  // CHECK-DAG: %[[R:.*]] = tile.make_range
  %pid = tile.program_id x : i32
  %pid64 = arith.extsi %pid : i32 to i64
  %begin = arith.muli %pid64, %c64 : i64
  %begins = tile.splat %begin : i64 -> tensor<64xi64>
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %r64 = arith.extsi %r : tensor<64xi32> to tensor<64xi64>
  %i = arith.addi %begins, %r64 : tensor<64xi64>
  // CHECK-DAG: %[[Q:.*]] = tile.addptr %[[P]], %{{.*}} : !tile.ptr<f32>, i64
  // CHECK-DAG: %[[ROWS:.*]] = arith.muli %[[R]], %{{.*}} : tensor<64xi32>
  // CHECK-DAG: %[[QS:.*]] = tile.splat %[[Q]]
  // CHECK-DAG: %[[A:.*]] = tile.addptr %[[QS]], %[[ROWS]] : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %far = arith.muli %i, %stride : tensor<64xi64>
  %all = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %a = tile.addptr %all, %far : tensor<64x!tile.ptr<f32>>, tensor<64xi64>
  // CHECK-DAG: %[[N64:.*]] = arith.extsi %[[N]]
  // CHECK-DAG: %[[LEFT:.*]] = arith.subi %[[N64]], %[[BEGIN]] : i64
  // CHECK-DAG: %[[MOST:.*]] = arith.minsi %[[LEFT]], %{{.*}} : i64
  // CHECK-DAG: %[[CUT:.*]] = arith.maxsi %[[MOST]], %{{.*}} : i64
  // CHECK-DAG: %[[BOUND:.*]] = arith.trunci %[[CUT]] : i64 to i32
  // CHECK-DAG: %[[BOUNDS:.*]] = tile.splat %[[BOUND]] : i32
  // CHECK-DAG: %[[C:.*]] = arith.cmpi slt, %[[R]], %[[BOUNDS]] : tensor<64xi32>
  %n64 = arith.extsi %n : i32 to i64
  %limits = tile.splat %n64 : i64 -> tensor<64xi64>
  %c = arith.cmpi slt, %i, %limits : tensor<64xi64>
  // CHECK: return %[[A]], %[[C]]
  return %a, %c : tensor<64x!tile.ptr<f32>>, tensor<64xi1>
}

// -----

// Rows against columns of the same block: what they share cancels.
// CHECK-LABEL: func.func @triangle(
// CHECK-NOT:     i64
// CHECK:         %[[R:.*]] = tile.make_range
// CHECK-DAG:     %[[ROW:.*]] = tile.expand_dims %[[R]] {axis = 1 : i32}
// CHECK-DAG:     %[[COLUMN:.*]] = tile.expand_dims %[[R]] {axis = 0 : i32}
// CHECK-DAG:     %[[ROWS:.*]] = tile.broadcast %[[ROW]]
// CHECK-DAG:     %[[COLUMNS:.*]] = tile.broadcast %[[COLUMN]]
// CHECK:         arith.cmpi sge, %[[ROWS]], %[[COLUMNS]] : tensor<32x32xi32>
func.func @triangle() -> tensor<32x32xi1> {
  %c32 = arith.constant 32 : i64
  %pid = tile.program_id x : i32
  %pid64 = arith.extsi %pid : i32 to i64
  %begin = arith.muli %pid64, %c32 : i64
  %begins = tile.splat %begin : i64 -> tensor<32xi64>
  %r = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %r64 = arith.extsi %r : tensor<32xi32> to tensor<32xi64>
  %i = arith.addi %begins, %r64 : tensor<32xi64>
  %row = tile.expand_dims %i {axis = 1 : i32} : tensor<32xi64> -> tensor<32x1xi64>
  %column = tile.expand_dims %i {axis = 0 : i32} : tensor<32xi64> -> tensor<1x32xi64>
  %rows = tile.broadcast %row : tensor<32x1xi64> -> tensor<32x32xi64>
  %columns = tile.broadcast %column : tensor<1x32xi64> -> tensor<32x32xi64>
  %c = arith.cmpi sge, %rows, %columns : tensor<32x32xi64>
  return %c : tensor<32x32xi1>
}

// -----

// Below the smaller of two bounds is below both; one of them is 16 from the begin.
// CHECK-LABEL: func.func @part(
// CHECK-DAG:     %[[SIXTEEN:.*]] = arith.constant dense<16> : tensor<32xi32>
// CHECK-DAG:     %[[R:.*]] = tile.make_range
// CHECK-DAG:     %[[A:.*]] = arith.cmpi slt, %[[R]], %[[SIXTEEN]] : tensor<32xi32>
// CHECK-DAG:     %[[B:.*]] = arith.cmpi slt, %[[R]], %{{.*}} : tensor<32xi32>
// CHECK:         arith.andi %[[A]], %[[B]] : tensor<32xi1>
func.func @part(%n: i32) -> tensor<32xi1> {
  %c16 = arith.constant 16 : i64
  %pid = tile.program_id y : i32
  %pid64 = arith.extsi %pid : i32 to i64
  %begin = arith.muli %pid64, %c16 : i64
  %end = arith.addi %begin, %c16 : i64
  %n64 = arith.extsi %n : i32 to i64
  %least = arith.minsi %end, %n64 : i64
  %begins = tile.splat %begin : i64 -> tensor<32xi64>
  %r = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %r64 = arith.extsi %r : tensor<32xi32> to tensor<32xi64>
  %i = arith.addi %begins, %r64 : tensor<32xi64>
  %ends = tile.splat %least : i64 -> tensor<32xi64>
  %c = arith.cmpi slt, %i, %ends : tensor<32xi64>
  return %c : tensor<32xi1>
}

// -----

// A begin of any 64 bits might wrap; so might numbers whose ranges 32 bits do not hold. Unsigned comparisons stay too.
// CHECK-LABEL: func.func @unknown(
// CHECK:         arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<32xi64>
// CHECK:         arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<32xi64>
// CHECK:         arith.cmpi ult, %{{.*}}, %{{.*}} : tensor<32xi64>
func.func @unknown(%begin: i64, %n: i32, %x: tensor<32xi32>) -> (tensor<32xi1>, tensor<32xi1>, tensor<32xi1>) {
  %begins = tile.splat %begin : i64 -> tensor<32xi64>
  %r = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %r64 = arith.extsi %r : tensor<32xi32> to tensor<32xi64>
  %i = arith.addi %begins, %r64 : tensor<32xi64>
  %n64 = arith.extsi %n : i32 to i64
  %ends = tile.splat %n64 : i64 -> tensor<32xi64>
  %a = arith.cmpi slt, %i, %ends : tensor<32xi64>
  %x64 = arith.extsi %x : tensor<32xi32> to tensor<32xi64>
  %b = arith.cmpi slt, %x64, %ends : tensor<32xi64>
  %c = arith.cmpi ult, %r64, %ends : tensor<32xi64>
  return %a, %b, %c : tensor<32xi1>, tensor<32xi1>, tensor<32xi1>
}

// -----

// Any bound at all is cut to what the sums can reach before what they share is taken from it.
// CHECK-LABEL: func.func @far(
// CHECK-SAME:    %[[N:.*]]: i64
// CHECK:         arith.minsi %[[N]], %c4611686018427387904_i64
// CHECK:         arith.maxsi %{{.*}}, %c-4611686018427387904_i64
// CHECK:         arith.subi
// CHECK:         arith.cmpi sle, %{{.*}}, %{{.*}} : tensor<32xi32>
func.func @far(%n: i64) -> tensor<32xi1> {
  %pid = tile.program_id x : i32
  %pid64 = arith.extsi %pid : i32 to i64
  %begins = tile.splat %pid64 : i64 -> tensor<32xi64>
  %r = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %r64 = arith.extsi %r : tensor<32xi32> to tensor<32xi64>
  %i = arith.addi %begins, %r64 : tensor<32xi64>
  %ends = tile.splat %n : i64 -> tensor<32xi64>
  %c = arith.cmpi sle, %i, %ends : tensor<32xi64>
  return %c : tensor<32xi1>
}

// -----

// A mask that ranges decide is known; the load needs none.
// CHECK-LABEL: func.func @whole(
// CHECK-NOT:     arith.cmpi
// CHECK:         tile.load %{{[^,]*}} :
func.func @whole(%p: !tile.ptr<f32>) -> tensor<64xf32> {
  %limit = arith.constant dense<64> : tensor<64xi32>
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %c = arith.cmpi slt, %r, %limit : tensor<64xi32>
  %all = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %a = tile.addptr %all, %r : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %x = tile.load %a, %c : tensor<64x!tile.ptr<f32>>
  return %x : tensor<64xf32>
}

// -----

// What is promised of an index holds of it whole.
// CHECK-LABEL: func.func @promised(
// CHECK:         arith.addi %{{.*}}, %{{.*}} {tile.divisibility = 16 : i32} : tensor<64xi64>
// CHECK:         tile.addptr %{{.*}}, %{{.*}} : tensor<64x!tile.ptr<f32>>, tensor<64xi64>
func.func @promised(%p: !tile.ptr<f32>, %begin: i64) -> tensor<64x!tile.ptr<f32>> {
  %begins = tile.splat %begin : i64 -> tensor<64xi64>
  %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %r64 = arith.extsi %r : tensor<64xi32> to tensor<64xi64>
  %i = arith.addi %begins, %r64 {tile.divisibility = 16 : i32} : tensor<64xi64>
  %all = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %a = tile.addptr %all, %i : tensor<64x!tile.ptr<f32>>, tensor<64xi64>
  return %a : tensor<64x!tile.ptr<f32>>
}

// -----

// Threads that have one element each compute it in 64 bits; of two, what they share is a scalar.
// CHECK-LABEL: func.func @one_each(
// CHECK:         arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<128xi64>
// CHECK-LABEL: func.func @two_each(
// CHECK:         arith.cmpi slt, %{{.*}}, %{{.*}} : tensor<256xi32>
func.func @one_each(%p: !tile.ptr<f32>, %n: i32) -> tensor<128xf32> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
  %c128 = arith.constant 128 : i64
  %pid = tile.program_id x : i32
  %pid64 = arith.extsi %pid : i32 to i64
  %begin = arith.muli %pid64, %c128 : i64
  %begins = tile.splat %begin : i64 -> tensor<128xi64>
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %r64 = arith.extsi %r : tensor<128xi32> to tensor<128xi64>
  %i = arith.addi %begins, %r64 : tensor<128xi64>
  %n64 = arith.extsi %n : i32 to i64
  %limits = tile.splat %n64 : i64 -> tensor<128xi64>
  %m = arith.cmpi slt, %i, %limits : tensor<128xi64>
  %all = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %a = tile.addptr %all, %i : tensor<128x!tile.ptr<f32>>, tensor<128xi64>
  %x = tile.load %a, %m : tensor<128x!tile.ptr<f32>>
  return %x : tensor<128xf32>
}
func.func @two_each(%p: !tile.ptr<f32>, %n: i32) -> tensor<256xf32> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
  %c256 = arith.constant 256 : i64
  %pid = tile.program_id x : i32
  %pid64 = arith.extsi %pid : i32 to i64
  %begin = arith.muli %pid64, %c256 : i64
  %begins = tile.splat %begin : i64 -> tensor<256xi64>
  %r = tile.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %r64 = arith.extsi %r : tensor<256xi32> to tensor<256xi64>
  %i = arith.addi %begins, %r64 : tensor<256xi64>
  %n64 = arith.extsi %n : i32 to i64
  %limits = tile.splat %n64 : i64 -> tensor<256xi64>
  %m = arith.cmpi slt, %i, %limits : tensor<256xi64>
  %all = tile.splat %p : !tile.ptr<f32> -> tensor<256x!tile.ptr<f32>>
  %a = tile.addptr %all, %i : tensor<256x!tile.ptr<f32>>, tensor<256xi64>
  %x = tile.load %a, %m : tensor<256x!tile.ptr<f32>>
  return %x : tensor<256xf32>
}

// -----

// What a divisor of 32 bits leaves has 32 bits, whatever it was taken of: the next division is of 32. A divisor of 64
// bits leaves more.
// CHECK-LABEL: func.func @remainders(
// CHECK:         %[[FIRST:.*]] = arith.remsi %{{.*}}, %{{.*}} : tensor<64xi64>
// CHECK:         %[[LEFT:.*]] = arith.trunci %[[FIRST]]
// CHECK:         arith.remsi %[[LEFT]], %{{.*}} : tensor<64xi32>
// CHECK-LABEL: func.func @wide_remainders(
// CHECK-COUNT-2: arith.remsi %{{.*}}, %{{.*}} : tensor<64xi64>
func.func @remainders(%i: tensor<64xi64>, %n: i32, %m: i32) -> tensor<64xi64> attributes {tile.schedule = #tile.schedule<warps = 1, stages = 3>} {
  %n64 = arith.extsi %n : i32 to i64
  %ns = tile.splat %n64 : i64 -> tensor<64xi64>
  %m64 = arith.extsi %m : i32 to i64
  %ms = tile.splat %m64 : i64 -> tensor<64xi64>
  %first = arith.remsi %i, %ns : tensor<64xi64>
  %second = arith.remsi %first, %ms : tensor<64xi64>
  return %second : tensor<64xi64>
}
func.func @wide_remainders(%i: tensor<64xi64>, %n: i64, %m: i32) -> tensor<64xi64> attributes {tile.schedule = #tile.schedule<warps = 1, stages = 3>} {
  %ns = tile.splat %n : i64 -> tensor<64xi64>
  %m64 = arith.extsi %m : i32 to i64
  %ms = tile.splat %m64 : i64 -> tensor<64xi64>
  %first = arith.remsi %i, %ns : tensor<64xi64>
  %second = arith.remsi %first, %ms : tensor<64xi64>
  return %second : tensor<64xi64>
}

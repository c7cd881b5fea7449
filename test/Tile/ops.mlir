// RUN: weft-opt %s | FileCheck %s
// RUN: weft-opt %s | weft-opt | FileCheck %s
// RUN: weft-opt %s --mlir-print-op-generic | weft-opt | FileCheck %s
// Every op, type and attribute of the dialect is printed as it was read.

// CHECK-LABEL: func.func @kernel
// CHECK-SAME: !tile.ptr<f16> {tile.divisibility = 16 : i32}
// CHECK-SAME: attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 3>}
func.func @kernel(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %n: i32)
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
  return
}

// CHECK-LABEL: func.func @grid
func.func @grid() -> (i32, i32) {
  // CHECK: tile.program_id x : i32
  %0 = tile.program_id x : i32
  // CHECK: tile.num_programs z : i32
  %1 = tile.num_programs z : i32
  return %0, %1 : i32, i32
}

// CHECK-LABEL: func.func @shapes
func.func @shapes(%s: f32, %q: !tile.ptr<bf16>) {
  // CHECK: tile.make_range {end = 128 : i32, start = 64 : i32} : tensor<64xi32>
  %range = tile.make_range {start = 64 : i32, end = 128 : i32} : tensor<64xi32>
  // CHECK: tile.splat %{{.*}} : f32 -> tensor<16xf32>
  %splat = tile.splat %s : f32 -> tensor<16xf32>
  // CHECK: tile.splat %{{.*}} : !tile.ptr<bf16> -> tensor<4x!tile.ptr<bf16>>
  %pointers = tile.splat %q : !tile.ptr<bf16> -> tensor<4x!tile.ptr<bf16>>
  // CHECK: tile.expand_dims %{{.*}} {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %column = tile.expand_dims %range {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  // CHECK: tile.broadcast %{{.*}} : tensor<64x1xi32> -> tensor<64x32xi32>
  %plane = tile.broadcast %column : tensor<64x1xi32> -> tensor<64x32xi32>
  // CHECK: tile.reshape %{{.*}} : tensor<64x32xi32> -> tensor<16x128xi32>
  %other = tile.reshape %plane : tensor<64x32xi32> -> tensor<16x128xi32>
  // CHECK: tile.permute %{{.*}} {order = array<i32: 1, 0>} : tensor<16x128xi32> -> tensor<128x16xi32>
  %turned = tile.permute %other {order = array<i32: 1, 0>} : tensor<16x128xi32> -> tensor<128x16xi32>
  // CHECK: tile.join %{{.*}}, %{{.*}} : tensor<64xi32> -> tensor<64x2xi32>
  %pair = tile.join %range, %range : tensor<64xi32> -> tensor<64x2xi32>
  // CHECK: tile.split %{{.*}} : tensor<64x2xi32> -> tensor<64xi32>, tensor<64xi32>
  %halves:2 = tile.split %pair : tensor<64x2xi32> -> tensor<64xi32>, tensor<64xi32>
  return
}

// CHECK-LABEL: func.func @addresses
func.func @addresses(%p: tensor<8x!tile.ptr<f32>>, %i: tensor<8xi64>, %q: !tile.ptr<!tile.ptr<i8>>, %j: i32) {
  // CHECK: tile.addptr %{{.*}}, %{{.*}} : tensor<8x!tile.ptr<f32>>, tensor<8xi64>
  %0 = tile.addptr %p, %i : tensor<8x!tile.ptr<f32>>, tensor<8xi64>
  // CHECK: tile.addptr %{{.*}}, %{{.*}} : !tile.ptr<!tile.ptr<i8>>, i32
  %1 = tile.addptr %q, %j : !tile.ptr<!tile.ptr<i8>>, i32
  // CHECK: tile.ptr_to_int %{{.*}} : tensor<8x!tile.ptr<f32>> -> tensor<8xi64>
  %2 = tile.ptr_to_int %0 : tensor<8x!tile.ptr<f32>> -> tensor<8xi64>
  // CHECK: tile.int_to_ptr %{{.*}} : tensor<8xi64> -> tensor<8x!tile.ptr<f16>>
  %3 = tile.int_to_ptr %2 : tensor<8xi64> -> tensor<8x!tile.ptr<f16>>
  // CHECK: tile.ptr_cast %{{.*}} : tensor<8x!tile.ptr<f16>> -> tensor<8x!tile.ptr<i1>>
  %4 = tile.ptr_cast %3 : tensor<8x!tile.ptr<f16>> -> tensor<8x!tile.ptr<i1>>
  return
}

// CHECK-LABEL: func.func @memory
func.func @memory(%p: tensor<8x!tile.ptr<f32>>, %m: tensor<8xi1>, %v: tensor<8xf32>, %q: !tile.ptr<i64>) {
  // CHECK: tile.load %{{.*}} : tensor<8x!tile.ptr<f32>>
  %0 = tile.load %p : tensor<8x!tile.ptr<f32>>
  // CHECK: tile.load %{{[^,]*}}, %{{[^,]*}} {cache = #tile<cache cg>} : tensor<8x!tile.ptr<f32>>
  %1 = tile.load %p, %m {cache = #tile<cache cg>} : tensor<8x!tile.ptr<f32>>
  // CHECK: tile.load %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {isVolatile} : tensor<8x!tile.ptr<f32>>
  %2 = tile.load %p, %m, %v {isVolatile} : tensor<8x!tile.ptr<f32>>
  // CHECK: tile.load %{{.*}} : !tile.ptr<i64>
  %3 = tile.load %q : !tile.ptr<i64>
  // CHECK: tile.store %{{[^,]*}}, %{{[^,]*}} : tensor<8x!tile.ptr<f32>>
  tile.store %p, %0 : tensor<8x!tile.ptr<f32>>
  // CHECK: tile.store %{{[^,]*}}, %{{[^,]*}}, %{{[^,]*}} {eviction = #tile<eviction evict_first>} : tensor<8x!tile.ptr<f32>>
  tile.store %p, %1, %m {eviction = #tile<eviction evict_first>} : tensor<8x!tile.ptr<f32>>
  // CHECK: tile.store %{{[^,]*}}, %{{[^,]*}} : !tile.ptr<i64>
  tile.store %q, %3 : !tile.ptr<i64>
  return
}

// CHECK-LABEL: func.func @atomics
func.func @atomics(%p: tensor<8x!tile.ptr<f32>>, %m: tensor<8xi1>, %v: tensor<8xf32>, %q: !tile.ptr<i32>, %i: i32) {
  // CHECK: tile.atomic_rmw fadd %{{[^,]*}}, %{{[^,]*}}, %{{[^ ]*}} : (tensor<8x!tile.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> tensor<8xf32>
  %0 = tile.atomic_rmw fadd %p, %v, %m : (tensor<8x!tile.ptr<f32>>, tensor<8xf32>, tensor<8xi1>) -> tensor<8xf32>
  // CHECK: tile.atomic_rmw umax %{{[^,]*}}, %{{[^ ]*}} {order = #tile<order relaxed>} : (!tile.ptr<i32>, i32) -> i32
  %1 = tile.atomic_rmw umax %q, %i {order = #tile<order relaxed>} : (!tile.ptr<i32>, i32) -> i32
  // CHECK: tile.atomic_cas %{{[^,]*}}, %{{[^,]*}}, %{{[^ ]*}} {order = #tile<order acquire>, scope = #tile<scope sys>} : (!tile.ptr<i32>, i32, i32) -> i32
  %2 = tile.atomic_cas %q, %i, %1 {order = #tile<order acquire>, scope = #tile<scope sys>} : (!tile.ptr<i32>, i32, i32) -> i32
  return
}

// CHECK-LABEL: func.func @products
func.func @products(%a: tensor<64x32xf16>, %b: tensor<32x64xf16>, %c: tensor<64x64xf32>, %x: tensor<16x16xf32>) {
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
  %0 = tile.dot %a, %b, %c : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
  // CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} {precision = #tile<precision ieee>} : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  %1 = tile.dot %x, %x, %x {precision = #tile<precision ieee>} : tensor<16x16xf32> * tensor<16x16xf32> -> tensor<16x16xf32>
  // CHECK: tile.row_dot %{{.*}}, %{{.*}} : tensor<64x32xf16> -> tensor<64xf32>
  %2 = tile.row_dot %a, %a : tensor<64x32xf16> -> tensor<64xf32>
  return
}

// CHECK-LABEL: func.func @combining
func.func @combining(%x: tensor<64x32xf32>, %i: tensor<64x32xi32>) {
  // CHECK: tile.reduce %{{.*}} {axis = 1 : i32} : (tensor<64x32xf32>) -> tensor<64xf32> {
  %0 = tile.reduce %x {axis = 1 : i32} : (tensor<64x32xf32>) -> tensor<64xf32> {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maximumf %a, %b : f32
    // CHECK: tile.yield %{{.*}} : f32
    tile.yield %c : f32
  }
  // CHECK: tile.reduce %{{.*}} {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
  %1 = tile.reduce %0 {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  // CHECK: tile.reduce %{{.*}}, %{{.*}} {axis = 0 : i32} : (tensor<64x32xf32>, tensor<64x32xi32>) -> (tensor<32xf32>, tensor<32xi32>) {
  %2:2 = tile.reduce %x, %i {axis = 0 : i32} : (tensor<64x32xf32>, tensor<64x32xi32>) -> (tensor<32xf32>, tensor<32xi32>) {
  ^bb0(%a: f32, %j: i32, %b: f32, %k: i32):
    %more = arith.cmpf ogt, %a, %b : f32
    %c = arith.select %more, %a, %b : f32
    %l = arith.select %more, %j, %k : i32
    tile.yield %c, %l : f32, i32
  }
  // CHECK: tile.gather %{{.*}}[%{{.*}}] {axis = 0 : i32} : tensor<64x32xf32>[tensor<64x32xi32>] -> tensor<64x32xf32>
  %4 = tile.gather %x[%i] {axis = 0 : i32} : tensor<64x32xf32>[tensor<64x32xi32>] -> tensor<64x32xf32>
  // CHECK: tile.histogram %{{.*}} : tensor<64x32xi32> -> tensor<128xi32>
  %6 = tile.histogram %i : tensor<64x32xi32> -> tensor<128xi32>
  // CHECK: tile.shift %{{.*}} {axis = 0 : i32, offset = -3 : i32} : tensor<64x32xf32>
  %5 = tile.shift %x {axis = 0 : i32, offset = -3 : i32} : tensor<64x32xf32>
  // CHECK: tile.map %{{.*}}, %{{.*}} {pack = 1 : i32} : (tensor<64x32xf32>, tensor<64x32xi32>) -> (tensor<64x32xi1>, tensor<64x32xf32>) {
  %7:2 = tile.map %x, %i {pack = 1 : i32} : (tensor<64x32xf32>, tensor<64x32xi32>) -> (tensor<64x32xi1>, tensor<64x32xf32>) {
  ^bb0(%a: f32, %b: i32):
    %f = arith.sitofp %b : i32 to f32
    %less = arith.cmpf olt, %a, %f : f32
    tile.yield %less, %f : i1, f32
  }
  // CHECK: tile.scan %{{.*}} {axis = 0 : i32, reverse} : (tensor<64x32xi32>) -> tensor<64x32xi32> {
  %3 = tile.scan %i {axis = 0 : i32, reverse} : (tensor<64x32xi32>) -> tensor<64x32xi32> {
  ^bb0(%a: i32, %b: i32):
    %c = arith.addi %a, %b : i32
    tile.yield %c : i32
  }
  return
}

// CHECK-LABEL: func.func @effects
func.func @effects(%c: i1, %m: tensor<8xi1>) {
  // CHECK: tile.barrier
  tile.barrier
  // CHECK: tile.assert %{{.*}}, "no room" : i1
  tile.assert %c, "no room" : i1
  // CHECK: tile.assert %{{.*}}, "no room" : tensor<8xi1>
  tile.assert %m, "no room" : tensor<8xi1>
  // CHECK: tile.assume %{{.*}} : i1
  tile.assume %c : i1
  // CHECK: tile.assume %{{.*}} : tensor<8xi1>
  tile.assume %m : tensor<8xi1>
  return
}

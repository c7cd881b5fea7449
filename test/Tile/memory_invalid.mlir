// RUN: weft-opt %s --split-input-file --verify-diagnostics
// The constraints of TileMemoryOps.td, one a case, named after them.

func.func @addptr_c1_scalar(%p: !tile.ptr<f32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{expected an offset of type 'i32', but got 'tensor<8xi32>'}}
  %0 = tile.addptr %p, %i : !tile.ptr<f32>, tensor<8xi32>
  return
}

// -----

func.func @addptr_c1_shape(%p: tensor<4x!tile.ptr<f32>>, %i: tensor<8xi32>) {
  // expected-error@+1 {{expected an offset of type 'tensor<4xi32>', but got 'tensor<8xi32>'}}
  %0 = tile.addptr %p, %i : tensor<4x!tile.ptr<f32>>, tensor<8xi32>
  return
}

// -----

func.func @ptr_to_int_c1(%p: tensor<4x!tile.ptr<f32>>) {
  // expected-error@+1 {{expected an address of type 'tensor<4xi64>', but got 'tensor<4xi32>'}}
  %0 = tile.ptr_to_int %p : tensor<4x!tile.ptr<f32>> -> tensor<4xi32>
  return
}

// -----

func.func @int_to_ptr_c1(%i: tensor<4xi64>) {
  // expected-error@+1 {{expected an address of type 'i64', but got 'tensor<4xi64>'}}
  %0 = tile.int_to_ptr %i : tensor<4xi64> -> !tile.ptr<f32>
  return
}

// -----

func.func @ptr_cast_c1(%p: tensor<4x!tile.ptr<f32>>) {
  // expected-error@+1 {{expected a result of type 'tensor<4x!tile.ptr<f16>>', but got 'tensor<8x!tile.ptr<f16>>'}}
  %0 = tile.ptr_cast %p : tensor<4x!tile.ptr<f32>> -> tensor<8x!tile.ptr<f16>>
  return
}

// -----

func.func @load_pointer(%p: tensor<4xi64>) {
  // expected-error@+1 {{expected a pointer or a tensor of pointers, but got 'tensor<4xi64>'}}
  %0 = tile.load %p : tensor<4xi64>
  return
}

// -----

func.func @load_operands(%p: !tile.ptr<f32>, %m: i1, %o: f32) {
  // expected-error@+1 {{expected a pointer, a mask and another value at most, but got 4 operands}}
  %0 = tile.load %p, %m, %o, %o : !tile.ptr<f32>
  return
}

// -----

func.func @load_c1(%p: tensor<4x!tile.ptr<f32>>) {
  // expected-error@+1 {{expected a result of type 'tensor<4xf32>', but got 'tensor<4xf16>'}}
  %0 = "tile.load"(%p) <{operandSegmentSizes = array<i32: 1, 0, 0>}> : (tensor<4x!tile.ptr<f32>>) -> tensor<4xf16>
  return
}

// -----

func.func @load_c2(%p: tensor<4x!tile.ptr<f32>>, %m: i1) {
  // expected-error@+1 {{expected a mask of type 'tensor<4xi1>', but got 'i1'}}
  %0 = "tile.load"(%p, %m) <{operandSegmentSizes = array<i32: 1, 1, 0>}> : (tensor<4x!tile.ptr<f32>>, i1) -> tensor<4xf32>
  return
}

// -----

func.func @load_c3_mask(%p: !tile.ptr<f32>, %o: f32) {
  // expected-error@+1 {{expected a mask beside 'other', but got none}}
  %0 = "tile.load"(%p, %o) <{operandSegmentSizes = array<i32: 1, 0, 1>}> : (!tile.ptr<f32>, f32) -> f32
  return
}

// -----

func.func @load_c3_type(%p: !tile.ptr<f32>, %m: i1, %o: f16) {
  // expected-error@+1 {{expected 'other' of type 'f32', but got 'f16'}}
  %0 = "tile.load"(%p, %m, %o) <{operandSegmentSizes = array<i32: 1, 1, 1>}> : (!tile.ptr<f32>, i1, f16) -> f32
  return
}

// -----

func.func @store_operands(%p: !tile.ptr<f32>) {
  // expected-error@+1 {{expected a pointer, a value and a mask at most, but got 1 operands}}
  tile.store %p : !tile.ptr<f32>
  return
}

// -----

func.func @store_c1(%p: tensor<4x!tile.ptr<f32>>, %v: f32) {
  // expected-error@+1 {{expected a value of type 'tensor<4xf32>', but got 'f32'}}
  "tile.store"(%p, %v) : (tensor<4x!tile.ptr<f32>>, f32) -> ()
  return
}

// -----

func.func @store_c2(%p: !tile.ptr<f32>, %v: f32, %m: tensor<4xi1>) {
  // expected-error@+1 {{expected a mask of type 'i1', but got 'tensor<4xi1>'}}
  "tile.store"(%p, %v, %m) : (!tile.ptr<f32>, f32, tensor<4xi1>) -> ()
  return
}

// -----

func.func @atomic_rmw_c1_value(%p: tensor<4x!tile.ptr<i32>>, %v: i32) {
  // expected-error@+1 {{expected a value of type 'tensor<4xi32>', but got 'i32'}}
  %0 = tile.atomic_rmw add %p, %v : (tensor<4x!tile.ptr<i32>>, i32) -> tensor<4xi32>
  return
}

// -----

func.func @atomic_rmw_c1_result(%p: !tile.ptr<i32>, %v: i32) {
  // expected-error@+1 {{expected a result of type 'i32', but got 'i64'}}
  %0 = tile.atomic_rmw add %p, %v : (!tile.ptr<i32>, i32) -> i64
  return
}

// -----

func.func @atomic_rmw_c2(%p: !tile.ptr<i32>, %v: i32, %m: tensor<4xi1>) {
  // expected-error@+1 {{expected a mask of type 'i1', but got 'tensor<4xi1>'}}
  %0 = tile.atomic_rmw add %p, %v, %m : (!tile.ptr<i32>, i32, tensor<4xi1>) -> i32
  return
}

// -----

func.func @atomic_rmw_c3_add(%p: !tile.ptr<f32>, %v: f32) {
  // expected-error@+1 {{expected integers of 32 or 64 bits for 'add', but got 'f32'}}
  %0 = tile.atomic_rmw add %p, %v : (!tile.ptr<f32>, f32) -> f32
  return
}

// -----

func.func @atomic_rmw_c3_width(%p: !tile.ptr<i16>, %v: i16) {
  // expected-error@+1 {{expected integers of 32 or 64 bits for 'umax', but got 'i16'}}
  %0 = tile.atomic_rmw umax %p, %v : (!tile.ptr<i16>, i16) -> i16
  return
}

// -----

func.func @atomic_rmw_c3_fadd(%p: !tile.ptr<i32>, %v: i32) {
  // expected-error@+1 {{expected floats of 16, 32 or 64 bits for 'fadd', but got 'i32'}}
  %0 = tile.atomic_rmw fadd %p, %v : (!tile.ptr<i32>, i32) -> i32
  return
}

// -----

func.func @atomic_rmw_c3_exchange(%p: !tile.ptr<f16>, %v: f16) {
  // expected-error@+1 {{expected integers or floats of 32 or 64 bits for 'exchange', but got 'f16'}}
  %0 = tile.atomic_rmw exchange %p, %v : (!tile.ptr<f16>, f16) -> f16
  return
}

// -----

func.func @atomic_cas_c1(%p: !tile.ptr<i32>, %v: i32, %w: i64) {
  // expected-error@+1 {{expected operands and result of type 'i32', but got 'i64'}}
  %0 = tile.atomic_cas %p, %v, %w : (!tile.ptr<i32>, i32, i64) -> i32
  return
}

// -----

func.func @atomic_cas_c2(%p: !tile.ptr<i8>, %v: i8) {
  // expected-error@+1 {{expected values of 16, 32 or 64 bits, but got 'i8'}}
  %0 = tile.atomic_cas %p, %v, %v : (!tile.ptr<i8>, i8, i8) -> i8
  return
}

// -----

func.func @load_attribute(%p: !tile.ptr<f32>) {
  // expected-error@+1 {{'tile.load' op attribute 'cache' failed to satisfy constraint: cache operator of a load or store}}
  %0 = tile.load %p {cache = 1 : i32} : !tile.ptr<f32>
  return
}

// -----

func.func @store_attribute(%p: !tile.ptr<f32>, %v: f32) {
  // expected-error@+1 {{'tile.store' op attribute 'eviction' failed to satisfy constraint: L2 eviction priority}}
  tile.store %p, %v {eviction = 1 : i32} : !tile.ptr<f32>
  return
}

// -----

func.func @load_c4_both(%p: !tile.ptr<f32>) {
  // expected-error@+1 {{expected one of a cache operator, an eviction priority and 'isVolatile', but got 2}}
  %0 = tile.load %p {cache = #tile<cache cg>, isVolatile} : !tile.ptr<f32>
  return
}

// -----

func.func @load_c4_operator(%p: !tile.ptr<f32>) {
  // expected-error@+1 {{expected a cache operator of loads, but got 'wt'}}
  %0 = tile.load %p {cache = #tile<cache wt>} : !tile.ptr<f32>
  return
}

// -----

func.func @store_c3(%p: !tile.ptr<f32>, %v: f32) {
  // expected-error@+1 {{expected one of a cache operator, an eviction priority and 'isVolatile', but got 2}}
  tile.store %p, %v {cache = #tile<cache wt>, eviction = #tile<eviction evict_last>} : !tile.ptr<f32>
  return
}

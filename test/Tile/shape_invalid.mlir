// RUN: weft-opt %s --split-input-file --verify-diagnostics
// The constraints of TileShapeOps.td, one a case, named after them.

func.func @make_range_c1() {
  // expected-error@+1 {{expected 'end' to be more than 'start', but got 8 to 8}}
  %0 = tile.make_range {start = 8 : i32, end = 8 : i32} : tensor<8xi32>
  return
}

// -----

func.func @make_range_c1_no_overflow() {
  // expected-error@+1 {{expected 'end' to be more than 'start', but got 2147483647 to -2147483648}}
  %0 = tile.make_range {start = 2147483647 : i32, end = -2147483648 : i32} : tensor<1xi32>
  return
}

// -----

func.func @make_range_c2_element() {
  // expected-error@+1 {{expected a result of element type 'i32', but got 'i64'}}
  %0 = tile.make_range {start = 0 : i32, end = 8 : i32} : tensor<8xi64>
  return
}

// -----

func.func @make_range_c2_shape() {
  // expected-error@+1 {{expected a result of shape [8], but got [16]}}
  %0 = tile.make_range {start = 0 : i32, end = 8 : i32} : tensor<16xi32>
  return
}

// -----

func.func @splat_c1(%s: f32) {
  // expected-error@+1 {{expected a result of element type 'f32', but got 'f16'}}
  %0 = tile.splat %s : f32 -> tensor<8xf16>
  return
}

// -----

func.func @expand_dims_c1(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected 'axis' between 0 and 1, but got 2}}
  %0 = tile.expand_dims %x {axis = 2 : i32} : tensor<8xf32> -> tensor<8x1xf32>
  return
}

// -----

func.func @expand_dims_c1_negative(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected 'axis' between 0 and 1, but got -1}}
  %0 = tile.expand_dims %x {axis = -1 : i32} : tensor<8xf32> -> tensor<8x1xf32>
  return
}

// -----

func.func @expand_dims_c2_shape(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a result of shape [1, 8], but got [8, 1]}}
  %0 = tile.expand_dims %x {axis = 0 : i32} : tensor<8xf32> -> tensor<8x1xf32>
  return
}

// -----

func.func @expand_dims_c2_element(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a result of element type 'f32', but got 'i32'}}
  %0 = tile.expand_dims %x {axis = 0 : i32} : tensor<8xf32> -> tensor<1x8xi32>
  return
}

// -----

func.func @broadcast_c1_rank(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a result of rank 1, but got 2}}
  %0 = tile.broadcast %x : tensor<8xf32> -> tensor<8x8xf32>
  return
}

// -----

func.func @broadcast_c1_element(%x: tensor<1xf32>) {
  // expected-error@+1 {{expected a result of element type 'f32', but got 'f64'}}
  %0 = tile.broadcast %x : tensor<1xf32> -> tensor<8xf64>
  return
}

// -----

func.func @broadcast_c2(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{expected axis 1 of the source to be 1 or 8, but got 2}}
  %0 = tile.broadcast %x : tensor<8x2xf32> -> tensor<8x8xf32>
  return
}

// -----

func.func @reshape_c1_count(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{expected a result of 16 elements, but got 32}}
  %0 = tile.reshape %x : tensor<8x2xf32> -> tensor<32xf32>
  return
}

// -----

func.func @reshape_c1_element(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{expected a result of element type 'f32', but got 'i32'}}
  %0 = tile.reshape %x : tensor<8x2xf32> -> tensor<16xi32>
  return
}

// -----

func.func @permute_c1_length(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{expected 'order' to be a permutation of the 2 axes, but got [0]}}
  %0 = tile.permute %x {order = array<i32: 0>} : tensor<8x2xf32> -> tensor<8x2xf32>
  return
}

// -----

func.func @permute_c1_repeat(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{expected 'order' to be a permutation of the 2 axes, but got [1, 1]}}
  %0 = tile.permute %x {order = array<i32: 1, 1>} : tensor<8x2xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @permute_c1_outside(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{expected 'order' to be a permutation of the 2 axes, but got [2, -1]}}
  %0 = tile.permute %x {order = array<i32: 2, -1>} : tensor<8x2xf32> -> tensor<2x2xf32>
  return
}

// -----

func.func @permute_c2_shape(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{expected a result of shape [2, 8], but got [8, 2]}}
  %0 = tile.permute %x {order = array<i32: 1, 0>} : tensor<8x2xf32> -> tensor<8x2xf32>
  return
}

// -----

func.func @permute_c2_element(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{expected a result of element type 'f32', but got 'f16'}}
  %0 = tile.permute %x {order = array<i32: 1, 0>} : tensor<8x2xf32> -> tensor<2x8xf16>
  return
}

// -----

func.func @join_c1_shape(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a result of shape [8, 2], but got [2, 8]}}
  %0 = tile.join %x, %x : tensor<8xf32> -> tensor<2x8xf32>
  return
}

// -----

func.func @join_c1_element(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a result of element type 'f32', but got 'i8'}}
  %0 = tile.join %x, %x : tensor<8xf32> -> tensor<8x2xi8>
  return
}

// -----

func.func @split_c1(%x: tensor<2x8xf32>) {
  // expected-error@+1 {{expected a source whose last axis is 2, but got 'tensor<2x8xf32>'}}
  %0:2 = tile.split %x : tensor<2x8xf32> -> tensor<2xf32>, tensor<2xf32>
  return
}

// -----

func.func @split_c2_shape(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{expected a result of shape [8], but got [4]}}
  %0:2 = tile.split %x : tensor<8x2xf32> -> tensor<8xf32>, tensor<4xf32>
  return
}

// -----

func.func @split_c2_element(%x: tensor<8x2xf32>) {
  // expected-error@+1 {{expected a result of element type 'f32', but got 'i32'}}
  %0:2 = tile.split %x : tensor<8x2xf32> -> tensor<8xi32>, tensor<8xf32>
  return
}

// -----

func.func @gather_c1(%x: tensor<8x16xf32>, %i: tensor<8x16xi32>) {
  // expected-error@+1 {{expected 'axis' between 0 and 1, but got 2}}
  %0 = tile.gather %x[%i] {axis = 2 : i32} : tensor<8x16xf32>[tensor<8x16xi32>] -> tensor<8x16xf32>
  return
}

// -----

func.func @gather_c2_element(%x: tensor<8x16xf32>, %i: tensor<8x16xi64>) {
  // expected-error@+1 {{expected indices of element type 'i32', but got 'i64'}}
  %0 = tile.gather %x[%i] {axis = 0 : i32} : tensor<8x16xf32>[tensor<8x16xi64>] -> tensor<8x16xf32>
  return
}

// -----

func.func @gather_c2_shape(%x: tensor<8x16xf32>, %i: tensor<8x32xi32>) {
  // expected-error@+1 {{expected indices of the source's shape but along axis 0, but got 'tensor<8x32xi32>' for 'tensor<8x16xf32>'}}
  %0 = tile.gather %x[%i] {axis = 0 : i32} : tensor<8x16xf32>[tensor<8x32xi32>] -> tensor<8x32xf32>
  return
}

// -----

func.func @gather_c2_rank(%x: tensor<8x16xf32>, %i: tensor<8xi32>) {
  // expected-error@+1 {{expected indices of the source's shape but along axis 0, but got 'tensor<8xi32>' for 'tensor<8x16xf32>'}}
  %0 = tile.gather %x[%i] {axis = 0 : i32} : tensor<8x16xf32>[tensor<8xi32>] -> tensor<8xf32>
  return
}

// -----

func.func @gather_c3_shape(%x: tensor<8x16xf32>, %i: tensor<4x16xi32>) {
  // expected-error@+1 {{expected a result of shape [4, 16], but got [8, 16]}}
  %0 = tile.gather %x[%i] {axis = 0 : i32} : tensor<8x16xf32>[tensor<4x16xi32>] -> tensor<8x16xf32>
  return
}

// -----

func.func @gather_c3_element(%x: tensor<8x16xf32>, %i: tensor<4x16xi32>) {
  // expected-error@+1 {{expected a result of element type 'f32', but got 'f16'}}
  %0 = tile.gather %x[%i] {axis = 0 : i32} : tensor<8x16xf32>[tensor<4x16xi32>] -> tensor<4x16xf16>
  return
}

// -----

func.func @shift_c1(%x: tensor<8x16xf32>) {
  // expected-error@+1 {{expected 'axis' between 0 and 1, but got 2}}
  %0 = tile.shift %x {axis = 2 : i32, offset = 1 : i32} : tensor<8x16xf32>
  return
}

// -----

func.func @shift_c2(%x: tensor<8x16xf32>) {
  // expected-error@+1 {{expected an 'offset' of a magnitude below 8, the size along axis 0, but got -8}}
  %0 = tile.shift %x {axis = 0 : i32, offset = -8 : i32} : tensor<8x16xf32>
  return
}

// -----

func.func @shift_c3(%x: tensor<8x!tile.ptr<f32>>) {
  // expected-error@+1 {{expected elements that are integers or floats, but got '!tile.ptr<f32>'}}
  %0 = tile.shift %x {axis = 0 : i32, offset = 1 : i32} : tensor<8x!tile.ptr<f32>>
  return
}

// -----

func.func @histogram_c1(%x: tensor<64xi64>) {
  // expected-error@+1 {{'tile.histogram' op expected values of element type 'i32', but got 'i64'}}
  %0 = tile.histogram %x : tensor<64xi64> -> tensor<16xi32>
  return
}

// -----

func.func @histogram_c2(%x: tensor<64xi32>, %m: tensor<32xi1>) {
  // expected-error@+1 {{expected}}
  %0 = tile.histogram %x, %m : tensor<64xi32>, tensor<32xi1> -> tensor<16xi32>
  return
}

// -----

func.func @histogram_c3(%x: tensor<64xi32>) {
  // expected-error@+1 {{'tile.histogram' op expected a result of rank 1 and element type 'i32', but got 'tensor<4x4xi32>'}}
  %0 = tile.histogram %x : tensor<64xi32> -> tensor<4x4xi32>
  return
}

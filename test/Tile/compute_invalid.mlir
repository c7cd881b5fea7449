// RUN: weft-opt %s --split-input-file --verify-diagnostics
// The constraints of TileComputeOps.td, one a case, named after them.

func.func @row_dot_c1(%a: tensor<16x16xf32>) {
  // expected-error@+1 {{expected matrices of f16 or bf16, but got 'tensor<16x16xf32>'}}
  %0 = tile.row_dot %a, %a : tensor<16x16xf32> -> tensor<16xf32>
  return
}

// -----

func.func @row_dot_c2(%a: tensor<16x8xbf16>) {
  // expected-error@+1 {{expected sizes of at least 16, but got 'tensor<16x8xbf16>'}}
  %0 = tile.row_dot %a, %a : tensor<16x8xbf16> -> tensor<16xf32>
  return
}

// -----

func.func @row_dot_c3(%a: tensor<16x32xbf16>) {
  // expected-error@+1 {{expected 16 results of f32, but got 'tensor<32xf32>'}}
  %0 = tile.row_dot %a, %a : tensor<16x32xbf16> -> tensor<32xf32>
  return
}

// -----

func.func @dot_c1_rank(%a: tensor<16xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error@+1 {{expected matrices, but got 'tensor<16xf16>', 'tensor<16x16xf16>' and 'tensor<16x16xf32>'}}
  %0 = tile.dot %a, %b, %c : tensor<16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  return
}

// -----

func.func @dot_c1_inner(%a: tensor<16x32xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error@+1 {{expected as many rows of 'b' as columns of 'a', 32, but got 16}}
  %0 = tile.dot %a, %b, %c : tensor<16x32xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  return
}

// -----

func.func @dot_c1_accumulator(%a: tensor<16x16xf16>, %b: tensor<16x32xf16>, %c: tensor<16x16xf32>) {
  // expected-error@+1 {{expected an accumulator of shape [16, 32], but got 'tensor<16x16xf32>'}}
  %0 = tile.dot %a, %b, %c : tensor<16x16xf16> * tensor<16x32xf16> -> tensor<16x16xf32>
  return
}

// -----

func.func @dot_c2(%a: tensor<16x4xf16>, %b: tensor<4x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error@+1 {{expected M of at least 16, N of at least 8 and K of at least 8, but got M = 16, N = 16, K = 4}}
  %0 = tile.dot %a, %b, %c : tensor<16x4xf16> * tensor<4x16xf16> -> tensor<16x16xf32>
  return
}

// -----

func.func @dot_c2_f64(%a: tensor<4x16xf64>, %b: tensor<16x16xf64>, %c: tensor<4x16xf64>) {
  // expected-error@+1 {{expected M of at least 8, N of at least 8 and K of at least 4, but got M = 4, N = 16, K = 16}}
  %0 = tile.dot %a, %b, %c : tensor<4x16xf64> * tensor<16x16xf64> -> tensor<4x16xf64>
  return
}

// -----

func.func @dot_c3_operands(%a: tensor<16x16xf16>, %b: tensor<16x16xbf16>, %c: tensor<16x16xf32>) {
  // expected-error@+1 {{expected operands of one element type, but got 'f16' and 'bf16'}}
  %0 = tile.dot %a, %b, %c : tensor<16x16xf16> * tensor<16x16xbf16> -> tensor<16x16xf32>
  return
}

// -----

func.func @dot_c3_accumulator(%a: tensor<16x16xbf16>, %c: tensor<16x16xf16>) {
  // expected-error@+1 {{expected an accumulator that products of 'bf16' are summed in, but got 'f16'}}
  %0 = tile.dot %a, %a, %c : tensor<16x16xbf16> * tensor<16x16xbf16> -> tensor<16x16xf16>
  return
}

// -----

func.func @dot_c1_batch(%a: tensor<48x16xf16>, %b: tensor<16x64xf16>, %c: tensor<48x16xf32>) {
  // expected-error@+1 {{expected rows of 'a' and columns of 'b' of 5 products, but got 48 and 64}}
  %0 = tile.dot %a, %b, %c {batch = 5 : i32} : tensor<48x16xf16> * tensor<16x64xf16> -> tensor<48x16xf32>
  return
}

// -----

func.func @dot_c1_accumulators(%a: tensor<32x16xf16>, %b: tensor<16x64xf16>, %c: tensor<32x64xf32>) {
  // expected-error@+1 {{expected an accumulator of shape [32, 32], but got}}
  %0 = tile.dot %a, %b, %c {batch = 2 : i32} : tensor<32x16xf16> * tensor<16x64xf16> -> tensor<32x64xf32>
  return
}

// -----

func.func @dot_c4_sizes(%a: tensor<48x16xf16>, %b: tensor<16x48xf16>, %c: tensor<48x16xf32>) {
  // expected-error@+1 {{expected several products to be of sizes that are powers of two, but got 3 of 16 × 16 × 16}}
  %0 = tile.dot %a, %b, %c {batch = 3 : i32} : tensor<48x16xf16> * tensor<16x48xf16> -> tensor<48x16xf32>
  return
}

// -----

func.func @dot_c4_precision(%a: tensor<32x16xf32>, %b: tensor<16x32xf32>, %c: tensor<32x16xf32>) {
  // expected-error@+1 {{expected several products to be of matrix instructions, but got those of 'ieee' precision}}
  %0 = tile.dot %a, %b, %c {batch = 2 : i32, precision = #tile<precision ieee>} : tensor<32x16xf32> * tensor<16x32xf32> -> tensor<32x16xf32>
  return
}

// -----

func.func @dot_c4_float8(%a: tensor<32x32xf8E5M2>, %b: tensor<32x32xf8E5M2>, %c: tensor<32x16xf32>) {
  // expected-error@+1 {{expected several products to be of matrix instructions, but got 8-bit floats}}
  %0 = tile.dot %a, %b, %c {batch = 2 : i32} : tensor<32x32xf8E5M2> * tensor<32x32xf8E5M2> -> tensor<32x16xf32>
  return
}

// -----

func.func @reduce_c1_none() {
  // expected-error@+1 {{expected at least one source, but got none}}
  "tile.reduce"() <{axis = 0 : i32}> ({
    "tile.yield"() : () -> ()
  }) : () -> ()
  return
}

// -----

func.func @reduce_c1_shapes(%x: tensor<8xf32>, %y: tensor<16xf32>) {
  // expected-error@+1 {{expected sources of one shape, but got 'tensor<8xf32>' and 'tensor<16xf32>'}}
  %0:2 = tile.reduce %x, %y {axis = 0 : i32} : (tensor<8xf32>, tensor<16xf32>) -> (f32, f32) {
  ^bb0(%a: f32, %b: f32, %c: f32, %d: f32):
    tile.yield %a, %b : f32, f32
  }
  return
}

// -----

func.func @reduce_c1_axis(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected 'axis' between 0 and 0, but got 1}}
  %0 = tile.reduce %x {axis = 1 : i32} : (tensor<8xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @reduce_c2_count(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected as many results as sources, 1, but got 2}}
  %0:2 = tile.reduce %x {axis = 0 : i32} : (tensor<8xf32>) -> (f32, f32) {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @reduce_c2_shape(%x: tensor<8x16xf32>) {
  // expected-error@+1 {{expected a result of 'f32' without axis 1 of 'tensor<8x16xf32>', but got 'tensor<16xf32>'}}
  %0 = tile.reduce %x {axis = 1 : i32} : (tensor<8x16xf32>) -> tensor<16xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @reduce_c2_scalar(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a result of 'f32' without axis 0 of 'tensor<8xf32>', but got 'tensor<1xf32>'}}
  %0 = tile.reduce %x {axis = 0 : i32} : (tensor<8xf32>) -> tensor<1xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @reduce_c2_element(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a result of 'f32' without axis 0 of 'tensor<8xf32>', but got 'f16'}}
  %0 = tile.reduce %x {axis = 0 : i32} : (tensor<8xf32>) -> f16 {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @reduce_c3_takes(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a region over ('f32', 'f32'), but got ('f32')}}
  %0 = tile.reduce %x {axis = 0 : i32} : (tensor<8xf32>) -> f32 {
  ^bb0(%a: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @reduce_c3_yields(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a region that yields ('f32'), but got ('f32', 'f32')}}
  %0 = tile.reduce %x {axis = 0 : i32} : (tensor<8xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a, %b : f32, f32
  }
  return
}

// -----

func.func @reduce_c4(%x: tensor<8xf32>, %p: !tile.ptr<f32>) {
  // expected-error@+1 {{expected a region that neither reads nor writes memory, but got 'tile.store'}}
  %0 = tile.reduce %x {axis = 0 : i32} : (tensor<8xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    // expected-note@+1 {{the operation is here}}
    tile.store %p, %a : !tile.ptr<f32>
    tile.yield %a : f32
  }
  return
}

// -----

func.func @scan_c1(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected 'axis' between 0 and 0, but got -1}}
  %0 = tile.scan %x {axis = -1 : i32} : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @scan_c2(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a result of type 'tensor<8xf32>', but got 'tensor<16xf32>'}}
  %0 = tile.scan %x {axis = 0 : i32} : (tensor<8xf32>) -> tensor<16xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @scan_c3(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a region over ('f32', 'f32'), but got ('f32', 'i32')}}
  %0 = tile.scan %x {axis = 0 : i32} : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: f32, %b: i32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @scan_c4(%x: tensor<8xf32>, %p: !tile.ptr<f32>) {
  // expected-error@+1 {{expected a region that neither reads nor writes memory, but got 'tile.load'}}
  %0 = tile.scan %x {axis = 0 : i32} : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: f32, %b: f32):
    // expected-note@+1 {{the operation is here}}
    %c = tile.load %p : !tile.ptr<f32>
    tile.yield %c : f32
  }
  return
}

// -----

func.func @yield_parent(%x: f32) {
  // expected-error@+1 {{'tile.yield' op expects parent op to be one of 'tile.map, tile.reduce, tile.scan'}}
  tile.yield %x : f32
}

// -----

func.func @reduce_c3_end(%x: tensor<64xf32>) {
  // expected-error@+1 {{expected a region that ends in 'tile.yield'}}
  %0 = tile.reduce %x {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    attn.yield %a : f32
  }
  return
}

// -----

func.func @map_c1_sources() {
  // expected-error@+1 {{expected at least one source and one result, but got 0 and 1}}
  %0 = "tile.map"() <{pack = 1 : i32}> ({
    %c = arith.constant 0.0 : f32
    tile.yield %c : f32
  }) : () -> tensor<8xf32>
  return
}

// -----

func.func @map_c1_shapes(%x: tensor<8xf32>, %y: tensor<4xf32>) {
  // expected-error@+1 {{expected sources and results of one shape, but got 'tensor<8xf32>' and 'tensor<4xf32>'}}
  %0 = tile.map %x, %y {pack = 1 : i32} : (tensor<8xf32>, tensor<4xf32>) -> tensor<8xf32> {
  ^bb0(%a: f32, %b: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @map_c2(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a number of packed elements that is a power of two up to 32, but got 3}}
  %0 = tile.map %x {pack = 3 : i32} : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: f32, %b: f32, %c: f32):
    tile.yield %a, %b, %c : f32, f32, f32
  }
  return
}

// -----

func.func @map_c3_arguments(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a region over ('f32', 'f32'), but got ('f32')}}
  %0 = tile.map %x {pack = 2 : i32} : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: f32):
    tile.yield %a, %a : f32, f32
  }
  return
}

// -----

func.func @map_c3_yields(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected a region that yields ('i32'), but got ('f32')}}
  %0 = tile.map %x {pack = 1 : i32} : (tensor<8xf32>) -> tensor<8xi32> {
  ^bb0(%a: f32):
    tile.yield %a : f32
  }
  return
}

// -----

func.func @map_c4(%x: tensor<8xf32>, %p: !tile.ptr<f32>) {
  // expected-error@+1 {{expected a region that neither reads nor writes memory, but got 'tile.load'}}
  %0 = tile.map %x {pack = 1 : i32} : (tensor<8xf32>) -> tensor<8xf32> {
  ^bb0(%a: f32):
    // expected-note@+1 {{the operation is here}}
    %c = tile.load %p : !tile.ptr<f32>
    tile.yield %c : f32
  }
  return
}

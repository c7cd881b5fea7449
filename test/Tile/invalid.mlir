// RUN: weft-opt %s --split-input-file --verify-diagnostics
// What no op of the dialect takes, and the attributes it defines on other ops. Each family of ops has its own file beside this one.

func.func @sizes_not_zero(%s: f32) {
  // expected-error@+1 {{expected sizes of at least 1, but got 'tensor<0xf32>'}}
  %0 = tile.splat %s : f32 -> tensor<0xf32>
  return
}

// -----

func.func @sizes_at_most(%s: f32) {
  // expected-error@+1 {{expected at most 1048576 elements, but got 'tensor<2048x1024xf32>'}}
  %0 = tile.splat %s : f32 -> tensor<2048x1024xf32>
  return
}

// -----

func.func @sizes_product_overflows(%s: f32) {
  // expected-error@+1 {{expected at most 1048576 elements, but got}}
  %0 = tile.splat %s : f32 -> tensor<4294967296x4294967296x2xf32>
  return
}

// -----

func.func @sizes_an_axis(%s: f32) {
  // expected-error@+2 {{expected a tensor with at least one axis, but got 'tensor<f32>'}}
  // expected-note@+1 {{use a scalar of type 'f32'}}
  %0 = tile.splat %s : f32 -> tensor<f32>
  return
}

// -----

func.func @sizes_static(%s: f32) {
  // expected-error@+1 {{'tile.splat' op result #0 must be}}
  %0 = tile.splat %s : f32 -> tensor<?xf32>
  return
}

// -----

// expected-error@+1 {{expected a pointer to an integer or float of 1, 8, 16, 32 or 64 bits, or to a pointer, but got 'i7'}}
func.func @pointee(%p: !tile.ptr<i7>)

// -----

// expected-error@+1 {{expected a pointer to an integer or float of 1, 8, 16, 32 or 64 bits, or to a pointer, but got 'ui32'}}
func.func @pointee_sign(%p: !tile.ptr<ui32>)

// -----

// expected-error@+1 {{expected 'warps' to be a power of two from 1 to 32, but got 3}}
#warps = #tile.schedule<warps = 3, stages = 1>

// -----

// expected-error@+1 {{expected 'stages' to be at least 1, but got 0}}
#stages = #tile.schedule<warps = 4, stages = 0>

// -----

// expected-error@+1 {{expected a kernel with a body, but got a declaration}}
func.func private @kernel_body(%n: i32) attributes {tile.kernel}

// -----

// expected-error@+1 {{expected a kernel without results, but got 'i32'}}
func.func @kernel_results(%n: i32) -> i32 attributes {tile.kernel} {
  return %n : i32
}

// -----

// expected-error@+2 {{expected argument 1 to be a pointer or a scalar, but got 'tensor<16xf32>'}}
// expected-note@+1 {{pass a '!tile.ptr' and load from it, or a scalar of 1, 8, 16, 32 or 64 bits}}
func.func @kernel_arguments(%n: i32, %x: tensor<16xf32>) attributes {tile.kernel} {
  return
}

// -----

// expected-error@+2 {{expected argument 0 to be a pointer or a scalar, but got 'i48'}}
// expected-note@+1 {{pass a '!tile.ptr' and load from it, or a scalar of 1, 8, 16, 32 or 64 bits}}
func.func @kernel_argument_width(%n: i48) attributes {tile.kernel} {
  return
}

// -----

// expected-error@+1 {{expected 'tile.kernel' to be a unit attribute, but got 1 : i32}}
func.func @kernel_unit() attributes {tile.kernel = 1 : i32} {
  return
}

// -----

func.func @kernel_place() {
  // expected-error@+1 {{expected 'tile.kernel' on a 'func.func', but got it on 'scf.execute_region'}}
  scf.execute_region {
    scf.yield
  } {tile.kernel}
  return
}

// -----

// expected-error@+1 {{expected 'tile.schedule' to be a '#tile.schedule', but got 4 : i32}}
func.func @schedule() attributes {tile.schedule = 4 : i32} {
  return
}

// -----

// expected-error@+2 {{expected an attribute that the tile dialect knows, but got 'tile.kernal'}}
// expected-note@+1 {{it knows 'tile.kernel', 'tile.schedule'}}
func.func @unknown() attributes {tile.kernal} {
  return
}

// -----

// expected-error@+1 {{expected 'tile.divisibility' of argument 0 to be a positive i32, but got 0 : i32}}
func.func @divisibility_positive(%n: i32 {tile.divisibility = 0 : i32}) {
  return
}

// -----

// expected-error@+1 {{expected 'tile.divisibility' of argument 0 to be a positive i32, but got 16 : i64}}
func.func @divisibility_type(%n: i32 {tile.divisibility = 16 : i64}) {
  return
}

// -----

// expected-error@+1 {{expected 'tile.divisibility' on an integer or a pointer, but got it on argument 1 of type 'f32'}}
func.func @divisibility_place(%n: i32, %x: f32 {tile.divisibility = 16 : i32}) {
  return
}

// -----

// expected-error@+1 {{expected an attribute of argument 0 that the tile dialect knows, but got 'tile.align'}}
func.func @argument_unknown(%n: i32 {tile.align = 16 : i32}) {
  return
}

// -----

func.func @promise(%a: i32) {
  // expected-error@+1 {{expected 'tile.contiguity' to be a positive i32 or an array of them, but got array<i32: 4, -1>}}
  %0 = arith.addi %a, %a {tile.contiguity = array<i32: 4, -1>} : i32
  return
}

// -----

func.func @unroll_factor(%n: index) {
  %zero = arith.constant 0 : index
  %one = arith.constant 1 : index
  // expected-error@+1 {{expected 'tile.unroll_factor' on an 'scf.for' to be a positive i32, but got 0 : i32}}
  scf.for %i = %zero to %n step %one {
  } {tile.unroll_factor = 0 : i32}
  return
}

// -----

func.func @num_stages(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{expected 'tile.num_stages' on an 'scf.for' to be a positive i32, but got 0 : i32}}
  scf.for %i = %c0 to %n step %c1 {
  } {tile.num_stages = 0 : i32}
  return
}

// -----

func.func @few_iterations(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{expected 'tile.few_iterations' to be a unit attribute of an 'scf.for'}}
  scf.for %i = %c0 to %n step %c1 {
  } {tile.few_iterations = 3 : i32}
  return
}

// -----

func.func @warp_specialize(%n: index) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // expected-error@+1 {{expected 'tile.warp_specialize' to be a unit attribute of an 'scf.for'}}
  scf.for %i = %c0 to %n step %c1 {
  } {tile.warp_specialize = true}
  return
}

// -----

func.func @few_iterations(%a: i32) {
  // expected-error@+1 {{expected 'tile.few_iterations' to be a unit attribute of an 'scf.for'}}
  %0 = arith.addi %a, %a {tile.few_iterations} : i32
  return
}

// -----

func.func @sums_of_halves(%a: tensor<16x16xf16>, %b: tensor<16x16xf16>, %c: tensor<16x16xf32>) -> tensor<16x16xf32> {
  // expected-error@+1 {{expected 'tile.imprecise_sums' to be a unit on a 'tile.dot' of 8-bit floats}}
  %d = tile.dot %a, %b, %c {tile.imprecise_sums} : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  return %d : tensor<16x16xf32>
}

// -----

func.func @leaves_rows(%a: i32) {
  // expected-error@+1 {{expected 'tile.leaves_rows' to be a unit attribute of an 'arith.select'}}
  %0 = arith.addi %a, %a {tile.leaves_rows} : i32
  return
}

// -----

func.func @wraps_unread(%a: i32) {
  // expected-error@+1 {{expected 'tile.wraps_unread' to be a unit attribute of what may wrap indices}}
  %0 = arith.divsi %a, %a {tile.wraps_unread} : i32
  return
}

// -----

// expected-error@+1 {{expected no cluster of a persistent kernel, but got 2}}
func.func @persistent() attributes {tile.schedule = #tile.schedule<warps = 4, stages = 3, cluster = 2, persistent = true>} {
  return
}

// -----

// expected-error@+1 {{expected 'cluster' to be 1, 2, 4 or 8, but got 3}}
func.func @cluster() attributes {tile.schedule = #tile.schedule<warps = 4, stages = 3, cluster = 3>} {
  return
}

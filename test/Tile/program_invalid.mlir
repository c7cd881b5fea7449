// RUN: weft-opt %s --split-input-file --verify-diagnostics
// The constraints of TileProgramOps.td, one a case, named after them.

func.func @print_c1(%x: tensor<8xf16>) {
  // expected-error@+1 {{expected a value of i32, i64, f32 or f64, but got 'tensor<8xf16>'}}
  tile.print "x", %x : tensor<8xf16>
  return
}

// -----

func.func @print_c2(%x: tensor<8xf32>) {
  // expected-error@+1 {{expected 1 numbers in 'first', but got 2}}
  tile.print "x", %x : tensor<8xf32> {first = array<i32: 8, 0>}
  return
}

// -----

func.func @inline_asm_c1_results(%x: i32) {
  // expected-error@+1 {{expected at least one result, but got none}}
  tile.inline_asm "nop", "r" pack 1 %x : (i32) -> ()
  return
}

// -----

func.func @inline_asm_c1_operands() {
  // expected-error@+1 {{expected an operand of the results' shape, but got none}}
  %0 = tile.inline_asm "mov $0, 1;", "=r" pack 1 : () -> tensor<8xi32>
  return
}

// -----

func.func @inline_asm_c2(%x: tensor<8xi32>, %y: i32) {
  // expected-error@+1 {{expected operands and results of one shape, but got 'tensor<8xi32>' and 'i32'}}
  %0 = tile.inline_asm "add $0, $1, $2;", "=r,r,r" pack 1 %x, %y : (tensor<8xi32>, i32) -> tensor<8xi32>
  return
}

// -----

func.func @inline_asm_c3(%p: !tile.ptr<i32>) {
  // expected-error@+1 {{expected integers and floats, but got '!tile.ptr<i32>'}}
  %0 = tile.inline_asm "ld $0, [$1];", "=r,l" pack 1 %p : (!tile.ptr<i32>) -> i32
  return
}

// -----

func.func @inline_asm_c4(%x: i32) {
  // expected-error@+1 {{expected a number of packed elements that is a power of two up to 32, but got 6}}
  %0 = tile.inline_asm "mov $0, $1;", "=r,r" pack 6 %x : (i32) -> i32
  return
}

// -----

func.func @inline_asm_c5_number(%x: f32) {
  // expected-error@+1 {{expected an integer for the constraint 'n', but got 'f32'}}
  %0 = tile.inline_asm "add.f32 $0, $1, 1.0;", "=f,n" pack 1 %x : (f32) -> f32
  return
}

// -----

func.func @inline_asm_c5_kind(%x: i32) {
  // expected-error@+1 {{expected a constraint of 'r', 'h', 'l', 'f' or 'd', of '=' and one of these, of 'n' or 'i', or the number of a result, but got '=m'}}
  %0 = tile.inline_asm "mov $0, $1;", "=m,r" pack 1 %x : (i32) -> i32
  return
}

// -----

func.func @inline_asm_c5_order(%x: i32) {
  // expected-error@+1 {{expected constraints of results, then of operands, then clobbers, but got '=r,~{memory},r'}}
  %0 = tile.inline_asm "mov $0, $1;", "=r,~{memory},r" pack 1 %x : (i32) -> i32
  return
}

// -----

func.func @inline_asm_c5_number(%x: tensor<8xi8>) {
  // expected-error@+1 {{expected 4 constraints, one for each register of results and operands of 8 elements, but got 2 in '=r,r'}}
  %0 = tile.inline_asm "mov $0, $1;", "=r,r" pack 8 %x : (tensor<8xi8>) -> tensor<8xi1>
  return
}

// -----

func.func @inline_asm_c5_width(%x: i64) {
  // expected-error@+1 {{expected a register of at least 64 bits for an operand of 'i64', but got the constraint 'r'}}
  %0 = tile.inline_asm "mov $0, $1;", "=r,r" pack 1 %x : (i64) -> i32
  return
}

// -----

func.func @inline_asm_c6(%x: i32) {
  // expected-error@+1 {{expected '$' and the number of an operand below 2 in the code, but got '${1:b}'}}
  %0 = tile.inline_asm "mov $0, ${1:b};", "=r,r" pack 1 %x : (i32) -> i32
  return
}

// RUN: weft-opt %s | weft-opt | FileCheck %s
// RUN: weft-opt %s --mlir-print-op-generic | weft-opt | FileCheck %s
// RUN: weft-opt %s --canonicalize --cse --loop-invariant-code-motion | FileCheck %s --check-prefix=FOLD
// Printing and inline PTX: printed as they were read; what passes may do with them.

// CHECK-LABEL: func.func @forms
func.func @forms(%x: tensor<8xf32>, %n: i64) {
  // CHECK: tile.print "x: ", %{{.*}} : tensor<8xf32>
  tile.print "x: ", %x : tensor<8xf32>
  // CHECK: tile.print "n: ", %{{.*}} : i64 {hex}
  tile.print "n: ", %n : i64 {hex}
  // CHECK: tile.print "starts"{{$}}
  tile.print "starts"
  // CHECK: tile.inline_asm "mov.b32 $0, $1;", "=f,f" pack 1 pure %{{.*}} : (tensor<8xf32>) -> tensor<8xf32>
  %0 = tile.inline_asm "mov.b32 $0, $1;", "=f,f" pack 1 pure %x : (tensor<8xf32>) -> tensor<8xf32>
  // CHECK: tile.inline_asm "{ mov.b32 ${0}, $2; mov.b32 $1, $3; }", "=r,=f,0,f,~{memory}" pack 1 %{{.*}}, %{{.*}} : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xi32>, tensor<8xf32>)
  %1:2 = tile.inline_asm "{ mov.b32 ${0}, $2; mov.b32 $1, $3; }", "=r,=f,0,f,~{memory}" pack 1 %x, %x : (tensor<8xf32>, tensor<8xf32>) -> (tensor<8xi32>, tensor<8xf32>)
  // CHECK: tile.inline_asm "mov.u32 $0, %smid;", "=r" pack 1 : () -> i32
  %2 = tile.inline_asm "mov.u32 $0, %smid;", "=r" pack 1 : () -> i32
  return
}

// FOLD-LABEL: func.func @kept
func.func @kept(%n: index, %x: tensor<8xf32>) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  // Pure code that nothing uses goes, and leaves a loop; other code stays where it is.
  // FOLD-NOT: "gone
  %0 = tile.inline_asm "gone $0, $1;", "=f,f" pack 1 pure %x : (tensor<8xf32>) -> tensor<8xf32>
  // FOLD: tile.inline_asm "out $0, $1;"
  // FOLD: scf.for
  // FOLD: tile.inline_asm "stays $0, $1;"
  scf.for %i = %c0 to %n step %c1 {
    %1 = tile.inline_asm "out $0, $1;", "=f,f" pack 1 pure %x : (tensor<8xf32>) -> tensor<8xf32>
    tile.print "v: ", %1 : tensor<8xf32>
    %2 = tile.inline_asm "stays $0, $1;", "=f,f" pack 1 %x : (tensor<8xf32>) -> tensor<8xf32>
  }
  return
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile | FileCheck %s
// What goes on from a gradient and the gradients of weights that it makes are one kernel.

!x = !attn.tensor<[B, 12, N, 64], f16>
!y = !attn.tensor<[B, 36, N, 64], f16>
!w1 = !attn.tensor<[36, 12, 3], f16>
!w2 = !attn.tensor<[36, 36, 3], f16>
// The activation is convolved once more, from x. Nothing is stored but dx and partial sums.
// CHECK-LABEL: func.func @convolutions(
// CHECK-NEXT: %[[P:[0-9]+]]:4 = attn.launch @expand_backward({{.*}}) grid ["max(1, min(64, cdiv((B) * cdiv(N, 2), 2)))", "1", "1"]
// CHECK-NEXT: %[[W1:[0-9]+]] = attn.launch @sum(%[[P]]#1)
// CHECK-NEXT: %[[W2:[0-9]+]] = attn.launch @sum_2(%[[P]]#2)
// CHECK-NEXT: %[[B2:[0-9]+]] = attn.launch @sum_3(%[[P]]#3)
// CHECK-NEXT: return %[[P]]#0, %[[W1]], %[[W2]], %[[B2]]
// CHECK-LABEL: func.func @expand_backward(
// CHECK: scf.for
// x and the gradient are read once, in pieces.
// CHECK-COUNT-4: tile.load
// CHECK-NOT: tile.load
// All taps of the activation's 32 heads with 32 of the gradient's; four taps of its other four side by side, the last one ones, for the bias.
// CHECK: tile.dot {{.*}} : tensor<32x128xf16> * tensor<128x32xf16> -> tensor<32x32xf32>
// CHECK: tile.dot {{.*}} : tensor<32x128xf16> * tensor<128x32xf16> -> tensor<32x32xf32>
// CHECK: tile.dot {{.*}} : tensor<32x128xf16> * tensor<128x32xf16> -> tensor<32x32xf32>
// CHECK: tile.dot {{.*}} : tensor<32x128xf16> * tensor<128x16xf16> -> tensor<32x16xf32>
// The gradient's other four heads at four taps.
// CHECK: tile.dot {{.*}} : tensor<16x128xf16> * tensor<128x32xf16> -> tensor<16x32xf32>
// CHECK: tile.dot {{.*}} : tensor<16x128xf16> * tensor<128x8xf16> -> tensor<16x8xf32>
// CHECK: tile.store
// CHECK: scf.yield
// CHECK: tile.store
func.func @convolutions(%x: !x, %g: !y, %w1: !w1, %b1: !attn.tensor<[36], f16>, %w2: !w2) -> (!x, !w1, !w2, !attn.tensor<[36], f16>) attributes {attn.program} {
  %x1 = attn.head_conv %x, %w1 bias %b1 : !x, !w1, !attn.tensor<[36], f16> -> !y
  %r = attn.map ins(%x1 : !y) -> !y {
  ^bb0(%a: f32):
    %zero = arith.constant 0.0 : f32
    %m = arith.maximumf %a, %zero : f32
    attn.yield %m : f32
  }
  %d = attn.head_conv %g, %w2 {transposed} : !y, !w2 -> !y
  %dw2, %db2 = attn.head_conv_weight_grad %r, %g : !y, !y -> !w2, !attn.tensor<[36], f16>
  %d1 = attn.map ins(%x1, %d, %g : !y, !y, !y) -> !y {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %zero = arith.constant 0.0 : f32
    %p = arith.cmpf ogt, %a, %zero : f32
    %s = arith.select %p, %b, %zero : f32
    %t = arith.addf %c, %s : f32
    attn.yield %t : f32
  }
  %dx = attn.head_conv %d1, %w1 {transposed} : !y, !w1 -> !x
  %dw1 = attn.head_conv_weight_grad %x, %d1 : !x, !y -> !w1
  return %dx, %dw1, %dw2, %db2 : !x, !w1, !w2, !attn.tensor<[36], f16>
}

// -----

!x = !attn.tensor<[B, 12, N, 64], f16>
!y = !attn.tensor<[B, 36, N, 64], f16>
!w1 = !attn.tensor<[36, 12, 5], f16>
// Of five taps the gradient's other four heads make up 32 rows, at all taps at once: warps share them as they do the products of 32 heads.
// CHECK-LABEL: func.func @five_taps(
// CHECK-LABEL: func.func @expand_backward(
// CHECK: scf.for
// CHECK-NOT: tensor<16x128xf16> *
// CHECK: tile.dot {{.*}} : tensor<32x128xf16> * tensor<128x32xf16> -> tensor<32x32xf32>
// CHECK: tile.dot {{.*}} : tensor<32x128xf16> * tensor<128x8xf16> -> tensor<32x8xf32>
// CHECK: tile.dot {{.*}} : tensor<32x128xf16> * tensor<128x32xf16> -> tensor<32x32xf32>
// CHECK: tile.dot {{.*}} : tensor<32x128xf16> * tensor<128x8xf16> -> tensor<32x8xf32>
// CHECK: tile.dot {{.*}} : tensor<32x128xf16> * tensor<128x8xf16> -> tensor<32x8xf32>
// CHECK-NOT: tile.dot
// CHECK: scf.yield
func.func @five_taps(%x: !x, %g: !y, %w1: !w1) -> (!x, !w1, !attn.tensor<[36], f16>) attributes {attn.program} {
  %dx = attn.head_conv %g, %w1 {transposed} : !y, !w1 -> !x
  %dw1, %db1 = attn.head_conv_weight_grad %x, %g : !x, !y -> !w1, !attn.tensor<[36], f16>
  return %dx, %dw1, %db1 : !x, !w1, !attn.tensor<[36], f16>
}

// -----

!y = !attn.tensor<[B, 5, N, 64], f16>
!z = !attn.tensor<[B, 5, N, 96], f16>
!l = !attn.tensor<[96, 64], f16>
// Gradients of linear maps take 128 tokens of one head at a time. exp(0) is no zero: the gradient's factor is masked where tokens do not exist, as the gradient itself is.
// CHECK-LABEL: func.func @linear(
// CHECK-NEXT: %[[P:[0-9]+]]:3 = attn.launch @expand_backward({{.*}}) grid ["max(1, min(64, cdiv(5 * (B) * cdiv(N, 128), 4)))", "1", "1"]
// CHECK-LABEL: func.func @expand_backward(
// CHECK: scf.for
// CHECK-COUNT-2: math.exp
// CHECK-COUNT-2: arith.select {{.*}} tensor<128x{{64|32}}xf16>
// CHECK: tile.dot {{.*}} : tensor<64x128xf16> * tensor<128x64xf16> -> tensor<64x64xf32>
// CHECK: tile.dot {{.*}} : tensor<64x128xf16> * tensor<128x8xf16> -> tensor<64x8xf32>
// CHECK: tile.dot {{.*}} : tensor<32x128xf16> * tensor<128x64xf16> -> tensor<32x64xf32>
// CHECK: tile.dot {{.*}} : tensor<32x128xf16> * tensor<128x8xf16> -> tensor<32x8xf32>
// CHECK: tile.dot {{.*}} : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
// CHECK: tile.dot {{.*}} : tensor<128x32xf16> * tensor<32x64xf16> -> tensor<128x64xf32>
func.func @linear(%x: !y, %g: !z, %w: !l) -> (!y, !l, !attn.tensor<[96], f16>) attributes {attn.program} {
  %e = attn.map ins(%g : !z) -> !z {
  ^bb0(%a: f32):
    %m = math.exp %a : f32
    attn.yield %m : f32
  }
  %dx = attn.linear %e, %w {transposed} : !z, !l -> !y
  %dw, %db = attn.linear_weight_grad %x, %e : !y, !z -> !l, !attn.tensor<[96], f16>
  return %dx, %dw, %db : !y, !l, !attn.tensor<[96], f16>
}

// -----

!x = !attn.tensor<[B, 4, N, 64], f16>
!y = !attn.tensor<[B, 4, N, 512], f16>
!l = !attn.tensor<[512, 64], f16>
// What one kernel cannot hold has kernels of its own.
// CHECK-LABEL: func.func @wide(
// CHECK-NOT: @expand_backward
// CHECK: attn.launch @linear(
// CHECK: attn.launch @linear_weight_grad(
func.func @wide(%x: !x, %g: !y, %w: !l) -> (!l, !x) attributes {attn.program} {
  %dw = attn.linear_weight_grad %x, %g : !x, !y -> !l
  %dx = attn.linear %g, %w {transposed} : !y, !l -> !x
  return %dw, %dx : !l, !x
}

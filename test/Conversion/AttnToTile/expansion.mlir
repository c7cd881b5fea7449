// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile | FileCheck %s

!x = !attn.tensor<[B, 12, N, 64], f16>
!y = !attn.tensor<[B, 36, N, 64], f16>
!z = !attn.tensor<[B, 36, N, 96], f16>
!w1 = !attn.tensor<[36, 12, 1], f16>
!w2 = !attn.tensor<[36, 36, 3], f16>
!l1 = !attn.tensor<[96, 64], f16>
!l2 = !attn.tensor<[96, 96], f16>

// Two convolutions, two linear maps, activations and residuals between them: one launch, 64 tokens a program. Heads are pieces of 32 and 4, in columns of 32 and 8.
// CHECK-LABEL: func.func @all(
// CHECK: %[[Y:.*]] = attn.launch @expand({{.*}}) grid ["cdiv(N, 64)", "1", "B"]
// CHECK-NOT: attn.launch
// CHECK: return %[[Y]]
// CHECK-LABEL: func.func @expand(
// CHECK: scf.for
// CHECK: tile.shift %{{.*}} {axis = 1 : i32, offset = 0 : i32} : tensor<8x64x8xf16>
// CHECK: tile.dot {{.*}} : tensor<512x8xf16> * tensor<8x32xf16> -> tensor<512x32xf32>
// CHECK: tile.dot {{.*}} : tensor<512x8xf16> * tensor<8x8xf16> -> tensor<512x8xf32>
// CHECK: tile.shift %{{.*}} {axis = 1 : i32, offset = 1 : i32} : tensor<8x64x32xf16>
// CHECK: tile.dot {{.*}} : tensor<512x32xf16> * tensor<32x32xf16> -> tensor<512x32xf32>
// CHECK: tile.shift %{{.*}} {axis = 1 : i32, offset = -1 : i32} : tensor<8x64x32xf16>
// CHECK: tile.join {{.*}} : tensor<8x64x4x2xf16> -> tensor<8x64x4x2x2xf16>
// CHECK: tile.dot {{.*}} : tensor<512x16xf16> * tensor<16x32xf16> -> tensor<512x32xf32>
// All of one piece, up to its stores, before the linear maps of the next one.
// CHECK-NOT: tensor<32x32xf32>
// CHECK: tile.dot {{.*}} : tensor<256x64xf16> * tensor<64x32xf16> -> tensor<256x32xf32>
// CHECK-NOT: tensor<32x32xf32>
// CHECK: tile.dot {{.*}} : tensor<256x64xf16> * tensor<64x64xf16> -> tensor<256x64xf32>
// CHECK: tile.dot {{.*}} : tensor<256x64xf16> * tensor<64x64xf16> -> tensor<256x64xf32>
// CHECK: tile.dot {{.*}} : tensor<256x32xf16> * tensor<32x64xf16> -> tensor<256x64xf32>
// CHECK-NOT: tensor<32x32xf32>
// CHECK: tile.store
// CHECK: tile.dot {{.*}} : tensor<256x64xf16> * tensor<64x32xf16> -> tensor<256x32xf32>
// CHECK: tile.dot {{.*}} : tensor<256x32xf16> * tensor<32x32xf16> -> tensor<256x32xf32>
// CHECK-NOT: tensor<32x32xf32>
// CHECK: tile.store
// CHECK: tile.dot {{.*}} : tensor<32x64xf16> * tensor<64x32xf16> -> tensor<32x32xf32>
// CHECK: tile.dot {{.*}} : tensor<32x64xf16> * tensor<64x64xf16> -> tensor<32x64xf32>
// CHECK: tile.store
// CHECK: tile.dot {{.*}} : tensor<32x32xf16> * tensor<32x32xf16> -> tensor<32x32xf32>
// CHECK: tile.store
func.func @all(%x: !x, %w1: !w1, %b1: !attn.tensor<[36], f16>, %w2: !w2, %l1: !l1, %c1: !attn.tensor<[96], f16>, %l2: !l2) -> !z attributes {attn.program} {
  %q1 = attn.head_conv %x, %w1 bias %b1 : !x, !w1, !attn.tensor<[36], f16> -> !y
  %r1 = attn.map ins(%q1 : !y) -> !y {
  ^bb0(%a: f32):
    %zero = arith.constant 0.0 : f32
    %m = arith.maximumf %a, %zero : f32
    attn.yield %m : f32
  }
  %u2 = attn.head_conv %r1, %w2 : !y, !w2 -> !y
  %q2 = attn.map ins(%u2, %q1 : !y, !y) -> !y {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    attn.yield %s : f32
  }
  %q3 = attn.linear %q2, %l1 bias %c1 : !y, !l1, !attn.tensor<[96], f16> -> !z
  %r3 = attn.map ins(%q3 : !z) -> !z {
  ^bb0(%a: f32):
    %zero = arith.constant 0.0 : f32
    %m = arith.maximumf %a, %zero : f32
    attn.yield %m : f32
  }
  %u4 = attn.linear %r3, %l2 : !z, !l2 -> !z
  %q4 = attn.map ins(%u4, %q3 : !z, !z) -> !z {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    attn.yield %s : f32
  }
  return %q4 : !z
}

// -----

// Rows do not become signals: a convolution after a linear map, or after a map of one, is in another kernel. What comes after the convolution goes with it.

!x = !attn.tensor<[B, 12, N, 64], f16>
!w = !attn.tensor<[12, 12, 3], f16>
!l = !attn.tensor<[64, 64], f16>
// CHECK-LABEL: func.func @turned(
// CHECK: %[[ROWS:.*]] = attn.launch @linear(
// CHECK: %[[ALL:.*]] = attn.launch @expand({{.*}}%[[ROWS]]{{.*}}) grid ["cdiv(N, 64)", "1", "B"]
// CHECK-NOT: attn.launch
// CHECK: return %[[ALL]]
func.func @turned(%x: !x, %l: !l, %w: !w) -> !x attributes {attn.program} {
  %a = attn.linear %x, %l : !x, !l -> !x
  %m = attn.map ins(%a : !x) -> !x {
  ^bb0(%e: f32):
    %t = math.tanh %e : f32
    attn.yield %t : f32
  }
  %c = attn.head_conv %m, %w : !x, !w -> !x
  %o = attn.linear %c, %l : !x, !l -> !x
  return %o : !x
}

// -----

// What an op behind the expansion takes of its middle is stored on the way.

!x = !attn.tensor<[B, 12, N, 64], f16>
!w = !attn.tensor<[12, 12, 3], f16>
!l = !attn.tensor<[64, 64], f16>
// CHECK-LABEL: func.func @middle(
// CHECK: %[[ALL:.*]]:2 = attn.launch @expand(
// CHECK-NOT: attn.launch
// CHECK: return %[[ALL]]#1, %[[ALL]]#0
// CHECK-LABEL: func.func @expand(
// CHECK: scf.for
// CHECK: tile.dot {{.*}} -> tensor<1024x8xf32>
// CHECK: tile.store
// CHECK: tile.dot {{.*}} : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
// CHECK: tile.store
func.func @middle(%x: !x, %w: !w, %l: !l) -> (!x, !x) attributes {attn.program} {
  %c = attn.head_conv %x, %w : !x, !w -> !x
  %o = attn.linear %c, %l : !x, !l -> !x
  return %o, %c : !x, !x
}

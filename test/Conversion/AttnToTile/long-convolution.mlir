// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --attn-merge-launches --canonicalize --cse | FileCheck %s

// As many taps as tokens: sequences and taps are laid out by channel, W_δ meets the chunks of all batches in one product, and the result goes back. What
// the convolution's operand is computed from is computed on the way in.

!t = !attn.tensor<[B, H, N, 64], f16>
!w = !attn.tensor<[N, "H*64"], f16>
// CHECK-LABEL: func.func @long(
// CHECK: %[[IN:.*]]:2 = attn.launch @to_chunks_spread_taps(
// CHECK: %[[OUT:.*]] = attn.launch @long_convolution(%[[IN]]#0, %[[IN]]#1) grid ["cdiv(cdiv(N, 64) * (B), 64)", "(H) * 64", "1"]
// CHECK: %[[Y:.*]] = attn.launch @from_chunks(%[[OUT]])
// CHECK: return %[[Y]]
// CHECK-LABEL: func.func @to_chunks_spread_taps(
// CHECK: arith.negf
// CHECK-LABEL: func.func @long_convolution(
// CHECK: scf.for
// CHECK: tile.dot {{.*}} tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
// CHECK-NEXT: scf.yield
func.func @long(%x: !t, %taps: !w) -> !t attributes {attn.program} {
  %z = attn.map ins(%x : !t) -> !t {
  ^bb0(%a: f32):
    %r = arith.negf %a : f32
    attn.yield %r : f32
  }
  %y = attn.convolve %z, %taps : !t, !w -> !t
  return %y : !t
}

// -----

// The gradient of such taps: G_δ, its diagonals, and both halves added.

!t = !attn.tensor<[B, 1, N, 80], bf16>
!w = !attn.tensor<[K, 80], bf16>
// CHECK-LABEL: func.func @taps(
// CHECK: %[[IN:.*]]:2 = attn.launch @to_chunks_to_chunks_2(
// CHECK: %[[SUMS:.*]] = attn.launch @long_taps_grad(%[[IN]]#1, %[[IN]]#0) grid ["cdiv((K) - 1, 64) + 1", "(1) * 80", "1"]
// CHECK: attn.launch @gather_taps(%[[SUMS]])
// CHECK-LABEL: func.func @long_taps_grad(
// CHECK: tile.dot
// CHECK: tile.gather
func.func @taps(%x: !t, %dy: !t) -> !w attributes {attn.program} {
  %d = attn.convolve_taps_grad %x, %dy : !t, !t -> !w
  return %d : !w
}

// -----

// Few taps are added one by one where the result is needed.

!t = !attn.tensor<[B, H, N, 64], f16>
!w = !attn.tensor<[16, "H*64"], f16>
// CHECK-LABEL: func.func @short(
// CHECK-NEXT: attn.launch @rows(
// CHECK-NEXT: return
func.func @short(%x: !t, %taps: !w) -> !t attributes {attn.program} {
  %y = attn.convolve %x, %taps : !t, !w -> !t
  return %y : !t
}

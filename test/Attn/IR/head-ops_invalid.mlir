// RUN: weft-opt %s --split-input-file --verify-diagnostics
// Constraints of the ops that mix heads and channels, one a case, named after them.

func.func @head_conv_c1(%x: !attn.tensor<[B, 12, N, 64], f16>, %w: !attn.tensor<[36, 8, 3], f16>) {
  // expected-error@+1 {{expected a source of shape [B, 8, N, 64], but got '!attn.tensor<[B, 12, N, 64], f16>'}}
  %0 = attn.head_conv %x, %w : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[36, 8, 3], f16> -> !attn.tensor<[B, 36, N, 64], f16>
  return
}

// -----

func.func @head_conv_c1_transposed(%x: !attn.tensor<[B, 36, N, 64], f16>, %w: !attn.tensor<[36, 12, 3], f16>) {
  // expected-error@+1 {{expected a result of shape [B, 12, N, 64], but got '!attn.tensor<[B, 36, N, 64], f16>'}}
  %0 = attn.head_conv %x, %w {transposed} : !attn.tensor<[B, 36, N, 64], f16>, !attn.tensor<[36, 12, 3], f16> -> !attn.tensor<[B, 36, N, 64], f16>
  return
}

// -----

func.func @head_conv_c1_channels(%x: !attn.tensor<[B, 12, N, D], f16>, %w: !attn.tensor<[36, 12, 3], f16>) {
  // expected-error@+1 {{expected a static number of channels, but got '!attn.tensor<[B, 12, N, D], f16>'}}
  %0 = attn.head_conv %x, %w : !attn.tensor<[B, 12, N, D], f16>, !attn.tensor<[36, 12, 3], f16> -> !attn.tensor<[B, 36, N, D], f16>
  return
}

// -----

func.func @head_conv_c2(%x: !attn.tensor<[B, 12, N, 64], f16>, %w: !attn.tensor<[36, 12, 4], f16>) {
  // expected-error@+1 {{expected a weight [Ho, H, K] of integers with odd K, but got '!attn.tensor<[36, 12, 4], f16>'}}
  %0 = attn.head_conv %x, %w : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[36, 12, 4], f16> -> !attn.tensor<[B, 36, N, 64], f16>
  return
}

// -----

func.func @head_conv_c3(%x: !attn.tensor<[B, 12, N, 64], f16>, %w: !attn.tensor<[36, 12, 3], f16>, %b: !attn.tensor<[12], f16>) {
  // expected-error@+1 {{expected a bias of shape [36], but got '!attn.tensor<[12], f16>'}}
  %0 = attn.head_conv %x, %w bias %b : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[36, 12, 3], f16>, !attn.tensor<[12], f16> -> !attn.tensor<[B, 36, N, 64], f16>
  return
}

// -----

func.func @head_conv_c3_transposed(%x: !attn.tensor<[B, 36, N, 64], f16>, %w: !attn.tensor<[36, 12, 3], f16>, %b: !attn.tensor<[12], f16>) {
  // expected-error@+1 {{expected no bias of a transposed product}}
  %0 = attn.head_conv %x, %w bias %b {transposed} : !attn.tensor<[B, 36, N, 64], f16>, !attn.tensor<[36, 12, 3], f16>, !attn.tensor<[12], f16> -> !attn.tensor<[B, 12, N, 64], f16>
  return
}

// -----

func.func @head_conv_c4(%x: !attn.tensor<[B, 12, N, 64], f16>, %w: !attn.tensor<[36, 12, 3], bf16>) {
  // expected-error@+1 {{expected operands of one width to be of one type, but got f16 and bf16}}
  %0 = attn.head_conv %x, %w : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[36, 12, 3], bf16> -> !attn.tensor<[B, 36, N, 64], f16>
  return
}

// -----

func.func @head_conv_c4_floats(%x: !attn.tensor<[B, 12, N, 64], i32>, %w: !attn.tensor<[36, 12, 3], f16>) {
  // expected-error@+1 {{expected elements of floats, but got '!attn.tensor<[B, 12, N, 64], i32>'}}
  %0 = attn.head_conv %x, %w : !attn.tensor<[B, 12, N, 64], i32>, !attn.tensor<[36, 12, 3], f16> -> !attn.tensor<[B, 36, N, 64], f16>
  return
}

// -----

func.func @head_conv_weight_grad_c1(%x: !attn.tensor<[B, 12, N, 64], f16>, %g: !attn.tensor<[B, 36, N, 32], f16>) {
  // expected-error@+1 {{expected a result of shape [B, 36, N, 64], but got '!attn.tensor<[B, 36, N, 32], f16>'}}
  %0 = attn.head_conv_weight_grad %x, %g : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[B, 36, N, 32], f16> -> !attn.tensor<[36, 12, 3], f16>
  return
}

// -----

func.func @head_conv_weight_grad_c4(%x: !attn.tensor<[B, 12, N, 64], f16>, %g: !attn.tensor<[B, 36, N, 64], f16>) {
  // expected-error@+1 {{expected a bias of shape [36], but got '!attn.tensor<[12], f16>'}}
  %0, %1 = attn.head_conv_weight_grad %x, %g : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[B, 36, N, 64], f16> -> !attn.tensor<[36, 12, 3], f16>, !attn.tensor<[12], f16>
  return
}

// -----

func.func @linear_c1(%x: !attn.tensor<[B, 12, N, 64], f16>, %w: !attn.tensor<[96, 32], f16>) {
  // expected-error@+1 {{expected a source of shape [B, 12, N, 32], but got '!attn.tensor<[B, 12, N, 64], f16>'}}
  %0 = attn.linear %x, %w : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[96, 32], f16> -> !attn.tensor<[B, 12, N, 96], f16>
  return
}

// -----

func.func @linear_c1_static(%x: !attn.tensor<[B, 12, N, 64], f16>, %w: !attn.tensor<[E, 64], f16>) {
  // expected-error@+1 {{expected a weight [E, D] of integers, but got '!attn.tensor<[E, 64], f16>'}}
  %0 = attn.linear %x, %w : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[E, 64], f16> -> !attn.tensor<[B, 12, N, E], f16>
  return
}

// -----

func.func @linear_c2(%x: !attn.tensor<[B, 5, N, 64], f16>, %w: !attn.tensor<[96, 128], f16>) {
  // expected-error@+1 {{expected a source [B, G*H, N, D] of which H heads have 128 channels, but got '!attn.tensor<[B, 5, N, 64], f16>'}}
  %0 = attn.linear %x, %w {concatenated} : !attn.tensor<[B, 5, N, 64], f16>, !attn.tensor<[96, 128], f16> -> !attn.tensor<[B, 2, N, 96], f16>
  return
}

// -----

func.func @linear_c2_transposed(%x: !attn.tensor<[B, N, 96], f16>, %w: !attn.tensor<[96, 128], f16>) {
  // expected-error@+1 {{expected a source of shape [B, 2, N, 96], but got '!attn.tensor<[B, N, 96], f16>'}}
  %0 = attn.linear %x, %w {concatenated, transposed} : !attn.tensor<[B, N, 96], f16>, !attn.tensor<[96, 128], f16> -> !attn.tensor<[B, 4, N, 64], f16>
  return
}

// -----

func.func @linear_c3(%x: !attn.tensor<[N, 64], f16>, %w: !attn.tensor<[96, 64], f16>, %b: !attn.tensor<[64], f16>) {
  // expected-error@+1 {{expected a bias of shape [96], but got '!attn.tensor<[64], f16>'}}
  %0 = attn.linear %x, %w bias %b : !attn.tensor<[N, 64], f16>, !attn.tensor<[96, 64], f16>, !attn.tensor<[64], f16> -> !attn.tensor<[N, 96], f16>
  return
}

// -----

func.func @linear_c4(%x: !attn.tensor<[N, 64], f16>, %w: !attn.tensor<[96, 64], bf16>) {
  // expected-error@+1 {{expected operands of one width to be of one type, but got f16 and bf16}}
  %0 = attn.linear %x, %w : !attn.tensor<[N, 64], f16>, !attn.tensor<[96, 64], bf16> -> !attn.tensor<[N, 96], f16>
  return
}

// -----

func.func @linear_weight_grad_c1(%x: !attn.tensor<[N, 64], f16>, %g: !attn.tensor<[M, 96], f16>) {
  // expected-error@+1 {{expected a gradient of shape [N, 96], but got '!attn.tensor<[M, 96], f16>'}}
  %0 = attn.linear_weight_grad %x, %g : !attn.tensor<[N, 64], f16>, !attn.tensor<[M, 96], f16> -> !attn.tensor<[96, 64], f32>
  return
}

// -----

func.func @mean_heads_c1(%x: !attn.tensor<[B, 12, N, 64], f16>) {
  // expected-error@+1 {{expected a result whose heads divide the source's, but got '!attn.tensor<[B, 5, N, 64], f16>' of '!attn.tensor<[B, 12, N, 64], f16>'}}
  %0 = attn.mean_heads %x : !attn.tensor<[B, 12, N, 64], f16> -> !attn.tensor<[B, 5, N, 64], f16>
  return
}

// -----

func.func @head_conv_c3_type(%x: !attn.tensor<[B, 12, N, 64], f16>, %w: !attn.tensor<[36, 12, 3], f16>, %b: !attn.tensor<[36], i32>) {
  // expected-error@+1 {{expected a bias of floats, but got '!attn.tensor<[36], i32>'}}
  %0 = attn.head_conv %x, %w bias %b : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[36, 12, 3], f16>, !attn.tensor<[36], i32> -> !attn.tensor<[B, 36, N, 64], f16>
  return
}

// -----

func.func @head_conv_c4_result(%x: !attn.tensor<[B, 12, N, 64], f16>, %w: !attn.tensor<[36, 12, 3], f16>) {
  // expected-error@+1 {{expected a result of floats, but got '!attn.tensor<[B, 36, N, 64], i32>'}}
  %0 = attn.head_conv %x, %w : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[36, 12, 3], f16> -> !attn.tensor<[B, 36, N, 64], i32>
  return
}

// -----

func.func @head_conv_weight_grad_c2(%x: !attn.tensor<[B, 12, N, 64], f16>, %g: !attn.tensor<[B, 36, N, 64], f16>) {
  // expected-error@+1 {{expected a weight [Ho, H, K] of integers with odd K, but got '!attn.tensor<[36, 12, 4], f16>'}}
  %0 = attn.head_conv_weight_grad %x, %g : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[B, 36, N, 64], f16> -> !attn.tensor<[36, 12, 4], f16>
  return
}

// -----

func.func @head_conv_weight_grad_c3(%x: !attn.tensor<[B, 12, N, 64], f16>, %g: !attn.tensor<[B, 36, N, 64], bf16>) {
  // expected-error@+1 {{expected operands of one width to be of one type, but got f16 and bf16}}
  %0 = attn.head_conv_weight_grad %x, %g : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[B, 36, N, 64], bf16> -> !attn.tensor<[36, 12, 3], f32>
  return
}

// -----

func.func @linear_c1_rank(%x: !attn.tensor<[], f16>, %w: !attn.tensor<[96, 64], f16>) {
  // expected-error@+1 {{expected a source of rank 1 or more, but got '!attn.tensor<[], f16>'}}
  %0 = attn.linear %x, %w : !attn.tensor<[], f16>, !attn.tensor<[96, 64], f16> -> !attn.tensor<[96], f16>
  return
}

// -----

func.func @linear_weight_grad_c2(%x: !attn.tensor<[N, 64], f16>, %g: !attn.tensor<[N, 96], f16>) {
  // expected-error@+1 {{expected a bias of shape [96], but got '!attn.tensor<[64], f32>'}}
  %0, %1 = attn.linear_weight_grad %x, %g : !attn.tensor<[N, 64], f16>, !attn.tensor<[N, 96], f16> -> !attn.tensor<[96, 64], f32>, !attn.tensor<[64], f32>
  return
}

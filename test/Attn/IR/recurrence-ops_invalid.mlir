// RUN: weft-opt %s --split-input-file --verify-diagnostics
// Constraints of linear recurrences, one a case, named after them.

!x = !attn.tensor<[B, H, N, 64], f16>

func.func @recurrence_c1_rank(%q: !x, %k: !attn.tensor<[B, N, 64], f16>) {
  // expected-error@+1 {{expected a key of rank 4, but got '!attn.tensor<[B, N, 64], f16>'}}
  %0 = attn.recurrence %q, %k {scale = 1.0 : f32} : (!x, !attn.tensor<[B, N, 64], f16>) -> !attn.mixer
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>

func.func @recurrence_c1_type(%q: !x, %k: !attn.tensor<[B, H, N, 64], bf16>) {
  // expected-error@+1 {{expected a key of the query's element type, but got '!attn.tensor<[B, H, N, 64], bf16>'}}
  %0 = attn.recurrence %q, %k {scale = 1.0 : f32} : (!x, !attn.tensor<[B, H, N, 64], bf16>) -> !attn.mixer
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>

func.func @recurrence_c1_floats(%q: !x, %k: !attn.tensor<[B, H, N, 64], i32>) {
  // expected-error@+1 {{expected a key of floats, but got '!attn.tensor<[B, H, N, 64], i32>'}}
  %0 = attn.recurrence %q, %k {scale = 1.0 : f32} : (!x, !attn.tensor<[B, H, N, 64], i32>) -> !attn.mixer
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>

func.func @recurrence_c1_tokens(%q: !x, %k: !attn.tensor<[B, H, M, 64], f16>) {
  // expected-error@+1 {{expected a key of the batch and the tokens of '!attn.tensor<[B, H, N, 64], f16>', but got '!attn.tensor<[B, H, M, 64], f16>'}}
  %0 = attn.recurrence %q, %k {scale = 1.0 : f32} : (!x, !attn.tensor<[B, H, M, 64], f16>) -> !attn.mixer
  return
}

// -----

!x = !attn.tensor<[B, 4, N, 64], f16>

func.func @recurrence_c1_heads(%q: !x, %k: !attn.tensor<[B, 3, N, 64], f16>) {
  // expected-error@+1 {{expected the heads of a key to divide those of '!attn.tensor<[B, 4, N, 64], f16>', but got '!attn.tensor<[B, 3, N, 64], f16>'}}
  %0 = attn.recurrence %q, %k {scale = 1.0 : f32} : (!x, !attn.tensor<[B, 3, N, 64], f16>) -> !attn.mixer
  return
}

// -----

!x = !attn.tensor<[B, H, N, D], f16>

func.func @recurrence_c1_static(%q: !x) {
  // expected-error@+1 {{expected a query with a static last size, but got '!attn.tensor<[B, H, N, D], f16>'}}
  %0 = attn.recurrence %q, %q {scale = 1.0 : f32} : (!x, !x) -> !attn.mixer
  return
}

// -----

!x = !attn.tensor<[B, H, N, 512], f16>

func.func @recurrence_c1_wide(%q: !x) {
  // expected-error@+1 {{expected heads of at most 256 channels, but got 512}}
  %0 = attn.recurrence %q, %q {scale = 1.0 : f32} : (!x, !x) -> !attn.mixer
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>

func.func @recurrence_c2_rank(%q: !x, %g: !attn.tensor<[H, N], f32>) {
  // expected-error@+1 {{expected a decay [B, H, N] or [B, H, N, D], but got '!attn.tensor<[H, N], f32>'}}
  %0 = attn.recurrence %q, %q decay(%g) {scale = 1.0 : f32} : (!x, !x, !attn.tensor<[H, N], f32>) -> !attn.mixer
  return
}

// -----

!x = !attn.tensor<[B, 4, N, 64], f16>

func.func @recurrence_c2_heads(%q: !x, %g: !attn.tensor<[B, 1, N], f32>) {
  // expected-error@+1 {{expected numbers of tokens for each of the query's heads, but got '!attn.tensor<[B, 1, N], f32>'}}
  %0 = attn.recurrence %q, %q decay(%g) {scale = 1.0 : f32} : (!x, !x, !attn.tensor<[B, 1, N], f32>) -> !attn.mixer
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>

func.func @recurrence_c2_channels(%q: !x, %g: !attn.tensor<[B, H, N, 32], f32>) {
  // expected-error@+1 {{expected a decay for each of 64 channels, but got '!attn.tensor<[B, H, N, 32], f32>'}}
  %0 = attn.recurrence %q, %q decay(%g) {scale = 1.0 : f32} : (!x, !x, !attn.tensor<[B, H, N, 32], f32>) -> !attn.mixer
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>

func.func @recurrence_c3(%q: !x, %b: !n) {
  // expected-error@+1 {{expected a decay [B, H, N] with beta, but got '!attn.tensor<[B, H, N, 64], f16>'}}
  %0 = attn.recurrence %q, %q decay(%q) beta(%b) {scale = 1.0 : f32} : (!x, !x, !x, !n) -> !attn.mixer
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>

func.func @recurrence_c4_type(%q: !x, %s: !attn.tensor<[B, H, 64, 64], f16>) {
  // expected-error@+1 {{expected a state of f32, but got '!attn.tensor<[B, H, 64, 64], f16>'}}
  %0 = attn.recurrence %q, %q state(%s) {scale = 1.0 : f32} : (!x, !x, !attn.tensor<[B, H, 64, 64], f16>) -> !attn.mixer
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>

func.func @recurrence_c4_packed(%q: !attn.tensor<[2, H, N, 64], f16>, %c: !attn.tensor<[C], i32>) {
  // expected-error@+1 {{expected packed sequences in a batch of 1, but got '!attn.tensor<[2, H, N, 64], f16>'}}
  %0 = attn.recurrence %q, %q cu_seqlens(%c) {scale = 1.0 : f32} : (!attn.tensor<[2, H, N, 64], f16>, !attn.tensor<[2, H, N, 64], f16>, !attn.tensor<[C], i32>) -> !attn.mixer
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>

func.func @recur_c5_residuals(%q: !x, %b: !n) {
  // expected-error@+1 {{expected two tensors of residuals, but got 0}}
  %0, %1 = attn.recur %q, %q, %q beta(%b) {scale = 1.0 : f32} : (!x, !x, !x, !n) -> (!x, !attn.tensor<[B, H, 64, 64], f32>)
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>

func.func @recur_c5_out(%q: !x) {
  // expected-error@+1 {{expected a result of shape [B, H, N, 64], but got '!attn.tensor<[B, H, N, 32], f16>'}}
  %0, %1 = attn.recur %q, %q, %q {scale = 1.0 : f32} : (!x, !x, !x) -> (!attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, 64, 64], f32>)
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>

func.func @recur_backward_c3(%q: !x, %g: !attn.tensor<[B, H, N, 64], f32>) {
  // expected-error@+1 {{expected a gradient of the values' element type, but got '!attn.tensor<[B, H, N, 64], f32>'}}
  %0:3 = attn.recur_backward %q, %q, %q gradient(%g) {scale = 1.0 : f32} : (!x, !x, !x, !attn.tensor<[B, H, N, 64], f32>) -> (!x, !x, !x)
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>

func.func @recur_backward_c4(%q: !x) {
  // expected-error@+1 {{expected 3 gradients, one for each operand, but got 4}}
  %0:4 = attn.recur_backward %q, %q, %q gradient(%q) {scale = 1.0 : f32} : (!x, !x, !x, !x) -> (!x, !x, !x, !x)
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
!s = !attn.tensor<[B, H, 64, 64], f32>

func.func @recur_c1(%q: !x, %k: !attn.tensor<[B, N, 64], f16>) {
  // expected-error@+1 {{expected a key of rank 4, but got '!attn.tensor<[B, N, 64], f16>'}}
  %0, %1 = attn.recur %q, %k, %q {scale = 1.0 : f32} : (!x, !attn.tensor<[B, N, 64], f16>, !x) -> (!x, !s)
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
!s = !attn.tensor<[B, H, 64, 64], f32>

func.func @recur_c2(%q: !x, %g: !attn.tensor<[H, N], f32>) {
  // expected-error@+1 {{expected a decay [B, H, N] or [B, H, N, D], but got '!attn.tensor<[H, N], f32>'}}
  %0, %1 = attn.recur %q, %q, %q decay(%g) {scale = 1.0 : f32} : (!x, !x, !x, !attn.tensor<[H, N], f32>) -> (!x, !s)
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
!s = !attn.tensor<[B, H, 64, 64], f32>

func.func @recur_c3(%q: !x, %b: !n) {
  // expected-error@+1 {{expected a decay [B, H, N] with beta, but got '!attn.tensor<[B, H, N, 64], f16>'}}
  %0:4 = attn.recur %q, %q, %q decay(%q) beta(%b) {scale = 1.0 : f32} : (!x, !x, !x, !x, !n) -> (!x, !s, !x, !x)
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
!s = !attn.tensor<[B, H, 64, 64], f32>

func.func @recur_c4(%q: !x, %s: !x) {
  // expected-error@+1 {{expected a state of f32, but got '!attn.tensor<[B, H, N, 64], f16>'}}
  %0, %1 = attn.recur %q, %q, %q state(%s) {scale = 1.0 : f32} : (!x, !x, !x, !x) -> (!x, !s)
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
!s = !attn.tensor<[B, H, 64, 64], f32>

func.func @final_state_c2(%a: !attn.mixer, %v: !x) {
  // expected-error@+1 {{expected a state of f32 with static channels, the last ones the values', but got '!attn.tensor<[B, H, N, 64], f16>'}}
  %0 = attn.final_state %a, %v : !x -> !x
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
!s = !attn.tensor<[B, H, 64, 64], f32>

func.func @recur_backward_c1(%q: !x, %k: !attn.tensor<[B, N, 64], f16>) {
  // expected-error@+1 {{expected a key of rank 4, but got '!attn.tensor<[B, N, 64], f16>'}}
  %0:3 = attn.recur_backward %q, %k, %q gradient(%q) {scale = 1.0 : f32} : (!x, !attn.tensor<[B, N, 64], f16>, !x, !x) -> (!x, !x, !x)
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
!s = !attn.tensor<[B, H, 64, 64], f32>

func.func @recur_backward_c2(%q: !x, %b: !n) {
  // expected-error@+1 {{expected two tensors of residuals, but got 0}}
  %0:4 = attn.recur_backward %q, %q, %q beta(%b) gradient(%q) {scale = 1.0 : f32} : (!x, !x, !x, !n, !x) -> (!x, !x, !x, !n)
  return
}

// -----

!v = !attn.tensor<[B, H, N, Dv], f16>

func.func @final_state_c2_value(%a: !attn.mixer, %v: !v) {
  // expected-error@+1 {{expected a value with a static last size, but got '!attn.tensor<[B, H, N, Dv], f16>'}}
  %0 = attn.final_state %a, %v : !v -> !attn.tensor<[B, H, 64, Dv], f32>
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>

func.func @final_state_c2_channels(%a: !attn.mixer, %v: !x) {
  // expected-error@+1 {{expected a state of f32 with static channels, the last ones the values', but got '!attn.tensor<[B, H, D, 64], f32>'}}
  %0 = attn.final_state %a, %v : !x -> !attn.tensor<[B, H, D, 64], f32>
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!v = !attn.tensor<[B, H, N, Dv], f16>

func.func @recur_c1_static(%q: !x, %v: !v) {
  // expected-error@+1 {{expected a value with a static last size, but got '!attn.tensor<[B, H, N, Dv], f16>'}}
  %0, %1 = attn.recur %q, %q, %v {scale = 1.0 : f32} : (!x, !x, !v) -> (!v, !attn.tensor<[B, H, 64, Dv], f32>)
  return
}

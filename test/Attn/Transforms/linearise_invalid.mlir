// RUN: weft-opt %s --attn-linearise --split-input-file --verify-diagnostics

func.func @twice(%x: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
  // expected-error@+1 {{has no tangent}}
  %o, %lse, %t, %tlse = attn.attend_tangent %x keys(%x : !attn.tensor<[B, H, N, 64], f16>) values(%x : !attn.tensor<[B, H, N, 64], f16>) query_tangent(%x : !attn.tensor<[B, H, N, 64], f16>)
    {patterns = [#attn.causal], scale = 0.125 : f32}
    : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>, !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
  return %t : !attn.tensor<[B, H, N, 64], f16>
}

// -----

func.func @mixers(%v: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
  // expected-error@+1 {{expected a program without mixers; run 'attn-apply-mixers' first}}
  %m = attn.mean
  %0 = attn.apply %m, %v : (!attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16>
  return %0 : !attn.tensor<[B, H, N, 64], f16>
}

// -----

func.func @no_derivative(%x: !attn.tensor<[N], f32>) -> !attn.tensor<[N], f32> attributes {attn.program} {
  %0 = attn.map ins(%x : !attn.tensor<[N], f32>) -> !attn.tensor<[N], f32> {
  ^bb0(%a: f32):
    // expected-error@+1 {{expected an op with a derivative in a scalar region, but got 'math.cbrt'}}
    %b = math.cbrt %a : f32
    attn.yield %b : f32
  }
  return %0 : !attn.tensor<[N], f32>
}

// -----

// expected-error@+1 {{expected a program of one block}}
func.func @blocks(%x: !attn.tensor<[N], f32>) -> !attn.tensor<[N], f32> attributes {attn.program} {
  return %x : !attn.tensor<[N], f32>
^bb1:
  return %x : !attn.tensor<[N], f32>
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @captured(%x: !x, %n: !n, %slopes: !attn.tensor<[H], f32>) -> !x attributes {attn.program} {
  // expected-error@+1 {{has no tangent of the gradients of tensors that score_mod reads}}
  %dq, %d:3 = attn.attend_backward %x keys(%x : !x) values(%x : !x) lse(%n : !n) delta(%n : !n) gradient(%x : !x) {patterns = [#attn.causal], scale = 0.125 : f32}
    : !x -> !x, !x, !x, !attn.tensor<[H], f32> score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
    %slope = attn.element %slopes[%h] : !attn.tensor<[H], f32> -> f32
    %r = arith.mulf %s, %slope : f32
    attn.yield %r : f32
  } grad {
  ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %g: f32):
    %slope = attn.element %slopes[%h] : !attn.tensor<[H], f32> -> f32
    %ds = arith.mulf %g, %slope : f32
    %dslope = arith.mulf %g, %s : f32
    attn.accumulate %dslope into 0[%h]
    attn.yield %ds : f32
  }
  return %dq : !x
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!v = !attn.tensor<[B, H, N, 512], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @wide(%x: !x, %v: !v, %n: !n) -> !x attributes {attn.program} {
  // expected-error@+1 {{has no tangent of values of more than 256 channels}}
  %dq, %d:2 = attn.attend_backward %x keys(%x : !x) values(%v : !v) lse(%n : !n) delta(%n : !n) gradient(%v : !v) {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !x, !v
  return %dq : !x
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
func.func @recurrence(%x: !x) -> !x attributes {attn.program} {
  // expected-error@+1 {{'attn.recur' op has no tangent}}
  %o, %s = attn.recur %x, %x, %x {scale = 0.125 : f32} : (!x, !x, !x) -> (!x, !attn.tensor<[B, H, 64, 64], f32>)
  return %o : !x
}

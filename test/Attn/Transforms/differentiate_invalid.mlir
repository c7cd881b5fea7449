// RUN: weft-opt %s --attn-differentiate --split-input-file --verify-diagnostics

func.func @second_order(%q: !attn.tensor<[B, H, N, 64], f16>, %row: !attn.tensor<[B, H, N], f32>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
  // expected-error@+2 {{has no derivative}}
  // expected-note@+1 {{gradients of gradients are not supported: differentiate the program itself once}}
  %dq, %d:2 = attn.attend_backward %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) values(%q : !attn.tensor<[B, H, N, 64], f16>)
    lse(%row : !attn.tensor<[B, H, N], f32>) delta(%row : !attn.tensor<[B, H, N], f32>) gradient(%q : !attn.tensor<[B, H, N, 64], f16>)
    {patterns = [#attn.causal], scale = 0.125 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N, 64], f16>
  return %dq : !attn.tensor<[B, H, N, 64], f16>
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

func.func @scattered(%x: !attn.tensor<[N], f32>, %ids: !attn.tensor<[N], i32>) -> !attn.tensor<[N], f32> attributes {attn.program} {
  %0 = attn.map ins(%ids : !attn.tensor<[N], i32>) -> !attn.tensor<[N], f32> {
  ^bb0(%i: i32):
    // expected-error@+2 {{expected the elements of a differentiated tensor at the map's own positions, 'attn.index' of ascending axes}}
    // expected-note@+1 {{a tensor whose gradient nobody asks for may be read anywhere: differentiate=False, or --forward-only, asks for none}}
    %b = attn.element %x[%i] : !attn.tensor<[N], f32> -> f32
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

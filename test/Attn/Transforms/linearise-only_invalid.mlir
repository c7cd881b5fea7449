// RUN: weft-opt %s --attn-linearise=only=g --verify-diagnostics

// expected-error@+1 {{expected a program 'g' to linearise}}
module {
  func.func @f(%x: !attn.tensor<[N], f32>) -> !attn.tensor<[N], f32> attributes {attn.program} {
    return %x : !attn.tensor<[N], f32>
  }
}

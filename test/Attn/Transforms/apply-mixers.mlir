// RUN: weft-opt %s --attn-apply-mixers --split-input-file | FileCheck %s
// Mixers applied become ops on tensors; sums are f32 and round once.

// CHECK-LABEL: func.func @softmax
// CHECK-SAME: (%[[Q:.*]]: {{.*}}, %[[K:.*]]: {{.*}}, %[[V:.*]]: !attn.tensor<[B, H, M, 32], f16>)
func.func @softmax(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, M, 64], f16>, %v: !attn.tensor<[B, H, M, 32], f16>)
    -> !attn.tensor<[B, H, N, 32], f16> attributes {attn.program} {
  // CHECK-NOT: attn.softmax
  // CHECK: %[[O:.*]], %{{.*}} = attn.attend %[[Q]] keys(%[[K]] : {{.*}}) values(%[[V]] : {{.*}})
  // CHECK-SAME: {patterns = [#attn.causal], scale = 1.250000e-01 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N], f32>
  // CHECK-NEXT: return %[[O]]
  %a = attn.softmax %q keys(%k : !attn.tensor<[B, H, M, 64], f16>) {patterns = [#attn.causal], scale = 0.125 : f32} : !attn.tensor<[B, H, N, 64], f16>
  %y = attn.apply %a, %v : (!attn.tensor<[B, H, M, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16>
  return %y : !attn.tensor<[B, H, N, 32], f16>
}

// -----

// A gate of one number leaves the values' shape.
// CHECK-LABEL: func.func @multiple
func.func @multiple(%v: !attn.tensor<[B, H, N, 32], f16>, %g: !attn.tensor<[1, 1, 1, 1], f32>) -> !attn.tensor<[B, H, N, 32], f16> attributes {attn.program} {
  // CHECK: attn.map ins(%arg1, %{{.*}} : !attn.tensor<[1, 1, 1, 1], f32>, {{.*}}) -> !attn.tensor<[B, H, N, 32], f16>
  %mean = attn.mean
  %number = attn.diag %g : !attn.tensor<[1, 1, 1, 1], f32>
  %a = attn.compose %number, %mean
  %y = attn.apply %a, %v : (!attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16>
  return %y : !attn.tensor<[B, H, N, 32], f16>
}

// -----

// Regions, captures, sinks and several domains go along.
// CHECK-LABEL: func.func @domains
func.func @domains(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, M, 64], f16>, %v: !attn.tensor<[B, H, M, 64], f16>,
                   %pk: !attn.tensor<[B, H, P, 64], f16>, %pv: !attn.tensor<[B, H, P, 64], f16>, %slopes: !attn.tensor<[H], f32>, %sink: !attn.tensor<[H], f32>)
    -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
  // CHECK: attn.attend %{{.*}} keys(%{{.*}}, %{{.*}} : {{.*}}) values(%arg2, %arg4 : {{.*}}) sink(%arg6
  // CHECK-SAME: patterns = [#attn.mask<0>, #attn.full]
  // CHECK-SAME: score_mod {
  // CHECK: attn.element %arg5
  // CHECK: masks({
  // CHECK: arith.cmpi
  %a = attn.softmax %q keys(%k, %pk : !attn.tensor<[B, H, M, 64], f16>, !attn.tensor<[B, H, P, 64], f16>) sink(%sink : !attn.tensor<[H], f32>)
    {patterns = [#attn.mask<0>, #attn.full], scale = 0.125 : f32} : !attn.tensor<[B, H, N, 64], f16>
    score_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
      %slope = attn.element %slopes[%h] : !attn.tensor<[H], f32> -> f32
      %r = arith.mulf %s, %slope : f32
      attn.yield %r : f32
    }
    masks ({
    ^bb0(%b: i32, %h: i32, %n: i32, %m: i32):
      %c = arith.cmpi sle, %m, %n : i32
      attn.yield %c : i1
    })
  %y = attn.apply %a, %v, %pv : (!attn.tensor<[B, H, M, 64], f16>, !attn.tensor<[B, H, P, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16>
  return %y : !attn.tensor<[B, H, N, 64], f16>
}

// -----

// SEMA: three terms, f32, one map; the mean is one row, and it and the convolution have the heads of the values.
// CHECK-LABEL: func.func @sema
// CHECK-SAME: (%[[Q:.*]]: {{.*}}, %[[K:.*]]: {{.*}}, %[[V:.*]]: {{.*}}, %[[T:.*]]: {{.*}})
func.func @sema(%q: !attn.tensor<[B, "4*Hkv", N, 64], f16>, %k: !attn.tensor<[B, Hkv, N, 64], f16>, %v: !attn.tensor<[B, Hkv, N, 64], f16>, %taps: !attn.tensor<[3, "Hkv*64"], f16>)
    -> !attn.tensor<[B, "4*Hkv", N, 64], f16> attributes {attn.program} {
  // CHECK: %[[O:.*]], %{{.*}} = attn.attend %[[Q]] {{.*}} -> !attn.tensor<[B, "4*Hkv", N, 64], f32>
  // CHECK: %[[SUM:.*]] = attn.sum %[[V]] : !attn.tensor<[B, Hkv, N, 64], f16> -> !attn.tensor<[B, Hkv, 1, 64], f32>
  // CHECK: %[[MEAN:.*]] = attn.map ins(%[[SUM]] : {{.*}}) -> !attn.tensor<[B, Hkv, 1, 64], f32>
  // CHECK: %[[SIZE:.*]] = attn.size "N" : i32
  // CHECK: %[[REAL:.*]] = arith.sitofp %[[SIZE]]
  // CHECK: arith.divf %{{.*}}, %[[REAL]]
  // CHECK: %[[CONV:.*]] = attn.convolve %[[V]], %[[T]] {centred} : {{.*}} -> !attn.tensor<[B, Hkv, N, 64], f32>
  // CHECK: %[[Y:.*]] = attn.map ins(%[[O]], %[[MEAN]], %[[CONV]] : {{.*}}) -> !attn.tensor<[B, "4*Hkv", N, 64], f16>
  // CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32, %[[C:.*]]: f32):
  // CHECK: %[[AB:.*]] = arith.addf %[[A]], %[[B]]
  // CHECK: %[[ABC:.*]] = arith.addf %[[AB]], %[[C]]
  // CHECK: attn.yield %[[ABC]]
  // CHECK: return %[[Y]]
  %s = attn.softmax %q keys(%k : !attn.tensor<[B, Hkv, N, 64], f16>) {patterns = [#attn.block_window<[64]>], scale = 0.125 : f32} : !attn.tensor<[B, "4*Hkv", N, 64], f16>
  %m = attn.mean
  %t = attn.toeplitz %taps {centred} : !attn.tensor<[3, "Hkv*64"], f16>
  %sm = attn.add %s, %m
  %a = attn.add %sm, %t
  %y = attn.apply %a, %v : (!attn.tensor<[B, Hkv, N, 64], f16>) -> !attn.tensor<[B, "4*Hkv", N, 64], f16>
  return %y : !attn.tensor<[B, "4*Hkv", N, 64], f16>
}

// -----

// A gate takes the softmax' f32 result; what a softmax takes is rounded.
// CHECK-LABEL: func.func @compose
func.func @compose(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, N, 64], f16>, %v: !attn.tensor<[B, H, N, 32], f16>,
                   %g: !attn.tensor<[B, H, N, 1], f16>, %taps: !attn.tensor<[3, "H*32"], f16>) -> !attn.tensor<[B, H, N, 32], f16> attributes {attn.program} {
  // CHECK: %[[CONV:.*]] = attn.convolve %arg2, %arg4 {dilation = 2 : i64} : {{.*}} -> !attn.tensor<[B, H, N, 32], f16>
  // CHECK: %[[O:.*]], %{{.*}} = attn.attend %arg0 {{.*}} values(%[[CONV]] : {{.*}} -> !attn.tensor<[B, H, N, 32], f32>
  // CHECK: %[[Y:.*]] = attn.map ins(%arg3, %[[O]] : {{.*}}) -> !attn.tensor<[B, H, N, 32], f16>
  // CHECK: arith.mulf
  // CHECK: return %[[Y]]
  %s = attn.softmax %q keys(%k : !attn.tensor<[B, H, N, 64], f16>) {patterns = [#attn.causal], scale = 0.125 : f32} : !attn.tensor<[B, H, N, 64], f16>
  %t = attn.toeplitz %taps {dilation = 2 : i64} : !attn.tensor<[3, "H*32"], f16>
  %d = attn.diag %g : !attn.tensor<[B, H, N, 1], f16>
  %st = attn.compose %s, %t
  %a = attn.compose %d, %st
  %y = attn.apply %a, %v : (!attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16>
  return %y : !attn.tensor<[B, H, N, 32], f16>
}

// -----

// What one softmax gives has the heads of its queries: keys of fewer heads are repeated for it.
// CHECK-LABEL: func.func @compose_groups
func.func @compose_groups(%q: !attn.tensor<[B, "2*Hkv", N, 64], f16>, %k: !attn.tensor<[B, Hkv, N, 64], f16>, %v: !attn.tensor<[B, Hkv, N, 32], f16>)
    -> !attn.tensor<[B, "2*Hkv", N, 32], f16> attributes {attn.program} {
  // CHECK: %[[INNER:.*]], %{{.*}} = attn.attend %arg0 keys(%arg1 : !attn.tensor<[B, Hkv, N, 64], f16>) values(%arg2 :
  // CHECK: %[[KEYS:.*]] = attn.map ins(%arg1 : {{.*}}) -> !attn.tensor<[B, "2*Hkv", N, 64], f16>
  // CHECK: attn.attend %arg0 keys(%[[KEYS]] : {{.*}}) values(%[[INNER]] :
  %s = attn.softmax %q keys(%k : !attn.tensor<[B, Hkv, N, 64], f16>) {patterns = [#attn.causal], scale = 0.125 : f32} : !attn.tensor<[B, "2*Hkv", N, 64], f16>
  %ss = attn.compose %s, %s
  %y = attn.apply %ss, %v : (!attn.tensor<[B, Hkv, N, 32], f16>) -> !attn.tensor<[B, "2*Hkv", N, 32], f16>
  return %y : !attn.tensor<[B, "2*Hkv", N, 32], f16>
}

// -----

// A + B inside of a product is one tensor; means alone are rounded by the map that repeats their row.
// CHECK-LABEL: func.func @means
func.func @means(%v: !attn.tensor<[B, H, N, 32], f16>, %taps: !attn.tensor<[3, "H*32"], f16>)
    -> (!attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N, 32], f16>) attributes {attn.program} {
  // CHECK: %[[ROW:.*]] = attn.map ins(%{{.*}} : !attn.tensor<[B, H, 1, 32], f32>) -> !attn.tensor<[B, H, 1, 32], f32>
  // CHECK: %[[MEAN:.*]] = attn.map ins(%[[ROW]] : {{.*}}) -> !attn.tensor<[B, H, N, 32], f16>
  // CHECK: %[[CAUSAL:.*]] = attn.prefix_mean %arg0 : {{.*}} -> !attn.tensor<[B, H, N, 32], f16>
  // CHECK: %[[A:.*]] = attn.prefix_mean %arg0 : {{.*}} -> !attn.tensor<[B, H, N, 32], f32>
  // CHECK: %[[B:.*]] = attn.convolve %arg0, %arg1 : {{.*}} -> !attn.tensor<[B, H, N, 32], f32>
  // CHECK: %[[AB:.*]] = attn.map ins(%[[A]], %[[B]] : {{.*}}) -> !attn.tensor<[B, H, N, 32], f16>
  // CHECK: %[[C:.*]] = attn.convolve %[[AB]], %arg1 : {{.*}} -> !attn.tensor<[B, H, N, 32], f16>
  // CHECK: return %[[MEAN]], %[[CAUSAL]], %[[C]]
  %m = attn.mean
  %c = attn.mean {causal}
  %t = attn.toeplitz %taps : !attn.tensor<[3, "H*32"], f16>
  %ct = attn.add %c, %t
  %tct = attn.compose %t, %ct
  %0 = attn.apply %m, %v : (!attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16>
  %1 = attn.apply %c, %v : (!attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16>
  %2 = attn.apply %tct, %v : (!attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16>
  return %0, %1, %2 : !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N, 32], f16>
}

// -----

// What has no mixers stays as it is.
// CHECK-LABEL: func.func @untouched
func.func @untouched(%x: !attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16> attributes {attn.program} {
  // CHECK-NEXT: %[[R:.*]] = attn.rope %arg0
  // CHECK-NEXT: return %[[R]]
  %0 = attn.rope %x : !attn.tensor<[B, H, N, 32], f16> -> !attn.tensor<[B, H, N, 32], f16>
  return %0 : !attn.tensor<[B, H, N, 32], f16>
}

// -----

// A softmax of fewer heads than the sum that it is a term of has its own: the sum repeats them.
// CHECK-LABEL: func.func @more_heads_in_the_sum
func.func @more_heads_in_the_sum(%q: !attn.tensor<[B, H, N, 64], f16>, %v: !attn.tensor<[B, H, N, 64], f16>, %g: !attn.tensor<[B, "2*H", N, 1], f16>)
    -> !attn.tensor<[B, "2*H", N, 64], f16> attributes {attn.program} {
  // CHECK: %[[O:.*]], %{{.*}} = attn.attend {{.*}} -> !attn.tensor<[B, H, N, 64], f32>, !attn.tensor<[B, H, N], f32>
  // CHECK: %[[G:.*]] = attn.map {{.*}} -> !attn.tensor<[B, "2*H", N, 64], f32>
  // CHECK: attn.map ins(%[[O]], %[[G]] : {{.*}}) -> !attn.tensor<[B, "2*H", N, 64], f16>
  %s = attn.softmax %q keys(%v : !attn.tensor<[B, H, N, 64], f16>) {patterns = [#attn.causal], scale = 0.125 : f32} : !attn.tensor<[B, H, N, 64], f16>
  %d = attn.diag %g : !attn.tensor<[B, "2*H", N, 1], f16>
  %a = attn.add %s, %d
  %y = attn.apply %a, %v : (!attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, "2*H", N, 64], f16>
  return %y : !attn.tensor<[B, "2*H", N, 64], f16>
}

// -----

// A gate without channels is looked up: one number a token.
// CHECK-LABEL: func.func @gate_of_tokens
// CHECK-SAME: (%[[G:.*]]: !attn.tensor<[B, H, N], f16>
func.func @gate_of_tokens(%g: !attn.tensor<[B, H, N], f16>, %v: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
  // CHECK: %[[COLUMN:.*]] = attn.map -> !attn.tensor<[B, H, N, 1], f16>
  // CHECK: attn.element %[[G]]
  // CHECK: attn.map ins(%[[COLUMN]], %{{.*}} : {{.*}}) -> !attn.tensor<[B, H, N, 64], f16>
  %d = attn.diag %g : !attn.tensor<[B, H, N], f16>
  %y = attn.apply %d, %v : (!attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16>
  return %y : !attn.tensor<[B, H, N, 64], f16>
}

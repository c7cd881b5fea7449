// RUN: weft-opt %s | weft-opt | FileCheck %s
// Every op of the attn dialect printed as it is read.

// CHECK-LABEL: func.func @softmax
func.func @softmax(%q: !attn.tensor<[B, "4*Hkv", N, 64], f16>, %k: !attn.tensor<[B, Hkv, M, 64], f16>, %pooled: !attn.tensor<[B, Hkv, P, 64], f16>,
                   %count: !attn.tensor<[B, Hkv], i32>, %sink: !attn.tensor<["4*Hkv"], f32>, %qid: !attn.tensor<[N], i32>, %kid: !attn.tensor<[M], i32>) {
  // CHECK: attn.softmax %{{.*}} keys(%{{.*}} : !attn.tensor<[B, Hkv, M, 64], f16>) {patterns = [#attn.causal], scale = 1.250000e-01 : f32}
  %0 = attn.softmax %q keys(%k : !attn.tensor<[B, Hkv, M, 64], f16>) {patterns = [#attn.causal], scale = 0.125 : f32} : !attn.tensor<[B, "4*Hkv", N, 64], f16>
  // CHECK: attn.softmax %{{.*}} keys(%{{.*}}, %{{.*}} : {{.*}}) counts(%{{.*}}, %{{.*}}) sink(%{{.*}}) over(%{{.*}}, %{{.*}})
  // CHECK-SAME: score_mod {
  // CHECK: masks({
  %1 = attn.softmax %q keys(%k, %pooled : !attn.tensor<[B, Hkv, M, 64], f16>, !attn.tensor<[B, Hkv, P, 64], f16>)
    counts(%count, %count : !attn.tensor<[B, Hkv], i32>, !attn.tensor<[B, Hkv], i32>) sink(%sink : !attn.tensor<["4*Hkv"], f32>)
    over(%qid, %kid : !attn.tensor<[N], i32>, !attn.tensor<[M], i32>)
    {patterns = [#attn.and<#attn.document<queryIds = 0, keyIds = 1>, #attn.mask<0>>, #attn.full], scale = 0.125 : f32, precision = #attn<precision tf32>}
    : !attn.tensor<[B, "4*Hkv", N, 64], f16>
    score_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
      %bias = attn.element %sink[%h] : !attn.tensor<["4*Hkv"], f32> -> f32
      %r = arith.addf %s, %bias : f32
      attn.yield %r : f32
    }
    masks ({
    ^bb0(%b: i32, %h: i32, %n: i32, %m: i32):
      %c = arith.cmpi sle, %m, %n : i32
      attn.yield %c : i1
    })
  return
}


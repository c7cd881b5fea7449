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

// CHECK-LABEL: func.func @mixers
func.func @mixers(%taps: !attn.tensor<[3, "H*64"], f16>, %plane: !attn.tensor<[9, "H*64"], f16>, %g: !attn.tensor<[B, H, N, 1], f16>, %v: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> {
  // CHECK: attn.mean{{$}}
  // CHECK: attn.mean {causal}
  // CHECK: attn.toeplitz %{{.*}} {centred, dilation = 2 : i64} : !attn.tensor<[3, "H*64"], f16>
  // CHECK: attn.toeplitz %{{.*}} {centred, grid = array<i64: 8, 8>} :
  // CHECK: attn.diag %{{.*}} : !attn.tensor<[B, H, N, 1], f16>
  // CHECK: attn.add %{{.*}}, %{{.*}}
  // CHECK: attn.compose %{{.*}}, %{{.*}}
  // CHECK: attn.apply %{{.*}}, %{{.*}} : (!attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16>
  %m = attn.mean
  %c = attn.mean {causal}
  %t = attn.toeplitz %taps {centred, dilation = 2 : i64} : !attn.tensor<[3, "H*64"], f16>
  %p = attn.toeplitz %plane {centred, grid = array<i64: 8, 8>} : !attn.tensor<[9, "H*64"], f16>
  %d = attn.diag %g : !attn.tensor<[B, H, N, 1], f16>
  %0 = attn.add %m, %c
  %1 = attn.compose %d, %0
  %2 = attn.apply %1, %v : (!attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16>
  return %2 : !attn.tensor<[B, H, N, 64], f16>
}

// CHECK-LABEL: func.func @tensors
func.func @tensors(%x: !attn.tensor<[B, "2*G", N, 64], f16>, %y: !attn.tensor<[B, G, 1, 64], f16>, %ids: !attn.tensor<[N, 1], i32>, %bits: !attn.tensor<[1, 1], i1>,
                   %taps: !attn.tensor<[3, "G*128"], f16>, %filter: !attn.tensor<[N, "G*128"], f16>, %gain: !attn.tensor<["2*G", 64], f32>) {
  // CHECK: %{{.*}}:2 = attn.map ins(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}} : {{.*}}) -> !attn.tensor<[B, "2*G", N, 64], f16>, !attn.tensor<[B, "2*G", N, 64], i32> {
  // CHECK: ^bb0(%{{.*}}: f32, %{{.*}}: f32, %{{.*}}: i32, %{{.*}}: i1):
  // CHECK: attn.index 3 : i32
  // CHECK: attn.size "cdiv(N, 2)" : i32
  // CHECK: attn.yield %{{.*}}, %{{.*}} : f32, i32
  %0:2 = attn.map ins(%x, %y, %ids, %bits : !attn.tensor<[B, "2*G", N, 64], f16>, !attn.tensor<[B, G, 1, 64], f16>, !attn.tensor<[N, 1], i32>, !attn.tensor<[1, 1], i1>)
      -> !attn.tensor<[B, "2*G", N, 64], f16>, !attn.tensor<[B, "2*G", N, 64], i32> {
  ^bb0(%a: f32, %b: f32, %i: i32, %c: i1):
    %p = attn.index 3 : i32
    %n = attn.size "cdiv(N, 2)" : i32
    %s = arith.addi %p, %n : i32
    %r = arith.select %c, %a, %b : f32
    attn.yield %r, %s : f32, i32
  }
  // CHECK: attn.map -> !attn.tensor<[], f32> {
  %1 = attn.map -> !attn.tensor<[], f32> {
    %z = arith.constant 0.0 : f32
    attn.yield %z : f32
  }
  // CHECK: attn.sum %{{.*}} : !attn.tensor<[B, "2*G", N, 64], f16> -> !attn.tensor<[G, 1, 64], f32>
  // CHECK: attn.sum %{{.*}} away [1, 2] : !attn.tensor<[B, "2*G", N, 64], f16> -> !attn.tensor<[B, 64], f32>
  %2 = attn.sum %x : !attn.tensor<[B, "2*G", N, 64], f16> -> !attn.tensor<[G, 1, 64], f32>
  %3 = attn.sum %x away [1, 2] : !attn.tensor<[B, "2*G", N, 64], f16> -> !attn.tensor<[B, 64], f32>
  // CHECK: attn.prefix_mean %{{.*}} {transposed}
  %4 = attn.prefix_mean %x {transposed} : !attn.tensor<[B, "2*G", N, 64], f16> -> !attn.tensor<[B, "2*G", N, 64], f32>
  // CHECK: attn.convolve %{{.*}}, %{{.*}} {centred, transposed} :
  // CHECK: attn.convolve_taps_grad %{{.*}}, %{{.*}} {centred} :
  %5 = attn.convolve %x, %taps {centred, transposed} : !attn.tensor<[B, "2*G", N, 64], f16>, !attn.tensor<[3, "G*128"], f16> -> !attn.tensor<[B, "2*G", N, 64], f16>
  %6 = attn.convolve_taps_grad %x, %5 {centred} : !attn.tensor<[B, "2*G", N, 64], f16>, !attn.tensor<[B, "2*G", N, 64], f16> -> !attn.tensor<[3, "G*128"], f16>
  // CHECK: attn.convolve %{{.*}}, %{{.*}} : {{.*}}, !attn.tensor<[N, "G*128"], f16>
  %long = attn.convolve %x, %filter : !attn.tensor<[B, "2*G", N, 64], f16>, !attn.tensor<[N, "G*128"], f16> -> !attn.tensor<[B, "2*G", N, 64], f16>
  // CHECK: attn.rope %{{.*}} {form = #attn<rope axial>, grid = array<i64: 8, 8>, window = array<i64: 4, 4>} :
  %7 = attn.rope %x {form = #attn<rope axial>, grid = array<i64: 8, 8>, window = array<i64: 4, 4>} : !attn.tensor<[B, "2*G", N, 64], f16> -> !attn.tensor<[B, "2*G", N, 64], f16>
  // CHECK: attn.rms_norm %{{.*}}, %{{.*}} : {{.*}}, {{.*}} -> {{.*}}
  // CHECK: attn.rms_norm %{{.*}} {eps = {{.*}}} : {{.*}} -> {{.*}}
  %8 = attn.rms_norm %x, %gain : !attn.tensor<[B, "2*G", N, 64], f16>, !attn.tensor<["2*G", 64], f32> -> !attn.tensor<[B, "2*G", N, 64], f16>
  %9 = attn.rms_norm %x {eps = 1.0e-3 : f64} : !attn.tensor<[B, "2*G", N, 64], f16> -> !attn.tensor<[B, "2*G", N, 64], f16>
  return
}

// CHECK-LABEL: func.func @attend
func.func @attend(%q: !attn.tensor<[1, H, N, 64], f16>, %k: !attn.tensor<[1, H, M, 64], f16>, %v: !attn.tensor<[1, H, M, 32], f16>, %starts: !attn.tensor<[S], i32>,
                  %row: !attn.tensor<[1, H, N], f32>, %g: !attn.tensor<[1, H, N, 32], f16>, %slopes: !attn.tensor<[H], f32>) {
  // CHECK: attn.attend %{{.*}} keys(%{{.*}}) values(%{{.*}}) cu_seqlens(%{{.*}}, %{{.*}} : {{.*}}) {patterns = [#attn.causal], scale = 1.000000e+00 : f32, schedule = #attn.schedule<rows = 128, columns = 64, warps = 4, stages = 3>}
  %o, %l = attn.attend %q keys(%k : !attn.tensor<[1, H, M, 64], f16>) values(%v : !attn.tensor<[1, H, M, 32], f16>) cu_seqlens(%starts, %starts : !attn.tensor<[S], i32>, !attn.tensor<[S], i32>)
    {patterns = [#attn.causal], scale = 1.0 : f32, schedule = #attn.schedule<rows = 128, columns = 64, warps = 4, stages = 3>}
    : !attn.tensor<[1, H, N, 64], f16> -> !attn.tensor<[1, H, N, 32], f16>, !attn.tensor<[1, H, N], f32>
  // CHECK: attn.attend {{.*}} schedule = #attn.schedule<rows = 64, columns = 32, warps = 8, stages = 2, channels = 384>}
  %o2, %l2 = attn.attend %q keys(%k : !attn.tensor<[1, H, M, 64], f16>) values(%v : !attn.tensor<[1, H, M, 32], f16>)
    {patterns = [#attn.causal], scale = 1.0 : f32, schedule = #attn.schedule<rows = 64, columns = 32, warps = 8, stages = 2, channels = 384>}
    : !attn.tensor<[1, H, N, 64], f16> -> !attn.tensor<[1, H, N, 32], f16>, !attn.tensor<[1, H, N], f32>
  // CHECK: attn.attend_backward {{.*}} lse(%{{.*}}) delta(%{{.*}}) gradient(%{{.*}}) {fast, patterns = [#attn.causal]
  // CHECK-SAME: score_mod {
  // CHECK: } grad {
  // CHECK: attn.accumulate %{{.*}} into 0[%{{.*}}]
  %dq, %d:3 = attn.attend_backward %q keys(%k : !attn.tensor<[1, H, M, 64], f16>) values(%v : !attn.tensor<[1, H, M, 32], f16>)
    lse(%row : !attn.tensor<[1, H, N], f32>) delta(%row : !attn.tensor<[1, H, N], f32>) gradient(%g : !attn.tensor<[1, H, N, 32], f16>) {fast, patterns = [#attn.causal], scale = 1.0 : f32}
    : !attn.tensor<[1, H, N, 64], f16> -> !attn.tensor<[1, H, N, 64], f16>, !attn.tensor<[1, H, M, 64], f16>, !attn.tensor<[1, H, M, 32], f16>, !attn.tensor<[H], f32>
    score_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
      %slope = attn.element %slopes[%h] : !attn.tensor<[H], f32> -> f32
      %r = arith.mulf %s, %slope : f32
      attn.yield %r : f32
    } grad {
    ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32, %dp: f32):
      %slope = attn.element %slopes[%h] : !attn.tensor<[H], f32> -> f32
      %r = arith.mulf %dp, %slope : f32
      %e = arith.mulf %dp, %s : f32
      attn.accumulate %e into 0[%h]
      attn.yield %r : f32
    }
  return
}

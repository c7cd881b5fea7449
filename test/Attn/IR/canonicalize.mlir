// RUN: weft-opt %s --canonicalize --split-input-file | FileCheck %s
// Canonical forms of the attn dialect.

// Patterns merge and fold on the ops that carry them; lengths that are spelled alike are equal, integers are known.
// CHECK-LABEL: func.func @patterns
func.func @patterns(%q: !attn.tensor<[B, H, N, 32], f16>, %s: !attn.tensor<[B, H, 64, 32], f16>)
    -> (!attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, 64, 32], f16>) {
  // CHECK: attn.attend {{.*}} {patterns = [#attn.causal],
  %0, %l0 = attn.attend %q keys(%q : !attn.tensor<[B, H, N, 32], f16>) values(%q : !attn.tensor<[B, H, N, 32], f16>)
    {patterns = [#attn.and<#attn.full, #attn.causal>], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 32], f16> -> !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N], f32>
  // CHECK: attn.attend {{.*}} {patterns = [#attn.full],
  %1, %l1 = attn.attend %s keys(%s : !attn.tensor<[B, H, 64, 32], f16>) values(%s : !attn.tensor<[B, H, 64, 32], f16>)
    {patterns = [#attn.window<left = 63, right = 63>], scale = 1.0 : f32} : !attn.tensor<[B, H, 64, 32], f16> -> !attn.tensor<[B, H, 64, 32], f16>, !attn.tensor<[B, H, 64], f32>
  return %0, %1 : !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, 64, 32], f16>
}

// -----

// The lengths of packed sequences, and of keys that are counted, are not those of the tensors.
// CHECK-LABEL: func.func @unknown_lengths
func.func @unknown_lengths(%q: !attn.tensor<[1, H, 64, 32], f16>, %count: !attn.tensor<[1, H], i32>, %starts: !attn.tensor<[S], i32>)
    -> (!attn.tensor<[1, H, 64, 32], f16>, !attn.tensor<[1, H, 64, 32], f16>) {
  // CHECK: attn.attend {{.*}} counts({{.*}} {patterns = [#attn.window<left = 63, right = 63>],
  %0, %l0 = attn.attend %q keys(%q : !attn.tensor<[1, H, 64, 32], f16>) values(%q : !attn.tensor<[1, H, 64, 32], f16>) counts(%count : !attn.tensor<[1, H], i32>)
    {patterns = [#attn.window<left = 63, right = 63>], scale = 1.0 : f32} : !attn.tensor<[1, H, 64, 32], f16> -> !attn.tensor<[1, H, 64, 32], f16>, !attn.tensor<[1, H, 64], f32>
  // CHECK: attn.attend {{.*}} cu_seqlens({{.*}} {patterns = [#attn.window<left = 63, right = 63>],
  %1, %l1 = attn.attend %q keys(%q : !attn.tensor<[1, H, 64, 32], f16>) values(%q : !attn.tensor<[1, H, 64, 32], f16>)
    cu_seqlens(%starts, %starts : !attn.tensor<[S], i32>, !attn.tensor<[S], i32>)
    {patterns = [#attn.window<left = 63, right = 63>], scale = 1.0 : f32} : !attn.tensor<[1, H, 64, 32], f16> -> !attn.tensor<[1, H, 64, 32], f16>, !attn.tensor<[1, H, 64], f32>
  return %0, %1 : !attn.tensor<[1, H, 64, 32], f16>, !attn.tensor<[1, H, 64, 32], f16>
}

// -----

// A section's pattern is simplified for lengths that nobody knows; a section of all pairs is all pairs.
// CHECK-LABEL: func.func @sections
func.func @sections(%q: !attn.tensor<[B, H, 64, 32], f16>, %place: !attn.tensor<[2], i32>) -> (!attn.tensor<[B, H, 64, 32], f16>, !attn.tensor<[B, H, 64, 32], f16>) {
  // CHECK: attn.attend {{.*}} {patterns = [#attn.section<#attn.window<left = 63, right = 63>, rows = 0, keys = 0>],
  %0, %l0 = attn.attend %q keys(%q : !attn.tensor<[B, H, 64, 32], f16>) values(%q : !attn.tensor<[B, H, 64, 32], f16>) over(%place : !attn.tensor<[2], i32>)
    {patterns = [#attn.section<#attn.and<#attn.full, #attn.window<left = 63, right = 63>>, rows = 0, keys = 0>], scale = 1.0 : f32} : !attn.tensor<[B, H, 64, 32], f16> -> !attn.tensor<[B, H, 64, 32], f16>, !attn.tensor<[B, H, 64], f32>
  // CHECK: attn.attend {{.*}} {patterns = [#attn.full],
  %1, %l1 = attn.attend %q keys(%q : !attn.tensor<[B, H, 64, 32], f16>) values(%q : !attn.tensor<[B, H, 64, 32], f16>) over(%place : !attn.tensor<[2], i32>)
    {patterns = [#attn.section<#attn.or<#attn.causal, #attn.not<#attn.causal>>, rows = 0, keys = 0>], scale = 1.0 : f32} : !attn.tensor<[B, H, 64, 32], f16> -> !attn.tensor<[B, H, 64, 32], f16>, !attn.tensor<[B, H, 64], f32>
  return %0, %1 : !attn.tensor<[B, H, 64, 32], f16>, !attn.tensor<[B, H, 64, 32], f16>
}

// -----

// Both parts of a pattern whose weights are not all kept are simplified; where all are, it is the first.
// CHECK-LABEL: func.func @kept
func.func @kept(%q: !attn.tensor<[B, H, 64, 32], f16>) -> (!attn.tensor<[B, H, 64, 32], f16>, !attn.tensor<[B, H, 64, 32], f16>) {
  // CHECK: attn.attend {{.*}} {patterns = [#attn.kept<#attn.full, #attn.strided<2>>],
  %0, %l0 = attn.attend %q keys(%q : !attn.tensor<[B, H, 64, 32], f16>) values(%q : !attn.tensor<[B, H, 64, 32], f16>)
    {patterns = [#attn.kept<#attn.window<left = 63, right = 63>, #attn.and<#attn.full, #attn.strided<2>>>], scale = 1.0 : f32} : !attn.tensor<[B, H, 64, 32], f16> -> !attn.tensor<[B, H, 64, 32], f16>, !attn.tensor<[B, H, 64], f32>
  // CHECK: attn.attend {{.*}} {patterns = [#attn.causal],
  %1, %l1 = attn.attend %q keys(%q : !attn.tensor<[B, H, 64, 32], f16>) values(%q : !attn.tensor<[B, H, 64, 32], f16>)
    {patterns = [#attn.kept<#attn.causal, #attn.strided<1>>], scale = 1.0 : f32} : !attn.tensor<[B, H, 64, 32], f16> -> !attn.tensor<[B, H, 64, 32], f16>, !attn.tensor<[B, H, 64], f32>
  return %0, %1 : !attn.tensor<[B, H, 64, 32], f16>, !attn.tensor<[B, H, 64, 32], f16>
}

// -----

// A domain without pairs goes; without any domain the outputs are 0 and the lse -inf. A sink keeps the op.
// CHECK-LABEL: func.func @empty
// CHECK-SAME: (%[[Q:.*]]: {{[^,]*, [^,]*, [^,]*, [^,]*, [^,]*}}, %[[K:.*]]: {{[^,]*, [^,]*, [^,]*, [^,]*, [^,]*}}, %{{.*}}: !attn.tensor<[H], f32>)
func.func @empty(%q: !attn.tensor<[B, H, N, 32], f16>, %k: !attn.tensor<[B, H, M, 32], f16>, %sink: !attn.tensor<[H], f32>)
    -> (!attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N], f32>, !attn.tensor<[B, H, N], f32>) {
  // CHECK: attn.attend %[[Q]] keys(%[[K]] : !attn.tensor<[B, H, M, 32], f16>) values(%[[K]] : {{.*}}) {patterns = [#attn.causal]
  %0, %l0 = attn.attend %q keys(%q, %k : !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, M, 32], f16>) values(%q, %k : !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, M, 32], f16>)
    {patterns = [#attn.and<#attn.causal, #attn.empty>, #attn.causal], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 32], f16> -> !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N], f32>
  // CHECK: %[[ZERO:.*]] = attn.map -> !attn.tensor<[B, H, N, 32], f16> {
  // CHECK: 0.0
  // CHECK: %[[NOTHING:.*]] = attn.map -> !attn.tensor<[B, H, N], f32> {
  // CHECK: 0xFF800000
  %1, %l1 = attn.attend %q keys(%q : !attn.tensor<[B, H, N, 32], f16>) values(%q : !attn.tensor<[B, H, N, 32], f16>)
    {patterns = [#attn.empty], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 32], f16> -> !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N], f32>
  // CHECK: %{{.*}}, %[[SINK:.*]] = attn.attend {{.*}} sink(
  %2, %l2 = attn.attend %q keys(%q : !attn.tensor<[B, H, N, 32], f16>) values(%q : !attn.tensor<[B, H, N, 32], f16>) sink(%sink : !attn.tensor<[H], f32>)
    {patterns = [#attn.empty], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 32], f16> -> !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N], f32>
  // CHECK: return %{{.*}}, %[[ZERO]], %[[NOTHING]], %[[SINK]]
  return %0, %1, %l1, %l2 : !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N], f32>, !attn.tensor<[B, H, N], f32>
}

// -----

// Arguments of a program that were read for a domain without pairs are noted: their gradients are zero.
// CHECK-LABEL: func.func @left_out
// CHECK-SAME: %[[Q:[^:]*]]: !attn.tensor<[B, H, N, 32], f16>, %[[K:[^:]*]]: !attn.tensor<[B, H, N, 32], f16>,
// CHECK-SAME: %{{[^:]*}}: !attn.tensor<[B, H, N, 32], f16> {attn.left_out}, %{{[^:]*}}: !attn.tensor<[H], f32>)
func.func @left_out(%q: !attn.tensor<[B, H, N, 32], f16>, %k: !attn.tensor<[B, H, N, 32], f16>, %k2: !attn.tensor<[B, H, N, 32], f16>, %sink: !attn.tensor<[H], f32>) -> !attn.tensor<[B, H, N, 32], f16> attributes {attn.program} {
  %turned = attn.rope %k2 : !attn.tensor<[B, H, N, 32], f16> -> !attn.tensor<[B, H, N, 32], f16>
  // CHECK: attn.attend %[[Q]] keys(%[[K]] : {{[^)]*}}) values(%[[K]] :
  %0, %l0 = attn.attend %q keys(%k, %turned : !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N, 32], f16>) values(%k, %turned : !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N, 32], f16>) sink(%sink : !attn.tensor<[H], f32>)
    {patterns = [#attn.causal, #attn.empty], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 32], f16> -> !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N], f32>
  return %0 : !attn.tensor<[B, H, N, 32], f16>
}

// -----

// A map of a map is one if nothing else reads what is between, nothing rounds there, and the shapes are one.
// CHECK-LABEL: func.func @maps
func.func @maps(%x: !attn.tensor<[N, 32], f16>, %y: !attn.tensor<[N, 32], f16>, %row: !attn.tensor<[1, 32], f32>) -> (!attn.tensor<[N, 32], f16>, !attn.tensor<[N, 32], f16>) {
  // CHECK: %[[ONE:.*]] = attn.map ins(%arg0, %arg1 : {{.*}}) -> !attn.tensor<[N, 32], f16> {
  // CHECK: ^bb0(%[[A:.*]]: f32, %[[B:.*]]: f32):
  // CHECK: %[[NEG:.*]] = arith.negf %[[A]]
  // CHECK: %[[SUM:.*]] = arith.addf %[[NEG]], %[[B]]
  // CHECK: attn.yield %[[SUM]]
  %0 = attn.map ins(%x : !attn.tensor<[N, 32], f16>) -> !attn.tensor<[N, 32], f32> {
  ^bb0(%a: f32):
    %n = arith.negf %a : f32
    attn.yield %n : f32
  }
  %1 = attn.map ins(%0, %y : !attn.tensor<[N, 32], f32>, !attn.tensor<[N, 32], f16>) -> !attn.tensor<[N, 32], f16> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    attn.yield %s : f32
  }
  // CHECK: %[[ROUNDED:.*]] = attn.map ins(%arg0 : {{.*}}) -> !attn.tensor<[N, 32], f16>
  // CHECK: %[[SMALL:.*]] = attn.map ins(%arg2 : {{.*}}) -> !attn.tensor<[1, 32], f32>
  // CHECK: %[[TWO:.*]] = attn.map ins(%[[ROUNDED]], %[[SMALL]]
  // CHECK: return %[[ONE]], %[[TWO]]
  %2 = attn.map ins(%x : !attn.tensor<[N, 32], f16>) -> !attn.tensor<[N, 32], f16> {
  ^bb0(%a: f32):
    %n = arith.negf %a : f32
    attn.yield %n : f32
  }
  %3 = attn.map ins(%row : !attn.tensor<[1, 32], f32>) -> !attn.tensor<[1, 32], f32> {
  ^bb0(%a: f32):
    %n = arith.negf %a : f32
    attn.yield %n : f32
  }
  %4 = attn.map ins(%2, %3 : !attn.tensor<[N, 32], f16>, !attn.tensor<[1, 32], f32>) -> !attn.tensor<[N, 32], f16> {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    attn.yield %s : f32
  }
  return %1, %4 : !attn.tensor<[N, 32], f16>, !attn.tensor<[N, 32], f16>
}

// -----

// Inputs that are not read or given twice, and results that are not used, go.
// CHECK-LABEL: func.func @unused
func.func @unused(%x: !attn.tensor<[N], f32>, %y: !attn.tensor<[N], f32>) -> !attn.tensor<[N], f32> {
  // CHECK: attn.map ins(%arg0 : !attn.tensor<[N], f32>) -> !attn.tensor<[N], f32> {
  // CHECK: ^bb0(%[[A:.*]]: f32):
  // CHECK: arith.mulf %[[A]], %[[A]]
  // CHECK-NOT: arith.negf
  %0:2 = attn.map ins(%x, %y, %x : !attn.tensor<[N], f32>, !attn.tensor<[N], f32>, !attn.tensor<[N], f32>) -> !attn.tensor<[N], f32>, !attn.tensor<[N], f32> {
  ^bb0(%a: f32, %b: f32, %c: f32):
    %n = arith.negf %b : f32
    %p = arith.mulf %a, %c : f32
    attn.yield %n, %p : f32, f32
  }
  return %0#1 : !attn.tensor<[N], f32>
}

// -----

// Sums of sums; a sum that sums nothing; means of means.
// CHECK-LABEL: func.func @sums
func.func @sums(%x: !attn.tensor<[B, "2*G", N, 32], f16>, %y: !attn.tensor<[B, G, 1, 32], f32>)
    -> (!attn.tensor<[B, G, 1, 32], f32>, !attn.tensor<[B, G, 1, 32], f32>) {
  // CHECK: %[[SUM:.*]] = attn.sum %arg0 : !attn.tensor<[B, "2*G", N, 32], f16> -> !attn.tensor<[B, G, 1, 32], f32>
  // CHECK: return %[[SUM]], %arg1
  %0 = attn.sum %x : !attn.tensor<[B, "2*G", N, 32], f16> -> !attn.tensor<[B, G, N, 32], f32>
  %1 = attn.sum %0 : !attn.tensor<[B, G, N, 32], f32> -> !attn.tensor<[B, G, 1, 32], f32>
  %2 = attn.sum %y : !attn.tensor<[B, G, 1, 32], f32> -> !attn.tensor<[B, G, 1, 32], f32>
  return %1, %2 : !attn.tensor<[B, G, 1, 32], f32>, !attn.tensor<[B, G, 1, 32], f32>
}

// CHECK-LABEL: func.func @means
func.func @means(%v: !attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16> {
  // CHECK: %[[MEAN:.*]] = attn.mean
  // CHECK-NOT: attn.compose
  // CHECK: attn.apply %[[MEAN]]
  %m = attn.mean
  %n = attn.mean
  %mn = attn.compose %m, %n
  %0 = attn.apply %mn, %v : (!attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 32], f16>
  return %0 : !attn.tensor<[B, H, N, 32], f16>
}

// RUN: weft-opt %s --attn-apply-mixers --attn-linearise --canonicalize --split-input-file | FileCheck %s
// A function of results and tangents for each program; one rule for each op.

// Softmax attention and its tangent are one op, which stands in the place of the attention; an argument that is a constant has no tangent, integers have none.
// CHECK-LABEL: func.func @plain(
// CHECK: attn.attend %
// CHECK-LABEL: func.func @plain.tangent(
// CHECK-SAME: %[[Q:[^:]*]]: {{[^{]*}} {attn.aligned, attn.name = "q"}, %[[K:[^:]*]]: {{[^{]*}} {attn.constant, attn.name = "k"}, %[[V:[^:]*]]: {{[^{]*}} {attn.name = "v"}
// CHECK-SAME: %[[COUNTS:[^:]*]]: !attn.tensor<[B, H], i32>
// CHECK-SAME: %[[TQ:[^:]*]]: !attn.tensor<[B, H, N, 64], f16> {attn.aligned, attn.name = "t_q"}, %[[TV:[^:]*]]: !attn.tensor<[B, H, M, 32], f16> {attn.name = "t_v"})
// CHECK-SAME: -> (!attn.tensor<[B, H, N, 32], f16> {attn.name = "y"}, !attn.tensor<[B, H, N, 32], f16> {attn.name = "t_y"}) attributes {attn.program}
// CHECK-NEXT: %[[OUT:.*]], %{{.*}}, %[[T:.*]], %{{.*}} = attn.attend_tangent %[[Q]] keys(%[[K]] : {{.*}}) values(%[[V]] : {{.*}}) counts(%[[COUNTS]] : {{.*}}) query_tangent(%[[TQ]] : {{.*}}) value_tangents(%[[TV]] : {{[^)]*}}) {patterns = [#attn.causal], scale = 1.250000e-01 : f32}
// CHECK-NEXT: return %[[OUT]], %[[T]]
func.func @plain(%q: !attn.tensor<[B, H, N, 64], f16> {attn.aligned, attn.name = "q"}, %k: !attn.tensor<[B, H, M, 64], f16> {attn.constant, attn.name = "k"},
                 %v: !attn.tensor<[B, H, M, 32], f16> {attn.name = "v"}, %counts: !attn.tensor<[B, H], i32>) -> (!attn.tensor<[B, H, N, 32], f16> {attn.name = "y"}) attributes {attn.program} {
  %y, %lse = attn.attend %q keys(%k : !attn.tensor<[B, H, M, 64], f16>) values(%v : !attn.tensor<[B, H, M, 32], f16>) counts(%counts : !attn.tensor<[B, H], i32>)
    {patterns = [#attn.causal], scale = 0.125 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N], f32>
  return %y : !attn.tensor<[B, H, N, 32], f16>
}

// -----

// Linear ops are themselves; a product of two values is two of them, added by a map.
// CHECK-LABEL: func.func @sema.tangent(
// CHECK-SAME: %[[Q:[^:]*]]: {{[^,]*, [^,]*, [^,]*, [^,]*, [^,]*}}, %[[V:[^:]*]]: {{[^,]*, [^,]*, [^,]*, [^,]*, [^,]*}}, %[[TAPS:[^:]*]]: {{[^,]*, [^,]*, [^,]*}}, %[[TQ:[^:]*]]: {{[^%]*}}%[[TV:[^:]*]]: {{[^%]*}}%[[TTAPS:[^:]*]]:
// CHECK: %[[TQR:.*]] = attn.rope %[[TQ]] {window = array<i64: 64>}
// CHECK: %[[QR:.*]] = attn.rope %[[Q]] {window = array<i64: 64>}
// CHECK: attn.attend_tangent %[[QR]] keys(%[[QR]] : {{.*}}) values(%[[V]] : {{.*}}) query_tangent(%[[TQR]] : {{.*}}) key_tangents(%[[TQR]] : {{.*}}) value_tangents(%[[TV]] :
// CHECK: attn.sum %[[TV]]
// CHECK: %[[LEFT:.*]] = attn.convolve %[[TV]], %[[TAPS]] {centred}
// CHECK: %[[RIGHT:.*]] = attn.convolve %[[V]], %[[TTAPS]] {centred}
func.func @sema(%q: !attn.tensor<[B, H, N, 64], f16>, %v: !attn.tensor<[B, H, N, 64], f16>, %taps: !attn.tensor<[3, "H*64"], f32>)
    -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
  %qr = attn.rope %q {window = array<i64: 64>}: !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>
  %s = attn.softmax %qr keys(%qr : !attn.tensor<[B, H, N, 64], f16>) {patterns = [#attn.block_window<[64]>], scale = 0.125 : f32} : !attn.tensor<[B, H, N, 64], f16>
  %m = attn.mean
  %t = attn.toeplitz %taps {centred} : !attn.tensor<[3, "H*64"], f32>
  %sm = attn.add %s, %m
  %a = attn.add %sm, %t
  %y = attn.apply %a, %v : (!attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16>
  return %y : !attn.tensor<[B, H, N, 64], f16>
}

// -----

// score_mod, symbolically: how the score changes with itself and with what the region reads. What does not change is not computed with.
// CHECK-LABEL: func.func @biased.tangent(
// CHECK-SAME: %[[BIAS:[^:]*]]: !attn.tensor<[H, N, N], f32>, %{{[^:]*}}: {{[^%]*}}%{{[^:]*}}: {{[^%]*}}%{{[^:]*}}: {{[^%]*}}%[[TBIAS:[^:]*]]: !attn.tensor<[H, N, N], f32>
// CHECK: score_mod {
// CHECK: ^bb0(%[[S:.*]]: f32, %{{.*}}: i32, %[[H:.*]]: i32, %[[N:.*]]: i32, %[[M:.*]]: i32):
// CHECK: attn.element %[[BIAS]]
// CHECK: } tangent {
// CHECK: ^bb0(%[[S:.*]]: f32, %{{.*}}: i32, %[[H:.*]]: i32, %[[N:.*]]: i32, %[[M:.*]]: i32, %[[D:.*]]: f32):
// CHECK: %[[T:.*]] = math.tanh %[[S]]
// CHECK: %[[SQUARE:.*]] = arith.mulf %[[T]], %[[T]]
// CHECK: %[[SLOPE:.*]] = arith.subf %{{.*}}, %[[SQUARE]]
// CHECK: %[[DT:.*]] = arith.mulf %[[D]], %[[SLOPE]]
// CHECK: %[[DB:.*]] = attn.element %[[TBIAS]][%[[H]], %[[N]], %[[M]]]
// CHECK: %[[SUM:.*]] = arith.addf %[[DT]], %[[DB]]
// CHECK: attn.yield %[[SUM]]
func.func @biased(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, N, 64], f16>, %v: !attn.tensor<[B, H, N, 64], f16>, %bias: !attn.tensor<[H, N, N], f32>)
    -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
  %y, %lse = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 64], f16>) values(%v : !attn.tensor<[B, H, N, 64], f16>) {patterns = [#attn.full], scale = 0.125 : f32}
    : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32> score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
    %t = math.tanh %s : f32
    %e = attn.element %bias[%h, %n, %m] : !attn.tensor<[H, N, N], f32> -> f32
    %r = arith.addf %t, %e : f32
    attn.yield %r : f32
  }
  return %y : !attn.tensor<[B, H, N, 64], f16>
}

// -----

// Products with weights, the bias' tangent with one of them; means over heads; norms, by rows.
// CHECK-LABEL: func.func @products.tangent(
// CHECK-SAME: %[[X:[^:]*]]: {{[^%]*}}%[[W:[^:]*]]: {{[^%]*}}%[[B:[^:]*]]: {{[^%]*}}%[[L:[^:]*]]: {{[^%]*}}%[[G:[^:]*]]: {{[^%]*}}%[[TX:[^:]*]]: {{[^%]*}}%[[TW:[^:]*]]: {{[^%]*}}%[[TB:[^:]*]]: {{[^%]*}}%[[TL:[^:]*]]: {{[^%]*}}%[[TG:[^:]*]]:
// CHECK: attn.head_conv %[[TX]], %[[W]] bias %[[TB]]
// CHECK: attn.head_conv %[[X]], %[[TW]] :
// CHECK: %[[T1:.*]] = attn.map
// CHECK: %[[Y1:.*]] = attn.head_conv %[[X]], %[[W]] bias %[[B]]
// CHECK: attn.linear %[[T1]], %[[L]] :
// CHECK: attn.linear %[[Y1]], %[[TL]] :
// CHECK: attn.sum {{.*}} -> !attn.tensor<[B, 6, N, 1], f32>
// CHECK: attn.sum {{.*}} -> !attn.tensor<[B, 6, N, 1], f32>
// CHECK: math.rsqrt
// CHECK: attn.element %[[TG]]
// CHECK: attn.mean_heads
// CHECK: attn.mean_heads
func.func @products(%x: !attn.tensor<[B, 2, N, 16], f32>, %w: !attn.tensor<[6, 2, 3], f32>, %b: !attn.tensor<[6], f32>, %l: !attn.tensor<[16, 16], f32>, %g: !attn.tensor<[6, 16], f32>)
    -> !attn.tensor<[B, 2, N, 16], f32> attributes {attn.program} {
  %1 = attn.head_conv %x, %w bias %b : !attn.tensor<[B, 2, N, 16], f32>, !attn.tensor<[6, 2, 3], f32>, !attn.tensor<[6], f32> -> !attn.tensor<[B, 6, N, 16], f32>
  %2 = attn.linear %1, %l : !attn.tensor<[B, 6, N, 16], f32>, !attn.tensor<[16, 16], f32> -> !attn.tensor<[B, 6, N, 16], f32>
  %3 = attn.rms_norm %2, %g : !attn.tensor<[B, 6, N, 16], f32>, !attn.tensor<[6, 16], f32> -> !attn.tensor<[B, 6, N, 16], f32>
  %4 = attn.mean_heads %3 : !attn.tensor<[B, 6, N, 16], f32> -> !attn.tensor<[B, 2, N, 16], f32>
  return %4 : !attn.tensor<[B, 2, N, 16], f32>
}

// -----

// Values and their tangents are merged by one op.
// CHECK-LABEL: func.func @merge.tangent(
// CHECK-SAME: %[[J:[^:]*]]: {{[^%]*}}%[[K:[^:]*]]: {{[^%]*}}%[[TK:[^:]*]]:
// CHECK: %[[M:.*]]:2, %{{.*}} = attn.merge_units %[[J]](%[[K]], %[[TK]]) {maxJoins = 20 : i64, modes = [#attn<merge mean>, #attn<merge mean>], offsets = array<i64: 0, 0>}
// CHECK: return %[[M]]#0, %[[M]]#1
func.func @merge(%joins: !attn.tensor<[B, H, N], i1>, %k: !attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
  %ku, %unit, %lower, %upper, %ends, %first, %past, %kept = attn.merge_units %joins (%k)
    {maxJoins = 20 : i64, modes = [#attn<merge mean>], offsets = array<i64: 0>}
    : !attn.tensor<[B, H, N], i1> (!attn.tensor<[B, H, N, 64], f16>)
    -> (!attn.tensor<[B, H, N, 64], f16>), !attn.tensor<[B, H, N], i32>, !attn.tensor<[B, H, N], i32>, !attn.tensor<[B, H, N], i32>, !attn.tensor<[B, H, N], i32>, !attn.tensor<[B, H, N], i32>, !attn.tensor<[B, H, N], i32>, !attn.tensor<[B, H, N], i1>
  return %ku : !attn.tensor<[B, H, N, 64], f16>
}

// -----

// CHECK-LABEL: func.func @tables.tangent(
// CHECK-SAME: attributes {attn.program, attn.requires = [{at_least = "N", size = "64*R", what = "a table"}]}
!x = !attn.tensor<[N, 64], f32>
func.func @tables(%x: !x, %t: !attn.tensor<[R], i32>) -> !x
    attributes {attn.program, attn.requires = [{size = "64*R", at_least = "N", what = "a table"}]} {
  %y = attn.map ins(%x : !x) -> !x {
  ^bb0(%a: f32):
    %b = arith.mulf %a, %a : f32
    attn.yield %b : f32
  }
  return %y : !x
}

// -----

// Which argument says where packed sequences start is known of every function that takes it.
// CHECK-LABEL: func.func @packed.tangent(
// CHECK-SAME: !attn.tensor<[S], i32> {attn.name = "starts", attn.starts = ["N"]}
!x = !attn.tensor<[N, 64], f32>
func.func @packed(%x: !x, %starts: !attn.tensor<[S], i32> {attn.name = "starts", attn.starts = ["N"]}) -> !x attributes {attn.program} {
  %y = attn.map ins(%x : !x) -> !x {
  ^bb0(%a: f32):
    %b = arith.mulf %a, %a : f32
    attn.yield %b : f32
  }
  return %y : !x
}

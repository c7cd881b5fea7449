// RUN: weft-opt %s --attn-apply-mixers --attn-differentiate --split-input-file | FileCheck %s
// A forward and a backward function for each program; one adjoint for each op.

// Softmax attention: out and lse are saved, delta is a map and a sum, P is never formed. A saved value that is a result too is stored once: the backward
// takes the result under its own name.
// CHECK-LABEL: func.func @plain(
// CHECK-LABEL: func.func @plain.forward(
// CHECK-SAME: -> (!attn.tensor<[B, H, N, 32], f16> {attn.name = "y"}, !attn.tensor<[B, H, N], f32> {attn.name = "saved_lse1"})
// CHECK-SAME: attributes {attn.program}
// CHECK: %[[OUT:.*]], %[[LSE:.*]] = attn.attend
// CHECK-NEXT: return %[[OUT]], %[[LSE]]
// CHECK-LABEL: func.func @plain.backward(
// CHECK-SAME: %[[Q:.*]]: !attn.tensor<[B, H, N, 64], f16> {attn.aligned, attn.name = "q"}, %[[K:[^:]*]]: {{[^:]*}} {attn.name = "k"}, %[[V:[^:]*]]: {{[^:]*}} {attn.name = "v"}
// CHECK-SAME: %[[OUT:[^:]*]]: !attn.tensor<[B, H, N, 32], f16> {attn.aligned, attn.name = "y"}
// CHECK-SAME: %[[LSE:[^:]*]]: !attn.tensor<[B, H, N], f32> {attn.name = "saved_lse1"}
// CHECK-SAME: %[[DY:[^:]*]]: !attn.tensor<[B, H, N, 32], f16> {attn.aligned, attn.name = "d_y"}
// CHECK-SAME: -> ({{[^{]*}} {attn.name = "d_q"}, {{[^{]*}} {attn.name = "d_k"}, {{[^{]*}} {attn.name = "d_v"})
// CHECK-SAME: attributes {attn.gradients_of = array<i64: 0, 1, 2>, attn.program}
// CHECK: %[[PRODUCTS:.*]] = attn.map ins(%[[DY]], %[[OUT]] : {{.*}}) -> !attn.tensor<[B, H, N, 32], f32>
// CHECK: %[[DELTA:.*]] = attn.sum %[[PRODUCTS]] away [3] : {{.*}} -> !attn.tensor<[B, H, N], f32>
// CHECK: %[[DQ:.*]], %[[D:.*]]:2 = attn.attend_backward %[[Q]] keys(%[[K]] : {{.*}}) values(%[[V]] : {{.*}}) lse(%[[LSE]] : {{.*}}) delta(%[[DELTA]] : {{.*}}) gradient(%[[DY]]
// CHECK-SAME: -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, M, 64], f16>, !attn.tensor<[B, H, M, 32], f16>
// CHECK: return %[[DQ]], %[[D]]#0, %[[D]]#1
func.func @plain(%q: !attn.tensor<[B, H, N, 64], f16> {attn.aligned, attn.name = "q"}, %k: !attn.tensor<[B, H, M, 64], f16> {attn.name = "k"},
                 %v: !attn.tensor<[B, H, M, 32], f16> {attn.name = "v"}) -> (!attn.tensor<[B, H, N, 32], f16> {attn.name = "y"}) attributes {attn.program} {
  %y, %lse = attn.attend %q keys(%k : !attn.tensor<[B, H, M, 64], f16>) values(%v : !attn.tensor<[B, H, M, 32], f16>)
    {patterns = [#attn.causal], scale = 0.125 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 32], f16>, !attn.tensor<[B, H, N], f32>
  return %y : !attn.tensor<[B, H, N, 32], f16>
}

// -----

// SEMA: each linear op by its transpose; the three gradients of v are added by one map, in f32; rope is computed again.
// An output that is not rounded in the program is saved rounded.
// CHECK-LABEL: func.func @sema.forward(
// CHECK: %[[OUT:.*]], %[[LSE:.*]] = attn.attend {{.*}} f32>, !attn.tensor<[B, H, N], f32>
// CHECK: %[[Y:.*]] = attn.map ins(%[[OUT]], %{{.*}}, %{{.*}} :
// CHECK: %[[ROUNDED:.*]] = attn.map ins(%[[OUT]] : {{.*}}) -> !attn.tensor<[B, H, N, 64], f16>
// CHECK: return %[[Y]], %[[ROUNDED]], %[[LSE]]
// CHECK-LABEL: func.func @sema.backward(
// CHECK-SAME: %[[Q:[^:]*]]: {{[^,]*, [^,]*, [^,]*, [^,]*, [^,]*}}, %[[K:[^:]*]]: {{[^,]*, [^,]*, [^,]*, [^,]*, [^,]*}}, %[[V:[^:]*]]: {{[^,]*, [^,]*, [^,]*, [^,]*, [^,]*}}, %[[TAPS:[^:]*]]: {{[^,]*, [^,]*, [^,]*}}, %[[OUT:[^:]*]]: {{.*}}, %[[LSE:[^:]*]]: {{.*}}, %[[DY:[^:]*]]: !attn.tensor<[B, H, N, 64], f16> {attn.name = "d_result0"})
// CHECK: %[[ROW:.*]] = attn.sum %[[DY]] : {{.*}} -> !attn.tensor<[B, H, 1, 64], f32>
// CHECK: %[[CONV:.*]] = attn.convolve %[[DY]], %[[TAPS]] {centred, transposed} : {{.*}} f32>
// CHECK: %[[DTAPS:.*]] = attn.convolve_taps_grad %[[V]], %[[DY]] {centred} : {{.*}} -> !attn.tensor<[3, "H*64"], f32>
// CHECK: %[[MEAN:.*]] = attn.map ins(%[[ROW]]
// CHECK: arith.divf
// CHECK: %[[QR:.*]] = attn.rope %[[Q]] {window = array<i64: 64>}
// CHECK: %[[DQR:.*]], %[[D:.*]]:2 = attn.attend_backward %[[QR]] {{.*}} -> !attn.tensor<[B, H, N, 64], f32>, !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N, 64], f32>
// CHECK: %[[DQ:.*]] = attn.rope %[[DQR]] {inverse, window = array<i64: 64>} : {{.*}} -> !attn.tensor<[B, H, N, 64], f16>
// CHECK: %[[DV:.*]] = attn.map ins(%[[CONV]], %[[MEAN]], %[[D]]#1 : {{.*}}) -> !attn.tensor<[B, H, N, 64], f16>
// CHECK: return %[[DQ]], %[[D]]#0, %[[DV]], %[[DTAPS]]
func.func @sema(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, N, 64], f16>, %v: !attn.tensor<[B, H, N, 64], f16>, %taps: !attn.tensor<[3, "H*64"], f32>)
    -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
  %qr = attn.rope %q {window = array<i64: 64>}: !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>
  %s = attn.softmax %qr keys(%k : !attn.tensor<[B, H, N, 64], f16>) {patterns = [#attn.block_window<[64]>], scale = 0.125 : f32} : !attn.tensor<[B, H, N, 64], f16>
  %m = attn.mean
  %t = attn.toeplitz %taps {centred} : !attn.tensor<[3, "H*64"], f32>
  %sm = attn.add %s, %m
  %a = attn.add %sm, %t
  %y = attn.apply %a, %v : (!attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16>
  return %y : !attn.tensor<[B, H, N, 64], f16>
}

// -----

// score_mod, symbolically: the score's gradient, and the bias' by attn.accumulate. The lse' gradient is taken from delta.
// CHECK-LABEL: func.func @capped.backward(
// CHECK-SAME: %[[DOUT:[^:]*]]: !attn.tensor<[B, H, N, 64], f16> {attn.name = "d_result0"}, %[[DLSE:[^:]*]]: !attn.tensor<[B, H, N], f32> {attn.name = "d_result1"})
// CHECK: %[[SUM:.*]] = attn.sum %{{.*}} away [3]
// CHECK: %[[DELTA:.*]] = attn.map ins(%[[SUM]], %[[DLSE]]
// CHECK: arith.subf
// CHECK: %{{.*}}, %[[D:.*]]:3 = attn.attend_backward {{.*}} delta(%[[DELTA]] : {{.*}} !attn.tensor<[H, N, N], f32> score_mod {
// CHECK: math.tanh
// CHECK: } grad {
// CHECK: ^bb0(%[[S:.*]]: f32, %{{.*}}: i32, %[[H:.*]]: i32, %[[N:.*]]: i32, %[[M:.*]]: i32, %[[G:.*]]: f32):
// CHECK: %[[C:.*]] = arith.constant 3.0
// CHECK: %[[X:.*]] = arith.divf %[[S]], %[[C]]
// CHECK: %[[T:.*]] = math.tanh %[[X]]
// CHECK: %[[GC:.*]] = arith.mulf %[[G]], %[[C]]
// CHECK: %[[ONE:.*]] = arith.constant 1.0
// CHECK: %[[TT:.*]] = arith.mulf %[[T]], %[[T]]
// CHECK: %[[SECH:.*]] = arith.subf %[[ONE]], %[[TT]]
// CHECK: %[[GX:.*]] = arith.mulf %[[GC]], %[[SECH]]
// CHECK: %[[GS:.*]] = arith.divf %[[GX]], %[[C]]
// CHECK: attn.accumulate %[[G]] into 0[%[[H]], %[[N]], %[[M]]]
// CHECK: attn.yield %[[GS]]
// CHECK: %[[DBIAS:.*]] = attn.map ins(%[[D]]#2 : {{.*}}) -> !attn.tensor<[H, N, N], f16>
func.func @capped(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, N, 64], f16>, %v: !attn.tensor<[B, H, N, 64], f16>, %bias: !attn.tensor<[H, N, N], f16>)
    -> (!attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>) attributes {attn.program} {
  %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 64], f16>) values(%v: !attn.tensor<[B, H, N, 64], f16>) {patterns = [#attn.full], scale = 0.125 : f32}
    : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
    score_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
      %c = arith.constant 30.0 : f32
      %x = arith.divf %s, %c : f32
      %t = math.tanh %x : f32
      %u = arith.mulf %t, %c : f32
      %e = attn.element %bias[%h, %n, %m] : !attn.tensor<[H, N, N], f16> -> f32
      %r = arith.addf %u, %e : f32
      attn.yield %r : f32
    }
  return %o, %l : !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
}

// -----

// What is read at the query and at the key has a gradient for each of them, added outside of the kernels; what is read at
// computed places has one.
// CHECK-LABEL: func.func @decays.backward(
// CHECK: %{{.*}}, %[[D:.*]]:5 = attn.attend_backward
// CHECK: } grad {
// CHECK: ^bb0(%{{.*}}: f32, %[[B:.*]]: i32, %[[H:.*]]: i32, %[[N:.*]]: i32, %[[M:.*]]: i32, %{{.*}}: f32):
// CHECK-DAG: attn.accumulate %{{.*}} into 0[%[[B]], %[[H]], %[[N]]]
// CHECK-DAG: attn.accumulate %{{.*}} into 1[%[[B]], %[[H]], %[[M]]]
// CHECK-DAG: attn.accumulate %{{.*}} into 2[%{{.*}}]
// CHECK-DAG: attn.accumulate %{{.*}} into 2[%{{.*}}]
// CHECK: attn.map ins(%[[D]]#2, %[[D]]#3 :
// CHECK: arith.addf
!t = !attn.tensor<[B, H, N, 64], f16>
!d = !attn.tensor<[B, H, N], f32>
!l = !attn.tensor<[L], f32>
func.func @decays(%q: !t, %k: !t, %v: !t, %d: !d, %table: !l) -> !t attributes {attn.program} {
  %o, %l = attn.attend %q keys(%k : !t) values(%v: !t) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !d score_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
      %e = attn.element %d[%b, %h, %n] : !d -> f32
      %f = attn.element %d[%b, %h, %m] : !d -> f32
      %distance = arith.subi %n, %m : i32
      %sum = arith.addi %n, %m : i32
      %x = attn.element %table[%distance] : !l -> f32
      %y = attn.element %table[%sum] : !l -> f32
      %r = arith.addf %s, %e : f32
      %r1 = arith.subf %r, %f : f32
      %r2 = arith.addf %r1, %x : f32
      %r3 = arith.addf %r2, %y : f32
      attn.yield %r3 : f32
    }
  return %o : !t
}

// -----

// A sink's gradient: -Σ p_sink delta. Keys that are values too add both gradients.
// CHECK-LABEL: func.func @sink.backward(
// CHECK: %[[DELTA:.*]] = attn.sum %{{.*}} away [3]
// CHECK: %{{.*}}, %[[D:.*]]:2 = attn.attend_backward {{.*}} -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N, 64], f32>, !attn.tensor<[B, H, N, 64], f32>
// CHECK: %[[ROWS:.*]] = attn.map ins(%[[LSE:.*]], %[[DELTA]] : {{.*}}) -> !attn.tensor<[B, H, N], f32>
// CHECK: attn.element
// CHECK: math.exp
// CHECK: arith.negf
// CHECK: %[[DSINK:.*]] = attn.sum %[[ROWS]] away [0, 2] : {{.*}} -> !attn.tensor<[H], f32>
// CHECK: %[[DK:.*]] = attn.map ins(%[[D]]#0, %[[D]]#1
// CHECK: return %{{.*}}, %[[DK]], %[[DSINK]]
func.func @sink(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, N, 64], f16>, %sink: !attn.tensor<[H], f32>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
  %o, %l = attn.attend %q keys(%k : !attn.tensor<[B, H, N, 64], f16>) values(%k: !attn.tensor<[B, H, N, 64], f16>) sink(%sink : !attn.tensor<[H], f32>)
    {patterns = [#attn.full], scale = 0.125 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
  return %o : !attn.tensor<[B, H, N, 64], f16>
}

// -----

// Maps: derivatives and sums to what was repeated, groups of heads too; tensors that are read at the map's own positions likewise.
// Nothing is saved. Integers have no gradient; neither has an argument that nothing depends on.
// CHECK-LABEL: func.func @map.forward(
// CHECK-SAME: -> !attn.tensor<[B, "2*G", N, 64], f16> attributes
// CHECK-LABEL: func.func @map.backward(
// CHECK-SAME: %[[X:[^:]*]]: {{[^>]*>}}, %[[Y:[^:]*]]: {{[^>]*>}}, %[[GAIN:[^:]*]]: {{[^>]*>}}, %[[IDS:[^:]*]]: {{[^>]*>}}, %[[IDLE:[^:]*]]: {{[^>]*>}}, %[[DZ:[^:]*]]: {{[^>]*>}} {attn.name = "d_result0"})
// CHECK-SAME: gradients_of = array<i64: 0, 1, 2>
// CHECK: %[[D:.*]]:3 = attn.map ins(%[[X]], %[[Y]], %[[DZ]] : {{.*}}) -> !attn.tensor<[B, "2*G", N, 64], f16>, !attn.tensor<[B, "2*G", N, 64], f32>, !attn.tensor<[B, "2*G", N, 64], f32>
// CHECK: %[[DY:.*]] = attn.sum %[[D]]#1 : {{.*}} -> !attn.tensor<[B, G, 1, 64], f16>
// CHECK: %[[DGAIN:.*]] = attn.sum %[[D]]#2 away [0, 2] : {{.*}} -> !attn.tensor<["2*G", 64], f32>
// CHECK: return %[[D]]#0, %[[DY]], %[[DGAIN]]
func.func @map(%x: !attn.tensor<[B, "2*G", N, 64], f16>, %y: !attn.tensor<[B, G, 1, 64], f16>, %gain: !attn.tensor<["2*G", 64], f32>, %ids: !attn.tensor<[N, 1], i32>,
               %idle: !attn.tensor<[N], f32>) -> !attn.tensor<[B, "2*G", N, 64], f16> attributes {attn.program} {
  %z = attn.map ins(%x, %y, %ids : !attn.tensor<[B, "2*G", N, 64], f16>, !attn.tensor<[B, G, 1, 64], f16>, !attn.tensor<[N, 1], i32>) -> !attn.tensor<[B, "2*G", N, 64], f16> {
  ^bb0(%a: f32, %b: f32, %i: i32):
    %h = attn.index 1 : i32
    %c = attn.index 3 : i32
    %g = attn.element %gain[%h, %c] : !attn.tensor<["2*G", 64], f32> -> f32
    %real = arith.sitofp %i : i32 to f32
    %0 = arith.mulf %a, %b : f32
    %1 = math.exp %0 : f32
    %2 = arith.mulf %1, %g : f32
    %3 = arith.addf %2, %real : f32
    attn.yield %3 : f32
  }
  return %z : !attn.tensor<[B, "2*G", N, 64], f16>
}

// -----

// rms_norm: r and the inner product once for each row, then dx; the gain's gradient over batch and rows.
// CHECK-LABEL: func.func @norm.backward(
// CHECK: %[[P:.*]]:2 = attn.map
// CHECK: %[[SQUARES:.*]] = attn.sum %[[P]]#0 : {{.*}} -> !attn.tensor<[B, H, N, 1], f32>
// CHECK: %[[INNER:.*]] = attn.sum %[[P]]#1 : {{.*}} -> !attn.tensor<[B, H, N, 1], f32>
// CHECK: %[[ROW:.*]]:2 = attn.map ins(%[[SQUARES]], %[[INNER]]
// CHECK: math.rsqrt
// CHECK: %[[DX:.*]] = attn.map ins(%{{.*}}, %{{.*}}, %[[ROW]]#0, %[[ROW]]#1 : {{.*}}) -> !attn.tensor<[B, H, N, 64], f16>
// CHECK: %[[TERMS:.*]] = attn.map ins(%{{.*}}, %{{.*}}, %[[ROW]]#0 : {{.*}}) -> !attn.tensor<[B, H, N, 64], f32>
// CHECK: %[[DG:.*]] = attn.sum %[[TERMS]] away [0, 2] : {{.*}} -> !attn.tensor<[H, 64], f32>
// CHECK: return %[[DX]], %[[DG]]
func.func @norm(%x: !attn.tensor<[B, H, N, 64], f16>, %g: !attn.tensor<[H, 64], f32>) -> !attn.tensor<[B, H, N, 64], f16> attributes {attn.program} {
  %y = attn.rms_norm %x, %g : !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[H, 64], f32> -> !attn.tensor<[B, H, N, 64], f16>
  return %y : !attn.tensor<[B, H, N, 64], f16>
}

// -----

// Transposes of the causal mean and of sums; a gradient that is an argument, or is returned already, is copied.
// CHECK-LABEL: func.func @linear.backward(
// CHECK-SAME: %[[D0:[^:]*]]: {{[^>]*>}} {attn.name = "d_result0"}, %[[D1:[^:]*]]: {{[^>]*>}} {attn.name = "d_result1"}, %[[D2:[^:]*]]: {{[^>]*>}} {attn.name = "d_result2"})
// CHECK: %[[SPREAD:.*]] = attn.map -> !attn.tensor<[B, H, N, 64], f32>
// CHECK: attn.element %[[D1]][%{{.*}}, %{{.*}}, %{{.*}}]
// CHECK: %[[MEAN:.*]] = attn.prefix_mean %[[D0]] {transposed} : {{.*}} -> !attn.tensor<[B, H, N, 64], f32>
// CHECK: %[[DX:.*]] = attn.map ins(%[[SPREAD]], %[[MEAN]]
// CHECK: %[[A:.*]] = attn.map ins(%[[D2]]
// CHECK: %[[B:.*]] = attn.map ins(%[[D2]]
// CHECK: return %[[DX]], %[[A]], %[[B]]
func.func @linear(%x: !attn.tensor<[B, H, N, 64], f16>, %a: !attn.tensor<[N], f32>, %b: !attn.tensor<[N], f32>)
    -> (!attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>, !attn.tensor<[N], f32>) attributes {attn.program} {
  %0 = attn.prefix_mean %x : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>
  %1 = attn.sum %x away [3] : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N], f32>
  %2 = attn.map ins(%a, %b : !attn.tensor<[N], f32>, !attn.tensor<[N], f32>) -> !attn.tensor<[N], f32> {
  ^bb0(%s: f32, %t: f32):
    %sum = arith.addf %s, %t : f32
    attn.yield %sum : f32
  }
  return %0, %1, %2 : !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>, !attn.tensor<[N], f32>
}

// -----

// What the backward takes beside the program's arguments is promised aligned where they are, and where rows fill pieces of 16 bytes.

!t = !attn.tensor<[B, H, N, 64], f16>
// CHECK-LABEL: func.func @aligned.backward(
// CHECK-SAME: {attn.aligned, attn.name = "result0"}, %{{[^:]*}}: !attn.tensor<[B, H, N], f32> {attn.name = "saved_lse1"}, %{{[^:]*}}: !attn.tensor<[B, H, N, 64], f16> {attn.aligned, attn.name = "d_result0"}
func.func @aligned(%q: !t {attn.aligned}, %k: !t {attn.aligned}, %v: !t {attn.aligned}) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !attn.tensor<[B, H, N], f32>
  return %o : !t
}

// -----

// An argument of the result's name keeps the two apart; a program that allows it gets a gradient that is `fast`.

!t = !attn.tensor<[B, H, N, 64], f16>
// CHECK-LABEL: func.func @taken.forward(
// CHECK-SAME: -> ({{.*}} {attn.name = "x"}, {{.*}} {attn.name = "saved_out0"}, {{.*}} {attn.name = "saved_lse1"})
// CHECK-LABEL: func.func @taken.backward(
// CHECK: attn.attend_backward {{.*}} {fast, patterns
func.func @taken(%x: !t {attn.name = "x"}) -> (!t {attn.name = "x"}) attributes {attn.program} {
  %a = attn.softmax %x keys(%x : !t) {attn.fast, patterns = [#attn.causal], scale = 0.125 : f32} : !t
  %o = attn.apply %a, %x : (!t) -> !t
  return %o : !t
}

// -----

// Functions that are no programs, and programs without floats, are left alone.
// CHECK-LABEL: func.func @ids
// CHECK-LABEL: func.func @other
// CHECK-NOT: func.func
func.func @ids(%x: !attn.tensor<[N], i32>) -> !attn.tensor<[N], i32> attributes {attn.program} {
  return %x : !attn.tensor<[N], i32>
}
func.func @other(%x: !attn.tensor<[N], f32>) -> !attn.tensor<[N], f32> {
  return %x : !attn.tensor<[N], f32>
}

// -----

// As many taps as tokens: the transposed convolution by the same taps, and their gradient, as many.
// CHECK-LABEL: func.func @long(
// CHECK-LABEL: func.func @long.forward(
// CHECK-LABEL: func.func @long.backward(
// CHECK-DAG: attn.convolve %{{.*}}, %{{.*}} {transposed} : !attn.tensor<[B, 1, N, 64], f16>, !attn.tensor<[K, 64], f16> -> !attn.tensor<[B, 1, N, 64], f16>
// CHECK-DAG: attn.convolve_taps_grad %{{.*}}, %{{.*}} : {{.*}} -> !attn.tensor<[K, 64], f16>
func.func @long(%x: !attn.tensor<[B, 1, N, 64], f16> {attn.name = "x"}, %taps: !attn.tensor<[K, 64], f16> {attn.name = "taps"})
    -> !attn.tensor<[B, 1, N, 64], f16> attributes {attn.program} {
  %y = attn.convolve %x, %taps : !attn.tensor<[B, 1, N, 64], f16>, !attn.tensor<[K, 64], f16> -> !attn.tensor<[B, 1, N, 64], f16>
  return %y : !attn.tensor<[B, 1, N, 64], f16>
}

// -----

// Outputs that are added before they are rounded are kept rounded each. The values made of them, which another
// attention takes, are kept as well: from the rounded outputs they would have other bits than in the forward.

!t = !attn.tensor<[B, H, N, 64], bf16>
!w = !attn.tensor<[B, H, N, 64], f32>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @added.forward(
// CHECK: %[[VALUES:.*]] = attn.map
// CHECK: attn.attend {{.*}} values(%[[VALUES]]
// CHECK: return %{{.*}}, %[[VALUES]],
// CHECK-LABEL: func.func @added.backward(
// CHECK-SAME: %[[KEPT:[^ ]*]]: !attn.tensor<[B, H, N, 64], bf16> {attn.name = "saved_operand
// CHECK: attn.attend_backward {{.*}} values(%[[KEPT]]
func.func @added(%q: !t, %k: !t {attn.constant}, %v: !t {attn.constant}) -> !t attributes {attn.program} {
  %a, %la = attn.attend %k keys(%k : !t) values(%v : !t) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !w, !l
  %c, %lc = attn.attend %v keys(%k : !t) values(%v : !t) {patterns = [#attn.full], scale = 0.125 : f32} : !t -> !w, !l
  %s = attn.map ins(%a, %c : !w, !w) -> !t {
  ^bb0(%x: f32, %y: f32):
    %z = arith.addf %x, %y : f32
    attn.yield %z : f32
  }
  %o, %lo = attn.attend %q keys(%k : !t) values(%s : !t) {patterns = [#attn.full], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// The same of a recurrence, whose output the forward computes with before it is rounded, and of what a score_mod reads.

!t = !attn.tensor<[B, H, N, 64], bf16>
!w = !attn.tensor<[B, H, N, 64], f32>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @carried.forward(
// CHECK: %[[QUERY:.*]] = attn.map
// CHECK: attn.attend %[[QUERY]]
// CHECK: return %{{.*}}, %[[QUERY]],
// CHECK-LABEL: func.func @carried.backward(
// CHECK-SAME: %[[KEPT:[^ ]*]]: !attn.tensor<[B, H, N, 64], bf16> {attn.name = "saved_operand
// CHECK: attn.attend_backward %[[KEPT]]
// CHECK: attn.element %[[KEPT]]
func.func @carried(%q: !t, %k: !t {attn.constant}, %v: !t {attn.constant}) -> !t attributes {attn.program} {
  %y, %s = attn.recur %q, %k, %v {scale = 0.125 : f32} : (!t, !t, !t) -> (!w, !attn.tensor<[B, H, 64, 64], f32>)
  %c = attn.map ins(%y, %q : !w, !t) -> !t {
  ^bb0(%x: f32, %z: f32):
    %a = arith.addf %x, %z : f32
    attn.yield %a : f32
  }
  %o, %lo = attn.attend %c keys(%k : !t) values(%v : !t) {patterns = [#attn.full], scale = 0.125 : f32} : !t -> !t, !l
    score_mod {
    ^bb0(%s0: f32, %b: i32, %h: i32, %n: i32, %m: i32):
      %zero = arith.constant 0 : i32
      %e = attn.element %c[%b, %h, %n, %zero] : !t -> f32
      %r = arith.addf %s0, %e : f32
      attn.yield %r : f32
    }
  return %o : !t
}

// -----

// What is asked of the arguments' sizes is asked of the forward, which has them all.
// CHECK-LABEL: func.func @tables.forward(
// CHECK-SAME: attributes {attn.program, attn.requires = [{at_least = "N", size = "64*R", what = "a table"}]}
// CHECK-LABEL: func.func @tables.backward(
// CHECK-SAME: attributes {attn.gradients_of = array<i64: 0>, attn.program}
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

// A value that takes many multiply-adds to compute again is kept: what a map makes of several, not each of them, and not what little leads to from there.
// CHECK-LABEL: func.func @costly.forward(
// CHECK-SAME: -> (!attn.tensor<[B, 16, N, 64], f16>, !attn.tensor<[B, 16, N, 64], f16> {attn.name = "saved_operand0"})
// CHECK: %[[CONV:.*]] = attn.head_conv
// CHECK: %[[SUM:.*]] = attn.map ins(%[[CONV]], %{{.*}}
// CHECK: return %{{.*}}, %[[SUM]]
// CHECK-LABEL: func.func @costly.backward(
// CHECK-SAME: %[[KEPT:[^ ]*]]: !attn.tensor<[B, 16, N, 64], f16> {attn.name = "saved_operand
// CHECK-NOT: attn.head_conv %{{[^ ]*}}, %{{[^ ]*}} : !attn.tensor<[B, 16, N, 64], f16>
// CHECK: attn.linear_weight_grad %[[KEPT]]
!x = !attn.tensor<[B, 16, N, 64], f16>
!w = !attn.tensor<[16, 16, 9], f16>
!l = !attn.tensor<[64, 64], f16>
func.func @costly(%x: !x, %w: !w, %l: !l) -> !x attributes {attn.program} {
  %c = attn.head_conv %x, %w : !x, !w -> !x
  %m = attn.map ins(%c, %x : !x, !x) -> !x {
  ^bb0(%a: f32, %b: f32):
    %s = arith.addf %a, %b : f32
    attn.yield %s : f32
  }
  %y = attn.linear %m, %l : !x, !l -> !x
  return %y : !x
}

// -----

// One tap of as many heads costs less than memory does.
// CHECK-LABEL: func.func @cheap.forward(
// CHECK-SAME: -> !attn.tensor<[B, 16, N, 64], f16> attributes
!x = !attn.tensor<[B, 16, N, 64], f16>
!w = !attn.tensor<[16, 16, 1], f16>
!l = !attn.tensor<[64, 64], f16>
func.func @cheap(%x: !x, %w: !w, %l: !l) -> !x attributes {attn.program} {
  %c = attn.head_conv %x, %w : !x, !w -> !x
  %y = attn.linear %c, %l : !x, !l -> !x
  return %y : !x
}

// -----

// Which argument says where packed sequences start is known of every function that takes it.
// CHECK-LABEL: func.func @packed.forward(
// CHECK-SAME: !attn.tensor<[S], i32> {attn.name = "starts", attn.starts = ["N"]}
// CHECK-LABEL: func.func @packed.backward(
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

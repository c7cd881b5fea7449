// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// A window's backward: the numbers of each query, dq by the pattern, dk and dv by its transpose. Each walk has three loops, and the middle one
// neither compares nor selects. Keys down and queries across, P and dS are left operands as they are: nothing is transposed but operands from memory.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @window(
// CHECK: %[[ROWS:.*]]:2 = attn.launch @attend_backward_rows({{.*}}) grid ["cdiv(N, 128)", "H", "B"]
// CHECK: %[[DQ:.*]] = attn.launch @attend_backward_query({{.*}}) grid ["cdiv(N, 128)", "H", "B"]
// CHECK: %[[DKV:.*]]:2 = attn.launch @attend_backward_keys({{.*}}) grid ["cdiv(N, 64)", "H", "B"]
// CHECK: return %[[DQ]], %[[DKV]]#0, %[[DKV]]#1
// CHECK-LABEL: func.func @attend_backward_query(
// CHECK: %[[ENTERING:.*]] = scf.if
// CHECK: scf.for
// CHECK: arith.select {{.*}} tensor<128x32xi1>
// CHECK: %[[INSIDE:.*]] = scf.if
// CHECK: scf.for {{.*}} = %[[ENTERING]]
// CHECK-NOT: arith.cmp
// CHECK-NOT: arith.select
// CHECK-COUNT-3: tile.dot
// CHECK-NOT: arith.cmp
// CHECK-NOT: arith.select
// CHECK: scf.yield
// CHECK: scf.if
// CHECK: scf.for {{.*}} = %[[INSIDE]]
// CHECK: arith.select {{.*}} tensor<128x32xi1>
// CHECK-LABEL: func.func @attend_backward_keys(
// CHECK: %[[ENTERING:.*]]:2 = scf.if
// CHECK: scf.for
// CHECK: arith.select {{.*}} tensor<64x64xi1>
// CHECK: %[[INSIDE:.*]]:2 = scf.if
// CHECK: scf.for {{.*}} = %[[ENTERING]]#0
// CHECK-NOT: arith.cmp
// CHECK-NOT: arith.select
// CHECK: %[[S:.*]] = tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<64x64xf16> * tensor<64x64xf16>
// CHECK: %[[P:.*]] = math.exp2
// CHECK: %[[DP:.*]] = tile.dot
// CHECK: %[[DS:.*]] = arith.mulf %[[P]], %[[DP]]
// CHECK: %[[P16:.*]] = arith.truncf %[[P]]
// CHECK: tile.dot %[[P16]],
// CHECK: %[[DS16:.*]] = arith.truncf %[[DS]]
// CHECK: tile.dot %[[DS16]],
// CHECK-NOT: arith.cmp
// CHECK-NOT: arith.select
// CHECK: scf.yield
// CHECK: scf.if
// CHECK: scf.for {{.*}} = %[[INSIDE]]#0
func.func @window(%q: !t, %k: !t, %v: !t, %lse: !l, %delta: !l, %g: !t) -> (!t, !t, !t) attributes {attn.program} {
  %dq, %d:2 = attn.attend_backward %q keys(%k : !t) values(%v : !t) lse(%lse : !l) delta(%delta : !l) gradient(%g : !t)
      {patterns = [#attn.window<left = 256, right = 0>], scale = 0.125 : f32} : !t -> !t, !t, !t
  return %dq, %d#0, %d#1 : !t, !t, !t
}

// -----

// What nobody uses is not made; and the heads of a group are walked one after another by the program that owns their key head.

!q = !attn.tensor<[B, "4*H", N, 64], f16>
!k = !attn.tensor<[B, H, M, 64], f16>
!l = !attn.tensor<[B, "4*H", N], f32>
// CHECK-LABEL: func.func @group(
// CHECK-NOT: @attend_backward_query
// CHECK: attn.launch @attend_backward_keys({{.*}}) grid ["(cdiv(M, 64)) * {{.*}}", "(H) / ({{.*}})", "B"]
// CHECK-LABEL: func.func @attend_backward_keys(
// CHECK: arith.divui
// CHECK: %[[HEAD:.*]] = arith.addi
// CHECK: scf.for %[[MEMBER:.*]] = %c0_i32 to %c4_i32
// CHECK: %[[FIRST:.*]] = arith.muli %[[HEAD]], %c4_i32
// CHECK: arith.addi %[[FIRST]], %[[MEMBER]]
func.func @group(%q: !q, %k: !k, %v: !k, %lse: !l, %delta: !l, %g: !q) -> (!k, !k) attributes {attn.program} {
  %dq, %d:2 = attn.attend_backward %q keys(%k : !k) values(%v : !k) lse(%lse : !l) delta(%delta : !l) gradient(%g : !q)
      {patterns = [#attn.causal], scale = 0.125 : f32} : !q -> !q, !k, !k
  return %d#0, %d#1 : !k, !k
}

// -----

// Tokens of a window that are one tile: one kernel, five products, and what comes after dq (here a rotation back) at its end.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @local(
// CHECK: attn.launch @attend_backward_window({{.*}}) grid ["cdiv(N, 64) * 1", "H", "B"]
// CHECK-NOT: attn.launch
// CHECK-LABEL: func.func @attend_backward_window(
// CHECK-COUNT-5: tile.dot
// CHECK-NOT: tile.dot
// CHECK: math.cos
func.func @local(%q: !t, %k: !t, %v: !t, %lse: !l, %delta: !l, %g: !t) -> (!t, !t, !t) attributes {attn.program} {
  %dq, %d:2 = attn.attend_backward %q keys(%k : !t) values(%v : !t) lse(%lse : !l) delta(%delta : !l) gradient(%g : !t)
      {patterns = [#attn.block_window<[64]>], scale = 0.125 : f32} : !t -> !t, !t, !t
  %r = attn.rope %dq {inverse} : !t -> !t
  return %r, %d#0, %d#1 : !t, !t, !t
}

// -----

// Captured gradients. A bias of all pairs: each is stored in its place, in the bias' own type.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!b = !attn.tensor<[B, H, N, N], f16>
// CHECK-LABEL: func.func @bias(
// CHECK: %[[BIAS:.*]]:2 = attn.launch @attend_backward_query({{.*}}zeroed = array<i64: 0>{{.*}} -> (!attn.tensor<[B, H, N, N], f16>, !attn.tensor<[B, H, N, 64], f16>)
// CHECK: return %[[BIAS]]#1, %[[BIAS]]#0
// CHECK-LABEL: func.func @attend_backward_query(
// CHECK-NOT: tile.atomic_rmw
// CHECK: tile.store {{.*}} tensor<64x32x!tile.ptr<f16>>
func.func @bias(%q: !t, %k: !t, %v: !t, %bias: !b, %lse: !l, %delta: !l, %g: !t) -> (!t, !b) attributes {attn.program} {
  %dq, %d:3 = attn.attend_backward %q keys(%k : !t) values(%v : !t) lse(%lse : !l) delta(%delta : !l) gradient(%g : !t)
      {patterns = [#attn.full], scale = 0.125 : f32} : !t -> !t, !t, !t, !b
  score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
    %x = attn.element %bias[%b, %h, %n, %m] : !b -> f32
    %r = arith.addf %s, %x : f32
    attn.yield %r : f32
  } grad {
  ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32, %gs: f32):
    attn.accumulate %gs into 0[%b, %h, %n, %m]
    attn.yield %gs : f32
  }
  return %dq, %d#2 : !t, !b
}

// -----

// A slope for each head: sums of each row are kept in registers and stored, then added in order.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!s = !attn.tensor<[H], f32>
// CHECK-LABEL: func.func @slopes(
// CHECK: %[[PARTS:.*]]:2 = attn.launch @attend_backward_query({{.*}} -> (!attn.tensor<[B, N, H], f32>, !attn.tensor<[B, H, N, 64], f16>)
// CHECK: %[[SUM:.*]] = attn.launch @sum(%[[PARTS]]#0)
// CHECK: return %[[PARTS]]#1, %[[SUM]]
func.func @slopes(%q: !t, %k: !t, %v: !t, %slopes: !s, %lse: !l, %delta: !l, %g: !t) -> (!t, !s) attributes {attn.program} {
  %dq, %d:3 = attn.attend_backward %q keys(%k : !t) values(%v : !t) lse(%lse : !l) delta(%delta : !l) gradient(%g : !t)
      {patterns = [#attn.full], scale = 0.125 : f32} : !t -> !t, !t, !t, !s
  score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
    %slope = attn.element %slopes[%h] : !s -> f32
    %distance = arith.subi %m, %n : i32
    %x = arith.sitofp %distance : i32 to f32
    %y = arith.mulf %slope, %x : f32
    %r = arith.addf %s, %y : f32
    attn.yield %r : f32
  } grad {
  ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32, %gs: f32):
    %distance = arith.subi %m, %n : i32
    %x = arith.sitofp %distance : i32 to f32
    %y = arith.mulf %gs, %x : f32
    attn.accumulate %y into 0[%h]
    attn.yield %gs : f32
  }
  return %dq, %d#2 : !t, !s
}

// -----

// Indices of any other form: sums in 64-bit fixed point, which are the same in any order; with `fast`, f32 atomics.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!r = !attn.tensor<[256], f32>
// CHECK-LABEL: func.func @distances(
// CHECK: %[[PARTS:.*]]:2 = attn.launch @attend_backward_query({{.*}}zeroed = array<i64: 0>{{.*}} -> (!attn.tensor<[256], i64>,
// CHECK: attn.launch @fixed_point(%[[PARTS]]#0)
// CHECK-LABEL: func.func @attend_backward_query(
// CHECK: tile.atomic_rmw add {{.*}} tensor<64x32xi64>
func.func @distances(%q: !t, %k: !t, %v: !t, %t: !r, %lse: !l, %delta: !l, %g: !t) -> (!t, !r) attributes {attn.program} {
  %dq, %d:3 = attn.attend_backward %q keys(%k : !t) values(%v : !t) lse(%lse : !l) delta(%delta : !l) gradient(%g : !t)
      {patterns = [#attn.full], scale = 0.125 : f32} : !t -> !t, !t, !t, !r
  score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
    %i = arith.subi %n, %m : i32
    %x = attn.element %t[%i] : !r -> f32
    %r = arith.addf %s, %x : f32
    attn.yield %r : f32
  } grad {
  ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32, %gs: f32):
    %i = arith.subi %n, %m : i32
    attn.accumulate %gs into 0[%i]
    attn.yield %gs : f32
  }
  return %dq, %d#2 : !t, !r
}

// -----

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!r = !attn.tensor<[256], f32>
// CHECK-LABEL: func.func @fast(
// CHECK: attn.launch @attend_backward_query({{.*}} -> (!attn.tensor<[256], f32>,
// CHECK-LABEL: func.func @attend_backward_query(
// CHECK: tile.atomic_rmw fadd {{.*}} tensor<64x32xf32>
func.func @fast(%q: !t, %k: !t, %v: !t, %t: !r, %lse: !l, %delta: !l, %g: !t) -> (!t, !r) attributes {attn.program} {
  %dq, %d:3 = attn.attend_backward %q keys(%k : !t) values(%v : !t) lse(%lse : !l) delta(%delta : !l) gradient(%g : !t)
      {patterns = [#attn.full], scale = 0.125 : f32, fast} : !t -> !t, !t, !t, !r
  score_mod {
  ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
    %i = arith.subi %n, %m : i32
    %x = attn.element %t[%i] : !r -> f32
    %r = arith.addf %s, %x : f32
    attn.yield %r : f32
  } grad {
  ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32, %gs: f32):
    %i = arith.subi %n, %m : i32
    attn.accumulate %gs into 0[%i]
    attn.yield %gs : f32
  }
  return %dq, %d#2 : !t, !r
}

// -----

// One pass sums over a tile's keys. Only tiles that have them all meet blocks whose pairs are all there: the product begins at 0, and nothing asks
// for keys. Others meet them with the ragged ones, whose product begins at what leaves keys past the end no weight.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @attend_backward(
// CHECK-DAG: %[[ZERO:.*]] = arith.constant dense<0.000000e+00> : tensor<128x32xf32>
// CHECK-DAG: %[[NONE:.*]] = arith.constant dense<0xFF800000> : tensor<128xf32>
// CHECK: %[[WHOLE:.*]] = arith.cmpi eq, %{{.*}}, %c128_i32 : i32
// CHECK: %[[BLOCKS:.*]] = arith.shrsi
// CHECK: %[[FULL:.*]] = arith.shrsi
// CHECK: %[[END:.*]] = arith.select %[[WHOLE]], %[[FULL]], %c0_i32 : i32
// CHECK: scf.for %{{.*}} = %c0_i32 to %[[END]] step
// CHECK-NOT: arith.select
// CHECK: tile.dot %{{.*}}, %{{.*}}, %[[ZERO]]
// CHECK-NOT: arith.select
// CHECK: tile.atomic_rmw fadd
// CHECK: scf.for %{{.*}} = %[[END]] to %[[BLOCKS]] step
// CHECK: %[[START:.*]] = arith.select %{{.*}}, %{{.*}}, %[[NONE]] : tensor<128xi1>, tensor<128xf32>
// CHECK: tile.expand_dims %[[START]]
// CHECK: tile.atomic_rmw fadd
func.func @whole_tiles(%q: !t, %k: !t, %v: !t, %lse: !l, %delta: !l, %g: !t) -> (!t, !t, !t) attributes {attn.program} {
  %d:3 = attn.attend_backward %q keys(%k : !t) values(%v : !t) lse(%lse : !l) delta(%delta : !l) gradient(%g : !t)
      {patterns = [#attn.full], scale = 0.125 : f32, fast} : !t -> !t, !t, !t
  return %d#0, %d#1, %d#2 : !t, !t, !t
}

// -----

// So of a window, whose blocks behind take them.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @attend_backward(
// CHECK: %[[WHOLE:.*]] = arith.cmpi eq, %{{.*}}, %c128_i32 : i32
// CHECK: %[[END:.*]] = arith.select %[[WHOLE]], %{{.*}}, %[[BEGIN:.*]] : i32
// CHECK: %[[BEFORE:.*]] = arith.minsi %{{.*}}, %[[BEGIN]] : i32
// CHECK: %[[PAST:.*]] = arith.maxsi %[[BEGIN]], %[[END]] : i32
// CHECK: %[[BEHIND:.*]] = arith.maxsi %{{.*}}, %[[PAST]] : i32
// CHECK: scf.for %{{.*}} to %[[BEFORE]] step
// CHECK: scf.for %{{.*}} = %[[BEGIN]] to %[[END]] step
// CHECK-NOT: arith.select
// CHECK: tile.atomic_rmw fadd
// CHECK: scf.for %{{.*}} = %[[BEHIND]] to
func.func @window_tiles(%q: !t, %k: !t, %v: !t, %lse: !l, %delta: !l, %g: !t) -> (!t, !t, !t) attributes {attn.program} {
  %d:3 = attn.attend_backward %q keys(%k : !t) values(%v : !t) lse(%lse : !l) delta(%delta : !l) gradient(%g : !t)
      {patterns = [#attn.window<left = 255, right = 0>], scale = 0.125 : f32, fast} : !t -> !t, !t, !t
  return %d#0, %d#1, %d#2 : !t, !t, !t
}

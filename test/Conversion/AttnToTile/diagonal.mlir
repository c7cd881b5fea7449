// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s --check-prefixes CHECK,TILE
// RUN: weft-opt %s --split-input-file --attn-to-tile --attn-merge-launches --canonicalize --cse | FileCheck %s --check-prefixes CHECK,MERGED

// A domain that is the diagonal is walked by no loop: its rows' products are what the row state starts from. A span has three loops, whose
// bounds come from four numbers of its tables; the rows' own bounds are read before them, and whole blocks ask for nothing.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!i = !attn.tensor<[B, H, N], i32>
// CHECK-LABEL: func.func @forward(
// CHECK: attn.launch @attend(
// CHECK-LABEL: func.func @attend(
// CHECK: tile.row_dot {{.*}} : tensor<128x64xf16> -> tensor<128xf32>
// CHECK-COUNT-2: tile.load {{.*}} tensor<128x!tile.ptr<i32>>
// CHECK: scf.if
// CHECK: scf.for
// CHECK: arith.select {{.*}} tensor<128x64xi1>
// CHECK: scf.if
// CHECK: scf.for
// CHECK-NOT: arith.cmpi {{.*}} tensor<128x64
// CHECK-NOT: arith.select {{.*}} tensor<128x64
// CHECK: scf.if
// CHECK: scf.for
// CHECK-NOT: tile.load {{.*}} !tile.ptr<i32>
// CHECK: arith.select {{.*}} tensor<128x64xi1>
// CHECK-NOT: scf.for
// CHECK: return
func.func @forward(%q: !t, %k: !t, %v: !t, %u: !t, %w: !t, %lower: !i, %upper: !i, %first: !i, %past: !i) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k, %u : !t, !t) values(%v, %w : !t, !t) over(%lower, %upper, %first, %past : !i, !i, !i, !i)
    {patterns = [#attn.and<#attn.causal, #attn.window<left = 0, right = 0>>, #attn.span<lower = 0, upper = 1, first = 2, past = 3>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// The backward has a kernel of queries, one of the units and one of rows, which share a launch.

!q = !attn.tensor<[B, "2*K", N, 64], f16>
!k = !attn.tensor<[B, K, N, 64], f16>
!u = !attn.tensor<[B, K, M, 64], f16>
!l = !attn.tensor<[B, "2*K", N], f32>
!n = !attn.tensor<[B, K, N], i32>
!m = !attn.tensor<[B, K, M], i32>
// CHECK-LABEL: func.func @backward(
// TILE: attn.launch @attend_backward_rows
// TILE: attn.launch @attend_backward_query({{.*}}) grid ["cdiv(N, 128)", "2*K", "B"]
// TILE: attn.launch @attend_backward_diagonal({{.*}}) grid ["cdiv(N, 64)", "K", "B"]
// TILE: attn.launch @attend_backward_keys({{.*}}) grid ["cdiv(M, 64)", "K", "B"]
// TILE-LABEL: func.func @attend_backward_diagonal(
// TILE-SAME: attn.shares_launch
// TILE-NOT: tile.dot
// TILE-LABEL: func.func @attend_backward_keys(
// MERGED: attn.launch @attend_backward_rows
// MERGED-NEXT: attn.launch
// MERGED-NEXT: return
func.func @backward(%q: !q, %k: !k, %v: !k, %u: !u, %w: !u, %lse: !l, %delta: !l, %g: !q, %lower: !n, %upper: !n, %first: !m, %past: !m)
    -> (!q, !k, !k, !u, !u) attributes {attn.program} {
  %dq, %dk, %dv, %du, %dw = attn.attend_backward %q keys(%k, %u : !k, !u) values(%v, %w : !k, !u) lse(%lse : !l) delta(%delta : !l) gradient(%g : !q)
    over(%lower, %upper, %first, %past : !n, !n, !m, !m)
    {patterns = [#attn.window<left = 0, right = 0>, #attn.span<lower = 0, upper = 1, first = 2, past = 3>], scale = 0.125 : f32} : !q -> !q, !k, !k, !u, !u
  return %dq, %dk, %dv, %du, %dw : !q, !k, !k, !u, !u
}

// -----

// Of other lengths, or with counts, the same window is no diagonal: positions are counted from the last key.

!t = !attn.tensor<[B, H, N, 64], f16>
!k = !attn.tensor<[B, H, M, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @attend(
// CHECK-NOT: tile.row_dot
// CHECK: scf.for
func.func @lengths(%q: !t, %k: !k, %v: !k) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !k) values(%v : !k) {patterns = [#attn.window<left = 0, right = 0>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!c = !attn.tensor<[B, H], i32>
// CHECK-LABEL: func.func @attend(
// CHECK-NOT: tile.row_dot
// CHECK: scf.for
func.func @counts(%q: !t, %k: !t, %v: !t, %c: !c) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) counts(%c : !c) {patterns = [#attn.window<left = 0, right = 0>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// Where gradients of the diagonal's rows are terms of what waits for the units' anyway, the kernel of queries stores two numbers a row, and
// the kernel of rows multiplies.

!t = !attn.tensor<[B, H, N, 64], f16>
!x = !attn.tensor<[B, H, N, 64], f32>
!l = !attn.tensor<[B, H, N], f32>
!i = !attn.tensor<[B, H, N], i32>
// CHECK-LABEL: func.func @terms(
// TILE: attn.launch @attend_backward_rows
// TILE-NEXT: %[[Q:.*]]:3 = attn.launch @attend_backward_query
// TILE-NEXT: %[[K:.*]]:2 = attn.launch @attend_backward_keys
// TILE-DAG: attn.launch @rows{{[_0-9]*}}({{.*}}%[[Q]]#1
// TILE-DAG: attn.launch @rows{{[_0-9]*}}({{.*}}%[[Q]]#0
// TILE-NOT: attn.launch
// TILE: return
func.func @terms(%q: !t, %k: !t, %v: !t, %u: !t, %w: !t, %lse: !l, %delta: !l, %g: !t, %unit: !i, %lower: !i, %first: !i, %past: !i)
    -> (!t, !t, !t) attributes {attn.program} {
  %dq, %dk, %dv, %du, %dw = attn.attend_backward %q keys(%k, %u : !t, !t) values(%v, %w : !t, !t) lse(%lse : !l) delta(%delta : !l) gradient(%g : !t)
    over(%lower, %unit, %first, %past : !i, !i, !i, !i)
    {patterns = [#attn.window<left = 0, right = 0>, #attn.span<lower = 0, upper = 1, first = 2, past = 3>], scale = 0.125 : f32} : !t -> !t, !x, !x, !x, !x
  %sk = attn.spread %du by %unit {mode = #attn<merge sum>, offset = 0 : i64} : !x, !i -> !x
  %sv = attn.spread %dw by %unit {mode = #attn<merge sum>, offset = 0 : i64} : !x, !i -> !x
  %ok = attn.map ins(%dk, %sk : !x, !x) -> !t {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    attn.yield %c : f32
  }
  %ov = attn.map ins(%dv, %sv : !x, !x) -> !t {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    attn.yield %c : f32
  }
  return %dq, %ok, %ov : !t, !t, !t
}

// -----

// The one channel of values is repeated along the sums that the diagonal starts and the walk carries on.

!t = !attn.tensor<[B, H, N, 1], f32>
!l = !attn.tensor<[B, H, N], f32>
!i = !attn.tensor<[B, H, N], i32>
// CHECK-LABEL: func.func @attend(
// CHECK: scf.for {{.*}} -> (tensor<64xf32>, tensor<64xf32>, tensor<64x16xf32>)
// CHECK: tile.dot {{.*}} -> tensor<64x16xf32>
func.func @one_channel(%q: !t, %k: !t, %v: !t, %u: !t, %w: !t, %lower: !i, %upper: !i, %first: !i, %past: !i) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k, %u : !t, !t) values(%v, %w : !t, !t) over(%lower, %upper, %first, %past : !i, !i, !i, !i)
    {patterns = [#attn.window<left = 0, right = 0>, #attn.span<lower = 0, upper = 1, first = 2, past = 3>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s
// Merging tokens is one kernel, in which what is merged is computed on the way; tables that nobody reads are not written. A unit's gradient is
// gathered by each of its tokens in whatever kernel needs it. Rows that need the row before are walked, two in a turn, and each is computed once.

!j = !attn.tensor<[B, H, N], i1>
!t = !attn.tensor<[B, H, N], i32>
!k = !attn.tensor<[B, H, N, 64], f16>
!x = !attn.tensor<[B, H, N, 64], f32>
// CHECK-LABEL: func.func @merge(
// CHECK: %[[UNITS:.*]]:2 = attn.launch @merge_units(%{{.*}}, %{{.*}}) grid ["cdiv(N, 512)", "H", "B"]
// CHECK-NOT: attn.launch
// CHECK: return %[[UNITS]]#0, %[[UNITS]]#1
// CHECK-LABEL: func.func @merge_units(
// The units before are counted, the stretch's are numbered, ...
// CHECK: scf.for
// CHECK: tile.scan
// CHECK: arith.remui
// CHECK: tile.scan
// CHECK: tile.store
// ... and rows, normalised as they are read, are added up token by token, to the end of the last unit.
// CHECK: scf.for
// CHECK: math.rsqrt
// CHECK: arith.addf
// CHECK: tile.store
// CHECK: scf.while
// CHECK: math.rsqrt
// CHECK-NOT: attn.
func.func @merge(%j: !j, %k: !k) -> (!k, !t) attributes {attn.program} {
  %n = attn.rms_norm %k : !k -> !x
  %ku, %u, %l, %up, %e, %f, %p, %kept = attn.merge_units %j (%n) {maxJoins = 20 : i64, modes = [#attn<merge sum>], offsets = array<i64: 0>} : !j (!x) -> (!k), !t, !t, !t, !t, !t, !t, !j
  return %ku, %u : !k, !t
}

// -----

!t = !attn.tensor<[B, H, N], i32>
!x = !attn.tensor<[B, H, N, 64], f32>
// CHECK-LABEL: func.func @spread(
// CHECK: attn.launch @rows(
// CHECK-NOT: attn.launch
// CHECK-LABEL: func.func @rows(
// CHECK: %[[UNIT:.*]] = tile.load {{.*}} : tensor<64x!tile.ptr<i32>>
// CHECK: tile.load {{.*}} : tensor<64x64x!tile.ptr<f32>>
func.func @spread(%d: !x, %e: !x, %u: !t) -> !x attributes {attn.program} {
  %s = attn.spread %d by %u {mode = #attn<merge sum>, offset = 0 : i64} : !x, !t -> !x
  %y = attn.map ins(%s, %e : !x, !x) -> !x {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    attn.yield %c : f32
  }
  return %y : !x
}

// -----

!k = !attn.tensor<[B, H, N, 64], f16>
!x = !attn.tensor<[B, H, N, 64], f32>
!r = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @neighbours(
// CHECK: attn.launch @rows_walked(%{{.*}}) grid ["cdiv(N, 1024)", "H", "B"]
// CHECK-LABEL: func.func @rows_walked(
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<32x32xf32>, tensor<32x32xf32>)
// CHECK-COUNT-2: tile.load {{.*}} : tensor<32x32x!tile.ptr<f16>>
// CHECK-NOT: tile.load
// CHECK: tile.reduce
// CHECK-COUNT-2: tile.load {{.*}} : tensor<32x32x!tile.ptr<f16>>
// CHECK-NOT: tile.load
// CHECK: tile.reduce
// CHECK: scf.yield
func.func @neighbours(%k: !k) -> !r attributes {attn.program} {
  %w = attn.map ins(%k : !k) -> !x {
  ^bb0(%a: f32):
    attn.yield %a : f32
  }
  %b = attn.shift %w {by = 1 : i64} : !x -> !x
  %p = attn.map ins(%w, %b : !x, !x) -> !x {
  ^bb0(%a: f32, %c: f32):
    %m = arith.mulf %a, %c : f32
    attn.yield %m : f32
  }
  %s = attn.sum %p away [3] : !x -> !r
  return %s : !r
}

// -----

!x = !attn.tensor<[B, H, N, 64], f32>
// Rows that need a later one are not walked. What is loaded is 0 where there is none.
// CHECK-LABEL: func.func @later(
// CHECK: attn.launch @rows(
// CHECK-LABEL: func.func @rows(
// CHECK: tile.load
// CHECK-NOT: arith.select
// CHECK: tile.store
func.func @later(%x: !x) -> !x attributes {attn.program} {
  %y = attn.shift %x {by = -1 : i64} : !x -> !x
  return %y : !x
}

// -----

// What attention takes of the rows that are merged, the merge stores as it passes them; only queries are normalised again.

!j = !attn.tensor<[B, H, N], i1>
!t = !attn.tensor<[B, H, N], i32>
!k = !attn.tensor<[B, H, N, 64], f16>
!x = !attn.tensor<[B, H, N, 64], f32>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @along(
// CHECK: %{{.*}}:6 = attn.launch @merge_units(
// CHECK-NEXT: attn.launch @attend(
// CHECK-NOT: attn.launch
// CHECK-LABEL: func.func @attend(
// CHECK-NOT: math.rsqrt
func.func @along(%j: !j, %k: !k, %q: !k, %v: !k) -> !k attributes {attn.program} {
  %n = attn.rms_norm %k : !k -> !x
  %h = attn.map ins(%n : !x) -> !k {
  ^bb0(%a: f32):
    attn.yield %a : f32
  }
  %ku, %u, %l, %up, %e, %f, %p, %kept = attn.merge_units %j (%n) {maxJoins = 20 : i64, modes = [#attn<merge sum>], offsets = array<i64: 0>} : !j (!x) -> (!k), !t, !t, !t, !t, !t, !t, !j
  %o, %lse = attn.attend %q keys(%h, %ku : !k, !k) values(%v, %v : !k, !k) over(%l, %u, %e, %p : !t, !t, !t, !t)
    {patterns = [#attn.window<left = 0, right = 0>, #attn.span<lower = 0, upper = 1, first = 2, past = 3>], scale = 0.125 : f32} : !k -> !k, !l
  return %o : !k
}

// -----

// Sums over batches and tokens add up parts of each batch first, of rows that are computed on the way.

!x = !attn.tensor<[B, H, N, 64], f32>
!g = !attn.tensor<[H, 64], f32>
// CHECK-LABEL: func.func @gain(
// CHECK: %[[PARTS:.*]] = attn.launch @sum_tokens(%{{.*}}) grid ["8", "H", "B"] {{.*}} -> !attn.tensor<[B, H, 8, 64], f32>
// CHECK-NEXT: attn.launch @sum(%[[PARTS]])
// CHECK-NOT: attn.launch
func.func @gain(%x: !x) -> !g attributes {attn.program} {
  %y = attn.map ins(%x : !x) -> !x {
  ^bb0(%a: f32):
    %b = arith.mulf %a, %a : f32
    attn.yield %b : f32
  }
  %s = attn.sum %y away [0, 2] : !x -> !g
  return %s : !g
}

// -----

// Sums to one number of what a merge says of tokens are its kernel's; what they take beside is made with the joins.

!k = !attn.tensor<[B, H, N, 64], f16>
!r = !attn.tensor<[B, H, N], f32>
!j = !attn.tensor<[B, H, N], i1>
!t = !attn.tensor<[B, H, N], i32>
!n = !attn.tensor<[], f32>
// CHECK-LABEL: func.func @counted(
// CHECK-NEXT: %[[ROWS:.*]]:2 = attn.launch @rows(%{{.*}}) {{.*}} -> (!attn.tensor<[B, H, N], i1>, !attn.tensor<[B, H, N], f32>)
// CHECK-NEXT: %[[MERGED:.*]]:3 = attn.launch @merge_units({{.*}}!attn.tensor<[B, H, "cdiv(N, 512)"], f32>, !attn.tensor<[B, H, "cdiv(N, 512)"], f32>)
// CHECK-NEXT: attn.launch @numbers(%[[MERGED]]#2, %[[MERGED]]#1)
// CHECK-NEXT: return
func.func @counted(%k: !k) -> (!t, !n, !n) attributes {attn.program} {
  %s = attn.sum %k away [3] : !k -> !r
  %j = attn.map ins(%s : !r) -> !j {
  ^bb0(%a: f32):
    %zero = arith.constant 0.0 : f32
    %b = arith.cmpf ogt, %a, %zero : f32
    attn.yield %b : i1
  }
  %ku, %u, %l, %up, %e, %f, %p, %kept = attn.merge_units %j (%k) {maxJoins = 20 : i64, modes = [#attn<merge sum>], offsets = array<i64: 0>} : !j (!k) -> (!k), !t, !t, !t, !t, !t, !t, !j
  %c = attn.sum %kept away [0, 1, 2] : !j -> !n
  %w = attn.map ins(%s, %kept : !r, !j) -> !r {
  ^bb0(%a: f32, %b: i1):
    %zero = arith.constant 0.0 : f32
    %x = arith.select %b, %a, %zero : f32
    attn.yield %x : f32
  }
  %d = attn.sum %w away [0, 1, 2] : !r -> !n
  return %u, %c, %d : !t, !n, !n
}

// -----

// A norm of rows to merge takes the sum of their squares that the joins are made with: it is stored beside them.

!k = !attn.tensor<[B, H, N, 64], f16>
!x = !attn.tensor<[B, H, N, 64], f32>
!r = !attn.tensor<[B, H, N], f32>
!j = !attn.tensor<[B, H, N], i1>
!t = !attn.tensor<[B, H, N], i32>
// CHECK-LABEL: func.func @squares(
// CHECK-NEXT: %[[ROWS:.*]]:2 = attn.launch @rows(%{{.*}}) {{.*}} -> (!attn.tensor<[B, H, N], i1>, !attn.tensor<[B, H, N], f32>)
// CHECK-NEXT: attn.launch @merge_units(%[[ROWS]]#0, %[[ROWS]]#1, %{{.*}})
// CHECK-LABEL: func.func @merge_units(
// CHECK: math.rsqrt
// CHECK-NOT: tile.reduce {{.*}} -> tensor<8xf32>
func.func @squares(%k: !k) -> (!k, !t) attributes {attn.program} {
  %f = attn.map ins(%k : !k) -> !x {
  ^bb0(%a: f32):
    attn.yield %a : f32
  }
  %q = attn.map ins(%f : !x) -> !x {
  ^bb0(%a: f32):
    %b = arith.mulf %a, %a : f32
    attn.yield %b : f32
  }
  %s = attn.sum %q away [3] : !x -> !r
  %j = attn.map ins(%s : !r) -> !j {
  ^bb0(%a: f32):
    %one = arith.constant 1.0 : f32
    %b = arith.cmpf ogt, %a, %one : f32
    attn.yield %b : i1
  }
  %n = attn.rms_norm %f : !x -> !x
  %ku, %u, %l, %up, %e, %fi, %p, %kept = attn.merge_units %j (%n) {maxJoins = 20 : i64, modes = [#attn<merge sum>], offsets = array<i64: 0>} : !j (!x) -> (!k), !t, !t, !t, !t, !t, !t, !j
  return %ku, %u : !k, !t
}

// -----

// The one channel of a unit's last token is repeated along what the walk carries.

!j = !attn.tensor<[B, H, N], i1>
!t = !attn.tensor<[B, H, N], i32>
!k = !attn.tensor<[B, H, N, 1], f32>
// CHECK-LABEL: func.func @merge_units(
// CHECK: tile.broadcast {{.*}} : tensor<8x1xf32> -> tensor<8x16xf32>
func.func @last_of_one_channel(%j: !j, %k: !k) -> !k attributes {attn.program} {
  %ku, %u, %l, %up, %e, %f, %p, %kept = attn.merge_units %j (%k) {maxJoins = 20 : i64, modes = [#attn<merge last>], offsets = array<i64: 0>} : !j (!k) -> (!k), !t, !t, !t, !t, !t, !t, !j
  return %ku : !k
}

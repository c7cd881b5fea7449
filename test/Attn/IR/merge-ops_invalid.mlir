// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --verify-diagnostics
// Constraints of the ops that merge tokens, one a case, named after them.

func.func @shift_c1_rank(%x: !attn.tensor<[N, 64], f32>) {
  // expected-error@+1 {{expected a source of rank 3 or 4, but got '!attn.tensor<[N, 64], f32>'}}
  %0 = attn.shift %x {by = 1 : i64} : !attn.tensor<[N, 64], f32> -> !attn.tensor<[N, 64], f32>
  return
}

// -----

func.func @shift_c1_shape(%x: !attn.tensor<[B, H, N], f32>) {
  // expected-error@+1 {{expected a result of the source's shape '!attn.tensor<[B, H, N], f32>', but got '!attn.tensor<[B, H, M], f32>'}}
  %0 = attn.shift %x {by = 1 : i64} : !attn.tensor<[B, H, N], f32> -> !attn.tensor<[B, H, M], f32>
  return
}

// -----

func.func @shift_c2(%x: !attn.tensor<[B, H, N], f32>, %cu: !attn.tensor<[S], f32>) {
  // expected-error@+1 {{expected cu_seqlens of rank 1 and i32 elements, but got '!attn.tensor<[S], f32>'}}
  %0 = attn.shift %x cu_seqlens %cu {by = 1 : i64} : !attn.tensor<[B, H, N], f32>, !attn.tensor<[S], f32> -> !attn.tensor<[B, H, N], f32>
  return
}

// -----

func.func @shift_c3(%x: !attn.tensor<[B, H, N], f32>) {
  // expected-error@+1 {{expected 'by' to be a distance, of at most 1073741824, but got 0}}
  %0 = attn.shift %x {by = 0 : i64} : !attn.tensor<[B, H, N], f32> -> !attn.tensor<[B, H, N], f32>
  return
}

// -----

!table = !attn.tensor<[B, H, N], i32>
!joins = !attn.tensor<[B, H, N], i1>
!keys = !attn.tensor<[B, H, N, 64], f32>
func.func @merge_units_c1_joins(%j: !table, %k: !keys) {
  // expected-error@+1 {{expected joins of i1 elements, but got '!attn.tensor<[B, H, N], i32>'}}
  %m:8 = attn.merge_units %j (%k) {maxJoins = 20 : i64, modes = [#attn<merge sum>], offsets = array<i64: 0>} : !table (!keys) -> (!keys), !table, !table, !table, !table, !table, !table, !joins
  return
}

// -----

!table = !attn.tensor<[B, H, N], i32>
!joins = !attn.tensor<[B, H, N], i1>
!keys = !attn.tensor<[B, H, N, 64], f32>
func.func @merge_units_c1_table(%j: !joins, %k: !keys) {
  // expected-error@+1 {{expected ends of i32 elements, but got '!attn.tensor<[B, H, N], i1>'}}
  %m:8 = attn.merge_units %j (%k) {maxJoins = 20 : i64, modes = [#attn<merge sum>], offsets = array<i64: 0>} : !joins (!keys) -> (!keys), !table, !table, !table, !joins, !table, !table, !joins
  return
}

// -----

!table = !attn.tensor<[B, H, N], i32>
!joins = !attn.tensor<[B, H, N], i1>
!keys = !attn.tensor<[B, H, M, 64], f32>
func.func @merge_units_c2_source(%j: !joins, %k: !keys) {
  // expected-error@+1 {{expected sources [B, H, N, D] with a static D, but got '!attn.tensor<[B, H, M, 64], f32>'}}
  %m:8 = attn.merge_units %j (%k) {maxJoins = 20 : i64, modes = [#attn<merge sum>], offsets = array<i64: 0>} : !joins (!keys) -> (!keys), !table, !table, !table, !table, !table, !table, !joins
  return
}

// -----

!table = !attn.tensor<[B, H, N], i32>
!joins = !attn.tensor<[B, H, N], i1>
!keys = !attn.tensor<[B, H, N, 64], f32>
func.func @merge_units_c2_modes(%j: !joins, %k: !keys) {
  // expected-error@+1 {{expected as many merged tensors, modes and offsets as sources, but got 1, 2 and 1 for 1}}
  %m:8 = attn.merge_units %j (%k) {maxJoins = 20 : i64, modes = [#attn<merge sum>, #attn<merge sum>], offsets = array<i64: 0>} : !joins (!keys) -> (!keys), !table, !table, !table, !table, !table, !table, !joins
  return
}

// -----

!table = !attn.tensor<[B, H, N], i32>
!joins = !attn.tensor<[B, H, N], i1>
!keys = !attn.tensor<[B, H, N, 64], f32>
func.func @merge_units_c2_offsets(%j: !joins, %k: !keys) {
  // expected-error@+1 {{expected offsets of 0 or 1, but got 2}}
  %m:8 = attn.merge_units %j (%k) {maxJoins = 20 : i64, modes = [#attn<merge sum>], offsets = array<i64: 2>} : !joins (!keys) -> (!keys), !table, !table, !table, !table, !table, !table, !joins
  return
}

// -----

!table = !attn.tensor<[B, H, N], i32>
!joins = !attn.tensor<[B, H, N], i1>
!keys = !attn.tensor<[B, H, N, 64], f32>
func.func @merge_units_c3(%j: !joins, %k: !keys) {
  // expected-error@+1 {{expected 'maxJoins' to be at least 0, but got -1}}
  %m:8 = attn.merge_units %j (%k) {maxJoins = -1 : i64, modes = [#attn<merge sum>], offsets = array<i64: 0>} : !joins (!keys) -> (!keys), !table, !table, !table, !table, !table, !table, !joins
  return
}

// -----

!table = !attn.tensor<[B, H, N], i32>
!joins = !attn.tensor<[B, H, N], i1>
!keys = !attn.tensor<[B, H, N, 64], f32>
func.func @merge_units_c4(%j: !joins, %k: !keys, %cu: !attn.tensor<[S, 2], i32>) {
  // expected-error@+1 {{expected cu_seqlens of rank 1 and i32 elements, but got '!attn.tensor<[S, 2], i32>'}}
  %m:8 = attn.merge_units %j cu_seqlens %cu (%k) {maxJoins = 20 : i64, modes = [#attn<merge sum>], offsets = array<i64: 0>} : !joins, !attn.tensor<[S, 2], i32> (!keys) -> (!keys), !table, !table, !table, !table, !table, !table, !joins
  return
}

// -----

!keys = !attn.tensor<[B, H, N, 64], f32>
func.func @spread_c2(%d: !keys, %unit: !attn.tensor<[B, H, M], i32>) {
  // expected-error@+1 {{expected a unit of shape [B, H, N], but got '!attn.tensor<[B, H, M], i32>'}}
  %0 = attn.spread %d by %unit {mode = #attn<merge sum>, offset = 0 : i64} : !keys, !attn.tensor<[B, H, M], i32> -> !keys
  return
}

// -----

!keys = !attn.tensor<[B, H, N, 64], f32>
func.func @spread_c3_lower(%d: !keys, %unit: !attn.tensor<[B, H, N], i32>) {
  // expected-error@+1 {{expected 'lower' with an offset of 1}}
  %0 = attn.spread %d by %unit {mode = #attn<merge sum>, offset = 1 : i64} : !keys, !attn.tensor<[B, H, N], i32> -> !keys
  return
}

// -----

!keys = !attn.tensor<[B, H, N, 64], f32>
func.func @spread_c3_ends(%d: !keys, %unit: !attn.tensor<[B, H, N], i32>) {
  // expected-error@+1 {{expected 'ends' where rows are not summed}}
  %0 = attn.spread %d by %unit {mode = #attn<merge mean>, offset = 0 : i64} : !keys, !attn.tensor<[B, H, N], i32> -> !keys
  return
}

// -----

!table = !attn.tensor<[B, H, N], i32>
!joins = !attn.tensor<[B, H, N], i1>
!keys = !attn.tensor<[B, H, N, 64], f32>
!few = !attn.tensor<[B, H, N, 32], f32>
func.func @merge_units_c2_merged(%j: !joins, %k: !keys) {
  // expected-error@+1 {{expected a merged tensor of its source's shape '!attn.tensor<[B, H, N, 64], f32>', but got '!attn.tensor<[B, H, N, 32], f32>'}}
  %m:8 = attn.merge_units %j (%k) {maxJoins = 20 : i64, modes = [#attn<merge sum>], offsets = array<i64: 0>} : !joins (!keys) -> (!few), !table, !table, !table, !table, !table, !table, !joins
  return
}

// -----

!keys = !attn.tensor<[B, H, N, 64], f32>
func.func @spread_c1(%d: !keys, %unit: !attn.tensor<[B, H, N], i32>) {
  // expected-error@+1 {{expected a result of shape [B, H, N, 64], but got '!attn.tensor<[B, H, M, 64], f32>'}}
  %0 = attn.spread %d by %unit {mode = #attn<merge sum>, offset = 0 : i64} : !keys, !attn.tensor<[B, H, N], i32> -> !attn.tensor<[B, H, M, 64], f32>
  return
}

// -----

!keys = !attn.tensor<[B, H, N, 64], f32>
func.func @spread_c3_offset(%d: !keys, %unit: !attn.tensor<[B, H, N], i32>) {
  // expected-error@+1 {{expected an offset of 0 or 1, but got 2}}
  %0 = attn.spread %d by %unit {mode = #attn<merge sum>, offset = 2 : i64} : !keys, !attn.tensor<[B, H, N], i32> -> !keys
  return
}

// -----

func.func @shift_c3_far(%x: !attn.tensor<[B, H, N], f32>) {
  // expected-error@+1 {{expected 'by' to be a distance, of at most 1073741824, but got -2147483648}}
  %0 = attn.shift %x {by = -2147483648 : i64} : !attn.tensor<[B, H, N], f32> -> !attn.tensor<[B, H, N], f32>
  return
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --verify-diagnostics
// What no operand of an op of the dialect may be, a case for each constraint on types.

func.func @element(%x: i7) {
  // expected-error@+1 {{operand #0 must be integer, float or pointer, but got 'i7'}}
  %0 = tile.splat %x : i7 -> tensor<4xi32>
  return
}

// -----

func.func @ints(%x: tensor<4xf32>) {
  // expected-error@+1 {{operand #1 must be tensor of integers}}
  %0 = tile.gather %x[%x] {axis = 0 : i32} : tensor<4xf32>[tensor<4xf32>] -> tensor<4xf32>
  return
}

// -----

func.func @value(%p: !tile.ptr<f32>, %x: vector<4xf32>) {
  // expected-error@+1 {{operand #1 must be scalar or tensor, but got 'vector<4xf32>'}}
  %0 = tile.atomic_cas %p, %x, %x : (!tile.ptr<f32>, vector<4xf32>, vector<4xf32>) -> f32
  return
}

// -----

func.func @pointer(%p: f32, %i: i32) {
  // expected-error@+1 {{operand #0 must be pointer or tensor of pointers, but got 'f32'}}
  %0 = tile.addptr %p, %i : f32, i32
  return
}

// -----

func.func @int(%p: !tile.ptr<f32>, %i: f32) {
  // expected-error@+1 {{operand #1 must be integer or tensor of integers, but got 'f32'}}
  %0 = tile.addptr %p, %i : !tile.ptr<f32>, f32
  return
}

// -----

func.func @bool(%c: i32) {
  // expected-error@+1 {{operand #0 must be i1 or tensor of i1, but got 'i32'}}
  tile.assert %c, "x" : i32
  return
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --tile-split-sizes --split-input-file --verify-diagnostics
// What cannot be done in pieces.

func.func @reshape(%x: !tile.ptr<f32>) {
  %p = tile.splat %x : !tile.ptr<f32> -> tensor<999x3x!tile.ptr<f32>>
  %q = tile.splat %x : !tile.ptr<f32> -> tensor<3x999x!tile.ptr<f32>>
  %v = tile.load %p : tensor<999x3x!tile.ptr<f32>>
  // expected-error@+2 {{expected a reshape that keeps runs of elements together, but got 'tensor<999x3xf32>' as 'tensor<3x999xf32>'}}
  // expected-note@+1 {{sizes that are no powers of two are cut into powers of two; here they are cut into more than 512 parts}}
  %r = tile.reshape %v : tensor<999x3xf32> -> tensor<3x999xf32>
  tile.store %q, %r : tensor<3x999x!tile.ptr<f32>>
  return
}

// -----

func.func @other(%x: tensor<3xf32>) {
  // expected-error@+2 {{expected sizes that are powers of two for 'tile.shift', but got 'tensor<3xf32>'}}
  // expected-note@+1 {{take the next power of two and mask what lies beyond}}
  %s = tile.shift %x {axis = 0 : i32, offset = 1 : i32} : tensor<3xf32>
  return
}

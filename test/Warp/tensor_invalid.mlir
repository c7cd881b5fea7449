// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --verify-diagnostics
#s = #warp.layout<[4], offset = [[1], [2]]>
func.func @slots(%s: !warp.shared<4xi64, #s>) {
  // expected-error@+1 {{expected room for 4 barriers and a word more, but got '!warp.shared<4xi64}}
  %area, %lanes = warp.tensor_begin %s {barriers = 4 : i32, columns = 128 : i32} : !warp.shared<4xi64, #s>
  return
}

// -----

#s = #warp.layout<[8], offset = [[1], [2], [4]]>
func.func @columns(%s: !warp.shared<8xi64, #s>) {
  // expected-error@+1 {{expected powers of two as 'columns' and 'barriers', at most 512 columns, but got 96 and 4}}
  %area, %lanes = warp.tensor_begin %s {barriers = 4 : i32, columns = 96 : i32} : !warp.shared<8xi64, #s>
  return
}

// -----

#acc = #warp.layout<[64, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
func.func @load(%lanes: i32) {
  // expected-error@+1 {{expected 32-bit elements in a layout of warpgroups' sums, but got 'tensor<64x8xf16}}
  %x = warp.tensor_load %lanes {column = 0 : i32} : tensor<64x8xf16, #acc>
  return
}

// -----

#acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>
#s = #warp.layout<[8], offset = [[1], [2], [4]]>
func.func @operand(%b: !warp.shared<16x16xf16, #b>, %area: i32, %s: !warp.shared<8xi64, #s>) {
  // expected-error@+1 {{expected operand a either in shared memory or 'from' a column as 'stored'}}
  warp.tensor_product %b, %area, %s {column = 0 : i32, sums = tensor<128x16xf32, #acc>, shape = array<i32: 128, 16, 16>}
    : !warp.shared<16x16xf16, #b>, !warp.shared<8xi64, #s>
  return
}

// -----

#acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>
#s = #warp.layout<[8], offset = [[1], [2], [4]]>
func.func @shape(%b: !warp.shared<16x16xf16, #b>, %area: i32, %s: !warp.shared<8xi64, #s>) {
  // expected-error@+1 {{expected a 'shape' [128, n, k], but got [64, 16, 16]}}
  warp.tensor_product %b, %area, %s {column = 0 : i32, from = 16 : i32, stored = tensor<128x16xf16, #acc>, sums = tensor<128x16xf32, #acc>, shape = array<i32: 64, 16, 16>}
    : !warp.shared<16x16xf16, #b>, !warp.shared<8xi64, #s>
  return
}

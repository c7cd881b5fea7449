// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --verify-diagnostics
#s = #warp.layout<[8], offset = [[1], [2], [4]]>
func.func @tensor_begin_c1(%s: !warp.shared<8xi64, #s>) {
  // expected-error@+1 {{expected powers of two as 'columns' and 'barriers', at most 512 columns, but got 96 and 4}}
  %area, %lanes = warp.tensor_begin %s {barriers = 4 : i32, columns = 96 : i32} : !warp.shared<8xi64, #s>
  return
}

// -----

#s = #warp.layout<[4], offset = [[1], [2]]>
func.func @tensor_begin_c2(%s: !warp.shared<4xi64, #s>) {
  // expected-error@+1 {{expected room for 4 barriers and a word more, but got '!warp.shared<4xi64}}
  %area, %lanes = warp.tensor_begin %s {barriers = 4 : i32, columns = 128 : i32} : !warp.shared<4xi64, #s>
  return
}

// -----

#acc = #warp.layout<[64, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
func.func @tensor_load_c1(%lanes: i32) {
  // expected-error@+1 {{expected 32-bit elements in a layout of warpgroups' sums, but got 'tensor<64x8xf16}}
  %x = warp.tensor_load %lanes {column = 0 : i32} : tensor<64x8xf16, #acc>
  return
}

// -----

#other = #warp.layout<[128, 8], register = [[0, 1], [0, 2], [32, 0]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [64, 0]]>
func.func @tensor_store_c1(%x: tensor<128x8xf16, #other>, %lanes: i32) {
  // expected-error@+1 {{expected a layout of warpgroups' sums or operands, but got 'tensor<128x8xf16}}
  warp.tensor_store %x, %lanes {column = 0 : i32} : tensor<128x8xf16, #other>
  return
}

// -----

#acc = #warp.layout<[64, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
func.func @tensor_scale_c1(%by: tensor<64x8xf16, #acc>, %lanes: i32) {
  // expected-error@+1 {{expected factors of f32 in a layout of warpgroups' sums, but got 'tensor<64x8xf16}}
  warp.tensor_scale %by, %lanes {column = 0 : i32} : tensor<64x8xf16, #acc>
  return
}

// -----

#s = #warp.layout<[8], offset = [[1], [2], [4]]>
func.func @tensor_wait_c1(%s: !warp.shared<8xi64, #s>) {
  %area, %lanes = warp.tensor_begin %s {barriers = 4 : i32, columns = 128 : i32} : !warp.shared<8xi64, #s>
  // expected-error@+1 {{expected a 'count' from 1 on, and with 'pending' at most 4 barriers, but got 2 and 3}}
  warp.tensor_wait %s {count = 2 : i32, pending = 3 : i32} : !warp.shared<8xi64, #s>
  return
}

// -----

#piece = #warp.layout<[128, 8], register = [[0, 1], [0, 2], [0, 4]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#row = #warp.layout<[128, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
func.func @join_columns_c1(%x: tensor<128x8xf16, #piece>) {
  // expected-error@+1 {{expected pieces of one type, a row a thread, that fill 'tensor<128x32xf16}}
  %row = warp.join_columns %x, %x : tensor<128x8xf16, #piece>, tensor<128x8xf16, #piece> -> tensor<128x32xf16, #row>
  return
}

// -----

#acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>
#s = #warp.layout<[8], offset = [[1], [2], [4]]>
func.func @tensor_product_c1(%b: !warp.shared<16x16xf16, #b>, %area: i32, %s: !warp.shared<8xi64, #s>) {
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

// -----

#other = #warp.layout<[128, 8], register = [[0, 1], [0, 2], [32, 0]], lane = [[0, 4], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[16, 0], [64, 0]]>
#acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>
#s = #warp.layout<[8], offset = [[1], [2], [4]]>
func.func @sums(%b: !warp.shared<16x16xf16, #b>, %area: i32, %s: !warp.shared<8xi64, #s>) {
  // expected-error@+1 {{expected sums in a layout of warpgroups, but got 'tensor<128x8xf32}}
  warp.tensor_product %b, %area, %s {column = 0 : i32, from = 16 : i32, stored = tensor<128x16xf16, #acc>, sums = tensor<128x8xf32, #other>, shape = array<i32: 128, 16, 16>}
    : !warp.shared<16x16xf16, #b>, !warp.shared<8xi64, #s>
  return
}

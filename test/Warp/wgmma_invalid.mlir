// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --split-input-file --verify-diagnostics %s

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
func.func @wgmma_c2_without(%a: tensor<64x16xf16, #acc>, %b: !warp.shared<16x16xf16, #b>, %c: tensor<64x16xf32, #acc>, %d: tensor<64x16xf32>) {
  // expected-error @below {{expected operands with layouts, but got 'tensor<64x16xf32>'}}
  %x = warp.wgmma %a, %b, %d {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #acc> * !warp.shared<16x16xf16, #b> -> tensor<64x16xf32>
  return
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[32, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0]]>
func.func @wgmma_c1(%a: tensor<64x16xf16, #acc>, %b: !warp.shared<32x16xf16, #b>, %c: tensor<64x16xf32, #acc>) {
  // expected-error-re @below {{expected matrices [M, K], [K, N] and [M, N], but got {{.*}}}}
  %x = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #acc> * !warp.shared<32x16xf16, #b> -> tensor<64x16xf32, #acc>
  return
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
func.func @wgmma_c4(%a: tensor<64x16xbf16, #acc>, %b: !warp.shared<16x16xf16, #b>, %c: tensor<64x16xf32, #acc>) {
  // expected-error @below {{expected operands of one type, f32 or of 16 or 8 bits, but got 'bf16' and 'f16'}}
  %x = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xbf16, #acc> * !warp.shared<16x16xf16, #b> -> tensor<64x16xf32, #acc>
  return
}

// -----

// Rows of one warp that follow one another are not how a warpgroup has them.

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[32, 0]]>
#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8], [16, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[32, 0]]>
#b = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
func.func @wgmma_c2_layout(%a: tensor<64x16xf16, #a>, %b: !warp.shared<16x16xf16, #b>, %c: tensor<64x16xf32, #acc>) {
  // expected-error-re @below {{expected an accumulator in a layout of warpgroups, but got {{.*}}}}
  %x = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x16xf16, #b> -> tensor<64x16xf32, #acc>
  return
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
func.func @wgmma_c2_instruction(%a: tensor<64x16xf16, #acc>, %b: !warp.shared<16x16xf16, #b>, %c: tensor<64x16xf32, #acc>) {
  // expected-error @below {{expected a 'shape' [64, n, k] whose instructions fill each warpgroup's product, but got [64, 32, 16]}}
  %x = warp.wgmma %a, %b, %c {shape = array<i32: 64, 32, 16>} : tensor<64x16xf16, #acc> * !warp.shared<16x16xf16, #b> -> tensor<64x16xf32, #acc>
  return
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0]]>
func.func @wgmma_c3_swizzle(%a: tensor<64x16xf16, #acc>, %b: !warp.shared<16x16xf16, #b>, %c: tensor<64x16xf32, #acc>) {
  // expected-error-re @below {{expected one tile in lines of 32, 64 or 128 swizzled bytes, but got {{.*}}}}
  %x = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #acc> * !warp.shared<16x16xf16, #b> -> tensor<64x16xf32, #acc>
  return
}

// -----

// Descriptors do not turn elements of 32 bits.

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 4], [4, 8], [8, 0]]>
func.func @wgmma_c3_turned(%a: tensor<64x16xf32, #acc>, %b: !warp.shared<16x16xf32, #b>, %c: tensor<64x16xf32, #acc>) {
  // expected-error-re @below {{expected a tile of 'f32' with neighbours along the inner axis, but got {{.*}}}}
  %x = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 8>} : tensor<64x16xf32, #acc> * !warp.shared<16x16xf32, #b> -> tensor<64x16xf32, #acc>
  return
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
func.func @neither(%a: tensor<64x16xf16, #acc>, %b: f16, %c: tensor<64x16xf32, #acc>) {
  // expected-error @below {{operand #1 must be tensor or tile in shared memory, but got 'f16'}}
  %x = "warp.wgmma"(%a, %b, %c) {shape = array<i32: 64, 16, 16>} : (tensor<64x16xf16, #acc>, f16, tensor<64x16xf32, #acc>) -> tensor<64x16xf32, #acc>
  return
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
func.func @wgmma_fence_c1(%c: tensor<64x16xf32, #acc>) {
  // expected-error @below {{failed to verify that operands and results have the same types}}
  %x = "warp.wgmma_fence"(%c) : (tensor<64x16xf32, #acc>) -> tensor<64x16xf16, #acc>
  return
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
func.func @wgmma_wait_c1(%c: tensor<64x16xf32, #acc>) {
  // expected-error @below {{failed to verify that operands and results have the same types}}
  %x = "warp.wgmma_wait"(%c) {pending = 0 : i32} : (tensor<64x16xf32, #acc>) -> tensor<64x16xf16, #acc>
  return
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
func.func @wgmma_wait_c2(%c: tensor<64x16xf32, #acc>) {
  // expected-error @below {{expected 'pending' from 0 to 7, but got 8}}
  %x = warp.wgmma_wait %c {pending = 8 : i32} : tensor<64x16xf32, #acc>
  return
}

// -----

func.func @round_tf32_c1(%x: tensor<64x16xf16>) {
  // expected-error @below {{operand #0 must be tensor of 32-bit float values, but got 'tensor<64x16xf16>'}}
  %y = warp.round_tf32 %x : tensor<64x16xf16>
  return
}

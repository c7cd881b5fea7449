// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --split-input-file --verify-diagnostics %s

// expected-error @below {{expected sizes that are powers of two, but got 3}}
func.func private @layout_c1(tensor<3xf32, #warp.layout<[3]>>)

// -----

// expected-error @below {{expected 1 coordinates, but got 2}}
func.func private @layout_c2_rank(tensor<4xf32, #warp.layout<[4], register = [[1, 0]]>>)

// -----

// expected-error @below {{expected a coordinate from 0 to 3 along axis 0, but got 4}}
func.func private @layout_c2_range(tensor<4xf32, #warp.layout<[4], register = [[4]]>>)

// -----

// expected-error @below {{expected 'offset' to stand alone, but got 'register' beside it}}
func.func private @layout_c3(!warp.shared<4xf32, #warp.layout<[4], register = [[1]], offset = [[1], [2]]>>)

// -----

// expected-error @below {{expected 'register', 'lane', 'warp', 'block' or 'offset', each once, but got 'thread'}}
func.func private @layout_name(tensor<4xf32, #warp.layout<[4], thread = [[1]]>>)

// -----

// expected-error @below {{expected a layout of shape [8], but got [4]}}
func.func private @layout_c4_shape(tensor<8xf32, #warp.layout<[4], lane = [[1], [2], [0], [0], [0]]>>)

// -----

// expected-error @below {{expected 5 bases of 'lane', but got 2}}
func.func private @layout_c4_lanes(tensor<4xf32, #warp.layout<[4], lane = [[1], [2]]>>)

// -----

// expected-error @below {{expected a layout over registers, lanes and warps, but got one over offsets in shared memory}}
func.func private @layout_c4_offset(tensor<4xf32, #warp.layout<[4], offset = [[1], [2]]>>)

// -----

// expected-error @below {{expected at least one stage, but got 0}}
func.func private @shared_stages(!warp.shared<stages = 0, 4xf32, #warp.layout<[4], offset = [[1], [2]]>>)

// -----

// expected-error @below {{expected a layout of shape [8], but got [4]}}
func.func private @shared_c1_shape(!warp.shared<8xf32, #warp.layout<[4], offset = [[1], [2]]>>)

// -----

// expected-error @below {{expected a layout that gives each element one offset}}
func.func private @shared_c1_bijection(!warp.shared<4xf32, #warp.layout<[4], offset = [[1], [1]]>>)

// -----

#a = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]]>
func.func @convert_layout_c1(%x: tensor<64xf32, #a>) {
  // expected-error @below {{expected a result that differs from}}
  %y = warp.convert_layout %x : tensor<64xf32, #a> -> tensor<64xf16, #a>
  return
}

// -----

#acc = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[32, 16], register = [[1, 0], [8, 0], [16, 0], [0, 8]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
func.func @mma_c1(%a: tensor<16x16xf16, #acc>, %b: tensor<32x16xf16, #b>, %c: tensor<16x16xf32, #acc>) {
  // expected-error @below {{expected matrices [M, K], [K, N] and [M, N]}}
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<16x16xf16, #acc> * tensor<32x16xf16, #b> -> tensor<16x16xf32, #acc>
  return
}

// -----

#acc = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
func.func @mma_c2(%a: tensor<16x16xf16, #acc>, %c: tensor<16x16xf32, #acc>) {
  // expected-error @below {{expected operands in the fragment layouts of one grid of warps}}
  %d = warp.mma %a, %a, %c {shape = array<i32: 16, 8, 16>} : tensor<16x16xf16, #acc> * tensor<16x16xf16, #acc> -> tensor<16x16xf32, #acc>
  return
}

// -----

// Columns of the sums are interleaved, and those of b are not.
#acc = #warp.layout<[16, 16], register = [[0, 2], [8, 0], [0, 1]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]]>
#a = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[16, 16], register = [[1, 0], [8, 0], [0, 8]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
func.func @mma_c2_interleaved(%a: tensor<16x16xf16, #a>, %b: tensor<16x16xf16, #b>, %c: tensor<16x16xf32, #acc>) {
  // expected-error @below {{expected operands in the fragment layouts of one grid of warps}}
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<16x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<16x16xf32, #acc>
  return
}

// -----

// K of a is taken by words, and that of b is not.
#acc = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#a = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 2]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[16, 8], register = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
func.func @mma_c2_words(%a: tensor<16x16xf16, #a>, %b: tensor<16x8xf16, #b>, %c: tensor<16x8xf32, #acc>) {
  // expected-error @below {{expected operands in the fragment layouts of one grid of warps}}
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<16x16xf16, #a> * tensor<16x8xf16, #b> -> tensor<16x8xf32, #acc>
  return
}

// -----

// Two products, of which the second warp, whose rows are the second's, has the first's columns.
#acc = #warp.layout<[32, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#a = #warp.layout<[32, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#b = #warp.layout<[16, 16], register = [[1, 0], [8, 0], [0, 8]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0]]>
func.func @mma_c2_batch(%a: tensor<32x16xf16, #a>, %b: tensor<16x16xf16, #b>, %c: tensor<32x8xf32, #acc>) {
  // expected-error @below {{expected operands in the fragment layouts of one grid of warps}}
  %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<32x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<32x8xf32, #acc>
  return
}

// -----

#s = #warp.layout<[4], offset = [[1], [2]]>
func.func @stage_c1(%r: !warp.shared<stages = 2, 4xf32, #s>, %i: i32) {
  // expected-error @below {{expected a result of type '!warp.shared<4xf32,}}
  %t = warp.stage %r[%i] : !warp.shared<stages = 2, 4xf32, #s> -> !warp.shared<stages = 2, 4xf32, #s>
  return
}

// -----

#s = #warp.layout<[4], offset = [[1], [2]]>
func.func @stage_step(%r: !warp.shared<stages = 2, 4xf32, #s>, %i: i32) {
  // expected-error @below {{expected a step of at least 1, but got 0}}
  %t = warp.stage %r[%i] {step = 0 : i64} : !warp.shared<stages = 2, 4xf32, #s> -> !warp.shared<4xf32, #s>
  return
}

// -----

#s = #warp.layout<[4, 2], offset = [[0, 1], [1, 0], [2, 0]]>
func.func @permute_shared_c1_order(%x: !warp.shared<4x2xf32, #s>) {
  // expected-error @below {{expected 'order' to be a permutation of the 2 axes, but got [0, 0]}}
  %t = warp.permute_shared %x {order = array<i32: 0, 0>} : !warp.shared<4x2xf32, #s> -> !warp.shared<4x2xf32, #s>
  return
}

// -----

#s = #warp.layout<[4, 2], offset = [[0, 1], [1, 0], [2, 0]]>
func.func @permute_shared_c1_type(%x: !warp.shared<4x2xf32, #s>) {
  // expected-error @below {{expected a result of type '!warp.shared<2x4xf32,}}
  %t = warp.permute_shared %x {order = array<i32: 1, 0>} : !warp.shared<4x2xf32, #s> -> !warp.shared<4x2xf32, #s>
  return
}

// -----

#a = #warp.layout<[4], lane = [[1], [2], [0], [0], [0]]>
#s = #warp.layout<[4], offset = [[1], [2]]>
func.func @load_shared_c1_stages(%x: !warp.shared<stages = 2, 4xf32, #s>) {
  // expected-error @below {{expected one tile, but got a ring of 2; take one of its tiles with 'warp.stage'}}
  %t = warp.load_shared %x : !warp.shared<stages = 2, 4xf32, #s> -> tensor<4xf32, #a>
  return
}

// -----

#a = #warp.layout<[4], lane = [[1], [2], [0], [0], [0]]>
#s = #warp.layout<[4], offset = [[1], [2]]>
func.func @store_shared_c1_element(%v: tensor<4xf16, #a>, %x: !warp.shared<4xf32, #s>) {
  // expected-error @below {{expected a tile of 'f16', but got 'f32'}}
  warp.store_shared %v, %x : tensor<4xf16, #a> -> !warp.shared<4xf32, #s>
  return
}

// -----

#a = #warp.layout<[8], lane = [[1], [2], [4], [0], [0]]>
#s = #warp.layout<[4], offset = [[1], [2]]>
func.func @async_copy_c1_shape(%p: tensor<8x!tile.ptr<f32>, #a>, %x: !warp.shared<4xf32, #s>) {
  // expected-error @below {{expected a tile of shape [8], but got [4]}}
  warp.async_copy %p to %x {contiguity = 1 : i32} : tensor<8x!tile.ptr<f32>, #a> -> !warp.shared<4xf32, #s>
  return
}

// -----

#a = #warp.layout<[4], lane = [[1], [2], [0], [0], [0]]>
#b = #warp.layout<[4], register = [[1]], lane = [[2], [0], [0], [0], [0]]>
#s = #warp.layout<[4], offset = [[1], [2]]>
func.func @async_copy_c1_mask(%p: tensor<4x!tile.ptr<f32>, #a>, %m: tensor<4xi1, #b>, %x: !warp.shared<4xf32, #s>) {
  // expected-error @below {{expected a mask in the shape and layout of the pointers}}
  warp.async_copy %p masked %m to %x {contiguity = 1 : i32} : tensor<4x!tile.ptr<f32>, #a>, tensor<4xi1, #b> -> !warp.shared<4xf32, #s>
  return
}

// -----

#a = #warp.layout<[4], lane = [[1], [2], [0], [0], [0]]>
#s = #warp.layout<[4], offset = [[1], [2]]>
func.func @async_copy_c2(%p: tensor<4x!tile.ptr<f16>, #a>, %x: !warp.shared<4xf16, #s>) {
  // expected-error @below {{expected pieces of 4, 8 or 16 bytes, but got 2}}
  warp.async_copy %p to %x {contiguity = 1 : i32} : tensor<4x!tile.ptr<f16>, #a> -> !warp.shared<4xf16, #s>
  return
}

// -----

// expected-error @below {{expected at most 2^30 elements}}
func.func private @layout_elements(tensor<4xf32, #warp.layout<[1073741824, 2]>>)

// -----

// expected-error @below {{expected at most 30 bases of 'register'}}
func.func private @layout_bases(tensor<1xf32, #warp.layout<[1], register = [[0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0], [0]]>>)

// -----

func.func @mma_layouts(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{expected operands with layouts, but got 'tensor<16x16xf16>'}}
  %d = warp.mma %a, %a, %c {shape = array<i32: 16, 8, 16>} : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  return
}

// -----

func.func @mma_shape(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{expected 'shape' to be [m, n, k], but got [16, 8]}}
  %d = warp.mma %a, %a, %c {shape = array<i32: 16, 8>} : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  return
}

// -----

func.func @mma_fragments(%a: tensor<16x16xf16>, %c: tensor<16x16xf32>) {
  // expected-error @below {{expected 'shape' to be of instructions with known fragments, but got [16, 16, 16]}}
  %d = warp.mma %a, %a, %c {shape = array<i32: 16, 16, 16>} : tensor<16x16xf16> * tensor<16x16xf16> -> tensor<16x16xf32>
  return
}

// -----

#a = #warp.layout<[4], lane = [[1], [2], [0], [0], [0]]>
#s = #warp.layout<[8], offset = [[1], [2], [4]]>
func.func @load_shifted_c1(%x: !warp.shared<8xf32, #s>) {
  // expected-error @below {{expected a tile of shape [4], but got [8]}}
  %t = warp.load_shifted %x {axis = 0 : i32, offset = 1 : i32} : !warp.shared<8xf32, #s> -> tensor<4xf32, #a>
  return
}

// -----

#a = #warp.layout<[4], lane = [[1], [2], [0], [0], [0]]>
#s = #warp.layout<[4], offset = [[1], [2]]>
func.func @load_shifted_c2_axis(%x: !warp.shared<4xf32, #s>) {
  // expected-error @below {{expected 'axis' between 0 and 0, but got 1}}
  %t = warp.load_shifted %x {axis = 1 : i32, offset = 1 : i32} : !warp.shared<4xf32, #s> -> tensor<4xf32, #a>
  return
}

// -----

#a = #warp.layout<[4], lane = [[1], [2], [0], [0], [0]]>
#s = #warp.layout<[4], offset = [[1], [2]]>
func.func @load_shifted_c2_offset(%x: !warp.shared<4xf32, #s>) {
  // expected-error @below {{expected an 'offset' of a magnitude below 4, the size along axis 0, but got -4}}
  %t = warp.load_shifted %x {axis = 0 : i32, offset = -4 : i32} : !warp.shared<4xf32, #s> -> tensor<4xf32, #a>
  return
}

// -----

#a = #warp.layout<[4, 2], lane = [[0, 1], [1, 0], [2, 0], [0, 0], [0, 0]]>
#s = #warp.layout<[4, 2], offset = [[0, 1], [1, 0], [2, 0]]>
func.func @load_shifted_c2_margin(%x: !warp.shared<4x2xf32, #s, margin = 2>) {
  // expected-error @below {{expected axis 0 and an 'offset' of a magnitude of at most 2, the margin, but got axis 0 and 3}}
  %t = warp.load_shifted %x {axis = 0 : i32, offset = 3 : i32} : !warp.shared<4x2xf32, #s, margin = 2> -> tensor<4x2xf32, #a>
  return
}

// -----

#a = #warp.layout<[4, 2], lane = [[0, 1], [1, 0], [2, 0], [0, 0], [0, 0]]>
#s = #warp.layout<[4, 2], offset = [[0, 1], [1, 0], [2, 0]]>
func.func @load_shared_c1_margin(%x: !warp.shared<4x2xf32, #s, margin = 2>) {
  // expected-error @below {{expected a tile without a margin, but got '!warp.shared<4x2xf32, #warp.layout<[4, 2], offset = [[0, 1], [1, 0], [2, 0]]>, margin = 2>'}}
  %t = warp.load_shared %x : !warp.shared<4x2xf32, #s, margin = 2> -> tensor<4x2xf32, #a>
  return
}

// -----

#s = #warp.layout<[4, 2], offset = [[1, 0], [2, 0], [0, 1]]>
// expected-error @below {{expected offsets in row-major order of a tile with a margin, but got a margin of 2, 1 stages and}}
func.func @shared_c2(%x: !warp.shared<4x2xf32, #s, margin = 2>)

// -----

#a = #warp.layout<[4], lane = [[1], [2], [0], [0], [0]]>
#s = #warp.layout<[4], offset = [[1], [2]]>
func.func @pointers(%p: tensor<4xf32, #a>, %x: !warp.shared<4xf32, #s>) {
  // expected-error@+1 {{operand #0 must be tensor of pointers}}
  warp.async_copy %p to %x {contiguity = 1 : i32} : tensor<4xf32, #a> -> !warp.shared<4xf32, #s>
  return
}

// -----

#a = #warp.layout<[4], lane = [[1], [2], [0], [0], [0]]>
#s = #warp.layout<[4], offset = [[1], [2]]>
func.func @mask(%p: tensor<4x!tile.ptr<f32>, #a>, %m: tensor<4xi32, #a>, %x: !warp.shared<4xf32, #s>) {
  // expected-error@+1 {{operand #1 must be tensor of i1}}
  warp.async_copy %p masked %m to %x {contiguity = 1 : i32} : tensor<4x!tile.ptr<f32>, #a>, tensor<4xi32, #a> -> !warp.shared<4xf32, #s>
  return
}

// -----

func.func @tensor_map_c1(%p: !tile.ptr<f16>, %size: i64) {
  // expected-error @+1 {{'warp.tensor_map' op expected as many sizes as 'box' has, and one stride less, but got 2, 2 and 0}}
  %map = warp.tensor_map %p sizes(%size, %size) strides() {box = array<i32: 64, 8>} : <f16>
  return
}

// -----

#line = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#one = #warp.layout<[1], offset = []>

func.func @box_copy_c1_rank(%p: !tile.ptr<f16>, %size: i64, %i: i32, %tile: !warp.shared<8x64xf16, #line>, %full: !warp.shared<1xi64, #one>) {
  %map = warp.tensor_map %p sizes(%size, %size) strides(%size) {box = array<i32: 64, 8>} : <f16>
  // expected-error @+1 {{'warp.box_copy' op expected 2 coordinates, as the map has axes, but got 1}}
  warp.box_copy %map[%i] to %tile on %full : !warp.shared<8x64xf16, #line>, !warp.shared<1xi64, #one>
  return
}

// -----

#line = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#one = #warp.layout<[1], offset = []>

func.func @box_copy_c1_count(%map: !warp.tensor_map, %tile: !warp.shared<8x64xf16, #line>, %full: !warp.shared<1xi64, #one>) {
  // expected-error @+1 {{'warp.box_copy' op expected one to five coordinates, but got 0}}
  warp.box_copy %map[] to %tile on %full : !warp.shared<8x64xf16, #line>, !warp.shared<1xi64, #one>
  return
}

// -----

#line = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>

func.func @box_store_c1_rank(%p: !tile.ptr<f16>, %size: i64, %i: i32, %tile: !warp.shared<8x64xf16, #line>) {
  %map = warp.tensor_map %p sizes(%size, %size) strides(%size) {box = array<i32: 64, 8>} : <f16>
  // expected-error @+1 {{'warp.box_store' op expected 2 coordinates, as the map has axes, but got 1}}
  warp.box_store %tile to %map[%i] : !warp.shared<8x64xf16, #line>
  return
}

// -----

#line = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>

func.func @box_store_c1_count(%map: !warp.tensor_map, %tile: !warp.shared<8x64xf16, #line>) {
  // expected-error @+1 {{'warp.box_store' op expected one to five coordinates, but got 0}}
  warp.box_store %tile to %map[] : !warp.shared<8x64xf16, #line>
  return
}

// -----

#line = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>

func.func @box_store_c2_floats(%map: !warp.tensor_map, %i: i32, %tile: !warp.shared<8x64xf16, #line>) {
  // expected-error @+1 {{'warp.box_store' op expected 'combine' to be 'fadd' of floats, or what signed integers are combined by, but got 'max' of 'f16'}}
  warp.box_store %tile to %map[%i] {combine = #tile<atomic max>} : !warp.shared<8x64xf16, #line>
  return
}

// -----

#line = #warp.layout<[8, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16]]>

func.func @box_store_c2_integers(%map: !warp.tensor_map, %i: i32, %tile: !warp.shared<8x32xi32, #line>) {
  // expected-error @+1 {{'warp.box_store' op expected 'combine' to be 'fadd' of floats, or what signed integers are combined by, but got 'umin' of 'i32'}}
  warp.box_store %tile to %map[%i] {combine = #tile<atomic umin>} : !warp.shared<8x32xi32, #line>
  return
}

// -----

#two = #warp.layout<[2], offset = [[1]]>

func.func @mbarrier_init_c1(%ring: !warp.shared<stages = 2, 2xi64, #two>) {
  // expected-error @+1 {{'warp.mbarrier_init' op expected arrivals for 2 barriers of a stage, but got 1}}
  warp.mbarrier_init %ring : !warp.shared<stages = 2, 2xi64, #two>
  return
}

// -----

func.func @producer_c1() {
  // expected-error @+1 {{'warp.producer' op expected registers of its own threads and of the others, but got one of the two}}
  warp.producer warps = 4 registers = 24 {
  }
  return
}

// -----

#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#acc = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

func.func @span_select_c1(%x: tensor<16x8xf32, #acc>, %begin: i32) {
  // expected-error @below {{expected a bound, but got none}}
  %0 = warp.span_select %x, %x from %begin {axis = 1 : i32} : tensor<16x8xf32, #acc>
  return
}

// -----

#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#acc = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

func.func @span_select_c2(%x: tensor<16x8xf32, #acc>, %begin: i32, %row: tensor<16x1xi32, #rows>) {
  // expected-error @below {{expected bounds of elements of i32, and of the result's shape with 1 along axis 0, but got 'tensor<16x1xi32,}}
  %0 = warp.span_select %x, %x from %begin upper(%row plus %begin : tensor<16x1xi32, #rows>) {axis = 0 : i32} : tensor<16x8xf32, #acc>
  return
}

// -----

#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#acc = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

func.func @span_select_c2_type(%x: tensor<16x8xf32, #acc>, %begin: i32, %row: tensor<16x1xf32, #rows>) {
  // expected-error @below {{expected bounds of elements of i32, and of the result's shape with 1 along axis 1, but got 'tensor<16x1xf32,}}
  %0 = warp.span_select %x, %x from %begin upper(%row plus %begin : tensor<16x1xf32, #rows>) {axis = 1 : i32} : tensor<16x8xf32, #acc>
  return
}

// -----

#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#acc = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

func.func @span_select_c2_shift(%x: tensor<16x8xf32, #acc>, %begin: i32, %row: tensor<16x1xi32, #rows>) {
  // expected-error @below {{expected a shift with each bound of rows}}
  %0 = "warp.span_select"(%x, %x, %begin, %row) <{axis = 1 : i32, operandSegmentSizes = array<i32: 1, 1, 1, 1, 0, 0, 0, 0, 0>}> : (tensor<16x8xf32, #acc>, tensor<16x8xf32, #acc>, i32, tensor<16x1xi32, #rows>) -> tensor<16x8xf32, #acc>
  return
}

// -----

#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#acc = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

func.func @span_select_axis(%x: tensor<16x8xf32, #acc>, %begin: i32) {
  // expected-error @below {{expected 'axis' between 0 and 1, but got 2}}
  %0 = warp.span_select %x, %x from %begin end(%begin) {axis = 2 : i32} : tensor<16x8xf32, #acc>
  return
}

// -----

// Registers step along both axes at once.
#mixed = #warp.layout<[16, 8], register = [[8, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

func.func @span_select_c3(%x: tensor<16x8xf32, #mixed>, %begin: i32) {
  // expected-error @below {{expected a layout whose registers walk along axis 1 in runs at equal distances, but got}}
  %0 = warp.span_select %x, %x from %begin end(%begin) {axis = 1 : i32} : tensor<16x8xf32, #mixed>
  return
}

// -----

#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>

func.func @extreme_c1(%x: tensor<16x1xf32, #rows>) {
  // expected-error @below {{expected elements of i32, but got 'f32'}}
  %0 = warp.extreme %x {greatest} : tensor<16x1xf32, #rows>
  return
}

// -----

#acc = #warp.layout<[16], register = [[8]], lane = [[0], [0], [1], [2], [4]]>

func.func @any_c1(%x: tensor<16xf32, #acc>) {
  // expected-error @below {{expected elements of i1, but got 'f32'}}
  %0 = warp.any %x : tensor<16xf32, #acc>
  return
}

// -----

func.func @barrier_c1(%p: i1) {
  // expected-error @below {{expected a barrier 'ofCluster' to be one at which all arrive, but got one 'where' something holds}}
  warp.barrier where %p {ofCluster}
  return
}

// -----

func.func @barrier_c2() {
  // expected-error @below {{expected a barrier at which the producer arrives to be 'withProducer', and neither 'ofCluster' nor one 'where' something holds}}
  warp.barrier {producerArrives}
  return
}

// -----

#s = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#b = #warp.layout<[1], offset = []>

func.func @box_copy_c2(%map: !warp.tensor_map, %x: i32, %tile: !warp.shared<8x64xf16, #s>, %full: !warp.shared<1xi64, #b>) {
  // expected-error @below {{expected 'by' to be a block of a cluster, from 0 to 7, but got 8}}
  warp.box_copy %map[%x] to %tile on %full {by = 8 : i64} : !warp.shared<8x64xf16, #s>, !warp.shared<1xi64, #b>
  return
}

// -----

#s = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
func.func @dealloc_c1(%ring: !warp.shared<stages = 2, 64xf32, #s>, %i: i32) {
  %tile = warp.stage %ring[%i] : !warp.shared<stages = 2, 64xf32, #s> -> !warp.shared<64xf32, #s>
  // expected-error @below {{expected what a 'warp.alloc' gives, but got another value}}
  warp.dealloc %tile : !warp.shared<64xf32, #s>
  return
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --canonicalize --cse --tile-to-warp=target=sm_80 | FileCheck %s
// RUN: weft-opt %S/../../Inputs/matmul_f16.mlir --canonicalize --cse --tile-to-warp=target=sm_80 | FileCheck %s --check-prefix=MATMUL
// RUN: weft-opt %S/../../Inputs/flash_causal_64.mlir --canonicalize --cse --tile-to-warp=target=sm_80 | FileCheck %s --check-prefix=FLASH

// In a loop, only what is loaded is converted; the accumulator stays where it is, and is converted once, to be stored in 16-byte pieces.

// MATMUL-LABEL: func.func @matmul
// MATMUL: scf.for
// MATMUL: tile.load
// MATMUL: tile.load
// MATMUL-COUNT-2: warp.convert_layout
// MATMUL: warp.mma {{.*}} {shape = array<i32: 16, 8, 16>}
// MATMUL-NOT: warp.convert_layout
// MATMUL: scf.yield
// MATMUL: warp.convert_layout
// MATMUL: tile.store {{.*}} {warp.contiguity = 8 : i32{{.*}}}
// MATMUL-NOT: warp.convert_layout

// In flash attention the weights are the second product's operand as they are: all warps lie along the rows, and between the products nothing is converted. Q is converted before the loop.

// FLASH-LABEL: func.func @flash_attention
// FLASH: warp.convert_layout
// FLASH: scf.for
// FLASH: %[[K:.*]] = warp.convert_layout
// FLASH-NEXT: %[[S:.*]] = warp.mma %{{.*}}, %[[K]], {{.*}} -> tensor<128x64xf32, #[[ACC:.*]]>
// FLASH-NOT: warp.convert_layout
// FLASH: %[[P:.*]] = arith.truncf {{.*}} : tensor<128x64xf32, #[[ACC]]> to tensor<128x64xf16, #[[ACC]]>
// FLASH-NOT: warp.convert_layout
// FLASH: %[[V:.*]] = warp.convert_layout
// FLASH-NEXT: warp.mma %[[P]], %[[V]], {{.*}} -> tensor<128x64xf32, #[[ACC]]>
// FLASH-NOT: warp.convert_layout
// FLASH: scf.yield

// f32 products that are to be exact have no matrix instruction; f32 results are stored from the accumulator.

// CHECK-LABEL: func.func @ieee
// CHECK: tile.dot {{.*}} {precision = #tile<precision ieee>}
// CHECK-NOT: warp.convert_layout
// CHECK: tile.store {{.*}} {warp.contiguity = 4 : i32{{.*}}}
func.func @ieee(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: f32) attributes {tile.kernel} {
  %a = tile.splat %x : f32 -> tensor<32x16xf32>
  %b = tile.splat %x : f32 -> tensor<16x32xf32>
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %d = tile.dot %a, %b, %zero {precision = #tile<precision ieee>} : tensor<32x16xf32> * tensor<16x32xf32> -> tensor<32x32xf32>
  %r = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %e = tile.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %w = tile.broadcast %e : tensor<1x32xi32> -> tensor<32x32xi32>
  %base = tile.splat %p : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>>
  %ptrs = tile.addptr %base, %w : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xi32>
  tile.store %ptrs, %d : tensor<32x32x!tile.ptr<f32>>
  func.return
}

// -----

// CHECK-LABEL: func.func @tf32
// CHECK: warp.mma {{.*}} {shape = array<i32: 16, 8, 8>}
// CHECK: tile.store {{.*}} {warp.contiguity = 2 : i32{{.*}}}
func.func @tf32(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: f32) attributes {tile.kernel} {
  %a = tile.splat %x : f32 -> tensor<32x16xf32>
  %b = tile.splat %x : f32 -> tensor<16x32xf32>
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %d = tile.dot %a, %b, %zero : tensor<32x16xf32> * tensor<16x32xf32> -> tensor<32x32xf32>
  %r = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %e = tile.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %w = tile.broadcast %e : tensor<1x32xi32> -> tensor<32x32xi32>
  %base = tile.splat %p : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>>
  %ptrs = tile.addptr %base, %w : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xi32>
  tile.store %ptrs, %d : tensor<32x32x!tile.ptr<f32>>
  func.return
}

// -----

// A vector that is only added to a product is loaded where the product needs it.

// CHECK-LABEL: func.func @bias
// CHECK: %[[B:.*]] = tile.load {{.*}} : tensor<32x!tile.ptr<f32>, #[[SLICE:.*]]>
// CHECK: tile.expand_dims %[[B]] {axis = 0 : i32} : tensor<32xf32, #[[SLICE]]>
// CHECK-NOT: warp.convert_layout
func.func @bias(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: f16) attributes {tile.kernel} {
  %a = tile.splat %x : f16 -> tensor<32x16xf16>
  %b = tile.splat %x : f16 -> tensor<16x32xf16>
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %d = tile.dot %a, %b, %zero : tensor<32x16xf16> * tensor<16x32xf16> -> tensor<32x32xf32>
  %r = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %s = tile.splat %p : !tile.ptr<f32> -> tensor<32x!tile.ptr<f32>>
  %q = tile.addptr %s, %r : tensor<32x!tile.ptr<f32>>, tensor<32xi32>
  %v = tile.load %q : tensor<32x!tile.ptr<f32>>
  %ve = tile.expand_dims %v {axis = 0 : i32} : tensor<32xf32> -> tensor<1x32xf32>
  %vb = tile.broadcast %ve : tensor<1x32xf32> -> tensor<32x32xf32>
  %y = arith.addf %d, %vb : tensor<32x32xf32>
  %e = tile.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %w = tile.broadcast %e : tensor<1x32xi32> -> tensor<32x32xi32>
  %base = tile.splat %p : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>>
  %ptrs = tile.addptr %base, %w : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xi32>
  tile.store %ptrs, %y : tensor<32x32x!tile.ptr<f32>>
  func.return
}

// -----

// An inner axis in chunks of 64 and 16: both add to one sum, which feeds another product, so that both have its rows to themselves.

// CHECK-LABEL: func.func @chunks
// CHECK: %[[S:.*]] = warp.mma {{.*}} -> tensor<128x64xf32, #[[$ACC:.*]]>
// CHECK-NOT: warp.convert_layout {{.*}} tensor<128x64xf32
// CHECK: %[[T:.*]] = warp.mma %{{.*}}, %{{.*}}, %[[S]] {{.*}} -> tensor<128x64xf32, #[[$ACC]]>
func.func @chunks(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 3>} {
  %b = tile.splat %p : !tile.ptr<f16> -> tensor<128x64x!tile.ptr<f16>>
  %bt = tile.splat %p : !tile.ptr<f16> -> tensor<64x64x!tile.ptr<f16>>
  %bn = tile.splat %p : !tile.ptr<f16> -> tensor<128x16x!tile.ptr<f16>>
  %bm = tile.splat %p : !tile.ptr<f16> -> tensor<16x64x!tile.ptr<f16>>
  %q0 = tile.load %b : tensor<128x64x!tile.ptr<f16>>
  %q1 = tile.load %bn : tensor<128x16x!tile.ptr<f16>>
  %k0 = tile.load %bt : tensor<64x64x!tile.ptr<f16>>
  %k1 = tile.load %bm : tensor<16x64x!tile.ptr<f16>>
  %zero = arith.constant dense<0.0> : tensor<128x64xf32>
  %s = tile.dot %q0, %k0, %zero : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
  %t = tile.dot %q1, %k1, %s : tensor<128x16xf16> * tensor<16x64xf16> -> tensor<128x64xf32>
  %w = arith.truncf %t : tensor<128x64xf32> to tensor<128x64xf16>
  %o = tile.dot %w, %k0, %zero : tensor<128x64xf16> * tensor<64x64xf16> -> tensor<128x64xf32>
  %h = arith.truncf %o : tensor<128x64xf32> to tensor<128x64xf16>
  tile.store %b, %h : tensor<128x64x!tile.ptr<f16>>
  return
}

// -----

// What a loop carries lies as the loop's products want it, not as the product before the loop left it: one conversion, before the loop.

// CHECK-LABEL: func.func @sum_of_another_product
// CHECK: %[[FIRST:.*]] = tile.dot
// CHECK: %[[START:.*]] = warp.convert_layout %[[FIRST]]
// CHECK: scf.for {{.*}} iter_args(%[[SUM:.*]] = %[[START]])
// CHECK-NOT: warp.convert_layout
// CHECK: warp.mma %{{.*}}, %{{.*}}, %[[SUM]]
// CHECK-NOT: warp.convert_layout
// CHECK: scf.yield
func.func @sum_of_another_product(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %x: f32, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %a = tile.splat %x : f32 -> tensor<32x32xf32>
  %zero = arith.constant dense<0.0> : tensor<32x32xf32>
  %d = tile.dot %a, %a, %zero {precision = #tile<precision ieee>} : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>
  %s = scf.for %i = %c0 to %n step %c1 iter_args(%sum = %d) -> tensor<32x32xf32> : i32 {
    %next = tile.dot %a, %a, %sum : tensor<32x32xf32> * tensor<32x32xf32> -> tensor<32x32xf32>
    scf.yield %next : tensor<32x32xf32>
  }
  %r = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %e = tile.expand_dims %r {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %w = tile.broadcast %e : tensor<1x32xi32> -> tensor<32x32xi32>
  %base = tile.splat %p : !tile.ptr<f32> -> tensor<32x32x!tile.ptr<f32>>
  %ptrs = tile.addptr %base, %w : tensor<32x32x!tile.ptr<f32>>, tensor<32x32xi32>
  tile.store %ptrs, %s : tensor<32x32x!tile.ptr<f32>>
  func.return
}

// -----

// Eight warps and four instructions' rows: what the second product takes leaves its warp in any case, so that it reads
// the fewest elements, as the product does that it is taken from: only 16-bit numbers are exchanged.

// CHECK-LABEL: func.func @added_products
// CHECK: warp.mma {{.*}} -> tensor<64x128xf32, #[[SUM:.*]]>
// CHECK: warp.convert_layout {{.*}} -> tensor<64x64xf16,
// CHECK: warp.mma {{.*}} -> tensor<64x128xf32, #[[SUM]]>
// CHECK-NOT: warp.convert_layout
// CHECK: arith.subf {{.*}} : tensor<64x128xf32, #[[SUM]]>
func.func @added_products(%p: !tile.ptr<f32>, %x: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 1>} {
  %q = tile.splat %x : f16 -> tensor<64x64xf16>
  %v = tile.splat %x : f16 -> tensor<64x128xf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x128xf32>
  %o = tile.dot %q, %v, %none : tensor<64x64xf16> * tensor<64x128xf16> -> tensor<64x128xf32>
  %s = tile.dot %q, %q, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  %t = arith.mulf %s, %s : tensor<64x64xf32>
  %a = arith.truncf %t : tensor<64x64xf32> to tensor<64x64xf16>
  %i = tile.dot %a, %v, %none : tensor<64x64xf16> * tensor<64x128xf16> -> tensor<64x128xf32>
  %sum = arith.subf %o, %i : tensor<64x128xf32>
  %ptrs = tile.splat %p : !tile.ptr<f32> -> tensor<64x128x!tile.ptr<f32>>
  tile.store %ptrs, %sum : tensor<64x128x!tile.ptr<f32>>
  func.return
}

// -----

// What is reduced of rows belongs to the next product's rows, which lie as the first's: the two sums lie apart.

// CHECK-LABEL: func.func @added_after_reduction
// CHECK: warp.mma {{.*}} -> tensor<64x128xf32, #[[SUM:.*]]>
// CHECK-NOT: warp.mma {{.*}} -> tensor<64x128xf32, #[[SUM]]>
// CHECK: warp.convert_layout {{.*}} : tensor<64x128xf32,
func.func @added_after_reduction(%p: !tile.ptr<f32>, %x: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 1>} {
  %q = tile.splat %x : f16 -> tensor<64x64xf16>
  %v = tile.splat %x : f16 -> tensor<64x128xf16>
  %zero = arith.constant dense<0.0> : tensor<64x64xf32>
  %none = arith.constant dense<0.0> : tensor<64x128xf32>
  %o = tile.dot %q, %v, %none : tensor<64x64xf16> * tensor<64x128xf16> -> tensor<64x128xf32>
  %s = tile.dot %q, %q, %zero : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  %top = tile.reduce %s {axis = 1 : i32} : (tensor<64x64xf32>) -> tensor<64xf32> {
  ^bb0(%l: f32, %r: f32):
    %m = arith.maximumf %l, %r : f32
    tile.yield %m : f32
  }
  %e = tile.expand_dims %top {axis = 1 : i32} : tensor<64xf32> -> tensor<64x1xf32>
  %w = tile.broadcast %e : tensor<64x1xf32> -> tensor<64x64xf32>
  %t = arith.subf %s, %w : tensor<64x64xf32>
  %a = arith.truncf %t : tensor<64x64xf32> to tensor<64x64xf16>
  %i = tile.dot %a, %v, %none : tensor<64x64xf16> * tensor<64x128xf16> -> tensor<64x128xf32>
  %sum = arith.subf %o, %i : tensor<64x128xf32>
  %ptrs = tile.splat %p : !tile.ptr<f32> -> tensor<64x128x!tile.ptr<f32>>
  tile.store %ptrs, %sum : tensor<64x128x!tile.ptr<f32>>
  func.return
}

// -----

// Four products at once: each warp has the rows of one, and of b its columns. Both are converted once.

// CHECK: #[[$OF_ROWS:.*]] = #warp.layout<[16, 32], register = {{\[\[}}1, 0], [8, 0]], lane = {{\[\[}}2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = {{\[\[}}0, 8], [0, 16]]>
// CHECK-LABEL: func.func @batch
// CHECK: %[[B:.*]] = warp.convert_layout {{.*}} -> tensor<16x32xf16, #[[$OF_ROWS]]>
// CHECK: %[[A:.*]] = warp.convert_layout {{.*}} -> tensor<64x16xf16, #{{.*}}>
// CHECK-NOT: warp.convert_layout
// CHECK: warp.mma %[[A]], %[[B]], {{.*}} {shape = array<i32: 16, 8, 16>}
func.func @batch(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32>) attributes {tile.kernel} {
  %rows = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %tall = tile.expand_dims %rows {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %inner = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %flat = tile.expand_dims %inner {axis = 0 : i32} : tensor<16xi32> -> tensor<1x16xi32>
  %width = arith.constant dense<16> : tensor<64x1xi32>
  %starts = arith.muli %tall, %width : tensor<64x1xi32>
  %s = tile.broadcast %starts : tensor<64x1xi32> -> tensor<64x16xi32>
  %c = tile.broadcast %flat : tensor<1x16xi32> -> tensor<64x16xi32>
  %at = arith.addi %s, %c : tensor<64x16xi32>
  %base = tile.splat %p : !tile.ptr<f16> -> tensor<64x16x!tile.ptr<f16>>
  %ptrs = tile.addptr %base, %at : tensor<64x16x!tile.ptr<f16>>, tensor<64x16xi32>
  %a = tile.load %ptrs : tensor<64x16x!tile.ptr<f16>>
  %turned = tile.reshape %a : tensor<64x16xf16> -> tensor<32x32xf16>
  %half = tile.reshape %a : tensor<64x16xf16> -> tensor<2x16x32xf16>
  %sum = "tile.reduce"(%half) <{axis = 0 : i32}> ({
  ^bb0(%x: f16, %y: f16):
    %z = arith.addf %x, %y : f16
    "tile.yield"(%z) : (f16) -> ()
  }) : (tensor<2x16x32xf16>) -> tensor<16x32xf16>
  %zero = arith.constant dense<0.0> : tensor<64x8xf32>
  %d = tile.dot %a, %sum, %zero {batch = 4 : i32} : tensor<64x16xf16> * tensor<16x32xf16> -> tensor<64x8xf32>
  %out = tile.splat %q : !tile.ptr<f32> -> tensor<64x8x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x8x!tile.ptr<f32>>
  return
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_80 | FileCheck %s

// Two operands that were of 8 bits, neighbours along K in memory: of each a lane has words of four, in two registers of the
// instruction, and both travel as they were.
// CHECK-DAG: #[[$A:.*]] = #warp.layout<[64, 32], register = {{\[\[}}0, 1], [8, 0], [0, 2], [0, 16], [16, 0]], lane = {{\[\[}}0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp
// CHECK-DAG: #[[$B:.*]] = #warp.layout<[32, 64], register = {{\[\[}}1, 0], [2, 0], [16, 0], [0, 8], [0, 16]], lane = {{\[\[}}4, 0], [8, 0], [0, 1], [0, 2], [0, 4]], warp
// CHECK-DAG: #[[$ACC:.*]] = #warp.layout<[64, 64], register = {{\[\[}}0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = {{\[\[}}0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp
// CHECK-LABEL: func.func @both
// CHECK: warp.convert_layout {{.*}} -> tensor<64x32xf8E5M2, #[[$A]]>
// CHECK: arith.extf {{.*}} to tensor<64x32xf16, #[[$A]]>
// CHECK: warp.convert_layout {{.*}} -> tensor<32x64xf8E5M2, #[[$B]]>
// CHECK: arith.extf {{.*}} to tensor<32x64xf16, #[[$B]]>
// CHECK: warp.mma {{.*}} : tensor<64x32xf16, #[[$A]]> * tensor<32x64xf16, #[[$B]]> -> tensor<64x64xf32, #[[$ACC]]>
func.func @both(%p: !tile.ptr<f8E5M2> {tile.divisibility = 16 : i32}, %q: !tile.ptr<f8E5M2> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %k = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %m = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %c32 = arith.constant dense<32> : tensor<64xi32>
  %mk = arith.muli %m, %c32 : tensor<64xi32>
  %kr = tile.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %kc = tile.expand_dims %k {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %mc = tile.expand_dims %mk {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %mr = tile.expand_dims %mk {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %krb = tile.broadcast %kr : tensor<1x32xi32> -> tensor<64x32xi32>
  %mcb = tile.broadcast %mc : tensor<64x1xi32> -> tensor<64x32xi32>
  %kcb = tile.broadcast %kc : tensor<32x1xi32> -> tensor<32x64xi32>
  %mrb = tile.broadcast %mr : tensor<1x64xi32> -> tensor<32x64xi32>
  %ai = arith.addi %krb, %mcb : tensor<64x32xi32>
  %bi = arith.addi %kcb, %mrb : tensor<32x64xi32>
  %ap = tile.splat %p : !tile.ptr<f8E5M2> -> tensor<64x32x!tile.ptr<f8E5M2>>
  %bp = tile.splat %q : !tile.ptr<f8E5M2> -> tensor<32x64x!tile.ptr<f8E5M2>>
  %aa = tile.addptr %ap, %ai : tensor<64x32x!tile.ptr<f8E5M2>>, tensor<64x32xi32>
  %ba = tile.addptr %bp, %bi : tensor<32x64x!tile.ptr<f8E5M2>>, tensor<32x64xi32>
  %a8 = tile.load %aa : tensor<64x32x!tile.ptr<f8E5M2>>
  %b8 = tile.load %ba : tensor<32x64x!tile.ptr<f8E5M2>>
  %a = arith.extf %a8 : tensor<64x32xf8E5M2> to tensor<64x32xf16>
  %b = arith.extf %b8 : tensor<32x64xf8E5M2> to tensor<32x64xf16>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %a, %b, %z : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// Integers of one operand, which no other warp widens and of which a warp has as much as of the other's rows: the other is
// taken in the same order.
// CHECK-DAG: #[[$A:.*]] = #warp.layout<[16, 32], register = {{\[\[}}0, 1], [8, 0], [0, 2], [0, 16]], lane = {{\[\[}}0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp
// CHECK-DAG: #[[$B:.*]] = #warp.layout<[32, 64], register = {{\[\[}}1, 0], [2, 0], [16, 0], [0, 8]], lane = {{\[\[}}4, 0], [8, 0], [0, 1], [0, 2], [0, 4]], warp
// CHECK-LABEL: func.func @one
// CHECK: warp.convert_layout {{.*}} -> tensor<32x64xi8, #[[$B]]>
// CHECK: arith.sitofp {{.*}} to tensor<32x64xf16, #[[$B]]>
// CHECK: warp.mma {{.*}} : tensor<16x32xf16, #[[$A]]> * tensor<32x64xf16, #[[$B]]>
func.func @one(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %k = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %m = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %n = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %c32 = arith.constant dense<32> : tensor<16xi32>
  %d32 = arith.constant dense<32> : tensor<64xi32>
  %mk = arith.muli %m, %c32 : tensor<16xi32>
  %nk = arith.muli %n, %d32 : tensor<64xi32>
  %kr = tile.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %kc = tile.expand_dims %k {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %mc = tile.expand_dims %mk {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %nr = tile.expand_dims %nk {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %krb = tile.broadcast %kr : tensor<1x32xi32> -> tensor<16x32xi32>
  %mcb = tile.broadcast %mc : tensor<16x1xi32> -> tensor<16x32xi32>
  %kcb = tile.broadcast %kc : tensor<32x1xi32> -> tensor<32x64xi32>
  %nrb = tile.broadcast %nr : tensor<1x64xi32> -> tensor<32x64xi32>
  %ai = arith.addi %krb, %mcb : tensor<16x32xi32>
  %bi = arith.addi %kcb, %nrb : tensor<32x64xi32>
  %ap = tile.splat %p : !tile.ptr<f16> -> tensor<16x32x!tile.ptr<f16>>
  %bp = tile.splat %q : !tile.ptr<i8> -> tensor<32x64x!tile.ptr<i8>>
  %aa = tile.addptr %ap, %ai : tensor<16x32x!tile.ptr<f16>>, tensor<16x32xi32>
  %ba = tile.addptr %bp, %bi : tensor<32x64x!tile.ptr<i8>>, tensor<32x64xi32>
  %a = tile.load %aa : tensor<16x32x!tile.ptr<f16>>
  %b8 = tile.load %ba : tensor<32x64x!tile.ptr<i8>>
  %b = arith.sitofp %b8 : tensor<32x64xi8> to tensor<32x64xf16>
  %z = arith.constant dense<0.0> : tensor<16x64xf32>
  %d = tile.dot %a, %b, %z : tensor<16x32xf16> * tensor<32x64xf16> -> tensor<16x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<16x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<16x64x!tile.ptr<f32>>
  return
}

// -----

// Left alone: neighbours along N; and of one operand, warps of other rows would widen the same.
// CHECK-DAG: #[[$B:.*]] = #warp.layout<[32, 64], register = {{\[\[}}1, 0], [8, 0], [16, 0], [0, 8], [0, 16]], lane = {{\[\[}}2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp
// CHECK-LABEL: func.func @along_n
// CHECK: warp.mma {{.*}} * tensor<32x64xf16, #[[$B]]>
// CHECK-LABEL: func.func @rows_of_other_warps
// CHECK: warp.mma {{.*}} * tensor<32x64xf16, #[[$B]]>
func.func @along_n(%x: f16, %q: !tile.ptr<f8E5M2> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %n = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %nr = tile.expand_dims %n {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %nrb = tile.broadcast %nr : tensor<1x64xi32> -> tensor<32x64xi32>
  %bp = tile.splat %q : !tile.ptr<f8E5M2> -> tensor<32x64x!tile.ptr<f8E5M2>>
  %ba = tile.addptr %bp, %nrb : tensor<32x64x!tile.ptr<f8E5M2>>, tensor<32x64xi32>
  %a = tile.splat %x : f16 -> tensor<64x32xf16>
  %b8 = tile.load %ba : tensor<32x64x!tile.ptr<f8E5M2>>
  %b = arith.extf %b8 : tensor<32x64xf8E5M2> to tensor<32x64xf16>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %a, %b, %z : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x64x!tile.ptr<f32>>
  return
}
func.func @rows_of_other_warps(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<f8E5M2> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %k = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %kr = tile.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %kc = tile.expand_dims %k {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %ai = tile.broadcast %kr : tensor<1x32xi32> -> tensor<64x32xi32>
  %bi = tile.broadcast %kc : tensor<32x1xi32> -> tensor<32x64xi32>
  %ap = tile.splat %p : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>>
  %bp = tile.splat %q : !tile.ptr<f8E5M2> -> tensor<32x64x!tile.ptr<f8E5M2>>
  %aa = tile.addptr %ap, %ai : tensor<64x32x!tile.ptr<f16>>, tensor<64x32xi32>
  %ba = tile.addptr %bp, %bi : tensor<32x64x!tile.ptr<f8E5M2>>, tensor<32x64xi32>
  %a = tile.load %aa : tensor<64x32x!tile.ptr<f16>>
  %b8 = tile.load %ba : tensor<32x64x!tile.ptr<f8E5M2>>
  %b = arith.extf %b8 : tensor<32x64xf8E5M2> to tensor<32x64xf16>
  %z = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %a, %b, %z : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x64x!tile.ptr<f32>>
  return
}

// -----

// Eight numbers of four bits in a word, which neighbours along K load: a lane has all of a word's, which are taken apart where
// they are loaded. Warps of other rows would do the same; so all lie along columns.
// CHECK-DAG: #[[$A:.*]] = #warp.layout<[32, 64], register = {{\[\[}}0, 1], [8, 0], [0, 2], [0, 4], [0, 32], [16, 0]], lane = {{\[\[}}0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = {{\[\[}}0, 0], [0, 0]]>
// CHECK-DAG: #[[$B:.*]] = #warp.layout<[64, 64], register = {{\[\[}}1, 0], [2, 0], [4, 0], [32, 0], [0, 8]], lane = {{\[\[}}8, 0], [16, 0], [0, 1], [0, 2], [0, 4]], warp = {{\[\[}}0, 16], [0, 32]]>
// CHECK-LABEL: func.func @nibbles
// CHECK: tile.load {{.*}}tensor<64x64x!tile.ptr<i32>, #[[$B]]>
// CHECK: arith.shrsi {{.*}} : tensor<64x64xi32, #[[$B]]>
// CHECK: warp.mma {{.*}} : tensor<32x64xf16, #[[$A]]> * tensor<64x64xf16, #[[$B]]>
func.func @nibbles(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<i32> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %k = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %m = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %c64 = arith.constant dense<64> : tensor<32xi32>
  %mk = arith.muli %m, %c64 : tensor<32xi32>
  %kr = tile.expand_dims %k {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %mc = tile.expand_dims %mk {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %krb = tile.broadcast %kr : tensor<1x64xi32> -> tensor<32x64xi32>
  %mcb = tile.broadcast %mc : tensor<32x1xi32> -> tensor<32x64xi32>
  %ai = arith.addi %krb, %mcb : tensor<32x64xi32>
  %ap = tile.splat %p : !tile.ptr<f16> -> tensor<32x64x!tile.ptr<f16>>
  %aa = tile.addptr %ap, %ai : tensor<32x64x!tile.ptr<f16>>, tensor<32x64xi32>
  %a = tile.load %aa : tensor<32x64x!tile.ptr<f16>>
  %c8 = arith.constant dense<8> : tensor<64xi32>
  %c4 = arith.constant dense<4> : tensor<64xi32>
  %d64 = arith.constant dense<64> : tensor<64xi32>
  %word = arith.divsi %k, %c8 : tensor<64xi32>
  %row = arith.muli %word, %d64 : tensor<64xi32>
  %place = arith.remsi %k, %c8 : tensor<64xi32>
  %bits = arith.muli %place, %c4 : tensor<64xi32>
  %rowc = tile.expand_dims %row {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %bitsc = tile.expand_dims %bits {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %rowb = tile.broadcast %rowc : tensor<64x1xi32> -> tensor<64x64xi32>
  %shift = tile.broadcast %bitsc : tensor<64x1xi32> -> tensor<64x64xi32>
  %nb = tile.broadcast %kr : tensor<1x64xi32> -> tensor<64x64xi32>
  %bi = arith.addi %rowb, %nb : tensor<64x64xi32>
  %bp = tile.splat %q : !tile.ptr<i32> -> tensor<64x64x!tile.ptr<i32>>
  %ba = tile.addptr %bp, %bi : tensor<64x64x!tile.ptr<i32>>, tensor<64x64xi32>
  %words = tile.load %ba : tensor<64x64x!tile.ptr<i32>>
  %low = arith.shrsi %words, %shift : tensor<64x64xi32>
  %mask = arith.constant dense<15> : tensor<64x64xi32>
  %number = arith.andi %low, %mask : tensor<64x64xi32>
  %b = arith.sitofp %number : tensor<64x64xi32> to tensor<64x64xf16>
  %z = arith.constant dense<0.0> : tensor<32x64xf32>
  %d = tile.dot %a, %b, %z : tensor<32x64xf16> * tensor<64x64xf16> -> tensor<32x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<32x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<32x64x!tile.ptr<f32>>
  return
}

// -----

// Two in a byte, joined: words of eight bytes, of which four lanes fill a sector.
// CHECK-DAG: #[[$BYTES:.*]] = #warp.layout<[64, 32], register = {{\[\[}}0, 1], [0, 2], [0, 4], [8, 0]], lane = {{\[\[}}0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = {{\[\[}}16, 0], [32, 0]]>
// CHECK-DAG: #[[$B:.*]] = #warp.layout<[64, 64], register = {{\[\[}}1, 0], [2, 0], [4, 0], [8, 0], [0, 8]], lane = {{\[\[}}16, 0], [32, 0], [0, 1], [0, 2], [0, 4]], warp = {{\[\[}}0, 16], [0, 32]]>
// CHECK-LABEL: func.func @joined
// CHECK: tile.load {{.*}}tensor<64x32x!tile.ptr<i8>, #[[$BYTES]]>
// CHECK-NOT: tensor<64x64xf16, #[[$B]]> -> tensor<64x64xf16
// CHECK: warp.mma {{.*}} * tensor<64x64xf16, #[[$B]]>
func.func @joined(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %k = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %m = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %w = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %c64 = arith.constant dense<64> : tensor<16xi32>
  %mk = arith.muli %m, %c64 : tensor<16xi32>
  %kr = tile.expand_dims %k {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %mc = tile.expand_dims %mk {axis = 1 : i32} : tensor<16xi32> -> tensor<16x1xi32>
  %krb = tile.broadcast %kr : tensor<1x64xi32> -> tensor<16x64xi32>
  %mcb = tile.broadcast %mc : tensor<16x1xi32> -> tensor<16x64xi32>
  %ai = arith.addi %krb, %mcb : tensor<16x64xi32>
  %ap = tile.splat %p : !tile.ptr<f16> -> tensor<16x64x!tile.ptr<f16>>
  %aa = tile.addptr %ap, %ai : tensor<16x64x!tile.ptr<f16>>, tensor<16x64xi32>
  %a = tile.load %aa : tensor<16x64x!tile.ptr<f16>>
  %c32 = arith.constant dense<32> : tensor<64xi32>
  %nw = arith.muli %k, %c32 : tensor<64xi32>
  %nc = tile.expand_dims %nw {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %wr = tile.expand_dims %w {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %ncb = tile.broadcast %nc : tensor<64x1xi32> -> tensor<64x32xi32>
  %wrb = tile.broadcast %wr : tensor<1x32xi32> -> tensor<64x32xi32>
  %bi = arith.addi %ncb, %wrb : tensor<64x32xi32>
  %bp = tile.splat %q : !tile.ptr<i8> -> tensor<64x32x!tile.ptr<i8>>
  %ba = tile.addptr %bp, %bi : tensor<64x32x!tile.ptr<i8>>, tensor<64x32xi32>
  %bytes = tile.load %ba : tensor<64x32x!tile.ptr<i8>>
  %four = arith.constant dense<4> : tensor<64x32xi8>
  %mask = arith.constant dense<15> : tensor<64x32xi8>
  %l = arith.andi %bytes, %mask : tensor<64x32xi8>
  %h = arith.shrui %bytes, %four : tensor<64x32xi8>
  %lf = arith.uitofp %l : tensor<64x32xi8> to tensor<64x32xf16>
  %hf = arith.uitofp %h : tensor<64x32xi8> to tensor<64x32xf16>
  %pairs = tile.join %lf, %hf : tensor<64x32xf16> -> tensor<64x32x2xf16>
  %rows = tile.reshape %pairs : tensor<64x32x2xf16> -> tensor<64x64xf16>
  %b = tile.permute %rows {order = array<i32: 1, 0>} : tensor<64x64xf16> -> tensor<64x64xf16>
  %z = arith.constant dense<0.0> : tensor<16x64xf32>
  %d = tile.dot %a, %b, %z : tensor<16x64xf16> * tensor<64x64xf16> -> tensor<16x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<16x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<16x64x!tile.ptr<f32>>
  return
}

// -----

// What is turned behind its widening is turned before; both are left in their order where something else takes the wide
// numbers too.
// CHECK-LABEL: func.func @turned
// CHECK: %[[L:.*]] = tile.load
// CHECK-NEXT: %[[T:.*]] = tile.permute %[[L]] {{.*}} -> tensor<32x64xi8,
// CHECK: arith.sitofp
// CHECK: warp.mma
// CHECK-LABEL: func.func @turned_and_stored
// CHECK: %[[W:.*]] = arith.sitofp
// CHECK: tile.permute {{.*}} -> tensor<32x64xf16,
// CHECK: warp.mma
func.func @turned(%x: f16, %q: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %k = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %kr = tile.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %bi = tile.broadcast %kr : tensor<1x32xi32> -> tensor<64x32xi32>
  %bp = tile.splat %q : !tile.ptr<i8> -> tensor<64x32x!tile.ptr<i8>>
  %ba = tile.addptr %bp, %bi : tensor<64x32x!tile.ptr<i8>>, tensor<64x32xi32>
  %a = tile.splat %x : f16 -> tensor<16x32xf16>
  %b8 = tile.load %ba : tensor<64x32x!tile.ptr<i8>>
  %bw = arith.sitofp %b8 : tensor<64x32xi8> to tensor<64x32xf16>
  %b = tile.permute %bw {order = array<i32: 1, 0>} : tensor<64x32xf16> -> tensor<32x64xf16>
  %z = arith.constant dense<0.0> : tensor<16x64xf32>
  %d = tile.dot %a, %b, %z : tensor<16x32xf16> * tensor<32x64xf16> -> tensor<16x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<16x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<16x64x!tile.ptr<f32>>
  return
}
func.func @turned_and_stored(%x: f16, %q: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %w: !tile.ptr<f16>, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %k = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %kr = tile.expand_dims %k {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %bi = tile.broadcast %kr : tensor<1x32xi32> -> tensor<64x32xi32>
  %bp = tile.splat %q : !tile.ptr<i8> -> tensor<64x32x!tile.ptr<i8>>
  %ba = tile.addptr %bp, %bi : tensor<64x32x!tile.ptr<i8>>, tensor<64x32xi32>
  %a = tile.splat %x : f16 -> tensor<16x32xf16>
  %b8 = tile.load %ba : tensor<64x32x!tile.ptr<i8>>
  %bw = arith.sitofp %b8 : tensor<64x32xi8> to tensor<64x32xf16>
  %wp = tile.splat %w : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>>
  %wa = tile.addptr %wp, %bi : tensor<64x32x!tile.ptr<f16>>, tensor<64x32xi32>
  tile.store %wa, %bw : tensor<64x32x!tile.ptr<f16>>
  %b = tile.permute %bw {order = array<i32: 1, 0>} : tensor<64x32xf16> -> tensor<32x64xf16>
  %z = arith.constant dense<0.0> : tensor<16x64xf32>
  %d = tile.dot %a, %b, %z : tensor<16x32xf16> * tensor<32x64xf16> -> tensor<16x64xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<16x64x!tile.ptr<f32>>
  tile.store %out, %d : tensor<16x64x!tile.ptr<f32>>
  return
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_80 | FileCheck %s

// Neighbours along N of 8 bits: columns are interleaved, so that a lane has both of a pair, in the sums too.
// CHECK-DAG: #[[$ACC:.*]] = #warp.layout<[64, 64], register = {{\[\[}}0, 2], [8, 0], [0, 1], [0, 16], [16, 0]], lane = {{\[\[}}0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp
// CHECK-DAG: #[[$B:.*]] = #warp.layout<[32, 64], register = {{\[\[}}1, 0], [2, 0], [16, 0], [0, 1], [0, 16]], lane = {{\[\[}}4, 0], [8, 0], [0, 2], [0, 4], [0, 8]], warp
// CHECK-LABEL: func.func @columns
// CHECK: warp.mma {{.*}} : {{.*}} * tensor<32x64xi8, #[[$B]]> -> tensor<64x64xi32, #[[$ACC]]>
func.func @columns(%p: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %x: i8, %o: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : i8 -> tensor<64x32xi8>
  %n = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %ne = tile.expand_dims %n {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %nb = tile.broadcast %ne : tensor<1x64xi32> -> tensor<32x64xi32>
  %base = tile.splat %p : !tile.ptr<i8> -> tensor<32x64x!tile.ptr<i8>>
  %ptrs = tile.addptr %base, %nb : tensor<32x64x!tile.ptr<i8>>, tensor<32x64xi32>
  %b = tile.load %ptrs : tensor<32x64x!tile.ptr<i8>>
  %z = arith.constant dense<0> : tensor<64x64xi32>
  %d = tile.dot %a, %b, %z : tensor<64x32xi8> * tensor<32x64xi8> -> tensor<64x64xi32>
  %out = tile.splat %o : !tile.ptr<i32> -> tensor<64x64x!tile.ptr<i32>>
  tile.store %out, %d : tensor<64x64x!tile.ptr<i32>>
  return
}

// -----

// Of the first operand, behind a transposition: rows.
// CHECK-DAG: #[[$ACC:.*]] = #warp.layout<[64, 64], register = {{\[\[}}0, 1], [1, 0], [0, 8], [0, 16], [16, 0]], lane = {{\[\[}}0, 2], [0, 4], [2, 0], [4, 0], [8, 0]], warp
// CHECK-LABEL: func.func @rows
// CHECK: warp.mma {{.*}} -> tensor<64x64xi32, #[[$ACC]]>
func.func @rows(%p: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %x: i8, %o: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %b = tile.splat %x : i8 -> tensor<32x64xi8>
  %n = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %ne = tile.expand_dims %n {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %nb = tile.broadcast %ne : tensor<1x64xi32> -> tensor<32x64xi32>
  %base = tile.splat %p : !tile.ptr<i8> -> tensor<32x64x!tile.ptr<i8>>
  %ptrs = tile.addptr %base, %nb : tensor<32x64x!tile.ptr<i8>>, tensor<32x64xi32>
  %at = tile.load %ptrs : tensor<32x64x!tile.ptr<i8>>
  %a = tile.permute %at {order = array<i32: 1, 0>} : tensor<32x64xi8> -> tensor<64x32xi8>
  %z = arith.constant dense<0> : tensor<64x64xi32>
  %d = tile.dot %a, %b, %z : tensor<64x32xi8> * tensor<32x64xi8> -> tensor<64x64xi32>
  %out = tile.splat %o : !tile.ptr<i32> -> tensor<64x64x!tile.ptr<i32>>
  tile.store %out, %d : tensor<64x64x!tile.ptr<i32>>
  return
}

// -----

// Neighbours along K are one register's.
// CHECK-DAG: #[[$ACC:.*]] = #warp.layout<[64, 64], register = {{\[\[}}0, 1], [8, 0], [0, 8], [0, 16], [16, 0]], lane = {{\[\[}}0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp
// CHECK-LABEL: func.func @along_k
// CHECK: warp.mma {{.*}} -> tensor<64x64xi32, #[[$ACC]]>
func.func @along_k(%p: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %x: i8, %o: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : i8 -> tensor<64x32xi8>
  %k = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %ke = tile.expand_dims %k {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %kb = tile.broadcast %ke : tensor<32x1xi32> -> tensor<32x64xi32>
  %base = tile.splat %p : !tile.ptr<i8> -> tensor<32x64x!tile.ptr<i8>>
  %ptrs = tile.addptr %base, %kb : tensor<32x64x!tile.ptr<i8>>, tensor<32x64xi32>
  %b = tile.load %ptrs : tensor<32x64x!tile.ptr<i8>>
  %z = arith.constant dense<0> : tensor<64x64xi32>
  %d = tile.dot %a, %b, %z : tensor<64x32xi8> * tensor<32x64xi8> -> tensor<64x64xi32>
  %out = tile.splat %o : !tile.ptr<i32> -> tensor<64x64x!tile.ptr<i32>>
  tile.store %out, %d : tensor<64x64x!tile.ptr<i32>>
  return
}

// -----

// A product whose result is another's operand gives it in that one's order; the last one's columns are its own.
// CHECK-DAG: #[[$ACC:.*]] = #warp.layout<[64, 64], register = {{\[\[}}0, 1], [8, 0], {{.*}} lane = {{\[\[}}0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp
// CHECK-DAG: #[[$LAST:.*]] = #warp.layout<[64, 64], register = {{\[\[}}0, 2], [8, 0], {{.*}} lane = {{\[\[}}0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp
// CHECK-LABEL: func.func @chained
// CHECK: warp.mma {{.*}} -> tensor<64x64xi32, #[[$ACC]]>
// CHECK: warp.mma {{.*}} -> tensor<64x64xi32, #[[$LAST]]>
func.func @chained(%p: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %x: i8, %o: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : i8 -> tensor<64x32xi8>
  %n = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %ne = tile.expand_dims %n {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %nb = tile.broadcast %ne : tensor<1x64xi32> -> tensor<32x64xi32>
  %base = tile.splat %p : !tile.ptr<i8> -> tensor<32x64x!tile.ptr<i8>>
  %ptrs = tile.addptr %base, %nb : tensor<32x64x!tile.ptr<i8>>, tensor<32x64xi32>
  %b = tile.load %ptrs : tensor<32x64x!tile.ptr<i8>>
  %z = arith.constant dense<0> : tensor<64x64xi32>
  %d = tile.dot %a, %b, %z : tensor<64x32xi8> * tensor<32x64xi8> -> tensor<64x64xi32>
  %t = arith.trunci %d : tensor<64x64xi32> to tensor<64x64xi8>
  %m = tile.broadcast %ne : tensor<1x64xi32> -> tensor<64x64xi32>
  %more = tile.splat %p : !tile.ptr<i8> -> tensor<64x64x!tile.ptr<i8>>
  %cp = tile.addptr %more, %m : tensor<64x64x!tile.ptr<i8>>, tensor<64x64xi32>
  %c = tile.load %cp : tensor<64x64x!tile.ptr<i8>>
  %e = tile.dot %t, %c, %z : tensor<64x64xi8> * tensor<64x64xi8> -> tensor<64x64xi32>
  %out = tile.splat %o : !tile.ptr<i32> -> tensor<64x64x!tile.ptr<i32>>
  tile.store %out, %e : tensor<64x64x!tile.ptr<i32>>
  return
}

// -----

// Two products add to one sum, of which the second has its neighbours along K: neither is interleaved.
// CHECK-DAG: #[[$ACC:.*]] = #warp.layout<[64, 64], register = {{\[\[}}0, 1], [8, 0], {{.*}} lane = {{\[\[}}0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp
// CHECK-LABEL: func.func @one_sum
// CHECK-COUNT-2: warp.mma {{.*}} -> tensor<64x64xi32, #[[$ACC]]>
func.func @one_sum(%p: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %x: i8, %o: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : i8 -> tensor<64x32xi8>
  %n = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %ne = tile.expand_dims %n {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %nb = tile.broadcast %ne : tensor<1x64xi32> -> tensor<32x64xi32>
  %k = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %ke = tile.expand_dims %k {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %kb = tile.broadcast %ke : tensor<32x1xi32> -> tensor<32x64xi32>
  %base = tile.splat %p : !tile.ptr<i8> -> tensor<32x64x!tile.ptr<i8>>
  %along_n = tile.addptr %base, %nb : tensor<32x64x!tile.ptr<i8>>, tensor<32x64xi32>
  %along_k = tile.addptr %base, %kb : tensor<32x64x!tile.ptr<i8>>, tensor<32x64xi32>
  %b = tile.load %along_n : tensor<32x64x!tile.ptr<i8>>
  %c = tile.load %along_k : tensor<32x64x!tile.ptr<i8>>
  %z = arith.constant dense<0> : tensor<64x64xi32>
  %d = tile.dot %a, %b, %z : tensor<64x32xi8> * tensor<32x64xi8> -> tensor<64x64xi32>
  %e = tile.dot %a, %c, %d : tensor<64x32xi8> * tensor<32x64xi8> -> tensor<64x64xi32>
  %out = tile.splat %o : !tile.ptr<i32> -> tensor<64x64x!tile.ptr<i32>>
  tile.store %out, %e : tensor<64x64x!tile.ptr<i32>>
  return
}

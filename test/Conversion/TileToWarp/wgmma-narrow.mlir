// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_90a --remarks-filter-missed=products 2>%t | FileCheck %s
// RUN: FileCheck %s --check-prefix=REMARK --input-file=%t

// Operands of 8 bits whose neighbours lie along K, and computed ones, which lie as they are stored.
// CHECK-LABEL: func.func @along_k
// CHECK: warp.wgmma {{.*}} {shape = array<i32: 64, 64, 32>} : tensor<64x32xi8, {{.*}}> * tensor<32x64xi8, {{.*}}> -> tensor<64x64xi32
// CHECK-NEXT: warp.wgmma_wait
// REMARK-NOT: Function=along_k
func.func @along_k(%p: !tile.ptr<i8>, %x: i8, %o: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
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

// 8-bit floats.
// CHECK-LABEL: func.func @floats
// CHECK: warp.wgmma {{.*}} {shape = array<i32: 64, 16, 32>} : tensor<64x32xf8E4M3FN, {{.*}} -> tensor<64x16xf32
// REMARK-NOT: Function=floats
func.func @floats(%x: f8E4M3FN, %o: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : f8E4M3FN -> tensor<64x32xf8E4M3FN>
  %b = tile.splat %x : f8E4M3FN -> tensor<32x16xf8E4M3FN>
  %z = arith.constant dense<0.0> : tensor<64x16xf32>
  %d = tile.dot %a, %b, %z : tensor<64x32xf8E4M3FN> * tensor<32x16xf8E4M3FN> -> tensor<64x16xf32>
  %out = tile.splat %o : !tile.ptr<f32> -> tensor<64x16x!tile.ptr<f32>>
  tile.store %out, %d : tensor<64x16x!tile.ptr<f32>>
  return
}

// -----

// Neighbours along N are no operand of these instructions: those of single warps take it.
// CHECK-LABEL: func.func @along_n
// CHECK-NOT: warp.wgmma
// CHECK: warp.mma {{.*}} {shape = array<i32: 16, 8, 32>}
// REMARK: Function=along_n | Reason="the product is made by instructions of single warps: its instructions take operands of this type whose neighbours in memory follow along K"
func.func @along_n(%p: !tile.ptr<i8>, %x: i8, %o: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
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

// A value has one tile, which lies one way: x · x would have it both ways, x · xᵀ has not.
// CHECK-LABEL: func.func @two_ways
// CHECK: warp.mma {{.*}} {shape = array<i32: 16, 8, 32>}
// CHECK: warp.wgmma
// REMARK: Function=two_ways | Reason="the product is made by instructions of single warps: an operand would have to lie in two ways, and its type is not turned"
// REMARK-NOT: Function=two_ways
func.func @two_ways(%x: i8, %o: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %a = tile.splat %x : i8 -> tensor<64x64xi8>
  %z = arith.constant dense<0> : tensor<64x64xi32>
  %d = tile.dot %a, %a, %z : tensor<64x64xi8> * tensor<64x64xi8> -> tensor<64x64xi32>
  %t = tile.permute %a {order = array<i32: 1, 0>} : tensor<64x64xi8> -> tensor<64x64xi8>
  %e = tile.dot %a, %t, %z : tensor<64x64xi8> * tensor<64x64xi8> -> tensor<64x64xi32>
  %s = arith.addi %d, %e : tensor<64x64xi32>
  %out = tile.splat %o : !tile.ptr<i32> -> tensor<64x64x!tile.ptr<i32>>
  tile.store %out, %s : tensor<64x64x!tile.ptr<i32>>
  return
}

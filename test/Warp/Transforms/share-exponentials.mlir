// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --pass-pipeline='builtin.module(func.func(warp-share-exponentials))' --split-input-file | FileCheck %s

#a = #warp.layout<[256, 128], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0], [128, 0]]>
#row = #warp.layout<[256], register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64], [128]]>
#q = #warp.layout<[256, 128], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0], [0, 64]]>
#k = #warp.layout<[128, 128], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32], [0, 64], [64, 0]]>

// Of two products of 128 channels a quarter of the exponentials is computed by polynomials; those of rows, of which a
// thread has one, are not, nor those before the loop.
// CHECK-LABEL: func.func @quarter
// CHECK: math.exp2 %arg3 : tensor
// CHECK: scf.for
// CHECK: math.exp2 %{{.*}} {warp.by_polynomial = 4 : i32} : tensor<256x128xf32
// CHECK: math.exp2 %arg4 : tensor<256xf32
module attributes {warp.target = "sm_100a"} {
  func.func @quarter(%n: i32, %q: !warp.shared<256x128xf16, #q>, %k: !warp.shared<128x128xf16, #k>, %x: tensor<256x128xf32, #a>, %m: tensor<256xf32, #row>) -> (tensor<256x128xf32, #a>, tensor<256x128xf32, #a>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %z = arith.constant dense<0.0> : tensor<256x128xf32, #a>
    %before = math.exp2 %x : tensor<256x128xf32, #a>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<256x128xf32, #a>) : i32 {
      %d = warp.wgmma %q, %k, %z {shape = array<i32: 128, 128, 16>} : !warp.shared<256x128xf16, #q> * !warp.shared<128x128xf16, #k> -> tensor<256x128xf32, #a>
      %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<256x128xf32, #a>
      %w = math.exp2 %e : tensor<256x128xf32, #a>
      %f = math.exp2 %m : tensor<256xf32, #row>
      %h = arith.truncf %w : tensor<256x128xf32, #a> to tensor<256x128xf16, #a>
      %o = warp.wgmma %h, %k, %s {shape = array<i32: 128, 128, 16>} : tensor<256x128xf16, #a> * !warp.shared<128x128xf16, #k> -> tensor<256x128xf32, #a>
      %t = warp.wgmma_wait %o {pending = 0 : i32} : tensor<256x128xf32, #a>
      scf.yield %t : tensor<256x128xf32, #a>
    }
    return %r, %before : tensor<256x128xf32, #a>, tensor<256x128xf32, #a>
  }
}

// -----

#a = #warp.layout<[128, 128], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#row = #warp.layout<[128], register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>
#q = #warp.layout<[128, 128], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0], [0, 64]]>
#k = #warp.layout<[128, 128], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32], [0, 64], [64, 0]]>

// A scheduler's only warp computes nothing beside its products, so that more are worth it; those of rows, of which a
// thread has one, are not, nor those before the loop.
// CHECK-LABEL: func.func @alone
// CHECK: math.exp2 %arg3 : tensor
// CHECK: scf.for
// CHECK: math.exp2 %{{.*}} {warp.by_polynomial = 6 : i32} : tensor<128x128xf32
// CHECK: math.exp2 %arg4 : tensor<128xf32
module attributes {warp.target = "sm_100a"} {
  func.func @alone(%n: i32, %q: !warp.shared<128x128xf16, #q>, %k: !warp.shared<128x128xf16, #k>, %x: tensor<128x128xf32, #a>, %m: tensor<128xf32, #row>) -> (tensor<128x128xf32, #a>, tensor<128x128xf32, #a>) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %z = arith.constant dense<0.0> : tensor<128x128xf32, #a>
    %before = math.exp2 %x : tensor<128x128xf32, #a>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<128x128xf32, #a>) : i32 {
      %d = warp.wgmma %q, %k, %z {shape = array<i32: 128, 128, 16>} : !warp.shared<128x128xf16, #q> * !warp.shared<128x128xf16, #k> -> tensor<128x128xf32, #a>
      %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<128x128xf32, #a>
      %w = math.exp2 %e : tensor<128x128xf32, #a>
      %f = math.exp2 %m : tensor<128xf32, #row>
      %h = arith.truncf %w : tensor<128x128xf32, #a> to tensor<128x128xf16, #a>
      %o = warp.wgmma %h, %k, %s {shape = array<i32: 128, 128, 16>} : tensor<128x128xf16, #a> * !warp.shared<128x128xf16, #k> -> tensor<128x128xf32, #a>
      %t = warp.wgmma_wait %o {pending = 0 : i32} : tensor<128x128xf32, #a>
      scf.yield %t : tensor<128x128xf32, #a>
    }
    return %r, %before : tensor<128x128xf32, #a>, tensor<128x128xf32, #a>
  }
}

// -----

#a = #warp.layout<[256, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0], [128, 0]]>
#q = #warp.layout<[256, 256], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0], [0, 64], [0, 128]]>
#k = #warp.layout<[256, 32], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [64, 0], [128, 0]]>

// Products of many channels take longer than exponentials.
// CHECK-LABEL: func.func @long_products
// CHECK-NOT: warp.by_polynomial
module attributes {warp.target = "sm_100a"} {
  func.func @long_products(%n: i32, %q: !warp.shared<256x256xf16, #q>, %k: !warp.shared<256x32xf16, #k>, %x: tensor<256x32xf32, #a>) -> tensor<256x32xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 8, stages = 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %z = arith.constant dense<0.0> : tensor<256x32xf32, #a>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<256x32xf32, #a>) : i32 {
      %d = warp.wgmma %q, %k, %z {shape = array<i32: 128, 32, 16>} : !warp.shared<256x256xf16, #q> * !warp.shared<256x32xf16, #k> -> tensor<256x32xf32, #a>
      %o = warp.wgmma %q, %k, %d {shape = array<i32: 128, 32, 16>} : !warp.shared<256x256xf16, #q> * !warp.shared<256x32xf16, #k> -> tensor<256x32xf32, #a>
      %e = warp.wgmma_wait %o {pending = 0 : i32} : tensor<256x32xf32, #a>
      %w = math.exp2 %e : tensor<256x32xf32, #a>
      %t = arith.addf %s, %w : tensor<256x32xf32, #a>
      scf.yield %t : tensor<256x32xf32, #a>
    }
    return %r : tensor<256x32xf32, #a>
  }
}

// -----

#a = #warp.layout<[64, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#q = #warp.layout<[64, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0]]>
#k = #warp.layout<[16, 128], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8], [0, 16], [0, 32], [0, 64]]>

// A target that does not compute two f32 at once has the unit compute all; so has a loop without products of warpgroups.
// CHECK-LABEL: func.func @one_by_one
// CHECK-NOT: warp.by_polynomial
module attributes {warp.target = "sm_90a"} {
  func.func @one_by_one(%n: i32, %q: !warp.shared<64x16xf16, #q>, %k: !warp.shared<16x128xf16, #k>, %x: tensor<64x128xf32, #a>) -> tensor<64x128xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %z = arith.constant dense<0.0> : tensor<64x128xf32, #a>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<64x128xf32, #a>) : i32 {
      %d = warp.wgmma %q, %k, %z {shape = array<i32: 64, 128, 16>} : !warp.shared<64x16xf16, #q> * !warp.shared<16x128xf16, #k> -> tensor<64x128xf32, #a>
      %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x128xf32, #a>
      %w = math.exp2 %e : tensor<64x128xf32, #a>
      %t = arith.addf %s, %w : tensor<64x128xf32, #a>
      scf.yield %t : tensor<64x128xf32, #a>
    }
    return %r : tensor<64x128xf32, #a>
  }
}

// -----

#a = #warp.layout<[128, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>

// CHECK-LABEL: func.func @no_products
// CHECK-NOT: warp.by_polynomial
module attributes {warp.target = "sm_100a"} {
  func.func @no_products(%n: i32, %x: tensor<128x32xf32, #a>) -> tensor<128x32xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<128x32xf32, #a>) : i32 {
      %w = math.exp2 %s : tensor<128x32xf32, #a>
      scf.yield %w : tensor<128x32xf32, #a>
    }
    return %r : tensor<128x32xf32, #a>
  }
}

// -----

#a = #warp.layout<[128, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#q = #warp.layout<[128, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0], [64, 0]]>
#k = #warp.layout<[16, 32], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8], [0, 16]]>

// A loop around another one is left alone: the inner one has what counts, and its own products.
// CHECK-LABEL: func.func @around
// CHECK-NOT: warp.by_polynomial
module attributes {warp.target = "sm_100a"} {
  func.func @around(%n: i32, %q: !warp.shared<128x16xf16, #q>, %k: !warp.shared<16x32xf16, #k>, %x: tensor<128x32xf32, #a>) -> tensor<128x32xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %z = arith.constant dense<0.0> : tensor<128x32xf32, #a>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<128x32xf32, #a>) : i32 {
      %d = warp.wgmma %q, %k, %z {shape = array<i32: 128, 32, 16>} : !warp.shared<128x16xf16, #q> * !warp.shared<16x32xf16, #k> -> tensor<128x32xf32, #a>
      %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<128x32xf32, #a>
      %f = scf.for %j = %c0 to %n step %c1 iter_args(%t = %e) -> (tensor<128x32xf32, #a>) : i32 {
        %w = math.exp2 %t : tensor<128x32xf32, #a>
        scf.yield %w : tensor<128x32xf32, #a>
      }
      scf.yield %f : tensor<128x32xf32, #a>
    }
    return %r : tensor<128x32xf32, #a>
  }
}

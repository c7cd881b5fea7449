// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-take-turns | FileCheck %s
// RUN: sed -e 's/warps = 8/warps = 4/' %s | weft-opt --warp-take-turns | FileCheck %s --check-prefix=NONE
#a = #warp.layout<[128, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0], [64, 0]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
#b = #warp.layout<[1], offset = []>

// One warpgroup has none to take turns with.
// NONE-NOT: warp.turn

module attributes {warp.target = "sm_90a"} {
  // The last warpgroup lets the first begin, which takes the turn back at the end.
  // CHECK-LABEL: func.func @turns
  // CHECK: warp.turn_pass {last}
  // CHECK-NEXT: scf.for
  // CHECK: warp.turn_wait
  // CHECK-NEXT: warp.wgmma
  // CHECK-NEXT: warp.wgmma
  // CHECK-NEXT: warp.turn_pass
  // CHECK-NEXT: warp.wgmma_wait %{{.*}} {pending = 1 : i32}
  // CHECK: scf.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: warp.turn_wait {first}
  func.func @turns(%n: i32, %a: tensor<128x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>, %x: tensor<128x16xf32, #a>, %full: !warp.shared<1xi64, #b>) -> tensor<128x16xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %z = arith.constant dense<0.0> : tensor<128x16xf32, #a>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x, %p = %a) -> (tensor<128x16xf32, #a>, tensor<128x16xf16, #a>) : i32 {
      warp.produce {
        warp.mbarrier_expect %full {bytes = 32768 : i64} : !warp.shared<1xi64, #b>
      }
      %d = warp.wgmma %a, %s, %z {shape = array<i32: 64, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
      %e = warp.wgmma %p, %s, %acc {shape = array<i32: 64, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
      %y = warp.wgmma_wait %d {pending = 1 : i32} : tensor<128x16xf32, #a>
      %w = math.exp2 %y : tensor<128x16xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<128x16xf32, #a>
      %h = arith.truncf %w : tensor<128x16xf32, #a> to tensor<128x16xf16, #a>
      scf.yield %o, %h : tensor<128x16xf32, #a>, tensor<128x16xf16, #a>
    }
    return %r#0 : tensor<128x16xf32, #a>
  }

  // Of loops that follow one another the turn goes on: a turn that the last one passed before would not be taken yet.
  // CHECK-LABEL: func.func @goes_on
  // CHECK: warp.turn_pass {last}
  // CHECK-NEXT: scf.for
  // CHECK: warp.turn_wait
  // CHECK: warp.turn_pass
  // CHECK: scf.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: scf.for
  // CHECK: warp.turn_wait
  // CHECK: warp.turn_pass
  // CHECK: scf.yield
  // CHECK-NEXT: }
  // CHECK-NEXT: warp.turn_wait {first}
  func.func @goes_on(%n: i32, %m: i32, %a: tensor<128x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>, %x: tensor<128x16xf32, #a>, %full: !warp.shared<1xi64, #b>) -> tensor<128x16xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %z = arith.constant dense<0.0> : tensor<128x16xf32, #a>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x, %p = %a) -> (tensor<128x16xf32, #a>, tensor<128x16xf16, #a>) : i32 {
      warp.produce {
        warp.mbarrier_expect %full {bytes = 32768 : i64} : !warp.shared<1xi64, #b>
      }
      %d = warp.wgmma %a, %s, %z {shape = array<i32: 64, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
      %e = warp.wgmma %p, %s, %acc {shape = array<i32: 64, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
      %y = warp.wgmma_wait %d {pending = 1 : i32} : tensor<128x16xf32, #a>
      %w = math.exp2 %y : tensor<128x16xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<128x16xf32, #a>
      %h = arith.truncf %w : tensor<128x16xf32, #a> to tensor<128x16xf16, #a>
      scf.yield %o, %h : tensor<128x16xf32, #a>, tensor<128x16xf16, #a>
    }
    %t:2 = scf.for %i = %n to %m step %c1 iter_args(%acc = %r#0, %p = %r#1) -> (tensor<128x16xf32, #a>, tensor<128x16xf16, #a>) : i32 {
      warp.produce {
        warp.mbarrier_expect %full {bytes = 32768 : i64} : !warp.shared<1xi64, #b>
      }
      %d = warp.wgmma %a, %s, %z {shape = array<i32: 64, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
      %e = warp.wgmma %p, %s, %acc {shape = array<i32: 64, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
      %y = warp.wgmma_wait %d {pending = 1 : i32} : tensor<128x16xf32, #a>
      %w = math.exp2 %y : tensor<128x16xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<128x16xf32, #a>
      %h = arith.truncf %w : tensor<128x16xf32, #a> to tensor<128x16xf16, #a>
      scf.yield %o, %h : tensor<128x16xf32, #a>, tensor<128x16xf16, #a>
    }
    return %t#0 : tensor<128x16xf32, #a>
  }

  // CHECK-NOT: warp.turn
  func.func @meet(%n: i32, %a: tensor<128x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>, %x: tensor<128x16xf32, #a>, %full: !warp.shared<1xi64, #b>) -> tensor<128x16xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %z = arith.constant dense<0.0> : tensor<128x16xf32, #a>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x, %p = %a) -> (tensor<128x16xf32, #a>, tensor<128x16xf16, #a>) : i32 {
      warp.produce {
        warp.mbarrier_expect %full {bytes = 32768 : i64} : !warp.shared<1xi64, #b>
      }
      warp.barrier
      %d = warp.wgmma %a, %s, %z {shape = array<i32: 64, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
      %e = warp.wgmma %p, %s, %acc {shape = array<i32: 64, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
      %y = warp.wgmma_wait %d {pending = 1 : i32} : tensor<128x16xf32, #a>
      %w = math.exp2 %y : tensor<128x16xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<128x16xf32, #a>
      %h = arith.truncf %w : tensor<128x16xf32, #a> to tensor<128x16xf16, #a>
      scf.yield %o, %h : tensor<128x16xf32, #a>, tensor<128x16xf16, #a>
    }
    return %r#0 : tensor<128x16xf32, #a>
  }

  func.func @long_products(%n: i32, %a: tensor<128x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>, %x: tensor<128x16xf32, #a>, %full: !warp.shared<1xi64, #b>) -> tensor<128x16xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %z = arith.constant dense<0.0> : tensor<128x16xf32, #a>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x, %p = %a) -> (tensor<128x16xf32, #a>, tensor<128x16xf16, #a>) : i32 {
      warp.produce {
        warp.mbarrier_expect %full {bytes = 32768 : i64} : !warp.shared<1xi64, #b>
      }
      %d = warp.wgmma %a, %s, %z {shape = array<i32: 64, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
      %e = warp.wgmma %p, %s, %acc {shape = array<i32: 64, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
      %y = warp.wgmma_wait %d {pending = 1 : i32} : tensor<128x16xf32, #a>
      %w = arith.mulf %y, %x : tensor<128x16xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<128x16xf32, #a>
      %h = arith.truncf %w : tensor<128x16xf32, #a> to tensor<128x16xf16, #a>
      scf.yield %o, %h : tensor<128x16xf32, #a>, tensor<128x16xf16, #a>
    }
    return %r#0 : tensor<128x16xf32, #a>
  }

  // One product under way at a time.
  func.func @one(%n: i32, %a: tensor<128x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>, %x: tensor<128x16xf32, #a>, %full: !warp.shared<1xi64, #b>) -> tensor<128x16xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x) -> (tensor<128x16xf32, #a>) : i32 {
      warp.produce {
        warp.mbarrier_expect %full {bytes = 32768 : i64} : !warp.shared<1xi64, #b>
      }
      %d = warp.wgmma %a, %s, %acc {shape = array<i32: 64, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
      %y = warp.wgmma_wait %d {pending = 0 : i32} : tensor<128x16xf32, #a>
      %w = math.exp2 %y : tensor<128x16xf32, #a>
      scf.yield %w : tensor<128x16xf32, #a>
    }
    return %r : tensor<128x16xf32, #a>
  }

  // All warps make copies, and meet for them.
  func.func @no_producer(%n: i32, %a: tensor<128x16xf16, #a>, %s: !warp.shared<16x16xf16, #s>, %x: tensor<128x16xf32, #a>) -> tensor<128x16xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %z = arith.constant dense<0.0> : tensor<128x16xf32, #a>
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %x, %p = %a) -> (tensor<128x16xf32, #a>, tensor<128x16xf16, #a>) : i32 {
      %d = warp.wgmma %a, %s, %z {shape = array<i32: 64, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
      %e = warp.wgmma %p, %s, %acc {shape = array<i32: 64, 16, 16>} : tensor<128x16xf16, #a> * !warp.shared<16x16xf16, #s> -> tensor<128x16xf32, #a>
      %y = warp.wgmma_wait %d {pending = 1 : i32} : tensor<128x16xf32, #a>
      %w = math.exp2 %y : tensor<128x16xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<128x16xf32, #a>
      %h = arith.truncf %w : tensor<128x16xf32, #a> to tensor<128x16xf16, #a>
      scf.yield %o, %h : tensor<128x16xf32, #a>, tensor<128x16xf16, #a>
    }
    return %r#0 : tensor<128x16xf32, #a>
  }
}

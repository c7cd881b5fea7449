// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-keep-rings | FileCheck %s

// The ring and its barriers stand around the outer loop, which carries on where it is; the first copy of an iteration goes
// there, when what lay there has been read: the phase before that for which the inner loop's first wait is.
// CHECK-LABEL: func.func @kept
// CHECK: %[[TILES:.*]] = warp.alloc : <stages = 2, 8x64xf16
// CHECK-NEXT: %[[RING:.*]] = warp.alloc : <stages = 2, 2xi64
// CHECK-NEXT: warp.proxy_fence
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.mbarrier_init %[[RING]] {arrivals = array<i64: 1, 8>}
// CHECK-NEXT: warp.barrier {withProducer}
// CHECK-NEXT: scf.for {{.*}} iter_args(%[[TURN:.*]] = %{{.*}}, %[[STAGE:.*]] = %{{.*}}) -> (i32, i32)
// CHECK-NOT: warp.mbarrier_init
// CHECK: %[[BEFORE:.*]] = arith.xori %[[TURN]], %{{.*}} : i32
// CHECK-NEXT: warp.produce {
// CHECK-NEXT: %[[FULL:.*]] = warp.stage %[[RING]][%[[STAGE]]]
// CHECK-NEXT: warp.mbarrier_wait %[[FULL]], %[[BEFORE]] {index = 1 : i64}
// CHECK-NEXT: warp.mbarrier_expect %[[FULL]]
// CHECK: %[[AT:.*]]:3 = scf.for {{.*}} iter_args(%{{.*}} = %[[STAGE]], %{{.*}} = %[[TURN]], %{{.*}} = %{{.*}}) -> (i32, i32, i32)
// CHECK-NOT: warp.mbarrier_inval
// CHECK: scf.yield %[[AT]]#1, %[[AT]]#0 : i32, i32
// CHECK: warp.barrier
// CHECK-NEXT: warp.mbarrier_inval %[[RING]]
// CHECK-NEXT: warp.dealloc %[[RING]]
// CHECK-NEXT: warp.dealloc %[[TILES]]

// Warps that arrive an iteration late end a phase more of the ring's last stage: the copy waits for the turn of the iteration
// in which the stage's arrival is made, which is the next one's.
// CHECK-LABEL: func.func @late
// CHECK: scf.for {{.*}} iter_args(%[[TURN:.*]] = %{{.*}}, %[[STAGE:.*]] = %{{.*}}, %[[READ:.*]] = %{{.*}}) -> (i32, i32, i32)
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[STAGE]], %{{.*}} : i32
// CHECK: %[[FLIPS:.*]] = arith.extui %[[LAST]]
// CHECK: %[[NEXT:.*]] = arith.xori %[[TURN]], %[[FLIPS]]
// CHECK: %[[BEFORE:.*]] = arith.xori %[[NEXT]], %{{.*}} : i32
// CHECK-NEXT: warp.produce {
// CHECK: warp.mbarrier_wait %{{.*}}, %[[BEFORE]] {index = 1 : i64}
// CHECK: scf.for {{.*}} iter_args(%{{.*}} = %[[STAGE]], %{{.*}} = %[[TURN]], %{{.*}} = %[[READ]])
#b = #warp.layout<[2], offset = [[1]]>
#s = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
module attributes {warp.target = "sm_90a"} {
  func.func @kept(%n: i32, %map: !warp.tensor_map) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2048 = arith.constant 2048 : i32
    scf.for %t = %c0 to %n step %c1 : i32 {
      %tiles = warp.alloc : !warp.shared<stages = 2, 8x64xf16, #s>
      %ring = warp.alloc : !warp.shared<stages = 2, 2xi64, #b>
      warp.proxy_fence
      warp.barrier
      warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
      warp.barrier {withProducer}
      warp.produce {
        %full = warp.stage %ring[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
        warp.mbarrier_expect %full {bytes = 1024 : i64} : !warp.shared<2xi64, #b>
        %to = warp.stage %tiles[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s> -> !warp.shared<8x64xf16, #s>
        warp.box_copy %map[%c0, %t] to %to on %full : !warp.shared<8x64xf16, #s>, !warp.shared<2xi64, #b>
      }
      %at:3 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0, %turn = %c0, %read = %c2048) -> (i32, i32, i32) : i32 {
        %full = warp.stage %ring[%stage] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
        warp.mbarrier_wait %full, %turn : !warp.shared<2xi64, #b>
        %freed = arith.xori %stage, %c2048 : i32
        warp.produce {
          %empty = warp.stage %ring[%freed] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
          warp.mbarrier_wait %empty, %turn {index = 1 : i64} : !warp.shared<2xi64, #b>
        }
        %done = warp.stage %ring[%stage] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
        warp.mbarrier_arrive %done {index = 1 : i64} : !warp.shared<2xi64, #b>
        %last = arith.cmpi eq, %stage, %c2048 : i32
        %flips = arith.extui %last : i1 to i32
        %next = arith.xori %turn, %flips : i32
        scf.yield %freed, %next, %stage : i32, i32, i32
      }
      warp.barrier
      warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
      warp.dealloc %ring : !warp.shared<stages = 2, 2xi64, #b>
      warp.dealloc %tiles : !warp.shared<stages = 2, 8x64xf16, #s>
    }
    return
  }

  func.func @late(%n: i32, %map: !warp.tensor_map) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2048 = arith.constant 2048 : i32
    scf.for %t = %c0 to %n step %c1 : i32 {
      %tiles = warp.alloc : !warp.shared<stages = 2, 8x64xf16, #s>
      %ring = warp.alloc : !warp.shared<stages = 2, 2xi64, #b>
      warp.proxy_fence
      warp.barrier
      warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
      warp.barrier {withProducer}
      warp.produce {
        %full = warp.stage %ring[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
        warp.mbarrier_expect %full {bytes = 1024 : i64} : !warp.shared<2xi64, #b>
        %to = warp.stage %tiles[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s> -> !warp.shared<8x64xf16, #s>
        warp.box_copy %map[%c0, %t] to %to on %full : !warp.shared<8x64xf16, #s>, !warp.shared<2xi64, #b>
      }
      %at:3 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0, %turn = %c0, %read = %c2048) -> (i32, i32, i32) : i32 {
        %full = warp.stage %ring[%stage] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
        warp.mbarrier_wait %full, %turn : !warp.shared<2xi64, #b>
        %freed = arith.xori %stage, %c2048 : i32
        warp.produce {
          %empty = warp.stage %ring[%freed] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
          warp.mbarrier_wait %empty, %turn {index = 1 : i64} : !warp.shared<2xi64, #b>
        }
        %done = warp.stage %ring[%read] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
        warp.mbarrier_arrive %done {index = 1 : i64} : !warp.shared<2xi64, #b>
        %last = arith.cmpi eq, %stage, %c2048 : i32
        %flips = arith.extui %last : i1 to i32
        %next = arith.xori %turn, %flips : i32
        scf.yield %freed, %next, %stage : i32, i32, i32
      }
      warp.barrier
      warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
      warp.dealloc %ring : !warp.shared<stages = 2, 2xi64, #b>
      warp.dealloc %tiles : !warp.shared<stages = 2, 8x64xf16, #s>
    }
    return
  }
}

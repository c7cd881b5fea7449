// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-keep-rings | FileCheck %s

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

// -----

// Of a loop whose products run late the place and turn go on too; copies before it wait, and warps arrive behind it.
// CHECK-LABEL: func.func @late_products
// CHECK: warp.mbarrier_init %[[RING:.*]] {arrivals
// CHECK: %{{.*}}:2 = scf.for {{.*}} iter_args(%[[PLACE:.*]] = %{{.*}}, %[[TURN:.*]] = %{{.*}}) -> (i32, i32)
// CHECK: warp.produce {
// CHECK: %[[EMPTY:.*]] = warp.stage %[[RING]][%[[PLACE]]]
// CHECK-NEXT: warp.mbarrier_wait %[[EMPTY]], %{{.*}} {index = 1 : i64}
// CHECK: scf.for
// CHECK: scf.yield
// CHECK: warp.mbarrier_arrive
// CHECK: %[[LAST:.*]] = warp.stage %[[RING]]
// CHECK-NEXT: warp.mbarrier_wait %[[LAST]], %{{[^ ]*}} : <2xi64
// CHECK-NEXT: warp.wgmma_wait
// CHECK: warp.mbarrier_arrive %[[LAST]] {index = 1 : i64, together}
// CHECK: warp.mbarrier_inval %[[RING]] :

// In no loop, or where shared memory has no room for it beside the loop's other tiles, it starts at 0, and is not said to go
// on.
// CHECK-LABEL: func.func @in_no_loop
// CHECK-NOT: warp.ring_start
// CHECK: warp.mbarrier_inval %{{[^ ]*}} :
#b = #warp.layout<[2], offset = [[1]]>
#s = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#t = #warp.layout<[8, 64], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp = [[1, 0], [2, 0], [4, 0]]>
module attributes {warp.target = "sm_90a"} {
  func.func @late_products(%n: i32, %p: !tile.ptr<f16>, %q: !tile.ptr<i32>, %s: i64, %e64: i64, %v: tensor<8x64xf16, #t>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c30 = arith.constant 1073741824 : i32
    %c31 = arith.constant 31 : i32
    %c2048 = arith.constant 2048 : i32
    %x = tile.program_id x : i32
    %count = tile.num_programs x : i32
    %map = warp.tensor_map %p sizes(%e64, %e64) strides(%s) {box = array<i32: 64, 8>} : !tile.ptr<f16>
    %first = warp.is_first_thread
    scf.for %t = %c0 to %n step %c1 : i32 {
    %beside = warp.alloc : !warp.shared<8x64xf16, #s>
    %any = arith.cmpi sgt, %n, %t : i32
    scf.if %any {
      %tiles = warp.alloc : !warp.shared<stages = 2, 8x64xf16, #s>
      %ring = warp.alloc : !warp.shared<stages = 2, 2xi64, #b>
      warp.proxy_fence
      warp.barrier
      warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
      warp.barrier {withProducer}
      warp.produce {
        scf.if %first {
          %full = warp.stage %ring[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
          warp.mbarrier_expect %full {bytes = 2048 : i64} : !warp.shared<2xi64, #b>
          warp.box_copy %map[%c0, %t] to %beside on %full : !warp.shared<8x64xf16, #s>, !warp.shared<2xi64, #b>
          %to = warp.stage %tiles[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s> -> !warp.shared<8x64xf16, #s>
          warp.box_copy %map[%c0, %c0] to %to on %full : !warp.shared<8x64xf16, #s>, !warp.shared<2xi64, #b>
        }
      }
      %place, %freed, %turn = warp.ring_start %ring {before = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b>
      %r:2 = scf.if %any -> (i32, i32) {
        %parity = arith.shrui %turn, %c31 : i32
        %full = warp.stage %ring[%place] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
        warp.mbarrier_wait %full, %parity : !warp.shared<2xi64, #b>
        %other = arith.xori %place, %c2048 : i32
        warp.produce {
          scf.if %first {
            %next = warp.stage %ring[%other] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
            warp.mbarrier_expect %next {bytes = 1024 : i64} : !warp.shared<2xi64, #b>
          }
        }
        %second = arith.addi %turn, %c30 : i32
        %l:3 = scf.for %i = %c1 to %n step %c1 iter_args(%at = %other, %now = %second, %before = %parity) -> (i32, i32, i32) : i32 {
          warp.wgmma_wait {pending = 0 : i32}
          %read = arith.xori %at, %c2048 : i32
          %done = warp.stage %ring[%read] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
          warp.mbarrier_arrive %done {index = 1 : i64, together} : !warp.shared<2xi64, #b>
          %even = arith.shrui %now, %c31 : i32
          %here = warp.stage %ring[%at] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
          warp.mbarrier_wait %here, %even : !warp.shared<2xi64, #b>
          warp.produce {
            scf.if %first {
              warp.mbarrier_wait %done, %before {index = 1 : i64} : !warp.shared<2xi64, #b>
              warp.mbarrier_expect %done {bytes = 1024 : i64} : !warp.shared<2xi64, #b>
            }
          }
          %then = arith.addi %now, %c30 : i32
          scf.yield %read, %then, %even : i32, i32, i32
        }
        warp.wgmma_wait {pending = 0 : i32}
        %even = arith.shrui %l#1, %c31 : i32
        %last = warp.stage %ring[%l#0] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
        warp.mbarrier_wait %last, %even : !warp.shared<2xi64, #b>
        warp.wgmma_wait {pending = 0 : i32}
        %behind = arith.xori %l#0, %c2048 : i32
        %then = arith.addi %l#1, %c30 : i32
        scf.yield %behind, %then : i32, i32
      } else {
        scf.yield %place, %turn : i32, i32
      }
      warp.barrier
      warp.mbarrier_inval %ring next %r#0, %r#1 : !warp.shared<stages = 2, 2xi64, #b>
      warp.dealloc %ring : !warp.shared<stages = 2, 2xi64, #b>
      warp.dealloc %tiles : !warp.shared<stages = 2, 8x64xf16, #s>
    }
    warp.dealloc %beside : !warp.shared<8x64xf16, #s>
    }
    return
  }

  func.func @in_no_loop(%n: i32, %p: !tile.ptr<f16>, %q: !tile.ptr<i32>, %s: i64, %e64: i64, %v: tensor<8x64xf16, #t>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c30 = arith.constant 1073741824 : i32
    %c31 = arith.constant 31 : i32
    %c2048 = arith.constant 2048 : i32
    %x = tile.program_id x : i32
    %count = tile.num_programs x : i32
    %map = warp.tensor_map %p sizes(%e64, %e64) strides(%s) {box = array<i32: 64, 8>} : !tile.ptr<f16>
    %any = arith.cmpi sgt, %n, %x : i32
    %first = warp.is_first_thread
    %beside = warp.alloc : !warp.shared<8x64xf16, #s>
    scf.if %any {
      %tiles = warp.alloc : !warp.shared<stages = 2, 8x64xf16, #s>
      %ring = warp.alloc : !warp.shared<stages = 2, 2xi64, #b>
      warp.proxy_fence
      warp.barrier
      warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
      warp.barrier {withProducer}
      warp.produce {
        scf.if %first {
          %full = warp.stage %ring[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
          warp.mbarrier_expect %full {bytes = 2048 : i64} : !warp.shared<2xi64, #b>
          warp.box_copy %map[%c0, %x] to %beside on %full : !warp.shared<8x64xf16, #s>, !warp.shared<2xi64, #b>
          %to = warp.stage %tiles[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s> -> !warp.shared<8x64xf16, #s>
          warp.box_copy %map[%c0, %c0] to %to on %full : !warp.shared<8x64xf16, #s>, !warp.shared<2xi64, #b>
        }
      }
      %place, %freed, %turn = warp.ring_start %ring {before = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b>
      %r:2 = scf.if %any -> (i32, i32) {
        %parity = arith.shrui %turn, %c31 : i32
        %full = warp.stage %ring[%place] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
        warp.mbarrier_wait %full, %parity : !warp.shared<2xi64, #b>
        %other = arith.xori %place, %c2048 : i32
        warp.produce {
          scf.if %first {
            %next = warp.stage %ring[%other] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
            warp.mbarrier_expect %next {bytes = 1024 : i64} : !warp.shared<2xi64, #b>
          }
        }
        %second = arith.addi %turn, %c30 : i32
        %l:3 = scf.for %i = %c1 to %n step %c1 iter_args(%at = %other, %now = %second, %before = %parity) -> (i32, i32, i32) : i32 {
          warp.wgmma_wait {pending = 0 : i32}
          %read = arith.xori %at, %c2048 : i32
          %done = warp.stage %ring[%read] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
          warp.mbarrier_arrive %done {index = 1 : i64, together} : !warp.shared<2xi64, #b>
          %even = arith.shrui %now, %c31 : i32
          %here = warp.stage %ring[%at] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
          warp.mbarrier_wait %here, %even : !warp.shared<2xi64, #b>
          warp.produce {
            scf.if %first {
              warp.mbarrier_wait %done, %before {index = 1 : i64} : !warp.shared<2xi64, #b>
              warp.mbarrier_expect %done {bytes = 1024 : i64} : !warp.shared<2xi64, #b>
            }
          }
          %then = arith.addi %now, %c30 : i32
          scf.yield %read, %then, %even : i32, i32, i32
        }
        warp.wgmma_wait {pending = 0 : i32}
        %even = arith.shrui %l#1, %c31 : i32
        %last = warp.stage %ring[%l#0] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
        warp.mbarrier_wait %last, %even : !warp.shared<2xi64, #b>
        warp.wgmma_wait {pending = 0 : i32}
        %behind = arith.xori %l#0, %c2048 : i32
        %then = arith.addi %l#1, %c30 : i32
        scf.yield %behind, %then : i32, i32
      } else {
        scf.yield %place, %turn : i32, i32
      }
      warp.barrier
      warp.mbarrier_inval %ring next %r#0, %r#1 : !warp.shared<stages = 2, 2xi64, #b>
      warp.dealloc %ring : !warp.shared<stages = 2, 2xi64, #b>
      warp.dealloc %tiles : !warp.shared<stages = 2, 8x64xf16, #s>
    }
    warp.dealloc %beside : !warp.shared<8x64xf16, #s>
    %o = warp.alloc : !warp.shared<8x64xf16, #s>
    warp.store_shared %v, %o : tensor<8x64xf16, #t> -> !warp.shared<8x64xf16, #s>
    warp.barrier
    scf.if %first {
      warp.box_store %o to %map[%c0, %x] : !warp.shared<8x64xf16, #s>
      warp.box_commit
    }
    %stores = warp.is_first_thread
    scf.if %stores {
      warp.box_wait %o : !warp.shared<8x64xf16, #s>
    }
    warp.dealloc %o : !warp.shared<8x64xf16, #s>
    tile.store %q, %count : !tile.ptr<i32>
    return
  }
}

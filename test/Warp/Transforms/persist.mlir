// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-persist | FileCheck %s

// A block goes over the programs of its grid, whose extents a launch passes: in each other round from the last to the first.
// The ring and what is copied beside its first tiles stand around the loop, which carries on where the ring is. Copies before
// the inner loop wait until what lay there has been read; warps arrive behind it for the last two stages. The thread that
// stores waits for its box of the program before where it fills the tile again.
// CHECK-LABEL: func.func @over_programs
// CHECK: %[[MAP:.*]] = warp.tensor_map
// CHECK-NEXT: %[[X:.*]], %[[Y:.*]], %{{.*}} = warp.programs
// CHECK-NEXT: %[[BLOCK:.*]] = tile.program_id x
// CHECK-NEXT: %[[BLOCKS:.*]] = tile.num_programs x
// CHECK: arith.divui %{{.*}}, %[[BLOCKS]]
// CHECK: %[[BESIDE:.*]] = warp.alloc : <8x64xf16
// CHECK-NEXT: %[[TILES:.*]] = warp.alloc : <stages = 2, 8x64xf16
// CHECK-NEXT: %[[RING:.*]] = warp.alloc : <stages = 2, 2xi64
// CHECK-NEXT: warp.proxy_fence
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.mbarrier_init %[[RING]]
// CHECK-NEXT: warp.barrier {withProducer}
// CHECK-NEXT: %[[STORED:.*]] = warp.alloc : <8x64xf16
// CHECK-NEXT: scf.for %[[ROUND:.*]] = {{.*}} iter_args(%[[PLACE:.*]] = %{{.*}}, %[[TURN:.*]] = %{{.*}}) -> (i32, i32)
// CHECK-NEXT: %[[DONE:.*]] = arith.muli %[[ROUND]], %[[BLOCKS]]
// CHECK-NEXT: %[[ODD:.*]] = arith.trunci %[[ROUND]] : i32 to i1
// CHECK-NEXT: %[[WITHIN:.*]] = arith.select %[[ODD]], %{{.*}}, %[[BLOCK]]
// CHECK-NEXT: %[[NUMBER:.*]] = arith.addi %[[DONE]], %[[WITHIN]]
// CHECK-NEXT: %[[REST:.*]] = arith.divui %[[NUMBER]], %[[X]]
// CHECK-NEXT: %[[BEFORE:.*]] = arith.muli %[[REST]], %[[X]]
// CHECK-NEXT: %[[ID:.*]] = arith.subi %[[NUMBER]], %[[BEFORE]]
// CHECK: arith.divui %[[REST]], %[[Y]]
// CHECK: %[[NEXT:.*]]:2 = scf.if
// CHECK: warp.produce {
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[EMPTY:.*]] = warp.stage %[[RING]][%[[PLACE]]]
// CHECK-NEXT: warp.mbarrier_wait %[[EMPTY]], %{{.*}} {index = 1 : i64}
// CHECK: warp.mbarrier_expect
// CHECK-NEXT: warp.box_copy %[[MAP]][%{{.*}}, %[[ID]]] to %[[BESIDE]]
// CHECK: warp.produce {
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[SECOND:.*]] = warp.stage %[[RING]]
// CHECK-NEXT: warp.mbarrier_wait %[[SECOND]], %{{.*}} {index = 1 : i64}
// CHECK: scf.for
// CHECK: scf.yield
// CHECK-NEXT: {{^ *}}}
// CHECK-NEXT: warp.wgmma_wait
// CHECK-NEXT: arith.xori
// CHECK-NEXT: %[[READ:.*]] = warp.stage %[[RING]]
// CHECK-NEXT: warp.mbarrier_arrive %[[READ]] {index = 1 : i64, together}
// CHECK: %[[LAST:.*]] = warp.stage %[[RING]]
// CHECK-NEXT: warp.mbarrier_wait %[[LAST]]
// CHECK-NEXT: warp.wgmma_wait
// CHECK: warp.mbarrier_arrive %[[LAST]] {index = 1 : i64, together}
// CHECK-NOT: warp.mbarrier_inval
// CHECK: scf.yield %[[PLACE]], %[[TURN]]
// CHECK: warp.box_wait %[[STORED]]
// CHECK: warp.store_shared %{{.*}}, %[[STORED]]
// CHECK: warp.box_store %[[STORED]]
// CHECK-NOT: warp.box_wait
// CHECK: tile.store %{{.*}}, %[[X]]
// CHECK-NEXT: scf.yield %[[NEXT]]#0, %[[NEXT]]#1
// CHECK: warp.box_wait %[[STORED]]
// CHECK: warp.mbarrier_inval %[[RING]] :

// Nobody has asked for it.
// CHECK-LABEL: func.func @one_program
// CHECK-NOT: warp.programs
// CHECK: warp.ring_start
#b = #warp.layout<[2], offset = [[1]]>
#s = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#t = #warp.layout<[8, 64], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], warp = [[1, 0], [2, 0], [4, 0]]>
module attributes {warp.target = "sm_90a"} {
  func.func @over_programs(%n: i32, %p: !tile.ptr<f16>, %q: !tile.ptr<i32>, %s: i64, %e64: i64, %v: tensor<8x64xf16, #t>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, persistent = true>} {
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

  func.func @one_program(%n: i32, %p: !tile.ptr<f16>, %q: !tile.ptr<i32>, %s: i64, %e64: i64, %v: tensor<8x64xf16, #t>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
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

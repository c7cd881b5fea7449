// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-own-bytes | FileCheck %s

// A ring in bytes that nothing has before begins without a wait: the producer makes its barriers, copies, and arrives where the others wait for what they have copied themselves. Nothing has its bytes behind it, and it needs no end.

#b = #warp.layout<[2], offset = [[1]]>
#s = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
module attributes {warp.target = "sm_90a"} {
  // CHECK-LABEL: func.func @alone
  // CHECK: %[[RING:.*]] = warp.alloc {offset = 1024 : i64, pitch = 2048 : i64}
  // CHECK-NEXT: warp.produce {
  // CHECK-NEXT: warp.mbarrier_init %[[RING]]
  // CHECK-NEXT: {{^ *}}}
  // CHECK-NEXT: warp.produce {
  // CHECK-NEXT: warp.stage
  // CHECK-NEXT: warp.mbarrier_expect
  // CHECK-NEXT: {{^ *}}}
  // CHECK-NEXT: warp.async_wait
  // CHECK-NEXT: warp.barrier {producerArrives, withProducer}
  // CHECK-NEXT: warp.dealloc %[[RING]]
  // CHECK-NEXT: warp.alloc {offset = 8192 : i64}
  func.func @alone(%c0: i32) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %tiles = warp.alloc {offset = 0 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s>
    %ring = warp.alloc {offset = 1024 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b>
    warp.proxy_fence
    warp.barrier
    warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
    warp.barrier {withProducer}
    warp.produce {
      %full = warp.stage %ring[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
      warp.mbarrier_expect %full {bytes = 1024 : i64} : !warp.shared<2xi64, #b>
    }
    warp.async_wait {pending = 0 : i32}
    warp.barrier
    warp.barrier
    warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
    warp.dealloc %ring : !warp.shared<stages = 2, 2xi64, #b>
    %other = warp.alloc {offset = 8192 : i64} : !warp.shared<8x64xf16, #s>
    return
  }

  // Where copies of one of the warps that compute fill it, that makes the barriers, without the wait before.
  // CHECK-LABEL: func.func @one_role
  // CHECK: %[[RING:.*]] = warp.alloc {offset = 1024 : i64, pitch = 2048 : i64}
  // CHECK-NEXT: warp.mbarrier_init %[[RING]]
  // CHECK-NEXT: warp.barrier
  // CHECK-NEXT: warp.dealloc
  func.func @one_role() attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %tiles = warp.alloc {offset = 0 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s>
    %ring = warp.alloc {offset = 1024 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b>
    warp.proxy_fence
    warp.barrier
    warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
    warp.barrier
    warp.barrier
    warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
    warp.dealloc %ring : !warp.shared<stages = 2, 2xi64, #b>
    return
  }

  // Of two rings in the same bytes the first has no wait before, and the second none behind.
  // CHECK-LABEL: func.func @two
  // CHECK: warp.produce {
  // CHECK-NEXT: warp.mbarrier_init
  // CHECK-NEXT: {{^ *}}}
  // CHECK-NEXT: warp.barrier {producerArrives, withProducer}
  // CHECK-NEXT: warp.mbarrier_inval
  // CHECK: warp.proxy_fence
  // CHECK-NEXT: warp.barrier
  // CHECK-NEXT: warp.mbarrier_init
  // CHECK-NEXT: warp.barrier {withProducer}
  // CHECK-NEXT: warp.dealloc
  func.func @two() attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %tiles = warp.alloc {offset = 0 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s>
    %ring = warp.alloc {offset = 1024 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b>
    warp.proxy_fence
    warp.barrier
    warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
    warp.barrier {withProducer}
    warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
    warp.dealloc %ring : !warp.shared<stages = 2, 2xi64, #b>
    %others = warp.alloc {offset = 0 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s>
    %next = warp.alloc {offset = 1024 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b>
    warp.proxy_fence
    warp.barrier
    warp.mbarrier_init %next {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
    warp.barrier {withProducer}
    warp.barrier
    warp.mbarrier_inval %next : !warp.shared<stages = 2, 2xi64, #b>
    warp.dealloc %next : !warp.shared<stages = 2, 2xi64, #b>
    return
  }

  // A tile before, in the tiles' bytes, keeps the wait; one behind keeps the end only where it has the barriers' bytes, but the wait always.
  // CHECK-LABEL: func.func @others
  // CHECK: warp.proxy_fence
  // CHECK-NEXT: warp.barrier
  // CHECK-NEXT: warp.mbarrier_init
  // CHECK-NEXT: warp.barrier {withProducer}
  // CHECK-NEXT: warp.barrier
  // CHECK-NEXT: warp.dealloc
  // CHECK-NEXT: warp.alloc
  func.func @others() attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %first = warp.alloc {offset = 2048 : i64} : !warp.shared<8x64xf16, #s>
    warp.dealloc %first : !warp.shared<8x64xf16, #s>
    %tiles = warp.alloc {offset = 0 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s>
    %ring = warp.alloc {offset = 1024 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b>
    warp.proxy_fence
    warp.barrier
    warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
    warp.barrier {withProducer}
    warp.barrier
    warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
    warp.dealloc %ring : !warp.shared<stages = 2, 2xi64, #b>
    %last = warp.alloc {offset = 0 : i64} : !warp.shared<8x64xf16, #s>
    return
  }

  // In a loop a ring comes again.
  // CHECK-LABEL: func.func @in_loop
  // CHECK: warp.barrier
  // CHECK-NEXT: warp.mbarrier_init
  // CHECK-NEXT: warp.barrier {withProducer}
  // CHECK-NEXT: warp.barrier
  // CHECK-NEXT: warp.mbarrier_inval
  func.func @in_loop(%c0: i32, %n: i32, %c1: i32) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    scf.for %i = %c0 to %n step %c1 : i32 {
      %tiles = warp.alloc {offset = 0 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s>
      %ring = warp.alloc {offset = 1024 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b>
      warp.barrier
      warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
      warp.barrier {withProducer}
      warp.barrier
      warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
      warp.dealloc %ring : !warp.shared<stages = 2, 2xi64, #b>
    }
    return
  }

  // The blocks of a cluster arrive at one another's barriers: none begins alone, or leaves while others may.
  // CHECK-LABEL: func.func @cluster
  // CHECK: warp.barrier
  // CHECK-NEXT: warp.mbarrier_init
  // CHECK-NEXT: warp.barrier {withProducer}
  // CHECK-NEXT: warp.barrier
  // CHECK-NEXT: warp.mbarrier_inval
  func.func @cluster() attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, cluster = 2>} {
    %tiles = warp.alloc {offset = 0 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s>
    %ring = warp.alloc {offset = 1024 : i64, pitch = 2048 : i64} : !warp.shared<stages = 2, 2xi64, #b>
    warp.barrier
    warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
    warp.barrier {withProducer}
    warp.barrier
    warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
    warp.dealloc %ring : !warp.shared<stages = 2, 2xi64, #b>
    return
  }
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-keep-rings --remarks-filter-missed=loops -o /dev/null 2>&1 | FileCheck %s
// RUN: weft-opt %s --warp-keep-rings | FileCheck %s --check-prefix=LEFT

// CHECK-NOT: Function=kept
// CHECK: remark: [Missed] kept-rings | Category:loops | Function=moves | Reason="the ring begins anew in each iteration of the loop around its own: where its copies go depends on the iteration"
// CHECK: remark: [Missed] kept-rings | Category:loops | Function=large | Reason="the ring begins anew in each iteration of the loop around its own: shared memory does not hold it beside the other tiles of the loop around it"
// LEFT-LABEL: func.func @kept
// LEFT: warp.mbarrier_init
// LEFT: scf.for
// LEFT-LABEL: func.func @moves
// LEFT: scf.for
// LEFT: warp.mbarrier_init
// LEFT-LABEL: func.func @large
// LEFT: scf.for
// LEFT: warp.mbarrier_init
#b = #warp.layout<[2], offset = [[1]]>
#s = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#large = #warp.layout<[1024, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0], [256, 0], [512, 0]]>
#most = #warp.layout<[512, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0], [256, 0]]>
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

  func.func @moves(%n: i32, %map: !warp.tensor_map) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
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
      %at:3 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %t, %turn = %c0, %read = %c2048) -> (i32, i32, i32) : i32 {
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

  func.func @large(%n: i32, %map: !warp.tensor_map) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c2048 = arith.constant 2048 : i32
    scf.for %t = %c0 to %n step %c1 : i32 {
      %more = warp.alloc : !warp.shared<1024x64xf16, #large>
      %other = warp.alloc : !warp.shared<512x64xf16, #most>
      %third = warp.alloc : !warp.shared<512x64xf16, #most>
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
      warp.dealloc %more : !warp.shared<1024x64xf16, #large>
      warp.dealloc %other : !warp.shared<512x64xf16, #most>
      warp.dealloc %third : !warp.shared<512x64xf16, #most>
    }
    return
  }
}

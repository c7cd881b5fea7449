// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-persist --remarks-filter-missed=loops -o /dev/null 2>&1 | FileCheck %s
// RUN: weft-opt %s --warp-persist --remarks-filter-analyse=loops -o /dev/null 2>&1 | FileCheck %s --check-prefix=DONE
// RUN: weft-opt %s --warp-persist | FileCheck %s --check-prefix=LEFT

// DONE: remark: [Analysis] persistent | Category:loops | Function=over_programs | Reason="each multiprocessor has one block, which goes over the grid's programs"
// DONE-NOT: remark:
// CHECK-NOT: Function=over_programs
// CHECK: remark: [Missed] block-per-program | Category:loops | Function=alone | Reason="each program is a block of its own: no warp of its own makes the copies of its loop"
// CHECK: remark: [Missed] block-per-program | Category:loops | Function=several | Reason="each program is a block of its own: it has several rings of copies"
// CHECK: remark: [Missed] block-per-program | Category:loops | Function=early | Reason="each program is a block of its own: it is begun in a branch"
// CHECK: remark: [Missed] block-per-program | Category:loops | Function=inside | Reason="each program is a block of its own: its ring stands in a loop"
// CHECK: remark: [Missed] block-per-program | Category:loops | Function=small | Reason="each program is a block of its own: a multiprocessor holds several of its blocks"
// CHECK: remark: [Missed] block-per-program | Category:loops | Function=large | Reason="each program is a block of its own: shared memory does not hold its ring beside what it stores"
// LEFT-LABEL: func.func @over_programs
// LEFT: warp.programs
// LEFT-NOT: warp.programs
#b = #warp.layout<[2], offset = [[1]]>
#c = #warp.layout<[1], offset = []>
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

  func.func @alone(%n: i32, %p: !tile.ptr<f16>, %q: !tile.ptr<i32>, %s: i64, %e64: i64, %v: tensor<8x64xf16, #t>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, persistent = true>} {
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
      %ring = warp.alloc : !warp.shared<stages = 2, 1xi64, #c>
      warp.proxy_fence
      warp.barrier
      warp.mbarrier_init %ring  : !warp.shared<stages = 2, 1xi64, #c>
      warp.barrier {withProducer}
      warp.produce {
        scf.if %first {
          %full = warp.stage %ring[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 1xi64, #c> -> !warp.shared<1xi64, #c>
          warp.mbarrier_expect %full {bytes = 2048 : i64} : !warp.shared<1xi64, #c>
          warp.box_copy %map[%c0, %x] to %beside on %full : !warp.shared<8x64xf16, #s>, !warp.shared<1xi64, #c>
          %to = warp.stage %tiles[%c0] {step = 2048 : i64} : !warp.shared<stages = 2, 8x64xf16, #s> -> !warp.shared<8x64xf16, #s>
          warp.box_copy %map[%c0, %c0] to %to on %full : !warp.shared<8x64xf16, #s>, !warp.shared<1xi64, #c>
        }
      }
      %place, %freed, %turn = warp.ring_start %ring {before = 2048 : i64} : !warp.shared<stages = 2, 1xi64, #c>
      %r:2 = scf.if %any -> (i32, i32) {
        %parity = arith.shrui %turn, %c31 : i32
        %full = warp.stage %ring[%place] {step = 2048 : i64} : !warp.shared<stages = 2, 1xi64, #c> -> !warp.shared<1xi64, #c>
        warp.mbarrier_wait %full, %parity : !warp.shared<1xi64, #c>
        %other = arith.xori %place, %c2048 : i32
        warp.produce {
          scf.if %first {
            %next = warp.stage %ring[%other] {step = 2048 : i64} : !warp.shared<stages = 2, 1xi64, #c> -> !warp.shared<1xi64, #c>
            warp.mbarrier_expect %next {bytes = 1024 : i64} : !warp.shared<1xi64, #c>
          }
        }
        %second = arith.addi %turn, %c30 : i32
        %l:3 = scf.for %i = %c1 to %n step %c1 iter_args(%at = %other, %now = %second, %before = %parity) -> (i32, i32, i32) : i32 {
          warp.wgmma_wait {pending = 0 : i32}
          %read = arith.xori %at, %c2048 : i32
          %done = warp.stage %ring[%read] {step = 2048 : i64} : !warp.shared<stages = 2, 1xi64, #c> -> !warp.shared<1xi64, #c>
          warp.mbarrier_arrive %done {together} : !warp.shared<1xi64, #c>
          %even = arith.shrui %now, %c31 : i32
          %here = warp.stage %ring[%at] {step = 2048 : i64} : !warp.shared<stages = 2, 1xi64, #c> -> !warp.shared<1xi64, #c>
          warp.mbarrier_wait %here, %even : !warp.shared<1xi64, #c>
          warp.produce {
            scf.if %first {
              warp.mbarrier_wait %done, %before : !warp.shared<1xi64, #c>
              warp.mbarrier_expect %done {bytes = 1024 : i64} : !warp.shared<1xi64, #c>
            }
          }
          %then = arith.addi %now, %c30 : i32
          scf.yield %read, %then, %even : i32, i32, i32
        }
        warp.wgmma_wait {pending = 0 : i32}
        %even = arith.shrui %l#1, %c31 : i32
        %last = warp.stage %ring[%l#0] {step = 2048 : i64} : !warp.shared<stages = 2, 1xi64, #c> -> !warp.shared<1xi64, #c>
        warp.mbarrier_wait %last, %even : !warp.shared<1xi64, #c>
        warp.wgmma_wait {pending = 0 : i32}
        %behind = arith.xori %l#0, %c2048 : i32
        %then = arith.addi %l#1, %c30 : i32
        scf.yield %behind, %then : i32, i32
      } else {
        scf.yield %place, %turn : i32, i32
      }
      warp.barrier
      warp.mbarrier_inval %ring next %r#0, %r#1 : !warp.shared<stages = 2, 1xi64, #c>
      warp.dealloc %ring : !warp.shared<stages = 2, 1xi64, #c>
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

  func.func @several(%n: i32, %p: !tile.ptr<f16>, %q: !tile.ptr<i32>, %s: i64, %e64: i64, %v: tensor<8x64xf16, #t>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, persistent = true>} {
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
    %more = warp.alloc : !warp.shared<stages = 2, 2xi64, #b>
    warp.mbarrier_init %more {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
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

  func.func @early(%n: i32, %p: !tile.ptr<f16>, %q: !tile.ptr<i32>, %s: i64, %e64: i64, %v: tensor<8x64xf16, #t>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, persistent = true>} {
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
      warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
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

  func.func @inside(%n: i32, %p: !tile.ptr<f16>, %q: !tile.ptr<i32>, %s: i64, %e64: i64, %v: tensor<8x64xf16, #t>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, persistent = true>} {
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
    scf.for %outer = %c0 to %n step %c1 : i32 {
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

  func.func @small(%n: i32, %p: !tile.ptr<f16>, %q: !tile.ptr<i32>, %s: i64, %e64: i64, %v: tensor<8x64xf16, #t>) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2, persistent = true>} {
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
      warp.mbarrier_init %ring {arrivals = array<i64: 1, 4>} : !warp.shared<stages = 2, 2xi64, #b>
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

  func.func @large(%n: i32, %p: !tile.ptr<f16>, %q: !tile.ptr<i32>, %s: i64, %e64: i64, %v: tensor<8x64xf16, #t>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, persistent = true>} {
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
    %large = warp.alloc : !warp.shared<stages = 224, 8x64xf16, #s>
    warp.dealloc %large : !warp.shared<stages = 224, 8x64xf16, #s>
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

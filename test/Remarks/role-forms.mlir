// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-specialise --remarks-filter-missed=loops -o /dev/null 2>&1 | FileCheck %s
// RUN: weft-opt %s --warp-specialise | FileCheck %s --check-prefix=LEFT
// Loops with a ring of bulk copies whose form is another than that of which the copies' warp can be made; test/Remarks/roles.mlir
// has those that are of the form.
#b = #warp.layout<[1], offset = []>
#s = #warp.layout<[128, 256], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [0, 128], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [64, 0]]>
#r = #warp.layout<[128, 256], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0], [64, 0], [0, 128]], lane = [[0, 8], [0, 16], [0, 32], [0, 64], [1, 0]], warp = [[2, 0], [4, 0], [8, 0]]>
#o = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[0], [0], [0]]>

// CHECK: remark: [Missed] warp-roles | Category:loops | Function=no_wait | Reason="one thread of the warps that compute makes the loop's copies: its waits do not stand in one loop behind its first copies"
// CHECK: remark: [Missed] warp-roles | Category:loops | Function=no_branch | Reason="one thread of the warps that compute makes the loop's copies: its copies do not stand in one branch of an iteration"
// CHECK: remark: [Missed] warp-roles | Category:loops | Function=other_tile | Reason="one thread of the warps that compute makes the loop's copies: an iteration reads tiles of another one"
// CHECK: remark: [Missed] warp-roles | Category:loops | Function=written | Reason="one thread of the warps that compute makes the loop's copies: threads write its tiles"
// CHECK: remark: [Missed] warp-roles | Category:loops | Function=unread | Reason="one thread of the warps that compute makes the loop's copies: nothing reads its tiles"
// CHECK: remark: [Missed] warp-roles | Category:loops | Function=two_warps | Reason="one thread of the warps that compute makes the loop's copies: the block has no room for a warpgroup more, or no whole warpgroups"
// CHECK: remark: [Missed] warp-roles | Category:loops | Function=full_block | Reason="one thread of the warps that compute makes the loop's copies: the block has no room for a warpgroup more, or no whole warpgroups"
// CHECK: remark: [Missed] warp-roles | Category:loops | Function=together | Reason="one thread of the warps that compute makes the loop's copies: they need a value that all threads compute together"
// CHECK: remark: [Missed] warp-roles | Category:loops | Function=once | Reason="one thread of the warps that compute makes the loop's copies: they need what only one of two programs may do"
// CHECK: remark: [Missed] warp-roles | Category:loops | Function=may_be_written | Reason="one thread of the warps that compute makes the loop's copies: they need a number that the kernel itself may write"
// CHECK: remark: [Missed] warp-roles | Category:loops | Function=left_early | Reason="one thread of the warps that compute makes the loop's copies: they stand in a loop that is left before its end"

// LEFT-NOT: warp.produce
// LEFT-NOT: warp.mbarrier_arrive

module attributes {warp.target = "sm_90a"} {
  func.func @no_wait(%n: i32, %w: tensor<128x256xf16, #r>, %x: tensor<64xi32, #o>, %p: !tile.ptr<i32>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %pitch = arith.constant 65536 : i32
    %ring = warp.alloc : !warp.shared<stages = 2, 128x256xf16, #s>
    %bars = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
    warp.mbarrier_init %bars : !warp.shared<stages = 2, 1xi64, #b>
    %first = warp.is_first_thread
    scf.if %first {
      %to = warp.stage %bars[%c0] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
    }
    warp.barrier
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0, %parity = %c0) -> (i32, i32) : i32 {
      %full = warp.stage %bars[%stage] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      %freed = arith.xori %stage, %pitch : i32
      scf.if %first {
        %to = warp.stage %bars[%freed] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
        warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
      }
      %t = warp.stage %ring[%stage] : !warp.shared<stages = 2, 128x256xf16, #s> -> !warp.shared<128x256xf16, #s>
      %v = warp.load_shared %t : !warp.shared<128x256xf16, #s> -> tensor<128x256xf16, #r>
      scf.yield %freed, %parity : i32, i32
    }
    return
  }

  func.func @no_branch(%n: i32, %w: tensor<128x256xf16, #r>, %x: tensor<64xi32, #o>, %p: !tile.ptr<i32>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %pitch = arith.constant 65536 : i32
    %ring = warp.alloc : !warp.shared<stages = 2, 128x256xf16, #s>
    %bars = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
    warp.mbarrier_init %bars : !warp.shared<stages = 2, 1xi64, #b>
    %first = warp.is_first_thread
    scf.if %first {
      %to = warp.stage %bars[%c0] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
    }
    warp.barrier
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0, %parity = %c0) -> (i32, i32) : i32 {
      %full = warp.stage %bars[%stage] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_wait %full, %parity : !warp.shared<1xi64, #b>
      warp.barrier
      %freed = arith.xori %stage, %pitch : i32
      %to = warp.stage %bars[%freed] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
      %t = warp.stage %ring[%stage] : !warp.shared<stages = 2, 128x256xf16, #s> -> !warp.shared<128x256xf16, #s>
      %v = warp.load_shared %t : !warp.shared<128x256xf16, #s> -> tensor<128x256xf16, #r>
      scf.yield %freed, %parity : i32, i32
    }
    return
  }

  func.func @other_tile(%n: i32, %w: tensor<128x256xf16, #r>, %x: tensor<64xi32, #o>, %p: !tile.ptr<i32>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %pitch = arith.constant 65536 : i32
    %ring = warp.alloc : !warp.shared<stages = 2, 128x256xf16, #s>
    %bars = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
    warp.mbarrier_init %bars : !warp.shared<stages = 2, 1xi64, #b>
    %first = warp.is_first_thread
    scf.if %first {
      %to = warp.stage %bars[%c0] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
    }
    warp.barrier
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0, %parity = %c0) -> (i32, i32) : i32 {
      %full = warp.stage %bars[%stage] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_wait %full, %parity : !warp.shared<1xi64, #b>
      warp.barrier
      %freed = arith.xori %stage, %pitch : i32
      scf.if %first {
        %to = warp.stage %bars[%freed] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
        warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
      }
      %t = warp.stage %ring[%freed] : !warp.shared<stages = 2, 128x256xf16, #s> -> !warp.shared<128x256xf16, #s>
      %v = warp.load_shared %t : !warp.shared<128x256xf16, #s> -> tensor<128x256xf16, #r>
      scf.yield %freed, %parity : i32, i32
    }
    return
  }

  func.func @written(%n: i32, %w: tensor<128x256xf16, #r>, %x: tensor<64xi32, #o>, %p: !tile.ptr<i32>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %pitch = arith.constant 65536 : i32
    %ring = warp.alloc : !warp.shared<stages = 2, 128x256xf16, #s>
    %bars = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
    warp.mbarrier_init %bars : !warp.shared<stages = 2, 1xi64, #b>
    %first = warp.is_first_thread
    scf.if %first {
      %to = warp.stage %bars[%c0] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
    }
    warp.barrier
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0, %parity = %c0) -> (i32, i32) : i32 {
      %full = warp.stage %bars[%stage] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_wait %full, %parity : !warp.shared<1xi64, #b>
      warp.barrier
      %freed = arith.xori %stage, %pitch : i32
      scf.if %first {
        %to = warp.stage %bars[%freed] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
        warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
      }
      %t = warp.stage %ring[%stage] : !warp.shared<stages = 2, 128x256xf16, #s> -> !warp.shared<128x256xf16, #s>
      %v = warp.load_shared %t : !warp.shared<128x256xf16, #s> -> tensor<128x256xf16, #r>
      warp.store_shared %w, %t : tensor<128x256xf16, #r> -> !warp.shared<128x256xf16, #s>
      scf.yield %freed, %parity : i32, i32
    }
    return
  }

  func.func @unread(%n: i32, %w: tensor<128x256xf16, #r>, %x: tensor<64xi32, #o>, %p: !tile.ptr<i32>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %pitch = arith.constant 65536 : i32
    %ring = warp.alloc : !warp.shared<stages = 2, 128x256xf16, #s>
    %bars = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
    warp.mbarrier_init %bars : !warp.shared<stages = 2, 1xi64, #b>
    %first = warp.is_first_thread
    scf.if %first {
      %to = warp.stage %bars[%c0] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
    }
    warp.barrier
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0, %parity = %c0) -> (i32, i32) : i32 {
      %full = warp.stage %bars[%stage] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_wait %full, %parity : !warp.shared<1xi64, #b>
      warp.barrier
      %freed = arith.xori %stage, %pitch : i32
      scf.if %first {
        %to = warp.stage %bars[%freed] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
        warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
      }
      scf.yield %freed, %parity : i32, i32
    }
    return
  }

  func.func @two_warps(%n: i32, %w: tensor<128x256xf16, #r>, %x: tensor<64xi32, #o>, %p: !tile.ptr<i32>) attributes {tile.schedule = #tile.schedule<warps = 2, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %pitch = arith.constant 65536 : i32
    %ring = warp.alloc : !warp.shared<stages = 2, 128x256xf16, #s>
    %bars = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
    warp.mbarrier_init %bars : !warp.shared<stages = 2, 1xi64, #b>
    %first = warp.is_first_thread
    scf.if %first {
      %to = warp.stage %bars[%c0] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
    }
    warp.barrier
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0, %parity = %c0) -> (i32, i32) : i32 {
      %full = warp.stage %bars[%stage] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_wait %full, %parity : !warp.shared<1xi64, #b>
      warp.barrier
      %freed = arith.xori %stage, %pitch : i32
      scf.if %first {
        %to = warp.stage %bars[%freed] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
        warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
      }
      %t = warp.stage %ring[%stage] : !warp.shared<stages = 2, 128x256xf16, #s> -> !warp.shared<128x256xf16, #s>
      %v = warp.load_shared %t : !warp.shared<128x256xf16, #s> -> tensor<128x256xf16, #r>
      scf.yield %freed, %parity : i32, i32
    }
    return
  }

  func.func @full_block(%n: i32, %w: tensor<128x256xf16, #r>, %x: tensor<64xi32, #o>, %p: !tile.ptr<i32>) attributes {tile.schedule = #tile.schedule<warps = 32, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %pitch = arith.constant 65536 : i32
    %ring = warp.alloc : !warp.shared<stages = 2, 128x256xf16, #s>
    %bars = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
    warp.mbarrier_init %bars : !warp.shared<stages = 2, 1xi64, #b>
    %first = warp.is_first_thread
    scf.if %first {
      %to = warp.stage %bars[%c0] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
    }
    warp.barrier
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0, %parity = %c0) -> (i32, i32) : i32 {
      %full = warp.stage %bars[%stage] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_wait %full, %parity : !warp.shared<1xi64, #b>
      warp.barrier
      %freed = arith.xori %stage, %pitch : i32
      scf.if %first {
        %to = warp.stage %bars[%freed] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
        warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
      }
      %t = warp.stage %ring[%stage] : !warp.shared<stages = 2, 128x256xf16, #s> -> !warp.shared<128x256xf16, #s>
      %v = warp.load_shared %t : !warp.shared<128x256xf16, #s> -> tensor<128x256xf16, #r>
      scf.yield %freed, %parity : i32, i32
    }
    return
  }

  func.func @together(%n: i32, %w: tensor<128x256xf16, #r>, %x: tensor<64xi32, #o>, %p: !tile.ptr<i32>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %pitch = arith.constant 65536 : i32
    %ring = warp.alloc : !warp.shared<stages = 2, 128x256xf16, #s>
    %bars = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
    warp.mbarrier_init %bars : !warp.shared<stages = 2, 1xi64, #b>
    %first = warp.is_first_thread
    scf.if %first {
      %to = warp.stage %bars[%c0] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
    }
    warp.barrier
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0, %parity = %c0) -> (i32, i32) : i32 {
      %full = warp.stage %bars[%stage] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_wait %full, %parity : !warp.shared<1xi64, #b>
      warp.barrier
      %freed = arith.xori %stage, %pitch : i32
      %most = tile.reduce %x {axis = 0 : i32} : (tensor<64xi32, #o>) -> i32 {
      ^bb0(%a: i32, %c: i32):
        %d = arith.maxsi %a, %c : i32
        tile.yield %d : i32
      }
      %at = arith.andi %most, %pitch : i32
      scf.if %first {
        %to = warp.stage %bars[%at] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
        warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
      }
      %t = warp.stage %ring[%stage] : !warp.shared<stages = 2, 128x256xf16, #s> -> !warp.shared<128x256xf16, #s>
      %v = warp.load_shared %t : !warp.shared<128x256xf16, #s> -> tensor<128x256xf16, #r>
      scf.yield %freed, %parity : i32, i32
    }
    return
  }

  func.func @once(%n: i32, %w: tensor<128x256xf16, #r>, %x: tensor<64xi32, #o>, %p: !tile.ptr<i32>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %pitch = arith.constant 65536 : i32
    %ring = warp.alloc : !warp.shared<stages = 2, 128x256xf16, #s>
    %bars = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
    warp.mbarrier_init %bars : !warp.shared<stages = 2, 1xi64, #b>
    %first = warp.is_first_thread
    scf.if %first {
      %to = warp.stage %bars[%c0] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
    }
    warp.barrier
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0, %parity = %c0) -> (i32, i32) : i32 {
      %full = warp.stage %bars[%stage] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_wait %full, %parity : !warp.shared<1xi64, #b>
      warp.barrier
      %freed = arith.xori %stage, %pitch : i32
      %at = tile.atomic_rmw add %p, %c1 : (!tile.ptr<i32>, i32) -> i32
      scf.if %first {
        %to = warp.stage %bars[%at] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
        warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
      }
      %t = warp.stage %ring[%stage] : !warp.shared<stages = 2, 128x256xf16, #s> -> !warp.shared<128x256xf16, #s>
      %v = warp.load_shared %t : !warp.shared<128x256xf16, #s> -> tensor<128x256xf16, #r>
      scf.yield %freed, %parity : i32, i32
    }
    return
  }

  func.func @may_be_written(%n: i32, %w: tensor<128x256xf16, #r>, %x: tensor<64xi32, #o>, %p: !tile.ptr<i32>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %pitch = arith.constant 65536 : i32
    %ring = warp.alloc : !warp.shared<stages = 2, 128x256xf16, #s>
    %bars = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
    warp.mbarrier_init %bars : !warp.shared<stages = 2, 1xi64, #b>
    %first = warp.is_first_thread
    scf.if %first {
      %to = warp.stage %bars[%c0] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
    }
    warp.barrier
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0, %parity = %c0) -> (i32, i32) : i32 {
      %full = warp.stage %bars[%stage] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_wait %full, %parity : !warp.shared<1xi64, #b>
      warp.barrier
      %freed = arith.xori %stage, %pitch : i32
      tile.store %p, %c1 : !tile.ptr<i32>
      %at = tile.load %p : !tile.ptr<i32>
      scf.if %first {
        %to = warp.stage %bars[%at] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
        warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
      }
      %t = warp.stage %ring[%stage] : !warp.shared<stages = 2, 128x256xf16, #s> -> !warp.shared<128x256xf16, #s>
      %v = warp.load_shared %t : !warp.shared<128x256xf16, #s> -> tensor<128x256xf16, #r>
      scf.yield %freed, %parity : i32, i32
    }
    return
  }

  func.func @left_early(%n: i32, %w: tensor<128x256xf16, #r>, %x: tensor<64xi32, #o>, %p: !tile.ptr<i32>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %pitch = arith.constant 65536 : i32
    %ring = warp.alloc : !warp.shared<stages = 2, 128x256xf16, #s>
    %bars = warp.alloc : !warp.shared<stages = 2, 1xi64, #b>
    warp.mbarrier_init %bars : !warp.shared<stages = 2, 1xi64, #b>
    %first = warp.is_first_thread
    scf.if %first {
      %to = warp.stage %bars[%c0] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
    }
    warp.barrier
    %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%stage = %c0, %parity = %c0) -> (i32, i32) : i32 {
      %full = warp.stage %bars[%stage] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
      warp.mbarrier_wait %full, %parity : !warp.shared<1xi64, #b>
      warp.barrier
      %freed = arith.xori %stage, %pitch : i32
      %at = scf.while (%j = %c1) : (i32) -> i32 {
        %more = arith.cmpi slt, %j, %n : i32
        scf.condition(%more) %j : i32
      } do {
      ^bb0(%j: i32):
        %next = arith.addi %j, %c1 : i32
        scf.yield %next : i32
      }
      scf.if %first {
        %to = warp.stage %bars[%at] : !warp.shared<stages = 2, 1xi64, #b> -> !warp.shared<1xi64, #b>
        warp.mbarrier_expect %to {bytes = 65536 : i64} : !warp.shared<1xi64, #b>
      }
      %t = warp.stage %ring[%stage] : !warp.shared<stages = 2, 128x256xf16, #s> -> !warp.shared<128x256xf16, #s>
      %v = warp.load_shared %t : !warp.shared<128x256xf16, #s> -> tensor<128x256xf16, #r>
      scf.yield %freed, %parity : i32, i32
    }
    return
  }
}

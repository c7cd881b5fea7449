// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-multicast --remarks-filter-missed=loops -o /dev/null 2>&1 | FileCheck %s
// RUN: weft-opt %s --split-input-file --warp-multicast --remarks-filter-analyse=loops -o /dev/null 2>&1 | FileCheck %s --check-prefix=SHARED

// SHARED: remark: [Analysis] clusters | Category:loops | Function=columns | Reason="2 blocks share 2 of 3 copies"
#b = #warp.layout<[2], offset = [[1]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {warp.target = "sm_90a"} {
  func.func @columns(%n: i32, %map: !warp.tensor_map, %ring: !warp.shared<stages = 2, 2xi64, #b>, %full: !warp.shared<2xi64, #b>, %a: !warp.shared<64x64xf16, #s>, %k: !warp.shared<64x64xf16, #s>)
      attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, cluster = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = tile.program_id x : i32
    %y = tile.program_id y : i32
    warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
    warp.barrier {withProducer}
    scf.for %i = %c0 to %n step %c1 : i32 {
      %j = arith.addi %i, %y : i32
      %row = arith.addi %i, %x : i32
      warp.produce {
        warp.mbarrier_wait %full, %c0 {index = 1 : i64} : !warp.shared<2xi64, #b>
        warp.mbarrier_expect %full {bytes = 16384 : i64} : !warp.shared<2xi64, #b>
        warp.box_copy %map[%c0, %row] to %a on %full : !warp.shared<64x64xf16, #s>, !warp.shared<2xi64, #b>
        warp.box_copy %map[%c0, %j] to %k on %full : !warp.shared<64x64xf16, #s>, !warp.shared<2xi64, #b>
        warp.box_copy %map[%c1, %j] to %k on %full {offset = 4096 : i64} : !warp.shared<64x64xf16, #s>, !warp.shared<2xi64, #b>
      }
      warp.mbarrier_arrive %full {index = 1 : i64} : !warp.shared<2xi64, #b>
      warp.mbarrier_wait %full, %c0 : !warp.shared<2xi64, #b>
    }
    warp.barrier
    warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
    return
  }
}


// -----

// CHECK: remark: [Missed] shared-copies | Category:loops | Function=older | Reason="blocks share no copies: the target has no clusters of so many"
module attributes {warp.target = "sm_80"} {
  func.func @older() attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, cluster = 2>} {
    return
  }
}

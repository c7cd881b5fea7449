// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-multicast | FileCheck %s
// RUN: weft-opt %s --split-input-file --warp-multicast --remarks-filter-missed=loops -o /dev/null 2>&1 | FileCheck %s --check-prefix=MISSED

// The tile of columns is every row program's: the blocks take turns in copying it, and each copies its own rows, which no
// other has.
// CHECK-LABEL: func.func @columns
// CHECK-SAME: cluster = 2
// CHECK: warp.mbarrier_init %{{.*}} {arrivals = array<i64: 2, 16>}
// CHECK-NEXT: warp.barrier {ofCluster, withProducer}
// CHECK: scf.for
// CHECK: warp.mbarrier_wait %{{.*}} {index = 1 : i64, ofCluster}
// CHECK-NEXT: warp.mbarrier_expect %{{.*}} {bytes = 16384 : i64, ofCluster}
// CHECK-NEXT: warp.box_copy %{{.*}} to %{{.*}} on %{{[a-z0-9_]*}} :
// CHECK-NEXT: warp.box_copy %{{.*}} to %{{.*}} on %{{.*}} {by = 0 : i64}
// CHECK-NEXT: warp.box_copy %{{.*}} to %{{.*}} on %{{.*}} {by = 1 : i64, offset = 4096 : i64}
// CHECK: warp.mbarrier_arrive %{{.*}} {index = 1 : i64, ofCluster}
// CHECK: warp.mbarrier_wait %{{[a-z0-9_]*}}, %{{[a-z0-9_]*}} {ofCluster}
// CHECK: warp.barrier {ofCluster, withProducer}
// CHECK-NEXT: warp.mbarrier_inval
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

// A grid of one axis: the column is computed as the neighbour computes it, and the copy is shared where it is the same.
// CHECK-LABEL: func.func @one_axis
// CHECK: %[[X:.*]] = tile.program_id x
// CHECK: %[[COLUMN:.*]] = arith.divsi %[[X]], %[[M:.*]] : i32
// CHECK: %[[BITS:.*]] = arith.constant 1 : i32
// CHECK: %[[OTHER:.*]] = arith.xori %{{.*}}, %[[BITS]] : i32
// CHECK: %[[THERE:.*]] = arith.divsi %[[OTHER]], %[[M]] : i32
// CHECK: %[[SAME:.*]] = arith.cmpi eq, %[[COLUMN]], %[[THERE]] : i32
// CHECK: warp.box_copy %{{.*}} to %{{.*}} on %{{.*}} where %[[SAME]] {by = 0 : i64}
#b = #warp.layout<[2], offset = [[1]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {warp.target = "sm_90a"} {
  func.func @one_axis(%n: i32, %m: i32, %map: !warp.tensor_map, %ring: !warp.shared<stages = 2, 2xi64, #b>, %full: !warp.shared<2xi64, #b>, %k: !warp.shared<64x64xf16, #s>)
      attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, cluster = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = tile.program_id x : i32
    %column = arith.divsi %x, %m : i32
    warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
    warp.barrier {withProducer}
    scf.for %i = %c0 to %n step %c1 : i32 {
      %j = arith.addi %i, %column : i32
      warp.produce {
        warp.mbarrier_wait %full, %c0 {index = 1 : i64} : !warp.shared<2xi64, #b>
        warp.mbarrier_expect %full {bytes = 8192 : i64} : !warp.shared<2xi64, #b>
        warp.box_copy %map[%j, %i] to %k on %full : !warp.shared<64x64xf16, #s>, !warp.shared<2xi64, #b>
      }
      warp.mbarrier_arrive %full {index = 1 : i64} : !warp.shared<2xi64, #b>
    }
    warp.barrier
    warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
    return
  }
}

// -----

// What differs for another reason stays each block's own, and where nothing is left to share there is no cluster.
// MISSED: remark: [Missed] shared-copies | Category:loops | Function=loaded | Reason="blocks share no copies: all their copies depend on the program"
// CHECK-LABEL: func.func @loaded
// CHECK-SAME: #tile.schedule<warps = 8, stages = 2>
// CHECK-NOT: ofCluster
// CHECK-NOT: by =
// CHECK: return
#b = #warp.layout<[2], offset = [[1]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {warp.target = "sm_90a"} {
  func.func @loaded(%n: i32, %table: !tile.ptr<i32>, %map: !warp.tensor_map, %ring: !warp.shared<stages = 2, 2xi64, #b>, %full: !warp.shared<2xi64, #b>, %k: !warp.shared<64x64xf16, #s>)
      attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, cluster = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = tile.program_id x : i32
    %at = tile.addptr %table, %x : !tile.ptr<i32>, i32
    %column = tile.load %at : !tile.ptr<i32>
    warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
    warp.barrier {withProducer}
    scf.for %i = %c0 to %n step %c1 iter_args(%walked = %x) -> (i32) : i32 {
      warp.produce {
        warp.mbarrier_wait %full, %c0 {index = 1 : i64} : !warp.shared<2xi64, #b>
        warp.mbarrier_expect %full {bytes = 16384 : i64} : !warp.shared<2xi64, #b>
        warp.box_copy %map[%column, %i] to %k on %full : !warp.shared<64x64xf16, #s>, !warp.shared<2xi64, #b>
        warp.box_copy %map[%c0, %walked] to %k on %full : !warp.shared<64x64xf16, #s>, !warp.shared<2xi64, #b>
      }
      warp.mbarrier_arrive %full {index = 1 : i64} : !warp.shared<2xi64, #b>
      %next = arith.addi %walked, %c1 : i32
      scf.yield %next : i32
    }
    warp.barrier
    warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
    return
  }
}

// -----

// As many iterations as the program's number.
// MISSED: Function=uneven | Reason="blocks share no copies: how often they copy depends on the program"
// CHECK-LABEL: func.func @uneven
// CHECK-NOT: by =
// CHECK: return
#b = #warp.layout<[2], offset = [[1]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {warp.target = "sm_90a"} {
  func.func @uneven(%map: !warp.tensor_map, %ring: !warp.shared<stages = 2, 2xi64, #b>, %full: !warp.shared<2xi64, #b>, %k: !warp.shared<64x64xf16, #s>)
      attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, cluster = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = tile.program_id x : i32
    warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
    warp.barrier {withProducer}
    scf.for %i = %c0 to %x step %c1 : i32 {
      warp.produce {
        warp.mbarrier_wait %full, %c0 {index = 1 : i64} : !warp.shared<2xi64, #b>
        warp.mbarrier_expect %full {bytes = 8192 : i64} : !warp.shared<2xi64, #b>
        warp.box_copy %map[%c0, %i] to %k on %full : !warp.shared<64x64xf16, #s>, !warp.shared<2xi64, #b>
      }
      warp.mbarrier_arrive %full {index = 1 : i64} : !warp.shared<2xi64, #b>
    }
    warp.barrier
    warp.mbarrier_inval %ring : !warp.shared<stages = 2, 2xi64, #b>
    return
  }
}

// -----

// MISSED: Function=nobody | Reason="blocks share no copies: no warp of its own makes a loop's copies"
// CHECK-LABEL: func.func @nobody
// CHECK-SAME: #tile.schedule<warps = 8, stages = 2>
module attributes {warp.target = "sm_90a"} {
  func.func @nobody() attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2, cluster = 4>} {
    return
  }
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %S/../../Inputs/matmul_f16.mlir --canonicalize --cse --tile-to-warp=target=sm_90a --warp-stage-wgmma --warp-pipeline --canonicalize --cse | FileCheck %s
// RUN: weft-opt %S/../../Inputs/matmul_f16.mlir --canonicalize --cse --tile-to-warp=target=sm_90a --warp-stage-wgmma --warp-pipeline --canonicalize --cse --warp-allocate-shared --warp-insert-barriers --warp-insert-proxy-fences --warp-defer-waits | FileCheck %s --check-prefix=ORDER
// RUN: weft-opt %S/../../Inputs/matmul_f16.mlir --canonicalize --cse --tile-to-warp=target=sm_90a --warp-stage-wgmma --warp-pipeline=boxes=false | FileCheck %s --check-prefix=OFF
// RUN: weft-opt %S/../../Inputs/matmul_f16.mlir --canonicalize --cse --tile-to-warp=target=sm_80 --warp-stage-operands --warp-pipeline | FileCheck %s --check-prefix=OFF

// Maps are of the arguments alone: sizes are the masks' ends, strides those of lines. A map has one
// element along each axis at least: where a size is none, coordinates are far from it. The tile of B is as wide as two lines of 128 bytes.
// CHECK-LABEL: func.func @matmul
// CHECK-DAG: %[[M64:.*]] = arith.extsi %arg3
// CHECK-DAG: %[[N64:.*]] = arith.extsi %arg4
// CHECK-DAG: %[[K64:.*]] = arith.extsi %arg5
// CHECK-DAG: %[[SA64:.*]] = arith.extsi %arg6
// CHECK-DAG: %[[SB64:.*]] = arith.extsi %arg7
// CHECK-DAG: %[[NONE:.*]] = arith.cmpi slt, %[[K64]], %c1_i64
// CHECK-DAG: %[[FARK:.*]] = arith.select %[[NONE]], %c-2147483648_i32, %c0_i32
// CHECK-DAG: %[[MAPA:.*]] = warp.tensor_map %arg0 sizes(%[[K64]], %[[M64]]) strides(%[[SA64]]) {box = array<i32: 32, 128>} : <f16>
// CHECK-DAG: %[[MAPB:.*]] = warp.tensor_map %arg1 sizes(%[[N64]], %[[K64]]) strides(%[[SB64]]) {box = array<i32: 64, 32>} : <f16>

// Barriers lie in one ring with the tiles, so that one number says where a stage's are.
// CHECK: %[[RA:.*]] = warp.alloc : <stages = 3, 128x32xf16
// CHECK-NEXT: %[[RB:.*]] = warp.alloc : <stages = 3, 32x128xf16
// CHECK-NEXT: %[[R:.*]] = warp.alloc : <stages = 3, 1xi64
// CHECK-NEXT: warp.proxy_fence
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: warp.mbarrier_init %[[R]]
// CHECK: scf.if
// CHECK: warp.mbarrier_expect %{{.*}} {bytes = 16384 : i64}
// CHECK: warp.barrier

// An iteration waits for its phase and starts its product; when that of the iteration before is done, one thread lets copies
// take the place of its tiles, two iterations ahead. Pointers and masks are no more.
// CHECK: scf.for %[[I:.*]] = {{.*}} iter_args(%{{.*}} = %{{.*}}, %[[READ:.*]] = %c0_i32, %[[FREED:.*]] = %c34816_i32, %[[PARITY:.*]] = %c0_i32) -> (tensor<128x128xf32, {{.*}}>, i32, i32, i32)
// CHECK-NEXT: %[[FULL:.*]] = warp.stage %[[R]][%[[READ]]] {step = 17408 : i64}
// CHECK-NEXT: warp.mbarrier_wait %[[FULL]], %[[PARITY]]
// CHECK-NOT: warp.barrier
// CHECK-NOT: tile.addptr
// CHECK: warp.wgmma
// CHECK-NEXT: warp.wgmma_wait {pending = 1 : i32}
// CHECK-NEXT: warp.barrier
// CHECK-NEXT: %[[NEXT:.*]] = arith.addi %[[I]], %c64_i32
// CHECK-NEXT: %[[MORE:.*]] = arith.cmpi slt, %[[I]],
// CHECK-NEXT: %[[ATK:.*]] = arith.addi %[[NEXT]], %[[FARK]]
// CHECK-NEXT: %[[ACTS:.*]] = arith.andi %[[MORE]],
// CHECK-NEXT: scf.if %[[ACTS]] {
// CHECK-NEXT: %[[TO:.*]] = warp.stage %[[R]][%[[FREED]]]
// CHECK-NEXT: warp.mbarrier_expect %[[TO]] {bytes = 16384 : i64}
// CHECK-NEXT: %[[TA:.*]] = warp.stage %[[RA]][%[[FREED]]]
// CHECK-NEXT: warp.box_copy %[[MAPA]][%[[ATK]], %{{.*}}] to %[[TA]] on %[[TO]] :
// CHECK-NEXT: %[[TB:.*]] = warp.stage %[[RB]][%[[FREED]]]
// CHECK-NEXT: warp.box_copy %[[MAPB]][%{{.*}}, %[[ATK]]] to %[[TB]] on %[[TO]] :
// CHECK: warp.box_copy %[[MAPB]][%{{.*}}, %[[ATK]]] to %[[TB]] on %[[TO]] {offset = 4096 : i64}
// CHECK-NEXT: }
// CHECK: %[[LAST:.*]] = arith.cmpi eq, %[[READ]], %c34816_i32
// CHECK: %[[TURN:.*]] = arith.extui %[[LAST]] : i1 to i32
// CHECK-NEXT: arith.xori %[[PARITY]], %[[TURN]]
// CHECK-NEXT: scf.yield
// CHECK: warp.barrier
// CHECK-NEXT: warp.mbarrier_inval %[[R]]
// CHECK-NEXT: warp.dealloc %[[R]]

// What bulk copies write needs no fence in the loop, and what one thread ends is no other's memory before a barrier.
// ORDER: scf.for
// ORDER-NOT: warp.proxy_fence
// ORDER: warp.mbarrier_inval
// ORDER: warp.barrier
// ORDER: warp.convert_layout

// OFF-NOT: warp.box_copy
// OFF: warp.async_copy

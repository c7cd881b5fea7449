// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %S/../../Inputs/matmul_f16.mlir --canonicalize --cse --tile-to-warp=target=sm_90a --warp-stage-wgmma --warp-pipeline=boxes=false | FileCheck %s
// RUN: sed 's/stages = 3/stages = 2/' %S/../../Inputs/matmul_f16.mlir | weft-opt --canonicalize --cse --tile-to-warp=target=sm_90a --warp-stage-wgmma --warp-pipeline=boxes=false | FileCheck %s --check-prefix=TWO
// RUN: weft-opt %S/../../Inputs/flash_causal_64.mlir --canonicalize --cse --tile-to-warp=target=sm_90a --warp-stage-wgmma --warp-pipeline=boxes=false | FileCheck %s --check-prefix=FLASH

// A matmul's product goes on while the next iteration begins. When the one before is done, and every warpgroup knows it, copies take
// the place of its tiles: of three tiles one is read, and two are on their way.
// CHECK: scf.for
// CHECK-NEXT: warp.async_wait {pending = 1 : i32}
// CHECK-NEXT: warp.barrier
// CHECK-NOT: warp.async_copy
// CHECK: %[[D:.*]] = warp.wgmma
// CHECK-NEXT: warp.wgmma_wait {pending = 1 : i32}
// CHECK-NEXT: warp.barrier
// CHECK: warp.async_copy
// CHECK: warp.async_commit
// CHECK: scf.yield %[[D]]
// CHECK: warp.wgmma_wait %{{.*}} {pending = 0 : i32} : tensor<128x128xf32
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: warp.barrier

// Where sums are changed between products they are waited for, by the next iteration where they are late (pipeline-late.mlir).
// FLASH: scf.for
// FLASH-NEXT: warp.wgmma_wait %{{.*}}, %{{.*}} {pending = 0 : i32}
// FLASH: warp.async_wait {pending = 1 : i32}
// FLASH: scf.yield
// FLASH-NOT: warp.wgmma_wait {pending

// Of two tiles, one is read and one is on its way.
// TWO: scf.for
// TWO-NEXT: warp.async_wait {pending = 0 : i32}
// TWO-NEXT: warp.barrier
// TWO-NOT: warp.async_copy
// TWO: warp.wgmma
// TWO-NEXT: warp.wgmma_wait {pending = 1 : i32}
// TWO-NEXT: warp.barrier
// TWO: warp.async_copy

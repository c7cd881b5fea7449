// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %S/../../Inputs/matmul_f16.mlir --canonicalize --cse --tile-to-warp=target=sm_90a --warp-stage-wgmma --warp-pipeline=boxes=false | FileCheck %s
// RUN: weft-opt %S/../../Inputs/flash_causal_64.mlir --canonicalize --cse --tile-to-warp=target=sm_90a --warp-stage-wgmma --warp-pipeline=boxes=false | FileCheck %s --check-prefix=FLASH

// A matmul's product goes on while the next iteration begins: of three tiles one is read, one may still be read, and one is on its way.
// CHECK: scf.for
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: warp.barrier
// CHECK: %[[D:.*]] = warp.wgmma
// CHECK-NEXT: warp.wgmma_wait {pending = 1 : i32}
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

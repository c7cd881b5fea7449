// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-pipeline | FileCheck %s
// RUN: weft-opt %S/../../Inputs/flash_causal_64.mlir --canonicalize --cse --tile-to-warp=target=sm_90a --warp-stage-wgmma --warp-pipeline --canonicalize --cse --warp-allocate-shared --warp-insert-barriers --warp-insert-proxy-fences --warp-defer-waits | FileCheck %s --check-prefix=FLASH

#load = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// The second product runs beside the next iteration's first. The ring's first entry has a tile of %kp alone, the last of %vp.
// What scales the sums, and the cast to the operand, begin the next iteration, behind the wait.
// CHECK-LABEL: func.func @scaled
// CHECK-SAME: (%[[KP:[a-z0-9]+]]: {{.*}}, %[[VP:[a-z0-9]+]]: {{.*}}, %[[Q:[a-z0-9]+]]: tensor<64x64xf16, {{.*}}>, %[[INIT:[a-z0-9]+]]: tensor<64x64xf32, {{.*}}>, %[[X:[a-z0-9]+]]: tensor<64x64xf32
// CHECK: %[[K:.*]] = warp.alloc : <stages = 2, 64x64xf16
// CHECK-NEXT: %[[V:.*]] = warp.alloc : <stages = 2, 64x64xf16
// CHECK: warp.async_copy
// CHECK-NEXT: warp.async_commit
// CHECK: %[[ANY:.*]] = arith.cmpi slt, %c0_i32, %[[N:.*]] : i32
// CHECK-NEXT: %[[ALL:.*]] = scf.if %[[ANY]]
// CHECK: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: warp.barrier
// CHECK-COUNT-2: warp.async_copy
// CHECK: warp.wgmma %[[Q]],
// CHECK-NEXT: warp.wgmma_wait
// CHECK-NEXT: %[[W0:.*]] = math.exp2
// CHECK-NOT: warp.wgmma %
// CHECK: scf.for %[[I:.*]] = %{{.*}} to %[[N]] step %{{.*}} iter_args(%[[ACC:.*]] = %[[INIT]], %[[STAGE:.*]] = %{{.*}}, %[[W:.*]] = %[[W0]])
// CHECK-NEXT: %[[DONE:.*]]:2 = warp.wgmma_wait %[[ACC]], %[[W]] {pending = 0 : i32}
// CHECK-NEXT: %[[P:.*]] = arith.truncf %[[DONE]]#1
// CHECK-NEXT: %[[C:.*]] = arith.mulf %[[DONE]]#0, %[[X]]
// CHECK-NEXT: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: warp.barrier
// CHECK-COUNT-2: warp.async_copy
// CHECK-NEXT: warp.async_commit
// CHECK: %[[D:.*]] = warp.wgmma %[[Q]],
// CHECK-NEXT: %[[S:.*]] = warp.wgmma_wait %[[D]]
// CHECK-NEXT: %[[TILE:.*]] = warp.stage %[[V]][%[[STAGE]]]
// CHECK-NEXT: %[[E:.*]] = warp.wgmma %[[P]], %[[TILE]], %[[C]]
// CHECK-NEXT: %[[WN:.*]] = math.exp2 %[[S]]
// CHECK: scf.yield %[[E]], %{{.*}}, %[[WN]]
// CHECK: warp.wgmma_wait
// CHECK: warp.async_wait {pending = 0 : i32}
// CHECK-NEXT: warp.barrier
// CHECK-NOT: warp.async_copy
// CHECK: %[[LAST:.*]] = warp.wgmma
// CHECK-NEXT: %[[O:.*]] = warp.wgmma_wait %[[LAST]] {pending = 0 : i32}
// CHECK-NEXT: scf.yield %[[O]]
// CHECK: else
// CHECK-NEXT: scf.yield %[[INIT]]

// Waits go where results are needed: the first product's beside the second.
// FLASH: scf.for
// FLASH: warp.wgmma_wait %{{.*}}, %{{.*}} {pending = 0 : i32}
// FLASH: warp.mbarrier_wait
// FLASH-NEXT: warp.barrier
// FLASH: scf.if
// FLASH: scf.if
// FLASH: warp.mbarrier_expect %{{.*}} {bytes = 16384 : i64}
// FLASH: } else {
// FLASH: warp.mbarrier_expect %{{.*}} {bytes = 8192 : i64}
// FLASH: }
// FLASH: %[[S:.*]] = warp.wgmma %
// FLASH: %[[O:.*]] = warp.wgmma %
// FLASH: warp.wgmma_wait %[[S]] {pending = 1 : i32}
// FLASH-NOT: warp.wgmma_wait
// FLASH: scf.yield
func.func @scaled(%kp: tensor<64x64x!tile.ptr<f16>, #load>, %vp: tensor<64x64x!tile.ptr<f16>, #load>, %q: tensor<64x64xf16, #a>, %init: tensor<64x64xf32, #a>, %x: tensor<64x64xf32, #a>, %n: i32) -> tensor<64x64xf32, #a>
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #a>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<64x64xf32, #a>) : i32 {
    %b = tile.splat %i : i32 -> tensor<64x64xi32, #load>
    %kq = tile.addptr %kp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
    %vq = tile.addptr %vp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
    %ks = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %kq to %ks {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %q, %ks, %zero {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
    %s = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #a>
    warp.dealloc %ks : !warp.shared<64x64xf16, #s>
    %w = math.exp2 %s : tensor<64x64xf32, #a>
    %p = arith.truncf %w : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
    %c = arith.mulf %acc, %x : tensor<64x64xf32, #a>
    %vs = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %vq to %vs {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %e = warp.wgmma %p, %vs, %c {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
    %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x64xf32, #a>
    warp.dealloc %vs : !warp.shared<64x64xf16, #s>
    scf.yield %o : tensor<64x64xf32, #a>
  }
  func.return %l : tensor<64x64xf32, #a>
}

// -----

#load = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// Sums that go on as they are, three tiles: the first entries are of both iterations.
// CHECK-LABEL: func.func @summed
// CHECK: warp.async_copy %{{.*}} masked
// CHECK-NEXT: warp.async_commit
// CHECK-COUNT-2: warp.async_copy %{{.*}} masked
// CHECK-NEXT: warp.async_commit
// CHECK: scf.if
// CHECK: scf.for
// CHECK-NEXT: warp.wgmma_wait %{{.*}}, %{{.*}} {pending = 0 : i32}
// CHECK-NEXT: arith.truncf
// CHECK-NEXT: warp.async_wait {pending = 1 : i32}
// CHECK: warp.wgmma
// CHECK: warp.wgmma
// CHECK: scf.yield
func.func @summed(%kp: tensor<64x64x!tile.ptr<f16>, #load>, %vp: tensor<64x64x!tile.ptr<f16>, #load>, %q: tensor<64x64xf16, #a>, %init: tensor<64x64xf32, #a>, %x: tensor<64x64xf32, #a>, %n: i32) -> tensor<64x64xf32, #a>
    attributes {tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
  %zero = arith.constant dense<0.0> : tensor<64x64xf32, #a>
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<64x64xf32, #a>) : i32 {
    %b = tile.splat %i : i32 -> tensor<64x64xi32, #load>
    %kq = tile.addptr %kp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
    %vq = tile.addptr %vp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
    %ks = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %kq to %ks {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %d = warp.wgmma %q, %ks, %zero {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
    %s = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #a>
    warp.dealloc %ks : !warp.shared<64x64xf16, #s>
    %w = math.exp2 %s : tensor<64x64xf32, #a>
    %p = arith.truncf %w : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
    %vs = warp.alloc : !warp.shared<64x64xf16, #s>
    warp.async_copy %vq to %vs {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
    warp.async_commit
    warp.async_wait {pending = 0 : i32}
    %e = warp.wgmma %p, %vs, %acc {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
    %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x64xf32, #a>
    warp.dealloc %vs : !warp.shared<64x64xf16, #s>
    scf.yield %o : tensor<64x64xf32, #a>
  }
  func.return %l : tensor<64x64xf32, #a>
}

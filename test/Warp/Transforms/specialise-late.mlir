// Part of Weft. SPDX-License-Identifier: Apache-2.0
// 128 channels and keys on eight warps.
// DEFINE: %{wide} = sed -E -e 's/warps = 4/warps = 8/' -e 's/([<x])64x/\1128x/g' -e 's/([<x])64x/\1128x/g' -e 's/end = 64/end = 128/' -e '/%cBN =/s/64/128/' %S/../../Inputs/flash_causal_64.mlir
// DEFINE: %{passes} = weft-opt --canonicalize --cse --tile-to-warp=target=sm_90a --warp-stage-wgmma --warp-stage-loads --warp-pipeline --warp-specialise --canonicalize --cse
// RUN: %{wide} | %{passes} | FileCheck %s
// RUN: %{wide} | sed -e 's/stages = 3/stages = 2/' | %{passes} | FileCheck %s --check-prefix=TWO

// Products run beside the next iteration's: the first iteration stands before the loop. No barrier of the block is left
// beside a wait for copies.
// CHECK: warp.mbarrier_init %[[R:.*]] {arrivals = array<i64: 1, 8>} : <stages = 3, 2xi64
// CHECK-NEXT: warp.barrier {withProducer}
// CHECK: warp.produce {
// CHECK: warp.produce {
// CHECK: scf.if
// CHECK: warp.mbarrier_wait
// CHECK-NOT: warp.barrier
// CHECK: warp.produce {
// CHECK-NOT: index = 1
// CHECK: warp.wgmma %
// CHECK: scf.for {{.*}} %[[FREED:[a-z0-9]+]] = %c0_i32, %[[PARITY:[a-z0-9]+]] = %c0_i32{{.*}}, %[[BEFORE:[a-z0-9]+]] = %c0_i32)
// Behind the wait for the iteration before, warps say that they have read its tiles: the next copies go there, which
// wait with its parity.
// CHECK-NEXT: warp.wgmma_wait %{{.*}}, %{{.*}} {pending = 0 : i32}
// CHECK-NEXT: %[[EMPTY:.*]] = warp.stage %[[R]][%[[FREED]]]
// CHECK-NEXT: warp.mbarrier_arrive %[[EMPTY]] {index = 1 : i64, together}
// CHECK: warp.mbarrier_wait %{{.*}}, %[[PARITY]] :
// CHECK-NOT: warp.barrier
// CHECK: warp.produce {
// CHECK-NEXT: scf.if
// CHECK-NEXT: warp.mbarrier_wait %{{.*}}, %[[BEFORE]] {index = 1 : i64}
// CHECK-NEXT: scf.if
// CHECK-NEXT: warp.mbarrier_expect
// CHECK: warp.wgmma %
// CHECK: scf.yield
// CHECK: warp.mbarrier_wait
// CHECK-NOT: warp.barrier
// CHECK: warp.wgmma %

// In a ring of two the other stage is the one before.
// TWO: scf.for {{.*}} %[[READ:[a-z0-9]+]] = %c[[#PITCH:]]_i32, %{{[a-z0-9]+}} = %c1073741824_i32
// TWO-NEXT: warp.wgmma_wait
// TWO-NEXT: %[[OTHER:.*]] = arith.xori %[[READ]], %c[[#PITCH]]_i32
// TWO-NEXT: %[[EMPTY:.*]] = warp.stage %{{.*}}[%[[OTHER]]]
// TWO-NEXT: warp.mbarrier_arrive %[[EMPTY]] {index = 1 : i64, together}

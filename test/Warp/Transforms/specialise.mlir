// Part of Weft. SPDX-License-Identifier: Apache-2.0
// 256 columns on eight warps: one block fills a multiprocessor's registers.
// DEFINE: %{wide} = sed -E -e 's/warps = 4/warps = 8/' -e 's/(32|1|128)x128/\1x256/g' -e '/%(cBN|range_n|n0s|columns|columns_e) =/s/128/256/g' %S/../../Inputs/matmul_f16.mlir
// DEFINE: %{staged} = weft-opt --canonicalize --cse --tile-to-warp=target=sm_90a --warp-stage-wgmma
// RUN: %{wide} | %{staged} --warp-pipeline --warp-specialise --canonicalize --cse | FileCheck %s
// RUN: %{wide} | sed -e 's/stages = 3/stages = 2/' | %{staged} --warp-pipeline --warp-specialise --canonicalize --cse | FileCheck %s --check-prefix=TWO
// RUN: %{wide} | %{staged} --warp-pipeline=boxes=false --warp-specialise | FileCheck %s --check-prefix=NONE
// RUN: %{wide} | weft-opt --canonicalize --cse --tile-to-warp=target=sm_80 --warp-stage-operands --warp-pipeline --warp-specialise | FileCheck %s --check-prefix=NONE

// A stage has two barriers, of which eight warps arrive at the second. Both programs meet once they are made.
// CHECK: warp.mbarrier_init %[[R:.*]] {arrivals = array<i64: 1, 8>} : <stages = 3, 2xi64
// CHECK-NEXT: warp.barrier {withProducer}
// CHECK: warp.produce {
// CHECK-NEXT: scf.if
// CHECK: warp.mbarrier_expect
// No barrier of the block is left in the loop. Products go on into the next iteration, so that warps arrive for the stage
// before theirs, first for the ring's last one: copies wait with the parity of their own iteration.
// CHECK: scf.for {{.*}} iter_args({{.*}}, %[[READ:[a-z0-9]+]] = %c0_i32, %[[FREED:[a-z0-9]+]] = %[[END:c[0-9]+_i32]], %[[PARITY:[a-z0-9]+]] = %c0_i32, %[[LAST:[a-z0-9]+]] = %[[BACK:c[0-9]+_i32]])
// CHECK-NEXT: %[[FULL:.*]] = warp.stage %[[R]][%[[READ]]]
// CHECK-NEXT: warp.mbarrier_wait %[[FULL]], %[[PARITY]] :
// CHECK-NOT: warp.barrier
// CHECK: warp.wgmma
// CHECK-NEXT: warp.wgmma_wait {pending = 1 : i32}
// CHECK-NEXT: %[[EMPTY:.*]] = warp.stage %[[R]][%[[LAST]]]
// CHECK-NEXT: warp.mbarrier_arrive %[[EMPTY]] {index = 1 : i64, together}
// CHECK-NOT: warp.barrier
// CHECK: warp.produce {
// CHECK-NEXT: scf.if
// CHECK-NEXT: %[[TO:.*]] = warp.stage %[[R]][%[[FREED]]]
// CHECK-NEXT: warp.mbarrier_wait %[[TO]], %[[PARITY]] {index = 1 : i64}
// CHECK-NEXT: warp.mbarrier_expect %[[TO]]
// CHECK: warp.box_copy
// CHECK: scf.yield %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %[[READ]] :

// In a ring of two products are waited for, and warps arrive for the stage that they have read.
// TWO: scf.for {{.*}} iter_args({{.*}}, %[[READ:[a-z0-9]+]] = %c0_i32, %[[PARITY:[a-z0-9]+]] = %c0_i32, %[[BEFORE:[a-z0-9]+]] = %c1_i32)
// TWO: %[[FULL:.*]] = warp.stage %{{.*}}[%[[READ]]]
// TWO: warp.mbarrier_wait %{{.*}}, %[[BEFORE]] {index = 1 : i64}
// TWO: warp.wgmma_wait %{{.*}} {pending = 0 : i32}
// TWO-NEXT: warp.mbarrier_arrive %[[FULL]] {index = 1 : i64, together}

// Copies of threads, and targets without roles.
// NONE-NOT: warp.produce
// NONE-NOT: warp.mbarrier

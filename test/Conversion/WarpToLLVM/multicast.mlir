// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

#b = #warp.layout<[2], offset = [[1]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// One block copies to all; where something does not hold, each to itself. Lanes arrive at the blocks of their numbers.
// CHECK-LABEL: llvm.func @cluster
// CHECK-SAME: nvvm.cluster_dim = array<i32: 2, 1, 1>
// CHECK-DAG: %[[LANE:.*]] = llvm.and %{{.*}}, %{{.*}} : i32
// CHECK-DAG: %[[RANK:.*]] = nvvm.read.ptx.sreg.cluster.ctarank
// CHECK: "@$1 mbarrier.init.shared.b64 [$0], 16;"
// CHECK: "@$0 fence.mbarrier_init.release.cluster;"
// CHECK: nvvm.cluster.arrive {aligned}
// CHECK-NEXT: nvvm.cluster.wait {aligned}
// CHECK: "{ .reg .pred done; again: mbarrier.try_wait.parity.acquire.cluster.shared.b64 done, [$0], $1; @!done bra again; }"
// CHECK: "mbarrier.arrive.expect_tx.shared.b64 _, [$0], 8192;"
// CHECK: "{ .reg .b32 there; mapa.shared::cluster.u32 there, $0, $1; mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }"
// CHECK: "@$5 cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster [$0], [$1, {$3, $4}], [$2], $6;", "r,l,r,r,r,b,h,~{memory}"
// CHECK: %[[OWN:.*]] = llvm.trunc %{{.*}} : i32 to i16
// CHECK: %[[ACTS:.*]] = llvm.or
// CHECK: %[[WHO:.*]] = llvm.select %{{.*}}, %{{.*}}, %[[OWN]] : i1, i16
// CHECK: "@$5 cp.async.bulk.tensor.2d.{{.*}}multicast::cluster {{.*}} %[[ACTS]], %[[WHO]]
// CHECK: "{ .reg .b32 there; @$1 mapa.shared::cluster.u32 there, $0, $2; @$1 mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }"
module attributes {warp.target = "sm_90a"} {
  func.func @cluster(%p: !tile.ptr<f16>, %n: i64, %parity: i32, %same: i1) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 2, cluster = 2>} {
    %c0 = arith.constant 0 : i32
    %map = warp.tensor_map %p sizes(%n, %n) strides(%n) {box = array<i32: 64, 64>} : <f16>
    %ring = warp.alloc {offset = 0 : i64} : !warp.shared<stages = 2, 2xi64, #b>
    %tile = warp.alloc {offset = 1024 : i64} : !warp.shared<64x64xf16, #s>
    warp.mbarrier_init %ring {arrivals = array<i64: 1, 16>} : !warp.shared<stages = 2, 2xi64, #b>
    warp.barrier {withProducer, ofCluster}
    %full = warp.stage %ring[%c0] : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
    warp.mbarrier_wait %full, %parity {index = 1 : i64, ofCluster} : !warp.shared<2xi64, #b>
    warp.mbarrier_expect %full {bytes = 8192 : i64, ofCluster} : !warp.shared<2xi64, #b>
    warp.box_copy %map[%c0, %c0] to %tile on %full {by = 1 : i64} : !warp.shared<64x64xf16, #s>, !warp.shared<2xi64, #b>
    warp.box_copy %map[%c0, %c0] to %tile on %full where %same {by = 0 : i64} : !warp.shared<64x64xf16, #s>, !warp.shared<2xi64, #b>
    warp.mbarrier_arrive %full {index = 1 : i64, ofCluster} : !warp.shared<2xi64, #b>
    return
  }
}

// -----

#b = #warp.layout<[2], offset = [[1]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module attributes {warp.target = "sm_90a"} {
  func.func @beyond(%p: !tile.ptr<f16>, %n: i64) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 2, cluster = 2>} {
    %c0 = arith.constant 0 : i32
    %map = warp.tensor_map %p sizes(%n, %n) strides(%n) {box = array<i32: 64, 64>} : <f16>
    %full = warp.alloc {offset = 0 : i64} : !warp.shared<2xi64, #b>
    %tile = warp.alloc {offset = 1024 : i64} : !warp.shared<64x64xf16, #s>
    // expected-error @below {{expected 'by' to be one of the cluster's 2 blocks, but got 2}}
    warp.box_copy %map[%c0, %c0] to %tile on %full {by = 2 : i64} : !warp.shared<64x64xf16, #s>, !warp.shared<2xi64, #b>
    return
  }
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --convert-warp-to-llvm | FileCheck %s
#acc = #warp.layout<[256, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0], [128, 0]]>
#a = #warp.layout<[256, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0], [64, 0], [128, 0]]>
#b = #warp.layout<[32, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0]]>
#p = #warp.layout<[256, 32], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0], [128, 0]]>
#s = #warp.layout<[16], offset = [[1], [2], [4], [8]]>

// Two warpgroups: eight barriers, and the address behind them; each has half of the columns, and a named barrier.
// CHECK-LABEL: llvm.func @kernel
// CHECK: %[[COUNT:.*]] = llvm.alloca
// CHECK: "@$1 mbarrier.init.shared.b64 [$0], 1; @$1 fence.mbarrier_init.release.cluster;"
// CHECK: "@$1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [$0+64], 128; @$1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; tcgen05.fence::before_thread_sync;"
// CHECK: nvvm.barrier0
// CHECK: "tcgen05.fence::after_thread_sync;"
// CHECK: "tcgen05.st.sync.aligned.32x32b.x16.b32 [$16+32], {$0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15};"
// CHECK: "tcgen05.wait::st.sync.aligned;"
// CHECK: "tcgen05.st.sync.aligned.32x32b.x16.b32 [$16+48],
// CHECK: "tcgen05.fence::before_thread_sync; bar.sync $0, 128; tcgen05.fence::after_thread_sync;"

// One thread starts both steps along K, and they arrive at the barrier of the count's two lowest bits. The instruction is one
// of bf16 with sums of f32, 128 × 16, whose B lies along N.
// CHECK: llvm.load %[[COUNT]]
// CHECK: "{ .reg .pred acts, old, none; {{.*}}@!$1 bra others; elect.sync _|acts, -1;
// CHECK-SAME: mov.b32 ha, 2147500064; mov.b32 hb, 3221241872; add.u32 sums, $0, 32;
// CHECK-SAME: @acts tcgen05.mma.cta_group::1.kind::f16 [sums], da, db, 134546576, none; {{.*}}@acts tcgen05.mma.cta_group::1.kind::f16 [sums], da, db, 134546576, old;
// CHECK-SAME: @acts tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [$4]; others: }"
// CHECK: llvm.store %{{.*}}, %[[COUNT]]

// Operand a in columns, 8 for each step.
// CHECK: "{ .reg .pred acts, old, none;
// CHECK-SAME: add.u32 from, $0, 48; @acts tcgen05.mma.cta_group::1.kind::f16 [sums], [from], db, 134546576, old; {{.*}}add.u32 from, $0, 56; @acts tcgen05.mma

// A wait for both: for the one before the last too, since its barrier comes again.
// CHECK-COUNT-2: "{ .reg .pred done; @$2 bra ended; again: mbarrier.try_wait.parity.shared.b64 done, [$0], $1; @!done bra again; ended: }"
// CHECK: "tcgen05.fence::after_thread_sync;"

// CHECK: "tcgen05.ld.sync.aligned.32x32b.x16.b32 {$0, $1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15}, [$16+32]; tcgen05.wait::ld.sync.aligned;"
// CHECK-COUNT-8: llvm.fmul %{{.*}}, %{{.*}} : vector<2xf32>
// CHECK: "tcgen05.st.sync.aligned.32x32b.x16.b32 [$16+32]
// CHECK: "tcgen05.ld.sync.aligned.32x32b.x16.b32
// CHECK: "tcgen05.fence::before_thread_sync;"
// CHECK: nvvm.barrier0
// CHECK: "tcgen05.fence::after_thread_sync; @$1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 $0, 128;"
module attributes {warp.target = "sm_100a"} {
  func.func @kernel(%y: f32, %z: bf16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 1>} {
    %a = warp.alloc {offset = 0 : i64} : !warp.shared<256x32xbf16, #a>
    %b = warp.alloc {offset = 16384 : i64} : !warp.shared<32x16xbf16, #b>
    %slots = warp.alloc {offset = 17408 : i64} : !warp.shared<16xi64, #s>
    %area, %lanes = warp.tensor_begin %slots {columns = 64 : i32, barriers = 4 : i32} : !warp.shared<16xi64, #s>
    %x = tile.splat %y : f32 -> tensor<256x16xf32, #acc>
    %p = tile.splat %z : bf16 -> tensor<256x32xbf16, #p>
    warp.tensor_store %x, %lanes {column = 32 : i32} : tensor<256x16xf32, #acc>
    warp.tensor_store %p, %lanes {column = 48 : i32} : tensor<256x32xbf16, #p>
    warp.tensor_ready
    warp.tensor_product %b, %area, %slots with %a {column = 32 : i32, sums = tensor<256x16xf32, #acc>, shape = array<i32: 128, 16, 16>, zero}
      : !warp.shared<32x16xbf16, #b>, !warp.shared<16xi64, #s>, !warp.shared<256x32xbf16, #a>
    warp.tensor_product %b, %area, %slots {column = 32 : i32, from = 48 : i32, stored = tensor<256x32xbf16, #p>, sums = tensor<256x16xf32, #acc>, shape = array<i32: 128, 16, 16>}
      : !warp.shared<32x16xbf16, #b>, !warp.shared<16xi64, #s>
    warp.tensor_wait %slots {pending = 0 : i32, count = 2 : i32} : !warp.shared<16xi64, #s>
    warp.tensor_scale %x, %lanes {column = 32 : i32} : tensor<256x16xf32, #acc>
    %sums = warp.tensor_load %lanes {column = 32 : i32} : tensor<256x16xf32, #acc>
    warp.tensor_end %area {columns = 64 : i32}
    return
  }
}

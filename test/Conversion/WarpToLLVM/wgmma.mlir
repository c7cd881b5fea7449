// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

#acc = #warp.layout<[128, 16], register = [[0, 1], [8, 0], [0, 8], [64, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#a = #warp.layout<[128, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #warp.layout<[32, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0]]>

// Two tiles along M, two steps along K, in one piece: A steps by 32 bytes along K and by 64 lines of 64 bytes along M; B, turned, by 16 lines of 32 bytes.
// Descriptors: lines of 64 bytes, 512 to the next eight; of 32 bytes, 256 to the next eight, 1024 to the next panel.
// CHECK-LABEL: llvm.func @shared
// CHECK-DAG: llvm.mlir.constant(65536 : i32)
// CHECK-DAG: llvm.mlir.constant(4194304 : i32)
// CHECK: llvm.inline_asm has_side_effects {{.*}}"{ .reg .pred old, none; .reg .b32 la, lb, ha, hb; .reg .b64 da, db; setp.eq.u32 old, 0, 0; setp.ne.u32 none, 0, 0;
// CHECK-SAME: mov.b32 ha, 2147483680; mov.b32 hb, 3221225488; wgmma.fence.sync.aligned;
// CHECK-SAME: add.u32 lb, $33, 0; mov.b64 db, {lb, hb}; add.u32 la, $32, 0; mov.b64 da, {la, ha}; wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$0, $1, $2, $3, $4, $5, $6, $7}, da, db, old, 1, 1, 0, 1;
// CHECK-SAME: add.u32 lb, $33, 32; mov.b64 db, {lb, hb}; add.u32 la, $32, 2; mov.b64 da, {la, ha}; wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$0,
// CHECK-SAME: add.u32 lb, $33, 0; mov.b64 db, {lb, hb}; add.u32 la, $32, 256; mov.b64 da, {la, ha}; wgmma.mma_async.sync.aligned.m64n16k16.f32.bf16.bf16 {$8, $9, $10, $11, $12, $13, $14, $15}, da, db, old, 1, 1, 0, 1;
// CHECK-SAME: add.u32 lb, $33, 32; mov.b64 db, {lb, hb}; add.u32 la, $32, 258;
// CHECK-SAME: wgmma.commit_group.sync.aligned; }"
// CHECK: llvm.inline_asm has_side_effects {{.*}}"wgmma.wait_group.sync.aligned 0;", "=f,=f,{{.*}},0,1,
// CHECK: llvm.inline_asm has_side_effects {{.*}}"fence.proxy.async.shared::cta;"
module attributes {warp.target = "sm_90a"} {
  func.func @shared(%y: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %a = warp.alloc {offset = 0 : i64} : !warp.shared<128x32xbf16, #a>
    %b = warp.alloc {offset = 8192 : i64} : !warp.shared<32x16xbf16, #b>
    %c = tile.splat %y : f32 -> tensor<128x16xf32, #acc>
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 16>} : !warp.shared<128x32xbf16, #a> * !warp.shared<32x16xbf16, #b> -> tensor<128x16xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<128x16xf32, #acc>
    warp.proxy_fence
    return
  }
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[32, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0]]>

// In a ring: the place of the stage is added in units of 16 bytes, and steps are additions of 64 bits.
// CHECK-LABEL: llvm.func @ring
// CHECK-DAG: %[[LOW:.*]] = llvm.or
// CHECK-DAG: %[[STAGE:.*]] = llvm.lshr %arg0, %{{.*}} : i32
// CHECK: llvm.add %[[LOW]], %[[STAGE]] : i32
// CHECK: llvm.inline_asm has_side_effects {{.*}}mov.b64 db, {$16, hb}; wgmma{{.*}}add.s64 db, db, 32; wgmma
module attributes {warp.target = "sm_90a"} {
  func.func @ring(%stage: i32, %x: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %ring = warp.alloc {offset = 0 : i64} : !warp.shared<stages = 2, 32x16xf16, #b>
    %b = warp.stage %ring[%stage] {step = 1024 : i64} : !warp.shared<stages = 2, 32x16xf16, #b> -> !warp.shared<32x16xf16, #b>
    %a = arith.constant dense<1.0> : tensor<64x32xf16, #warp.layout<[64, 32], register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>>
    %c = arith.constant dense<0.0> : tensor<64x16xf32, #acc>
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 16>} : tensor<64x32xf16, #warp.layout<[64, 32], register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>> * !warp.shared<32x16xf16, #b> -> tensor<64x16xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>

// A in registers; a start from zero reads no accumulators.
// CHECK-LABEL: llvm.func @registers
// CHECK: llvm.inline_asm has_side_effects {{.*}}wgmma.mma_async.sync.aligned.m64n16k16.f32.f16.f16 {$0, $1, $2, $3, $4, $5, $6, $7}, {$8, $9, $10, $11}, db, none, 1, 1, 0; wgmma.commit_group.sync.aligned; }", "=f,=f,=f,=f,=f,=f,=f,=f,r,r,r,r,r,~{memory}"
module attributes {warp.target = "sm_90a"} {
  func.func @registers(%x: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %a = tile.splat %x : f16 -> tensor<64x16xf16, #acc>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<16x16xf16, #b>
    %c = arith.constant dense<0.0> : tensor<64x16xf32, #acc>
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #acc> * !warp.shared<16x16xf16, #b> -> tensor<64x16xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#load = #warp.layout<[16, 16], register = [[0, 1]], lane = [[0, 2], [0, 4], [0, 8], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
module attributes {warp.target = "sm_90a"} {
  func.func @not_staged(%x: f16, %y: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %a = tile.splat %x : f16 -> tensor<64x16xf16, #acc>
    %b = tile.splat %x : f16 -> tensor<16x16xf16, #load>
    %c = tile.splat %y : f32 -> tensor<64x16xf32, #acc>
    // expected-error @below {{'warp.wgmma' op has an operand that is not where its instructions take it from; run 'warp-stage-wgmma' before}}
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #acc> * tensor<16x16xf16, #load> -> tensor<64x16xf32, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
module attributes {warp.target = "sm_90a"} {
  func.func @sums_of_f16(%x: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %a = tile.splat %x : f16 -> tensor<64x16xf16, #acc>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<16x16xf16, #b>
    %c = tile.splat %x : f16 -> tensor<64x16xf16, #acc>
    // expected-error @below {{'warp.wgmma' op has no instruction for 'f16' and 'f16'}}
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #acc> * !warp.shared<16x16xf16, #b> -> tensor<64x16xf16, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>

// A fence of several products: sums and factors, these in words, go through it, and the products have none of their own.
// CHECK-LABEL: llvm.func @fenced
// CHECK: %[[F:.*]] = llvm.inline_asm has_side_effects {{.*}}"wgmma.fence.sync.aligned;", "=f,=f,=f,=f,=f,=f,=f,=f,=r,=r,=r,=r,0,1,2,3,4,5,6,7,8,9,10,11,~{memory}"
// CHECK: llvm.inline_asm has_side_effects {{.*}}"{ .reg
// CHECK-NOT: wgmma.fence
// CHECK-SAME: wgmma.commit_group
module attributes {warp.target = "sm_90a"} {
  func.func @fenced(%x: f32, %y: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<16x16xf16, #b>
    %c = tile.splat %x : f32 -> tensor<64x16xf32, #acc>
    %a = tile.splat %y : f16 -> tensor<64x16xf16, #acc>
    %f:2 = warp.wgmma_fence %c, %a : tensor<64x16xf32, #acc>, tensor<64x16xf16, #acc>
    %d = warp.wgmma %f#1, %b, %f#0 {fenced, shape = array<i32: 64, 16, 16>} : tensor<64x16xf16, #acc> * !warp.shared<16x16xf16, #b> -> tensor<64x16xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #acc>
    return
  }
}

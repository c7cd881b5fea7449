// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#a = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 0], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#b = #warp.layout<[64, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [0, 1], [16, 2], [32, 4], [0, 8]]>

// Sums of integers are in registers of integers; no signs of operands, nothing turned. Steps along K are 32 elements of a byte.
// CHECK-LABEL: llvm.func @integers
// CHECK: llvm.inline_asm has_side_effects {{.*}}wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.s8 {$0, $1, $2, $3, $4, $5, $6, $7}, da, db, old; add.u32 lb, $17, 2;
// CHECK-SAME: add.u32 la, $16, 2;
// CHECK-SAME: "=r,=r,=r,=r,=r,=r,=r,=r,0,1,2,3,4,5,6,7,r,r,~{memory}"
// CHECK: "wgmma.wait_group.sync.aligned 0;", "=r,=r,
module attributes {warp.target = "sm_90a"} {
  func.func @integers(%y: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %a = warp.alloc {offset = 0 : i64} : !warp.shared<64x64xi8, #a>
    %b = warp.alloc {offset = 4096 : i64} : !warp.shared<64x16xi8, #b>
    %c = tile.splat %y : i32 -> tensor<64x16xi32, #acc>
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 32>} : !warp.shared<64x64xi8, #a> * !warp.shared<64x16xi8, #b> -> tensor<64x16xi32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xi32, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[32, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1], [0, 2], [16, 4], [0, 8]]>
#ra = #warp.layout<[64, 32], register = [[0, 1], [0, 2], [8, 0], [0, 16]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// A in registers, four to a word; a start from an integer zero reads no sums.
// CHECK-LABEL: llvm.func @in_registers
// CHECK: wgmma.mma_async.sync.aligned.m64n16k32.s32.s8.s8 {$0, $1, $2, $3, $4, $5, $6, $7}, {$8, $9, $10, $11}, db, none; wgmma.commit_group.sync.aligned; }", "=r,=r,=r,=r,=r,=r,=r,=r,r,r,r,r,r,~{memory}"
// CHECK-LABEL: llvm.func @e4m3
// CHECK: wgmma.mma_async.sync.aligned.m64n16k32.f32.e4m3.e4m3 {$0, $1, $2, $3, $4, $5, $6, $7}, {$8, $9, $10, $11}, db, none, 1, 1; wgmma
// CHECK-LABEL: llvm.func @e5m2
// CHECK: wgmma.mma_async.sync.aligned.m64n16k32.f32.e5m2.e5m2 {$0, $1, $2, $3, $4, $5, $6, $7}, {$8, $9, $10, $11}, db, none, 1, 1; wgmma
module attributes {warp.target = "sm_90a"} {
  func.func @in_registers(%x: i8) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %a = tile.splat %x : i8 -> tensor<64x32xi8, #ra>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<32x16xi8, #b>
    %c = arith.constant dense<0> : tensor<64x16xi32, #acc>
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 32>} : tensor<64x32xi8, #ra> * !warp.shared<32x16xi8, #b> -> tensor<64x16xi32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xi32, #acc>
    return
  }
  func.func @e4m3(%x: f8E4M3FN) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %a = tile.splat %x : f8E4M3FN -> tensor<64x32xf8E4M3FN, #ra>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<32x16xf8E4M3FN, #b>
    %c = arith.constant dense<0.0> : tensor<64x16xf32, #acc>
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 32>} : tensor<64x32xf8E4M3FN, #ra> * !warp.shared<32x16xf8E4M3FN, #b> -> tensor<64x16xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #acc>
    return
  }
  func.func @e5m2(%x: f8E5M2) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %a = tile.splat %x : f8E5M2 -> tensor<64x32xf8E5M2, #ra>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<32x16xf8E5M2, #b>
    %c = arith.constant dense<0.0> : tensor<64x16xf32, #acc>
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 32>} : tensor<64x32xf8E5M2, #ra> * !warp.shared<32x16xf8E5M2, #b> -> tensor<64x16xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[32, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [0, 1], [0, 2], [16, 4], [0, 8]]>
#ra = #warp.layout<[64, 32], register = [[0, 1], [0, 2], [8, 0], [0, 16]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
module attributes {warp.target = "sm_90a"} {
  func.func @integers_with_sums_of_floats(%x: i8) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %a = tile.splat %x : i8 -> tensor<64x32xi8, #ra>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<32x16xi8, #b>
    %c = arith.constant dense<0.0> : tensor<64x16xf32, #acc>
    // expected-error @below {{'warp.wgmma' op has no instruction for 'i8' and 'f32'}}
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 32>} : tensor<64x32xi8, #ra> * !warp.shared<32x16xi8, #b> -> tensor<64x16xf32, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
module attributes {warp.target = "sm_90a"} {
  func.func @integers_of_16_bits(%x: i16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %a = tile.splat %x : i16 -> tensor<64x16xi16, #acc>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<16x16xi16, #b>
    %c = arith.constant dense<0> : tensor<64x16xi32, #acc>
    // expected-error @below {{'warp.wgmma' op has no instruction for 'i16' and 'i32'}}
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 16>} : tensor<64x16xi16, #acc> * !warp.shared<16x16xi16, #b> -> tensor<64x16xi32, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [4, 2], [8, 4], [0, 8]]>
#ra = #warp.layout<[64, 16], register = [[8, 0], [0, 4], [0, 8]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>

// f32 is read as TF32, 8 along K at once, and rounded by an instruction of its own.
// CHECK-LABEL: llvm.func @tf32
// CHECK: llvm.call_intrinsic "llvm.nvvm.f2tf32.rn"
// CHECK: wgmma.mma_async.sync.aligned.m64n16k8.f32.tf32.tf32 {$0, $1, $2, $3, $4, $5, $6, $7}, {$8, $9, $10, $11}, db, none, 1, 1; {{.*}}add.u32 lb, ${{[0-9]+}}, 2;{{.*}}{$12, $13, $14, $15}, db, old, 1, 1; wgmma.commit
module attributes {warp.target = "sm_90a"} {
  func.func @tf32(%x: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %s = tile.splat %x : f32 -> tensor<64x16xf32, #ra>
    %a = warp.round_tf32 %s : tensor<64x16xf32, #ra>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<16x16xf32, #b>
    %c = arith.constant dense<0.0> : tensor<64x16xf32, #acc>
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 16, 8>} : tensor<64x16xf32, #ra> * !warp.shared<16x16xf32, #b> -> tensor<64x16xf32, #acc>
    %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x16xf32, #acc>
    return
  }
}

// -----

// Of 8 bits, those whose sums are in tensor memory are turned alone.

#acc = #warp.layout<[64, 32], register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[32, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 0], [4, 16], [8, 0], [16, 0]]>
#ra = #warp.layout<[64, 32], register = [[0, 1], [0, 2], [8, 0], [0, 16]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
module attributes {warp.target = "sm_90a"} {
  func.func @turned(%x: i8) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %a = tile.splat %x : i8 -> tensor<64x32xi8, #ra>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<32x32xi8, #b>
    %c = arith.constant dense<0> : tensor<64x32xi32, #acc>
    // expected-error @below {{'warp.wgmma' op has an operand of 'i8' whose neighbours do not lie along K, which no instruction of a warpgroup turns}}
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 64, 32, 32>} : tensor<64x32xi8, #ra> * !warp.shared<32x32xi8, #b> -> tensor<64x32xi32, #acc>
    return
  }
}

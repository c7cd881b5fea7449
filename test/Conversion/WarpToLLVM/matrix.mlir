// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

#acc = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#a = #warp.layout<[16, 32], register = [[0, 1], [8, 0], [0, 8], [0, 16]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[32, 16], register = [[1, 0], [8, 0], [16, 0], [0, 8]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>

// [16, 32] · [32, 16]: two instructions along N, two along K. The second of a pair along K adds to the first one's result.
// CHECK-LABEL: llvm.func @f16
// CHECK: %[[D0:.*]] = llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"({{.*}}) : (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
// CHECK: %[[S0:.*]] = llvm.extractvalue %[[D0]][0]
// CHECK: llvm.nvvm.mma.m16n8k16
// CHECK: llvm.call_intrinsic "llvm.nvvm.mma.m16n8k16.row.col.f32.f32"({{.*}}, %[[S0]], %{{.*}}, %{{.*}}, %{{.*}}) :
// CHECK: llvm.nvvm.mma.m16n8k16
// CHECK-NOT: llvm.nvvm.mma
module attributes {warp.target = "sm_80"} {
  func.func @f16(%x: f16, %y: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %a = tile.splat %x : f16 -> tensor<16x32xf16, #a>
    %b = tile.splat %x : f16 -> tensor<32x16xf16, #b>
    %c = tile.splat %y : f32 -> tensor<16x16xf32, #acc>
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<16x32xf16, #a> * tensor<32x16xf16, #b> -> tensor<16x16xf32, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#a = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[16, 16], register = [[1, 0], [8, 0], [0, 8]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>

// bf16 goes in as 32-bit words; an f16 accumulator as pairs.
// CHECK-LABEL: llvm.func @other_halves
// CHECK-COUNT-2: "llvm.nvvm.mma.m16n8k16.row.col.bf16"({{.*}}) : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
// CHECK-COUNT-2: "llvm.nvvm.mma.m16n8k16.row.col.f16.f16"({{.*}}) : (vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>, vector<2xf16>) -> !llvm.struct<(vector<2xf16>, vector<2xf16>)>
// CHECK-NOT: llvm.nvvm.mma
module attributes {warp.target = "sm_80"} {
  func.func @other_halves(%x: bf16, %y: f32, %z: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %a = tile.splat %x : bf16 -> tensor<16x16xbf16, #a>
    %b = tile.splat %x : bf16 -> tensor<16x16xbf16, #b>
    %c = tile.splat %y : f32 -> tensor<16x16xf32, #acc>
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<16x16xbf16, #a> * tensor<16x16xbf16, #b> -> tensor<16x16xf32, #acc>
    %e = tile.splat %z : f16 -> tensor<16x16xf16, #a>
    %f = tile.splat %z : f16 -> tensor<16x16xf16, #b>
    %g = tile.splat %z : f16 -> tensor<16x16xf16, #acc>
    %h = warp.mma %e, %f, %g {shape = array<i32: 16, 8, 16>} : tensor<16x16xf16, #a> * tensor<16x16xf16, #b> -> tensor<16x16xf16, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#a = #warp.layout<[16, 16], register = [[8, 0], [0, 4], [0, 8]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[16, 16], register = [[4, 0], [8, 0], [0, 8]], lane = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]]>

// f32 is rounded to tf32 first: to nearest, once for each value. tf32x3 adds the products with what the rounding lost.
// CHECK-LABEL: llvm.func @tf32(
// CHECK-COUNT-2: "llvm.nvvm.f2tf32.rna"(%{{.*}}) : (f32) -> i32
// CHECK-NOT: f2tf32
// CHECK-COUNT-4: "llvm.nvvm.mma.m16n8k8.row.col.tf32"({{.*}}) : (i32, i32, i32, i32, i32, i32, f32, f32, f32, f32)
// CHECK-NOT: llvm.nvvm.mma
// CHECK-LABEL: llvm.func @tf32x3
// CHECK: %[[HIGH:.*]] = llvm.call_intrinsic "llvm.nvvm.f2tf32.rna"(%[[X:.*]]) :
// CHECK: %[[ROUNDED:.*]] = llvm.bitcast %[[HIGH]] : i32 to f32
// CHECK: %[[REST:.*]] = llvm.fsub %[[X]], %[[ROUNDED]]
// CHECK: %[[LOW:.*]] = llvm.call_intrinsic "llvm.nvvm.f2tf32.rna"(%[[REST]])
// CHECK: "llvm.nvvm.mma.m16n8k8.row.col.tf32"(%[[LOW]], %[[LOW]], %[[LOW]], %[[LOW]],
// CHECK-COUNT-11: "llvm.nvvm.mma.m16n8k8.row.col.tf32"
// CHECK-NOT: llvm.nvvm.mma
module attributes {warp.target = "sm_80"} {
  func.func @tf32(%x: f32, %y: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %a = tile.splat %x : f32 -> tensor<16x16xf32, #a>
    %b = tile.splat %y : f32 -> tensor<16x16xf32, #b>
    %c = tile.splat %y : f32 -> tensor<16x16xf32, #acc>
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 8>} : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #acc>
    return
  }
  func.func @tf32x3(%x: f32, %y: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %a = tile.splat %x : f32 -> tensor<16x16xf32, #a>
    %b = tile.splat %y : f32 -> tensor<16x16xf32, #b>
    %c = tile.splat %y : f32 -> tensor<16x16xf32, #acc>
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 8>, precision = #tile<precision tf32x3>} : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#a = #warp.layout<[16, 16], register = [[8, 0], [0, 4], [0, 8]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[16, 16], register = [[4, 0], [8, 0], [0, 8]], lane = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]]>

// Ties go to even where the target has an instruction for that.
// CHECK-LABEL: llvm.func @tf32_to_even(
// CHECK-COUNT-2: "llvm.nvvm.f2tf32.rn"(%{{.*}}) : (f32) -> i32
// CHECK-NOT: f2tf32
module attributes {warp.target = "sm_90a"} {
  func.func @tf32_to_even(%x: f32, %y: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %a = tile.splat %x : f32 -> tensor<16x16xf32, #a>
    %b = tile.splat %y : f32 -> tensor<16x16xf32, #b>
    %c = tile.splat %y : f32 -> tensor<16x16xf32, #acc>
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 8>} : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#a = #warp.layout<[16, 16], register = [[8, 0], [0, 4], [0, 8]], lane = [[0, 1], [0, 2], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[16, 16], register = [[4, 0], [8, 0], [0, 8]], lane = [[1, 0], [2, 0], [0, 1], [0, 2], [0, 4]]>

// What was widened from 16 bits, or cut off, is tf32 already: it is not rounded, and of three products those with what the
// rounding lost are left out.
// CHECK-LABEL: llvm.func @exact(
// CHECK-COUNT-1: "llvm.nvvm.f2tf32.rna"
// CHECK-NOT: f2tf32
// CHECK-COUNT-4: "llvm.nvvm.mma.m16n8k8.row.col.tf32"
// CHECK-NOT: llvm.nvvm.mma
// CHECK-LABEL: llvm.func @exact_and_not(
// CHECK-COUNT-2: "llvm.nvvm.f2tf32.rna"
// CHECK-NOT: f2tf32
// CHECK-COUNT-8: "llvm.nvvm.mma.m16n8k8.row.col.tf32"
// CHECK-NOT: llvm.nvvm.mma
// CHECK-LABEL: llvm.func @cut(
// CHECK-COUNT-1: "llvm.nvvm.f2tf32.rna"
// CHECK-NOT: f2tf32
// CHECK-LABEL: llvm.func @cut_too_late(
// CHECK-COUNT-2: "llvm.nvvm.f2tf32.rna"
module attributes {warp.target = "sm_80"} {
  func.func @exact(%x: bf16, %y: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %narrow = tile.splat %x : bf16 -> tensor<16x16xbf16, #a>
    %wide = arith.extf %narrow : tensor<16x16xbf16, #a> to tensor<16x16xf32, #a>
    %a = arith.negf %wide : tensor<16x16xf32, #a>
    %b = tile.splat %y : f32 -> tensor<16x16xf32, #b>
    %c = tile.splat %y : f32 -> tensor<16x16xf32, #acc>
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 8>} : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #acc>
    return
  }
  func.func @exact_and_not(%x: f16, %y: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %narrow = tile.splat %x : f16 -> tensor<16x16xf16, #a>
    %a = arith.extf %narrow : tensor<16x16xf16, #a> to tensor<16x16xf32, #a>
    %b = tile.splat %y : f32 -> tensor<16x16xf32, #b>
    %c = tile.splat %y : f32 -> tensor<16x16xf32, #acc>
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 8>, precision = #tile<precision tf32x3>} : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #acc>
    return
  }
  func.func @cut(%x: i32, %y: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %kept = arith.constant dense<-8192> : tensor<16x16xi32, #a>
    %bits = tile.splat %x : i32 -> tensor<16x16xi32, #a>
    %rest = arith.andi %bits, %kept : tensor<16x16xi32, #a>
    %a = arith.bitcast %rest : tensor<16x16xi32, #a> to tensor<16x16xf32, #a>
    %b = tile.splat %y : f32 -> tensor<16x16xf32, #b>
    %c = tile.splat %y : f32 -> tensor<16x16xf32, #acc>
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 8>} : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #acc>
    return
  }
  func.func @cut_too_late(%x: i32, %y: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %kept = arith.constant dense<-4096> : tensor<16x16xi32, #a>
    %bits = tile.splat %x : i32 -> tensor<16x16xi32, #a>
    %rest = arith.andi %bits, %kept : tensor<16x16xi32, #a>
    %a = arith.bitcast %rest : tensor<16x16xi32, #a> to tensor<16x16xf32, #a>
    %b = tile.splat %y : f32 -> tensor<16x16xf32, #b>
    %c = tile.splat %y : f32 -> tensor<16x16xf32, #acc>
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 8>} : tensor<16x16xf32, #a> * tensor<16x16xf32, #b> -> tensor<16x16xf32, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#a = #warp.layout<[16, 32], register = [[0, 1], [0, 2], [8, 0], [0, 16]], lane = [[0, 4], [0, 8], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[32, 16], register = [[1, 0], [2, 0], [16, 0], [0, 8]], lane = [[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]]>

// CHECK-LABEL: llvm.func @s8
// CHECK-COUNT-2: "llvm.nvvm.mma.m16n8k32.row.col.s8"({{.*}}) : (i32, i32, i32, i32, i32, i32, i32, i32, i32, i32) -> !llvm.struct<(i32, i32, i32, i32)>
// CHECK-NOT: llvm.nvvm.mma
module attributes {warp.target = "sm_80"} {
  func.func @s8(%x: i8, %y: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %a = tile.splat %x : i8 -> tensor<16x32xi8, #a>
    %b = tile.splat %x : i8 -> tensor<32x16xi8, #b>
    %c = tile.splat %y : i32 -> tensor<16x16xi32, #acc>
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 32>} : tensor<16x32xi8, #a> * tensor<32x16xi8, #b> -> tensor<16x16xi32, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#a = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[16, 16], register = [[1, 0], [8, 0], [0, 8]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>

module attributes {warp.target = "sm_80"} {
  func.func @no_instruction(%x: bf16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %a = tile.splat %x : bf16 -> tensor<16x16xbf16, #a>
    %b = tile.splat %x : bf16 -> tensor<16x16xbf16, #b>
    %c = tile.splat %x : bf16 -> tensor<16x16xbf16, #acc>
    // expected-error @below {{has no matrix instruction for}}
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 16>} : tensor<16x16xbf16, #a> * tensor<16x16xbf16, #b> -> tensor<16x16xbf16, #acc>
    return
  }
}

// -----

#acc = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#a = #warp.layout<[16, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#b = #warp.layout<[8, 8], register = [[1, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>

// Halves with an inner size of 8 have an instruction of their own.
// CHECK-LABEL: llvm.func @inner_of_8
// CHECK: "llvm.nvvm.mma.m16n8k8.row.col.f32.f32"({{.*}}) : (vector<2xf16>, vector<2xf16>, vector<2xf16>, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
// CHECK: "llvm.nvvm.mma.m16n8k8.row.col.bf16"({{.*}}) : (i32, i32, i32, f32, f32, f32, f32) -> !llvm.struct<(f32, f32, f32, f32)>
// CHECK-NOT: llvm.nvvm.mma
module attributes {warp.target = "sm_80"} {
  func.func @inner_of_8(%x: f16, %z: bf16, %y: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %a = tile.splat %x : f16 -> tensor<16x8xf16, #a>
    %b = tile.splat %x : f16 -> tensor<8x8xf16, #b>
    %c = tile.splat %y : f32 -> tensor<16x8xf32, #acc>
    %d = warp.mma %a, %b, %c {shape = array<i32: 16, 8, 8>} : tensor<16x8xf16, #a> * tensor<8x8xf16, #b> -> tensor<16x8xf32, #acc>
    %e = tile.splat %z : bf16 -> tensor<16x8xbf16, #a>
    %f = tile.splat %z : bf16 -> tensor<8x8xbf16, #b>
    %g = warp.mma %e, %f, %d {shape = array<i32: 16, 8, 8>} : tensor<16x8xbf16, #a> * tensor<8x8xbf16, #b> -> tensor<16x8xf32, #acc>
    return
  }
}

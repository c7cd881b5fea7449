// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file %s | FileCheck %s

#full = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = []>

// Every thread holds its own elements: no condition, and no exchange.
// CHECK-LABEL: llvm.func @own
// CHECK-COUNT-2: "{ atom.acq_rel.gpu.global.add.f32 $0, $1, $2; }", "=r,*m,r,~{memory}"
// CHECK-NOT: nvvm.barrier0
module attributes {warp.target = "sm_80"} {
  func.func @own(%x: !tile.ptr<f32>, %s: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #full>
    %b = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #full>
    %p = tile.addptr %b, %r : tensor<64x!tile.ptr<f32>, #full>, tensor<64xi32, #full>
    %v = tile.splat %s : f32 -> tensor<64xf32, #full>
    %old = tile.atomic_rmw fadd %p, %v : (tensor<64x!tile.ptr<f32>, #full>, tensor<64xf32, #full>) -> tensor<64xf32, #full>
    tile.store %p, %old : tensor<64x!tile.ptr<f32>, #full>
    return
  }
}

// -----

// One thread acts for a scalar, and hands the old value round through eight bytes of shared memory, which it alone writes:
// the barrier before it acts also orders what the program did before, the one after it what it does after.
// CHECK: llvm.mlir.global internal @weft_atomic_exchange() {{.*}} : !llvm.array<1 x i64>
// CHECK-LABEL: llvm.func @scalar
// CHECK: %[[FIRST:.*]] = llvm.icmp "eq" %{{.*}}, %{{.*}} : i32
// CHECK: nvvm.barrier0
// CHECK: %[[OLD:.*]] = llvm.inline_asm has_side_effects {{.*}}"{ @$3 atom.relaxed.gpu.global.add.u32 $0, $1, $2; }", "=r,*m,r,b,~{memory}" %{{.*}}, %{{.*}}, %[[FIRST]]
// CHECK-NEXT: llvm.and
// CHECK: %[[ACTS:.*]] = llvm.icmp "eq"
// CHECK: "@$2 st.shared.b32 $1, $0;", "r,*m,b,~{memory}" %[[OLD]], %{{.*}}, %[[ACTS]]
// CHECK: nvvm.barrier0
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
module attributes {warp.target = "sm_80"} {
  func.func @scalar(%x: !tile.ptr<i32>, %s: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %old = tile.atomic_rmw add %x, %s {order = #tile<order relaxed>} : (!tile.ptr<i32>, i32) -> i32
    tile.store %x, %old : !tile.ptr<i32>
    return
  }
}

// -----

// A result that nobody reads is not handed round. What releases only is a reduction; what acquires is none.
// CHECK-LABEL: llvm.func @unread
// CHECK: "{ @$3 atom.acq_rel.gpu.global.cas.b32 _, $0, $1, $2; }", "*m,r,r,b,~{memory}"
// CHECK: "{ @$2 red.release.sys.global.max.u32 $0, $1; }", "*m,r,b,~{memory}"
// CHECK: "{ @$2 atom.acquire.cta.global.exch.b32 _, $0, $1; }", "*m,r,b,~{memory}"
// CHECK-NOT: nvvm.barrier0
module attributes {warp.target = "sm_80"} {
  func.func @unread(%x: !tile.ptr<i32>, %s: i32) attributes {tile.kernel} {
    %0 = tile.atomic_cas %x, %s, %s : (!tile.ptr<i32>, i32, i32) -> i32
    %1 = tile.atomic_rmw umax %x, %s {order = #tile<order release>, scope = #tile<scope sys>} : (!tile.ptr<i32>, i32) -> i32
    %2 = tile.atomic_rmw exchange %x, %s {order = #tile<order acquire>, scope = #tile<scope cta>} : (!tile.ptr<i32>, i32) -> i32
    return
  }
}

// -----

#one = #warp.layout<[32], register = [], lane = [[1], [2], [4], [8], [16]], warp = []>

// Where the mask is false the old value is undefined.
// CHECK-LABEL: llvm.func @masked
// CHECK: "{ .reg .b64 undefined; mul.lo.s64 $0, undefined, 0; @$3 atom.acq_rel.gpu.global.and.b64 $0, $1, $2; }", "=l,*m,l,b,~{memory}"
module attributes {warp.target = "sm_80"} {
  func.func @masked(%x: !tile.ptr<i64>, %s: i64, %c: i1) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #one>
    %b = tile.splat %x : !tile.ptr<i64> -> tensor<32x!tile.ptr<i64>, #one>
    %p = tile.addptr %b, %r : tensor<32x!tile.ptr<i64>, #one>, tensor<32xi32, #one>
    %v = tile.splat %s : i64 -> tensor<32xi64, #one>
    %m = tile.splat %c : i1 -> tensor<32xi1, #one>
    %old = tile.atomic_rmw and %p, %v, %m : (tensor<32x!tile.ptr<i64>, #one>, tensor<32xi64, #one>, tensor<32xi1, #one>) -> tensor<32xi64, #one>
    tile.store %p, %old : tensor<32x!tile.ptr<i64>, #one>
    return
  }
}

// -----

// What the target has no instruction for is a loop of compare-and-swap, between fences. It swaps the element's own 16
// bits: the word around it may end behind the array.
// CHECK-LABEL: llvm.func @expanded
// CHECK: llvm.fence syncscope("device") acq_rel
// CHECK-NEXT: %[[FIRST:.*]] = llvm.load %{{.*}} atomic syncscope("device") monotonic {alignment = 2 : i64} : !llvm.ptr<1> -> i16
// CHECK-NEXT: llvm.br ^[[SWAPS:.*]](%[[FIRST]] : i16)
// CHECK: ^[[SWAPS]](%[[OLD:.*]]: i16)
// CHECK: %[[SUM:.*]] = llvm.fadd
// CHECK: "{ atom.relaxed.gpu.global.cas.b16 $0, $1, $2, $3; }"
// CHECK: %[[DONE:.*]] = llvm.icmp "eq" %[[SEEN:.*]], %[[OLD]] : i16
// CHECK-NEXT: llvm.cond_br %[[DONE]], ^[[ENDS:.*]], ^[[SWAPS]](%[[SEEN]] : i16)
// CHECK: ^[[ENDS]]:
// CHECK-NEXT: llvm.fence syncscope("device") acq_rel
module attributes {warp.target = "sm_80"} {
  func.func @expanded(%x: !tile.ptr<bf16>, %s: bf16) attributes {tile.kernel} {
    %0 = tile.atomic_rmw fadd %x, %s : (!tile.ptr<bf16>, bf16) -> bf16
    return
  }
}

// -----

// CHECK-LABEL: llvm.func @native
// CHECK: red.relaxed.gpu.global.add.noftz.bf16
module attributes {warp.target = "sm_90a"} {
  func.func @native(%x: !tile.ptr<bf16>, %s: bf16) attributes {tile.kernel} {
    %0 = tile.atomic_rmw fadd %x, %s {order = #tile<order relaxed>} : (!tile.ptr<bf16>, bf16) -> bf16
    return
  }
}

// -----

#pairs = #warp.layout<[128], register = [[1], [64]], lane = [[2], [4], [8], [16], [32]], warp = []>

// Two neighbours of 16 bits that are known to be so are one word, old values too.
// CHECK-LABEL: llvm.func @pairs
// CHECK-COUNT-2: "{ .reg .b32 undefined; mul.lo.s32 $0, undefined, 0; @$3 atom.acq_rel.gpu.global.add.noftz.f16x2 $0, $1, $2; }", "=r,*m,r,b,~{memory}"
// CHECK-NOT: atom.
module attributes {warp.target = "sm_80"} {
  func.func @pairs(%x: !tile.ptr<f16>, %s: f16, %c: i1) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #pairs>
    %b = tile.splat %x : !tile.ptr<f16> -> tensor<128x!tile.ptr<f16>, #pairs>
    %p = tile.addptr %b, %r : tensor<128x!tile.ptr<f16>, #pairs>, tensor<128xi32, #pairs>
    %v = tile.splat %s : f16 -> tensor<128xf16, #pairs>
    %m = tile.splat %c : i1 -> tensor<128xi1, #pairs>
    %old = tile.atomic_rmw fadd %p, %v, %m {warp.contiguity = 8 : i32} : (tensor<128x!tile.ptr<f16>, #pairs>, tensor<128xf16, #pairs>, tensor<128xi1, #pairs>) -> tensor<128xf16, #pairs>
    tile.store %p, %old : tensor<128x!tile.ptr<f16>, #pairs>
    return
  }
}

// -----

#pairs = #warp.layout<[128], register = [[1], [64]], lane = [[2], [4], [8], [16], [32]], warp = []>

// Not of bf16 on a target without its additions, nor of what else is done to memory.
// CHECK-LABEL: llvm.func @apart
// CHECK-COUNT-4: atom.relaxed.gpu.global.cas.b16
// CHECK-COUNT-4: red.relaxed.gpu.global.max.s32
module attributes {warp.target = "sm_80"} {
  func.func @apart(%x: !tile.ptr<bf16>, %s: bf16, %y: !tile.ptr<i32>, %t: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #pairs>
    %b = tile.splat %x : !tile.ptr<bf16> -> tensor<128x!tile.ptr<bf16>, #pairs>
    %p = tile.addptr %b, %r : tensor<128x!tile.ptr<bf16>, #pairs>, tensor<128xi32, #pairs>
    %v = tile.splat %s : bf16 -> tensor<128xbf16, #pairs>
    %old = tile.atomic_rmw fadd %p, %v {order = #tile<order relaxed>, warp.contiguity = 8 : i32} : (tensor<128x!tile.ptr<bf16>, #pairs>, tensor<128xbf16, #pairs>) -> tensor<128xbf16, #pairs>
    %b1 = tile.splat %y : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>, #pairs>
    %p1 = tile.addptr %b1, %r : tensor<128x!tile.ptr<i32>, #pairs>, tensor<128xi32, #pairs>
    %v1 = tile.splat %t : i32 -> tensor<128xi32, #pairs>
    %old1 = tile.atomic_rmw max %p1, %v1 {order = #tile<order relaxed>, warp.contiguity = 4 : i32} : (tensor<128x!tile.ptr<i32>, #pairs>, tensor<128xi32, #pairs>) -> tensor<128xi32, #pairs>
    return
  }
}

// -----

#pairs = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[0], [0]]>

// What several warps hold is changed by one, which hands both halves of a word round at once: in two exchanges without a
// barrier between, the second half would be written before others have read the first.
// CHECK: llvm.mlir.global internal @weft_atomic_exchange() {{.*}} : !llvm.array<64 x i64>
// CHECK-LABEL: llvm.func @both_halves
// CHECK: nvvm.barrier0
// CHECK: atom.acq_rel.gpu.global.add.noftz.f16x2
// CHECK-NOT: nvvm.barrier0
// CHECK-COUNT-2: "@$2 st.shared.b16 $1, $0;"
// CHECK-NEXT: nvvm.barrier0
// CHECK-COUNT-2: llvm.load %{{.*}} : !llvm.ptr<3> -> f16
// CHECK-NOT: nvvm.barrier0
module attributes {warp.target = "sm_80"} {
  func.func @both_halves(%x: !tile.ptr<f16>, %s: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #pairs>
    %b = tile.splat %x : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>, #pairs>
    %p = tile.addptr %b, %r : tensor<64x!tile.ptr<f16>, #pairs>, tensor<64xi32, #pairs>
    %v = tile.splat %s : f16 -> tensor<64xf16, #pairs>
    %old = tile.atomic_rmw fadd %p, %v {warp.contiguity = 8 : i32} : (tensor<64x!tile.ptr<f16>, #pairs>, tensor<64xf16, #pairs>) -> tensor<64xf16, #pairs>
    tile.store %p, %old : tensor<64x!tile.ptr<f16>, #pairs>
    return
  }
}

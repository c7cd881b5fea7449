// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

#four = #warp.layout<[1024], register = [[1], [2], [512]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]]>

// Vectors of four where the analysis promises them, one address each; a store without a mask is LLVM's own.
// CHECK-LABEL: llvm.func @vectors
// CHECK-SAME: %[[X:.*]]: !llvm.ptr<1> {llvm.align = 16 : i64}
// CHECK-SAME: nvvm.kernel, nvvm.reqntid = array<i32: 128>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<1> -> vector<4xf32>
// CHECK-NOT: llvm.load
// CHECK-COUNT-2: llvm.store %{{.*}} {alignment = 16 : i64} : vector<4xf32>, !llvm.ptr<1>
// CHECK-NOT: llvm.store
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @vectors(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32, #four>
    %b = tile.splat %x : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>, #four>
    %p = tile.addptr %b, %r : tensor<1024x!tile.ptr<f32>, #four>, tensor<1024xi32, #four>
    %v = tile.load %p {warp.contiguity = 4 : i32} : tensor<1024x!tile.ptr<f32>, #four>
    tile.store %p, %v {warp.contiguity = 4 : i32} : tensor<1024x!tile.ptr<f32>, #four>
    return
  }
}

// -----

#four = #warp.layout<[512], register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]]>

// A masked vector is one predicated access; where the mask is false a load gives `other`.
// CHECK-LABEL: llvm.func @masked
// CHECK: llvm.inline_asm has_side_effects {{.*}}"{ mov.b32 $0, $4; mov.b32 $1, $5; mov.b32 $2, $6; mov.b32 $3, $7; @$8 ld.global.v4.b32 {$0, $1, $2, $3}, $9; }", "=r,=r,=r,=r,r,r,r,r,b,*m"
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$5 st.global.v4.b32 $4, {$0, $1, $2, $3};", "r,r,r,r,*m,b"
module attributes {warp.target = "sm_80"} {
  func.func @masked(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32 {tile.divisibility = 16 : i32}, %other: f32)
      attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #four>
    %b = tile.splat %x : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #four>
    %o = tile.splat %other : f32 -> tensor<512xf32, #four>
    %ns = tile.splat %n : i32 -> tensor<512xi32, #four>
    %m = arith.cmpi slt, %r, %ns : tensor<512xi32, #four>
    %p = tile.addptr %b, %r : tensor<512x!tile.ptr<f32>, #four>, tensor<512xi32, #four>
    %v = tile.load %p, %m, %o {warp.contiguity = 4 : i32} : tensor<512x!tile.ptr<f32>, #four>
    tile.store %p, %v, %m {warp.contiguity = 4 : i32} : tensor<512x!tile.ptr<f32>, #four>
    return
  }
}

// -----

#half = #warp.layout<[16], register = [], lane = [[1], [2], [4], [8], [0]], warp = [[0], [0]]>

// Sixteen elements on 128 threads: of the threads that hold one, one stores it. A scalar is stored by thread 0.
// CHECK-LABEL: llvm.func @repeated
// CHECK-DAG: %[[MASK:.*]] = llvm.mlir.constant(112 : i32)
// CHECK: %[[BITS:.*]] = llvm.and %[[TID:.*]], %[[MASK]]
// CHECK: %[[OWNER:.*]] = llvm.icmp "eq" %[[BITS]]
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$2 st.global.b16 $1, $0;", "h,*m,b" %{{.*}}, %{{.*}}, %[[OWNER]]
// CHECK: %[[FIRST:.*]] = llvm.icmp "eq" %[[TID]]
// CHECK: llvm.inline_asm {{.*}}"@$2 st.global.b16 $1, $0;", "h,*m,b" %{{.*}}, %{{.*}}, %[[FIRST]]
module attributes {warp.target = "sm_80"} {
  func.func @repeated(%x: !tile.ptr<f16>, %s: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #half>
    %b = tile.splat %x : !tile.ptr<f16> -> tensor<16x!tile.ptr<f16>, #half>
    %v = tile.splat %s : f16 -> tensor<16xf16, #half>
    %p = tile.addptr %b, %r : tensor<16x!tile.ptr<f16>, #half>, tensor<16xi32, #half>
    tile.store %p, %v : tensor<16x!tile.ptr<f16>, #half>
    tile.store %x, %s : !tile.ptr<f16>
    return
  }
}

// -----

// Where the mask is false and there is no other value, the value is one that nothing wrote.
// CHECK-LABEL: llvm.func @undefined
// CHECK: "{ .reg .b32 undefined; mul.lo.s32 $0, undefined, 0; mov.b32 $1, $0; @$2 ld.global.v2.b32 {$0, $1}, $3; }", "=r,=r,b,*m"
// CHECK: "{ .reg .b16 undefined; mul.lo.s16 $0, undefined, 0; @$1 ld.global.b8 $0, $2; }", "=h,b,*m"
#two = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
module attributes {warp.target = "sm_80"} {
  func.func @undefined(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %q: !tile.ptr<i8>, %n: i32, %c: i1)
      attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #two>
    %b = tile.splat %x : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #two>
    %ns = tile.splat %n : i32 -> tensor<64xi32, #two>
    %m = arith.cmpi slt, %r, %ns : tensor<64xi32, #two>
    %p = tile.addptr %b, %r : tensor<64x!tile.ptr<f32>, #two>, tensor<64xi32, #two>
    %v = tile.load %p, %m {warp.contiguity = 2 : i32} : tensor<64x!tile.ptr<f32>, #two>
    %w = tile.load %q, %c : !tile.ptr<i8>
    return
  }
}

// -----

// Of the threads that hold an element, one reads it where it is volatile, and hands it round.
// CHECK-LABEL: llvm.func @volatile
// CHECK: %[[FIRST:.*]] = llvm.icmp "eq"
// CHECK: "{ @$1 ld.volatile.global.b32 $0, $2; }", "=r,b,*m" %[[FIRST]]
// CHECK: nvvm.barrier0
// CHECK: "@$2 st.shared.b32 $1, $0;"
// CHECK: nvvm.barrier0
// CHECK: llvm.load
module attributes {warp.target = "sm_80"} {
  func.func @volatile(%x: !tile.ptr<i32>) attributes {tile.kernel} {
    %v = tile.load %x {isVolatile} : !tile.ptr<i32>
    tile.store %x, %v : !tile.ptr<i32>
    return
  }
}

// -----

// Cache operators and priorities are PTX qualifiers.
// CHECK-LABEL: llvm.func @modifiers
// CHECK: "{ ld.global.cg.b32 $0, $1; }", "=r,*m"
// CHECK: "{ ld.global.L1::evict_last.b32 $0, $1; }", "=r,*m"
// CHECK: "@$2 st.global.cs.b32 $1, $0;"
module attributes {warp.target = "sm_80"} {
  func.func @modifiers(%x: !tile.ptr<f32>) attributes {tile.kernel} {
    %v = tile.load %x {cache = #tile<cache cg>} : !tile.ptr<f32>
    %w = tile.load %x {eviction = #tile<eviction evict_last>} : !tile.ptr<f32>
    tile.store %x, %v {cache = #tile<cache cs>} : !tile.ptr<f32>
    return
  }
}

// -----

module attributes {warp.target = "sm_80"} {
  func.func @no_layout(%x: !tile.ptr<f32>) attributes {tile.kernel} {
    // expected-error @+1 {{has a result of type 'tensor<16x!tile.ptr<f32>>' without a layout; run 'tile-to-warp' before}}
    %b = tile.splat %x : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>>
    return
  }
}

// -----

#apart = #warp.layout<[512], register = [[128], [256]], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>

// Pointers that count up are one address and constants, but for runs shorter than what a thread has.
// CHECK-LABEL: llvm.func @runs
// CHECK: %[[P:.*]] = llvm.getelementptr %{{.*}}[%{{.*}}] : (!llvm.ptr<1>, i32) -> !llvm.ptr<1>, f32
// CHECK: llvm.getelementptr %[[P]][128] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
// CHECK: llvm.getelementptr %[[P]][256] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
// CHECK: llvm.getelementptr %[[P]][384] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
// CHECK-COUNT-4: llvm.load
// CHECK: llvm.getelementptr %[[P]][128] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
// CHECK-NOT: llvm.getelementptr %[[P]][256]
// CHECK: llvm.getelementptr %{{.*}}[128] : (!llvm.ptr<1>) -> !llvm.ptr<1>, f32
// CHECK-COUNT-4: llvm.store
module attributes {warp.target = "sm_80"} {
  func.func @runs(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 512 : i32} : tensor<512xi32, #apart>
    %b = tile.splat %x : !tile.ptr<f32> -> tensor<512x!tile.ptr<f32>, #apart>
    %p = tile.addptr %b, %r : tensor<512x!tile.ptr<f32>, #apart>, tensor<512xi32, #apart>
    %v = tile.load %p {warp.contiguity = 1 : i32, warp.runs = array<i32: 512>} : tensor<512x!tile.ptr<f32>, #apart>
    tile.store %p, %v {warp.contiguity = 1 : i32, warp.runs = array<i32: 256>} : tensor<512x!tile.ptr<f32>, #apart>
    return
  }
}

// -----

// What a stride is multiplied by is scaled to bytes: the product is added as it is, also where it is a term of a sum.
// CHECK-LABEL: llvm.func @strides
// CHECK-SAME: (%[[X:.*]]: !llvm.ptr<1>, %[[S:.*]]: i64, %[[N:.*]]: i64, %[[M:.*]]: i64, %{{.*}}: f16)
// CHECK: %[[TWO:.*]] = llvm.mlir.constant(2 : i64)
// CHECK: %[[BYTES:.*]] = llvm.mul %[[N]], %[[TWO]] : i64
// CHECK: %[[AT:.*]] = llvm.mul %[[BYTES]], %[[S]] : i64
// CHECK: %[[ROW:.*]] = llvm.getelementptr %[[X]][%[[AT]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, i8
// CHECK: llvm.getelementptr %[[ROW]][%[[M]]] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, f16
module attributes {warp.target = "sm_80"} {
  func.func @strides(%x: !tile.ptr<f16>, %stride: i64, %n: i64, %m: i64, %one: f16)
      attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %at = arith.muli %n, %stride : i64
    %sum = arith.addi %at, %m : i64
    %p = tile.addptr %x, %sum : !tile.ptr<f16>, i64
    tile.store %p, %one : !tile.ptr<f16>
    return
  }
}

// -----

// What is no stride is left to a later pass, and a sum that others use stays one number.
// CHECK-LABEL: llvm.func @no_strides
// CHECK-NOT: llvm.getelementptr {{.*}}, i8
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @no_strides(%x: !tile.ptr<f16>, %y: !tile.ptr<f16>, %stride: i64, %n: i32, %one: f16)
      attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %wide = arith.extsi %n : i32 to i64
    %square = arith.muli %wide, %wide : i64
    %p = tile.addptr %x, %square : !tile.ptr<f16>, i64
    tile.store %p, %one : !tile.ptr<f16>
    %at = arith.muli %wide, %stride : i64
    %sum = arith.addi %at, %wide : i64
    %q = tile.addptr %x, %sum : !tile.ptr<f16>, i64
    %r = tile.addptr %y, %sum : !tile.ptr<f16>, i64
    tile.store %q, %one : !tile.ptr<f16>
    tile.store %r, %one : !tile.ptr<f16>
    return
  }
}

// -----

#neighbours = #warp.layout<[128], register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>

// Equal neighbours are compared once, and loaded once.
// CHECK-LABEL: llvm.func @repeats
// CHECK: llvm.icmp "slt"
// CHECK-NOT: llvm.icmp
// CHECK-COUNT-2: ld.global.b32
// CHECK-NOT: ld.global
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @repeats(%x: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #neighbours>
    %limit = tile.splat %n : i32 -> tensor<128xi32, #neighbours>
    %mask = arith.cmpi slt, %r, %limit {warp.constancy = array<i32: 4>} : tensor<128xi32, #neighbours>
    %b = tile.splat %x : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #neighbours>
    %p = tile.addptr %b, %r : tensor<128x!tile.ptr<f32>, #neighbours>, tensor<128xi32, #neighbours>
    %v = tile.load %p, %mask {warp.constancy = array<i32: 2>, warp.contiguity = 1 : i32} : tensor<128x!tile.ptr<f32>, #neighbours>
    tile.store %p, %v : tensor<128x!tile.ptr<f32>, #neighbours>
    return
  }
}

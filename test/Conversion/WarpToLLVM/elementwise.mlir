// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

#pair = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = []>

// One op for each register; a splat's registers are one value, and so are the results of equal operands.
// CHECK-LABEL: llvm.func @registers
// CHECK-SAME: (%[[P:.*]]: !llvm.ptr<1>, %[[S:.*]]: i32)
// CHECK: %[[SUM:.*]] = llvm.add %[[S]], %[[S]] : i32
// CHECK-NOT: llvm.add %[[S]], %[[S]]
// CHECK-COUNT-2: llvm.mul %{{.*}}, %[[SUM]] : i32
// CHECK-NOT: llvm.mul
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @registers(%x: !tile.ptr<i32>, %s: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #pair>
    %sp = tile.splat %s : i32 -> tensor<64xi32, #pair>
    %twice = arith.addi %sp, %sp : tensor<64xi32, #pair>
    %v = arith.muli %r, %twice : tensor<64xi32, #pair>
    %b = tile.splat %x : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>, #pair>
    %p = tile.addptr %b, %r : tensor<64x!tile.ptr<i32>, #pair>, tensor<64xi32, #pair>
    tile.store %p, %v : tensor<64x!tile.ptr<i32>, #pair>
    return
  }
}

// -----

// CHECK-LABEL: llvm.func @float8_converted
// CHECK-NOT: llvm.fmul
// CHECK: %[[PAIR:.*]] = llvm.call_intrinsic "llvm.nvvm.ff.to.e5m2x2.rn"(%{{.*}}, %{{.*}}) : (f32, f32) -> i16
// CHECK-NOT: llvm.nvvm.e5m2x2.to.f16x2.rn
// CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK: llvm.call_intrinsic "llvm.nvvm.ff.to.e4m3x2.rn"
// CHECK: llvm.call_intrinsic "llvm.nvvm.e4m3x2.to.f16x2.rn"(%{{.*}}) : (i16) -> vector<2xf16>
module attributes {warp.target = "sm_90a"} {
  func.func @float8_converted(%x: !tile.ptr<f32>, %s: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %q = arith.truncf %s : f32 to f8E5M2
    %w = arith.extf %q : f8E5M2 to f32
    tile.store %x, %w : !tile.ptr<f32>
    %r = arith.truncf %s : f32 to f8E4M3FN
    %v = arith.extf %r : f8E4M3FN to f32
    tile.store %x, %v : !tile.ptr<f32>
    return
  }
}

// -----

#pair = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = []>

// f32 goes to f16 two registers at once; division is div.full; comparisons keep their predicates.
// CHECK-LABEL: llvm.func @floats
// CHECK: llvm.call_intrinsic "llvm.nvvm.div.full"
// CHECK: llvm.fcmp "ogt"
// CHECK: llvm.select
// CHECK: llvm.intr.maximum
// CHECK: llvm.intr.maxnum
// CHECK: llvm.fptrunc %{{.*}} : vector<2xf32> to vector<2xf16>
// CHECK-NOT: llvm.fptrunc
module attributes {warp.target = "sm_80"} {
  func.func @floats(%x: !tile.ptr<f16>, %s: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #pair>
    %f = arith.sitofp %r : tensor<64xi32, #pair> to tensor<64xf32, #pair>
    %sp = tile.splat %s : f32 -> tensor<64xf32, #pair>
    %q = arith.divf %f, %sp : tensor<64xf32, #pair>
    %c = arith.cmpf ogt, %q, %sp : tensor<64xf32, #pair>
    %sel = arith.select %c, %q, %f : tensor<64xi1, #pair>, tensor<64xf32, #pair>
    %m = arith.maximumf %sel, %f : tensor<64xf32, #pair>
    %n = arith.maxnumf %m, %f : tensor<64xf32, #pair>
    %h = arith.truncf %n : tensor<64xf32, #pair> to tensor<64xf16, #pair>
    %b = tile.splat %x : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>, #pair>
    %p = tile.addptr %b, %r : tensor<64x!tile.ptr<f16>, #pair>, tensor<64xi32, #pair>
    tile.store %p, %h : tensor<64x!tile.ptr<f16>, #pair>
    return
  }
}

// -----

#two = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = []>

// Two bf16 of one word become f32 by an instruction each. Where several take what is cut to bf16, pairs are cut by an instruction of their own.
// CHECK-LABEL: llvm.func @pairs
// CHECK: %[[PAIR:.*]] = llvm.load %{{.*}} -> vector<2xbf16>
// CHECK: %[[WORD:.*]] = llvm.bitcast %[[PAIR]] : vector<2xbf16> to i32
// CHECK-NOT: llvm.fpext
// CHECK: llvm.shl %[[WORD]], %{{.*}} : i32
// CHECK: llvm.and %[[WORD]], %{{.*}} : i32
// CHECK-NOT: llvm.fptrunc
// CHECK: llvm.call_intrinsic "llvm.nvvm.ff2bf16x2.rn"
// CHECK-NOT: llvm.fptrunc
module attributes {warp.target = "sm_80"} {
  func.func @pairs(%x: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %y: !tile.ptr<bf16> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #two>
    %b = tile.splat %x : !tile.ptr<bf16> -> tensor<64x!tile.ptr<bf16>, #two>
    %p = tile.addptr %b, %r : tensor<64x!tile.ptr<bf16>, #two>, tensor<64xi32, #two>
    %c = tile.splat %y : !tile.ptr<bf16> -> tensor<64x!tile.ptr<bf16>, #two>
    %q = tile.addptr %c, %r : tensor<64x!tile.ptr<bf16>, #two>, tensor<64xi32, #two>
    %v = tile.load %p {warp.contiguity = 2 : i32} : tensor<64x!tile.ptr<bf16>, #two>
    %f = arith.extf %v : tensor<64xbf16, #two> to tensor<64xf32, #two>
    %g0 = arith.mulf %f, %f : tensor<64xf32, #two>
    %g = arith.addf %g0, %f : tensor<64xf32, #two>
    %h = arith.truncf %g : tensor<64xf32, #two> to tensor<64xbf16, #two>
    tile.store %p, %h {warp.contiguity = 2 : i32} : tensor<64x!tile.ptr<bf16>, #two>
    tile.store %q, %h : tensor<64x!tile.ptr<bf16>, #two>
    return
  }
}

// -----

// An f8 is held in an i8. A target without conversions rounds it on the bits of an f16, two at once, to which f32s are cut
// with a bit that says what was lost; from f16 the upper byte is taken, four at once. Others convert pairs.
// CHECK-LABEL: llvm.func @float8
// CHECK-NOT: llvm.fptrunc
// CHECK: "lop3.b32 $0, $1, $2, 131072, 0xf8;"
// CHECK: llvm.call_intrinsic "llvm.nvvm.ff2f16x2.rz"
// CHECK: "set.nan.f16x2.f16x2 $0, $1, $1;"
// CHECK: llvm.intr.minnum
// CHECK: llvm.intr.maxnum
// CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK: llvm.bitcast %{{.*}} : i32 to vector<4xi8>
// CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"
// CHECK: llvm.intr.fma(%{{.*}}) : (vector<2xf16>, vector<2xf16>, vector<2xf16>) -> vector<2xf16>
// CHECK: llvm.fpext %{{.*}} : f16 to f32
// CHECK: llvm.store %{{.*}} : i8
module attributes {warp.target = "sm_80"} {
  func.func @float8(%x: !tile.ptr<f32>, %y: !tile.ptr<f8E4M3FN>, %s: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %q = arith.truncf %s : f32 to f8E4M3FN
    %w = arith.extf %q : f8E4M3FN to f32
    %lanes = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #warp.layout<[32], lane = [[1], [2], [4], [8], [16]]>>
    %b = tile.splat %y : !tile.ptr<f8E4M3FN> -> tensor<32x!tile.ptr<f8E4M3FN>, #warp.layout<[32], lane = [[1], [2], [4], [8], [16]]>>
    %p = tile.addptr %b, %lanes : tensor<32x!tile.ptr<f8E4M3FN>, #warp.layout<[32], lane = [[1], [2], [4], [8], [16]]>>, tensor<32xi32, #warp.layout<[32], lane = [[1], [2], [4], [8], [16]]>>
    %v = tile.splat %q : f8E4M3FN -> tensor<32xf8E4M3FN, #warp.layout<[32], lane = [[1], [2], [4], [8], [16]]>>
    tile.store %p, %v : tensor<32x!tile.ptr<f8E4M3FN>, #warp.layout<[32], lane = [[1], [2], [4], [8], [16]]>>
    tile.store %x, %w : !tile.ptr<f32>
    return
  }
}

// -----

#pair = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = []>

module attributes {warp.target = "sm_80"} {
  func.func @unequal() attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    // expected-error @+1 {{of unequal elements cannot be lowered}}
    %c = arith.constant dense<[0, 1]> : tensor<2xi32, #warp.layout<[2], lane = [[1], [0], [0], [0], [0]]>>
    return
  }
}

// -----

// CHECK-LABEL: llvm.func @poison
// CHECK: %[[ZERO:.*]] = llvm.mlir.constant(0 : i32)
// CHECK: "@$2 st.global.b32 $1, $0;", "r,*m,b" %[[ZERO]]
module attributes {warp.target = "sm_80"} {
  func.func @poison(%x: !tile.ptr<i32>) attributes {tile.kernel} {
    %p = ub.poison : i32
    tile.store %x, %p : !tile.ptr<i32>
    return
  }
}

// -----

// A mask of two conditions selects once; one condition is taken as it is.
// CHECK-LABEL: llvm.func @masks
// CHECK: %[[BOTH:.*]] = llvm.and %{{.*}}, %{{.*}} : i1
// CHECK: %[[ONE:.*]] = llvm.freeze %[[BOTH]] : i1
// CHECK: llvm.select %[[ONE]]
// CHECK-NOT: llvm.freeze
// CHECK: llvm.select
module attributes {warp.target = "sm_80"} {
  func.func @masks(%x: !tile.ptr<i32>, %a: i32, %b: i32) attributes {tile.kernel} {
    %p = arith.cmpi slt, %a, %b : i32
    %q = arith.cmpi ne, %a, %b : i32
    %m = arith.andi %p, %q : i1
    %s = arith.select %m, %a, %b : i32
    %t = arith.select %q, %s, %a : i32
    tile.store %x, %t : !tile.ptr<i32>
    return
  }
}

// -----

// Where it is made, once for all that use it.
// CHECK-LABEL: llvm.func @mask_of_several
// CHECK: %[[BOTH:.*]] = llvm.and %{{.*}}, %{{.*}} : i1
// CHECK-NEXT: %[[ONE:.*]] = llvm.freeze %[[BOTH]] : i1
// CHECK: llvm.zext %[[ONE]]
// CHECK-NOT: llvm.freeze
// CHECK: llvm.select %[[ONE]]
// CHECK: llvm.select %[[ONE]]
module attributes {warp.target = "sm_80"} {
  func.func @mask_of_several(%x: !tile.ptr<i32>, %a: i32, %b: i32) attributes {tile.kernel} {
    %p = arith.cmpi slt, %a, %b : i32
    %q = arith.cmpi ne, %a, %b : i32
    %m = arith.andi %p, %q : i1
    %n = arith.extui %m : i1 to i32
    %s = arith.select %m, %a, %b : i32
    %t = arith.select %m, %n, %s : i32
    tile.store %x, %t : !tile.ptr<i32>
    return
  }
}

// -----

#four = #warp.layout<[128], register = [[1], [2]], lane = [[4], [8], [16], [32], [64]], warp = []>

// Integers of 8 bits of one word become halves below bytes of an exponent, two at once: with their sign bit turned as f16, with that bit apart as bf16.
// CHECK-LABEL: llvm.func @bytes
// CHECK: %[[BYTES:.*]] = llvm.load %{{.*}} -> vector<4xi8>
// CHECK: %[[WORD:.*]] = llvm.bitcast %[[BYTES]] : vector<4xi8> to i32
// CHECK-NOT: llvm.sitofp
// CHECK: %[[T:.*]] = llvm.xor %[[WORD]], %{{.*}} : i32
// CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"(%[[T]]
// CHECK: llvm.fsub %{{.*}} : vector<2xf16>
// CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"(%[[T]]
// CHECK: llvm.fsub %{{.*}} : vector<2xf16>
// CHECK-COUNT-2: llvm.intr.fma(%{{.*}}) : (vector<2xbf16>, vector<2xbf16>, vector<2xbf16>) -> vector<2xbf16>
// CHECK: %[[AGAIN:.*]] = llvm.bitcast %[[BYTES]] : vector<4xi8> to i32
// CHECK: llvm.call_intrinsic "llvm.nvvm.prmt"(%[[AGAIN]]
// CHECK: llvm.fsub %{{.*}} : vector<2xf16>
// CHECK: llvm.uitofp %{{.*}} : i8 to bf16
module attributes {warp.target = "sm_80"} {
  func.func @bytes(%x: !tile.ptr<i8> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %z: !tile.ptr<bf16> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #four>
    %b = tile.splat %x : !tile.ptr<i8> -> tensor<128x!tile.ptr<i8>, #four>
    %p = tile.addptr %b, %r : tensor<128x!tile.ptr<i8>, #four>, tensor<128xi32, #four>
    %v = tile.load %p {warp.contiguity = 4 : i32} : tensor<128x!tile.ptr<i8>, #four>
    %c = tile.splat %y : !tile.ptr<f16> -> tensor<128x!tile.ptr<f16>, #four>
    %q = tile.addptr %c, %r : tensor<128x!tile.ptr<f16>, #four>, tensor<128xi32, #four>
    %d = tile.splat %z : !tile.ptr<bf16> -> tensor<128x!tile.ptr<bf16>, #four>
    %s = tile.addptr %d, %r : tensor<128x!tile.ptr<bf16>, #four>, tensor<128xi32, #four>
    %h = arith.sitofp %v : tensor<128xi8, #four> to tensor<128xf16, #four>
    tile.store %q, %h {warp.contiguity = 4 : i32} : tensor<128x!tile.ptr<f16>, #four>
    %w = arith.sitofp %v : tensor<128xi8, #four> to tensor<128xbf16, #four>
    tile.store %s, %w {warp.contiguity = 4 : i32} : tensor<128x!tile.ptr<bf16>, #four>
    %u = arith.uitofp %v : tensor<128xi8, #four> to tensor<128xf16, #four>
    tile.store %q, %u {warp.contiguity = 4 : i32} : tensor<128x!tile.ptr<f16>, #four>
    %t = arith.uitofp %v : tensor<128xi8, #four> to tensor<128xbf16, #four>
    tile.store %s, %t {warp.contiguity = 4 : i32} : tensor<128x!tile.ptr<bf16>, #four>
    return
  }
}

// -----

#two = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = []>

// What is widened and rounded right behind an operation is computed in the narrow type, of two at once, numbers that it has too. Left alone: what someone
// else asks for in f32, two operations between, numbers that the type lacks, f32 that was never narrow.
// CHECK-LABEL: llvm.func @narrow
// CHECK: "add.rn.f16x2 $0, $1, $2;"
// CHECK: "mul.rn.f16x2 $0, $1, $2;"
// CHECK: "fma.rn.bf16x2 $0, $2, $3, $1;"
// CHECK-NOT: f16x2
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @narrow(%p: f16, %q: bf16, %s: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %x = tile.splat %p : f16 -> tensor<64xf16, #two>
    %y = tile.splat %q : bf16 -> tensor<64xbf16, #two>
    %z = tile.splat %s : f32 -> tensor<64xf32, #two>
    %half = arith.constant dense<0.5> : tensor<64xf32, #two>
    %third = arith.constant dense<0.333333343> : tensor<64xf32, #two>
    %f = arith.extf %x : tensor<64xf16, #two> to tensor<64xf32, #two>
    %g = arith.extf %y : tensor<64xbf16, #two> to tensor<64xf32, #two>
    %sum = arith.addf %f, %f : tensor<64xf32, #two>
    %0 = arith.truncf %sum : tensor<64xf32, #two> to tensor<64xf16, #two>
    %product = arith.mulf %f, %half : tensor<64xf32, #two>
    %1 = arith.truncf %product : tensor<64xf32, #two> to tensor<64xf16, #two>
    %difference = arith.subf %g, %half : tensor<64xf32, #two>
    %2 = arith.truncf %difference : tensor<64xf32, #two> to tensor<64xbf16, #two>
    %inexact = arith.mulf %f, %third : tensor<64xf32, #two>
    %3 = arith.truncf %inexact : tensor<64xf32, #two> to tensor<64xf16, #two>
    %more = arith.addf %inexact, %f : tensor<64xf32, #two>
    %4 = arith.truncf %more : tensor<64xf32, #two> to tensor<64xf16, #two>
    %wide = arith.addf %z, %f : tensor<64xf32, #two>
    %5 = arith.truncf %wide : tensor<64xf32, #two> to tensor<64xf16, #two>
    %other = arith.addf %g, %g : tensor<64xf32, #two>
    %6 = arith.truncf %other : tensor<64xf32, #two> to tensor<64xf16, #two>
    return
  }
}

// -----

// Arithmetic of 16-bit floats takes two at once where they lie in one word, or are one number; bf16 by an fma where the target
// has no other. One operand of elements of their own is put together; with two such, and of scalars, each is computed by
// itself. Halves of a word by truncation are that word.
// CHECK-LABEL: llvm.func @pairs
// CHECK: llvm.fmul %{{.*}}, %{{.*}} : vector<2xf16>
// CHECK: llvm.fadd %{{.*}}, %{{.*}} : vector<2xf16>
// CHECK: llvm.intr.fma(%{{.*}}, %{{.*}}, %{{.*}}) : (vector<2xbf16>, vector<2xbf16>, vector<2xbf16>)
// CHECK: llvm.intr.maxnum(%{{.*}}, %{{.*}}) : (vector<2xbf16>, vector<2xbf16>)
// CHECK: llvm.fmul %[[APART:.*]], %[[APART]] : vector<2xf16>
// CHECK-COUNT-2: llvm.fmul %{{.*}}, %{{.*}} : f16
// CHECK: %[[WORD:.*]] = llvm.load %{{.*}} -> i32
// CHECK: %[[BOTH:.*]] = llvm.bitcast %[[WORD]] : i32 to vector<2xf16>
// CHECK: llvm.fadd %[[BOTH]], %{{.*}} : vector<2xf16>
// CHECK: llvm.fneg %{{.*}} : f16
// CHECK: llvm.return
#two = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
#one = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]]>
#joined = #warp.layout<[32, 2], register = [[0, 1]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
module attributes {warp.target = "sm_80"} {
  func.func @pairs(%x: !tile.ptr<f16>, %y: !tile.ptr<bf16>, %w: !tile.ptr<i32>, %s: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %i = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #two>
    %p = tile.splat %x : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>, #two>
    %halves = tile.addptr %p, %i : tensor<64x!tile.ptr<f16>, #two>, tensor<64xi32, #two>
    %q = tile.splat %y : !tile.ptr<bf16> -> tensor<64x!tile.ptr<bf16>, #two>
    %others = tile.addptr %q, %i : tensor<64x!tile.ptr<bf16>, #two>, tensor<64xi32, #two>
    %a = tile.load %halves {warp.contiguity = 2 : i32} : tensor<64x!tile.ptr<f16>, #two>
    %number = tile.splat %s : f16 -> tensor<64xf16, #two>
    %b = arith.mulf %a, %number : tensor<64xf16, #two>
    %c = arith.addf %b, %a : tensor<64xf16, #two>
    tile.store %halves, %c {warp.contiguity = 2 : i32} : tensor<64x!tile.ptr<f16>, #two>
    %d = tile.load %others {warp.contiguity = 2 : i32} : tensor<64x!tile.ptr<bf16>, #two>
    %e = arith.mulf %d, %d : tensor<64xbf16, #two>
    %f = arith.maxnumf %e, %d : tensor<64xbf16, #two>
    tile.store %others, %f {warp.contiguity = 2 : i32} : tensor<64x!tile.ptr<bf16>, #two>
    %g = tile.load %halves {warp.contiguity = 1 : i32} : tensor<64x!tile.ptr<f16>, #two>
    %h = arith.mulf %g, %g : tensor<64xf16, #two>
    tile.store %halves, %h {warp.contiguity = 2 : i32} : tensor<64x!tile.ptr<f16>, #two>
    %k = tile.load %halves {warp.contiguity = 1 : i32} : tensor<64x!tile.ptr<f16>, #two>
    %l = arith.mulf %g, %k : tensor<64xf16, #two>
    tile.store %halves, %l {warp.contiguity = 2 : i32} : tensor<64x!tile.ptr<f16>, #two>
    %lane = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #one>
    %u = tile.splat %w : !tile.ptr<i32> -> tensor<32x!tile.ptr<i32>, #one>
    %at = tile.addptr %u, %lane : tensor<32x!tile.ptr<i32>, #one>, tensor<32xi32, #one>
    %word = tile.load %at {warp.contiguity = 1 : i32} : tensor<32x!tile.ptr<i32>, #one>
    %16 = arith.constant dense<16> : tensor<32xi32, #one>
    %up = arith.shrui %word, %16 : tensor<32xi32, #one>
    %lower = arith.trunci %word : tensor<32xi32, #one> to tensor<32xi16, #one>
    %upper = arith.trunci %up : tensor<32xi32, #one> to tensor<32xi16, #one>
    %lows = arith.bitcast %lower : tensor<32xi16, #one> to tensor<32xf16, #one>
    %highs = arith.bitcast %upper : tensor<32xi16, #one> to tensor<32xf16, #one>
    %both = tile.join %lows, %highs : tensor<32xf16, #one> -> tensor<32x2xf16, #joined>
    %row = tile.reshape %both : tensor<32x2xf16, #joined> -> tensor<64xf16, #two>
    %v = arith.addf %row, %number : tensor<64xf16, #two>
    tile.store %halves, %v {warp.contiguity = 2 : i32} : tensor<64x!tile.ptr<f16>, #two>
    %n = arith.negf %s : f16
    tile.store %x, %n : !tile.ptr<f16>
    return
  }
}

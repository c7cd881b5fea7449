// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

// Exponentials and logarithms are PTX's approximations; e^x is 2^(x log2 e), one product.
// CHECK-LABEL: llvm.func @exponentials
// CHECK-DAG: %[[L:.*]] = llvm.mlir.constant(1.44269502 : f32)
// CHECK: %[[A:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[X:.*]]) :
// CHECK: %[[M:.*]] = llvm.fmul %[[A]], %[[L]]
// CHECK: %[[B:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[M]]) :
// CHECK: %[[C:.*]] = llvm.call_intrinsic "llvm.nvvm.lg2.approx.f"(%[[B]])
// CHECK: %[[D:.*]] = llvm.call_intrinsic "llvm.nvvm.rsqrt.approx.f"(%[[C]])
// CHECK: llvm.call_intrinsic "llvm.nvvm.sqrt.approx.f"(%[[D]])
module attributes {warp.target = "sm_80"} {
  func.func @exponentials(%x: !tile.ptr<f32>, %s: f32) attributes {tile.kernel} {
    %a = math.exp2 %s : f32
    %b = math.exp %a : f32
    %c = math.log2 %b : f32
    %d = math.rsqrt %c : f32
    %e = math.sqrt %d : f32
    tile.store %x, %e : !tile.ptr<f32>
    return
  }
}

// -----

// Narrow floats are computed in f32 and rounded once.
// CHECK-LABEL: llvm.func @narrow
// CHECK: %[[W:.*]] = llvm.fpext %{{.*}} : bf16 to f32
// CHECK: %[[E:.*]] = llvm.call_intrinsic "llvm.nvvm.ex2.approx.ftz.f32"(%[[W]])
// CHECK: llvm.fptrunc %[[E]] : f32 to bf16
module attributes {warp.target = "sm_80"} {
  func.func @narrow(%x: !tile.ptr<bf16>, %s: bf16) attributes {tile.kernel} {
    %a = math.exp2 %s : bf16
    tile.store %x, %a : !tile.ptr<bf16>
    return
  }
}

// -----

// Absolute values of narrow floats are words without signs; widened, they are those of what was widened.
// CHECK-LABEL: llvm.func @absolute
// CHECK-DAG: %[[PAIR:.*]] = llvm.mlir.constant(2147450879 : i32)
// CHECK-DAG: %[[BYTES:.*]] = llvm.mlir.constant(2139062143 : i32)
// CHECK: llvm.and %{{.*}}, %[[PAIR]]
// CHECK: llvm.store
// CHECK: llvm.intr.fabs(%{{.*}}) : (f32) -> f32
// CHECK: llvm.intr.fabs(%{{.*}}) : (f32) -> f32
// CHECK: llvm.store
// CHECK: llvm.and %{{.*}}, %[[BYTES]]
// CHECK-NOT: llvm.fptrunc
// CHECK: llvm.return
#two = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
#four = #warp.layout<[128], register = [[1], [2]], lane = [[4], [8], [16], [32], [64]]>
module attributes {warp.target = "sm_80"} {
  func.func @absolute(%x: !tile.ptr<bf16>, %y: !tile.ptr<f32>, %z: !tile.ptr<f8E4M3FN>)
      attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %i = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #two>
    %p = tile.splat %x : !tile.ptr<bf16> -> tensor<64x!tile.ptr<bf16>, #two>
    %halves = tile.addptr %p, %i : tensor<64x!tile.ptr<bf16>, #two>, tensor<64xi32, #two>
    %q = tile.splat %y : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #two>
    %wide = tile.addptr %q, %i : tensor<64x!tile.ptr<f32>, #two>, tensor<64xi32, #two>
    %j = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #four>
    %r = tile.splat %z : !tile.ptr<f8E4M3FN> -> tensor<128x!tile.ptr<f8E4M3FN>, #four>
    %bytes = tile.addptr %r, %j : tensor<128x!tile.ptr<f8E4M3FN>, #four>, tensor<128xi32, #four>
    %a = tile.load %halves {warp.contiguity = 2 : i32} : tensor<64x!tile.ptr<bf16>, #two>
    %b = math.absf %a : tensor<64xbf16, #two>
    tile.store %halves, %b {warp.contiguity = 2 : i32} : tensor<64x!tile.ptr<bf16>, #two>
    %c = arith.extf %b : tensor<64xbf16, #two> to tensor<64xf32, #two>
    tile.store %wide, %c {warp.contiguity = 2 : i32} : tensor<64x!tile.ptr<f32>, #two>
    %d = tile.load %bytes {warp.contiguity = 4 : i32} : tensor<128x!tile.ptr<f8E4M3FN>, #four>
    %e = math.absf %d : tensor<128xf8E4M3FN, #four>
    tile.store %bytes, %e {warp.contiguity = 4 : i32} : tensor<128x!tile.ptr<f8E4M3FN>, #four>
    return
  }
}

// -----

// Functions without an instruction are polynomials; sine reduces its argument in f64, whole turns of a large one before.
// CHECK-LABEL: llvm.func @polynomials
// CHECK: llvm.inline_asm {{.*}}setp.ltu.f32 p, a, 0f4E800000; @p bra around;{{.*}} "=d,f"
// CHECK: llvm.intr.roundeven
// CHECK: llvm.fptrunc %{{.*}} : f64 to f32
// CHECK: llvm.intr.fma
// CHECK: llvm.intr.copysign
module attributes {warp.target = "sm_80"} {
  func.func @polynomials(%x: !tile.ptr<f32>, %s: f32) attributes {tile.kernel} {
    %a = math.sin %s : f32
    %b = math.tanh %a : f32
    tile.store %x, %b : !tile.ptr<f32>
    return
  }
}

// -----

// An angle that is known to be small is reduced in f64 alone.
// CHECK-LABEL: llvm.func @small_angle
// CHECK-NOT: llvm.inline_asm {{.*}}"=d,f"
// CHECK: llvm.fpext
// CHECK: llvm.intr.roundeven
module attributes {warp.target = "sm_80"} {
  func.func @small_angle(%x: !tile.ptr<f32>, %s: f32) attributes {tile.kernel} {
    %a = math.sin %s fastmath<afn> : f32
    %b = math.cos %s fastmath<afn> : f32
    %c = arith.addf %a, %b : f32
    tile.store %x, %c : !tile.ptr<f32>
    return
  }
}

// -----

// A remainder is exact: a quotient that has all its bits gives it, else the mantissas are divided.
// CHECK-LABEL: llvm.func @remainders
// CHECK: llvm.inline_asm {{.*}}div.rz.f32 q, $1, $2;{{.*}}rem.u32 m, x, y;{{.*}} "=f,f,f"
// CHECK: llvm.inline_asm {{.*}}div.rz.f64 q, $1, $2;{{.*}}rem.u64 m, x, y;{{.*}} "=d,d,d"
module attributes {warp.target = "sm_80"} {
  func.func @remainders(%x: !tile.ptr<f32>, %y: !tile.ptr<f64>, %s: f32, %t: f32, %u: f64) attributes {tile.kernel} {
    %a = arith.remf %s, %t : f32
    %b = arith.remf %u, %u : f64
    tile.store %x, %a : !tile.ptr<f32>
    tile.store %y, %b : !tile.ptr<f64>
    return
  }
}

// -----

module attributes {warp.target = "sm_80"} {
  func.func @wide(%x: !tile.ptr<f64>, %s: f64) attributes {tile.kernel} {
    // expected-error @+1 {{is not available for f64; cast to f32 before}}
    %a = math.exp2 %s : f64
    return
  }
}

// -----

#few = #warp.layout<[1024], register = [[1], [2], [4], [8], [16]], lane = [[32], [64], [128], [256], [512]]>

// Of sixteen powers of two, four are made of two polynomials: whole parts are rounded down, and shifted to where exponents
// are; what is out of range is 0 or infinite, what is no number stays so.
// CHECK-LABEL: llvm.func @by_polynomials
// CHECK-COUNT-4: llvm.inline_asm {{.*}}add.rm.f32x2
// CHECK-NOT: llvm.inline_asm
// CHECK: llvm.return
// CHECK-LABEL: llvm.func @one_polynomial
// CHECK-DAG: %[[LOW:.*]] = llvm.mlir.constant(dense<-1.270000e+02> : vector<2xf32>)
// CHECK-DAG: %[[HIGH:.*]] = llvm.mlir.constant(dense<1.280000e+02> : vector<2xf32>)
// CHECK-DAG: %[[BIAS:.*]] = llvm.mlir.constant(dense<1065353216> : vector<2xi32>)
// CHECK: %[[A:.*]] = llvm.intr.maximum(%{{.*}}, %[[LOW]])
// CHECK-NEXT: %[[X:.*]] = llvm.intr.minimum(%[[A]], %[[HIGH]])
// CHECK: %[[T:.*]] = llvm.inline_asm {{.*}}"add.rm.f32x2 $0, $1, $2;", "=l,l,l"
// CHECK: %[[N:.*]] = llvm.fadd
// CHECK-NEXT: %[[F:.*]] = llvm.fsub %[[X]], %[[N]]
// CHECK-COUNT-5: llvm.intr.fma(%{{.*}}, %[[F]],
// CHECK: %[[S:.*]] = llvm.shl
// CHECK-NEXT: %[[E:.*]] = llvm.add %[[S]], %[[BIAS]]
// CHECK: llvm.fmul
// CHECK-COUNT-28: ex2.approx.ftz
module attributes {warp.target = "sm_100a"} {
  func.func @by_polynomials(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>, #few>
    %x = tile.load %b : tensor<1024x!tile.ptr<f32>, #few>
    %y = math.exp2 %x {warp.by_polynomial = 4 : i32} : tensor<1024xf32, #few>
    tile.store %b, %y : tensor<1024x!tile.ptr<f32>, #few>
    return
  }
  func.func @one_polynomial(%p: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %b = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>, #few>
    %x = tile.load %b : tensor<1024x!tile.ptr<f32>, #few>
    %y = math.exp2 %x {warp.by_polynomial = 2 : i32} : tensor<1024xf32, #few>
    tile.store %b, %y : tensor<1024x!tile.ptr<f32>, #few>
    return
  }
}

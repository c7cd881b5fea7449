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

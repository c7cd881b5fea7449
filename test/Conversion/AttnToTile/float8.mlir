// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --attn-to-tile --canonicalize --cse --split-input-file | FileCheck %s

!n = !attn.tensor<[B, H, N, 64], f8E4M3FN>
!q = !attn.tensor<[B, H, N, 64], f16>
!o = !attn.tensor<[B, H, N, 64], bf16>
!l = !attn.tensor<[B, H, N], f32>

// Queries and keys of 8 bits that are f16 to attention enter their product as they are, where the target multiplies
// them; values are made f16 once.
// CHECK-LABEL: func.func @narrow(
// CHECK-COUNT-2: attn.launch
// CHECK-NOT: attn.launch
// CHECK-LABEL: func.func @attend(
// CHECK-NOT: arith.extf
// CHECK: tile.dot %{{.*}}, %{{.*}}, %{{.*}} : tensor<{{.*}}xf8E4M3FN> * tensor<{{.*}}xf8E4M3FN> -> tensor<{{.*}}xf32>
// CHECK: tile.dot %{{.*}} : tensor<{{.*}}xf16> * tensor<{{.*}}xf16> -> tensor<{{.*}}xf32>
module attributes {warp.target = "sm_90a"} {
  func.func @narrow(%q: !n, %k: !n, %v: !n) -> !o attributes {attn.program} {
    %q16 = attn.map ins(%q : !n) -> !q {
    ^bb0(%x: f32):
      attn.yield %x : f32
    }
    %k16 = attn.map ins(%k : !n) -> !q {
    ^bb0(%x: f32):
      attn.yield %x : f32
    }
    %v16 = attn.map ins(%v : !n) -> !q {
    ^bb0(%x: f32):
      attn.yield %x : f32
    }
    %o, %lse = attn.attend %q16 keys(%k16 : !q) values(%v16 : !q) {attn.float8, patterns = [#attn.full], scale = 0.125 : f32} : !q -> !o, !l
    return %o : !o
  }
}

// -----

!n = !attn.tensor<[B, H, N, 64], f8E4M3FN>
!q = !attn.tensor<[B, H, N, 64], f16>
!o = !attn.tensor<[B, H, N, 64], bf16>
!l = !attn.tensor<[B, H, N], f32>

// Elsewhere keys are made f16 once, too; and those that are changed on the way are no 8-bit floats any more.
// CHECK-LABEL: func.func @elsewhere(
// CHECK-LABEL: func.func @attend(
// CHECK: tile.dot %{{.*}} : tensor<{{.*}}xf16> * tensor<{{.*}}xf16> -> tensor<{{.*}}xf32>
// CHECK-NOT: tensor<{{.*}}xf8E4M3FN> * tensor
module attributes {warp.target = "sm_80"} {
  func.func @elsewhere(%q: !n, %k: !n, %v: !q) -> !o attributes {attn.program} {
    %q16 = attn.map ins(%q : !n) -> !q {
    ^bb0(%x: f32):
      attn.yield %x : f32
    }
    %k16 = attn.map ins(%k : !n) -> !q {
    ^bb0(%x: f32):
      attn.yield %x : f32
    }
    %o, %lse = attn.attend %q16 keys(%k16 : !q) values(%v : !q) {attn.float8, patterns = [#attn.full], scale = 0.125 : f32} : !q -> !o, !l
    return %o : !o
  }
}

// -----

!n = !attn.tensor<[B, H, N, 64], f8E4M3FN>
!q = !attn.tensor<[B, H, N, 64], f16>
!o = !attn.tensor<[B, H, N, 64], bf16>
!l = !attn.tensor<[B, H, N], f32>

// CHECK-LABEL: func.func @changed(
// CHECK-LABEL: func.func @attend(
// CHECK-NOT: tensor<{{.*}}xf8E4M3FN> * tensor
// CHECK: tile.dot %{{.*}} : tensor<{{.*}}xf16> * tensor<{{.*}}xf16> -> tensor<{{.*}}xf32>
module attributes {warp.target = "sm_90a"} {
  func.func @changed(%q: !n, %k: !n, %v: !q) -> !o attributes {attn.program} {
    %q16 = attn.map ins(%q : !n) -> !q {
    ^bb0(%x: f32):
      %y = arith.addf %x, %x : f32
      attn.yield %y : f32
    }
    %k16 = attn.map ins(%k : !n) -> !q {
    ^bb0(%x: f32):
      attn.yield %x : f32
    }
    %o, %lse = attn.attend %q16 keys(%k16 : !q) values(%v : !q) {attn.float8, patterns = [#attn.full], scale = 0.125 : f32} : !q -> !o, !l
    return %o : !o
  }
}

// -----

!n = !attn.tensor<[B, H, N, 64], f8E4M3FN>
!q = !attn.tensor<[B, H, N, 64], f16>
!o = !attn.tensor<[B, H, N, 64], bf16>
!l = !attn.tensor<[B, H, N], f32>

// Who converts queries and keys to f16, and does not say so, gets products of f16.
// CHECK-LABEL: func.func @unasked(
// CHECK-LABEL: func.func @attend(
// CHECK-NOT: tensor<{{.*}}xf8E4M3FN> * tensor
// CHECK: tile.dot %{{.*}} : tensor<{{.*}}xf16> * tensor<{{.*}}xf16> -> tensor<{{.*}}xf32>
module attributes {warp.target = "sm_90a"} {
  func.func @unasked(%q: !n, %k: !n, %v: !q) -> !o attributes {attn.program} {
    %q16 = attn.map ins(%q : !n) -> !q {
    ^bb0(%x: f32):
      attn.yield %x : f32
    }
    %k16 = attn.map ins(%k : !n) -> !q {
    ^bb0(%x: f32):
      attn.yield %x : f32
    }
    %o, %lse = attn.attend %q16 keys(%k16 : !q) values(%v : !q) {patterns = [#attn.full], scale = 0.125 : f32} : !q -> !o, !l
    return %o : !o
  }
}

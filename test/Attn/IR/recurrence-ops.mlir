// RUN: weft-opt %s | weft-opt | FileCheck %s
// Linear recurrences, printed as they are read.

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
!s = !attn.tensor<[B, H, 64, 64], f32>

// CHECK-LABEL: func.func @mixers
func.func @mixers(%q: !x, %k: !x, %v: !x, %g: !n, %b: !n, %s: !s) -> !s {
  // CHECK: attn.recurrence %{{.*}}, %{{.*}} {scale = 1.250000e-01 : f32}
  %0 = attn.recurrence %q, %k {scale = 0.125 : f32} : (!x, !x) -> !attn.mixer
  // CHECK: attn.recurrence %{{.*}}, %{{.*}} decay(%{{.*}}) beta(%{{.*}}) state(%{{.*}}) {scale = 1.250000e-01 : f32}
  %1 = attn.recurrence %q, %k decay(%g) beta(%b) state(%s) {scale = 0.125 : f32} : (!x, !x, !n, !n, !s) -> !attn.mixer
  // CHECK: attn.final_state %{{.*}}, %{{.*}} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, 64, 64], f32>
  %2 = attn.final_state %1, %v : !x -> !s
  return %2 : !s
}

// CHECK-LABEL: func.func @applied
func.func @applied(%q: !x, %k: !x, %v: !x, %g: !attn.tensor<[B, H, N, 64], f32>, %b: !n) {
  // CHECK: attn.recur %{{.*}}, %{{.*}}, %{{.*}} decay(%{{.*}})
  %o, %s = attn.recur %q, %k, %v decay(%g) {scale = 0.125 : f32} : (!x, !x, !x, !attn.tensor<[B, H, N, 64], f32>) -> (!x, !s)
  // CHECK: attn.recur %{{.*}}, %{{.*}}, %{{.*}} beta(%{{.*}})
  %d:4 = attn.recur %q, %k, %v beta(%b) {scale = 0.125 : f32} : (!x, !x, !x, !n) -> (!x, !s, !x, !x)
  // CHECK: attn.recur_backward %{{.*}}, %{{.*}}, %{{.*}} beta(%{{.*}}) delta(%{{.*}}, %{{.*}}) gradient(%{{.*}}) state_gradient(%{{.*}})
  %e:4 = attn.recur_backward %q, %k, %v beta(%b) delta(%d#2, %d#3) gradient(%v) state_gradient(%s) {scale = 0.125 : f32}
    : (!x, !x, !x, !n, !x, !x, !x, !s) -> (!x, !x, !x, !n)
  return
}

// CHECK-LABEL: func.func @packed
func.func @packed(%q: !attn.tensor<[1, "2*H", N, 64], f16>, %k: !attn.tensor<[1, H, N, 64], f16>, %v: !attn.tensor<[1, H, N, 32], f16>,
                  %starts: !attn.tensor<[C], i32>) {
  // CHECK: attn.recur %{{.*}}, %{{.*}}, %{{.*}} cu_seqlens(%{{.*}})
  %o, %s = attn.recur %q, %k, %v cu_seqlens(%starts) {scale = 0.125 : f32}
    : (!attn.tensor<[1, "2*H", N, 64], f16>, !attn.tensor<[1, H, N, 64], f16>, !attn.tensor<[1, H, N, 32], f16>, !attn.tensor<[C], i32>)
    -> (!attn.tensor<[1, "2*H", N, 32], f16>, !attn.tensor<["(C) - 1", "2*H", 64, 32], f32>)
  return
}

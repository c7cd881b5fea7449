// RUN: weft-opt %s | weft-opt | FileCheck %s
// RUN: weft-opt %s --canonicalize | FileCheck %s --check-prefix=CANONICAL
// The ops that mix heads and channels, printed as they are read, and their canonical forms.

// CHECK-LABEL: func.func @head_conv
func.func @head_conv(%x: !attn.tensor<[B, 12, N, 64], f16>, %w: !attn.tensor<[36, 12, 3], f16>, %b: !attn.tensor<[36], f32>) {
  // CHECK: %[[Y:.*]] = attn.head_conv %{{.*}}, %{{.*}} bias %{{.*}} : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[36, 12, 3], f16>, !attn.tensor<[36], f32> -> !attn.tensor<[B, 36, N, 64], f32>
  %y = attn.head_conv %x, %w bias %b : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[36, 12, 3], f16>, !attn.tensor<[36], f32> -> !attn.tensor<[B, 36, N, 64], f32>
  // CHECK: attn.head_conv %[[Y]], %{{.*}} {transposed} : {{.*}} -> !attn.tensor<[B, 12, N, 64], f16>
  %z = attn.head_conv %y, %w {transposed} : !attn.tensor<[B, 36, N, 64], f32>, !attn.tensor<[36, 12, 3], f16> -> !attn.tensor<[B, 12, N, 64], f16>
  // CHECK: attn.head_conv_weight_grad %{{.*}}, %[[Y]] : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[B, 36, N, 64], f32> -> !attn.tensor<[36, 12, 3], f16>
  %g = attn.head_conv_weight_grad %x, %y : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[B, 36, N, 64], f32> -> !attn.tensor<[36, 12, 3], f16>
  // CHECK: %{{.*}}, %{{.*}} = attn.head_conv_weight_grad {{.*}} -> !attn.tensor<[36, 12, 3], f16>, !attn.tensor<[36], f32>
  %h, %d = attn.head_conv_weight_grad %x, %y : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[B, 36, N, 64], f32> -> !attn.tensor<[36, 12, 3], f16>, !attn.tensor<[36], f32>
  return
}

// CHECK-LABEL: func.func @linear
func.func @linear(%x: !attn.tensor<[B, 6, N, 64], bf16>, %w: !attn.tensor<[96, 64], bf16>, %o: !attn.tensor<[100, 128], bf16>, %row: !attn.tensor<[N, 64], f32>) {
  // CHECK: attn.linear %{{.*}}, %{{.*}} : !attn.tensor<[B, 6, N, 64], bf16>, !attn.tensor<[96, 64], bf16> -> !attn.tensor<[B, 6, N, 96], bf16>
  %y = attn.linear %x, %w : !attn.tensor<[B, 6, N, 64], bf16>, !attn.tensor<[96, 64], bf16> -> !attn.tensor<[B, 6, N, 96], bf16>
  // CHECK: attn.linear %{{.*}}, %{{.*}} {transposed} :
  %z = attn.linear %y, %w {transposed} : !attn.tensor<[B, 6, N, 96], bf16>, !attn.tensor<[96, 64], bf16> -> !attn.tensor<[B, 6, N, 64], bf16>
  // CHECK: attn.linear_weight_grad %{{.*}}, %{{.*}} :
  %g = attn.linear_weight_grad %x, %y : !attn.tensor<[B, 6, N, 64], bf16>, !attn.tensor<[B, 6, N, 96], bf16> -> !attn.tensor<[96, 64], f32>
  // CHECK: attn.linear %{{.*}}, %{{.*}} {concatenated} : {{.*}} -> !attn.tensor<[B, 3, N, 100], bf16>
  %p = attn.linear %x, %o {concatenated} : !attn.tensor<[B, 6, N, 64], bf16>, !attn.tensor<[100, 128], bf16> -> !attn.tensor<[B, 3, N, 100], bf16>
  // CHECK: attn.linear %{{.*}}, %{{.*}} {concatenated, transposed} : {{.*}} -> !attn.tensor<[B, 6, N, 64], f32>
  %q = attn.linear %p, %o {transposed, concatenated} : !attn.tensor<[B, 3, N, 100], bf16>, !attn.tensor<[100, 128], bf16> -> !attn.tensor<[B, 6, N, 64], f32>
  // CHECK: attn.linear_weight_grad %{{.*}}, %{{.*}} {concatenated} :
  %h = attn.linear_weight_grad %x, %p {concatenated} : !attn.tensor<[B, 6, N, 64], bf16>, !attn.tensor<[B, 3, N, 100], bf16> -> !attn.tensor<[100, 128], f32>
  // CHECK: attn.linear %{{.*}}, %{{.*}} : !attn.tensor<[N, 64], f32>, !attn.tensor<[96, 64], bf16> -> !attn.tensor<[N, 96], f32>
  %r = attn.linear %row, %w : !attn.tensor<[N, 64], f32>, !attn.tensor<[96, 64], bf16> -> !attn.tensor<[N, 96], f32>
  return
}

// The mean over groups of heads moves before the linear map, which then multiplies once.
// CANONICAL-LABEL: func.func @mean_before_linear
// CANONICAL-NEXT:    %[[MEAN:.*]] = attn.mean_heads %{{.*}} : !attn.tensor<[B, 6, N, 64], f16> -> !attn.tensor<[B, 2, N, 64], f16>
// CANONICAL-NEXT:    %[[Y:.*]] = attn.linear %[[MEAN]], %{{.*}} bias %{{.*}} {concatenated} : {{.*}} -> !attn.tensor<[B, N, 100], f16>
// CANONICAL-NEXT:    return %[[Y]]
func.func @mean_before_linear(%y: !attn.tensor<[B, 6, N, 64], f16>, %w: !attn.tensor<[100, 128], f16>, %b: !attn.tensor<[100], f16>) -> !attn.tensor<[B, N, 100], f16> {
  %each = attn.linear %y, %w bias %b {concatenated} : !attn.tensor<[B, 6, N, 64], f16>, !attn.tensor<[100, 128], f16>, !attn.tensor<[100], f16> -> !attn.tensor<[B, 3, N, 100], f16>
  %mean = attn.mean_heads %each : !attn.tensor<[B, 3, N, 100], f16> -> !attn.tensor<[B, N, 100], f16>
  return %mean : !attn.tensor<[B, N, 100], f16>
}

// Of one group there is nothing to average.
// CANONICAL-LABEL: func.func @mean_of_one
// CANONICAL-NEXT:    %[[Y:.*]] = attn.linear %{{.*}}, %{{.*}} {concatenated} : {{.*}} -> !attn.tensor<[B, N, 100], f16>
// CANONICAL-NEXT:    return %[[Y]]
func.func @mean_of_one(%y: !attn.tensor<[B, 2, N, 64], f16>, %w: !attn.tensor<[100, 128], f16>) -> !attn.tensor<[B, N, 100], f16> {
  %each = attn.linear %y, %w {concatenated} : !attn.tensor<[B, 2, N, 64], f16>, !attn.tensor<[100, 128], f16> -> !attn.tensor<[B, 1, N, 100], f16>
  %mean = attn.mean_heads %each : !attn.tensor<[B, 1, N, 100], f16> -> !attn.tensor<[B, N, 100], f16>
  return %mean : !attn.tensor<[B, N, 100], f16>
}

// Left alone: the groups themselves are read too.
// CANONICAL-LABEL: func.func @groups_are_read
// CANONICAL-NEXT:    attn.linear
// CANONICAL-NEXT:    attn.mean_heads
func.func @groups_are_read(%y: !attn.tensor<[B, 6, N, 64], f16>, %w: !attn.tensor<[100, 128], f16>) -> (!attn.tensor<[B, N, 100], f16>, !attn.tensor<[B, 3, N, 100], f16>) {
  %each = attn.linear %y, %w {concatenated} : !attn.tensor<[B, 6, N, 64], f16>, !attn.tensor<[100, 128], f16> -> !attn.tensor<[B, 3, N, 100], f16>
  %mean = attn.mean_heads %each : !attn.tensor<[B, 3, N, 100], f16> -> !attn.tensor<[B, N, 100], f16>
  return %mean, %each : !attn.tensor<[B, N, 100], f16>, !attn.tensor<[B, 3, N, 100], f16>
}

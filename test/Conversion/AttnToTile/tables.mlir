// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// A score_mod that reads a table at the positions of a block. Whole blocks have no key that does not exist, so their
// columns are read as they follow one another; at the end of the sequence columns are kept below the table's, and so are
// rows, which do not change in a loop.

!t = !attn.tensor<[B, H, N, 64], f16>
!k = !attn.tensor<[B, H, M, 64], f16>
!p = !attn.tensor<[H, N, M], f32>
!r = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @attend(
// CHECK: scf.for
// CHECK: arith.minsi %{{.*}} : tensor<64x1xi32>
// CHECK-NOT: arith.minsi {{.*}} : tensor<1x64xi32>
// CHECK: tile.load %{{.*}} : tensor<64x64x!tile.ptr<f32>>
// CHECK: scf.yield
// CHECK: scf.for
// CHECK: arith.minsi %{{.*}} : tensor<1x64xi32>
// CHECK: tile.load %{{.*}} : tensor<64x64x!tile.ptr<f32>>
func.func @table(%q: !t, %k: !k, %v: !k, %table: !p) -> !t attributes {attn.program} {
  %out, %lse = attn.attend %q keys(%k : !k) values(%v : !k)
      {patterns = [#attn.full], scale = 0.125 : f32, schedule = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>} : !t -> !t, !r score_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
      %0 = attn.element %table[%h, %n, %m] : !p -> f32
      %1 = arith.addf %s, %0 : f32
      attn.yield %1 : f32
    }
  return %out : !t
}

// -----

// A table of other columns than there are keys may have fewer.

!t = !attn.tensor<[B, H, N, 64], f16>
!k = !attn.tensor<[B, H, M, 64], f16>
!p = !attn.tensor<[H, N, L], f32>
!r = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @attend(
// CHECK: scf.for
// CHECK: arith.minsi %{{.*}} : tensor<1x64xi32>
// CHECK: scf.yield
func.func @other(%q: !t, %k: !k, %v: !k, %table: !p) -> !t attributes {attn.program} {
  %out, %lse = attn.attend %q keys(%k : !k) values(%v : !k)
      {patterns = [#attn.full], scale = 0.125 : f32, schedule = #attn.schedule<rows = 64, columns = 64, warps = 4, stages = 2>} : !t -> !t, !r score_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
      %0 = attn.element %table[%h, %n, %m] : !p -> f32
      %1 = arith.addf %s, %0 : f32
      attn.yield %1 : f32
    }
  return %out : !t
}

// -----

// A mask that reads a table at each pair's own place: the kernel that lists blocks keeps what it says as bits, of which
// attention reads 32 columns in a number.

!t = !attn.tensor<[B, H, N, 64], f16>
!k = !attn.tensor<[B, H, M, 64], f16>
!p = !attn.tensor<[N, M], i1>
!r = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @mask(
// CHECK: %[[LISTS:[0-9]+]]:3 = attn.launch @blocks_of_queries(
// CHECK-SAME: !attn.tensor<[1, 1, "(cdiv(N, 128)) * 128", "(cdiv(M, 64)) * 2"], i32>
// CHECK-LABEL: func.func @blocks_of_queries(
// Of the last keys, which may not exist, bits are 0; of all others the table is read as it lies.
// CHECK: scf.for
// CHECK: scf.if
// CHECK: arith.minsi {{.*}} : tensor<1x64xi32>
// CHECK: tile.load %{{.*}} : tensor<128x64x!tile.ptr<i1>>
// CHECK: } else {
// CHECK-NOT: arith.minsi {{.*}} : tensor<1x64xi32>
// CHECK: tile.load %{{.*}} : tensor<128x64x!tile.ptr<i1>>
// CHECK: %[[BITS:[0-9]+]] = arith.select %{{.*}} : tensor<128x64xi1>, tensor<128x64xi32>
// CHECK: tile.reshape %[[BITS]] : tensor<128x64xi32> -> tensor<128x2x32xi32>
// CHECK: tile.reduce
// CHECK: math.ctpop
// CHECK: tile.store %{{.*}} : tensor<128x2x!tile.ptr<i32>>
// CHECK-LABEL: func.func @attend(
// CHECK-NOT: tile.ptr<i1>
// CHECK: tile.load %{{.*}} : tensor<128x2x!tile.ptr<i32>>
// CHECK: arith.shrui %{{.*}} : tensor<128x64xi32>
func.func @mask(%q: !t, %k: !k, %v: !k, %table: !p) -> !t attributes {attn.program} {
  %out, %lse = attn.attend %q keys(%k : !k) values(%v : !k)
      {patterns = [#attn.mask<0>], scale = 0.125 : f32} : !t -> !t, !r masks({
    ^bb0(%b: i32, %h: i32, %n: i32, %m: i32):
      %0 = attn.element %table[%n, %m] : !p -> i1
      attn.yield %0 : i1
    })
  return %out : !t
}

// -----

// Of heads that the mask tells apart bits would be more than a table that is of all heads; and of packed sequences they
// would be of all tokens, of which a table may be one sequence's. The last block that is not whole has a loop of its own,
// and in the others all columns exist.

!t = !attn.tensor<[B, H, N, 64], f16>
!k = !attn.tensor<[B, H, M, 64], f16>
!p = !attn.tensor<[N, M], i32>
!r = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @heads(
// CHECK: attn.launch @blocks_of_queries(
// CHECK-LABEL: func.func @attend(
// CHECK: scf.for
// CHECK-NOT: tile.load %{{.*}} : tensor<64x64x!tile.ptr<i32>>
// CHECK: scf.yield
// CHECK: arith.maxsi
// CHECK: scf.for
// CHECK-NOT: arith.minsi {{.*}} : tensor<1x64xi32>
// CHECK: tile.load %{{.*}} : tensor<64x64x!tile.ptr<i32>>
// CHECK: scf.yield
// CHECK: scf.for
// CHECK: arith.minsi {{.*}} : tensor<1x64xi32>
// CHECK: tile.load %{{.*}} : tensor<64x64x!tile.ptr<i32>>
func.func @heads(%q: !t, %k: !k, %v: !k, %table: !p) -> !t attributes {attn.program} {
  %out, %lse = attn.attend %q keys(%k : !k) values(%v : !k)
      {patterns = [#attn.mask<0>], scale = 0.125 : f32} : !t -> !t, !r masks({
    ^bb0(%b: i32, %h: i32, %n: i32, %m: i32):
      %0 = attn.element %table[%n, %m] : !p -> i32
      %1 = arith.cmpi sgt, %0, %h : i32
      attn.yield %1 : i1
    })
  return %out : !t
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --attn-to-tile --split-input-file | FileCheck %s
// The mean of each packed sequence is one launch, a program for 16 channels of a head of a sequence. A convolution looks its rows' sequences up once, by halving, whatever the number of taps.

!x = !attn.tensor<[1, H, N, 40], f16>
!s = !attn.tensor<[S], i32>
// CHECK-LABEL: func.func @mean
// CHECK: attn.launch @sequence_mean({{.*}}) grid ["3", "H", "S-1"]
// CHECK-LABEL: func.func @sequence_mean
// CHECK: scf.for {{.*}} iter_args
// CHECK: tile.reduce
// CHECK: scf.for
// CHECK: tile.store
func.func @mean(%x: !x {attn.name = "x"}, %s: !s {attn.name = "starts"}) -> (!x {attn.name = "y"}) attributes {attn.program} {
  %y = attn.sequence_mean %x cu_seqlens %s : !x, !s -> !x
  return %y : !x
}

// -----

!x = !attn.tensor<[1, H, N, 64], f16>
!s = !attn.tensor<[S], i32>
// CHECK-LABEL: func.func @rows
// CHECK: scf.while
// CHECK-NOT: scf.while
// CHECK: return
func.func @convolve(%x: !x {attn.name = "x"}, %taps: !attn.tensor<[5, "H*64"], f16> {attn.name = "taps"}, %s: !s {attn.name = "starts"}) -> (!x {attn.name = "y"}) attributes {attn.program} {
  %y = attn.convolve %x, %taps cu_seqlens %s {centred} : !x, !attn.tensor<[5, "H*64"], f16>, !s -> !x
  return %y : !x
}

// -----

// Programs look for their sequence among 32 at a time.
!x = !attn.tensor<[1, H, N, 64], f16>
!s = !attn.tensor<[S], i32>
// CHECK-LABEL: func.func @attention
// CHECK: attn.launch @attend({{.*}}) grid ["(cdiv(N, 128) + S) * {{.*}}", "(H) / ({{.*}})", "1"]
// CHECK-LABEL: func.func @attend
// CHECK: scf.for {{.*}} step %c32_i32
// CHECK: tile.scan {{.*}} (tensor<32xi32>)
func.func @attention(%q: !x {attn.name = "q"}, %s: !s {attn.name = "starts"}) -> (!x {attn.name = "y"}) attributes {attn.program} {
  %y, %lse = attn.attend %q keys(%q : !x) values(%q : !x) cu_seqlens(%s, %s : !s, !s) {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !attn.tensor<[1, H, N], f32>
  return %y : !x
}

// -----

// A pattern without formulas has lists for the tiles of every packed sequence, of blocks from its start on.
!x = !attn.tensor<[1, H, N, 64], f16>
!s = !attn.tensor<[S], i32>
// CHECK-LABEL: func.func @strided
// CHECK: %[[LISTS:.*]]:2 = attn.launch @blocks_of_queries({{.*}}) grid ["cdiv(N, 128) + S", "1", "1"] {{.*}} -> (!attn.tensor<[1, 1, "cdiv(N, 128) + S", "cdiv(N, 64)"], i32>,
// CHECK: attn.launch @attend({{.*}}%[[LISTS]]#{{.*}}) grid ["cdiv(N, 128) + S", "H", "1"]
func.func @strided(%q: !x {attn.name = "q"}, %s: !s {attn.name = "starts"}) -> (!x {attn.name = "y"}) attributes {attn.program} {
  %o, %l = attn.attend %q keys(%q : !x) values(%q : !x) cu_seqlens(%s, %s : !s, !s) {patterns = [#attn.strided<3>], scale = 0.125 : f32} : !x -> !x, !attn.tensor<[1, H, N], f32>
  return %o : !x
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// Tiles of queries of a causal pattern begin from the last, whose rows have the most keys, forward and for dq; tiles of keys in ascending order: the first have the most queries. Sixteen heads stand side by side, or fewer where the number of heads or the L2 cache lets no more.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @causal(
// CHECK: attn.launch @attend({{.*}}) grid ["(cdiv(N, 128)) * (1 + min(1, 40960 / max(1, N)) / (1 + (H) % 2)) * (1 + min(1, 20480 / max(1, N)) / (1 + (H) % 4)) * (1 + min(1, 10240 / max(1, N)) / (1 + (H) % 8)) * (1 + min(1, 5120 / max(1, N)) / (1 + (H) % 16))",
// CHECK-SAME: "(H) / ((1 + min(1, 40960 / max(1, N)) / (1 + (H) % 2)) * {{.*}} / (1 + (H) % 16)))", "B"] {sizes = ["(1 + min(1, 40960
// CHECK: attn.launch @attend_backward_query({{.*}}) grid ["(cdiv(N, 128)) * (1 + min(
// CHECK: attn.launch @attend_backward_keys({{.*}}) grid ["(cdiv(N, 64)) * (1 + min(
// CHECK-LABEL: func.func @attend(
// CHECK-SAME: %[[ABREAST:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i32)
// CHECK: %[[X:.*]] = tile.program_id {{ *}}x
// CHECK: %[[Y:.*]] = tile.program_id {{ *}}y
// CHECK: %[[COUNT:.*]] = tile.num_programs {{ *}}x
// CHECK: %[[LAST:.*]] = arith.subi %[[COUNT]], %c1
// CHECK: %[[DOWN:.*]] = arith.subi %[[LAST]], %[[X]]
// CHECK: %[[TILE:.*]] = arith.divui %[[DOWN]], %[[ABREAST]]
// CHECK: %[[FIRST:.*]] = arith.muli %[[Y]], %[[ABREAST]]
// CHECK: %[[BEFORE:.*]] = arith.muli %[[TILE]], %[[ABREAST]]
// CHECK: %[[PLACE:.*]] = arith.subi %[[DOWN]], %[[BEFORE]]
// CHECK: arith.addi %[[FIRST]], %[[PLACE]]
// CHECK: arith.muli %[[TILE]], %c128
// CHECK-LABEL: func.func @attend_backward_query(
// CHECK: %[[X:.*]] = tile.program_id {{ *}}x
// CHECK: tile.num_programs {{ *}}x
// CHECK: %[[DOWN:.*]] = arith.subi %{{.*}}, %[[X]]
// CHECK: %[[TILE:.*]] = arith.divui %[[DOWN]], %
// CHECK: arith.muli %[[TILE]], %c128
// CHECK-LABEL: func.func @attend_backward_keys(
// CHECK: %[[X:.*]] = tile.program_id {{ *}}x
// CHECK-NOT: tile.num_programs
// CHECK: %[[TILE:.*]] = arith.divui %[[X]], %
// CHECK: arith.muli %[[TILE]], %c64
func.func @causal(%q: !t, %k: !t, %v: !t, %delta: !l, %g: !t) -> (!t, !t, !t, !t) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !l
  %dq, %d:2 = attn.attend_backward %q keys(%k : !t) values(%v : !t) lse(%lse : !l) delta(%delta : !l) gradient(%g : !t)
      {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !t, !t
  return %o, %dq, %d#0, %d#1 : !t, !t, !t, !t
}

// -----

// A window has as many keys everywhere, and no order is better.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @attend(
// CHECK: %[[X:.*]] = tile.program_id {{ *}}x
// CHECK: arith.muli %[[X]], %c128
func.func @window(%q: !t, %k: !t, %v: !t) -> (!t, !l) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.window<left = 256, right = 0>], scale = 0.125 : f32} : !t -> !t, !l
  return %o, %lse : !t, !l
}

// -----

// Of heads that are known, a number that divides theirs; of a length that is known too, a number.

!t = !attn.tensor<[B, 12, N, 64], f16>
!l = !attn.tensor<[B, 12, N], f32>
// CHECK-LABEL: func.func @twelve(
// CHECK: attn.launch @attend({{.*}}) grid ["(cdiv(N, 128)) * (1 + min(1, 40960 / max(1, N))) * (1 + min(1, 20480 / max(1, N)))", "(12) / ((1 + min(1, 40960 / max(1, N))) * (1 + min(1, 20480 / max(1, N))))", "B"]
func.func @twelve(%q: !t, %k: !t, %v: !t) -> (!t, !l) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !l
  return %o, %lse : !t, !l
}

// -----

!t = !attn.tensor<[B, 16, 20000, 64], f16>
!l = !attn.tensor<[B, 16, 20000], f32>
// CHECK-LABEL: func.func @known(
// CHECK: attn.launch @attend({{.*}}) grid ["(cdiv(20000, 128)) * 4", "(16) / (4)", "B"]
func.func @known(%q: !t, %k: !t, %v: !t) -> (!t, !l) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !l
  return %o, %lse : !t, !l
}

// -----

// Seven heads follow one another.

!t = !attn.tensor<[B, 7, N, 64], f16>
!l = !attn.tensor<[B, 7, N], f32>
// CHECK-LABEL: func.func @seven(
// CHECK: attn.launch @attend({{.*}}) grid ["cdiv(N, 128)", "7", "B"]
func.func @seven(%q: !t, %k: !t, %v: !t) -> (!t, !l) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !l
  return %o, %lse : !t, !l
}

// -----

// Of packed sequences each may have a tile more than the whole; the last sequence begins first.

!t = !attn.tensor<[1, H, N, 64], f16>
!s = !attn.tensor<[S], i32>
!l = !attn.tensor<[1, H, N], f32>
// CHECK-LABEL: func.func @attend(
// CHECK: %[[X:.*]] = tile.program_id {{ *}}x
// CHECK: tile.num_programs {{ *}}x
// CHECK: %[[DOWN:.*]] = arith.subi %{{.*}}, %[[X]]
// CHECK: arith.divui %[[DOWN]], %
// CHECK: scf.for
func.func @packed(%q: !t, %k: !t, %v: !t, %s: !s) -> (!t, !l) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) cu_seqlens(%s, %s : !s, !s) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !l
  return %o, %lse : !t, !l
}

// -----

// Of long names fewer heads stand side by side: how many is an expression, of which a library's grids may have so much.

!t = !attn.tensor<[B, the_number_of_heads_whose_name_is_much_longer_than_that_of_any_other, the_length_of_keys_whose_name_is_much_longer_than_that_of_any_other, 64], f16>
!l = !attn.tensor<[B, the_number_of_heads_whose_name_is_much_longer_than_that_of_any_other, the_length_of_keys_whose_name_is_much_longer_than_that_of_any_other], f32>
// CHECK-LABEL: func.func @long_names(
// CHECK: attn.launch @attend({{.*}}) grid ["(cdiv(the_length_of_keys_whose_name_is_much_longer_than_that_of_any_other, 128)) * (1 + min(1, 40960 / {{[^%]*}} % 2)) * (1 + min(1, 20480 / {{[^%]*}} % 4))",
func.func @long_names(%q: !t, %k: !t, %v: !t) -> (!t, !l) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !l
  return %o, %lse : !t, !l
}

// -----

// On targets whose blocks may fill a multiprocessor, which begin sooner so, heads are counted by a shift and a mask.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
module attributes {warp.target = "sm_90a"} {
// CHECK-LABEL: func.func @attend(
// CHECK-SAME: %[[ABREAST:[a-z0-9]+]]: i32, %{{[a-z0-9]+}}: i32)
// CHECK: %[[Y:.*]] = tile.program_id {{ *}}y
// CHECK: %[[DOWN:.*]] = arith.subi %{{.*}}, %{{.*}}
// CHECK: %[[BITS:.*]] = math.cttz %[[ABREAST]]
// CHECK: %[[TILE:.*]] = arith.shrui %{{.*}}, %[[BITS]]
// CHECK: %[[MASK:.*]] = arith.subi %[[ABREAST]], %c1
// CHECK: %[[PLACE:.*]] = arith.andi %{{.*}}, %[[MASK]]
// CHECK: %[[FIRST:.*]] = arith.muli %[[Y]], %[[ABREAST]]
// CHECK: arith.addi %[[FIRST]], %[[PLACE]]
func.func @causal(%q: !t, %k: !t, %v: !t, %delta: !l, %g: !t) -> (!t, !t, !t, !t) attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !l
  %dq, %d:2 = attn.attend_backward %q keys(%k : !t) values(%v : !t) lse(%lse : !l) delta(%delta : !l) gradient(%g : !t)
      {patterns = [#attn.causal], scale = 0.125 : f32} : !t -> !t, !t, !t
  return %o, %dq, %d#0, %d#1 : !t, !t, !t, !t
}
}

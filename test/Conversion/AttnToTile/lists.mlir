// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// A pattern without formulas: a kernel writes which blocks have pairs, the attention walks what it wrote, whole blocks without a mask first. The same for
// every batch and head, the lists are made once.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
// CHECK-LABEL: func.func @strided(
// CHECK: %[[LISTS:.*]]:2 = attn.launch @blocks_of_queries() grid ["cdiv(N, 128)", "1", "1"] {{.*}} -> (!attn.tensor<[1, 1, "cdiv(N, 128)", "cdiv(N, 64)"], i32>, !attn.tensor<[1, 1, "cdiv(N, 128)", 2], i32>)
// CHECK: attn.launch @attend({{.*}}%[[LISTS]]#
// CHECK-LABEL: func.func @attend(
// CHECK: scf.for
// CHECK: tile.load {{.*}} : !tile.ptr<i32>
// CHECK-NOT: arith.select
// CHECK: scf.for
// CHECK: tile.load {{.*}} : !tile.ptr<i32>
// CHECK: arith.select {{.*}} tensor<128x64xi1>
func.func @strided(%q: !t, %k: !t, %v: !t) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.strided<3>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// Of lists whose blocks are no smaller than a tile's columns the block of keys is one number, and the entries are compared
// row by row, not pair by pair.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!i = !attn.tensor<[B, H, R, E], i32>
!c = !attn.tensor<[B, H, R], i32>
// CHECK-LABEL: func.func @entries(
// CHECK: attn.launch @blocks_of_queries({{.*}}) grid ["cdiv(N, 128)", "H", "B"]
// CHECK-LABEL: func.func @blocks_of_queries(
// CHECK: scf.for
// CHECK: scf.for {{.*}} -> (tensor<128x1xi32>)
// CHECK: return
func.func @entries(%q: !t, %k: !t, %v: !t, %index: !i, %count: !c) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) over(%index, %count : !i, !c)
    {patterns = [#attn.blocks<index = 0, count = 1, blockM = 64, blockN = 64>], scale = 0.125 : f32,
     schedule = #attn.schedule<rows = 128, columns = 64, warps = 4, stages = 2>} : !t -> !t, !l
  return %o : !t
}

// -----

// Tiles are no larger than a pattern's blocks by default: these are asked once a block.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!b = !attn.tensor<[B, H, R, C], i1>
// CHECK: attn.launch @blocks_of_queries({{.*}}) grid ["cdiv(N, 64)", "H", "B"]
// CHECK-LABEL: func.func @blocks_of_queries(
// CHECK-NOT: tensor<64x
// CHECK: return
func.func @small_blocks(%q: !t, %k: !t, %v: !t, %bits: !b) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) over(%bits : !b)
    {patterns = [#attn.block_bitmap<bits = 0, blockM = 64, blockN = 64>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// Beside a pattern with formulas only the blocks that these give are gone through; in those that they give as whole, below
// the diagonal, the ids alone are asked.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!d = !attn.tensor<[B, N], i32>
// CHECK-LABEL: func.func @beside_formulas(
// CHECK: attn.launch @blocks_of_queries({{.*}}) grid ["cdiv(N, 128)", "1", "B"]
// CHECK-LABEL: func.func @blocks_of_queries(
// CHECK: scf.for
// CHECK: arith.cmpi eq, {{.*}} : tensor<128x64xi32>
// CHECK-NOT: arith.cmpi sle, {{.*}} : tensor<128x64xi32>
// CHECK: scf.for
// CHECK: arith.cmpi sle, {{.*}} : tensor<128x64xi32>
// CHECK: return
func.func @beside_formulas(%q: !t, %k: !t, %v: !t, %ids: !d) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) over(%ids : !d)
    {patterns = [#attn.and<#attn.causal, #attn.document<queryIds = 0, keyIds = 0>>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// A bitmap of blocks no smaller than the tiles is asked once a block, for each batch and head.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!b = !attn.tensor<[B, H, R, C], i1>
// CHECK: attn.launch @blocks_of_queries({{.*}}) grid ["cdiv(N, 128)", "H", "B"]
// CHECK-LABEL: func.func @blocks_of_queries(
// CHECK: scf.for
// CHECK: tile.load {{.*}} : !tile.ptr<i1>
// CHECK-NOT: tensor<128x64
// CHECK: return
func.func @bitmap(%q: !t, %k: !t, %v: !t, %bits: !b) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) over(%bits : !b)
    {patterns = [#attn.block_bitmap<bits = 0, blockM = 128, blockN = 128>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// Heads that share keys are one tile, whose list has what one of them needs: the bitmap is asked for each.

!t = !attn.tensor<[B, "4*H", N, 64], f16>
!k = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, "4*H", N], f32>
!b = !attn.tensor<[B, "4*H", R, C], i1>
// CHECK: attn.launch @blocks_of_queries({{.*}}) grid ["cdiv(N, 32)", "H", "B"] {{.*}}(!attn.tensor<[B, H, "cdiv(N, 32)", "cdiv(N, 64)"], i32>
// CHECK: attn.launch @attend({{.*}}) grid ["cdiv((N) * 4, 128)", "H", "B"]
// CHECK-LABEL: func.func @blocks_of_queries(
// CHECK: scf.for
// CHECK: scf.for {{.*}} %c0{{.*}} to %c4
// CHECK: tile.load {{.*}} : !tile.ptr<i1>
func.func @bitmap_of_groups(%q: !t, %k: !k, %v: !k, %bits: !b) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !k) values(%v : !k) over(%bits : !b)
    {patterns = [#attn.block_bitmap<bits = 0, blockM = 128, blockN = 128>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// -----

// A mask that reads the head tells them apart: each has tiles and lists of its own.

!t = !attn.tensor<[B, "4*H", N, 64], f16>
!k = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, "4*H", N], f32>
!m = !attn.tensor<["4*H"], i32>
// CHECK: attn.launch @blocks_of_queries({{.*}}) grid ["cdiv(N, 128)", "4*H", "1"]
// CHECK: attn.launch @attend({{.*}}) grid ["cdiv(N, 128)", "4*H", "B"]
func.func @mask_of_the_head(%q: !t, %k: !k, %v: !k, %limit: !m) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !k) values(%v : !k) {patterns = [#attn.mask<0>], scale = 0.125 : f32} : !t -> !t, !l
    masks ({
    ^bb0(%b: i32, %h: i32, %n: i32, %m: i32):
      %last = attn.element %limit[%h] : !m -> i32
      %c = arith.cmpi sle, %m, %last : i32
      attn.yield %c : i1
    })
  return %o : !t
}

// -----

// A mask's indices are positions, below a size and not negative, but for those that a shift has moved: these are brought inside of what they index from both sides.

!t = !attn.tensor<[B, H, N, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!ids = !attn.tensor<[N], i32>
// CHECK-LABEL: func.func @blocks_of_queries(
// CHECK: scf.for
// CHECK: %[[M:.*]] = arith.subi %{{.*}}, %{{.*}} : tensor<1x64xi32>
// CHECK-NOT: arith.maxsi
// CHECK: arith.minsi %{{.*}} : tensor<128x1xi32>
// CHECK: tile.load %{{.*}} : tensor<128x1x!tile.ptr<i32>>
// CHECK: %[[NATURAL:.*]] = arith.maxsi %[[M]], %{{.*}} : tensor<1x64xi32>
// CHECK: arith.minsi %[[NATURAL]], %{{.*}} : tensor<1x64xi32>
// CHECK: tile.load %{{.*}} : tensor<1x64x!tile.ptr<i32>>
func.func @shifted(%q: !t, %k: !t, %v: !t, %ids: !ids) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !t) values(%v : !t) {patterns = [#attn.shift<#attn.mask<0>, 16>], scale = 0.125 : f32} : !t -> !t, !l masks({
  ^bb0(%b: i32, %h: i32, %n: i32, %m: i32):
    %query = attn.element %ids[%n] : !ids -> i32
    %key = attn.element %ids[%m] : !ids -> i32
    %same = arith.cmpi eq, %query, %key : i32
    attn.yield %same : i1
  })
  return %o : !t
}

// -----

// A section of a pattern with formulas has formulas: where it lies is read once, before the walk, and no kernel lists its blocks.

!t = !attn.tensor<[B, H, N, 64], f16>
!k = !attn.tensor<[B, H, M, 64], f16>
!l = !attn.tensor<[B, H, N], f32>
!two = !attn.tensor<[2], i32>
// CHECK-NOT: attn.launch @blocks_of
// CHECK-LABEL: func.func @section(
// CHECK: attn.launch @attend(%arg0, %arg3, %arg4, %arg1, %arg2)
// CHECK-LABEL: func.func @attend(
// CHECK-COUNT-4: tile.load {{.*}} : !tile.ptr<i32>
// CHECK: scf.for
// CHECK-NOT: tile.load {{.*}} : !tile.ptr<i32>
// CHECK: return
func.func @section(%q: !t, %k: !k, %v: !k, %rows: !two, %keys: !two) -> !t attributes {attn.program} {
  %o, %lse = attn.attend %q keys(%k : !k) values(%v : !k) over(%rows, %keys : !two, !two)
    {patterns = [#attn.section<#attn.or<#attn.causal, #attn.prefix<100>>, rows = 0, keys = 1>], scale = 0.125 : f32} : !t -> !t, !l
  return %o : !t
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-to-tile --canonicalize --cse | FileCheck %s

// Over tokens: eight parts, added by whoever reads them; heads that share a key head are summed together.

!t = !attn.tensor<[B, "4*H", N, 64], f16>
!m = !attn.tensor<[B, H, 1, 64], f32>
// CHECK-LABEL: func.func @tokens(
// CHECK: %[[PARTS:.*]] = attn.launch @sum_tokens(%{{.*}}) grid ["8", "H", "B"]
// CHECK: attn.launch @rows(%[[PARTS]])
func.func @tokens(%x: !t) -> !m attributes {attn.program} {
  %s = attn.sum %x : !t -> !m
  %y = attn.map ins(%s : !m) -> !m {
  ^bb0(%a: f32):
    %r = arith.negf %a : f32
    attn.yield %r : f32
  }
  return %y : !m
}

// -----

// Over tokens and all heads, as the gradient of a gain that heads share is: first as over tokens, so that there is a
// program for each batch, head and part; what these leave is small. Rows are computed on the way.

!t = !attn.tensor<[B, H, N, 64], f16>
!d = !attn.tensor<[64], f32>
// CHECK-LABEL: func.func @tokens_and_heads(
// CHECK: %[[PARTS:.*]] = attn.launch @sum_tokens(%{{.*}}, %{{.*}}) grid ["8", "H", "B"] {{.*}} -> !attn.tensor<[B, H, 8, 64], f32>
// CHECK-NEXT: attn.launch @sum(%[[PARTS]])
func.func @tokens_and_heads(%x: !t, %y: !t) -> !d attributes {attn.program} {
  %p = attn.map ins(%x, %y : !t, !t) -> !t {
  ^bb0(%a: f32, %b: f32):
    %r = arith.mulf %a, %b : f32
    attn.yield %r : f32
  }
  %s = attn.sum %p : !t -> !d
  return %s : !d
}

// -----

// Over channels too: each part is one number.

!t = !attn.tensor<[B, H, N, 72], f16>
!h = !attn.tensor<[H, 1, 1], f32>
// CHECK-LABEL: func.func @tokens_and_channels(
// CHECK: %[[PARTS:.*]] = attn.launch @sum_tokens(%{{.*}}) grid ["8", "H", "B"] {{.*}} -> !attn.tensor<[B, H, 8, 1], f32>
// CHECK-NEXT: attn.launch @sum(%[[PARTS]])
func.func @tokens_and_channels(%x: !t) -> !h attributes {attn.program} {
  %s = attn.sum %x : !t -> !h
  return %s : !h
}

// -----

// Where the terms of a result follow one another in memory, as for a head's number: one result a program.

!t = !attn.tensor<[B, H, N], f32>
!h = !attn.tensor<[1, H, 1], f32>
// CHECK-LABEL: func.func @heads(
// CHECK: attn.launch @sum(%{{.*}}) grid ["(H)", "1", "1"]
// CHECK-LABEL: func.func @sum(
// CHECK: scf.for {{.*}} -> (tensor<4x256xf32>)
func.func @heads(%x: !t) -> !h attributes {attn.program} {
  %s = attn.sum %x : !t -> !h
  return %s : !h
}

// -----

// Where the results do, as a table's of pairs: 1,024 of them a program, one batch after another.

!t = !attn.tensor<[B, H, N, M], f32>
!p = !attn.tensor<[H, N, M], f32>
// CHECK-LABEL: func.func @pairs(
// CHECK: attn.launch @sum(%{{.*}}) grid ["cdiv((H) * (N), 4)", "cdiv((M), 256)", "1"]
// CHECK-LABEL: func.func @sum(
// CHECK: scf.for {{.*}} -> (tensor<4x256xf32>)
// CHECK-NOT: tile.reduce
func.func @pairs(%x: !t) -> !p attributes {attn.program} {
  %s = attn.sum %x : !t -> !p
  return %s : !p
}

// -----

// Heads that share, of channels: rows as wide as the channels.

!t = !attn.tensor<[B, "4*H", N, 72], f32>
!g = !attn.tensor<[1, H, N, 72], f32>
// CHECK-LABEL: func.func @shared(
// CHECK: attn.launch @sum(%{{.*}}) grid ["cdiv((H) * (N), 8)", "1", "1"]
// CHECK-LABEL: func.func @sum(
// CHECK: scf.for {{.*}} -> (tensor<8x128xf32>)
func.func @shared(%x: !t) -> !g attributes {attn.program} {
  %s = attn.sum %x : !t -> !g
  return %s : !g
}

// -----

// Few results, of many terms each, as of a gain's gradient in parts: sixteen a program.

!t = !attn.tensor<[B, H, 8, 64], f32>
!d = !attn.tensor<[64], f32>
// CHECK-LABEL: func.func @parts(
// CHECK: attn.launch @sum_tokens
// CHECK: attn.launch @sum(%{{.*}}) grid ["4", "1", "1"]
func.func @parts(%x: !t) -> !d attributes {attn.program} {
  %s = attn.sum %x : !t -> !d
  return %s : !d
}

// -----

// Over channels: no kernel of its own.

!t = !attn.tensor<[B, H, N, 64], f16>
!r = !attn.tensor<[B, H, N, 1], f32>
// CHECK-LABEL: func.func @channels(
// CHECK-NEXT: attn.launch @rows(
// CHECK-NEXT: return
func.func @channels(%x: !t) -> !r attributes {attn.program} {
  %s = attn.sum %x : !t -> !r
  %y = attn.map ins(%s : !r) -> !r {
  ^bb0(%a: f32):
    %e = math.exp %a : f32
    attn.yield %e : f32
  }
  return %y : !r
}

// -----

// Everything to one number: each program that has the rows at hand adds up its own, with what it stores of them, and
// who gives the number adds the parts. The gate's map is computed from the number where it is read.

!k = !attn.tensor<[B, H, N, 64], f16>
!x = !attn.tensor<[B, H, N, 64], f32>
!r = !attn.tensor<[B, H, N], f32>
!n = !attn.tensor<[], f32>
// CHECK-LABEL: func.func @number(
// CHECK-NEXT: %[[ROWS:.*]]:2 = attn.launch @rows({{.*}} -> (!attn.tensor<[B, H, N], f32>, !attn.tensor<[B, H, "cdiv(N, 64)"], f32>)
// CHECK-NEXT: %[[NUMBERS:.*]]:2 = attn.launch @numbers(%[[ROWS]]#1) grid ["1", "1", "1"]
// CHECK-NEXT: return %[[ROWS]]#0, %[[NUMBERS]]#0, %[[NUMBERS]]#1
// CHECK-LABEL: func.func @rows(
// CHECK: %[[ROW:.*]] = tile.reduce
// CHECK: tile.store
// CHECK: tile.reduce
// CHECK: tile.store {{.*}} : tensor<1x!tile.ptr<f32>>
// CHECK-LABEL: func.func @numbers(
// CHECK: scf.for
// CHECK: tile.reduce
// CHECK: tile.store {{.*}} : tensor<1x!tile.ptr<f32>>
// CHECK-NOT: scf.for
// CHECK: tile.store {{.*}} : tensor<1x!tile.ptr<f32>>
func.func @number(%k: !k) -> (!r, !n, !n) attributes {attn.program} {
  %s = attn.sum %k away [3] : !k -> !r
  %e = attn.map ins(%s : !r) -> !r {
  ^bb0(%a: f32):
    %b = math.exp %a : f32
    attn.yield %b : f32
  }
  %t = attn.sum %e away [0, 1, 2] : !r -> !n
  %h = attn.map ins(%t : !n) -> !n {
  ^bb0(%a: f32):
    %b = math.rsqrt %a : f32
    attn.yield %b : f32
  }
  return %s, %t, %h : !r, !n, !n
}

// -----

// A map of numbers has no kernel: who reads it computes it, before its loops.

!x = !attn.tensor<[B, H, N, 64], f32>
!n = !attn.tensor<[], f32>
// CHECK-LABEL: func.func @pulled(
// CHECK-NEXT: attn.launch @rows(%{{.*}}, %{{.*}})
// CHECK-NEXT: return
// CHECK-LABEL: func.func @rows(
// CHECK: tile.load %{{.*}} : !tile.ptr<f32>
// CHECK: math.exp %{{.*}} : f32
func.func @pulled(%x: !x, %n: !n) -> !x attributes {attn.program} {
  %h = attn.map ins(%n : !n) -> !n {
  ^bb0(%a: f32):
    %b = math.exp %a : f32
    attn.yield %b : f32
  }
  %y = attn.map ins(%x : !x) -> !x {
  ^bb0(%a: f32):
    %e = attn.element %h[] : !n -> f32
    %b = arith.mulf %a, %e : f32
    attn.yield %b : f32
  }
  return %y : !x
}

// -----

// Two sums over tokens that are only added are one.

!x = !attn.tensor<[B, H, N, 64], f32>
!g = !attn.tensor<[H, 64], f32>
// CHECK-LABEL: func.func @added(
// CHECK-NEXT: %[[PARTS:.*]] = attn.launch @sum_tokens(%{{.*}}, %{{.*}})
// CHECK-NEXT: attn.launch @sum(%[[PARTS]])
// CHECK-NEXT: return
func.func @added(%x: !x, %y: !x) -> !g attributes {attn.program} {
  %s = attn.sum %x away [0, 2] : !x -> !g
  %t = attn.sum %y away [0, 2] : !x -> !g
  %a = attn.map ins(%s, %t : !g, !g) -> !g {
  ^bb0(%p: f32, %q: f32):
    %b = arith.addf %p, %q : f32
    attn.yield %b : f32
  }
  return %a : !g
}

// -----

// What else is done with them, or with one of them, leaves them two.

!x = !attn.tensor<[B, H, N, 64], f32>
!g = !attn.tensor<[H, 64], f32>
// CHECK-LABEL: func.func @multiplied(
// CHECK-COUNT-2: attn.launch @sum_tokens
// CHECK-LABEL: func.func @shared(
// CHECK-COUNT-2: attn.launch @sum_tokens
func.func @multiplied(%x: !x, %y: !x) -> !g attributes {attn.program} {
  %s = attn.sum %x away [0, 2] : !x -> !g
  %t = attn.sum %y away [0, 2] : !x -> !g
  %a = attn.map ins(%s, %t : !g, !g) -> !g {
  ^bb0(%p: f32, %q: f32):
    %b = arith.mulf %p, %q : f32
    attn.yield %b : f32
  }
  return %a : !g
}
func.func @shared(%x: !x, %y: !x) -> (!g, !g) attributes {attn.program} {
  %s = attn.sum %x away [0, 2] : !x -> !g
  %t = attn.sum %y away [0, 2] : !x -> !g
  %a = attn.map ins(%s, %t : !g, !g) -> !g {
  ^bb0(%p: f32, %q: f32):
    %b = arith.addf %p, %q : f32
    attn.yield %b : f32
  }
  return %a, %s : !g, !g
}

// -----

// A sum over tokens that something else is added to, before it or after it.

!t = !attn.tensor<[B, H, N, 64], f16>
!m = !attn.tensor<[B, H, 1, 64], f32>
// CHECK-LABEL: func.func @added(
// CHECK: %[[PARTS:.*]] = attn.launch @sum_tokens(%{{.*}})
// CHECK: attn.launch @rows(%{{.*}}, %[[PARTS]])
func.func @added(%x: !t, %b: !m) -> !m attributes {attn.program} {
  %s = attn.sum %x : !t -> !m
  %y = attn.map ins(%b, %s : !m, !m) -> !m {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    attn.yield %r : f32
  }
  return %y : !m
}

// -----

// A result of three axes is [B, H, N] where the channels are away; where a batch of 1 is, it is [H, N, 1], and no rows' sum.
// CHECK-LABEL: func.func @without_batch(
// CHECK-NEXT: %[[SUM:.*]] = attn.launch @sum(
// CHECK-NEXT: %[[ROWS:.*]] = attn.launch @rows(%{{.*}}) grid ["cdiv(N, 64)", "H", "1"]
// CHECK-NEXT: return %[[ROWS]], %[[SUM]]
func.func @without_batch(%x: !attn.tensor<[1, H, N, 64], f32>) -> (!attn.tensor<[1, H, N], f32>, !attn.tensor<[H, N, 1], f32>) attributes {attn.program} {
  %rows = attn.sum %x away [3] : !attn.tensor<[1, H, N, 64], f32> -> !attn.tensor<[1, H, N], f32>
  %sum = attn.sum %x : !attn.tensor<[1, H, N, 64], f32> -> !attn.tensor<[H, N, 1], f32>
  return %rows, %sum : !attn.tensor<[1, H, N], f32>, !attn.tensor<[H, N, 1], f32>
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-join-exchanges --warp-allocate-shared --warp-insert-barriers | FileCheck %s

#a = #warp.layout<[64], lane = [[1], [2], [4], [8], [16]], warp = [[32]]>
#b = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [0]], warp = [[16]]>
#wide = #warp.layout<[512], register = [[1], [2], [4]], lane = [[8], [16], [32], [64], [128]], warp = [[256]]>
#other = #warp.layout<[512], register = [[1], [2], [256]], lane = [[8], [16], [32], [64], [128]], warp = [[4]]>
#thin = #warp.layout<[512], register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[64], [128], [256]]>
#thinner = #warp.layout<[512], register = [[256]], lane = [[2], [4], [8], [16], [32]], warp = [[64], [128], [1]]>
#tile = #warp.layout<[64, 128], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0]]>
#row = #warp.layout<[1, 64], register = [[0, 32]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 0]], warp = [[0, 16]]>
#square = #warp.layout<[32, 64], register = [[0, 32], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], lane = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 0]], warp = [[0, 16]]>
!row = tensor<1x64xf32, #row>
!square = tensor<32x64xf32, #square>
!a = tensor<64xf32, #a>
!b = tensor<64xf32, #b>
!wide = tensor<512xf32, #wide>
!other = tensor<512xf32, #other>
!thin = tensor<512xf32, #thin>
!thinner = tensor<512xf32, #thinner>
!ring = !warp.shared<stages = 5, 64x128xf32, #tile>

module attributes {warp.target = "sm_80"} {

// Three conversions: what is computed from the first goes behind the last, and what that is computed from stays before.
// Each has its own scratch memory.

// CHECK-LABEL: func.func @three
// CHECK-SAME: (%[[X:.*]]: tensor<64xf32, {{.*}}>, %[[Y:.*]]: tensor<64xf32, {{.*}}>, %[[P:.*]]: tensor
// CHECK: %[[LOADED:.*]] = tile.load %[[P]]
// CHECK-NEXT: %[[A:.*]] = warp.convert_layout %[[X]] {warp.joined, warp.scratch = 0 : i64}
// CHECK-NEXT: warp.convert_layout %[[Y]] {warp.joined, warp.scratch = 256 : i64}
// CHECK-NEXT: warp.convert_layout %[[LOADED]] {warp.scratch = 512 : i64}
// CHECK-NEXT: arith.negf %[[A]]

func.func @three(%x: !a, %y: !a, %p: tensor<64x!tile.ptr<f32>, #a>) -> !b
    attributes {tile.schedule = #tile.schedule<warps = 2, stages = 2>} {
  %a = warp.convert_layout %x : !a -> !b
  %n = arith.negf %a : !b
  %b = warp.convert_layout %y : !a -> !b
  %s = arith.addf %n, %b : !b
  %z = tile.load %p : tensor<64x!tile.ptr<f32>, #a>
  %c = warp.convert_layout %z : !a -> !b
  %t = arith.addf %s, %c : !b
  func.return %t : !b
}

// One that is made from the other waits for it; a store, a barrier and a product end straight code.

// CHECK-LABEL: func.func @one_of_the_other
// CHECK-NOT: warp.joined
// CHECK-LABEL: func.func @stored_between
// CHECK-NOT: warp.joined
// CHECK-LABEL: func.func @large
// CHECK-NOT: warp.joined
// CHECK-LABEL: func.func @much
// CHECK-NOT: warp.joined
// CHECK-LABEL: func.func @too_much
// CHECK-NOT: warp.joined
func.func @one_of_the_other(%x: !a) -> !b attributes {tile.schedule = #tile.schedule<warps = 2, stages = 2>} {
  %a = warp.convert_layout %x : !a -> !b
  %n = arith.negf %a : !b
  %back = warp.convert_layout %n : !b -> !a
  %m = arith.negf %back : !a
  %c = warp.convert_layout %m : !a -> !b
  func.return %c : !b
}
func.func @stored_between(%x: !a, %y: !a, %p: tensor<64x!tile.ptr<f32>, #b>) -> (!b, !b, !b)
    attributes {tile.schedule = #tile.schedule<warps = 2, stages = 2>} {
  %a = warp.convert_layout %x : !a -> !b
  tile.store %p, %a : tensor<64x!tile.ptr<f32>, #b>
  %b = warp.convert_layout %y : !a -> !b
  warp.barrier
  %n = arith.negf %x : !a
  %c = warp.convert_layout %n : !a -> !b
  func.return %a, %b, %c : !b, !b, !b
}

// What is large would be held too long.

func.func @large(%x: !wide, %y: !wide) -> (!other, !other) attributes {tile.schedule = #tile.schedule<warps = 2, stages = 2>} {
  %a = warp.convert_layout %x : !wide -> !other
  %b = warp.convert_layout %y : !wide -> !other
  func.return %a, %b : !other, !other
}

// And so would what is computed with it.

func.func @much(%x: !a, %y: !a, %tile: !square) -> (!square, !b) attributes {tile.schedule = #tile.schedule<warps = 2, stages = 2>} {
  %a = warp.convert_layout %x : !a -> !b
  %row = tile.expand_dims %a {axis = 0 : i32} : !b -> !row
  %rows = tile.broadcast %row : !row -> !square
  %m = arith.mulf %tile, %rows : !square
  %b = warp.convert_layout %y : !a -> !b
  func.return %m, %b : !square, !b
}

// Scratch memory of both at once is more than a block has beside its tiles.

func.func @too_much(%x: !thin, %y: !thin) -> (!thinner, !thinner) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
  %r = warp.alloc : !ring
  %a = warp.convert_layout %x : !thin -> !thinner
  %b = warp.convert_layout %y : !thin -> !thinner
  warp.dealloc %r : !ring
  func.return %a, %b : !thinner, !thinner
}

// A tile that others may still read, where the second one's scratch memory would lie, is waited for.

// CHECK-LABEL: func.func @tile_before
// CHECK: warp.convert_layout {{.*}} {warp.joined
// CHECK-NEXT: warp.convert_layout
func.func @tile_before(%x: !a, %y: !a) -> (!b, !b, !b) attributes {tile.schedule = #tile.schedule<warps = 2, stages = 2>} {
  %s = warp.alloc : <64xf32, #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>>
  warp.store_shared %x, %s : !a -> <64xf32, #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>>
  %z = warp.load_shared %s : <64xf32, #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>> -> !b
  warp.dealloc %s : <64xf32, #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>>
  %a = warp.convert_layout %x : !a -> !b
  %b = warp.convert_layout %y : !a -> !b
  func.return %z, %a, %b : !b, !b, !b
}

}

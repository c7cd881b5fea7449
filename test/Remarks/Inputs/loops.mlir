// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Loops whose copies cannot start before their iteration.
#load = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[64, 64], register = [[1, 0], [8, 0], [16, 0], [32, 0], [0, 8], [0, 16], [0, 32]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]], warp = [[0, 0], [0, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
module {
  func.func @written(%p: tensor<64x64x!tile.ptr<f16>, #load>, %n: i32, %x: tensor<64x64xf16, #load>, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
      -> tensor<64x64xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x64xf32, #a>) : i32 {
      %t = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %p to %t {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %a = warp.load_shared %t : !warp.shared<64x64xf16, #s> -> tensor<64x64xf16, #a>
      warp.dealloc %t : !warp.shared<64x64xf16, #s>
      %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
      tile.store %p, %x : tensor<64x64x!tile.ptr<f16>, #load>
      scf.yield %d : tensor<64x64xf32, #a>
    }
    func.return %l : tensor<64x64xf32, #a>
  }
  func.func @outer(%p: tensor<64x64x!tile.ptr<f16>, #load>, %n: i32, %x: tensor<64x64xf16, #load>, %b: tensor<64x64xf16, #b>, %c: tensor<64x64xf32, #a>)
      -> tensor<64x64xf32, #a> attributes {tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %c) -> (tensor<64x64xf32, #a>) : i32 {
      %t = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %p to %t {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %a = warp.load_shared %t : !warp.shared<64x64xf16, #s> -> tensor<64x64xf16, #a>
      warp.dealloc %t : !warp.shared<64x64xf16, #s>
      %d = warp.mma %a, %b, %acc {shape = array<i32: 16, 8, 16>} : tensor<64x64xf16, #a> * tensor<64x64xf16, #b> -> tensor<64x64xf32, #a>
      scf.for %j = %c0 to %n step %c1 : i32 {
      }
      scf.yield %d : tensor<64x64xf32, #a>
    }
    func.return %l : tensor<64x64xf32, #a>
  }
}

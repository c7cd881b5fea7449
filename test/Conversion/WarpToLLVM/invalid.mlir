// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --convert-warp-to-llvm --verify-diagnostics
// Kernels that do not become LLVM functions.

module attributes {warp.target = "sm_80"} {
  // expected-error@+1 {{expected one block, but got 2}}
  func.func @blocks() attributes {tile.kernel} {
    return
  ^bb1:
    return
  }
}

// -----

module attributes {warp.target = "sm_80"} {
  func.func @number(%x: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    // expected-error@+1 {{expected a constant, which the constraint 'n' puts into the code as a number, but got a value that is known when the kernel runs; make it a constexpr, or constrain it by 'r'}}
    %0 = tile.inline_asm "add.s32 $0, $1, 1;", "=r,n" pack 1 %x : (i32) -> i32
    return
  }
}

// -----

module attributes {warp.target = "sm_80"} {
  func.func @vector() attributes {tile.kernel} {
    // expected-error@+1 {{has a result of type 'vector<4xf32>', which has no place in registers}}
    %v = arith.constant dense<0.0> : vector<4xf32>
    return
  }
}

// -----

module attributes {warp.target = "sm_80"} {
  func.func @layout(%x: f32) attributes {tile.kernel} {
    // expected-error@+1 {{has a result of type 'tensor<64xf32>' without a layout; run 'tile-to-warp' before}}
    %t = tile.splat %x : f32 -> tensor<64xf32>
    return
  }
}

// -----

#l = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
#m = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]]>
module attributes {warp.target = "sm_80"} {
  func.func @reshape(%x: f32) attributes {tile.kernel} {
    %t = tile.splat %x : f32 -> tensor<64xf32, #l>
    // expected-error@+1 {{changes the layout in a way that needs a 'warp.convert_layout'}}
    %s = tile.reshape %t : tensor<64xf32, #l> -> tensor<64xf32, #m>
    return
  }
}

// -----

#l = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
#j = #warp.layout<[64, 2], register = [[1, 0], [0, 1]], lane = [[2, 0], [4, 0], [8, 0], [16, 0], [32, 0]]>
#k = #warp.layout<[64, 2], register = [[32, 0], [0, 1]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
module attributes {warp.target = "sm_80"} {
  func.func @join(%x: f32) attributes {tile.kernel} {
    %t = tile.splat %x : f32 -> tensor<64xf32, #l>
    // expected-error@+1 {{expected operands in the result's layout without its last axis, which registers walk along}}
    %s = "tile.join"(%t, %t) : (tensor<64xf32, #l>, tensor<64xf32, #l>) -> tensor<64x2xf32, #k>
    return
  }
}

// -----

#l = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
#k = #warp.layout<[64, 2], register = [[32, 0], [0, 1]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
module attributes {warp.target = "sm_80"} {
  func.func @split(%x: f32) attributes {tile.kernel} {
    %t = tile.splat %x : f32 -> tensor<64x2xf32, #k>
    // expected-error@+1 {{expected a source whose last axis registers walk along, and results in its layout without that axis}}
    %a, %b = tile.split %t : tensor<64x2xf32, #k> -> tensor<64xf32, #l>, tensor<64xf32, #l>
    return
  }
}

// -----

#s = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
module attributes {warp.target = "sm_80"} {
  func.func @step(%i: i32) attributes {tile.kernel} {
    %r = warp.alloc {offset = 0 : i64} : !warp.shared<stages = 2, 64xf32, #s>
    // expected-error@+1 {{expected a step that divides the 256 bytes between tiles of the ring, but got 3}}
    %t = warp.stage %r[%i] {step = 3 : i64} : !warp.shared<stages = 2, 64xf32, #s> -> !warp.shared<64xf32, #s>
    return
  }
}

// -----

#s = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
module attributes {warp.target = "sm_80"} {
  func.func @place() attributes {tile.kernel} {
    // expected-error@+1 {{has no place in shared memory; run 'warp-allocate-shared' before}}
    %r = warp.alloc : !warp.shared<64xf32, #s>
    return
  }
}

// -----

#l = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
#r = #warp.layout<[64], register = [[1], [32]], lane = [[2], [4], [8], [16], [0]]>
module attributes {warp.target = "sm_80"} {
  func.func @gather(%x: f32, %i: i32) attributes {tile.kernel} {
    %t = tile.splat %x : f32 -> tensor<64xf32, #l>
    %p = tile.splat %i : i32 -> tensor<64xi32, #r>
    // expected-error@+1 {{expected indices in the result's layout}}
    %s = tile.gather %t[%p] {axis = 0 : i32, warp.scratch = 0 : i64} : tensor<64xf32, #l>[tensor<64xi32, #r>] -> tensor<64xf32, #l>
    return
  }
}

// -----

#l = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]]>
#s = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>
module attributes {warp.target = "sm_80"} {
  func.func @neighbours(%p: !tile.ptr<f32>) attributes {tile.kernel} {
    %r = warp.alloc {offset = 0 : i64} : !warp.shared<64xf32, #s>
    %t = tile.splat %p : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>, #l>
    // expected-error@+1 {{expected 2 neighbouring elements of the tile in each lane's first registers, but got the map [64], register = [[32]]}}
    warp.async_copy %t to %r {contiguity = 2 : i32} : tensor<64x!tile.ptr<f32>, #l> -> !warp.shared<64xf32, #s>
    return
  }
}

// -----

#a = #warp.layout<[16, 16], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[0, 8]]>
#r = #warp.layout<[16], register = [[8]], lane = [[0], [0], [1], [2], [4]]>
module attributes {warp.target = "sm_80"} {
  func.func @half(%x: bf16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
    %a = tile.splat %x : bf16 -> tensor<16x16xbf16, #a>
    // expected-error@+1 {{expected operands that fill whole matrix instructions, but got 'tensor<16x16xbf16}}
    %d = tile.row_dot %a, %a : tensor<16x16xbf16, #a> -> tensor<16xf32, #r>
    return
  }
}

// -----

#a = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 0]]>
#b = #warp.layout<[16, 16], register = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [0, 4], [0, 8]], lane = [[0, 0], [0, 0], [0, 0], [0, 0], [0, 0]]>
module attributes {warp.target = "sm_80"} {
  func.func @integers(%x: i8, %y: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %a = tile.splat %x : i8 -> tensor<16x16xi8, #a>
    %b = tile.splat %x : i8 -> tensor<16x16xi8, #b>
    %c = tile.splat %y : i32 -> tensor<16x16xi32, #a>
    // expected-error@+1 {{expected floats in a product by fused multiply-adds, but got 'tensor<16x16xi32}}
    %d = tile.dot %a, %b, %c {precision = #tile<precision ieee>} : tensor<16x16xi8, #a> * tensor<16x16xi8, #b> -> tensor<16x16xi32, #a>
    return
  }
}

// -----

#l = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]]>
module attributes {warp.target = "sm_80"} {
  func.func @sum_of_float8(%n: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %x = arith.constant dense<1.0> : tensor<32xf8E4M3FN, #l>
    // expected-error@+1 {{expected elements to compute with, but got 'f8E4M3FN'; widen them before}}
    %y = arith.addf %x, %x : tensor<32xf8E4M3FN, #l>
    return
  }
}

// -----

#l = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]]>
module attributes {warp.target = "sm_80"} {
  func.func @root_of_float8(%n: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %x = arith.constant dense<1.0> : tensor<32xf8E5M2, #l>
    // expected-error@+1 {{expected elements to compute with, but got 'f8E5M2'; widen them before}}
    %y = math.sqrt %x : tensor<32xf8E5M2, #l>
    return
  }
}

// -----

#acc = #warp.layout<[64, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
module attributes {warp.target = "sm_90a"} {
  func.func @fenced_truths(%x: i1) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %c = tile.splat %x : i1 -> tensor<64x8xi1, #acc>
    // expected-error@+1 {{expected elements of at least 8 bits, but got 'i1'}}
    %f = warp.wgmma_fence %c : tensor<64x8xi1, #acc>
    return
  }
}

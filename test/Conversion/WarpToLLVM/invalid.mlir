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

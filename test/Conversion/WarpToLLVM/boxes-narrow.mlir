// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

// Elements of 8 bits, floats or not, are copied as they are; those of 64 bits have no map.
// CHECK: warp.tensor_maps = ["floats at=64 type=u8 swizzle=64 box=64,8 base=1*i8@0 sizes=64,64 strides=1*i8@8"]
module attributes {warp.target = "sm_90a"} {
  func.func @floats(%p: !tile.ptr<f8E4M3FN>, %stride: i64) attributes {tile.kernel} {
    %c64 = arith.constant 64 : i64
    %map = warp.tensor_map %p sizes(%c64, %c64) strides(%stride) {box = array<i32: 64, 8>} : <f8E4M3FN>
    return
  }
}

// -----

module attributes {warp.target = "sm_90a"} {
  func.func @words(%p: !tile.ptr<f64>, %stride: i64) attributes {tile.kernel} {
    %c64 = arith.constant 64 : i64
    // expected-error @+1 {{'warp.tensor_map' op has no map of elements of 'f64'}}
    %map = warp.tensor_map %p sizes(%c64, %c64) strides(%stride) {box = array<i32: 16, 8>} : <f64>
    return
  }
}

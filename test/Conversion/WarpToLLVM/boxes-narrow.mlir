// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

// Elements of 8 bits, floats or not, are copied as they are, and integers; those of fewer bits have no map.
// CHECK: warp.tensor_maps = ["floats at=64 type=u8 swizzle=64 box=64,8 base=1*i8@0 sizes=64,64 strides=1*i8@8"]
module attributes {warp.target = "sm_90a"} {
  func.func @floats(%p: !tile.ptr<f8E4M3FN>, %stride: i64) attributes {tile.kernel} {
    %c64 = arith.constant 64 : i64
    %map = warp.tensor_map %p sizes(%c64, %c64) strides(%stride) {box = array<i32: 64, 8>} : <f8E4M3FN>
    return
  }
}

// -----

// Vectors, whose elements are not exchanged.
// CHECK: warp.tensor_maps = ["vectors at=64 type=f32 swizzle=0 box=64,1 base=1*i8@0 sizes=64,64 strides=4*i8@32", "vectors at=192 type=f64 swizzle=0 box=64 base=1*i8@8 sizes=64 strides=-", "vectors at=320 type=u16 swizzle=0 box=64 base=1*i8@16 sizes=64 strides=-", "vectors at=448 type=s32 swizzle=0 box=64 base=1*i8@24 sizes=64 strides=-", "vectors at=576 type=s64 swizzle=0 box=64 base=1*i8@40 sizes=64 strides=-"]
module attributes {warp.target = "sm_90a"} {
  func.func @vectors(%p: !tile.ptr<f32>, %d: !tile.ptr<f64>, %h: !tile.ptr<i16>, %w: !tile.ptr<i32>, %stride: i64, %l: !tile.ptr<i64>) attributes {tile.kernel} {
    %c64 = arith.constant 64 : i64
    %0 = warp.tensor_map %p sizes(%c64, %c64) strides(%stride) {box = array<i32: 64, 1>, vector} : <f32>
    %1 = warp.tensor_map %d sizes(%c64) strides() {box = array<i32: 64>, vector} : <f64>
    %2 = warp.tensor_map %h sizes(%c64) strides() {box = array<i32: 64>, vector} : <i16>
    %3 = warp.tensor_map %w sizes(%c64) strides() {box = array<i32: 64>, vector} : <i32>
    %4 = warp.tensor_map %l sizes(%c64) strides() {box = array<i32: 64>, vector} : <i64>
    return
  }
}

// -----

module attributes {warp.target = "sm_90a"} {
  func.func @bits(%p: !tile.ptr<i1>, %stride: i64) attributes {tile.kernel} {
    %c64 = arith.constant 64 : i64
    // expected-error @+1 {{'warp.tensor_map' op has no map of elements of 'i1'}}
    %map = warp.tensor_map %p sizes(%c64, %c64) strides(%stride) {box = array<i32: 16, 8>} : <i1>
    return
  }
}

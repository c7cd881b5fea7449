// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-skip-scaling --remarks-filter-analyse=loops -o /dev/null 2>&1 | FileCheck %s

#row = #warp.layout<[16], register = [[8]], lane = [[0], [0], [1], [2], [4]]>
#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#acc = #warp.layout<[16, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// CHECK: remark: [Analysis] scaled-sums | Category:loops | Function=online | Reason="sums of 64 registers of a thread are multiplied where a maximum of the warp's rows has grown"
func.func @online(%x: tensor<16xf32, #row>, %m0: tensor<16xf32, #row>, %s0: tensor<16x128xf32, #acc>, %n: i32) -> tensor<16x128xf32, #acc> {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%m = %m0, %sums = %s0) -> (tensor<16xf32, #row>, tensor<16x128xf32, #acc>) : i32 {
    %now = arith.maximumf %m, %x : tensor<16xf32, #row>
    %grown = arith.subf %m, %now : tensor<16xf32, #row>
    %f = math.exp2 %grown : tensor<16xf32, #row>
    %g = tile.expand_dims %f {axis = 1 : i32} : tensor<16xf32, #row> -> tensor<16x1xf32, #rows>
    %h = tile.broadcast %g : tensor<16x1xf32, #rows> -> tensor<16x128xf32, #acc>
    %s = arith.mulf %sums, %h : tensor<16x128xf32, #acc>
    scf.yield %now, %s : tensor<16xf32, #row>, tensor<16x128xf32, #acc>
  }
  return %r#1 : tensor<16x128xf32, #acc>
}

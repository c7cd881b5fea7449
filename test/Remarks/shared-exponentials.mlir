// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --pass-pipeline='builtin.module(func.func(warp-share-exponentials))' --remarks-filter-analyse=loops -o /dev/null 2>&1 | FileCheck %s

#a = #warp.layout<[128, 128], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#row = #warp.layout<[128], register = [], lane = [[1], [2], [4], [8], [16]], warp = [[32], [64]]>
#q = #warp.layout<[128, 128], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0], [0, 64]]>
#k = #warp.layout<[128, 128], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32], [0, 64], [64, 0]]>

// CHECK: remark: [Analysis] shared-exponentials | Category:loops | Function=alone | Reason="of 16 powers 6 are computed by polynomials: special-function units take 648 clocks of an iteration then and not 1032, beside 1024 of products and 623 of all instructions"
module attributes {warp.target = "sm_100a"} {
  func.func @alone(%n: i32, %q: !warp.shared<128x128xf16, #q>, %k: !warp.shared<128x128xf16, #k>, %x: tensor<128x128xf32, #a>, %m: tensor<128xf32, #row>) -> (tensor<128x128xf32, #a>, tensor<128x128xf32, #a>) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %z = arith.constant dense<0.0> : tensor<128x128xf32, #a>
    %before = math.exp2 %x : tensor<128x128xf32, #a>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%s = %x) -> (tensor<128x128xf32, #a>) : i32 {
      %d = warp.wgmma %q, %k, %z {shape = array<i32: 128, 128, 16>} : !warp.shared<128x128xf16, #q> * !warp.shared<128x128xf16, #k> -> tensor<128x128xf32, #a>
      %e = warp.wgmma_wait %d {pending = 0 : i32} : tensor<128x128xf32, #a>
      %w = math.exp2 %e : tensor<128x128xf32, #a>
      %f = math.exp2 %m : tensor<128xf32, #row>
      %h = arith.truncf %w : tensor<128x128xf32, #a> to tensor<128x128xf16, #a>
      %o = warp.wgmma %h, %k, %s {shape = array<i32: 128, 128, 16>} : tensor<128x128xf16, #a> * !warp.shared<128x128xf16, #k> -> tensor<128x128xf32, #a>
      %t = warp.wgmma_wait %o {pending = 0 : i32} : tensor<128x128xf32, #a>
      scf.yield %t : tensor<128x128xf32, #a>
    }
    return %r, %before : tensor<128x128xf32, #a>, tensor<128x128xf32, #a>
  }
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --canonicalize %s | FileCheck %s

#a = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]]>
#b = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>
#c = #warp.layout<[64], register = [[2]], lane = [[1], [4], [8], [16], [32]]>

// CHECK-DAG: #[[$A:layout[0-9]*]] = #warp.layout<[64], register = {{\[\[}}32]]
// CHECK-DAG: #[[$C:layout[0-9]*]] = #warp.layout<[64], register = {{\[\[}}2]]

// CHECK-LABEL: func.func @same
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK-NEXT: return %[[X]]
func.func @same(%x: tensor<64xf32, #a>) -> tensor<64xf32, #a> {
  %y = warp.convert_layout %x : tensor<64xf32, #a> -> tensor<64xf32, #a>
  return %y : tensor<64xf32, #a>
}

// CHECK-LABEL: func.func @there_and_back
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK-NEXT: return %[[X]]
func.func @there_and_back(%x: tensor<64xf32, #a>) -> tensor<64xf32, #a> {
  %y = warp.convert_layout %x : tensor<64xf32, #a> -> tensor<64xf32, #b>
  %z = warp.convert_layout %y : tensor<64xf32, #b> -> tensor<64xf32, #a>
  return %z : tensor<64xf32, #a>
}

// CHECK-LABEL: func.func @twice
// CHECK-SAME: %[[X:.*]]: tensor
// CHECK-NEXT: %[[Z:.*]] = warp.convert_layout %[[X]] : tensor<64xf32, #[[$A]]> -> tensor<64xf32, #[[$C]]>
// CHECK-NEXT: return %[[Z]]
func.func @twice(%x: tensor<64xf32, #a>) -> tensor<64xf32, #c> {
  %y = warp.convert_layout %x : tensor<64xf32, #a> -> tensor<64xf32, #b>
  %z = warp.convert_layout %y : tensor<64xf32, #b> -> tensor<64xf32, #c>
  return %z : tensor<64xf32, #c>
}

// CHECK-LABEL: func.func @constant
// CHECK-NEXT: %[[ONE:.*]] = arith.constant dense<1.000000e+00> : tensor<64xf32, #[[$C]]>
// CHECK-NEXT: return %[[ONE]]
func.func @constant() -> tensor<64xf32, #c> {
  %x = arith.constant dense<1.0> : tensor<64xf32, #a>
  %y = warp.convert_layout %x : tensor<64xf32, #a> -> tensor<64xf32, #c>
  return %y : tensor<64xf32, #c>
}

// CHECK-LABEL: func.func @splat
// CHECK-NEXT: tile.splat %{{.*}} : f32 -> tensor<64xf32, #[[$C]]>
// CHECK-NEXT: return
func.func @splat(%x: f32) -> tensor<64xf32, #c> {
  %y = tile.splat %x : f32 -> tensor<64xf32, #a>
  %z = warp.convert_layout %y : tensor<64xf32, #a> -> tensor<64xf32, #c>
  return %z : tensor<64xf32, #c>
}

// A constant whose elements differ stays where it is.
// CHECK-LABEL: func.func @not_splat
// CHECK: warp.convert_layout
func.func @not_splat() -> tensor<2xf32, #warp.layout<[2], register = [], lane = [[0], [0], [0], [0], [1]]>> {
  %x = arith.constant dense<[1.0, 2.0]> : tensor<2xf32, #warp.layout<[2], register = [], lane = [[1], [0], [0], [0], [0]]>>
  %y = warp.convert_layout %x : tensor<2xf32, #warp.layout<[2], register = [], lane = [[1], [0], [0], [0], [0]]>>
      -> tensor<2xf32, #warp.layout<[2], register = [], lane = [[0], [0], [0], [0], [1]]>>
  return %y : tensor<2xf32, #warp.layout<[2], register = [], lane = [[0], [0], [0], [0], [1]]>>
}

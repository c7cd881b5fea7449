// RUN: weft-opt %s --pass-pipeline='builtin.module(func.func(warp-place-totals))' --split-input-file | FileCheck %s

#tile = #warp.layout<[16, 32], register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#rows = #warp.layout<[32], register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = [[0], [0]]>
#line = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]], warp = [[0], [0]]>

// What is computed of the totals goes along, constants too, and both conversions are dropped.
// CHECK: #[[$LINE:.*]] = #warp.layout<[32], lane
// CHECK-LABEL: func.func @computed
// CHECK: %[[TOTAL:.*]] = tile.reduce {{.*}} -> tensor<32xf32, #[[$LINE]]>
// CHECK: %[[HALF:.*]] = arith.constant dense<5.000000e-01> : tensor<32xf32, #[[$LINE]]>
// CHECK: %[[MEAN:.*]] = arith.mulf %[[TOTAL]], %[[HALF]] : tensor<32xf32, #[[$LINE]]>
// CHECK-NOT: warp.convert_layout
// CHECK: return %[[MEAN]], %[[TOTAL]]
func.func @computed(%x: tensor<16x32xf32, #tile>) -> (tensor<32xf32, #line>, tensor<32xf32, #line>) {
  %half = arith.constant dense<0.5> : tensor<32xf32, #rows>
  %sum = tile.reduce %x {axis = 0 : i32} : (tensor<16x32xf32, #tile>) -> tensor<32xf32, #rows> {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %b : f32
    tile.yield %r : f32
  }
  %mean = arith.mulf %sum, %half : tensor<32xf32, #rows>
  %first = warp.convert_layout %mean : tensor<32xf32, #rows> -> tensor<32xf32, #line>
  %second = warp.convert_layout %sum : tensor<32xf32, #rows> -> tensor<32xf32, #line>
  return %first, %second : tensor<32xf32, #line>, tensor<32xf32, #line>
}

// -----

#tile = #warp.layout<[16, 32], register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#rows = #warp.layout<[32], register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = [[0], [0]]>
#line = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]], warp = [[0], [0]]>

// Someone asks for the totals as they are.
// CHECK-LABEL: func.func @wanted_twice
// CHECK: warp.convert_layout
func.func @wanted_twice(%x: tensor<16x32xf32, #tile>) -> (tensor<32xf32, #rows>, tensor<32xf32, #line>) {
  %sum = tile.reduce %x {axis = 0 : i32} : (tensor<16x32xf32, #tile>) -> tensor<32xf32, #rows> {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %b : f32
    tile.yield %r : f32
  }
  %line = warp.convert_layout %sum : tensor<32xf32, #rows> -> tensor<32xf32, #line>
  return %sum, %line : tensor<32xf32, #rows>, tensor<32xf32, #line>
}

// -----

#tile = #warp.layout<[4, 32], register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[0, 0], [0, 0]]>
#rows = #warp.layout<[32], register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = [[0], [0]]>
#line = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]], warp = [[0], [0]]>

// A warp has its totals in registers.
// CHECK-LABEL: func.func @one_warp
// CHECK: warp.convert_layout
func.func @one_warp(%x: tensor<4x32xf32, #tile>) -> tensor<32xf32, #line> {
  %sum = tile.reduce %x {axis = 0 : i32} : (tensor<4x32xf32, #tile>) -> tensor<32xf32, #rows> {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %b : f32
    tile.yield %r : f32
  }
  %line = warp.convert_layout %sum : tensor<32xf32, #rows> -> tensor<32xf32, #line>
  return %line : tensor<32xf32, #line>
}

// -----

#tile = #warp.layout<[16, 32], register = [[0, 1], [0, 2]], lane = [[0, 4], [0, 8], [0, 16], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#rows = #warp.layout<[32], register = [[1], [2]], lane = [[4], [8], [16], [0], [0]], warp = [[0], [0]]>
#line = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]], warp = [[0], [0]]>

// What else goes into it lies as the totals did; and a layout of more registers is not read instead.
// CHECK-LABEL: func.func @with_others
// CHECK: warp.convert_layout
// CHECK-LABEL: func.func @more_registers
// CHECK: warp.convert_layout
func.func @with_others(%x: tensor<16x32xf32, #tile>, %y: tensor<32xf32, #rows>) -> tensor<32xf32, #line> {
  %sum = tile.reduce %x {axis = 0 : i32} : (tensor<16x32xf32, #tile>) -> tensor<32xf32, #rows> {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %b : f32
    tile.yield %r : f32
  }
  %both = arith.addf %sum, %y : tensor<32xf32, #rows>
  %line = warp.convert_layout %both : tensor<32xf32, #rows> -> tensor<32xf32, #line>
  return %line : tensor<32xf32, #line>
}

#eight = #warp.layout<[32], register = [[1], [2], [4]], lane = [[8], [16], [0], [0], [0]], warp = [[0], [0]]>
func.func @more_registers(%x: tensor<16x32xf32, #tile>) -> tensor<32xf32, #eight> {
  %sum = tile.reduce %x {axis = 0 : i32} : (tensor<16x32xf32, #tile>) -> tensor<32xf32, #rows> {
  ^bb0(%a: f32, %b: f32):
    %r = arith.addf %a, %b : f32
    tile.yield %r : f32
  }
  %eight = warp.convert_layout %sum : tensor<32xf32, #rows> -> tensor<32xf32, #eight>
  return %eight : tensor<32xf32, #eight>
}

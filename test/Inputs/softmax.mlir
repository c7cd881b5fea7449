// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Row softmax, one program a row, as the Python front end makes it from examples/02_softmax.py.
func.func @row_softmax(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32> {tile.divisibility = 16 : i32},
                       %stride_x: i32 {tile.divisibility = 16 : i32}, %stride_y: i32 {tile.divisibility = 16 : i32},
                       %columns: i32 {tile.divisibility = 16 : i32})
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
  %row = tile.program_id x : i32
  %offsets = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %limit = tile.splat %columns : i32 -> tensor<1024xi32>
  %mask = arith.cmpi slt, %offsets, %limit : tensor<1024xi32>
  %x_offset = arith.muli %row, %stride_x : i32
  %x_row = tile.addptr %x, %x_offset : !tile.ptr<f32>, i32
  %x_base = tile.splat %x_row : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %x_ptrs = tile.addptr %x_base, %offsets : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %ninf = arith.constant dense<0xFF800000> : tensor<1024xf32>
  %values = tile.load %x_ptrs, %mask, %ninf : tensor<1024x!tile.ptr<f32>>
  %max = tile.reduce %values {axis = 0 : i32} : (tensor<1024xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.maxnumf %a, %b : f32
    tile.yield %c : f32
  }
  %max_all = tile.splat %max : f32 -> tensor<1024xf32>
  %shifted = arith.subf %values, %max_all : tensor<1024xf32>
  %exponentials = math.exp %shifted : tensor<1024xf32>
  %sum = tile.reduce %exponentials {axis = 0 : i32} : (tensor<1024xf32>) -> f32 {
  ^bb0(%a: f32, %b: f32):
    %c = arith.addf %a, %b : f32
    tile.yield %c : f32
  }
  %sum_all = tile.splat %sum : f32 -> tensor<1024xf32>
  %result = arith.divf %exponentials, %sum_all : tensor<1024xf32>
  %y_offset = arith.muli %row, %stride_y : i32
  %y_row = tile.addptr %y, %y_offset : !tile.ptr<f32>, i32
  %y_base = tile.splat %y_row : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %y_ptrs = tile.addptr %y_base, %offsets : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  tile.store %y_ptrs, %result, %mask : tensor<1024x!tile.ptr<f32>>
  func.return
}

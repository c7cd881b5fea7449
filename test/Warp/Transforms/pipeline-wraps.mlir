// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --canonicalize --cse --tile-mark-wraps --tile-to-warp --warp-stage-wgmma --warp-pipeline --canonicalize --cse | FileCheck %s
// RUN: weft-opt %s --canonicalize --cse --tile-to-warp --warp-stage-wgmma --warp-pipeline --canonicalize --cse | FileCheck %s --check-prefix=READ

// Rows and columns that wrap unread end where they would wrap, as those do that a mask ends: the maps' sizes are these.
// What may be read is copied by threads.
// CHECK-LABEL: func.func @matmul
// CHECK-DAG: %[[M64:.*]] = arith.extsi %arg3
// CHECK-DAG: %[[N64:.*]] = arith.extsi %arg4
// CHECK-DAG: %[[K64:.*]] = arith.extsi %arg5
// CHECK-DAG: warp.tensor_map %arg0 sizes(%[[K64]], %[[M64]])
// CHECK-DAG: warp.tensor_map %arg1 sizes(%[[N64]], %[[K64]])
// CHECK-NOT: arith.remsi
// CHECK-NOT: warp.async_copy
// CHECK: warp.box_copy
// READ-LABEL: func.func @matmul
// READ-NOT: warp.tensor_map
// READ: warp.async_copy
module attributes {warp.target = "sm_90a"} {
func.func @matmul(%a: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %b: !tile.ptr<f16> {tile.divisibility = 16 : i32},
                  %c: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %M: i32 {tile.divisibility = 16 : i32},
                  %N: i32 {tile.divisibility = 16 : i32}, %K: i32 {tile.divisibility = 16 : i32}, %stride_am: i32 {tile.divisibility = 16 : i32},
                  %stride_bk: i32 {tile.divisibility = 16 : i32}, %stride_cm: i32 {tile.divisibility = 16 : i32})
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 3>} {
  %c0 = arith.constant 0 : i32
  %cBK = arith.constant 32 : i32
  %cBM = arith.constant 128 : i32
  %cBN = arith.constant 128 : i32
  %pid_m = tile.program_id x : i32
  %pid_n = tile.program_id y : i32
  %m0 = arith.muli %pid_m, %cBM : i32
  %n0 = arith.muli %pid_n, %cBN : i32
  %range_m = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %range_n = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %inner = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %m0s = tile.splat %m0 : i32 -> tensor<128xi32>
  %n0s = tile.splat %n0 : i32 -> tensor<128xi32>
  %rows = arith.addi %m0s, %range_m : tensor<128xi32>
  %columns = arith.addi %n0s, %range_n : tensor<128xi32>
  %Mw = tile.splat %M : i32 -> tensor<128xi32>
  %Nw = tile.splat %N : i32 -> tensor<128xi32>
  %rows_w = arith.remsi %rows, %Mw : tensor<128xi32>
  %columns_w = arith.remsi %columns, %Nw : tensor<128xi32>
  %rows_we = tile.expand_dims %rows_w {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %columns_we = tile.expand_dims %columns_w {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %rows_e = tile.expand_dims %rows {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %columns_e = tile.expand_dims %columns {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %inner_k = tile.expand_dims %inner {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %inner_r = tile.expand_dims %inner {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  // a + rows * stride_am + inner
  %am = tile.splat %stride_am : i32 -> tensor<128x1xi32>
  %a_row = arith.muli %rows_we, %am : tensor<128x1xi32>
  %a_base = tile.splat %a : !tile.ptr<f16> -> tensor<128x1x!tile.ptr<f16>>
  %a_rows = tile.addptr %a_base, %a_row : tensor<128x1x!tile.ptr<f16>>, tensor<128x1xi32>
  %a_rows_b = tile.broadcast %a_rows : tensor<128x1x!tile.ptr<f16>> -> tensor<128x32x!tile.ptr<f16>>
  %inner_kb = tile.broadcast %inner_k : tensor<1x32xi32> -> tensor<128x32xi32>
  %a_ptrs = tile.addptr %a_rows_b, %inner_kb : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
  // b + inner * stride_bk + columns
  %bk = tile.splat %stride_bk : i32 -> tensor<32x1xi32>
  %b_row = arith.muli %inner_r, %bk : tensor<32x1xi32>
  %b_base = tile.splat %b : !tile.ptr<f16> -> tensor<32x1x!tile.ptr<f16>>
  %b_rows = tile.addptr %b_base, %b_row : tensor<32x1x!tile.ptr<f16>>, tensor<32x1xi32>
  %b_rows_b = tile.broadcast %b_rows : tensor<32x1x!tile.ptr<f16>> -> tensor<32x128x!tile.ptr<f16>>
  %columns_b = tile.broadcast %columns_we : tensor<1x128xi32> -> tensor<32x128xi32>
  %b_ptrs = tile.addptr %b_rows_b, %columns_b : tensor<32x128x!tile.ptr<f16>>, tensor<32x128xi32>
  %Ms = tile.splat %M : i32 -> tensor<128x1xi32>
  %row_ok = arith.cmpi slt, %rows_e, %Ms : tensor<128x1xi32>
  %Ns = tile.splat %N : i32 -> tensor<1x128xi32>
  %column_ok = arith.cmpi slt, %columns_e, %Ns : tensor<1x128xi32>
  %b_step = arith.muli %stride_bk, %cBK : i32
  %a_zero = arith.constant dense<0.0> : tensor<128x32xf16>
  %b_zero = arith.constant dense<0.0> : tensor<32x128xf16>
  %zero = arith.constant dense<0.0> : tensor<128x128xf32>
  %acc:3 = scf.for %k = %c0 to %K step %cBK iter_args(%sum = %zero, %pa = %a_ptrs, %pb = %b_ptrs)
      -> (tensor<128x128xf32>, tensor<128x32x!tile.ptr<f16>>, tensor<32x128x!tile.ptr<f16>>) : i32 {
    %ks = tile.splat %k : i32 -> tensor<1x32xi32>
    %k_a = arith.addi %ks, %inner_k : tensor<1x32xi32>
    %Ks = tile.splat %K : i32 -> tensor<1x32xi32>
    %k_ok = arith.cmpi slt, %k_a, %Ks : tensor<1x32xi32>
    %k_okb = tile.broadcast %k_ok : tensor<1x32xi1> -> tensor<128x32xi1>
    %a_tile = tile.load %pa, %k_okb, %a_zero : tensor<128x32x!tile.ptr<f16>>
    %ksr = tile.splat %k : i32 -> tensor<32x1xi32>
    %k_b = arith.addi %ksr, %inner_r : tensor<32x1xi32>
    %Ksr = tile.splat %K : i32 -> tensor<32x1xi32>
    %k_okr = arith.cmpi slt, %k_b, %Ksr : tensor<32x1xi32>
    %k_okrb = tile.broadcast %k_okr : tensor<32x1xi1> -> tensor<32x128xi1>
    %b_tile = tile.load %pb, %k_okrb, %b_zero : tensor<32x128x!tile.ptr<f16>>
    %next = tile.dot %a_tile, %b_tile, %sum : tensor<128x32xf16> * tensor<32x128xf16> -> tensor<128x128xf32>
    %a_step = arith.constant dense<32> : tensor<128x32xi32>
    %pa_next = tile.addptr %pa, %a_step : tensor<128x32x!tile.ptr<f16>>, tensor<128x32xi32>
    %b_steps = tile.splat %b_step : i32 -> tensor<32x128xi32>
    %pb_next = tile.addptr %pb, %b_steps : tensor<32x128x!tile.ptr<f16>>, tensor<32x128xi32>
    scf.yield %next, %pa_next, %pb_next : tensor<128x128xf32>, tensor<128x32x!tile.ptr<f16>>, tensor<32x128x!tile.ptr<f16>>
  }
  %c_out = arith.truncf %acc#0 : tensor<128x128xf32> to tensor<128x128xf16>
  %cm = tile.splat %stride_cm : i32 -> tensor<128x1xi32>
  %c_row = arith.muli %rows_e, %cm : tensor<128x1xi32>
  %c_base = tile.splat %c : !tile.ptr<f16> -> tensor<128x1x!tile.ptr<f16>>
  %c_rows = tile.addptr %c_base, %c_row : tensor<128x1x!tile.ptr<f16>>, tensor<128x1xi32>
  %c_rows_b = tile.broadcast %c_rows : tensor<128x1x!tile.ptr<f16>> -> tensor<128x128x!tile.ptr<f16>>
  %c_columns = tile.broadcast %columns_e : tensor<1x128xi32> -> tensor<128x128xi32>
  %c_ptrs = tile.addptr %c_rows_b, %c_columns : tensor<128x128x!tile.ptr<f16>>, tensor<128x128xi32>
  %c_row_ok = tile.broadcast %row_ok : tensor<128x1xi1> -> tensor<128x128xi1>
  %c_column_ok = tile.broadcast %column_ok : tensor<1x128xi1> -> tensor<128x128xi1>
  %c_mask = arith.andi %c_row_ok, %c_column_ok : tensor<128x128xi1>
  tile.store %c_ptrs, %c_out, %c_mask : tensor<128x128x!tile.ptr<f16>>
  func.return
}
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Flash attention, forward, full, D = 128, as the Python front end makes it from examples/04_flash_attention.py (batch and head offsets taken into the pointers).
func.func @flash_attention(%q: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %k: !tile.ptr<bf16> {tile.divisibility = 16 : i32},
                           %v: !tile.ptr<bf16> {tile.divisibility = 16 : i32}, %out: !tile.ptr<bf16> {tile.divisibility = 16 : i32},
                           %lse: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %scale_log2: f32, %stride_qh: i32 {tile.divisibility = 16 : i32},
                           %stride_qn: i32 {tile.divisibility = 16 : i32}, %stride_kh: i32 {tile.divisibility = 16 : i32},
                           %stride_km: i32 {tile.divisibility = 16 : i32}, %stride_vh: i32 {tile.divisibility = 16 : i32},
                           %stride_vm: i32 {tile.divisibility = 16 : i32}, %stride_oh: i32 {tile.divisibility = 16 : i32},
                           %stride_on: i32 {tile.divisibility = 16 : i32}, %N: i32, %M: i32)
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 3>} {
  %c0 = arith.constant 0 : i32
  %cBM = arith.constant 128 : i32
  %cBN = arith.constant 64 : i32
  %pid = tile.program_id x : i32
  %head = tile.program_id y : i32
  %head64 = arith.extsi %head : i32 to i64
  %start = arith.muli %pid, %cBM : i32
  %range_m = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %columns = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %channels = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %start_s = tile.splat %start : i32 -> tensor<128xi32>
  %rows = arith.addi %start_s, %range_m : tensor<128xi32>
  %rows_e = tile.expand_dims %rows {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %channels_r = tile.expand_dims %channels {axis = 0 : i32} : tensor<128xi32> -> tensor<1x128xi32>
  %channels_c = tile.expand_dims %channels {axis = 1 : i32} : tensor<128xi32> -> tensor<128x1xi32>
  %columns_r = tile.expand_dims %columns {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %columns_c = tile.expand_dims %columns {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  // q + head * stride_qh + rows * stride_qn + channels
  %qh = arith.extsi %stride_qh : i32 to i64
  %q_head = arith.muli %head64, %qh : i64
  %q_base = tile.addptr %q, %q_head : !tile.ptr<bf16>, i64
  %qn = tile.splat %stride_qn : i32 -> tensor<128x1xi32>
  %q_row = arith.muli %rows_e, %qn : tensor<128x1xi32>
  %q_s = tile.splat %q_base : !tile.ptr<bf16> -> tensor<128x1x!tile.ptr<bf16>>
  %q_rows = tile.addptr %q_s, %q_row : tensor<128x1x!tile.ptr<bf16>>, tensor<128x1xi32>
  %q_rows_b = tile.broadcast %q_rows : tensor<128x1x!tile.ptr<bf16>> -> tensor<128x128x!tile.ptr<bf16>>
  %q_channels = tile.broadcast %channels_r : tensor<1x128xi32> -> tensor<128x128xi32>
  %q_ptrs = tile.addptr %q_rows_b, %q_channels : tensor<128x128x!tile.ptr<bf16>>, tensor<128x128xi32>
  // k + head * stride_kh + columns * stride_km + channels, transposed
  %kh = arith.extsi %stride_kh : i32 to i64
  %k_head = arith.muli %head64, %kh : i64
  %k_base = tile.addptr %k, %k_head : !tile.ptr<bf16>, i64
  %km = tile.splat %stride_km : i32 -> tensor<1x64xi32>
  %k_row = arith.muli %columns_r, %km : tensor<1x64xi32>
  %k_s = tile.splat %k_base : !tile.ptr<bf16> -> tensor<1x64x!tile.ptr<bf16>>
  %k_rows = tile.addptr %k_s, %k_row : tensor<1x64x!tile.ptr<bf16>>, tensor<1x64xi32>
  %k_rows_b = tile.broadcast %k_rows : tensor<1x64x!tile.ptr<bf16>> -> tensor<128x64x!tile.ptr<bf16>>
  %k_channels = tile.broadcast %channels_c : tensor<128x1xi32> -> tensor<128x64xi32>
  %k_ptrs = tile.addptr %k_rows_b, %k_channels : tensor<128x64x!tile.ptr<bf16>>, tensor<128x64xi32>
  // v + head * stride_vh + columns * stride_vm + channels
  %vh = arith.extsi %stride_vh : i32 to i64
  %v_head = arith.muli %head64, %vh : i64
  %v_base = tile.addptr %v, %v_head : !tile.ptr<bf16>, i64
  %vm = tile.splat %stride_vm : i32 -> tensor<64x1xi32>
  %v_row = arith.muli %columns_c, %vm : tensor<64x1xi32>
  %v_s = tile.splat %v_base : !tile.ptr<bf16> -> tensor<64x1x!tile.ptr<bf16>>
  %v_rows = tile.addptr %v_s, %v_row : tensor<64x1x!tile.ptr<bf16>>, tensor<64x1xi32>
  %v_rows_b = tile.broadcast %v_rows : tensor<64x1x!tile.ptr<bf16>> -> tensor<64x128x!tile.ptr<bf16>>
  %v_channels = tile.broadcast %channels_r : tensor<1x128xi32> -> tensor<64x128xi32>
  %v_ptrs = tile.addptr %v_rows_b, %v_channels : tensor<64x128x!tile.ptr<bf16>>, tensor<64x128xi32>
  %Ns = tile.splat %N : i32 -> tensor<128x1xi32>
  %row_ok = arith.cmpi slt, %rows_e, %Ns : tensor<128x1xi32>
  %row_okb = tile.broadcast %row_ok : tensor<128x1xi1> -> tensor<128x128xi1>
  %q_zero = arith.constant dense<0.0> : tensor<128x128xbf16>
  %q_tile = tile.load %q_ptrs, %row_okb, %q_zero : tensor<128x128x!tile.ptr<bf16>>
  %ninf = arith.constant dense<0xFF800000> : tensor<128xf32>
  %ninf_s = arith.constant dense<0xFF800000> : tensor<128x64xf32>
  %zero = arith.constant dense<0.0> : tensor<128xf32>
  %one = arith.constant dense<1.0> : tensor<128xf32>
  %zero_acc = arith.constant dense<0.0> : tensor<128x128xf32>
  %zero_s = arith.constant dense<0.0> : tensor<128x64xf32>
  %k_zero = arith.constant dense<0.0> : tensor<128x64xbf16>
  %v_zero = arith.constant dense<0.0> : tensor<64x128xbf16>
  %scales = tile.splat %scale_log2 : f32 -> tensor<128x64xf32>
  %k_step = arith.muli %stride_km, %cBN : i32
  %v_step = arith.muli %stride_vm, %cBN : i32
  %state:5 = scf.for %first = %c0 to %M step %cBN iter_args(%maximum = %ninf, %total = %zero, %acc = %zero_acc, %pk = %k_ptrs, %pv = %v_ptrs)
      -> (tensor<128xf32>, tensor<128xf32>, tensor<128x128xf32>, tensor<128x64x!tile.ptr<bf16>>, tensor<64x128x!tile.ptr<bf16>>) : i32 {
    %first_r = tile.splat %first : i32 -> tensor<1x64xi32>
    %key_e = arith.addi %first_r, %columns_r : tensor<1x64xi32>
    %Ms = tile.splat %M : i32 -> tensor<1x64xi32>
    %key_ok = arith.cmpi slt, %key_e, %Ms : tensor<1x64xi32>
    %k_mask = tile.broadcast %key_ok : tensor<1x64xi1> -> tensor<128x64xi1>
    %k_tile = tile.load %pk, %k_mask, %k_zero : tensor<128x64x!tile.ptr<bf16>>
    %product = tile.dot %q_tile, %k_tile, %zero_s : tensor<128x128xbf16> * tensor<128x64xbf16> -> tensor<128x64xf32>
    %scaled = arith.mulf %product, %scales : tensor<128x64xf32>
    %key_okb = tile.broadcast %key_ok : tensor<1x64xi1> -> tensor<128x64xi1>
    %scores = arith.select %key_okb, %scaled, %ninf_s : tensor<128x64xi1>, tensor<128x64xf32>
    %block_max = tile.reduce %scores {axis = 1 : i32} : (tensor<128x64xf32>) -> tensor<128xf32> {
    ^bb0(%x: f32, %y: f32):
      %z = arith.maxnumf %x, %y : f32
      tile.yield %z : f32
    }
    %new_maximum = arith.maxnumf %maximum, %block_max : tensor<128xf32>
    %empty = arith.cmpf oeq, %new_maximum, %ninf : tensor<128xf32>
    %shift_by = arith.select %empty, %zero, %new_maximum : tensor<128xi1>, tensor<128xf32>
    %shift_e = tile.expand_dims %shift_by {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
    %shift_b = tile.broadcast %shift_e : tensor<128x1xf32> -> tensor<128x64xf32>
    %relative = arith.subf %scores, %shift_b : tensor<128x64xf32>
    %weights = math.exp2 %relative : tensor<128x64xf32>
    %fall = arith.subf %maximum, %shift_by : tensor<128xf32>
    %decay = math.exp2 %fall : tensor<128xf32>
    %decayed = arith.mulf %total, %decay : tensor<128xf32>
    %block_sum = tile.reduce %weights {axis = 1 : i32} : (tensor<128x64xf32>) -> tensor<128xf32> {
    ^bb0(%x: f32, %y: f32):
      %z = arith.addf %x, %y : f32
      tile.yield %z : f32
    }
    %new_total = arith.addf %decayed, %block_sum : tensor<128xf32>
    %first_c = tile.splat %first : i32 -> tensor<64x1xi32>
    %value_e = arith.addi %first_c, %columns_c : tensor<64x1xi32>
    %Mc = tile.splat %M : i32 -> tensor<64x1xi32>
    %value_ok = arith.cmpi slt, %value_e, %Mc : tensor<64x1xi32>
    %v_mask = tile.broadcast %value_ok : tensor<64x1xi1> -> tensor<64x128xi1>
    %v_tile = tile.load %pv, %v_mask, %v_zero : tensor<64x128x!tile.ptr<bf16>>
    %narrow = arith.truncf %weights : tensor<128x64xf32> to tensor<128x64xbf16>
    %decay_e = tile.expand_dims %decay {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
    %decay_b = tile.broadcast %decay_e : tensor<128x1xf32> -> tensor<128x128xf32>
    %faded = arith.mulf %acc, %decay_b : tensor<128x128xf32>
    %new_acc = tile.dot %narrow, %v_tile, %faded : tensor<128x64xbf16> * tensor<64x128xbf16> -> tensor<128x128xf32>
    %k_steps = tile.splat %k_step : i32 -> tensor<128x64xi32>
    %pk_next = tile.addptr %pk, %k_steps : tensor<128x64x!tile.ptr<bf16>>, tensor<128x64xi32>
    %v_steps = tile.splat %v_step : i32 -> tensor<64x128xi32>
    %pv_next = tile.addptr %pv, %v_steps : tensor<64x128x!tile.ptr<bf16>>, tensor<64x128xi32>
    scf.yield %new_maximum, %new_total, %new_acc, %pk_next, %pv_next
        : tensor<128xf32>, tensor<128xf32>, tensor<128x128xf32>, tensor<128x64x!tile.ptr<bf16>>, tensor<64x128x!tile.ptr<bf16>>
  }
  %seen = arith.cmpf ogt, %state#1, %zero : tensor<128xf32>
  %safe = arith.select %seen, %state#1, %one : tensor<128xi1>, tensor<128xf32>
  %inverse = arith.divf %one, %safe : tensor<128xf32>
  %factor = arith.select %seen, %inverse, %zero : tensor<128xi1>, tensor<128xf32>
  %factor_e = tile.expand_dims %factor {axis = 1 : i32} : tensor<128xf32> -> tensor<128x1xf32>
  %factor_b = tile.broadcast %factor_e : tensor<128x1xf32> -> tensor<128x128xf32>
  %result = arith.mulf %factor_b, %state#2 : tensor<128x128xf32>
  %oh = arith.extsi %stride_oh : i32 to i64
  %o_head = arith.muli %head64, %oh : i64
  %o_base = tile.addptr %out, %o_head : !tile.ptr<bf16>, i64
  %on = tile.splat %stride_on : i32 -> tensor<128x1xi32>
  %o_row = arith.muli %rows_e, %on : tensor<128x1xi32>
  %o_s = tile.splat %o_base : !tile.ptr<bf16> -> tensor<128x1x!tile.ptr<bf16>>
  %o_rows = tile.addptr %o_s, %o_row : tensor<128x1x!tile.ptr<bf16>>, tensor<128x1xi32>
  %o_rows_b = tile.broadcast %o_rows : tensor<128x1x!tile.ptr<bf16>> -> tensor<128x128x!tile.ptr<bf16>>
  %o_channels = tile.broadcast %channels_r : tensor<1x128xi32> -> tensor<128x128xi32>
  %o_ptrs = tile.addptr %o_rows_b, %o_channels : tensor<128x128x!tile.ptr<bf16>>, tensor<128x128xi32>
  %o_tile = arith.truncf %result : tensor<128x128xf32> to tensor<128x128xbf16>
  %o_mask = tile.broadcast %row_ok : tensor<128x1xi1> -> tensor<128x128xi1>
  tile.store %o_ptrs, %o_tile, %o_mask : tensor<128x128x!tile.ptr<bf16>>
  %log = math.log2 %state#1 : tensor<128xf32>
  %sum_log = arith.addf %state#0, %log : tensor<128xf32>
  %ln2 = arith.constant dense<0.693147182> : tensor<128xf32>
  %logarithm = arith.mulf %sum_log, %ln2 : tensor<128xf32>
  %lse_value = arith.select %seen, %logarithm, %ninf : tensor<128xi1>, tensor<128xf32>
  %lse_head = arith.muli %head, %N : i32
  %lse_base = tile.addptr %lse, %lse_head : !tile.ptr<f32>, i32
  %lse_s = tile.splat %lse_base : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>>
  %lse_ptrs = tile.addptr %lse_s, %rows : tensor<128x!tile.ptr<f32>>, tensor<128xi32>
  %Nr = tile.splat %N : i32 -> tensor<128xi32>
  %lse_mask = arith.cmpi slt, %rows, %Nr : tensor<128xi32>
  tile.store %lse_ptrs, %lse_value, %lse_mask : tensor<128x!tile.ptr<f32>>
  func.return
}

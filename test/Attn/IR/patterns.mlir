// RUN: weft-opt %s | weft-opt | FileCheck %s
// Every pattern printed as it is read.

// CHECK-LABEL: func.func private @leaves
// CHECK-SAME: block_bitmap = #attn.block_bitmap<bits = 4, blockM = 64, blockN = 32>
// CHECK-SAME: block_window = #attn.block_window<[64]>
// CHECK-SAME: block_window_2d = #attn.block_window<[7, 5], grid = [56, 40]>
// CHECK-SAME: blocks = #attn.blocks<index = 2, count = 3, blockM = 128, blockN = 64>
// CHECK-SAME: causal = #attn.causal
// CHECK-SAME: dilated = #attn.dilated<step = 3, width = 4>
// CHECK-SAME: document = #attn.document<queryIds = 0, keyIds = 1>
// CHECK-SAME: empty = #attn.empty
// CHECK-SAME: full = #attn.full
// CHECK-SAME: global_tokens = #attn.global_tokens<4>
// CHECK-SAME: left = #attn.window<left = 3>
// CHECK-SAME: mask = #attn.mask<0>
// CHECK-SAME: neighbourhood = #attn.neighbourhood<shape = [56, 40], kernel = [7, 3], dilation = [1, 2]>
// CHECK-SAME: prefix = #attn.prefix<100>
// CHECK-SAME: random = #attn.random_blocks<seed = -7, perRow = 3, block = 64>
// CHECK-SAME: right = #attn.window<right = -1>
// CHECK-SAME: span = #attn.span<lower = 0, upper = 1, first = 2, past = 3>
// CHECK-SAME: strided = #attn.strided<8>
// CHECK-SAME: window = #attn.window<left = 128, right = 0>
func.func private @leaves() attributes {
  full = #attn.full, empty = #attn.empty, causal = #attn.causal, window = #attn.window<left = 128, right = 0>, left = #attn.window<left = 3>,
  right = #attn.window<right = -1>, block_window = #attn.block_window<[64]>, block_window_2d = #attn.block_window<[7, 5], grid = [56, 40]>,
  prefix = #attn.prefix<100>, global_tokens = #attn.global_tokens<4>, strided = #attn.strided<8>, dilated = #attn.dilated<step = 3, width = 4>,
  neighbourhood = #attn.neighbourhood<shape = [56, 40], kernel = [7, 3], dilation = [1, 2]>,
  random = #attn.random_blocks<seed = -7, perRow = 3, block = 64>, document = #attn.document<queryIds = 0, keyIds = 1>,
  blocks = #attn.blocks<index = 2, count = 3, blockM = 128, blockN = 64>, block_bitmap = #attn.block_bitmap<bits = 4, blockM = 64, blockN = 32>,
  span = #attn.span<lower = 0, upper = 1, first = 2, past = 3>, mask = #attn.mask<0>}

// CHECK-LABEL: func.func private @compositions
// CHECK-SAME: and = #attn.and<#attn.causal, #attn.or<#attn.prefix<4>, #attn.not<#attn.strided<2>>>>
// CHECK-SAME: kept = #attn.kept<#attn.causal, #attn.strided<2>>
// CHECK-SAME: per_head = #attn.per_head<#attn.causal, #attn.full>
// CHECK-SAME: section = #attn.section<#attn.or<#attn.causal, #attn.prefix<4>>, rows = 0, keys = 1>
// CHECK-SAME: shift = #attn.shift<#attn.causal, -3>
// CHECK-SAME: transpose = #attn.transpose<#attn.block_window<[8]>>
func.func private @compositions() attributes {
  and = #attn.and<#attn.causal, #attn.or<#attn.prefix<4>, #attn.not<#attn.strided<2>>>>, per_head = #attn.per_head<#attn.causal, #attn.full>,
  kept = #attn.kept<#attn.causal, #attn.strided<2>>,
  shift = #attn.shift<#attn.causal, -3>, section = #attn.section<#attn.or<#attn.causal, #attn.prefix<4>>, rows = 0, keys = 1>, transpose = #attn.transpose<#attn.block_window<[8]>>}

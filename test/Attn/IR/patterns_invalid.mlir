// RUN: weft-opt %s --split-input-file --verify-diagnostics
// What no pattern takes.

// expected-error@+1 {{expected 'left' to be at most 1073741824, but got 4294967296}}
func.func private @window_left() attributes {p = #attn.window<left = 4294967296>}

// -----

// expected-error@+1 {{expected 'right' to be at least -1073741824, but got -4294967296}}
func.func private @window_right() attributes {p = #attn.window<right = -4294967296>}

// -----

// expected-error@+1 {{expected a window of one or two sizes, but got 3}}
func.func private @block_window_c1() attributes {p = #attn.block_window<[2, 2, 2]>}

// -----

// expected-error@+1 {{expected a grid of 2 sizes, but got 0}}
func.func private @block_window_c1_grid() attributes {p = #attn.block_window<[2, 2]>}

// -----

// expected-error@+1 {{expected a grid of 0 sizes, but got 2}}
func.func private @block_window_c1_no_grid() attributes {p = #attn.block_window<[2], grid = [4, 4]>}

// -----

// expected-error@+1 {{expected 'window' to be at least 1, but got 0}}
func.func private @block_window_c1_size() attributes {p = #attn.block_window<[0]>}

// -----

// expected-error@+1 {{expected the grid's tokens to be at most 1073741824, but got more}}
func.func private @block_window_tokens() attributes {p = #attn.block_window<[2, 2], grid = [65536, 65536]>}

// -----

// expected-error@+1 {{expected 'size' to be at least 0, but got -1}}
func.func private @prefix() attributes {p = #attn.prefix<-1>}

// -----

// expected-error@+1 {{expected 'size' to be at least 0, but got -1}}
func.func private @global_tokens() attributes {p = #attn.global_tokens<-1>}

// -----

// expected-error@+1 {{expected 'step' to be at least 1, but got 0}}
func.func private @strided() attributes {p = #attn.strided<0>}

// -----

// expected-error@+1 {{expected step * width to be at most 1073741824, but got more}}
func.func private @dilated() attributes {p = #attn.dilated<step = 65536, width = 65536>}

// -----

// expected-error@+1 {{expected kernel * dilation to be at most the axis' size 8, but got 5 * 2}}
func.func private @neighbourhood_c2() attributes {p = #attn.neighbourhood<shape = [8], kernel = [5], dilation = [2]>}

// -----

// expected-error@+1 {{expected shape, kernel and dilation of one to three sizes each, as many in all, but got 2, 1 and 2}}
func.func private @neighbourhood_c1() attributes {p = #attn.neighbourhood<shape = [8, 8], kernel = [5], dilation = [1, 1]>}

// -----

// expected-error@+1 {{expected 'perRow' to be at least 0, but got -1}}
func.func private @random_blocks() attributes {p = #attn.random_blocks<seed = 1, perRow = -1, block = 4>}

// -----

// expected-error@+1 {{expected 'block' to be at least 1, but got 0}}
func.func private @blocks() attributes {p = #attn.blocks<index = 0, count = 1, blockM = 0, blockN = 4>}

// -----

// expected-error@+1 {{expected a pattern, but got 3 : i64}}
func.func private @and() attributes {p = #attn.and<#attn.causal, 3>}

// -----

// expected-error@+1 {{expected a pattern, but got unit}}
func.func private @not() attributes {p = #attn.not<unit>}

// -----

// expected-error@+1 {{expected 'by' to be at most 1073741824, but got 4294967296}}
func.func private @shift() attributes {p = #attn.shift<#attn.causal, 4294967296>}

// -----

// expected-error@+1 {{expected '#attn.kept' to be a domain's whole pattern, but it is a part of one}}
func.func private @kept() attributes {p = #attn.and<#attn.causal, #attn.kept<#attn.full, #attn.strided<2>>>}

// -----

// expected-error@+1 {{expected a pattern, but got 3 : i64}}
func.func private @section() attributes {p = #attn.section<3, rows = 0, keys = 1>}

// -----

// expected-error@+1 {{expected shifts of at most 1073741824 in all, but got 1073741825}}
func.func private @shifts() attributes {p = #attn.shift<#attn.not<#attn.shift<#attn.causal, -1073741824>>, 1>}

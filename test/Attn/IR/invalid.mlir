// RUN: weft-opt %s --split-input-file --verify-diagnostics
// Constraints of the mixers and of the ops on tensors, one a case, named after them. Attention: attend_invalid.mlir.

func.func @toeplitz_c1(%taps: !attn.tensor<[4, 64], f16>) {
  // expected-error@+1 {{expected an odd number of centred taps, but got 4}}
  %0 = attn.toeplitz %taps {centred} : !attn.tensor<[4, 64], f16>
  return
}

// -----

func.func @toeplitz_taps(%taps: !attn.tensor<[64], f16>) {
  // expected-error@+1 {{expected taps [K, H*C] with K of at least 1, but got '!attn.tensor<[64], f16>'}}
  %0 = attn.toeplitz %taps : !attn.tensor<[64], f16>
  return
}

// -----

func.func @convolve_c1(%x: !attn.tensor<[B, 1, N, 64], f16>, %taps: !attn.tensor<[K, 64], f16>) {
  // expected-error@+1 {{expected taps [K, H*C] with K an integer where they are centred, dilated, on a grid or of packed sequences, but got '!attn.tensor<[K, 64], f16>'}}
  %0 = attn.convolve %x, %taps {dilation = 2 : i64} : !attn.tensor<[B, 1, N, 64], f16>, !attn.tensor<[K, 64], f16> -> !attn.tensor<[B, 1, N, 64], f16>
  return
}

// -----

func.func @toeplitz_grid(%taps: !attn.tensor<[8, 64], f16>) {
  // expected-error@+1 {{expected K*K taps on a grid, but got 8}}
  %0 = attn.toeplitz %taps {centred, grid = array<i64: 4, 4>} : !attn.tensor<[8, 64], f16>
  return
}

// -----

func.func @diag_rank(%g: !attn.tensor<[H, N], f16>) {
  // expected-error@+1 {{expected a gate of rank 4, but got '!attn.tensor<[H, N], f16>'}}
  %0 = attn.diag %g : !attn.tensor<[H, N], f16>
  return
}

// -----

func.func @apply_result(%v: !attn.tensor<[B, H, N, 32], f16>) {
  %m = attn.mean
  // expected-error@+1 {{expected a result of shape [B, H, N, 32], but got '!attn.tensor<[B, H, N, 64], f16>'}}
  %0 = attn.apply %m, %v : (!attn.tensor<[B, H, N, 32], f16>) -> !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @map_c1(%x: !attn.tensor<[N], f32>) {
  // expected-error@+1 {{expected results of one shape, but got '!attn.tensor<[N], f32>' and '!attn.tensor<[M], f32>'}}
  %0:2 = attn.map ins(%x : !attn.tensor<[N], f32>) -> !attn.tensor<[N], f32>, !attn.tensor<[M], f32> {
  ^bb0(%a: f32):
    attn.yield %a, %a : f32, f32
  }
  return
}

// -----

func.func @map_c2(%x: !attn.tensor<[M, 64], f32>) {
  // expected-error@+1 {{expected inputs that broadcast to '!attn.tensor<[N, 64], f32>', but got '!attn.tensor<[M, 64], f32>'}}
  %0 = attn.map ins(%x : !attn.tensor<[M, 64], f32>) -> !attn.tensor<[N, 64], f32> {
  ^bb0(%a: f32):
    attn.yield %a : f32
  }
  return
}

// -----

func.func @map_c3_arguments(%x: !attn.tensor<[N], f16>) {
  // expected-error@+1 {{expected the body to take ('f32'), but it takes ('i32')}}
  %0 = attn.map ins(%x : !attn.tensor<[N], f16>) -> !attn.tensor<[N], i32> {
  ^bb0(%a: i32):
    attn.yield %a : i32
  }
  return
}

// -----

func.func @map_c3_yield(%x: !attn.tensor<[N], f16>) {
  // expected-error@+1 {{expected the body to yield ('f32'), but it yields ()}}
  %0 = attn.map ins(%x : !attn.tensor<[N], f16>) -> !attn.tensor<[N], f16> {
  ^bb0(%a: f32):
    attn.yield
  }
  return
}

// -----

func.func @index_axis() {
  %0 = attn.map -> !attn.tensor<[N], i32> {
    // expected-error@+1 {{expected an axis of '!attn.tensor<[N], i32>', but got 1}}
    %i = attn.index 1 : i32
    attn.yield %i : i32
  }
  return
}

// -----

func.func @element_indices(%x: !attn.tensor<[N, 64], f16>) {
  %0 = attn.map -> !attn.tensor<[N], f32> {
    %i = attn.index 0 : i32
    // expected-error@+1 {{expected 2 indices into '!attn.tensor<[N, 64], f16>', but got 1}}
    %e = attn.element %x[%i] : !attn.tensor<[N, 64], f16> -> f32
    attn.yield %e : f32
  }
  return
}

// -----

func.func @sum_c1(%x: !attn.tensor<[B, H, N, 64], f16>) {
  // expected-error@+1 {{expected a result that broadcasts to the source '!attn.tensor<[B, H, N, 64], f16>', but got '!attn.tensor<[B, H, 2, 64], f32>'}}
  %0 = attn.sum %x : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, 2, 64], f32>
  return
}

// -----

func.func @sum_c2(%x: !attn.tensor<[B, H, N, 64], f16>) {
  // expected-error@+1 {{expected 'away' to ascend through axes of '!attn.tensor<[B, H, N, 64], f16>', but got 2, 0}}
  %0 = attn.sum %x away [2, 0] : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[H, 64], f32>
  return
}

// -----

func.func @sum_c2_rank(%x: !attn.tensor<[B, H, N, 64], f16>) {
  // expected-error@+1 {{expected a result of rank 3, but got '!attn.tensor<[H, 64], f32>'}}
  %0 = attn.sum %x away [3] : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[H, 64], f32>
  return
}

// -----

func.func @convolve_c1(%x: !attn.tensor<[B, 2, N, 64], f16>, %taps: !attn.tensor<[3, 64], f16>) {
  // expected-error@+1 {{expected taps of 2 * 64 channels, but got 64}}
  %0 = attn.convolve %x, %taps : !attn.tensor<[B, 2, N, 64], f16>, !attn.tensor<[3, 64], f16> -> !attn.tensor<[B, 2, N, 64], f16>
  return
}

// -----

func.func @convolve_c2(%x: !attn.tensor<[B, H, N, 64], f16>, %taps: !attn.tensor<[3, "H*64"], f16>) {
  // expected-error@+1 {{expected a result of shape [B, H, N, 64], but got '!attn.tensor<[B, H, M, 64], f16>'}}
  %0 = attn.convolve %x, %taps : !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[3, "H*64"], f16> -> !attn.tensor<[B, H, M, 64], f16>
  return
}

// -----

func.func @rope_c1(%x: !attn.tensor<[B, H, N, 65], f16>) {
  // expected-error@+1 {{expected channels that 2 divides, but got '!attn.tensor<[B, H, N, 65], f16>'}}
  %0 = attn.rope %x : !attn.tensor<[B, H, N, 65], f16> -> !attn.tensor<[B, H, N, 65], f16>
  return
}

// -----

func.func @rope_c2(%x: !attn.tensor<[B, H, N, 64], f16>) {
  // expected-error@+1 {{expected a window and a grid of two sizes, but got 1 and 0}}
  %0 = attn.rope %x {form = #attn<rope axial>, window = array<i64: 8>} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @rms_norm_c2(%x: !attn.tensor<[B, H, N, 64], f16>, %g: !attn.tensor<[H, 32], f16>) {
  // expected-error@+1 {{expected a gain of shape [H, 64], but got '!attn.tensor<[H, 32], f16>'}}
  %0 = attn.rms_norm %x, %g : !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[H, 32], f16> -> !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @prefix_mean_c1(%x: !attn.tensor<[H, N, 64], f16>) {
  // expected-error@+1 {{expected a source of rank 4, but got '!attn.tensor<[H, N, 64], f16>'}}
  %0 = attn.prefix_mean %x : !attn.tensor<[H, N, 64], f16> -> !attn.tensor<[H, N, 64], f16>
  return
}

// -----

// expected-error@+1 {{expected 'attn.gradients_of' to number one argument for each of 1 results, but got 2}}
func.func @gradients_of(%x: !attn.tensor<[N], f16>) -> !attn.tensor<[N], f16> attributes {attn.program, attn.gradients_of = array<i64: 0, 1>} {
  return %x : !attn.tensor<[N], f16>
}

// -----

// expected-error @below {{expected 'attn.number' to be an i64 of at least 0 on an attention, but got 1 : i32 on 'func.func'}}
func.func @number() attributes {attn.number = 1 : i32} { return }

// -----

// expected-error@+1 {{expected a size of at least 1, but got "0"}}
func.func @whole_tensor_c3(%x: !attn.tensor<[B, H, N, 0], f16>) {
  return
}

// -----

// expected-error@+1 {{expected elements of i1, i8, i32, i64, f8E4M3FN, f8E5M2, f16, bf16 or f32, but got 'f64'}}
func.func @whole_tensor_c2(%x: !attn.tensor<[B, H, N, 16], f64>) {
  return
}

// -----

// expected-error@+1 {{expected at most 6 axes, but got 7}}
func.func @whole_tensor_c1(%x: !attn.tensor<[A, B, C, D, E, F, G], f16>) {
  return
}

// -----

func.func @toeplitz_c2(%taps: !attn.tensor<[3, 64], f16>, %s: !attn.tensor<[S], f32>) {
  // expected-error@+1 {{expected cu_seqlens of rank 1 and i32 elements, but got '!attn.tensor<[S], f32>'}}
  %0 = attn.toeplitz %taps cu_seqlens %s : !attn.tensor<[3, 64], f16>, !attn.tensor<[S], f32>
  return
}

// -----

func.func @toeplitz_dilation(%taps: !attn.tensor<[3, 64], f16>) {
  // expected-error@+1 {{expected a dilation of at least 1, but got 0}}
  %0 = attn.toeplitz %taps {dilation = 0 : i64} : !attn.tensor<[3, 64], f16>
  return
}

// -----

func.func @toeplitz_grid_sizes(%taps: !attn.tensor<[9, 64], f16>) {
  // expected-error@+1 {{expected a grid of two sizes of at least 1}}
  %0 = attn.toeplitz %taps {grid = array<i64: 4>} : !attn.tensor<[9, 64], f16>
  return
}

// -----

!x = !attn.tensor<[B, 1, 60, 64], f16>
func.func @convolve_grid_tokens(%x: !x, %taps: !attn.tensor<[9, 64], f16>) {
  // expected-error@+1 {{expected a sequence of 8 * 8 tokens, but got 60}}
  %0 = attn.convolve %x, %taps {grid = array<i64: 8, 8>} : !x, !attn.tensor<[9, 64], f16> -> !x
  return
}

// -----

!x = !attn.tensor<[B, 1, N, 64], f16>
func.func @convolve_c3(%x: !x, %taps: !attn.tensor<[4, 64], f16>) {
  // expected-error@+1 {{expected an odd number of centred taps, but got 4}}
  %0 = attn.convolve %x, %taps {centred} : !x, !attn.tensor<[4, 64], f16> -> !x
  return
}

// -----

!x = !attn.tensor<[B, 1, N, 64], f16>
func.func @convolve_taps_grad_c1(%x: !x) {
  // expected-error@+1 {{expected an odd number of centred taps, but got 4}}
  %0 = attn.convolve_taps_grad %x, %x {centred} : !x, !x -> !attn.tensor<[4, 64], f16>
  return
}

// -----

!x = !attn.tensor<[B, 1, N, 64], f16>
func.func @convolve_taps_grad_c2(%x: !x, %g: !attn.tensor<[B, 1, M, 64], f16>) {
  // expected-error@+1 {{expected a result of shape [B, 1, N, 64], but got '!attn.tensor<[B, 1, M, 64], f16>'}}
  %0 = attn.convolve_taps_grad %x, %g : !x, !attn.tensor<[B, 1, M, 64], f16> -> !attn.tensor<[3, 64], f16>
  return
}

// -----

func.func @rope_sizes(%x: !attn.tensor<[B, H, N, 64], f16>) {
  // expected-error@+1 {{expected sizes of at least 1, but got 0}}
  %0 = attn.rope %x {window = array<i64: 0>} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @rms_norm_c1(%x: !attn.tensor<[B, H, N, 64], f16>) {
  // expected-error@+1 {{expected a result of shape [B, H, N, 64], but got '!attn.tensor<[B, H, N, 32], f16>'}}
  %0 = attn.rms_norm %x : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 32], f16>
  return
}

// -----

func.func @apply_values() {
  %m = attn.mean
  // expected-error@+1 {{expected values to apply the mixer to}}
  %0 = attn.apply %m, : () -> !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @map_c1_none() {
  // expected-error@+1 {{expected at least one result}}
  "attn.map"() ({
    attn.yield
  }) : () -> ()
  return
}

// -----

// expected-error@+1 {{expected 'attn.gradients_of' to be an i64 array on a 'func.func', but got 0 : i64 on 'func.func'}}
func.func private @gradients_of_type() attributes {attn.gradients_of = 0 : i64}

// -----

!x = !attn.tensor<[N], f16>
// expected-error@+1 {{expected 'attn.gradients_of' to ascend from 0 to 1, but got array<i64: 1, 0>}}
func.func private @gradients_of_order(!x, !x) -> (!x, !x) attributes {attn.gradients_of = array<i64: 1, 0>}

// -----

// expected-error@+1 {{expected 'attn.fast' to be a unit on an attention or its mixer, but got unit on 'func.func'}}
func.func private @fast() attributes {attn.fast}

// -----

// expected-error@+1 {{expected 'attn.float8' to be a unit on an attention or its mixer, but got unit on 'func.func'}}
func.func private @float8() attributes {attn.float8}

// -----

// expected-error@+1 {{expected an attribute that the attn dialect knows, but got 'attn.programme'}}
func.func private @unknown() attributes {attn.programme}

// -----

// expected-error@+1 {{expected a program over attn tensors, but got 'f32'}}
func.func private @program_types(!attn.tensor<[N], f16>) -> f32 attributes {attn.program}

// -----

// expected-error@+1 {{expected 'attn.name', a string, or the unit 'attn.aligned', 'attn.left_out' or 'attn.constant' on argument 0, but got 'attn.name' = 1 : i32}}
func.func private @argument_name(!attn.tensor<[N], f16> {attn.name = 1 : i32})

// -----

// expected-error@+1 {{expected 'attn.starts' on an attn tensor of one axis of i32, but got it on argument 1}}
func.func private @starts_of_floats(!attn.tensor<[S], i32> {attn.starts = ["N"]}, !attn.tensor<[S], f32> {attn.starts = ["N"]})

// -----

// expected-error@+1 {{expected 'attn.starts' on argument 0 to be strings, numbers of tokens, but got []}}
func.func private @starts_of_nothing(!attn.tensor<[S], i32> {attn.starts = []})

// -----

// expected-error@+1 {{expected 'attn.name', a string, on result 0, but got 'attn.aligned' = unit}}
func.func private @result_name() -> (!attn.tensor<[N], f16> {attn.aligned})

// -----

// expected-error@+1 {{expected a size: an integer, a symbol or an expression}}
func.func private @size(!attn.tensor<[?, N], f16>)

// -----

!x = !attn.tensor<[N, 64], f16>
func.func @launch_c1_missing(%x: !x) -> !x {
  // expected-error@+1 {{expected @nowhere to be a kernel of the module}}
  %y = attn.launch @nowhere(%x) grid ["N", "1", "1"] : (!x) -> !x
  return %y : !x
}

// -----

!x = !attn.tensor<[N, 64], f16>
func.func @launch_c1_parameters(%x: !x) -> !x {
  // expected-error@+1 {{expected @copy to take 5 parameters, but it takes 4}}
  %y = attn.launch @copy(%x) grid ["N", "1", "1"] {sizes = ["N"]} : (!x) -> !x
  return %y : !x
}
// expected-note@+1 {{the kernel is here}}
func.func @copy(%x: !tile.ptr<f16>, %xRow: i64, %y: !tile.ptr<f16>, %yRow: i64) attributes {tile.kernel} {
  return
}

// -----

!x = !attn.tensor<[N, 64], f16>
func.func @launch_c2_grid(%x: !x) -> !x {
  // expected-error@+1 {{expected a grid of three extents, but got 2}}
  %y = attn.launch @copy(%x) grid ["N", "1"] : (!x) -> !x
  return %y : !x
}

// -----

!x = !attn.tensor<[N, 64], f16>
func.func @launch_c3_zeroed(%x: !x) -> !x {
  // expected-error@+1 {{expected `zeroed` to number some of 1 results in ascending order, but got 1}}
  %y = attn.launch @copy(%x) grid ["N", "1", "1"] {zeroed = array<i64: 0, 1>} : (!x) -> !x
  return %y : !x
}

// -----

// expected-error @below {{expected 'attn.tiling_choices' to have rows and warps by kernel, on a module, but got {forward.rows.0 = array<i64: 32>}}}
module attributes {attn.tiling_choices = {forward.rows.0 = array<i64: 32>}} {}

// -----

// expected-error @below {{expected 'attn.tilings' to have place, tiling, rows and warps of kernels, on a program, but got [{place = "forward.rows.0"}]}}
func.func @noted() attributes {attn.program, attn.tilings = [{place = "forward.rows.0"}]} {
  return
}

// -----

// expected-error@+1 {{expected 'attn.requires' to have 'size', 'at_least' and 'what', strings, of each requirement, on a program, but got [{at_least = "N", size = "64*R"}]}}
func.func private @requires() attributes {attn.requires = [{size = "64*R", at_least = "N"}]}

// -----

func.func @toeplitz_reach(%taps: !attn.tensor<[3, 64], f16>) {
  // expected-error@+1 {{expected taps that reach no further than 1073741824 tokens, but got 3 at a dilation of 536870913}}
  %0 = attn.toeplitz %taps {dilation = 536870913 : i64} : !attn.tensor<[3, 64], f16>
  return
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-merge-launches | FileCheck %s

// Two kernels that do not wait for one another become one. The third needs the first's result, and stays.

!t = !attn.tensor<[N], f32>
// CHECK-LABEL: func.func @three(
// CHECK-NEXT: %[[BOTH:.*]]:2 = attn.launch @f_g(%{{.*}}, %{{.*}}) grid ["(cdiv(N, 64)) + (N) * (2)", "1", "1"] {sizes = ["N", "cdiv(N, 64)", "1", "2"]}
// CHECK-NEXT: attn.launch @h(%[[BOTH]]#0)
// CHECK-LABEL: func.func @f_g(
// CHECK: %[[PROGRAM:.*]] = tile.program_id x
// CHECK: %[[FIRST:.*]] = arith.cmpi slt, %[[PROGRAM]]
// CHECK: scf.if %[[FIRST]]
// CHECK: tile.store
// CHECK: else
// CHECK: tile.store
func.func @three(%x: !t, %y: !t) -> (!t, !t) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["cdiv(N, 64)", "1", "1"] {sizes = ["N"]} : (!t) -> !t
  %b = attn.launch @g(%y) grid ["N", "2", "1"] : (!t) -> !t
  %c = attn.launch @h(%a) grid ["1", "1", "1"] : (!t) -> !t
  return %b, %c : !t, !t
}
func.func @f(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %i = tile.program_id x : i32
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}
func.func @g(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %i = tile.program_id y : i32
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}
func.func @h(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %v = tile.load %x : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}

// -----

// Kernels on different numbers of warps stay apart.

!t = !attn.tensor<[N], f32>
// CHECK-LABEL: func.func @warps(
// CHECK-COUNT-2: attn.launch
func.func @warps(%x: !t, %y: !t) -> (!t, !t) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["1", "1", "1"] : (!t) -> !t
  %b = attn.launch @g(%y) grid ["1", "1", "1"] : (!t) -> !t
  return %a, %b : !t, !t
}
func.func @f(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}
func.func @g(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 1>} {
  return
}

// -----

// Without a batch the first has no block, and a result to be filled with zero: it keeps a launch of its own. The second's result has no elements then.

!x = !attn.tensor<[B, N], f32>
!t = !attn.tensor<[N], f32>
// CHECK-LABEL: func.func @empty(
// CHECK-NEXT: attn.launch @f(
// CHECK-NEXT: attn.launch @g_h(
func.func @empty(%x: !x, %y: !x) -> (!t, !x, !t) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["N", "B", "1"] : (!x) -> !t
  %b = attn.launch @g(%y) grid ["cdiv(N, 64)", "B", "1"] : (!x) -> !x
  %c = attn.launch @h(%y) grid ["cdiv(N, 64) + 1", "1", "1"] : (!x) -> !t
  return %a, %b, %c : !t, !x, !t
}
func.func @f(%x: !tile.ptr<f32>, %x0: i64, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}
func.func @g(%x: !tile.ptr<f32>, %x0: i64, %y: !tile.ptr<f32>, %y0: i64) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}
func.func @h(%x: !tile.ptr<f32>, %x0: i64, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}

// -----

// One program that gives numbers alone goes along with any kernel, on its warps, and with its products; with what it
// waits for it does not.

!t = !attn.tensor<[N], f32>
!n = !attn.tensor<[], f32>
// CHECK-LABEL: func.func @numbers(
// CHECK-NEXT: %[[F:.*]] = attn.launch @f(
// CHECK-NEXT: attn.launch @g_h(%{{.*}}, %[[F]]) grid ["(N) + 1", "1", "1"]
// CHECK: func.func @g_h({{.*}} #tile.schedule<warps = 8, stages = 3>
func.func @numbers(%x: !t) -> (!t, !n) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["N", "1", "1"] : (!t) -> !t
  %b = attn.launch @g(%x) grid ["N", "1", "1"] : (!t) -> !t
  %c = attn.launch @h(%a) grid ["1", "1", "1"] : (!t) -> !n
  return %b, %c : !t, !n
}
func.func @f(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
  return
}
func.func @g(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 3>} {
  %a = arith.constant dense<0.0> : tensor<64x64xf16>
  %c = arith.constant dense<0.0> : tensor<64x64xf32>
  %d = tile.dot %a, %a, %c : tensor<64x64xf16> * tensor<64x64xf16> -> tensor<64x64xf32>
  return
}
func.func @h(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}

// -----

// A library takes names of 255 bytes: of kernels with long names the merged one has the first's alone, however many
// there are.

!t = !attn.tensor<[N], f32>
// CHECK-LABEL: func.func @long_names(
// CHECK-NEXT: attn.launch @a_kernel_whose_name_is_long_enough_that_two_of_them_do_not_fit_the_name_of_one_and_others_2(
func.func @long_names(%x: !t) -> (!t, !t, !t) attributes {attn.program} {
  %a = attn.launch @a_kernel_whose_name_is_long_enough_that_two_of_them_do_not_fit_the_name_of_one(%x) grid ["N", "1", "1"] : (!t) -> !t
  %b = attn.launch @a_kernel_whose_name_is_long_enough_that_two_of_them_do_not_fit_the_name_of_one_2(%x) grid ["N", "1", "1"] : (!t) -> !t
  %c = attn.launch @a_kernel_whose_name_is_long_enough_that_two_of_them_do_not_fit_the_name_of_one_3(%x) grid ["N", "1", "1"] : (!t) -> !t
  return %a, %b, %c : !t, !t, !t
}
func.func @a_kernel_whose_name_is_long_enough_that_two_of_them_do_not_fit_the_name_of_one(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}
func.func @a_kernel_whose_name_is_long_enough_that_two_of_them_do_not_fit_the_name_of_one_2(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}
func.func @a_kernel_whose_name_is_long_enough_that_two_of_them_do_not_fit_the_name_of_one_3(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}

// -----

// How many programs a kernel has on an axis is its launch's extent, not that of both.

!t = !attn.tensor<[N], f32>
// CHECK-LABEL: func.func @f_g(
// CHECK-SAME: %{{[a-z0-9]*}}: !tile.ptr<f32>, %{{[a-z0-9]*}}: !tile.ptr<f32>, %{{[a-z0-9]*}}: !tile.ptr<f32>, %{{[a-z0-9]*}}: !tile.ptr<f32>, %[[COUNT:[a-z0-9]*]]: i32
// CHECK-NOT: tile.num_programs
// CHECK: arith.subi %[[COUNT]], %
// CHECK-NOT: tile.num_programs
func.func @counted(%x: !t, %y: !t) -> (!t, !t) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["cdiv(N, 64)", "1", "1"] : (!t) -> !t
  %b = attn.launch @g(%y) grid ["N", "2", "1"] : (!t) -> !t
  return %a, %b : !t, !t
}
func.func @f(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %id = tile.program_id x : i32
  %n = tile.num_programs x : i32
  %i = arith.subi %n, %id : i32
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}
func.func @g(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
  %i = tile.program_id y : i32
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}

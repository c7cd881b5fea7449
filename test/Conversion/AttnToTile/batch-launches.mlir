// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --attn-batch-launches | FileCheck %s

// Two kernels that do the same, of different operands of different sizes, become one that chooses; what both take is passed once. The third
// waits for the first's result: it cannot be among them.

!t = !attn.tensor<[N], f32>
!u = !attn.tensor<[M], f32>
// CHECK-LABEL: func.func @three(
// CHECK-SAME: %[[X:[a-z0-9]*]]: !attn.tensor<[N], f32>, %[[Y:[a-z0-9]*]]: !attn.tensor<[M], f32>, %[[W:[a-z0-9]*]]:
// CHECK-NEXT: %[[BOTH:.*]]:2 = attn.launch @f_batch(%[[X]], %[[Y]], %[[W]]) grid ["(cdiv(N, 64)) * (2) + (M) * (2)", "1", "1"] {sizes = ["N", "cdiv(N, 64)", "M"]}
// CHECK-NEXT: attn.launch @f_3(%[[BOTH]]#0, %[[W]])
// CHECK-LABEL: func.func @f_batch(
// CHECK-SAME: %[[P:[a-z0-9]*]]: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %[[Q:[a-z0-9]*]]: !tile.ptr<f32> {tile.divisibility = 16 : i32}
// CHECK-SAME: %[[V:[a-z0-9]*]]: !tile.ptr<f32>, %[[A:[a-z0-9]*]]: !tile.ptr<f32>, %[[B:[a-z0-9]*]]: !tile.ptr<f32>, %[[S:[a-z0-9]*]]: i32
// CHECK: %[[PROGRAM:.*]] = tile.program_id x
// CHECK: %[[LATER:.*]] = arith.cmpi sge, %[[PROGRAM]]
// CHECK: arith.select %[[LATER]], %[[Q]], %[[P]] : !tile.ptr<f32>
// CHECK: arith.select %[[LATER]], %[[B]], %[[A]] : !tile.ptr<f32>
// CHECK-NOT: tile.program_id
// CHECK: tile.load
// CHECK: tile.store
// CHECK-NOT: tile.store
// CHECK: return
func.func @three(%x: !t, %y: !u, %w: !t) -> (!u, !t) attributes {attn.program} {
  %a = attn.launch @f(%x, %w) grid ["cdiv(N, 64)", "2", "1"] {sizes = ["N"]} : (!t, !t) -> !t
  %c = attn.launch @f_3(%a, %w) grid ["cdiv(N, 64)", "2", "1"] {sizes = ["N"]} : (!t, !t) -> !t
  %b = attn.launch @f_2(%y, %w) grid ["M", "2", "1"] {sizes = ["M"]} : (!u, !t) -> !u
  return %b, %c : !u, !t
}
func.func @f(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %w: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %i = tile.program_id y : i32
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}
func.func @f_2(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %w: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %i = tile.program_id y : i32
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}
func.func @f_3(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %w: !tile.ptr<f32>, %y: !tile.ptr<f32>, %n: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %i = tile.program_id y : i32
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}

// -----

// Kernels that differ in what their pointers promise stay apart, and so do those that take numbers.

!t = !attn.tensor<[N], f32>
// CHECK-LABEL: func.func @apart(
// CHECK-COUNT-4: attn.launch
func.func @apart(%x: !t, %y: !t) -> (!t, !t, !t, !t) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["N", "1", "1"] : (!t) -> !t
  %b = attn.launch @g(%y) grid ["N", "1", "1"] : (!t) -> !t
  %c = attn.launch @h(%x) grid ["N", "1", "1"] {reals = [2.0]} : (!t) -> !t
  %d = attn.launch @h_2(%y) grid ["N", "1", "1"] {reals = [2.0]} : (!t) -> !t
  return %a, %b, %c, %d : !t, !t, !t, !t
}
func.func @f(%x: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}
func.func @g(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}
func.func @h(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %r: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}
func.func @h_2(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>, %r: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  return
}

// -----

// How many programs a kernel has on an axis is its own launch's extent.

!t = !attn.tensor<[N], f32>
!u = !attn.tensor<[M], f32>
// CHECK-LABEL: func.func @f_batch(
// CHECK: %[[PROGRAM:.*]] = tile.program_id x
// CHECK: %[[LATER:.*]] = arith.cmpi sge, %[[PROGRAM]]
// CHECK: arith.maxsi
// CHECK: %[[COUNT:.*]] = arith.select %[[LATER]], %{{.*}} : i32
// CHECK-NOT: tile.num_programs
// CHECK: arith.subi %[[COUNT]], %
func.func @counted(%x: !t, %y: !u) -> (!t, !u) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["cdiv(N, 64)", "1", "1"] : (!t) -> !t
  %b = attn.launch @f_2(%y) grid ["M", "1", "1"] : (!u) -> !u
  return %a, %b : !t, !u
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
func.func @f_2(%x: !tile.ptr<f32>, %y: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %id = tile.program_id x : i32
  %n = tile.num_programs x : i32
  %i = arith.subi %n, %id : i32
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}

// -----

// What one extent is a multiple of and another divides by, here how many heads stand side by side, is no part of how many
// programs there are; of a product, each factor.

!t = !attn.tensor<[N, H], f32>
!u = !attn.tensor<[M, G], f32>
// CHECK-LABEL: func.func @abreast(
// CHECK: attn.launch @f_batch({{.*}}) grid ["(cdiv(N, 64)) * (H) + (cdiv(M, 64)) * (G)", "1", "1"]
func.func @abreast(%x: !t, %y: !u) -> (!t, !u) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["(cdiv(N, 64)) * (1 + (H) % 2) * (1 + (H) % 4)", "(H) / ((1 + (H) % 2) * (1 + (H) % 4))", "1"] : (!t) -> !t
  %b = attn.launch @f_2(%y) grid ["(cdiv(M, 64)) * 4", "(G) / (4)", "1"] : (!u) -> !u
  return %a, %b : !t, !u
}
func.func @f(%x: !tile.ptr<f32>, %s: i64, %y: !tile.ptr<f32>, %t: i64) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %i = tile.program_id y : i32
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}
func.func @f_2(%x: !tile.ptr<f32>, %s: i64, %y: !tile.ptr<f32>, %t: i64) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %i = tile.program_id y : i32
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}

// -----

// What divides one extent stays where no other is a multiple of it: a sum, of which it is a factor of one term, and what
// is another number.

!t = !attn.tensor<[N, H], f32>
!u = !attn.tensor<[M, G], f32>
// CHECK-LABEL: func.func @divided(
// CHECK: attn.launch @f_batch({{.*}}) grid ["((N) * 2 + 2) * ((H) / (2)) + ((M) * 8) * ((G) / (4))", "1", "1"]
func.func @divided(%x: !t, %y: !u) -> (!t, !u) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["(N) * 2 + 2", "(H) / (2)", "1"] : (!t) -> !t
  %b = attn.launch @f_2(%y) grid ["(M) * 8", "(G) / (4)", "1"] : (!u) -> !u
  return %a, %b : !t, !u
}
func.func @f(%x: !tile.ptr<f32>, %s: i64, %y: !tile.ptr<f32>, %t: i64) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %i = tile.program_id y : i32
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}
func.func @f_2(%x: !tile.ptr<f32>, %s: i64, %y: !tile.ptr<f32>, %t: i64) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %i = tile.program_id y : i32
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}

// -----

// A remainder is 0 where its number is not: the launch without blocks leaves results to zero, and stays apart.

!t = !attn.tensor<[N, H], f32>
!u = !attn.tensor<[M, G], f32>
// CHECK-LABEL: func.func @remainder(
// CHECK: attn.launch @f(
// CHECK: attn.launch @f_2(
func.func @remainder(%x: !t, %y: !u) -> (!t, !u) attributes {attn.program} {
  %a = attn.launch @f(%x) grid ["cdiv(N, 64)", "(H) % 2", "1"] : (!t) -> !t
  %b = attn.launch @f_2(%y) grid ["cdiv(M, 64)", "(G) % 2", "1"] : (!u) -> !u
  return %a, %b : !t, !u
}
func.func @f(%x: !tile.ptr<f32>, %s: i64, %y: !tile.ptr<f32>, %t: i64) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %i = tile.program_id y : i32
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}
func.func @f_2(%x: !tile.ptr<f32>, %s: i64, %y: !tile.ptr<f32>, %t: i64) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %i = tile.program_id y : i32
  %p = tile.addptr %x, %i : !tile.ptr<f32>, i32
  %v = tile.load %p : !tile.ptr<f32>
  tile.store %y, %v : !tile.ptr<f32>
  return
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --attn-share-kernels | FileCheck %s
// Two kernels that do the same become one, whatever they are called; a third adds another number and stays.

!x = !attn.tensor<[N], f32>
// CHECK-LABEL: func.func @f(
// CHECK: attn.launch @add(
// CHECK: attn.launch @add(
// CHECK: attn.launch @more(
func.func @f(%x: !x) -> (!x, !x, !x) attributes {attn.program} {
  %a = attn.launch @add(%x) grid ["N", "1", "1"] : (!x) -> !x
  %b = attn.launch @again(%x) grid ["N", "1", "1"] : (!x) -> !x
  %c = attn.launch @more(%x) grid ["N", "1", "1"] : (!x) -> !x
  return %a, %b, %c : !x, !x, !x
}
// CHECK: func.func @add(
// CHECK-NOT: func.func @again
// CHECK: func.func @more(
func.func @add(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %n = tile.program_id x : i32
  %one = arith.constant 1.0 : f32
  %s = tile.addptr %p, %n : !tile.ptr<f32>, i32
  %x = tile.load %s : !tile.ptr<f32>
  %y = arith.addf %x, %one : f32
  %d = tile.addptr %q, %n : !tile.ptr<f32>, i32
  tile.store %d, %y : !tile.ptr<f32>
  return
}
func.func @again(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %i = tile.program_id x : i32
  %one = arith.constant 1.0 : f32
  %from = tile.addptr %p, %i : !tile.ptr<f32>, i32
  %x = tile.load %from : !tile.ptr<f32>
  %y = arith.addf %x, %one : f32
  %to = tile.addptr %q, %i : !tile.ptr<f32>, i32
  tile.store %to, %y : !tile.ptr<f32>
  return
}
func.func @more(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %n = tile.program_id x : i32
  %two = arith.constant 2.0 : f32
  %s = tile.addptr %p, %n : !tile.ptr<f32>, i32
  %x = tile.load %s : !tile.ptr<f32>
  %y = arith.addf %x, %two : f32
  %d = tile.addptr %q, %n : !tile.ptr<f32>, i32
  tile.store %d, %y : !tile.ptr<f32>
  return
}

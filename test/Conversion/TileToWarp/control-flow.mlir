// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --tile-to-warp=target=sm_80 | FileCheck %s

// Two loads that advance one pointer tensor in two layouts: the loop carries it twice. A value that only computes itself is not carried at all.

// CHECK-DAG: #[[$A:.*]] = #warp.layout<[1024], register = {{\[\[}}1], [2], [512]]
// CHECK-LABEL: func.func @loop
// CHECK: scf.for {{.*}} -> (tensor<1024xf32, #[[$A]]>, tensor<1024x!tile.ptr<f32>, #[[$A]]>)
// CHECK: tile.load
// CHECK: arith.addf
// CHECK: tile.addptr
// CHECK: scf.yield %{{.*}}, %{{.*}} : tensor<1024xf32, #[[$A]]>, tensor<1024x!tile.ptr<f32>, #[[$A]]>
func.func @loop(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %step = arith.constant dense<1024> : tensor<1024xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %a = tile.addptr %b, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %l:3 = scf.for %i = %c0 to %n step %c1 iter_args(%s = %zero, %q = %a, %unused = %r) -> (tensor<1024xf32>, tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>) : i32 {
    %x = tile.load %q : tensor<1024x!tile.ptr<f32>>
    %t = arith.addf %s, %x : tensor<1024xf32>
    %next = tile.addptr %q, %step : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    %more = arith.addi %unused, %step : tensor<1024xi32>
    scf.yield %t, %next, %more : tensor<1024xf32>, tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  }
  tile.store %a, %l#0 : tensor<1024x!tile.ptr<f32>>
  func.return
}

// -----

// CHECK-LABEL: func.func @pointers_in_two_layouts
// CHECK: scf.for {{.*}} -> (tensor<1024xi32, #[[A:.*]]>, tensor<1024xi32, #[[B:.*]]>)
// CHECK-DAG: tile.store {{.*}} : tensor<1024x!tile.ptr<f32>, #[[A]]>
// CHECK-DAG: tile.store {{.*}} : tensor<1024x!tile.ptr<f32>, #[[B]]>
// CHECK-NOT: warp.convert_layout
func.func @pointers_in_two_layouts(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32>, %n: i32, %v: f32) attributes {tile.kernel} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %step = arith.constant dense<1024> : tensor<1024xi32>
  %bp = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %bq = tile.splat %q : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %s = tile.splat %v : f32 -> tensor<1024xf32>
  %l = scf.for %i = %c0 to %n step %c1 iter_args(%o = %r) -> (tensor<1024xi32>) : i32 {
    %x = tile.addptr %bp, %o : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    tile.store %x, %s : tensor<1024x!tile.ptr<f32>>
    %y = tile.addptr %bq, %o : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
    tile.store %y, %s : tensor<1024x!tile.ptr<f32>>
    %next = arith.addi %o, %step : tensor<1024xi32>
    scf.yield %next : tensor<1024xi32>
  }
  func.return
}

// -----

// CHECK-LABEL: func.func @branch
// CHECK: %[[R:.*]] = scf.if {{.*}} -> (tensor<1024xf32, #[[A:.*]]>)
// CHECK: tile.load {{.*}} : tensor<1024x!tile.ptr<f32>, #[[A]]>
// CHECK: } else {
// CHECK: scf.yield %{{.*}} : tensor<1024xf32, #[[A]]>
// CHECK: tile.store %{{.*}}, %[[R]]
func.func @branch(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %c: i1) attributes {tile.kernel} {
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %a = tile.addptr %b, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %x = scf.if %c -> (tensor<1024xf32>) {
    %l = tile.load %a : tensor<1024x!tile.ptr<f32>>
    scf.yield %l : tensor<1024xf32>
  } else {
    scf.yield %zero : tensor<1024xf32>
  }
  tile.store %a, %x : tensor<1024x!tile.ptr<f32>>
  func.return
}

// -----

// CHECK-LABEL: func.func @while
// CHECK: scf.while (%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) : (i32, tensor<1024xf32, #[[A:.*]]>) -> (i32, tensor<1024xf32, #[[A]]>)
// CHECK: scf.condition({{.*}}) %{{.*}}, %{{.*}} : i32, tensor<1024xf32, #[[A]]>
// CHECK: tile.load {{.*}} : tensor<1024x!tile.ptr<f32>, #[[A]]>
// CHECK: scf.yield %{{.*}}, %{{.*}} : i32, tensor<1024xf32, #[[A]]>
func.func @while(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %n: i32) attributes {tile.kernel} {
  %c1 = arith.constant 1 : i32
  %r = tile.make_range {start = 0 : i32, end = 1024 : i32} : tensor<1024xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<1024x!tile.ptr<f32>>
  %a = tile.addptr %b, %r : tensor<1024x!tile.ptr<f32>>, tensor<1024xi32>
  %zero = arith.constant dense<0.0> : tensor<1024xf32>
  %w:2 = scf.while (%i = %n, %s = %zero) : (i32, tensor<1024xf32>) -> (i32, tensor<1024xf32>) {
    %more = arith.cmpi sgt, %i, %c1 : i32
    scf.condition(%more) %i, %s : i32, tensor<1024xf32>
  } do {
  ^bb0(%i: i32, %s: tensor<1024xf32>):
    %x = tile.load %a : tensor<1024x!tile.ptr<f32>>
    %t = arith.addf %s, %x : tensor<1024xf32>
    %j = arith.subi %i, %c1 : i32
    scf.yield %j, %t : i32, tensor<1024xf32>
  }
  tile.store %a, %w#1 : tensor<1024x!tile.ptr<f32>>
  func.return
}

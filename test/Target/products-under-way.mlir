// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm %s | weft-translate --mlir-to-ptx | FileCheck %s

#acc = #warp.layout<[64, 8], register = [[0, 1], [8, 0]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#a = #warp.layout<[64, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#b = #warp.layout<[16, 8], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4]]>

// Two sums change places: registers are copied once the product is over, not on the way from it to its wait.
// CHECK-LABEL: .entry change_places(
// CHECK: wgmma.commit_group
// CHECK-NOT: mov.b32
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: mov.b32
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: ret;

// Of two products under way, the one whose sum is copied is waited for.
// CHECK-LABEL: .entry the_earlier(
// CHECK: wgmma.commit_group
// CHECK: wgmma.commit_group
// CHECK-NOT: mov.b32
// CHECK: wgmma.wait_group.sync.aligned 1;
// CHECK: mov.b32
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: ret;

// Sums that stay where they are have the one wait, and products behind a fence no other.
// CHECK-LABEL: .entry stay(
// CHECK: wgmma.fence
// CHECK-NOT: wgmma.fence
// CHECK: wgmma.commit_group
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK-NOT: wgmma.
// CHECK: ret;

// What is copied behind a fence has another.
// CHECK-LABEL: .entry from_one_start(
// CHECK: wgmma.fence
// CHECK: mov.b32
// CHECK: wgmma.fence
// CHECK-NOT: wgmma.fence
// CHECK: ret;

// A product that the next iteration waits for: so do copies at the loop's end, and those before that wait.
// CHECK-LABEL: .entry on_the_way_back(
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK-NEXT: end inline asm
// CHECK-NEXT: mov.b32
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {[[SUM:%r[0-9]+]],
// CHECK-NOT: , [[SUM]];
// CHECK: wgmma.wait_group.sync.aligned 0;
// CHECK: mov.b32 {{.*}}, [[SUM]];
// CHECK: bra
// CHECK: ret;
module attributes {warp.target = "sm_90a"} {
  func.func @change_places(%x: f32, %y: f32, %q: f16, %n: i32, %out: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = tile.splat %q : f16 -> tensor<64x16xf16, #a>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<16x8xf16, #b>
    %c = tile.splat %x : f32 -> tensor<64x8xf32, #acc>
    %d = tile.splat %y : f32 -> tensor<64x8xf32, #acc>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x8x!tile.ptr<f32>, #acc>
    %sums:2 = scf.for %i = %zero to %n step %one iter_args(%first = %c, %second = %d) -> (tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>) : i32 {
      %product = warp.wgmma %a, %b, %first {shape = array<i32: 64, 8, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
      %done = warp.wgmma_wait %product {pending = 0 : i32} : tensor<64x8xf32, #acc>
      scf.yield %second, %done : tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>
    }
    tile.store %p, %sums#0 : tensor<64x8x!tile.ptr<f32>, #acc>
    tile.store %p, %sums#1 : tensor<64x8x!tile.ptr<f32>, #acc>
    return
  }
  func.func @the_earlier(%x: f32, %y: f32, %q: f16, %n: i32, %out: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = tile.splat %q : f16 -> tensor<64x16xf16, #a>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<16x8xf16, #b>
    %c = tile.splat %x : f32 -> tensor<64x8xf32, #acc>
    %d = tile.splat %y : f32 -> tensor<64x8xf32, #acc>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x8x!tile.ptr<f32>, #acc>
    %sums:2 = scf.for %i = %zero to %n step %one iter_args(%first = %c, %second = %d) -> (tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>) : i32 {
      %one_more = warp.wgmma %a, %b, %first {shape = array<i32: 64, 8, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
      %another = warp.wgmma %a, %b, %second {shape = array<i32: 64, 8, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
      %done:2 = warp.wgmma_wait %one_more, %another {pending = 0 : i32} : tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>
      scf.yield %done#1, %done#0 : tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>
    }
    tile.store %p, %sums#0 : tensor<64x8x!tile.ptr<f32>, #acc>
    tile.store %p, %sums#1 : tensor<64x8x!tile.ptr<f32>, #acc>
    return
  }
  func.func @stay(%x: f32, %y: f32, %q: f16, %n: i32, %out: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = tile.splat %q : f16 -> tensor<64x16xf16, #a>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<16x8xf16, #b>
    %c = tile.splat %x : f32 -> tensor<64x8xf32, #acc>
    %d = tile.splat %y : f32 -> tensor<64x8xf32, #acc>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x8x!tile.ptr<f32>, #acc>
    %e, %f, %g = warp.wgmma_fence %a, %c, %d : tensor<64x16xf16, #a>, tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>
    %one_more = warp.wgmma %e, %b, %f {shape = array<i32: 64, 8, 16>, fenced} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
    %another = warp.wgmma %e, %b, %g {shape = array<i32: 64, 8, 16>, fenced} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
    %done:2 = warp.wgmma_wait %one_more, %another {pending = 0 : i32} : tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>
    tile.store %p, %done#0 : tensor<64x8x!tile.ptr<f32>, #acc>
    tile.store %p, %done#1 : tensor<64x8x!tile.ptr<f32>, #acc>
    return
  }
  func.func @from_one_start(%x: f32, %y: f32, %q: f16, %n: i32, %out: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = tile.splat %q : f16 -> tensor<64x16xf16, #a>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<16x8xf16, #b>
    %c = tile.splat %x : f32 -> tensor<64x8xf32, #acc>
    %d = tile.splat %y : f32 -> tensor<64x8xf32, #acc>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x8x!tile.ptr<f32>, #acc>
    %e, %f = warp.wgmma_fence %a, %c : tensor<64x16xf16, #a>, tensor<64x8xf32, #acc>
    %one_more = warp.wgmma %e, %b, %f {shape = array<i32: 64, 8, 16>, fenced} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
    %another = warp.wgmma %e, %b, %f {shape = array<i32: 64, 8, 16>, fenced} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
    %done:2 = warp.wgmma_wait %one_more, %another {pending = 0 : i32} : tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>
    tile.store %p, %done#0 : tensor<64x8x!tile.ptr<f32>, #acc>
    tile.store %p, %done#1 : tensor<64x8x!tile.ptr<f32>, #acc>
    return
  }
  func.func @on_the_way_back(%x: f32, %y: f32, %q: f16, %n: i32, %out: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %zero = arith.constant 0 : i32
    %one = arith.constant 1 : i32
    %a = tile.splat %q : f16 -> tensor<64x16xf16, #a>
    %b = warp.alloc {offset = 0 : i64} : !warp.shared<16x8xf16, #b>
    %c = tile.splat %x : f32 -> tensor<64x8xf32, #acc>
    %d = tile.splat %y : f32 -> tensor<64x8xf32, #acc>
    %p = tile.splat %out : !tile.ptr<f32> -> tensor<64x8x!tile.ptr<f32>, #acc>
    %sums:2 = scf.for %i = %zero to %n step %one iter_args(%first = %c, %second = %d) -> (tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>) : i32 {
      %done = warp.wgmma_wait %second {pending = 0 : i32} : tensor<64x8xf32, #acc>
      %product = warp.wgmma %a, %b, %first {shape = array<i32: 64, 8, 16>} : tensor<64x16xf16, #a> * !warp.shared<16x8xf16, #b> -> tensor<64x8xf32, #acc>
      scf.yield %done, %product : tensor<64x8xf32, #acc>, tensor<64x8xf32, #acc>
    }
    %end = warp.wgmma_wait %sums#1 {pending = 0 : i32} : tensor<64x8xf32, #acc>
    tile.store %p, %end : tensor<64x8x!tile.ptr<f32>, #acc>
    tile.store %p, %sums#0 : tensor<64x8x!tile.ptr<f32>, #acc>
    return
  }
}

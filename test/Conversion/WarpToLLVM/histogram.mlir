// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --tile-to-warp=target=sm_80 --warp-allocate-shared --convert-warp-to-llvm --split-input-file %s | FileCheck %s

// Counters are zeroed, added to by each element under its mask, and read; a barrier before and after.
// CHECK-LABEL: llvm.func @masked
// CHECK: llvm.store %{{.*}} : i32, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: %[[IN:.*]] = llvm.icmp "ult" %[[V:.*]], %{{.*}} : i32
// CHECK: %[[BOTH:.*]] = llvm.and %[[IN]], %{{.*}} : i1
// CHECK: llvm.shl %[[V]], %{{.*}} : i32
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$1 red.shared.add.u32 [$0], 1;"{{.*}}%[[BOTH]]
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$1 red.shared.add.u32 [$0], 1;"
// CHECK-NOT: red.shared
// CHECK: nvvm.barrier
// CHECK: llvm.load %{{.*}} : !llvm.ptr<3> -> i32
func.func @masked(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %i = tile.make_range {start = 0 : i32, end = 256 : i32} : tensor<256xi32>
  %b = tile.splat %p : !tile.ptr<i32> -> tensor<256x!tile.ptr<i32>>
  %a = tile.addptr %b, %i : tensor<256x!tile.ptr<i32>>, tensor<256xi32>
  %x = tile.load %a : tensor<256x!tile.ptr<i32>>
  %c = arith.constant dense<100> : tensor<256xi32>
  %m = arith.cmpi slt, %i, %c : tensor<256xi32>
  %h = tile.histogram %x, %m : tensor<256xi32>, tensor<256xi1> -> tensor<128xi32>
  %k = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32>
  %d = tile.splat %q : !tile.ptr<i32> -> tensor<128x!tile.ptr<i32>>
  %e = tile.addptr %d, %k : tensor<128x!tile.ptr<i32>>, tensor<128xi32>
  tile.store %e, %h : tensor<128x!tile.ptr<i32>>
  return
}

// -----

// Fewer elements than threads: one thread counts each.
// CHECK-LABEL: llvm.func @few
// CHECK: llvm.icmp "ult"
// CHECK: llvm.and
// CHECK: red.shared.add.u32
// CHECK-NOT: red.shared
// CHECK: llvm.return
func.func @few(%p: !tile.ptr<i32>, %q: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %i = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
  %b = tile.splat %p : !tile.ptr<i32> -> tensor<16x!tile.ptr<i32>>
  %a = tile.addptr %b, %i : tensor<16x!tile.ptr<i32>>, tensor<16xi32>
  %x = tile.load %a : tensor<16x!tile.ptr<i32>>
  %h = tile.histogram %x : tensor<16xi32> -> tensor<16xi32>
  %d = tile.splat %q : !tile.ptr<i32> -> tensor<16x!tile.ptr<i32>>
  %e = tile.addptr %d, %i : tensor<16x!tile.ptr<i32>>, tensor<16xi32>
  tile.store %e, %h : tensor<16x!tile.ptr<i32>>
  return
}

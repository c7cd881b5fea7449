// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#range = #warp.layout<[16], register = [[8]], lane = [[0], [0], [1], [2], [4]]>
#acc = #warp.layout<[16, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

// A word for each of a thread's rows, each of whose bits is tested where it chooses, in their order.
// CHECK-LABEL: llvm.func @causal
// CHECK: llvm.inline_asm has_side_effects {{.*}}"mov.b32 $0, $1;"
// CHECK: llvm.intr.smax
// CHECK: llvm.intr.umin
// CHECK: %[[WORD:.*]] = llvm.inline_asm asm_dialect = att "bmsk.clamp.b32 $0, $1, $2;"
// CHECK-NEXT: %[[BIT:.*]] = llvm.and %[[WORD]], %{{.*}} : i32
// CHECK-NEXT: %[[SET:.*]] = llvm.icmp "ne" %[[BIT]], %{{.*}} : i32
// CHECK-NEXT: llvm.select %[[SET]], %{{.*}}, %{{.*}} : i1, f32
// CHECK-NEXT: llvm.and %[[WORD]]
// CHECK-COUNT-15: llvm.select %{{.*}} : i1, f32
// CHECK: bmsk.clamp
// CHECK-COUNT-16: llvm.select %{{.*}} : i1, f32
// CHECK-NOT: bmsk.clamp
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
func.func @causal(%p: !tile.ptr<f32>, %begin: i32, %one: i32, %n: i32) attributes {tile.kernel} {
  %i = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #range>
  %row = tile.expand_dims %i {axis = 1 : i32} : tensor<16xi32, #range> -> tensor<16x1xi32, #rows>
  %base = tile.splat %p : !tile.ptr<f32> -> tensor<16x64x!tile.ptr<f32>, #acc>
  %x = tile.load %base : tensor<16x64x!tile.ptr<f32>, #acc>
  %none = arith.constant dense<0.0> : tensor<16x64xf32, #acc>
  %r = warp.span_select %x, %none from %begin upper(%row plus %one : tensor<16x1xi32, #rows>) end(%n) {axis = 1 : i32} : tensor<16x64xf32, #acc>
  tile.store %base, %r : tensor<16x64x!tile.ptr<f32>, #acc>
  return
}
}

// -----

#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[1, 0], [2, 0], [4, 0], [0, 0], [0, 0]]>
#acc = #warp.layout<[16, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>

module attributes {warp.target = "sm_80"} {
func.func @elsewhere(%x: f32, %begin: i32) attributes {tile.kernel} {
  %row = arith.constant dense<3> : tensor<16x1xi32, #rows>
  %all = tile.splat %x : f32 -> tensor<16x64xf32, #acc>
  // expected-error @below {{expected bounds in the result's layout without the axis}}
  %r = warp.span_select %all, %all from %begin upper(%row plus %begin : tensor<16x1xi32, #rows>) {axis = 1 : i32} : tensor<16x64xf32, #acc>
  return
}
}

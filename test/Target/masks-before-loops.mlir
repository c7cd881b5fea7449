// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm %s | weft-translate --mlir-to-ptx | FileCheck %s

// A mask that a loop's loads have all the time is compared before the loop. Of more than three the back end decides, and
// compares one anew: they would take most of a warp's predicates.

#lanes = #warp.layout<[32], lane = [[1], [2], [4], [8], [16]]>
#four = #warp.layout<[128], register = [[32], [64]], lane = [[1], [2], [4], [8], [16]]>

// CHECK-LABEL: .entry one
// CHECK: bra
// CHECK: setp.lt.s32 %[[MASK:p[0-9]+]]
// CHECK: $L__BB0_[[LOOP:[0-9]+]]:
// CHECK-NOT: setp
// CHECK: @%[[MASK]] ld.global.b32
// CHECK: setp
// CHECK: bra {{.*}}L__BB0_[[LOOP]]
// CHECK-LABEL: .entry four
// CHECK: $L__BB1_[[AGAIN:[0-9]+]]:
// CHECK: setp
// CHECK: ld.global.b32
// CHECK: setp
// CHECK: bra {{.*}}L__BB1_[[AGAIN]]
module attributes {warp.target = "sm_80"} {
func.func @one(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32, %size: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<32xf32, #lanes>
  %r = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32, #lanes>
  %s = tile.splat %size : i32 -> tensor<32xi32, #lanes>
  %mask = arith.cmpi slt, %r, %s : tensor<32xi32, #lanes>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<32x!tile.ptr<f32>, #lanes>
  %a = tile.addptr %b, %r : tensor<32x!tile.ptr<f32>, #lanes>, tensor<32xi32, #lanes>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%t = %zero) -> (tensor<32xf32, #lanes>) : i32 {
    %o = arith.muli %i, %size : i32
    %os = tile.splat %o : i32 -> tensor<32xi32, #lanes>
    %at = tile.addptr %a, %os : tensor<32x!tile.ptr<f32>, #lanes>, tensor<32xi32, #lanes>
    %x = tile.load %at, %mask, %zero : tensor<32x!tile.ptr<f32>, #lanes>
    %u = arith.addf %t, %x : tensor<32xf32, #lanes>
    scf.yield %u : tensor<32xf32, #lanes>
  }
  %c = tile.splat %q : !tile.ptr<f32> -> tensor<32x!tile.ptr<f32>, #lanes>
  %d = tile.addptr %c, %r : tensor<32x!tile.ptr<f32>, #lanes>, tensor<32xi32, #lanes>
  tile.store %d, %sum, %mask : tensor<32x!tile.ptr<f32>, #lanes>
  func.return
}

func.func @four(%p: !tile.ptr<f32>, %q: !tile.ptr<f32>, %n: i32, %size: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %c0 = arith.constant 0 : i32
  %c1 = arith.constant 1 : i32
  %zero = arith.constant dense<0.0> : tensor<128xf32, #four>
  %r = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #four>
  %s = tile.splat %size : i32 -> tensor<128xi32, #four>
  %mask = arith.cmpi slt, %r, %s : tensor<128xi32, #four>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #four>
  %a = tile.addptr %b, %r : tensor<128x!tile.ptr<f32>, #four>, tensor<128xi32, #four>
  %sum = scf.for %i = %c0 to %n step %c1 iter_args(%t = %zero) -> (tensor<128xf32, #four>) : i32 {
    %o = arith.muli %i, %size : i32
    %os = tile.splat %o : i32 -> tensor<128xi32, #four>
    %at = tile.addptr %a, %os : tensor<128x!tile.ptr<f32>, #four>, tensor<128xi32, #four>
    %x = tile.load %at, %mask, %zero : tensor<128x!tile.ptr<f32>, #four>
    %u = arith.addf %t, %x : tensor<128xf32, #four>
    scf.yield %u : tensor<128xf32, #four>
  }
  %c = tile.splat %q : !tile.ptr<f32> -> tensor<128x!tile.ptr<f32>, #four>
  %d = tile.addptr %c, %r : tensor<128x!tile.ptr<f32>, #four>, tensor<128xi32, #four>
  tile.store %d, %sum, %mask : tensor<128x!tile.ptr<f32>, #four>
  func.return
}
}

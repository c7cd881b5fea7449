// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm %s | FileCheck %s

#pair = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = []>

module attributes {warp.target = "sm_80"} {
  // A loop tests at its end; each register of a carried tensor is an argument of its block.
  // CHECK-LABEL: llvm.func @loop
  // CHECK-SAME: %[[N:[a-z0-9]*]]: i32
  // CHECK: %[[ENTERS:.*]] = llvm.icmp "slt" %[[ZERO:.*]], %[[N]]
  // CHECK: llvm.cond_br %[[ENTERS]], ^[[BODY:.*]](%[[ZERO]], %{{.*}}, %{{.*}} : i32, i32, i32), ^[[EXIT:.*]](%{{.*}}, %{{.*}} : i32, i32)
  // CHECK: ^[[BODY]](%[[I:.*]]: i32, %[[V0:.*]]: i32, %[[V1:.*]]: i32):
  // CHECK: llvm.add %[[V0]]
  // CHECK: llvm.add %[[V1]]
  // CHECK: %[[NEXT:.*]] = llvm.add %[[I]]
  // CHECK: %[[AGAIN:.*]] = llvm.icmp "slt" %[[NEXT]], %[[N]]
  // CHECK: llvm.cond_br %[[AGAIN]], ^[[BODY]](%[[NEXT]], {{.*}}), ^[[EXIT]](
  func.func @loop(%n: i32, %x: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #pair>
    %s = scf.for %i = %c0 to %n step %c1 iter_args(%v = %r) -> (tensor<64xi32, #pair>) : i32 {
      %w = arith.addi %v, %r : tensor<64xi32, #pair>
      scf.yield %w : tensor<64xi32, #pair>
    }
    %b = tile.splat %x : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>, #pair>
    %p = tile.addptr %b, %r : tensor<64x!tile.ptr<i32>, #pair>, tensor<64xi32, #pair>
    tile.store %p, %s : tensor<64x!tile.ptr<i32>, #pair>
    return
  }

  // CHECK-LABEL: llvm.func @branch
  // CHECK: llvm.cond_br %{{.*}}, ^[[THEN:.*]], ^[[ELSE:.*]]
  // CHECK: ^[[THEN]]:
  // CHECK: llvm.br ^[[JOIN:.*]](%{{.*}} : i32)
  // CHECK: ^[[ELSE]]:
  // CHECK: llvm.br ^[[JOIN]](%{{.*}} : i32)
  // CHECK: ^[[JOIN]](%{{.*}}: i32):
  func.func @branch(%n: i32, %x: !tile.ptr<i32>) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %c = arith.cmpi slt, %n, %c0 : i32
    %v = scf.if %c -> i32 {
      %d = arith.subi %c0, %n : i32
      scf.yield %d : i32
    } else {
      scf.yield %n : i32
    }
    tile.store %x, %v : !tile.ptr<i32>
    return
  }

  // CHECK-LABEL: llvm.func @repeat
  // CHECK: llvm.br ^[[BEFORE:.*]](%{{.*}} : i32)
  // CHECK: ^[[BEFORE]](%[[V:.*]]: i32):
  // CHECK: llvm.cond_br %{{.*}}, ^[[AFTER:.*]](%[[V]] : i32), ^[[EXIT:.*]](%[[V]] : i32)
  // CHECK: ^[[AFTER]](%[[W:.*]]: i32):
  // CHECK: llvm.br ^[[BEFORE]](
  // CHECK: ^[[EXIT]](
  func.func @repeat(%n: i32, %x: !tile.ptr<i32>) attributes {tile.kernel} {
    %c1 = arith.constant 1 : i32
    %v = scf.while (%a = %n) : (i32) -> i32 {
      %c = arith.cmpi sgt, %a, %c1 : i32
      scf.condition(%c) %a : i32
    } do {
    ^bb0(%a: i32):
      %h = arith.shrsi %a, %c1 : i32
      scf.yield %h : i32
    }
    tile.store %x, %v : !tile.ptr<i32>
    return
  }
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file %s | FileCheck %s
// A function of scalars: its region once for every few registers of a thread, branches and all.

#one = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = []>
module attributes {warp.target = "sm_80"} {
  // CHECK-LABEL: llvm.func @branches
  // CHECK-COUNT-2: llvm.icmp "slt" %{{.*}}, %arg0 : i32
  // CHECK-NOT: llvm.icmp "slt" %{{.*}}, %arg0 : i32
  func.func @branches(%s: i32, %p: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %zero = arith.constant 0 : i32
    %x = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #one>
    %y = tile.map %x {pack = 1 : i32} : (tensor<64xi32, #one>) -> tensor<64xi32, #one> {
    ^bb0(%a: i32):
      %less = arith.cmpi slt, %a, %s : i32
      %b = scf.if %less -> i32 {
        %c = arith.muli %a, %s : i32
        scf.yield %c : i32
      } else {
        scf.yield %zero : i32
      }
      tile.yield %b : i32
    }
    %at = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>, #one>
    %to = tile.addptr %at, %x : tensor<64x!tile.ptr<i32>, #one>, tensor<64xi32, #one>
    tile.store %to, %y : tensor<64x!tile.ptr<i32>, #one>
    return
  }
}

// -----

// Two registers fill half of four: the last one the rest.
#one = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = []>
module attributes {warp.target = "sm_80"} {
  // CHECK-LABEL: llvm.func @packs
  // CHECK: llvm.add %{{.*}} overflow
  // CHECK: %[[SUM:.*]] = llvm.add %{{.*}}, %[[LAST:.*]] : i32
  // CHECK-NEXT: llvm.add %[[SUM]], %[[LAST]] : i32
  func.func @packs(%p: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %x = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #one>
    %y = tile.map %x {pack = 4 : i32} : (tensor<64xi32, #one>) -> tensor<64xi32, #one> {
    ^bb0(%a: i32, %b: i32, %c: i32, %d: i32):
      %e = arith.addi %a, %b : i32
      %f = arith.addi %e, %c : i32
      tile.yield %f, %e, %e, %e : i32, i32, i32, i32
    }
    %at = tile.splat %p : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>, #one>
    %to = tile.addptr %at, %x : tensor<64x!tile.ptr<i32>, #one>, tensor<64xi32, #one>
    tile.store %to, %y : tensor<64x!tile.ptr<i32>, #one>
    return
  }
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file %s | FileCheck %s

#pair = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = []>

// Registers of an address' index differ by a number. Sums, differences, products and shifts compute the rest once, and add a
// number.
// CHECK-LABEL: llvm.func @numbers
// CHECK-SAME:  (%{{.*}}: !llvm.ptr<1>, %[[S:.*]]: i32)
// CHECK:       %[[LANE:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK-DAG:   %[[N32:.*]] = llvm.mlir.constant(32 : i32)
// CHECK-DAG:   %[[N96:.*]] = llvm.mlir.constant(96 : i32)
// CHECK-DAG:   %[[N384:.*]] = llvm.mlir.constant(384 : i32)
// CHECK-DAG:   %[[MINUS:.*]] = llvm.mlir.constant(-384 : i32)
// CHECK:       llvm.add %[[LANE]], %[[S]] : i32
// CHECK:       %[[SUM:.*]] = llvm.add %[[LANE]], %[[S]] : i32
// CHECK:       llvm.add %[[SUM]], %[[N32]] : i32
// CHECK:       %[[TIMES:.*]] = llvm.mul %[[SUM]], %{{.*}} : i32
// CHECK:       llvm.add %[[TIMES]], %[[N96]] : i32
// CHECK:       %[[SHIFTED:.*]] = llvm.mul %[[TIMES]], %{{.*}} : i32
// CHECK:       llvm.add %[[SHIFTED]], %[[N384]] : i32
// CHECK:       %[[LEFT:.*]] = llvm.sub %[[S]], %[[SHIFTED]] : i32
// CHECK:       llvm.add %[[LEFT]], %[[MINUS]] : i32
// CHECK-NOT:   llvm.shl
module attributes {warp.target = "sm_80"} {
  func.func @numbers(%x: !tile.ptr<i32>, %s: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #pair>
    %sp = tile.splat %s : i32 -> tensor<64xi32, #pair>
    %three = arith.constant dense<3> : tensor<64xi32, #pair>
    %two = arith.constant dense<2> : tensor<64xi32, #pair>
    %sum = arith.addi %r, %sp : tensor<64xi32, #pair>
    %times = arith.muli %sum, %three : tensor<64xi32, #pair>
    %shifted = arith.shli %times, %two : tensor<64xi32, #pair>
    %left = arith.subi %sp, %shifted : tensor<64xi32, #pair>
    %b = tile.splat %x : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>, #pair>
    %p = tile.addptr %b, %left : tensor<64x!tile.ptr<i32>, #pair>, tensor<64xi32, #pair>
    tile.store %p, %r : tensor<64x!tile.ptr<i32>, #pair>
    return
  }
}

// -----

#pair = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = []>

// What is no address' stays whole.
// CHECK-LABEL: llvm.func @values
// CHECK-SAME:  (%{{.*}}: !llvm.ptr<1>, %[[S:.*]]: i32)
// CHECK:       %[[LANE:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK:       %[[SECOND:.*]] = llvm.add %[[LANE]], %{{.*}} overflow<nsw, nuw> : i32
// CHECK:       llvm.add %[[LANE]], %[[S]] : i32
// CHECK:       %[[SUM:.*]] = llvm.add %[[SECOND]], %[[S]] : i32
// CHECK:       llvm.mul %[[SUM]], %{{.*}} : i32
module attributes {warp.target = "sm_80"} {
  func.func @values(%x: !tile.ptr<i32>, %s: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #pair>
    %sp = tile.splat %s : i32 -> tensor<64xi32, #pair>
    %three = arith.constant dense<3> : tensor<64xi32, #pair>
    %sum = arith.addi %r, %sp : tensor<64xi32, #pair>
    %times = arith.muli %sum, %three : tensor<64xi32, #pair>
    %b = tile.splat %x : !tile.ptr<i32> -> tensor<64x!tile.ptr<i32>, #pair>
    %p = tile.addptr %b, %r : tensor<64x!tile.ptr<i32>, #pair>, tensor<64xi32, #pair>
    tile.store %p, %times : tensor<64x!tile.ptr<i32>, #pair>
    return
  }
}

// -----

#pair = #warp.layout<[64], register = [[32]], lane = [[1], [2], [4], [8], [16]], warp = []>

// An extension takes the number along; what is promised not to overflow stays as it is.
// CHECK-LABEL: llvm.func @wide
// CHECK:       %[[LANE:.*]] = nvvm.read.ptx.sreg.tid.x
// CHECK-COUNT-2: %[[WIDE:.*]] = llvm.sext %[[LANE]] : i32 to i64
// CHECK:       llvm.add %[[WIDE]], %{{.*}} : i64
// CHECK:       llvm.mul %{{.*}}, %{{.*}} overflow<nsw> : i64
// CHECK:       llvm.mul %{{.*}}, %{{.*}} overflow<nsw> : i64
module attributes {warp.target = "sm_80"} {
  func.func @wide(%x: !tile.ptr<i64>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #pair>
    %w = arith.extsi %r : tensor<64xi32, #pair> to tensor<64xi64, #pair>
    %three = arith.constant dense<3> : tensor<64xi64, #pair>
    %times = arith.muli %w, %three overflow<nsw> : tensor<64xi64, #pair>
    %b = tile.splat %x : !tile.ptr<i64> -> tensor<64x!tile.ptr<i64>, #pair>
    %p = tile.addptr %b, %r : tensor<64x!tile.ptr<i64>, #pair>, tensor<64xi32, #pair>
    tile.store %p, %times : tensor<64x!tile.ptr<i64>, #pair>
    return
  }
}

// -----

#rows = #warp.layout<[16], register = [[8]], lane = [[1], [2], [4], [0], [0]]>

// A number that all elements have goes to those in which registers differ: sixteen rows on, registers still share what they multiply.
// CHECK-LABEL: llvm.func @rows_on
// CHECK-DAG: %[[FIRST:.*]] = llvm.mlir.constant(1024 : i32)
// CHECK-DAG: %[[SECOND:.*]] = llvm.mlir.constant(1536 : i32)
// CHECK: %[[ONE:.*]] = llvm.mul %[[BASE:.*]], %{{.*}} : i32
// CHECK-NEXT: llvm.add %[[ONE]], %[[FIRST]] : i32
// CHECK-NEXT: %[[OTHER:.*]] = llvm.mul %[[BASE]], %{{.*}} : i32
// CHECK-NEXT: llvm.add %[[OTHER]], %[[SECOND]] : i32
module attributes {warp.target = "sm_80"} {
  func.func @rows_on(%x: !tile.ptr<f32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %r = tile.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32, #rows>
    %on = arith.constant dense<16> : tensor<16xi32, #rows>
    %size = arith.constant dense<64> : tensor<16xi32, #rows>
    %row = arith.addi %r, %on : tensor<16xi32, #rows>
    %at = arith.muli %row, %size : tensor<16xi32, #rows>
    %b = tile.splat %x : !tile.ptr<f32> -> tensor<16x!tile.ptr<f32>, #rows>
    %p = tile.addptr %b, %at : tensor<16x!tile.ptr<f32>, #rows>, tensor<16xi32, #rows>
    %v = tile.load %p {warp.contiguity = 1 : i32, warp.runs = array<i32: 1>} : tensor<16x!tile.ptr<f32>, #rows>
    tile.store %p, %v {warp.contiguity = 1 : i32, warp.runs = array<i32: 1>} : tensor<16x!tile.ptr<f32>, #rows>
    return
  }
}

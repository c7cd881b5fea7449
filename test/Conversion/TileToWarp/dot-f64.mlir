// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Products of f64 are made by matrix instructions: the largest of the target that the product fills.
// RUN: weft-opt %s --canonicalize --cse --tile-to-warp=target=sm_80 | FileCheck %s --check-prefixes=CHECK,SMALL
// RUN: weft-opt %s --canonicalize --cse --tile-to-warp=target=sm_90a | FileCheck %s --check-prefixes=CHECK,LARGE
// RUN: weft-opt %s --weft-tile-to-llvm | FileCheck %s --check-prefix=LLVM
// RUN: weft-opt %s --canonicalize --cse --tile-to-warp=target=sm_80 --remarks-filter-missed=products -o /dev/null 2>&1 | FileCheck %s --check-prefix=QUIET --allow-empty
// QUIET-NOT: matrix-instruction

module attributes {warp.target = "sm_90a"} {
// CHECK-LABEL: func.func @large
// SMALL: warp.mma {{.*}} {shape = array<i32: 8, 8, 4>}
// LARGE: warp.mma {{.*}} {shape = array<i32: 16, 8, 16>}
// LLVM-LABEL: @large
// LLVM: nvvm.mma.m16n8k16.row.col.f64
func.func @large(%a: f64, %b: f64, %o: !tile.ptr<f64>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %x = tile.splat %a : f64 -> tensor<16x16xf64>
  %y = tile.splat %b : f64 -> tensor<16x8xf64>
  %zero = arith.constant dense<0.0> : tensor<16x8xf64>
  %d = tile.dot %x, %y, %zero : tensor<16x16xf64> * tensor<16x8xf64> -> tensor<16x8xf64>
  %p = tile.splat %o : !tile.ptr<f64> -> tensor<16x8x!tile.ptr<f64>>
  tile.store %p, %d : tensor<16x8x!tile.ptr<f64>>
  return
}

// CHECK-LABEL: func.func @inner
// SMALL: warp.mma {{.*}} {shape = array<i32: 8, 8, 4>}
// LARGE: warp.mma {{.*}} {shape = array<i32: 16, 8, 8>}
// LLVM-LABEL: @inner
// LLVM: nvvm.mma.m16n8k8.row.col.f64
func.func @inner(%a: f64, %b: f64, %o: !tile.ptr<f64>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %x = tile.splat %a : f64 -> tensor<16x8xf64>
  %y = tile.splat %b : f64 -> tensor<8x8xf64>
  %zero = arith.constant dense<0.0> : tensor<16x8xf64>
  %d = tile.dot %x, %y, %zero : tensor<16x8xf64> * tensor<8x8xf64> -> tensor<16x8xf64>
  %p = tile.splat %o : !tile.ptr<f64> -> tensor<16x8x!tile.ptr<f64>>
  tile.store %p, %d : tensor<16x8x!tile.ptr<f64>>
  return
}

// CHECK-LABEL: func.func @least_inner
// SMALL: warp.mma {{.*}} {shape = array<i32: 8, 8, 4>}
// LARGE: warp.mma {{.*}} {shape = array<i32: 16, 8, 4>}
// LLVM-LABEL: @least_inner
// LLVM: nvvm.mma.m16n8k4.row.col.f64
func.func @least_inner(%a: f64, %b: f64, %o: !tile.ptr<f64>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %x = tile.splat %a : f64 -> tensor<16x4xf64>
  %y = tile.splat %b : f64 -> tensor<4x8xf64>
  %zero = arith.constant dense<0.0> : tensor<16x8xf64>
  %d = tile.dot %x, %y, %zero : tensor<16x4xf64> * tensor<4x8xf64> -> tensor<16x8xf64>
  %p = tile.splat %o : !tile.ptr<f64> -> tensor<16x8x!tile.ptr<f64>>
  tile.store %p, %d : tensor<16x8x!tile.ptr<f64>>
  return
}

// Eight rows are one instruction's of eight, on any target.
// CHECK-LABEL: func.func @few_rows
// CHECK: warp.mma {{.*}} {shape = array<i32: 8, 8, 4>}
// LLVM-LABEL: @few_rows
// LLVM-COUNT-4: nvvm.mma.m8n8k4.row.col.f64
func.func @few_rows(%a: f64, %b: f64, %o: !tile.ptr<f64>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %x = tile.splat %a : f64 -> tensor<8x16xf64>
  %y = tile.splat %b : f64 -> tensor<16x8xf64>
  %zero = arith.constant dense<0.0> : tensor<8x8xf64>
  %d = tile.dot %x, %y, %zero : tensor<8x16xf64> * tensor<16x8xf64> -> tensor<8x8xf64>
  %p = tile.splat %o : !tile.ptr<f64> -> tensor<8x8x!tile.ptr<f64>>
  tile.store %p, %d : tensor<8x8x!tile.ptr<f64>>
  return
}
}

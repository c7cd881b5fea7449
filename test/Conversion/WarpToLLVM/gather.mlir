// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --tile-to-warp=target=sm_80 --warp-allocate-shared --convert-warp-to-llvm --split-input-file %s | FileCheck %s
// RUN: weft-opt --tile-to-warp=target=sm_80 --warp-allocate-shared --split-input-file %s | FileCheck %s --check-prefix=WARP

// Rows picked by one index each: written and read in pieces of 16 bytes, one barrier between. The result keeps the source's layout
// along the axis that nothing picks from.
// CHECK-LABEL: llvm.func @rows
// CHECK-COUNT-2: llvm.store %{{.*}} : vector<8xf16>, !llvm.ptr<3>
// CHECK: nvvm.barrier
// CHECK: llvm.load %{{.*}} {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8xf16>
// CHECK-NOT: llvm.load %{{.*}} : !llvm.ptr<3>
// CHECK: llvm.return
// WARP: #[[$S:.*]] = #warp.layout<[64, 32], register = {{.*}}>
// WARP-LABEL: func.func @rows
// WARP-SAME: warp.shared_bytes = 4096
// WARP: tile.gather %{{.*}}[%{{.*}}] {axis = 0 : i32, warp.scratch = 0 : i64} : tensor<64x32xf16, #[[$S]]>
func.func @rows(%p: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %q: !tile.ptr<i32>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %i = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %j = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %i1 = tile.expand_dims %i {axis = 1 : i32} : tensor<64xi32> -> tensor<64x1xi32>
  %i2 = tile.broadcast %i1 : tensor<64x1xi32> -> tensor<64x32xi32>
  %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<32xi32> -> tensor<1x32xi32>
  %j2 = tile.broadcast %j1 : tensor<1x32xi32> -> tensor<64x32xi32>
  %c = arith.constant dense<32> : tensor<64x32xi32>
  %r = arith.muli %i2, %c : tensor<64x32xi32>
  %o = arith.addi %r, %j2 : tensor<64x32xi32>
  %b = tile.splat %p : !tile.ptr<f16> -> tensor<64x32x!tile.ptr<f16>>
  %a = tile.addptr %b, %o : tensor<64x32x!tile.ptr<f16>>, tensor<64x32xi32>
  %x = tile.load %a : tensor<64x32x!tile.ptr<f16>>
  %k = tile.make_range {start = 0 : i32, end = 32 : i32} : tensor<32xi32>
  %k1 = tile.expand_dims %k {axis = 1 : i32} : tensor<32xi32> -> tensor<32x1xi32>
  %k2 = tile.broadcast %k1 : tensor<32x1xi32> -> tensor<32x32xi32>
  %y = tile.gather %x[%k2] {axis = 0 : i32} : tensor<64x32xf16>[tensor<32x32xi32>] -> tensor<32x32xf16>
  %j3 = tile.broadcast %j1 : tensor<1x32xi32> -> tensor<32x32xi32>
  %d = arith.constant dense<32> : tensor<32x32xi32>
  %s = arith.muli %k2, %d : tensor<32x32xi32>
  %t = arith.addi %s, %j3 : tensor<32x32xi32>
  %e = tile.splat %p : !tile.ptr<f16> -> tensor<32x32x!tile.ptr<f16>>
  %f = tile.addptr %e, %t : tensor<32x32x!tile.ptr<f16>>, tensor<32x32xi32>
  tile.store %f, %y : tensor<32x32x!tile.ptr<f16>>
  return
}

// Elements of a warp's own rows: two registers, each from one of two that the index may name, and no memory.
// CHECK-LABEL: llvm.func @in_rows
// CHECK-COUNT-2: nvvm.shfl.sync idx
// CHECK: llvm.select
// CHECK-COUNT-2: nvvm.shfl.sync idx
// CHECK: llvm.select
// CHECK-NOT: nvvm.shfl
// CHECK-NOT: nvvm.barrier
// CHECK-NOT: llvm.load %{{.*}} : !llvm.ptr<3>
// CHECK: llvm.return
// WARP-LABEL: func.func @in_rows
// WARP-SAME: warp.shared_bytes = 0
func.func @in_rows(%p: !tile.ptr<f32> {tile.divisibility = 16 : i32}, %q: !tile.ptr<f32> {tile.divisibility = 16 : i32}) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
  %i = tile.make_range {start = 0 : i32, end = 4 : i32} : tensor<4xi32>
  %j = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %i1 = tile.expand_dims %i {axis = 1 : i32} : tensor<4xi32> -> tensor<4x1xi32>
  %i2 = tile.broadcast %i1 : tensor<4x1xi32> -> tensor<4x64xi32>
  %j1 = tile.expand_dims %j {axis = 0 : i32} : tensor<64xi32> -> tensor<1x64xi32>
  %j2 = tile.broadcast %j1 : tensor<1x64xi32> -> tensor<4x64xi32>
  %c = arith.constant dense<64> : tensor<4x64xi32>
  %r = arith.muli %i2, %c : tensor<4x64xi32>
  %o = arith.addi %r, %j2 : tensor<4x64xi32>
  %b = tile.splat %p : !tile.ptr<f32> -> tensor<4x64x!tile.ptr<f32>>
  %a = tile.addptr %b, %o : tensor<4x64x!tile.ptr<f32>>, tensor<4x64xi32>
  %x = tile.load %a : tensor<4x64x!tile.ptr<f32>>
  %d = arith.constant dense<63> : tensor<4x64xi32>
  %n = arith.subi %d, %j2 : tensor<4x64xi32>
  %y = tile.gather %x[%n] {axis = 1 : i32} : tensor<4x64xf32>[tensor<4x64xi32>] -> tensor<4x64xf32>
  %e = tile.splat %q : !tile.ptr<f32> -> tensor<4x64x!tile.ptr<f32>>
  %f = tile.addptr %e, %o : tensor<4x64x!tile.ptr<f32>>, tensor<4x64xi32>
  tile.store %f, %y : tensor<4x64x!tile.ptr<f32>>
  return
}

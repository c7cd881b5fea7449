// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

#line = #warp.layout<[8, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32]]>
#one = #warp.layout<[1], offset = []>

// Maps are parameters behind the kernel's own, and the kernel says how they are made: sums of products of what lies at which byte.
// CHECK-LABEL: llvm.func @boxes
// CHECK-SAME: %[[MAP:[^ ]*]]: !llvm.ptr {llvm.align = 64 : i64, llvm.byval = !llvm.array<128 x i8>, nvvm.grid_constant}
// CHECK-SAME: warp.tensor_maps = ["boxes at=64 type=bf16 swizzle=128 box=64,8,1 base=1*i8@0+2*i8@16 sizes=64,1*i4@24,2147483648 strides=6*i8@16,2*i4@24*i8@16"]
// CHECK: llvm.icmp "eq"
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$1 mbarrier.init.shared.b64 [$0], 1;", "r,b,~{memory}"
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$1 mbarrier.init.shared.b64 [$0], 1;", "r,b,~{memory}"
// CHECK-NOT: mbarrier.init
// CHECK: llvm.inline_asm has_side_effects {{.*}}"mbarrier.arrive.expect_tx.shared.b64 _, [$0], 1024;", "r,~{memory}"
// CHECK: llvm.inline_asm has_side_effects {{.*}}"cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [$0], [$1, {$3, $4, $5}], [$2];", "r,l,r,r,r,r,~{memory}" %{{.*}}, %[[MAP]],
// CHECK: llvm.inline_asm has_side_effects {{.*}}"{ .reg .pred done; again: mbarrier.try_wait.parity.shared.b64 done, [$0], $1; @!done bra again; }", "r,r,~{memory}"
// CHECK: "@$1 mbarrier.inval.shared.b64 [$0];"
// CHECK: "@$1 mbarrier.inval.shared.b64 [$0];"
module attributes {warp.target = "sm_90a"} {
  func.func @boxes(%p: !tile.ptr<bf16>, %q: !tile.ptr<f32>, %stride: i64, %n: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c3 = arith.constant 3 : i64
    %c64 = arith.constant 64 : i64
    %most = arith.constant 2147483648 : i64
    %c0 = arith.constant 0 : i32
    %base = tile.addptr %p, %stride : !tile.ptr<bf16>, i64
    %size = arith.extsi %n : i32 to i64
    %three = arith.muli %stride, %c3 : i64
    %outer = arith.muli %size, %stride : i64
    %map = warp.tensor_map %base sizes(%c64, %size, %most) strides(%three, %outer) {box = array<i32: 64, 8, 1>} : <bf16>
    %tile = warp.alloc {offset = 0 : i64} : !warp.shared<8x64xbf16, #line>
    %ring = warp.alloc {offset = 1024 : i64, pitch = 64 : i64} : !warp.shared<stages = 2, 1xi64, #one>
    warp.mbarrier_init %ring : !warp.shared<stages = 2, 1xi64, #one>
    %full = warp.stage %ring[%c0] : !warp.shared<stages = 2, 1xi64, #one> -> !warp.shared<1xi64, #one>
    %first = warp.is_first_thread
    scf.if %first {
      warp.mbarrier_expect %full {bytes = 1024 : i64} : !warp.shared<1xi64, #one>
      warp.box_copy %map[%c0, %n, %c0] to %tile on %full : !warp.shared<8x64xbf16, #line>, !warp.shared<1xi64, #one>
    }
    warp.mbarrier_wait %full, %c0 : !warp.shared<1xi64, #one>
    warp.mbarrier_inval %ring : !warp.shared<stages = 2, 1xi64, #one>
    return
  }
}

// -----

module attributes {warp.target = "sm_90a"} {
  func.func @no_launch_knows(%p: !tile.ptr<f16>, %n: i64) attributes {tile.kernel} {
    %x = tile.program_id x : i32
    %size = arith.extsi %x : i32 to i64
    // expected-error @+1 {{'warp.tensor_map' op expected a base, sizes and strides that are sums of products of the kernel's arguments}}
    %map = warp.tensor_map %p sizes(%size, %n) strides(%n) {box = array<i32: 64, 8>} : <f16>
    return
  }
}

// -----

#one = #warp.layout<[1], offset = []>

module attributes {warp.target = "sm_90a"} {
  func.func @no_ring(%n: i32) attributes {tile.kernel} {
    %c0 = arith.constant 0 : i32
    %ring = warp.alloc {offset = 0 : i64} : !warp.shared<stages = 2, 1xi64, #one>
    %one = warp.stage %ring[%c0] : !warp.shared<stages = 2, 1xi64, #one> -> !warp.shared<1xi64, #one>
    // expected-error @+1 {{'warp.mbarrier_init' op expected a ring that 'warp.alloc' gives}}
    warp.mbarrier_init %one : !warp.shared<1xi64, #one>
    return
  }
}

// -----

#s = #warp.layout<[8, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 4], [2, 8], [4, 16]]>

// Boxes that are stored: one thread's group, and its two waits. Maps have elements of 32 bits, signed ones.
// CHECK-LABEL: llvm.func @stored
// CHECK-SAME: "stored at=64 type=f32 swizzle=128 box=32,8 base=1*i8@0 sizes=32,1*i8@16 strides=128", "stored at=192 type=s32 swizzle=128 box=32,8 base=1*i8@8 sizes=32,1*i8@16 strides=128"
// CHECK: llvm.inline_asm has_side_effects {{.*}}"cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [$0, {$2, $3}], [$1];", "l,r,r,r,~{memory}"
// CHECK: "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [$0, {$2, $3}], [$1];"
// CHECK: llvm.inline_asm has_side_effects {{.*}}"cp.async.bulk.commit_group;", "~{memory}"
// CHECK: "cp.async.bulk.wait_group.read 0;"
// CHECK: "cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group
// CHECK: "cp.reduce.async.bulk.tensor.2d.global.shared::cta.max.tile.bulk_group
// CHECK: "cp.reduce.async.bulk.tensor.2d.global.shared::cta.min.tile.bulk_group
// CHECK: "cp.reduce.async.bulk.tensor.2d.global.shared::cta.xor.tile.bulk_group
// CHECK: "cp.async.bulk.wait_group 0;"
module attributes {warp.target = "sm_90a"} {
  func.func @stored(%p: !tile.ptr<f32>, %q: !tile.ptr<i32>, %n: i64) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c32 = arith.constant 32 : i64
    %floats = warp.tensor_map %p sizes(%c32, %n) strides(%c32) {box = array<i32: 32, 8>} : <f32>
    %words = warp.tensor_map %q sizes(%c32, %n) strides(%c32) {box = array<i32: 32, 8>} : <i32>
    %s = warp.alloc {offset = 0 : i64} : !warp.shared<8x32xf32, #s>
    %t = warp.alloc {offset = 1024 : i64} : !warp.shared<8x32xi32, #s>
    %first = warp.is_first_thread
    scf.if %first {
      warp.box_store %s to %floats[%c0, %c0] : !warp.shared<8x32xf32, #s>
      warp.box_store %s to %floats[%c0, %c0] {combine = #tile<atomic fadd>} : !warp.shared<8x32xf32, #s>
      warp.box_commit
      warp.box_wait %s : !warp.shared<8x32xf32, #s>
      warp.box_store %t to %words[%c0, %c0] {combine = #tile<atomic add>} : !warp.shared<8x32xi32, #s>
      warp.box_store %t to %words[%c0, %c0] {combine = #tile<atomic max>} : !warp.shared<8x32xi32, #s>
      warp.box_store %t to %words[%c0, %c0] {combine = #tile<atomic min>} : !warp.shared<8x32xi32, #s>
      warp.box_store %t to %words[%c0, %c0] {combine = #tile<atomic xor>} : !warp.shared<8x32xi32, #s>
      warp.box_commit
      warp.box_wait %s, %t {written} : !warp.shared<8x32xf32, #s>, !warp.shared<8x32xi32, #s>
    }
    return
  }
}

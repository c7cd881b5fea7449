// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt --convert-warp-to-llvm --split-input-file --verify-diagnostics %s | FileCheck %s

#a = #warp.layout<[16, 16], register = [[0, 1], [8, 0], [0, 8]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
!shared = !warp.shared<16x16xf16, #s>

// Operand A by rows: one ldmatrix of four matrices, whose eight halves are the registers in the layout's order.
// CHECK-LABEL: llvm.func @straight
// CHECK: %[[W:.*]] = llvm.call_intrinsic "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.b16.p3"(%{{.*}}) : (!llvm.ptr<3>) -> !llvm.struct<(i32, i32, i32, i32)>
// CHECK-NOT: ldmatrix
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @straight() attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %s = warp.alloc {offset = 0 : i64} : !shared
    %a = warp.load_shared %s : !shared -> tensor<16x16xf16, #a>
    return
  }
}

// -----

#b = #warp.layout<[16, 16], register = [[1, 0], [8, 0], [0, 8]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#b8 = #warp.layout<[16, 8], register = [[1, 0], [8, 0]], lane = [[2, 0], [4, 0], [0, 1], [0, 2], [0, 4]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
#st = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>
#s8 = #warp.layout<[16, 8], offset = [[0, 1], [0, 2], [0, 4], [1, 0], [2, 0], [4, 0], [8, 0]]>

// Operand B, whose lanes hold neighbours along a column, transposed; and not transposed from a tile that is seen the other way round. Two matrices where there are no more.
// CHECK-LABEL: llvm.func @transposed
// CHECK: ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3
// CHECK: ldmatrix.sync.aligned.m8n8.x4.b16.p3
// CHECK: ldmatrix.sync.aligned.m8n8.x2.trans.b16.p3
// CHECK-NOT: ldmatrix
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @transposed() attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %s = warp.alloc {offset = 0 : i64} : !warp.shared<16x16xf16, #s>
    %a = warp.load_shared %s : !warp.shared<16x16xf16, #s> -> tensor<16x16xf16, #b>
    %t = warp.permute_shared %s {order = array<i32: 1, 0>} : !warp.shared<16x16xf16, #s> -> !warp.shared<16x16xf16, #st>
    %b = warp.load_shared %t : !warp.shared<16x16xf16, #st> -> tensor<16x16xf16, #b>
    %s8 = warp.alloc {offset = 512 : i64} : !warp.shared<16x8xf16, #s8>
    %c = warp.load_shared %s8 : !warp.shared<16x8xf16, #s8> -> tensor<16x8xf16, #b8>
    return
  }
}

// -----

#rows = #warp.layout<[16, 32], register = [[0, 1], [0, 2], [0, 4], [8, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]]>
#s = #warp.layout<[16, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0]]>

// Other layouts by vectors of up to 16 bytes. Register 8 lies a constant 512 bytes on: the swizzle of the lanes does not touch that bit.
// CHECK-LABEL: llvm.func @vectors
// CHECK-COUNT-2: llvm.store %{{.*}}, %{{.*}} {alignment = 16 : i64} : vector<8xf16>, !llvm.ptr<3>
// CHECK: %[[FIRST:.*]] = llvm.load %[[BASE:.*]] {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8xf16>
// CHECK: %[[NEXT:.*]] = llvm.getelementptr %[[BASE]][512]
// CHECK: llvm.load %[[NEXT]] {alignment = 16 : i64} : !llvm.ptr<3> -> vector<8xf16>
module attributes {warp.target = "sm_80"} {
  func.func @vectors(%x: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %v = tile.splat %x : f16 -> tensor<16x32xf16, #rows>
    %s = warp.alloc {offset = 0 : i64} : !warp.shared<16x32xf16, #s>
    warp.store_shared %v, %s : tensor<16x32xf16, #rows> -> !warp.shared<16x32xf16, #s>
    warp.barrier
    %a = warp.load_shared %s : !warp.shared<16x32xf16, #s> -> tensor<16x32xf16, #rows>
    return
  }
}

// -----

#few = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = [[0], [0]]>
#s = #warp.layout<[64], offset = [[1], [2], [4], [8], [16], [32]]>

// Four warps that hold the same: one of them writes.
// CHECK-LABEL: llvm.func @repeated
// CHECK: %[[WARPS:.*]] = llvm.mlir.constant(96 : i32)
// CHECK: %[[BITS:.*]] = llvm.and %{{.*}}, %[[WARPS]]
// CHECK: %[[OWNER:.*]] = llvm.icmp "eq" %[[BITS]]
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$3 st.shared.v2.b32 $2, {$0, $1};", "r,r,*m,b,~{memory}" %{{.*}}, %{{.*}}, %{{.*}}, %[[OWNER]]
module attributes {warp.target = "sm_80"} {
  func.func @repeated(%x: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %v = tile.splat %x : f32 -> tensor<64xf32, #few>
    %s = warp.alloc {offset = 0 : i64} : !warp.shared<64xf32, #s>
    warp.store_shared %v, %s : tensor<64xf32, #few> -> !warp.shared<64xf32, #s>
    return
  }
}

// -----

#p = #warp.layout<[32, 32], register = [[0, 1], [0, 2], [0, 4], [8, 0]], lane = [[0, 8], [0, 16], [1, 0], [2, 0], [4, 0]], warp = [[16, 0]]>
#s = #warp.layout<[32, 32], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [1, 0], [2, 8], [4, 16], [8, 0], [16, 0]]>
!pointers = tensor<32x32x!tile.ptr<f16>, #p>
!ring = !warp.shared<stages = 3, 32x32xf16, #s>
!shared = !warp.shared<32x32xf16, #s>

// Copies of 16 bytes, past level 1; where the mask is false none of them are read.
// CHECK-LABEL: llvm.func @copy
// CHECK: llvm.inline_asm {{.*}}"{ .reg .b32 undefined; mul.lo.s32 $0, undefined, 0; }", "=r"
// CHECK: %[[STAGE:.*]] = llvm.mul %{{.*}}, %{{.*}} : i32
// CHECK: %[[TILE:.*]] = llvm.getelementptr %{{.*}}[%[[STAGE]]]
// CHECK-COUNT-2: llvm.call_intrinsic "llvm.nvvm.cp.async.cg.shared.global.16"(%{{.*}}, %{{.*}}) : (!llvm.ptr<3>, !llvm.ptr<1>) -> ()
// CHECK: llvm.call_intrinsic "llvm.nvvm.cp.async.commit.group"
// CHECK: %[[BYTES:.*]] = llvm.select %{{.*}}, %{{.*}}, %{{.*}} : i1, i32
// CHECK: llvm.call_intrinsic "llvm.nvvm.cp.async.cg.shared.global.16.s"(%{{.*}}, %{{.*}}, %[[BYTES]])
// CHECK: llvm.call_intrinsic "llvm.nvvm.cp.async.ca.shared.global.16.s"
// CHECK: llvm.call_intrinsic "llvm.nvvm.cp.async.wait.group"(%{{.*}}) : (i32) -> ()
// CHECK: llvm.fence syncscope("device") acq_rel
// CHECK: nvvm.barrier
module attributes {warp.target = "sm_80"} {
  func.func @copy(%x: !tile.ptr<f16>, %i: i32, %m: i1) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
    %q = tile.splat %x : !tile.ptr<f16> -> !pointers
    %mask = tile.splat %m : i1 -> tensor<32x32xi1, #p>
    %r = warp.alloc {offset = 0 : i64} : !ring
    %s = warp.stage %r[%i] : !ring -> !shared
    warp.async_copy %q to %s {contiguity = 8 : i32} : !pointers -> !shared
    warp.async_commit
    warp.async_copy %q masked %mask to %s {contiguity = 8 : i32} : !pointers, tensor<32x32xi1, #p> -> !shared
    warp.async_copy %q masked %mask to %s {contiguity = 8 : i32, throughL1, undefined} : !pointers, tensor<32x32xi1, #p> -> !shared
    warp.async_wait {pending = 0 : i32}
    warp.fence
    warp.barrier
    return
  }
}

// -----

#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
#r = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[0, 0]]>
!ring = !warp.shared<stages = 2, 16x16xf16, #s>
!shared = !warp.shared<16x16xf16, #s>

// An index that counts bytes is an offset as it is, before the ring's own place; one that counts half a pitch is doubled; one that counts tiles is multiplied.
// CHECK-LABEL: llvm.func @stages
// CHECK-SAME: i32
// CHECK: %[[BYTES:.*]] = llvm.getelementptr %[[BASE:.*]][%[[I:arg[0-9]+]]]
// CHECK: llvm.getelementptr %[[BYTES]][512]
// CHECK: %[[DOUBLE:.*]] = llvm.mul %[[I]], %{{.*}}
// CHECK: llvm.getelementptr %[[BASE]][%[[DOUBLE]]]
// CHECK: %[[WHOLE:.*]] = llvm.mul %[[I]], %{{.*}}
// CHECK: llvm.getelementptr %[[BASE]][%[[WHOLE]]]
module attributes {warp.target = "sm_80"} {
  func.func @stages(%x: f16, %i: i32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
    %v = tile.splat %x : f16 -> tensor<16x16xf16, #r>
    %r = warp.alloc {offset = 512 : i64, pitch = 1024 : i64} : !ring
    %a = warp.stage %r[%i] {step = 1024 : i64} : !ring -> !shared
    warp.store_shared %v, %a : tensor<16x16xf16, #r> -> !shared
    %b = warp.stage %r[%i] {step = 512 : i64} : !ring -> !shared
    warp.store_shared %v, %b : tensor<16x16xf16, #r> -> !shared
    %c = warp.stage %r[%i] : !ring -> !shared
    warp.store_shared %v, %c : tensor<16x16xf16, #r> -> !shared
    return
  }
}

// -----

#p = #warp.layout<[16, 16], register = [[0, 1], [0, 2], [0, 4]], lane = [[0, 8], [1, 0], [2, 0], [4, 0], [8, 0]], warp = [[0, 0]]>
#s = #warp.layout<[16, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0]]>
!pointers = tensor<16x16x!tile.ptr<f16>, #p>
!shared = !warp.shared<16x16xf16, #s>

// A tile that one warp holds is copied by one warp.
// CHECK-LABEL: llvm.func @copied_once
// CHECK: llvm.inline_asm has_side_effects {{.*}}"@$2 cp.async.cg.shared.global $0, $1, 16;", "*m,*m,b,~{memory}"
module attributes {warp.target = "sm_80"} {
  func.func @copied_once(%x: !tile.ptr<f16>) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 2, stages = 1>} {
    %q = tile.splat %x : !tile.ptr<f16> -> !pointers
    %s = warp.alloc {offset = 0 : i64} : !shared
    warp.async_copy %q to %s {contiguity = 8 : i32} : !pointers -> !shared
    return
  }
}

// -----

#s = #warp.layout<[16], offset = [[1], [2], [4], [8]]>

module attributes {warp.target = "sm_80"} {
  func.func @nowhere() attributes {tile.kernel} {
    // expected-error @below {{has no place in shared memory; run 'warp-allocate-shared' before}}
    %s = warp.alloc : !warp.shared<16xf32, #s>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>
#t = #warp.layout<[64, 64], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>
#rows = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>

// Sums of matrix instructions by stmatrix, four matrices each, also turned. What lanes hold in pieces of 16 bytes takes no fewer instructions so. Words of f32 lie in pairs, where a row of a matrix has one in each lane.
// CHECK-LABEL: llvm.func @by_matrices
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.stmatrix.sync.aligned.m8n8.x4.b16.p3"(%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}) : (!llvm.ptr<3>, i32, i32, i32, i32) -> ()
// CHECK-COUNT-4: llvm.call_intrinsic "llvm.nvvm.stmatrix.sync.aligned.m8n8.x4.trans.b16.p3"
// CHECK-NOT: stmatrix
// CHECK-COUNT-4: llvm.store %{{.*}} : vector<8xbf16>
// CHECK-COUNT-16: llvm.store %{{.*}} : vector<2xf32>
module attributes {warp.target = "sm_90a"} {
  func.func @by_matrices(%x: bf16, %w: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %v = tile.splat %x : bf16 -> tensor<64x64xbf16, #acc>
    %r = tile.splat %x : bf16 -> tensor<64x64xbf16, #rows>
    %f = tile.splat %w : f32 -> tensor<64x64xf32, #acc>
    %s = warp.alloc {offset = 0 : i64} : !warp.shared<64x64xbf16, #s>
    %t = warp.alloc {offset = 8192 : i64} : !warp.shared<64x64xbf16, #t>
    %u = warp.alloc {offset = 16384 : i64} : !warp.shared<64x64xf32, #s>
    warp.store_shared %v, %s : tensor<64x64xbf16, #acc> -> !warp.shared<64x64xbf16, #s>
    warp.store_shared %v, %t : tensor<64x64xbf16, #acc> -> !warp.shared<64x64xbf16, #t>
    warp.store_shared %r, %s : tensor<64x64xbf16, #rows> -> !warp.shared<64x64xbf16, #s>
    warp.store_shared %f, %u : tensor<64x64xf32, #acc> -> !warp.shared<64x64xf32, #s>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// Two warpgroups hold the same elements, of which one writes: stmatrix has no predicate for a part of them. Targets without it have none.
// CHECK-LABEL: llvm.func @repeated
// CHECK-NOT: stmatrix
module attributes {warp.target = "sm_90a"} {
  func.func @repeated(%x: bf16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 8, stages = 1>} {
    %v = tile.splat %x : bf16 -> tensor<64x64xbf16, #acc>
    %s = warp.alloc {offset = 0 : i64} : !warp.shared<64x64xbf16, #s>
    warp.store_shared %v, %s : tensor<64x64xbf16, #acc> -> !warp.shared<64x64xbf16, #s>
    return
  }
}

// -----

#acc = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// CHECK-LABEL: llvm.func @none
// CHECK-NOT: stmatrix
module attributes {warp.target = "sm_80"} {
  func.func @none(%x: bf16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 4, stages = 1>} {
    %v = tile.splat %x : bf16 -> tensor<64x64xbf16, #acc>
    %s = warp.alloc {offset = 0 : i64} : !warp.shared<64x64xbf16, #s>
    warp.store_shared %v, %s : tensor<64x64xbf16, #acc> -> !warp.shared<64x64xbf16, #s>
    return
  }
}

// -----

// Elements of 8 bits, neighbours along the other axis than a register's: pairs turned as one element of 16 bits, then parted.
#b = #warp.layout<[32, 16], register = [[1, 0], [2, 0], [16, 0], [0, 1]], lane = [[4, 0], [8, 0], [0, 2], [0, 4], [0, 8]]>
#s = #warp.layout<[32, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
// CHECK-LABEL: llvm.func @turned_bytes
// CHECK: %[[W:.*]] = llvm.call_intrinsic "llvm.nvvm.ldmatrix.sync.aligned.m8n8.x4.trans.b16.p3"
// CHECK-NOT: ldmatrix
// CHECK-COUNT-4: "llvm.nvvm.prmt"
// CHECK-NOT: llvm.load
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @turned_bytes() attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %s = warp.alloc {offset = 0 : i64} : !warp.shared<32x16xi8, #s>
    %b = warp.load_shared %s : !warp.shared<32x16xi8, #s> -> tensor<32x16xi8, #b>
    return
  }
}

// -----

// Of two neighbours in different lanes nothing is parted: single elements.
#b = #warp.layout<[32, 16], register = [[1, 0], [2, 0], [16, 0], [0, 8]], lane = [[4, 0], [8, 0], [0, 1], [0, 2], [0, 4]]>
#s = #warp.layout<[32, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 0], [8, 0], [16, 0]]>
// CHECK-LABEL: llvm.func @bytes_of_lanes
// CHECK-NOT: ldmatrix
// CHECK: llvm.load {{.*}} -> i8
// CHECK: llvm.return
module attributes {warp.target = "sm_80"} {
  func.func @bytes_of_lanes() attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %s = warp.alloc {offset = 0 : i64} : !warp.shared<32x16xi8, #s>
    %b = warp.load_shared %s : !warp.shared<32x16xi8, #s> -> tensor<32x16xi8, #b>
    return
  }
}

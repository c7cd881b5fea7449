// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-release-late | FileCheck %s
#acc = #warp.layout<[128, 16], register = [[0, 1], [0, 2], [0, 4], [0, 8]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#a = #warp.layout<[128, 16], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [1, 0], [2, 0], [4, 8], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #warp.layout<[16, 16], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [0, 1], [0, 2], [8, 4], [0, 8]]>
#s = #warp.layout<[16], offset = [[1], [2], [4], [8]]>
#m = #warp.layout<[2], offset = [[1]]>
!a = !warp.shared<128x16xf16, #a>
!b = !warp.shared<16x16xf16, #b>
!slots = !warp.shared<16xi64, #s>
!ring = !warp.shared<stages = 2, 2xi64, #m>
!single = !warp.shared<stages = 1, 2xi64, #m>
!barrier = !warp.shared<2xi64, #m>
!sums = tensor<128x16xf32, #acc>
!weights = tensor<128x16xf16, #acc>
#schedule = #tile.schedule<warps = 4, stages = 2>

module attributes {warp.target = "sm_100a"} {
  // One wait is for this iteration's scores and for the sums of the iteration before, whose tiles are free then.
  // CHECK-LABEL: func.func @attention
  // CHECK: %[[R:.*]]:2 = scf.for %[[I:.*]] = %c0_i32 to %arg4 step %c1_i32 iter_args(%[[PLACE:.*]] = %c0_i32, %[[BEFORE:.*]] = %{{.*}}) -> (i32, i32)
  // CHECK: warp.mbarrier_wait
  // CHECK-NEXT: warp.tensor_product {{.*}} {column = 0 : i32, {{.*}}, zero}
  // CHECK-NEXT: warp.tensor_wait %{{.*}} {count = 2 : i32, pending = 0 : i32}
  // CHECK-NEXT: %[[LATER:.*]] = arith.cmpi ne, %[[I]], %c0_i32
  // CHECK-NEXT: scf.if %[[LATER]] {
  // CHECK-NEXT: %[[READ:.*]] = warp.stage %arg3[%[[BEFORE]]] {step = 16 : i64}
  // CHECK-NEXT: warp.mbarrier_arrive %[[READ]] {index = 1 : i64, together}
  // CHECK-NEXT: }
  // CHECK-NEXT: warp.tensor_load
  // CHECK: warp.tensor_product {{.*}} {column = 16 : i32, from = 0 : i32
  // CHECK-NEXT: %[[NEXT:.*]] = arith.xori
  // CHECK-NEXT: scf.yield %[[NEXT]], %[[PLACE]]
  // CHECK-NEXT: }
  // CHECK-NEXT: %[[ANY:.*]] = arith.cmpi slt, %c0_i32, %arg4
  // CHECK-NEXT: scf.if %[[ANY]] {
  // CHECK-NEXT: warp.tensor_wait %{{.*}} {pending = 0 : i32}
  // CHECK-NEXT: %[[LAST:.*]] = warp.stage %arg3[%[[R]]#1]
  // CHECK-NEXT: warp.mbarrier_arrive %[[LAST]] {index = 1 : i64, together}
  // CHECK-NEXT: }
  // CHECK-NEXT: warp.tensor_end
  func.func @attention(%q: !a, %k: !b, %s: !slots, %ring: !ring, %n: i32) attributes {tile.schedule = #schedule} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 32 : i32} : !slots
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%place = %c0) -> (i32) : i32 {
      %full = warp.stage %ring[%place] {step = 16 : i64} : !ring -> !barrier
      warp.mbarrier_wait %full, %c0 : !barrier
      warp.tensor_product %k, %area, %s with %q {column = 0 : i32, shape = array<i32: 128, 16, 16>, sums = !sums, zero} : !b, !slots, !a
      warp.tensor_wait %s {pending = 0 : i32} : !slots
      %x = warp.tensor_load %lanes {column = 0 : i32} : !sums
      %p = arith.truncf %x : !sums to !weights
      warp.tensor_store %p, %lanes {column = 0 : i32} : !weights
      warp.tensor_ready
      warp.tensor_product %k, %area, %s {column = 16 : i32, from = 0 : i32, shape = array<i32: 128, 16, 16>, stored = !weights, sums = !sums} : !b, !slots
      warp.tensor_wait %s {pending = 0 : i32} : !slots
      warp.mbarrier_arrive %full {index = 1 : i64, together} : !barrier
      %next = arith.xori %place, %c16 : i32
      scf.yield %next : i32
    }
    warp.tensor_end %area {columns = 32 : i32}
    return
  }

  // The wait for the first of two products leaves the second under way, and is for both of the iteration before; what
  // the second starts from is stored where none of these reads. Bounds may be without a sign.
  // CHECK-LABEL: func.func @gradients
  // CHECK: scf.for unsigned
  // CHECK: warp.tensor_product {{.*}} {column = 0 : i32, {{.*}}, zero}
  // CHECK-NEXT: warp.tensor_store %{{.*}}, %lanes {column = 16 : i32}
  // CHECK-NEXT: warp.tensor_ready
  // CHECK-NEXT: warp.tensor_product {{.*}} {column = 16 : i32
  // CHECK-NEXT: warp.tensor_wait %{{.*}} {count = 3 : i32, pending = 1 : i32}
  // CHECK-NEXT: arith.cmpi ne
  // CHECK: warp.tensor_product {{.*}} {column = 48 : i32, from = 8 : i32
  // CHECK-NEXT: arith.xori
  // CHECK: arith.cmpi ult, %c0_i32
  // CHECK-NEXT: scf.if
  // CHECK-NEXT: warp.tensor_wait %{{.*}} {count = 2 : i32, pending = 0 : i32}
  func.func @gradients(%q: !a, %k: !b, %s: !slots, %ring: !ring, %n: i32, %delta: !sums) attributes {tile.schedule = #schedule} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 64 : i32} : !slots
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %c16 = arith.constant 16 : i32
    %r = scf.for unsigned %i = %c0 to %n step %c1 iter_args(%place = %c0) -> (i32) : i32 {
      %full = warp.stage %ring[%place] {step = 16 : i64} : !ring -> !barrier
      warp.tensor_product %k, %area, %s with %q {column = 0 : i32, shape = array<i32: 128, 16, 16>, sums = !sums, zero} : !b, !slots, !a
      warp.tensor_store %delta, %lanes {column = 16 : i32} : !sums
      warp.tensor_ready
      warp.tensor_product %k, %area, %s with %q {column = 16 : i32, shape = array<i32: 128, 16, 16>, sums = !sums} : !b, !slots, !a
      warp.tensor_wait %s {pending = 1 : i32} : !slots
      %x = warp.tensor_load %lanes {column = 0 : i32} : !sums
      %p = arith.truncf %x : !sums to !weights
      warp.tensor_store %p, %lanes {column = 0 : i32} : !weights
      warp.tensor_ready
      warp.tensor_product %k, %area, %s {column = 32 : i32, from = 0 : i32, shape = array<i32: 128, 16, 16>, stored = !weights, sums = !sums} : !b, !slots
      warp.tensor_wait %s {pending = 1 : i32} : !slots
      %y = warp.tensor_load %lanes {column = 16 : i32} : !sums
      %d = arith.truncf %y : !sums to !weights
      warp.tensor_store %d, %lanes {column = 8 : i32} : !weights
      warp.tensor_ready
      warp.tensor_product %k, %area, %s {column = 48 : i32, from = 8 : i32, shape = array<i32: 128, 16, 16>, stored = !weights, sums = !sums} : !b, !slots
      warp.tensor_wait %s {pending = 1 : i32} : !slots
      warp.tensor_wait %s {pending = 0 : i32} : !slots
      warp.mbarrier_arrive %full {index = 1 : i64} : !barrier
      %next = arith.xori %place, %c16 : i32
      scf.yield %next : i32
    }
    warp.tensor_end %area {columns = 64 : i32}
    return
  }

  // A ring of one stage: the next iteration's tiles come only when these are free.
  // CHECK-LABEL: func.func @one_stage
  // CHECK: warp.tensor_product {{.*}} {column = 16 : i32
  // CHECK-NEXT: warp.tensor_wait
  // CHECK-NEXT: warp.mbarrier_arrive
  func.func @one_stage(%q: !a, %k: !b, %s: !slots, %ring: !single, %n: i32) attributes {tile.schedule = #schedule} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 32 : i32} : !slots
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %full = warp.stage %ring[%c0] {step = 16 : i64} : !single -> !barrier
      warp.tensor_product %k, %area, %s with %q {column = 0 : i32, shape = array<i32: 128, 16, 16>, sums = !sums, zero} : !b, !slots, !a
      warp.tensor_wait %s {pending = 0 : i32} : !slots
      %x = warp.tensor_load %lanes {column = 0 : i32} : !sums
      warp.tensor_product %k, %area, %s with %q {column = 16 : i32, shape = array<i32: 128, 16, 16>, sums = !sums} : !b, !slots, !a
      warp.tensor_wait %s {pending = 0 : i32} : !slots
      warp.mbarrier_arrive %full {index = 1 : i64, together} : !barrier
    }
    warp.tensor_end %area {columns = 32 : i32}
    return
  }

  // Threads that load before the first wait would load what the last product still writes; so would a first product write
  // over it, and a store over what it reads; behind a barrier others may do so.
  // CHECK-LABEL: func.func @left_alone
  // CHECK-COUNT-4: warp.mbarrier_arrive %{{.*}} {index = 1 : i64, together}
  // CHECK-NOT: warp.mbarrier_arrive
  // CHECK-NOT: scf.if
  func.func @left_alone(%q: !a, %k: !b, %s: !slots, %ring: !ring, %n: i32, %p: !weights, %delta: !sums) attributes {tile.schedule = #schedule} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 64 : i32} : !slots
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    scf.for %i = %c0 to %n step %c1 : i32 {
      %full = warp.stage %ring[%i] {step = 16 : i64} : !ring -> !barrier
      %o = warp.tensor_load %lanes {column = 16 : i32} : !sums
      warp.tensor_product %k, %area, %s with %q {column = 0 : i32, shape = array<i32: 128, 16, 16>, sums = !sums, zero} : !b, !slots, !a
      warp.tensor_wait %s {pending = 0 : i32} : !slots
      warp.tensor_product %k, %area, %s with %q {column = 16 : i32, shape = array<i32: 128, 16, 16>, sums = !sums} : !b, !slots, !a
      warp.tensor_wait %s {pending = 0 : i32} : !slots
      warp.mbarrier_arrive %full {index = 1 : i64, together} : !barrier
    }
    scf.for %i = %c0 to %n step %c1 : i32 {
      %full = warp.stage %ring[%i] {step = 16 : i64} : !ring -> !barrier
      warp.tensor_product %k, %area, %s with %q {column = 8 : i32, shape = array<i32: 128, 16, 16>, sums = !sums, zero} : !b, !slots, !a
      warp.tensor_wait %s {pending = 0 : i32} : !slots
      warp.tensor_product %k, %area, %s with %q {column = 16 : i32, shape = array<i32: 128, 16, 16>, sums = !sums} : !b, !slots, !a
      warp.tensor_wait %s {pending = 0 : i32} : !slots
      warp.mbarrier_arrive %full {index = 1 : i64, together} : !barrier
    }
    scf.for %i = %c0 to %n step %c1 : i32 {
      %full = warp.stage %ring[%i] {step = 16 : i64} : !ring -> !barrier
      warp.tensor_store %delta, %lanes {column = 32 : i32} : !sums
      warp.tensor_ready
      warp.tensor_product %k, %area, %s with %q {column = 32 : i32, shape = array<i32: 128, 16, 16>, sums = !sums} : !b, !slots, !a
      warp.tensor_wait %s {pending = 0 : i32} : !slots
      warp.tensor_store %p, %lanes {column = 40 : i32} : !weights
      warp.tensor_ready
      warp.tensor_product %k, %area, %s {column = 16 : i32, from = 40 : i32, shape = array<i32: 128, 16, 16>, stored = !weights, sums = !sums} : !b, !slots
      warp.tensor_wait %s {pending = 0 : i32} : !slots
      warp.mbarrier_arrive %full {index = 1 : i64, together} : !barrier
    }
    scf.for %i = %c0 to %n step %c1 : i32 {
      %full = warp.stage %ring[%i] {step = 16 : i64} : !ring -> !barrier
      warp.barrier
      warp.tensor_product %k, %area, %s with %q {column = 0 : i32, shape = array<i32: 128, 16, 16>, sums = !sums, zero} : !b, !slots, !a
      warp.tensor_wait %s {pending = 0 : i32} : !slots
      warp.tensor_product %k, %area, %s with %q {column = 16 : i32, shape = array<i32: 128, 16, 16>, sums = !sums} : !b, !slots, !a
      warp.tensor_wait %s {pending = 0 : i32} : !slots
      warp.mbarrier_arrive %full {index = 1 : i64, together} : !barrier
    }
    warp.tensor_end %area {columns = 64 : i32}
    return
  }
}

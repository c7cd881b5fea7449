// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-split-roles --verify-diagnostics | FileCheck %s

#b = #warp.layout<[2], offset = [[1]]>

// The producer has the loops and branches around its copies, what they carry for them, and what that is computed from; the
// others keep the rest.
// CHECK-LABEL: func.func @two
// CHECK-SAME: (%[[N:.*]]: i32, %[[Q:.*]]: !tile.ptr<f32>)
// CHECK: warp.producer warps = 4 registers = 24 others = 240 {
// CHECK: %[[RING:.*]] = warp.alloc {offset = 0 : i64} : <stages = 2, 2xi64
// CHECK-NEXT: warp.barrier {withProducer}
// CHECK-NEXT: %[[FIRST:.*]] = warp.is_first_thread
// CHECK: scf.if
// CHECK: scf.for %{{.*}} = %{{.*}} to %[[N]] step %{{.*}} iter_args(%[[FREED:.*]] = %{{.*}}) -> (i32) : i32 {
// CHECK-NEXT: %[[NEXT:.*]] = arith.subi
// CHECK-NEXT: %[[TO:.*]] = warp.stage %[[RING]][%[[FREED]]]
// CHECK-NEXT: scf.if %[[FIRST]] {
// CHECK-NEXT: warp.mbarrier_expect %[[TO]] {bytes = 16 : i64}
// CHECK-NEXT: {{^ *}}}
// CHECK-NEXT: scf.yield %[[NEXT]] : i32
// CHECK-NOT: math.exp2
// CHECK: warp.alloc {offset = 0 : i64}
// CHECK-NEXT: warp.mbarrier_init
// CHECK-NEXT: warp.barrier {withProducer}
// CHECK: scf.if
// CHECK: scf.for %{{.*}} iter_args(%{{.*}} = %{{.*}}) -> (f32)
// CHECK-NOT: warp.mbarrier_expect
// CHECK: math.exp2
// CHECK: tile.store
module attributes {warp.target = "sm_90a"} {
  func.func @two(%n: i32, %q: !tile.ptr<f32>) attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %x = arith.constant 1.0 : f32
    %ring = warp.alloc {offset = 0 : i64} : !warp.shared<stages = 2, 2xi64, #b>
    warp.mbarrier_init %ring {arrivals = array<i64: 1, 8>} : !warp.shared<stages = 2, 2xi64, #b>
    warp.barrier {withProducer}
    %first = warp.is_first_thread
    %any = arith.cmpi sgt, %n, %c0 : i32
    scf.if %any {
      %r:2 = scf.for %i = %c0 to %n step %c1 iter_args(%y = %x, %freed = %c1) -> (f32, i32) : i32 {
        %next = arith.subi %c1, %freed : i32
        %to = warp.stage %ring[%freed] : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
        warp.produce {
          scf.if %first {
            warp.mbarrier_expect %to {bytes = 16 : i64} : !warp.shared<2xi64, #b>
          }
        }
        %z = math.exp2 %y : f32
        scf.yield %z, %next : f32, i32
      }
      tile.store %q, %r#0 : !tile.ptr<f32>
    }
    return
  }
}

// -----

#b = #warp.layout<[2], offset = [[1]]>

// A kernel without is left alone.
// CHECK-LABEL: func.func @none
// CHECK-NOT: warp.producer
module attributes {warp.target = "sm_90a"} {
  func.func @none(%full: !warp.shared<2xi64, #b>) {
    warp.mbarrier_expect %full {bytes = 16 : i64} : !warp.shared<2xi64, #b>
    return
  }
}

// -----

#b = #warp.layout<[2], offset = [[1]]>
#l = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]]>

module attributes {warp.target = "sm_90a"} {
  // expected-error @+1 {{expected copies that one warp can make, but they need a value that all threads compute together}}
  func.func @tensors(%x: tensor<64xi32, #l>, %ring: !warp.shared<stages = 2, 2xi64, #b>) {
    %most = tile.reduce %x {axis = 0 : i32} : (tensor<64xi32, #l>) -> i32 {
    ^bb0(%a: i32, %b: i32):
      %c = arith.maxsi %a, %b : i32
      tile.yield %c : i32
    }
    %to = warp.stage %ring[%most] : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
    warp.produce {
      warp.mbarrier_expect %to {bytes = 16 : i64} : !warp.shared<2xi64, #b>
    }
    return
  }
}

// -----

#b = #warp.layout<[2], offset = [[1]]>

module attributes {warp.target = "sm_90a"} {
  // expected-error @+1 {{expected copies that one warp can make, but they need a number that the kernel itself may write}}
  func.func @written(%p: !tile.ptr<i32>, %ring: !warp.shared<stages = 2, 2xi64, #b>) {
    %c0 = arith.constant 0 : i32
    tile.store %p, %c0 : !tile.ptr<i32>
    %at = tile.load %p : !tile.ptr<i32>
    %to = warp.stage %ring[%at] : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
    warp.produce {
      warp.mbarrier_expect %to {bytes = 16 : i64} : !warp.shared<2xi64, #b>
    }
    return
  }
}

// -----

#b = #warp.layout<[2], offset = [[1]]>

module attributes {warp.target = "sm_90a"} {
  // expected-error @+1 {{expected copies that one warp can make, but they stand in a loop that is left before its end}}
  func.func @left(%n: i32, %to: !warp.shared<2xi64, #b>) {
    %c1 = arith.constant 1 : i32
    %r = scf.while (%i = %c1) : (i32) -> i32 {
      %more = arith.cmpi slt, %i, %n : i32
      scf.condition(%more) %i : i32
    } do {
    ^bb0(%i: i32):
      warp.produce {
        warp.mbarrier_expect %to {bytes = 16 : i64} : !warp.shared<2xi64, #b>
      }
      %next = arith.addi %i, %c1 : i32
      scf.yield %next : i32
    }
    return
  }
}

// -----

#b = #warp.layout<[2], offset = [[1]]>

module attributes {warp.target = "sm_90a"} {
  // expected-error @+1 {{expected copies that one warp can make, but they need what only one of two programs may do}}
  func.func @once(%p: !tile.ptr<i32>, %ring: !warp.shared<stages = 2, 2xi64, #b>) {
    %c1 = arith.constant 1 : i32
    %at = tile.atomic_rmw add %p, %c1 : (!tile.ptr<i32>, i32) -> i32
    %to = warp.stage %ring[%at] : !warp.shared<stages = 2, 2xi64, #b> -> !warp.shared<2xi64, #b>
    warp.produce {
      warp.mbarrier_expect %to {bytes = 16 : i64} : !warp.shared<2xi64, #b>
    }
    return
  }
}

// -----

#b = #warp.layout<[2], offset = [[1]]>

// The default target is sm_80.
func.func @no_roles(%to: !warp.shared<2xi64, #b>) {
  // expected-error @+1 {{expected a target whose warpgroups trade registers, but got sm_80}}
  warp.produce {
    warp.mbarrier_expect %to {bytes = 16 : i64} : !warp.shared<2xi64, #b>
  }
  return
}

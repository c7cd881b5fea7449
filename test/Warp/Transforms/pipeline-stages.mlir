// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: sed s/TARGET/sm_80/ %s | weft-opt --warp-pipeline | FileCheck %s --check-prefixes=CHECK,LARGE
// RUN: sed s/TARGET/sm_86/ %s | weft-opt --warp-pipeline | FileCheck %s --check-prefixes=CHECK,SMALL

// Four tiles of 32 KiB fit a block of 163 KiB, three one of 99 KiB. Beside a tile of 32 KiB that lives across the loop
// there are four and two, beside two that lie in the loop at once three and one; and tiles of 64 KiB are two, or one,
// which is copied as it is needed.
//
// Of tiles of 16 KiB a multiprocessor of 164 KiB holds two blocks of four stages, and six are under way; one of 100 KiB
// holds one such block, but two of three stages, of which four are. What the compiler writes keeps its schedule.
#l = #warp.layout<[8192], register = [[1], [2], [128], [256], [512], [1024], [2048], [4096]], lane = [[4], [8], [16], [32], [64]]>
#s = #warp.layout<[8192], offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256], [512], [1024], [2048], [4096]]>
#l2 = #warp.layout<[16384], register = [[1], [2], [128], [256], [512], [1024], [2048], [4096], [8192]], lane = [[4], [8], [16], [32], [64]]>
#s2 = #warp.layout<[16384], offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256], [512], [1024], [2048], [4096], [8192]]>
!x = tensor<8192xf32, #l>
!p = tensor<8192x!tile.ptr<f32>, #l>
!s = !warp.shared<8192xf32, #s>
#l4 = #warp.layout<[4096], register = [[1], [2], [512], [1024], [2048]], lane = [[4], [8], [16], [32], [64]], warp = [[128], [256]]>
#s4 = #warp.layout<[4096], offset = [[1], [2], [4], [8], [16], [32], [64], [128], [256], [512], [1024], [2048]]>
!x4 = tensor<4096xf32, #l4>
!p4 = tensor<4096x!tile.ptr<f32>, #l4>
!s4 = !warp.shared<4096xf32, #s4>
!x2 = tensor<16384xf32, #l2>
!p2 = tensor<16384x!tile.ptr<f32>, #l2>
!s2 = !warp.shared<16384xf32, #s2>
module attributes {warp.target = "TARGET"} {
  // CHECK-LABEL: func.func @alone
  // LARGE-SAME: stages = 4
  // SMALL-SAME: stages = 3
  // LARGE: warp.alloc : <stages = 4, 8192xf32
  // SMALL: warp.alloc : <stages = 3, 8192xf32
  func.func @alone(%p: !p, %n: i32, %zero: !x) -> !x attributes {tile.schedule = #tile.schedule<warps = 1, stages = 4>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%total = %zero) -> (!x) : i32 {
      %t = warp.alloc : !s
      warp.async_copy %p to %t {contiguity = 4 : i32} : !p -> !s
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %x = warp.load_shared %t : !s -> !x
      warp.dealloc %t : !s
      %next = arith.addf %total, %x : !x
      scf.yield %next : !x
    }
    return %sum : !x
  }
  // CHECK-LABEL: func.func @beside
  // LARGE: warp.alloc : <stages = 4, 8192xf32
  // SMALL: warp.alloc : <stages = 2, 8192xf32
  func.func @beside(%p: !p, %n: i32, %zero: !x) -> !x attributes {tile.schedule = #tile.schedule<warps = 1, stages = 4>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %held = warp.alloc : !s
    warp.store_shared %zero, %held : !x -> !s
    %gone = warp.alloc : !s
    warp.dealloc %gone : !s
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%total = %zero) -> (!x) : i32 {
      %t = warp.alloc : !s
      warp.async_copy %p to %t {contiguity = 4 : i32} : !p -> !s
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %x = warp.load_shared %t : !s -> !x
      warp.dealloc %t : !s
      %next = arith.addf %total, %x : !x
      scf.yield %next : !x
    }
    %y = warp.load_shared %held : !s -> !x
    warp.dealloc %held : !s
    %both = arith.addf %sum, %y : !x
    return %both : !x
  }
  // CHECK-LABEL: func.func @inside
  // LARGE: warp.alloc : <stages = 3, 8192xf32
  // SMALL-NOT: <stages =
  // SMALL: scf.for
  func.func @inside(%p: !p, %n: i32, %zero: !x) -> !x attributes {tile.schedule = #tile.schedule<warps = 1, stages = 4>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%total = %zero) -> (!x) : i32 {
      %t = warp.alloc : !s
      warp.async_copy %p to %t {contiguity = 4 : i32} : !p -> !s
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %x = warp.load_shared %t : !s -> !x
      warp.dealloc %t : !s
      %first = warp.alloc : !s
      warp.store_shared %x, %first : !x -> !s
      %second = warp.alloc : !s
      warp.store_shared %total, %second : !x -> !s
      %y = warp.load_shared %first : !s -> !x
      warp.dealloc %first : !s
      %z = warp.load_shared %second : !s -> !x
      warp.dealloc %second : !s
      %next = arith.addf %y, %z : !x
      scf.yield %next : !x
    }
    return %sum : !x
  }
  // CHECK-LABEL: func.func @one
  // LARGE: warp.alloc : <stages = 2, 16384xf32
  // SMALL-NOT: <stages =
  // SMALL: scf.for
  // SMALL: warp.alloc : <16384xf32
  // SMALL: warp.async_wait {pending = 0 : i32}
  func.func @one(%p: !p2, %n: i32, %zero: !x2) -> !x2 attributes {tile.schedule = #tile.schedule<warps = 1, stages = 2>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%total = %zero) -> (!x2) : i32 {
      %t = warp.alloc : !s2
      warp.async_copy %p to %t {contiguity = 4 : i32} : !p2 -> !s2
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %x = warp.load_shared %t : !s2 -> !x2
      warp.dealloc %t : !s2
      %next = arith.addf %total, %x : !x2
      scf.yield %next : !x2
    }
    return %sum : !x2
  }
  // CHECK-LABEL: func.func @blocks
  // LARGE-SAME: stages = 4
  // SMALL-SAME: stages = 3
  // LARGE: warp.alloc : <stages = 4, 4096xf32
  // SMALL: warp.alloc : <stages = 3, 4096xf32
  func.func @blocks(%p: !p4, %n: i32, %zero: !x4) -> !x4 attributes {tile.schedule = #tile.schedule<warps = 4, stages = 4>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%total = %zero) -> (!x4) : i32 {
      %t = warp.alloc : !s4
      warp.async_copy %p to %t {contiguity = 4 : i32} : !p4 -> !s4
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %x = warp.load_shared %t : !s4 -> !x4
      warp.dealloc %t : !s4
      %next = arith.addf %total, %x : !x4
      scf.yield %next : !x4
    }
    return %sum : !x4
  }
  // CHECK-LABEL: func.func @written
  // CHECK: warp.alloc : <stages = 4, 4096xf32
  func.func @written(%p: !p4, %n: i32, %zero: !x4) -> !x4 attributes {tile.orders_accesses, tile.schedule = #tile.schedule<warps = 4, stages = 4>} {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %sum = scf.for %i = %c0 to %n step %c1 iter_args(%total = %zero) -> (!x4) : i32 {
      %t = warp.alloc : !s4
      warp.async_copy %p to %t {contiguity = 4 : i32} : !p4 -> !s4
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %x = warp.load_shared %t : !s4 -> !x4
      warp.dealloc %t : !s4
      %next = arith.addf %total, %x : !x4
      scf.yield %next : !x4
    }
    return %sum : !x4
  }
}

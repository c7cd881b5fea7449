// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-tensor-memory | FileCheck %s
#acc = #warp.layout<[128, 64], register = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32]], lane = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0]], warp = [[32, 0], [64, 0]]>
#a = #warp.layout<[128, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0], [64, 0]]>
#b = #warp.layout<[64, 64], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [32, 0], [8, 1], [16, 2], [32, 4], [0, 8], [0, 16], [0, 32]]>
#c = #warp.layout<[64, 64], offset = [[1, 0], [2, 0], [4, 0], [8, 0], [16, 0], [4, 1], [8, 2], [16, 4], [0, 8], [0, 16], [0, 32], [32, 0]]>
#s = #warp.layout<[16], offset = [[1], [2], [4], [8]]>
!a = !warp.shared<128x64xf16, #a>
!b = !warp.shared<64x64xf16, #b>
!c = !warp.shared<64x64xf32, #c>
!slots = !warp.shared<16xi64, #s>
!sums = tensor<128x64xf32, #acc>
!weights = tensor<128x64xf16, #acc>

module attributes {warp.target = "sm_100a"} {
  // What a loop only adds to stays where it is: threads store before it, and load the result behind it. In it they meet, so
  // that none is left behind.
  // CHECK-LABEL: func.func @carried
  // CHECK: warp.tensor_begin %{{.*}} {barriers = 8 : i32, columns = 64 : i32}
  // CHECK: warp.tensor_store %{{.*}}, %lanes {column = 0 : i32}
  // CHECK-NEXT: warp.tensor_ready
  // CHECK-NEXT: scf.for %{{.*}} = %{{.*}} to %{{.*}} step %{{.*}}  : i32 {
  // CHECK-NEXT: warp.tensor_ready
  // CHECK-NEXT: warp.tensor_product %{{.*}}, %area, %{{.*}} with %{{.*}} {column = 0 : i32
  // CHECK-NEXT: warp.tensor_wait %{{.*}} {pending = 1 : i32}
  // CHECK-NEXT: }
  // CHECK-NEXT: warp.tensor_wait %{{.*}} {pending = 0 : i32}
  // CHECK-NEXT: %[[X:.*]] = warp.tensor_load %lanes {column = 0 : i32}
  // CHECK-NEXT: arith.negf %[[X]]
  // CHECK-NEXT: warp.tensor_end %area {columns = 64 : i32}
  func.func @carried(%a: !a, %b: !b, %s: !slots, %lower: i32, %upper: i32, %step: i32) -> !sums attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 512 : i32} : !slots
    %zero = arith.constant dense<0.0> : !sums
    %sums = scf.for %i = %lower to %upper step %step iter_args(%acc = %zero) -> (!sums) : i32 {
      %d = warp.wgmma %a, %b, %acc {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
      warp.wgmma_wait {pending = 1 : i32}
      scf.yield %d : !sums
    }
    %done = warp.wgmma_wait %sums {pending = 0 : i32} : !sums
    %x = arith.negf %done : !sums
    warp.tensor_end %area {columns = 512 : i32}
    return %x : !sums
  }

  // Scores are loaded and narrowed 32 columns at a time, weights stored to columns that scores no longer need; sums are scaled
  // where they are. The threads meet before each product, since others load and store in each iteration.
  // CHECK-LABEL: func.func @attention
  // CHECK: warp.tensor_begin %{{.*}} {barriers = 8 : i32, columns = 128 : i32}
  // CHECK: scf.for
  // CHECK: warp.tensor_ready
  // CHECK-NEXT: warp.tensor_product %{{.*}} with %{{.*}} {column = 64 : i32, {{.*}}, zero}
  // CHECK-NEXT: warp.tensor_wait %{{.*}} {pending = 0 : i32}
  // CHECK-NEXT: %[[SCORES:.*]] = warp.tensor_load %lanes {column = 64 : i32} : tensor<128x32xf32,
  // CHECK-NEXT: %[[PIECE:.*]] = arith.truncf %[[SCORES]]
  // CHECK-NEXT: warp.tensor_load %lanes {column = 96 : i32} : tensor<128x32xf32,
  // CHECK-NEXT: arith.truncf
  // CHECK-NEXT: %[[WEIGHTS:.*]] = warp.join_columns %[[PIECE]], %{{.*}} -> tensor<128x64xf16,
  // CHECK: warp.tensor_scale %{{.*}}, %lanes {column = 0 : i32}
  // CHECK: warp.tensor_store %[[WEIGHTS]], %lanes {column = 64 : i32}
  // CHECK-NEXT: warp.tensor_ready
  // CHECK-NEXT: warp.tensor_product %{{.*}}, %area, %{{.*}} {column = 0 : i32, from = 64 : i32, {{.*}}stored = tensor<128x64xf16
  // CHECK-NEXT: warp.tensor_wait %{{.*}} {pending = 0 : i32}
  // CHECK: %[[OUT:.*]] = warp.tensor_load %lanes {column = 0 : i32}
  // CHECK-NEXT: arith.negf %[[OUT]]
  func.func @attention(%q: !a, %k: !b, %v: !b, %s: !slots, %scale: !sums, %n: i32, %one: i32) -> !sums attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 512 : i32} : !slots
    %zero = arith.constant dense<0.0> : !sums
    %out = scf.for %i = %one to %n step %one iter_args(%acc = %zero) -> (!sums) : i32 {
      %d = warp.wgmma %q, %k, %zero {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
      %scores = warp.wgmma_wait %d {pending = 0 : i32} : !sums
      %p = arith.truncf %scores : !sums to !weights
      %o = arith.mulf %acc, %scale : !sums
      %e = warp.wgmma %p, %v, %o {shape = array<i32: 128, 64, 16>} : !weights * !b -> !sums
      %next = warp.wgmma_wait %e {pending = 0 : i32} : !sums
      scf.yield %next : !sums
    }
    %x = arith.negf %out : !sums
    warp.tensor_end %area {columns = 512 : i32}
    return %x : !sums
  }

  // A warp may leave its rows as they are.
  // CHECK-LABEL: func.func @branch
  // CHECK: scf.if
  // CHECK: warp.tensor_scale
  // CHECK: } else {
  // CHECK-NOT: warp.tensor_
  // CHECK: }
  // CHECK-NEXT: warp.tensor_ready
  // CHECK-NEXT: warp.tensor_product
  func.func @branch(%a: !a, %b: !b, %s: !slots, %scale: !sums, %grown: i1) -> !sums attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 512 : i32} : !slots
    %zero = arith.constant dense<0.0> : !sums
    %d = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %sums = warp.wgmma_wait %d {pending = 0 : i32} : !sums
    %scaled = scf.if %grown -> (!sums) {
      %x = arith.mulf %sums, %scale : !sums
      scf.yield %x : !sums
    } else {
      scf.yield %sums : !sums
    }
    %e = warp.wgmma %a, %b, %scaled {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %done = warp.wgmma_wait %e {pending = 0 : i32} : !sums
    warp.tensor_end %area {columns = 512 : i32}
    return %done : !sums
  }

  // Sums that are read after another product went on from them are loaded before it; of two products that start from the
  // same sums, one has a tile of its own.
  // CHECK-LABEL: func.func @read_later
  // CHECK: warp.tensor_wait %{{.*}} {pending = 0 : i32}
  // CHECK-NEXT: %[[X:.*]] = warp.tensor_load %lanes {column = 0 : i32}
  // CHECK-NEXT: warp.tensor_ready
  // CHECK-NEXT: warp.tensor_product %{{.*}} {column = 0 : i32
  // CHECK-NEXT: warp.tensor_wait
  // CHECK-NEXT: %[[Y:.*]] = warp.tensor_load %lanes {column = 0 : i32}
  // CHECK-NEXT: arith.addf %[[X]], %[[Y]]
  func.func @read_later(%a: !a, %b: !b, %s: !slots) -> !sums attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 512 : i32} : !slots
    %zero = arith.constant dense<0.0> : !sums
    %d = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %x = warp.wgmma_wait %d {pending = 0 : i32} : !sums
    %e = warp.wgmma %a, %b, %x {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %y = warp.wgmma_wait %e {pending = 0 : i32} : !sums
    %z = arith.addf %x, %y : !sums
    warp.tensor_end %area {columns = 512 : i32}
    return %z : !sums
  }

  // Sums are multiplied in place, and what is narrowed comes in pieces where it is narrowed, unless a product has written
  // their tile since.
  // CHECK-LABEL: func.func @written_between
  // CHECK: %[[X:.*]] = warp.tensor_load %lanes {column = 0 : i32}
  // CHECK: warp.tensor_product %{{.*}} {column = 0 : i32
  // CHECK: %[[Y:.*]] = arith.mulf %[[X]]
  // CHECK: warp.tensor_store %[[Y]], %lanes {column = 0 : i32}
  // CHECK: warp.tensor_product %{{.*}} {column = 0 : i32
  // CHECK: %[[Z:.*]] = warp.tensor_load %lanes {column = 0 : i32} : tensor<128x64xf32
  // CHECK: warp.tensor_product %{{.*}} {column = 0 : i32
  // CHECK-NOT: warp.tensor_load
  // CHECK: arith.truncf %[[Z]]
  func.func @written_between(%a: !a, %b: !b, %s: !slots, %scale: !sums) -> (!sums, !weights) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 512 : i32} : !slots
    %zero = arith.constant dense<0.0> : !sums
    %d = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %x = warp.wgmma_wait %d {pending = 0 : i32} : !sums
    %e = warp.wgmma %a, %b, %x {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %y = warp.wgmma_wait %e {pending = 0 : i32} : !sums
    %scaled = arith.mulf %x, %scale : !sums
    %f = warp.wgmma %a, %b, %scaled {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %z = warp.wgmma_wait %f {pending = 0 : i32} : !sums
    %g = warp.wgmma %a, %b, %z {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %w = warp.wgmma_wait %g {pending = 0 : i32} : !sums
    %narrow = arith.truncf %z : !sums to !weights
    warp.tensor_end %area {columns = 512 : i32}
    return %w, %narrow : !sums, !weights
  }

  // Sums that change places from iteration to iteration go through registers.
  // CHECK-LABEL: func.func @swapped
  // CHECK: scf.for {{.*}} iter_args(%{{.*}} = %{{.*}}, %{{.*}} = %{{.*}}) -> (tensor<128x64xf32
  // CHECK: warp.tensor_store
  // CHECK: warp.tensor_product
  // CHECK: warp.tensor_load
  // CHECK: scf.yield
  func.func @swapped(%a: !a, %b: !b, %s: !slots, %n: i32, %one: i32) -> (!sums, !sums) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 512 : i32} : !slots
    %zero = arith.constant dense<0.0> : !sums
    %out:2 = scf.for %i = %one to %n step %one iter_args(%x = %zero, %y = %zero) -> (!sums, !sums) : i32 {
      %d = warp.wgmma %a, %b, %x {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
      %next = warp.wgmma_wait %d {pending = 0 : i32} : !sums
      scf.yield %y, %next : !sums, !sums
    }
    warp.tensor_end %area {columns = 512 : i32}
    return %out#0, %out#1 : !sums, !sums
  }

  // More products than may be under way: the fifth waits for the first, and who waits for the last knows each. Warps that
  // have not met since the first meet.
  // CHECK-LABEL: func.func @many
  // CHECK-COUNT-4: warp.tensor_product
  // CHECK-NEXT: warp.tensor_wait %{{.*}} {pending = 3 : i32}
  // CHECK-NEXT: warp.tensor_ready
  // CHECK-NEXT: warp.tensor_product
  // CHECK-NEXT: warp.tensor_wait %{{.*}} {count = 4 : i32, pending = 0 : i32}
  func.func @many(%a: !a, %b: !b, %s: !slots) -> !sums attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 512 : i32} : !slots
    %zero = arith.constant dense<0.0> : !sums
    %c = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %e = warp.wgmma %a, %b, %d {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %f = warp.wgmma %a, %b, %e {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %g = warp.wgmma %a, %b, %f {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %done = warp.wgmma_wait %g {pending = 0 : i32} : !sums
    warp.tensor_end %area {columns = 512 : i32}
    return %done : !sums
  }

  // An operand that a loop between two products stores another in the place of is stored again.
  // CHECK-LABEL: func.func @again
  // CHECK: warp.tensor_store %[[P:.*]], %lanes {column = [[AT:[0-9]+]] : i32} : tensor<128x64xf16,
  // CHECK: scf.for
  // CHECK: warp.tensor_store %{{.*}}, %lanes {column = [[AT]] : i32} : tensor<128x64xf16,
  // CHECK: }
  // CHECK: warp.tensor_store %[[P]], %lanes {column = [[AT]] : i32} : tensor<128x64xf16,
  // CHECK: warp.tensor_product
  func.func @again(%p: !weights, %r: !weights, %b: !b, %s: !slots, %n: i32, %one: i32) -> (!sums, !sums) attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 512 : i32} : !slots
    %zero = arith.constant dense<0.0> : !sums
    %c = warp.wgmma %p, %b, %zero {shape = array<i32: 128, 64, 16>} : !weights * !b -> !sums
    %x = warp.wgmma_wait %c {pending = 0 : i32} : !sums
    %y = scf.for %i = %one to %n step %one iter_args(%acc = %x) -> (!sums) : i32 {
      %d = warp.wgmma %r, %b, %acc {shape = array<i32: 128, 64, 16>} : !weights * !b -> !sums
      %next = warp.wgmma_wait %d {pending = 0 : i32} : !sums
      scf.yield %next : !sums
    }
    %e = warp.wgmma %p, %b, %zero {shape = array<i32: 128, 64, 16>} : !weights * !b -> !sums
    %z = warp.wgmma_wait %e {pending = 0 : i32} : !sums
    %u = arith.negf %y : !sums
    %v = arith.negf %z : !sums
    warp.tensor_end %area {columns = 512 : i32}
    return %u, %v : !sums, !sums
  }

  // So is one that another product of its block has stored an operand in the place of.
  // CHECK-LABEL: func.func @in_turns
  // CHECK: warp.tensor_store %[[P:.*]], %lanes {column = [[AT:[0-9]+]] : i32} : tensor<128x64xf16,
  // CHECK: scf.for
  // CHECK: warp.tensor_store %[[R:.*]], %lanes {column = [[AT]] : i32} : tensor<128x64xf16,
  // CHECK: warp.tensor_product
  // CHECK: warp.tensor_store %[[P]], %lanes {column = [[AT]] : i32} : tensor<128x64xf16,
  // CHECK: warp.tensor_product
  // CHECK: warp.tensor_store %[[R]], %lanes {column = [[AT]] : i32} : tensor<128x64xf16,
  // CHECK: warp.tensor_product
  // CHECK-NOT: warp.tensor_store
  // CHECK: warp.tensor_product
  // CHECK: }
  func.func @in_turns(%p: !weights, %r: !weights, %b: !b, %s: !slots, %n: i32, %one: i32) -> !sums attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 512 : i32} : !slots
    %zero = arith.constant dense<0.0> : !sums
    %c = warp.wgmma %p, %b, %zero {shape = array<i32: 128, 64, 16>} : !weights * !b -> !sums
    %x = warp.wgmma_wait %c {pending = 0 : i32} : !sums
    %y = scf.for %i = %one to %n step %one iter_args(%acc = %x) -> (!sums) : i32 {
      %d = warp.wgmma %r, %b, %acc {shape = array<i32: 128, 64, 16>} : !weights * !b -> !sums
      %e = warp.wgmma %p, %b, %d {shape = array<i32: 128, 64, 16>} : !weights * !b -> !sums
      %f = warp.wgmma %r, %b, %e {shape = array<i32: 128, 64, 16>} : !weights * !b -> !sums
      %g = warp.wgmma %r, %b, %f {shape = array<i32: 128, 64, 16>} : !weights * !b -> !sums
      %next = warp.wgmma_wait %g {pending = 0 : i32} : !sums
      scf.yield %next : !sums
    }
    %u = arith.negf %y : !sums
    warp.tensor_end %area {columns = 512 : i32}
    return %u : !sums
  }

  // Sums that are an operand as they are go by way of registers.
  // CHECK-LABEL: func.func @as_operand
  // CHECK: warp.tensor_wait
  // CHECK-NEXT: %[[X:.*]] = warp.tensor_load %lanes {column = [[SUMS:[0-9]+]] : i32}
  // CHECK-NEXT: warp.tensor_store %[[X]], %lanes {column = [[AT:[0-9]+]] : i32} : tensor<128x64xf32,
  // CHECK-NEXT: warp.tensor_ready
  // CHECK-NEXT: warp.tensor_product {{.*}}from = [[AT]] : i32
  func.func @as_operand(%a: !a, %b: !b, %c: !c, %s: !slots) -> !sums attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 512 : i32} : !slots
    %zero = arith.constant dense<0.0> : !sums
    %d = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %x = warp.wgmma_wait %d {pending = 0 : i32} : !sums
    %e = warp.wgmma %x, %c, %zero {shape = array<i32: 128, 64, 8>} : !sums * !c -> !sums
    %y = warp.wgmma_wait %e {pending = 0 : i32} : !sums
    %u = arith.negf %y : !sums
    warp.tensor_end %area {columns = 512 : i32}
    return %u : !sums
  }

  // A kernel without tensor memory is left alone.
  // CHECK-LABEL: func.func @none
  // CHECK: warp.wgmma
  func.func @none(%a: !a, %b: !b, %c: !sums) -> !sums {
    %d = warp.wgmma %a, %b, %c {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    return %d : !sums
  }

  // A block that others wait for is to have its columns: of 64 columns there are eight on a multiprocessor, and the shared
  // memory of nine does not fit. A loop that asks for nothing, and a load outside of one, wait for nobody.
  // CHECK-LABEL: func.func @waiting
  // CHECK-SAME: warp.shared_bytes = 24960 : i64
  func.func @waiting(%a: !a, %b: !b, %s: !slots, %lock: !tile.ptr<i32>) -> !sums attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>, warp.shared_bytes = 24576 : i64} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 512 : i32} : !slots
    %zero = arith.constant dense<0.0> : !sums
    %free = arith.constant 0 : i32
    %taken = arith.constant 1 : i32
    scf.while : () -> () {
      %old = tile.atomic_cas %lock, %free, %taken : (!tile.ptr<i32>, i32, i32) -> i32
      %waits = arith.cmpi eq, %old, %taken : i32
      scf.condition(%waits)
    } do {
      scf.yield
    }
    %d = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %done = warp.wgmma_wait %d {pending = 0 : i32} : !sums
    warp.tensor_end %area {columns = 512 : i32}
    return %done : !sums
  }

  // CHECK-LABEL: func.func @not_waiting
  // CHECK-SAME: warp.shared_bytes = 24576 : i64
  func.func @not_waiting(%a: !a, %b: !b, %s: !slots, %lock: !tile.ptr<i32>, %n: i32) -> !sums attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>, warp.shared_bytes = 24576 : i64} {
    %area, %lanes = warp.tensor_begin %s {barriers = 8 : i32, columns = 512 : i32} : !slots
    %zero = arith.constant dense<0.0> : !sums
    %one = arith.constant 1 : i32
    %read = tile.load %lock : !tile.ptr<i32>
    %x = scf.while (%i = %read) : (i32) -> i32 {
      %more = arith.cmpi slt, %i, %n : i32
      scf.condition(%more) %i : i32
    } do {
    ^bb0(%i: i32):
      %next = arith.addi %i, %one : i32
      scf.yield %next : i32
    }
    %d = warp.wgmma %a, %b, %zero {shape = array<i32: 128, 64, 16>} : !a * !b -> !sums
    %done = warp.wgmma_wait %d {pending = 0 : i32} : !sums
    warp.tensor_end %area {columns = 512 : i32}
    return %done : !sums
  }
}

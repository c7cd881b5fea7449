// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --warp-pipeline --remarks-filter-missed=loops -o /dev/null 2>&1 | FileCheck %s
// RUN: weft-opt %s --warp-pipeline | FileCheck %s --check-prefix=LEFT
// Loops whose second product cannot run beside the next iteration's first.
#load = #warp.layout<[64, 64], register = [[0, 1], [0, 2], [0, 4], [16, 0], [32, 0]], lane = [[0, 8], [0, 16], [0, 32], [1, 0], [2, 0]], warp = [[4, 0], [8, 0]]>
#a = #warp.layout<[64, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]], warp = [[16, 0], [32, 0]]>
#s = #warp.layout<[64, 64], offset = [[0, 1], [0, 2], [0, 4], [0, 8], [0, 16], [0, 32], [1, 8], [2, 16], [4, 32], [8, 0], [16, 0], [32, 0]]>

// CHECK: remark: [Missed] product-overlap | Category:loops | Function=one_tile | Reason="the loop's second product is not run beside the next iteration's first: an iteration's other products read its tile too"
// CHECK: remark: [Missed] product-overlap | Category:loops | Function=stored | Reason="the loop's second product is not run beside the next iteration's first: the copies into its tile do not run ahead"
// CHECK: remark: [Missed] product-overlap | Category:loops | Function=in_shared | Reason="the loop's second product is not run beside the next iteration's first: its first operand lies in shared memory"
// CHECK: remark: [Missed] product-overlap | Category:loops | Function=needed_at_once | Reason="the loop's second product is not run beside the next iteration's first: the loop needs its sums at once"
// CHECK: remark: [Missed] product-overlap | Category:loops | Function=needed_first | Reason="the loop's second product is not run beside the next iteration's first: the next iteration's products need its sums"
// CHECK: remark: [Missed] product-overlap | Category:loops | Function=carried_too | Reason="the loop's second product is not run beside the next iteration's first: something else needs what is computed from its sums"
// CHECK: remark: [Missed] product-overlap | Category:loops | Function=taken_twice | Reason="the loop's second product is not run beside the next iteration's first: more than one takes its sums of the iteration before"
// CHECK: remark: [Missed] product-overlap | Category:loops | Function=no_cast | Reason="the loop's second product is not run beside the next iteration's first: its operand is no cast of f32 of its own"
// CHECK: remark: [Missed] product-overlap | Category:loops | Function=no_registers | Reason="the loop's second product is not run beside the next iteration's first: a thread's registers do not hold its sums and its operand beside the other products' sums"
// CHECK: remark: [Missed] product-overlap | Category:loops | Function=one_block | Reason="the loop's second product is not run beside the next iteration's first: a multiprocessor holds two blocks without, of which one computes while the other waits"

// LEFT-NOT: pending = 1 : i32}
// LEFT-NOT: else

module {
  func.func @one_tile(%kp: tensor<64x64x!tile.ptr<f16>, #load>, %vp: tensor<64x64x!tile.ptr<f16>, #load>, %q: tensor<64x64xf16, #a>, %init: tensor<64x64xf32, #a>, %x: tensor<64x64xf32, #a>, %n: i32) -> tensor<64x64xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #a>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<64x64xf32, #a>) : i32 {
      %b = tile.splat %i : i32 -> tensor<64x64xi32, #load>
      %kq = tile.addptr %kp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %vq = tile.addptr %vp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %ks = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %kq to %ks {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %d = warp.wgmma %q, %ks, %zero {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %s = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #a>
      %w = math.exp2 %s : tensor<64x64xf32, #a>
      %p = arith.truncf %w : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
      %e = warp.wgmma %p, %ks, %acc {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %ks : !warp.shared<64x64xf16, #s>
      scf.yield %o : tensor<64x64xf32, #a>
    }
    func.return %l : tensor<64x64xf32, #a>
  }
  func.func @stored(%kp: tensor<64x64x!tile.ptr<f16>, #load>, %vp: tensor<64x64x!tile.ptr<f16>, #load>, %q: tensor<64x64xf16, #a>, %init: tensor<64x64xf32, #a>, %x: tensor<64x64xf32, #a>, %n: i32) -> tensor<64x64xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #a>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<64x64xf32, #a>) : i32 {
      %b = tile.splat %i : i32 -> tensor<64x64xi32, #load>
      %kq = tile.addptr %kp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %vq = tile.addptr %vp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %ks = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %kq to %ks {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %d = warp.wgmma %q, %ks, %zero {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %s = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %ks : !warp.shared<64x64xf16, #s>
      %w = math.exp2 %s : tensor<64x64xf32, #a>
      %vs = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.store_shared %q, %vs : tensor<64x64xf16, #a> -> !warp.shared<64x64xf16, #s>
      %p = arith.truncf %w : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
      %e = warp.wgmma %p, %vs, %acc {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %vs : !warp.shared<64x64xf16, #s>
      scf.yield %o : tensor<64x64xf32, #a>
    }
    func.return %l : tensor<64x64xf32, #a>
  }
  func.func @in_shared(%kp: tensor<64x64x!tile.ptr<f16>, #load>, %vp: tensor<64x64x!tile.ptr<f16>, #load>, %q: tensor<64x64xf16, #a>, %init: tensor<64x64xf32, #a>, %x: tensor<64x64xf32, #a>, %n: i32, %m: !warp.shared<64x64xf16, #s>) -> tensor<64x64xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #a>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<64x64xf32, #a>) : i32 {
      %b = tile.splat %i : i32 -> tensor<64x64xi32, #load>
      %kq = tile.addptr %kp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %vq = tile.addptr %vp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %ks = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %kq to %ks {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %d = warp.wgmma %q, %ks, %zero {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %s = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %ks : !warp.shared<64x64xf16, #s>
      %w = math.exp2 %s : tensor<64x64xf32, #a>
      %p = arith.truncf %w : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
      %vs = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %vq to %vs {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %e = warp.wgmma %p, %vs, %acc {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %vs : !warp.shared<64x64xf16, #s>
      %us = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %vq to %us {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %f = warp.wgmma %m, %us, %o {shape = array<i32: 64, 64, 16>} : !warp.shared<64x64xf16, #s> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %r = warp.wgmma_wait %f {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %us : !warp.shared<64x64xf16, #s>
      scf.yield %r : tensor<64x64xf32, #a>
    }
    func.return %l : tensor<64x64xf32, #a>
  }
  func.func @needed_at_once(%kp: tensor<64x64x!tile.ptr<f16>, #load>, %vp: tensor<64x64x!tile.ptr<f16>, #load>, %q: tensor<64x64xf16, #a>, %init: tensor<64x64xf32, #a>, %x: tensor<64x64xf32, #a>, %n: i32) -> tensor<64x64xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #a>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<64x64xf32, #a>) : i32 {
      %b = tile.splat %i : i32 -> tensor<64x64xi32, #load>
      %kq = tile.addptr %kp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %vq = tile.addptr %vp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %ks = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %kq to %ks {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %d = warp.wgmma %q, %ks, %zero {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %s = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %ks : !warp.shared<64x64xf16, #s>
      %w = math.exp2 %s : tensor<64x64xf32, #a>
      %p = arith.truncf %w : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
      %vs = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %vq to %vs {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %e = warp.wgmma %p, %vs, %acc {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %vs : !warp.shared<64x64xf16, #s>
      %r = arith.addf %o, %x : tensor<64x64xf32, #a>
      scf.yield %r : tensor<64x64xf32, #a>
    }
    func.return %l : tensor<64x64xf32, #a>
  }
  func.func @needed_first(%kp: tensor<64x64x!tile.ptr<f16>, #load>, %vp: tensor<64x64x!tile.ptr<f16>, #load>, %q: tensor<64x64xf16, #a>, %init: tensor<64x64xf32, #a>, %x: tensor<64x64xf32, #a>, %n: i32) -> tensor<64x64xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #a>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<64x64xf32, #a>) : i32 {
      %b = tile.splat %i : i32 -> tensor<64x64xi32, #load>
      %kq = tile.addptr %kp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %vq = tile.addptr %vp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %h = arith.truncf %acc : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
      %ks = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %kq to %ks {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %d = warp.wgmma %h, %ks, %zero {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %s = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %ks : !warp.shared<64x64xf16, #s>
      %w = math.exp2 %s : tensor<64x64xf32, #a>
      %p = arith.truncf %w : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
      %vs = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %vq to %vs {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %e = warp.wgmma %p, %vs, %acc {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %vs : !warp.shared<64x64xf16, #s>
      scf.yield %o : tensor<64x64xf32, #a>
    }
    func.return %l : tensor<64x64xf32, #a>
  }
  func.func @carried_too(%kp: tensor<64x64x!tile.ptr<f16>, #load>, %vp: tensor<64x64x!tile.ptr<f16>, #load>, %q: tensor<64x64xf16, #a>, %init: tensor<64x64xf32, #a>, %x: tensor<64x64xf32, #a>, %n: i32) -> tensor<64x64xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #a>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init, %two = %x) -> (tensor<64x64xf32, #a>, tensor<64x64xf32, #a>) : i32 {
      %b = tile.splat %i : i32 -> tensor<64x64xi32, #load>
      %kq = tile.addptr %kp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %vq = tile.addptr %vp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %ks = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %kq to %ks {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %d = warp.wgmma %q, %ks, %zero {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %s = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %ks : !warp.shared<64x64xf16, #s>
      %w = math.exp2 %s : tensor<64x64xf32, #a>
      %p = arith.truncf %w : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
      %c = arith.mulf %acc, %x : tensor<64x64xf32, #a>
      %vs = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %vq to %vs {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %e = warp.wgmma %p, %vs, %c {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %vs : !warp.shared<64x64xf16, #s>
      scf.yield %o, %c : tensor<64x64xf32, #a>, tensor<64x64xf32, #a>
    }
    func.return %l#0 : tensor<64x64xf32, #a>
  }
  func.func @taken_twice(%kp: tensor<64x64x!tile.ptr<f16>, #load>, %vp: tensor<64x64x!tile.ptr<f16>, #load>, %q: tensor<64x64xf16, #a>, %init: tensor<64x64xf32, #a>, %x: tensor<64x64xf32, #a>, %n: i32) -> tensor<64x64xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #a>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<64x64xf32, #a>) : i32 {
      %b = tile.splat %i : i32 -> tensor<64x64xi32, #load>
      %kq = tile.addptr %kp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %vq = tile.addptr %vp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %ks = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %kq to %ks {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %d = warp.wgmma %q, %ks, %zero {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %s = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %ks : !warp.shared<64x64xf16, #s>
      %w = math.exp2 %s : tensor<64x64xf32, #a>
      %p = arith.truncf %w : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
      %scaled = arith.mulf %acc, %x : tensor<64x64xf32, #a>
      %c = arith.addf %scaled, %acc : tensor<64x64xf32, #a>
      %vs = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %vq to %vs {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %e = warp.wgmma %p, %vs, %c {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %vs : !warp.shared<64x64xf16, #s>
      scf.yield %o : tensor<64x64xf32, #a>
    }
    func.return %l : tensor<64x64xf32, #a>
  }
  func.func @no_cast(%kp: tensor<64x64x!tile.ptr<f16>, #load>, %vp: tensor<64x64x!tile.ptr<f16>, #load>, %q: tensor<64x64xf16, #a>, %init: tensor<64x64xf32, #a>, %x: tensor<64x64xf32, #a>, %n: i32) -> tensor<64x64xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 4, stages = 2>} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #a>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l:2 = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init, %two = %x) -> (tensor<64x64xf32, #a>, tensor<64x64xf32, #a>) : i32 {
      %b = tile.splat %i : i32 -> tensor<64x64xi32, #load>
      %kq = tile.addptr %kp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %vq = tile.addptr %vp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %ks = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %kq to %ks {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %d = warp.wgmma %q, %ks, %zero {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %s = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %ks : !warp.shared<64x64xf16, #s>
      %w = math.exp2 %s : tensor<64x64xf32, #a>
      %p = arith.truncf %w : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
      %vs = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %vq to %vs {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %e = warp.wgmma %p, %vs, %acc {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %vs : !warp.shared<64x64xf16, #s>
      %u = arith.extf %p : tensor<64x64xf16, #a> to tensor<64x64xf32, #a>
      %t = arith.addf %two, %u : tensor<64x64xf32, #a>
      scf.yield %o, %t : tensor<64x64xf32, #a>, tensor<64x64xf32, #a>
    }
    func.return %l#0 : tensor<64x64xf32, #a>
  }
  func.func @no_registers(%kp: tensor<64x64x!tile.ptr<f16>, #load>, %vp: tensor<64x64x!tile.ptr<f16>, #load>, %q: tensor<64x64xf16, #a>, %init: tensor<64x64xf32, #a>, %x: tensor<64x64xf32, #a>, %n: i32) -> tensor<64x64xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 32, stages = 2>} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #a>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<64x64xf32, #a>) : i32 {
      %b = tile.splat %i : i32 -> tensor<64x64xi32, #load>
      %kq = tile.addptr %kp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %vq = tile.addptr %vp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %ks = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %kq to %ks {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %d = warp.wgmma %q, %ks, %zero {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %s = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %ks : !warp.shared<64x64xf16, #s>
      %w = math.exp2 %s : tensor<64x64xf32, #a>
      %p = arith.truncf %w : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
      %vs = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %vq to %vs {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %e = warp.wgmma %p, %vs, %acc {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %vs : !warp.shared<64x64xf16, #s>
      scf.yield %o : tensor<64x64xf32, #a>
    }
    func.return %l : tensor<64x64xf32, #a>
  }

  func.func @one_block(%kp: tensor<64x64x!tile.ptr<f16>, #load>, %vp: tensor<64x64x!tile.ptr<f16>, #load>, %q: tensor<64x64xf16, #a>, %init: tensor<64x64xf32, #a>, %x: tensor<64x64xf32, #a>, %n: i32) -> tensor<64x64xf32, #a>
      attributes {tile.schedule = #tile.schedule<warps = 8, stages = 2>} {
    %zero = arith.constant dense<0.0> : tensor<64x64xf32, #a>
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %l = scf.for %i = %c0 to %n step %c1 iter_args(%acc = %init) -> (tensor<64x64xf32, #a>) : i32 {
      %b = tile.splat %i : i32 -> tensor<64x64xi32, #load>
      %kq = tile.addptr %kp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %vq = tile.addptr %vp, %b : tensor<64x64x!tile.ptr<f16>, #load>, tensor<64x64xi32, #load>
      %ks = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %kq to %ks {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %d = warp.wgmma %q, %ks, %zero {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %s = warp.wgmma_wait %d {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %ks : !warp.shared<64x64xf16, #s>
      %w = math.exp2 %s : tensor<64x64xf32, #a>
      %p = arith.truncf %w : tensor<64x64xf32, #a> to tensor<64x64xf16, #a>
      %vs = warp.alloc : !warp.shared<64x64xf16, #s>
      warp.async_copy %vq to %vs {contiguity = 8 : i32} : tensor<64x64x!tile.ptr<f16>, #load> -> !warp.shared<64x64xf16, #s>
      warp.async_commit
      warp.async_wait {pending = 0 : i32}
      %e = warp.wgmma %p, %vs, %acc {shape = array<i32: 64, 64, 16>} : tensor<64x64xf16, #a> * !warp.shared<64x64xf16, #s> -> tensor<64x64xf32, #a>
      %o = warp.wgmma_wait %e {pending = 0 : i32} : tensor<64x64xf32, #a>
      warp.dealloc %vs : !warp.shared<64x64xf16, #s>
      scf.yield %o : tensor<64x64xf32, #a>
    }
    func.return %l : tensor<64x64xf32, #a>
  }
}

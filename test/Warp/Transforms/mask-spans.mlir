// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %s --split-input-file --warp-mask-spans --canonicalize | FileCheck %s

#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#acc = #warp.layout<[16, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#columns = #warp.layout<[128], register = [[1], [8], [16], [32], [64]], lane = [[2], [4], [0], [0], [0]]>
#line = #warp.layout<[1, 128], register = [[0, 1], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]]>
!x = tensor<16x128xf32, #acc>
!i = tensor<16x128xi32, #acc>
!r = tensor<16x1xi32, #rows>

// A causal mask whose last keys are none: the row's bound, inclusive, and that of all.
// CHECK-LABEL: func.func @causal
// CHECK-SAME: (%[[ROW:.*]]: tensor<16x1xi32, {{[^)]*}}%[[BEGIN:[a-z0-9]+]]: i32, %[[N:[a-z0-9]+]]: i32, %[[X:[a-z0-9]+]]: tensor<16x128xf32, {{[^)]*}}%[[NONE:[a-z0-9]+]]: tensor<16x128xf32,
// CHECK: %[[ONE:.*]] = arith.constant 1 : i32
// CHECK: %[[R:.*]] = warp.span_select %[[X]], %[[NONE]] from %[[BEGIN]] upper(%[[ROW]] plus %[[ONE]] : tensor<16x1xi32, #{{.*}}>) end(%[[N]]) {axis = 1 : i32}
// CHECK: return %[[R]]
func.func @causal(%row: !r, %begin: i32, %n: i32, %x: !x, %none: !x) -> !x {
  %j = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #columns>
  %b = tile.splat %begin : i32 -> tensor<128xi32, #columns>
  %k = arith.addi %b, %j : tensor<128xi32, #columns>
  %line = tile.expand_dims %k {axis = 0 : i32} : tensor<128xi32, #columns> -> tensor<1x128xi32, #line>
  %keys = tile.broadcast %line : tensor<1x128xi32, #line> -> !i
  %rows = tile.broadcast %row : !r -> !i
  %c = arith.cmpi sle, %keys, %rows : !i
  %ns = tile.splat %n : i32 -> !i
  %d = arith.cmpi sgt, %ns, %keys : !i
  %m = arith.andi %c, %d : tensor<16x128xi1, #acc>
  %r = arith.select %m, %x, %none : tensor<16x128xi1, #acc>, !x
  return %r : !x
}

// -----

#rows = #warp.layout<[16, 1], register = [[8, 0]], lane = [[0, 0], [0, 0], [1, 0], [2, 0], [4, 0]]>
#acc = #warp.layout<[16, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#columns = #warp.layout<[128], register = [[1], [8], [16], [32], [64]], lane = [[2], [4], [0], [0], [0]]>
#line = #warp.layout<[1, 128], register = [[0, 1], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]]>
!x = tensor<16x128xf32, #acc>
!i = tensor<16x128xi32, #acc>
!r = tensor<16x1xi32, #rows>

// Distances between rows and keys: 0 <= row - key < 100, and keys from 4 on, compared once for all rows.
// What a row says of itself empties it: its end, a sum that does not wrap around, is the least number then.
// CHECK-LABEL: func.func @distances
// CHECK-SAME: (%[[ROW:.*]]: tensor<16x1xi32, {{[^)]*}}%[[SEEN:[a-z0-9]+]]: tensor<16x1xi1,
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0 : i32
// CHECK-DAG: %[[FAR:.*]] = arith.constant -99 : i32
// CHECK-DAG: %[[FOUR:.*]] = arith.constant 4 : i32
// CHECK: %[[ALL:.*]] = arith.select %[[SEEN]], %{{.*}}, %{{.*}}
// CHECK: %[[UPPER:.*]] = arith.minsi %{{.*}}, %[[ALL]]
// CHECK: warp.span_select %{{.*}} from %[[ZERO]] lower(%[[ROW]] plus %[[FAR]] : {{.*}}) upper(%[[UPPER]] plus %[[ZERO]] : {{.*}}) least(%[[FOUR]])
func.func @distances(%row: !r, %seen: tensor<16x1xi1, #rows>, %x: !x, %none: !x) -> !x {
  %j = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #columns>
  %four = arith.constant dense<4> : tensor<128xi32, #columns>
  %late = arith.cmpi sge, %j, %four : tensor<128xi32, #columns>
  %lates = tile.expand_dims %late {axis = 0 : i32} : tensor<128xi1, #columns> -> tensor<1x128xi1, #line>
  %e = tile.broadcast %lates : tensor<1x128xi1, #line> -> tensor<16x128xi1, #acc>
  %line = tile.expand_dims %j {axis = 0 : i32} : tensor<128xi32, #columns> -> tensor<1x128xi32, #line>
  %keys = tile.broadcast %line : tensor<1x128xi32, #line> -> !i
  %rows = tile.broadcast %row : !r -> !i
  %distance = arith.subi %rows, %keys : !i
  %c0 = arith.constant dense<0> : !i
  %c100 = arith.constant dense<100> : !i
  %c = arith.cmpi sge, %distance, %c0 : !i
  %d = arith.cmpi slt, %distance, %c100 : !i
  %s = tile.broadcast %seen : tensor<16x1xi1, #rows> -> tensor<16x128xi1, #acc>
  %m0 = arith.andi %c, %d : tensor<16x128xi1, #acc>
  %m1 = arith.andi %m0, %e : tensor<16x128xi1, #acc>
  %m = arith.andi %m1, %s : tensor<16x128xi1, #acc>
  %r = arith.select %m, %x, %none : tensor<16x128xi1, #acc>, !x
  return %r : !x
}

// -----

#acc = #warp.layout<[16, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#columns = #warp.layout<[128], register = [[1], [8], [16], [32], [64]], lane = [[2], [4], [0], [0], [0]]>
#line = #warp.layout<[1, 128], register = [[0, 1], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]]>

// One comparison with a constant.
// CHECK-LABEL: func.func @constant
// CHECK: warp.span_select %{{.*}} from %{{.*}} end(%c9_i32)
func.func @constant(%x: tensor<16x128xf32, #acc>, %none: tensor<16x128xf32, #acc>) -> tensor<16x128xf32, #acc> {
  %j = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #columns>
  %line = tile.expand_dims %j {axis = 0 : i32} : tensor<128xi32, #columns> -> tensor<1x128xi32, #line>
  %keys = tile.broadcast %line : tensor<1x128xi32, #line> -> tensor<16x128xi32, #acc>
  %nine = arith.constant dense<9> : tensor<16x128xi32, #acc>
  %m = arith.cmpi slt, %keys, %nine : tensor<16x128xi32, #acc>
  %r = arith.select %m, %x, %none : tensor<16x128xi1, #acc>, tensor<16x128xf32, #acc>
  return %r : tensor<16x128xf32, #acc>
}

// -----

#acc = #warp.layout<[16, 128], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#columns = #warp.layout<[128], register = [[1], [8], [16], [32], [64]], lane = [[2], [4], [0], [0], [0]]>
#line = #warp.layout<[1, 128], register = [[0, 1], [0, 8], [0, 16], [0, 32], [0, 64]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]]>
!x = tensor<16x128xf32, #acc>
!i = tensor<16x128xi32, #acc>

// Left alone: equal keys are no span, nor those of one mask or the other, nor without a sign; a mask that is stored; and
// two runs of indices that begin apart.
// CHECK-LABEL: func.func @others
// CHECK-NOT: span_select
// CHECK-COUNT-5: arith.select
// CHECK-NOT: span_select
func.func @others(%n: i32, %x: !x, %none: !x) -> (!x, !x, !x, !x, !x, tensor<16x128xi1, #acc>) {
  %j = tile.make_range {start = 0 : i32, end = 128 : i32} : tensor<128xi32, #columns>
  %line = tile.expand_dims %j {axis = 0 : i32} : tensor<128xi32, #columns> -> tensor<1x128xi32, #line>
  %keys = tile.broadcast %line : tensor<1x128xi32, #line> -> !i
  %ns = tile.splat %n : i32 -> !i
  %equal = arith.cmpi eq, %keys, %ns : !i
  %r0 = arith.select %equal, %x, %none : tensor<16x128xi1, #acc>, !x
  %below = arith.cmpi slt, %keys, %ns : !i
  %any = arith.ori %below, %equal : tensor<16x128xi1, #acc>
  %r1 = arith.select %any, %x, %none : tensor<16x128xi1, #acc>, !x
  %unsigned = arith.cmpi ult, %keys, %ns : !i
  %r2 = arith.select %unsigned, %x, %none : tensor<16x128xi1, #acc>, !x
  %kept = arith.cmpi sle, %keys, %ns : !i
  %r3 = arith.select %kept, %x, %none : tensor<16x128xi1, #acc>, !x
  %later = arith.addi %keys, %ns : !i
  %second = arith.cmpi sle, %later, %ns : !i
  %apart = arith.andi %below, %second : tensor<16x128xi1, #acc>
  %r4 = arith.select %apart, %x, %none : tensor<16x128xi1, #acc>, !x
  return %r0, %r1, %r2, %r3, %r4, %kept : !x, !x, !x, !x, !x, tensor<16x128xi1, #acc>
}

// -----

#acc = #warp.layout<[16, 64], register = [[0, 1], [8, 0], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [1, 0], [2, 0], [4, 0]]>
#columns = #warp.layout<[64], register = [[1], [8], [16], [32]], lane = [[2], [4], [0], [0], [0]]>
#line = #warp.layout<[1, 64], register = [[0, 1], [0, 8], [0, 16], [0, 32]], lane = [[0, 2], [0, 4], [0, 0], [0, 0], [0, 0]]>
!x = tensor<16x64xf32, #acc>
!i = tensor<16x64xi32, #acc>

// Left alone: sixteen elements of a row are half a word.
// CHECK-LABEL: func.func @few
// CHECK-NOT: span_select
func.func @few(%n: i32, %x: !x, %none: !x) -> !x {
  %j = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32, #columns>
  %line = tile.expand_dims %j {axis = 0 : i32} : tensor<64xi32, #columns> -> tensor<1x64xi32, #line>
  %keys = tile.broadcast %line : tensor<1x64xi32, #line> -> !i
  %ns = tile.splat %n : i32 -> !i
  %m = arith.cmpi slt, %keys, %ns : !i
  %r = arith.select %m, %x, %none : tensor<16x64xi1, #acc>, !x
  return %r : !x
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: weft-opt %S/../Warp/Transforms/take-turns.mlir --warp-take-turns --remarks-filter-missed=loops -o /dev/null 2>&1 | FileCheck %s
// Loops whose warpgroups start their products when they come to them.
// CHECK: remark: [Missed] warpgroup-turns | Category:loops | Function=meet | Reason="warpgroups do not take turns in starting products: all meet in an iteration"
// CHECK: remark: [Missed] warpgroup-turns | Category:loops | Function=long_products | Reason="warpgroups do not take turns in starting products: products take longer than exponentials"
// CHECK-NOT: Missed

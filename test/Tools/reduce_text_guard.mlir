// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Text on which MLIR's parser would end the process is reported at its place.
// RUN: not weft-reduce %s --reduction-tree='traversal-mode=0 test=%S/Inputs/has-division.sh' 2>&1 | FileCheck %s
// CHECK: reduce_text_guard.mlir:[[#@LINE+1]]:40: error: expected an array of integers or floats of fixed width, but got one of 'index'
func.func private @f() attributes {x = array<index: 1>}

// RUN: not weft-opt %s 2>&1 | FileCheck %s

// MLIR's parser would end the process on this attribute.
// CHECK: text_guard.mlir:[[#@LINE+1]]:40: error: expected an array of integers or floats of fixed width, but got one of 'index'
func.func private @f() attributes {x = array<index: 1>}

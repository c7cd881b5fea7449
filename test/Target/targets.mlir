// Part of Weft. SPDX-License-Identifier: Apache-2.0
// RUN: sed s/TARGET/sm_86/ %s | weft-opt --convert-warp-to-llvm | weft-translate --mlir-to-ptx | FileCheck %s -DTARGET=sm_86 -DVERSION=8.0
// RUN: sed s/TARGET/sm_89/ %s | weft-opt --convert-warp-to-llvm | weft-translate --mlir-to-ptx | FileCheck %s -DTARGET=sm_89 -DVERSION=8.0
// RUN: sed s/TARGET/sm_120/ %s | weft-opt --convert-warp-to-llvm | weft-translate --mlir-to-ptx | FileCheck %s -DTARGET=sm_120 -DVERSION=8.7
// PTX of a target names it, and the version of the PTX ISA that first has it or 8.0.
// CHECK: .version [[VERSION]]
// CHECK: .target [[TARGET]]
// CHECK: .visible .entry empty()
// CHECK: ret;
module attributes {warp.target = "TARGET"} {
  func.func @empty() attributes {tile.kernel} {
    return
  }
}

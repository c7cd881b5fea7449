// RUN: weft-opt --convert-warp-to-llvm --split-input-file %s | FileCheck %s
// Inline PTX: once for every few registers of a thread, narrow ones packed.

#one = #warp.layout<[64], register = [[1]], lane = [[2], [4], [8], [16], [32]], warp = []>
module attributes {warp.target = "sm_80"} {
  // CHECK-LABEL: llvm.func @pairs
  func.func @pairs(%s: f16) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
    %x = tile.splat %s : f16 -> tensor<64xf16, #one>
    // CHECK: %[[PAIR:.*]] = llvm.bitcast %{{.*}} : vector<2xi16> to i32
    // CHECK: llvm.inline_asm asm_dialect = att "neg.f16x2 $0, $1;", "=r,r" %[[PAIR]] : (i32) -> i32
    // CHECK-NOT: inline_asm
    %y = tile.inline_asm "neg.f16x2 $0, $1;", "=r, r" pack 2 pure %x : (tensor<64xf16, #one>) -> tensor<64xf16, #one>
    // Two registers fill half of four: the last one the rest.
    // CHECK: llvm.inline_asm has_side_effects asm_dialect = att "code", "=r,=r,r,r"
    // CHECK-NOT: inline_asm
    %z = tile.inline_asm "code", "=r,=r,r,r" pack 4 %x : (tensor<64xf16, #one>) -> tensor<64xf16, #one>
    return
  }
}

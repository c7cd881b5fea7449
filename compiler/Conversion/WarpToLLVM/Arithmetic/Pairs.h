// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Arithmetic of floats on two neighbouring registers at once, of 16 bits, and where the target has it of 32:
//
//   %z = arith.mulf %x, %y : tensor<64xf16, #l>     -->     %z01 = llvm.fmul %x01, %y01 : vector<2xf16>      mul.f16x2
#pragma once

#include "compiler/Conversion/WarpToLLVM/Emitter.h"

namespace weft {

/// Whether an op computes pairs where its operands lie in such.
bool computesPairs(mlir::Operation *op);
/// Whether an op of f32 computes pairs, which the target has instructions for and registers side by side are.
bool computesFloat32Pairs(mlir::Operation *op, const TargetInfo &target);

/// Two values as one of two elements.
mlir::Value pairedUp(mlir::Value first, mlir::Value second, Emitter &e);

/// A sum, difference or product of bf16 by the fma that every target has of pairs (PTX ISA 9.7.4); null for other ops, and
/// where the target has it.
mlir::Value fusedPair(mlir::Operation *op, llvm::ArrayRef<mlir::Value> in, Emitter &e);

/// What `pair` and `single` make of an op's registers: of two neighbours at once where those of all operands but one are
/// one word each, or one number twice, and not all of them numbers; else of each.
mlir::LogicalResult perPair(mlir::Operation *op, Emitter &e,
                            llvm::function_ref<mlir::Value(llvm::ArrayRef<mlir::Value>)> pair,
                            llvm::function_ref<mlir::Value(llvm::ArrayRef<mlir::Value>)> single);

/// Lowers `Source` to the LLVM op `Target` of the same operands.
template <typename Source, typename Target> void addDirect(LoweringTable &table) {
  table.add<Source>([](Source op, Emitter &e) {
    mlir::Type type = registerType(op.getType());
    return e.perRegister(op, [&](llvm::ArrayRef<mlir::Value> in) -> mlir::Value {
      return Target::create(e.b, e.loc, mlir::TypeRange(type), mlir::ValueRange(in));
    });
  });
}

/// The same, by pairs where it can.
template <typename Source, typename Target> void addPaired(LoweringTable &table) {
  table.add<Source>([](Source op, Emitter &e) {
    auto make = [&](llvm::ArrayRef<mlir::Value> in) -> mlir::Value {
      return Target::create(e.b, e.loc, mlir::TypeRange(in[0].getType()), mlir::ValueRange(in));
    };
    auto pair = [&](llvm::ArrayRef<mlir::Value> in) {
      mlir::Value fused = fusedPair(op, in, e);
      return fused ? fused : make(in);
    };
    return computesPairs(op) || computesFloat32Pairs(op, e.target) ? perPair(op, e, pair, make)
                                                                   : e.perRegister(op, make);
  });
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The ops of the attn dialect.
#pragma once

#include "dialects/Attn/IR/AttnDialect.h"
#include "dialects/Attn/IR/AttnPadding.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/ControlFlowInterfaces.h"
#include "mlir/Interfaces/InferTypeOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "dialects/Attn/IR/AttnInterfaces.h.inc"

namespace weft::attn {
/// See Attn_WeightProduct and Attn_GradientOnly of AttnOps.td.
template <typename Op> struct WeightProduct : mlir::OpTrait::TraitBase<Op, WeightProduct> {};
template <typename Op> struct GradientOnly : mlir::OpTrait::TraitBase<Op, GradientOnly> {};

namespace detail {
/// No operand or result of `op` has elements of 8-bit floats.
mlir::LogicalResult checkNoFloat8(mlir::Operation *op);
} // namespace detail
template <typename Op> struct NoFloat8 : mlir::OpTrait::TraitBase<Op, NoFloat8> {
  static mlir::LogicalResult verifyTrait(mlir::Operation *op) { return detail::checkNoFloat8(op); }
};
} // namespace weft::attn

#define GET_OP_CLASSES
#include "dialects/Attn/IR/AttnOps.h.inc"

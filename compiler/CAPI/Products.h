// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The matrix products of a program (docs/LibraryFormat.md, "Products").
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/JSON.h"

namespace weft::capi {

/// What a program of attn ops, its mixers applied, multiplies: the floating-point operations of each of its matrix
/// products, as expressions over its sizes, and of products of queries with keys the pairs that the pattern leaves.
llvm::json::Array describeProducts(mlir::func::FuncOp program);

} // namespace weft::capi

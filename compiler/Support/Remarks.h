// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Remarks of MLIR for fast paths that were not taken, with the reason: `weft-opt --remarks-filter-missed=.*` prints
// them, `weft explain --why` collects them. They cost nothing where nobody asks.
#pragma once

#include "mlir/IR/Operation.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace weft::remarks {

/// A fast path, by the name and the category of its remarks.
struct FastPath {
  llvm::StringLiteral name, category;
};

#define WEFT_REMARK(symbol, name, category) inline constexpr FastPath symbol{name, category};
#include "compiler/Support/Remarks.def"
#undef WEFT_REMARK

/// Says that `op` does not take a fast path. What is streamed in, by `mlir::remark::reason`, is the reason.
inline mlir::remark::detail::InFlightRemark missed(const FastPath &path, mlir::Operation *op) {
  auto function = llvm::dyn_cast<mlir::FunctionOpInterface>(op);
  if (!function)
    function = op->getParentOfType<mlir::FunctionOpInterface>();
  auto options = mlir::remark::RemarkOpts::name(path.name).category(path.category);
  return mlir::remark::missed(op->getLoc(), options.function(function ? function.getName() : ""));
}

/// Whether anybody asks, for reasons that take work to find.
inline bool asked(mlir::Operation *op) { return op->getContext()->getRemarkEngine(); }

} // namespace weft::remarks

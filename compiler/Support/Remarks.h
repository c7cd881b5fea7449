// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Remarks of MLIR. Those of fast paths that were not taken have the reason: `weft-opt --remarks-filter-missed=.*` prints
// them, `weft explain --why` collects them. Those of decisions are analyses: `weft-opt --remarks-filter-analyse=.*`,
// `weft explain --decisions`. They cost nothing where nobody asks.
#pragma once

#include "mlir/IR/Operation.h"
#include "mlir/IR/Remarks.h"
#include "mlir/Interfaces/FunctionInterfaces.h"

namespace weft::remarks {

/// A fast path, by the name and the category of its remarks.
struct FastPath {
  llvm::StringLiteral name, category;
};

/// Something that the compiler decides, by the name and the category of its remarks.
struct Decision {
  llvm::StringLiteral name, category;
};

#define WEFT_REMARK(symbol, name, category) inline constexpr FastPath symbol{name, category};
#define WEFT_DECISION(symbol, name, category) inline constexpr Decision symbol{name, category};
#include "compiler/Support/Remarks.def"
#undef WEFT_DECISION
#undef WEFT_REMARK

/// The options of a remark about `op`.
template <typename Subject> mlir::remark::RemarkOpts optionsFor(const Subject &subject, mlir::Operation *op) {
  auto function = llvm::dyn_cast<mlir::FunctionOpInterface>(op);
  if (!function)
    function = op->getParentOfType<mlir::FunctionOpInterface>();
  auto options = mlir::remark::RemarkOpts::name(subject.name).category(subject.category);
  return options.function(function ? function.getName() : "");
}

/// Says that `op` does not take a fast path. What is streamed in, by `mlir::remark::reason`, is the reason.
inline mlir::remark::detail::InFlightRemark missed(const FastPath &path, mlir::Operation *op) {
  return mlir::remark::missed(op->getLoc(), optionsFor(path, op));
}

/// Says what was decided about `op`; false where nobody asks for decisions. What is streamed in, by
/// `mlir::remark::reason`, is the decision.
inline mlir::remark::detail::InFlightRemark decided(const Decision &decision, mlir::Operation *op) {
  return mlir::remark::analysis(op->getLoc(), optionsFor(decision, op));
}

/// Whether anybody asks, for reasons that take work to find.
inline bool asked(mlir::Operation *op) { return op->getContext()->getRemarkEngine(); }

} // namespace weft::remarks

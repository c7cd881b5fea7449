// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Remarks of one compilation, kept as JSON.
#pragma once

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/JSON.h"

namespace weft::capi {

/// While this lives, the context's remarks are kept, each once: {"name", "category", "function", "message", "file",
/// "line", "column"}, in the order in which the compiler came to them; those of fast paths that were not taken apart
/// from those of decisions.
class RemarkCollector {
public:
  /// `missed` and `decisions` say which are asked for.
  RemarkCollector(mlir::MLIRContext &context, bool missed, bool decisions);
  ~RemarkCollector();
  RemarkCollector(const RemarkCollector &) = delete;
  RemarkCollector &operator=(const RemarkCollector &) = delete;

  llvm::json::Array takeMissed() { return std::move(missed); }
  llvm::json::Array takeDecisions() { return std::move(decisions); }

private:
  mlir::MLIRContext &context;
  llvm::json::Array missed, decisions;
};

} // namespace weft::capi

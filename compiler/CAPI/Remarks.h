// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Remarks of one compilation, kept as JSON.
#pragma once

#include "mlir/IR/MLIRContext.h"
#include "llvm/Support/JSON.h"

namespace weft::capi {

/// While this lives, the context's remarks of fast paths that were not taken are kept, each once: {"name", "category",
/// "function", "message", "file", "line", "column"}, in the order in which the compiler came to them.
class RemarkCollector {
public:
  explicit RemarkCollector(mlir::MLIRContext &context);
  ~RemarkCollector();
  RemarkCollector(const RemarkCollector &) = delete;
  RemarkCollector &operator=(const RemarkCollector &) = delete;

  llvm::json::Array take() { return std::move(kept); }

private:
  mlir::MLIRContext &context;
  llvm::json::Array kept;
};

} // namespace weft::capi

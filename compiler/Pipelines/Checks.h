// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the compiler checks of itself while it compiles, where the environment asks for it. Debian's MLIR is built
// without MLIR_ENABLE_EXPENSIVE_PATTERN_API_CHECKS; what of that can be done from outside is done here.
#pragma once

#include "compiler/Pipelines/Pipelines.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/PatternMatch.h"
#include "llvm/ADT/StringMap.h"
#include <memory>
#include <optional>

namespace weft {

/// How much is checked. Each includes those before it.
enum class Checks {
  None,
  VerifyStages, ///< WEFT_VERIFY=stages: the IR's verifiers after each stage
  Verify,       ///< WEFT_VERIFY=1: after each pass
  Expensive, ///< WEFT_EXPENSIVE_CHECKS=1: patterns, stages and LLVM's IR, as this page says; takes many times as long
};

/// What the environment asks for.
Checks checksAsked();

/// Holds each pattern of a greedy rewrite to what MLIR asks of it: one that fails leaves the IR as it is, one that
/// succeeds changes it, and what it leaves is valid. A pattern that breaks this is an error at the op that it was
/// given.
class PatternChecks : public mlir::RewriterBase::Listener {
public:
  void notifyPatternBegin(const mlir::Pattern &pattern, mlir::Operation *op) override;
  void notifyPatternEnd(const mlir::Pattern &pattern, mlir::LogicalResult status) override;

private:
  /// Reports that the pattern did `what`.
  void report(const mlir::Pattern &pattern, llvm::StringRef what);

  mlir::Operation *root = nullptr; // the function around the op, which no pattern erases
  mlir::LocationAttr at;           // the op, which the pattern may erase
  std::optional<mlir::OperationFingerPrint> before;
};

/// Passes of stages by `Stage::keptAs`, for one context: each simplification among them has the patterns of all dialects,
/// which are collected and sorted once.
using KeptPasses = llvm::StringMap<std::unique_ptr<mlir::PassManager>>;

/// Runs a stage, whose passes are kept where nothing is checked. With expensive checks also: run on a copy of the module it gives the same text, so that nothing hangs
/// on where ops lie in memory; and that text, parsed, prints the same. A stage that breaks this is an error.
mlir::LogicalResult runStage(const Stage &stage, mlir::ModuleOp module, Checks checks, KeptPasses *kept = nullptr);

} // namespace weft

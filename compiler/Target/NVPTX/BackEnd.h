// Part of Weft. SPDX-License-Identifier: Apache-2.0
// LLVM's NVPTX back end, without the passes that cost more than they give.
#pragma once

#include "llvm/ADT/SmallVector.h"
#include "llvm/IR/LegacyPassManager.h"
#include <functional>

namespace weft {

/// A pass manager that hands every pass on to `passes`, but for those that compiling a kernel is better without: see
/// BackEnd.cpp. A target machine adds its back end to this as to any other. What `beforePrinting` makes runs, in
/// that order, on the machine code that is printed.
class ChosenPasses : public llvm::legacy::PassManagerBase {
public:
  explicit ChosenPasses(llvm::legacy::PassManager &passes,
                        std::function<llvm::SmallVector<llvm::Pass *>()> beforePrinting)
      : passes(passes), beforePrinting(std::move(beforePrinting)) {}

  void add(llvm::Pass *pass) override;

private:
  llvm::legacy::PassManager &passes;
  std::function<llvm::SmallVector<llvm::Pass *>()> beforePrinting;
  bool numbers = false; // whether the back end has come to its first value numbering
};

} // namespace weft

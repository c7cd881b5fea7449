// Part of Weft. SPDX-License-Identifier: Apache-2.0
// LLVM's NVPTX back end, without the passes that cost more than they give.
#pragma once

#include "llvm/IR/LegacyPassManager.h"

namespace weft {

/// A pass manager that hands every pass on to `passes`, but for those that compiling a kernel is better without: see
/// BackEnd.cpp. A target machine adds its back end to this as to any other.
class ChosenPasses : public llvm::legacy::PassManagerBase {
public:
  explicit ChosenPasses(llvm::legacy::PassManager &passes) : passes(passes) {}

  void add(llvm::Pass *pass) override;

private:
  llvm::legacy::PassManager &passes;
};

} // namespace weft

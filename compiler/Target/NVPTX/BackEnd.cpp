// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See BackEnd.h. Straight line strength reduction looks for addresses that differ from earlier ones by a known value.
// For each it asks of every candidate whether reusing it could carry poison further, which walks what the candidate was
// computed from: of a kernel with thousands of addresses that is half of the time to compile it, up to four fifths.
// Addresses are shared by our own layouts before that, so the pass changes instructions by a percent, up as often as
// down.

#include "compiler/Target/NVPTX/BackEnd.h"
#include "llvm/Pass.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include <memory>

using namespace llvm;

/// Whether a pass is the one that LLVM's command line calls `argument`.
static bool isPass(const Pass &pass, StringRef argument) {
  const PassInfo *info = PassRegistry::getPassRegistry()->getPassInfo(pass.getPassID());
  return info && info->getPassArgument() == argument;
}

void weft::ChosenPasses::add(Pass *pass) {
  if (isPass(*pass, "slsr"))
    std::unique_ptr<Pass> unused(pass);
  else
    passes.add(pass);
}

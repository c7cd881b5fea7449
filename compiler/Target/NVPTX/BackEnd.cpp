// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See BackEnd.h. Straight line strength reduction looks for addresses that differ from earlier ones by a known value.
// For each it asks of every candidate whether reusing it could carry poison further, which walks what the candidate was
// computed from: of kernels with thousands of addresses that was a quarter to four fifths of the back end's time.
// Machine instructions differ by about a percent without it, in either direction (docs/Benchmarks.md).

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
  if (pass->getPassName() == "NVPTX Assembly Printer")
    for (Pass *each : beforePrinting())
      passes.add(each);
  if (isPass(*pass, "slsr"))
    std::unique_ptr<Pass> unused(pass);
  else
    passes.add(pass);
}

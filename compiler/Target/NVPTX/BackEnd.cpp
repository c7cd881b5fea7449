// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See BackEnd.h. Straight line strength reduction looks for addresses that differ from earlier ones by a known value.
// For each it asks of every candidate whether reusing it could carry poison further, which walks what the candidate was
// computed from: of kernels with thousands of addresses that was a quarter to four fifths of the back end's time.
// Machine instructions differ by about a percent without it, in either direction (docs/Benchmarks.md).
//
// Global value numbering runs twice, after addresses are split and after loops' strength is reduced. The first time it
// finds what the optimiser's own passes have left of common subexpressions, which is nothing: of 1,375 modules 1,361 stay
// as they are without it, and the others' machine instructions come to 1.0002 of what they were.

#include "compiler/Target/NVPTX/BackEnd.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Pass.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include <memory>

using namespace llvm;

/// What LLVM's command line calls a pass; "" where it has no name.
static StringRef argumentOf(const Pass &pass) {
  const PassInfo *info = PassRegistry::getPassRegistry()->getPassInfo(pass.getPassID());
  return info ? info->getPassArgument() : StringRef();
}

/// Whether no kernel needs a pass.
static bool isOfNoUse(StringRef pass) {
  constexpr StringLiteral unused[] = {
      "slsr", "consthoist",
      // of variables on a stack: only what is printed lies there
      "sroa", "safe-stack", "stack-protector", "stack-coloring", "stack-slot-coloring", "stack-frame-layout",
      // of garbage collectors, exceptions and calls of C's library
      "gc-lowering", "shadow-stack-gc-lowering", "gc-analysis", "fixup-statepoint-caller-saved", "lowerinvoke",
      "callbrprepare", "objc-arc-contract", "mergeicmps", "expand-memcmp", "partially-inline-libcalls",
      "replace-with-veclib",
      // of instrumented code, and of variables' places in debug information, which has lines alone
      "fentry-insert", "xray-instrumentation", "machine-sanmd", "post-inline-ee-instrument",
      "removeredundantdebugvalues", "livedebugvalues",
      // which does nothing where a target does not ask for it
      "machine-scheduler"};
  return is_contained(unused, pass);
}

void weft::ChosenPasses::add(Pass *pass) {
  if (pass->getPassName() == "NVPTX Assembly Printer")
    for (Pass *each : beforePrinting())
      passes.add(each);
  StringRef argument = argumentOf(*pass);
  const bool isFirstNumbering = argument == "gvn" && !numbers;
  numbers |= isFirstNumbering;
  if (isFirstNumbering || isOfNoUse(argument))
    std::unique_ptr<Pass> unused(pass);
  else
    passes.add(pass);
}

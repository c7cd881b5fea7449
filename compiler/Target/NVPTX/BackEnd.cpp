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
#include "llvm/ADT/SmallString.h"
#include "llvm/CodeGen/AsmPrinter.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/MCStreamer.h"
#include "llvm/Pass.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

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

/// Whether a pass has nothing to do where there is at most one branch: there are no loops whose strength to reduce, and what
/// is alike in one block has been found before. Sums are reassociated otherwise in 20 of 1,673 modules; their machine
/// instructions come to 0.9994 of what they were.
static bool isOfLoops(StringRef pass) {
  constexpr StringLiteral ofLoops[] = {"nary-reassociate", "canon-freeze", "loop-reduce", "gvn", "early-machinelicm"};
  return is_contained(ofLoops, pass);
}

namespace {

/// A pass manager that hands every pass on to `passes`, but for those that compiling a kernel is better without. A target
/// machine adds its back end to this as to any other.
class ChosenPasses : public legacy::PassManagerBase {
public:
  ChosenPasses(legacy::PassManager &passes, const weft::BackEnd::MachinePasses &beforePrinting, weft::Flow flow)
      : passes(passes), beforePrinting(beforePrinting), flow(flow) {}

  void add(Pass *pass) override;

  /// The pass that prints; none before it is added.
  AsmPrinter *printer() const { return printing; }

private:
  legacy::PassManager &passes;
  const weft::BackEnd::MachinePasses &beforePrinting;
  const weft::Flow flow;
  AsmPrinter *printing = nullptr;
  bool numbers = false; // whether the back end has come to its first value numbering
};

} // namespace

void ChosenPasses::add(Pass *pass) {
  if (pass->getPassName() == "NVPTX Assembly Printer") {
    for (Pass *each : beforePrinting())
      passes.add(each);
    printing = static_cast<AsmPrinter *>(pass);
  }
  StringRef argument = argumentOf(*pass);
  const bool isFirstNumbering = argument == "gvn" && !numbers;
  numbers |= isFirstNumbering;
  if (isFirstNumbering || isOfNoUse(argument) || (flow == weft::Flow::Plain && isOfLoops(argument)))
    std::unique_ptr<Pass> unused(pass);
  else
    passes.add(pass);
}

weft::BackEnd::BackEnd(std::unique_ptr<TargetMachine> machine, MachinePasses beforePrinting, bool verify)
    : machine(std::move(machine)), beforePrinting(std::move(beforePrinting)), verify(verify) {}

weft::BackEnd::~BackEnd() = default;

std::optional<std::string> weft::BackEnd::print(Module &module, Flow flow) {
  constexpr size_t bufferBytes = 1 << 16; // the printer writes a few letters at a time
  constexpr auto asText = CodeGenFileType::AssemblyFile;
  SmallString<0> text;
  raw_svector_ostream stream(text);
  static_cast<raw_ostream &>(stream).SetBufferSize(bufferBytes);
  auto &[passes, printer] = flow == Flow::Plain ? plain : any;
  if (!passes) {
    passes = std::make_unique<legacy::PassManager>();
    ChosenPasses chosen(*passes, beforePrinting, flow);
    if (machine->addPassesToEmitFile(chosen, stream, nullptr, asText, /*DisableVerify=*/!verify))
      return std::nullopt;
    printer = chosen.printer();
  } else if (auto streamer = machine->createMCStreamer(stream, nullptr, asText, printer->OutContext)) {
    printer->OutStreamer = std::move(*streamer);
  } else {
    return consumeError(streamer.takeError()), std::nullopt;
  }
  passes->run(module);
  printer->OutStreamer.reset(); // which has the rest of the text until it ends
  static_cast<raw_ostream &>(stream).flush();
  return text.str().str();
}

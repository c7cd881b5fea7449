// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Checks.h.

#include "compiler/Pipelines/Checks.h"
#include "mlir/IR/OwningOpRef.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/StringSwitch.h"
#include <cstdlib>

using namespace mlir;

namespace weft {

static StringRef environment(const char *variable) {
  const char *value = std::getenv(variable);
  return value ? value : "";
}

Checks checksAsked() {
  if (environment("WEFT_EXPENSIVE_CHECKS") == "1")
    return Checks::Expensive;
  return llvm::StringSwitch<Checks>(environment("WEFT_VERIFY"))
      .Case("stages", Checks::VerifyStages)
      .Case("1", Checks::Verify)
      .Default(Checks::None);
}

// --- patterns ---

void PatternChecks::report(const Pattern &pattern, StringRef what) {
  emitError(Location(at)) << "the pattern '" << pattern.getDebugName() << "' " << what;
}

void PatternChecks::notifyPatternBegin(const Pattern &, Operation *op) {
  root = op->getParentOfType<FunctionOpInterface>();
  if (!root)
    return;
  at = op->getLoc();
  before.emplace(root);
}

void PatternChecks::notifyPatternEnd(const Pattern &pattern, LogicalResult status) {
  if (!root)
    return;
  bool changed = OperationFingerPrint(root) != *before;
  if (failed(status) && changed)
    report(pattern, "failed, but changed the IR");
  if (succeeded(status) && !changed)
    report(pattern, "succeeded, but changed nothing");
  if (succeeded(status) && failed(verify(root)))
    report(pattern, "left IR that is not valid");
}

// --- stages ---

/// A stage's passes, kept from an earlier module or for later ones.
static PassManager &keptPasses(const Stage &stage, MLIRContext *context, KeptPasses &kept) {
  std::unique_ptr<PassManager> &passes = kept[stage.keptAs];
  if (!passes) {
    passes = std::make_unique<PassManager>(context);
    passes->enableVerifier(false);
    stage.addPasses(*passes);
  }
  return *passes;
}

static LogicalResult runPasses(const Stage &stage, ModuleOp module, Checks checks) {
  PassManager passes(module.getContext());
  passes.enableVerifier(checks >= Checks::Verify);
  // A pass that crashes leaves the module before it, and the passes, in a file that weft-opt runs.
  if (const char *file = std::getenv("WEFT_REPRODUCER"))
    passes.enableCrashReproducerGeneration(file, /*genLocalReproducer=*/true);
  stage.addPasses(passes);
  if (failed(passes.run(module)))
    return failure();
  return checks == Checks::VerifyStages ? verify(module) : success();
}

static std::string textOf(ModuleOp module) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream, OpPrintingFlags().enableDebugInfo());
  return text;
}

/// The first line in which two texts differ.
static StringRef firstDifference(StringRef one, StringRef other) {
  while (!one.empty() || !other.empty()) {
    auto [line, rest] = one.split('\n');
    auto [otherLine, otherRest] = other.split('\n');
    if (line != otherLine)
      return line.trim();
    one = rest;
    other = otherRest;
  }
  return {};
}

/// What a check found, with the first line that shows it.
static LogicalResult differs(ModuleOp module, const Stage &stage, StringRef what, StringRef one, StringRef other) {
  auto error = module.emitError() << "the IR after the stage '" << stage.name << "' " << what;
  error.attachNote() << "first in the line '" << firstDifference(one, other) << "'";
  return error;
}

/// Whether any error was reported while this lives.
namespace {
class ErrorWatch {
public:
  explicit ErrorWatch(MLIRContext *context)
      : engine(context->getDiagEngine()), id(engine.registerHandler([this](Diagnostic &diagnostic) {
          any |= diagnostic.getSeverity() == DiagnosticSeverity::Error;
          return failure(); // the next handler keeps it
        })) {}
  ~ErrorWatch() { engine.eraseHandler(id); }
  bool any = false;

private:
  DiagnosticEngine &engine;
  DiagnosticEngine::HandlerID id;
};
} // namespace

LogicalResult runStage(const Stage &stage, ModuleOp module, Checks checks, KeptPasses *kept) {
  if (kept && !stage.keptAs.empty() && checks == Checks::None && !std::getenv("WEFT_REPRODUCER"))
    return keptPasses(stage, module.getContext(), *kept).run(module);
  if (checks != Checks::Expensive)
    return runPasses(stage, module, checks);
  OwningOpRef<ModuleOp> copy = module.clone();
  ErrorWatch errors(module.getContext());
  if (failed(runPasses(stage, module, checks)) || errors.any)
    return failure();
  if (failed(runPasses(stage, *copy, checks)))
    return module.emitError("the stage '") << stage.name << "' fails on a copy of the module";
  std::string text = textOf(module);
  if (std::string again = textOf(*copy); again != text)
    return differs(module, stage, "is another when the stage is run on a copy of the module", text, again);
  OwningOpRef<ModuleOp> parsed = parseSourceString<ModuleOp>(text, ParserConfig(module.getContext()));
  if (!parsed)
    return module.emitError("the IR after the stage '") << stage.name << "' cannot be parsed again";
  if (std::string again = textOf(*parsed); again != text)
    return differs(module, stage, "prints otherwise once it is parsed", text, again);
  return success();
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See EmitPTX.h. The order: debug scopes in MLIR, translation, the optimiser (Optimise.cpp), instruction selection.

#include "compiler/Target/NVPTX/EmitPTX.h"
#include "compiler/Support/ProcessorTime.h"
#include "compiler/Support/Remarks.h"
#include "compiler/Target/NVPTX/BackEnd.h"
#include "compiler/Target/NVPTX/Machine/AddressesInLoops.h"
#include "compiler/Target/NVPTX/Machine/OrderForRegisters.h"
#include "compiler/Target/NVPTX/Machine/ProductsUnderWay.h"
#include "compiler/Target/NVPTX/Machine/RecomputeNumbers.h"
#include "compiler/Target/NVPTX/Machine/WaitsBehindLoops.h"
#include "compiler/Target/NVPTX/Machine/WideProducts.h"
#include "compiler/Target/NVPTX/Optimise.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/Transforms/Passes.h"
#include "mlir/IR/DialectRegistry.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/NVVM/NVVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/CodeGen/MachineFunctionPass.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InlineAsm.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetMachine.h"
#include <map>
#include <tuple>

using namespace mlir;

namespace weft {
namespace {

constexpr llvm::StringLiteral tripleText = "nvptx64-nvidia-cuda";

/// Processor milliseconds of this thread since it was made, or last asked.
class Stopwatch {
public:
  double lap() {
    double start = last;
    last = processorMs();
    return last - start;
  }

private:
  double last = processorMs();
};

/// Turns what LLVM reports into MLIR diagnostics instead of an exit.
class ReportToMLIR : public llvm::DiagnosticHandler {
public:
  ReportToMLIR(Operation *module, bool *failed) : module(module), failed(failed) {}

  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override {
    std::string text;
    llvm::raw_string_ostream stream(text);
    llvm::DiagnosticPrinterRawOStream printer(stream);
    info.print(printer);
    if (info.getSeverity() == llvm::DS_Error) {
      *failed = true;
      module->emitError("LLVM cannot compile the module: ") << text;
    } else if (info.getSeverity() == llvm::DS_Warning) {
      module->emitWarning("LLVM: ") << text;
    }
    return true;
  }

private:
  Operation *module;
  bool *failed;
};

/// Sets an option of LLVM's command line, where this LLVM has it.
void setOption(StringRef name, StringRef value) {
  auto &options = llvm::cl::getRegisteredOptions();
  if (auto found = options.find(name); found != options.end())
    found->second->addOccurrence(0, found->second->ArgStr, value);
}

const llvm::Target *findBackEnd(std::string &error) {
  static const bool initialised = [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
    // Shared memory is addressed by 32 bits, as the hardware does; a row's offset and its addition to an address are
    // one instruction. LLVM has no other options for them than those of its command line.
    setOption("nvptx-short-ptr", "true");
    setOption("nvptx-mad-wide-opt", "true");
    // Loads that repeat others are gone when the back end begins (EarlyCSE in Optimise.cpp): looking for them again finds
    // none, and asks of each load what every access before it may meet.
    setOption("enable-gvn-memdep", "false");
    // Sums of many terms are not simplified further: of counts over a loop, hundreds of terms in one sum took the
    // reduction of its strength seconds. It must be less than the terms from which on LLVM leaves a sum within a sum
    // (scev-addops-inline-threshold, 500): of zext(c + such a sum) LLVM splits part of c off, and then, as the two
    // constants do not meet in one sum, puts it back, for ever.
    setOption("scalar-evolution-huge-expr-threshold", "96");
    return true;
  }();
  (void)initialised;
  return llvm::TargetRegistry::lookupTarget(llvm::Triple(tripleText), error);
}

/// The version of PTX that a module needs: the target's, or that which gave the target what the module calls. Those of
/// 8-bit floats came to sm_89 one after another (PTX ISA 9.7.9.21, "cvt", and 9.7.15.5.14, "mma").
int versionFor(const llvm::Module &module, const TargetInfo &target) {
  constexpr int ofHopper = 90, conversions = 81, products = 84, productsInHalves = 87;
  int version = target.ptxVersion;
  for (const llvm::Function &callee : module) {
    StringRef name = callee.getName();
    if (!name.starts_with("llvm.nvvm.") || !(name.contains("e4m3") || name.contains("e5m2")))
      continue;
    bool multiplies = name.contains(".mma.");
    int needed = multiplies && name.ends_with(".f16") ? productsInHalves : multiplies ? products : conversions;
    if (multiplies || target.capability() < ofHopper)
      version = std::max(version, needed);
  }
  return version;
}

std::unique_ptr<llvm::TargetMachine> makeMachine(const TargetInfo &target, int version, bool fuses,
                                                 std::string &error) {
  const llvm::Target *backEnd = findBackEnd(error);
  if (!backEnd)
    return nullptr;
  llvm::TargetOptions options;
  options.AllowFPOpFusion = fuses ? llvm::FPOpFusion::Fast : llvm::FPOpFusion::Strict; // products and sums become fma
  return std::unique_ptr<llvm::TargetMachine>(
      backEnd->createTargetMachine(llvm::Triple(tripleText), StringRef(target.name), "+ptx" + std::to_string(version),
                                   options, std::nullopt, std::nullopt, llvm::CodeGenOptLevel::Aggressive));
}

/// Whether a module needs a back end of its own. Kernels call functions to print or to trap, and LLVM numbers these calls
/// in the text, from the machine's first on; where a kernel has variables, its printer keeps notes of them beyond their end.
bool needsOwnBackEnd(const llvm::Module &module) {
  return llvm::any_of(module, [](const llvm::Function &each) { return !each.isIntrinsic() && !each.use_empty(); }) ||
         llvm::any_of(module.globals(), [](const llvm::GlobalVariable &each) { return !each.isDeclaration(); });
}

/// Gives every function a debug scope, so that locations become line numbers.
LogicalResult addDebugScopes(ModuleOp module, bool verify) {
  PassManager passes(module.getContext());
  passes.enableVerifier(verify);
  LLVM::DIScopeForLLVMFuncOpPassOptions options;
  options.emissionKind = LLVM::DIEmissionKind::DebugDirectivesOnly;
  passes.addPass(LLVM::createDIScopeForLLVMFuncOpPass(options));
  return passes.run(module);
}

} // namespace

/// Inline assembly's operands that are places in memory ("*m") say of what type that is, which the translation cannot
/// for calls without results. The back end then makes what is added to an address part of the access. Barriers are
/// convergent: LLVM gives threads no paths of their own to them. What has no effects touches no memory, so that of two
/// that are alike one is left.
static void completeAssembly(llvm::Module &module) {
  for (llvm::Function &function : module)
    for (llvm::BasicBlock &block : function)
      for (llvm::Instruction &instruction : block) {
        auto *call = dyn_cast<llvm::CallInst>(&instruction);
        auto *assembly = call ? dyn_cast<llvm::InlineAsm>(call->getCalledOperand()) : nullptr;
        if (!assembly)
          continue;
        if (assembly->getAsmString().contains(" bar."))
          call->addFnAttr(llvm::Attribute::Convergent);
        unsigned argument = 0;
        bool reaches = assembly->hasSideEffects();
        for (const llvm::InlineAsm::ConstraintInfo &constraint : assembly->ParseConstraints()) {
          if (constraint.isIndirect)
            call->addParamAttr(argument, llvm::Attribute::get(module.getContext(), llvm::Attribute::ElementType,
                                                              llvm::Type::getInt8Ty(module.getContext())));
          argument += constraint.hasArg();
          reaches |= constraint.isIndirect || llvm::is_contained(constraint.Codes, "{memory}");
        }
        if (!reaches)
          call->setDoesNotAccessMemory();
      }
}

static void sayRecomputed(ModuleOp module, StringRef kernel, int count) {
  if (auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(kernel))
    remarks::missed(remarks::registerOrder, function)
        << remark::reason("registers lack for {0} indices beside the values of loops, so that they are computed again "
                          "where they are used",
                          count);
}

static void sayReordered(ModuleOp module, StringRef kernel, Reordered found) {
  if (auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(kernel))
    remarks::missed(remarks::registerOrder, function)
        << remark::reason("the values that live at once take {0} registers, more than a thread has; ordered anew, {1}",
                          found.before, found.after);
}

static void sayAwaited(ModuleOp module, StringRef kernel, int waits) {
  if (auto function = module.lookupSymbol<LLVM::LLVMFuncOp>(kernel))
    remarks::missed(remarks::productsUnderWay, function)
        << remark::reason("sums change places while products add to them; waits before that: {0}", waits);
}

/// Holds a module to LLVM's rules, after `completeAssembly`, which the translation's own check precedes.
static LogicalResult verify(const llvm::Module &llvmModule, ModuleOp module, StringRef which) {
  std::string faults;
  llvm::raw_string_ostream stream(faults);
  if (llvm::verifyModule(llvmModule, &stream))
    return module.emitError("the ") << which << " LLVM IR is not valid: " << faults;
  return success();
}

namespace {

/// A back end, and the module that it compiles, at which its own passes report.
struct Compiling {
  ModuleOp module;
  std::optional<BackEnd> backEnd;
};
using Key = std::tuple<const TargetInfo *, int, bool>; // target, version, whether products and sums become one

/// Back ends that the kernels compiled by a thread have shared.
std::map<Key, std::shared_ptr<Compiling>> &sharedBackEnds() {
  static thread_local std::map<Key, std::shared_ptr<Compiling>> shared;
  return shared;
}

} // namespace

/// A back end that lives as long as what is returned, where it was made; `error` says why not.
static std::shared_ptr<Compiling> makeBackEnd(const Key &key, int registers, bool verify, std::string &error) {
  auto [target, version, fuses] = key;
  std::unique_ptr<llvm::TargetMachine> machine = makeMachine(*target, version, fuses, error);
  if (!machine)
    return nullptr;
  auto made = std::make_shared<Compiling>();
  RegisterReports reports{
      [at = made.get()](StringRef kernel, Reordered found) { sayReordered(at->module, kernel, found); },
      [at = made.get()](StringRef kernel, int count) { sayRecomputed(at->module, kernel, count); }};
  auto awaited = [at = made.get()](StringRef kernel, int waits) { sayAwaited(at->module, kernel, waits); };
  RegisterLimits limits{registers ? registers : target->registersPerThread, target->registersPerProcessor};
  auto ownPasses = [=]() -> llvm::SmallVector<llvm::Pass *> {
    return {createWideProducts(),     createAddressesInLoops(),
            createRecomputeNumbers(), createOrderForRegisters(limits, reports),
            createWaitsBehindLoops(), createProductsUnderWay(awaited)};
  };
  made->backEnd.emplace(std::move(machine), ownPasses, verify);
  return made;
}

/// The back end for a module. Kernels that a thread compiles one after another share one: to make it takes an eighth of
/// compiling a small kernel.
static std::shared_ptr<Compiling> backEndFor(const Key &key, EmitOptions options, const llvm::Module &module,
                                             std::string &error) {
  if (options.registers || options.verify || needsOwnBackEnd(module))
    return makeBackEnd(key, options.registers, options.verify, error);
  std::shared_ptr<Compiling> &shared = sharedBackEnds()[key];
  if (!shared)
    shared = makeBackEnd(key, options.registers, options.verify, error);
  return shared;
}

void registerPTXTranslations(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
  registerNVVMDialectTranslation(registry);
}

FailureOr<EmittedPTX> emitPTX(ModuleOp module, const TargetInfo &target, EmitOptions options) {
  EmittedPTX result;
  Stopwatch watch;
  bool failed = false;
  if (options.lineInfo && mlir::failed(addDebugScopes(module, options.verify)))
    return failure();
  llvm::LLVMContext context;
  context.setDiagnosticHandler(std::make_unique<ReportToMLIR>(module, &failed));
  std::unique_ptr<llvm::Module> llvmModule =
      translateModuleToLLVMIR(module, context, "weft", /*disableVerification=*/true);
  if (!llvmModule)
    return module.emitError("cannot be translated to LLVM IR"), failure();
  completeAssembly(*llvmModule);
  result.translateMs = watch.lap();
  if (options.verify && mlir::failed(verify(*llvmModule, module, "translated")))
    return failure();

  std::string error;
  result.version = versionFor(*llvmModule, target);
  const Key key{&target, result.version, !module->hasAttr(roundsProductsAttrName)};
  std::shared_ptr<Compiling> compiling = backEndFor(key, options, *llvmModule, error);
  if (!compiling)
    return module.emitError("LLVM has no back end for '") << StringRef(target.name) << "': " << error, failure();
  llvm::TargetMachine &machine = compiling->backEnd->targetMachine();
  llvmModule->setTargetTriple(llvm::Triple(tripleText));
  llvmModule->setDataLayout(machine.createDataLayout());
  const Flow flow = optimise(*llvmModule, machine);
  result.optimiseMs = watch.lap();
  if (options.verify && mlir::failed(verify(*llvmModule, module, "optimised")))
    return failure();
  if (options.keepLLVM) {
    llvm::raw_string_ostream stream(result.llvmIR);
    llvmModule->print(stream, nullptr);
    watch.lap();
  }

  compiling->module = module;
  std::optional<std::string> text = compiling->backEnd->print(*llvmModule, flow);
  if (!text || failed)
    sharedBackEnds().erase(key); // whose passes have not come to their end
  if (!text)
    return module.emitError("LLVM's back end for '") << StringRef(target.name) << "' cannot emit PTX", failure();
  result.text = std::move(*text);
  result.instructionSelectMs = watch.lap();
  if (failed)
    return failure();
  return result;
}

} // namespace weft

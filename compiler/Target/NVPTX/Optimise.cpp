// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The passes a kernel needs. Loops arrive rotated, unrolled as the schedule wants and with their invariants outside;
// memory is not promoted, as nothing is on a stack. What is left: folding, common subexpressions, dead code, the shape
// of the flow. The back end itself splits constant offsets from addresses and strength-reduces them.

#include "compiler/Target/NVPTX/Optimise.h"
#include "llvm/Analysis/CGSCCPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/InstCombine/InstCombine.h"
#include "llvm/Transforms/Scalar/ADCE.h"
#include "llvm/Transforms/Scalar/EarlyCSE.h"
#include "llvm/Transforms/Scalar/LICM.h"
#include "llvm/Transforms/Scalar/LoopPassManager.h"
#include "llvm/Transforms/Scalar/SimplifyCFG.h"

namespace weft {

void optimise(llvm::Module &module, llvm::TargetMachine &machine) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(&machine);
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/false));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass(/*UseMemorySSA=*/true));
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::ADCEPass());
  llvm::ModulePassManager all;
  all.addPass(llvm::createModuleToFunctionPassAdaptor(std::move(passes)));
  all.run(module, modules);
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// LLVM's NVPTX back end, without the passes that cost more than they give.
#pragma once

#include "compiler/Target/NVPTX/Optimise.h"
#include "llvm/ADT/SmallVector.h"
#include <functional>
#include <memory>
#include <optional>
#include <string>

namespace llvm {
class AsmPrinter;
class Module;
class Pass;
class TargetMachine;
namespace legacy {
class PassManager;
} // namespace legacy
} // namespace llvm

namespace weft {

/// A machine and the passes for it, which turn module after module into PTX. To build the passes takes a fourteenth of
/// compiling a small kernel.
class BackEnd {
public:
  using MachinePasses = std::function<llvm::SmallVector<llvm::Pass *>()>;

  /// What `beforePrinting` makes runs, in that order, on the machine code that is printed. `verify`: each module is
  /// verified between passes.
  BackEnd(std::unique_ptr<llvm::TargetMachine> machine, MachinePasses beforePrinting, bool verify);
  ~BackEnd();

  llvm::TargetMachine &targetMachine() { return *machine; }

  /// The PTX of a module of such kernels. None where the target has no printer.
  std::optional<std::string> print(llvm::Module &module, Flow flow);

private:
  /// Since the first module that they are for.
  struct Passes {
    std::unique_ptr<llvm::legacy::PassManager> all;
    llvm::AsmPrinter *printer = nullptr; // the last of them
  };

  std::unique_ptr<llvm::TargetMachine> machine;
  MachinePasses beforePrinting;
  bool verify;
  Passes plain, any;
};

} // namespace weft

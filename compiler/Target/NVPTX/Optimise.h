// Part of Weft. SPDX-License-Identifier: Apache-2.0
// LLVM's optimiser on a kernel.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace weft {

/// How a module's kernels flow.
enum class Flow {
  Plain, // without loops, and each with one branch at most
  Any,
};

/// Optimises a module for `machine`, in place, and says what its kernels are like.
Flow optimise(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace weft

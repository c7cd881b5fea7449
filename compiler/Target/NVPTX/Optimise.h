// Part of Weft. SPDX-License-Identifier: Apache-2.0
// LLVM's optimiser on a kernel.
#pragma once

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace weft {

/// Optimises a module for `machine`, in place.
void optimise(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace weft

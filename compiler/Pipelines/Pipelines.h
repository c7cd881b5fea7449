// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The order of passes from tile IR to the LLVM dialect.
#pragma once

#include "compiler/Conversion/AttnToTile/Attention/Schedules.h"
#include "mlir/Pass/PassManager.h"
#include <string>
#include <vector>

namespace weft {

/// A stretch of the way down with a name: what dumps and times speak of.
struct Stage {
  std::string name;                                     // "tile", "warp", "llvm"
  std::function<void(mlir::OpPassManager &)> addPasses; // adds the passes that end in this stage's IR
};

/// The stages that turn attn programs into launches of tile kernels. With `differentiate`, each program @f gets
/// @f.forward and @f.backward. After the first, "attn", every attention has its schedule: of `choices`, or the default.
std::vector<Stage> attnToTileStages(bool differentiate, llvm::ArrayRef<ScheduleChoice> choices = {});

/// The stages in order, for a module that names its target in `warp.target`:
/// "tile" (simplified), "warp" (with layouts), "pipelined" (with shared memory and asynchronous copies), "llvm" (LLVM
/// dialect).
std::vector<Stage> tileToLLVMStages();

/// All stages in one pass manager.
void buildTileToLLVM(mlir::OpPassManager &passes);

/// Registers every pass of the compiler, and the pipeline `--weft-tile-to-llvm`, for weft-opt.
void registerPasses();

} // namespace weft

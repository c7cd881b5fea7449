// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The order of passes: from attn programs to launches of tile kernels, and from those to the LLVM dialect. One kernel on
// its way down, for warp.target = "sm_80"; stage "pipelined" has nothing to do here.
//
//   tile                                              warp, each tensor with #lanes: a thread has one of 128 elements
//   func.func @double(%x: !tile.ptr<f32>)             func.func @double(%x: !tile.ptr<f32>)
//       attributes {tile.kernel} {                        attributes {tile.kernel} {
//     %i = tile.make_range {0 to 128}                   %i = tile.make_range .. : tensor<128xi32, #lanes>
//     %b = tile.splat %x                         -->    %b = tile.splat %x : .. -> tensor<128x!tile.ptr<f32>, #lanes>
//     %p = tile.addptr %b, %i                           %p = tile.addptr %b, %i
//     %v = tile.load %p                                 %v = tile.load %p {warp.contiguity = 1}
//     %d = arith.addf %v, %v : tensor<128xf32>          %d = arith.addf %v, %v : tensor<128xf32, #lanes>
//     tile.store %p, %d                                 tile.store %p, %d
//   }                                                 }
//
//   llvm, as one thread of 128 sees it
//   llvm.func @double(%x: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 128>} {
//     %i = nvvm.read.ptx.sreg.tid.x
//     %p = llvm.getelementptr %x[%i] : .., f32
//     %v = llvm.load %p
//     %d = llvm.fadd %v, %v
//     llvm.store %d, %p
//   }
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
  std::string keptAs = {}; // what tells its passes from others'; empty: they are never kept
};

/// What of the programs is linearised, and kept alone: the function of that name (@f, or @f.forward or @f.backward where
/// programs are differentiated); nothing where it has none.
struct Linearisation {
  std::string function;
  std::vector<unsigned> arguments; ///< those that have tangents; all of floats if there is none
};

/// The stages that turn attn programs into launches of tile kernels. With `differentiate`, each program @f gets
/// @f.forward and @f.backward. After the first, "attn", every attention has its schedule: of `choices`, or the default.
std::vector<Stage> attnToTileStages(bool differentiate, const KernelChoices &choices = {},
                                    const Linearisation &linearise = {});

/// The stages in order, for a module that names its target in `warp.target`:
/// "tile" (simplified), "warp" (with layouts), "pipelined" (with shared memory and asynchronous copies), "llvm" (LLVM
/// dialect). `boxes`: rings are filled by bulk copies where the target has them (`warp-pipeline`). `roles`: where
/// it pays, a warp of its own makes them (`warp-specialise`).
std::vector<Stage> tileToLLVMStages(bool boxes = true, bool roles = true);

/// All stages in one pass manager.
void buildTileToLLVM(mlir::OpPassManager &passes);

/// Registers every pass of the compiler, and the pipeline `--weft-tile-to-llvm`, for weft-opt.
void registerPasses();

} // namespace weft

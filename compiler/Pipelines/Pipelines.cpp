// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Pipelines.h.

#include "compiler/Pipelines/Pipelines.h"
#include "compiler/Conversion/AttnToTile/Passes.h"
#include "compiler/Conversion/TileToWarp/Passes.h"
#include "compiler/Conversion/WarpToLLVM/Passes.h"
#include "compiler/Differentiate/Passes.h"
#include "compiler/Pipelines/Checks.h"
#include "dialects/Attn/Transforms/Passes.h"
#include "dialects/Tile/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"

using namespace mlir;

namespace weft {

/// Folding, common subexpressions, and loop invariants out of loops.
static void simplify(OpPassManager &passes) {
  static thread_local PatternChecks checks;
  GreedyRewriteConfig config;
  if (checksAsked() == Checks::Expensive)
    config.setListener(&checks);
  passes.addPass(createCanonicalizerPass(config));
  passes.addPass(createCSEPass());
  passes.addPass(createLoopInvariantCodeMotionPass());
}

std::vector<Stage> attnToTileStages(bool differentiate, const KernelChoices &choices, const Linearisation &linearise) {
  return {
      {"attn",
       [=](OpPassManager &passes) {
         passes.addNestedPass<func::FuncOp>(attn::createAttnApplyMixers());
         simplify(passes);
         passes.addPass(createAttnNumberAttends());
         if (differentiate) {
           passes.addPass(createAttnDifferentiate());
           simplify(passes);
         }
         if (!linearise.function.empty()) {
           AttnLineariseOptions options;
           options.only = linearise.function;
           options.arguments.assign(linearise.arguments.begin(), linearise.arguments.end());
           passes.addPass(createAttnLinearise(options));
           simplify(passes);
         }
         passes.addPass(createAttnChooseSchedules(choices));
       }},
      {"launches",
       [](OpPassManager &passes) {
         passes.addPass(createAttnToTile());
         passes.addPass(createAttnBatchLaunches());
         passes.addPass(createAttnMergeLaunches());
         passes.addPass(createAttnShareKernels());
       }},
  };
}

/// What is done on tile kernels.
static void addTilePasses(OpPassManager &passes, bool boxes) {
  passes.addNestedPass<func::FuncOp>(tile::createTileSplitSizes());
  passes.addNestedPass<func::FuncOp>(tile::createTileUnrollLoops());
  passes.addNestedPass<func::FuncOp>(warp::createWarpFoldExpScale());
  simplify(passes);
  passes.addNestedPass<func::FuncOp>(tile::createTileCountLoops());
  passes.addNestedPass<func::FuncOp>(tile::createTileHoistLoads());
  passes.addNestedPass<func::FuncOp>(tile::createTileJoinCounters());
  passes.addNestedPass<func::FuncOp>(tile::createTileNarrowExtrema());
  passes.addNestedPass<func::FuncOp>(tile::createTileNarrowIndices());
  passes.addNestedPass<func::FuncOp>(tile::createTileInlineLoops());
  if (boxes)
    passes.addNestedPass<func::FuncOp>(createTileMarkWraps());
  passes.addNestedPass<func::FuncOp>(warp::createWarpFoldMaxScale());
  passes.addNestedPass<func::FuncOp>(createTileSplitInterior());
}

std::vector<Stage> tileToLLVMStages(bool boxes, bool roles) {
  std::vector<Stage> stages{
      {"tile", [boxes](OpPassManager &passes) { addTilePasses(passes, boxes); }},
      {"warp", [](OpPassManager &passes) { passes.addPass(createTileToWarp()); }},
      {"pipelined",
       [boxes, roles](OpPassManager &passes) {
         passes.addNestedPass<func::FuncOp>(warp::createWarpDeferReduction());
         passes.addNestedPass<func::FuncOp>(warp::createWarpStageWgmma());
         passes.addNestedPass<func::FuncOp>(warp::createWarpStageOperands());
         passes.addNestedPass<func::FuncOp>(warp::createWarpStageLoads());
         passes.addNestedPass<func::FuncOp>(warp::createWarpStageValues());
         passes.addNestedPass<func::FuncOp>(warp::createWarpReloadOperands());
         passes.addNestedPass<func::FuncOp>(warp::createWarpPipeline({boxes}));
         if (roles)
           passes.addNestedPass<func::FuncOp>(warp::createWarpSpecialise());
         if (boxes)
           passes.addNestedPass<func::FuncOp>(warp::createWarpCopyWithRing());
         passes.addNestedPass<func::FuncOp>(warp::createWarpAwaitCopiesLate());
         passes.addNestedPass<func::FuncOp>(warp::createWarpLoadAhead());
         if (boxes)
           passes.addNestedPass<func::FuncOp>(warp::createWarpStoreBoxes());
         passes.addNestedPass<func::FuncOp>(warp::createWarpPersist());
         passes.addNestedPass<func::FuncOp>(warp::createWarpKeepRings());
         passes.addNestedPass<func::FuncOp>(warp::createWarpSplitLoops());
         passes.addNestedPass<func::FuncOp>(warp::createWarpMaskSpans());
         passes.addNestedPass<func::FuncOp>(warp::createWarpJoinBounds());
         simplify(passes);
         passes.addNestedPass<func::FuncOp>(warp::createWarpPlaceTotals());
         passes.addNestedPass<func::FuncOp>(warp::createWarpReadLate());
         passes.addNestedPass<func::FuncOp>(warp::createWarpJoinExchanges());
         passes.addNestedPass<func::FuncOp>(warp::createWarpBeginTensorMemory());
         passes.addNestedPass<func::FuncOp>(warp::createWarpAllocateShared());
         passes.addNestedPass<func::FuncOp>(warp::createWarpOwnBytes());
         passes.addNestedPass<func::FuncOp>(warp::createWarpInsertBarriers());
         passes.addNestedPass<func::FuncOp>(warp::createWarpInsertProxyFences());
         passes.addNestedPass<func::FuncOp>(warp::createWarpAddBehind());
         passes.addNestedPass<func::FuncOp>(warp::createWarpDeferWaits());
         passes.addNestedPass<func::FuncOp>(warp::createWarpOrderAccesses());
         passes.addNestedPass<func::FuncOp>(warp::createWarpSkipRows());
         passes.addNestedPass<func::FuncOp>(warp::createWarpTakeTurns());
         passes.addNestedPass<func::FuncOp>(warp::createWarpShareExponentials());
         passes.addNestedPass<func::FuncOp>(warp::createWarpMulticast());
         passes.addNestedPass<func::FuncOp>(warp::createWarpSplitRoles());
         passes.addNestedPass<func::FuncOp>(warp::createWarpFenceProducts());
         passes.addNestedPass<func::FuncOp>(warp::createWarpSkipScaling());
         passes.addNestedPass<func::FuncOp>(warp::createWarpTensorMemory({/*mark=*/true}));
         passes.addNestedPass<func::FuncOp>(warp::createWarpReleaseLate());
       }},
      {"llvm", [](OpPassManager &passes) { passes.addPass(createConvertWarpToLLVM()); }},
  };
  for (Stage &stage : stages)
    stage.keptAs = stage.name + (boxes ? "" : ", no boxes") + (roles ? "" : ", no roles");
  return stages;
}

void buildTileToLLVM(OpPassManager &passes) {
  for (const Stage &stage : tileToLLVMStages())
    stage.addPasses(passes);
}

void registerPasses() {
  attn::registerAttnPasses();
  registerDifferentiatePasses();
  registerAttnToTilePasses();
  tile::registerTilePasses();
  registerTileToWarpPasses();
  warp::registerWarpPasses();
  registerWarpToLLVMPasses();
  PassPipelineRegistration<>("weft-tile-to-llvm", "from tile IR to the LLVM dialect, all passes", buildTileToLLVM);
}

} // namespace weft

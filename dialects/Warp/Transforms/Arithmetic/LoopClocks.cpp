// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Arithmetic/LoopClocks.h"

#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/OperandsOfLoops.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace weft::warp {

bool isSpecial(Operation *op) {
  return isa<math::ExpOp, math::Exp2Op, math::LogOp, math::Log2Op, math::RsqrtOp, math::TanhOp>(op);
}

/// Multiplies and adds of 16-bit factors that a multiprocessor makes a clock; 0 where that is not known.
static double halfOperations(const TargetInfo &target) {
  if (target.latencies.halfOperations)
    return target.latencies.halfOperations;
  const targets::Gpu &gpu = target.gpus.front();
  for (const targets::MatrixRate &each : gpu.matrix)
    if (each.element == "f16")
      return each.rate / (gpu.multiprocessors * gpu.clock);
  return 0;
}

double clocksOfProducts(scf::ForOp loop, const TargetInfo &target) {
  const double rate = halfOperations(target);
  double operations = 0; // as if on 16-bit factors
  for (auto product : loop.getBody()->getOps<WgmmaOp>()) {
    auto sums = cast<RankedTensorType>(product.getResult().getType());
    SharedType tile = cast<SharedType>(product.getB().getType()); // [k, n]
    operations +=
        2.0 * sums.getNumElements() * tile.getShape().front() * tile.getElementType().getIntOrFloatBitWidth() / 16;
  }
  return rate > 0 ? operations / rate : 0;
}

double clocksOfSpecials(scf::ForOp loop, int warps, const TargetInfo &target) {
  int64_t perThread = 0;
  loop.walk([&](Operation *op) {
    if (isSpecial(op))
      perThread += registersOf(op->getResult(0));
  });
  return double(perThread) * warps * target.warpSize / target.specialLanes;
}

/// Whether a product of f32 is part of the sum that alone takes it: one instruction (fma).
static bool isPartOfSum(Operation *op) {
  return isa<arith::MulFOp>(op) && op->hasOneUse() && isa<arith::AddFOp, arith::SubFOp>(*op->getUsers().begin());
}

/// Instructions of a thread for an op. Conversions to 16 bits take two elements, as arithmetic of f32 does where the target
/// has it of pairs; extrema are found of three at once where it has those.
static double instructionsOf(Operation *op, const TargetInfo &target) {
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return double(registersOf(reduce.getSources().front())) / (target.extremaOfThree || target.float32Pairs ? 2 : 1);
  const bool isElementwise = isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
  if (!isElementwise || op->hasTrait<OpTrait::ConstantLike>() || op->getNumResults() != 1 || isPartOfSum(op))
    return 0;
  const double registers = registersOf(op->getResult(0));
  const bool isOfPairs = isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, math::FmaOp>(op) && target.float32Pairs;
  return isOfPairs || isa<arith::TruncFOp>(op) ? registers / 2 : registers;
}

double clocksOfIssue(scf::ForOp loop, int warps, const TargetInfo &target) {
  // Beside what elements take, attention's interior loops on sm_100a have 150 to 181 (docs/Benchmarks.md).
  double perThread = 150;
  loop.walk([&](Operation *op) { perThread += instructionsOf(op, target); });
  return perThread * warps / target.schedulers;
}

} // namespace weft::warp

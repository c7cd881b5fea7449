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

double clocksOfProducts(scf::ForOp loop, const TargetInfo &target) {
  const targets::Gpu &gpu = target.gpus.front();
  double rate = 0; // multiplies and adds of 16-bit factors a clock
  for (const targets::MatrixRate &each : gpu.matrix)
    if (each.element == "f16")
      rate = each.rate / (gpu.multiprocessors * gpu.clock);
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

/// Instructions of a thread for an op. Conversions to 16 bits take two elements, as arithmetic of f32 does where the target
/// has it of pairs; extrema are found of three at once where it has those.
static double instructionsOf(Operation *op, const TargetInfo &target) {
  if (auto reduce = dyn_cast<tile::ReduceOp>(op))
    return double(registersOf(reduce.getSources().front())) / (target.extremaOfThree || target.float32Pairs ? 2 : 1);
  const bool isElementwise = isa<arith::ArithDialect, math::MathDialect>(op->getDialect());
  if (!isElementwise || op->hasTrait<OpTrait::ConstantLike>() || op->getNumResults() != 1)
    return 0;
  const double registers = registersOf(op->getResult(0));
  const bool isOfPairs = isa<arith::AddFOp, arith::SubFOp, arith::MulFOp, math::FmaOp>(op);
  return isOfPairs && target.float32Pairs ? registers / 2 : registers;
}

double clocksOfIssue(scf::ForOp loop, int warps, const TargetInfo &target) {
  // Of attention's interior loops on sm_100a, 1.36 and 1.43 times what their elements take (docs/Benchmarks.md).
  constexpr double withOthers = 1.4;
  double perThread = 0;
  loop.walk([&](Operation *op) { perThread += instructionsOf(op, target); });
  return withOthers * perThread * warps / target.schedulers;
}

} // namespace weft::warp

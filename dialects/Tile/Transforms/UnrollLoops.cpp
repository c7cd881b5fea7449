// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile-unroll-loops: a loop of few short iterations is all of them, one after another.
//
//   %r = scf.for %i = %c0 to %c3 step %c1 iter_args(%x = %a) { ... f(%x, %i) }     -->     f(f(f(%a, 0), 1), 2)
//
// What depends on the loop's number alone (rows of a stencil, taps, halves) is then a constant, loads of several
// iterations are in flight together, and neither a counter nor a branch is left. Products stay in their loops: those
// are what copies run ahead of. Of a loop that asks for it (`tile.unroll_factor`) as many iterations as it asks for stand
// one after another, and another loop has the rest.
#include "dialects/Tile/IR/LoopAttributes.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Tile/IR/TileProgramOps.h"
#include "dialects/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Utils/Utils.h"
#include "llvm/Support/MathExtras.h"

namespace weft::tile {
#define GEN_PASS_DEF_TILEUNROLLLOOPS
#include "dialects/Tile/Transforms/Passes.h.inc"
} // namespace weft::tile

using namespace mlir;
using namespace weft::tile;

namespace {

/// Instructions that the iterations of a loop may come to together: twice what LLVM has for loops that it unrolls whole
/// (`-unroll-threshold` at -O3), as constants have not been folded here.
constexpr int64_t mostInstructions = 600;

/// Elements of a value that one of so many threads holds.
int64_t elementsOf(Type type, int64_t threads) {
  auto tensor = dyn_cast<RankedTensorType>(type);
  return tensor ? llvm::divideCeil(tensor.getNumElements(), threads) : 1;
}

/// About as many instructions as a thread needs for a reduction: one for each element, and for each result of its warp's
/// five exchanges between lanes, each taken in. Nothing of what a loop adds up, which lanes bring together behind it.
std::optional<int64_t> instructionsOfReduction(ReduceOp op, int64_t threads) {
  constexpr int64_t lanes = 32, ofResult = 10;
  if (llvm::any_of(op->getUsers(), [](Operation *user) { return isa<arith::AddFOp>(user); }))
    return std::nullopt;
  int64_t found = 0;
  for (auto [source, result] : llvm::zip_equal(op.getSources(), op.getResults()))
    found += elementsOf(source.getType(), threads) + ofResult * elementsOf(result.getType(), threads / lanes);
  return found;
}

/// About as many instructions as a thread needs for an op of a body; nothing where that is more than its elements tell.
std::optional<int64_t> instructionsOf(Operation *op, int64_t threads) {
  if (auto reduce = dyn_cast<ReduceOp>(op))
    return instructionsOfReduction(reduce, threads);
  if (isa<DotOp, RowDotOp, ScanOp, GatherOp, HistogramOp, InlineAsmOp, PrintOp, AssertOp, LoopLikeOpInterface>(op))
    return std::nullopt;
  if (op->hasTrait<OpTrait::ConstantLike>() || op->hasTrait<OpTrait::IsTerminator>() ||
      isa<SplatOp, BroadcastOp, ExpandDimsOp, ReshapeOp, PromiseOp, AssumeOp>(op))
    return 0;
  int64_t most = 0;
  for (Type type : op->getResultTypes())
    most = std::max(most, elementsOf(type, threads));
  for (Type type : op->getOperandTypes())
    most = std::max(most, elementsOf(type, threads));
  return most;
}

/// Whether nothing is left of a loop that who wrote the kernel asked for, where its iterations stand one after another:
/// stages are of loads that run ahead of their iterations, as those under conditions do not.
bool isFree(scf::ForOp loop) {
  auto attributes = loop->getDiscardableAttrs();
  if (attributes.empty())
    return true;
  return llvm::all_of(attributes, [](NamedAttribute each) { return each.getName() == numStagesAttrName; }) &&
         loop.getBody()->getOps<LoadOp>().empty();
}

/// Whether a loop's iterations come to so few instructions that all of them may stand one after another.
bool isShort(scf::ForOp loop, int64_t threads) {
  std::optional<APInt> trips = loop.getStaticTripCount();
  if (!trips || !isFree(loop) || trips->ugt(mostInstructions))
    return false;
  int64_t body = 0;
  WalkResult walked = loop.getBody()->walk([&](Operation *op) {
    std::optional<int64_t> instructions = instructionsOf(op, threads);
    if (!instructions)
      return WalkResult::interrupt();
    body += *instructions;
    return WalkResult::advance();
  });
  return !walked.wasInterrupted() && static_cast<int64_t>(trips->getZExtValue()) * body <= mostInstructions;
}

/// Whether nothing runs ahead of a loop's products, and nothing inside of it is a loop.
bool isPlain(scf::ForOp loop) {
  return !loop.getBody()
              ->walk([](Operation *op) {
                return isa<DotOp, RowDotOp, LoopLikeOpInterface>(op) ? WalkResult::interrupt() : WalkResult::advance();
              })
              .wasInterrupted();
}

struct UnrollLoops : weft::tile::impl::TileUnrollLoopsBase<UnrollLoops> {
  void runOnOperation() override;
};

} // namespace

void UnrollLoops::runOnOperation() {
  int64_t threads = 32 * scheduleOf(getOperation()).warps;
  // Those inside of others come first: where they are gone, what held them may be short.
  getOperation().walk([&](scf::ForOp loop) {
    auto factor = dyn_cast_or_null<IntegerAttr>(loop->removeAttr(unrollFactorAttrName));
    if (isShort(loop, threads))
      (void)loopUnrollFull(loop);
    else if (factor && factor.getInt() > 1 && isPlain(loop))
      (void)loopUnrollByFactor(loop, factor.getInt());
  });
}

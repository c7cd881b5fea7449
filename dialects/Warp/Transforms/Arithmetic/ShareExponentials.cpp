// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-share-exponentials: some of a loop's exponentials are computed by polynomials, where the units for special
// functions would take longer than its products.
//
//   scf.for {                                       scf.for {
//     %d = warp.wgmma ..                              %d = warp.wgmma ..
//     %w = math.exp2 %y : tensor<128x128xf32>  ─▶     %w = math.exp2 %y {warp.by_polynomial = 4 : i32}
//
// An exponential keeps a special-function unit for as long as many additions keep theirs, and a tile of scores has as many
// exponentials as products of 128 channels take clocks (FlashAttention-4 computes a share of them by polynomials too). How
// many are worth it depends on what else is issued.
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Arithmetic/LoopClocks.h"
#include "dialects/Warp/Transforms/OperandsOfLoops.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPSHAREEXPONENTIALS
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct ShareExponentials : weft::warp::impl::WarpShareExponentialsBase<ShareExponentials> {
  void runOnOperation() override;
};
} // namespace

/// Powers of a loop of f32, of which a thread has enough that a share of them is a number of pairs.
static SmallVector<math::Exp2Op> powersIn(scf::ForOp loop) {
  SmallVector<math::Exp2Op> powers;
  loop.walk([&](math::Exp2Op op) {
    if (getElementTypeOrSelf(op.getType()).isF32() && registersOf(op.getResult()) >= polynomialGroup)
      powers.push_back(op);
  });
  return powers;
}

namespace {
/// Clocks of a multiprocessor's units for an iteration.
struct Clocks {
  double products, specials, issue;
  bool alone; ///< whether a scheduler has one warp

  /// What is waited for longest. Matrix units wait where a warp's specials take about as long as the others' products, and
  /// for a warp alone as long as it computes.
  double most() const {
    constexpr double slack = 0.85;
    return std::max({alone ? 0 : slack * products, specials, issue});
  }
};
} // namespace

/// The clocks where of `polynomialGroup` powers of an iteration `share` are computed by polynomials.
static Clocks withShare(Clocks clocks, ArrayRef<math::Exp2Op> powers, int share, int warps, const TargetInfo &target) {
  // Of a pair: its range, its whole part, its fraction and the polynomial of that, and twice the power of the whole part;
  // less the two of the unit.
  constexpr double instructionsBeyond = 13.0 / 2;
  int64_t registers = 0;
  for (math::Exp2Op op : powers)
    registers += registersOf(op.getResult());
  const double moved = double(registers) * warps * share / polynomialGroup;
  clocks.specials -= moved * target.warpSize / target.specialLanes;
  clocks.issue += moved * instructionsBeyond / target.schedulers;
  return clocks;
}

/// The fewest that leave the unit with most to do the least.
static int bestShare(const Clocks &clocks, ArrayRef<math::Exp2Op> powers, int warps, const TargetInfo &target) {
  int best = 0;
  double least = clocks.most();
  for (int share = 2; share <= polynomialGroup / 2; share += 2)
    if (double most = withShare(clocks, powers, share, warps, target).most(); most < least) {
      best = share;
      least = most;
    }
  return best;
}

/// Whether another loop is in one: it has an iteration of its own to weigh.
static bool hasLoop(scf::ForOp loop) {
  return loop.getBody()->walk([](scf::ForOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

static void shareExponentials(scf::ForOp loop, int warps, const TargetInfo &target) {
  SmallVector<math::Exp2Op> powers = powersIn(loop);
  const Clocks clocks{clocksOfProducts(loop, target), clocksOfSpecials(loop, warps, target),
                      clocksOfIssue(loop, warps, target), warps <= target.schedulers};
  if (powers.empty() || clocks.products == 0)
    return;
  const int share = bestShare(clocks, powers, warps, target);
  if (share == 0)
    return;
  OpBuilder b(loop);
  for (math::Exp2Op op : powers)
    op->setAttr(byPolynomialAttrName, b.getI32IntegerAttr(share));
  const Clocks now = withShare(clocks, powers, share, warps, target);
  remarks::decided(remarks::sharedExponentials, powers.front()) << remark::reason(
      "of {0} powers {1} are computed by polynomials: special-function units take {2} clocks of an "
      "iteration then and not {3}, beside {4} of products and {5} of all instructions",
      polynomialGroup, share, int(now.specials), int(clocks.specials), int(now.products), int(now.issue));
}

void ShareExponentials::runOnOperation() {
  func::FuncOp kernel = getOperation();
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  auto schedule = kernel->getAttrOfType<tile::ScheduleAttr>(tile::scheduleAttrName);
  if (!target.float32Pairs || !schedule)
    return;
  kernel.walk([&](scf::ForOp loop) {
    if (!hasLoop(loop))
      shareExponentials(loop, schedule.getWarps(), target);
  });
}

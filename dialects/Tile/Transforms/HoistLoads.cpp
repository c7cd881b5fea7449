// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile-hoist-loads: what a loop reads again in each iteration, and nothing writes meanwhile, is read before it.
//
//   scf.for %j = %c0 to %n step %c64 {                      %runs = arith.cmpi slt, %c0, %n
//     %x = tile.load %rows, %mask, %zero                    %m = %mask and %runs, in every element
//     %y = tile.load (%columns of %j)              ─▶       %x = tile.load %rows, %m, %zero
//     tile.dot %x, %y, ..                                   scf.for %j = %c0 to %n step %c64 {
//   }                                                         %y = tile.load (%columns of %j)
//                                                             tile.dot %x, %y, ..
//
// Of a loop that may run no time the mask says whether it does, as what it reads need not be there. Tiles that take many
// registers of a thread together stay: they would be kept through the loop.
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Tile/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/Support/MathExtras.h"

namespace weft::tile {
#define GEN_PASS_DEF_TILEHOISTLOADS
#include "dialects/Tile/Transforms/Passes.h.inc"
} // namespace weft::tile

using namespace mlir;
using namespace weft::tile;

namespace {

/// Bytes of a thread that a loop may keep of what was read before it.
constexpr int64_t mostBytes = 128;

/// Whether all that a loop does to memory is to read it, and nobody is waited for.
bool onlyReads(scf::ForOp loop) {
  WalkResult walked = loop.getBody()->walk([](Operation *op) {
    auto load = dyn_cast<LoadOp>(op);
    const bool isHarmless = (load && !load.getIsVolatile()) || isMemoryEffectFree(op) ||
                            op->hasTrait<OpTrait::HasRecursiveMemoryEffects>() || op->hasTrait<OpTrait::IsTerminator>();
    return isHarmless ? WalkResult::advance() : WalkResult::interrupt();
  });
  return !walked.wasInterrupted();
}

/// Bytes that one of so many threads has of what is loaded.
int64_t bytesOf(LoadOp load, int64_t threads) {
  auto tensor = dyn_cast<RankedTensorType>(load.getType());
  Type element = getElementTypeOrSelf(load.getType());
  const int64_t bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 64; // of a pointer
  return llvm::divideCeil(bits, 8) * (tensor ? llvm::divideCeil(tensor.getNumElements(), threads) : 1);
}

/// Makes a load, which goes before a loop, one of nothing where the loop does not run.
void loadWhereRuns(LoadOp load, scf::ForOp loop) {
  OpBuilder b(loop);
  Location loc = load.getLoc();
  auto less = loop.getUnsignedCmp() ? arith::CmpIPredicate::ult : arith::CmpIPredicate::slt;
  Value runs = arith::CmpIOp::create(b, loc, less, loop.getLowerBound(), loop.getUpperBound());
  if (auto pointers = dyn_cast<RankedTensorType>(load.getPtr().getType()))
    runs = SplatOp::create(b, loc, pointers.clone(b.getI1Type()), runs);
  Value mask = load.getMask() ? arith::AndIOp::create(b, loc, load.getMask(), runs).getResult() : runs;
  load.getMaskMutable().assign(mask);
}

/// The loads of a loop's body that are the same in all iterations, as many as a thread may keep.
SmallVector<LoadOp> loadsBefore(scf::ForOp loop, int64_t threads) {
  SmallVector<LoadOp> found;
  int64_t left = mostBytes;
  for (auto load : loop.getBody()->getOps<LoadOp>()) {
    const int64_t bytes = bytesOf(load, threads);
    if (bytes > left ||
        !llvm::all_of(load->getOperands(), [&](Value operand) { return loop.isDefinedOutsideOfLoop(operand); }))
      continue;
    left -= bytes;
    found.push_back(load);
  }
  return found;
}

struct HoistLoads : weft::tile::impl::TileHoistLoadsBase<HoistLoads> {
  void runOnOperation() override {
    if (getOperation()->hasAttr(ordersAccessesAttrName))
      return;
    const int64_t threads = 32 * scheduleOf(getOperation()).warps;
    getOperation().walk([&](scf::ForOp loop) { // those inside of others first
      SmallVector<LoadOp> loads = loadsBefore(loop, threads);
      std::optional<APInt> trips = loop.getStaticTripCount();
      if (loads.empty() || (trips && trips->isZero()) || !onlyReads(loop))
        return;
      for (LoadOp load : loads) {
        if (!trips)
          loadWhereRuns(load, loop);
        load->moveBefore(loop);
      }
    });
  }
};

} // namespace

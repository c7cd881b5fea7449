// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-reload-operands: operands of a loop's products that the loop does not change are read from shared memory once,
// before it, and held in registers. Where those would not hold everything that lives in the loop, the largest are read
// in every iteration instead, where they are used:
//
//   %q = warp.load_shared %s                      scf.for {
//   warp.dealloc %s                                 %q = warp.load_shared %s
//   scf.for {                           -->         warp.mma %q, ...
//     warp.mma %q, ...                            }
//   }                                             warp.dealloc %s
//
// A read costs an instruction for four registers; a register that is spilt costs two for one. Where shared memory would
// not hold the tile beside the loop's rings, it stays in registers. A loop of many products in a row (see
// OperandsOfLoops.h) reads all of them.
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/OperandsOfLoops.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPRELOADOPERANDS
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
/// Registers of a thread: for counters and an operand that streams through; for the addresses of a tile's reads; for
/// the address of a piece that is copied.
constexpr int64_t forTheRest = 20, forReads = 4, forPiece = 2;
/// Bytes of shared memory that exchanges may need besides.
constexpr int64_t scratchRoom = 8192;

struct ReloadOperands : weft::warp::impl::WarpReloadOperandsBase<ReloadOperands> {
  void runOnOperation() override;
};
} // namespace

/// What lives in a loop at once, roughly: what it carries, what its products take from outside, and its largest result
/// on the way.
static int64_t pressureOf(scf::ForOp loop) {
  int64_t total = forTheRest + registersHeldBy(loop), largest = 0, streamed = 0;
  loop.walk([&](Operation *op) {
    if (auto each = dyn_cast<scf::ForOp>(op)) // the loop itself, and loops in it
      for (Value carried : each.getRegionIterArgs())
        total += registersOf(carried);
    if (auto copy = dyn_cast<AsyncCopyOp>(op); copy && copy.getShared().getType().getShape().size() > 1) {
      const LinearLayout &layout =
          cast<LayoutAttr>(cast<RankedTensorType>(copy.getPtr().getType()).getEncoding()).getLayout();
      total += forReads + forPiece * (layout.size(InDim::Register) / copy.getContiguity());
    }
    if (auto gather = dyn_cast<tile::GatherOp>(op); gather && loop.isDefinedOutsideOfLoop(gather.getSource()))
      total += registersOf(gather.getSource());
    // What is added in memory is there as a whole, beside the addresses of its rows.
    if (auto atomic = dyn_cast<tile::AtomicRMWOp>(op))
      total += registersOf(atomic.getValue());
    if (!isProductOfRegisters(op))
      return;
    // An operand that enters in two parts is held whole: it is split before the first product, so no read is put off.
    for (Value operand : op->getOperands().take_front(2))
      if (loop->isAncestor(operand.getParentBlock()->getParentOp()) &&
          registersAsOperand(operand) > registersOf(operand))
        streamed += registersAsOperand(operand);
    if (!llvm::all_of(op->getUsers(), llvm::IsaPred<scf::YieldOp>))
      largest = std::max(largest, registersOf(op->getResult(0)));
  });
  return total + streamed + largest + largest / 2; // half of it again, as an operand of the next product
}

/// The pressure from which on operands are read where they are used. Beside a loop of products within the loop a few
/// reads more are nothing, and what is held lives across it.
static int64_t mostPressure(scf::ForOp loop, const TargetInfo &target) {
  WalkResult inner = loop.walk([&](MmaOp mma) {
    return mma->getParentOfType<scf::ForOp>() == loop ? WalkResult::advance() : WalkResult::interrupt();
  });
  return inner.wasInterrupted() ? target.registersPerThread * 3 / 4 : target.registersPerThread;
}

static bool isStored(AllocOp tile) { return llvm::any_of(tile->getUsers(), llvm::IsaPred<StoreSharedOp>); }

/// Bytes of shared memory that a loop's tiles take: as many of those that threads store as there are at once, and the
/// others once they are rings; of two stages at the least, where multiply-adds, which take long, hide what they wait for.
static int64_t tileBytes(scf::ForOp loop, int stages) {
  int64_t rings = 0, others = 0, most = 0;
  bool matrices = loop.walk([](MmaOp) { return WalkResult::interrupt(); }).wasInterrupted();
  stages = matrices ? stages : std::min(stages, 2);
  loop.walk<WalkOrder::PreOrder>([&](Operation *op) {
    if (auto alloc = dyn_cast<AllocOp>(op)) {
      const int64_t bytes = alloc.getResult().getType().getBytes();
      (isStored(alloc) ? others : rings) += bytes * (isStored(alloc) ? 1 : stages);
      most = std::max(most, others);
    } else if (auto dealloc = dyn_cast<DeallocOp>(op)) {
      auto alloc = dealloc.getShared().getDefiningOp<AllocOp>();
      if (alloc && loop->isAncestor(alloc) && isStored(alloc))
        others -= alloc.getResult().getType().getBytes();
    }
  });
  return rings + most;
}

/// The tile that a read reads, maybe the other way round.
static AllocOp tileOf(LoadSharedOp load) { return tileViewed(load.getShared()).getDefiningOp<AllocOp>(); }

/// A read before a loop whose value only products take, some of them inside of loops.
static bool canReload(LoadSharedOp load) {
  AllocOp alloc = tileOf(load);
  return alloc && alloc->getBlock() == load->getBlock() && alloc.getResult().getType().getStages() == 1 &&
         llvm::all_of(load->getUsers(),
                      [&](Operation *user) {
                        return isa<tile::RowDotOp>(user) ||
                               (isProductOfRegisters(user) && user->getParentOfType<scf::ForOp>() &&
                                user->getBlock() != load->getBlock());
                      }) &&
         llvm::any_of(load->getUsers(), isProductOfRegisters);
}

/// Reads the tile where it is used; it lives until the last of those loops.
static void reload(LoadSharedOp load) {
  AllocOp alloc = tileOf(load);
  Operation *last = nullptr;
  for (OpOperand &use : llvm::make_early_inc_range(load->getUses())) {
    Operation *user = use.getOwner();
    OpBuilder b(user);
    use.set(b.clone(*load)->getResult(0));
    Operation *here = load->getBlock()->findAncestorOpInBlock(*user);
    if (!last || last->isBeforeInBlock(here))
      last = here;
  }
  for (Operation *user : alloc->getUsers())
    if (isa<DeallocOp>(user) && user->getBlock() == last->getBlock() && user->isBeforeInBlock(last))
      user->moveAfter(last);
  load.erase();
}

void ReloadOperands::runOnOperation() {
  SmallVector<LoadSharedOp> loads;
  SmallVector<scf::ForOp> loops;
  getOperation().walk([&](Operation *op) {
    if (auto load = dyn_cast<LoadSharedOp>(op); load && canReload(load))
      loads.push_back(load);
    if (auto loop = dyn_cast<scf::ForOp>(op))
      loops.push_back(loop);
  });
  if (loads.empty())
    return;
  const TargetInfo *target = TargetInfo::of(getOperation());
  if (!target)
    return signalPassFailure();
  // The largest first; of equal ones the first.
  SmallVector<std::pair<int64_t, unsigned>> order;
  for (auto [index, load] : llvm::enumerate(loads))
    order.emplace_back(-registersOf(load.getResult()), static_cast<unsigned>(index));
  llvm::sort(order);
  int stages = tile::scheduleOf(getOperation()).stages;
  int64_t kept = scratchRoom;
  llvm::DenseSet<Operation *> full;
  for (scf::ForOp loop : loops)
    if (takesManyOperands(loop, *target))
      full.insert(loop);
  for (auto [negated, index] : order) {
    LoadSharedOp load = loads[index];
    bool tooMuch = false, fits = true;
    int64_t bytes = load.getShared().getType().getBytes();
    for (scf::ForOp loop : loops)
      if (llvm::any_of(load->getUsers(), [&](Operation *user) { return loop->isProperAncestor(user); })) {
        tooMuch |= full.contains(loop) || pressureOf(loop) > mostPressure(loop, *target);
        fits &= kept + bytes + tileBytes(loop, stages) <= target->sharedBytesPerBlock;
      }
    if (!tooMuch || !fits)
      continue;
    remarks::missed(remarks::heldOperands, load)
        << remark::reason("registers do not hold the operand, {0} of a thread, beside what lives in the loop, so "
                          "shared memory is read in every iteration",
                          registersOf(load.getResult()));
    reload(load);
    kept += bytes;
  }
}

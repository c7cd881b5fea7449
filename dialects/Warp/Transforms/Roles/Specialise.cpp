// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-specialise: a warp of its own makes the bulk copies of loops.
//
//   scf.for {                                     scf.for {
//     warp.mbarrier_wait %full[i]                   warp.mbarrier_wait %full[i]
//     warp.barrier                                  warp.produce {
//     scf.if %first {                                 scf.if %first {
//       warp.mbarrier_expect %full[freed]               warp.mbarrier_wait %empty[freed]
//       warp.box_copy .. to %ring[freed]      ─▶        warp.mbarrier_expect %full[freed]
//     }                                                 warp.box_copy .. to %ring[freed]
//     %d = warp.wgmma .., %ring[i]                    }
//     %e = warp.wgmma_wait %d                       }
//   }                                               %d = warp.wgmma .., %ring[i]
//                                                   %e = warp.wgmma_wait %d
//                                                   warp.mbarrier_arrive %empty[i]
//                                                 }
//
// In the loop the block's barrier told the thread that copies that all had read the freed tiles. Instead every warp
// says so for itself, at a second barrier of the stage, and the others need not wait for it. Iteration i copies into
// the tiles that iteration i-1 read, so the producer waits for the phase that the full barrier ended then: with the
// parity of the iteration before, and that of a phase before the first in the first. Where products go on into the next
// iteration (LaggingProduct.h), warps arrive an iteration later for the stage before theirs, in the first one for the
// ring's last stage: so its phases run ahead by one, as the parity of the iteration before does at that stage.
//
// The kernel stays one program here; warp-split-roles makes two of it. What pays is decided from the target's numbers
// (RoleShares.h).
#include "compiler/Support/Remarks.h"
#include "dialects/Tile/IR/TileProgramOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Roles/ProducerSlice.h"
#include "dialects/Warp/Transforms/Roles/RoleShares.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPSPECIALISE
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct Specialise : weft::warp::impl::WarpSpecialiseBase<Specialise> {
  void runOnOperation() override;
};

/// A loop whose ring bulk copies fill, as `warp-pipeline` leaves it.
struct CopyLoop {
  scf::ForOp loop;
  MbarrierInitOp init;
  SmallVector<StageOp> stages; // of the barriers
  MbarrierWaitOp wait;
  BarrierOp begun, read;        // behind the first copies; of the loop: tiles have been read
  SmallVector<scf::IfOp> first; // the copies before the loop
  scf::IfOp copies;             // and in it
  Operation *lastRead = nullptr;
  bool lags = false;        // products go on into the next iteration
  bool readTogether = true; // by products of warpgroups alone

  SharedType ring() { return cast<SharedType>(init.getRing().getType()); }
  StageOp barrier() { return cast<StageOp>(wait.getBarrier().getDefiningOp()); }
  Value stage() { return barrier().getIndex(); }
};
} // namespace

// --- finding loops ---

/// The branch around an op, in the block of `beside`; null where other ops are around it.
static scf::IfOp branchAround(Operation *op) { return dyn_cast<scf::IfOp>(op->getParentOp()); }

/// Finds what belongs to the ring of `init`. The reason where the loop is not of the expected form.
static StringRef findParts(MbarrierInitOp init, CopyLoop &found) {
  found.init = init;
  for (Operation *user : init.getRing().getUsers())
    if (auto stage = dyn_cast<StageOp>(user))
      found.stages.push_back(stage);
  for (StageOp stage : found.stages)
    for (Operation *user : stage->getUsers()) {
      if (auto wait = dyn_cast<MbarrierWaitOp>(user)) {
        found.loop = found.wait ? scf::ForOp() : dyn_cast<scf::ForOp>(wait->getParentOp());
        found.wait = wait;
      }
    }
  if (!found.loop || found.loop->getBlock() != init->getBlock())
    return "its waits do not stand in one loop behind its first copies";
  for (StageOp stage : found.stages)
    for (Operation *user : stage->getUsers())
      if (isa<MbarrierExpectOp>(user)) {
        scf::IfOp branch = branchAround(user);
        bool inLoop = branch && branch->getBlock() == found.loop.getBody();
        if (!branch || branch.elseBlock() || (!inLoop && branch->getBlock() != init->getBlock()) ||
            (inLoop && found.copies))
          return "its copies do not stand in one branch of an iteration";
        inLoop ? void(found.copies = branch) : found.first.push_back(branch);
      }
  found.read = dyn_cast_or_null<BarrierOp>(found.wait->getNextNode());
  for (Operation *op = init->getNextNode(); op != found.loop; op = op->getNextNode())
    if (auto barrier = dyn_cast<BarrierOp>(op))
      found.begun = barrier;
  if (!found.copies || !found.read || !found.begun)
    return "its copies do not stand in one branch of an iteration";
  if (std::optional<APInt> count = found.loop.getStaticTripCount(); count && count->ule(found.ring().getStages()))
    return "the loop ends before its ring is filled twice";
  return "";
}

/// The tile that a stage's index chooses, behind transpositions; null where it is no stage of a ring.
static StageOp stageOf(Value shared) {
  while (auto permute = shared.getDefiningOp<PermuteSharedOp>())
    shared = permute.getSource();
  return shared.getDefiningOp<StageOp>();
}

/// Finds the last op that reads the iteration's tiles. The reason where the loop reads others, or copies by threads.
static StringRef findReads(CopyLoop &found) {
  StringRef hindrance;
  Value index = found.stage();
  auto reads = [&](Operation *op, Value shared) {
    StageOp stage = stageOf(shared);
    if (!stage || found.copies->isAncestor(op) || found.loop.isDefinedOutsideOfLoop(stage))
      return;
    if (stage.getIndex() != index)
      hindrance = "an iteration reads tiles of another one";
    Operation *here = found.loop.getBody()->findAncestorOpInBlock(*op);
    if (!found.lastRead || found.lastRead->isBeforeInBlock(here))
      found.lastRead = here;
    found.readTogether &= isa<WgmmaOp>(op);
  };
  found.loop.walk([&](Operation *op) {
    if (isa<AsyncWaitOp, AsyncCopyOp>(op))
      hindrance = "threads copy tiles beside it";
    if (auto wait = dyn_cast<WgmmaWaitOp>(op); wait && wait.getValues().empty()) {
      found.lags = true;
      found.lastRead = wait;
    }
    if (auto product = dyn_cast<WgmmaOp>(op)) {
      for (Value operand : {product.getA(), product.getB()})
        if (isa<SharedType>(operand.getType()))
          reads(op, operand);
    } else if (isa<LoadSharedOp, LoadShiftedOp>(op)) {
      reads(op, op->getOperand(0));
    } else if (isa<StoreSharedOp>(op) && stageOf(op->getOperand(1))) {
      hindrance = "threads write its tiles";
    }
  });
  if (!found.lastRead)
    return "nothing reads its tiles";
  // A product has read when it has been waited for.
  for (Operation *op = found.lastRead; !found.lags && op; op = op->getNextNode())
    if (isa<WgmmaWaitOp>(op))
      found.lastRead = op;
  return hindrance;
}

// --- rewriting ---

static SharedType withBarriers(SharedType ring, int64_t stages, int64_t count) {
  int64_t shape[] = {count};
  LinearLayout layout(shape);
  for (int64_t bit = 1; bit < count; bit *= 2)
    layout.append(InDim::Offset, static_cast<uint32_t>(bit));
  return SharedType::get(ring.getContext(), stages, shape, ring.getElementType(),
                         LayoutAttr::get(ring.getContext(), layout));
}

/// Gives each stage a second barrier, at which every warp of `warps` arrives.
static void addEmptyBarriers(CopyLoop &found, int64_t warps) {
  SharedType ring = found.ring();
  found.init.getRing().setType(withBarriers(ring, ring.getStages(), 2));
  for (StageOp stage : found.stages)
    stage.getResult().setType(withBarriers(ring, 1, 2));
  found.init.setArrivals({1, warps});
}

/// A loop that carries one value more, which starts as `init`; the caller adds what is yielded.
static scf::ForOp carryOneMore(scf::ForOp loop, Value init) {
  IRRewriter rewriter(loop.getContext());
  auto next = loop.replaceWithAdditionalYields(
      rewriter, init, /*replaceInitOperandUsesInLoop=*/false,
      [](OpBuilder &, Location, ArrayRef<BlockArgument> added) { return SmallVector<Value>{added.front()}; });
  return cast<scf::ForOp>(next->getOperation());
}

/// Lets the loop carry what `value` gives of the iteration before, which is `first` in the first one: its number among
/// what the loop carries.
static unsigned carryBefore(CopyLoop &found, llvm::function_ref<Value()> value, Value first) {
  found.loop = carryOneMore(found.loop, first);
  auto yield = cast<scf::YieldOp>(found.loop.getBody()->getTerminator());
  yield->setOperand(yield->getNumOperands() - 1, value());
  return found.loop.getNumRegionIterArgs() - 1;
}

/// Puts a branch that copies into a region of the producer's.
static void produce(scf::IfOp copies) {
  OpBuilder b(copies);
  auto op = ProduceOp::create(b, copies.getLoc());
  Block *body = b.createBlock(&op.getBody());
  copies->moveBefore(body, body->end());
}

static void specialise(CopyLoop &found, int64_t warps) {
  Location loc = found.loop.getLoc();
  addEmptyBarriers(found, warps);
  // Who makes the barriers is no longer who copies first.
  found.begun->moveAfter(found.init);
  found.begun.setWithProducer(true);
  for (scf::IfOp copies : found.first)
    produce(copies);

  OpBuilder b(found.loop);
  auto i32 = [&](int64_t value) -> Value { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value)); };
  auto barrier = found.barrier();
  unsigned parity = carryBefore(found, [&] { return found.wait.getParity(); }, i32(1)), before = 0;
  if (found.lags) {
    b.setInsertionPoint(found.loop);
    before = carryBefore(found, [&] { return found.stage(); }, i32((found.ring().getStages() - 1) * barrier.getStep()));
  }
  Value read = found.lags ? Value(found.loop.getRegionIterArg(before)) : found.stage();
  produce(found.copies);
  MbarrierExpectOp expect = *found.copies.thenBlock()->getOps<MbarrierExpectOp>().begin();
  b.setInsertionPoint(expect);
  MbarrierWaitOp::create(b, loc, expect.getBarrier(), found.loop.getRegionIterArg(parity), /*index=*/1);

  b.setInsertionPointAfter(found.lastRead);
  Value stage = StageOp::create(b, loc, barrier.getResult().getType(), barrier.getRing(), read, barrier.getStep());
  MbarrierArriveOp::create(b, loc, stage, /*index=*/1, found.readTogether);
  found.read.erase();
}

/// Whether there is inline PTX that does more than compute its results: its barriers would wait for the producer.
static bool hasForeignCode(func::FuncOp kernel) {
  return kernel
      .walk([](tile::InlineAsmOp op) { return op.getPure() ? WalkResult::advance() : WalkResult::interrupt(); })
      .wasInterrupted();
}

void Specialise::runOnOperation() {
  func::FuncOp kernel = getOperation();
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  SmallVector<MbarrierInitOp> rings;
  kernel.walk([&](MbarrierInitOp init) { rings.push_back(init); });
  if (rings.empty() || target.roleRegisters == 0)
    return;
  RoleShares shares = sharesOf(kernel, target);
  if (hasForeignCode(kernel))
    shares.hindrance = "inline PTX may count on all warps";
  ProducerSlice slice(kernel);
  for (MbarrierInitOp init : rings) {
    CopyLoop found;
    StringRef hindrance = shares.hindrance;
    if (hindrance.empty())
      hindrance = findParts(init, found);
    if (hindrance.empty())
      hindrance = findReads(found);
    ProducerSlice withLoop = slice;
    if (hindrance.empty()) {
      bool known = withLoop.add(found.copies);
      for (scf::IfOp copies : found.first)
        known = known && withLoop.add(copies);
      if (!known)
        hindrance = withLoop.hindrance();
    }
    if (!hindrance.empty()) {
      remarks::missed(remarks::warpRoles, init)
          << remark::reason("one thread of the warps that compute makes the loop's copies: {0}", hindrance);
      continue;
    }
    slice = std::move(withLoop);
    specialise(found, shares.consumerWarps);
  }
}

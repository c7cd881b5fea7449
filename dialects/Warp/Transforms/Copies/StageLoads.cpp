// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-stage-loads: a tile that a loop with products loads for something else goes through shared memory too, so that
// it is copied iterations ahead without a register on its way: gates, scales, packed weights.
//
//   scf.for {                                 scf.for {
//     %x = tile.load %p, %m, %zero              %s = warp.alloc
//     %y = arith.mulf %x, %g         ─▶         warp.async_copy %p masked %m to %s
//     %d = warp.mma %y, ...                     warp.async_commit
//   }                                           warp.async_wait {pending = 0}
//                                               %x = warp.load_shared %s
//                                               warp.dealloc %s
//                                               %y = arith.mulf %x, %g
//                                               %d = warp.mma %y, ...
//                                             }
//
// Values loaded ahead into registers are carried round the loop (warp-load-ahead), which takes fewer instructions. So
// that is left to all that half of a thread's registers hold beside what lives in the loop; the largest are staged.
// What every warp would load for itself, such as a row of scales, is copied once where threads copy ahead anyway, and
// that is much of what they copy.
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Copies/AsyncLoads.h"
#include "dialects/Warp/Transforms/Copies/Boxes.h"
#include "dialects/Warp/Transforms/LoopSlice.h"
#include "dialects/Warp/Transforms/OperandsOfLoops.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/SwizzledLayout.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/MapVector.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPSTAGELOADS
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct StageLoads : weft::warp::impl::WarpStageLoadsBase<StageLoads> {
  void runOnOperation() override;
};
} // namespace

static bool isInnermost(scf::ForOp loop) {
  return !loop.getBody()->walk([](LoopLikeOpInterface) { return WalkResult::interrupt(); }).wasInterrupted();
}

static bool hasProducts(scf::ForOp loop) {
  return llvm::any_of(*loop.getBody(), llvm::IsaPred<MmaOp, WgmmaOp, tile::DotOp>);
}

static int64_t bytesOf(RankedTensorType type) {
  return type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
}

/// Whether a copy ahead can bring what a load of a tensor does.
static bool canCopyAhead(tile::LoadOp load, scf::ForOp loop, const TargetInfo &target) {
  auto type = dyn_cast<RankedTensorType>(load.getType());
  if (!type || !type.getElementType().isIntOrFloat() || load->use_empty() || !whyNotAsync(load, target).empty() ||
      !mayReadAhead(load, loop))
    return false;
  Slice slice;
  return llvm::all_of(load->getOperands(),
                      [&](Value operand) { return addToSlice(operand, loop, /*mayLoad=*/!writesMemory(loop), slice); });
}

/// Whether a load is of a tile that one thread holds enough of for copies to pay, and that a copy ahead can bring.
static bool isStageable(tile::LoadOp load, scf::ForOp loop, const TargetInfo &target) {
  constexpr int64_t fewRegisters = 4, widePiece = 16;
  auto type = dyn_cast<RankedTensorType>(load.getType());
  return type && type.getRank() == 2 && registersOf(load.getResult()) >= fewRegisters &&
         pieceBytes(load) >= widePiece && canCopyAhead(load, loop, target);
}

/// Of a layout's warp bits those that move nothing: two to their number warps have the same.
static int64_t bitsInCommon(RankedTensorType type) {
  return llvm::count(layoutAttrOf(type).getLayout().bases(InDim::Warp), 0u);
}

/// Whether several warps would load the same, at least a sector by each instruction: what one copies for all costs the
/// others an instruction that they pass over. An index stays in registers, ahead of what it addresses.
static bool isLoadedByWarps(tile::LoadOp load, scf::ForOp loop, const TargetInfo &target) {
  constexpr int64_t sectorBytes = 32;
  auto type = dyn_cast<RankedTensorType>(load.getType());
  if (!type || !canCopyAhead(load, loop, target) || addressesLoads(load))
    return false;
  const int64_t shared = bitsInCommon(type);
  const int64_t parts = layoutAttrOf(type).getLayout().bases(InDim::Warp).size() - shared;
  const int64_t pieces =
      llvm::divideCeil(registersThatDiffer(load) * type.getElementTypeBitWidth() / 8, pieceBytes(load));
  return shared > 0 && (bytesOf(type) >> parts) >= pieces * sectorBytes;
}

/// Bytes that warps load again of what others load too.
static int64_t repeatedBytes(tile::LoadOp load) {
  auto type = cast<RankedTensorType>(load.getType());
  return bytesOf(type) * ((int64_t(1) << bitsInCommon(type)) - 1);
}

/// Loads that warps have in common, where these repeat much of what the loop copies, `bytes`: shared memory has them later
/// than registers do, and the L1 cache mostly has what is repeated.
static SmallVector<tile::LoadOp> loadsInCommon(scf::ForOp loop, int64_t bytes, const TargetInfo &target) {
  constexpr int64_t much = 8;
  auto loads = llvm::filter_to_vector(loop.getBody()->getOps<tile::LoadOp>(),
                                      [&](tile::LoadOp load) { return isLoadedByWarps(load, loop, target); });
  int64_t repeated = 0;
  for (tile::LoadOp load : loads)
    repeated += repeatedBytes(load);
  return much * repeated < bytes ? SmallVector<tile::LoadOp>() : loads;
}

/// Whether threads make copies ahead of a loop anyway: where bulk copies bring all of its tiles, threads wait for none.
static bool threadsCopy(scf::ForOp loop, const TargetInfo &target) {
  return llvm::any_of(loop.getBody()->getOps<AsyncCopyOp>(), [&](AsyncCopyOp copy) {
    return target.boxCopies.mostRank == 0 || !findBox(copy, loop, target).box;
  });
}

/// The first op of a load's block that its value is used in.
static Operation *firstReader(tile::LoadOp load) {
  Operation *first = nullptr;
  for (Operation *user : load->getUsers())
    if (Operation *here = load->getBlock()->findAncestorOpInBlock(*user); !first || here->isBeforeInBlock(first))
      first = here;
  return first;
}

static void stage(tile::LoadOp load) {
  OpBuilder b(load);
  Location loc = load.getLoc();
  auto type = cast<RankedTensorType>(load.getType());
  LinearLayout layout = swizzledLayout(type.getShape(), contiguousAxis(layoutAttrOf(type).getLayout()),
                                       type.getElementTypeBitWidth() / 8);
  auto shared = SharedType::get(b.getContext(), 1, type.getShape(), type.getElementType(),
                                LayoutAttr::get(b.getContext(), layout));
  Value tile = AllocOp::create(b, loc, shared, IntegerAttr(), IntegerAttr());
  startCopy(b, load, tile);
  b.setInsertionPoint(firstReader(load));
  AsyncWaitOp::create(b, loc, b.getI32IntegerAttr(0));
  load.getResult().replaceAllUsesWith(LoadSharedOp::create(b, loc, type, tile));
  DeallocOp::create(b, loc, tile);
  load->erase();
}

/// The loads of a loop that can be staged, the largest first.
static SmallVector<tile::LoadOp> stageableLoads(scf::ForOp loop, const TargetInfo &target) {
  llvm::MapVector<int64_t, SmallVector<tile::LoadOp>> bySize;
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    if (isStageable(load, loop, target))
      bySize[-registersAhead(load)].push_back(load);
  auto sizes = bySize.takeVector();
  llvm::sort(sizes, llvm::less_first());
  SmallVector<tile::LoadOp> loads;
  for (auto &[size, sameSize] : sizes)
    llvm::append_range(loads, sameSize);
  return loads;
}

/// Registers that a loop should do with, a quarter of a thread's left for addresses and counters: half of them, with
/// which twice the warps are resident, if what lives in it anyway fits those.
static int64_t roomFor(int64_t alive, const TargetInfo &target) {
  int64_t all = target.registersPerThread * 3 / 4;
  return alive <= all / 2 ? all / 2 : all;
}

/// Stages loads of a loop that warps have in common, where others are staged, and more until the rest fits registers,
/// while half of a block's shared memory holds all of its rings beside the tiles that threads store, of which there is
/// one each.
static void stageIn(scf::ForOp loop, int stages, const TargetInfo &target) {
  int64_t bytes = 0, stored = 0, registers = mostAlive(loop), room = roomFor(registers, target);
  loop.walk([&](AllocOp alloc) {
    bool isRing = llvm::any_of(alloc->getUsers(), llvm::IsaPred<AsyncCopyOp>);
    (isRing ? bytes : stored) += alloc.getResult().getType().getBytes();
  });
  for (auto load : loop.getBody()->getOps<tile::LoadOp>())
    registers += registersAhead(load);
  for (tile::LoadOp load : stageableLoads(loop, target)) {
    int64_t size = bytesOf(cast<RankedTensorType>(load.getType()));
    if (registers <= room)
      break;
    if ((bytes + size) * stages + stored > target.sharedBytesPerBlock / 2) {
      remarks::missed(remarks::pipelining, load) << remark::reason(
          "the load is not copied iterations ahead: shared memory has no room for {0} stages of it", stages);
      continue;
    }
    registers -= registersAhead(load);
    bytes += size;
    stage(load);
  }
  if (!threadsCopy(loop, target))
    return;
  for (tile::LoadOp load : loadsInCommon(loop, bytes, target)) {
    int64_t size = bytesOf(cast<RankedTensorType>(load.getType()));
    if ((bytes + size) * stages + stored > target.sharedBytesPerBlock / 2)
      continue;
    bytes += size;
    stage(load);
  }
}

void StageLoads::runOnOperation() {
  func::FuncOp kernel = getOperation();
  int stages = tile::scheduleOf(kernel).stages;
  // Kernels that the compiler writes have schedules that were chosen for what they load.
  if (stages < 2 || kernel->hasAttr(tile::ordersAccessesAttrName))
    return;
  kernel.walk([&](scf::ForOp loop) {
    if (isInnermost(loop) && hasProducts(loop))
      stageIn(loop, stages, TargetInfo::ofOrDefault(kernel));
  });
}

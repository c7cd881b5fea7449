// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-store-boxes: results leave by bulk copies of boxes, from a tile in shared memory that all threads fill.
//
//                                                    %t = warp.alloc
//                                                    warp.store_shared %x, %t
//   %y = warp.convert_layout %x                      warp.barrier
//   tile.store %p, %y, %m                   ─▶       scf.if %first {
//                                                      warp.box_store %t to %map[%i, %j]
//                                                      warp.box_commit
//                                                    }
//                                                    ..
//                                                    scf.if %first { warp.box_wait %t }
//                                                    warp.dealloc %t
//
// So are atomics whose old values nobody looks at, as reductions. One thread stores, with no address and no mask in the
// others. It waits where the tile's block ends; in a loop, where shared memory has room for the tile beside all else,
// before the tile is filled again, so that an iteration's box is on its way while the next one is computed.
//
// Boxes are written by another way than threads write, which no barrier orders: stores stay whose memory the kernel
// may touch elsewhere, or of which it tells other programs. In a loop a box waits for those before it to be written.
//
// It pays where threads take more instructions: where neighbours of a row lie in several lanes, as sums of matrix
// instructions do, they exchange elements first, or store few at a time. Sums of 32 bits do not reach their tile without
// conflicts of banks, which count as well; of atomics count the sectors that each instruction changes a part of.
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Tile/IR/TileProgramOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/MatrixAccess.h"
#include "dialects/Warp/Transforms/Accesses/DeviceMemory.h"
#include "dialects/Warp/Transforms/Accesses/Meeting.h"
#include "dialects/Warp/Transforms/Copies/BoxRing.h"
#include "dialects/Warp/Transforms/Copies/Boxes.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPSTOREBOXES
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct StoreBoxes : weft::warp::impl::WarpStoreBoxesBase<StoreBoxes> {
  void runOnOperation() override;
};

/// A store, or an atomic that nobody reads.
struct Result {
  Operation *op;
  Value ptr, value, mask; // the mask may be null
  std::optional<tile::AtomicKind> combine;

  /// The value before it went into the layout of the pointers.
  ConvertLayoutOp conversion() const { return value.getDefiningOp<ConvertLayoutOp>(); }
  Value source() const { return conversion() ? Value(conversion().getSource()) : value; }
};
} // namespace

static std::optional<Result> resultOf(Operation *op) {
  auto ofMatrix = [](Value ptr) {
    auto type = dyn_cast<RankedTensorType>(ptr.getType());
    return type && type.getRank() >= 2 && layoutAttrOf(type);
  };
  if (auto store = dyn_cast<tile::StoreOp>(op); store && ofMatrix(store.getPtr()))
    return Result{op, store.getPtr(), store.getValue(), store.getMask(), std::nullopt};
  if (auto atomic = dyn_cast<tile::AtomicRMWOp>(op); atomic && atomic.use_empty() && ofMatrix(atomic.getPtr()))
    return Result{op, atomic.getPtr(), atomic.getValue(), atomic.getMask(), atomic.getKind()};
  return std::nullopt;
}

// --- what may be stored so ---

/// The access of an op, copies of boxes included.
static std::optional<DeviceAccess> accessOf(Operation *op) {
  auto copy = dyn_cast<BoxCopyOp>(op);
  if (!copy)
    return deviceAccessOf(op, /*warps=*/1);
  auto map = copy.getMap().getDefiningOp<TensorMapOp>();
  Value base = map ? Value(map.getBase()) : Value();
  return DeviceAccess{op, base, {}, base ? argumentBehind(base) : BlockArgument(), /*reads=*/true, /*writes=*/false};
}

/// Whether an access may meet a result's, so that their order matters.
static bool mayMeet(const DeviceAccess &own, const DeviceAccess &other) {
  if (!mayShareBase(own, other))
    return false;
  auto atomic = dyn_cast<tile::AtomicRMWOp>(own.op), another = dyn_cast<tile::AtomicRMWOp>(other.op);
  if (atomic && another && atomic.getKind() == another.getKind() && another.use_empty())
    return false; // in either order
  bool known = own.pointer && other.pointer;
  return !known ||
         meetingOf({own.pointer, own.mask}, {other.pointer, other.mask}, /*sameIteration=*/false) != Meeting::Nowhere;
}

/// Why boxes that the kernel's threads do not write would not be where the program says; empty where they would.
static StringRef whyNotAsync(const Result &result) {
  StringRef hindrance;
  std::optional<DeviceAccess> own = deviceAccessOf(result.op, /*warps=*/1);
  result.op->getParentOfType<func::FuncOp>().walk([&](Operation *op) {
    auto code = dyn_cast<tile::InlineAsmOp>(op);
    if (isa<tile::BarrierOp>(op) || (code && !code.getPure()))
      hindrance = "a barrier or inline PTX of the program may count on what threads have written";
    else if (op != result.op && orderingOf(op, /*warps=*/1).releases)
      hindrance = "the kernel tells other programs what it has written";
    else if (std::optional<DeviceAccess> other = accessOf(op); other && op != result.op && mayMeet(*own, *other))
      hindrance = "the kernel may touch the same memory elsewhere";
    return hindrance.empty() ? WalkResult::advance() : WalkResult::interrupt();
  });
  return hindrance;
}

/// Why an op asks for what bulk copies have not; empty where it does not.
static StringRef whyNotForm(const Result &result) {
  if (auto store = dyn_cast<tile::StoreOp>(result.op)) {
    bool plain = store.getCache() == tile::CacheModifier::None && store.getEviction() == tile::Eviction::Normal;
    return plain ? "" : "bulk copies have no such cache modifier or eviction priority";
  }
  auto atomic = cast<tile::AtomicRMWOp>(result.op);
  if (atomic.getOrder() != tile::MemoryOrder::Relaxed)
    return "it orders other accesses";
  if (atomic.getScope() == tile::MemoryScope::Sys)
    return "other devices may look on";
  Type element = tile::pointeeTypeOf(result.ptr.getType());
  bool isUnsigned = atomic.getKind() == tile::AtomicKind::UMax || atomic.getKind() == tile::AtomicKind::UMin;
  return isUnsigned || atomic.getKind() == tile::AtomicKind::Exchange || element.getIntOrFloatBitWidth() > 32
             ? "bulk copies combine no such elements"
             : "";
}

// --- what it costs: instructions of a warp, passes through shared memory that banks' conflicts add, and sectors that
// atomics change ---

constexpr static int64_t sectorBytes = 32;

static int64_t conflictsOf(Wavefronts passes) { return int64_t(passes.needed) - int64_t(passes.ideal); }

static int64_t costOf(const SharedAccess &access, unsigned bytes) {
  return access.distinctPieces() + conflictsOf(wavefrontsOf(access, bytes));
}

/// Sectors of which the lanes of a warp hold parts at a time, in a tile whose neighbours lie along an axis.
static int64_t sectorsAtOnce(const LinearLayout &layout, unsigned along, unsigned bytes) {
  llvm::DenseSet<uint32_t> sectors;
  for (uint32_t lane = 0; lane < layout.size(InDim::Lane); ++lane) {
    SmallVector<int64_t> place = layout.delinearize(layout.apply(InDim::Lane, lane));
    place[along] &= ~(sectorBytes / int64_t(bytes) - 1);
    sectors.insert(layout.linearize(place));
  }
  return int64_t(sectors.size());
}

/// The axis of a tile's neighbours.
static unsigned alongOf(SharedType tile) {
  SmallVector<int64_t> next = tile.linear().delinearize(tile.linear().bases(InDim::Offset).front());
  return next[0] == 0 ? 1 : 0;
}

/// What threads store a result by, and the exchange before that nobody else needs.
static int64_t costOfThreads(const Result &result, const FoundStoredBox &stored) {
  const LinearLayout &layout = layoutAttrOf(result.ptr.getType()).getLayout();
  auto contiguity = result.op->getAttrOfType<IntegerAttr>(contiguityAttrName);
  int64_t together = contiguity && !result.combine ? std::max<int64_t>(1, contiguity.getInt()) : 1;
  int64_t registers = layout.size(InDim::Register) >> llvm::popcount(layout.freeBits()[InDim::Register]);
  // A mask is compared for, and combined from two.
  int64_t count = llvm::divideCeil(registers, together) * (result.mask ? 3 : 1);
  if (result.combine)
    count += registers * sectorsAtOnce(layout, alongOf(stored.tile), elementBytes(stored.tile.getElementType()));
  if (ConvertLayoutOp conversion = result.conversion();
      conversion && conversion->hasOneUse() && scratchBytes(conversion) != 0) {
    const LinearLayout &from = layoutAttrOf(conversion.getSource().getType()).getLayout();
    unsigned bytes = elementBytes(cast<RankedTensorType>(conversion.getType()).getElementType());
    LinearLayout scratch = scratchLayout(from, layout, bytes);
    count +=
        costOf(warp::accessOf(from, scratch, bytes), bytes) + costOf(warp::accessOf(layout, scratch, bytes), bytes);
  }
  return count;
}

/// What all threads fill the tile by, and one stores the box by.
static int64_t costOfBox(const Result &result, const FoundStoredBox &stored, const TargetInfo &target, unsigned warps) {
  constexpr int64_t ofOneThread = 16, ofPart = 4; // fence, barrier, branch, group and wait; coordinates
  Type element = stored.tile.getElementType();
  auto source = cast<RankedTensorType>(result.source().getType());
  SharedAccess access =
      warp::accessOf(layoutAttrOf(source).getLayout(), SharedType(stored.tile).linear(), elementBytes(element));
  std::optional<MatrixAccess> matrices;
  if (target.matrixStores && repeatedThreadBits(access.offsets, warps) == 0)
    matrices = matrixStore(access, element.getIntOrFloatBitWidth());
  unsigned bytes = elementBytes(element);
  int64_t ofTile = matrices
                       ? int64_t(matrices->first.size()) + conflictsOf(wavefrontsOf(*matrices, access.offsets, bytes))
                       : costOf(access, bytes);
  int64_t sectors = result.combine ? SharedType(stored.tile).getTileBytes() / (sectorBytes * warps) : 0;
  return ofTile + ofOneThread + ofPart * int64_t(stored.found.box->parts.size()) + sectors;
}

// --- where the tile lives ---

/// A tile's life around the op that fills it.
struct Life {
  AllocOp alloc;
  DeallocOp dealloc;
};

static Life tileFrom(Operation *first, Operation *last, bool behind, SharedType type) {
  OpBuilder b(first);
  auto alloc = AllocOp::create(b, first->getLoc(), type, IntegerAttr(), IntegerAttr());
  behind ? b.setInsertionPointAfter(last) : b.setInsertionPoint(last);
  return {alloc, DeallocOp::create(b, first->getLoc(), alloc)};
}

static void erase(Life life) {
  life.dealloc.erase();
  life.alloc.erase();
}

/// Gives a tile a life in which a kernel's shared memory is `most` bytes: around the loop where `op` stores it, or to the
/// end of its block.
static std::optional<Life> findLife(Operation *op, SharedType type, int64_t most, const TargetInfo &target) {
  auto kernel = op->getParentOfType<func::FuncOp>();
  // Its place begins where patterns of lines do, which costs this at the most where others do not.
  const int64_t pattern = target.warpgroups.tileAlignment, cost = tileAlignment(kernel) < pattern ? pattern : 0;
  auto fits = [&] { return leastSharedBytes(kernel) + cost <= most; };
  if (auto loop = dyn_cast<scf::ForOp>(op->getParentOp())) {
    Life around = tileFrom(loop, loop, /*behind=*/true, type);
    if (fits())
      return around;
    erase(around);
  }
  Life here = tileFrom(op, op->getBlock()->getTerminator(), /*behind=*/false, type);
  if (fits())
    return here;
  erase(here);
  return std::nullopt;
}

/// The life of a result's tile: with as many blocks on a multiprocessor as without it. Sums that a loop adds in memory are
/// worth a block: on an H100 additions of threads took three times as long as all of a kernel with bulk copies'.
static std::optional<Life> findLife(const Result &result, SharedType type, const TargetInfo &target) {
  auto kernel = result.op->getParentOfType<func::FuncOp>();
  int64_t most = mostSharedBytes(kernel, leastSharedBytes(kernel), target);
  std::optional<Life> life = findLife(result.op, type, most, target);
  if (!life && result.combine && result.op->getParentOfType<LoopLikeOpInterface>())
    return findLife(result.op, type, target.sharedBytesPerBlock, target);
  return life;
}

// --- the code ---

/// What stands in `body` is done by the one thread that stores.
static void byOne(OpBuilder &b, Location loc, llvm::function_ref<void()> body) {
  auto branch = scf::IfOp::create(b, loc, IsFirstThreadOp::create(b, loc), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(branch.thenBlock());
  body();
}

static void storeBox(const Result &result, const FoundStoredBox &stored, Life life) {
  OpBuilder b(result.op);
  Location loc = result.op->getLoc();
  Value tile = life.alloc;
  bool inLoop = result.op->getParentOfType<LoopLikeOpInterface>() != nullptr;
  // One thread's boxes are written in any order.
  bool written = inLoop && !result.combine;
  auto wait = [&] { byOne(b, loc, [&] { BoxWaitOp::create(b, loc, tile, written); }); };
  if (life.alloc->getBlock() != result.op->getBlock())
    wait(); // for the iteration before
  StoreSharedOp::create(b, loc, result.source(), tile);
  BarrierOp::create(b, loc);
  byOne(b, loc, [&] {
    MappedBox mapped = mapBox(*stored.found.box, &*b.getInsertionPoint());
    for (const BoxPart &part : stored.found.box->parts)
      BoxStoreOp::create(b, loc, tile, mapped.map, coordinatesOf(b, loc, mapped.coordinates, part),
                         result.combine ? tile::AtomicKindAttr::get(b.getContext(), *result.combine)
                                        : tile::AtomicKindAttr(),
                         b.getI64IntegerAttr(part.offset));
    BoxCommitOp::create(b, loc);
  });
  b.setInsertionPoint(life.dealloc);
  wait();
  result.op->erase();
}

/// A result as boxes, or why it is none.
static FoundStoredBox findResult(const Result &result, const TargetInfo &target) {
  for (StringRef hindrance : {whyNotForm(result), whyNotAsync(result)})
    if (!hindrance.empty())
      return {{std::nullopt, hindrance}, {}};
  return findStoredBox(result.op, result.ptr, result.mask, target);
}

void StoreBoxes::runOnOperation() {
  func::FuncOp kernel = getOperation();
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  if (target.boxCopies.mostRank == 0)
    return;
  unsigned warps = tile::scheduleOf(kernel).warps;
  std::vector<std::pair<Result, FoundStoredBox>> results; // all found while all are as they were
  kernel.walk([&](Operation *op) {
    if (std::optional<Result> result = resultOf(op))
      results.emplace_back(*result, findResult(*result, target));
  });
  for (const auto &found : results) {
    const Result &result = found.first;
    const FoundStoredBox &stored = found.second;
    auto stays = [&](StringRef hindrance) {
      remarks::missed(remarks::boxStore, result.op)
          << remark::reason("threads store pieces of the tile, and no bulk copy all of it: {0}", hindrance);
    };
    if (!stored.found.box) {
      stays(stored.found.hindrance);
      continue;
    }
    int64_t ofThreads = costOfThreads(result, stored), ofBox = costOfBox(result, stored, target, warps);
    if (ofBox >= ofThreads) {
      stays(llvm::formatv("a warp would take {0} instructions and passes, instead of {1}", ofBox, ofThreads).str());
      continue;
    }
    std::optional<Life> life = findLife(result, stored.tile, target);
    if (!life) {
      stays("shared memory has no room for the tile beside what lives with it");
      continue;
    }
    storeBox(result, stored, *life);
  }
}

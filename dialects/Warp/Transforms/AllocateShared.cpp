// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-allocate-shared: every tile and every exchange gets its byte offset in the block's shared memory.
//
// Ops are numbered in program order, regions nested inside their op. A tile lives from its `warp.alloc` to its
// `warp.dealloc`, or to the end of the block that allocates it; scratch memory lives while its op runs, or until
// the exchange has that it is joined with. The largest are placed first, each at the lowest offset where nothing lives at
// the same time. Where there is room, one that is written lies apart from those that were accessed since the last barrier:
// it then needs none of its own. There is room as long as as many blocks fit on a multiprocessor as before, or enough
// warps to hide its latencies.
//
//   %0 = warp.alloc : !warp.shared<64x64xf16, #s>     ─▶   %0 = warp.alloc {offset = 0 : i64} : ...
//
// Rings of as many tiles that are allocated one right after another, those of one loop, are one: their first tiles lie
// side by side, then their second ones. One number then says where all tiles of a stage begin.
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "dialects/Warp/Transforms/SharedFlow.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/Support/MathExtras.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPALLOCATESHARED
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft::warp;

namespace {
/// Something that needs bytes from the op numbered `first` to the one numbered `last`.
struct Need {
  Operation *op; // of rings that are one, the first
  int64_t bytes;
  unsigned first, last;
  Operation *end; // that it lives to
  int64_t alignment;
  int64_t offset = 0;
  llvm::SmallPtrSet<const Need *, 4> unordered = {}; // those that no barrier is between

  bool livesWith(const Need &other) const { return first <= other.last && other.first <= last; }
};

SharedType typeOf(AllocOp alloc) { return alloc.getResult().getType(); }

/// Whether two allocations are rings of as many tiles each.
bool areAlike(AllocOp a, AllocOp b) {
  return typeOf(a).getStages() > 1 && typeOf(a).getStages() == typeOf(b).getStages();
}

/// An allocation, and the rings behind it that are one with it.
SmallVector<AllocOp> ringsFrom(AllocOp alloc) {
  SmallVector<AllocOp> rings{alloc};
  for (auto each = dyn_cast<AllocOp>(alloc->getNextNode()); each && areAlike(each, alloc);
       each = dyn_cast<AllocOp>(each->getNextNode()))
    rings.push_back(each);
  return rings;
}

/// Bytes of one tile of each, and of all their tiles.
int64_t pitchOf(ArrayRef<AllocOp> rings, int64_t alignment) {
  return ringPitch(llvm::map_to_vector(rings, typeOf), alignment);
}
int64_t bytesOf(ArrayRef<AllocOp> rings, int64_t alignment) {
  return typeOf(rings.front()).getStages() * pitchOf(rings, alignment);
}

/// What a tile begins at a multiple of: where bulk copies store it, the patterns of its lines begin there.
int64_t alignmentOf(AllocOp alloc, int64_t ofKernel) {
  bool isStored = llvm::any_of(alloc->getUsers(), llvm::IsaPred<BoxStoreOp>);
  return isStored ? std::max<int64_t>(ofKernel, weft::TargetInfo::ofOrDefault(alloc).warpgroups.tileAlignment)
                  : ofKernel;
}

/// Numbers the ops of a kernel and collects what needs shared memory.
class Liveness {
public:
  Liveness(func::FuncOp kernel, int64_t alignment) : alignment(alignment) { visit(kernel.getBody()); }
  SmallVector<Need> needs;

private:
  void visit(Region &region) {
    for (Block &block : region) {
      SmallVector<size_t> open; // needs that end with the block unless a dealloc ends them before
      SmallVector<size_t> joined;
      for (Operation &op : block) {
        unsigned now = ++clock;
        if (auto alloc = dyn_cast<AllocOp>(op)) {
          if (ringsBefore(alloc).empty()) {
            open.push_back(needs.size());
            needs.push_back(
                {&op, bytesOf(ringsFrom(alloc), alignment), now, 0, nullptr, alignmentOf(alloc, alignment)});
          }
        } else if (auto dealloc = dyn_cast<DeallocOp>(op)) {
          end(dealloc, now);
        } else if (int64_t bytes = scratchBytes(&op)) {
          needs.push_back({&op, bytes, now, now, &op, alignment});
          joined.push_back(needs.size() - 1);
          for (size_t index : joined) { // until the exchange that they are joined with
            needs[index].last = now;
            needs[index].end = &op;
          }
          if (!op.hasAttr(joinedAttrName))
            joined.clear();
        }
        for (Region &inner : op.getRegions())
          visit(inner);
      }
      unsigned last = ++clock;
      for (size_t index : open)
        if (needs[index].last == 0) {
          needs[index].last = last;
          needs[index].end = &block.back();
        }
    }
  }

  void end(DeallocOp dealloc, unsigned now) {
    auto alloc = dealloc.getShared().getDefiningOp<AllocOp>();
    Operation *first = alloc;
    for (AllocOp before : ringsBefore(alloc))
      first = before;
    for (Need &need : needs)
      if (need.op == first) {
        need.last = now;
        need.end = dealloc;
      }
  }

  int64_t alignment;
  unsigned clock = 0;
};

struct AllocateShared : weft::warp::impl::WarpAllocateSharedBase<AllocateShared> {
  void runOnOperation() override;
};
} // namespace

SmallVector<AllocOp> weft::warp::ringsBefore(AllocOp alloc) {
  SmallVector<AllocOp> rings;
  for (auto each = dyn_cast_or_null<AllocOp>(alloc->getPrevNode()); each && areAlike(each, alloc);
       each = dyn_cast_or_null<AllocOp>(each->getPrevNode()))
    rings.push_back(each);
  return rings;
}

std::pair<int64_t, int64_t> weft::warp::bytesFromFirstToLast(AllocOp alloc) {
  SharedType type = typeOf(alloc);
  int64_t first = alloc.getOffset().value_or(0), pitch = alloc.getPitch().value_or(type.getTileBytes());
  return {first, first + (type.getStages() - 1) * pitch + type.getTileBytes()};
}

/// Sets every need's offset; gives the bytes that all of them span. Two that no barrier is between lie apart where the
/// smaller of them has at most `apart` bytes.
static int64_t place(MutableArrayRef<Need> needs, int64_t apart) {
  auto mayShare = [&](const Need &a, const Need &b) {
    return !a.livesWith(b) && !(std::min(a.bytes, b.bytes) <= apart && a.unordered.contains(&b));
  };
  SmallVector<Need *> order = llvm::map_to_vector(needs, [](Need &need) { return &need; });
  llvm::sort(order, [](Need *a, Need *b) { return std::tie(b->bytes, a->first) < std::tie(a->bytes, b->first); });
  int64_t total = 0;
  SmallVector<Need *> placed;
  for (Need *need : order) {
    // In rising order of offset, the first gap between what may not share its bytes.
    int64_t offset = 0;
    for (Need *other : placed) {
      if (mayShare(*need, *other) || other->offset + other->bytes <= offset)
        continue;
      if (other->offset >= offset + need->bytes)
        break;
      offset = llvm::alignTo(other->offset + other->bytes, need->alignment);
    }
    need->offset = offset;
    placed.insert(llvm::upper_bound(placed, need, [](Need *a, Need *b) { return a->offset < b->offset; }), need);
    total = std::max(total, offset + need->bytes);
  }
  return total;
}

static void reportTooMuch(func::FuncOp kernel, ArrayRef<Need> needs, int64_t total, const weft::TargetInfo &target) {
  InFlightDiagnostic diagnostic = kernel.emitError() << "expected at most " << target.sharedBytesPerBlock
                                                     << " bytes of shared memory, the limit of a block on '"
                                                     << StringRef(target.name) << "', but got " << total;
  for (const Need &need : needs)
    diagnostic.attachNote(need.op->getLoc()) << need.bytes << " bytes for this";
  diagnostic.attachNote() << "use smaller tiles or fewer stages";
}

/// Notes where a tile lies, or where those of rings do that are one.
static void setPlace(AllocOp alloc, int64_t offset, int64_t alignment) {
  SmallVector<AllocOp> rings = ringsFrom(alloc);
  int64_t pitch = pitchOf(rings, alignment);
  for (AllocOp ring : rings) {
    ring.setOffset(offset);
    if (rings.size() > 1)
      ring.setPitch(pitch);
    offset += llvm::alignTo(typeOf(ring).getTileBytes(), alignment);
  }
}

static void setPlaces(func::FuncOp kernel, ArrayRef<Need> needs, int64_t alignment) {
  Builder builder(kernel.getContext());
  for (const Need &need : needs) {
    if (auto alloc = dyn_cast<AllocOp>(need.op))
      setPlace(alloc, need.offset, alignment);
    else
      need.op->setAttr(scratchAttrName, builder.getI64IntegerAttr(need.offset));
  }
}

/// ", freed after line 7", as far as that is known.
static std::string lifetimeText(const Need &need) {
  auto position = need.end->getLoc()->findInstanceOf<FileLineColLoc>();
  return position ? llvm::formatv(", freed after line {0}", position.getLine()).str() : "";
}

/// "8x4xf32", "3 stages of 64x64xf16".
static std::string holdingText(AllocOp alloc) {
  SharedType type = typeOf(alloc);
  std::string stages = type.getStages() > 1 ? llvm::formatv("{0} stages of ", type.getStages()).str() : "";
  return stages + weft::tile::textOf(type.getShape(), type.getElementType());
}

/// Says where everything lies, what it holds and how long.
static void sayPlaces(func::FuncOp kernel, ArrayRef<Need> needs, int64_t total, const weft::TargetInfo &target) {
  namespace remarks = weft::remarks;
  if (!remarks::asked(kernel) || needs.empty())
    return;
  remarks::decided(remarks::sharedMemory, kernel)
      << remark::reason("a block takes {0} of at most {1} bytes of shared memory", total, target.sharedBytesPerBlock);
  for (const Need &need : needs) {
    auto alloc = dyn_cast<AllocOp>(need.op);
    for (AllocOp ring : alloc ? ringsFrom(alloc) : SmallVector<AllocOp>())
      remarks::decided(remarks::sharedMemory, ring) << remark::reason(
          "{0} at byte {1}: {2} bytes{3}{4}", holdingText(ring), *ring.getOffset(), typeOf(ring).getBytes(),
          ring.getPitch() ? llvm::formatv(", a stage every {0}", *ring.getPitch()).str() : "", lifetimeText(need));
    if (!alloc)
      remarks::decided(remarks::sharedMemory, need.op) << remark::reason(
          "an exchange of '{0}' at byte {1}: {2} bytes", need.op->getName().getStringRef(), need.offset, need.bytes);
  }
}

/// Notes which of the needs are accessed one after the other, one of the two by a write, with no barrier between: by
/// walking the kernel with each of them in a place of its own.
static void findUnordered(func::FuncOp kernel, MutableArrayRef<Need> needs, int64_t alignment) {
  int64_t end = 0;
  for (Need &need : needs) {
    need.offset = end;
    end = llvm::alignTo(end + need.bytes, alignment);
  }
  setPlaces(kernel, needs, alignment);
  auto needAt = [&](const SharedBytes &bytes) {
    return std::prev(llvm::partition_point(needs, [&](const Need &need) { return need.offset <= bytes.first; }));
  };
  auto note = [&](const SharedBytes &earlier, const SharedBytes &later) {
    Need *a = needAt(earlier), *b = needAt(later);
    a->unordered.insert(b);
    b->unordered.insert(a);
  };
  walkSharedFlow(kernel.getBody(), {[](Operation *, Unfinished) {}, note, /*endsOrder=*/false});
}

int64_t weft::warp::leastSharedBytes(func::FuncOp kernel) {
  SmallVector<Need> needs = Liveness(kernel, tileAlignment(kernel)).needs;
  return place(needs, /*apart=*/0) + bytesOfTensorSlots(kernel);
}

int64_t weft::warp::mostSharedBytes(func::FuncOp kernel, int64_t least, const weft::TargetInfo &target) {
  constexpr int64_t enoughWarps = 16;
  int64_t warps = weft::tile::scheduleOf(kernel).warps;
  int64_t blocks = std::clamp<int64_t>(target.sharedBytesPerProcessor / (least + target.reservedSharedBytes), 1,
                                       std::max<int64_t>(1, enoughWarps / warps));
  return std::min(target.sharedBytesPerBlock, target.sharedBytesPerProcessor / blocks - target.reservedSharedBytes);
}

/// Gives every need its place, as many apart as there is room for, the small ones first; the bytes that all of them span.
/// `least`: those that they take at the least.
static int64_t placeApart(func::FuncOp kernel, MutableArrayRef<Need> needs, int64_t least,
                          const weft::TargetInfo &target) {
  const int64_t alignment = tileAlignment(kernel), most = mostSharedBytes(kernel, least, target);
  findUnordered(kernel, needs, alignment);
  int64_t apart = least, total = 0;
  while ((total = place(needs, apart)) > most && apart > 0)
    apart /= 2;
  setPlaces(kernel, needs, alignment);
  return total;
}

void weft::warp::placeShared(func::FuncOp kernel, const weft::TargetInfo &target) {
  SmallVector<Need> needs = Liveness(kernel, tileAlignment(kernel)).needs;
  placeApart(kernel, needs, place(needs, /*apart=*/0), target);
}

void AllocateShared::runOnOperation() {
  func::FuncOp kernel = getOperation();
  if (kernel.isDeclaration())
    return;
  if (failed(expectLayouts(kernel)))
    return signalPassFailure();
  SmallVector<Need> needs = Liveness(kernel, tileAlignment(kernel)).needs;
  int64_t total = place(needs, /*apart=*/0);

  const weft::TargetInfo *target = weft::TargetInfo::of(kernel);
  if (!target)
    return signalPassFailure();
  if (total > target->sharedBytesPerBlock) {
    reportTooMuch(kernel, needs, total, *target);
    return signalPassFailure();
  }
  total = placeApart(kernel, needs, total, *target);
  sayPlaces(kernel, needs, total, *target);
  kernel->setAttr(sharedBytesAttrName, Builder(kernel.getContext()).getI64IntegerAttr(total));
}

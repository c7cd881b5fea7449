// Part of Weft. SPDX-License-Identifier: Apache-2.0
// cp.async.bulk, cp.reduce.async.bulk (PTX ISA 9.7.9.25.4), their tensor forms (9.7.9.25.5) and their groups.
#include "runtime/Simulator/Interface/TensorMap.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/EngineReads.h"
#include "runtime/Simulator/Machine/Checks/GlobalProxy.h"
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Forms/Engines/BulkOperands.h"
#include "runtime/Simulator/Machine/Forms/Engines/Reductions.h"
#include "runtime/Simulator/Machine/Forms/Engines/Requirements.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/Running/BulkCopies.h"
#include "runtime/Simulator/Machine/Running/Mbarriers.h"
#include "runtime/Simulator/Semantics/Half.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {
namespace {

using ptx::Type;

/// Record::aux. op[0]: shared memory; op[1]: global memory, the map, or shared memory that is sent to another block;
/// op[2]: mbarrier; op[3]: size; op[4]: the blocks of a multicast, or noRef. Record::wide: coordinates.
struct BulkForm {
  BulkKind kind = BulkKind::Load;
  unsigned rank = 0; ///< of a tensor, 0 without
  bool prefetches = false;
  bool sends = false; ///< from shared memory to another block's
  bool pair = false;  ///< .cta_group::2: completes on an mbarrier of either block of the target's pair
  AddressForm shared, global, object;
  std::string_view operation; ///< of a reduction
  void (*reduce)(std::byte *, const std::byte *, uint32_t) = nullptr;
};

uint32_t swizzled(uint32_t address, unsigned swizzle) {
  return swizzle ? address ^ ((address >> 7 & (swizzle / 16 - 1)) << 4) : address;
}

/// The map at a generic address: of a parameter, or in global memory.
std::optional<TensorMap> readMap(Warp &warp, const Record &record, unsigned lane, uint64_t address) {
  uint64_t addresses[laneCount];
  std::fill_n(addresses, laneCount, address);
  if (address % 64) {
    report(warp, FindingKind::Misaligned, lane,
           format("reads a tensor map at {:#x}, which is no multiple of 64", address & windowOffsetMask));
    return std::nullopt;
  }
  std::array<std::byte, 128> bytes;
  // Read when the copy is issued, not while it is on its way: no wait tells a thread that a load has read its map, and
  // CUTLASS's grouped products replace maps of which loads are still on their way.
  Record atOnce = record;
  atOnce.order = 0;
  for (unsigned i = 0; i < 128; i += 16) {
    std::fill_n(addresses, laneCount, address + i);
    const Resolved at = resolveGeneric(warp, atOnce, 1u << lane, addresses, 16, AccessKind::Read);
    if (!at.mask)
      return std::nullopt;
    std::memcpy(bytes.data() + i, at.at[lane], 16);
  }
  if (address >> windowShift == 0)
    checkMapUse(warp, lane, address);
  std::optional<TensorMap> map = decodeTensorMap(bytes);
  if (!map) {
    report(warp, FindingKind::OutOfBounds, lane, "uses 128 bytes as a tensor map that are none");
  } else if (Status good = check(*map); !good) { // one that the kernel made
    report(warp, FindingKind::OutOfBounds, lane, good.error().message);
    return std::nullopt;
  }
  return map;
}

/// The fill of what lies outside of a tensor.
std::array<std::byte, 16> fillOf(const TensorMap &map) {
  std::array<std::byte, 16> fill{};
  if (!map.fillsNaN)
    return fill;
  for (unsigned i = 0; i < 16; i += 2) // a NaN of every type
    std::memcpy(fill.data() + i, &semantics::outsideNaN, 2);
  return fill;
}

/// Walks the boxes of a tensor: the runs of one copy.
class BoxWalk {
public:
  BoxWalk(const TensorMap &map, const int32_t *start, uint32_t shared, std::vector<BulkRun> &runs)
      : map_(map), start_(start), at_(shared), size_(bytesOf(map.type)), runs_(runs) {}
  void walk() {
    uint64_t bytes = size_;
    for (unsigned i = 0; i < map_.rank; ++i)
      bytes *= map_.box[i];
    runs_.reserve(std::min<uint64_t>(bytes / 16, 1 << 14)); // a map may have been changed to anything
    walk(map_.rank - 1, 0, true);
  }
  uint32_t end() const { return at_; }

private:
  bool contains(unsigned dimension, int64_t index) const {
    return index >= 0 && uint64_t(index) < map_.dims[dimension];
  }
  void walk(unsigned dimension, uint64_t offset, bool inside) {
    if (dimension == 0)
      return row(offset, inside);
    for (uint32_t i = 0; i < map_.box[dimension]; i += map_.elementStrides[dimension]) {
      const int64_t index = int64_t(start_[dimension]) + i;
      walk(dimension - 1, offset + uint64_t(index) * map_.strides[dimension - 1], inside && contains(dimension, index));
    }
  }
  /// The innermost dimension, 16 bytes at a time where swizzling or the tensor's end parts them.
  void row(uint64_t offset, bool inside) {
    const uint32_t step = map_.elementStrides[0];
    const uint64_t address = map_.address + offset + uint64_t(int64_t(start_[0])) * size_, bytes = map_.box[0] * size_;
    if (step == 1 && bytes % 16 == 0 && inside && contains(0, start_[0]) &&
        contains(0, int64_t(start_[0]) + map_.box[0] - 1)) {
      for (uint64_t at = 0; at < bytes; at += 16)
        add(16, address + at);
      return;
    }
    const uint32_t perPiece = step > 1 ? 1 : std::min(map_.box[0], 16 / size_);
    for (uint32_t i = 0; i < map_.box[0]; i += step > 1 ? step : perPiece) {
      const int64_t first = int64_t(start_[0]) + i;
      const uint64_t address = map_.address + offset + uint64_t(first) * size_;
      if (inside && contains(0, first) && contains(0, first + perPiece - 1)) {
        add(perPiece * size_, address);
        continue;
      }
      for (uint32_t k = 0; k < perPiece; ++k)
        add(size_, inside && contains(0, first + k) ? address + k * size_ : 0);
    }
  }
  void add(uint32_t bytes, uint64_t address) {
    const uint32_t to = swizzled(at_, map_.swizzle);
    at_ += bytes;
    if (!runs_.empty()) {
      BulkRun &last = runs_.back();
      if (last.shared + last.bytes == to &&
          (address ? last.global && last.global + last.bytes == address : !last.global)) {
        last.bytes += bytes;
        return;
      }
    }
    runs_.push_back({to, bytes, address});
  }

  const TensorMap &map_;
  const int32_t *start_;
  uint32_t at_;
  unsigned size_;
  std::vector<BulkRun> &runs_;
};

/// The runs of a box; false, with a finding, where the map does not fit the instruction.
bool boxOf(Warp &warp, const Record &record, unsigned lane, BulkCopy &copy, uint32_t shared) {
  const auto &form = *static_cast<const BulkForm *>(record.aux);
  const std::optional<TensorMap> map = readMap(warp, record, lane, form.global.at(warp, record, lane));
  if (!map)
    return false;
  if (map->rank != form.rank) {
    report(warp, FindingKind::OutOfBounds, lane,
           format("expected a tensor map of {} dimensions, but got one of {}", form.rank, map->rank));
    return false;
  }
  if (shared % 128) {
    report(warp, FindingKind::Misaligned, lane,
           format("copies a box to or from byte {} of shared memory, which is no multiple of 128", shared));
    return false;
  }
  int32_t start[5] = {};
  for (unsigned i = 0; i < form.rank; ++i)
    start[i] = warp.reg<const int32_t>(record.wide[i])[lane];
  // Not among the ISA's rules; a GPU (H200, R580) ends the kernel with CUDA_ERROR_ILLEGAL_INSTRUCTION.
  if (const int64_t byte = int64_t(start[0]) * bytesOf(map->type); byte % 16) {
    report(warp, FindingKind::Misaligned, lane,
           format("expected a box that begins at a multiple of 16 bytes along its first dimension, but got element {}, "
                  "byte {}",
                  start[0], byte));
    return false;
  }
  BoxWalk box(*map, start, shared, copy.runs);
  box.walk();
  copy.bytes = box.end() - shared;
  copy.fill = fillOf(*map);
  if (copy.kind == BulkKind::Reduce) {
    copy.reduce = tensorReduction(form.operation, map->type);
    if (!copy.reduce)
      report(warp, FindingKind::Unsupported, lane, format("'.{}' of a tensor of this type", form.operation));
    return copy.reduce != nullptr;
  }
  return true;
}

/// The run of a copy without a map.
bool stretchOf(Warp &warp, const Record &record, unsigned lane, BulkCopy &copy, uint32_t shared) {
  const auto &form = *static_cast<const BulkForm *>(record.aux);
  const uint64_t global = form.global.at(warp, record, lane);
  const uint32_t bytes = warp.reg<const uint32_t>(record.op[3])[lane];
  if (shared % 16 || global % 16 || bytes % 16) {
    report(warp, FindingKind::Misaligned, lane,
           format("expected two addresses and a size that are multiples of 16, but got byte {} of shared memory, {:#x} "
                  "and {} bytes",
                  shared, global, bytes));
    return false;
  }
  copy.runs.push_back({shared, bytes, form.sends ? 0 : global});
  if (form.sends)
    copy.source = {uint32_t(global & windowOffsetMask), bytes};
  copy.bytes = bytes;
  copy.reduce = form.reduce;
  return bytes != 0;
}

/// The same of a load whose mbarrier may be the other's of the target's pair.
Block *pairTarget(Warp &warp, BulkCopy &copy, uint32_t to, uint32_t object) {
  Block *target = blockAt(warp, to);
  const Block *signalled = blockAt(warp, object);
  if (!target || !signalled || target->rank / 2 != signalled->rank / 2)
    return loadTarget(warp, copy, to, object);
  copy.object = object & rankOffsetMask;
  copy.parity = uint8_t(signalled->rank % 2 + 1);
  return target;
}

/// Which blocks a load goes to, and the mbarrier; false, with a finding, where the cluster does not have them.
bool findTargets(Warp &warp, const Record &record, unsigned lane, BulkCopy &copy, uint32_t shared) {
  const auto &form = *static_cast<const BulkForm *>(record.aux);
  const auto object = uint32_t(form.object.at(warp, record, lane) & windowOffsetMask);
  const Block *target = (form.pair ? pairTarget : loadTarget)(warp, copy, shared, object);
  if (!target)
    return false;
  if (record.op[4] == noRef) {
    copy.destinations = target == warp.block && !form.sends ? 0 : 1u << target->rank;
    return true;
  }
  copy.destinations = warp.reg<const uint32_t>(record.op[4])[lane] & 0xffff;
  const size_t ranks = warp.block->cluster->blocks.size();
  if (copy.destinations && copy.destinations >> ranks == 0)
    return true;
  report(warp, FindingKind::OutOfBounds, lane,
         format("expected a mask of some of the {} blocks of the cluster, but got {:#x}", ranks, copy.destinations));
  return false;
}

void runBulk(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const BulkForm *>(record.aux);
  eachLane(mask, [&](unsigned lane) {
    BulkCopy copy;
    copy.kind = form.kind;
    copy.pc = warp.here();
    copy.warp = warp.index;
    copy.lane = lane;
    uint32_t shared = form.prefetches ? 0 : uint32_t(form.shared.at(warp, record, lane) & windowOffsetMask);
    if (form.kind == BulkKind::Load && !form.prefetches && !findTargets(warp, record, lane, copy, shared))
      return;
    shared &= rankOffsetMask;
    if (!(form.rank ? boxOf(warp, record, lane, copy, shared) : stretchOf(warp, record, lane, copy, shared)))
      return;
    if (!form.prefetches)
      issueBulk(warp, std::move(copy));
  });
}

void runCommit(Warp &warp, const Record &, uint32_t mask) { commitBulk(warp, mask); }
void runWait(Warp &warp, const Record &record, uint32_t mask) {
  awaitBulk(warp, mask, uint32_t(record.imm), record.target != 0);
}
/// Record::imm: whether it is of global memory too; Record::target: and of nothing else.
void runProxyFence(Warp &warp, const Record &record, uint32_t mask) {
  if (record.imm)
    fenceGlobalProxy(warp);
  if (record.target)
    return;
  fenceInitialised(warp, mask);
  fenceProxy(warp, mask);
}
void runClusterFence(Warp &warp, const Record &, uint32_t) {
  if (warp.block->grid->options.checks.races)
    fence(warp, Scope::Cluster);
}
void runRestrictedFence(Warp &warp, const Record &record, uint32_t mask) {
  fenceInitialised(warp, mask);
  fenceProxy(warp, mask);
  runClusterFence(warp, record, mask);
}
void bindMapHint(Binding &b) {
  b.decoder.address(b.frame, b.operand(0));
  b.record.run = [](Warp &, const Record &, uint32_t) {};
}

/// The coordinates of [map, {x, y, ...}].
void bindCoordinates(Binding &b, const ptx::Operand &operand, unsigned rank) {
  if (operand.kind != ptx::OperandKind::Address || operand.elements.size() != 2)
    b.fail(operand, "expected a tensor map and coordinates in brackets");
  const ptx::Operand &list = operand.elements[1];
  const bool vector = list.kind == ptx::OperandKind::Vector;
  if (vector ? list.elements.size() != rank : rank != 1)
    b.fail(operand, format("expected {} coordinates", rank));
  std::vector<Ref> refs;
  for (unsigned i = 0; i < rank; ++i)
    refs.push_back(b.source(vector ? list.elements[i] : list, Type::S32));
  b.setWide(std::move(refs), 0);
}

/// Operands: [shared], [global], size, [mbarrier] of a load, [global], [shared], size of a store, without a size and
/// with coordinates of a tensor.
void bindBulk(Binding &b) {
  needsHopper(b);
  BulkForm form;
  form.prefetches = b.has("prefetch");
  const bool loads = b.has("complete") || form.prefetches;
  form.kind = loads ? BulkKind::Load : b.has("reduce") ? BulkKind::Reduce : BulkKind::Store;
  form.rank = b.has("tensor") ? unsigned(b.modifier("dim")[0] - '0') : 0;
  form.sends = b.has("from");
  form.pair = b.modifier("group") == "cta_group::2";
  if (b.has("group"))
    needsTensorMemory(b);
  b.decoder.kernel().usesPairs |= form.pair;
  size_t at = 0;
  if (loads && !form.prefetches)
    form.shared = addressOf(b, b.operand(at++), 0);
  const ptx::Operand &global = b.operand(at++);
  form.global = addressOf(b, global, 1);
  if (form.rank)
    bindCoordinates(b, global, form.rank);
  if (!loads)
    form.shared = addressOf(b, b.operand(at++), 0);
  if (!form.rank) {
    const ptx::Operand &bytes = b.operand(at++);
    if (bytes.kind == ptx::OperandKind::Integer && bytes.bits % 16)
      b.fail(bytes, format("expected a multiple of 16 bytes, but got '{}'", bytes.text));
    b.record.op[3] = b.source(bytes, Type::U32);
  }
  if (loads && !form.prefetches)
    form.object = addressOf(b, b.operand(at++), 2);
  if (b.has("multicast"))
    b.record.op[4] = b.source(b.operand(at++), Type::U16);
  if (at + b.has("hint") != b.operandCount())
    b.fail(format("expected {} operands, but got {}", at + b.has("hint"), b.operandCount()));
  if (b.has("op")) {
    form.operation = b.modifier("op");
    form.reduce = form.rank ? nullptr : bulkReduction(form.operation, b.type());
    if (!form.rank && !form.reduce)
      b.unsupported(format("'{}'", b.instruction.spelling()));
  }
  b.site.addressOperand = 1;
  b.record.order = form.kind == BulkKind::Load     ? uint8_t(orderCopy)
                   : form.kind == BulkKind::Reduce ? uint8_t(orderStrong | orderWide)
                                                   : uint8_t(0);
  // Boxes too: tensors and boxes begin at multiples of 16 bytes, so that of 16 bytes of which a box has some, where its
  // tensor ends, no other box has the rest.
  b.decoder.noteAccess(ptx::Space::Shared, 16);
  if (!form.sends)
    b.decoder.noteAccess(ptx::Space::Global, 16);
  b.decoder.kernel().usesEngines = true;
  b.keep(form);
  b.record.run = runBulk;
}

void bindCommit(Binding &b) {
  needsHopper(b);
  b.decoder.kernel().usesEngines = true;
  b.record.run = runCommit;
}

void bindWait(Binding &b) {
  needsHopper(b);
  const ptx::Operand &count = b.operand(0);
  if (count.kind != ptx::OperandKind::Integer || count.bits > 1u << 20)
    b.fail(count, "expected a number of groups");
  b.record.imm = int64_t(count.bits);
  b.record.target = b.has("read");
  b.decoder.kernel().usesEngines = true;
  b.record.run = runWait;
}

template <Executor run> void bindTo(Binding &b) { b.record.run = run; }

void bindProxyFence(Binding &b) {
  b.record.imm = b.modifier("space").empty() || b.modifier("space") == "global";
  b.record.target = b.modifier("space") == "global";
  b.record.run = runProxyFence;
}

constexpr auto cls = InstructionClass::AsyncCopy;
#define WEFT_DIM "dim=1d|2d|3d|4d|5d"
#define WEFT_HINT "hint=L2::cache_hint?"
const Form forms[] = {
    {"cp",
     "async bulk to=shared::cta|shared::cluster global complete=mbarrier::complete_tx::bytes "
     "multicast=multicast::cluster? " WEFT_HINT,
     "*", cls, bindBulk},
    {"cp",
     "async bulk tensor " WEFT_DIM " to=shared::cta|shared::cluster global tile? "
     "complete=mbarrier::complete_tx::bytes multicast=multicast::cluster? group=cta_group::1|cta_group::2? " WEFT_HINT,
     "*", cls, bindBulk},
    {"cp", "async bulk to=shared::cluster from=shared::cta complete=mbarrier::complete_tx::bytes", "*", cls, bindBulk},
    {"cp", "async bulk global shared::cta bulk_group " WEFT_HINT, "*", cls, bindBulk},
    {"cp", "async bulk tensor " WEFT_DIM " global shared::cta tile? bulk_group " WEFT_HINT, "*", cls, bindBulk},
    {"cp",
     "reduce async bulk global shared::cta bulk_group " WEFT_HINT
     " op=add|min|max|inc|dec|and|or|xor noftz? type=f16|bf16|f32|f64|b32|u32|s32|b64|u64|s64",
     "*", cls, bindBulk},
    {"cp",
     "reduce async bulk tensor " WEFT_DIM " global shared::cta op=add|min|max|inc|dec|and|or|xor tile? "
     "bulk_group " WEFT_HINT,
     "*", cls, bindBulk},
    {"cp",
     "reduce async bulk to=shared::cluster from=shared::cta complete=mbarrier::complete_tx::bytes "
     "op=add|min|max|inc|dec type=u32|s32|u64",
     "*", cls, bindBulk},
    {"cp",
     "reduce async bulk to=shared::cluster from=shared::cta complete=mbarrier::complete_tx::bytes op=and|or|xor "
     "type=b32",
     "*", cls, bindBulk},
    {"cp", "async bulk prefetch L2 global " WEFT_HINT, "*", cls, bindBulk},
    {"cp", "async bulk prefetch tensor " WEFT_DIM " L2 global tile? " WEFT_HINT, "*", cls, bindBulk},
    {"cp", "async bulk commit_group", "", cls, bindCommit},
    {"cp", "async bulk wait_group read?", "*", cls, bindWait},
    {"prefetch", "space=param|const|global? tensormap", "*", InstructionClass::Other, bindMapHint},
    {"fence", "proxy async space=global|shared::cta|shared::cluster?", "", InstructionClass::Fence, bindProxyFence},
    {"fence",
     "proxy async::generic order=acquire|release space=sync_restrict::shared::cta|sync_restrict::shared::cluster "
     "cluster",
     "", InstructionClass::Fence, bindTo<runRestrictedFence>},
    {"fence", "order=acquire|release space=sync_restrict::shared::cta|sync_restrict::shared::cluster cluster", "",
     InstructionClass::Fence, bindTo<runClusterFence>},
};

} // namespace

AddressForm addressOf(Binding &b, ptx::Operand operand, int op) {
  operand.elements.resize(std::min<size_t>(operand.elements.size(), 1));
  const AddressOperand address = b.decoder.address(b.frame, operand);
  b.record.op[op] = address.base;
  return {op, address.offset, address.wide};
}

Block *loadTarget(Warp &warp, BulkCopy &copy, uint32_t to, uint32_t object) {
  Block *target = blockAt(warp, to);
  copy.object = object & rankOffsetMask;
  if (target && target == blockAt(warp, object))
    return target;
  if (target && blockAt(warp, object))
    report(warp, FindingKind::MbarrierMisuse, copy.lane,
           format("expected an mbarrier of block rank {} of the cluster, where the bytes go, but got one of rank {}",
                  target->rank, blockAt(warp, object)->rank));
  else
    report(warp, FindingKind::OutOfBounds, copy.lane,
           format("goes to, or completes in, a block that a cluster of {} blocks does not have",
                  warp.block->cluster->blocks.size()));
  return nullptr;
}

std::span<const Form> bulkForms() { return forms; }

} // namespace weft::simulator::machine

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tensormap.replace, tensormap.cp_fenceproxy (PTX ISA 9.7.9.27) and the fences of tensor maps (9.7.13.4): maps that a
// kernel makes. 128 zeros are an empty map; what a driver would refuse is reported when a copy uses it.
#include "runtime/Simulator/Interface/TensorMap.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/GlobalProxy.h"
#include "runtime/Simulator/Machine/Checks/GlobalRaces.h"
#include "runtime/Simulator/Machine/Forms/Engines/BulkOperands.h"
#include "runtime/Simulator/Machine/Forms/Engines/Requirements.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/Running/Divergence.h"

namespace weft::simulator::machine {
namespace {

using ptx::Space;
using ptx::Type;

constexpr unsigned mapBytes = 128;
using MapBytes = std::array<std::byte, mapBytes>;

enum class Field : uint8_t {
  Address,
  Rank,
  BoxDim,
  GlobalDim,
  GlobalStride,
  ElementStride,
  ElementType,
  Interleave,
  Swizzle,
  Fill
};
constexpr std::string_view fieldNames[] = {"global_address", "rank",           "box_dim",  "global_dim",
                                           "global_stride",  "element_stride", "elemtype", "interleave_layout",
                                           "swizzle_mode",   "fill_mode"};

/// Record::aux of tensormap.replace. op[0]: the map; op[1]: which dimension; op[2]: the new value.
struct ReplaceForm {
  Field field = Field::Address;
  Space space = Space::Generic;
  AddressForm map;
  bool wideValue = false;
};

/// Puts a value into a map; an expectation that it does not meet, or nothing.
std::string replaceField(TensorMap &map, Field field, uint32_t ordinal, uint64_t value) {
  static constexpr TensorType types[] = {TensorType::U8,         TensorType::U16, TensorType::U32,  TensorType::S32,
                                         TensorType::U64,        TensorType::S64, TensorType::F16,  TensorType::F32,
                                         TensorType::F32Flushed, TensorType::F64, TensorType::BF16, TensorType::TF32,
                                         TensorType::TF32Flushed};
  static constexpr uint8_t spans[] = {0, 32, 64, 128};
  const uint32_t dimensions = field == Field::GlobalStride ? 4 : 5;
  const bool perDimension = field >= Field::BoxDim && field <= Field::ElementStride;
  if (perDimension && ordinal >= dimensions)
    return format("a dimension below {}, but got {}", dimensions, ordinal);
  auto below = [&](uint64_t bound) {
    return value < bound ? std::string()
                         : format("a value below {} of '.{}', but got {}", bound, fieldNames[size_t(field)], value);
  };
  std::string wrong;
  switch (field) {
  case Field::Address:
    map.address = value;
    break;
  case Field::Rank:
    wrong = below(5);
    map.rank = uint8_t(wrong.empty() ? value + 1 : map.rank);
    break;
  case Field::BoxDim:
    map.box[ordinal] = uint32_t(std::min<uint64_t>(value, 0xffff));
    break;
  case Field::GlobalDim:
    map.dims[ordinal] = value ? value : uint64_t{1} << 32;
    break;
  case Field::GlobalStride:
    map.strides[ordinal] = value;
    break;
  case Field::ElementStride:
    map.elementStrides[ordinal] = uint32_t(std::min<uint64_t>(value, 0xff));
    break;
  case Field::ElementType:
    wrong = below(std::size(types));
    map.type = wrong.empty() ? types[value] : map.type;
    break;
  case Field::Interleave:
    wrong = below(1);
    break;
  case Field::Swizzle:
    wrong = below(std::size(spans));
    map.swizzle = wrong.empty() ? spans[value] : map.swizzle;
    break;
  case Field::Fill:
    wrong = below(2);
    map.fillsNaN = value != 0;
    break;
  }
  return wrong;
}

/// Where the 128 bytes at a lane's address lie, or null, with a finding; all of them are read and, unless only read,
/// written.
std::byte *resolveMap(Warp &warp, const Record &record, unsigned lane, Space space, uint64_t address, AccessKind kind) {
  if (address % mapBytes) {
    report(
        warp, FindingKind::Misaligned, lane,
        format("expected a tensor map at a multiple of {} bytes, but got {:#x}", mapBytes, address & windowOffsetMask));
    return nullptr;
  }
  std::byte *first = nullptr;
  for (unsigned i = 0; i < mapBytes; i += 16) {
    uint64_t addresses[laneCount];
    std::fill_n(addresses, laneCount, address + i);
    const Resolved at = space == Space::Shared   ? resolveShared(warp, record, 1u << lane, addresses, 16, kind)
                        : space == Space::Global ? resolveGlobal(warp, record, 1u << lane, addresses, 16, kind)
                                                 : resolveGeneric(warp, record, 1u << lane, addresses, 16, kind);
    if (!at.mask)
      return nullptr;
    first = i ? first : at.at[lane];
  }
  return first;
}

/// Marks the 128 bytes of a map as written by a lane, in either memory.
void noteWrite(Warp &warp, const Record &record, unsigned lane, uint64_t address, bool shared) {
  if (shared) {
    if (tracksShared(warp))
      shadowWrite(warp, lane, uint32_t(address & windowOffsetMask), mapBytes, nullptr);
    return;
  }
  if (GlobalAccesses accesses(warp, record); accesses.tracks())
    accesses.write(lane, address, mapBytes, nullptr);
}

void runReplace(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const ReplaceForm *>(record.aux);
  eachLane(mask, [&](unsigned lane) {
    const uint64_t address = form.map.at(warp, record, lane);
    std::byte *at = resolveMap(warp, record, lane, form.space, address, AccessKind::Read);
    if (!at)
      return;
    MapBytes bytes;
    std::memcpy(bytes.data(), at, mapBytes);
    std::optional<TensorMap> map = decodeUnfinished(bytes);
    if (!map)
      return report(warp, FindingKind::OutOfBounds, lane,
                    "changes 128 bytes as a tensor map that are none, nor all zero");
    const uint32_t ordinal = record.op[1] == noRef ? 0 : warp.reg<const uint32_t>(record.op[1])[lane];
    const uint64_t value =
        form.wideValue ? warp.reg<const uint64_t>(record.op[2])[lane] : warp.reg<const uint32_t>(record.op[2])[lane];
    if (std::string wrong = replaceField(*map, form.field, ordinal, value); !wrong.empty())
      report(warp, FindingKind::OutOfBounds, lane, "expected " + wrong);
    bytes = encodeUnchecked(*map);
    const bool shared = form.space == Space::Shared || address >> windowShift == sharedWindow >> windowShift;
    noteWrite(warp, record, lane, address, shared);
    std::memcpy(at, bytes.data(), mapBytes);
    warp.worker->changed = true;
  });
}

void bindReplace(Binding &b) {
  needsHopper(b);
  ReplaceForm form;
  form.field =
      Field(std::find(std::begin(fieldNames), std::end(fieldNames), b.modifier("field")) - std::begin(fieldNames));
  form.space = b.modifier("space") == "global"             ? Space::Global
               : b.modifier("space").starts_with("shared") ? Space::Shared
                                                           : Space::Generic;
  const bool perDimension = form.field >= Field::BoxDim && form.field <= Field::ElementStride;
  form.wideValue = form.field == Field::Address || form.field == Field::GlobalStride;
  if (b.operandCount() != (perDimension ? 3u : 2u))
    b.fail(perDimension ? "expected a tensor map, a dimension and a value" : "expected a tensor map and a value");
  if (form.wideValue != (b.type() == Type::B64))
    b.fail(format("expected '.b{}' of '.{}'", form.wideValue ? 64 : 32, b.modifier("field")));
  form.map = addressOf(b, b.operand(0), 0);
  if (perDimension)
    b.record.op[1] = b.source(b.operand(1), Type::U32);
  b.record.op[2] = b.source(b.operand(perDimension ? 2 : 1), b.type());
  b.site.addressOperand = 0;
  b.decoder.noteAccess(form.space, 16);
  b.keep(form);
  b.record.run = runReplace;
}

/// Record::aux of tensormap.cp_fenceproxy. op[0]: global memory; op[1]: shared memory.
struct CopyForm {
  AddressForm to, from;
};

/// Warps execute it together; the first lane copies.
void runCopy(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const CopyForm *>(record.aux);
  if (warp.block->grid->options.checks.barriers && !gather(warp, mask, warp.live))
    return;
  const unsigned lane = firstLane(mask);
  const uint64_t to = form.to.at(warp, record, lane);
  const std::byte *from =
      resolveMap(warp, record, lane, Space::Shared, form.from.at(warp, record, lane), AccessKind::Read);
  std::byte *at = from ? resolveMap(warp, record, lane, Space::Global, to, AccessKind::Write) : nullptr;
  if (!at)
    return;
  noteWrite(warp, record, lane, to, false);
  std::memcpy(at, from, mapBytes);
  warp.worker->changed = true;
}

void bindSize(Binding &b, const ptx::Operand &size) {
  if (size.kind != ptx::OperandKind::Integer || size.bits != mapBytes)
    b.fail(size, "expected 128 bytes");
}

void bindCopy(Binding &b) {
  needsHopper(b);
  if (b.operandCount() != 3)
    b.fail("expected two addresses and a size");
  CopyForm form;
  form.to = addressOf(b, b.operand(0), 0);
  form.from = addressOf(b, b.operand(1), 1);
  bindSize(b, b.operand(2));
  b.site.aligned = true;
  b.site.addressOperand = 0;
  b.decoder.noteAccess(Space::Shared, 16);
  b.decoder.noteAccess(Space::Global, 16);
  b.keep(form);
  b.record.run = runCopy;
}

void runRelease(Warp &warp, const Record &record, uint32_t) {
  if (warp.block->grid->options.checks.races)
    fence(warp, scopeOf(record.order));
  releaseMaps(warp);
}

void runAcquire(Warp &warp, const Record &record, uint32_t mask) {
  if (warp.block->grid->options.checks.races)
    fence(warp, scopeOf(record.order));
  acquireMap(warp, static_cast<const AddressForm *>(record.aux)->at(warp, record, firstLane(mask)));
}

void bindFence(Binding &b) {
  needsHopper(b);
  const bool acquires = b.modifier("order") == "acquire";
  if (b.operandCount() != (acquires ? 2u : 0u))
    b.fail(acquires ? "expected a tensor map and a size" : "expected no operands");
  b.record.order = orderOfScope(b.modifier("scope"));
  b.record.run = acquires ? runAcquire : runRelease;
  if (!acquires)
    return;
  b.keep(addressOf(b, b.operand(0), 0));
  bindSize(b, b.operand(1));
}

constexpr auto cls = InstructionClass::Other;
#define WEFT_SPACE "space=global|shared::cta? b1024 "
const Form forms[] = {
    {"tensormap", "replace tile field=global_address|global_stride " WEFT_SPACE "type=b64", "*", cls, bindReplace},
    {"tensormap",
     "replace tile "
     "field=rank|box_dim|global_dim|element_stride|elemtype|interleave_layout|swizzle_mode|fill_mode " WEFT_SPACE
     "type=b32",
     "*", cls, bindReplace},
    {"tensormap", "cp_fenceproxy global shared::cta tensormap::generic release scope=cta|cluster|gpu|sys sync aligned",
     "*", InstructionClass::Fence, bindCopy},
    {"fence", "proxy tensormap::generic order=release|acquire scope=cta|cluster|gpu|sys", "*", InstructionClass::Fence,
     bindFence},
};

} // namespace

std::span<const Form> tensorMapForms() { return forms; }

} // namespace weft::simulator::machine

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// mapa, getctarank (PTX ISA 9.7.9.24), barrier.cluster (9.7.13.4), st.async and red.async (9.7.9.12, 9.7.13.8).
#include "runtime/Simulator/Machine/Checks/Remote.h"
#include "runtime/Simulator/Machine/Forms/Engines/BulkOperands.h"
#include "runtime/Simulator/Machine/Forms/Engines/Reductions.h"
#include "runtime/Simulator/Machine/Forms/Engines/Requirements.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/Running/Clusters.h"
#include "runtime/Simulator/Machine/State/Lanes.h"

namespace weft::simulator::machine {
namespace {

using ptx::Type;

/// The generic address of shared memory that a lane gives; reports one that is none.
bool isSharedAddress(Warp &warp, unsigned lane, uint64_t address, bool generic) {
  if (!generic || (address & ~windowOffsetMask) == sharedWindow)
    return true;
  report(warp, FindingKind::OutOfBounds, lane, format("expected an address of shared memory, but got {:#x}", address));
  return false;
}

/// op[0] = the address that op[1] is in the block of rank op[2]; Record::imm: whether addresses are generic. A rank beyond
/// the cluster is a fault where the address is used: kernels map every lane's number and use those of the first lanes.
template <typename T> void runMapa(Warp &warp, const Record &record, uint32_t mask) {
  const auto *address = warp.reg<const T>(record.op[1]);
  const uint32_t *rank = warp.reg<const uint32_t>(record.op[2]);
  T results[laneCount] = {};
  eachLane(mask, [&](unsigned lane) {
    if (!isSharedAddress(warp, lane, address[lane], record.imm))
      return;
    const uint64_t offset = (address[lane] & rankOffsetMask) | uint64_t{std::min(rank[lane], 254u) + 1} << rankShift;
    results[lane] = T(record.imm ? sharedWindow | offset : offset);
  });
  commit(warp.reg<T>(record.op[0]), results, mask);
}

template <typename T> void runRank(Warp &warp, const Record &record, uint32_t mask) {
  const auto *address = warp.reg<const T>(record.op[1]);
  uint32_t results[laneCount] = {};
  eachLane(mask, [&](unsigned lane) {
    if (!isSharedAddress(warp, lane, address[lane], record.imm))
      return;
    const uint32_t rank = uint32_t(address[lane] & windowOffsetMask) >> rankShift;
    results[lane] = rank ? rank - 1 : warp.block->rank;
  });
  commit(warp.reg<uint32_t>(record.op[0]), results, mask);
}

/// An address of shared memory: a register, a variable, or either plus an offset.
Ref sharedAddress(Binding &b, const ptx::Operand &operand) { return b.source(operand, b.type()); }

void bindMapa(Binding &b) {
  needsHopper(b);
  if (b.operandCount() != 3)
    b.fail("expected a destination, an address and a rank");
  b.setDestination(0, b.destination(b.operand(0), b.type()));
  b.record.op[1] = sharedAddress(b, b.operand(1));
  b.record.op[2] = b.source(b.operand(2), Type::U32);
  b.record.imm = !b.has("space");
  b.record.run = ptx::typeBits(b.type()) == 64 ? runMapa<uint64_t> : runMapa<uint32_t>;
}

void bindRank(Binding &b) {
  needsHopper(b);
  if (b.operandCount() != 2)
    b.fail("expected a destination and an address");
  b.setDestination(0, b.destination(b.operand(0), Type::U32));
  b.record.op[1] = sharedAddress(b, b.operand(1));
  b.record.imm = !b.has("space");
  b.record.run = ptx::typeBits(b.type()) == 64 ? runRank<uint64_t> : runRank<uint32_t>;
}

void bindBarrier(Binding &b) {
  needsHopper(b);
  ClusterBarrierForm form;
  form.waits = b.modifier("what") == "wait";
  form.aligned = b.has("aligned");
  form.relaxed = b.modifier("order") == "relaxed";
  if (b.modifier("order") == (form.waits ? "release" : "acquire") || (form.waits && form.relaxed))
    b.fail(format("expected '.{}' of barrier.cluster.{}, but got '.{}'", form.waits ? "acquire" : "release",
                  b.modifier("what"), b.modifier("order")));
  b.site.aligned = form.aligned;
  b.keep(form);
  b.record.run = runClusterBarrier;
}

/// Record::aux. op[0]: destination; op[2]: mbarrier; wide: values.
struct SendForm {
  AddressForm to, object;
  unsigned bytes = 4; ///< of an element
  void (*reduce)(std::byte *, const std::byte *, uint32_t) = nullptr;
};

/// Sends a lane's values to a block of the cluster.
void send(Warp &warp, const Record &record, unsigned lane) {
  const auto &form = *static_cast<const SendForm *>(record.aux);
  const auto to = uint32_t(form.to.at(warp, record, lane) & windowOffsetMask);
  const auto object = uint32_t(form.object.at(warp, record, lane) & windowOffsetMask);
  const uint32_t bytes = form.bytes * record.vector, offset = to & rankOffsetMask;
  BulkCopy copy;
  copy.pc = warp.here();
  copy.warp = warp.index;
  copy.lane = lane;
  Block *target = loadTarget(warp, copy, to, object);
  if (!target)
    return;
  if (offset % bytes) {
    report(warp, FindingKind::Misaligned, lane,
           format("sends {} bytes to byte {} of shared memory, which is no multiple of {}", bytes, offset, bytes));
    return;
  }
  copy.bytes = bytes;
  copy.runs.push_back({offset, bytes, 0});
  copy.reduce = form.reduce;
  copy.contents.resize(bytes);
  for (unsigned i = 0; i < record.vector; ++i) {
    if (form.bytes == 8)
      std::memcpy(copy.contents.data() + 8 * i, warp.reg<const uint64_t>(record.wide[i]) + lane, 8);
    else
      std::memcpy(copy.contents.data() + 4 * i, warp.reg<const uint32_t>(record.wide[i]) + lane, 4);
  }
  copy.destinations = 1u << target->rank;
  issueBulk(warp, std::move(copy));
}

void runSend(Warp &warp, const Record &record, uint32_t mask) {
  eachLane(mask, [&](unsigned lane) { send(warp, record, lane); });
}

/// Operands: [to], value or {values}, [mbarrier].
void bindSend(Binding &b) {
  needsHopper(b);
  if (b.operandCount() != 3)
    b.fail("expected a destination, a value and an mbarrier");
  SendForm form;
  form.to = addressOf(b, b.operand(0), 0);
  form.object = addressOf(b, b.operand(2), 2);
  form.bytes = ptx::typeBits(b.type()) / 8;
  const ptx::Operand &value = b.operand(1);
  const size_t count = b.has("vec") ? size_t(b.modifier("vec")[1] - '0') : 1;
  const bool vector = value.kind == ptx::OperandKind::Vector;
  if ((vector ? value.elements.size() : 1) != count)
    b.fail(value, format("expected {} registers", count));
  std::vector<Ref> refs;
  for (size_t i = 0; i < count; ++i)
    refs.push_back(b.source(vector ? value.elements[i] : value, b.type()));
  b.setWide(std::move(refs), 0);
  b.record.vector = uint8_t(count);
  b.site.addressOperand = 0;
  if (b.has("op")) {
    form.reduce = bulkReduction(b.modifier("op"), b.type());
    if (!form.reduce)
      b.unsupported(format("'{}'", b.instruction.spelling()));
  }
  b.decoder.noteAccess(ptx::Space::Shared, form.bytes);
  b.decoder.kernel().usesEngines = true;
  b.keep(form);
  b.record.run = runSend;
}

constexpr auto cls = InstructionClass::AsyncCopy;
#define WEFT_SENT "space=shared::cluster? complete=mbarrier::complete_tx::bytes? "
const Form forms[] = {
    {"mapa", "space=shared::cluster? type=u32|u64", "*", InstructionClass::Move, bindMapa},
    {"getctarank", "space=shared::cluster? type=u32|u64", "*", InstructionClass::Move, bindRank},
    {"barrier", "cluster what=arrive|wait order=release|relaxed|acquire? aligned?", "", InstructionClass::Barrier,
     bindBarrier},
    {"st", "async weak? scope=cluster? " WEFT_SENT "vec=v2|v4? type=b32|b64|u32|u64|s32|s64|f32|f64", "*", cls,
     bindSend},
    {"red", "async relaxed? scope=cluster? " WEFT_SENT "op=inc|dec type=u32", "*", cls, bindSend},
    {"red", "async relaxed? scope=cluster? " WEFT_SENT "op=min|max type=u32|s32", "*", cls, bindSend},
    {"red", "async relaxed? scope=cluster? " WEFT_SENT "op=add type=u32|s32|u64|s64", "*", cls, bindSend},
    {"red", "async relaxed? scope=cluster? " WEFT_SENT "op=and|or|xor type=b32", "*", cls, bindSend},
};

} // namespace

std::span<const Form> clusterForms() { return forms; }

} // namespace weft::simulator::machine

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tcgen05.alloc, .dealloc and .relinquish_alloc_permit (PTX ISA 9.7.16.7), .ld, .st and .wait (9.7.16.8), .fence
// (9.7.16.11) and .commit (9.7.16.12).
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/Remote.h"
#include "runtime/Simulator/Machine/Checks/Tensor/TensorAccess.h"
#include "runtime/Simulator/Machine/Decoding/OperandRules.h"
#include "runtime/Simulator/Machine/Forms/Engines/Requirements.h"
#include "runtime/Simulator/Machine/Forms/Engines/TensorOperandRules.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/Running/Divergence.h"
#include "runtime/Simulator/Machine/Running/Tensor/Allocations.h"
#include "runtime/Simulator/Machine/Running/Tensor/Commits.h"
#include "runtime/Simulator/Machine/Running/Tensor/Transfers.h"
#include "runtime/Support/Format.h"

#include <charconv>

namespace weft::simulator::machine {
namespace {

using ptx::Type;

/// The value that all lanes of a warp have; reported where they have several.
uint32_t uniform(Warp &warp, const uint32_t *values, const char *what) {
  const unsigned first = firstLane(warp.mask);
  eachLane(warp.mask, [&](unsigned lane) {
    if (values[lane] != values[first])
      report(warp, FindingKind::TensorOperands, lane,
             format("has another {} than lane {}: {:#x} and {:#x}", what, first, values[lane], values[first]));
  });
  return values[first];
}

/// An address in tensor memory that all lanes have.
uint32_t addressOf(Warp &warp, const Record &record, const AddressForm &address) {
  uint32_t values[laneCount] = {};
  eachLane(warp.mask, [&](unsigned lane) { values[lane] = uint32_t(address.at(warp, record, lane)); });
  return uniform(warp, values, "address");
}

/// The record will run again, when others have done what it waits for.
void comeAgain(Warp &warp, uint32_t mask) {
  --warp.worker->executed[warp.here()];
  warp.worker->executedThreads[warp.here()] -= unsigned(__builtin_popcount(mask));
  warp.pc = warp.here();
  warp.spun = true;
  warp.stop();
}

/// Record::aux of tcgen05.alloc and .dealloc: op[0] the address, op[1] the number of columns.
struct AllocationForm {
  AddressForm address;
  bool pair = false, generic = false;
};

void runAlloc(Warp &warp, const Record &record, uint32_t mask) {
  if (!gather(warp, mask, warp.live))
    return;
  const auto &form = *static_cast<const AllocationForm *>(record.aux);
  const uint32_t columns = uniform(warp, warp.reg<const uint32_t>(record.op[1]), "number of columns");
  const std::optional<uint32_t> address = allocateTensor(warp, columns, form.pair);
  if (!address)
    return comeAgain(warp, mask);
  uint64_t to[laneCount] = {};
  const unsigned lane = firstLane(mask);
  to[lane] = form.address.at(warp, record, lane);
  const Resolved at =
      (form.generic ? resolveGeneric : resolveShared)(warp, record, 1u << lane, to, 4, AccessKind::Write);
  if (!at.mask)
    return;
  if (tracksShared(warp)) {
    shadowWrite(warp, lane, uint32_t(to[lane] & windowOffsetMask), 4, reinterpret_cast<const std::byte *>(&*address));
    warp.block->shadow.syncWarp(warp.index); // it is every lane's (9.7.16.7, example 1)
  }
  std::memcpy(at.at[lane], &*address, 4);
}

void runDealloc(Warp &warp, const Record &record, uint32_t mask) {
  if (!gather(warp, mask, warp.live))
    return;
  const auto &form = *static_cast<const AllocationForm *>(record.aux);
  const uint32_t address = uniform(warp, warp.reg<const uint32_t>(record.op[0]), "address");
  const uint32_t columns = uniform(warp, warp.reg<const uint32_t>(record.op[1]), "number of columns");
  if (!freeTensor(warp, address, columns, form.pair))
    comeAgain(warp, mask);
}

void runRelinquish(Warp &warp, const Record &, uint32_t mask) {
  if (gather(warp, mask, warp.live))
    relinquishTensor(warp);
}

/// op[0]: the address.
template <bool stores> void runTransfer(Warp &warp, const Record &record, uint32_t mask) {
  if (!gather(warp, mask, warp.live))
    return;
  const auto &form = *static_cast<const TransferForm *>(record.aux);
  const uint32_t address = addressOf(warp, record, {0, record.imm, false});
  (stores ? storeTensor : loadTensor)(warp, form, record.wide, address);
}

template <bool stores> void runWait(Warp &warp, const Record &, uint32_t mask) {
  if (gather(warp, mask, warp.live))
    awaitTensor(warp, stores);
}

void runFenceBefore(Warp &warp, const Record &, uint32_t) { fenceTensorBefore(warp); }
void runFenceAfter(Warp &warp, const Record &, uint32_t) { fenceTensorAfter(warp); }

/// Record::aux of tcgen05.commit: op[0] the mbarrier, op[1] the blocks that have it too.
struct CommitForm {
  AddressForm object;
  bool generic = false;
};

/// A lane commits to the mbarrier at a byte of shared memory of each block of a mask.
void commitTo(Warp &warp, unsigned lane, uint32_t address, uint32_t ranks) {
  const uint32_t offset = address & rankOffsetMask;
  for (const auto &block : warp.block->cluster->blocks) {
    if (!(ranks >> block->rank & 1))
      continue;
    if (offset % 8 || uint64_t(offset) + 8 > block->shared.size()) {
      report(warp, offset % 8 ? FindingKind::Misaligned : FindingKind::OutOfBounds, lane,
             format("arrives at an mbarrier at byte {} of shared memory, of which the block has {}", offset,
                    block->shared.size()));
      return;
    }
    if (block.get() == warp.block ||
        mayReach(warp, lane, block.get(), clusterAddress(*block, offset), "commits to", true))
      commitTensor(warp, lane, *block, offset);
  }
}

void runCommit(Warp &warp, const Record &record, uint32_t mask) {
  const auto &form = *static_cast<const CommitForm *>(record.aux);
  eachLane(mask, [&](unsigned lane) {
    const uint64_t given = form.object.at(warp, record, lane);
    if (form.generic && (given & ~windowOffsetMask) != sharedWindow)
      return report(warp, FindingKind::OutOfBounds, lane,
                    format("expected an address of shared memory, where mbarriers are, but got {:#x}", given));
    const auto address = uint32_t(given & windowOffsetMask);
    const size_t count = warp.block->cluster->blocks.size();
    const Block *named = blockAt(warp, address);
    if (!named)
      return report(warp, FindingKind::OutOfBounds, lane,
                    format("arrives in a block that a cluster of {} blocks does not have", count));
    const uint32_t ranks =
        record.op[1] == noRef ? 1u << named->rank : warp.reg<const uint32_t>(record.op[1])[lane] & 0xffff;
    if (!ranks || ranks >> count)
      return report(warp, FindingKind::OutOfBounds, lane,
                    format("expected a mask of some of the {} blocks of the cluster, but got {:#x}", count, ranks));
    commitTo(warp, lane, address, ranks);
  });
}

void begin(Binding &b) {
  needsTensorMemory(b);
  b.decoder.kernel().usesEngines = b.decoder.kernel().usesTensor = true;
}

/// The number of columns of an allocation.
Ref columnsOf(Binding &b, const ptx::Operand &operand) {
  if (operand.kind == ptx::OperandKind::Integer && !isColumnCount(operand.bits))
    b.fail(operand,
           format("expected a power of two from {} to {}, but got '{}'", tensorUnit, tensorColumns, operand.text));
  return b.source(operand, Type::U32);
}

void bindAlloc(Binding &b) {
  begin(b);
  AllocationForm form;
  form.generic = !b.has("space");
  const AddressOperand address = addressIn(b, b.operand(0), form.generic ? ptx::Space::Generic : ptx::Space::Shared);
  form.address = {0, address.offset, address.wide};
  form.pair = b.modifier("group") == "cta_group::2";
  b.record.op[0] = address.base;
  b.record.imm = 0;
  b.record.op[1] = columnsOf(b, b.operand(1));
  b.site.addressOperand = 0;
  b.site.aligned = true;
  b.decoder.noteAccess(ptx::Space::Shared, 4);
  b.keep(form);
  b.record.run = runAlloc;
}

void bindDealloc(Binding &b) {
  begin(b);
  AllocationForm form;
  form.pair = b.modifier("group") == "cta_group::2";
  b.record.op[0] = b.source(b.operand(0), Type::B32);
  b.record.op[1] = columnsOf(b, b.operand(1));
  b.site.addressOperand = 0;
  b.site.aligned = true;
  b.keep(form);
  b.record.run = runDealloc;
}

template <Executor run> void bindAligned(Binding &b) {
  begin(b);
  b.site.aligned = true;
  b.record.run = run;
}

template <Executor run> void bindFence(Binding &b) {
  begin(b);
  b.record.run = run;
}

TransferShape shapeNamed(std::string_view name) {
  return name == "32x32b"     ? TransferShape::L32x32b
         : name == "16x32bx2" ? TransferShape::L16x32bx2
         : name == "16x64b"   ? TransferShape::L16x64b
         : name == "16x128b"  ? TransferShape::L16x128b
                              : TransferShape::L16x256b;
}

template <bool stores> void bindTransfer(Binding &b) {
  begin(b);
  TransferForm form;
  form.shape = shapeNamed(b.modifier("shape"));
  const std::string_view number = b.modifier("num").substr(1);
  std::from_chars(number.data(), number.data() + number.size(), form.count);
  form.packs = b.has("pack");
  form.registers = form.count * registersOf(form.shape);
  if (form.registers > 128)
    b.fail(format("expected at most 128 registers, but got {} of '.{}.{}'", form.registers, b.modifier("shape"),
                  b.modifier("num")));
  const bool split = form.shape == TransferShape::L16x32bx2;
  const ptx::Operand &vector = b.operand(stores ? (split ? 2 : 1) : 0);
  if (split) {
    const ptx::Operand &offset = b.operand(stores ? 1 : 2);
    if (offset.kind != ptx::OperandKind::Integer || offset.bits >= tensorColumns)
      b.fail(offset, format("expected a number of columns below {}, but got '{}'", tensorColumns, offset.text));
    form.split = uint32_t(offset.bits);
  }
  std::vector<Ref> refs;
  appendVector(b, vector, form.registers, !stores, refs);
  b.setWide(std::move(refs), stores ? 0 : form.registers);
  b.record.imm = tensorAddress(b, b.operand(stores ? 0 : 1), 0).offset;
  b.site.addressOperand = 0;
  b.site.aligned = true;
  b.keep(form);
  b.record.run = runTransfer<stores>;
}

void bindCommit(Binding &b) {
  begin(b);
  CommitForm form;
  form.generic = !b.has("space");
  const AddressOperand address = addressIn(b, b.operand(0), form.generic ? ptx::Space::Generic : ptx::Space::Shared);
  form.object = {0, address.offset, address.wide};
  b.record.op[0] = address.base;
  b.record.inCluster = true;
  if (b.has("multicast")) {
    if (b.operand(1).kind != ptx::OperandKind::Register)
      b.fail(b.operand(1), format("expected a 16-bit register, but got '{}'", b.operand(1).text));
    b.record.op[1] = b.source(b.operand(1), Type::B16);
  }
  b.site.addressOperand = 0;
  b.decoder.noteAccess(ptx::Space::Shared, 8);
  b.keep(form);
  b.record.run = runCommit;
}

void bindReduction(Binding &b) {
  begin(b);
  b.unsupported(format("'{}', which sm_101, sm_103 and sm_110 alone have,", b.instruction.spelling()));
}

constexpr auto other = InstructionClass::Other, barrier = InstructionClass::Barrier,
               load = InstructionClass::MatrixLoad;
#define WEFT_GROUP "group=cta_group::1|cta_group::2"
#define WEFT_NUMBER "num=x1|x2|x4|x8|x16|x32|x64|x128"
#define WEFT_SHAPES "shape=32x32b|16x32bx2|16x64b|16x128b|16x256b"
const Form forms[] = {
    {"tcgen05", "alloc " WEFT_GROUP " sync aligned space=shared::cta? b32", "*", other, bindAlloc},
    {"tcgen05", "dealloc " WEFT_GROUP " sync aligned b32", "*", other, bindDealloc},
    {"tcgen05", "relinquish_alloc_permit " WEFT_GROUP " sync aligned", "", other, bindAligned<runRelinquish>},
    {"tcgen05", "ld sync aligned " WEFT_SHAPES " " WEFT_NUMBER " pack=pack::16b? b32", "*", load, bindTransfer<false>},
    {"tcgen05", "st sync aligned " WEFT_SHAPES " " WEFT_NUMBER " pack=unpack::16b? b32", "*", load, bindTransfer<true>},
    {"tcgen05", "ld red sync aligned shape=32x32b|16x32bx2 " WEFT_NUMBER " op=min|max abs? NaN? type=f32|u32|s32", "*",
     load, bindReduction},
    {"tcgen05", "wait::ld sync aligned", "", barrier, bindAligned<runWait<false>>},
    {"tcgen05", "wait::st sync aligned", "", barrier, bindAligned<runWait<true>>},
    {"tcgen05", "fence::before_thread_sync", "", InstructionClass::Fence, bindFence<runFenceBefore>},
    {"tcgen05", "fence::after_thread_sync", "", InstructionClass::Fence, bindFence<runFenceAfter>},
    {"tcgen05", "commit " WEFT_GROUP " mbarrier::arrive::one space=shared::cluster? multicast=multicast::cluster? b64",
     "*", barrier, bindCommit},
};

} // namespace

std::span<const Form> tensorMemoryForms() { return forms; }

} // namespace weft::simulator::machine

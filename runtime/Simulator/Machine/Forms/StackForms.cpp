// Part of Weft. SPDX-License-Identifier: Apache-2.0
// alloca, stacksave, stackrestore (PTX ISA 9.7.15): memory of a thread whose size is known when it runs, behind its
// variables in local memory.
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <bit>

namespace weft::simulator::machine {
namespace {

using ptx::Type;

/// op[0] = the address of op[1] bytes that nothing wrote yet, aligned to Record::imm.
template <typename T> void runAlloca(Warp &warp, const Record &record, uint32_t mask) {
  const T *sizes = warp.reg<const T>(record.op[1]);
  const uint64_t end = warp.kernel->localBytes, align = uint64_t(record.imm);
  T results[laneCount] = {};
  eachLane(mask, [&](unsigned lane) {
    uint32_t &top = warp.stackTop[lane];
    const uint64_t start = (top + align - 1) / align * align;
    results[lane] = T(start);
    if (start > end || sizes[lane] > end - start)
      return report(warp, FindingKind::OutOfBounds, lane,
                    format("allocates {} bytes of the stack, of which {} bytes are left", uint64_t(sizes[lane]),
                           start > end ? 0 : end - start));
    top = uint32_t(start + sizes[lane]);
    warp.stackMost[lane] = std::max(warp.stackMost[lane], top);
    if (!warp.localWritten.empty())
      std::memset(warp.localWritten.data() + lane * end + start, 0, sizes[lane]);
  });
  commit(warp.reg<T>(record.op[0]), results, mask);
}

template <typename T> void bindAllocaOf(Binding &b) {
  b.record.imm = 8;
  if (b.operandCount() == 3) {
    const ptx::Operand &align = b.operand(2);
    if (align.kind != ptx::OperandKind::Integer || !std::has_single_bit(align.bits) || align.bits > 4096)
      b.fail(align, format("expected an alignment that is a power of two up to 4096, but got '{}'", align.text));
    b.record.imm = int64_t(align.bits);
  } else if (b.operandCount() != 2) {
    b.fail(format("expected an address, a size and perhaps an alignment, but got {} operands", b.operandCount()));
  }
  const Type type = sizeof(T) == 8 ? Type::U64 : Type::U32;
  b.setDestination(0, b.destination(b.operand(0), type));
  b.record.op[1] = b.source(b.operand(1), type);
  b.decoder.kernel().usesStack = true;
  b.record.run = runAlloca<T>;
}

void bindAlloca(Binding &b) { b.type() == Type::U64 ? bindAllocaOf<uint64_t>(b) : bindAllocaOf<uint32_t>(b); }

void bindStackSave(Binding &b) {
  b.decoder.kernel().usesStack = true;
  b.record.run = b.type() == Type::U64 ? runStackSave<uint64_t> : runStackSave<uint32_t>;
}

void bindStackRestore(Binding &b) {
  b.decoder.kernel().usesStack = true;
  b.record.run = b.type() == Type::U64 ? runStackRestore<uint64_t> : runStackRestore<uint32_t>;
}

constexpr auto cls = InstructionClass::LocalMemory;

const Form forms[] = {
    {"alloca", "type=u32|u64", "*", cls, bindAlloca},
    {"stacksave", "type=u32|u64", "d:type", cls, bindStackSave},
    {"stackrestore", "type=u32|u64", "s:type", cls, bindStackRestore},
};

} // namespace

template <typename T> void runStackSave(Warp &warp, const Record &record, uint32_t mask) {
  T results[laneCount];
  for (unsigned lane = 0; lane < laneCount; ++lane)
    results[lane] = warp.stackTop[lane];
  commit(warp.reg<T>(record.op[0]), results, mask);
}

template <typename T> void runStackRestore(Warp &warp, const Record &record, uint32_t mask) {
  const T *from = warp.reg<const T>(record.op[0]);
  eachLane(mask, [&](unsigned lane) {
    if (from[lane] < warp.kernel->stackStart || from[lane] > warp.stackTop[lane])
      return report(warp, FindingKind::OutOfBounds, lane,
                    format("restores the stack to byte {}, which is outside what is allocated", uint64_t(from[lane])));
    warp.stackTop[lane] = uint32_t(from[lane]);
  });
}

template void runStackSave<uint64_t>(Warp &, const Record &, uint32_t);
template void runStackRestore<uint64_t>(Warp &, const Record &, uint32_t);

std::span<const Form> stackForms() { return forms; }

} // namespace weft::simulator::machine

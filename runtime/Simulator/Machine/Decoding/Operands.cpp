// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Operands to references: registers, immediates, special registers, addresses.
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Running/Calls.h"
#include "runtime/Support/Format.h"

#include <bit>
#include <charconv>

namespace weft::simulator::machine {
namespace {

std::string describe(const ptx::Operand &operand) {
  switch (operand.kind) {
  case ptx::OperandKind::Vector:
    return "a vector";
  case ptx::OperandKind::Address:
    return "an address";
  case ptx::OperandKind::List:
    return "a list";
  case ptx::OperandKind::Sink:
    return "'_'";
  default:
    return format("'{}'", operand.text);
  }
}

/// Special registers whose value changes while a thread runs.
bool isDynamic(std::string_view name) {
  return name == "%clock" || name == "%clock_hi" || name == "%clock64" || name == "%globaltimer" ||
         name == "%globaltimer_lo" || name == "%globaltimer_hi";
}

/// Whether a name is `prefix` and a number below `count`.
bool isNumbered(std::string_view name, std::string_view prefix, unsigned count) {
  if (!name.starts_with(prefix))
    return false;
  name.remove_prefix(prefix.size());
  unsigned number = 0;
  auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  return error == std::errc() && end == name.data() + name.size() && number < count;
}

/// %envreg0 to 31: the driver puts the grid's workspace into 1 and 2, and nothing that is documented into the others.
bool isEnvironment(std::string_view name) { return isNumbered(name, "%envreg", 32); }

/// %pm0 to 7, and their 64-bit twins: performance counters that no tool has set to count anything.
bool isPerformanceCounter(std::string_view name) {
  constexpr std::string_view wide = "_64";
  return isNumbered(name.ends_with(wide) ? name.substr(0, name.size() - wide.size()) : name, "%pm", 8);
}

bool isWide(std::string_view name) {
  return name == "%clock64" || name == "%globaltimer" || name == "%gridid" || name == "%current_graph_exec" ||
         (isPerformanceCounter(name) && name.ends_with("_64"));
}

constexpr std::string_view specialNames[] = {"%tid.x",
                                             "%tid.y",
                                             "%tid.z",
                                             "%ntid.x",
                                             "%ntid.y",
                                             "%ntid.z",
                                             "%ctaid.x",
                                             "%ctaid.y",
                                             "%ctaid.z",
                                             "%nctaid.x",
                                             "%nctaid.y",
                                             "%nctaid.z",
                                             "%laneid",
                                             "%warpid",
                                             "%nwarpid",
                                             "%smid",
                                             "%nsmid",
                                             "%gridid",
                                             "%lanemask_eq",
                                             "%lanemask_le",
                                             "%lanemask_lt",
                                             "%lanemask_ge",
                                             "%lanemask_gt",
                                             "%dynamic_smem_size",
                                             "%total_smem_size",
                                             "%aggr_smem_size",
                                             "%clock",
                                             "%clock_hi",
                                             "%clock64",
                                             "%globaltimer",
                                             "%globaltimer_lo",
                                             "%globaltimer_hi",
                                             "%cluster_ctaid.x",
                                             "%cluster_ctaid.y",
                                             "%cluster_ctaid.z",
                                             "%cluster_nctaid.x",
                                             "%cluster_nctaid.y",
                                             "%cluster_nctaid.z",
                                             "%cluster_ctarank",
                                             "%cluster_nctarank",
                                             "%clusterid.x",
                                             "%clusterid.y",
                                             "%clusterid.z",
                                             "%nclusterid.x",
                                             "%nclusterid.y",
                                             "%nclusterid.z",
                                             "%is_explicit_cluster",
                                             "%current_graph_exec",
                                             "%reserved_smem_offset_begin",
                                             "%reserved_smem_offset_end",
                                             "%reserved_smem_offset_cap",
                                             "%reserved_smem_offset_0",
                                             "%reserved_smem_offset_1"};

bool isKnown(std::string_view name) {
  return std::find(std::begin(specialNames), std::end(specialNames), name) != std::end(specialNames);
}

/// `%tid.w` and its like, which are vectors of four elements: always 0 (PTX ISA 10.1).
bool isFourth(std::string_view name) {
  return name.ends_with(".w") && isKnown(std::string(name.substr(0, name.size() - 1)) + "x");
}

/// A half of the value of an immediate in a type's bits.
uint64_t immediateBits(const ptx::Operand &operand, ptx::Type type) {
  if (operand.kind == ptx::OperandKind::Float32)
    return type == ptx::Type::F64 ? std::bit_cast<uint64_t>(double(std::bit_cast<float>(uint32_t(operand.bits))))
                                  : operand.bits;
  if (operand.kind == ptx::OperandKind::Float64) {
    if (ptx::typeBits(type) == 32)
      return std::bit_cast<uint32_t>(float(std::bit_cast<double>(operand.bits)));
    return operand.bits;
  }
  return operand.bits;
}

} // namespace

Ref Decoder::constant32(uint32_t value) {
  auto [found, fresh] = constants32_.try_emplace(value, 0);
  if (fresh) {
    found->second = constantRef | uint32_t(kernel_.constants.size());
    kernel_.constants.resize(kernel_.constants.size() + slotBytes);
    std::byte *slot = kernel_.constants.data() + kernel_.constants.size() - slotBytes;
    for (unsigned lane = 0; lane < laneCount; ++lane)
      std::memcpy(slot + 4 * lane, &value, 4);
  }
  return found->second;
}

Ref Decoder::constant64(uint64_t value) {
  auto [found, fresh] = constants64_.try_emplace(value, 0);
  if (fresh) {
    found->second = constantRef | uint32_t(kernel_.constants.size());
    kernel_.constants.resize(kernel_.constants.size() + 2 * slotBytes);
    std::byte *slot = kernel_.constants.data() + kernel_.constants.size() - 2 * slotBytes;
    for (unsigned lane = 0; lane < laneCount; ++lane)
      std::memcpy(slot + 8 * lane, &value, 8);
  }
  return found->second;
}

Ref Decoder::scratch(ptx::Type type) {
  registers_.push_back(type);
  return virtualRef | uint32_t(registers_.size() - 1);
}

ptx::Type Decoder::registerType(uint32_t frame, const ptx::Operand &operand) const {
  return frames_[frame].function->registers[operand.index].type;
}

void Decoder::before(Record record, uint8_t destinations) { before_.emplace_back(record, destinations); }
void Decoder::after(Record record, uint8_t destinations) { after_.emplace_back(record, destinations); }

unsigned Decoder::expectSpecial(const ptx::Operand &operand) {
  const bool known = isKnown(operand.text) || isFourth(operand.text);
  if (!known && !isEnvironment(operand.text) && !isPerformanceCounter(operand.text))
    fail(operand.at, format("expected a register, but '{}' is none", operand.text));
  return isWide(operand.text) ? 64 : 32;
}

Ref Decoder::special(const ptx::Operand &operand, ptx::Type type) {
  expectSpecial(operand);
  if (isFourth(operand.text))
    return constant32(0);
  kernel_.usesReserved |= operand.text.starts_with("%reserved");
  kernel_.usesWorkspace |= operand.text == "%envreg1" || operand.text == "%envreg2";
  const bool wide = isWide(operand.text);
  Ref ref;
  if (isDynamic(operand.text)) {
    ref = scratch(wide ? ptx::Type::B64 : ptx::Type::B32);
    Record record;
    record.run = runDynamicSpecial;
    record.op[0] = ref;
    record.imm = (wide ? 1 : 0) | (operand.text.ends_with("_hi") ? 2 : 0);
    before(record, 1);
  } else {
    auto [found, fresh] = specials_.try_emplace(std::string(operand.text), noRef);
    if (fresh) {
      found->second = scratch(wide ? ptx::Type::B64 : ptx::Type::B32);
      kernel_.specials.push_back({std::string(operand.text), found->second, wide});
    }
    ref = found->second;
  }
  bool wanted = ptx::typeBits(type) == 64;
  if (wanted == wide)
    return ref;
  Record convert;
  convert.run = wanted ? runWidenUnsigned : runNarrow;
  convert.op[0] = scratch(wanted ? ptx::Type::B64 : ptx::Type::B32);
  convert.op[1] = ref;
  before(convert, 1);
  return convert.op[0];
}

Ref Decoder::nonZero(Ref value) { return predicateOf(runNonZero, value); }
Ref Decoder::opposite(Ref value) { return predicateOf(runOpposite, value); }

Ref Decoder::predicateOf(Executor run, Ref value) {
  Record record;
  record.run = run;
  record.op[0] = scratch(ptx::Type::Pred);
  record.op[1] = value;
  before(record, 1);
  return record.op[0];
}

/// A constant of its own, to be filled in when it is known; not shared with equal immediates.
static Ref ownConstant(Kernel &kernel, bool wide) {
  uint32_t at = uint32_t(kernel.constants.size());
  kernel.constants.resize(at + (wide ? 2 : 1) * slotBytes);
  return constantRef | at;
}

/// An address behind all static shared memory, which is known once the whole kernel is decoded.
Ref Decoder::dynamicSharedConstant(int64_t offset, bool wide) {
  const uint32_t at = ownConstant(kernel_, wide) & ~constantRef;
  for (unsigned lane = 0; lane < laneCount; ++lane)
    std::memcpy(kernel_.constants.data() + at + (wide ? 8 : 4) * lane, &offset, wide ? 8 : 4);
  dynamicPatches_.push_back(at | (wide ? 1u : 0u));
  return constantRef | at;
}

/// The address of a local variable of a frame whose place on the stack is known when it runs.
Ref Decoder::frameAddress(Ref base, int64_t offset, bool wide) {
  Record address;
  address.run = runFrameAddress;
  address.op[0] = scratch(ptx::Type::B64);
  address.op[1] = base;
  address.imm = offset;
  before(address, 1);
  if (wide)
    return address.op[0];
  Record narrow;
  narrow.run = runNarrow;
  narrow.op[0] = scratch(ptx::Type::B32);
  narrow.op[1] = address.op[0];
  before(narrow, 1);
  return narrow.op[0];
}

Ref Decoder::addressConstant(uint32_t frame, const ptx::Operand &operand, ptx::Type type, ptx::Space *space) {
  bool wide = ptx::typeBits(type) == 64;
  if (!wide && ptx::typeBits(type) != 32)
    fail(operand.at, format("expected a 32- or 64-bit type for the address of '{}'", operand.text));
  auto plain = [&](uint64_t value) { return wide ? constant64(value) : constant32(uint32_t(value)); };
  auto isDynamicShared = [&](const ptx::Variable &variable) {
    return std::find(dynamicShared_.begin(), dynamicShared_.end(), &variable) != dynamicShared_.end();
  };
  if (operand.kind == ptx::OperandKind::Variable) {
    const Place &place = frames_[frame].places[operand.index];
    if (space)
      *space = place.space;
    if (place.space == ptx::Space::Shared && isDynamicShared(frames_[frame].function->variables[operand.index]))
      return dynamicSharedConstant(operand.offset, wide);
    if (const Ref base = frames_[frame].base; place.space == ptx::Space::Local && base != noRef)
      return frameAddress(base, int64_t(place.offset) + operand.offset, wide);
    uint64_t window = place.space == ptx::Space::Param && wide ? paramWindow : 0;
    return plain(window + place.offset + uint64_t(operand.offset));
  }
  for (const ptx::Variable &variable : program_.syntax.variables) {
    if (variable.name != operand.text)
      continue;
    if (space)
      *space = variable.space == ptx::Space::Const ? ptx::Space::Global : variable.space;
    if (variable.space == ptx::Space::Shared) {
      Place place;
      layoutShared(variable, place);
      return isDynamicShared(variable) ? dynamicSharedConstant(operand.offset, wide)
                                       : plain(place.offset + uint64_t(operand.offset));
    }
    if (!wide)
      fail(operand.at, format("expected a 64-bit register for the address of '{}'", operand.text));
    for (uint32_t i = 0; i < program_.variables.size(); ++i)
      if (program_.variables[i].name == variable.name) {
        const Ref address = ownConstant(kernel_, wide);
        kernel_.relocations.push_back({address & ~constantRef, i, operand.offset});
        return address;
      }
  }
  if (const ptx::Function *function = program_.syntax.function(operand.text); function && wide)
    return constant64(functionAddress(program_.syntax, *function));
  fail(operand.at, format("expected a register, a variable or a label, but '{}' is none", operand.text));
}

Ref Decoder::source(uint32_t frame, const ptx::Operand &operand, ptx::Type type, bool wider) {
  unsigned bits = ptx::typeBits(type);
  if (operand.negated || operand.minus)
    fail(operand.at, format("expected no '{}' before '{}'", operand.negated ? '!' : '-', operand.text));
  switch (operand.kind) {
  case ptx::OperandKind::Register: {
    ptx::Type held = registerType(frame, operand);
    unsigned heldBits = ptx::typeBits(held);
    Ref ref = virtualRef | (frames_[frame].registerBase + operand.index);
    if (held == ptx::Type::Pred || heldBits == 128 ||
        (wider ? heldBits < std::max(bits, 8u) : heldBits != std::max(bits, 8u)))
      fail(operand.at,
           format("expected a {}-bit register, but '{}' is a .{}", bits, operand.text, ptx::typeName(held)));
    if (heldBits == 64 && bits < 64) {
      Record narrow;
      narrow.run = runNarrow;
      narrow.op[0] = scratch(ptx::Type::B32);
      narrow.op[1] = ref;
      before(narrow, 1);
      return narrow.op[0];
    }
    return ref;
  }
  case ptx::OperandKind::Special:
    return special(operand, type);
  case ptx::OperandKind::Integer:
  case ptx::OperandKind::Float32:
  case ptx::OperandKind::Float64: {
    uint64_t value = immediateBits(operand, type);
    if (bits < 32)
      value &= (uint64_t{1} << bits) - 1;
    return bits == 64 ? constant64(value) : constant32(uint32_t(value));
  }
  case ptx::OperandKind::Variable:
  case ptx::OperandKind::Symbol:
    return addressConstant(frame, operand, type, nullptr);
  default:
    fail(operand.at, format("expected a register or a constant, but got {}", describe(operand)));
  }
}

Ref Decoder::destination(uint32_t frame, const ptx::Operand &operand, ptx::Type type, bool wider) {
  unsigned bits = std::max(ptx::typeBits(type), 8u);
  if (operand.kind == ptx::OperandKind::Sink)
    return scratch(bits == 64 ? ptx::Type::B64 : ptx::Type::B32);
  if (operand.negated || operand.minus)
    fail(operand.at, format("expected no '{}' before '{}'", operand.negated ? '!' : '-', operand.text));
  if (operand.kind != ptx::OperandKind::Register)
    fail(operand.at, format("expected a register to write, but got {}", describe(operand)));
  ptx::Type held = registerType(frame, operand);
  unsigned heldBits = ptx::typeBits(held);
  if (held == ptx::Type::Pred || heldBits == 128 || (wider ? heldBits < bits : heldBits != bits))
    fail(operand.at, format("expected a {}-bit register, but '{}' is a .{}", bits, operand.text, ptx::typeName(held)));
  Ref ref = virtualRef | (frames_[frame].registerBase + operand.index);
  if (heldBits == 64 && bits < 64) {
    Record widen;
    widen.run = ptx::isSigned(type) && !ptx::isFloat(type) ? runWidenSigned : runWidenUnsigned;
    widen.op[0] = ref;
    widen.op[1] = scratch(ptx::Type::B32);
    after(widen, 1);
    return widen.op[1];
  }
  return ref;
}

std::array<Ref, 2> Decoder::halves(uint32_t frame, const ptx::Operand &operand, bool written) {
  auto half = [&](const ptx::Operand &each) {
    return written ? destination(frame, each, ptx::Type::B64, false) : source(frame, each, ptx::Type::B64, false);
  };
  if (operand.kind == ptx::OperandKind::Vector && operand.elements.size() == 2)
    return {half(operand.elements[0]), half(operand.elements[1])};
  if (operand.kind != ptx::OperandKind::Register || registerType(frame, operand) != ptx::Type::B128)
    fail(operand.at, format("expected a .b128 register or two 64-bit ones, but got {}", describe(operand)));
  const uint32_t low = frames_[frame].registerBase + operand.index;
  return {virtualRef | low, virtualRef | highHalves_.at(low)};
}

AddressOperand Decoder::address(uint32_t frame, const ptx::Operand &operand) {
  if (operand.kind != ptx::OperandKind::Address || operand.elements.size() != 1)
    fail(operand.at, format("expected an address in brackets, but got {}", describe(operand)));
  const ptx::Operand &base = operand.elements[0];
  AddressOperand result;
  if (base.kind == ptx::OperandKind::Register) {
    ptx::Type held = registerType(frame, base);
    if (ptx::typeBits(held) != 32 && ptx::typeBits(held) != 64)
      fail(base.at,
           format("expected a 32- or 64-bit register as address, but '{}' is a .{}", base.text, ptx::typeName(held)));
    result.wide = ptx::typeBits(held) == 64;
    result.base = virtualRef | (frames_[frame].registerBase + base.index);
    result.offset = base.offset;
    return result;
  }
  if (base.kind == ptx::OperandKind::Integer) {
    result.base = constant64(base.bits);
    return result;
  }
  if (const Ref start = frames_[frame].base; base.kind == ptx::OperandKind::Variable && start != noRef &&
                                             frames_[frame].places[base.index].space == ptx::Space::Local) {
    result.named = true;
    result.base = start;
    result.offset = int64_t(frames_[frame].places[base.index].offset) + base.offset;
    result.space = ptx::Space::Local;
    return result;
  }
  if (base.kind == ptx::OperandKind::Variable || base.kind == ptx::OperandKind::Symbol) {
    result.named = true;
    result.base = addressConstant(frame, base, ptx::Type::B64, &result.space);
    return result;
  }
  fail(base.at, format("expected a register or a variable as address, but got {}", describe(base)));
}

Ref Decoder::carryFlag() {
  if (carry_ == noRef)
    carry_ = scratch(ptx::Type::Pred);
  return carry_;
}

void Decoder::noteAccess(ptx::Space space, unsigned bytes) {
  unsigned shift = unsigned(std::countr_zero(std::max(bytes, 1u)));
  if (space == ptx::Space::Shared || space == ptx::Space::Generic)
    kernel_.sharedGranule = std::min(kernel_.sharedGranule, shift);
  if (space == ptx::Space::Global || space == ptx::Space::Generic)
    kernel_.globalGranule = std::min(kernel_.globalGranule, shift);
}

} // namespace weft::simulator::machine

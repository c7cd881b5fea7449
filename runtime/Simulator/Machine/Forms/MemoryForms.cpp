// Part of Weft. SPDX-License-Identifier: Apache-2.0
// ld, st, prefetch (PTX ISA 9.7.9.8 to 9.7.9.16).
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/GlobalRaces.h"
#include "runtime/Simulator/Machine/Checks/SharedAccesses.h"
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Decoding/OperandRules.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Support/Format.h"

#include <utility>

namespace weft::simulator::machine {
namespace {

using ptx::Space;
using ptx::Type;

bool isShared(uint64_t address) { return address >> windowShift == sharedWindow >> windowShift; }

template <Space S> uint64_t strongKey(const Warp &warp, uint64_t address) {
  return orderKey(warp, address, S == Space::Shared || (S == Space::Generic && isShared(address)));
}

/// The elements of a strong vector access after its first, which is ordered by itself: each is an access of its own (PTX
/// ISA 8.2.2 "Vector Data-types"), so that what one releases is acquired with it in a vector or alone.
template <Space S>
void orderElements(Warp &warp, const Record &record, uint64_t address, unsigned elementBytes, bool writes) {
  uint64_t last = strongKey<S>(warp, address);
  for (unsigned element = 1; element < record.vector; ++element) {
    const uint64_t key = strongKey<S>(warp, address + element * elementBytes);
    if (std::exchange(last, key) == key) // in one word
      continue;
    StrongAccess access(warp, record.order, key);
    access.done(!writes, writes, writes && elementBytes < 4);
  }
}

/// Marks what a load took from bytes that nothing wrote.
void poisonLoaded(Warp &warp, const Record &record, const Resolved &from, unsigned elementBytes) {
  for (unsigned element = 0; element < record.vector; ++element) {
    BytePoison bytes{};
    uint32_t origins[laneCount], lanes = 0; // those of which this element is unwritten: others' may be written
    eachLane(from.poison, [&](unsigned lane) {
      const uint32_t unwritten = unwrittenBytes(warp, from.at[lane] + element * elementBytes, elementBytes);
      if (!unwritten)
        return;
      for (unsigned i = 0; i < elementBytes; ++i)
        bytes[i] |= (unwritten >> i & 1) << lane;
      lanes |= 1u << lane;
      origins[lane] = originAt(warp, from.at[lane] + element * elementBytes, elementBytes, unwritten);
    });
    poisonBytes(warp, record.wide[element], bytes);
    eachLane(lanes, [&](unsigned lane) { setOrigin(warp, record.wide[element], 1u << lane, origins[lane]); });
  }
}

/// Four lanes' four words to four words of four lanes, or back.
[[gnu::always_inline]] inline void turn(const std::byte *const *from, std::byte *const *to) {
  typedef uint32_t Word4 __attribute__((vector_size(16)));
  Word4 x[4], y[4];
  for (unsigned i = 0; i < 4; ++i)
    std::memcpy(&x[i], from[i], 16);
  y[0] = __builtin_shufflevector(x[0], x[1], 0, 4, 1, 5);
  y[1] = __builtin_shufflevector(x[0], x[1], 2, 6, 3, 7);
  y[2] = __builtin_shufflevector(x[2], x[3], 0, 4, 1, 5);
  y[3] = __builtin_shufflevector(x[2], x[3], 2, 6, 3, 7);
  x[0] = __builtin_shufflevector(y[0], y[2], 0, 1, 4, 5);
  x[1] = __builtin_shufflevector(y[0], y[2], 2, 3, 6, 7);
  x[2] = __builtin_shufflevector(y[1], y[3], 0, 1, 4, 5);
  x[3] = __builtin_shufflevector(y[1], y[3], 2, 3, 6, 7);
  for (unsigned i = 0; i < 4; ++i)
    std::memcpy(to[i], &x[i], 16);
}

/// 16 bytes of lanes' words.
template <typename T> using Words __attribute__((vector_size(16))) = T;

/// The first words of some lanes, and their second ones, to both words of each, or back: `lanes` are 16 / sizeof(T).
template <typename T>
[[gnu::always_inline]] inline void zip(const SlotOf<T> *first, const SlotOf<T> *second, std::byte *const *lanes) {
  Words<T> x, y, z[2];
  std::memcpy(&x, first, sizeof x);
  std::memcpy(&y, second, sizeof y);
  if constexpr (sizeof(T) == 4) {
    z[0] = __builtin_shufflevector(x, y, 0, 4, 1, 5);
    z[1] = __builtin_shufflevector(x, y, 2, 6, 3, 7);
  } else {
    z[0] = __builtin_shufflevector(x, y, 0, 2);
    z[1] = __builtin_shufflevector(x, y, 1, 3);
  }
  for (unsigned i = 0; i < 16 / sizeof(T); ++i)
    std::memcpy(lanes[i], reinterpret_cast<const std::byte *>(z) + i * 2 * sizeof(T), 2 * sizeof(T));
}
template <typename T>
[[gnu::always_inline]] inline void unzip(std::byte *const *lanes, SlotOf<T> *first, SlotOf<T> *second) {
  Words<T> x, y, z[2];
  for (unsigned i = 0; i < 16 / sizeof(T); ++i)
    std::memcpy(reinterpret_cast<std::byte *>(z) + i * 2 * sizeof(T), lanes[i], 2 * sizeof(T));
  if constexpr (sizeof(T) == 4) {
    x = __builtin_shufflevector(z[0], z[1], 0, 2, 4, 6);
    y = __builtin_shufflevector(z[0], z[1], 1, 3, 5, 7);
  } else {
    x = __builtin_shufflevector(z[0], z[1], 0, 2);
    y = __builtin_shufflevector(z[0], z[1], 1, 3);
  }
  std::memcpy(first, &x, sizeof x);
  std::memcpy(second, &y, sizeof y);
}

/// What a register holds of a value that was loaded: it is sign- or zero-extended by its type.
template <typename T> [[gnu::always_inline]] inline SlotOf<T> extended(T value) {
  return sizeof(T) == 8 ? SlotOf<T>(value) : SlotOf<T>(uint32_t(int32_t(value)));
}

/// All lanes' vectors in memory, and their registers: those of each element together.
template <typename T> struct Vectors {
  std::byte *const *memory;
  unsigned count;
  bool contiguous; ///< lanes' vectors lie one after another

  void load(SlotOf<T> *const *registers) const {
    if (contiguous && count == 1) {
      T values[laneCount];
      std::memcpy(values, memory[0], sizeof values);
      for (unsigned lane = 0; lane < laneCount; ++lane)
        registers[0][lane] = extended(values[lane]);
      return;
    }
    if (sizeof(T) == 4 && count == 4)
      return eachFour(registers, [](std::byte *const *lanes, std::byte *const *words) { turn(lanes, words); });
    if constexpr (sizeof(T) >= 4)
      if (count == 2) {
        SlotOf<T> *const first = registers[0], *const second = registers[1];
        for (unsigned lane = 0; lane < laneCount; lane += 16 / sizeof(T))
          unzip<T>(memory + lane, first + lane, second + lane);
        return;
      }
    for (unsigned i = 0; i < count; ++i)
      for (unsigned lane = 0; lane < laneCount; ++lane) {
        T value;
        std::memcpy(&value, memory[lane] + i * sizeof(T), sizeof(T));
        registers[i][lane] = extended(value);
      }
  }
  void store(const SlotOf<T> *const *registers) const {
    if (contiguous && count == 1) {
      T values[laneCount];
      for (unsigned lane = 0; lane < laneCount; ++lane)
        values[lane] = T(registers[0][lane]);
      std::memcpy(memory[0], values, sizeof values);
      return;
    }
    if (sizeof(T) == 4 && count == 4)
      return eachFour(const_cast<SlotOf<T> *const *>(registers),
                      [](std::byte *const *lanes, std::byte *const *words) { turn(words, lanes); });
    if constexpr (sizeof(T) >= 4)
      if (count == 2) {
        const SlotOf<T> *const first = registers[0], *const second = registers[1];
        for (unsigned lane = 0; lane < laneCount; lane += 16 / sizeof(T))
          zip<T>(first + lane, second + lane, memory + lane);
        return;
      }
    for (unsigned i = 0; i < count; ++i)
      for (unsigned lane = 0; lane < laneCount; ++lane) {
        const T value = T(registers[i][lane]);
        std::memcpy(memory[lane] + i * sizeof(T), &value, sizeof(T));
      }
  }

private:
  template <typename Act> void eachFour(SlotOf<T> *const *registers, Act act) const {
    SlotOf<T> *const own[] = {registers[0], registers[1], registers[2], registers[3]}; // no store may change them
    for (unsigned lane = 0; lane < laneCount; lane += 4) {
      std::byte *words[4];
      for (unsigned i = 0; i < 4; ++i)
        words[i] = reinterpret_cast<std::byte *>(own[i] + lane);
      act(memory + lane, words);
    }
  }
};

/// memcpy of one of the sizes that an access has: in one piece, where the machine can.
[[gnu::always_inline]] inline void copyAccess(std::byte *to, const void *from, unsigned bytes) {
  switch (bytes) {
  case 4:
    std::memcpy(to, from, 4);
    break;
  case 8:
    std::memcpy(to, from, 8);
    break;
  case 16:
    std::memcpy(to, from, 16);
    break;
  default:
    std::memcpy(to, from, bytes);
  }
}

/// A lane's vector is read in one piece, as stores write it. A .b128 must be (PTX ISA 8.2.1 "Scalar Data-types"), and
/// though vectors of smaller types need not (8.2.2), GPUs do so, and states that hold a value beside its flag rest on it.
template <Space S, typename T>
void loadStrong(Warp &warp, const Record &record, uint32_t mask, const Resolved &from, const LaneAddresses &addresses) {
  SlotOf<T> results[8][laneCount] = {};
  eachLane(from.mask, [&](unsigned lane) {
    std::byte bytes[8 * sizeof(T)];
    {
      StrongAccess access(warp, record.order, strongKey<S>(warp, addresses.at[lane]));
      copyAccess(bytes, from.at[lane], sizeof(T) * record.vector);
      access.done(true, false, false);
    }
    orderElements<S>(warp, record, addresses.at[lane], sizeof(T), false);
    for (unsigned element = 0; element < record.vector; ++element) {
      T value;
      std::memcpy(&value, bytes + element * sizeof(T), sizeof(T));
      results[element][lane] = extended(value);
    }
  });
  for (unsigned element = 0; element < record.vector; ++element)
    commit(warp.reg<SlotOf<T>>(record.wide[element]), results[element], mask);
}

/// ld: wide[i] = element i of the vector at op[0] + imm.
template <Space S, typename T> void runLoad(Warp &warp, const Record &record, uint32_t mask) {
  LaneAddresses addresses(warp, record, record.op[0], record.wideAddress);
  Resolved from = resolve<S>(warp, record, mask, addresses.at, sizeof(T) * record.vector, AccessKind::Read);
  warp.spun |= record.order != 0;
  const bool whole = record.order == 0 && mask == ~0u && from.mask == ~0u;
  if (whole) {
    SlotOf<T> *to[8];
    for (unsigned element = 0; element < record.vector; ++element)
      to[element] = warp.reg<SlotOf<T>>(record.wide[element]);
    Vectors<T>{from.at, record.vector, from.contiguous}.load(to);
  }
  if (record.order != 0)
    loadStrong<S, T>(warp, record, mask, from, addresses);
  for (unsigned element = 0; element < record.vector && !whole && record.order == 0; ++element) {
    SlotOf<T> results[laneCount] = {};
    eachLane(from.mask, [&](unsigned lane) {
      T value;
      std::memcpy(&value, from.at[lane] + element * sizeof(T), sizeof(T));
      results[lane] = extended(value);
    });
    commit(warp.reg<SlotOf<T>>(record.wide[element]), results, mask);
  }
  if (from.poison)
    poisonLoaded(warp, record, from, sizeof(T));
}

/// A parameter that all lanes read alike.
template <typename T> void runLoadUniform(Warp &warp, const Record &record, uint32_t mask) {
  T value;
  for (unsigned element = 0; element < record.vector; ++element) {
    std::memcpy(&value, warp.block->grid->parameters.data() + record.imm + element * sizeof(T), sizeof(T));
    SlotOf<T> results[laneCount];
    for (auto &result : results)
      result = extended(value);
    commit(warp.reg<SlotOf<T>>(record.wide[element]), results, mask);
  }
}

/// Poisoned values on their way to memory.
void carryPoison(Warp &warp, const Record &record, const Resolved &to, unsigned elementBytes) {
  for (unsigned element = 0; element < record.vector; ++element) {
    const uint32_t lanes = poisonOf(warp, record.wide[element]) & to.mask;
    if (!lanes)
      continue;
    const BytePoison bytes = bytePoisonOf(warp, record.wide[element]);
    eachLane(lanes, [&](unsigned lane) {
      uint32_t unwritten = 0;
      for (unsigned i = 0; i < elementBytes; ++i)
        unwritten |= (bytes[i] >> lane & 1) << i;
      if (unwritten)
        storeUnwritten(warp, lane, record.wide[element], to.at[lane] + element * elementBytes, elementBytes, unwritten);
    });
  }
}

/// Lanes whose bytes may be written together, as they race with nothing.
template <Space S>
uint32_t storedTogether(Warp &warp, const Record &record, uint32_t mask, const uint64_t *addresses, unsigned bytes,
                        GlobalAccesses &accesses) {
  if (record.order != 0 || S == Space::Generic)
    return 0;
  if (S == Space::Shared && tracksShared(warp))
    return SharedWrites(warp).writeInOrder(mask, addresses, bytes);
  if (S == Space::Global && accesses.tracks())
    return accesses.writeOwn(mask, addresses, bytes);
  return mask;
}

/// Whether a store leaves other bytes in memory than there were. Local memory is part of a warp's own state.
template <typename T>
bool changesMemory(const Record &record, const Resolved &to, const uint64_t *addresses, const SlotOf<T> *const *from) {
  bool changes = false;
  eachLane(to.mask, [&](unsigned lane) {
    if (addresses[lane] >> windowShift == localWindow >> windowShift)
      return;
    for (unsigned element = 0; element < record.vector && !changes; ++element) {
      const T value = T(from[element][lane]);
      changes = std::memcmp(to.at[lane] + element * sizeof(T), &value, sizeof(T)) != 0;
    }
  });
  return changes;
}

/// st: the vector at op[0] + imm = wide[...].
template <Space S, typename T> void runStore(Warp &warp, const Record &record, uint32_t mask) {
  LaneAddresses addresses(warp, record, record.op[0], record.wideAddress);
  const unsigned bytes = sizeof(T) * record.vector;
  Resolved to = resolve<S>(warp, record, mask, addresses.at, bytes, AccessKind::Write);
  warp.spun |= record.order != 0;
  const SlotOf<T> *from[8];
  for (unsigned element = 0; element < record.vector; ++element)
    from[element] = warp.reg<const SlotOf<T>>(record.wide[element]);
  const bool tracks = tracksShared(warp);
  const bool changes = S != Space::Local && !warp.worker->changed && changesMemory<T>(record, to, addresses.at, from);
  GlobalAccesses accesses(warp, record);
  auto store = [&](unsigned lane, bool compare) {
    T values[8];
    for (unsigned element = 0; element < record.vector; ++element)
      values[element] = T(from[element][lane]);
    const auto *value = reinterpret_cast<const std::byte *>(values);
    if (S == Space::Shared || (S == Space::Generic && isShared(addresses.at[lane]))) {
      if (compare && tracks)
        shadowWrite(warp, lane, uint32_t(addresses.at[lane] & windowOffsetMask), bytes, value, record.order != 0);
    } else if (compare && S != Space::Local && addresses.at[lane] >> windowShift == 0 && accesses.tracks()) {
      accesses.write(lane, addresses.at[lane], bytes, value);
    }
    if (record.order == 0) {
      copyAccess(to.at[lane], values, bytes);
      return;
    }
    orderElements<S>(warp, record, addresses.at[lane], sizeof(T), true); // before anyone sees them
    StrongAccess access(warp, record.order, strongKey<S>(warp, addresses.at[lane]));
    copyAccess(to.at[lane], values, bytes);
    access.done(false, true, sizeof(T) < 4); // what is released under the rest of the word stays
  };
  const uint32_t together = storedTogether<S>(warp, record, to.mask, addresses.at, bytes, accesses);
  if (together == ~0u)
    Vectors<T>{to.at, record.vector, to.contiguous}.store(from);
  else
    eachLane(together, [&](unsigned lane) { store(lane, false); });
  eachLane(to.mask & ~together, [&](unsigned lane) { store(lane, true); });
  warp.worker->changed |= changes;
  if (warp.anyPoison)
    carryPoison(warp, record, to, sizeof(T));
}

template <typename T> Executor loadFrom(Space space) {
  switch (space) {
  case Space::Global:
  case Space::Const:
    return runLoad<Space::Global, T>;
  case Space::Shared:
    return runLoad<Space::Shared, T>;
  case Space::Local:
    return runLoad<Space::Local, T>;
  case Space::Param:
    return runLoad<Space::Param, T>;
  default:
    return runLoad<Space::Generic, T>;
  }
}

template <typename T> Executor storeTo(Space space) {
  switch (space) {
  case Space::Global:
    return runStore<Space::Global, T>;
  case Space::Shared:
    return runStore<Space::Shared, T>;
  case Space::Local:
    return runStore<Space::Local, T>;
  default:
    return runStore<Space::Generic, T>;
  }
}

Space spaceNamed(std::string_view word) {
  if (word == "global")
    return Space::Global;
  if (word == "const")
    return Space::Const;
  if (word.starts_with("shared"))
    return Space::Shared;
  if (word == "local")
    return Space::Local;
  if (word.starts_with("param"))
    return Space::Param;
  return Space::Generic;
}

/// The address operand: op[0], and the space that the access goes to.
Space bindAddress(Binding &b, const ptx::Operand &operand, Space named) {
  const AddressOperand address = addressIn(b, operand, named);
  b.record.op[0] = address.base;
  b.record.imm = address.offset;
  b.record.wideAddress = address.wide;
  b.record.named = address.named;
  b.record.inCluster = named == Space::Generic || b.modifier("space") == "shared::cluster";
  b.site.addressOperand = 0;
  if (named == Space::Param) {
    // A function's parameters lie in local memory once it is inlined; an address in a register may mean either.
    if (address.space == Space::Local)
      return Space::Local;
    return address.space == Space::None ? Space::Generic : Space::Param;
  }
  return named == Space::Generic && address.space != Space::None
             ? (address.space == Space::Const ? Space::Global : address.space)
             : named;
}

/// The elements of a vector operand, or the one register.
std::vector<const ptx::Operand *> elementsOf(Binding &b, const ptx::Operand &operand, size_t count) {
  std::vector<const ptx::Operand *> elements;
  if (operand.kind == ptx::OperandKind::Vector)
    for (const ptx::Operand &element : operand.elements)
      elements.push_back(&element);
  else
    elements.push_back(&operand);
  if (elements.size() != count)
    b.fail(operand, format("expected {} registers, but got {}", count, elements.size()));
  return elements;
}

/// The registers of a load's or store's vector. A .b128 is one of two 64-bit elements.
std::vector<Ref> accessed(Binding &b, const ptx::Operand &operand, Type type, size_t count, bool written) {
  if (type == Type::B128) {
    const std::array<Ref, 2> halves = b.decoder.halves(b.frame, operand, written);
    return {halves[0], halves[1]};
  }
  if (operand.kind != ptx::OperandKind::Vector && count == 1)
    return {written ? b.destination(operand, type, true) : b.source(operand, type, true)};
  std::vector<Ref> refs;
  for (const ptx::Operand *element : elementsOf(b, operand, count))
    refs.push_back(written ? b.destinationElement(*element, type, true) : b.sourceElement(*element, type, true));
  return refs;
}

size_t vectorLength(const Binding &b) {
  std::string_view vector = b.modifier("vec");
  if (b.type() == Type::B128) {
    if (!vector.empty())
      b.fail("expected a single .b128, but got a vector");
    return 2;
  }
  return vector.empty() ? 1 : size_t(vector[1] - '0');
}

/// OrderBits of a load or store: volatile is relaxed at system scope (PTX ISA 8.3).
uint8_t orderOf(const Binding &b) {
  std::string_view order = b.modifier("order"), scope = b.modifier("scope");
  if (order.empty() || order == "weak")
    return 0;
  return uint8_t(orderStrong | (order == "acquire" ? orderAcquire : 0) | (order == "release" ? orderRelease : 0) |
                 orderOfScope(order == "volatile" ? "sys" : scope));
}

void setClass(Binding &b, Space space, bool load) {
  b.record.cls = space == Space::Shared  ? (load ? InstructionClass::SharedLoad : InstructionClass::SharedStore)
                 : space == Space::Local ? InstructionClass::LocalMemory
                 : space == Space::Param ? InstructionClass::ParameterMemory
                                         : (load ? InstructionClass::GlobalLoad : InstructionClass::GlobalStore);
}

void bindLoad(Binding &b) {
  size_t count = vectorLength(b);
  if (b.operandCount() < 2)
    b.fail("expected a destination and an address");
  b.setWide(accessed(b, b.operand(0), b.type(), count, true), count);
  const Type type = b.type() == Type::B128 ? Type::B64 : b.type();
  if (count * ptx::typeBits(type) > 256)
    b.fail("expected a vector of at most 32 bytes");
  Space space = bindAddress(b, b.operand(1), spaceNamed(b.modifier("space")));
  b.record.vector = uint8_t(count);
  b.record.order = orderOf(b);
  setClass(b, space, true);
  b.decoder.noteAccess(space, unsigned(count) * std::max(1u, ptx::typeBits(type) / 8));
  bool uniform = space == Space::Param && (b.record.op[0] & constantRef);
  if (uniform) {
    uint64_t base;
    std::memcpy(&base, b.decoder.kernel().constants.data() + (b.record.op[0] & ~constantRef), 8);
    uint64_t offset = (base & windowOffsetMask) + uint64_t(b.record.imm);
    uint64_t bytes = count * ptx::typeBits(type) / 8;
    if (offset + bytes > b.decoder.kernel().info.parameterBytes || offset > b.decoder.kernel().info.parameterBytes)
      b.fail(b.operand(1), format("expected a parameter, but {} bytes at byte {} are outside them", bytes, offset));
    b.record.imm = int64_t(offset);
  }
  auto pick = [&]<typename T>(T) { b.record.run = uniform ? runLoadUniform<T> : loadFrom<T>(space); };
  switch (type) {
  case Type::U8:
  case Type::B8:
    return pick(uint8_t());
  case Type::S8:
    return pick(int8_t());
  case Type::S16:
    return pick(int16_t());
  case Type::U16:
  case Type::B16:
    return pick(uint16_t());
  case Type::U64:
  case Type::S64:
  case Type::B64:
  case Type::F64:
    return pick(uint64_t());
  default:
    return pick(uint32_t());
  }
}

void bindStore(Binding &b) {
  size_t count = vectorLength(b);
  if (b.operandCount() < 2)
    b.fail("expected an address and a source");
  b.setWide(accessed(b, b.operand(1), b.type(), count, false), 0);
  const Type type = b.type() == Type::B128 ? Type::B64 : b.type();
  Space space = bindAddress(b, b.operand(0), spaceNamed(b.modifier("space")));
  b.record.vector = uint8_t(count);
  b.record.order = orderOf(b);
  setClass(b, space, false);
  if (space == Space::Param)
    b.fail(b.operand(0), "expected memory that can be written, but an entry's parameters cannot");
  b.decoder.noteAccess(space, unsigned(count) * std::max(1u, ptx::typeBits(type) / 8));
  switch (ptx::typeBits(type)) {
  case 8:
    b.record.run = storeTo<uint8_t>(space);
    break;
  case 16:
    b.record.run = storeTo<uint16_t>(space);
    break;
  case 32:
    b.record.run = storeTo<uint32_t>(space);
    break;
  default:
    b.record.run = storeTo<uint64_t>(space);
    break;
  }
}

/// A hint for a cache, which has no effect here: of an address, and perhaps of how many bytes.
void bindHint(Binding &b) {
  addressIn(b, b.operand(0), Space::Global);
  const bool sized = b.instruction.mnemonic == "applypriority" || b.instruction.mnemonic == "discard";
  if (sized && (b.operand(1).kind != ptx::OperandKind::Integer || b.operand(1).bits != 128))
    b.fail(b.operand(1), format("expected 128 bytes, but got '{}'", b.operand(1).text));
  b.record.run = [](Warp &, const Record &, uint32_t) {};
}

/// createpolicy: cache policies have no effect here.
void bindPolicy(Binding &b) {
  b.setDestination(0, b.destination(b.operand(0), Type::B64));
  const std::string_view kind = b.modifier("kind");
  if (kind == "range") {
    b.decoder.address(b.frame, b.operand(1));
    b.source(b.operand(2), Type::U32);
    b.source(b.operand(3), Type::U32);
  } else if (kind.empty() || b.operandCount() > 1) {
    b.source(b.operand(1), kind.empty() ? Type::B64 : Type::F32);
  }
  b.record.op[1] = b.decoder.constant64(0);
  b.record.run = lanes<[](uint64_t a) { return a; }, uint64_t, uint64_t>;
}

#define WEFT_MEMORY_TYPES "type=b8|b16|b32|b64|b128|u8|u16|u32|u64|s8|s16|s32|s64|f32|f64"
#define WEFT_CACHE                                                                                                     \
  "l1=L1::evict_normal|L1::evict_unchanged|L1::evict_first|L1::evict_last|L1::no_allocate? "                           \
  "l2=L2::evict_normal|L2::evict_first|L2::evict_last? hint=L2::cache_hint? prefetch=L2::64B|L2::128B|L2::256B?"
#define WEFT_LOAD_SPACES "space=const|global|local|shared|shared::cta|shared::cluster|param|param::entry|param::func?"

const Form forms[] = {
    {"ld",
     "mmio? order=volatile|relaxed|acquire|weak? scope=cta|cluster|gpu|sys? " WEFT_LOAD_SPACES
     " nc? cop=ca|cg|cs|lu|cv? " WEFT_CACHE " vec=v2|v4|v8? " WEFT_MEMORY_TYPES,
     "*", InstructionClass::GlobalLoad, bindLoad},
    {"ldu", "global? vec=v2|v4? " WEFT_MEMORY_TYPES, "*", InstructionClass::GlobalLoad, bindLoad},
    {"st",
     "mmio? order=volatile|relaxed|release|weak? scope=cta|cluster|gpu|sys? "
     "space=global|local|shared|shared::cta|shared::cluster|param|param::func?"
     " cop=wb|cg|cs|wt? " WEFT_CACHE " vec=v2|v4|v8? " WEFT_MEMORY_TYPES,
     "*", InstructionClass::GlobalStore, bindStore},
    {"prefetch", "space=global|local? level=L1|L2|L2::evict_last|L2::evict_normal", "*", InstructionClass::Other,
     bindHint},
    {"prefetchu", "L1", "*", InstructionClass::Other, bindHint},
    {"discard", "global? level=L2", "*", InstructionClass::Other, bindHint},
    {"applypriority", "global? L2::evict_normal", "*", InstructionClass::Other, bindHint},
    {"createpolicy",
     "kind=fractional|range global? first=L2::evict_last|L2::evict_first|L2::evict_normal|L2::evict_unchanged "
     "second=L2::evict_first|L2::evict_unchanged? b64",
     "*", InstructionClass::Move, bindPolicy},
    {"createpolicy", "cvt L2 b64", "*", InstructionClass::Move, bindPolicy},
};

} // namespace

std::span<const Form> memoryForms() { return forms; }

} // namespace weft::simulator::machine

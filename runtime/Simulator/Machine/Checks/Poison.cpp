// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Checks/Poison.h"
#include "runtime/Simulator/Machine/State/Executors.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

namespace weft::simulator::machine {
namespace {

/// A vector's slot has a word per lane: the first says in which lanes anything is unwritten, the next eight which
/// bytes.
bool hasBytes(const Warp &warp, Ref ref) { return ref >= warp.kernel->vectorStart; }
std::span<uint32_t> bytesOf(Warp &warp, Ref ref) { return {&warp.poison[(ref >> 2) + 1], 8}; }

bool isRegister(Ref ref) { return ref != noRef && !(ref & constantRef); }

/// The bits of an integer type named by a modifier, 0 for what is none, and whether it is signed.
std::pair<unsigned, bool> integerType(std::string_view word) {
  static constexpr std::pair<std::string_view, unsigned> types[] = {{"8", 8}, {"16", 16}, {"32", 32}, {"64", 64}};
  if (word.empty() || (word[0] != 'u' && word[0] != 's' && word[0] != 'b'))
    return {0, false};
  for (auto [text, bits] : types)
    if (word.substr(1) == text)
      return {bits, word[0] == 's'};
  return {0, false};
}

/// The bytes that a copy of an integer to a wider or narrower one leaves unwritten.
BytePoison resized(const BytePoison &from, unsigned fromBits, bool isSigned, unsigned toBits) {
  BytePoison to{};
  for (unsigned i = 0; i < toBits / 8; ++i)
    to[i] = i < fromBits / 8 ? from[i] : isSigned ? from[fromBits / 8 - 1] : 0;
  return to;
}

/// A constant operand's number.
std::optional<uint64_t> constantOf(const Warp &warp, Ref ref, unsigned bits) {
  if (ref == noRef || !(ref & constantRef))
    return std::nullopt;
  return bits == 64 ? *warp.reg<const uint64_t>(ref) : *warp.reg<const uint32_t>(ref);
}

/// What an instruction that picks bytes out of words leaves unwritten: and with a mask of bytes, bfe and prmt of whole
/// bytes. Of a byte that is masked in part, only written bits are taken to be left. None for any other instruction.
std::optional<BytePoison> pickedBytes(Warp &warp, const Record &record, const Site &site) {
  const std::string_view mnemonic = site.instruction->mnemonic;
  const auto &modifiers = site.instruction->modifiers;
  const unsigned bits = modifiers.size() == 1 ? integerType(modifiers[0]).first : 0;
  BytePoison to{};
  if (mnemonic == "and" && bits) {
    const int constant = constantOf(warp, record.op[1], bits) ? 1 : 2;
    const std::optional<uint64_t> kept = constantOf(warp, record.op[constant], bits);
    if (!kept)
      return std::nullopt;
    const BytePoison from = bytePoisonOf(warp, record.op[3 - constant]);
    for (unsigned i = 0; i < bits / 8; ++i)
      to[i] = (*kept >> 8 * i & 255) == 255 ? from[i] : 0;
    return to;
  }
  if (mnemonic == "bfe" && modifiers.size() == 1 && modifiers[0] == "u32") {
    const std::optional<uint64_t> first = constantOf(warp, record.op[2], 32),
                                  count = constantOf(warp, record.op[3], 32);
    if (!first || !count || *first % 8 || *count % 8)
      return std::nullopt;
    const BytePoison from = bytePoisonOf(warp, record.op[1]);
    for (unsigned i = 0; i < *count / 8 && *first / 8 + i < 4; ++i)
      to[i] = from[*first / 8 + i];
    return to;
  }
  if (mnemonic == "prmt" && modifiers.size() == 1) {
    const std::optional<uint64_t> selector = constantOf(warp, record.op[3], 32);
    if (!selector)
      return std::nullopt;
    const BytePoison words[] = {bytePoisonOf(warp, record.op[1]), bytePoisonOf(warp, record.op[2])};
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned byte = *selector >> 4 * i & 7;
      to[i] = words[byte / 4][byte % 4];
    }
    return to;
  }
  return std::nullopt;
}

/// How many bytes each element of a packed type has; 0 for any other.
unsigned packedElement(std::string_view type) {
  if (type == "f16x2" || type == "bf16x2" || type == "s16x2" || type == "u16x2")
    return 2;
  if (type == "f32x2")
    return 4;
  return type == "e4m3x2" || type == "e5m2x2" ? 1 : 0;
}

/// Arithmetic on two elements in a word, each by itself, and conversions from and to such words: an element of the
/// result depends on its own in each source.
std::optional<BytePoison> packedBytes(const Warp &warp, const Record &record, const Site &site) {
  static constexpr std::string_view each[] = {"add", "sub", "mul", "fma", "neg", "abs", "min", "max", "ex2", "tanh"};
  const std::string_view mnemonic = site.instruction->mnemonic;
  const auto &modifiers = site.instruction->modifiers;
  const bool converts = mnemonic == "cvt" && modifiers.size() >= 2;
  if (!converts && (std::find(std::begin(each), std::end(each), mnemonic) == std::end(each) || modifiers.empty()))
    return std::nullopt;
  const unsigned to = packedElement(converts ? modifiers[modifiers.size() - 2] : modifiers.back()),
                 from = packedElement(modifiers.back());
  if (!to || (!from && (!converts || modifiers.back() != "f32")))
    return std::nullopt;
  BytePoison result{};
  for (unsigned element = 0; element < 2; ++element) {
    uint32_t lanes = 0;
    if (!from) // the first source is the upper element
      lanes = poisonOf(warp, record.op[2 - element]);
    for (int i = 1; from && i < 6; ++i) {
      if (record.op[i] == noRef || (site.destinations >> i & 1))
        continue;
      const BytePoison bytes = bytePoisonOf(warp, record.op[i]);
      for (unsigned byte = 0; byte < from; ++byte)
        lanes |= bytes[element * from + byte];
    }
    std::fill_n(result.begin() + element * to, to, lanes);
  }
  return result;
}

/// Shifts by a constant: a byte of the result has bits of one byte of the source or of two neighbours.
std::optional<BytePoison> shiftedBytes(const Warp &warp, const Record &record, const Site &site) {
  const std::string_view mnemonic = site.instruction->mnemonic;
  const auto &modifiers = site.instruction->modifiers;
  if ((mnemonic != "shr" && mnemonic != "shl") || modifiers.size() != 1)
    return std::nullopt;
  const auto [bits, isSigned] = integerType(modifiers[0]);
  const std::optional<uint64_t> by = constantOf(warp, record.op[2], 32);
  if (!bits || !by)
    return std::nullopt;
  const BytePoison from = bytePoisonOf(warp, record.op[1]);
  const int bytes = int(bits / 8), step = int(std::min<uint64_t>(*by / 8, bytes)), next = *by % 8 != 0;
  auto at = [&](int i) { return i < 0 ? 0 : i < bytes ? from[i] : isSigned ? from[bytes - 1] : 0; };
  BytePoison to{};
  for (int i = 0; i < bytes; ++i)
    to[i] = mnemonic == "shl" ? at(i - step) | at(i - step - next) : at(i + step) | at(i + step + next);
  return to;
}

/// Sums, differences and the lower halves of products of integers: carries go upwards, so a byte of the result depends
/// on none above it. Exclusive or and complement: on its own alone.
std::optional<BytePoison> carriedBytes(const Warp &warp, const Record &record, const Site &site) {
  const std::string_view mnemonic = site.instruction->mnemonic;
  const auto &modifiers = site.instruction->modifiers;
  const bool sums = mnemonic == "add" || mnemonic == "sub", products = mnemonic == "mul" || mnemonic == "mad",
             alone = mnemonic == "xor" || mnemonic == "not";
  const bool plain =
      ((sums || alone) && modifiers.size() == 1) || (products && modifiers.size() == 2 && modifiers.front() == "lo");
  const unsigned bits = plain ? integerType(modifiers.back()).first : 0;
  if (!bits)
    return std::nullopt;
  BytePoison to{};
  for (int operand = 1; operand < 6; ++operand) {
    if (record.op[operand] == noRef || (site.destinations >> operand & 1))
      continue;
    const BytePoison from = bytePoisonOf(warp, record.op[operand]);
    uint32_t below = 0;
    for (unsigned i = 0; i < bits / 8; ++i)
      to[i] |= below = alone ? from[i] : below | from[i];
  }
  return to;
}

/// What an instruction that only moves bytes leaves unwritten in its destinations, by bytes: mov, with packing and
/// unpacking, cvt between integers, and what picks bytes; what computes two elements of a word apart; and what computes
/// bytes from bytes that are known: shifts, sums. False for any other instruction.
bool copiesBytes(Warp &warp, const Record &record, const Site &site, std::vector<std::pair<Ref, BytePoison>> &results) {
  const std::string_view mnemonic = site.instruction->mnemonic;
  const auto &modifiers = site.instruction->modifiers;
  if (std::optional<BytePoison> packed = packedBytes(warp, record, site)) {
    results.emplace_back(record.op[0], *packed);
    return true;
  }
  if (mnemonic == "mov" && modifiers.size() == 1 && modifiers[0] != "pred" && modifiers[0] != "b128") {
    if (!site.wideCount) {
      results.emplace_back(record.op[0], bytePoisonOf(warp, record.op[1]));
      return true;
    }
    const unsigned parts = record.vector, each = unsigned(record.imm) / 8;
    const bool packs = site.wideDestinations == 1;
    BytePoison whole = packs ? BytePoison{} : bytePoisonOf(warp, record.wide[parts]);
    for (unsigned part = 0; part < parts; ++part) {
      BytePoison bytes = packs ? bytePoisonOf(warp, record.wide[1 + part]) : BytePoison{};
      for (unsigned i = 0; i < each; ++i)
        (packs ? whole[part * each + i] : bytes[i]) = packs ? bytes[i] : whole[part * each + i];
      if (!packs)
        results.emplace_back(record.wide[part], bytes);
    }
    if (packs)
      results.emplace_back(record.wide[0], whole);
    return true;
  }
  if (mnemonic == "cvt" && modifiers.size() == 2) {
    auto [toBits, toSigned] = integerType(modifiers[0]);
    auto [fromBits, fromSigned] = integerType(modifiers[1]);
    if (!toBits || !fromBits)
      return false;
    BytePoison bytes = resized(bytePoisonOf(warp, record.op[1]), fromBits, fromSigned, toBits);
    results.emplace_back(record.op[0], resized(bytes, toBits, toSigned, std::max(toBits, 32u)));
    return true;
  }
  if (std::optional<BytePoison> shifted = shiftedBytes(warp, record, site)) {
    results.emplace_back(record.op[0], *shifted);
    return true;
  }
  if (std::optional<BytePoison> carried = carriedBytes(warp, record, site)) {
    results.emplace_back(record.op[0], *carried);
    return true;
  }
  if (std::optional<BytePoison> picked = pickedBytes(warp, record, site)) {
    results.emplace_back(record.op[0], *picked);
    return true;
  }
  return false;
}

/// Lanes whose result of a vote, match or reduction depends on a lane of `tainted`.
uint32_t reachedByMembers(const Warp &warp, const Record &record, uint32_t mask, uint32_t tainted) {
  if (record.members < 0)
    return mask;
  const uint32_t *members = warp.reg<const uint32_t>(record.op[record.members]);
  uint32_t reached = 0;
  eachLane(mask, [&](unsigned lane) { reached |= uint32_t((members[lane] & tainted) != 0) << lane; });
  return reached;
}

} // namespace

namespace {

/// Makes room for the poison of all registers.
void startPoison(Warp &warp) {
  if (warp.anyPoison)
    return;
  warp.poison.assign(warp.kernel->registerBytes / 4, 0);
  warp.origins.assign(warp.poison.size(), 0);
  warp.anyPoison = warp.watched = true;
}

} // namespace

void poisonRegister(Warp &warp, Ref ref, uint32_t mask, uint32_t origin) {
  startPoison(warp);
  warp.poison[ref >> 2] |= mask;
  if (hasBytes(warp, ref))
    for (uint32_t &byte : bytesOf(warp, ref))
      byte |= mask;
  setOrigin(warp, ref, mask, origin);
}

void poisonBytes(Warp &warp, Ref ref, const BytePoison &bytes) {
  uint32_t any = 0;
  for (uint32_t byte : bytes)
    any |= byte;
  if (!any)
    return;
  startPoison(warp);
  warp.poison[ref >> 2] |= any;
  std::span<uint32_t> known = bytesOf(warp, ref);
  for (unsigned i = 0; i < bytes.size(); ++i)
    known[i] |= bytes[i];
}

BytePoison bytePoisonOf(const Warp &warp, Ref ref) {
  BytePoison bytes{};
  if (poisonOf(warp, ref) && hasBytes(warp, ref))
    std::copy_n(&warp.poison[(ref >> 2) + 1], bytes.size(), bytes.begin());
  return bytes;
}

namespace {

/// Whether a record does something that registers do not show.
bool reachesOut(const Record &record) {
  switch (record.cls) {
  case InstructionClass::Integer:
  case InstructionClass::Float:
  case InstructionClass::Half:
  case InstructionClass::Double:
  case InstructionClass::Convert:
  case InstructionClass::Special:
  case InstructionClass::Move:
  case InstructionClass::Compare:
  case InstructionClass::Predicate:
  case InstructionClass::ParameterMemory:
    return false;
  default:
    return !record.hidden || record.run == runBranch;
  }
}

template <typename Visit> void eachDestination(const Record &record, const Site &site, Visit visit) {
  for (int i = 0; i < 6; ++i)
    if ((site.destinations >> i & 1) && isRegister(record.op[i]))
      visit(record.op[i]);
  for (int i = 0; i < site.wideDestinations; ++i)
    if (isRegister(record.wide[i]))
      visit(record.wide[i]);
}

/// The unwritten values that a record reads.
class Tainted {
public:
  explicit Tainted(Warp &warp) : warp_(warp) {}
  uint32_t lanes = 0; ///< that read any
  uint32_t guard = 0; ///< whose guard is one

  void add(Ref ref, uint32_t mask) {
    if (!mask)
      return;
    lanes |= mask;
    if (count_ == most)
      return;
    refs_[count_] = ref;
    masks_[count_++] = mask;
  }
  /// Results in `to` come from what was read, in their own lane or, where instructions mix lanes, in any.
  void passOrigins(Ref to, uint32_t mask) {
    for (unsigned i = 0; i < count_ && mask; ++i)
      eachLane(masks_[i] & mask, [&](unsigned lane) {
        setOrigin(warp_, to, 1u << lane, readNow(warp_, originOf(warp_, refs_[i], lane)));
        mask &= ~(1u << lane);
      });
    if (mask && count_)
      setOrigin(warp_, to, mask, readNow(warp_, originOf(warp_, refs_[0], firstLane(masks_[0]))));
  }
  /// What left a lane of a register unwritten.
  std::string describe(Ref ref, unsigned lane) {
    return describeOrigin(warp_, readNow(warp_, originOf(warp_, ref, lane)));
  }

private:
  Warp &warp_;
  static constexpr unsigned most = 8;
  Ref refs_[most];
  uint32_t masks_[most];
  unsigned count_ = 0;
};

/// Lanes whose guard is false keep what nothing wrote: from now on this record is what left it so.
void noteSkipped(Warp &warp, const Record &record, const Site &site, uint32_t skipped) {
  eachDestination(record, site, [&](Ref ref) {
    eachLane(warp.poison[ref >> 2] & skipped, [&](unsigned lane) {
      const uint32_t number = originOf(warp, ref, lane);
      if (!number)
        return;
      Origin origin = warp.block->origins[number];
      if (origin.cause > Origin::Guard || origin.read != Origin::nowhere)
        return;
      origin.cause = Origin::Guard;
      origin.pc = warp.here();
      setOrigin(warp, ref, 1u << lane, warp.block->origins.add(origin));
    });
  });
}

/// Gathers the unwritten values that a record reads, and reports those that decide where it goes or what it accesses.
/// What a store writes is looked at byte by byte where it is stored.
void readTainted(Warp &warp, const Record &record, const Site &site, uint32_t mask, Tainted &tainted) {
  auto complain = [&](Ref ref, uint32_t lanes, const char *what) {
    report(warp, FindingKind::Uninitialised, firstLane(lanes), format("{} a value that nothing wrote", what),
           tainted.describe(ref, firstLane(lanes)));
  };
  tainted.add(record.guard, tainted.guard);
  if (tainted.guard && reachesOut(record))
    complain(record.guard, tainted.guard,
             record.run == runBranch || record.run == runExit ? "decides a branch by" : "is guarded by");
  for (int i = 0; i < 6; ++i) {
    if ((site.destinations >> i & 1) || !isRegister(record.op[i]))
      continue;
    const uint32_t lanes = poisonOf(warp, record.op[i]) & mask;
    tainted.add(record.op[i], lanes);
    if (!lanes)
      continue;
    if (i == site.addressOperand)
      complain(record.op[i], lanes, "uses as an address");
    else if (record.run == runBranchTable)
      complain(record.op[i], lanes, "decides a branch by");
  }
  for (int i = site.wideDestinations; i < site.wideCount; ++i)
    if (isRegister(record.wide[i]))
      tainted.add(record.wide[i], poisonOf(warp, record.wide[i]) & mask);
}

/// The lanes whose results depend on an unwritten value. A shuffle's executor knows which lanes come from where.
uint32_t reachedLanes(Warp &warp, const Record &record, const Site &site, uint32_t mask, const Tainted &tainted) {
  uint32_t reached = tainted.lanes;
  if (!reached || record.cls == InstructionClass::Shuffle)
    return tainted.guard;
  // A vote or matrix product mixes lanes: any poisoned lane may reach all.
  if (record.cls == InstructionClass::Matrix)
    reached = ~0u;
  else if (record.cls == InstructionClass::Vote)
    reached = tainted.guard | reachedByMembers(warp, record, mask, reached);
  // What is not selected does not matter.
  if (reached && site.instruction && site.instruction->mnemonic == "selp") {
    const uint32_t first = warp.predicate(record.op[3]) ^ (site.instruction->operands[3].negated ? ~0u : 0u);
    const uint32_t chosen = (first & poisonOf(warp, record.op[1])) | (~first & poisonOf(warp, record.op[2]));
    reached = tainted.guard | poisonOf(warp, record.op[3]) | chosen;
  }
  return reached;
}

/// Whether an instruction combines unwritten bits with written ones, as bit fields are written piece by piece over what
/// nothing wrote: masking is taken to leave only written bits.
bool masksBits(const Warp &warp, const Record &record, const Site &site, uint32_t mask) {
  static constexpr std::string_view masking[] = {"and", "or", "bfi", "bfe", "lop3", "prmt"};
  if (std::find(std::begin(masking), std::end(masking), site.instruction->mnemonic) == std::end(masking))
    return false;
  for (int i = 1; i < 6; ++i)
    if (!(site.destinations >> i & 1) && record.op[i] != noRef && !(poisonOf(warp, record.op[i]) & mask))
      return true;
  return false;
}

/// Marks a register that a record writes: unwritten in the lanes of `marked`, written in the others of `mask`.
void markDestination(Warp &warp, Ref ref, uint32_t mask, uint32_t marked) {
  warp.poison[ref >> 2] = (warp.poison[ref >> 2] & ~mask) | marked;
  if (hasBytes(warp, ref))
    for (uint32_t &byte : bytesOf(warp, ref))
      byte = (byte & ~mask) | marked;
}

} // namespace

void trackPoison(Warp &warp, const Record &record, uint32_t mask) {
  const Site &site = warp.kernel->sites[warp.here()];
  Tainted tainted(warp);
  tainted.guard = isRegister(record.guard) ? poisonOf(warp, record.guard) & warp.mask : 0;
  readTainted(warp, record, site, mask, tainted);
  if (record.guard != noRef && !record.hidden && (warp.mask & ~mask))
    noteSkipped(warp, record, site, warp.mask & ~mask);
  if (tainted.lanes && record.cls == InstructionClass::Matrix && poisonProduct(warp, record, mask))
    return;
  uint32_t reached = reachedLanes(warp, record, site, mask, tainted);
  std::vector<std::pair<Ref, BytePoison>> copies;
  const bool copied = reached && !tainted.guard && site.instruction && copiesBytes(warp, record, site, copies);
  if (reached && !copied && site.instruction && masksBits(warp, record, site, mask))
    reached = tainted.guard;
  const uint32_t marked = reached & (mask | tainted.guard);
  if (marked) // before the marks, since a record may write what it reads
    eachDestination(record, site, [&](Ref ref) { tainted.passOrigins(ref, marked); });
  eachDestination(record, site, [&](Ref ref) { markDestination(warp, ref, mask, copied ? 0 : marked); });
  for (auto &[ref, bytes] : copies) {
    for (uint32_t &byte : bytes)
      byte &= mask;
    if (isRegister(ref))
      poisonBytes(warp, ref, bytes);
  }
}

} // namespace weft::simulator::machine

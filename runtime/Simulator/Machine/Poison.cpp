// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Poison.h"
#include "runtime/Simulator/Machine/Decode.h"
#include "runtime/Support/Format.h"

#include <algorithm>
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

/// What an instruction that only moves bytes leaves unwritten in its destinations, by bytes: mov, with packing and
/// unpacking, cvt between integers, and shifts by whole bytes. False for any other instruction.
bool copiesBytes(Warp &warp, const Record &record, const Site &site, std::vector<std::pair<Ref, BytePoison>> &results) {
  const std::string_view mnemonic = site.instruction->mnemonic;
  const auto &modifiers = site.instruction->modifiers;
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
  if ((mnemonic == "shr" || mnemonic == "shl") && modifiers.size() == 1 && (record.op[2] & constantRef)) {
    auto [bits, isSigned] = integerType(modifiers[0]);
    const uint32_t by = *warp.reg<const uint32_t>(record.op[2]);
    if (!bits || by % 8)
      return false;
    const BytePoison from = bytePoisonOf(warp, record.op[1]);
    BytePoison to{};
    const unsigned bytes = bits / 8, step = std::min(by / 8, bytes);
    for (unsigned i = 0; i < bytes; ++i) {
      if (mnemonic == "shl")
        to[i] = i >= step ? from[i - step] : 0;
      else
        to[i] = i + step < bytes ? from[i + step] : isSigned ? from[bytes - 1] : 0;
    }
    results.emplace_back(record.op[0], to);
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

void poisonRegister(Warp &warp, Ref ref, uint32_t mask) {
  if (warp.poison.empty())
    warp.poison.resize(warp.kernel->registerBytes / 4);
  else if (!warp.anyPoison)
    std::fill(warp.poison.begin(), warp.poison.end(), 0);
  warp.poison.resize(warp.kernel->registerBytes / 4);
  warp.poison[ref >> 2] |= mask;
  if (hasBytes(warp, ref))
    for (uint32_t &byte : bytesOf(warp, ref))
      byte |= mask;
  warp.anyPoison = true;
}

void poisonBytes(Warp &warp, Ref ref, const BytePoison &bytes) {
  uint32_t any = 0;
  for (uint32_t byte : bytes)
    any |= byte;
  if (!any)
    return;
  poisonRegister(warp, ref, 0);
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

uint32_t trackPoison(Warp &warp, const Record &record, uint32_t mask) {
  const Site &site = warp.kernel->sites[warp.here()];
  uint32_t guard = isRegister(record.guard) ? poisonOf(warp, record.guard) & warp.mask : 0;
  uint32_t tainted = guard;
  auto complain = [&](uint32_t lanes, const char *what) {
    report(warp, FindingKind::Uninitialised, firstLane(lanes), format("{} a value that nothing wrote", what));
  };
  if (guard && (record.run == runBranch || record.run == runExit))
    complain(guard, "decides a branch by");
  for (int i = 0; i < 6; ++i) {
    if ((site.destinations >> i & 1) || !isRegister(record.op[i]))
      continue;
    uint32_t lanes = poisonOf(warp, record.op[i]) & mask;
    tainted |= lanes;
    if (!lanes)
      continue;
    if (i == site.addressOperand)
      complain(lanes, "uses as an address");
    else if (site.storesGlobal)
      complain(lanes, "writes to memory");
    else if (record.run == runBranchTable)
      complain(lanes, "decides a branch by");
  }
  for (int i = site.wideDestinations; i < site.wideCount; ++i) {
    uint32_t lanes = isRegister(record.wide[i]) ? poisonOf(warp, record.wide[i]) & mask : 0;
    tainted |= lanes;
    // What a store writes is looked at where it is carried, byte by byte.
  }
  // A shuffle, vote or matrix product mixes lanes: any poisoned lane may reach all.
  bool mixes = record.cls == InstructionClass::Matrix || record.cls == InstructionClass::Shuffle ||
               record.cls == InstructionClass::Vote;
  if (mixes && record.cls == InstructionClass::Matrix && tainted && poisonProduct(warp, record, mask))
    return mask;
  if (mixes && record.cls != InstructionClass::Shuffle && tainted)
    tainted = record.cls == InstructionClass::Vote ? guard | reachedByMembers(warp, record, mask, tainted) : ~0u;
  // What is not selected does not matter.
  if (tainted && site.instruction && site.instruction->mnemonic == "selp") {
    const uint32_t first = warp.predicate(record.op[3]) ^ (site.instruction->operands[3].negated ? ~0u : 0u);
    const uint32_t chosen = (first & poisonOf(warp, record.op[1])) | (~first & poisonOf(warp, record.op[2]));
    tainted = guard | poisonOf(warp, record.op[3]) | chosen;
  }
  // Bit fields are written piece by piece over what nothing wrote: masking is taken to leave only written bits.
  if (tainted && site.instruction) {
    static constexpr std::string_view masking[] = {"and", "or", "bfi", "bfe", "lop3", "prmt"};
    bool masks = std::find(std::begin(masking), std::end(masking), site.instruction->mnemonic) != std::end(masking);
    for (int i = 1; i < 6 && masks; ++i)
      if (!(site.destinations >> i & 1) && record.op[i] != noRef && !(poisonOf(warp, record.op[i]) & mask))
        tainted = guard;
  }
  if (record.cls == InstructionClass::Shuffle)
    tainted = guard; // its executor knows which lanes come from where
  std::vector<std::pair<Ref, BytePoison>> copies;
  const bool copied = tainted && !guard && site.instruction && copiesBytes(warp, record, site, copies);
  auto mark = [&](Ref ref) {
    if (!isRegister(ref))
      return;
    const uint32_t marked = copied ? 0 : tainted & (mask | guard);
    warp.poison[ref >> 2] = (warp.poison[ref >> 2] & ~mask) | marked;
    if (hasBytes(warp, ref))
      for (uint32_t &byte : bytesOf(warp, ref))
        byte = (byte & ~mask) | marked;
  };
  for (int i = 0; i < 6; ++i)
    if (site.destinations >> i & 1)
      mark(record.op[i]);
  for (int i = 0; i < site.wideDestinations; ++i)
    mark(record.wide[i]);
  for (auto &[ref, bytes] : copies) {
    for (uint32_t &byte : bytes)
      byte &= mask;
    if (isRegister(ref))
      poisonBytes(warp, ref, bytes);
  }
  return mask;
}

} // namespace weft::simulator::machine

// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Poison.h"
#include "runtime/Simulator/Machine/Decode.h"
#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::simulator::machine {

void poisonRegister(Warp &warp, Ref ref, uint32_t mask) {
  if (warp.poison.empty())
    warp.poison.resize(warp.kernel->registerBytes / 4);
  else if (!warp.anyPoison)
    std::fill(warp.poison.begin(), warp.poison.end(), 0);
  warp.poison.resize(warp.kernel->registerBytes / 4);
  warp.poison[ref >> 2] |= mask;
  warp.anyPoison = true;
}

uint32_t trackPoison(Warp &warp, const Record &record, uint32_t mask) {
  const Site &site = warp.kernel->sites[warp.here()];
  auto isRegister = [](Ref ref) { return ref != noRef && !(ref & constantRef); };
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
    if (lanes && site.storesGlobal)
      complain(lanes, "writes to memory");
  }
  // A shuffle, vote or matrix product mixes lanes: any poisoned lane may reach all.
  bool mixes = record.cls == InstructionClass::Matrix || record.cls == InstructionClass::Shuffle ||
               record.cls == InstructionClass::Vote;
  if (mixes && record.cls != InstructionClass::Shuffle && tainted)
    tainted = ~0u;
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
  auto mark = [&](Ref ref) {
    if (isRegister(ref))
      warp.poison[ref >> 2] = (warp.poison[ref >> 2] & ~mask) | (tainted & (mask | guard));
  };
  for (int i = 0; i < 6; ++i)
    if (site.destinations >> i & 1)
      mark(record.op[i]);
  for (int i = 0; i < site.wideDestinations; ++i)
    mark(record.wide[i]);
  return mask;
}

} // namespace weft::simulator::machine

// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/Origins.h"
#include "runtime/Simulator/Machine/State/Warp.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <string_view>

namespace weft::simulator::machine {
namespace {

bool isPredicate(const Warp &warp, Ref ref) { return ref < warp.kernel->vectorStart; }

bool isIn(const auto &memory, const std::byte *at) {
  return !memory.empty() && at >= memory.data() && at < memory.data() + memory.size();
}

/// The register of Weft's own PTX that stands for what a mask leaves out where nobody asked for a value.
constexpr std::string_view leftOut = "'undefined'";

/// "'ld.global.f32' at line 9 (f.cu:3)".
std::string instructionAt(const Warp &warp, uint32_t pc) {
  const Site &site = warp.kernel->sites[std::min<size_t>(pc, warp.kernel->sites.size() - 1)];
  return site.instruction ? format("'{}' at {}", site.instruction->spelling(), siteName(warp, pc)) : siteName(warp, pc);
}

/// "byte 16 of shared memory ('tile' + 16)".
std::string sharedPlace(const Warp &warp, uint64_t offset) {
  for (const SharedName &variable : warp.kernel->sharedNames)
    if (offset >= variable.offset && offset - variable.offset < variable.bytes)
      return format("byte {} of shared memory ('{}' + {})", offset, variable.name, offset - variable.offset);
  return format("byte {} of shared memory", offset);
}

std::string globalPlace(const Warp &warp, uint64_t address) {
  const Allocation *allocation = warp.block->grid->view->find(address, 1);
  return allocation ? format("{:#x} ('{}' + {})", address, allocation->name, address - allocation->base)
                    : format("{:#x}", address);
}

} // namespace

void OriginTable::clear() {
  origins_.clear();
  numbers_.clear();
  stored.clear();
}

uint32_t OriginTable::add(const Origin &origin) {
  auto [at, fresh] = numbers_.try_emplace({origin.cause, origin.pc, origin.read, origin.name}, 0);
  if (fresh) {
    origins_.push_back(origin);
    at->second = uint32_t(origins_.size());
  }
  return at->second;
}

uint32_t originOf(const Warp &warp, Ref ref, unsigned lane) {
  if ((ref & constantRef) || (ref >> 2) >= warp.origins.size())
    return 0;
  return warp.origins[(ref >> 2) + (isPredicate(warp, ref) ? 0 : lane)];
}

void setOrigin(Warp &warp, Ref ref, uint32_t lanes, uint32_t origin) {
  if (!lanes)
    return;
  if (isPredicate(warp, ref))
    warp.origins[ref >> 2] = origin;
  else
    eachLane(lanes, [&](unsigned lane) { warp.origins[(ref >> 2) + lane] = origin; });
}

uint32_t readNow(Warp &warp, uint32_t origin) {
  if (!origin || warp.block->origins[origin].read != Origin::nowhere)
    return origin;
  Origin read = warp.block->origins[origin];
  read.read = warp.here();
  return warp.block->origins.add(read);
}

uint32_t readHere(Warp &warp, uint32_t origin) {
  if (!origin)
    return origin;
  Origin read = warp.block->origins[origin];
  read.read = warp.here();
  return warp.block->origins.add(read);
}

uint32_t readFirst(Warp &warp, Origin::Cause cause, uint64_t place) {
  return warp.block->origins.add({cause, Origin::nowhere, warp.here(), 0, place});
}

uint32_t originAt(Warp &warp, const std::byte *at, unsigned bytes, uint32_t unwritten) {
  for (unsigned i = 0; i < bytes; ++i)
    if (unwritten >> i & 1)
      if (auto found = warp.block->origins.stored.find(at + i); found != warp.block->origins.stored.end())
        return found->second;
  at += unwritten ? __builtin_ctz(unwritten) : 0;
  if (isIn(warp.block->shared, at))
    return readFirst(warp, Origin::Shared, uint64_t(at - warp.block->shared.data()));
  if (isIn(warp.local, at))
    return readFirst(warp, Origin::Local, uint64_t(at - warp.local.data()) % warp.kernel->localBytes);
  return readFirst(warp, Origin::Global, reinterpret_cast<Address>(at));
}

void rememberOrigin(Warp &warp, const std::byte *at, unsigned bytes, uint32_t unwritten, uint32_t origin) {
  for (unsigned i = 0; i < bytes; ++i)
    if (unwritten >> i & 1)
      warp.block->origins.stored[at + i] = origin;
}

std::string describeOrigin(const Warp &warp, uint32_t number) {
  if (!number)
    return {};
  const Origin &origin = warp.block->origins[number];
  const std::string reader = instructionAt(warp, origin.read);
  auto reg = [&] {
    const std::string &name = warp.kernel->maybeUninitialised[origin.name].name;
    return name.empty() ? std::string("a register") : "'" + name + "'";
  };
  switch (origin.cause) {
  case Origin::Register:
    if (reg() == leftOut)
      return format("the load or atomic operation at {} has no 'other' for what its mask leaves out (a machine has 0 "
                    "there); give it one, or a mask to what uses it",
                    siteName(warp, origin.read));
    return format("nothing wrote {} before {} read it", reg(), reader);
  case Origin::Guard:
    return format("{}, whose predicate was false, left {} unwritten, and {} was the first to read it",
                  instructionAt(warp, origin.pc), reg(), reader);
  case Origin::Shared:
    return format("nothing wrote {} before {} read it", sharedPlace(warp, origin.place), reader);
  case Origin::Local:
    return format("nothing wrote byte {} of local memory before {} read it", origin.place, reader);
  case Origin::Global:
    return format("nothing wrote {} before {} read it", globalPlace(warp, origin.place), reader);
  case Origin::Tensor:
    return format("nothing wrote some of tensor memory from lane {}, column {} on before {} read it",
                  origin.place >> 16, origin.place & 0xffff, reader);
  case Origin::Lane:
    return format("{} reads lane {}, which takes no part in it", reader, origin.place);
  }
  return {};
}

} // namespace weft::simulator::machine

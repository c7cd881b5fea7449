// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Checks/ProductRegisters.h"
#include "runtime/Support/Format.h"

#include <algorithm>

namespace weft::simulator::machine {
namespace {

uint32_t slotOf(Ref ref) { return ref / slotBytes; }
bool isVector(const Warp &warp, Ref ref) {
  return ref != noRef && !(ref & constantRef) && ref >= warp.kernel->vectorStart;
}

const WgmmaForm &formOf(const Record &record) { return *static_cast<const WgmmaForm *>(record.aux); }

/// Calls visit(register, written) for each register of 32 bits or more that a record names.
template <typename Visit> void eachVector(const Warp &warp, const Record &record, const Site &site, Visit visit) {
  for (int i = 0; i < 6; ++i)
    if (isVector(warp, record.op[i]))
      visit(record.op[i], (site.destinations >> i & 1) != 0);
  for (int i = 0; i < site.wideCount; ++i)
    if (isVector(warp, record.wide[i]))
      visit(record.wide[i], i < site.wideDestinations);
}

/// The wgmma in flight that has a register, and the state that it is in.
std::string holder(const Warp &warp, Ref ref) {
  for (const PendingProduct &product : warp.products->pending) {
    const Site &site = warp.kernel->sites[product.pc];
    const Ref *end = product.record->wide + site.wideCount;
    if (std::find(product.record->wide, end, ref) != end)
      return format("the wgmma at {}, {}", siteName(warp, product.pc),
                    product.group == warp.products->committed ? "which is not committed"
                                                              : "whose group no wgmma.wait_group has awaited");
  }
  return "a wgmma in flight";
}

/// Accumulators of another shape or type may not meet without a wait.
bool sameShape(const PendingProduct &a, const PendingProduct &b) {
  const WgmmaForm &x = formOf(*a.record), &y = formOf(*b.record);
  return x.n == y.n && x.step.d == y.step.d && std::equal(a.record->wide, a.record->wide + x.dCount, b.record->wide);
}

/// Whether the registers of one lie before or after all of the other's.
bool areApart(const PendingProduct &a, const PendingProduct &b) {
  auto bounds = [](const PendingProduct &each) {
    const Ref *all = each.record->wide;
    return std::minmax_element(all, all + formOf(*each.record).registers());
  };
  const auto [aLow, aHigh] = bounds(a);
  const auto [bLow, bHigh] = bounds(b);
  return *aHigh < *bLow || *bHigh < *aLow;
}

} // namespace

void watchProducts(Warp &warp, const Record &record) {
  Products &products = *warp.products;
  const Site &site = warp.kernel->sites[warp.here()];
  if (site.instruction && site.instruction->mnemonic == "wgmma")
    return;
  eachVector(warp, record, site, [&](Ref ref, bool written) {
    const uint8_t flight = products.inFlight[slotOf(ref)];
    if (flight & Products::Accumulates)
      report(warp, FindingKind::WgmmaAccumulator, firstLane(warp.mask),
             format("{} an accumulator of {}", written ? "writes" : "reads", holder(warp, ref)));
    else if (flight && written)
      report(warp, FindingKind::WgmmaAccumulator, firstLane(warp.mask),
             format("writes a register of A of {}", holder(warp, ref)));
    if (written)
      products.written[slotOf(ref)] = products.fences;
  });
}

void beginProduct(Warp &warp, const PendingProduct &product) {
  Products &products = *warp.products;
  const WgmmaForm &form = formOf(*product.record);
  if (!warp.block->grid->options.checks.async)
    return;
  const bool mayClash = std::any_of(products.pending.begin(), products.pending.end(), [&](const PendingProduct &other) {
    return !sameShape(product, other) && !areApart(product, other);
  });
  for (unsigned i = 0; i < form.registers(); ++i) {
    const Ref ref = product.record->wide[i];
    if (!isVector(warp, ref))
      continue;
    uint8_t &flight = products.inFlight[slotOf(ref)];
    const bool accumulates = i < form.dCount;
    if (products.written[slotOf(ref)] == products.fences)
      report(warp, FindingKind::WgmmaAccumulator, firstLane(warp.mask),
             format("has {} that was written since the last wgmma.fence",
                    accumulates ? "an accumulator" : "a register of A"));
    if (!accumulates && (flight & Products::Accumulates))
      report(warp, FindingKind::WgmmaAccumulator, firstLane(warp.mask),
             format("reads as A an accumulator of {}", holder(warp, ref)));
    if (accumulates && flight && mayClash)
      for (const PendingProduct &other : products.pending) {
        const WgmmaForm &held = formOf(*other.record);
        const Ref *all = other.record->wide, *end = all + held.registers();
        if (std::find(all, end, ref) != end &&
            (std::find(all, all + held.dCount, ref) == all + held.dCount || !sameShape(product, other)))
          report(warp, FindingKind::WgmmaAccumulator, firstLane(warp.mask),
                 format("accumulates into registers that the wgmma at {} has in another way, without a wait",
                        siteName(warp, other.pc)));
      }
    flight |= accumulates ? Products::Accumulates : Products::Multiplied;
  }
}

void forgetRetired(Warp &warp) {
  Products &products = *warp.products;
  if (!warp.block->grid->options.checks.async)
    return;
  std::fill(products.inFlight.begin(), products.inFlight.end(), uint8_t(0));
  for (const PendingProduct &product : products.pending) {
    const WgmmaForm &form = formOf(*product.record);
    for (unsigned i = 0; i < form.registers(); ++i)
      if (const Ref ref = product.record->wide[i]; isVector(warp, ref))
        products.inFlight[slotOf(ref)] |= i < form.dCount ? Products::Accumulates : Products::Multiplied;
  }
}

} // namespace weft::simulator::machine

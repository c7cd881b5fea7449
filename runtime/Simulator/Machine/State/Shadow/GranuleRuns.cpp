// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/Shadow/GranuleRuns.h"
#include "runtime/Simulator/Machine/State/Lanes.h"

#include <cstring>

namespace weft::simulator::machine {
namespace {

typedef uint32_t Words __attribute__((vector_size(sizeof(Granule))));
static_assert(sizeof(Granule) == sizeof(Words));

// By reference: vectors that are passed as values would be passed otherwise by each compilation.
[[gnu::always_inline]] inline void load(Words &words, const void *from) { std::memcpy(&words, from, sizeof words); }
[[gnu::always_inline]] inline bool isZero(const Words &words) { return __builtin_reduce_or(words) == 0; }

[[gnu::always_inline]] inline Granule *endOfAlikeBody(Granule *first, Granule *end, const GranuleMask &mask) {
  Words model, care, here;
  load(model, first);
  load(care, &mask);
  constexpr int step = 4; // of which one branch asks
  Granule *g = first + 1;
  for (; end - g >= step; g += step) {
    Words different = {};
    for (int i = 0; i < step; ++i) {
      load(here, g + i);
      different |= here ^ model;
    }
    if (!isZero(different & care))
      break;
  }
  for (; g != end; ++g) {
    load(here, g);
    if (!isZero((here ^ model) & care))
      break;
  }
  return g;
}

[[gnu::always_inline]] inline void changeBody(Granule *first, Granule *end, const GranuleMask &keep,
                                              const Granule &set) {
  Words kept, added, here;
  load(kept, &keep);
  load(added, &set);
  for (Granule *g = first; g != end; ++g) {
    load(here, g);
    here = (here & kept) | added;
    std::memcpy(static_cast<void *>(g), &here, sizeof here);
  }
}

#if defined(__x86_64__)
WEFT_WIDEST_LANES Granule *endOfAlikeWidest(Granule *first, Granule *end, const GranuleMask &mask) {
  return endOfAlikeBody(first, end, mask);
}
WEFT_WIDE_LANES Granule *endOfAlikeWide(Granule *first, Granule *end, const GranuleMask &mask) {
  return endOfAlikeBody(first, end, mask);
}
WEFT_WIDEST_LANES void changeWidest(Granule *first, Granule *end, const GranuleMask &keep, const Granule &set) {
  changeBody(first, end, keep, set);
}
WEFT_WIDE_LANES void changeWide(Granule *first, Granule *end, const GranuleMask &keep, const Granule &set) {
  changeBody(first, end, keep, set);
}
#endif
Granule *endOfAlikeNarrow(Granule *first, Granule *end, const GranuleMask &mask) {
  return endOfAlikeBody(first, end, mask);
}
void changeNarrow(Granule *first, Granule *end, const GranuleMask &keep, const Granule &set) {
  changeBody(first, end, keep, set);
}

} // namespace

Granule *endOfAlike(Granule *first, Granule *end, const GranuleMask &mask) {
  static const auto best = WEFT_BEST_LANES(endOfAlike);
  return best(first, end, mask);
}

void changeGranules(Granule *first, Granule *end, const GranuleMask &keep, const Granule &set) {
  static const auto best = WEFT_BEST_LANES(change);
  best(first, end, keep, set);
}

void fillGranules(Granule *first, Granule *end, const Granule &value) { changeGranules(first, end, {}, value); }

} // namespace weft::simulator::machine

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which patterns have segments.
#include "dialects/Attn/Pattern/Segments.h"

using namespace mlir;
using namespace weft::attn;

bool weft::attn::hasSegments(Attribute pattern, const Lengths &lengths) {
  for (int64_t head = 0, heads = std::max<int64_t>(headCount(pattern), 1); head < heads; ++head) {
    Attribute own = patternOfHead(pattern, head);
    if (!bandsOf(own, false, lengths) || !bandsOf(own, true, lengths))
      return false;
  }
  return true;
}

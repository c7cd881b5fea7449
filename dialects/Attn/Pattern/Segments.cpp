// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which patterns have segments.
#include "dialects/Attn/Pattern/Segments.h"
#include "dialects/Attn/Pattern/Transpose.h"

using namespace mlir;
using namespace weft::attn;

SectionAttr weft::attn::asSection(Attribute pattern) {
  if (auto transpose = dyn_cast<TransposeAttr>(pattern))
    pattern = transposePattern(transpose.getPattern());
  return dyn_cast<SectionAttr>(pattern);
}

SpanAttr weft::attn::asSpan(Attribute pattern) {
  if (auto transpose = dyn_cast<TransposeAttr>(pattern))
    pattern = transposePattern(transpose.getPattern());
  return dyn_cast<SpanAttr>(pattern);
}

bool weft::attn::hasSpan(Attribute pattern) {
  bool found = false;
  pattern.walk([&](SpanAttr) { found = true; });
  return found;
}

bool weft::attn::hasSegments(Attribute pattern, const Lengths &lengths) {
  for (int64_t head = 0, heads = std::max<int64_t>(headCount(pattern), 1); head < heads; ++head) {
    Attribute own = patternOfHead(pattern, head);
    if (asSpan(own))
      continue;
    SectionAttr section = asSection(own);
    Attribute whole = section ? section.getPattern() : own;
    Lengths known = section ? Lengths() : lengths;
    if (!bandsOf(whole, false, known) || !bandsOf(whole, true, known))
      return false;
  }
  return true;
}

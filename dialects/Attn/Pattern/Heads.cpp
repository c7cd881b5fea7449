// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Patterns that differ from head to head.
#include "dialects/Attn/Pattern/Heads.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace weft::attn;

SmallVector<HeadGroup> weft::attn::headGroups(ArrayRef<Attribute> patterns) {
  llvm::MapVector<Attribute, SmallVector<HeadRun, 2>> runs;
  for (auto [head, pattern] : llvm::enumerate(patterns)) {
    SmallVector<HeadRun, 2> &list = runs[pattern];
    int64_t h = head;
    if (!list.empty() && list.back().end == h)
      ++list.back().end;
    else
      list.push_back({h, h + 1});
  }
  SmallVector<HeadGroup> groups;
  for (auto &[pattern, list] : runs)
    groups.push_back({pattern, std::move(list)});
  auto most =
      llvm::max_element(groups, [](const HeadGroup &a, const HeadGroup &b) { return a.runs.size() < b.runs.size(); });
  std::rotate(most, most + 1, groups.end());
  return groups;
}

int64_t weft::attn::headCount(Attribute pattern) {
  int64_t count = 0;
  pattern.walk([&](PerHeadAttr heads) { count = std::max<int64_t>(count, heads.getPatterns().size()); });
  return count;
}

Attribute weft::attn::patternOfHead(Attribute pattern, int64_t head) {
  AttrTypeReplacer replacer;
  // A list may hold further lists, resolved by the same head. The replacer does not visit what it has replaced.
  replacer.addReplacement([&](PerHeadAttr heads) -> std::pair<Attribute, WalkResult> {
    ArrayRef<Attribute> list = heads.getPatterns();
    return {patternOfHead(list[std::min<int64_t>(head, list.size() - 1)], head), WalkResult::skip()};
  });
  return replacer.replace(pattern);
}

std::vector<bool> weft::attn::commonKinds(const std::vector<bool> &a, const std::vector<bool> &b) {
  // length[i][j]: of the shortest list for a from i on and b from j on.
  std::vector<std::vector<size_t>> length(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = a.size() + 1; i-- > 0;)
    for (size_t j = b.size() + 1; j-- > 0;) {
      if (i == a.size() || j == b.size())
        length[i][j] = a.size() - i + b.size() - j;
      else
        length[i][j] = 1 + (a[i] == b[j] ? length[i + 1][j + 1] : std::min(length[i + 1][j], length[i][j + 1]));
    }
  std::vector<bool> kinds;
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    bool fromBoth = i < a.size() && j < b.size() && a[i] == b[j];
    bool fromA = fromBoth || j == b.size() || (i < a.size() && length[i + 1][j] <= length[i][j + 1]);
    kinds.push_back(fromA ? a[i] : b[j]);
    i += fromA;
    j += fromBoth || !fromA;
  }
  return kinds;
}

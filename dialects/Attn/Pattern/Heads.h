// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Patterns that differ from head to head (`#attn.per_head`).
#pragma once

#include "dialects/Attn/IR/AttnDialect.h"
#include <vector>

namespace weft::attn {

/// Heads begin .. end - 1.
struct HeadRun {
  int64_t begin, end;
};
/// The heads that share one pattern, in runs of neighbours.
struct HeadGroup {
  mlir::Attribute pattern;
  llvm::SmallVector<HeadRun, 2> runs;
};

/// The distinct patterns of a list with one for each head. The group with the most runs comes last: whoever chooses
/// among groups by the head asks for the others' runs and takes the last one otherwise.
llvm::SmallVector<HeadGroup> headGroups(llvm::ArrayRef<mlir::Attribute> patterns);

/// The number of heads that a pattern tells apart (the longest `per_head` in it), or 0.
int64_t headCount(mlir::Attribute pattern);

/// The pattern of one head: every `per_head` replaced by its entry (its last one where the list is shorter).
mlir::Attribute patternOfHead(mlir::Attribute pattern, int64_t head);

/// The shortest list of kinds of which both lists are parts, in order.
std::vector<bool> commonKinds(const std::vector<bool> &a, const std::vector<bool> &b);

/// Whether head `h` is in one of the runs.
template <class A> typename A::Bool isInRuns(A &a, llvm::ArrayRef<HeadRun> runs, typename A::Int h) {
  auto result = a.truth(false);
  for (HeadRun run : runs) {
    auto in = run.end - run.begin == 1 ? a.eq(h, a.constant(run.begin)) : a.lt(h, a.constant(run.end));
    if (run.end - run.begin > 1 && run.begin > 0)
      in = a.both(in, a.le(a.constant(run.begin), h));
    result = a.either(result, in);
  }
  return result;
}

} // namespace weft::attn

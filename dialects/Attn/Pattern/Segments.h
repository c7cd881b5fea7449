// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which blocks of keys a run of rows meets, and which of them wholly: exact, from the pattern's bands, over an
// arithmetic backend. What kernels walk; a block that is not in a segment is never touched, one in a full segment needs
// no mask. Under #attn.causal with N = M = 256, for rows 128 .. 191 and blocks of 64 keys:
//
//   blocks 0 .. 1    full       keys 0 .. 127, which every row attends to
//   block 2          partial    keys 128 .. 191, of which row n attends to those up to n
#pragma once

#include "dialects/Attn/Pattern/BlockRanges.h"
#include "dialects/Attn/Pattern/Heads.h"

namespace weft::attn {

/// A run of rows: raw queries begin .. end - 1 of head h, at least one of them, all below N; the lengths; and the
/// batch, for patterns with tables. A run without rows, begin >= N, may have any segments within M. Where `mayBeFull` is
/// there and false, what would be in full segments is in partial ones.
template <class A> struct RowBlock {
  typename A::Int begin, end, h, N, M;
  typename A::Int b = {};
  std::optional<typename A::Bool> mayBeFull = {};
};

/// Blocks begin .. end - 1 of keys; none where end <= begin.
template <class A> struct Segment {
  typename A::Int begin, end;
  bool full;
  bool adjoins = false; ///< known to begin where the one before it ends, whatever is empty of them
};

/// The blocks of `blockN` keys that `rows` meet under the pattern: disjoint segments, in ascending order. A block is in
/// a full one iff every pair of it belongs and it lies wholly below M; in a partial one iff some pairs belong, but not
/// all or the block is ragged; in none iff no pair does. (But of a span, whose rows' keys may leave gaps, a block
/// between two rows' keys that no row has is in a partial one.) Nothing where the pattern has no such structure: lists
/// of blocks must be built from `contains` then. The columns' walk is that of transposePattern(pattern), with N and M
/// exchanged.
template <class A>
std::optional<std::vector<Segment<A>>> rowSegments(A &a, mlir::Attribute pattern, const RowBlock<A> &rows,
                                                   int64_t blockN);

/// Whether `rowSegments` has segments for the pattern, given what is known of the lengths; more knowledge never takes
/// them away.
bool hasSegments(mlir::Attribute pattern, const Lengths &lengths = {});

/// A pattern as a section, which a transposed one is too; null where it is none.
SectionAttr asSection(mlir::Attribute pattern);
/// A pattern as a span, which a transposed one is too; null where it is none.
SpanAttr asSpan(mlir::Attribute pattern);
/// Whether there is a span in the pattern.
bool hasSpan(mlir::Attribute pattern);

/// Segments of one kind walked as one: steps 0 .. count - 1, and the block of each step.
template <class A> class Walk {
public:
  using Int = typename A::Int;

  Walk(A &a, llvm::ArrayRef<Segment<A>> segments, bool full);

  Int count() const { return total; }
  /// The block of step `step`: one addition for the first segment, one and a selection for each further one.
  Int block(A &a, Int step) const;

private:
  struct Part {
    Int first;  ///< the step at which the part begins
    Int offset; ///< block less step
  };
  std::vector<Part> parts;
  Int total;
};

// ---- Implementation
// --------------------------------------------------------------------------------------------------

namespace patterns {

/// Segments from the blocks with some pair and those with some pair missing.
template <class A>
std::vector<Segment<A>> segmentsFrom(A &a, const Cover<A> &some, const Cover<A> &missing, const BlockRows<A> &rows,
                                     const std::optional<typename A::Bool> &mayBeFull) {
  std::vector<Segment<A>> segments;
  std::vector<Range<A>> touched = disjointRanges(a, some, rows.blocks);
  // Partial: what is touched from `cursor` (nothing: the start) to `end` (nothing: the last block).
  std::optional<typename A::Int> cursor;
  bool adjoin = false;
  auto addPartial = [&](std::optional<typename A::Int> end) {
    for (const Range<A> &range : touched) {
      auto from = cursor ? larger(a, range.begin, *cursor) : range.begin;
      auto to = end ? smaller(a, range.end, *end) : range.end;
      if (!isKnownEmpty(a, from, to))
        segments.push_back({from, to, false, adjoin && !segments.empty()});
    }
  };
  std::vector<Range<A>> full = fullRanges(a, missing, rows);
  // What lies on both sides of the only full blocks of an unbroken run.
  adjoin = touched.size() == 1 && full.size() == 1;
  for (Range<A> range : full) {
    if (isKnownEmpty(a, range.begin, range.end))
      continue;
    if (mayBeFull)
      range.end = a.select(*mayBeFull, range.end, range.begin);
    auto begin = a.isConstant(range.begin);
    if (!begin || *begin != 0)
      addPartial(range.begin);
    segments.push_back({range.begin, range.end, true, adjoin && !segments.empty()});
    cursor = begin && *begin == 0 ? range.end : a.max(range.begin, range.end);
  }
  addPartial(std::nullopt);
  return segments;
}

template <class A> SectionPlace<A> placeOf(A &a, SectionAttr section) {
  return {a.number(section.getRows(), 0), a.number(section.getRows(), 1), a.number(section.getKeys(), 0),
          a.number(section.getKeys(), 1)};
}

/// Rows' bounds never fall: their keys lie from the first row's lower bound to the last row's upper, and every row has
/// those from the last row's lower to the first row's upper.
template <class A>
std::vector<Segment<A>> segmentsOfSpan(A &a, SpanAttr span, const RowBlock<A> &rows, int64_t blockN) {
  auto zero = a.constant(0), one = a.constant(1), size = a.constant(blockN);
  auto last = a.sub(rows.end, one);
  auto exists = a.lt(rows.begin, rows.N);
  auto bound = [&](int64_t table, typename A::Int row) {
    return a.operand(table, {rows.b, a.tableHead(table, rows.h), row}, exists);
  };
  auto least = [&](typename A::Int row) { return a.max(bound(span.getLower(), row), zero); };
  auto most = [&](typename A::Int row) { return a.min(bound(span.getUpper(), row), rows.M); };
  auto floorOf = [&](typename A::Int key) { return a.floorDiv(key, size); };
  auto ceilOf = [&](typename A::Int key) { return a.floorDiv(a.add(key, a.constant(blockN - 1)), size); };
  auto from = least(rows.begin), to = most(last);
  auto begin = floorOf(from), end = a.select(a.lt(from, to), ceilOf(to), begin);
  auto fullBegin = a.min(a.max(ceilOf(least(last)), begin), end);
  auto fullEnd = a.max(a.min(floorOf(most(rows.begin)), end), fullBegin);
  if (rows.mayBeFull)
    fullEnd = a.select(*rows.mayBeFull, fullEnd, fullBegin);
  return {{begin, fullBegin, false}, {fullBegin, fullEnd, true, true}, {fullEnd, end, false, true}};
}

template <class A>
std::optional<std::vector<Segment<A>>> segmentsOfHead(A &a, mlir::Attribute pattern, const RowBlock<A> &run,
                                                      int64_t blockN) {
  if (auto span = asSpan(pattern))
    return segmentsOfSpan(a, span, run, blockN);
  std::optional<SectionPlace<A>> place;
  if (SectionAttr section = asSection(pattern)) {
    place = placeOf(a, section);
    pattern = section.getPattern();
  }
  BlockRows<A> rows(a, run.begin, run.end, run.N, run.M, blockN, place);
  auto some = bandsOf(pattern, false, rows.known), missing = bandsOf(pattern, true, rows.known);
  if (!some || !missing)
    return std::nullopt;
  return segmentsFrom(a, coverOf<A>(a, *some, rows, Sought::Some), coverOf<A>(a, *missing, rows, Sought::Missing), rows,
                      run.mayBeFull);
}

/// Segments of several groups of heads as one list, its bounds chosen by the head.
template <class A>
std::vector<Segment<A>> chosenByHead(A &a, llvm::ArrayRef<HeadGroup> groups,
                                     const std::vector<std::vector<Segment<A>>> &lists, typename A::Int h) {
  std::vector<bool> kinds;
  for (const auto &list : lists) {
    std::vector<bool> own;
    for (const Segment<A> &segment : list)
      own.push_back(segment.full);
    kinds = commonKinds(kinds, own);
  }
  std::vector<Segment<A>> merged;
  std::vector<size_t> next(lists.size(), 0);
  std::vector<typename A::Bool> isGroup;
  for (size_t i = 0; i + 1 < groups.size(); ++i)
    isGroup.push_back(isInRuns(a, groups[i].runs, h));
  for (bool full : kinds) {
    auto take = [&](size_t i) -> Segment<A> {
      if (next[i] < lists[i].size() && lists[i][next[i]].full == full)
        return lists[i][next[i]++];
      return {a.constant(0), a.constant(0), full, false};
    };
    Segment<A> chosen = take(lists.size() - 1);
    chosen.adjoins = false;
    for (size_t i = 0; i + 1 < lists.size(); ++i) {
      Segment<A> own = take(i);
      chosen.begin = a.select(isGroup[i], own.begin, chosen.begin);
      chosen.end = a.select(isGroup[i], own.end, chosen.end);
    }
    merged.push_back(chosen);
  }
  return merged;
}

} // namespace patterns

template <class A>
std::optional<std::vector<Segment<A>>> rowSegments(A &a, mlir::Attribute pattern, const RowBlock<A> &rows,
                                                   int64_t blockN) {
  int64_t heads = headCount(pattern);
  if (heads == 0)
    return patterns::segmentsOfHead(a, pattern, rows, blockN);
  llvm::SmallVector<mlir::Attribute> patterns;
  for (int64_t head = 0; head < heads; ++head)
    patterns.push_back(patternOfHead(pattern, head));
  llvm::SmallVector<HeadGroup> groups = headGroups(patterns);
  std::vector<std::vector<Segment<A>>> lists;
  for (const HeadGroup &group : groups) {
    auto own = patterns::segmentsOfHead(a, group.pattern, rows, blockN);
    if (!own)
      return std::nullopt;
    lists.push_back(std::move(*own));
  }
  return lists.size() == 1 ? std::move(lists.front()) : patterns::chosenByHead<A>(a, groups, lists, rows.h);
}

template <class A> Walk<A>::Walk(A &a, llvm::ArrayRef<Segment<A>> segments, bool full) : total(a.constant(0)) {
  for (const Segment<A> &segment : segments) {
    if (segment.full != full)
      continue;
    parts.push_back({total, a.sub(segment.begin, total)});
    total = a.add(total, a.max(a.sub(segment.end, segment.begin), a.constant(0)));
  }
}

template <class A> typename A::Int Walk<A>::block(A &a, Int step) const {
  if (parts.empty())
    return step;
  Int offset = parts.front().offset;
  for (const Part &part : llvm::ArrayRef(parts).drop_front())
    offset = a.select(a.le(part.first, step), part.offset, offset);
  return a.add(step, offset);
}

} // namespace weft::attn

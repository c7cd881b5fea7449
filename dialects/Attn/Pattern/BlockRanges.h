// Part of Weft. SPDX-License-Identifier: Apache-2.0
// From bands to ranges of blocks, for one run of rows, over an arithmetic backend. Details of Segments.h.
#pragma once

#include "dialects/Attn/Pattern/Bands.h"
#include <algorithm>
#include <optional>
#include <vector>

namespace weft::attn::patterns {

/// A section of longer sequences, whose bands are meant: where its rows and keys begin, and the longer ones' lengths.
template <class A> struct SectionPlace {
  typename A::Int firstRow, N, firstKey, M;
};

/// A run of rows in the terms of bands.
template <class A> struct BlockRows {
  using Int = typename A::Int;

  BlockRows(A &a, Int begin, Int end, Int N, Int M, int64_t blockN, std::optional<SectionPlace<A>> section = {})
      : M(M), difference(section ? a.sub(section->M, section->N) : a.sub(M, N)), blockN(blockN) {
    first = a.add(begin, difference);
    last = a.sub(a.add(end, difference), a.constant(1));
    blocks = a.floorDiv(a.add(M, a.constant(blockN - 1)), a.constant(blockN));
    whole = a.floorDiv(M, a.constant(blockN));
    if (!section) {
      known = {a.isConstant(N), a.isConstant(M), a.isConstant(difference)};
      return;
    }
    first = a.add(first, section->firstRow);
    last = a.add(last, section->firstRow);
    firstKey = section->firstKey;
    known.difference = a.isConstant(difference);
  }

  /// A key of the sequence that the bands are of, in this one; outside of it too.
  Int here(A &a, Int key) const { return firstKey ? a.sub(key, *firstKey) : key; }
  bool isSection() const { return firstKey.has_value(); }

  Int M, difference;           ///< and M - N of the sequences that the bands are of
  Int first, last;             ///< the first and last row's positions
  std::optional<Int> firstKey; ///< of a section
  Int blocks, whole;           ///< how many blocks there are, and how many without a ragged one
  Lengths known;
  int64_t blockN;
};

/// Blocks begin .. end - 1, none where end <= begin.
template <class A> struct Range {
  typename A::Int begin, end;
};

/// A union of ranges of blocks: 0 .. left - 1, the middle ones, and right .. to the last block.
template <class A> struct Cover {
  bool all = false;
  std::optional<typename A::Int> left, right;
  std::vector<Range<A>> middle; ///< begin <= end in each
  bool rightBelowWhole = true;  ///< `right` is known to be at most the number of whole blocks
};

/// What a cover is of: the blocks with some pair of the bands, or, for bands of pairs that are missing from a pattern,
/// those below the ragged one with some pair missing (of the ragged one it may say anything).
enum class Sought { Some, Missing };

template <class A> typename A::Int larger(A &a, typename A::Int x, typename A::Int y) {
  auto known = a.isConstant(x);
  return known && *known == 0 ? y : a.max(x, y); // blocks are never negative here
}
template <class A> typename A::Int smaller(A &a, typename A::Int x, typename A::Int y) { return a.min(x, y); }
template <class A> bool isKnownEmpty(A &a, typename A::Int begin, typename A::Int end) {
  auto from = a.isConstant(begin), to = a.isConstant(end);
  return to && (*to <= 0 || (from && *to <= *from));
}

template <class A> typename A::Int valueOf(A &a, Linear value, const BlockRows<A> &rows) {
  auto constant = a.constant(value.constant);
  if (value.difference == 0)
    return constant;
  auto part = value.difference == 1 ? rows.difference : a.mul(rows.difference, a.constant(value.difference));
  return a.add(part, constant);
}
template <class A> typename A::Int valueOf(A &a, const Staircase &stairs, typename A::Int p, const BlockRows<A> &rows) {
  auto x = a.add(p, valueOf(a, stairs.before, rows));
  if (stairs.step > 1)
    x = a.mul(a.floorDiv(x, a.constant(stairs.step)), a.constant(stairs.step));
  return a.add(x, valueOf(a, stairs.after, rows));
}

/// Whether a staircase is known to give no negative key at any position.
template <class A> bool isNonNegative(const Staircase &bound, const BlockRows<A> &rows) {
  return !rows.isSection() && rows.known.difference && *rows.known.difference + bound.offset() - (bound.step - 1) >= 0;
}

/// Whether a bound is the edge of a block.
inline bool isAligned(Linear bound, int64_t blockN) { return bound.difference == 0 && bound.constant % blockN == 0; }

/// Whether from < to must be asked for before the bounds may be rounded to blocks: else a range without any key could
/// come out as one block.
template <class A> bool needsGuard(const Band &band, Sought sought, const BlockRows<A> &rows) {
  if (rows.isSection())
    return true;
  const int64_t blockN = rows.blockN;
  auto aligned = [&](Linear bound) { return isAligned(bound, blockN); };
  bool looseFrom = !llvm::all_of(band.keysFrom, aligned), looseTo = !llvm::all_of(band.keysTo, aligned);
  bool moving = !band.stairsFrom.empty(), movingTo = !band.stairsTo.empty();
  // The two staircases of a solid band never meet, and a range that ends at key 0 or below rounds to no block.
  if (looseFrom && (movingTo || looseTo))
    return true;
  if (moving && looseTo)
    return true;
  if (sought == Sought::Missing)
    return false;
  // Against the last key: p is at most M - 1.
  return looseFrom || llvm::any_of(band.stairsFrom, [](const Staircase &bound) { return bound.offset() > 0; });
}

/// A band's keys from .. to - 1 for a run of rows; where a bound is missing, the sequence's end is one.
template <class A> struct KeyBounds {
  std::optional<typename A::Int> from, to;
  bool fromZero = false; ///< `from` is known to be no less than 0
  bool belowM = false;   ///< `to` is known to be at most M
};

/// Bounds for positions first .. last, as the band has them: they may lie outside of the sequence.
template <class A>
KeyBounds<A> keyBounds(A &a, const Band &band, typename A::Int first, typename A::Int last, const BlockRows<A> &rows) {
  using Int = typename A::Int;
  KeyBounds<A> keys;
  auto raise = [&](Int bound) { keys.from = keys.from ? a.max(*keys.from, bound) : bound; };
  auto lower = [&](Int bound) { keys.to = keys.to ? a.min(*keys.to, bound) : bound; };
  for (Linear bound : band.keysFrom) {
    raise(rows.here(a, valueOf(a, bound, rows)));
    keys.fromZero |= !rows.isSection() && bound.difference == 0 && bound.constant >= 0;
  }
  for (const Staircase &bound : band.stairsFrom) {
    raise(rows.here(a, valueOf(a, bound, first, rows)));
    keys.fromZero |= isNonNegative(bound, rows);
  }
  for (Linear bound : band.keysTo) {
    lower(rows.here(a, valueOf(a, bound, rows)));
    keys.belowM |= bound.difference == 0 && rows.known.M && bound.constant <= *rows.known.M;
  }
  for (const Staircase &bound : band.stairsTo) {
    lower(rows.here(a, valueOf(a, bound, last, rows)));
    keys.belowM |= !rows.isSection() && bound.offset() <= 1;
  }
  return keys;
}

/// Moves bounds into 0 .. M, where they are not known to lie there.
template <class A> void clampToSequence(A &a, KeyBounds<A> &keys, const Band &band, const BlockRows<A> &rows) {
  if (keys.from && !keys.fromZero)
    keys.from = a.max(*keys.from, a.constant(0));
  if (!keys.to)
    return;
  const bool toZero = !rows.isSection() &&
                      llvm::all_of(band.stairsTo, [&](const Staircase &bound) { return isNonNegative(bound, rows); }) &&
                      llvm::all_of(band.keysTo, [](Linear bound) { return bound.difference == 0; });
  if (!toZero)
    keys.to = a.max(*keys.to, a.constant(0));
  if (!keys.belowM)
    keys.to = a.min(*keys.to, rows.M);
}

/// Adds the blocks of keys from .. to - 1 to the cover, where `met`, which may be missing, holds.
template <class A>
void addKeys(A &a, Cover<A> &cover, const KeyBounds<A> &keys, std::optional<typename A::Bool> met, const Band &band,
             const BlockRows<A> &rows) {
  using Int = typename A::Int;
  const Int size = a.constant(rows.blockN);
  auto floorOf = [&](Int key) { return a.floorDiv(key, size); };
  auto ceilOf = [&](Int key) { return a.floorDiv(a.add(key, a.constant(rows.blockN - 1)), size); };
  auto addLeft = [&](Int end) {
    end = met ? a.select(*met, end, a.constant(0)) : end;
    cover.left = cover.left ? a.max(*cover.left, end) : end;
  };
  if (!keys.from && !keys.to) {
    if (met)
      addLeft(rows.blocks);
    else
      cover.all = true;
  } else if (!keys.from) {
    addLeft(ceilOf(*keys.to));
  } else if (!keys.to) {
    Int begin = floorOf(*keys.from);
    if (met)
      begin = a.select(*met, begin, rows.blocks);
    cover.right = cover.right ? a.min(*cover.right, begin) : begin;
    bool atMostM = !rows.isSection() &&
                   llvm::all_of(band.stairsFrom, [](const Staircase &bound) { return bound.offset() <= 1; }) &&
                   band.keysFrom.empty() && !met;
    cover.rightBelowWhole &= atMostM;
  } else {
    Int begin = floorOf(*keys.from), end = a.max(ceilOf(*keys.to), begin);
    cover.middle.push_back({begin, met ? a.select(*met, end, begin) : end});
  }
}

/// Adds to the cover the blocks that the rows meet in a band.
template <class A> void addBand(A &a, Cover<A> &cover, const Band &band, const BlockRows<A> &rows, Sought sought) {
  typename A::Int first = rows.first, last = rows.last;
  for (Linear bound : band.rowsFrom)
    first = a.max(first, valueOf(a, bound, rows));
  for (Linear bound : band.rowsTo)
    last = a.min(last, a.sub(valueOf(a, bound, rows), a.constant(1)));
  std::optional<typename A::Bool> met;
  if (!band.rowsFrom.empty() || !band.rowsTo.empty())
    met = a.le(first, last);
  KeyBounds<A> keys = keyBounds(a, band, first, last, rows);
  clampToSequence(a, keys, band, rows);
  if (keys.from && needsGuard(band, sought, rows)) {
    auto some = a.lt(*keys.from, keys.to ? *keys.to : rows.M);
    met = met ? a.both(*met, some) : some;
  }
  addKeys(a, cover, keys, met, band, rows);
}

template <class A> Cover<A> coverOf(A &a, llvm::ArrayRef<Band> bands, const BlockRows<A> &rows, Sought sought) {
  Cover<A> cover;
  for (const Band &band : bands)
    addBand(a, cover, band, rows, sought);
  // Sorted begins with sorted ends cover what the ranges did: as many begin and end at each block as before.
  for (size_t i = 0; i < cover.middle.size(); ++i)
    for (size_t j = i + 1; j < cover.middle.size(); ++j) {
      Range<A> x = cover.middle[i], y = cover.middle[j];
      cover.middle[i] = {a.min(x.begin, y.begin), a.min(x.end, y.end)};
      cover.middle[j] = {a.max(x.begin, y.begin), a.max(x.end, y.end)};
    }
  // The right one's end is the last of all, once ranges without blocks do not lie beyond it.
  if (cover.right)
    for (Range<A> &range : cover.middle) {
      auto begin = a.min(range.begin, rows.blocks);
      range = {a.min(begin, *cover.right), a.min(range.end, rows.blocks)};
      cover.right = a.max(begin, *cover.right);
      cover.rightBelowWhole = false;
    }
  return cover;
}

/// The cover as ascending ranges that do not meet.
template <class A> std::vector<Range<A>> disjointRanges(A &a, const Cover<A> &cover, typename A::Int blocks) {
  if (cover.all)
    return {{a.constant(0), blocks}};
  std::vector<Range<A>> ranges;
  std::optional<typename A::Int> past; // the end of what came before
  if (cover.left) {
    ranges.push_back({a.constant(0), *cover.left});
    past = cover.left;
  }
  for (const Range<A> &range : cover.middle) {
    auto begin = past ? a.max(range.begin, *past) : range.begin;
    ranges.push_back({begin, range.end});
    past = past ? a.max(range.end, *past) : range.end;
  }
  if (cover.right)
    ranges.push_back({past ? a.max(*cover.right, *past) : *cover.right, blocks});
  return ranges;
}

/// The whole blocks of which nothing is missing, as ascending ranges that do not meet.
template <class A> std::vector<Range<A>> fullRanges(A &a, const Cover<A> &missing, const BlockRows<A> &rows) {
  if (missing.all)
    return {};
  std::vector<Range<A>> ranges;
  auto cursor = missing.left ? *missing.left : a.constant(0);
  for (const Range<A> &range : missing.middle) {
    ranges.push_back({cursor, a.min(range.begin, rows.whole)});
    cursor = larger(a, cursor, range.end);
  }
  auto end = rows.whole;
  if (missing.right)
    end = missing.rightBelowWhole ? *missing.right : a.min(*missing.right, rows.whole);
  ranges.push_back({cursor, end});
  return ranges;
}

} // namespace weft::attn::patterns

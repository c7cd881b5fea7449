// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Patterns as unions of bands: sets of pairs between two bounds that rise with the query's position. What block ranges
// are computed from. Of a query at position p and a key m:
//
//   #attn.window<left = 2, right = 0>    one band:   stairsFrom p - 2, stairsTo p + 1           p - 2 <= m <= p
//   what is not in it                    two bands:  stairsTo p - 2; stairsFrom p + 1           m < p - 2 or p < m
#pragma once

#include "dialects/Attn/IR/AttnDialect.h"
#include <optional>
#include <vector>

namespace weft::attn {

/// What is known of the lengths while code is made. `difference` is M - N, which may be known where neither is.
struct Lengths {
  std::optional<int64_t> N, M, difference;

  /// All that N and M say.
  static Lengths of(std::optional<int64_t> N, std::optional<int64_t> M) {
    return {N, M, N && M ? std::optional(*M - *N) : std::nullopt};
  }
};

/// constant + difference · (M - N)
struct Linear {
  int64_t constant = 0, difference = 0;

  bool operator==(const Linear &other) const { return constant == other.constant && difference == other.difference; }
};

/// step · floor((p + before) / step) + after, of the query's position p. Where step is 1: p + after, and before is 0.
/// It lies between p + offset() - (step - 1) and p + offset().
struct Staircase {
  int64_t step;
  Linear before, after;

  /// The constant part of the whole bound: its parts in M - N cancel.
  int64_t offset() const { return before.constant + after.constant; }
  bool sameSteps(const Staircase &other) const { return step == other.step && before == other.before; }
};

/// The pairs with rowsFrom <= p < rowsTo, keysFrom <= m < keysTo, stairsFrom(p) <= m < stairsTo(p), for every entry of
/// each list; p is the query's position, m the key. No list means no bound; keys below 0 and from M on are never meant.
///
/// A band is *solid* when the keys of any run of rows, united, are those between the lower bounds at its first row and
/// the upper bounds at its last: then the block range of a run of rows is exact.
struct Band {
  llvm::SmallVector<Linear, 2> rowsFrom, rowsTo, keysFrom, keysTo;
  llvm::SmallVector<Staircase, 2> stairsFrom, stairsTo;

  bool isSolid() const;
};

/// The pattern, or what is not in it, as a union of bands (they may overlap), none of which is empty for all rows.
/// Nothing where it has no such form or too many bands, or a band is not solid, and for `per_head` (see patternOfHead).
std::optional<std::vector<Band>> bandsOf(mlir::Attribute pattern, bool negated, const Lengths &lengths);

namespace patterns {

/// The pairs in both; nothing where there are none, whatever the row. Bounds that others imply are left out.
std::optional<Band> intersect(const Band &a, const Band &b, const Lengths &lengths);
/// Whether a's bounds imply b's.
bool isWithin(const Band &a, const Band &b);

} // namespace patterns
} // namespace weft::attn

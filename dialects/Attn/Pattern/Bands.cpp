// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The algebra of bands: intersection, implication, what is empty.
#include "dialects/Attn/Pattern/Bands.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;
using namespace weft::attn;

namespace {

/// Everything that bounds one side from below, or from above (`upper`): of two bounds, does `a` imply `b`?
struct Implies {
  bool upper;

  bool operator()(const Linear &a, const Linear &b) const {
    return a.difference == b.difference && (upper ? a.constant <= b.constant : a.constant >= b.constant);
  }
  bool operator()(const Staircase &a, const Staircase &b) const {
    if (a.sameSteps(b) && a.after.difference == b.after.difference)
      return upper ? a.after.constant <= b.after.constant : a.after.constant >= b.after.constant;
    // The nearest that the two come to each other.
    return upper ? a.offset() <= b.offset() - (b.step - 1) : a.offset() - (a.step - 1) >= b.offset();
  }
};

/// Adds a bound unless one there implies it, and removes those that it implies.
template <typename Bound> void tighten(SmallVectorImpl<Bound> &list, Bound bound, bool upper) {
  Implies implies{upper};
  if (any_of(list, [&](const Bound &other) { return implies(other, bound); }))
    return;
  erase_if(list, [&](const Bound &other) { return implies(bound, other); });
  list.push_back(bound);
}

/// With M - N known there is one kind of constant only.
Linear folded(Linear value, const Lengths &lengths) {
  if (!lengths.difference)
    return value;
  return {value.constant + value.difference * *lengths.difference, 0};
}

/// How a bound cuts the pairs that there are.
enum class Cut { None, Some, All };

/// A lower bound on something known to lie in least .. most (where known).
Cut cutFrom(int64_t bound, std::optional<int64_t> least, std::optional<int64_t> most) {
  if (least && bound <= *least)
    return Cut::None;
  return most && bound > *most ? Cut::All : Cut::Some;
}
Cut negated(Cut cut) { return cut == Cut::None ? Cut::All : cut == Cut::All ? Cut::None : Cut::Some; }

std::optional<int64_t> plus(std::optional<int64_t> x, int64_t y) { return x ? std::optional(*x + y) : std::nullopt; }

Cut cutRows(Linear from, const Lengths &lengths) {
  if (from.difference == 1) // p >= (M - N) + constant: n >= constant
    return cutFrom(from.constant, 0, plus(lengths.N, -1));
  return from.difference ? Cut::Some : cutFrom(from.constant, lengths.difference, plus(lengths.M, -1));
}
Cut cutKeys(Linear from, const Lengths &lengths) {
  return from.difference ? Cut::Some : cutFrom(from.constant, 0, plus(lengths.M, -1));
}
/// m >= stairs(p), where p - m lies in 1 - N .. M - 1, and p <= M - 1, p >= M - N.
Cut cutStairs(const Staircase &from, const Lengths &lengths) {
  if (lengths.M && from.offset() <= 1 - *lengths.M)
    return Cut::None;
  if (lengths.N && lengths.M && from.before.difference == 0) {
    // The bound never falls from one row to the next: the first and the last row's decide.
    auto at = [&](int64_t p) {
      return from.step * divideFloorSigned(p + from.before.constant, from.step) + from.after.constant;
    };
    if (at(*lengths.M - 1) <= 0)
      return Cut::None;
    if (at(*lengths.M - *lengths.N) >= *lengths.M)
      return Cut::All;
  }
  // Never, where p + offset - (step - 1) > m always.
  return lengths.N && from.offset() - (from.step - 1) >= *lengths.N ? Cut::All : Cut::Some;
}

/// Adds every bound of `from` that cuts something; false where one leaves nothing.
template <typename Bound, typename CutOf>
bool addBounds(SmallVectorImpl<Bound> &to, ArrayRef<Bound> from, bool upper, CutOf cutOf) {
  for (const Bound &bound : from) {
    Cut cut = upper ? negated(cutOf(bound)) : cutOf(bound);
    if (cut == Cut::All)
      return false;
    if (cut == Cut::Some)
      tighten(to, bound, upper);
  }
  return true;
}

/// Whether no number lies from a bound of `from` to one of `to`.
bool disagree(ArrayRef<Linear> from, ArrayRef<Linear> to) {
  for (const Linear &a : from)
    for (const Linear &b : to)
      if (a.difference == b.difference && a.constant >= b.constant)
        return true;
  return false;
}
bool disagree(ArrayRef<Staircase> from, ArrayRef<Staircase> to) {
  for (const Staircase &a : from)
    for (const Staircase &b : to) {
      if (a.sameSteps(b) && a.after.difference == b.after.difference && a.after.constant >= b.after.constant)
        return true;
      if (a.offset() - (a.step - 1) >= b.offset())
        return true;
    }
  return false;
}

template <typename Bound> bool implied(ArrayRef<Bound> a, ArrayRef<Bound> b, bool upper) {
  return all_of(b, [&](const Bound &bound) {
    return any_of(a, [&](const Bound &other) { return Implies{upper}(other, bound); });
  });
}

} // namespace

bool Band::isSolid() const {
  // Rows whose lower bound at the next row is at most the upper bound at this one leave no gap, and none is empty;
  // every bound that does not move with the row only cuts a rectangle out of their union.
  for (const Staircase &from : stairsFrom)
    for (const Staircase &to : stairsTo) {
      bool together = from.sameSteps(to) && from.after.difference == to.after.difference;
      if (together ? from.after.constant + from.step > to.after.constant : from.offset() + to.step > to.offset())
        return false;
    }
  return true;
}

bool weft::attn::patterns::isWithin(const Band &a, const Band &b) {
  return implied<Linear>(a.rowsFrom, b.rowsFrom, false) && implied<Linear>(a.rowsTo, b.rowsTo, true) &&
         implied<Linear>(a.keysFrom, b.keysFrom, false) && implied<Linear>(a.keysTo, b.keysTo, true) &&
         implied<Staircase>(a.stairsFrom, b.stairsFrom, false) && implied<Staircase>(a.stairsTo, b.stairsTo, true);
}

std::optional<Band> weft::attn::patterns::intersect(const Band &a, const Band &b, const Lengths &lengths) {
  Band result;
  for (const Band *band : {&a, &b}) {
    auto rows = [&](Linear bound) { return cutRows(bound, lengths); };
    auto keys = [&](Linear bound) { return cutKeys(bound, lengths); };
    auto stairs = [&](const Staircase &bound) { return cutStairs(bound, lengths); };
    auto fold = [&](ArrayRef<Linear> list) {
      return to_vector<2>(map_range(list, [&](Linear bound) { return folded(bound, lengths); }));
    };
    auto foldStairs = [&](ArrayRef<Staircase> list) {
      return to_vector<2>(map_range(list, [&](Staircase bound) {
        return Staircase{bound.step, folded(bound.before, lengths), folded(bound.after, lengths)};
      }));
    };
    if (!addBounds<Linear>(result.rowsFrom, fold(band->rowsFrom), false, rows) ||
        !addBounds<Linear>(result.rowsTo, fold(band->rowsTo), true, rows) ||
        !addBounds<Linear>(result.keysFrom, fold(band->keysFrom), false, keys) ||
        !addBounds<Linear>(result.keysTo, fold(band->keysTo), true, keys) ||
        !addBounds<Staircase>(result.stairsFrom, foldStairs(band->stairsFrom), false, stairs) ||
        !addBounds<Staircase>(result.stairsTo, foldStairs(band->stairsTo), true, stairs))
      return std::nullopt;
  }
  if (disagree(result.rowsFrom, result.rowsTo) || disagree(result.keysFrom, result.keysTo) ||
      disagree(result.stairsFrom, result.stairsTo))
    return std::nullopt;
  return result;
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// From a pattern to its bands: every leaf is a product of clauses of half-planes; negation, shifts and transposes move
// into the half-planes, and the rest is multiplied out.
#include "dialects/Attn/Pattern/Bands.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft::attn;

namespace {

/// More bands than this are not worth loops of their own.
constexpr size_t mostBands = 24;

/// What an inner pattern takes for query and key, in terms of the outermost pair (n, m): (n + dn, m + dm), or, where
/// swapped, (m + dn, n + dm) with the lengths swapped too.
struct View {
  bool swapped = false;
  int64_t dn = 0, dm = 0;

  View shifted(int64_t by) const { return {swapped, dn, dm - by}; }
  View transposed() const { return {!swapped, dm, dn}; }
};

/// What lies at or above a boundary: m >= p + at, or m >= size · floor(p / size) + at, or m >= at, or p >= at. `below`
/// is the complement.
struct HalfPlane {
  enum Kind { Diagonal, Stairs, Keys, Rows } kind;
  int64_t at;
  int64_t size = 1;
  bool below = false;
};

/// One of these holds.
using Clause = SmallVector<HalfPlane, 2>;
using Bands = std::vector<Band>;

void add(Band &band, View view, HalfPlane plane) {
  int64_t dn = view.dn, dm = view.dm, at = plane.at;
  auto stairs = [&](Staircase staircase, bool upper) {
    (upper ? band.stairsTo : band.stairsFrom).push_back(staircase);
  };
  switch (plane.kind) {
  case HalfPlane::Diagonal:
    // Swapped: p - (M - N) + dm >= m - (M - N) + dn + at.
    if (view.swapped)
      return stairs({1, {}, {dm - dn - at + 1, 0}}, !plane.below);
    return stairs({1, {}, {at + dn - dm, 0}}, plane.below);
  case HalfPlane::Stairs:
    // Swapped: floor((p - (M - N) + dm - at) / size) >= floor((m - (M - N) + dn) / size).
    if (view.swapped)
      return stairs({plane.size, {dm - at, -1}, {plane.size - dn, 1}}, !plane.below);
    return stairs({plane.size, {dn, 0}, {at - dm, 0}}, plane.below);
  case HalfPlane::Keys:
    if (view.swapped)
      (plane.below ? band.rowsTo : band.rowsFrom).push_back({at - dm, 1});
    else
      (plane.below ? band.keysTo : band.keysFrom).push_back({at - dm, 0});
    return;
  case HalfPlane::Rows:
    if (view.swapped)
      (plane.below ? band.keysTo : band.keysFrom).push_back({at - dn, 1});
    else
      (plane.below ? band.rowsTo : band.rowsFrom).push_back({at - dn, 0});
    return;
  }
}

HalfPlane diagonal(int64_t at, bool below) { return {HalfPlane::Diagonal, at, 1, below}; }
HalfPlane stairs(int64_t size, int64_t at, bool below) {
  return {size == 1 ? HalfPlane::Diagonal : HalfPlane::Stairs, at, size, below};
}
HalfPlane keys(int64_t at, bool below) { return {HalfPlane::Keys, at, 1, below}; }
HalfPlane rows(int64_t at, bool below) { return {HalfPlane::Rows, at, 1, below}; }

/// A pattern without parts as clauses that all hold; nothing where it is no such thing.
std::optional<SmallVector<Clause>> clausesOf(Attribute pattern) {
  using Clauses = std::optional<SmallVector<Clause>>;
  return llvm::TypeSwitch<Attribute, Clauses>(pattern)
      .Case([](FullAttr) { return SmallVector<Clause>{}; })
      .Case([](EmptyAttr) { return SmallVector<Clause>{Clause{}}; })
      .Case([](CausalAttr) { return SmallVector<Clause>{{diagonal(1, true)}}; })
      .Case([](WindowAttr window) {
        SmallVector<Clause> clauses;
        if (window.getLeft())
          clauses.push_back({diagonal(-*window.getLeft(), false)});
        if (window.getRight())
          clauses.push_back({diagonal(*window.getRight() + 1, true)});
        return clauses;
      })
      .Case([](BlockWindowAttr window) -> Clauses {
        if (!window.getGrid().empty())
          return std::nullopt;
        int64_t size = window.getWindow()[0];
        return SmallVector<Clause>{{stairs(size, 0, false)}, {stairs(size, size, true)}};
      })
      .Case([](PrefixAttr prefix) { return SmallVector<Clause>{{keys(prefix.getSize(), true)}}; })
      .Case([](GlobalTokensAttr tokens) {
        return SmallVector<Clause>{{rows(tokens.getSize(), true), keys(tokens.getSize(), true)}};
      })
      .Case([](NeighbourhoodAttr pattern) -> Clauses {
        if (pattern.getShape().size() != 1 || pattern.getDilation()[0] != 1)
          return std::nullopt;
        // From max(0, min(p - taps/2, last)), `taps` keys.
        int64_t length = pattern.getShape()[0], taps = pattern.getKernel()[0];
        return SmallVector<Clause>{{rows(0, false)},
                                   {rows(length, true)},
                                   {keys(0, false)},
                                   {keys(length, true)},
                                   {diagonal(-(taps / 2), false), keys(length - taps, false)},
                                   {keys(taps, true), diagonal(taps - taps / 2, true)}};
      })
      .Default([](Attribute) { return std::nullopt; });
}

class Expansion {
public:
  explicit Expansion(const Lengths &lengths) : lengths(lengths) {}

  /// The pattern as seen through `view`, or its complement.
  std::optional<Bands> operator()(Attribute pattern, View view, bool negated) const {
    using Result = std::optional<Bands>;
    return llvm::TypeSwitch<Attribute, Result>(pattern)
        .Case([&](AndAttr both) { return combined(both.getPatterns(), view, negated, !negated); })
        .Case([&](OrAttr either) { return combined(either.getPatterns(), view, negated, negated); })
        .Case([&](NotAttr inner) { return (*this)(inner.getPattern(), view, !negated); })
        .Case([&](ShiftAttr shift) { return (*this)(shift.getPattern(), view.shifted(shift.getBy()), negated); })
        .Case([&](TransposeAttr inner) { return (*this)(inner.getPattern(), view.transposed(), negated); })
        .Default([&](Attribute leaf) { return leafBands(leaf, view, negated); });
  }

private:
  /// The union or, where `all`, the intersection of patterns.
  std::optional<Bands> combined(ArrayRef<Attribute> patterns, View view, bool negated, bool all) const {
    Bands result;
    if (all)
      result.push_back({});
    for (Attribute pattern : patterns) {
      std::optional<Bands> part = (*this)(pattern, view, negated);
      if (!part)
        return std::nullopt;
      result = all ? product(result, *part) : united(std::move(result), *part);
      if (result.size() > mostBands)
        return std::nullopt;
    }
    return result;
  }

  std::optional<Bands> leafBands(Attribute leaf, View view, bool negated) const {
    std::optional<SmallVector<Clause>> clauses = clausesOf(leaf);
    if (!clauses)
      return std::nullopt;
    Bands result;
    if (!negated)
      result.push_back({});
    for (const Clause &clause : *clauses) {
      // Negated: none of the clause's half-planes, which is one band; a union over clauses.
      Bands choices;
      if (negated)
        choices.push_back({});
      for (HalfPlane plane : clause) {
        plane.below ^= negated;
        if (!negated)
          choices.push_back({});
        add(choices.back(), view, plane);
      }
      result = negated ? united(std::move(result), product({Band()}, choices)) : product(result, choices);
    }
    return result;
  }

  Bands product(ArrayRef<Band> a, ArrayRef<Band> b) const {
    Bands result;
    for (const Band &x : a)
      for (const Band &y : b)
        if (std::optional<Band> both = patterns::intersect(x, y, lengths))
          result = united(std::move(result), *both);
    return result;
  }

  /// Without bands that lie within others.
  Bands united(Bands list, ArrayRef<Band> more) const {
    for (const Band &band : more) {
      if (llvm::any_of(list, [&](const Band &other) { return patterns::isWithin(band, other); }))
        continue;
      llvm::erase_if(list, [&](const Band &other) { return patterns::isWithin(other, band); });
      list.push_back(band);
    }
    return list;
  }

  const Lengths &lengths;
};

} // namespace

std::optional<std::vector<Band>> weft::attn::bandsOf(Attribute pattern, bool negated, const Lengths &lengths) {
  std::optional<Bands> bands = Expansion(lengths)(pattern, {}, negated);
  if (!bands || !llvm::all_of(*bands, [](const Band &band) { return band.isSolid(); }))
    return std::nullopt;
  return bands;
}

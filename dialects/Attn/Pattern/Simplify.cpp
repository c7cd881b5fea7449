// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Simpler patterns of the same meaning: rules on the tree, and the normal form of parts that are one band.
#include "dialects/Attn/Pattern/Simplify.h"
#include "dialects/Attn/Pattern/Heads.h"
#include "dialects/Attn/Pattern/Transpose.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft::attn;

namespace {

/// What the patterns' numbers are at most (their verifiers say so).
constexpr int64_t largest = int64_t(1) << 30;
bool isSmall(int64_t number) { return -largest <= number && number <= largest; }

/// How many patterns a pattern consists of.
int64_t sizeOf(Attribute pattern) {
  int64_t size = 0;
  pattern.walk([&](Attribute part) { size += isPattern(part); });
  return size;
}

Attribute conjunction(MLIRContext *context, ArrayRef<Attribute> parts) {
  return parts.size() == 1 ? parts.front() : Attribute(AndAttr::get(context, parts));
}

/// A staircase pair as a pattern; null where there is none.
Attribute stairsPattern(MLIRContext *context, const Band &band) {
  const Staircase *from = band.stairsFrom.empty() ? nullptr : &band.stairsFrom.front();
  const Staircase *to = band.stairsTo.empty() ? nullptr : &band.stairsTo.front();
  auto isLine = [](const Staircase *bound) {
    return !bound || (bound->step == 1 && bound->after.difference == 0 && isSmall(bound->after.constant) &&
                      isSmall(bound->after.constant - 1) && isSmall(-bound->after.constant));
  };
  if (isLine(from) && isLine(to)) {
    if (!from && to->after.constant == 1)
      return CausalAttr::get(context);
    return WindowAttr::get(context, from ? std::optional(-from->after.constant) : std::nullopt,
                           to ? std::optional(to->after.constant - 1) : std::nullopt);
  }
  if (from && to && from->sameSteps(*to) && from->before == Linear() && from->after == Linear() &&
      to->after == Linear{to->step, 0})
    return BlockWindowAttr::get(context, {from->step}, {});
  return {};
}

/// A band as a conjunction of patterns; null where it is none.
Attribute patternOf(MLIRContext *context, const Band &band) {
  if (!band.rowsFrom.empty() || !band.rowsTo.empty() || band.keysFrom.size() > 1 || band.keysTo.size() > 1 ||
      band.stairsFrom.size() > 1 || band.stairsTo.size() > 1)
    return {};
  SmallVector<Attribute> parts;
  if (!band.stairsFrom.empty() || !band.stairsTo.empty()) {
    parts.push_back(stairsPattern(context, band));
    if (!parts.back())
      return {};
  }
  auto isPlain = [](Linear bound) { return bound.difference == 0 && bound.constant >= 0 && isSmall(bound.constant); };
  if (!llvm::all_of(band.keysFrom, isPlain) || !llvm::all_of(band.keysTo, isPlain))
    return {};
  if (!band.keysTo.empty())
    parts.push_back(PrefixAttr::get(context, band.keysTo.front().constant));
  if (!band.keysFrom.empty())
    parts.push_back(NotAttr::get(context, PrefixAttr::get(context, band.keysFrom.front().constant)));
  return parts.empty() ? Attribute(FullAttr::get(context)) : conjunction(context, parts);
}

class Simplifier {
public:
  /// `shifted`: the pattern is looked at beyond the sequence too, so that nothing follows from where keys and queries
  /// lie.
  explicit Simplifier(const Lengths &lengths, bool shifted = false) : lengths(lengths), isShifted(shifted) {}

  Attribute operator()(Attribute pattern) const {
    MLIRContext *context = pattern.getContext();
    Attribute result =
        llvm::TypeSwitch<Attribute, Attribute>(pattern)
            .Case([&](AndAttr part) { return combined(context, part.getPatterns(), true); })
            .Case([&](OrAttr part) { return combined(context, part.getPatterns(), false); })
            .Case([&](NotAttr part) { return negated((*this)(part.getPattern())); })
            .Case([&](ShiftAttr part) { return shifted(Simplifier(lengths, true)(part.getPattern()), part.getBy()); })
            .Case([&](TransposeAttr part) { return transposed(part); })
            .Case([&](SectionAttr part) { return section(part); })
            .Case([&](KeptAttr part) { return kept((*this)(part.getPattern()), (*this)(part.getWeights())); })
            .Case([&](PerHeadAttr part) -> Attribute {
              auto list = llvm::map_to_vector(part.getPatterns(), *this);
              return llvm::all_equal(list) ? list.front() : Attribute(PerHeadAttr::get(context, list));
            })
            .Default([&](Attribute leaf) { return leafForm(leaf); });
    return bandForm(result);
  }

private:
  /// Leaves that are special cases of others.
  Attribute leafForm(Attribute leaf) const {
    MLIRContext *context = leaf.getContext();
    if (auto strided = dyn_cast<StridedAttr>(leaf); strided && strided.getStep() == 1)
      return FullAttr::get(context);
    if (auto dilated = dyn_cast<DilatedAttr>(leaf); dilated && (dilated.getStep() == 1 || dilated.getWidth() == 0))
      return WindowAttr::get(context, dilated.getWidth(), dilated.getWidth());
    if (auto random = dyn_cast<RandomBlocksAttr>(leaf); random && random.getPerRow() == 0)
      return EmptyAttr::get(context);
    return leaf;
  }

  Attribute negated(Attribute inner) const {
    MLIRContext *context = inner.getContext();
    if (isa<FullAttr>(inner))
      return EmptyAttr::get(context);
    if (isa<EmptyAttr>(inner))
      return FullAttr::get(context);
    if (auto twice = dyn_cast<NotAttr>(inner))
      return twice.getPattern();
    return NotAttr::get(context, inner);
  }

  Attribute shifted(Attribute inner, int64_t by) const {
    if (auto twice = dyn_cast<ShiftAttr>(inner); twice && isSmall(by + twice.getBy())) {
      by += twice.getBy();
      inner = twice.getPattern();
    }
    if (by == 0)
      return (*this)(inner); // which lies under no shift now
    if (isa<FullAttr, EmptyAttr>(inner))
      return inner;
    if (auto strided = dyn_cast<StridedAttr>(inner); strided && by % strided.getStep() == 0)
      return (*this)(inner);
    return ShiftAttr::get(inner.getContext(), inner, by);
  }

  static Attribute kept(Attribute pattern, Attribute weights) {
    if (isa<EmptyAttr>(pattern) || isa<FullAttr>(weights))
      return pattern;
    return KeptAttr::get(pattern.getContext(), pattern, weights);
  }

  /// A section's part is simplified for lengths that nobody knows here.
  static Attribute section(SectionAttr outer) {
    Attribute inner = Simplifier(Lengths())(outer.getPattern());
    if (isa<FullAttr, EmptyAttr>(inner))
      return inner;
    return SectionAttr::get(outer.getContext(), inner, outer.getRows(), outer.getKeys());
  }

  /// A transpose's part is simplified for exchanged lengths.
  Attribute transposed(TransposeAttr outer) const {
    Lengths inner{lengths.M, lengths.N, lengths.difference ? std::optional(-*lengths.difference) : std::nullopt};
    Attribute part = Simplifier(inner, isShifted)(outer.getPattern()), result = transposePattern(part, lengths);
    // Where something moved inwards, it may simplify further; where nothing did, this is the end.
    return isa<TransposeAttr>(result) ? result : (*this)(result);
  }

  /// A conjunction (`all`) or a disjunction.
  Attribute combined(MLIRContext *context, ArrayRef<Attribute> patterns, bool all) const {
    llvm::SmallSetVector<Attribute, 4> parts;
    Attribute neutral = FullAttr::get(context), absorbing = EmptyAttr::get(context);
    if (!all)
      std::swap(neutral, absorbing);
    auto addPart = [&](Attribute part) {
      if (part != neutral)
        parts.insert(part);
    };
    for (Attribute pattern : patterns) {
      Attribute part = (*this)(pattern);
      ArrayRef<Attribute> nested = part;
      if (auto both = dyn_cast<AndAttr>(part); both && all)
        nested = both.getPatterns();
      if (auto either = dyn_cast<OrAttr>(part); either && !all)
        nested = either.getPatterns();
      llvm::for_each(nested, addPart);
    }
    for (Attribute part : parts)
      if (part == absorbing || parts.contains(negated(part)))
        return absorbing;
    if (parts.empty())
      return neutral;
    return joinBands(context, parts.takeVector(), all);
  }

  /// Joins those parts that have bands, where they come out as something smaller.
  Attribute joinBands(MLIRContext *context, ArrayRef<Attribute> parts, bool all) const {
    auto join = [&](ArrayRef<Attribute> list) -> Attribute {
      if (list.size() == 1)
        return list.front();
      return all ? Attribute(AndAttr::get(context, list)) : Attribute(OrAttr::get(context, list));
    };
    if (isShifted)
      return join(parts);
    SmallVector<Attribute> banded, others;
    for (Attribute part : parts)
      (headCount(part) == 0 && bandsOf(part, false, lengths) ? banded : others).push_back(part);
    if (banded.size() < 2)
      return join(parts);
    // In a conjunction the part that is implied by another goes, and likewise in a disjunction the part that implies
    // another.
    for (size_t i = 0; i < banded.size() && banded.size() > 1;) {
      SmallVector<Attribute> without(banded);
      without.erase(without.begin() + i);
      if (means(join(banded), join(without)))
        banded = std::move(without);
      else
        ++i;
    }
    Attribute joined = bandForm(join(banded));
    if (others.empty() || isa<FullAttr, EmptyAttr>(joined))
      return others.empty() ? joined : combined(context, withFirst(joined, others), all);
    // In the order in which they came, the joined part first.
    if (joined == join(banded) && banded.size() > 1)
      return join(llvm::filter_to_vector(
          parts, [&](Attribute part) { return llvm::is_contained(banded, part) || llvm::is_contained(others, part); }));
    return join(withFirst(joined, others));
  }

  static SmallVector<Attribute> withFirst(Attribute first, ArrayRef<Attribute> rest) {
    SmallVector<Attribute> list{first};
    llvm::append_range(list, rest);
    return list;
  }

  /// Whether two patterns are known to have the same pairs: what one has and the other has not is no band.
  bool means(Attribute a, Attribute b) const {
    MLIRContext *context = a.getContext();
    auto isEmpty = [&](Attribute x, Attribute y) {
      auto bands = bandsOf(AndAttr::get(context, {x, NotAttr::get(context, y)}), false, lengths);
      return bands && bands->empty();
    };
    return isEmpty(a, b) && isEmpty(b, a);
  }

  /// The normal form of a pattern of one band at most, where that is no larger.
  Attribute bandForm(Attribute pattern) const {
    if (isShifted || isa<FullAttr, EmptyAttr>(pattern) || headCount(pattern) != 0)
      return pattern;
    MLIRContext *context = pattern.getContext();
    auto bands = bandsOf(pattern, false, lengths);
    if (bands && bands->empty())
      return EmptyAttr::get(context);
    auto missing = bandsOf(pattern, true, lengths);
    if (missing && missing->empty())
      return FullAttr::get(context);
    if (!bands || bands->size() > 1)
      return pattern;
    Attribute form = patternOf(context, bands->front());
    return form && sizeOf(form) <= sizeOf(pattern) ? form : pattern;
  }

  Lengths lengths;
  bool isShifted;
};

} // namespace

Attribute weft::attn::simplifyPattern(Attribute pattern, const Lengths &lengths) {
  // What a rule yields may be what another begins with. No rule makes a pattern larger; the bound is against rules at
  // odds.
  for (int round = 0; round < 8; ++round) {
    Attribute next = Simplifier(lengths)(pattern);
    if (next == pattern)
      break;
    pattern = next;
  }
  return pattern;
}

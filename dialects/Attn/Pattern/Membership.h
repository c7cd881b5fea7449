// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which pairs belong to a pattern: one text for the host, which computes it, and for kernels, into which it is emitted.
#pragma once

#include "dialects/Attn/IR/AttnDialect.h"
#include "dialects/Attn/Pattern/Heads.h"
#include "dialects/Attn/Pattern/Philox.h"
#include "llvm/ADT/TypeSwitch.h"

namespace weft::attn {

/// A pair of a query and a key, and how many there are of each.
template <class A> struct Place {
  typename A::Int b, h; ///< batch, query head
  typename A::Int n, m; ///< raw indices of query and key
  typename A::Int N, M; ///< lengths
  /// Whether a shift has moved an index, so that it may lie outside of its sequence.
  bool isMovedN = false, isMovedM = false;

  /// The same pair as the transposed pattern sees it.
  Place transposed() const { return {b, h, m, n, M, N, isMovedM, isMovedN}; }
};

/// Whether the pair belongs to the pattern (mechanisms: Patterns). `A` is an arithmetic backend as HostArithmetic.h
/// describes.
///
/// Formulas hold for any integers, so `causal` shifted past the end is what its formula says; tables (document ids,
/// lists and bitmaps of blocks, random blocks) and grids hold nothing outside themselves.
template <class A> typename A::Bool contains(A &a, mlir::Attribute pattern, const Place<A> &at);

/// The query's position among the keys: p = n + (M - N).
template <class A> typename A::Int positionOf(A &a, const Place<A> &at) { return a.add(at.n, a.sub(at.M, at.N)); }

namespace patterns {

template <class A> typename A::Bool isWithin(A &a, typename A::Int x, typename A::Int end) {
  return a.both(a.le(a.constant(0), x), a.lt(x, end));
}
/// What is so of a pair, where its indices are of the sequence. Only shifts move them out of it: pairs past an end are
/// nobody's.
template <class A> typename A::Bool ifInside(A &a, const Place<A> &at, typename A::Bool holds) {
  if (at.isMovedN)
    holds = a.both(holds, isWithin(a, at.n, at.N));
  return at.isMovedM ? a.both(holds, isWithin(a, at.m, at.M)) : holds;
}
/// An index as one to read at: no less than 0.
template <class A> typename A::Int readable(A &a, typename A::Int index, bool isMoved) {
  return isMoved ? a.max(index, a.constant(0)) : index;
}
template <class A> typename A::Bool divides(A &a, int64_t step, typename A::Int x) {
  return a.eq(a.rem(x, a.constant(step)), a.constant(0));
}

template <class A> typename A::Bool holds(A &a, WindowAttr window, const Place<A> &at) {
  auto p = positionOf(a, at);
  auto result = a.truth(true);
  if (window.getLeft())
    result = a.le(a.sub(p, a.constant(*window.getLeft())), at.m);
  if (window.getRight())
    result = a.both(result, a.le(at.m, a.add(p, a.constant(*window.getRight()))));
  return result;
}

template <class A> typename A::Bool holds(A &a, BlockWindowAttr window, const Place<A> &at) {
  auto p = positionOf(a, at);
  auto same = [&](int64_t size, typename A::Int x, typename A::Int y) {
    return a.eq(a.floorDiv(x, a.constant(size)), a.floorDiv(y, a.constant(size)));
  };
  if (window.getGrid().empty())
    return same(window.getWindow()[0], p, at.m);
  auto width = a.constant(window.getGrid()[1]), tokens = a.constant(window.getGrid()[0] * window.getGrid()[1]);
  auto rows = same(window.getWindow()[0], a.floorDiv(p, width), a.floorDiv(at.m, width));
  auto columns = same(window.getWindow()[1], a.rem(p, width), a.rem(at.m, width));
  return a.both(a.both(rows, columns), a.both(isWithin(a, p, tokens), isWithin(a, at.m, tokens)));
}

template <class A> typename A::Bool holds(A &a, DilatedAttr dilated, const Place<A> &at) {
  auto distance = a.sub(positionOf(a, at), at.m);
  int64_t reach = dilated.getStep() * dilated.getWidth();
  auto near = a.both(a.le(distance, a.constant(reach)), a.le(a.constant(-reach), distance));
  return a.both(divides(a, dilated.getStep(), distance), near);
}

template <class A> typename A::Bool holds(A &a, DocumentAttr document, const Place<A> &at) {
  auto query = a.operand(document.getQueryIds(), {at.b, readable(a, at.n, at.isMovedN)});
  auto key = a.operand(document.getKeyIds(), {at.b, readable(a, at.m, at.isMovedM)});
  return ifInside(a, at, a.eq(query, key));
}

template <class A> typename A::Bool holds(A &a, BlocksAttr blocks, const Place<A> &at) {
  auto row = a.floorDiv(at.n, a.constant(blocks.getBlockM())),
       column = a.floorDiv(at.m, a.constant(blocks.getBlockN()));
  row = readable(a, row, at.isMovedN);
  return ifInside(a, at, a.listed(blocks.getIndex(), blocks.getCount(), at.b, at.h, row, column));
}

template <class A> typename A::Bool holds(A &a, BlockBitmapAttr bitmap, const Place<A> &at) {
  auto row = a.floorDiv(at.n, a.constant(bitmap.getBlockM())),
       column = a.floorDiv(at.m, a.constant(bitmap.getBlockN()));
  row = readable(a, row, at.isMovedN);
  column = readable(a, column, at.isMovedM);
  auto bit = a.operand(bitmap.getBits(), {at.b, at.h, row, column});
  return ifInside(a, at, a.negate(a.eq(bit, a.constant(0))));
}

template <class A> typename A::Bool holds(A &a, NeighbourhoodAttr pattern, const Place<A> &at) {
  // As NATTEN: on each axis the keys of the query's residue form a line; of it the kernel, centred, moved inwards at
  // the ends.
  auto p = positionOf(a, at), m = at.m;
  int64_t size = 1;
  for (int64_t axis : pattern.getShape())
    size *= axis;
  auto result = a.both(isWithin(a, p, a.constant(size)), isWithin(a, m, a.constant(size)));
  for (int64_t axis = pattern.getShape().size() - 1; axis >= 0; --axis) {
    int64_t length = pattern.getShape()[axis], taps = pattern.getKernel()[axis], step = pattern.getDilation()[axis];
    auto query = axis ? a.rem(p, a.constant(length)) : p, key = axis ? a.rem(m, a.constant(length)) : m;
    if (axis) {
      p = a.floorDiv(p, a.constant(length));
      m = a.floorDiv(m, a.constant(length));
    }
    auto last = a.constant(length - taps); // the line's last start
    if (step > 1) {
      auto residue = a.rem(query, a.constant(step));
      result = a.both(result, a.eq(residue, a.rem(key, a.constant(step))));
      // ceil((length - residue) / step) tokens are on the line.
      last = a.sub(a.floorDiv(a.sub(a.constant(length + step - 1), residue), a.constant(step)), a.constant(taps));
      query = a.floorDiv(query, a.constant(step));
      key = a.floorDiv(key, a.constant(step));
    }
    auto start = a.min(a.max(a.sub(query, a.constant(taps / 2)), a.constant(0)), last);
    result = a.both(result, a.both(a.le(start, key), a.lt(key, a.add(start, a.constant(taps)))));
  }
  return result;
}

/// Row block r has the `perRow` column blocks that Floyd's sampling without replacement draws: for i = 0, 1, ... the
/// i-th draw is a number t of 0 .. C - perRow + i, and where t is drawn already, C - perRow + i itself. C is the number
/// of column blocks; all belong where perRow is no less. t = floor(x (bound + 1) / 2^32), x of Philox at counter (r, i
/// xor the seed's upper word) under the seed's lower word.
template <class A> typename A::Bool holds(A &a, RandomBlocksAttr pattern, const Place<A> &at) {
  auto block = a.constant(pattern.getBlock()), perRow = a.constant(pattern.getPerRow());
  auto row = a.floorDiv(at.n, block), column = a.floorDiv(at.m, block);
  auto columns = a.floorDiv(a.add(at.M, a.constant(pattern.getBlock() - 1)), block);
  uint64_t seed = pattern.getSeed();
  auto result = a.le(columns, perRow);
  llvm::SmallVector<typename A::Int> drawn;
  for (int64_t i = 0; i < pattern.getPerRow(); ++i) {
    auto top = a.max(a.sub(columns, a.constant(pattern.getPerRow() - i)), a.constant(0));
    auto random = philox(a, row, a.constant(static_cast<int32_t>(i ^ (seed >> 32))), static_cast<uint32_t>(seed));
    auto candidate = a.mulHigh32(random, a.add(top, a.constant(1)));
    auto taken = a.truth(false);
    for (auto earlier : drawn)
      taken = a.either(taken, a.eq(earlier, candidate));
    drawn.push_back(a.select(taken, top, candidate));
    result = a.either(result, a.eq(drawn.back(), column));
  }
  return ifInside(a, at, result);
}

/// Queries outside of the table have no keys: both bounds read as 0.
template <class A> typename A::Bool holds(A &a, SpanAttr pattern, const Place<A> &at) {
  auto isQuery = isWithin(a, at.n, at.N);
  auto bound = [&](int64_t table) { return a.operand(table, {at.b, a.tableHead(table, at.h), at.n}, isQuery); };
  return a.isBetween(at.m, bound(pattern.getLower()), bound(pattern.getUpper()));
}

/// As the pattern has the pair in the longer sequences.
template <class A> typename A::Bool holds(A &a, SectionAttr section, const Place<A> &at) {
  Place<A> moved{at.b,
                 at.h,
                 a.add(at.n, a.number(section.getRows(), 0)),
                 a.add(at.m, a.number(section.getKeys(), 0)),
                 a.number(section.getRows(), 1),
                 a.number(section.getKeys(), 1),
                 true,
                 true};
  return contains(a, section.getPattern(), moved);
}

/// A pattern as a window, where it is one.
inline std::optional<WindowAttr> asWindow(mlir::Attribute pattern) {
  if (auto window = llvm::dyn_cast<WindowAttr>(pattern))
    return window;
  if (llvm::isa<CausalAttr>(pattern))
    return WindowAttr::get(pattern.getContext(), std::nullopt, 0);
  if (llvm::isa<FullAttr>(pattern))
    return WindowAttr::get(pattern.getContext(), std::nullopt, std::nullopt);
  return std::nullopt;
}

/// Whether every key that belongs to one of the queries exists: then nobody has to ask whether it does.
inline bool keysExist(mlir::Attribute pattern) {
  if (auto window = asWindow(pattern))
    return window->getRight() && *window->getRight() <= 0;
  if (auto both = llvm::dyn_cast<AndAttr>(pattern))
    return llvm::any_of(both.getPatterns(), [](mlir::Attribute each) { return keysExist(each); });
  return false;
}

/// Windows of every head as one, whose sides are chosen by the head: no more work per pair than one window.
template <class A>
typename A::Bool holdsWindows(A &a, llvm::ArrayRef<HeadGroup> groups, llvm::ArrayRef<typename A::Bool> isGroup,
                              const Place<A> &at) {
  constexpr int64_t open = int64_t(1) << 30; // more than any length
  auto chosen = [&](auto side) {
    auto sideOf = [&](const HeadGroup &group) { return side(*asWindow(group.pattern)).value_or(open); };
    auto result = a.constant(sideOf(groups.back()));
    for (auto [group, is] : llvm::zip(groups.drop_back(), isGroup))
      result = a.select(is, a.constant(sideOf(group)), result);
    return result;
  };
  auto distance = a.sub(at.m, positionOf(a, at));
  auto left = chosen([](WindowAttr window) { return window.getLeft(); });
  auto right = chosen([](WindowAttr window) { return window.getRight(); });
  return a.both(a.le(a.sub(a.constant(0), left), distance), a.le(distance, right));
}

template <class A> typename A::Bool holds(A &a, PerHeadAttr pattern, const Place<A> &at) {
  llvm::SmallVector<HeadGroup> groups = headGroups(pattern.getPatterns());
  llvm::SmallVector<typename A::Bool> isGroup;
  for (const HeadGroup &group : llvm::ArrayRef(groups).drop_back())
    isGroup.push_back(isInRuns(a, group.runs, at.h));
  if (llvm::all_of(groups, [](const HeadGroup &group) { return asWindow(group.pattern).has_value(); }))
    return holdsWindows<A>(a, groups, isGroup, at);
  auto result = contains(a, groups.back().pattern, at);
  for (auto [group, is] : llvm::zip(llvm::ArrayRef(groups).drop_back(), isGroup))
    result = a.selectBool(is, contains(a, group.pattern, at), result);
  return result;
}

} // namespace patterns

template <class A> typename A::Bool contains(A &a, mlir::Attribute pattern, const Place<A> &at) {
  using namespace patterns;
  using Bool = typename A::Bool;
  return llvm::TypeSwitch<mlir::Attribute, Bool>(pattern)
      .Case([&](FullAttr) { return a.truth(true); })
      .Case([&](EmptyAttr) { return a.truth(false); })
      .Case([&](CausalAttr) { return a.le(at.m, positionOf(a, at)); })
      .template Case<WindowAttr, BlockWindowAttr, DilatedAttr, NeighbourhoodAttr, RandomBlocksAttr, DocumentAttr,
                     SpanAttr, BlocksAttr, BlockBitmapAttr, PerHeadAttr, SectionAttr>(
          [&](auto known) { return holds(a, known, at); })
      .Case([&](PrefixAttr prefix) { return a.lt(at.m, a.constant(prefix.getSize())); })
      .Case([&](GlobalTokensAttr tokens) {
        auto size = a.constant(tokens.getSize());
        return a.either(a.lt(positionOf(a, at), size), a.lt(at.m, size));
      })
      .Case([&](StridedAttr strided) { return divides(a, strided.getStep(), a.sub(positionOf(a, at), at.m)); })
      .Case([&](MaskAttr mask) { return a.maskRegion(mask.getRegion(), at); })
      .Case([&](KeptAttr part) { return contains(a, part.getPattern(), at); })
      .Case([&](AndAttr both) {
        Bool result = a.truth(true);
        for (mlir::Attribute part : both.getPatterns())
          result = a.both(result, contains(a, part, at));
        return result;
      })
      .Case([&](OrAttr either) {
        Bool result = a.truth(false);
        for (mlir::Attribute part : either.getPatterns())
          result = a.either(result, contains(a, part, at));
        return result;
      })
      .Case([&](NotAttr inner) { return a.negate(contains(a, inner.getPattern(), at)); })
      .Case([&](ShiftAttr shift) {
        Place<A> moved = at;
        moved.m = a.sub(at.m, a.constant(shift.getBy()));
        moved.isMovedM = true;
        return contains(a, shift.getPattern(), moved);
      })
      .Case([&](TransposeAttr transpose) { return contains(a, transpose.getPattern(), at.transposed()); })
      .Default([&](mlir::Attribute) { return a.truth(false); });
}

} // namespace weft::attn

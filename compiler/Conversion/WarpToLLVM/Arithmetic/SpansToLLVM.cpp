// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Choices by spans: a thread's elements along an axis are bits of words, of which each bound leaves the lowest so many.
// Where a bit is tested right before it chooses, ptxas reads eight of a word into predicates at once.
//
//   elements 0 1, 8 9, 16 17, 24 25 of a thread whose first is t;  begin + t + 9 < upper <= begin + t + 16
//
//   %left = upper - (begin + t), at least 0 and at most 26          elements from the first on that are below: 10 .. 16
//   %count = (%left + 7 >> 3) + (%left + 6 >> 3)                    of the thread's own: 4
//   %word = bmsk 0, %count                                          0b1111
//   %x5 = (%word & 1 << 5) != 0 ? inside : outside
#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/AxisRuns.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

constexpr int64_t wordBits = 32;

/// The arithmetic of one thread.
class Spans {
public:
  Spans(Emitter &e, AxisRuns runs) : e(e), runs(runs) {}

  /// How many of the thread's elements, from `first` on, are below `bound`: counted without gaps, and at most `most`.
  Value distanceTo(Value bound, Value first, Value most) {
    // No difference of two numbers of 32 bits, the first at least the second, is too large for 32 bits without a sign.
    Value left = LLVM::SubOp::create(e.b, e.loc, minMax<LLVM::SMaxOp>(bound, first), first);
    return minMax<LLVM::UMinOp>(left, most);
  }

  /// The thread's elements that are less than `left` from the first: of a run's i-th, ceil((left - i) / 2^distance).
  Value count(Value left) {
    if (runs.run == runs.distance)
      return left;
    if (runs.run > 1) { // one sum for each would be long
      Value whole = shift<LLVM::ShlOp>(shift<LLVM::LShrOp>(left, runs.distance), runs.run);
      Value inRun = LLVM::AndOp::create(e.b, e.loc, left, e.i32((int64_t(1) << runs.distance) - 1));
      return LLVM::AddOp::create(e.b, e.loc, whole, minMax<LLVM::SMinOp>(inRun, e.i32(int64_t(1) << runs.run)));
    }
    Value sum;
    for (int64_t i = 0; i < int64_t(1) << runs.run; ++i) {
      Value inRun = add(left, (int64_t(1) << runs.distance) - 1 - i);
      Value whole = shift<LLVM::LShrOp>(inRun, runs.distance);
      sum = sum ? Value(LLVM::AddOp::create(e.b, e.loc, sum, whole)) : whole;
    }
    return sum;
  }

  /// The sum of two numbers, or the last one that 32 bits hold: the first is brought to where nothing overflows.
  Value saturatingAdd(Value value, Value shift) {
    auto limit = [&](int64_t number) { return LLVM::SubOp::create(e.b, e.loc, e.i32(number), shift); };
    Value zero = e.i32(0), upTo = limit(INT32_MAX), downTo = limit(INT32_MIN);
    Value isPositive = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::sgt, shift, zero);
    Value most = LLVM::SelectOp::create(e.b, e.loc, isPositive, upTo, e.i32(INT32_MAX));
    Value least = LLVM::SelectOp::create(e.b, e.loc, isPositive, e.i32(INT32_MIN), downTo);
    Value near = minMax<LLVM::SMaxOp>(minMax<LLVM::SMinOp>(value, most), least);
    return LLVM::AddOp::create(e.b, e.loc, near, shift);
  }

  int64_t reach() const { return runs.last() + 1; }

  /// The words whose bits from `begin` on, up to `end`, are set; null: from the first on, up to the last.
  Registers wordsOf(Value begin, Value end) {
    Registers words;
    for (int64_t done = 0; done < runs.size(); done += wordBits) {
      auto inWord = [&](Value number) {
        return done == 0 ? number : minMax<LLVM::SMaxOp>(add(number, -done), e.i32(0));
      };
      Value from = begin ? inWord(begin) : e.i32(0), count = e.i32(wordBits);
      if (end)
        count = begin ? minMax<LLVM::SMaxOp>(LLVM::SubOp::create(e.b, e.loc, add(end, -done), from), e.i32(0))
                      : inWord(end);
      words.push_back(
          e.inlineAsm("bmsk.clamp.b32 $0, $1, $2;", "=r,r,r", {e.b.getI32Type()}, {from, count}, /*sideEffects=*/false)
              .front());
    }
    return words;
  }

  Value isSet(ArrayRef<Value> words, int64_t number) {
    Value bit = e.i32(int64_t(1) << (number % wordBits));
    Value masked = LLVM::AndOp::create(e.b, e.loc, words[number / wordBits], bit);
    return LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne, masked, e.i32(0));
  }

  Value add(Value value, int64_t number) {
    return number == 0 ? value : LLVM::AddOp::create(e.b, e.loc, value, e.i32(number));
  }

private:
  template <typename Op> Value minMax(Value a, Value b) { return Op::create(e.b, e.loc, a, b); }
  template <typename Op> Value shift(Value value, unsigned bits) { return Op::create(e.b, e.loc, value, e.i32(bits)); }

  Emitter &e;
  AxisRuns runs;
};

/// A register of the rows' bounds for each of the result; nullptr where there are none.
std::optional<Registers> boundsOf(Value bound, const LinearLayout &layout, unsigned axis, Emitter &e) {
  if (!bound)
    return Registers(layout.size(InDim::Register));
  auto permutation = rowsAlong(layout, axis).registerPermutation(layoutOf(bound.getType()));
  if (!permutation)
    return std::nullopt;
  ArrayRef<Value> from = e.registers(bound);
  return llvm::map_to_vector(*permutation, [&](uint32_t r) { return from[r]; });
}

LogicalResult lowerSpanSelect(SpanSelectOp op, Emitter &e) {
  const LinearLayout &layout = layoutOf(op.getResult().getType());
  unsigned axis = op.getAxis();
  std::optional<AxisRuns> runs = runsAlong(layout, axis);
  std::optional<Registers> lower = boundsOf(op.getLower(), layout, axis, e),
                           upper = boundsOf(op.getUpper(), layout, axis, e);
  if (!runs || !lower || !upper)
    return op.emitOpError("expected bounds in the result's layout without the axis");
  Spans spans(e, *runs);
  Value first = LLVM::AddOp::create(e.b, e.loc, e.scalar(op.getBegin()), e.coordinate(layout, axis));
  Value all = e.i32(spans.reach());
  Value fromLeast = op.getLeast() ? spans.distanceTo(e.scalar(op.getLeast()), first, all) : Value();
  Value toEnd = op.getEnd() ? spans.distanceTo(e.scalar(op.getEnd()), first, all) : Value();
  // LLVM computes before a loop what stays the same in it, and ptxas keeps that: of each row one number is enough.
  DenseMap<Value, Value> here;
  auto boundOf = [&](Value row, Value shift) {
    Value &known = here[row];
    if (!known)
      known = e.inlineAsm("mov.b32 $0, $1;", "=r,r", {e.b.getI32Type()}, {row}, /*sideEffects=*/true).front();
    return spans.saturatingAdd(known, e.scalar(shift));
  };
  auto wordsOf = [&](Value lowerRow, Value upperRow) {
    Value from = fromLeast, to = toEnd;
    if (lowerRow) {
      from = spans.distanceTo(boundOf(lowerRow, op.getLowerShift()), first, all);
      if (fromLeast)
        from = LLVM::UMaxOp::create(e.b, e.loc, from, fromLeast);
    }
    if (upperRow)
      to = spans.distanceTo(boundOf(upperRow, op.getUpperShift()), first, toEnd ? toEnd : all);
    return spans.wordsOf(from ? spans.count(from) : Value(), to ? spans.count(to) : Value());
  };
  llvm::MapVector<std::pair<Value, Value>, Registers> rows; // the words of those with these bounds
  // Row after row, and of each in the bits' order.
  SmallVector<std::tuple<ptrdiff_t, int64_t, unsigned>> order;
  for (unsigned r = 0; r < layout.size(InDim::Register); ++r)
    order.push_back({rows.try_emplace({(*lower)[r], (*upper)[r]}).first - rows.begin(),
                     runs->numberOf(layout.delinearize(layout.apply(InDim::Register, r))[axis]), r});
  llvm::sort(order);
  ArrayRef<Value> inside = e.registers(op.getInside()), outside = e.registers(op.getOutside());
  Registers results(order.size());
  for (auto [row, number, r] : order) {
    auto &[bounds, words] = *(rows.begin() + row);
    if (words.empty())
      words = wordsOf(bounds.first, bounds.second);
    results[r] = LLVM::SelectOp::create(e.b, e.loc, spans.isSet(words, number), inside[r], outside[r]);
  }
  e.bind(op.getResult(), results);
  return success();
}

} // namespace

void addSpanLowerings(LoweringTable &table) { table.add<SpanSelectOp>(lowerSpanSelect); }

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-mask-spans: elements that a mask of running indices and bounds chooses are chosen by bits of words.
//
//   %j = addi (splat %begin), (make_range)            along axis 1
//   %c = cmpi sle, (broadcast %j), (broadcast %row)                     %u = minsi (addi %row, 1), %n
//   %d = cmpi slt, (broadcast %j), (splat %n)                  ─▶       %r = warp.span_select %x, %y from %begin upper(%u)
//   %r = arith.select (andi %c, %d), %x, %y
//
// A thread has many elements of a row, and each costs a comparison for each of a mask's conditions. Of a word the machine
// reads eight into predicates at once. What a mask says of whole rows empties theirs.
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/AxisRuns.h"
#include "dialects/Warp/Transforms/Arithmetic/ComparedIndex.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include <limits>

namespace weft::warp {
#define GEN_PASS_DEF_WARPMASKSPANS
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct MaskSpans : weft::warp::impl::WarpMaskSpansBase<MaskSpans> {
  void runOnOperation() override;
};

/// What a mask says of the elements along one axis.
struct Conditions {
  SmallVector<ComparedIndex, 2> comparisons;
  SmallVector<Value, 2> ofRows; ///< i1, or tensors of 1 along the axis
};
} // namespace

/// What a mask says, as conditions along its axis; whether it says nothing else. `isWhole`: rows may differ in it.
static bool collect(Value mask, unsigned axis, bool isWhole, IndexForms &forms, Conditions &found) {
  Operation *op = mask.getDefiningOp();
  if (!op)
    return false;
  OpBuilder b(op);
  if (auto both = dyn_cast<arith::AndIOp>(op))
    return collect(both.getLhs(), axis, isWhole, forms, found) && collect(both.getRhs(), axis, isWhole, forms, found);
  if (auto compare = dyn_cast<arith::CmpIOp>(op)) {
    std::optional<ComparedIndex> comparison = comparedIndex(compare, axis, forms, b);
    bool fits = comparison && (isWhole || llvm::none_of(comparison->bounds, [](auto &each) {
                                 return isa<RankedTensorType>(each.first.getType());
                               }));
    if (fits)
      found.comparisons.push_back(std::move(*comparison));
    return fits;
  }
  if (Value rows = boundAlong(mask, axis, b); rows && (isWhole || !isa<RankedTensorType>(rows.getType()))) {
    found.ofRows.push_back(rows);
    return true;
  }
  // The same of every row: said once.
  if (auto broadcast = dyn_cast<tile::BroadcastOp>(op)) {
    ArrayRef<int64_t> shape = tile::shapeOf(broadcast.getSource().getType());
    return shape[axis] == tile::shapeOf(mask.getType())[axis] &&
           llvm::count_if(shape, [](int64_t n) { return n != 1; }) == 1 &&
           collect(broadcast.getSource(), axis, /*isWhole=*/false, forms, found);
  }
  if (auto expand = dyn_cast<tile::ExpandDimsOp>(op); expand && uint32_t(expand.getAxis()) != axis)
    return collect(expand.getSource(), axis - (uint32_t(expand.getAxis()) < axis), isWhole, forms, found);
  return false;
}

// --- bounds ---

static Value numberLike(OpBuilder &b, Location loc, Type type, int64_t number) {
  Attribute value = b.getI32IntegerAttr(static_cast<int32_t>(number));
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return arith::ConstantOp::create(b, loc, DenseElementsAttr::get(tensor, value));
  return arith::ConstantOp::create(b, loc, cast<TypedAttr>(value));
}

/// Numbers of all rows as tensors, where there are any; whether all have the same rows then.
static bool alignRows(OpBuilder &b, Location loc, MutableArrayRef<Value> values) {
  Type rows;
  for (Value value : values)
    if (auto tensor = dyn_cast<RankedTensorType>(value.getType())) {
      auto ofNumbers = tensor.clone(b.getI32Type());
      if (rows && rows != ofNumbers)
        return false;
      rows = ofNumbers;
    }
  if (rows)
    for (Value &value : values)
      if (!isa<RankedTensorType>(value.getType()))
        value = tile::SplatOp::create(b, loc, cast<RankedTensorType>(rows).clone(value.getType()), value);
  return true;
}

/// The sum of numbers, or of rows: as 32 bits hold it, beyond which nothing is. Null where rows lie differently.
static Value sumOf(OpBuilder &b, Location loc, ArrayRef<std::pair<Value, bool>> terms, int64_t more) {
  if (terms.size() == 1 && !terms.front().second && more == 0)
    return terms.front().first;
  SmallVector<Value> values = llvm::map_to_vector(terms, [](auto &each) { return each.first; });
  if (!alignRows(b, loc, values))
    return {};
  Type narrow = values.empty() ? Type(b.getI32Type()) : values.front().getType();
  auto tensor = dyn_cast<RankedTensorType>(narrow);
  Type wide = tensor ? Type(tensor.clone(b.getI64Type())) : b.getI64Type();
  auto number = [&](int64_t value) {
    TypedAttr attr = b.getI64IntegerAttr(value);
    return arith::ConstantOp::create(
        b, loc, tensor ? TypedAttr(DenseElementsAttr::get(cast<ShapedType>(wide), Attribute(attr))) : attr);
  };
  Value sum = number(more);
  for (auto [value, term] : llvm::zip_equal(values, terms)) {
    Value extended = arith::ExtSIOp::create(b, loc, wide, value);
    sum = term.second ? Value(arith::SubIOp::create(b, loc, sum, extended))
                      : Value(arith::AddIOp::create(b, loc, sum, extended));
  }
  using Limits = std::numeric_limits<int32_t>;
  sum =
      arith::MaxSIOp::create(b, loc, arith::MinSIOp::create(b, loc, sum, number(Limits::max())), number(Limits::min()));
  return arith::TruncIOp::create(b, loc, narrow, sum);
}

namespace {
/// One side of a span: the bounds of rows with their shift, and that of all.
struct Side {
  bool isUpper;
  Value rows, shift, limit;

  /// Two bounds as the narrower one; null where rows lie differently in them.
  Value narrower(OpBuilder &b, Location loc, Value x, Value y) const {
    if (!x || !y)
      return x ? x : y;
    Value aligned[] = {x, y};
    if (!alignRows(b, loc, aligned))
      return {};
    return isUpper ? arith::MinSIOp::create(b, loc, aligned[0], aligned[1]).getResult()
                   : arith::MaxSIOp::create(b, loc, aligned[0], aligned[1]).getResult();
  }
  /// The rows' bounds with their shift added.
  Value sumOfRows(OpBuilder &b, Location loc) const {
    return rows ? sumOf(b, loc, {{rows, false}, {shift, false}}, 0) : Value();
  }
  /// Whether bounds of rows could be added.
  bool addRows(OpBuilder &b, Location loc, Value more) {
    rows = narrower(b, loc, sumOfRows(b, loc), more);
    shift = numberLike(b, loc, b.getI32Type(), 0);
    return rows != nullptr;
  }
  /// Whether what a comparison says could be added.
  bool add(OpBuilder &b, Location loc, const ComparedIndex &comparison) {
    SmallVector<std::pair<Value, bool>> ofRows, ofAll;
    for (auto &each : comparison.bounds)
      (isa<RankedTensorType>(each.first.getType()) ? ofRows : ofAll).push_back(each);
    // The number behind the end, and the first within.
    int64_t next = comparison.isUpper != comparison.isStrict;
    if (ofRows.empty()) {
      limit = narrower(b, loc, limit, sumOf(b, loc, ofAll, next));
      return true;
    }
    if (!rows && ofRows.size() == 1 && !ofRows.front().second) {
      rows = ofRows.front().first;
      shift = sumOf(b, loc, ofAll, next);
      return true;
    }
    ofRows.append(ofAll);
    Value sum = sumOf(b, loc, ofRows, next);
    return sum && addRows(b, loc, sum);
  }
};
} // namespace

/// Chooses by the bounds of a mask instead, in every select that it is of; nothing where they are not one for each side.
static void chooseBySpan(Value mask, unsigned axis, const Conditions &conditions) {
  OpBuilder b(mask.getContext());
  b.setInsertionPointAfterValue(mask);
  Location loc = mask.getLoc();
  const IndexSum &first = conditions.comparisons.front().begin;
  Side lower{false, {}, {}, {}}, upper{true, {}, {}, {}};
  for (const ComparedIndex &each : conditions.comparisons)
    if (!(each.begin == first) || !(each.isUpper ? upper : lower).add(b, loc, each))
      return;
  using Limits = std::numeric_limits<int32_t>;
  for (Value rows : conditions.ofRows) {
    auto tensor = dyn_cast<RankedTensorType>(rows.getType());
    Type type = tensor ? Type(tensor.clone(b.getI32Type())) : b.getI32Type();
    Value emptied = arith::SelectOp::create(b, loc, rows, numberLike(b, loc, type, Limits::max()),
                                            numberLike(b, loc, type, Limits::min()));
    if (!tensor)
      upper.limit = upper.narrower(b, loc, upper.limit, emptied);
    else if (!upper.addRows(b, loc, emptied))
      return;
  }
  LinearLayout rows = rowsAlong(layoutAttrOf(mask.getType()).getLayout(), axis);
  for (Value bounds : {lower.rows, upper.rows})
    if (bounds && !rows.registerPermutation(layoutAttrOf(bounds.getType()).getLayout()))
      return;
  Value begin = first.emit(b, loc, b.getI32Type());
  for (Operation *user : llvm::make_early_inc_range(mask.getUsers())) {
    auto select = cast<arith::SelectOp>(user);
    b.setInsertionPoint(select);
    select.replaceAllUsesWith(SpanSelectOp::create(b, select.getLoc(), select.getType(), select.getTrueValue(),
                                                   select.getFalseValue(), begin, lower.rows, lower.shift, upper.rows,
                                                   upper.shift, lower.limit, upper.limit,
                                                   b.getI32IntegerAttr(static_cast<int32_t>(axis)))
                                  .getResult());
    select.erase();
  }
}

/// The axis along which a thread has the most elements, if those walk in runs and fill a word: of half a word, what it
/// takes to make it is mostly what comparisons would.
static std::optional<unsigned> longestAxis(RankedTensorType type) {
  constexpr int64_t enough = 32;
  LayoutAttr layout = layoutAttrOf(type);
  std::optional<unsigned> longest;
  int64_t most = enough - 1;
  for (unsigned axis = 0; layout && axis < type.getRank(); ++axis)
    if (std::optional<AxisRuns> runs = runsAlong(layout.getLayout(), axis); runs && runs->size() > most) {
      longest = axis;
      most = runs->size();
    }
  return longest;
}

void MaskSpans::runOnOperation() {
  llvm::SetVector<Value> masks;
  getOperation().walk([&](arith::SelectOp op) {
    Value mask = op.getCondition();
    bool selectsAlone = llvm::all_of(mask.getUses(), [](OpOperand &use) {
      return isa<arith::SelectOp>(use.getOwner()) && use.getOperandNumber() == 0;
    });
    if (isa<RankedTensorType>(mask.getType()) && mask.getDefiningOp() && selectsAlone)
      masks.insert(mask);
  });
  IndexForms forms{scf::ForOp()};
  for (Value mask : masks) {
    auto type = cast<RankedTensorType>(mask.getType());
    std::optional<unsigned> axis = longestAxis(type);
    Conditions conditions;
    if (axis && collect(mask, *axis, /*isWhole=*/true, forms, conditions) && !conditions.comparisons.empty())
      chooseBySpan(mask, *axis, conditions);
  }
}

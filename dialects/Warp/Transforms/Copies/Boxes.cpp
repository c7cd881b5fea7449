// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Copies/Boxes.h"

#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Layout/WgmmaLayouts.h"
#include "dialects/Warp/Transforms/Accesses/DeviceMemory.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace weft::warp {
namespace {

/// A condition of a mask: true where the form is negative.
using Bounds = SmallVector<IndexForm, 4>;

/// x - y - 1 where `orEqual`, else x - y.
IndexForm difference(const IndexForm &x, const IndexForm &y, bool orEqual) {
  IndexForm form = x;
  form.offset = x.offset - y.offset - IndexSum(orEqual ? 1 : 0);
  for (auto [step, other] : llvm::zip_equal(form.steps, y.steps))
    step = step - other;
  return form;
}

IndexForm zeroLike(const IndexForm &form) { return {{}, IndexSum(), SmallVector<IndexSum, 2>(form.steps.size()), {}}; }

bool isUniform(const IndexForm &form) {
  return llvm::all_of(form.steps, [](const IndexSum &step) { return step.isZero(); });
}

bool isNeverNegative(const IndexForm &form) {
  return form.offset.isNeverNegative() &&
         llvm::all_of(form.steps, [](const IndexSum &step) { return step.isNeverNegative(); });
}

/// x < y of unsigned numbers, as conditions on signed ones: 0 <= x < y where y is none of those that are negative as
/// signed ones. Of y = max(z, 0) those are the same as for z.
std::optional<Bounds> boundsOfUnsigned(const IndexForm &x, IndexForm y, IndexForms &forms) {
  if (!isUniform(y) || !isNeverNegative(y))
    return std::nullopt;
  if (y.offset.terms.size() == 1 && y.offset.terms.front().second == 1 && y.offset.terms.front().first.size() == 1)
    if (auto most = y.offset.terms.front().first.front().getDefiningOp<arith::MaxSIOp>();
        most && matchPattern(most.getRhs(), m_Zero()))
      y.offset = forms.sumOf(most.getLhs());
  Bounds bounds{difference(x, y, /*orEqual=*/false)};
  if (!isNeverNegative(x))
    bounds.push_back(difference(zeroLike(x), x, /*orEqual=*/true));
  return bounds;
}

/// What cmpi says, as forms that are negative where it is true.
std::optional<Bounds> boundsOfCompare(arith::CmpIOp compare, IndexForms &forms) {
  std::optional<IndexForm> x = forms.of(compare.getLhs()), y = forms.of(compare.getRhs());
  if (!x || !y)
    return std::nullopt;
  using Predicate = arith::CmpIPredicate;
  Predicate predicate = compare.getPredicate();
  if (predicate == Predicate::ult)
    return boundsOfUnsigned(*x, *y, forms);
  if (predicate == Predicate::sgt || predicate == Predicate::sge)
    std::swap(*x, *y);
  else if (predicate != Predicate::slt && predicate != Predicate::sle)
    return std::nullopt;
  return Bounds{difference(*x, *y, predicate == Predicate::sle || predicate == Predicate::sge)};
}

/// The conditions that a mask is the conjunction of; none where it is anything else.
std::optional<Bounds> boundsOf(Value mask, IndexForms &forms) {
  if (matchPattern(mask, m_One()))
    return Bounds();
  Operation *op = mask.getDefiningOp();
  if (auto both = dyn_cast_or_null<arith::AndIOp>(op)) {
    std::optional<Bounds> x = boundsOf(both.getLhs(), forms), y = boundsOf(both.getRhs(), forms);
    if (!x || !y)
      return std::nullopt;
    x->append(y->begin(), y->end());
    return x;
  }
  if (auto compare = dyn_cast_or_null<arith::CmpIOp>(op))
    return boundsOfCompare(compare, forms);
  if (!isa_and_nonnull<tile::ExpandDimsOp, tile::BroadcastOp, tile::PermuteOp, ConvertLayoutOp>(op))
    return std::nullopt;
  std::optional<Bounds> bounds = boundsOf(op->getOperand(0), forms);
  if (!bounds)
    return std::nullopt;
  for (IndexForm &form : *bounds) {
    SmallVector<IndexSum, 2> source = form.steps;
    if (auto expand = dyn_cast<tile::ExpandDimsOp>(op))
      form.steps.insert(form.steps.begin() + expand.getAxis(), IndexSum());
    else if (auto permute = dyn_cast<tile::PermuteOp>(op))
      for (auto [step, from] : llvm::zip(form.steps, permute.getOrder()))
        step = source[from];
    else if (auto broadcast = dyn_cast<tile::BroadcastOp>(op))
      for (auto [step, size] : llvm::zip(form.steps, cast<RankedTensorType>(op->getOperand(0).getType()).getShape()))
        if (size == 1)
          step = IndexSum();
  }
  return bounds;
}

/// The factors of a product that a launch knows, and the others.
std::pair<IndexSum::Factors, IndexSum::Factors> splitOf(const IndexSum::Factors &factors) {
  std::pair<IndexSum::Factors, IndexSum::Factors> split;
  for (Value factor : factors)
    (isArgumentOfKernel(factor) ? split.first : split.second).push_back(factor);
  return split;
}

/// A tile as bulk copies write it.
struct Lines {
  unsigned along = 0;           ///< the axis of neighbours
  std::optional<unsigned> line; ///< the other one; a vector has none
  int64_t length = 0, count = 1;
  int64_t width = 0, height = 1; ///< of one copy, at the most

  /// Which axis of a box an axis of the tile is.
  unsigned boxAxis(unsigned axis) const { return axis == along ? 0 : 1; }
};

constexpr StringLiteral notMultiple = "a stride is not known to be a multiple of what bulk copies ask for";

/// Distributes an address over axes.
class AxesOf {
public:
  /// `row`: the stride of lines, one product; null where there is one line. `inRows`: products of that stride and of what
  /// the launch knows besides are rows of the tensor, as those of a head among all heads' rows, and no axis of their own.
  /// `isWithin`: all of an address is known to lie in the tensor, so that a multiple of an axis' stride that the launch
  /// knows is of that axis: heads that are counted by sections.
  AxesOf(Box &box, const IndexSum *row, int64_t strideElements, bool inRows, bool isWithin)
      : box(box), unit(strideElements), inRows(inRows), isWithin(isWithin) {
    box.coordinates.emplace_back();
    if (!row)
      return;
    rowFactors = row->terms.front().first;
    rowStride = row->terms.front().second;
    box.strides.push_back(*row);
    box.coordinates.emplace_back();
  }

  /// Why an offset is of no axis; empty where it is.
  StringRef add(const IndexSum &offset) {
    auto places = llvm::to_vector(llvm::seq(offset.terms.size()));
    if (isWithin) // a stride has its axis before its multiples
      llvm::sort(places, [&](size_t a, size_t b) {
        return std::pair(offset.terms[a].first.size(), a) < std::pair(offset.terms[b].first.size(), b);
      });
    for (size_t place : places) {
      const auto &[factors, coefficient] = offset.terms[place];
      auto [ofLaunch, others] = splitOf(factors);
      if (llvm::any_of(others, [](Value each) { return !each.getType().isInteger(32); }))
        return "a coordinate is of 64 bits";
      if (rowStride != 0 && IndexSum::areSame(ofLaunch, rowFactors) && coefficient % rowStride == 0)
        box.coordinates[1].add(others, coefficient / rowStride);
      else if (ofLaunch.empty())
        box.coordinates[0].add(others, coefficient);
      else if (others.empty())
        box.baseOffset.add(ofLaunch, coefficient);
      else if (std::optional<IndexSum::Factors> rows = rowsIn(ofLaunch, coefficient))
        box.coordinates[1].add(llvm::to_vector<2>(llvm::concat<Value>(*rows, others)), coefficient / rowStride);
      else if (!addOuter(ofLaunch, others, coefficient))
        return notMultiple;
    }
    return box.baseOffset.divisibility() % unit == 0 ? "" : "its begin is not known to be aligned";
  }

private:
  /// What the launch knows of a product but a stride, where it may be part of a coordinate.
  static std::optional<IndexSum::Factors> restOf(const IndexSum::Factors &factors, const IndexSum::Factors &stride) {
    IndexSum::Factors rest = factors;
    for (Value factor : stride) {
      auto found = llvm::find(rest, factor);
      if (found == rest.end())
        return std::nullopt;
      rest.erase(found);
    }
    return llvm::all_of(rest, [](Value each) { return each.getType().isInteger(32); }) ? std::optional(rest)
                                                                                       : std::nullopt;
  }

  /// What the launch knows of a product but the stride of lines, where it may count rows.
  std::optional<IndexSum::Factors> rowsIn(const IndexSum::Factors &factors, int64_t coefficient) const {
    return inRows && rowStride != 0 && coefficient % rowStride == 0 ? restOf(factors, rowFactors) : std::nullopt;
  }

  /// Adds a product to an axis whose stride it is a multiple of, by numbers that the launch knows; false where none is.
  bool addToMultiple(const IndexSum::Factors &stride, const IndexSum::Factors &coordinate, int64_t coefficient) {
    for (size_t axis = rowStride != 0; axis < box.strides.size(); ++axis) {
      const auto &[factors, taken] = box.strides[axis].terms.front();
      std::optional<IndexSum::Factors> rest = restOf(stride, factors);
      if (!rest || coefficient % taken != 0)
        continue;
      box.coordinates[axis + 1].add(llvm::to_vector<2>(llvm::concat<const Value>(*rest, coordinate)),
                                    coefficient / taken);
      return true;
    }
    return false;
  }

  /// Adds a product to the axis of its stride. Of a constant factor the stride takes what makes it the multiple that bulk
  /// copies ask for, the coordinate the rest; false where an axis has taken more than this product has.
  bool addOuter(const IndexSum::Factors &stride, const IndexSum::Factors &coordinate, int64_t coefficient) {
    for (size_t axis = rowStride != 0; axis < box.strides.size(); ++axis) {
      const auto &[factors, taken] = box.strides[axis].terms.front();
      if (!IndexSum::areSame(factors, stride))
        continue;
      if (coefficient % taken != 0)
        return false;
      box.coordinates[axis + 1].add(coordinate, coefficient / taken);
      return true;
    }
    if (isWithin && addToMultiple(stride, coordinate, coefficient))
      return true;
    auto times = [&](int64_t factor) {
      IndexSum sum;
      sum.add(stride, factor);
      return sum;
    };
    int64_t taken = 1;
    while (times(taken).divisibility() % unit != 0 && coefficient % (2 * taken) == 0)
      taken *= 2;
    box.strides.push_back(times(taken));
    box.coordinates.emplace_back().add(coordinate, coefficient / taken);
    return true;
  }

  Box &box;
  IndexSum::Factors rowFactors;
  int64_t rowStride = 0, unit;
  bool inRows, isWithin;
};

/// Sets the sizes that a mask gives; why it gives none, or empty. What no mask keeps from elements before a tensor's
/// begin may read them, where copies of boxes give zeros: `isWithin` promises that there is no such.
StringRef setSizes(Box &box, const Bounds &bounds, const Lines &lines, bool isWithin) {
  // What no mask bounds may be as large as a map's sizes.
  constexpr int64_t unbounded = int64_t(1) << 31;
  SmallVector<std::optional<IndexSum>, 5> sizes(box.coordinates.size());
  SmallVector<bool, 5> begins(box.coordinates.size(), false);
  for (const IndexForm &form : bounds) {
    unsigned axis = 0;
    for (unsigned i = 0; i < form.steps.size(); ++i)
      if (!form.steps[i].isZero())
        axis = i;
    bool single = llvm::count_if(form.steps, [](const IndexSum &step) { return !step.isZero(); }) == 1;
    std::optional<int64_t> step = single ? form.steps[axis].constant() : std::nullopt;
    if (!step || (*step != 1 && *step != -1))
      return "its mask is no box";
    const unsigned along = lines.boxAxis(axis);
    const IndexSum &coordinate = box.coordinates[along];
    if (*step == -1) {
      if (!(coordinate + form.offset + IndexSum(1)).isZero())
        return "its mask begins elsewhere than the tensor";
      begins[along] = true;
      continue;
    }
    IndexSum size = coordinate - form.offset;
    if (!size.isOfLaunch())
      return "its mask ends where the launch does not know";
    std::optional<IndexSum> &known = sizes[along];
    if (known && !(*known == size))
      return "its mask has two ends";
    known = size;
  }
  for (unsigned axis = 0; axis < begins.size(); ++axis) {
    if (begins[axis])
      continue;
    // What lies within is the sum of all axes: one of them may still be below 0 and another make up for it. Lines, or a
    // vector, are the axis that windows move along, and none makes up for them.
    const IndexSum &coordinate = box.coordinates[axis];
    bool mayBeNegative =
        isWithin ? axis != (lines.line ? 1u : 0u) && coordinate.subtracts() : !coordinate.isNeverNegative();
    if (mayBeNegative)
      return "it may begin before its base, and no mask says that nothing is there";
  }
  // Rows that are wholly loaded end where they do.
  if (!sizes[0] && box.coordinates[0].isZero())
    sizes[0] = IndexSum(lines.length);
  for (std::optional<IndexSum> &size : sizes)
    box.sizes.push_back(size ? *size : IndexSum(unbounded));
  return "";
}

/// Whether something may write a copy's source before the copy, which reads it by another way than threads write.
bool mayBeWrittenBefore(AsyncCopyOp copy, scf::ForOp loop) {
  auto kernel = loop->getParentOfType<func::FuncOp>();
  DeviceAccess read = *deviceAccessOf(copy, /*warps=*/1);
  bool ordered = kernel->hasAttr(tile::ordersAccessesAttrName);
  return kernel
      .walk([&](Operation *op) {
        std::optional<DeviceAccess> other = deviceAccessOf(op, /*warps=*/1);
        bool acquires = other && orderingOf(op, /*warps=*/1).acquires && !op->use_empty();
        bool writes = other && other->writes && !ordered && mayShareBase(*other, read);
        if (!acquires && !writes)
          return WalkResult::advance();
        Operation *here = loop->getBlock()->findAncestorOpInBlock(*op);
        bool isBehind = here && loop->isBeforeInBlock(here) && !loop->getParentOfType<LoopLikeOpInterface>();
        return isBehind ? WalkResult::advance() : WalkResult::interrupt();
      })
      .wasInterrupted();
}

/// The lines of a matrix that lies in panels of 128 bytes, as matrix instructions of warpgroups read it.
Lines linesOf(ArrayRef<int64_t> shape, unsigned along, int64_t bytes, const TargetInfo &target,
              int64_t lineBytes = wgmmaLongestLine) {
  unsigned line = 1 - along;
  return {along,
          line,
          shape[along],
          shape[line],
          std::min<int64_t>(lineBytes / bytes, shape[along]),
          std::min<int64_t>(target.boxCopies.mostBox, shape[line])};
}

/// How a tile lies in shared memory: a matrix in panels, or a vector. Why in neither way.
StringRef findLines(SharedType shared, const TargetInfo &target, Lines &lines) {
  ArrayRef<int64_t> shape = shared.getShape();
  int64_t bytes = shared.getElementType().getIntOrFloatBitWidth() / 8;
  if (shape.size() == 1) {
    LinearLayout oneByOne(shape);
    oneByOne.appendAxis(InDim::Offset, 0, llvm::Log2_64(shape.front()), 1);
    if (shared.linear() != oneByOne || shape.front() * bytes % target.boxCopies.strideBytes != 0)
      return "its elements do not lie one behind another";
    lines = {0, std::nullopt, shape.front(), 1, std::min<int64_t>(target.boxCopies.mostBox, shape.front()), 1};
    return "";
  }
  if (shape.size() != 2 || (bytes != 2 && bytes != 1))
    return "it is no vector, nor a matrix of elements of 16 or 8 bits";
  for (unsigned along : {1u, 0u})
    if (std::optional<int64_t> lineBytes = wgmmaLineBytes(shared.linear(), along, bytes)) {
      lines = linesOf(shape, along, bytes, target, *lineBytes);
      return "";
    }
  return "its tile does not lie in lines as bulk copies write them";
}

/// The parts of a tile: its panels, and of those what one copy brings.
SmallVector<BoxPart, 4> partsOf(const Lines &lines, int64_t bytes) {
  SmallVector<BoxPart, 4> parts;
  for (int64_t along = 0; along < lines.length; along += lines.width)
    for (int64_t row = 0; row < lines.count; row += lines.height)
      parts.push_back({(along * lines.count + row * lines.width) * bytes, int32_t(along), int32_t(row)});
  return parts;
}

/// A tile's place in device memory, and how it lies in shared memory.
struct TilePlace {
  Operation *op;
  Value ptr, mask; // the mask may be null
  Lines lines;
  int64_t bytes; // of an element
};

/// Places a tile in a tensor: strides, coordinates and sizes. Why it is in none, or empty.
StringRef placeIn(Box &box, const TilePlace &place, const IndexForm &form, const Bounds &bounds, bool inRows,
                  const TargetInfo &target) {
  const Lines &lines = place.lines;
  const IndexSum *row = lines.line ? &form.steps[*lines.line] : nullptr;
  const int64_t unit = target.boxCopies.strideBytes / place.bytes;
  bool isWithin =
      place.op->getParentOfType<func::FuncOp>()->hasAttr(tile::ordersAccessesAttrName); // a program's tensors
  AxesOf axes(box, row, unit, inRows, isWithin);
  if (StringRef hindrance = axes.add(form.offset); !hindrance.empty())
    return hindrance;
  if (int64_t(box.coordinates.size()) > target.boxCopies.mostRank)
    return "its address is a sum of more strides than a tensor map has axes";
  if (llvm::any_of(box.strides, [&](const IndexSum &each) { return each.divisibility() % unit != 0; }))
    return notMultiple;
  if (StringRef hindrance = setSizes(box, bounds, lines, isWithin); !hindrance.empty())
    return hindrance;
  // Boxes that begin between two units along their lines are illegal instructions (seen on an H200).
  return box.coordinates[0].divisibility() % unit == 0 ? ""
                                                       : "where it begins along its lines is not known to be aligned";
}

FoundBox boxOf(const TilePlace &place, scf::ForOp loop, const TargetInfo &target) {
  auto none = [](StringRef hindrance) { return FoundBox{std::nullopt, hindrance}; };
  const Lines &lines = place.lines;
  IndexForms forms(loop), addresses(loop, /*unwraps=*/isa<AsyncCopyOp>(place.op));
  std::optional<IndexForm> form = addresses.of(place.ptr);
  if (!form || !form->base)
    return none("its addresses are no sums of an argument and strides");
  const IndexSum *row = lines.line ? &form->steps[*lines.line] : nullptr;
  if (form->steps[lines.along].constant() != 1 || (row && (row->terms.size() != 1 || !row->isOfLaunch())))
    return none("its addresses are no box of a tensor with strides");
  if (IndexSum(form->base).divisibility() % target.boxCopies.strideBytes != 0)
    return none("its begin is not known to be aligned");
  std::optional<Bounds> bounds = place.mask ? boundsOf(place.mask, forms) : Bounds();
  if (!bounds)
    return none("its mask is no box");
  bounds->append(form->ends.begin(), form->ends.end());
  StringRef first;
  for (bool inRows : {false, true}) {
    Box box;
    box.base = form->base;
    StringRef hindrance = placeIn(box, place, *form, *bounds, inRows, target);
    first = inRows ? first : hindrance;
    if (!hindrance.empty())
      continue;
    box.box.assign(box.coordinates.size(), 1);
    box.box[0] = int32_t(lines.width);
    if (lines.line)
      box.box[1] = int32_t(lines.height);
    box.isVector = !lines.line;
    box.parts = partsOf(lines, place.bytes);
    return {std::move(box), ""};
  }
  return none(first);
}

} // namespace

FoundBox findBox(AsyncCopyOp copy, scf::ForOp loop, const TargetInfo &target) {
  auto none = [](StringRef hindrance) { return FoundBox{std::nullopt, hindrance}; };
  SharedType shared = copy.getShared().getType();
  Lines lines;
  if (StringRef hindrance = findLines(shared, target, lines); !hindrance.empty())
    return none(hindrance);
  if (tileAlignment(loop->getParentOfType<func::FuncOp>()) < target.warpgroups.tileAlignment)
    return none("its tile does not lie in lines as bulk copies write them");
  if (copy.getThroughL1())
    return none("bulk copies do not go through L1");
  int64_t bytes = shared.getElementType().getIntOrFloatBitWidth() / 8;
  FoundBox found = boxOf({copy, copy.getPtr(), copy.getMask(), lines, bytes}, loop, target);
  if (found.box && mayBeWrittenBefore(copy, loop))
    return none("the kernel may write what is copied");
  return found;
}

FoundStoredBox findStoredBox(Operation *op, Value ptr, Value mask, const TargetInfo &target) {
  auto none = [](StringRef hindrance) { return FoundStoredBox{{std::nullopt, hindrance}, {}}; };
  auto type = cast<RankedTensorType>(ptr.getType());
  Type element = tile::pointeeTypeOf(type);
  unsigned bits = element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0;
  if (type.getRank() != 2 || (bits != 8 && bits != 16 && bits != 32) || element.isInteger(16))
    return none("it is no matrix of elements that tensor maps have");
  auto loop = op->getParentOfType<scf::ForOp>();
  FoundStoredBox best = none("its tile has no lines of 32 bytes or more, or fewer than 8");
  for (unsigned along : {1u, 0u}) {
    std::optional<LinearLayout> layout = wgmmaTileLayout(type.getShape(), along, bits / 8);
    if (!layout)
      continue;
    FoundBox found = boxOf({op, ptr, mask, linesOf(type.getShape(), along, bits / 8, target), bits / 8}, loop, target);
    if (found.box)
      return {std::move(found), SharedType::get(op->getContext(), 1, type.getShape(), element,
                                                LayoutAttr::get(op->getContext(), *layout))};
    if (along == 1)
      best.found = std::move(found);
  }
  return best;
}

} // namespace weft::warp

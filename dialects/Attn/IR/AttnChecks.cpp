// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See AttnChecks.h.
#include "dialects/Attn/IR/AttnChecks.h"
#include <cmath>

using namespace mlir;
using namespace weft::attn;

bool weft::attn::differ(StringRef a, StringRef b) {
  auto plain = [](StringRef size) { return llvm::all_of(size, [](char c) { return llvm::isAlnum(c) || c == '_'; }); };
  auto [factorOfA, ofA] = factorsOf(a);
  auto [factorOfB, ofB] = factorsOf(b);
  bool multiples = ofA == ofB && factorOfA != factorOfB;
  return a != b && (multiples || (plain(a) && plain(b)));
}

LogicalResult weft::attn::checkRank(Operation *op, StringRef what, WholeTensorType type, int64_t rank) {
  if (type.getRank() == rank)
    return success();
  return op->emitOpError() << "expected " << what << " of rank " << rank << ", but got " << type;
}

LogicalResult weft::attn::checkSizes(Operation *op, StringRef what, WholeTensorType type, ArrayRef<StringRef> sizes) {
  bool fits = type.getRank() == static_cast<int64_t>(sizes.size());
  for (auto [its, size] : llvm::zip(type.getDims(), sizes))
    fits &= !differ(its.getValue(), size);
  if (fits)
    return success();
  return op->emitOpError() << "expected " << what << " of shape [" << llvm::join(sizes, ", ") << "], but got " << type;
}

LogicalResult weft::attn::checkIndices(Operation *op, StringRef what, WholeTensorType type, int64_t rank) {
  if (type.getRank() == rank && type.getElementType().isInteger(32))
    return success();
  return op->emitOpError() << "expected " << what << " of rank " << rank << " and i32 elements, but got " << type;
}

LogicalResult weft::attn::checkCuSeqlens(Operation *op, Value cuSeqlens) {
  return cuSeqlens ? checkIndices(op, "cu_seqlens", tensorTypeOf(cuSeqlens), 1) : success();
}

LogicalResult weft::attn::checkFloats(Operation *op, StringRef what, WholeTensorType type) {
  if (isa<FloatType>(type.getElementType()))
    return success();
  return op->emitOpError() << "expected " << what << " of floats, but got " << type;
}

LogicalResult weft::attn::checkTaps(Operation *op, WholeTensorType taps, bool centred, int64_t dilation,
                                    std::optional<ArrayRef<int64_t>> grid, Value cuSeqlens, WholeTensorType source) {
  if (failed(checkCuSeqlens(op, cuSeqlens)) || failed(checkFloats(op, "taps", taps)))
    return failure();
  if (cuSeqlens && grid)
    return op->emitOpError() << "expected no grid with cu_seqlens";
  std::optional<int64_t> count = taps.getRank() == 2 ? taps.staticDim(0) : 0;
  if (count && *count < 1)
    return op->emitOpError() << "expected taps [K, H*C] with K of at least 1, but got " << taps;
  if (dilation < 1)
    return op->emitOpError() << "expected a dilation of at least 1, but got " << dilation;
  if (!count && (centred || grid || cuSeqlens || dilation != 1))
    return op->emitOpError()
           << "expected taps [K, H*C] with K an integer where they are centred, dilated, on a grid or of packed "
              "sequences, but got "
           << taps;
  if (dilation > largestDistance / std::max<int64_t>(count.value_or(1) - 1, 1))
    return op->emitOpError() << "expected taps that reach no further than " << largestDistance << " tokens, but got "
                             << *count << " at a dilation of " << dilation;
  int64_t side = count.value_or(1);
  if (grid) {
    if (grid->size() != 2 || (*grid)[0] < 1 || (*grid)[1] < 1)
      return op->emitOpError() << "expected a grid of two sizes of at least 1";
    side = std::llround(std::sqrt(double(*count)));
    if (side * side != *count)
      return op->emitOpError() << "expected K*K taps on a grid, but got " << *count;
  }
  if ((centred || grid) && side % 2 == 0)
    return op->emitOpError() << "expected an odd number of centred taps, but got " << side;
  if (!source)
    return success();
  std::optional<int64_t> heads = source.staticDim(1), channels = source.staticDim(3), all = taps.staticDim(1);
  if (heads && channels && all && *heads * *channels != *all)
    return op->emitOpError() << "expected taps of " << *heads << " * " << *channels << " channels, but got " << *all;
  std::optional<int64_t> length = source.staticDim(2);
  if (grid && length && (*grid)[0] * (*grid)[1] != *length)
    return op->emitOpError() << "expected a sequence of " << (*grid)[0] << " * " << (*grid)[1] << " tokens, but got "
                             << *length;
  return success();
}

LogicalResult weft::attn::checkScalarRegion(Operation *op, StringRef what, Region &region, ArrayRef<Type> arguments,
                                            ArrayRef<Type> results) {
  if (!llvm::hasSingleElement(region) || region.front().empty() || !isa<YieldOp>(region.front().back()))
    return op->emitOpError() << "expected " << what << " to be one block that ends in 'attn.yield'";
  Block &block = region.front();
  if (block.getArgumentTypes() != TypeRange(arguments))
    return op->emitOpError() << "expected " << what << " to take (" << arguments << "), but it takes ("
                             << block.getArgumentTypes() << ")";
  // A tool that erases ops, as reducers do, leaves null operands, which the yield's own check reports.
  if (llvm::is_contained(block.getTerminator()->getOperands(), Value()))
    return success();
  TypeRange yielded = block.getTerminator()->getOperandTypes();
  if (yielded != TypeRange(results))
    return op->emitOpError() << "expected " << what << " to yield (" << results << "), but it yields (" << yielded
                             << ")";
  return success();
}

/// One part of a pattern: the operands and regions it names itself.
static LogicalResult checkPatternPart(Operation *op, Attribute part, ValueRange operands, size_t masks,
                                      StringRef heads) {
  auto operand = [&](int64_t number, StringRef what, std::initializer_list<int64_t> ranks,
                     unsigned bits) -> LogicalResult {
    if (number < 0 || number >= static_cast<int64_t>(operands.size()))
      return op->emitOpError() << "expected " << what << " to name one of " << operands.size()
                               << " pattern operands, but got " << number << " in " << part;
    WholeTensorType type = tensorTypeOf(operands[number]);
    if (llvm::is_contained(ranks, type.getRank()) && type.getElementType().isInteger(bits))
      return success();
    return op->emitOpError() << "expected " << what << " of rank " << *ranks.begin() << " and i" << bits
                             << " elements for " << part << ", but got " << type;
  };
  if (auto document = dyn_cast<DocumentAttr>(part))
    return success(succeeded(operand(document.getQueryIds(), "ids", {1, 2}, 32)) &&
                   succeeded(operand(document.getKeyIds(), "ids", {1, 2}, 32)));
  if (auto blocks = dyn_cast<BlocksAttr>(part))
    return success(succeeded(operand(blocks.getIndex(), "an index", {4}, 32)) &&
                   succeeded(operand(blocks.getCount(), "a count", {3}, 32)));
  if (auto bitmap = dyn_cast<BlockBitmapAttr>(part))
    return operand(bitmap.getBits(), "bits", {4}, 1);
  if (auto span = dyn_cast<SpanAttr>(part)) {
    // Which of the bounds' heads a query head shares follows from the types alone.
    auto bounds = [&](int64_t number, StringRef what) -> LogicalResult {
      if (failed(operand(number, what, {3}, 32)))
        return failure();
      StringRef own = tensorTypeOf(operands[number]).dim(1);
      if (own == "1" || headGroup(heads, own))
        return success();
      return op->emitOpError() << "expected " << what << " of 1 head, or of a divisor of the queries' " << heads
                               << ", but got " << own << " for " << part;
    };
    return success(
        succeeded(bounds(span.getLower(), "a lower bound")) && succeeded(bounds(span.getUpper(), "an upper bound")) &&
        succeeded(bounds(span.getFirst(), "a first query")) && succeeded(bounds(span.getPast(), "a past query")));
  }
  if (auto section = dyn_cast<SectionAttr>(part))
    return success(succeeded(operand(section.getRows(), "a section's rows", {1}, 32)) &&
                   succeeded(operand(section.getKeys(), "a section's keys", {1}, 32)));
  if (auto mask = dyn_cast<MaskAttr>(part))
    if (mask.getRegion() < 0 || mask.getRegion() >= static_cast<int64_t>(masks))
      return op->emitOpError() << "expected a mask to name one of " << masks << " regions, but got "
                               << mask.getRegion();
  if (auto each = dyn_cast<PerHeadAttr>(part)) {
    int64_t count;
    if (!heads.getAsInteger(10, count) && count != static_cast<int64_t>(each.getPatterns().size()))
      return op->emitOpError() << "expected a pattern for each of " << count << " heads, but got "
                               << each.getPatterns().size();
  }
  return success();
}

LogicalResult weft::attn::checkPatterns(Operation *op, ArrayAttr patterns, size_t domains, ValueRange operands,
                                        size_t masks, StringRef heads) {
  if (patterns.size() != domains)
    return op->emitOpError() << "expected one pattern for each of " << domains << " domains, but got "
                             << patterns.size();
  WalkResult walked = patterns.walk([&](Attribute part) {
    return failed(checkPatternPart(op, part, operands, masks, heads)) ? WalkResult::interrupt() : WalkResult::advance();
  });
  return failure(walked.wasInterrupted());
}

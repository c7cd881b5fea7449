// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile-split-sizes: tensors of any sizes become tensors whose sizes are powers of two.
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Tile/IR/TileProgramOps.h"
#include "dialects/Tile/Transforms/Passes.h"
#include "dialects/Tile/Transforms/Pieces.h"
#include "dialects/Tile/Transforms/SplitPatterns.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/SCF/Transforms/Patterns.h"
#include "mlir/IR/IRMapping.h"
#include <numeric>

namespace weft::tile {
#define GEN_PASS_DEF_TILESPLITSIZES
#include "dialects/Tile/Transforms/Passes.h.inc"
} // namespace weft::tile

using namespace mlir;
using namespace weft::tile;

namespace {

/// Boxes that one reshape may take apart.
constexpr int64_t mostBoxes = 512;

/// Whether an op does the same to each element, so that pieces are taken one by one.
bool isPiecewise(Operation *op) {
  return OpTrait::hasElementwiseMappableTraits(op) ||
         isa<AddPtrOp, PtrToIntOp, IntToPtrOp, PtrCastOp, LoadOp, StoreOp, AtomicRMWOp, AtomicCASOp, AssertOp, AssumeOp,
             InlineAsmOp, MapOp, PrintOp, PromiseOp>(op);
}

/// The split tensor that an op takes or gives; null where there is none.
Type splitTypeOf(Operation *op) {
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
    for (Type type : types)
      if (isSplit(type))
        return type;
  return nullptr;
}

// --- promises ---

/// The longest aligned run within a piece of an axis that lies in one run of `length` of the whole axis.
int64_t runWithin(int64_t length, Span span) {
  if (span.start / length == (span.start + span.size - 1) / length)
    return span.size;
  return std::min(span.size, length & -length);
}

/// What a promise about the whole means for a piece: runs end with the piece, and one that begins within a run of the
/// whole begins at a multiple of what divides both.
void promisePiece(Operation *made, Operation *whole, const Box &box) {
  for (StringRef name : {divisibilityAttrName, contiguityAttrName, constancyAttrName}) {
    auto promise = whole->getAttrOfType<DenseI32ArrayAttr>(name);
    if (!promise || promise.size() != static_cast<int64_t>(box.shape.size()))
      continue;
    SmallVector<int32_t> numbers;
    for (auto [number, start, size] : llvm::zip_equal(promise.asArrayRef(), box.start, box.shape)) {
      int64_t said = std::max<int64_t>(number, 1);
      if (name == divisibilityAttrName)
        numbers.push_back(static_cast<int32_t>(start == 0 ? said : std::gcd(said, start)));
      else
        numbers.push_back(static_cast<int32_t>(runWithin(said, {start, size})));
    }
    made->setAttr(name, DenseI32ArrayAttr::get(made->getContext(), numbers));
  }
}

// --- patterns ---

/// Ops that are done piece by piece.
struct SplitPiecewise : ConversionPattern {
  SplitPiecewise(const TypeConverter &converter, MLIRContext *context)
      : ConversionPattern(converter, MatchAnyOpTypeTag(), /*benefit=*/1, context) {}

  LogicalResult matchAndRewrite(Operation *op, ArrayRef<ValueRange> operands,
                                ConversionPatternRewriter &rewriter) const override {
    Type whole = splitTypeOf(op);
    if (!whole || !isPiecewise(op))
      return rewriter.notifyMatchFailure(op, "the op is not done piece by piece");
    SmallVector<SmallVector<Value>> results(op->getNumResults());
    for (auto [number, box] : llvm::enumerate(boxesOf(shapeOf(whole)))) {
      IRMapping pieces;
      for (auto [operand, values] : llvm::zip_equal(op->getOperands(), operands))
        pieces.map(operand, isSplit(operand.getType()) ? values[number] : values.front());
      Operation *made = op->clone(pieces);
      for (OpResult result : made->getResults())
        result.setType(typeOfPiece(result.getType(), box.shape));
      promisePiece(made, op, box);
      if (auto print = dyn_cast<PrintOp>(made))
        print.setFirst(llvm::to_vector_of<int32_t>(box.start));
      rewriter.insert(made);
      for (auto [pieces, result] : llvm::zip_equal(results, made->getResults()))
        pieces.push_back(result);
    }
    rewriter.replaceOpWithMultiple(op, std::move(results));
    return success();
  }
};

/// A type becomes those of its pieces.
void addPieces(TypeConverter &converter) {
  converter.addConversion(
      [](Type type) -> std::optional<Type> { return isSplit(type) ? std::nullopt : std::optional(type); });
  converter.addConversion([](RankedTensorType type, SmallVectorImpl<Type> &pieces) -> std::optional<LogicalResult> {
    if (!isSplit(type))
      return std::nullopt;
    for (const Box &box : boxesOf(type.getShape()))
      pieces.push_back(typeOfPiece(type, box.shape));
    return success();
  });
}

// --- what is refused ---

LogicalResult checkReshape(ReshapeOp op) {
  auto from = op.getSource().getType(), to = op.getType();
  if (boxesOfReshape(shapeOf(from), shapeOf(to), mostBoxes) < mostBoxes)
    return success();
  InFlightDiagnostic diagnostic = op.emitError("expected a reshape that keeps runs of elements together, but got ")
                                  << from << " as " << to;
  diagnostic.attachNote()
      << "sizes that are no powers of two are cut into powers of two; here they are cut into more than " << mostBoxes
      << " parts";
  return diagnostic;
}

LogicalResult check(Operation *op) {
  Type type = splitTypeOf(op);
  if (!type)
    return success();
  if (auto reshape = dyn_cast<ReshapeOp>(op))
    return checkReshape(reshape);
  if (isPiecewise(op) || isa_and_nonnull<scf::SCFDialect>(op->getDialect()) ||
      isa<arith::ConstantOp, MakeRangeOp, SplatOp, ExpandDimsOp, BroadcastOp, PermuteOp, JoinOp, SplitOp, DotOp,
          ReduceOp, ScanOp, GatherOp, HistogramOp>(op))
    return success();
  InFlightDiagnostic diagnostic = op->emitError("expected sizes that are powers of two for '")
                                  << op->getName() << "', but got " << type;
  diagnostic.attachNote() << "take the next power of two and mask what lies beyond";
  return diagnostic;
}

struct SplitSizes : weft::tile::impl::TileSplitSizesBase<SplitSizes> {
  void runOnOperation() final {
    bool any = false;
    WalkResult checked = getOperation().walk([&](Operation *op) {
      any |= splitTypeOf(op) != nullptr;
      return failed(check(op)) ? WalkResult::interrupt() : WalkResult::advance();
    });
    if (checked.wasInterrupted())
      return signalPassFailure();
    if (!any)
      return markAllAnalysesPreserved();
    TypeConverter converter;
    addPieces(converter);
    RewritePatternSet patterns(&getContext());
    patterns.add<SplitPiecewise>(converter, &getContext());
    populateSplitShapeOps(converter, patterns);
    populateSplitCombiningOps(converter, patterns);
    ConversionTarget target(getContext());
    target.markUnknownOpDynamicallyLegal([&](Operation *op) { return converter.isLegal(op); });
    scf::populateSCFStructuralTypeConversionsAndLegality(converter, patterns, target);
    if (failed(applyPartialConversion(getOperation(), target, std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Matrix products, reductions and scans: verifiers, and sums that products begin with. The constraints C1, C2, ... are
// those of TileComputeOps.td.
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"

using namespace mlir;
using namespace weft::tile;

/// The accumulator types that products of `operand` may be summed in.
static bool isAccumulatorOf(Type operand, Type accumulator) {
  if (operand.isF16() || isa<Float8E4M3FNType, Float8E5M2Type>(operand))
    return accumulator.isF32() || accumulator.isF16();
  if (operand.isBF16() || operand.isF32())
    return accumulator.isF32();
  if (operand.isF64())
    return accumulator.isF64();
  return operand.isInteger(8) && accumulator.isInteger(32);
}

LogicalResult DotOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType()), b = cast<RankedTensorType>(getB().getType());
  auto acc = cast<RankedTensorType>(getAcc().getType());
  if (a.getRank() != 2 || b.getRank() != 2 || acc.getRank() != 2)
    return emitOpError() << "expected matrices, but got " << a << ", " << b << " and " << acc;
  int64_t batch = getBatch(), m = a.getDimSize(0), k = a.getDimSize(1), n = b.getDimSize(1);
  if (batch < 1 || m % batch || n % batch)
    return emitOpError() << "expected rows of 'a' and columns of 'b' of " << batch << " products, but got " << m
                         << " and " << n;
  m /= batch;
  n /= batch;
  if (b.getDimSize(0) != k)
    return emitOpError() << "expected as many rows of 'b' as columns of 'a', " << k << ", but got " << b.getDimSize(0);
  if (acc.getDimSize(0) != batch * m || acc.getDimSize(1) != n)
    return emitOpError() << "expected an accumulator of shape [" << batch * m << ", " << n << "], but got " << acc;
  bool isDouble = a.getElementType().isF64();
  int64_t leastM = isDouble ? 8 : 16, leastK = isDouble ? 4 : 8;
  if (m < leastM || n < 8 || k < leastK)
    return emitOpError() << "expected M of at least " << leastM << ", N of at least 8 and K of at least " << leastK
                         << ", but got M = " << m << ", N = " << n << ", K = " << k;
  if (a.getElementType() != b.getElementType())
    return emitOpError() << "expected operands of one element type, but got " << a.getElementType() << " and "
                         << b.getElementType();
  if (!isAccumulatorOf(a.getElementType(), acc.getElementType()))
    return emitOpError() << "expected an accumulator that products of " << a.getElementType()
                         << " are summed in, but got " << acc.getElementType();
  if (batch > 1 &&
      !(llvm::isPowerOf2_64(batch) && llvm::isPowerOf2_64(m) && llvm::isPowerOf2_64(n) && llvm::isPowerOf2_64(k)))
    return emitOpError() << "expected several products to be of sizes that are powers of two, but got " << batch
                         << " of " << m << " × " << n << " × " << k;
  if (batch > 1 && (isa<Float8E4M3FNType, Float8E5M2Type>(a.getElementType()) ||
                    (a.getElementType().isF32() && getPrecision() == Precision::IEEE)))
    return emitOpError() << "expected several products to be of matrix instructions, but got "
                         << (a.getElementType().isF32() ? "those of 'ieee' precision" : "8-bit floats");
  return success();
}

/// Whether `op` may take place as late as `later`, an op of the same block: nothing between them touches memory, whose
/// order is the program's, and whose latency the product may hide.
static bool mayWaitUntil(Operation *op, Operation *later) {
  for (Operation *each = op->getNextNode(); each != later; each = each->getNextNode())
    if (each->getNumRegions() || !isMemoryEffectFree(each))
      return false;
  return true;
}

namespace {
/// What a product may begin with: the other operand of a sum, and where both are at hand.
struct Start {
  Value value;
  Operation *sum, *place;
};
} // namespace

/// What alone takes a product's elements, as they are or in another shape, as those of a batch are one after another.
static OpOperand *useOf(DotOp dot) {
  Value value = dot.getResult();
  while (value.hasOneUse() && isa<ReshapeOp, ExpandDimsOp>(*value.user_begin()))
    value = value.user_begin()->getResult(0);
  return value.hasOneUse() ? value.use_begin().getOperand() : nullptr;
}

/// The sum that a product, which begins at zero, enters and nothing else; nothing where it may not begin there.
static std::optional<Start> startOf(DotOp dot) {
  Type operand = getElementTypeOrSelf(dot.getA()), element = getElementTypeOrSelf(dot.getType());
  bool keepsSums = !isa<Float8E4M3FNType, Float8E5M2Type>(operand) && !element.isF16();
  bool isZero = matchPattern(dot.getAcc(), m_AnyZeroFloat()) || matchPattern(dot.getAcc(), m_Zero());
  OpOperand *use = useOf(dot);
  if (!keepsSums || !isZero || !use)
    return std::nullopt;
  Operation *sum = use->getOwner();
  if (!isa<arith::AddFOp, arith::AddIOp>(sum) || sum->getBlock() != dot->getBlock())
    return std::nullopt;
  Value other = sum->getOperand(1 - use->getOperandNumber());
  Operation *made = other.getDefiningOp();
  if (made && (made->hasTrait<OpTrait::ConstantLike>() || isa<SplatOp, BroadcastOp>(made)))
    return std::nullopt;
  if (!made || made->getBlock() != dot->getBlock() || made->isBeforeInBlock(dot))
    return Start{other, sum, dot};
  return mayWaitUntil(dot, sum) ? std::optional(Start{other, sum, sum}) : std::nullopt;
}

LogicalResult DotOp::canonicalize(DotOp dot, PatternRewriter &rewriter) {
  std::optional<Start> start = startOf(dot);
  if (!start)
    return rewriter.notifyMatchFailure(dot, "nothing is added that the product could begin with");
  rewriter.setInsertionPoint(start->place);
  auto shaped = [&](Value value, Type type) {
    return value.getType() == type ? value : ReshapeOp::create(rewriter, dot.getLoc(), type, value).getResult();
  };
  Value acc = shaped(start->value, dot.getType());
  auto whole = DotOp::create(rewriter, dot.getLoc(), dot.getA(), dot.getB(), acc, dot.getPrecision(), dot.getBatch());
  whole->setDiscardableAttrs(dot->getDiscardableAttrDictionary());
  rewriter.replaceOp(start->sum, shaped(whole.getResult(), start->sum->getResult(0).getType()));
  if (dot->use_empty())
    rewriter.eraseOp(dot);
  return success();
}

LogicalResult RowDotOp::verify() {
  auto a = cast<RankedTensorType>(getA().getType()), result = cast<RankedTensorType>(getType());
  if (a.getRank() != 2 || !(a.getElementType().isF16() || a.getElementType().isBF16()))
    return emitOpError() << "expected matrices of f16 or bf16, but got " << a;
  if (a.getDimSize(0) < 16 || a.getDimSize(1) < 16)
    return emitOpError() << "expected sizes of at least 16, but got " << a;
  if (result.getShape() != a.getShape().take_front() || !result.getElementType().isF32())
    return emitOpError() << "expected " << a.getDimSize(0) << " results of f32, but got " << result;
  return success();
}

/// Checks that a block of scalars takes and yields these types.
static LogicalResult verifyScalars(Operation *op, Block &block, ArrayRef<Type> arguments, ArrayRef<Type> yielded) {
  if (TypeRange(block.getArgumentTypes()) != TypeRange(arguments))
    return op->emitOpError() << "expected a region over (" << arguments << "), but got (" << block.getArgumentTypes()
                             << ")";
  auto yield = dyn_cast_or_null<YieldOp>(block.empty() ? nullptr : &block.back());
  if (!yield)
    return op->emitOpError() << "expected a region that ends in 'tile.yield'";
  // A tool that erases ops, as reducers do, leaves null operands, which the yield's own check reports.
  if (llvm::is_contained(yield.getValues(), Value()))
    return success();
  if (TypeRange(yield.getValues().getTypes()) != TypeRange(yielded))
    return op->emitOpError() << "expected a region that yields (" << yielded << "), but got ("
                             << yield.getValues().getTypes() << ")";
  return success();
}

/// Checks what a reduction and a scan share: a result for each source, one shape, an axis inside it, a combiner over
/// the element types.
static LogicalResult verifyCombining(Operation *op, ValueRange sources, int64_t axis, Region &combiner) {
  if (sources.empty())
    return op->emitOpError() << "expected at least one source, but got none";
  if (op->getNumResults() != sources.size())
    return op->emitOpError() << "expected as many results as sources, " << sources.size() << ", but got "
                             << op->getNumResults();
  auto first = cast<RankedTensorType>(sources.front().getType());
  for (Value source : sources)
    if (shapeOf(source.getType()) != first.getShape())
      return op->emitOpError() << "expected sources of one shape, but got " << first << " and " << source.getType();
  if (axis < 0 || axis >= first.getRank())
    return op->emitOpError() << "expected 'axis' between 0 and " << first.getRank() - 1 << ", but got " << axis;
  SmallVector<Type> elements;
  for (Value source : sources)
    elements.push_back(elementTypeOf(source.getType()));
  SmallVector<Type> arguments(elements);
  arguments.append(elements);
  return verifyScalars(op, combiner.front(), arguments, elements);
}

LogicalResult ReduceOp::verify() {
  int64_t axis = getAxisAttr().getInt();
  if (failed(verifyCombining(*this, getSources(), axis, getCombiner())))
    return failure();
  for (auto [source, result] : llvm::zip_equal(getSources(), getResults())) {
    SmallVector<int64_t> expected(shapeOf(source.getType()));
    expected.erase(expected.begin() + axis);
    Type type = result.getType();
    if (ArrayRef<int64_t>(expected) != shapeOf(type) || isa<RankedTensorType>(type) == expected.empty() ||
        elementTypeOf(type) != elementTypeOf(source.getType()))
      return emitOpError() << "expected a result of " << elementTypeOf(source.getType()) << " without axis " << axis
                           << " of " << source.getType() << ", but got " << type;
  }
  return success();
}

LogicalResult ScanOp::verify() {
  if (failed(verifyCombining(*this, getSources(), getAxisAttr().getInt(), getCombiner())))
    return failure();
  for (auto [source, result] : llvm::zip_equal(getSources(), getResults()))
    if (source.getType() != result.getType())
      return emitOpError() << "expected a result of type " << source.getType() << ", but got " << result.getType();
  return success();
}

LogicalResult MapOp::verify() {
  if (getSources().empty() || getResults().empty())
    return emitOpError() << "expected at least one source and one result, but got " << getSources().size() << " and "
                         << getNumResults();
  if (getPack() > 32 || !llvm::isPowerOf2_32(getPack()))
    return emitOpError() << "expected a number of packed elements that is a power of two up to 32, but got "
                         << getPack();
  ArrayRef<int64_t> shape = shapeOf(getSources().front().getType());
  SmallVector<Type> arguments, yielded;
  auto add = [&](TypeRange types, SmallVector<Type> &scalars) {
    for (Type type : types) {
      if (shapeOf(type) != shape)
        return emitOpError() << "expected sources and results of one shape, but got " << getSources().front().getType()
                             << " and " << type;
      scalars.append(getPack(), elementTypeOf(type));
    }
    return InFlightDiagnostic();
  };
  if (failed(add(getSources().getTypes(), arguments)) || failed(add(getResultTypes(), yielded)))
    return failure();
  return verifyScalars(*this, getBody().front(), arguments, yielded);
}

/// C4 of reduce, scan and map: the order in which a region runs, and how often, is not specified, so that it must do
/// nothing but compute.
static LogicalResult verifyNoEffects(Operation *op, Block &combiner) {
  for (Operation &inner : combiner)
    if (!isMemoryEffectFree(&inner)) {
      InFlightDiagnostic diagnostic = op->emitOpError()
                                      << "expected a region that neither reads nor writes memory, but got '"
                                      << inner.getName() << "'";
      diagnostic.attachNote(inner.getLoc()) << "the operation is here";
      return diagnostic;
    }
  return success();
}

LogicalResult ReduceOp::verifyRegions() { return verifyNoEffects(*this, getCombiner().front()); }
LogicalResult MapOp::verifyRegions() { return verifyNoEffects(*this, getBody().front()); }
LogicalResult ScanOp::verifyRegions() { return verifyNoEffects(*this, getCombiner().front()); }

namespace {
/// Where promises stand: nothing else reads or writes there, so that they stay and hinder nothing.
struct Promises : SideEffects::Resource::Base<Promises> {
  StringRef getName() final { return "Promises"; }
};
} // namespace

void AssumeOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), Promises::get());
}

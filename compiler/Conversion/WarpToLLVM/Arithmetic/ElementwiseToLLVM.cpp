// Part of Weft. SPDX-License-Identifier: Apache-2.0
// arith, on scalars and on tensors: one LLVM op for each register that is not a repetition.
//
//   %z = arith.addf %x, %y : tensor<64xf32, #l>     -->     %z0 = llvm.fadd %x0, %y0      #l has two registers
//                                                           %z1 = llvm.fadd %x1, %y1
//
// f16 arithmetic is native, of two neighbours at once (Pairs.h); bf16 is left to the back end, which goes through f32 or fma
// where the target lacks it.
// Division of f32 is `div.full` (at most 2 ulp), as in Triton. Products and sums are contracted to fma by the back end.

#include "compiler/Conversion/WarpToLLVM/Arithmetic/Casts.h"
#include "compiler/Conversion/WarpToLLVM/Arithmetic/LargeArguments.h"
#include "compiler/Conversion/WarpToLLVM/Arithmetic/Pairs.h"
#include "compiler/Conversion/WarpToLLVM/Arithmetic/WithNumber.h"
#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/UB/IR/UBOps.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace weft {
namespace {

/// x + y, or x - y, as the sum of what the threads differ in, which registers share, and of a number.
template <typename Target> Value sumOfParts(Value x, Value y, Emitter &e) {
  constexpr bool adds = std::is_same_v<Target, LLVM::AddOp>;
  WithNumber left(x), right(y);
  const bool isNumber = matchPattern(y, m_ConstantInt(&right.number)); // all of it: of all registers the base is one
  Value bases = isNumber ? left.base : Value(Target::create(e.b, e.loc, left.base, right.base));
  return WithNumber::plus(bases, adds ? left.number + right.number : left.number - right.number, e);
}

/// x times a number, likewise.
Value productOfParts(Value x, const APInt &factor, Emitter &e) {
  WithNumber parts(x);
  Value by = e.constant(IntegerAttr::get(x.getType(), factor));
  return WithNumber::plus(LLVM::MulOp::create(e.b, e.loc, parts.base, by), parts.number * factor, e);
}

/// Products of sums of what the threads differ in and of numbers by what is no number, a stride. Those of numbers are
/// sums of few, the stride times powers of two, which all threads share.
class ProductsByStride {
public:
  explicit ProductsByStride(Emitter &e) : e(e) {}
  Value of(Value index, Value stride) {
    WithNumber parts(index);
    return parts.number.isNegative() ? product(index, stride) : sum(parts.base, parts.number.getZExtValue(), stride);
  }

private:
  Value product(Value index, Value stride) { return LLVM::MulOp::create(e.b, e.loc, index, stride); }
  Value sum(Value base, uint64_t number, Value stride) {
    auto key = std::tuple(base.getAsOpaquePointer(), stride.getAsOpaquePointer(), number);
    if (auto found = sums.find(key); found != sums.end())
      return found->second;
    if (number == 0)
      return sums[key] = product(base, stride);
    const uint64_t lowest = number & -number;
    Value part = LLVM::ShlOp::create(e.b, e.loc, stride, e.i64(llvm::Log2_64(lowest)));
    return sums[key] = LLVM::AddOp::create(e.b, e.loc, sum(base, number - lowest, stride), part);
  }

  Emitter &e;
  std::map<std::tuple<void *, void *, uint64_t>, Value> sums;
};

/// Whether an address is made of an index, by way of other arithmetic on indices. Elsewhere, as where they are compared, LLVM
/// knows more of whole ones: which bits are the number's.
bool leadsToAddress(Value index) {
  constexpr unsigned enough = 8; // ops on the way
  SmallVector<Value> level{index};
  llvm::SmallPtrSet<Operation *, 16> seen;
  for (unsigned depth = 0; depth < enough && !level.empty(); ++depth) {
    SmallVector<Value> next;
    for (Value each : level)
      for (Operation *user : each.getUsers()) {
        if (isa<tile::AddPtrOp>(user))
          return true;
        bool isOfIndices =
            isa<arith::AddIOp, arith::SubIOp, arith::MulIOp, arith::ShLIOp, arith::ExtSIOp, tile::SplatOp,
                tile::ExpandDimsOp, tile::BroadcastOp, tile::PermuteOp, warp::ConvertLayoutOp>(user);
        if (isOfIndices && seen.insert(user).second)
          next.push_back(user->getResult(0));
      }
    level = std::move(next);
  }
  return false;
}

/// Whether an op's registers may be taken apart: where it promises nothing of the whole, there are several, and they are of
/// addresses.
template <typename Op> bool mayTakeApart(Op op) {
  return op.getOverflowFlags() == arith::IntegerOverflowFlags::none && *registerCount(op.getType()) > 1 &&
         leadsToAddress(op.getResult());
}

template <typename Source, typename Target> LogicalResult lowerSum(Source op, Emitter &e) {
  auto flags = static_cast<LLVM::IntegerOverflowFlags>(op.getOverflowFlags());
  const bool apart = mayTakeApart(op);
  return e.perRegister(op, [&](ArrayRef<Value> in) -> Value {
    return apart ? sumOfParts<Target>(in[0], in[1], e) : Value(Target::create(e.b, e.loc, in[0], in[1], flags));
  });
}

LogicalResult lowerProduct(arith::MulIOp op, Emitter &e) {
  auto flags = static_cast<LLVM::IntegerOverflowFlags>(op.getOverflowFlags());
  const bool apart = mayTakeApart(op);
  ProductsByStride byStride(e);
  return e.perRegister(op, [&](ArrayRef<Value> in) -> Value {
    APInt factor;
    if (apart && matchPattern(in[1], m_ConstantInt(&factor)))
      return productOfParts(in[0], factor, e);
    if (apart && in[1].getType().isInteger(64) && isa_and_nonnull<LLVM::SExtOp>(in[1].getDefiningOp()))
      return byStride.of(in[0], in[1]);
    return LLVM::MulOp::create(e.b, e.loc, in[0], in[1], flags);
  });
}

LogicalResult lowerShift(arith::ShLIOp op, Emitter &e) {
  auto flags = static_cast<LLVM::IntegerOverflowFlags>(op.getOverflowFlags());
  const bool apart = mayTakeApart(op);
  return e.perRegister(op, [&](ArrayRef<Value> in) -> Value {
    APInt distance;
    if (apart && matchPattern(in[1], m_ConstantInt(&distance)) && distance.ult(distance.getBitWidth()))
      return productOfParts(in[0], APInt::getOneBitSet(distance.getBitWidth(), distance.getZExtValue()), e);
    return LLVM::ShlOp::create(e.b, e.loc, in[0], in[1], flags);
  });
}

LogicalResult lowerConstant(arith::ConstantOp op, Emitter &e) {
  TypedAttr value = op.getValue();
  if (auto elements = dyn_cast<DenseElementsAttr>(value)) {
    if (!elements.isSplat())
      return op.emitOpError("of unequal elements cannot be lowered");
    value = cast<TypedAttr>(elements.getSplatValue<Attribute>());
  }
  Type type = registerType(op.getType());
  if (auto number = dyn_cast<FloatAttr>(value); number && isa<IntegerType>(type)) // f8, held as its bits
    value = IntegerAttr::get(type, number.getValue().bitcastToAPInt());
  else if (auto number = dyn_cast<IntegerAttr>(value); number && number.getType() != type) // index
    value = IntegerAttr::get(type, number.getValue().sextOrTrunc(type.getIntOrFloatBitWidth()));
  e.bind(op.getResult(), Registers(*registerCount(op.getType()), e.constant(value)));
  return success();
}

/// A value that canonicalisation found to be unused in effect. Zero, so that no register is read before it is written.
LogicalResult lowerPoison(ub::PoisonOp op, Emitter &e) {
  e.bind(op.getResult(), Registers(*registerCount(op.getType()), e.zero(registerType(op.getType()))));
  return success();
}

LogicalResult lowerDivision(arith::DivFOp op, Emitter &e) {
  Type type = registerType(op.getType()), f32 = e.b.getF32Type();
  return e.perRegister(op, [&](ArrayRef<Value> in) -> Value {
    if (type.isF64())
      return LLVM::FDivOp::create(e.b, e.loc, in[0], in[1]);
    Value quotient = e.intrinsic("llvm.nvvm.div.full", f32, {extendToF32(in[0], e), extendToF32(in[1], e)});
    return truncateFromF32(quotient, type, e);
  });
}

LogicalResult lowerRemainder(arith::RemFOp op, Emitter &e) {
  Type type = registerType(op.getType());
  return e.perRegister(op, [&](ArrayRef<Value> in) -> Value {
    if (type.isF64())
      return remainderOf(in[0], in[1], e);
    return truncateFromF32(remainderOf(extendToF32(in[0], e), extendToF32(in[1], e), e), type, e);
  });
}

LogicalResult lowerCompareInt(arith::CmpIOp op, Emitter &e) {
  auto predicate = static_cast<LLVM::ICmpPredicate>(op.getPredicate()); // the two enumerations are in the same order
  return e.perRegister(
      op, [&](ArrayRef<Value> in) -> Value { return LLVM::ICmpOp::create(e.b, e.loc, predicate, in[0], in[1]); });
}

LogicalResult lowerCompareFloat(arith::CmpFOp op, Emitter &e) {
  auto predicate = static_cast<LLVM::FCmpPredicate>(op.getPredicate()); // the two enumerations are in the same order
  return e.perRegister(
      op, [&](ArrayRef<Value> in) -> Value { return LLVM::FCmpOp::create(e.b, e.loc, predicate, in[0], in[1]); });
}

/// `condition` so that LLVM takes it as it is: it would make two selects of one by "a and b", where the machine
/// combines predicates in the comparisons. Frozen where it is made, for all that use it: LLVM would bring each there, and
/// look through the whole block each time.
Value asOneCondition(Value condition, Emitter &e) {
  Operation *op = condition.getDefiningOp();
  if (!isa_and_nonnull<LLVM::AndOp, LLVM::OrOp>(op))
    return condition;
  for (Operation *user : op->getUsers())
    if (isa<LLVM::FreezeOp>(user))
      return user->getResult(0);
  OpBuilder::InsertionGuard guard(e.b);
  e.b.setInsertionPointAfter(op);
  auto frozen = LLVM::FreezeOp::create(e.b, e.loc, condition);
  condition.replaceAllUsesExcept(frozen, frozen);
  return frozen;
}

/// A select whose condition may be one i1 for a whole tensor.
LogicalResult lowerSelect(arith::SelectOp op, Emitter &e) {
  ArrayRef<Value> conditions = e.registers(op.getCondition());
  ArrayRef<Value> yes = e.registers(op.getTrueValue()), no = e.registers(op.getFalseValue());
  bool single = !isa<RankedTensorType>(op.getCondition().getType());
  assert(yes.size() == no.size() && (single || conditions.size() == yes.size()) &&
         "the op's verifier asks for equal types");
  Registers results;
  for (unsigned r = 0; r < yes.size(); ++r)
    results.push_back(LLVM::SelectOp::create(e.b, e.loc, asOneCondition(conditions[single ? 0 : r], e), yes[r], no[r]));
  e.bind(op.getResult(), results);
  return success();
}

/// The high half of a product, and the low one, in twice the width.
template <typename Op, typename Extend> LogicalResult lowerWideProduct(Op op, Emitter &e) {
  ArrayRef<Value> lhs = e.registers(op.getLhs()), rhs = e.registers(op.getRhs());
  Type type = registerType(op.getLhs().getType());
  unsigned width = type.getIntOrFloatBitWidth();
  Type wide = e.b.getIntegerType(2 * width);
  Value distance = e.constant(IntegerAttr::get(wide, width));
  Registers low, high;
  for (unsigned r = 0; r < lhs.size(); ++r) {
    Value product = LLVM::MulOp::create(e.b, e.loc, Extend::create(e.b, e.loc, wide, lhs[r]),
                                        Extend::create(e.b, e.loc, wide, rhs[r]));
    low.push_back(LLVM::TruncOp::create(e.b, e.loc, type, product));
    high.push_back(LLVM::TruncOp::create(e.b, e.loc, type, LLVM::LShrOp::create(e.b, e.loc, product, distance)));
  }
  e.bind(op.getLow(), low);
  e.bind(op.getHigh(), high);
  return success();
}

/// index, which is 64 bits wide, to and from other integers.
LogicalResult lowerIndexCast(Operation *op, bool isSigned, Emitter &e) {
  Type type = registerType(op->getResult(0).getType());
  return e.perRegister(op, [&](ArrayRef<Value> in) { return resizeInteger(in[0], type, isSigned, e); });
}

} // namespace

void addElementwiseLowerings(LoweringTable &table) {
  table.add<arith::AddIOp>(lowerSum<arith::AddIOp, LLVM::AddOp>);
  table.add<arith::SubIOp>(lowerSum<arith::SubIOp, LLVM::SubOp>);
  table.add<arith::MulIOp>(lowerProduct);
  table.add<arith::ShLIOp>(lowerShift);
  addDirect<arith::DivSIOp, LLVM::SDivOp>(table);
  addDirect<arith::DivUIOp, LLVM::UDivOp>(table);
  addDirect<arith::RemSIOp, LLVM::SRemOp>(table);
  addDirect<arith::RemUIOp, LLVM::URemOp>(table);
  addDirect<arith::AndIOp, LLVM::AndOp>(table);
  addDirect<arith::OrIOp, LLVM::OrOp>(table);
  addDirect<arith::XOrIOp, LLVM::XOrOp>(table);
  addDirect<arith::ShRSIOp, LLVM::AShrOp>(table);
  addDirect<arith::ShRUIOp, LLVM::LShrOp>(table);
  addDirect<arith::MaxSIOp, LLVM::SMaxOp>(table);
  addDirect<arith::MinSIOp, LLVM::SMinOp>(table);
  addDirect<arith::MaxUIOp, LLVM::UMaxOp>(table);
  addDirect<arith::MinUIOp, LLVM::UMinOp>(table);
  addPaired<arith::AddFOp, LLVM::FAddOp>(table);
  addPaired<arith::SubFOp, LLVM::FSubOp>(table);
  addPaired<arith::MulFOp, LLVM::FMulOp>(table);
  table.add<arith::RemFOp>(lowerRemainder);
  addPaired<arith::NegFOp, LLVM::FNegOp>(table);
  addPaired<arith::MaximumFOp, LLVM::MaximumOp>(table); // NaN if either is: max.NaN
  addPaired<arith::MinimumFOp, LLVM::MinimumOp>(table);
  addPaired<arith::MaxNumFOp, LLVM::MaxNumOp>(table); // the other where one is NaN: max
  addPaired<arith::MinNumFOp, LLVM::MinNumOp>(table);
  table.add<arith::ConstantOp>(lowerConstant);
  table.add<ub::PoisonOp>(lowerPoison);
  table.add<arith::DivFOp>(lowerDivision);
  table.add<arith::CmpIOp>(lowerCompareInt);
  table.add<arith::CmpFOp>(lowerCompareFloat);
  table.add<arith::SelectOp>(lowerSelect);
  table.add<arith::MulSIExtendedOp>(lowerWideProduct<arith::MulSIExtendedOp, LLVM::SExtOp>);
  table.add<arith::MulUIExtendedOp>(lowerWideProduct<arith::MulUIExtendedOp, LLVM::ZExtOp>);
  table.add<arith::IndexCastOp>([](arith::IndexCastOp op, Emitter &e) { return lowerIndexCast(op, true, e); });
  table.add<arith::IndexCastUIOp>([](arith::IndexCastUIOp op, Emitter &e) { return lowerIndexCast(op, false, e); });
  addCastLowerings(table);
}

} // namespace weft

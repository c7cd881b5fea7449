// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The table of registers, constants, and where a thread is. See Emitter.h.

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;
using weft::warp::InDim;
using weft::warp::LinearLayout;

namespace weft {

Emitter::Emitter(LLVM::LLVMFuncOp function, const TargetInfo &target, Warps warps, const LoweringTable &table)
    : b(function.getContext()), loc(function.getLoc()), target(target), warps(warps.ofSchedule),
      addedWarps(warps.added), cluster(warps.cluster), kernel(function), table(table) {
  b.setInsertionPointToEnd(&function.getBody().front());
  entryEnd = LLVM::UndefOp::create(b, loc, b.getI1Type());
}

ArrayRef<Value> Emitter::registers(Value value) const { return values.lookup(value); }

void Emitter::bind(Value value, ArrayRef<Value> registers) { values[value] = registers.copy(storage); }

/// Whether every value that `op` makes has registers; reports the one that has none.
static LogicalResult checkResults(Operation *op) {
  for (Type type : op->getResultTypes()) {
    if (!registerType(type))
      return op->emitOpError("has a result of type ") << type << ", which has no place in registers";
    if (!registerCount(type))
      return op->emitOpError("has a result of type ") << type << " without a layout; run 'tile-to-warp' before";
  }
  return success();
}

/// Reports an op that computes with 8-bit floats, whose registers are integers to LLVM; a sign is but a bit of them.
static LogicalResult checkOperands(Operation *op) {
  if (!isa<arith::ArithDialect, math::MathDialect>(op->getDialect()) ||
      isa<CastOpInterface, arith::SelectOp, math::AbsFOp>(op))
    return success();
  for (Type type : op->getOperandTypes())
    if (Type element = getElementTypeOrSelf(type); isa<Float8E4M3FNType, Float8E5M2Type>(element))
      return op->emitOpError("expected elements to compute with, but got ") << element << "; widen them before";
  return success();
}

LogicalResult Emitter::lower(Operation *op) {
  const Lowering *lowering = table.find(op);
  loc = op->getLoc();
  if (!lowering)
    return op->emitOpError("cannot be lowered to LLVM");
  if (failed(checkResults(op)) || failed(checkOperands(op)))
    return failure();
  assert(llvm::none_of(op->getOperands(), [&](Value operand) { return registers(operand).empty(); }) &&
         "types of results are checked, and arguments of blocks have the types of their op's operands or results");
  return (*lowering)(op, *this);
}

LogicalResult Emitter::lowerBody(Block &block) {
  for (Operation &op : block.without_terminator())
    if (failed(lower(&op)))
      return failure();
  loc = block.getTerminator()->getLoc();
  return success();
}

std::optional<Registers> Emitter::inlineBlock(Block &block, ArrayRef<Value> arguments) {
  Location outer = loc;
  for (auto [parameter, argument] : llvm::zip_equal(block.getArguments(), arguments))
    bind(parameter, argument);
  if (failed(lowerBody(block)))
    return std::nullopt;
  Registers results;
  for (Value value : block.getTerminator()->getOperands()) {
    assert(registers(value).size() == 1 && "the op's verifier asks for scalars");
    results.push_back(scalar(value));
  }
  loc = outer;
  return results;
}

Value Emitter::constant(TypedAttr value) {
  // i1 true and i32 1 are different attributes, f32 0.0 and -0.0 too: the attribute alone is the key.
  Value &known = constants[value];
  if (!known)
    known = atEntry([&] { return LLVM::ConstantOp::create(b, kernel.getLoc(), value.getType(), value).getResult(); });
  return known;
}

Value Emitter::i32(int64_t value) { return constant(b.getI32IntegerAttr(static_cast<int32_t>(value))); }
Value Emitter::i64(int64_t value) { return constant(b.getI64IntegerAttr(value)); }
Value Emitter::i1(bool value) { return constant(b.getIntegerAttr(b.getI1Type(), value)); }

Value Emitter::zero(Type type) {
  if (isa<LLVM::LLVMPointerType>(type))
    return LLVM::ZeroOp::create(b, loc, type);
  return constant(cast<TypedAttr>(b.getZeroAttr(type)));
}

Value Emitter::thread() {
  if (!threadIndex)
    threadIndex = atEntry([&]() -> Value {
      auto range = LLVM::ConstantRangeAttr::get(b.getContext(), APInt(32, 0), APInt(32, 32 * (warps + addedWarps)));
      return NVVM::ThreadIdXOp::create(b, kernel.getLoc(), b.getI32Type(), range);
    });
  return threadIndex;
}

Value Emitter::productsSoFar() {
  if (!products)
    products = atEntry([&]() -> Value {
      Value place = LLVM::AllocaOp::create(b, kernel.getLoc(), LLVM::LLVMPointerType::get(b.getContext()),
                                           b.getI32Type(), i32(1));
      LLVM::StoreOp::create(b, kernel.getLoc(), i32(0), place);
      return place;
    });
  return products;
}

Value Emitter::lane() { return xorOfBits({1, 2, 4, 8, 16}, {}); }

Value Emitter::warp() {
  SmallVector<uint32_t> bases;
  for (unsigned bit = 0; (1u << bit) < warps; ++bit)
    bases.push_back(1u << bit);
  return xorOfBits({}, bases);
}

namespace {
/// The bits of the thread index that move by the same distance: (thread & mask) << distance.
struct ShiftedBits {
  int distance;
  uint32_t mask;
};
} // namespace

/// How the xor of bases is made from shifts of the thread index: one term for each distance.
static SmallVector<ShiftedBits> groupByDistance(ArrayRef<uint32_t> bases) {
  std::map<int, uint32_t> masks;
  for (auto [in, base] : llvm::enumerate(bases))
    for (unsigned out = 0; out < 32; ++out)
      if (base >> out & 1)
        masks[static_cast<int>(out) - static_cast<int>(in)] |= 1u << in;
  return llvm::map_to_vector(masks, [](auto &entry) { return ShiftedBits{entry.first, entry.second}; });
}

static uint32_t shifted(uint32_t value, int distance) { return distance >= 0 ? value << distance : value >> -distance; }

/// The xor of the bases of the set bits of `value`, which has no others.
static Value xorOfShifts(OpBuilder &b, Location loc, Value value, ArrayRef<uint32_t> bases, uint32_t allBits,
                         llvm::function_ref<Value(uint32_t)> constant) {
  uint32_t used = 0;
  Value total;
  for (ShiftedBits part : groupByDistance(bases)) {
    Value term = value;
    if (part.mask != allBits)
      term = LLVM::AndOp::create(b, loc, value, constant(part.mask));
    if (part.distance > 0)
      term = LLVM::ShlOp::create(b, loc, term, constant(part.distance));
    else if (part.distance < 0)
      term = LLVM::LShrOp::create(b, loc, term, constant(-part.distance));
    uint32_t bits = shifted(part.mask, part.distance);
    if (!total)
      total = term;
    else if ((used & bits) == 0)
      total = LLVM::OrOp::create(b, loc, total, term, /*isDisjoint=*/true);
    else
      total = LLVM::XOrOp::create(b, loc, total, term);
    used |= bits;
  }
  return total ? total : constant(0);
}

Value Emitter::xorOfBases(Value value, ArrayRef<uint32_t> bases) {
  return xorOfShifts(b, loc, value, bases, (1u << bases.size()) - 1, [&](uint32_t number) { return i32(number); });
}

Value Emitter::xorOfBits(ArrayRef<uint32_t> laneBases, ArrayRef<uint32_t> warpBases) {
  std::vector<uint32_t> bases(laneBases.begin(), laneBases.end());
  bases.resize(5, 0);
  bases.insert(bases.end(), warpBases.begin(), warpBases.end());
  while (!bases.empty() && bases.back() == 0)
    bases.pop_back();
  if (bases.empty())
    return i32(0);
  if (auto known = bitSums.find(bases); known != bitSums.end())
    return known->second;

  Value tid = thread();
  Value sum = atEntry([&] {
    return xorOfShifts(b, kernel.getLoc(), tid, bases, 32 * warps - 1, [&](uint32_t number) { return i32(number); });
  });
  return bitSums[bases] = sum;
}

/// Coordinates along `axis` of the bases of `dim`.
static SmallVector<uint32_t> coordinatesOf(const LinearLayout &layout, InDim dim, unsigned axis) {
  return llvm::map_to_vector(layout.bases(dim),
                             [&](uint32_t base) { return static_cast<uint32_t>(layout.delinearize(base)[axis]); });
}

Value Emitter::coordinate(const LinearLayout &layout, unsigned axis) {
  return xorOfBits(coordinatesOf(layout, InDim::Lane, axis), coordinatesOf(layout, InDim::Warp, axis));
}

Value Emitter::coordinate(const LinearLayout &layout, unsigned axis, uint32_t reg) {
  Value base = coordinate(layout, axis);
  auto own = static_cast<uint32_t>(layout.delinearize(layout.apply(InDim::Register, reg))[axis]);
  if (own == 0)
    return base;
  uint32_t taken = 0;
  for (InDim dim : {InDim::Lane, InDim::Warp})
    for (uint32_t bits : coordinatesOf(layout, dim, axis))
      taken |= bits;
  if (taken == 0)
    return i32(own);
  if ((taken & own) != 0)
    return LLVM::XOrOp::create(b, loc, base, i32(own));
  return LLVM::AddOp::create(b, loc, base, i32(own), LLVM::IntegerOverflowFlags::nsw | LLVM::IntegerOverflowFlags::nuw);
}

Value Emitter::isOwner(const LinearLayout &layout) {
  uint32_t mask = warp::repeatedThreadBits(layout, warps);
  if (mask == 0)
    return {};
  Value bits = LLVM::AndOp::create(b, loc, thread(), i32(mask));
  return LLVM::ICmpOp::create(b, loc, LLVM::ICmpPredicate::eq, bits, i32(0));
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Pointers, loads, stores and atomics: verifiers, effects and the text of loads and stores. The constraints C1, C2, ...
// are those of TileMemoryOps.td.
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/IR/BuiltinAttributes.h"

using namespace mlir;
using namespace weft::tile;

/// Checks that `type` is `element`, or a tensor of it, in the shape of the pointers.
static LogicalResult verifyLikePointers(Operation *op, StringRef what, Type type, Type pointers, Type element) {
  Type expected = withElementType(pointers, element);
  if (type == expected)
    return success();
  return op->emitOpError() << "expected " << what << " of type " << expected << ", but got " << type;
}

static LogicalResult verifyMask(Operation *op, Value mask, Type pointers) {
  if (!mask)
    return success();
  return verifyLikePointers(op, "a mask", mask.getType(), pointers, IntegerType::get(op->getContext(), 1));
}

static LogicalResult verifyAddressCast(Operation *op, Type pointers, Type integers) {
  return verifyLikePointers(op, "an address", integers, pointers, IntegerType::get(op->getContext(), 64));
}

LogicalResult AddPtrOp::verify() {
  Type pointers = getPtr().getType(), offset = getOffset().getType();
  return verifyLikePointers(*this, "an offset", offset, pointers, elementTypeOf(offset));
}

LogicalResult PtrToIntOp::verify() { return verifyAddressCast(*this, getSource().getType(), getResult().getType()); }
LogicalResult IntToPtrOp::verify() { return verifyAddressCast(*this, getResult().getType(), getSource().getType()); }

LogicalResult PtrCastOp::verify() {
  return verifyLikePointers(*this, "a result", getResult().getType(), getSource().getType(),
                            elementTypeOf(getResult().getType()));
}

// Load and store.

/// Parses `attr-dict : type` after the operands; the types of all operands follow from the pointer's.
template <typename MemoryOp> static ParseResult parseTail(OpAsmParser &parser, OperationState &state, Type &pointers) {
  SMLoc where = parser.getCurrentLocation();
  auto emitError = [&] { return parser.emitError(where) << "'" << state.name.getStringRef() << "' op "; };
  if (parser.parseOptionalAttrDict(state.attributes) ||
      failed(MemoryOp::verifyInherentAttrs(state.name, state.attributes, emitError)))
    return failure();
  where = parser.getCurrentLocation();
  if (parser.parseColonType(pointers))
    return failure();
  if (!isa<PointerType>(elementTypeOf(pointers)))
    return parser.emitError(where) << "expected a pointer or a tensor of pointers, but got " << pointers;
  return success();
}

ParseResult LoadOp::parse(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::UnresolvedOperand, 3> operands;
  SMLoc where = parser.getCurrentLocation();
  Type pointers;
  if (parser.parseOperandList(operands) || parseTail<LoadOp>(parser, state, pointers))
    return failure();
  if (operands.empty() || operands.size() > 3)
    return parser.emitError(where) << "expected a pointer, a mask and another value at most, but got "
                                   << operands.size() << " operands";
  Type result = withElementType(pointers, pointeeTypeOf(pointers));
  Type types[] = {pointers, withElementType(pointers, parser.getBuilder().getI1Type()), result};
  if (parser.resolveOperands(operands, ArrayRef(types).take_front(operands.size()), where, state.operands))
    return failure();
  llvm::copy(ArrayRef<int32_t>{1, operands.size() > 1, operands.size() > 2},
             state.getOrAddProperties<Properties>().operandSegmentSizes.begin());
  state.addTypes(result);
  return success();
}

/// Prints what `parse` reads: operands, attributes that are not the default ones, and the pointer's type.
template <typename Op> static void printAccess(Op op, OpAsmPrinter &printer, SmallVector<StringRef> elided) {
  printer << ' ' << op->getOperands();
  if (op.getCache() == CacheModifier::None)
    elided.push_back(op.getCacheAttrName());
  if (op.getEviction() == Eviction::Normal)
    elided.push_back(op.getEvictionAttrName());
  printer.printOptionalAttrDict(op->getAttrs(), elided);
  printer << " : " << op.getPtr().getType();
}

void LoadOp::print(OpAsmPrinter &printer) { printAccess(*this, printer, {getOperandSegmentSizesAttrName()}); }

/// What PTX lets one access say (PTX ISA 9.7.9.8, 9.7.9.11): a cache operator that it has, an eviction priority, or
/// that it is volatile.
template <typename Op>
static LogicalResult verifyPolicy(Op op, bool isVolatile, StringRef access, ArrayRef<CacheModifier> operators) {
  bool cached = op.getCache() != CacheModifier::None, evicted = op.getEviction() != Eviction::Normal;
  if (cached && !llvm::is_contained(operators, op.getCache()))
    return op.emitOpError() << "expected a cache operator of " << access << ", but got '"
                            << stringifyCacheModifier(op.getCache()) << "'";
  if (cached + evicted + isVolatile > 1)
    return op.emitOpError() << "expected one of a cache operator, an eviction priority and 'isVolatile', but got "
                            << cached + evicted + isVolatile;
  return success();
}

LogicalResult LoadOp::verify() {
  if (failed(verifyPolicy(*this, getIsVolatile(), "loads",
                          {CacheModifier::CA, CacheModifier::CG, CacheModifier::CS, CacheModifier::CV})))
    return failure();
  Type pointers = getPtr().getType();
  if (failed(verifyLikePointers(*this, "a result", getResult().getType(), pointers, pointeeTypeOf(pointers))) ||
      failed(verifyMask(*this, getMask(), pointers)))
    return failure();
  if (!getOther())
    return success();
  if (!getMask())
    return emitOpError() << "expected a mask beside 'other', but got none";
  return verifyLikePointers(*this, "'other'", getOther().getType(), pointers, pointeeTypeOf(pointers));
}

void LoadOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getPtrMutable());
  if (getIsVolatile())
    effects.emplace_back(MemoryEffects::Write::get(), &getPtrMutable());
}

ParseResult StoreOp::parse(OpAsmParser &parser, OperationState &state) {
  SmallVector<OpAsmParser::UnresolvedOperand, 3> operands;
  SMLoc where = parser.getCurrentLocation();
  Type pointers;
  if (parser.parseOperandList(operands) || parseTail<StoreOp>(parser, state, pointers))
    return failure();
  if (operands.size() < 2 || operands.size() > 3)
    return parser.emitError(where) << "expected a pointer, a value and a mask at most, but got " << operands.size()
                                   << " operands";
  Type types[] = {pointers, withElementType(pointers, pointeeTypeOf(pointers)),
                  withElementType(pointers, parser.getBuilder().getI1Type())};
  return parser.resolveOperands(operands, ArrayRef(types).take_front(operands.size()), where, state.operands);
}

void StoreOp::print(OpAsmPrinter &printer) { printAccess(*this, printer, {}); }

LogicalResult StoreOp::verify() {
  if (failed(verifyPolicy(*this, /*isVolatile=*/false, "stores",
                          {CacheModifier::WB, CacheModifier::CG, CacheModifier::CS, CacheModifier::WT})))
    return failure();
  Type pointers = getPtr().getType();
  if (failed(verifyLikePointers(*this, "a value", getValue().getType(), pointers, pointeeTypeOf(pointers))))
    return failure();
  return verifyMask(*this, getMask(), pointers);
}

void StoreOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Write::get(), &getPtrMutable());
}

// Atomics.

/// C3 of atomic_rmw: whether the hardware combines values of `element` by `kind`.
static bool isAtomicElement(AtomicKind kind, Type element) {
  bool wide =
      element.isIntOrFloat() && (element.getIntOrFloatBitWidth() == 32 || element.getIntOrFloatBitWidth() == 64);
  if (kind == AtomicKind::FAdd)
    return element.isF16() || element.isBF16() || element.isF32() || element.isF64();
  return wide && (kind == AtomicKind::Exchange || isa<IntegerType>(element));
}

static StringRef atomicElements(AtomicKind kind) {
  if (kind == AtomicKind::FAdd)
    return "floats of 16, 32 or 64 bits";
  return kind == AtomicKind::Exchange ? "integers or floats of 32 or 64 bits" : "integers of 32 or 64 bits";
}

LogicalResult AtomicRMWOp::verify() {
  Type pointers = getPtr().getType(), element = pointeeTypeOf(pointers);
  if (failed(verifyLikePointers(*this, "a value", getValue().getType(), pointers, element)) ||
      failed(verifyLikePointers(*this, "a result", getResult().getType(), pointers, element)) ||
      failed(verifyMask(*this, getMask(), pointers)))
    return failure();
  if (isAtomicElement(getKind(), element))
    return success();
  return emitOpError() << "expected " << atomicElements(getKind()) << " for '" << stringifyAtomicKind(getKind())
                       << "', but got " << element;
}

void AtomicRMWOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getPtrMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getPtrMutable());
}

LogicalResult AtomicCASOp::verify() {
  Type pointers = getPtr().getType(), element = pointeeTypeOf(pointers);
  for (Type type : {getCompare().getType(), getValue().getType(), getResult().getType()})
    if (failed(verifyLikePointers(*this, "operands and result", type, pointers, element)))
      return failure();
  if (!element.isIntOrFloat() || element.getIntOrFloatBitWidth() < 16)
    return emitOpError() << "expected values of 16, 32 or 64 bits, but got " << element;
  return success();
}

void AtomicCASOp::getEffects(SmallVectorImpl<SideEffects::EffectInstance<MemoryEffects::Effect>> &effects) {
  effects.emplace_back(MemoryEffects::Read::get(), &getPtrMutable());
  effects.emplace_back(MemoryEffects::Write::get(), &getPtrMutable());
}

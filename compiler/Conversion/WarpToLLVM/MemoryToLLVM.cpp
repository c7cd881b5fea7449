// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Addresses, loads and stores in device memory.
//
// Neighbouring registers that hold neighbouring elements are accessed as one vector, as wide as `warp.contiguity`
// promises (consecutive elements, an aligned first address and one mask for all of them). Unmasked accesses are LLVM's,
// masked ones predicated PTX:
//
//     { mov.b32 $0, $4; ... @$8 ld.global.v4.b32 {$0, $1, $2, $3}, [$9]; }
//
// Where several threads hold one element, one of them stores it, and one of them reads it where it is volatile: threads
// that read for themselves could find different values.

#include "compiler/Conversion/WarpToLLVM/HandRound.h"
#include "compiler/Conversion/WarpToLLVM/VectorAccess.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "dialects/Warp/Transforms/Accesses/UndefinedElements.h"

using namespace mlir;

namespace weft {
namespace {

/// "{$2, $3}" or "$2".
std::string registerList(unsigned first, unsigned count) {
  std::string text = count > 1 ? "{" : "";
  for (unsigned i = 0; i < count; ++i)
    text += (i ? ", $" : "$") + std::to_string(first + i);
  return text + (count > 1 ? "}" : "");
}

/// The qualifiers of a load or store between "ld.global" and its type (PTX ISA 9.7.9.8 and 9.7.9.11).
template <typename Op> std::string qualifiers(Op op) {
  std::string text;
  if (op.getCache() != tile::CacheModifier::None)
    text += "." + stringifyCacheModifier(op.getCache()).str();
  if (op.getEviction() != tile::Eviction::Normal)
    text += ".L1::" + stringifyEviction(op.getEviction()).str();
  return text;
}

bool isTrue(Value mask) {
  auto constant = mask.getDefiningOp<LLVM::ConstantOp>();
  auto value = constant ? dyn_cast<IntegerAttr>(constant.getValue()) : IntegerAttr();
  return value && value.getValue().isOne();
}

/// The conjunction of two conditions, either of which may be null.
Value both(Value lhs, Value rhs, Emitter &e) {
  return !lhs ? rhs : !rhs ? lhs : Value(LLVM::AndOp::create(e.b, e.loc, lhs, rhs));
}

Value alignedLoad(Type type, Value pointer, unsigned bytes, bool isVolatile, Emitter &e) {
  return LLVM::LoadOp::create(e.b, e.loc, type, pointer, bytes, isVolatile);
}

/// One vector loaded without a mask or qualifiers.
Registers plainLoad(Value pointer, unsigned width, Type memory, bool isVolatile, Emitter &e) {
  unsigned bytes = width * bytesOf(memory);
  if (width == 1)
    return {alignedLoad(memory, pointer, bytes, isVolatile, e)};
  bool pointers = isa<LLVM::LLVMPointerType>(memory);
  Value vector =
      alignedLoad(VectorType::get(width, pointers ? e.b.getI64Type() : memory), pointer, bytes, isVolatile, e);
  Registers result;
  for (unsigned i = 0; i < width; ++i)
    result.push_back(e.bitcast(LLVM::ExtractElementOp::create(e.b, e.loc, vector, e.i32(i)), memory));
  return result;
}

/// One vector loaded where `mask` (null: always) is true; `other` (empty: undefined) elsewhere.
Registers predicatedLoad(tile::LoadOp op, Value pointer, Value mask, ArrayRef<Value> other, unsigned width, Type memory,
                         Emitter &e) {
  Words words = wordsOf(width * bytesOf(memory), bytesOf(memory));
  std::string code = "{ ", constraints;
  Registers operands;
  for (unsigned w = 0; w < words.count; ++w)
    constraints += (w ? ",=" : "=") + words.constraint().str();
  auto operand = [&](Value value, StringRef constraint) {
    constraints += "," + constraint.str();
    operands.push_back(value);
    return "$" + std::to_string(words.count + operands.size() - 1);
  };
  if (mask) {
    // Where the program masks, words of lanes that load nothing are set, to `other` or to anything; elsewhere those
    // lanes get what another lane has loaded.
    if (other.empty() && op.getMask() && !op->hasAttr(warp::unreadElsewhereAttrName))
      code += warp::decidesAWay(op.getResult()) ? words.zeroCode() : words.undefinedCode();
    for (auto [w, start] : llvm::enumerate(other.empty() ? Registers() : toWords(other, words, e)))
      code += "mov.b" + std::to_string(std::max(16u, words.bits)) + " $" + std::to_string(w) + ", " +
              operand(start, words.constraint()) + "; ";
    code += "@" + operand(mask, "b") + " ";
  }
  code += std::string("ld") + (op.getIsVolatile() ? ".volatile" : "") + ".global" + qualifiers(op) + "." +
          words.accessType() + " " + registerList(0, words.count) + ", " + operand(pointer, "*m") + "; }";
  Registers loaded = e.inlineAsm(code, constraints, SmallVector<Type>(words.count, words.type(e)), operands,
                                 /*sideEffects=*/true);
  return fromWords(loaded, words, width, memory, e);
}

/// i1 is a byte in memory: a byte that is not zero is true.
Value fromMemory(Value value, Type type, Emitter &e) {
  return type.isInteger(1)
             ? Value(LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne, value, e.zero(value.getType())))
             : value;
}

Value toMemory(Value value, Type memory, Emitter &e) {
  return value.getType().isInteger(1) ? Value(LLVM::ZExtOp::create(e.b, e.loc, memory, value)) : value;
}

LogicalResult lowerLoad(tile::LoadOp op, Emitter &e) {
  Type type = registerType(op.getType()), memory = memoryType(tile::elementTypeOf(op.getType()));
  ArrayRef<Value> masks = op.getMask() ? e.registers(op.getMask()) : ArrayRef<Value>();
  ArrayRef<Value> others = op.getOther() ? e.registers(op.getOther()) : ArrayRef<Value>();
  Vectors vectors = cutIntoVectors(op, op.getPtr(), e);
  bool plain = qualifiers(op).empty();
  uint32_t repeated = op.getIsVolatile() ? sharedThreadBits(op.getPtr().getType(), e) : 0;
  Value owner = repeated || op->hasAttr(warp::ofOwnersAttrName) ? ownerOf(op.getPtr().getType(), e) : Value();

  Registers results(vectors.holders.size()), addresses = addressesOf(op, op.getPtr(), vectors.firstRegister, e);
  for (auto [first, address] : llvm::zip_equal(vectors.firstRegister, addresses)) {
    Value mask = both(masks.empty() || isTrue(masks[first]) ? Value() : masks[first], owner, e);
    Registers other;
    if (mask && !others.empty())
      for (Value value : others.slice(first, vectors.width))
        other.push_back(toMemory(value, memory, e));
    Registers loaded = !mask && plain ? plainLoad(address, vectors.width, memory, op.getIsVolatile(), e)
                                      : predicatedLoad(op, address, mask, other, vectors.width, memory, e);
    beforeHandingRound(repeated, e);
    for (auto [i, value] : llvm::enumerate(handRound(loaded, repeated, e)))
      results[first + i] = fromMemory(value, type, e);
  }
  for (auto [r, value] : llvm::enumerate(results))
    if (!value)
      value = results[vectors.holders[r]];
  e.bind(op.getResult(), results);
  return success();
}

void plainStore(Value pointer, ArrayRef<Value> elements, Emitter &e) {
  Type type = elements[0].getType();
  unsigned bytes = elements.size() * bytesOf(type);
  Value value = elements[0];
  if (elements.size() > 1) {
    Type integer = isa<LLVM::LLVMPointerType>(type) ? Type(e.b.getI64Type()) : type;
    value = LLVM::PoisonOp::create(e.b, e.loc, VectorType::get(elements.size(), integer));
    for (auto [i, element] : llvm::enumerate(elements))
      value = LLVM::InsertElementOp::create(e.b, e.loc, value, e.bitcast(element, integer), e.i32(i));
  }
  LLVM::StoreOp::create(e.b, e.loc, value, pointer, bytes);
}

void predicatedStore(tile::StoreOp op, Value pointer, ArrayRef<Value> elements, Value mask, Emitter &e) {
  unsigned elementBytes = bytesOf(elements[0].getType());
  Words words = wordsOf(elements.size() * elementBytes, elementBytes);
  Registers operands = toWords(elements, words, e);
  std::string constraints;
  for (unsigned w = 0; w < words.count; ++w)
    constraints += words.constraint().str() + ",";
  constraints += "*m";
  operands.push_back(pointer);
  std::string code = "st.global" + qualifiers(op) + "." + words.accessType() + " $" + std::to_string(words.count) +
                     ", " + registerList(0, words.count) + ";";
  if (mask) {
    code = "@$" + std::to_string(words.count + 1) + " " + code;
    constraints += ",b";
    operands.push_back(mask);
  }
  e.inlineAsm(code, constraints, {}, operands, /*sideEffects=*/true);
}

LogicalResult lowerStore(tile::StoreOp op, Emitter &e) {
  Type memory = memoryType(tile::elementTypeOf(op.getValue().getType()));
  ArrayRef<Value> values = e.registers(op.getValue());
  ArrayRef<Value> masks = op.getMask() ? e.registers(op.getMask()) : ArrayRef<Value>();
  Vectors vectors = cutIntoVectors(op, op.getPtr(), e);
  Value owner = ownerOf(op.getPtr().getType(), e);
  Registers addresses = addressesOf(op, op.getPtr(), vectors.firstRegister, e);
  for (auto [first, address] : llvm::zip_equal(vectors.firstRegister, addresses)) {
    Value mask = both(masks.empty() || isTrue(masks[first]) ? Value() : masks[first], owner, e);
    Registers elements;
    for (Value value : values.slice(first, vectors.width))
      elements.push_back(toMemory(value, memory, e));
    if (!mask && qualifiers(op).empty())
      plainStore(address, elements, e);
    else
      predicatedStore(op, address, elements, mask, e);
  }
  return success();
}

/// A 64-bit product by an argument of the kernel, a stride: null elsewhere.
struct StrideProduct {
  Value factor, stride;

  explicit StrideProduct(Value offset) {
    auto product = offset.getDefiningOp<LLVM::MulOp>();
    if (!product || !offset.getType().isInteger(64))
      return;
    for (auto [other, each] : {std::pair(product.getLhs(), product.getRhs()), {product.getRhs(), product.getLhs()}})
      if (auto argument = dyn_cast<BlockArgument>(each); argument && argument.getOwner()->isEntryBlock() &&
                                                         isa<LLVM::LLVMFuncOp>(argument.getOwner()->getParentOp())) {
        factor = other;
        stride = each;
        return;
      }
  }
  explicit operator bool() const { return bool(stride); }
};

/// Moves a pointer by a sum of which some terms are products by strides, term by term. Their other factor is scaled to
/// bytes, once for all tensors that it is a row or a page of, so that each address is one multiplication with addition.
/// Strides stay as they are: an instruction reads them where the kernel's arguments are, from no register. What is
/// summed in several places of one offset (x + x) is taken apart in one of them: there may be as many places as there
/// are paths.
class MoveByStrides {
public:
  MoveByStrides(Type element, Emitter &e) : element(element), e(e) {}

  /// Whether some term of a sum, or a number that is no sum, is a product by a stride.
  bool has(Value offset) {
    auto sum = offset.getDefiningOp<LLVM::AddOp>();
    if (!sum)
      return bool(StrideProduct(offset));
    if (auto known = sums.find(offset); known != sums.end())
      return known->second;
    bool found = has(sum.getLhs()) || has(sum.getRhs());
    sums[offset] = found;
    return found;
  }

  Value move(Value pointer, Value offset) {
    if (!has(offset))
      return LLVM::GEPOp::create(e.b, e.loc, pointer.getType(), element, pointer, ArrayRef<LLVM::GEPArg>{offset});
    if (StrideProduct product{offset}) {
      Value bytes = e.i64(static_cast<int64_t>(bytesOf(element)));
      Value scaled = LLVM::MulOp::create(e.b, e.loc, product.factor, bytes);
      return e.offset(pointer, LLVM::MulOp::create(e.b, e.loc, scaled, product.stride));
    }
    auto sum = offset.getDefiningOp<LLVM::AddOp>();
    Value first = sum.getLhs(), second = sum.getRhs();
    if (!has(first))
      std::swap(first, second);
    sums[offset] = false;
    return move(move(pointer, first), second);
  }

private:
  Type element;
  Emitter &e;
  llvm::DenseMap<Value, bool> sums; ///< whether they have such products, and are not taken apart yet
};

LogicalResult lowerAddPtr(tile::AddPtrOp op, Emitter &e) {
  Type element = memoryType(tile::pointeeTypeOf(op.getType()));
  bool isOwn = op.getOffset().hasOneUse(); // else a sum is one number, for all its users
  return e.perRegister(op, [&](ArrayRef<Value> in) -> Value {
    Value pointer = in[0], offset = in[1];
    bool apart = bytesOf(element) != 1 && (isOwn || !offset.getDefiningOp<LLVM::AddOp>());
    if (apart)
      return MoveByStrides(element, e).move(pointer, offset);
    return LLVM::GEPOp::create(e.b, e.loc, pointer.getType(), element, pointer, ArrayRef<LLVM::GEPArg>{offset});
  });
}

/// Ops on addresses that change the type alone.
template <typename Op> void addPointerCast(LoweringTable &table) {
  table.add<Op>([](Op op, Emitter &e) {
    Type type = registerType(op.getType());
    return e.perRegister(op, [&](ArrayRef<Value> in) { return e.bitcast(in[0], type); });
  });
}

} // namespace

Value ownerOf(Type type, Emitter &e) {
  if (isa<RankedTensorType>(type))
    return e.isOwner(layoutOf(type));
  return LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::eq, e.thread(), e.i32(0));
}

void addMemoryLowerings(LoweringTable &table) {
  table.add<tile::LoadOp>(lowerLoad);
  table.add<tile::StoreOp>(lowerStore);
  table.add<tile::AddPtrOp>(lowerAddPtr);
  addPointerCast<tile::PtrToIntOp>(table);
  addPointerCast<tile::IntToPtrOp>(table);
  addPointerCast<tile::PtrCastOp>(table);
}

} // namespace weft

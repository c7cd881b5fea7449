// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The pieces of code that several families emit: packing, shuffles, shared-memory addresses, inline PTX.

#include "compiler/Conversion/WarpToLLVM/VectorAccess.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/Matchers.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace weft {

LogicalResult Emitter::perRegister(Operation *op, llvm::function_ref<Value(ArrayRef<Value>)> emit) {
  SmallVector<ArrayRef<Value>> operands =
      llvm::map_to_vector(op->getOperands(), [&](Value operand) { return registers(operand); });
  unsigned count = *registerCount(op->getResult(0).getType()), arity = operands.size();
  assert(llvm::all_of(operands, [&](ArrayRef<Value> operand) { return operand.size() == count; }) &&
         "the ops' verifiers ask for operands in the result's layout");
  auto type = dyn_cast<RankedTensorType>(op->getResult(0).getType());
  uint32_t equal = type && count > 1 ? equalBits(op, layoutOf(type)) : 0;
  SmallVector<unsigned> holders = equal ? firstHolders(layoutOf(type), equal) : SmallVector<unsigned>();
  SmallVector<Value> tuples;
  tuples.reserve(count * arity); // the map below points into it
  llvm::DenseMap<ArrayRef<Value>, Value> known;
  Registers results;
  for (unsigned r = 0; r < count; ++r) {
    for (ArrayRef<Value> operand : operands)
      tuples.push_back(operand[equal ? holders[r] : r]);
    Value &result = known[ArrayRef(tuples).take_back(arity)];
    if (!result)
      result = emit(ArrayRef(tuples).take_back(arity));
    results.push_back(result);
  }
  bind(op->getResult(0), results);
  return success();
}

Value Emitter::intrinsic(StringRef name, Type result, ArrayRef<Value> operands) {
  return LLVM::CallIntrinsicOp::create(b, loc, result, b.getStringAttr(name), ValueRange(operands)).getResult(0);
}

SmallVector<Value> Emitter::inlineAsm(StringRef code, StringRef constraints, ArrayRef<Type> results,
                                      ArrayRef<Value> operands, bool sideEffects) {
  SmallVector<Type, 1> types;
  if (results.size() == 1)
    types.push_back(results.front());
  else if (results.size() > 1)
    types.push_back(LLVM::LLVMStructType::getLiteral(b.getContext(), results));
  auto call = LLVM::InlineAsmOp::create(b, loc, types, operands, code, constraints, sideEffects,
                                        /*is_align_stack=*/false, LLVM::TailCallKind::None,
                                        LLVM::AsmDialectAttr::get(b.getContext(), LLVM::AsmDialect::AD_ATT),
                                        /*operand_attrs=*/ArrayAttr());
  SmallVector<Value> values;
  if (results.size() == 1)
    values.push_back(call.getRes());
  else
    for (unsigned i = 0; i < results.size(); ++i)
      values.push_back(LLVM::ExtractValueOp::create(b, loc, call.getRes(), i));
  return values;
}

static unsigned bitWidth(Type type) {
  if (isa<LLVM::LLVMPointerType>(type))
    return 64;
  if (auto vector = dyn_cast<VectorType>(type))
    return vector.getNumElements() * vector.getElementTypeBitWidth();
  return type.getIntOrFloatBitWidth();
}

Value Emitter::bitcast(Value value, Type type) {
  if (value.getType() == type)
    return value;
  if (isa<LLVM::LLVMPointerType>(type))
    return LLVM::IntToPtrOp::create(b, loc, type, value);
  if (isa<LLVM::LLVMPointerType>(value.getType()))
    return bitcast(LLVM::PtrToIntOp::create(b, loc, b.getI64Type(), value), type);
  return LLVM::BitcastOp::create(b, loc, type, value);
}

/// The word of 32 bits of which `parts` are the bits from the lowest on, by shifts and truncations; null otherwise.
static Value truncatedFrom(ArrayRef<Value> parts) {
  Value word;
  for (auto [i, part] : llvm::enumerate(parts)) {
    auto cast = part.getDefiningOp<LLVM::BitcastOp>();
    auto low = (cast ? cast.getArg() : part).getDefiningOp<LLVM::TruncOp>();
    if (!low || !low.getArg().getType().isInteger(32))
      return {};
    Value source = low.getArg();
    Operation *shift = source.getDefiningOp();
    APInt places(32, 0);
    if (isa_and_nonnull<LLVM::LShrOp, LLVM::AShrOp>(shift) &&
        matchPattern(shift->getOperand(1), m_ConstantInt(&places)))
      source = shift->getOperand(0);
    if (places != i * bitWidth(part.getType()) || (word && source != word))
      return {};
    word = source;
  }
  return parts.size() * bitWidth(parts.front().getType()) == 32 ? word : Value();
}

Value Emitter::unpackedFrom(ArrayRef<Value> parts) {
  if (Value word = truncatedFrom(parts))
    return word;
  Value vector;
  int64_t first = 0;
  for (auto [i, part] : llvm::enumerate(parts)) {
    auto extract = part.getDefiningOp<LLVM::ExtractElementOp>();
    auto index = extract ? extract.getPosition().getDefiningOp<LLVM::ConstantOp>() : LLVM::ConstantOp();
    auto position = index ? dyn_cast<IntegerAttr>(index.getValue()) : IntegerAttr();
    if (!position || (vector && extract.getVector() != vector))
      return {};
    vector = extract.getVector();
    if (i == 0)
      first = position.getInt();
    if (position.getInt() != first + static_cast<int64_t>(i))
      return {};
  }
  int64_t count = parts.size(), all = cast<VectorType>(vector.getType()).getNumElements();
  if (first % count != 0 || all % count != 0 || bitWidth(vector.getType()) != 32 * (all / count))
    return {};
  auto cast = vector.getDefiningOp<LLVM::BitcastOp>();
  if (all == count)
    return cast && cast.getArg().getType().isInteger(32) ? cast.getArg() : bitcast(vector, b.getI32Type());
  return LLVM::ExtractElementOp::create(b, loc, bitcast(vector, VectorType::get(all / count, b.getI32Type())),
                                        i32(first / count));
}

Value Emitter::pack(ArrayRef<Value> parts) {
  Type type = parts.front().getType();
  if (Value word = unpackedFrom(parts))
    return word;
  if (parts.size() == 1)
    return bitcast(parts.front(), b.getI32Type());
  Value vector = LLVM::PoisonOp::create(b, loc, VectorType::get(parts.size(), type));
  for (auto [i, part] : llvm::enumerate(parts))
    vector = LLVM::InsertElementOp::create(b, loc, vector, part, i32(i));
  return bitcast(vector, b.getI32Type());
}

SmallVector<Value> Emitter::unpack(Value word, Type type) {
  unsigned count = 32 / bitWidth(type);
  if (count == 1)
    return {bitcast(word, type)};
  Value vector = bitcast(word, VectorType::get(count, type));
  SmallVector<Value> parts;
  for (unsigned i = 0; i < count; ++i)
    parts.push_back(LLVM::ExtractElementOp::create(b, loc, vector, i32(i)));
  return parts;
}

Value Emitter::shuffle(Value value, Value operand, NVVM::ShflKind kind, unsigned clamp) {
  auto exchange = [&](Value word) -> Value {
    return NVVM::ShflOp::create(b, loc, b.getI32Type(), i32(-1), word, operand, i32(clamp), kind, UnitAttr());
  };
  Type type = value.getType(), word = b.getI32Type();
  unsigned width = bitWidth(type);
  if (width == 32)
    return bitcast(exchange(bitcast(value, word)), type);
  Type integer = b.getIntegerType(width);
  Value bits = bitcast(value, integer);
  if (width < 32) {
    Value moved = exchange(LLVM::ZExtOp::create(b, loc, word, bits));
    return bitcast(LLVM::TruncOp::create(b, loc, integer, moved), type);
  }
  Type pair = VectorType::get(2, word);
  Value halves = bitcast(bits, pair);
  SmallVector<Value, 2> moved;
  for (unsigned i = 0; i < 2; ++i)
    moved.push_back(exchange(LLVM::ExtractElementOp::create(b, loc, halves, i32(i))));
  // One instruction, which LLVM would spell as two extensions, a shift and an or.
  return bitcast(inlineAsm("mov.b64 $0, {$1, $2};", "=l,r,r", integer, moved, /*sideEffects=*/false).front(), type);
}

Value Emitter::shuffleXor(Value value, unsigned mask) { return shuffle(value, i32(mask), NVVM::ShflKind::bfly, 31); }
Value Emitter::shuffleIndex(Value value, Value source) { return shuffle(value, source, NVVM::ShflKind::idx, 31); }
Value Emitter::shuffleUp(Value value, unsigned delta) { return shuffle(value, i32(delta), NVVM::ShflKind::up, 0); }
Value Emitter::shuffleDown(Value value, unsigned delta) { return shuffle(value, i32(delta), NVVM::ShflKind::down, 31); }

void Emitter::barrier(bool withProducer) {
  // A count of threads and a number: barrier 0 is that of both programs.
  if (addedWarps)
    NVVM::BarrierOp::create(b, loc, TypeRange(), i32(withProducer ? 0 : 1),
                            i32(int64_t(target.warpSize) * (warps + withProducer)), NVVM::BarrierReductionAttr(),
                            Value());
  else if (warps == 1)
    NVVM::SyncWarpOp::create(b, loc, i32(-1));
  else
    NVVM::Barrier0Op::create(b, loc);
}

void Emitter::barrierOfBegin(bool arrives) {
  const int number = barrierOfBeginning, threads = target.warpSize * int(warps + 1);
  inlineAsm(llvm::formatv("bar.{0} {1}, {2};", arrives ? "arrive" : "sync", number, threads).str(), "~{memory}", {}, {},
            /*sideEffects=*/true);
}

void Emitter::barrierWhere(Value where, bool withProducer) {
  std::string code = "@$0 bar.sync 0;";
  if (addedWarps)
    code =
        ("@$0 bar.sync " + Twine(withProducer ? 0 : 1) + ", " + Twine(target.warpSize * (warps + withProducer)) + ";")
            .str();
  else if (warps == 1)
    code = "@$0 bar.warp.sync -1;";
  inlineAsm(code, "b,~{memory}", {}, {where}, /*sideEffects=*/true);
}

void Emitter::barrierOfCluster() {
  NVVM::ClusterArriveOp::create(b, loc, b.getUnitAttr());
  NVVM::ClusterWaitOp::create(b, loc, b.getUnitAttr());
}

void Emitter::arriveAtBlock(Value address, Value block, Value acts) {
  const std::string guard = acts ? "@$1 " : "";
  const std::string code = "{ .reg .b32 there; " + guard + "mapa.shared::cluster.u32 there, $0, " +
                           (acts ? "$2; " : "$1; ") + guard +
                           "mbarrier.arrive.release.cluster.shared::cluster.b64 _, [there]; }";
  SmallVector<Value, 3> operands{address};
  if (acts)
    operands.push_back(acts);
  operands.push_back(block);
  inlineAsm(code, acts ? "r,b,r,~{memory}" : "r,r,~{memory}", {}, operands, /*sideEffects=*/true);
}

/// The symbol of the block's dynamic shared memory, declared once in the module. 128 bytes: a full line of banks; more
/// where matrix instructions of warpgroups read patterns of lines.
static LLVM::GlobalOp sharedSymbol(ModuleOp module, const TargetInfo &target) {
  constexpr StringLiteral name = "weft_shared";
  int64_t alignment = target.warpgroups.families.size() ? target.warpgroups.tileAlignment : 128;
  if (auto known = module.lookupSymbol<LLVM::GlobalOp>(name))
    return known;
  OpBuilder b(module.getBodyRegion());
  auto type = LLVM::LLVMArrayType::get(b.getI8Type(), 0);
  return LLVM::GlobalOp::create(b, module.getLoc(), type, /*isConstant=*/false, LLVM::Linkage::External, name,
                                Attribute(), alignment, /*addrSpace=*/3);
}

Value Emitter::sharedPointer(int64_t byteOffset) {
  if (!sharedBase)
    sharedBase = atEntry([&]() -> Value {
      return LLVM::AddressOfOp::create(b, kernel.getLoc(), sharedSymbol(kernel->getParentOfType<ModuleOp>(), target));
    });
  return offset(sharedBase, byteOffset);
}

Value Emitter::offset(Value pointer, Value bytes) {
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer, ArrayRef<LLVM::GEPArg>{bytes});
}

Value Emitter::offset(Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return LLVM::GEPOp::create(b, loc, pointer.getType(), b.getI8Type(), pointer,
                             ArrayRef<LLVM::GEPArg>{LLVM::GEPArg(static_cast<int32_t>(bytes))});
}

} // namespace weft

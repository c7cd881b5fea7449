// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/WarpToLLVM/SharedAccess.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;
using weft::warp::InDim;
using weft::warp::SharedAccess;

namespace weft {

SmallVector<Apart, 2> apartIn(warp::SharedType shared) {
  if (!shared.getMargin())
    return {};
  const int64_t line = shared.getLineBytes(), run = line * shared.getShape()[shared.getShape().size() - 2];
  SmallVector<Apart, 2> apart;
  if (shared.getLinePitch() != line)
    apart.push_back({llvm::Log2_64(line), shared.getLinePitch() - line});
  if (shared.getRuns() > 1)
    apart.push_back({llvm::Log2_64(run), shared.getMarginBytes()});
  return apart;
}

int64_t placeOf(uint32_t offset, ArrayRef<Apart> apart) {
  int64_t place = offset;
  for (const Apart &each : apart)
    place += int64_t(offset >> each.bit) * each.bytes;
  return place;
}

void keepWithinLines(SharedAccess &access, warp::SharedType shared) {
  const size_t bits = shared.getMargin() ? llvm::Log2_64(shared.getShape().back()) : access.pieceBits.size();
  if (access.pieceBits.size() > bits)
    access.pieceBits.resize(bits);
}

TileAddress::TileAddress(Emitter &emitter, Value base, ArrayRef<uint32_t> laneBases, ArrayRef<uint32_t> warpBases,
                         ArrayRef<Apart> apart)
    : emitter(emitter), base(base), variable(emitter.xorOfBits(laneBases, warpBases)), apart(apart) {
  // Constants at the end of the base go to the end of every address.
  while (auto step = this->base.getDefiningOp<LLVM::GEPOp>()) {
    auto index = dyn_cast<IntegerAttr>(step.getIndices()[0]);
    if (!index)
      break;
    this->base = step.getBase();
    constantBytes += index.getInt();
  }
  for (ArrayRef<uint32_t> bases : {laneBases, warpBases})
    for (uint32_t bits : bases)
      variableBits |= bits;
}

Value TileAddress::at(uint32_t constant) {
  uint32_t mixed = constant & variableBits;
  Value &pointer = pointers[mixed];
  if (!pointer) {
    Value bytes = variable;
    if (mixed)
      bytes = LLVM::XOrOp::create(emitter.b, emitter.loc, bytes, emitter.i32(mixed));
    Value place = bytes;
    for (const Apart &each : apart) {
      if (!(variableBits >> each.bit))
        continue;
      Value count = LLVM::LShrOp::create(emitter.b, emitter.loc, bytes, emitter.i32(each.bit));
      Value more = LLVM::MulOp::create(emitter.b, emitter.loc, count, emitter.i32(each.bytes));
      place = LLVM::AddOp::create(emitter.b, emitter.loc, place, more);
    }
    pointer = variableBits ? emitter.offset(base, place) : base;
  }
  return emitter.offset(pointer, constantBytes + placeOf(constant & ~variableBits, apart));
}

Value computedHere(Emitter &emitter, Value value) {
  // LLVM moves no code that may have side effects.
  Type type = emitter.b.getI32Type();
  return emitter.inlineAsm("mov.b32 $0, $1;", "=r,r", {type}, {value}, /*sideEffects=*/true)[0];
}

void TileAddress::computeHere() {
  if (variableBits)
    variable = computedHere(emitter, variable);
  pointers.clear();
}

/// The type that an element has in shared memory: an integer of whole bytes.
static Type storedType(Emitter &emitter, Type element) {
  return emitter.b.getIntegerType(8 * warp::elementBytes(element));
}

SmallVector<uint32_t> inBytes(ArrayRef<uint32_t> offsets, unsigned elementBytes) {
  return llvm::map_to_vector(offsets, [&](uint32_t offset) { return offset * elementBytes; });
}

static SmallVector<SharedPiece> piecesOf(const SharedAccess &access) {
  uint32_t inside = access.offsets.freeBits()[InDim::Register]; // repeated registers are left out
  for (unsigned bit : access.pieceBits)
    inside |= 1u << bit;
  SmallVector<SharedPiece> pieces;
  for (uint32_t first = 0; first < access.offsets.size(InDim::Register); ++first) {
    if (first & inside)
      continue;
    SharedPiece piece{{}, access.offsets.apply(InDim::Register, first)};
    for (unsigned element = 0; element < access.pieceElements(); ++element) {
      unsigned reg = first;
      for (auto [position, bit] : llvm::enumerate(access.pieceBits))
        reg |= (element >> position & 1) << bit;
      piece.registers.push_back(reg);
    }
    pieces.push_back(piece);
  }
  return pieces;
}

static TileAddress addressesOf(Emitter &emitter, Value base, const SharedAccess &access, unsigned bytes,
                               ArrayRef<Apart> apart = {}) {
  return TileAddress(emitter, base, inBytes(access.offsets.bases(InDim::Lane), bytes),
                     inBytes(access.offsets.bases(InDim::Warp), bytes), apart);
}

void shareRepeated(const warp::LinearLayout &offsets, MutableArrayRef<Value> registers) {
  llvm::DenseMap<uint32_t, Value> known;
  for (auto [reg, value] : llvm::enumerate(registers))
    if (value)
      known.try_emplace(offsets.apply(InDim::Register, reg), value);
  for (auto [reg, value] : llvm::enumerate(registers))
    if (!value)
      value = known.lookup(offsets.apply(InDim::Register, reg));
}

void predicatedStore(Emitter &emitter, Value value, Value pointer, unsigned bytes, Value predicate) {
  OpBuilder &b = emitter.b;
  unsigned words = std::max(1u, bytes / 4), bits = 8 * bytes / words;
  SmallVector<Value> operands;
  if (words == 1) {
    Value whole = emitter.bitcast(value, b.getIntegerType(bits));
    // PTX has no registers of 8 bits: a byte travels in 16.
    operands.push_back(bits == 8 ? LLVM::ZExtOp::create(b, emitter.loc, b.getI16Type(), whole).getResult() : whole);
  } else {
    Value vector = emitter.bitcast(value, VectorType::get(words, b.getI32Type()));
    for (unsigned word = 0; word < words; ++word)
      operands.push_back(LLVM::ExtractElementOp::create(b, emitter.loc, vector, emitter.i32(word)));
  }
  std::string list, constraints;
  for (unsigned word = 0; word < words; ++word) {
    list += (word ? ", $" : "$") + std::to_string(word);
    constraints += bits == 32 ? "r," : "h,";
  }
  operands.push_back(pointer); // prints with its brackets, and a constant at its end as an immediate offset
  operands.push_back(predicate);
  std::string type = words > 1 ? "v" + std::to_string(words) + ".b32" : "b" + std::to_string(bits);
  std::string code = "@$" + std::to_string(words + 1) + " st.shared." + type + " $" + std::to_string(words) + ", " +
                     (words > 1 ? "{" + list + "}" : list) + ";";
  emitter.inlineAsm(code, constraints + "*m,b,~{memory}", {}, operands, /*sideEffects=*/true);
}

void emitSharedStore(Emitter &emitter, Value base, const SharedAccess &access, ArrayRef<Value> registers, bool here,
                     ArrayRef<Apart> apart) {
  OpBuilder &b = emitter.b;
  Type element = registers.front().getType(), stored = element;
  bool widens = element.isInteger() && element.getIntOrFloatBitWidth() < 8;
  if (widens || isa<LLVM::LLVMPointerType>(element))
    stored = isa<LLVM::LLVMPointerType>(element) ? Type(b.getI64Type()) : storedType(emitter, element);
  unsigned bytes = stored.getIntOrFloatBitWidth() / 8;
  TileAddress addresses = addressesOf(emitter, base, access, bytes, apart);
  if (here)
    addresses.computeHere();
  Value owner = emitter.isOwner(access.offsets);
  for (const SharedPiece &piece : piecesOf(access)) {
    SmallVector<Value> values;
    for (unsigned reg : piece.registers)
      values.push_back(widens ? LLVM::ZExtOp::create(b, emitter.loc, stored, registers[reg]).getResult()
                              : emitter.bitcast(registers[reg], stored));
    Value value = values.front();
    if (values.size() > 1) {
      value = LLVM::PoisonOp::create(b, emitter.loc, VectorType::get(values.size(), stored));
      for (auto [index, part] : llvm::enumerate(values))
        value = LLVM::InsertElementOp::create(b, emitter.loc, value, part, emitter.i32(index));
    }
    Value pointer = addresses.at(piece.offset * bytes);
    if (owner)
      predicatedStore(emitter, value, pointer, bytes * values.size(), owner);
    else
      LLVM::StoreOp::create(b, emitter.loc, value, pointer, bytes * values.size());
  }
}

bool isInLoopOfManyStores(Operation *op) {
  constexpr int64_t many = 8;
  auto loop = op->getParentOfType<scf::ForOp>();
  int64_t stores = 0;
  if (loop)
    loop.walk(
        [&](Operation *each) { stores += isa<warp::StoreSharedOp>(each) || each->hasAttr(warp::scratchAttrName); });
  return stores >= many;
}

Registers emitSharedLoad(Emitter &emitter, Value base, const SharedAccess &access, Type element, bool here) {
  unsigned bytes = isa<LLVM::LLVMPointerType>(element) ? 8 : warp::elementBytes(element);
  TileAddress addresses = addressesOf(emitter, base, access, bytes);
  if (here)
    addresses.computeHere();
  return emitSharedLoad(emitter, access, element, [&](uint32_t offset) { return addresses.at(offset * bytes); });
}

/// Reads a piece into its registers.
static void loadPiece(Emitter &emitter, const SharedPiece &piece, Type element, Value address,
                      MutableArrayRef<Value> registers) {
  OpBuilder &b = emitter.b;
  bool narrows = element.isInteger() && element.getIntOrFloatBitWidth() < 8;
  Type stored = narrows                               ? storedType(emitter, element)
                : isa<LLVM::LLVMPointerType>(element) ? Type(b.getI64Type())
                                                      : element;
  unsigned bytes = stored.getIntOrFloatBitWidth() / 8, count = piece.registers.size();
  Type type = count > 1 ? Type(VectorType::get(count, stored)) : stored;
  Value value = LLVM::LoadOp::create(b, emitter.loc, type, address, bytes * count);
  for (auto [index, reg] : llvm::enumerate(piece.registers)) {
    Value part =
        count > 1 ? LLVM::ExtractElementOp::create(b, emitter.loc, value, emitter.i32(index)).getResult() : value;
    registers[reg] =
        narrows ? LLVM::TruncOp::create(b, emitter.loc, element, part).getResult() : emitter.bitcast(part, element);
  }
}

Registers emitSharedLoad(Emitter &emitter, const SharedAccess &access, Type element, AddressAt addressAt) {
  Registers registers(access.offsets.size(InDim::Register));
  for (const SharedPiece &piece : piecesOf(access))
    loadPiece(emitter, piece, element, addressAt(piece.offset), registers);
  shareRepeated(access.offsets, registers);
  return registers;
}

PieceReader::PieceReader(Emitter &emitter, Value base, const SharedAccess &access, Type element)
    : emitter(emitter), addresses(addressesOf(emitter, base, access, warp::elementBytes(element))), element(element),
      pieces(piecesOf(access)), registers(access.offsets.size(InDim::Register)) {
  llvm::DenseMap<uint32_t, Place> placeAt;
  for (auto [index, piece] : llvm::enumerate(pieces))
    for (unsigned reg : piece.registers)
      placeAt[access.offsets.apply(InDim::Register, reg)] = {static_cast<unsigned>(index), reg};
  for (unsigned reg = 0; reg < registers.size(); ++reg)
    places.push_back(placeAt.at(access.offsets.apply(InDim::Register, reg)));
}

Value PieceReader::at(unsigned reg) {
  const Place &place = places[reg];
  if (!registers[place.reg]) {
    const SharedPiece &piece = pieces[place.piece];
    loadPiece(emitter, piece, element, addresses.at(piece.offset * warp::elementBytes(element)), registers);
  }
  return registers[place.reg];
}

unsigned operandBits(Value tensor) {
  unsigned bits = 0;
  for (OpOperand &use : tensor.getUses()) {
    bool takesTwo = isa<warp::MmaOp, tile::RowDotOp>(use.getOwner());
    if (takesTwo && use.getOperandNumber() < 2)
      bits = std::max(bits, use.getOperandNumber() == 0 ? 2u : 1u);
  }
  return bits;
}

Registers emitMatrixLoad(Emitter &e, const warp::MatrixAccess &access, const warp::LinearLayout &offsets, Type element,
                         AddressAt addressAt, llvm::function_ref<Value(Value, uint32_t)> finish) {
  unsigned count = access.matrices();
  std::string name =
      ("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x" + Twine(count) + (access.transposed ? ".trans" : "") + ".b16.p3").str();
  Type word = e.b.getI32Type();
  Type result =
      count == 1 ? word : Type(LLVM::LLVMStructType::getLiteral(e.b.getContext(), SmallVector<Type>(count, word)));
  Registers registers(offsets.size(InDim::Register));
  for (uint32_t first : access.first) {
    Value words = e.intrinsic(name, result, {addressAt(offsets.apply(InDim::Register, first))});
    for (unsigned matrix = 0; matrix < count; ++matrix) {
      Value one = count == 1 ? words : LLVM::ExtractValueOp::create(e.b, e.loc, words, matrix).getResult();
      uint32_t reg = access.registerAt(first, matrix);
      llvm::copy(e.unpack(finish ? finish(one, reg) : one, element), registers.begin() + reg);
    }
  }
  shareRepeated(offsets, registers);
  return registers;
}

Registers emitPairedLoad(Emitter &e, const warp::PairedAccess &paired, const warp::LinearLayout &offsets, Type element,
                         AddressAt addressAt) {
  constexpr uint32_t ofPair[] = {0x6420, 0x7531}; // the lower and the upper bytes of two words' pairs
  SmallVector<Value> words(paired.pairs.size(InDim::Register));
  emitMatrixLoad(e, paired.matrices, paired.pairs, e.b.getIntegerType(16), addressAt, [&](Value word, uint32_t reg) {
    words[reg] = word;
    return word;
  });
  Registers registers(offsets.size(InDim::Register));
  const uint32_t upper = 1u << paired.pairBit, left = offsets.freeBits()[InDim::Register] | 3 | upper;
  for (uint32_t reg = 0; reg < registers.size(); ++reg) {
    if (reg & left)
      continue;
    uint32_t first = (reg & (upper - 1)) | (reg >> 1 & ~(upper - 1));
    for (uint32_t odd : {0, 1}) {
      Value word =
          e.intrinsic("llvm.nvvm.prmt", e.b.getI32Type(), {words[first], words[first | 2], e.i32(ofPair[odd])});
      llvm::copy(e.unpack(word, element), registers.begin() + (reg | odd * upper));
    }
  }
  shareRepeated(offsets, registers);
  return registers;
}

void emitMatrixStore(Emitter &e, const warp::MatrixAccess &access, const warp::LinearLayout &offsets,
                     ArrayRef<Value> registers, AddressAt addressAt) {
  unsigned count = access.matrices();
  std::string name =
      ("llvm.nvvm.stmatrix.sync.aligned.m8n8.x" + Twine(count) + (access.transposed ? ".trans" : "") + ".b16.p3").str();
  for (uint32_t first : access.first) {
    SmallVector<Value, 5> operands{addressAt(offsets.apply(InDim::Register, first))};
    for (unsigned matrix = 0; matrix < count; ++matrix)
      operands.push_back(e.pack(registers.slice(access.registerAt(first, matrix), size_t(1) << access.packedBits)));
    LLVM::CallIntrinsicOp::create(e.b, e.loc, e.b.getStringAttr(name), operands);
  }
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See VectorAccess.h.

#include "compiler/Conversion/WarpToLLVM/VectorAccess.h"
#include "compiler/Support/Remarks.h"
#include "dialects/Tile/IR/TileDialect.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "llvm/ADT/SmallSet.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using weft::warp::InDim;
using weft::warp::LinearLayout;

namespace weft {

Type memoryType(Type element) {
  Type type = registerType(element);
  return type.isInteger(1) ? IntegerType::get(element.getContext(), 8) : type;
}

unsigned bytesOf(Type memory) { return isa<LLVM::LLVMPointerType>(memory) ? 8 : memory.getIntOrFloatBitWidth() / 8; }

SmallVector<unsigned> firstHolders(const LinearLayout &layout, uint32_t equal) {
  llvm::DenseMap<uint32_t, unsigned> first;
  SmallVector<unsigned> holders;
  for (unsigned r = 0; r < layout.size(InDim::Register); ++r)
    holders.push_back(first.try_emplace(layout.apply(InDim::Register, r) & ~equal, r).first->second);
  return holders;
}

/// The most low register bits that walk along one axis from 0, as a number of elements.
static unsigned consecutiveRegisters(const LinearLayout &layout) {
  ArrayRef<uint32_t> bases = layout.bases(InDim::Register);
  for (unsigned axis = 0; axis < layout.rank(); ++axis) {
    unsigned count = 0;
    for (uint32_t base : bases) {
      SmallVector<int64_t> expected(layout.rank(), 0);
      expected[axis] = int64_t(1) << count;
      if (expected[axis] >= layout.shape()[axis] || layout.linearize(expected) != base)
        break;
      ++count;
    }
    if (count > 0)
      return 1u << count;
  }
  return 1;
}

std::string instructionsText(size_t count) {
  return std::to_string(count) + (count == 1 ? " instruction" : " instructions");
}

/// How many neighbours are known to be side by side in memory, and aligned.
static unsigned promisedOf(Operation *op) {
  auto contiguity = op->getAttrOfType<IntegerAttr>(warp::contiguityAttrName);
  return contiguity ? llvm::bit_floor(static_cast<uint32_t>(std::max<int64_t>(1, contiguity.getInt()))) : 1;
}

Vectors vectorsOf(Operation *op, Value pointer, unsigned widest) {
  if (!isa<RankedTensorType>(pointer.getType()))
    return {1, {0}, {0}};
  const LinearLayout &layout = layoutOf(pointer.getType());
  Vectors vectors{std::min({promisedOf(op), widest, consecutiveRegisters(layout)}),
                  {},
                  firstHolders(layout, equalBits(op, layout))};
  for (unsigned r = 0; r < layout.size(InDim::Register); r += vectors.width)
    if (vectors.holders[r] == r)
      vectors.firstRegister.push_back(r);
  return vectors;
}

Vectors cutIntoVectors(Operation *op, Value pointer, Emitter &e) {
  const unsigned bytes = bytesOf(memoryType(tile::pointeeTypeOf(pointer.getType())));
  const unsigned widest = std::max(1u, e.target.vectorBytes / bytes);
  Vectors vectors = vectorsOf(op, pointer, widest);
  if (!isa<RankedTensorType>(pointer.getType()))
    return vectors;
  unsigned held = llvm::bit_floor(
      static_cast<unsigned>(llvm::SmallSet<unsigned, 8>(vectors.holders.begin(), vectors.holders.end()).size()));
  if (vectors.width < std::min(held, widest))
    remarks::missed(remarks::vectorWidth, op)
        << remark::reason("a thread accesses {0} of the {1} elements that one instruction could: {2}", vectors.width,
                          std::min(held, widest),
                          promisedOf(op) == vectors.width ? "no more are known to be neighbours in memory, and aligned"
                                                          : "the layout gives the thread no more neighbours");
  if (auto remark = remarks::decided(remarks::access, op))
    remark << remark::reason("a thread {0} {1} by {2} of {3} bytes", op->getNumResults() > 0 ? "loads" : "stores",
                             tile::textOf(pointer.getType()), instructionsText(vectors.firstRegister.size()),
                             vectors.width * bytes);
  return vectors;
}

/// The longest run of an access: the bits of an element's row-major number that say where in its run it is, but for
/// those that depend on the thread; and how far neighbours' numbers are apart.
struct Run {
  uint32_t bits = 0, stride = 1;
};
static Run longestRun(const LinearLayout &layout, ArrayRef<int32_t> runs) {
  Run run;
  int32_t longest = 1;
  uint32_t stride = 1;
  for (unsigned axis = layout.rank(); axis-- > 0;) {
    if (runs[axis] > longest) {
      longest = runs[axis];
      run = {warp::bitsOfRun(longest, stride, layout.shape()[axis]), stride};
    }
    stride *= layout.shape()[axis];
  }
  for (InDim dim : {InDim::Lane, InDim::Warp, InDim::Block})
    for (uint32_t basis : layout.bases(dim))
      run.bits &= ~basis;
  return run;
}

Registers addressesOf(Operation *op, Value pointer, ArrayRef<unsigned> registers, Emitter &e) {
  ArrayRef<Value> pointers = e.registers(pointer);
  auto runs = op->getAttrOfType<DenseI32ArrayAttr>(warp::runsAttrName);
  if (!runs || !isa<RankedTensorType>(pointer.getType()))
    return llvm::map_to_vector(registers, [&](unsigned r) { return pointers[r]; });
  const LinearLayout &layout = layoutOf(pointer.getType());
  Type element = memoryType(tile::pointeeTypeOf(pointer.getType()));
  Run run = longestRun(layout, runs);
  llvm::DenseMap<uint32_t, unsigned> firstOfRun;
  Registers addresses;
  for (unsigned r : registers) {
    uint32_t at = layout.apply(InDim::Register, r);
    unsigned first = firstOfRun.try_emplace(at & ~run.bits, r).first->second;
    int32_t steps = int32_t(at & run.bits) - int32_t(layout.apply(InDim::Register, first) & run.bits);
    Value address = pointers[first];
    if (first != r)
      address = LLVM::GEPOp::create(e.b, e.loc, address.getType(), element, address,
                                    ArrayRef<LLVM::GEPArg>{steps / int32_t(run.stride)});
    addresses.push_back(address);
  }
  return addresses;
}

Words wordsOf(unsigned bytes, unsigned elementBytes) {
  unsigned bits = elementBytes == 8 ? 64 : std::min(32u, 8 * bytes);
  return {8 * bytes / bits, bits};
}

std::string Words::accessType() const {
  return (count > 1 ? "v" + std::to_string(count) + "." : "") + "b" + std::to_string(bits);
}

std::string Words::undefinedCode() const {
  // The product of a register that nothing writes and 0: ptxas makes it a zero, which costs nothing.
  std::string width = std::to_string(std::max(16u, bits));
  std::string code = ".reg .b" + width + " undefined; mul.lo.s" + width + " $0, undefined, 0; ";
  for (unsigned w = 1; w < count; ++w)
    code += "mov.b" + width + " $" + std::to_string(w) + ", $0; ";
  return code;
}

std::string Words::zeroCode() const {
  std::string code;
  for (unsigned w = 0; w < count; ++w)
    code += "mov.b" + std::to_string(std::max(16u, bits)) + " $" + std::to_string(w) + ", 0; ";
  return code;
}

static Value vectorOf(ArrayRef<Value> parts, Emitter &e) {
  Value vector = LLVM::PoisonOp::create(e.b, e.loc, VectorType::get(parts.size(), parts[0].getType()));
  for (auto [i, part] : llvm::enumerate(parts))
    vector = LLVM::InsertElementOp::create(e.b, e.loc, vector, part, e.i32(i));
  return vector;
}

Registers toWords(ArrayRef<Value> elements, Words words, Emitter &e) {
  Registers result;
  unsigned each = elements.size() / words.count;
  for (unsigned w = 0; w < words.count; ++w) {
    ArrayRef<Value> part = elements.slice(w * each, each);
    if (words.bits == 32)
      result.push_back(e.pack(part));
    else if (words.bits == 64)
      result.push_back(e.bitcast(part[0], e.b.getI64Type()));
    else if (part.size() == 2) // two bytes
      result.push_back(e.bitcast(vectorOf(part, e), words.type(e)));
    else if (words.bits == 16)
      result.push_back(e.bitcast(part[0], words.type(e)));
    else
      result.push_back(LLVM::ZExtOp::create(e.b, e.loc, words.type(e), part[0]));
  }
  return result;
}

Value undefinedValue(Type type, Emitter &e) {
  Words words = wordsOf(bytesOf(type), bytesOf(type));
  Registers made = e.inlineAsm("{ " + words.undefinedCode() + "}", ("=" + words.constraint()).str(), words.type(e), {},
                               /*sideEffects=*/false);
  return fromWords(made, words, 1, type, e).front();
}

Registers fromWords(ArrayRef<Value> values, Words words, unsigned elements, Type memory, Emitter &e) {
  Registers result;
  unsigned each = elements / words.count;
  for (Value word : values) {
    if (words.bits == 32)
      llvm::append_range(result, e.unpack(word, memory));
    else if (words.bits == 8)
      result.push_back(LLVM::TruncOp::create(e.b, e.loc, memory, word));
    else if (each == 1)
      result.push_back(e.bitcast(word, memory));
    else
      for (unsigned i = 0; i < each; ++i)
        result.push_back(
            LLVM::ExtractElementOp::create(e.b, e.loc, e.bitcast(word, VectorType::get(each, memory)), e.i32(i)));
  }
  return result;
}

} // namespace weft

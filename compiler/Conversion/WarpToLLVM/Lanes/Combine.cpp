// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/WarpToLLVM/Lanes/Combine.h"

#include "compiler/Conversion/WarpToLLVM/Arithmetic/Pairs.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft {

std::optional<Tuple> combine(Emitter &emitter, Region &combiner, const Tuple &earlier, const Tuple &later) {
  SmallVector<Value> arguments(earlier.begin(), earlier.end());
  arguments.append(later.begin(), later.end());
  std::optional<Registers> results = emitter.inlineBlock(combiner.front(), arguments);
  if (!results)
    return std::nullopt;
  return Tuple(results->begin(), results->end());
}

std::optional<Tuple> combineTree(Emitter &emitter, Region &combiner, SmallVector<Tuple> terms) {
  while (terms.size() > 1) {
    SmallVector<Tuple> sums;
    for (size_t i = 0; i + 1 < terms.size(); i += 2) {
      std::optional<Tuple> sum = combine(emitter, combiner, terms[i], terms[i + 1]);
      if (!sum)
        return std::nullopt;
      sums.push_back(*sum);
    }
    if (terms.size() % 2)
      sums.push_back(terms.back());
    terms = std::move(sums);
  }
  return terms.front();
}

std::optional<Tuple> combineChains(Emitter &emitter, Region &combiner, ArrayRef<Tuple> terms) {
  constexpr size_t most = 2;
  SmallVector<Tuple> chains(terms.take_front(most));
  for (auto [i, term] : llvm::enumerate(terms.drop_front(chains.size()))) {
    Tuple &chain = chains[i % chains.size()];
    std::optional<Tuple> sum = combine(emitter, combiner, chain, term);
    if (!sum)
      return std::nullopt;
    chain = *sum;
  }
  return combineTree(emitter, combiner, chains);
}

/// The fewest terms that are combined otherwise than one by one.
static constexpr size_t fewestAtOnce = 8;

/// A sum of f32 by additions of two at once.
static std::optional<Tuple> addByPairs(Emitter &e, Region &combiner, ArrayRef<Tuple> terms) {
  SmallVector<Value> pairs;
  for (size_t i = 0; i + 1 < terms.size(); i += 2)
    pairs.push_back(pairedUp(terms[i].front(), terms[i + 1].front(), e));
  while (pairs.size() > 1) {
    SmallVector<Value> sums;
    for (size_t i = 0; i + 1 < pairs.size(); i += 2)
      sums.push_back(LLVM::FAddOp::create(e.b, e.loc, pairs[i], pairs[i + 1]));
    if (pairs.size() % 2)
      sums.push_back(pairs.back());
    pairs = std::move(sums);
  }
  SmallVector<Tuple> last;
  for (unsigned half : {0, 1})
    last.push_back({LLVM::ExtractElementOp::create(e.b, e.loc, pairs.front(), e.i32(half))});
  if (terms.size() % 2)
    last.push_back(terms.back());
  return combineTree(e, combiner, last);
}

/// A least or greatest by threes: ptxas makes one instruction of a chain's two steps.
static std::optional<Tuple> combineByThrees(Emitter &e, Region &combiner, SmallVector<Tuple> terms) {
  while (terms.size() >= fewestAtOnce) {
    SmallVector<Tuple> threes;
    for (size_t i = 0; i < terms.size(); i += 3) {
      std::optional<Tuple> of = terms[i];
      for (size_t next = i + 1; of && next < std::min(i + 3, terms.size()); ++next)
        of = combine(e, combiner, *of, terms[next]);
      if (!of)
        return std::nullopt;
      threes.push_back(*of);
    }
    terms = std::move(threes);
  }
  return combineTree(e, combiner, terms);
}

std::optional<Tuple> combineAtOnce(Emitter &e, Region &combiner, ArrayRef<Tuple> terms) {
  Block &body = combiner.front();
  if (terms.size() < fewestAtOnce || terms.front().size() != 1 || !terms.front().front().getType().isF32() ||
      !llvm::hasNItems(body, 2))
    return std::nullopt;
  if (isa<arith::AddFOp>(body.front()) && e.target.float32Pairs)
    return addByPairs(e, combiner, terms);
  if (isa<arith::MaximumFOp, arith::MinimumFOp, arith::MaxNumFOp, arith::MinNumFOp>(body.front()) &&
      e.target.extremaOfThree)
    return combineByThrees(e, combiner, SmallVector<Tuple>(terms));
  return std::nullopt;
}

ScratchArray::ScratchArray(Emitter &emitter, int64_t offset, Type type, unsigned bytes)
    : emitter(emitter), base(emitter.sharedPointer(offset)), type(type), stored(emitter.b.getIntegerType(8 * bytes)),
      bytes(bytes) {}

Value ScratchArray::address(Value index) {
  return emitter.offset(base, LLVM::MulOp::create(emitter.b, emitter.loc, index, emitter.i32(bytes)));
}

void ScratchArray::store(Value index, Value value, Value predicate) {
  OpBuilder &b = emitter.b;
  bool widens = type.isInteger() && type.getIntOrFloatBitWidth() < 8 * bytes;
  Value bits =
      widens ? LLVM::ZExtOp::create(b, emitter.loc, stored, value).getResult() : emitter.bitcast(value, stored);
  if (!predicate) {
    LLVM::StoreOp::create(b, emitter.loc, bits, address(index), bytes);
    return;
  }
  // A byte has no register class of its own in PTX: it travels in 16 bits.
  if (bytes == 1)
    bits = LLVM::ZExtOp::create(b, emitter.loc, b.getI16Type(), bits);
  // An address prints with its brackets, and a constant at its end as an immediate offset.
  std::string code = ("@$0 st.shared.b" + Twine(8 * bytes) + " $1, $2;").str();
  StringRef constraints = bytes == 8 ? "b,*m,l,~{memory}" : bytes == 4 ? "b,*m,r,~{memory}" : "b,*m,h,~{memory}";
  emitter.inlineAsm(code, constraints, {}, {predicate, address(index), bits}, /*sideEffects=*/true);
}

Value ScratchArray::load(Value index) {
  OpBuilder &b = emitter.b;
  Value bits = LLVM::LoadOp::create(b, emitter.loc, stored, address(index), bytes);
  bool narrows = type.isInteger() && type.getIntOrFloatBitWidth() < 8 * bytes;
  return narrows ? LLVM::TruncOp::create(b, emitter.loc, type, bits).getResult() : emitter.bitcast(bits, type);
}

void ScratchArray::storeVector(Value index, ArrayRef<Value> values, Value predicate) {
  if (values.size() == 1)
    return store(index, values.front(), predicate);
  Registers operands;
  std::string constraints = predicate ? "b,*m" : "*m", list;
  if (predicate)
    operands.push_back(predicate);
  std::string place = "$" + std::to_string(operands.size());
  operands.push_back(address(index));
  for (Value value : values) {
    list += (list.empty() ? "$" : ", $") + std::to_string(operands.size());
    operands.push_back(emitter.bitcast(value, stored));
    constraints += ",r";
  }
  std::string code = (predicate ? "@$0 " : "") + ("st.shared.v" + std::to_string(values.size())) + ".b32 " + place +
                     ", {" + list + "};";
  emitter.inlineAsm(code, constraints + ",~{memory}", {}, operands, /*sideEffects=*/true);
}

SmallVector<Value> ScratchArray::loadVector(Value index, unsigned count) {
  if (count == 1)
    return {load(index)};
  OpBuilder &b = emitter.b;
  Value vector = LLVM::LoadOp::create(b, emitter.loc, VectorType::get(count, stored), address(index), count * bytes);
  SmallVector<Value> values;
  for (unsigned i = 0; i < count; ++i)
    values.push_back(emitter.bitcast(LLVM::ExtractElementOp::create(b, emitter.loc, vector, emitter.i32(i)), type));
  return values;
}

} // namespace weft

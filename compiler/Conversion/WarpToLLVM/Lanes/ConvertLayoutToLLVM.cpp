// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp.convert_layout: renames registers where every lane keeps its elements, shuffles where few elements move inside
// their warps, and goes through shared memory otherwise. 64 elements in two registers of each lane, from neighbours to
// halves:
//
//   #l = register = [[1]], lane = [[2], [4], [8], [16], [32]]        lane L has elements 2 L and 2 L + 1
//   #m = register = [[32]], lane = [[1], [2], [4], [8], [16]]        lane L has elements L and L + 32
//
//   %y = warp.convert_layout %x     -->     %a = shfl.idx %x0, L / 2           %b = shfl.idx %x1, L / 2
//                                           %y0 = select (L & 1), %b, %a       and %y1 the same from lane (L / 2) ^ 16

#include "compiler/Conversion/WarpToLLVM/SharedAccess.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/ShuffleExchange.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "dialects/Warp/Transforms/SwizzledLayout.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

/// Two halves of words that go to the same lanes: register bits of the result and of the source, of which the latter's
/// lowest tells the two apart whichever registers lanes choose.
struct HalvesOfWords {
  uint32_t resultBit, sourceBits, upper;
};

std::optional<HalvesOfWords> halvesOfWords(const ShuffleExchange &exchange) {
  uint32_t chosen = 0;
  for (uint32_t step : exchange.registerSteps)
    chosen |= step;
  for (uint32_t bit = 1; bit < exchange.registerOf.size(); bit *= 2) {
    const uint32_t moves = exchange.registerOf[bit] ^ exchange.registerOf[0], apart = moves & ~chosen;
    if (apart && exchange.laneOf[bit] == exchange.laneOf[0])
      return HalvesOfWords{bit, moves, apart & -apart};
  }
  return std::nullopt;
}

/// What lanes of one warp exchange by shuffles.
class Shuffles {
public:
  Shuffles(Emitter &e, const ShuffleExchange &exchange)
      : e(e), exchange(exchange), bits(exchange.choosingBits()), ownLane(exchange.isOwnLane()) {}

  /// The result of a register, of what `source` holds of the source's.
  Value result(uint32_t reg, function_ref<Value(uint32_t)> source) {
    SmallVector<Value> candidates;
    for (uint32_t choice = 0; choice < 1u << bits.size(); ++choice) {
      uint32_t from = exchange.registerOf[reg];
      for (auto [position, bit] : llvm::enumerate(bits))
        from ^= choice >> position & 1 ? exchange.registerSteps[bit] : 0;
      candidates.push_back(move(from, exchange.laneOf[reg], source));
    }
    return choose(std::move(candidates));
  }

private:
  Value move(uint32_t reg, uint32_t lane, function_ref<Value(uint32_t)> source) {
    if (ownLane && lane == 0)
      return source(reg);
    Value &moved = known[{reg, lane}];
    if (!moved) {
      ArrayRef<uint32_t> steps = exchange.laneSteps;
      Value from = e.xorOfBits(steps.take_front(laneBits), steps.drop_front(laneBits));
      if (lane)
        from = LLVM::XOrOp::create(e.b, e.loc, from, e.i32(lane));
      moved = e.shuffleIndex(source(reg), from);
    }
    return moved;
  }

  /// One candidate for each value of the choosing bits; each bit then halves them.
  Value choose(SmallVector<Value> candidates) {
    for (unsigned bit : bits) {
      Value of = bit < laneBits ? e.lane() : e.warp(), mask = e.i32(1u << (bit < laneBits ? bit : bit - laneBits));
      Value isSet = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne, LLVM::AndOp::create(e.b, e.loc, of, mask),
                                         e.i32(0));
      SmallVector<Value> chosen;
      for (size_t i = 0; i < candidates.size(); i += 2)
        chosen.push_back(LLVM::SelectOp::create(e.b, e.loc, isSet, candidates[i + 1], candidates[i]));
      candidates = std::move(chosen);
    }
    return candidates.front();
  }

  static constexpr unsigned laneBits = 5;
  Emitter &e;
  const ShuffleExchange &exchange;
  const SmallVector<unsigned, 5> bits;
  const bool ownLane;
  /// By source register and lane: repeated registers are moved once.
  llvm::DenseMap<std::pair<uint32_t, uint32_t>, Value> known;
};

/// Elements of 16 bits, two at once: words of both are moved, and chosen among.
Registers emitShufflesOfHalves(Emitter &e, const ShuffleExchange &exchange, const HalvesOfWords &halves,
                               ArrayRef<Value> source) {
  llvm::DenseMap<uint32_t, Value> words;
  auto wordOf = [&](uint32_t reg) {
    reg = reg & halves.upper ? reg ^ halves.sourceBits : reg;
    Value &word = words[reg];
    if (!word) {
      SmallVector<Value, 2> parts{source[reg], source[reg ^ halves.sourceBits]};
      word = e.unpackedFrom(parts);
      word = word ? word : e.pack(parts);
    }
    return word;
  };
  Shuffles shuffles(e, exchange);
  Registers results(exchange.registerOf.size());
  for (uint32_t reg = 0; reg < results.size(); ++reg) {
    if (reg & halves.resultBit)
      continue;
    Registers parts = e.unpack(shuffles.result(reg, wordOf), source.front().getType());
    const bool isUpper = exchange.registerOf[reg] & halves.upper;
    results[reg] = parts[isUpper];
    results[reg ^ halves.resultBit] = parts[!isUpper];
  }
  return results;
}

Registers emitShuffles(Emitter &e, const ShuffleExchange &exchange, ArrayRef<Value> source) {
  const bool moves = !exchange.isOwnLane() || llvm::any_of(exchange.laneOf, [](uint32_t lane) { return lane != 0; });
  if (Type type = source.front().getType(); moves && type.isIntOrFloat() && type.getIntOrFloatBitWidth() == 16)
    if (std::optional<HalvesOfWords> halves = halvesOfWords(exchange))
      return emitShufflesOfHalves(e, exchange, *halves, source);
  Shuffles shuffles(e, exchange);
  Registers results;
  for (uint32_t reg = 0; reg < exchange.registerOf.size(); ++reg)
    results.push_back(shuffles.result(reg, [&](uint32_t from) { return source[from]; }));
  return results;
}

/// A way through shared memory that ends in `ldmatrix`.
struct MatrixExchange {
  SharedAccess write;
  LinearLayout read;
  MatrixAccess matrices;
};

/// The exchange through a tile in shared memory, if `ldmatrix` can read it.
std::optional<MatrixExchange> exchangeThrough(ConvertLayoutOp op, const LinearLayout &shared) {
  SharedAccess write = accessOf(layoutOf(op.getSource().getType()), shared, 2);
  LinearLayout read = accessOf(layoutOf(op.getResult().getType()), shared, 2).offsets;
  if (std::optional<MatrixAccess> matrices = matrixAccess(read, 16, operandBits(op.getResult())))
    return MatrixExchange{write, read, *matrices};
  return std::nullopt;
}

bool hasConflicts(const MatrixExchange &exchange) {
  Wavefronts written = wavefrontsOf(exchange.write, 2), loaded = wavefrontsOf(exchange.matrices, exchange.read, 2);
  return written.needed != written.ideal || loaded.needed != loaded.ideal;
}

/// The bits of a line's coordinate along which the rows of a matrix follow one another. None where they are no single
/// bits of lines of `lineElements`.
SmallVector<unsigned> lineBitsOf(const MatrixAccess &matrices, int64_t lineElements) {
  SmallVector<unsigned> bits;
  for (uint32_t offset : ArrayRef(matrices.laneOffsets).take_front(3))
    if (uint32_t line = offset / lineElements;
        llvm::isPowerOf2_32(line) && !llvm::is_contained(bits, llvm::Log2_32(line)))
      bits.push_back(llvm::Log2_32(line));
  return bits;
}

/// Whether an exchange takes fewer accesses than plain ones, or so many instructions fewer that they are worth the
/// addresses of rows, which are computed and held.
bool takesLess(const MatrixExchange &exchange, const SharedAccess &plainWrite, const SharedAccess &plainRead) {
  constexpr unsigned ofAddresses = 16;
  const unsigned reads = exchange.matrices.first.size();
  return exchange.write.pieces() + reads < plainWrite.pieces() + plainRead.pieces() ||
         instructionsOf(exchange.write, 2) + reads + ofAddresses <=
             instructionsOf(plainWrite, 2) + instructionsOf(plainRead, 2);
}

/// Rows that lanes hold in pieces of 16 bytes, as loads from device memory leave them, are written as such, and
/// operands of matrix instructions, and what is stored turned, are read by `ldmatrix`: where that takes less than plain
/// accesses, and no bank conflicts.
std::optional<MatrixExchange> matrixExchange(ConvertLayoutOp op, const SharedAccess &plainWrite,
                                             const SharedAccess &plainRead) {
  auto type = cast<RankedTensorType>(op.getSource().getType());
  if (type.getRank() < 2 || elementBytes(type.getElementType()) != 2)
    return std::nullopt;
  for (unsigned axis = type.getRank(); axis-- > 0;) {
    std::optional<MatrixExchange> exchange = exchangeThrough(op, swizzledLayout(type.getShape(), axis, 2));
    if (!exchange || !takesLess(*exchange, plainWrite, plainRead))
      continue;
    if (!hasConflicts(*exchange))
      return exchange;
    // Lines whose rows make a matrix become neighbours.
    SmallVector<unsigned> lineBits = lineBitsOf(exchange->matrices, type.getDimSize(axis));
    exchange = exchangeThrough(op, swizzledLayout(type.getShape(), axis, 2, lineBits));
    if (exchange && !hasConflicts(*exchange))
      return exchange;
  }
  return std::nullopt;
}

/// A way through scratch memory.
struct Exchange {
  SharedAccess write, read;
  std::optional<MatrixExchange> matrices; // which writes and reads in place of those
  Value base;
};

Exchange exchangeOf(ConvertLayoutOp op, int64_t scratch, Emitter &e) {
  const LinearLayout &source = layoutOf(op.getSource().getType()), &result = layoutOf(op.getResult().getType());
  unsigned bytes = elementBytes(cast<RankedTensorType>(op.getSource().getType()).getElementType());
  LinearLayout shared = scratchLayout(source, result, bytes, operandBits(op.getResult()));
  SharedAccess write = accessOf(source, shared, bytes), read = accessOf(result, shared, bytes);
  return {write, read, matrixExchange(op, write, read), e.sharedPointer(scratch)};
}

Registers readExchange(ConvertLayoutOp op, const Exchange &exchange, Emitter &e) {
  Type element = registerType(op.getResult().getType());
  bool here = isInLoopOfManyStores(op);
  if (!exchange.matrices)
    return emitSharedLoad(e, exchange.base, exchange.read, element, here);
  const auto &[write, read, matrices] = *exchange.matrices;
  unsigned bytes = elementBytes(cast<RankedTensorType>(op.getSource().getType()).getElementType());
  TileAddress addresses(e, exchange.base, inBytes(matrices.laneOffsets, bytes),
                        inBytes(read.bases(InDim::Warp), bytes));
  if (here)
    addresses.computeHere();
  return emitMatrixLoad(e, matrices, read, element, [&](uint32_t offset) { return addresses.at(offset * bytes); });
}

/// The exchanges that read behind this one's barrier, the first first; it is the last: those since the exchange before
/// that has a barrier. What other passes have inserted may be between.
SmallVector<ConvertLayoutOp> joinedWith(ConvertLayoutOp op) {
  SmallVector<ConvertLayoutOp> exchanges{op};
  auto hasBarrier = [](Operation *each) { return each->hasAttr(scratchAttrName) && !each->hasAttr(joinedAttrName); };
  for (Operation *each = op->getPrevNode(); each && !hasBarrier(each); each = each->getPrevNode())
    if (each->hasAttr(joinedAttrName))
      exchanges.push_back(cast<ConvertLayoutOp>(each));
  std::reverse(exchanges.begin(), exchanges.end());
  return exchanges;
}

LogicalResult lowerConvertLayout(ConvertLayoutOp op, Emitter &e) {
  const LinearLayout &source = layoutOf(op.getSource().getType()), &result = layoutOf(op.getResult().getType());
  ArrayRef<Value> registers = e.registers(op.getSource());
  if (std::optional<SmallVector<uint32_t>> permutation = result.registerPermutation(source)) {
    e.bind(op.getResult(), llvm::map_to_vector(*permutation, [&](uint32_t from) { return registers[from]; }));
    return success();
  }
  unsigned bytes = elementBytes(cast<RankedTensorType>(op.getSource().getType()).getElementType());
  if (std::optional<ShuffleExchange> exchange = shuffleExchange(source, result, bytes)) {
    e.bind(op.getResult(), emitShuffles(e, *exchange, registers));
    return success();
  }
  auto scratch = op->getAttrOfType<IntegerAttr>(scratchAttrName);
  if (!scratch)
    return op.emitOpError("has no scratch memory; run 'warp-allocate-shared' before");
  Exchange own = exchangeOf(op, scratch.getInt(), e);
  emitSharedStore(e, own.base, own.matrices ? own.matrices->write : own.write, registers, isInLoopOfManyStores(op));
  if (op->hasAttr(joinedAttrName))
    return success();
  e.barrier();
  for (ConvertLayoutOp each : joinedWith(op)) {
    auto place = each->getAttrOfType<IntegerAttr>(scratchAttrName);
    e.bind(each.getResult(), readExchange(each, each == op ? own : exchangeOf(each, place.getInt(), e), e));
  }
  return success();
}

} // namespace

void addConvertLayoutLowerings(LoweringTable &table) { table.add<ConvertLayoutOp>(lowerConvertLayout); }

} // namespace weft

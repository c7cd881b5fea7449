// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile.gather: every lane takes what its indices name from lanes of its warp by shuffles, where that is all and few of
// them do. Else the source goes to shared memory, swizzled, and every lane reads from there.
//
// An element's offset there is linear in the bits of its coordinates: the xor of what lane and warp contribute, a
// constant for the register, and what the index does. Registers with one index and neighbouring offsets are read as one
// vector, so that whole rows are picked in wide pieces where the index is the same along them.

#include "compiler/Conversion/WarpToLLVM/SharedAccess.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "dialects/Warp/Layout/ShuffleGather.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "dialects/Warp/Transforms/SwizzledLayout.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

/// Where the elements of a gather's result lie, in elements from the tile's start, but for what their index
/// contributes.
struct Places {
  SmallVector<uint32_t> ofRegister; // of each register
  SmallVector<uint32_t> laneBases, warpBases;
  SmallVector<uint32_t> indexBases; // of each bit of the index

  /// The bits of an offset that lanes, warps or indices move.
  uint32_t variableBits() const {
    uint32_t bits = 0;
    for (ArrayRef<uint32_t> bases :
         {ArrayRef<uint32_t>(laneBases), ArrayRef<uint32_t>(warpBases), ArrayRef<uint32_t>(indexBases)})
      for (uint32_t basis : bases)
        bits |= basis;
    return bits;
  }
};

Places placesOf(tile::GatherOp op, const LinearLayout &shared) {
  const LinearLayout &result = layoutOf(op.getType());
  unsigned axis = op.getAxis();
  // From an element of the source to its offset.
  LinearLayout elements(shared.shape());
  for (uint32_t bit = 1; bit < shared.numElements(); bit <<= 1)
    elements.append(InDim::Register, bit);
  LinearLayout offsets = *elements.composeInverse(shared);
  auto beside = [&](uint32_t element) {
    SmallVector<int64_t, 4> at = result.delinearize(element);
    at[axis] = 0;
    return offsets.apply(InDim::Register, shared.linearize(at));
  };
  Places places;
  for (uint32_t reg = 0; reg < result.size(InDim::Register); ++reg)
    places.ofRegister.push_back(beside(result.apply(InDim::Register, reg)));
  places.laneBases = llvm::map_to_vector(result.bases(InDim::Lane), beside);
  places.warpBases = llvm::map_to_vector(result.bases(InDim::Warp), beside);
  SmallVector<int64_t, 4> at(shared.rank(), 0);
  for (int64_t index = 1; index < shared.shape()[axis]; index *= 2) {
    at[axis] = index;
    places.indexBases.push_back(offsets.apply(InDim::Register, shared.linearize(at)));
  }
  return places;
}

SmallVector<uint32_t> times(ArrayRef<uint32_t> offsets, unsigned bytes) {
  return llvm::map_to_vector(offsets, [&](uint32_t offset) { return offset * bytes; });
}

/// The reads of one gather.
class Reader {
public:
  Reader(Emitter &e, Value base, const Places &places, ArrayRef<Value> indices, Type element, unsigned bytes)
      : e(e), base(base), places(places), indices(indices), element(element), bytes(bytes),
        stored(isa<FloatType>(element) ? element : Type(e.b.getIntegerType(8 * bytes))),
        variableBits(places.variableBits()) {}

  Registers run() {
    Registers registers(places.ofRegister.size());
    for (unsigned first = 0; first < registers.size(); ++first) {
      if (registers[first])
        continue;
      unsigned count = width(first);
      Type type = count > 1 ? Type(VectorType::get(count, stored)) : stored;
      Value value = LLVM::LoadOp::create(e.b, e.loc, type, pointerTo(first), count * bytes);
      for (unsigned i = 0; i < count; ++i)
        registers[first + i] =
            unstored(count > 1 ? LLVM::ExtractElementOp::create(e.b, e.loc, value, e.i32(i)).getResult() : value);
    }
    return registers;
  }

private:
  /// How many registers from `first` on, a power of two, lie side by side in an aligned piece of at most 16 bytes and
  /// have one index.
  unsigned width(unsigned first) const {
    unsigned count = 1;
    auto fits = [&](unsigned wider) {
      if (wider * bytes > 16 || first % wider || first + wider > indices.size() ||
          ((variableBits | places.ofRegister[first]) & (wider - 1)))
        return false;
      for (unsigned i = 1; i < wider; ++i)
        if (places.ofRegister[first + i] != places.ofRegister[first] + i || indices[first + i] != indices[first])
          return false;
      return true;
    };
    while (fits(2 * count))
      count *= 2;
    return count;
  }

  /// Bits of a register's offset that nothing else moves are an immediate; the others are shared by equal ones of one
  /// index.
  Value pointerTo(unsigned reg) {
    uint32_t mixed = places.ofRegister[reg] & variableBits;
    Value &pointer = pointers[{indices[reg], mixed}];
    if (!pointer) {
      Value own = e.xorOfBits(times(places.laneBases, bytes), times(places.warpBases, bytes));
      // An index outside of the axis reads any element, but one of the source's.
      Value inside = LLVM::AndOp::create(e.b, e.loc, indices[reg], e.i32((1 << places.indexBases.size()) - 1));
      Value named = e.xorOfBases(inside, times(places.indexBases, bytes));
      Value offset = LLVM::XOrOp::create(e.b, e.loc, own, named);
      if (mixed)
        offset = LLVM::XOrOp::create(e.b, e.loc, offset, e.i32(mixed * bytes));
      pointer = e.offset(base, offset);
    }
    return e.offset(pointer, int64_t(places.ofRegister[reg] & ~variableBits) * bytes);
  }

  Value unstored(Value value) const {
    bool narrows = element.isInteger() && element.getIntOrFloatBitWidth() < 8 * bytes;
    return narrows ? LLVM::TruncOp::create(e.b, e.loc, element, value).getResult() : e.bitcast(value, element);
  }

  Emitter &e;
  Value base;
  const Places &places;
  ArrayRef<Value> indices;
  Type element;
  unsigned bytes;
  Type stored;
  uint32_t variableBits;
  llvm::DenseMap<std::pair<Value, uint32_t>, Value> pointers;
};

/// The shuffles of one gather.
class Shuffler {
public:
  Shuffler(Emitter &e, const ShuffleGather &gather, ArrayRef<Value> source)
      : e(e), gather(gather), source(source), choosing(gather.choosingBits()) {}

  Registers run(ArrayRef<Value> indices) {
    llvm::DenseMap<std::tuple<Value, uint32_t, uint32_t>, Value> known; // equal ones are picked once
    Registers results;
    for (auto [place, index] : llvm::zip_equal(gather.ofRegister, indices)) {
      Value &picked = known[{index, place[InDim::Register], place[InDim::Lane]}];
      if (!picked)
        picked = pick(place, index);
      results.push_back(picked);
    }
    return results;
  }

private:
  static SmallVector<uint32_t> parts(ArrayRef<Place> steps, InDim dim) {
    return llvm::map_to_vector(steps, [&](const Place &step) { return step[dim]; });
  }
  /// The number of the register or of the lane that has an element.
  Value numberOf(InDim dim, uint32_t constant, Value index) {
    Value own = e.xorOfBits(parts(gather.laneSteps, dim), parts(gather.warpSteps, dim));
    Value number = LLVM::XOrOp::create(e.b, e.loc, own, e.xorOfBases(index, parts(gather.indexSteps, dim)));
    return constant ? LLVM::XOrOp::create(e.b, e.loc, number, e.i32(constant)).getResult() : number;
  }
  /// One candidate for each register that lanes may want; each bit of its number then halves them.
  Value pick(const Place &place, Value index) {
    Value lane = numberOf(InDim::Lane, place[InDim::Lane], index);
    SmallVector<Value> candidates;
    uint32_t reg = 0;
    do {
      candidates.push_back(e.shuffleIndex(source[reg | (place[InDim::Register] & ~choosing)], lane));
      reg = (reg - choosing) & choosing;
    } while (reg);
    if (!choosing)
      return candidates.front();
    Value number = numberOf(InDim::Register, place[InDim::Register] & choosing, index);
    for (uint32_t left = choosing; left; left &= left - 1) {
      Value bit = LLVM::AndOp::create(e.b, e.loc, number, e.i32(left & -left));
      Value isSet = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne, bit, e.i32(0));
      SmallVector<Value> chosen;
      for (size_t i = 0; i < candidates.size(); i += 2)
        chosen.push_back(LLVM::SelectOp::create(e.b, e.loc, isSet, candidates[i + 1], candidates[i]));
      candidates = std::move(chosen);
    }
    return candidates.front();
  }

  Emitter &e;
  const ShuffleGather &gather;
  ArrayRef<Value> source;
  uint32_t choosing;
};

LogicalResult lowerGather(tile::GatherOp op, Emitter &e) {
  auto source = cast<RankedTensorType>(op.getSource().getType());
  unsigned bytes = elementBytes(source.getElementType());
  ArrayRef<Value> indices = e.registers(op.getIndices());
  if (std::optional<ShuffleGather> gather =
          shuffleGather(layoutOf(source), layoutOf(op.getType()), op.getAxis(), bytes)) {
    if (indices.size() != gather->ofRegister.size())
      return op.emitOpError("expected indices in the result's layout");
    e.bind(op.getResult(), Shuffler(e, *gather, e.registers(op.getSource())).run(indices));
    return success();
  }
  auto scratch = op->getAttrOfType<IntegerAttr>(scratchAttrName);
  if (!scratch)
    return op.emitOpError("has no scratch memory; run 'warp-allocate-shared' before");
  LinearLayout shared = swizzledLayout(source.getShape(), source.getRank() - 1, bytes);
  Value base = e.sharedPointer(scratch.getInt());
  emitSharedStore(e, base, accessOf(layoutOf(source), shared, bytes), e.registers(op.getSource()));
  e.barrier();
  Places places = placesOf(op, shared);
  if (indices.size() != places.ofRegister.size())
    return op.emitOpError("expected indices in the result's layout");
  e.bind(op.getResult(), Reader(e, base, places, indices, registerType(op.getType()), bytes).run());
  return success();
}

} // namespace

void addGatherLowerings(LoweringTable &table) { table.add<tile::GatherOp>(lowerGather); }

} // namespace weft

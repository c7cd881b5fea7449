// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp.load_shifted: element i along an axis is read from where the tile has element i - offset.
//
// An element's offset is linear in the bits of its coordinates, but i - offset is a subtraction. Where the axis walks
// through the tile in even steps, but for a swizzle by its lowest bits, what registers add to i is an immediate, as in
// any other read: one address for each shift serves them all. Registers that may come from outside of the tile read
// its nearest element instead, and become zero in the lanes whose place is outside.
//
// A tile with a margin has zeros there, and lines that are evenly apart: a shift is a constant of the tile's address, so
// that all shifts read by the same lanes' places.

#include "compiler/Conversion/WarpToLLVM/SharedAccess.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

/// What the bits of an axis contribute to offsets in a tile.
struct Axis {
  int64_t size;
  SmallVector<uint32_t> bases;
  uint32_t stride = 0;   ///< of one step, where steps are even but for `swizzled` lowest bits; else 0
  unsigned swizzled = 0; ///< how many of the lowest bits also change offsets below the stride
  SmallVector<uint32_t> swizzle;
};

/// An element's coordinate along the axis, and the offset of the element at coordinate 0 beside it.
struct Part {
  int64_t along;
  uint32_t beside;
};

/// Addresses in a shifted tile.
class ShiftedAddress {
public:
  ShiftedAddress(Emitter &e, Value base, const LinearLayout &shared, unsigned axis, int64_t shift, unsigned bytes,
                 bool here)
      : e(e), base(base), shared(shared), axisNumber(axis), shift(shift), bytes(bytes), here(here),
        offsets(shared.shape()) {
    LinearLayout elements(shared.shape());
    for (uint32_t bit = 1; bit < shared.numElements(); bit <<= 1)
      elements.append(InDim::Register, bit);
    offsets = *elements.composeInverse(shared);
    describeAxis();
  }

  /// Which offsets lanes and warps contribute to each address. Must come before `at`.
  void setLanes(ArrayRef<uint32_t> laneOffsets, ArrayRef<uint32_t> warpOffsets) {
    auto collect = [&](ArrayRef<uint32_t> from, SmallVector<uint32_t> &along, SmallVector<uint32_t> &beside) {
      for (uint32_t offset : from) {
        Part part = partOf(offset);
        along.push_back(part.along);
        beside.push_back(part.beside * bytes);
        laneBits |= part.along;
        besideBits |= part.beside;
      }
    };
    collect(laneOffsets, lanesAlong, lanesBeside);
    collect(warpOffsets, warpsAlong, warpsBeside);
  }

  /// The address of the element at `offset` in an unshifted tile, for what lanes contribute to it.
  Value at(uint32_t offset) {
    Part part = partOf(offset);
    bool inside = part.along - shift >= 0 && (part.along | laneBits) - shift < axis.size;
    bool even = axis.stride && !(part.along & laneBits) && part.along % (int64_t(1) << axis.swizzled) == 0;
    return inside && even ? evenAddress(part) : nearestAddress(part);
  }

  /// The coordinate along the axis, and what lies beside, of what is at an offset of the tile.
  Part partOf(uint32_t offset) const {
    SmallVector<int64_t, 4> element = shared.delinearize(shared.apply(InDim::Offset, offset));
    int64_t along = element[axisNumber];
    element[axisNumber] = 0;
    return {along, offsets.apply(InDim::Register, shared.linearize(element))};
  }

private:
  void describeAxis() {
    SmallVector<int64_t, 4> element(shared.rank(), 0);
    axis.size = shared.shape()[axisNumber];
    for (int64_t step = 1; step < axis.size; step *= 2) {
      element[axisNumber] = step;
      axis.bases.push_back(offsets.apply(InDim::Register, shared.linearize(element)));
    }
    if (axis.bases.empty())
      return;
    uint32_t stride = llvm::bit_floor(axis.bases.front()), below = 0;
    for (auto [bit, basis] : llvm::enumerate(axis.bases)) {
      uint32_t low = basis ^ stride << bit;
      if (low >= stride)
        return;
      axis.swizzle.push_back(low * bytes);
      below |= low;
      if (low)
        axis.swizzled = bit + 1;
    }
    axis.swizzle.resize(axis.swizzled);
    besideBits |= below;
    axis.stride = stride;
  }

  Value laneAlong() { return e.xorOfBits(lanesAlong, warpsAlong); }
  Value laneBeside() { return e.xorOfBits(lanesBeside, warpsBeside); }
  /// What a constant is added to, by xor: no longer known from before where a loop has too many of such sums.
  Value beforeSum(Value value, uint32_t constant) { return here && constant ? computedHere(e, value) : value; }

  Value evenAddress(const Part &part) {
    uint32_t mixed = part.beside & besideBits;
    Value &pointer = even[mixed];
    if (!pointer) {
      Value source = LLVM::SubOp::create(e.b, e.loc, laneAlong(), e.i32(shift));
      Value variable = laneBeside();
      if (axis.swizzled) {
        Value low = LLVM::AndOp::create(e.b, e.loc, source, e.i32((int64_t(1) << axis.swizzled) - 1));
        variable = LLVM::XOrOp::create(e.b, e.loc, variable, e.xorOfBases(low, axis.swizzle));
      }
      if (mixed)
        variable = LLVM::XOrOp::create(e.b, e.loc, beforeSum(variable, mixed), e.i32(mixed * bytes));
      Value steps = LLVM::MulOp::create(e.b, e.loc, source, e.i32(axis.stride * bytes));
      pointer = e.offset(base, LLVM::AddOp::create(e.b, e.loc, variable, steps));
    }
    return e.offset(pointer, int64_t((part.beside & ~besideBits) + part.along * axis.stride) * bytes);
  }

  /// The address of the element of the tile that is nearest to the place.
  Value nearestAddress(const Part &part) {
    Value &named = nearest[part.along];
    if (!named) {
      Value source = laneAlong();
      if (part.along)
        source = LLVM::XOrOp::create(e.b, e.loc, source, e.i32(part.along));
      source = LLVM::SubOp::create(e.b, e.loc, source, e.i32(shift));
      if (shift > 0)
        source = LLVM::SMaxOp::create(e.b, e.loc, source, e.i32(0));
      else
        source = LLVM::SMinOp::create(e.b, e.loc, source, e.i32(axis.size - 1));
      SmallVector<uint32_t> scaled = inBytes(axis.bases, bytes);
      named = LLVM::XOrOp::create(e.b, e.loc, e.xorOfBases(source, scaled), laneBeside());
    }
    Value known = beforeSum(named, part.beside);
    return e.offset(base, LLVM::XOrOp::create(e.b, e.loc, known, e.i32(part.beside * bytes)));
  }

  Emitter &e;
  Value base;
  const LinearLayout &shared;
  unsigned axisNumber;
  int64_t shift;
  unsigned bytes;
  bool here;            // what is added to addresses is added where they are needed
  LinearLayout offsets; // from an element, as a register's index, to its offset
  Axis axis;
  SmallVector<uint32_t> lanesAlong, warpsAlong, lanesBeside, warpsBeside;
  int64_t laneBits = 0;
  uint32_t besideBits = 0; // what lanes, warps or the swizzle change of offsets beside the axis
  llvm::DenseMap<uint32_t, Value> even;
  llvm::DenseMap<int64_t, Value> nearest;
};

/// Zeros for registers whose element comes from outside of the tile.
class Outside {
public:
  Outside(Emitter &e, const LinearLayout &layout, unsigned axis, int64_t shift)
      : e(e), layout(layout), axis(axis), shift(shift) {
    for (InDim dim : {InDim::Lane, InDim::Warp})
      for (uint32_t basis : layout.bases(dim))
        lanes |= layout.delinearize(basis)[axis];
  }

  int64_t along(uint32_t reg) const { return layout.delinearize(layout.apply(InDim::Register, reg))[axis]; }
  /// `value`, which register `reg` takes part in, or zero.
  Value clear(Value value, uint32_t reg) {
    Value within = inside(reg);
    return within ? Value(LLVM::SelectOp::create(e.b, e.loc, within, value, e.zero(value.getType()))) : value;
  }
  /// `word` (i32) of the registers `reg` and the next: each of them or zero.
  Value clearHalves(Value word, uint32_t reg) {
    if (along(reg) == along(reg + 1))
      return clear(word, reg);
    Value low = inside(reg), high = inside(reg + 1);
    if (!low && !high)
      return word;
    auto half = [&](Value within, int64_t mask) -> Value {
      return within ? Value(LLVM::SelectOp::create(e.b, e.loc, within, e.i32(mask), e.i32(0))) : e.i32(mask);
    };
    Value mask = LLVM::OrOp::create(e.b, e.loc, half(low, 0xffff), half(high, -0x10000));
    return LLVM::AndOp::create(e.b, e.loc, word, mask);
  }

private:
  /// Whether a register's element is one of the tile's; null where it is in every lane.
  Value inside(uint32_t reg) {
    int64_t own = along(reg), size = layout.shape()[axis];
    int64_t least = own & ~lanes, most = own | lanes;
    if (least - shift >= 0 && most - shift < size)
      return {};
    Value &inside = known[own];
    if (!inside) {
      Value source = LLVM::SubOp::create(e.b, e.loc, e.coordinate(layout, axis, reg), e.i32(shift));
      inside = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ult, source, e.i32(size));
    }
    return inside;
  }

  Emitter &e;
  const LinearLayout &layout;
  unsigned axis;
  int64_t shift, lanes = 0;
  llvm::DenseMap<int64_t, Value> known;
};

/// How many register bits tell apart the words that a matrix instruction takes as one operand, for what is read here.
unsigned operandBits(Value value) {
  unsigned bits = 0;
  for (OpOperand &use : value.getUses()) {
    if (isa<tile::ReshapeOp, tile::PermuteOp>(use.getOwner()))
      bits = std::max(bits, operandBits(use.getOwner()->getResult(0)));
    if (isa<MmaOp>(use.getOwner()) && use.getOperandNumber() < 2)
      bits = std::max(bits, use.getOperandNumber() == 0 ? 2u : 1u);
  }
  return bits;
}

/// From a tile with a margin.
Registers readBesideMargins(LoadShiftedOp op, Emitter &e) {
  Type element = registerType(op.getResult().getType());
  SharedType shared = op.getShared().getType();
  const unsigned bytes = shared.getElementBytes();
  SharedAccess access = accessOf(layoutOf(op.getResult().getType()), shared.linear(), bytes);
  keepWithinLines(access, shared);
  const int64_t lines = shared.getMargin() - op.getOffsetAttr().getInt();
  Value base = e.offset(e.scalar(op.getShared()), lines * shared.getLinePitch());
  std::optional<MatrixAccess> matrices = matrixAccess(access.offsets, 8 * bytes, operandBits(op.getResult()));
  const bool byMatrices = matrices && shared.getLineBytes() >= 16;
  TileAddress addresses(e, base, inBytes(byMatrices ? matrices->laneOffsets : access.offsets.bases(InDim::Lane), bytes),
                        inBytes(access.offsets.bases(InDim::Warp), bytes), apartIn(shared));
  auto addressAt = [&](uint32_t offset) { return addresses.at(offset * bytes); };
  return byMatrices ? emitMatrixLoad(e, *matrices, access.offsets, element, addressAt)
                    : emitSharedLoad(e, access, element, addressAt);
}

LogicalResult lowerLoadShifted(LoadShiftedOp op, Emitter &e) {
  if (op.getShared().getType().getMargin()) {
    e.bind(op.getResult(), readBesideMargins(op, e));
    return success();
  }
  Type element = registerType(op.getResult().getType());
  SharedType shared = op.getShared().getType();
  const LinearLayout &layout = layoutOf(op.getResult().getType());
  unsigned bits = shared.getElementType().getIntOrFloatBitWidth(), bytes = llvm::divideCeil(bits, 8);
  unsigned axis = op.getAxis();
  int64_t shift = op.getOffsetAttr().getInt();
  SharedAccess access = accessOf(layout, shared.linear(), bytes);
  ShiftedAddress addresses(e, e.scalar(op.getShared()), shared.linear(), axis, shift, bytes, isInLoopOfManyStores(op));
  Outside outside(e, layout, axis, shift);
  auto crossesAxis = [&](unsigned bit) { return addresses.partOf(1u << bit).along != 0; };
  auto addressAt = [&](uint32_t offset) { return addresses.at(offset); };

  std::optional<MatrixAccess> matrices = matrixAccess(access.offsets, bits, operandBits(op.getResult()));
  unsigned rowBits = llvm::Log2_32(std::max(1u, 16 / bytes));
  if (matrices && llvm::none_of(llvm::seq(0u, rowBits), crossesAxis)) {
    addresses.setLanes(matrices->laneOffsets, access.offsets.bases(InDim::Warp));
    // Transposed, the two elements of a word are of two rows.
    auto clear = [&](Value word, uint32_t reg) {
      return matrices->transposed ? outside.clearHalves(word, reg) : outside.clear(word, reg);
    };
    e.bind(op.getResult(), emitMatrixLoad(e, *matrices, access.offsets, element, addressAt, clear));
    return success();
  }
  // A piece is what stays together: along the other axes only.
  for (unsigned count = 0; count < access.pieceBits.size(); ++count)
    if (crossesAxis(count))
      access.pieceBits.resize(count);
  addresses.setLanes(access.offsets.bases(InDim::Lane), access.offsets.bases(InDim::Warp));
  Registers registers = emitSharedLoad(e, access, element, addressAt);
  for (auto [reg, value] : llvm::enumerate(registers))
    value = outside.clear(value, reg);
  e.bind(op.getResult(), registers);
  return success();
}

} // namespace

void addShiftLowerings(LoweringTable &table) { table.add<LoadShiftedOp>(lowerLoadShifted); }

} // namespace weft

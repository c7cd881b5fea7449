// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile.scan: prefixes along an axis, one bit of the coordinate at a time.
//
// After the bits below k, each element holds its prefix within its block of 2^k neighbours, and the block's total. Bit
// k joins two blocks: the second one's prefixes and the total take in the first one's total. Whether the two blocks are
// in two registers, two lanes or two warps is what the layout says of that bit, so that any layout that walks along the
// axis by single bits is scanned where it is. Neighbours that a thread holds are joined before, one after another. Sums
// of four elements:
//
//   elements       3 1 4 1
//   after bit 0    3 4 | 4 5       totals 4, 5
//   after bit 1    3 4 8 9         total 9

#include "compiler/Conversion/WarpToLLVM/Lanes/Combine.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

/// The input bit of a layout that moves by one bit of a coordinate.
struct InputBit {
  InDim dim;
  unsigned index;
};

std::optional<InputBit> findBit(const LinearLayout &layout, unsigned axis, unsigned bit) {
  SmallVector<int64_t, 4> wanted(layout.rank(), 0);
  wanted[axis] = int64_t(1) << bit;
  uint32_t element = layout.linearize(wanted);
  for (InDim dim : {InDim::Register, InDim::Lane, InDim::Warp})
    for (auto [index, basis] : llvm::enumerate(layout.bases(dim)))
      if (basis == element)
        return InputBit{dim, static_cast<unsigned>(index)};
  return std::nullopt;
}

class Scan {
public:
  Scan(tile::ScanOp op, Emitter &e) : op(op), e(e), layout(layoutOf(op.getSources().front().getType())) {}

  LogicalResult run() {
    for (uint32_t reg = 0; reg < layout.size(InDim::Register); ++reg) {
      Tuple own;
      for (Value operand : op.getSources())
        own.push_back(e.registers(operand)[reg]);
      prefixes.push_back(own);
    }
    totals = prefixes;
    unsigned axis = op.getAxis(), bits = llvm::Log2_64(layout.shape()[axis]), bit = 0;
    SmallVector<uint32_t> steps; // neighbours that a thread holds: the registers' bits that are the lowest
    for (std::optional<InputBit> input; bit < bits; ++bit) {
      input = findBit(layout, axis, bit);
      if (!input || input->dim != InDim::Register)
        break;
      steps.push_back(1u << input->index);
    }
    if (failed(joinNeighbours(steps)))
      return failure();
    for (; bit < bits; ++bit) {
      std::optional<InputBit> input = findBit(layout, axis, bit);
      if (!input)
        return op.emitOpError("cannot be scanned in a layout that does not walk along axis ")
               << axis << " by single bits: " << layout.str();
      if (failed(joinBit(*input)))
        return failure();
    }
    if (failed(takeInCarry()))
      return failure();
    for (OpResult result : op.getResults())
      e.bind(result,
             llvm::map_to_vector(prefixes, [&](const Tuple &prefix) { return prefix[result.getResultNumber()]; }));
    return success();
  }

private:
  std::optional<Tuple> join(const Tuple &earlier, const Tuple &later) {
    return combine(e, op.getCombiner(), earlier, later);
  }

  /// Joins what a thread holds of neighbours, one after another: each prefix is one step from the one before.
  LogicalResult joinNeighbours(ArrayRef<uint32_t> steps) {
    uint32_t mask = 0, count = 1u << steps.size();
    for (uint32_t step : steps)
      mask |= step;
    auto at = [&](uint32_t first, uint32_t place) { // the register so many places on
      if (op.getReverse())
        place = count - 1 - place;
      for (auto [bit, step] : llvm::enumerate(steps))
        first |= place >> bit & 1 ? step : 0;
      return first;
    };
    const SmallVector<Tuple> own = prefixes;
    for (uint32_t first = 0; first < own.size(); ++first) {
      if (first & mask)
        continue;
      // Registers that hold the same have the same prefixes (whose totals are exchanged once).
      uint32_t like = 0;
      auto holdsTheSame = [&](uint32_t place) { return own[at(like, place)] == own[at(first, place)]; };
      while (like < first && ((like & mask) || !llvm::all_of(llvm::seq(count), holdsTheSame)))
        ++like;
      for (uint32_t place = 1; place < count; ++place) {
        std::optional<Tuple> prefix = like < first ? std::optional(prefixes[at(like, place)])
                                                   : join(prefixes[at(first, place - 1)], own[at(first, place)]);
        if (!prefix)
          return failure();
        prefixes[at(first, place)] = *prefix;
      }
      for (uint32_t place = 0; place < count; ++place)
        totals[at(first, place)] = prefixes[at(first, count - 1)];
    }
    return success();
  }

  /// What changes nothing where it comes before; null where nothing is known that does not.
  Value identity() {
    Block &body = op.getCombiner().front();
    auto type = dyn_cast<IntegerType>(cast<RankedTensorType>(op.getSources().front().getType()).getElementType());
    if (!type || op.getSources().size() != 1 || !llvm::hasNItems(body, 2))
      return {};
    unsigned width = type.getWidth();
    std::optional<APInt> number =
        llvm::TypeSwitch<Operation *, std::optional<APInt>>(&body.front())
            .Case<arith::AddIOp, arith::OrIOp, arith::XOrIOp, arith::MaxUIOp>(
                [&](auto) { return APInt::getZero(width); })
            .Case([&](arith::MaxSIOp) { return APInt::getSignedMinValue(width); })
            .Case([&](arith::MinSIOp) { return APInt::getSignedMaxValue(width); })
            .Case<arith::MinUIOp, arith::AndIOp>([&](auto) { return APInt::getAllOnes(width); })
            .Default([](Operation *) { return std::nullopt; });
    if (!number)
      return {};
    return LLVM::ConstantOp::create(e.b, e.loc, type, IntegerAttr::get(type, *number));
  }

  LogicalResult joinBit(InputBit bit) {
    bool one = totals.size() > 1 && llvm::all_of(totals, [&](const Tuple &total) { return total == totals.front(); });
    if (bit.dim == InDim::Lane && one)
      return carryFromLane(bit.index);
    if (failed(takeInCarry()))
      return failure();
    return bit.dim == InDim::Register ? joinRegisters(bit.index) : joinThreads(bit);
  }

  Tuple choose(Value condition, const Tuple &yes, const Tuple &no) {
    Tuple chosen;
    for (auto [a, b] : llvm::zip_equal(yes, no))
      chosen.push_back(LLVM::SelectOp::create(e.b, e.loc, condition, a, b));
    return chosen;
  }

  /// Whether a thread's block is the later one of the two that a bit joins.
  Value isLater(InputBit bit) {
    Value position = bit.dim == InDim::Lane ? e.lane() : e.warp();
    return LLVM::ICmpOp::create(e.b, e.loc, op.getReverse() ? LLVM::ICmpPredicate::eq : LLVM::ICmpPredicate::ne,
                                LLVM::AndOp::create(e.b, e.loc, position, e.i32(1u << bit.index)), e.i32(0));
  }

  /// Joins blocks in two lanes where all registers of a lane are one block: what comes before it is kept aside, and
  /// joined to the registers once.
  LogicalResult carryFromLane(unsigned bit) {
    Value later = isLater({InDim::Lane, bit});
    Tuple own = totals.front(), other = totalsOfLane(bit).front();
    if (!carried) {
      Value none = identity();
      carriesAnyway = bool(none);
      carry = none ? choose(later, other, {none}) : other;
      carried = later;
    } else if (carriesAnyway) {
      std::optional<Tuple> both = join(other, carry);
      if (!both)
        return failure();
      carry = choose(later, *both, carry);
    } else {
      std::optional<Tuple> both = join(other, carry);
      if (!both)
        return failure();
      carry = choose(later, choose(carried, *both, other), carry);
      carried = LLVM::OrOp::create(e.b, e.loc, carried, later);
    }
    std::optional<Tuple> total = join(choose(later, other, own), choose(later, own, other));
    if (!total)
      return failure();
    totals.assign(totals.size(), *total);
    return success();
  }

  LogicalResult takeInCarry() {
    if (!carried)
      return success();
    for (Tuple &prefix : prefixes) {
      std::optional<Tuple> whole = join(carry, prefix);
      if (!whole)
        return failure();
      prefix = carriesAnyway ? *whole : choose(carried, *whole, prefix);
    }
    carried = Value();
    return success();
  }

  LogicalResult joinRegisters(unsigned bit) {
    SmallVector<Tuple> before = totals;
    for (uint32_t first = 0; first < totals.size(); ++first) {
      uint32_t second = first | 1u << bit;
      if (first == second)
        continue;
      uint32_t earlier = op.getReverse() ? second : first, later = op.getReverse() ? first : second;
      std::optional<Tuple> prefix = join(before[earlier], prefixes[later]);
      // Registers of one block have one total, which is joined once (and so exchanged once between lanes).
      uint32_t same = 0;
      while (same < first &&
             ((same & 1u << bit) || before[same] != before[first] || before[same | 1u << bit] != before[second]))
        ++same;
      std::optional<Tuple> total = same < first ? std::optional(totals[same]) : join(before[earlier], before[later]);
      if (!prefix || !total)
        return failure();
      prefixes[later] = *prefix;
      totals[first] = totals[second] = *total;
    }
    return success();
  }

  /// Joins blocks in two lanes or two warps: each thread sees the other's total.
  LogicalResult joinThreads(InputBit bit) {
    Value set = isLater(bit);
    FailureOr<SmallVector<Tuple>> others = bit.dim == InDim::Lane ? totalsOfLane(bit.index) : totalsOfWarp(bit.index);
    if (failed(others))
      return failure();
    const SmallVector<Tuple> before = totals;
    for (uint32_t reg = 0; reg < totals.size(); ++reg) {
      const Tuple &other = (*others)[reg];
      std::optional<Tuple> prefix = join(other, prefixes[reg]);
      uint32_t like = firstLike(before, reg);
      std::optional<Tuple> total = like < reg ? std::optional(totals[like])
                                              : join(choose(set, other, before[reg]), choose(set, before[reg], other));
      if (!prefix || !total)
        return failure();
      prefixes[reg] = choose(set, *prefix, prefixes[reg]);
      totals[reg] = *total;
    }
    return success();
  }

  /// The first register whose total is that of `reg`.
  static uint32_t firstLike(ArrayRef<Tuple> totals, uint32_t reg) {
    return llvm::find(totals, totals[reg]) - totals.begin();
  }

  SmallVector<Tuple> totalsOfLane(unsigned bit) {
    SmallVector<Tuple> received;
    for (auto [reg, total] : llvm::enumerate(totals)) {
      uint32_t like = firstLike(totals, reg);
      if (like < reg)
        received.push_back(received[like]);
      else
        received.push_back(llvm::map_to_vector<2>(total, [&](Value value) { return e.shuffleXor(value, 1u << bit); }));
    }
    return received;
  }

  /// Through scratch memory, [register, thread], one array for each operand.
  FailureOr<SmallVector<Tuple>> totalsOfWarp(unsigned bit) {
    auto scratch = op->getAttrOfType<IntegerAttr>(scratchAttrName);
    if (!scratch)
      return op.emitOpError("has no scratch memory; run 'warp-allocate-shared' before");
    uint32_t threads = 32 * e.warps;
    Value own = e.thread(), others = LLVM::XOrOp::create(e.b, e.loc, own, e.i32(32u << bit));
    SmallVector<Tuple> received(totals.size());
    int64_t offset = scratch.getInt();
    // Memory may still be read by the exchange over the bit before.
    if (scratchWasRead)
      e.barrier();
    scratchWasRead = true;
    SmallVector<ScratchArray> arrays;
    for (Value operand : op.getSources()) {
      Type element = cast<RankedTensorType>(operand.getType()).getElementType();
      arrays.emplace_back(e, offset, registerType(element), elementBytes(element));
      offset += scanBytes(operand.getType(), e.warps);
    }
    auto at = [&](Value thread, uint32_t reg) { return LLVM::AddOp::create(e.b, e.loc, thread, e.i32(reg * threads)); };
    for (auto [reg, total] : llvm::enumerate(totals))
      for (auto [array, value] : llvm::zip_equal(arrays, total))
        array.store(at(own, reg), value, Value());
    e.barrier();
    for (auto [reg, tuple] : llvm::enumerate(received))
      for (ScratchArray &array : arrays)
        tuple.push_back(array.load(at(others, reg)));
    return received;
  }

  tile::ScanOp op;
  Emitter &e;
  const LinearLayout &layout;
  SmallVector<Tuple> prefixes, totals; // one for each register
  Tuple carry;                         // what comes before all of a lane's registers,
  Value carried = {};                  // where something does; null before any bit of the lane
  bool carriesAnyway = false;          // where nothing does, `carry` changes nothing
  bool scratchWasRead = false;         // by the exchange over another bit
};

} // namespace

void addScanLowerings(LoweringTable &table) {
  table.add<tile::ScanOp>([](tile::ScanOp op, Emitter &e) { return Scan(op, e).run(); });
}

} // namespace weft

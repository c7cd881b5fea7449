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
//
// Bits in a row of the lane are joined together: each lane takes in what the lanes before it have, of the nearest, then
// of two, of four. Bits in a row of the warp are, too: each thread reads the totals of all their warps, and takes in those
// before its own. What comes before a thread's neighbours, of lanes, registers and warps, is joined with each of them once,
// at the end.

#include "compiler/Conversion/WarpToLLVM/Lanes/Combine.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "dialects/Warp/Transforms/Scratch.h"
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

/// What comes before a register's block, nothing where `value` is empty; and whether there is any, always where `exists` is
/// null.
struct Before {
  Tuple value;
  Value exists;
};

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
    before.resize(prefixes.size());
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
    while (bit < bits) {
      std::optional<InputBit> input = findBit(layout, axis, bit);
      if (!input)
        return op.emitOpError("cannot be scanned in a layout that does not walk along axis ")
               << axis << " by single bits: " << layout.str();
      unsigned count = input->dim == InDim::Register ? 1 : bitsInRow(axis, bit, bits);
      bit += count;
      if (failed(joinBits(*input, count, /*isLast=*/bit == bits)))
        return failure();
    }
    if (failed(joinBefore()))
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

  /// How many bits of the coordinate, from one that is a bit of the lane or warp on, are its next bits. Of warps no more
  /// than each thread may read the totals of.
  unsigned bitsInRow(unsigned axis, unsigned bit, unsigned bits) {
    constexpr unsigned mostOfWarps = 3;
    const InputBit first = *findBit(layout, axis, bit);
    unsigned most = first.dim == InDim::Warp ? std::min(bits, bit + mostOfWarps) : bits, count = 1;
    for (; bit + count < most; ++count) {
      std::optional<InputBit> next = findBit(layout, axis, bit + count);
      if (!next || next->dim != first.dim || next->index != first.index + count)
        break;
    }
    return count;
  }

  LogicalResult joinBits(InputBit first, unsigned count, bool isLast) {
    return first.dim == InDim::Register ? joinRegisters(first.index)
           : first.dim == InDim::Lane   ? joinLanes(first.index, count, isLast)
                                        : joinWarps(first.index, count, isLast);
  }

  Tuple choose(Value condition, const Tuple &yes, const Tuple &no) {
    Tuple chosen;
    for (auto [a, b] : llvm::zip_equal(yes, no))
      chosen.push_back(LLVM::SelectOp::create(e.b, e.loc, condition, a, b));
    return chosen;
  }

  /// Puts what comes before all that a register has been joined with up to now before that. `made`: by one step, of
  /// registers that had the same.
  LogicalResult putBefore(uint32_t reg, const Before &more, SmallVectorImpl<std::array<Before, 3>> &made) {
    Before &own = before[reg];
    if (own.value.empty()) {
      own = more;
      return success();
    }
    auto same = llvm::find_if(made, [&](const auto &each) {
      return each[0].value == own.value && each[0].exists == own.exists && each[1].value == more.value;
    });
    if (same != made.end()) {
      own = (*same)[2];
      return success();
    }
    std::optional<Tuple> both = join(more.value, own.value);
    if (!both)
      return failure();
    Before all{*both, {}};
    if (own.exists)
      all.value = choose(own.exists, all.value, more.value);
    if (more.exists)
      all.value = choose(more.exists, all.value, own.value);
    if (own.exists && more.exists)
      all.exists = LLVM::OrOp::create(e.b, e.loc, own.exists, more.exists);
    made.push_back({own, more, all});
    own = all;
    return success();
  }

  /// Joins each register with what comes before it.
  LogicalResult joinBefore() {
    for (auto [prefix, earlier] : llvm::zip_equal(prefixes, before)) {
      if (earlier.value.empty())
        continue;
      std::optional<Tuple> whole = join(earlier.value, prefix);
      if (!whole)
        return failure();
      prefix = earlier.exists ? choose(earlier.exists, *whole, prefix) : *whole;
    }
    return success();
  }

  /// What the lane so many before this one has, in the order of the scan.
  Tuple fromBefore(const Tuple &own, unsigned lanes) {
    return llvm::map_to_vector<2>(
        own, [&](Value value) { return op.getReverse() ? e.shuffleDown(value, lanes) : e.shuffleUp(value, lanes); });
  }

  /// Joins blocks in 2^count lanes, whose numbers differ in the bits from `first` on.
  LogicalResult joinLanes(unsigned first, unsigned count, bool isLast) {
    uint32_t unit = 1u << first, all = ((1u << count) - 1) << first;
    Value place = LLVM::AndOp::create(e.b, e.loc, e.lane(), e.i32(static_cast<int32_t>(all)));
    if (op.getReverse())
      place = LLVM::XOrOp::create(e.b, e.loc, place, e.i32(static_cast<int32_t>(all)));
    auto comesAfter = [&](uint32_t lanes) -> Value {
      return LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::uge, place, e.i32(static_cast<int32_t>(lanes)));
    };
    Value hasEarlier = comesAfter(unit);
    const SmallVector<Tuple> own = totals;
    SmallVector<Tuple> earlier(own.size()); // what comes before a block, of all lanes; empty where nobody asks
    SmallVector<std::array<Before, 3>> made;
    for (uint32_t reg = 0; reg < own.size(); ++reg) {
      uint32_t like = firstLike(own, reg);
      if (like == reg) { // registers of one block have one total
        for (uint32_t lanes = unit; lanes <= all; lanes *= 2) {
          std::optional<Tuple> both = join(fromBefore(totals[reg], lanes), totals[reg]);
          if (!both)
            return failure();
          totals[reg] = choose(lanes == unit ? hasEarlier : comesAfter(lanes), *both, totals[reg]);
        }
      } else {
        totals[reg] = totals[like];
      }
      if (prefixes[reg] == own[reg] && before[reg].value.empty()) {
        prefixes[reg] = totals[like];
        continue;
      }
      if (earlier[like].empty())
        earlier[like] = fromBefore(totals[like], unit);
      if (failed(putBefore(reg, {earlier[like], hasEarlier}, made)))
        return failure();
    }
    if (!isLast)
      shareTotals(own, all);
    return success();
  }

  /// Gives every lane the total of the last of those that were joined.
  void shareTotals(ArrayRef<Tuple> own, uint32_t lanes) {
    Value last = op.getReverse()
                     ? Value(LLVM::AndOp::create(e.b, e.loc, e.lane(), e.i32(static_cast<int32_t>(~lanes & 31))))
                     : Value(LLVM::OrOp::create(e.b, e.loc, e.lane(), e.i32(static_cast<int32_t>(lanes))));
    for (uint32_t reg = 0; reg < totals.size(); ++reg) {
      uint32_t like = firstLike(own, reg);
      totals[reg] = like < reg
                        ? totals[like]
                        : llvm::map_to_vector<2>(totals[reg], [&](Value value) { return e.shuffleIndex(value, last); });
    }
  }

  LogicalResult joinRegisters(unsigned bit) {
    const SmallVector<Tuple> own = totals;
    SmallVector<std::array<Before, 3>> made;
    for (uint32_t first = 0; first < totals.size(); ++first) {
      uint32_t second = first | 1u << bit;
      if (first == second)
        continue;
      uint32_t earlier = op.getReverse() ? second : first, later = op.getReverse() ? first : second;
      // Registers of one block have one total, which is joined once (and so exchanged once between lanes).
      uint32_t same = 0;
      while (same < first && ((same & 1u << bit) || own[same] != own[first] || own[same | 1u << bit] != own[second]))
        ++same;
      std::optional<Tuple> total = same < first ? std::optional(totals[same]) : join(own[earlier], own[later]);
      if (!total || failed(putBefore(later, {own[earlier], {}}, made)))
        return failure();
      totals[first] = totals[second] = *total;
    }
    return success();
  }

  /// Joins blocks in 2^count warps, whose numbers differ in the bits from `first` on: each thread sees all totals.
  LogicalResult joinWarps(unsigned first, unsigned count, bool isLast) {
    const uint32_t warps = 1u << count, mask = (warps - 1) << first;
    FailureOr<SmallVector<SmallVector<Tuple>>> all = totalsOfWarps(first, count);
    if (failed(all))
      return failure();
    Value number = LLVM::AndOp::create(e.b, e.loc, e.warp(), e.i32(static_cast<int32_t>(mask)));
    auto isPlace = [&](LLVM::ICmpPredicate predicate, uint32_t place) -> Value {
      uint32_t warp = op.getReverse() ? warps - 1 - place : place;
      return LLVM::ICmpOp::create(e.b, e.loc, predicate, number, e.i32(static_cast<int32_t>(warp << first)));
    };
    SmallVector<Value> isAt{isPlace(LLVM::ICmpPredicate::ne, 0)};
    for (uint32_t place = 2; place < warps; ++place)
      isAt.push_back(isPlace(LLVM::ICmpPredicate::eq, place));
    const SmallVector<Tuple> own = totals;
    SmallVector<std::array<Before, 3>> made;
    SmallVector<Tuple> earlier(
        totals.size()); // what comes before a thread's block, of those that have anything before them
    for (uint32_t reg = 0; reg < totals.size(); ++reg) {
      uint32_t like = firstLike(own, reg);
      if (like == reg) {
        Tuple total = earlier[reg] = all->front()[reg];
        for (uint32_t place = 1; place < warps; ++place) {
          if (place > 1)
            earlier[reg] = choose(isAt[place - 1], total, earlier[reg]);
          if (place + 1 == warps && isLast)
            break;
          std::optional<Tuple> more = join(total, (*all)[place][reg]);
          if (!more)
            return failure();
          total = *more;
        }
        totals[reg] = total;
      } else {
        totals[reg] = totals[like];
      }
      if (failed(putBefore(reg, {earlier[like], isAt.front()}, made)))
        return failure();
    }
    return success();
  }

  /// The first register whose total is that of `reg`.
  static uint32_t firstLike(ArrayRef<Tuple> totals, uint32_t reg) {
    return llvm::find(totals, totals[reg]) - totals.begin();
  }

  /// The totals of warps whose numbers differ in some bits, in the order of the scan, by register: through scratch
  /// memory, [register, thread], one array for each operand. Of registers with one total the first alone has it.
  FailureOr<SmallVector<SmallVector<Tuple>>> totalsOfWarps(unsigned first, unsigned count) {
    auto scratch = op->getAttrOfType<IntegerAttr>(scratchAttrName);
    if (!scratch)
      return op.emitOpError("has no scratch memory; run 'warp-allocate-shared' before");
    const uint32_t threads = 32 * e.warps, warps = 1u << count, mask = (warps - 1) << first;
    int64_t offset = scratch.getInt();
    // Memory may still be read by the exchange over the bits before.
    if (scratchWasRead)
      e.barrier();
    scratchWasRead = true;
    SmallVector<ScratchArray> arrays;
    for (Value operand : op.getSources()) {
      Type element = cast<RankedTensorType>(operand.getType()).getElementType();
      arrays.emplace_back(e, offset, registerType(element), elementBytes(element));
      offset += scanBytes(operand.getType(), e.warps);
    }
    SmallVector<uint32_t> held; // registers of totals of their own
    for (uint32_t reg = 0; reg < totals.size(); ++reg)
      if (firstLike(totals, reg) == reg)
        held.push_back(reg);
    // Totals of a thread that are as many as an access has are neighbours; others lie by threads.
    const bool areWords = llvm::all_of(op.getSources(), [](Value operand) {
      return elementBytes(cast<RankedTensorType>(operand.getType()).getElementType()) == 4;
    });
    const uint32_t together = areWords && (held.size() == 2 || held.size() == 4) ? held.size() : 1;
    auto at = [&](Value thread, uint32_t warp, uint32_t group) -> Value {
      if (together > 1)
        thread = LLVM::MulOp::create(e.b, e.loc, thread, e.i32(static_cast<int32_t>(together)));
      return LLVM::AddOp::create(e.b, e.loc, thread,
                                 e.i32(static_cast<int32_t>(32 * warp * together + group * threads)));
    };
    for (uint32_t group = 0; group < held.size(); group += together)
      for (unsigned i = 0; i < arrays.size(); ++i) {
        Registers values;
        for (uint32_t reg : ArrayRef(held).slice(group, together))
          values.push_back(totals[reg][i]);
        arrays[i].storeVector(at(e.thread(), 0, group), values, Value());
      }
    e.barrier();
    Value firstOfRow = LLVM::AndOp::create(e.b, e.loc, e.thread(), e.i32(static_cast<int32_t>(~(mask << 5))));
    SmallVector<SmallVector<Tuple>> received(warps, SmallVector<Tuple>(totals.size()));
    for (uint32_t place = 0; place < warps; ++place) {
      uint32_t warp = (op.getReverse() ? warps - 1 - place : place) << first;
      for (uint32_t group = 0; group < held.size(); group += together)
        for (ScratchArray &array : arrays)
          for (auto [reg, value] : llvm::zip_equal(ArrayRef(held).slice(group, together),
                                                   array.loadVector(at(firstOfRow, warp, group), together)))
            received[place][reg].push_back(value);
    }
    return received;
  }

  tile::ScanOp op;
  Emitter &e;
  const LinearLayout &layout;
  SmallVector<Tuple> prefixes, totals; // one for each register
  SmallVector<Before> before;
  bool scratchWasRead = false; // by the exchange over another bit
};

} // namespace

void addScanLowerings(LoweringTable &table) {
  table.add<tile::ScanOp>([](tile::ScanOp op, Emitter &e) { return Scan(op, e).run(); });
}

} // namespace weft

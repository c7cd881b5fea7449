// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile.reduce: inside each thread, then over the lanes of a warp by shuffles, then over warps through shared memory. A
// sum of 64 elements in one warp:
//
//   %s = tile.reduce add %x     -->     %a = llvm.fadd %x0, %x1
//                                       %b = llvm.fadd %a, (shfl.bfly %a, 1)      and so on for 2, 4, 8 and 16

#include "compiler/Conversion/WarpToLLVM/Lanes/Combine.h"
#include "compiler/Conversion/WarpToLLVM/Lanes/Extrema.h"
#include "compiler/Conversion/WarpToLLVM/Lanes/PartialPlaces.h"
#include "compiler/Conversion/WarpToLLVM/Lanes/WholeWarp.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

/// The reduction of one op, step by step. `Tuple` holds one value for each operand.
class Reduction {
public:
  Reduction(tile::ReduceOp op, Emitter &e)
      : op(op), e(e), axis(op.getAxis()), source(layoutOf(op.getSources().front().getType())),
        result(source.dropAxis(axis)), held(result), exchange(warpReduction(source, axis)),
        wholeWarp(WholeWarp::of(op, e.target)) {
    if (isa<RankedTensorType>(op.getResult(0).getType()))
      wanted = layoutOf(op.getResult(0).getType());
    else
      wanted = result;
  }

  LogicalResult run() {
    if (failed(overRegisters()) || failed(overLanes()) || failed(overWarps()))
      return failure();
    for (OpResult value : op.getResults())
      e.bind(value, llvm::map_to_vector(totals, [&](const Tuple &total) { return total[value.getResultNumber()]; }));
    return success();
  }

private:
  /// Whether a basis moves along the reduced axis.
  bool movesAlong(uint32_t basis) const { return source.delinearize(basis)[axis] != 0; }
  /// The element of the result that an element of the source falls on.
  uint32_t project(uint32_t element) const {
    SmallVector<int64_t, 4> coordinates = source.delinearize(element);
    coordinates.erase(coordinates.begin() + axis);
    return result.linearize(coordinates);
  }

  LogicalResult overRegisters() {
    // Registers of the result by the element they hold, relative to lane and warp.
    llvm::DenseMap<uint32_t, unsigned> registerOf;
    for (uint32_t reg = 0; reg < result.size(InDim::Register); ++reg)
      registerOf.try_emplace(result.apply(InDim::Register, reg), reg);
    SmallVector<SmallVector<Tuple>> terms(result.size(InDim::Register));
    const SmallVector<Value> products = addedProducts();
    // Product by product, so that those of a chunk of channels are dead before the next chunk is computed.
    SmallVector<SmallVector<Value>> added;
    for (Value product : products)
      added.push_back({product});
    const Value truths = countedTruths();
    const std::optional<Halves> halves = halvesReduced(op, source, e);
    if (products.empty())
      added.push_back(truths   ? SmallVector<Value>{truths}
                      : halves ? SmallVector<Value>{halves->source}
                               : llvm::to_vector(op.getSources()));
    const uint32_t repeated = source.freeBits()[InDim::Register];
    for (ArrayRef<Value> operands : added)
      for (uint32_t reg = 0; reg < source.size(InDim::Register); ++reg) {
        if (reg & repeated)
          continue; // an element counts once
        Tuple term;
        for (Value operand : operands)
          term.push_back(e.registers(operand)[reg]);
        terms[registerOf.at(project(source.apply(InDim::Register, reg)))].push_back(term);
      }
    for (SmallVector<Tuple> &list : terms) {
      std::optional<Tuple> total = truths             ? Tuple{countOf(list)}
                                   : halves           ? Tuple{extremumOf(op, *halves, firsts(list), e)}
                                   : products.empty() ? combineAtOnce(e, op.getCombiner(), list)
                                                      : combineChains(e, op.getCombiner(), list);
      if (!total && !truths && !halves && products.empty())
        total = combineTree(e, op.getCombiner(), list);
      if (!total)
        return failure();
      totals.push_back(*total);
    }
    return success();
  }

  static SmallVector<Value> firsts(ArrayRef<Tuple> list) {
    return llvm::map_to_vector(list, [](const Tuple &tuple) { return tuple.front(); });
  }

  /// The truths that a sum of zeros and ones counts; null where it is none.
  Value countedTruths() {
    auto ones = op.getSources().front().getDefiningOp<arith::ExtUIOp>();
    const bool isOf32 = ones && tile::elementTypeOf(ones.getType()).isInteger(32);
    return isOf32 && tile::elementTypeOf(ones.getIn().getType()).isInteger(1) && wholeWarp &&
                   wholeWarp->kind == NVVM::ReduxKind::ADD
               ? ones.getIn()
               : Value();
  }

  /// How many of a thread's truths hold: the first as a number, to which each other adds one where it holds.
  Value countOf(ArrayRef<Tuple> list) {
    constexpr size_t together = 8;
    const SmallVector<Value> all = firsts(list);
    ArrayRef<Value> truths = all;
    SmallVector<Value> counts;
    for (; !truths.empty(); truths = truths.drop_front(std::min(together, truths.size()))) {
      ArrayRef<Value> these = truths.take_front(together);
      std::string code = "selp.u32 $0, 1, 0, $1;", constraints = "=r";
      for (size_t i = 0; i < these.size(); ++i) {
        constraints += ",b";
        if (i > 0)
          code += " @$" + std::to_string(i + 1) + " add.s32 $0, $0, 1;";
      }
      counts.push_back(e.inlineAsm(code, constraints, e.b.getI32Type(), these, /*sideEffects=*/false).front());
    }
    Value total = counts.front();
    for (Value count : ArrayRef(counts).drop_front())
      total = LLVM::AddOp::create(e.b, e.loc, total, count);
    return total;
  }

  /// The products that a sum adds, where it is one of products and of nothing else: each then is one instruction with
  /// an addition. Empty where it is not, or where someone else asks for what is added.
  SmallVector<Value> addedProducts() {
    Block &body = op.getCombiner().front();
    if (op.getSources().size() != 1 || !isa<arith::AddFOp>(body.front()) || !llvm::hasNItems(body, 2))
      return {};
    SmallVector<Value> products, waiting{op.getSources().front()};
    while (!waiting.empty()) {
      Value value = waiting.pop_back_val();
      Operation *made = value.getDefiningOp();
      if (!value.hasOneUse() || !isa_and_nonnull<arith::AddFOp, arith::MulFOp>(made) ||
          made->getBlock() != op->getBlock())
        return {};
      if (isa<arith::MulFOp>(made))
        products.push_back(value);
      else
        waiting.append({made->getOperand(1), made->getOperand(0)});
    }
    return products;
  }

  /// Brings together a total of lanes whose numbers differ in the given bits.
  LogicalResult overLanes(ArrayRef<unsigned> bits, Tuple &total) {
    for (unsigned bit : bits) {
      Tuple other = llvm::map_to_vector<2>(total, [&](Value value) { return e.shuffleXor(value, 1u << bit); });
      std::optional<Tuple> sum = combine(e, op.getCombiner(), total, other);
      if (!sum)
        return failure();
      total = *sum;
    }
    return success();
  }

  LogicalResult overLanes() {
    SmallVector<unsigned> bits;
    for (auto [bit, basis] : llvm::enumerate(source.bases(InDim::Lane)))
      if (movesAlong(basis))
        bits.push_back(bit);
    if (wholeWarp && !bits.empty() && totals.front().front().getType().isInteger(1)) {
      for (Tuple &total : totals)
        total.front() = wholeWarp->overVotes(bits, total.front(), e);
      return success();
    }
    if (wholeWarp && 1 << bits.size() == e.target.warpSize) {
      for (Tuple &total : totals)
        total.front() = wholeWarp->over(total.front(), e);
      return success();
    }
    unsigned words = 0;
    for (Value operand : op.getSources())
      words += llvm::divideCeil(elementBytes(cast<RankedTensorType>(operand.getType()).getElementType()), 4);
    const unsigned combining = op.getCombiner().front().getOperations().size() - 1;
    const bool wantsAll = exchange.partials == 1;
    ArrayRef<unsigned> halved =
        ArrayRef(bits).take_front(laneReduction(totals.size(), bits.size(), words, combining, wantsAll).halved);
    for (unsigned bit : halved)
      if (failed(halveOver(bit)))
        return failure();
    for (unsigned bit : ArrayRef(bits).drop_front(halved.size()))
      for (Tuple &total : totals)
        if (failed(overLanes(bit, total)))
          return failure();
    if (!wantsAll)
      holdHalves(halved);
    else if (!halved.empty())
      readHalves(halved);
    return success();
  }

  /// Two lanes whose numbers differ in `bit` exchange the half of their totals that the other one keeps.
  LogicalResult halveOver(unsigned bit) {
    const size_t half = totals.size() / 2;
    Value isUpper = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ne,
                                         LLVM::AndOp::create(e.b, e.loc, e.lane(), e.i32(1 << bit)), e.i32(0));
    for (size_t i = 0; i < half; ++i) {
      Tuple kept, other;
      for (auto [lower, upper] : llvm::zip_equal(totals[i], totals[half + i])) {
        kept.push_back(LLVM::SelectOp::create(e.b, e.loc, isUpper, upper, lower));
        other.push_back(e.shuffleXor(LLVM::SelectOp::create(e.b, e.loc, isUpper, lower, upper), 1u << bit));
      }
      std::optional<Tuple> sum = combine(e, op.getCombiner(), kept, other);
      if (!sum)
        return failure();
      totals[i] = *sum;
    }
    totals.truncate(half);
    return success();
  }

  /// The layout of totals of which lanes have halves: the last bits of registers have gone to these lanes' bits.
  void holdHalves(ArrayRef<unsigned> halved) {
    SmallVector<uint32_t> registers(result.bases(InDim::Register)), lanes(result.bases(InDim::Lane));
    for (unsigned bit : halved)
      lanes[bit] = registers.pop_back_val();
    held = LinearLayout(result.shape());
    for (uint32_t basis : registers)
      held.append(InDim::Register, basis);
    for (uint32_t basis : lanes)
      held.append(InDim::Lane, basis);
    for (InDim dim : {InDim::Warp, InDim::Block})
      for (uint32_t basis : result.bases(dim))
        held.append(dim, basis);
  }

  /// All totals, from the lanes that have them.
  void readHalves(ArrayRef<unsigned> halved) {
    const unsigned registerBits = llvm::Log2_32(result.size(InDim::Register));
    uint32_t lanesOfHalves = 0;
    for (unsigned bit : halved)
      lanesOfHalves |= 1u << bit;
    Value others = LLVM::AndOp::create(e.b, e.loc, e.lane(), e.i32(~lanesOfHalves));
    SmallVector<Tuple> all;
    for (unsigned reg = 0; reg < 1u << registerBits; ++reg) {
      uint32_t lane = 0;
      for (auto [i, bit] : llvm::enumerate(halved))
        lane |= (reg >> (registerBits - 1 - i) & 1) << bit;
      Value from = LLVM::OrOp::create(e.b, e.loc, others, e.i32(lane));
      all.push_back(llvm::map_to_vector<2>(totals[reg & (totals.size() - 1)],
                                           [&](Value value) { return e.shuffleIndex(value, from); }));
    }
    totals = std::move(all);
  }

  LogicalResult overWarps() {
    if (exchange.partials == 1)
      return success();
    auto scratch = op->getAttrOfType<IntegerAttr>(scratchAttrName);
    if (!scratch)
      return op.emitOpError("has no scratch memory; run 'warp-allocate-shared' before");
    const bool isOfWords = llvm::all_of(op.getSources(), [](Value operand) {
      return elementBytes(cast<RankedTensorType>(operand.getType()).getElementType()) == 4;
    });
    const PartialPlaces places(wanted, held, isOfWords);
    int64_t offset = scratch.getInt();
    SmallVector<ScratchArray> arrays, behind;
    for (Value operand : op.getSources()) {
      Type element = cast<RankedTensorType>(operand.getType()).getElementType();
      unsigned bytes = elementBytes(element);
      arrays.emplace_back(e, offset, registerType(element), bytes);
      behind.emplace_back(e, offset + exchange.partialBytes(bytes), registerType(element), bytes);
      offset += exchange.bytes(bytes);
    }
    const PartialPlaces::Of written = places.of(held), read = places.of(wanted);
    Value writer = writesPartial();
    // A warp's own partial result is its number of those along the axis.
    Value own = LLVM::MulOp::create(e.b, e.loc, partialOfWarp(), e.i32(exchange.stride));
    Value lanes = written.ofThread(e);
    for (unsigned reg = 0; reg < totals.size(); reg += written.neighbours) {
      Value index = LLVM::AddOp::create(e.b, e.loc, own, written.ofRegister(e, lanes, reg));
      for (auto [i, array] : llvm::enumerate(arrays)) {
        Registers values;
        for (const Tuple &total : ArrayRef(totals).slice(reg, written.neighbours))
          values.push_back(total[i]);
        array.storeVector(index, values, writer);
      }
    }
    e.barrier();
    if (exchange.inTurn && failed(addInTurn(arrays, behind)))
      return failure();
    lanes = read.ofThread(e);
    totals.assign(wanted.size(InDim::Register), Tuple(op.getNumResults()));
    for (unsigned reg = 0; reg < totals.size(); reg += read.neighbours) {
      Value index = read.ofRegister(e, lanes, reg);
      if (failed(exchange.inTurn ? readTotals(read, behind, index, reg) : addPartials(read, arrays, index, reg)))
        return failure();
    }
    return success();
  }

  /// The number that a warp's own partial result has of those along the axis.
  Value partialOfWarp() {
    SmallVector<uint32_t> numbers;
    uint32_t next = 1;
    for (uint32_t basis : source.bases(InDim::Warp)) {
      const bool along = movesAlong(basis);
      numbers.push_back(along ? next : 0);
      next <<= along ? 1 : 0;
    }
    return e.xorOfBits({}, numbers);
  }

  /// As many neighbouring lanes as there are partial results bring a result together, and the first of them writes it.
  LogicalResult addInTurn(MutableArrayRef<ScratchArray> arrays, MutableArrayRef<ScratchArray> behind) {
    const unsigned bitsOfPartial = llvm::Log2_32(exchange.partials);
    const int64_t atOnce = int64_t(32 * source.size(InDim::Warp)) >> bitsOfPartial;
    Value partial = LLVM::AndOp::create(e.b, e.loc, e.lane(), e.i32(exchange.partials - 1));
    Value group = LLVM::LShrOp::create(e.b, e.loc, e.thread(), e.i32(bitsOfPartial));
    Value writer = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::eq, partial, e.i32(0));
    if (atOnce > exchange.results) { // the other lanes read what is there, and leave it
      Value one = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ult, group, e.i32(exchange.results));
      writer = LLVM::AndOp::create(e.b, e.loc, writer, one);
      group = LLVM::AndOp::create(e.b, e.loc, group, e.i32(exchange.results - 1));
    }
    Value own = LLVM::MulOp::create(e.b, e.loc, partial, e.i32(exchange.stride));
    Value first = LLVM::AddOp::create(e.b, e.loc, own, group);
    const SmallVector<unsigned> bits = llvm::to_vector(llvm::seq<unsigned>(0, bitsOfPartial));
    for (int64_t from = 0; from < exchange.results; from += atOnce) {
      Value index = LLVM::AddOp::create(e.b, e.loc, first, e.i32(from));
      Tuple total = llvm::map_to_vector<2>(arrays, [&](ScratchArray &array) { return array.load(index); });
      if (failed(overLanes(bits, total)))
        return failure();
      Value at = LLVM::AddOp::create(e.b, e.loc, group, e.i32(from));
      for (auto [array, value] : llvm::zip_equal(behind, total))
        array.store(at, value, writer);
    }
    e.barrier();
    return success();
  }

  /// The totals of registers that are neighbours, from `reg` on.
  LogicalResult readTotals(const PartialPlaces::Of &read, MutableArrayRef<ScratchArray> behind, Value index,
                           unsigned reg) {
    for (auto [i, array] : llvm::enumerate(behind))
      for (auto [beside, value] : llvm::enumerate(array.loadVector(index, read.neighbours)))
        totals[reg + beside][i] = value;
    return success();
  }

  /// Lanes that hold the same results, each of which takes some of the partial results: the bits of their numbers. A bit
  /// halves what a lane reads and brings together, and costs an exchange of each of the registers that are neighbours.
  /// Partial results of several warps that are read at once would lie in the same banks where one's do not fill a line of
  /// these, but its results do: then all lanes or none, and none where results are read elsewhere than they were.
  SmallVector<unsigned> lanesForPartials(unsigned partials, unsigned registers) const {
    auto instructions = [&](unsigned bits) {
      const unsigned each = partials >> bits;
      return each + (each - 1) * registers + 2 * bits * registers;
    };
    SmallVector<unsigned> bits;
    for (auto [bit, basis] : llvm::enumerate(wanted.bases(InDim::Lane)))
      if (basis == 0 && (2u << bits.size()) <= partials)
        bits.push_back(bit);
    constexpr int64_t banks = 32;
    const int64_t atOnce = registers * (banks >> llvm::count(wanted.bases(InDim::Lane), 0u));
    if (atOnce < banks && result.numElements() >= banks) {
      const bool all = 1u << bits.size() == partials && wanted == result;
      return all && instructions(bits.size()) <= instructions(0) ? bits : SmallVector<unsigned>();
    }
    while (!bits.empty() && instructions(bits.size()) > instructions(bits.size() - 1))
      bits.pop_back();
    return bits;
  }

  /// A value where the lane is the first of those that have the same by `sharing`, else zero.
  Value ofOneEach(ArrayRef<unsigned> sharing, Value value) {
    uint32_t others = 31;
    for (unsigned bit : sharing)
      others &= ~(1u << bit);
    if (!others)
      return value;
    Value isFirst =
        LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::eq,
                             LLVM::AndOp::create(e.b, e.loc, e.lane(), e.i32(static_cast<int32_t>(others))), e.i32(0));
    return LLVM::SelectOp::create(e.b, e.loc, isFirst, value, e.zero(value.getType()));
  }

  /// Brings together what lanes made of their partial results: truths that the whole warp has alike, by its vote, in
  /// which lanes that hold the same say the same; numbers that it has alike by its instruction, to which of those lanes
  /// one gives what is added.
  LogicalResult overSharing(ArrayRef<unsigned> sharing, Tuple &total) {
    const bool isOfWarp = llvm::all_of(wanted.bases(InDim::Lane), [](uint32_t basis) { return basis == 0; });
    if (!wholeWarp || !isOfWarp || sharing.empty())
      return overLanes(sharing, total);
    const unsigned width = total.front().getType().getIntOrFloatBitWidth();
    if (std::optional<NVVM::VoteSyncKind> decision = wholeWarp->decision(); decision && width == 1) {
      total.front() = voteOfWarp(e, *decision, total.front());
      return success();
    }
    if (width == 1 || width > 32 || sharing.size() < 2)
      return overLanes(sharing, total);
    if (!wholeWarp->isIdempotent())
      total.front() = ofOneEach(sharing, total.front());
    total.front() = wholeWarp->over(total.front(), e);
    return success();
  }

  /// Brings together the partial results of registers that are neighbours, from `reg` on: lanes that hold the same
  /// results take some of the partial results each and exchange what they make of them.
  LogicalResult addPartials(const PartialPlaces::Of &read, MutableArrayRef<ScratchArray> arrays, Value index,
                            unsigned reg) {
    const SmallVector<unsigned> sharing = lanesForPartials(exchange.partials, read.neighbours);
    const unsigned each = exchange.partials >> sharing.size();
    if (!sharing.empty()) {
      SmallVector<uint32_t> partialOfLane(read.lane.size(), 0);
      for (auto [i, bit] : llvm::enumerate(sharing))
        partialOfLane[bit] = exchange.stride << i;
      index = LLVM::AddOp::create(e.b, e.loc, index, e.xorOfBits(partialOfLane, {}));
    }
    SmallVector<SmallVector<Tuple>> terms(read.neighbours, SmallVector<Tuple>(each));
    for (unsigned partial = 0; partial < each; ++partial)
      for (ScratchArray &array : arrays) {
        Value at = LLVM::AddOp::create(e.b, e.loc, index, e.i32((partial << sharing.size()) * exchange.stride));
        for (auto [i, value] : llvm::enumerate(array.loadVector(at, read.neighbours)))
          terms[i][partial].push_back(value);
      }
    for (auto [i, list] : llvm::enumerate(terms)) {
      std::optional<Tuple> sum = combineTree(e, op.getCombiner(), list);
      if (!sum || failed(overSharing(sharing, *sum)))
        return failure();
      totals[reg + i] = *sum;
    }
    return success();
  }

  /// True in one lane for each partial result: lanes that differ in what moves to no other hold the same.
  Value writesPartial() {
    uint32_t mask = 0;
    for (auto [bit, basis] : llvm::enumerate(held.bases(InDim::Lane)))
      mask |= basis ? 0 : 1u << bit;
    if (!mask)
      return {};
    Value bits = LLVM::AndOp::create(e.b, e.loc, e.lane(), e.i32(mask));
    return LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::eq, bits, e.i32(0));
  }

  tile::ReduceOp op;
  Emitter &e;
  unsigned axis;
  const LinearLayout &source;
  LinearLayout result;          // of all that a warp's lanes have together, each of them all
  LinearLayout held;            // where lanes have halves
  LinearLayout wanted;          // of what is read where warps bring their shares together; else the same
  const WarpReduction exchange; // of what warps have
  const std::optional<WholeWarp> wholeWarp;
  SmallVector<Tuple> totals; // one for each register of the result
};

LogicalResult lowerExtreme(ExtremeOp op, Emitter &e) {
  const bool greatest = op.getGreatest();
  Value extreme;
  for (Value number : e.registers(op.getNumbers()))
    if (!extreme)
      extreme = number;
    else
      extreme = greatest ? LLVM::SMaxOp::create(e.b, e.loc, extreme, number).getResult()
                         : LLVM::SMinOp::create(e.b, e.loc, extreme, number).getResult();
  auto kind = greatest ? NVVM::ReduxKind::MAX : NVVM::ReduxKind::MIN;
  Value ofWarp = NVVM::ReduxOp::create(e.b, e.loc, e.b.getI32Type(), extreme, kind, e.i32(-1));
  e.bind(op.getResult(), ofWarp);
  return success();
}

LogicalResult lowerAny(AnyOp op, Emitter &e) {
  Value any;
  for (Value truth : llvm::SmallSetVector<Value, 8>(llvm::from_range, e.registers(op.getTruths())))
    any = any ? LLVM::OrOp::create(e.b, e.loc, any, truth).getResult() : truth;
  e.bind(op.getResult(), voteOfWarp(e, NVVM::VoteSyncKind::any, any));
  return success();
}

} // namespace

void addReduceLowerings(LoweringTable &table) {
  table.add<AnyOp>(lowerAny);
  table.add<ExtremeOp>(lowerExtreme);
  table.add<tile::ReduceOp>([](tile::ReduceOp op, Emitter &e) { return Reduction(op, e).run(); });
}

} // namespace weft

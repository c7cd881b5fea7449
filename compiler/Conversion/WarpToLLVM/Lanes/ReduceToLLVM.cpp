// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile.reduce: inside each thread, then over the lanes of a warp by shuffles, then over warps through shared memory. A
// sum of 64 elements in one warp:
//
//   %s = tile.reduce add %x     -->     %a = llvm.fadd %x0, %x1
//                                       %b = llvm.fadd %a, (shfl.bfly %a, 1)      and so on for 2, 4, 8 and 16

#include "compiler/Conversion/WarpToLLVM/Lanes/Combine.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpDialect.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

/// The reduction of one op, step by step. `Tuple` holds one value for each operand.
class Reduction {
public:
  Reduction(tile::ReduceOp op, Emitter &e)
      : op(op), e(e), axis(op.getAxis()), source(layoutOf(op.getSources().front().getType())),
        result(source.dropAxis(axis)) {}

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
    if (products.empty())
      added.push_back(llvm::to_vector(op.getSources()));
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
      std::optional<Tuple> total =
          products.empty() ? combineTree(e, op.getCombiner(), list) : combineChains(e, op.getCombiner(), list);
      if (!total)
        return failure();
      totals.push_back(*total);
    }
    return success();
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

  LogicalResult overLanes() {
    for (auto [bit, basis] : llvm::enumerate(source.bases(InDim::Lane))) {
      if (!movesAlong(basis))
        continue;
      for (Tuple &total : totals) {
        Tuple other =
            llvm::map_to_vector<2>(total, [&, bit = bit](Value value) { return e.shuffleXor(value, 1u << bit); });
        std::optional<Tuple> sum = combine(e, op.getCombiner(), total, other);
        if (!sum)
          return failure();
        total = *sum;
      }
    }
    return success();
  }

  LogicalResult overWarps() {
    Type first = op.getSources().front().getType();
    unsigned partials = warpsAlongAxis(first, axis);
    if (partials == 1)
      return success();
    auto scratch = op->getAttrOfType<IntegerAttr>(scratchAttrName);
    if (!scratch)
      return op.emitOpError("has no scratch memory; run 'warp-allocate-shared' before");
    // Partial results lie as [partial, element of the result], one array for each operand.
    SmallVector<uint32_t> partialOfWarp, laneElement, warpElement;
    for (uint32_t basis : source.bases(InDim::Warp)) {
      partialOfWarp.push_back(
          movesAlong(basis) ? 1u << llvm::count_if(partialOfWarp, [](uint32_t bit) { return bit != 0; }) : 0);
      warpElement.push_back(project(basis));
    }
    for (uint32_t basis : source.bases(InDim::Lane))
      laneElement.push_back(project(basis));

    int64_t offset = scratch.getInt();
    SmallVector<ScratchArray> arrays;
    for (Value operand : op.getSources()) {
      Type element = cast<RankedTensorType>(operand.getType()).getElementType();
      arrays.emplace_back(e, offset, registerType(element), elementBytes(element));
      offset += llvm::alignTo<16>(int64_t(partials) * result.numElements() * elementBytes(element));
    }
    uint32_t elements = result.numElements();
    Value lanePart = e.xorOfBits(laneElement, warpElement);
    Value partialPart = LLVM::MulOp::create(e.b, e.loc, e.xorOfBits({}, partialOfWarp), e.i32(elements));
    Value writer = writesPartial();
    auto indexOf = [&](unsigned reg) {
      return LLVM::XOrOp::create(e.b, e.loc, lanePart, e.i32(result.apply(InDim::Register, reg)));
    };
    for (auto [reg, total] : llvm::enumerate(totals)) {
      Value index = LLVM::AddOp::create(e.b, e.loc, partialPart, indexOf(reg));
      for (auto [array, value] : llvm::zip_equal(arrays, total))
        array.store(index, value, writer);
    }
    e.barrier();
    for (auto [reg, total] : llvm::enumerate(totals)) {
      Value index = indexOf(reg);
      SmallVector<Tuple> terms(partials);
      for (unsigned partial = 0; partial < partials; ++partial)
        for (ScratchArray &array : arrays)
          terms[partial].push_back(array.load(LLVM::AddOp::create(e.b, e.loc, index, e.i32(partial * elements))));
      std::optional<Tuple> sum = combineTree(e, op.getCombiner(), terms);
      if (!sum)
        return failure();
      total = *sum;
    }
    return success();
  }

  /// True in one lane for each partial result: lanes that only differ along the axis hold the same after the shuffles.
  Value writesPartial() {
    uint32_t mask = source.freeBits()[InDim::Lane];
    for (auto [bit, basis] : llvm::enumerate(source.bases(InDim::Lane)))
      if (movesAlong(basis))
        mask |= 1u << bit;
    if (!mask)
      return {};
    Value bits = LLVM::AndOp::create(e.b, e.loc, e.lane(), e.i32(mask));
    return LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::eq, bits, e.i32(0));
  }

  tile::ReduceOp op;
  Emitter &e;
  unsigned axis;
  const LinearLayout &source;
  LinearLayout result;
  SmallVector<Tuple> totals; // one for each register of the result
};

} // namespace

void addReduceLowerings(LoweringTable &table) {
  table.add<tile::ReduceOp>([](tile::ReduceOp op, Emitter &e) { return Reduction(op, e).run(); });
}

} // namespace weft

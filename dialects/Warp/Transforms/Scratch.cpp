// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Scratch.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/ShuffleExchange.h"
#include "dialects/Warp/Layout/ShuffleGather.h"
#include "dialects/Warp/Transforms/Tensor/TensorProducts.h"
#include "llvm/ADT/TypeSwitch.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft::warp;

unsigned weft::warp::elementBytes(Type element) {
  return isa<tile::PointerType>(element) ? 8 : llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

unsigned weft::warp::warpsAlongAxis(const LinearLayout &layout, unsigned axis) {
  unsigned count = 1;
  for (uint32_t basis : layout.bases(InDim::Warp))
    count *= layout.delinearize(basis)[axis] ? 2 : 1;
  return count;
}

int64_t weft::warp::tileAlignment(Operation *kernel) {
  constexpr int64_t banks = 128;
  bool warpgroups = kernel->walk([](WgmmaOp) { return WalkResult::interrupt(); }).wasInterrupted();
  return warpgroups ? TargetInfo::ofOrDefault(kernel).warpgroups.tileAlignment : banks;
}

int64_t weft::warp::bytesOfTensorSlots(func::FuncOp kernel) {
  SharedType slots = tensorSlots(kernel, TargetInfo::ofOrDefault(kernel));
  return slots && kernel.getOps<TensorBeginOp>().empty() ? llvm::alignTo(slots.getBytes(), tileAlignment(kernel)) : 0;
}

int64_t weft::warp::ringPitch(ArrayRef<SharedType> rings, int64_t alignment) {
  if (rings.size() == 1)
    return SharedType(rings.front()).getTileBytes();
  int64_t pitch = 0;
  for (SharedType ring : rings)
    pitch += llvm::alignTo(ring.getTileBytes(), alignment);
  return pitch;
}

int64_t WarpReduction::partialBytes(unsigned elementBytes) const {
  return llvm::alignTo<16>(partials * stride * elementBytes);
}

int64_t WarpReduction::bytes(unsigned elementBytes) const {
  return partialBytes(elementBytes) + (inTurn ? llvm::alignTo<16>(results * elementBytes) : 0);
}

WarpReduction weft::warp::warpReduction(const LinearLayout &layout, unsigned axis) {
  constexpr int64_t warpSize = 32, mostJoined = 4, barriers = 64; // wavefronts that two barriers are worth
  const LinearLayout result = layout.dropAxis(axis);
  WarpReduction found{warpsAlongAxis(layout, axis), result.numElements(), result.numElements()};
  const int64_t partials = found.partials, lanes = warpSize >> llvm::count(result.bases(InDim::Lane), 0u);
  // Lanes that hold the same results share the partial ones out among them.
  if (partials < 8 || warpSize / lanes >= partials)
    return found;
  const int64_t warps = layout.size(InDim::Warp);
  const int64_t registers = result.size(InDim::Register) >> llvm::popcount(result.freeBits()[InDim::Register]);
  const int64_t held = llvm::divideCeil(registers * lanes, warpSize); // wavefronts of a warp's own results
  const int64_t inTurn = llvm::divideCeil((partials + 1) * found.results, warpSize) + warps * held;
  if (warps * held * partials < inTurn + barriers)
    return found;
  found.inTurn = true;
  found.stride += std::max(warpSize / partials, mostJoined); // so that lanes that bring a result together use all banks
  return found;
}

LaneReduction weft::warp::laneReduction(unsigned results, unsigned bits, unsigned words, unsigned combining,
                                        bool wantsAll) {
  constexpr int64_t ofPlaces = 4; // where halves lie in shared memory, which a register keeps
  LaneReduction best{0, int64_t(results) * bits * (words + combining)};
  int64_t halving = 0;
  for (unsigned halved = 1; halved <= bits && results >> halved; ++halved) {
    const int64_t left = results >> halved;
    halving += left * (3 * words + combining);
    int64_t instructions = halving + left * (bits - halved) * (words + combining);
    instructions += wantsAll ? results * words + (int64_t(1) << halved) : ofPlaces; // and whom to read from
    if (instructions < best.instructions)
      best = {halved, instructions};
  }
  return best;
}

/// Partial results of each operand.
static int64_t reductionBytes(ValueRange sources, unsigned axis) {
  int64_t bytes = 0;
  for (Value source : sources) {
    auto type = cast<RankedTensorType>(source.getType());
    if (WarpReduction reduction = warpReduction(layoutAttrOf(type).getLayout(), axis); reduction.partials > 1)
      bytes += reduction.bytes(elementBytes(type.getElementType()));
  }
  return bytes;
}

int64_t weft::warp::scanBytes(Type tensor, unsigned warps) {
  const LinearLayout &layout = layoutAttrOf(tensor).getLayout();
  unsigned bytes = elementBytes(cast<RankedTensorType>(tensor).getElementType());
  return llvm::alignTo<16>(int64_t(layout.size(InDim::Register)) * 32 * warps * bytes);
}

static bool lacksLayout(Type type) { return isa<RankedTensorType>(type) && !layoutAttrOf(type); }

LogicalResult weft::warp::expectLayouts(func::FuncOp kernel) {
  const bool interrupted = kernel
                               .walk([](Operation *op) {
                                 auto lacking = llvm::find_if(op->getResultTypes(), lacksLayout);
                                 if (lacking == op->result_type_end())
                                   return WalkResult::advance();
                                 op->emitOpError("has a result of type ")
                                     << *lacking << " without a layout; run 'tile-to-warp' before";
                                 return WalkResult::interrupt();
                               })
                               .wasInterrupted();
  return failure(interrupted);
}

int64_t weft::warp::scratchBytes(Operation *op) {
  if (llvm::any_of(op->getOperandTypes(), lacksLayout) || llvm::any_of(op->getResultTypes(), lacksLayout))
    return 0;
  return TypeSwitch<Operation *, int64_t>(op)
      .Case([](ConvertLayoutOp convert) -> int64_t {
        auto source = cast<RankedTensorType>(convert.getSource().getType()),
             result = cast<RankedTensorType>(convert.getResult().getType());
        const LinearLayout &from = layoutAttrOf(source).getLayout(), &to = layoutAttrOf(result).getLayout();
        unsigned bytes = elementBytes(source.getElementType());
        bool staysInRegisters = to.registerPermutation(from) || shuffleExchange(from, to, bytes);
        return staysInRegisters ? 0 : source.getNumElements() * bytes;
      })
      .Case([](tile::ReduceOp reduce) -> int64_t { return reductionBytes(reduce.getSources(), reduce.getAxis()); })
      .Case([](tile::ScanOp scan) -> int64_t {
        int64_t bytes = 0;
        for (Value source : scan.getSources())
          if (warpsAlongAxis(layoutAttrOf(source.getType()).getLayout(), scan.getAxis()) > 1)
            bytes += scanBytes(source.getType(), layoutAttrOf(source.getType()).getLayout().size(InDim::Warp));
        return bytes;
      })
      .Case([](tile::GatherOp gather) -> int64_t {
        auto source = cast<RankedTensorType>(gather.getSource().getType());
        unsigned bytes = elementBytes(source.getElementType());
        bool staysInWarps = shuffleGather(layoutAttrOf(source).getLayout(), layoutAttrOf(gather.getType()).getLayout(),
                                          gather.getAxis(), bytes)
                                .has_value();
        return staysInWarps ? 0 : source.getNumElements() * bytes;
      })
      .Case([](tile::HistogramOp histogram) -> int64_t {
        auto result = cast<RankedTensorType>(histogram.getType());
        return llvm::alignTo<16>(result.getNumElements() * elementBytes(result.getElementType()));
      })
      .Default(int64_t(0));
}

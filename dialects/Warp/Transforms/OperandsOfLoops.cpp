// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/OperandsOfLoops.h"

#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/MathExtras.h"
#include <limits>

using namespace mlir;

namespace weft::warp {

int64_t registersOf(Value value) {
  auto type = dyn_cast<RankedTensorType>(value.getType());
  auto layout = type ? dyn_cast_or_null<LayoutAttr>(type.getEncoding()) : LayoutAttr();
  if (!layout)
    return 0;
  unsigned bits = type.getElementType().isIntOrFloat() ? type.getElementType().getIntOrFloatBitWidth() : 64;
  return (int64_t(layout.getLayout().size(InDim::Register)) * bits + 31) / 32;
}

SmallVector<Value> operandsFromBefore(scf::ForOp loop) {
  llvm::SetVector<Value> before;
  loop.walk([&](Operation *product) {
    if (!isProductOfRegisters(product))
      return;
    for (Value operand : product->getOperands().take_front(2))
      if (!loop->isAncestor(operand.getParentBlock()->getParentOp()))
        before.insert(operand);
  });
  return before.takeVector();
}

int64_t registersAsOperand(Value value) {
  // Of the sum of two of fewer bits that a product takes in the place of an f32, both are held.
  bool two = llvm::any_of(value.getUsers(), [](Operation *user) {
    auto mma = dyn_cast<MmaOp>(user);
    return mma && mma.getPrecision() == tile::Precision::TF32x3 && isa<Float32Type>(getElementTypeOrSelf(mma.getA()));
  });
  return registersOf(value) * (two ? 2 : 1);
}

int64_t registersHeldBy(scf::ForOp loop) {
  int64_t total = 0;
  for (Value value : operandsFromBefore(loop))
    total += registersAsOperand(value);
  return total;
}

bool takesManyOperands(scf::ForOp loop, const TargetInfo &target) {
  constexpr int64_t manyProducts = 12;
  int64_t products = 0;
  loop.walk([&](MmaOp) { ++products; });
  return products >= manyProducts && registersHeldBy(loop) > target.registersPerThread / 3;
}

/// How many elements each access takes at once whose address an index becomes, element by element, and that is all it
/// becomes; 1 for another value. Of so many indices one is computed.
static int64_t elementsOfEachAddress(Value value, unsigned depth = 6) {
  auto ofUser = [&](Operation *user) -> int64_t {
    if (auto copy = dyn_cast<AsyncCopyOp>(user))
      return copy.getContiguity();
    if (isa<tile::LoadOp, tile::StoreOp>(user)) {
      auto contiguity = user->getAttrOfType<IntegerAttr>(contiguityAttrName);
      return user->getOperand(0) == value && contiguity ? contiguity.getInt() : 1;
    }
    bool goesOn = isa<tile::AddPtrOp>(user) ||
                  (user->hasTrait<OpTrait::Elementwise>() && getElementTypeOrSelf(user->getResult(0)).isIntOrIndex());
    return goesOn && depth > 0 ? elementsOfEachAddress(user->getResult(0), depth - 1) : 1;
  };
  int64_t least = std::numeric_limits<int64_t>::max();
  for (Operation *user : value.getUsers())
    if (least = std::min(least, ofUser(user)); least == 1)
      return 1;
  return value.use_empty() ? 1 : least;
}

/// Registers of a value while it lives: none of what is made again where it is used, and little of a product's operand
/// that is read from shared memory, which streams through.
static int64_t registersWhileAlive(Value value, Indices indices = Indices::All) {
  constexpr int64_t streaming = 16;
  auto type = dyn_cast<RankedTensorType>(value.getType());
  if (!type || !type.getElementType().isIntOrFloat() || type.getElementType().isInteger(1))
    return 0;
  Operation *op = value.getDefiningOp();
  if (isa_and_nonnull<tile::SplatOp, tile::MakeRangeOp, tile::BroadcastOp, tile::ExpandDimsOp, arith::ConstantOp>(op))
    return 0;
  if (indices == Indices::OfAccesses && type.getElementType().isInteger())
    return llvm::divideCeil(registersOf(value), elementsOfEachAddress(value));
  bool streams = isa_and_nonnull<LoadSharedOp>(op) && llvm::all_of(op->getUsers(), isProductOfRegisters);
  return streams ? std::min(streaming, registersOf(value)) : registersOf(value);
}

int64_t mostAlive(scf::ForOp loop, Indices indices) {
  llvm::DenseSet<Value> seen;
  int64_t alive = 0, most = 0;
  for (Value carried : loop.getRegionIterArgs())
    alive += registersWhileAlive(carried, indices);
  loop.getBody()->walk([&](Operation *op) {
    for (Value operand : op->getOperands())
      if (loop.isDefinedOutsideOfLoop(operand) && seen.insert(operand).second)
        alive += registersWhileAlive(operand, indices);
  });
  for (Operation &op : llvm::reverse(*loop.getBody())) {
    for (Value result : op.getResults())
      if (seen.contains(result))
        alive -= registersWhileAlive(result, indices);
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (Operation *maker = operand.getDefiningOp();
            maker && maker->getBlock() == loop.getBody() && seen.insert(operand).second)
          alive += registersWhileAlive(operand, indices);
    });
    most = std::max(most, alive);
  }
  return most;
}

/// The product from which the sums go on that a product adds to, behind waits and what scales them on the way.
static bool addsToCarried(WgmmaOp product, scf::ForOp loop) {
  llvm::SetVector<Value> from;
  from.insert(product.getAcc());
  for (size_t at = 0; at < from.size(); ++at) {
    if (llvm::is_contained(loop.getRegionIterArgs(), from[at]))
      return true;
    Operation *op = from[at].getDefiningOp();
    if (!op || op->getBlock() != loop.getBody())
      continue;
    if (auto wait = dyn_cast<WgmmaWaitOp>(op))
      from.insert(wait.getValues()[cast<OpResult>(from[at]).getResultNumber()]);
    else if (auto before = dyn_cast<WgmmaOp>(op))
      from.insert(before.getAcc());
    else
      for (Value operand : op->getOperands())
        if (operand.getType() == from[at].getType())
          from.insert(operand);
  }
  return false;
}

ProductRegisters registersOfProducts(scf::ForOp loop) {
  ProductRegisters registers;
  llvm::SmallDenseSet<Value> goneOn; // sums that the next product adds to
  for (auto product : loop.getBody()->getOps<WgmmaOp>())
    if (auto wait = product.getAcc().getDefiningOp<WgmmaWaitOp>())
      goneOn.insert(wait.getValues()[cast<OpResult>(product.getAcc()).getResultNumber()]);
  for (auto product : loop.getBody()->getOps<WgmmaOp>()) {
    if (!goneOn.contains(product.getResult()) && !addsToCarried(product, loop))
      registers.fromZero += registersOf(product.getResult());
    if (product.takesRegisters())
      registers.operands += registersOf(product.getA());
  }
  for (auto [carried, yielded] : llvm::zip_equal(loop.getRegionIterArgs(), loop.getYieldedValues()))
    if (isa<FloatType>(getElementTypeOrSelf(carried))) // addresses are few, however many pointers there are
      registers.carried += std::min(registersOf(carried), registersWhileAlive(yielded));
  return registers;
}

/// How many bits of a layout's registers lead from an element to one that a load knows to be equal.
static int64_t bitsOfCopies(tile::LoadOp load, const LinearLayout &layout) {
  const uint32_t equal = equalBits(load, layout);
  return llvm::count_if(layout.bases(InDim::Register),
                        [&](uint32_t basis) { return basis != 0 && (basis & ~equal) == 0; });
}

int64_t registersThatDiffer(tile::LoadOp load) {
  const LinearLayout &layout = layoutAttrOf(load.getType()).getLayout();
  return layout.size(InDim::Register) >> bitsOfCopies(load, layout);
}

int64_t registersAhead(tile::LoadOp load) {
  constexpr int64_t ofScalar = 3;
  LayoutAttr layout = layoutAttrOf(load.getType());
  if (!layout)
    return ofScalar;
  auto contiguity = load->getAttrOfType<IntegerAttr>(contiguityAttrName);
  const int64_t pointers = registersThatDiffer(load);
  return std::max<int64_t>(1, registersOf(load.getResult()) >> bitsOfCopies(load, layout.getLayout())) +
         2 * std::max<int64_t>(1, contiguity ? pointers / contiguity.getInt() : pointers);
}

} // namespace weft::warp

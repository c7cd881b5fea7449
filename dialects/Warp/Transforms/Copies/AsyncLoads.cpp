// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Copies/AsyncLoads.h"

#include "dialects/Warp/Transforms/Accesses/UndefinedElements.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace weft::warp {

static int64_t contiguityOf(tile::LoadOp load) {
  auto contiguity = load->getAttrOfType<IntegerAttr>(contiguityAttrName);
  return contiguity ? contiguity.getInt() : 1;
}

int64_t pieceBytes(tile::LoadOp load) {
  return contiguityOf(load) * (tile::elementTypeOf(load.getType()).getIntOrFloatBitWidth() / 8);
}

/// Whether every bit of a load's masked elements is zero: those of -0.0 are not.
static bool fillsWithZeros(tile::LoadOp load) {
  DenseElementsAttr other;
  if (!load.getOther())
    return true;
  if (!matchPattern(load.getOther(), m_Constant(&other)) || !other.isSplat())
    return false;
  if (isa<FloatType>(other.getElementType()))
    return other.getSplatValue<APFloat>().isPosZero();
  return other.getSplatValue<APInt>().isZero();
}

StringRef whyNotAsync(tile::LoadOp load, const TargetInfo &target) {
  int64_t bytes = pieceBytes(load);
  if (load.getIsVolatile())
    return "the load is volatile";
  if (!target.canCopyAsync(bytes))
    return "no asynchronous copy of the target is of such pieces";
  bool passesL1 = load.getCache() == tile::CacheModifier::CG || load.getEviction() != tile::Eviction::Normal;
  if (passesL1 ? bytes != 16
               : load.getCache() != tile::CacheModifier::None && load.getCache() != tile::CacheModifier::CA)
    return "asynchronous copies have no such cache modifier or eviction priority";
  return fillsWithZeros(load) ? "" : "masked elements are other than zero";
}

void startCopy(OpBuilder &b, tile::LoadOp load, Value shared) {
  bool undefined = load.getMask() && !load.getOther() && !decidesAWay(load.getResult());
  bool throughL1 = load.getCache() == tile::CacheModifier::CA;
  AsyncCopyOp::create(b, load.getLoc(), load.getPtr(), load.getMask(), shared, contiguityOf(load), undefined,
                      throughL1);
  AsyncCommitOp::create(b, load.getLoc());
}

} // namespace weft::warp

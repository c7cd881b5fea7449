// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Verifiers of copies of boxes. The constraints C1, C2, ... are those of BoxOps.td.
#include "dialects/Warp/IR/WarpOps.h"

using namespace mlir;
using namespace weft::warp;

LogicalResult TensorMapOp::verify() {
  size_t rank = getSizes().size();
  if (rank < 1 || getStrides().size() + 1 != rank || getBox().size() != rank)
    return emitOpError() << "expected as many sizes as 'box' has, and one stride less, but got " << rank << ", "
                         << getBox().size() << " and " << getStrides().size();
  return success();
}

template <typename Op> static LogicalResult verifyCoordinates(Op op) {
  size_t count = op.getCoordinates().size();
  if (count == 0 || count > 5)
    return op.emitOpError() << "expected one to five coordinates, but got " << count;
  if (auto map = op.getMap().template getDefiningOp<TensorMapOp>(); map && map.getSizes().size() != count)
    return op.emitOpError() << "expected " << map.getSizes().size() << " coordinates, as the map has axes, but got "
                            << count;
  return success();
}

LogicalResult BoxCopyOp::verify() {
  constexpr int64_t mostBlocks = 8; // of a `#tile.schedule`
  if (std::optional<int64_t> block = getBy(); block && (*block < 0 || *block >= mostBlocks))
    return emitOpError() << "expected 'by' to be a block of a cluster, from 0 to 7, but got " << *block;
  return verifyCoordinates(*this);
}

LogicalResult BoxStoreOp::verify() {
  if (std::optional<weft::tile::AtomicKind> kind = getCombine()) {
    using Kind = weft::tile::AtomicKind;
    Type element = getShared().getType().getElementType();
    bool isNone = *kind == Kind::Exchange || *kind == Kind::UMax || *kind == Kind::UMin;
    if (isNone || (*kind == Kind::FAdd) != isa<FloatType>(element))
      return emitOpError() << "expected 'combine' to be 'fadd' of floats, or what signed integers are combined by, but "
                              "got '"
                           << weft::tile::stringifyAtomicKind(*kind) << "' of " << element;
  }
  return verifyCoordinates(*this);
}

LogicalResult MbarrierInitOp::verify() {
  int64_t count = getRing().getType().getTileBytes() / 8;
  if (static_cast<int64_t>(getArrivals().size()) != count)
    return emitOpError() << "expected arrivals for " << count << " barriers of a stage, but got "
                         << getArrivals().size();
  return success();
}

LogicalResult ProducerOp::verify() {
  if (getRegisters().has_value() != getOthers().has_value())
    return emitOpError("expected registers of its own threads and of the others, but got one of the two");
  return success();
}

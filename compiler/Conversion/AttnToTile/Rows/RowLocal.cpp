// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See RowLocal.h.
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "llvm/ADT/SetVector.h"

#include "compiler/Conversion/AttnToTile/Rows/RowLocalOpInterface.cpp.inc"

using namespace mlir;

namespace weft {

bool isRowLocal(Operation *op) {
  auto local = dyn_cast_if_present<RowLocalOpInterface>(op);
  auto rowSpace = [](Value value) {
    attn::WholeTensorType type = wholeType(value);
    return type.getRank() == 3 || (type.getRank() == 4 && type.staticDim(3));
  };
  return local && local.isRowLocal() && llvm::all_of(op->getResults(), rowSpace);
}

RowsRead rowsRead(Operation *op) {
  auto local = dyn_cast_if_present<RowLocalOpInterface>(op);
  return local ? local.rowsRead() : RowsRead::Own;
}

bool sumsChannels(Operation *op) {
  auto local = dyn_cast_if_present<RowLocalOpInterface>(op);
  return local && local.channelUse() == ChannelUse::Sum;
}

RowNeeds needsOf(ValueRange roots, const StoredValues &stored) {
  llvm::SetVector<Value> reached;
  reached.insert(roots.begin(), roots.end());
  bool sums = false, wide = false, neighbours = false;
  for (size_t i = 0; i < reached.size(); ++i) {
    Operation *op = reached[i].getDefiningOp();
    if (!op || stored.contains(reached[i]))
      continue;
    if (auto local = dyn_cast<RowLocalOpInterface>(op)) {
      sums |= local.channelUse() == ChannelUse::Sum;
      wide |= local.channelUse() == ChannelUse::Neighbours;
      neighbours |= local.rowsRead() == RowsRead::Neighbours;
    }
    reached.insert(op->operand_begin(), op->operand_end());
  }
  return {sums && !wide ? 32 : 256, neighbours};
}

// Each file of Rows/Ops defines the function that attaches its op's model.
#include "compiler/Conversion/AttnToTile/Rows/RowLocalOps.inc"

void registerRowLocalOps(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, attn::AttnDialect *) { attachAllRows(*context); });
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The op interface of what is computed on tiles of rows. An op joins by a file in Rows/Ops, like Rope.cpp:
//
//   struct RopeRows : RowLocalOpInterface::ExternalModel<RopeRows, attn::RopeOp> {
//     ChannelUse channelUse(Operation *) const { return ChannelUse::Neighbours; }
//     Value pull(Operation *op, OpResult, Puller &puller, const RowTile &rows, const Chunk *chunk) const {
//       Value x = puller.part(op->getOperand(0), rows, chunk); // [rows, channels] of the source
//       ...                                                    // tile IR
//     }
//   };
//   void attachRopeRows(MLIRContext &context) { attn::RopeOp::attachInterface<RopeRows>(context); }
#pragma once

#include "compiler/Conversion/AttnToTile/Rows/Puller.h"

namespace weft {

/// Which rows of its operands an op takes for a row of its result.
enum class RowsRead : uint8_t {
  Own,        ///< the same
  Neighbours, ///< rows at fixed distances
  Anywhere    ///< rows that a table names
};

/// How an op goes about the channels of a row: it decides how wide the chunks of a kernel are.
enum class ChannelUse : uint8_t {
  Each,       ///< each by itself
  Sum,        ///< it adds them up: narrow chunks, so that a row lies in few lanes
  Neighbours, ///< neighbours together, or much for each row and few for each channel: wide chunks
};

} // namespace weft

#include "compiler/Conversion/AttnToTile/Rows/RowLocalOpInterface.h.inc"

namespace weft {

/// Whether a puller can compute `op` (may be null) on a tile of rows.
bool isRowLocal(mlir::Operation *op);
/// Which rows such an op takes; its own of any other.
RowsRead rowsRead(mlir::Operation *op);
inline bool readsOtherRows(mlir::Operation *op) { return rowsRead(op) != RowsRead::Own; }
/// Whether such an op adds up channels.
bool sumsChannels(mlir::Operation *op);

/// What a kernel of row-local values needs of its tiles.
struct RowNeeds {
  int64_t widest;  ///< channels of a chunk
  bool neighbours; ///< other rows than the tile's, next to it
};
RowNeeds needsOf(mlir::ValueRange roots, const StoredValues &stored);

/// Makes known to the context, with the dialect, which of its ops are row-local. Passes that ask do so.
void registerRowLocalOps(mlir::DialectRegistry &registry);

} // namespace weft

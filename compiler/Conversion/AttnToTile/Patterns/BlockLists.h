// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Lists of blocks, built on the device, for patterns whose blocks no formula gives.
#pragma once

#include "compiler/Conversion/AttnToTile/Patterns/Attend.h"

namespace weft {

/// For each tile of the tiled side, the blocks of the other side that some pair of the pattern lies in: those with a
/// pair missing from the front of a row on, those without from its end back.
struct BlockLists {
  mlir::Value
      blocks; ///< [B', H', tiles, blocks] i32; B' and H' are 1 where the pattern is the same for every batch, or head
  mlir::Value counts; ///< [B', H', tiles, 2] i32: how many of each
  int64_t packed = 1; ///< how many neighbouring heads a tile has, which walk what one of them needs: H' is H / packed
  int64_t rows, columns; ///< of a tile, of each of its heads; of a block
  /// [B', H', tiles * rows, blocks * columns / width] i32 of so many bits (PairBits.h): which pairs belong, and exist, in
  /// blocks where some do. Null where pairs are not kept.
  mlir::Value bits = {};
};

/// Whether the pattern's blocks are given by formulas (`attn::rowSegments`), so that no lists are needed.
bool hasSegments(mlir::Attribute pattern);

/// Writes the kernel that builds the lists of one domain, and its launch before `attend.op`. `tileKeys`: tiles are of
/// `rows` keys and blocks of `columns` queries; otherwise the other way round. A tile is of `packed` heads, `rows`
/// tokens each: a block is in its list where one of them has a pair there, and lacks none where none does.
BlockLists buildBlockLists(const Attend &attend, unsigned domain, bool tileKeys, int64_t rows, int64_t columns,
                           StoredValues &stored, int64_t packed = 1);

/// The lists of every domain, empty where a domain needs none (formulas, or windows that the kernel is tiled by).
llvm::SmallVector<BlockLists> listsForDomains(const Attend &attend, bool tileKeys, int64_t rows, int64_t columns,
                                              StoredValues &stored, int64_t packed = 1);

/// As walkBlocks, by lists. `tile` (among those of all packed sequences), `batch` and `head` (of queries) are i32. A
/// `run` is one of places in the lists. Where `lastApart`, the last of the partial blocks has a loop of its own, so that
/// all columns of the others exist.
llvm::SmallVector<mlir::Value>
walkListed(KernelFrame &frame, const BlockLists &lists, mlir::Value tile, mlir::Value batch, mlir::Value head,
           mlir::ValueRange initial,
           llvm::function_ref<llvm::SmallVector<mlir::Value>(const WalkedBlock &, mlir::ValueRange)> body,
           bool lastApart, const std::optional<BlockRun> &run = {});

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Channels of a tile of rows: in chunks of powers of two, and shared among programs where they are many.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/TileBuilder.h"

namespace weft {

/// Channels [first, first + width) of the last axis; the last `width - valid` do not exist and count as 0. They count
/// from `base` (i32 scalar) where a program has a part of the channels; of those only the first `limit` exist, where
/// that is not 0.
struct Chunk {
  int64_t first, width, valid;
  mlir::Value base = {};
  int64_t limit = 0;

  /// i32: the first channel on the axis.
  mlir::Value start(TileBuilder &b) const { return base ? b.add(base, b.i32(first)) : b.i32(first); }
  /// [width] i1: which channels exist; null for all.
  mlir::Value inside(TileBuilder &b) const;
  /// Whether all of them do.
  bool isWhole() const { return !limit && valid == width; }
};

/// Splits `size` channels into chunks of powers of two of at least 16 and at most `most`: 96 = 64 + 32, 72 = 64 + 16 (8
/// valid).
llvm::SmallVector<Chunk> chunksOf(int64_t size, int64_t most = 256);

/// The channels that a program has of values of `channels` in all, where programs share them.
struct ChannelPart {
  int64_t channels;
  llvm::SmallVector<Chunk> chunks;
  mlir::Value isFirst; ///< i1: of one program for all parts, which stores what does not have these channels
};

/// How `channels` are split: into `parts` of `width` each, the last perhaps ragged.
struct WideValues {
  int64_t channels, width, parts;

  /// The chunks of the part that begins at channel `base` (i32).
  llvm::SmallVector<Chunk> chunksAt(mlir::Value base) const;
};

/// The split of `channels` into parts of at most `most`; nothing where they are no more than that.
std::optional<WideValues> splitChannels(int64_t channels, int64_t most);

/// The grid of kernels that split their values, from the one of those that do not.
std::array<std::string, 3> overParts(std::array<std::string, 3> grid, const std::optional<WideValues> &wide);

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How a kernel has a value's part at a tile of rows: loaded where the value is stored, else computed from the parts of
// what it is made of, by the op that makes it (RowLocal.h).
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/StoredValues.h"
#include "compiler/Conversion/AttnToTile/Rows/Channels.h"
#include "compiler/Conversion/AttnToTile/Rows/RowTile.h"

namespace weft {

/// Where a puller sees to it that a tile is 0: at rows and channels that do not exist, at those of one axis, or
/// nowhere, for those who throw away what is there, or select it away, before it meets anything else.
enum class Zeros : uint8_t { Everywhere, Rows, Channels, Nowhere };

/// Gives the parts of values inside one kernel.
class Puller {
public:
  /// `stored`: what a value of the program is outside the kernel, where it has been stored. Sums over channels go
  /// through chunks of at most `widest`.
  Puller(KernelFrame &frame, StoredValues &stored, int64_t widest = 256)
      : frame(frame), b(frame.b), stored(stored), widest(widest) {}

  /// A value computed in this kernel, at a tile and chunk: [count, width], or [count] for values of rank 3.
  void provide(mlir::Value value, const RowTile &rows, int64_t firstChannel, mlir::Value tile, mlir::Value base = {});
  /// What was provided of a value at rows and channels, where its block encloses this place; null where nothing was.
  mlir::Value known(mlir::Value value, const RowTile &rows, const Chunk *chunk) const;

  /// Facts of a value's rows, [count] each, that are kept beside its tiles as if they were channels of it.
  enum RowFact : int64_t {
    rowFactor = -1,     ///< a sum over the row's channels, or what follows from it
    sequenceFirst = -2, ///< of a table of starts: where the row's packed sequence begins, and one past its end
    sequencePast = -3
  };
  mlir::Value knownOfRows(mlir::Value value, const RowTile &rows, RowFact fact) const;

  /// Says what all tiles of a provided value hold at channels past the last; nothing is known of it else.
  void promise(mlir::Value value, attn::Padding channels) { promised[value] = channels; }

  /// [count, width] of a value of rank 4 ([B, H, N, D] or what broadcasts to it), in its element type. An axis of size
  /// 1 stays 1, unless the value would be repeated past the end of it where there are to be zeros.
  mlir::Value pull(mlir::Value value, const RowTile &rows, const Chunk &chunk, Zeros zeros = Zeros::Everywhere);
  /// [count] of a value [B, H, N], in its element type; Zeros::Everywhere is Zeros::Rows.
  mlir::Value pullRow(mlir::Value value, const RowTile &rows, Zeros zeros = Zeros::Everywhere);
  /// A tile as it is loaded or computed, whatever that is at rows and channels that do not exist. No chunk: [count].
  mlir::Value part(mlir::Value value, const RowTile &rows, const Chunk *chunk);
  /// What a value's tile holds at channels past the last.
  attn::Padding channelPadding(mlir::Value value);
  /// Makes an output of the kernel for each value, and stores its part at the rows: all channels, or those of `part`
  /// (may be null). `places`, if given, are the rows that they are stored at.
  void storeAll(mlir::ValueRange values, const RowTile &rows, const ChannelPart *part = nullptr,
                const RowTile *places = nullptr);
  /// Stores a tile at the rows and channels that exist.
  void store(const TensorParameter &tensor, const RowTile &rows, const Chunk *chunk, mlir::Value tile);

  /// What chunks of channels have at most.
  int64_t widestChunk() const { return widest; }

  /// What a tensor of this kernel holds at rows and channels, 0 or anything where they do not exist: [count, width] of
  /// one of rank 4, [count] of one of rank 3, with 1 in the place of sizes that repeat.
  mlir::Value load(const TensorParameter &tensor, const RowTile &rows, const Chunk *chunk);

  /// Pointers to [count, width] of a tensor of rank 4, or to [count] of one of rank 3; sizes 1 repeat, heads are shared
  /// as in `attn.map`.
  mlir::Value pointers(const TensorParameter &tensor, const RowTile &rows, const Chunk *chunk);
  /// Which of them exist: null for all.
  mlir::Value exists(const RowTile &rows, const Chunk *chunk);

  KernelFrame &frame;
  TileBuilder &b;
  StoredValues &stored;

private:
  mlir::Value compute(mlir::Value value, const RowTile &rows, const Chunk *chunk);
  /// What a tile holds at rows that do not exist.
  attn::Padding rowPadding(mlir::Value value, const RowTile &rows, bool channels);
  mlir::Value load(mlir::Value outside, attn::WholeTensorType type, const RowTile &rows, const Chunk *chunk);
  void storeRows(const TensorParameter &output, mlir::Value value, const RowTile &rows, llvm::ArrayRef<Chunk> chunks,
                 const RowTile &places);

  struct Key {
    mlir::Value value, token;
    int64_t channel;
    mlir::Value base = {};
    bool operator==(const Key &other) const {
      return value == other.value && token == other.token && channel == other.channel && base == other.base;
    }
  };
  struct Entry {
    Key key;
    mlir::Value tile;
    mlir::Block *block;
  };
  mlir::Value lookup(const Key &key) const;

  int64_t widest;
  llvm::SmallVector<Entry> made;
  llvm::DenseMap<mlir::Value, attn::Padding> promised;
};

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Tiles of rows of whole tensors: which tokens they are, and how a value's part at those tokens is had.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"

namespace weft {

/// `count` rows of one batch and head of values shaped [B, H, N, D] (or [B, H, N]).
struct RowTile {
  int64_t count;
  mlir::Value batch, head; ///< i32 scalars
  std::string heads;       ///< the size of the axis that `head` counts on, as types spell it
  std::string tokens; ///< the same of the axis N: where it is "1", a size of 1 there is that axis, not a repetition
  mlir::Value
      member; ///< tensor<count x i32>, or null: added to `head` row by row, where a tile packs heads that share keys
  int64_t packed = 1;  ///< how many heads it packs, of which `head` is the first
  bool single = false; ///< all rows are of the one token that a value has
  mlir::Value token;   ///< tensor<count x i32>: position on the axis N
  mlir::Value inside;  ///< tensor<count x i1>, or null where every row exists
  mlir::Value base;    ///< i32 scalar, or null: added to every token for addresses (a packed sequence's start)
  mlir::Value
      scalarStart;     ///< i32 scalar, or null: token = scalarStart + offsets, where offsets do not change in a loop
  mlir::Value offsets; ///< tensor<count x i32>, with scalarStart
  /// Row r is the token at line r / columns, column r % columns of a rectangle of tokens; rows past it are not inside.
  /// One line: tokens that follow one another. No columns: rows in an order that nothing is known of.
  int64_t lines = 1, columns = 0;
  mlir::Value top, left;   ///< i32 scalars: where a rectangle over a grid begins
  int64_t gridColumns = 0; ///< of that grid; 0 for tokens on a line

  /// The rows' positions on the axis N of stored tensors: tokens count from a packed sequence's start.
  mlir::Value position(TileBuilder &b) const { return base ? b.add(token, base) : token; }

  /// Whether the axis N has one token, by its type.
  bool isOneToken() const { return tokens == "1"; }

  /// The head of each row, for arithmetic with tiles [count, ...] where `asColumn`: a scalar, or one for each row.
  mlir::Value headOfRow(TileBuilder &b, bool asColumn) const {
    if (!member)
      return head;
    mlir::Value each = b.add(member, head);
    return asColumn ? b.column(each) : each;
  }

  /// Whether the tile's rows have different heads of a tensor with `heads` heads, which are shared as in `attn.map`.
  bool tellsApart(llvm::StringRef heads) const;
  /// The head of such a tensor that the tile's first head has: a scalar.
  mlir::Value firstHeadIn(TileBuilder &b, llvm::StringRef heads) const;
  /// How far each row's head of such a tensor is from there: tensor<count x i32>, or null where all have the same.
  mlir::Value headsBeyond(TileBuilder &b, llvm::StringRef heads) const;
  /// The head of such a tensor that each row has, as `headOfRow` gives it.
  mlir::Value headIn(TileBuilder &b, llvm::StringRef heads, bool asColumn) const;
};

/// The axes of the row space [B, H, N, D] (or [B, H, N]).
enum RowAxis { batchAxis, headAxis, tokenAxis, channelAxis };

/// Whether a tensor has an axis of the row space, of [B, H, N, D] where `channels`, and is not repeated along it.
/// `oneToken`: a size of 1 is the axis N.
bool hasAxis(attn::WholeTensorType type, RowAxis axis, bool channels, bool oneToken);

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

/// The channels that a program has of values of `channels` in all, where programs share them.
struct ChannelPart {
  int64_t channels;
  llvm::SmallVector<Chunk> chunks;
  mlir::Value isFirst; ///< i1: of one program for all parts, which stores what does not have these channels
};

/// Splits `size` channels into chunks of powers of two of at least 16 and at most `most`: 96 = 64 + 32, 72 = 64 + 16 (8
/// valid).
llvm::SmallVector<Chunk> chunksOf(int64_t size, int64_t most = 256);

/// Where a puller sees to it that a tile is 0: at rows and channels that do not exist, at those of one axis, or
/// nowhere, for those who throw away what is there, or select it away, before it meets anything else.
enum class Zeros : uint8_t { Everywhere, Rows, Channels, Nowhere };

/// The sequence that each row's token belongs to: first token and one past the last, both tensor<count x i32>.
struct SequenceOfRows {
  mlir::Value first, past;
};

/// Gives the parts of values inside one kernel. Values that are operands of the launch are loaded; a map, a rotation, a
/// norm, a sum over channels or a convolution of others is computed on the tile.
class Puller {
public:
  /// `stored`: what a value of the program is outside the kernel, where it has been stored (a program's argument, a
  /// launch's result). Sums over channels go through chunks of at most `widest`.
  Puller(KernelFrame &frame, llvm::DenseMap<mlir::Value, mlir::Value> &stored, int64_t widest = 256)
      : frame(frame), b(frame.b), stored(&stored), widest(widest) {}

  /// A value computed in this kernel, at a tile and chunk: [count, width], or [count] for values of rank 3.
  void provide(mlir::Value value, const RowTile &rows, int64_t firstChannel, mlir::Value tile, mlir::Value base = {});
  /// Says what all tiles of a provided value hold at channels past the last; nothing is known of it else.
  void promise(mlir::Value value, attn::Padding channels) { promised[value] = channels; }

  /// [count, width] of a value of rank 4 ([B, H, N, D] or what broadcasts to it), in its element type. An axis of size
  /// 1 stays 1, unless the value would be repeated past the end of it where there are to be zeros.
  mlir::Value pull(mlir::Value value, const RowTile &rows, const Chunk &chunk, Zeros zeros = Zeros::Everywhere);
  /// [count] of a value [B, H, N], in its element type; Zeros::Everywhere is Zeros::Rows.
  mlir::Value pullRow(mlir::Value value, const RowTile &rows, Zeros zeros = Zeros::Everywhere);
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

  /// Pointers to [count, width] of a tensor of rank 4, or to [count] of one of rank 3; sizes 1 repeat, heads are shared
  /// as in `attn.map`.
  mlir::Value pointers(const TensorParameter &tensor, const RowTile &rows, const Chunk *chunk);
  /// Which of them exist: null for all.
  mlir::Value exists(const RowTile &rows, const Chunk *chunk);

private:
  /// A tile as it is loaded or computed, whatever that is at rows and channels that do not exist.
  mlir::Value part(mlir::Value value, const RowTile &rows, const Chunk *chunk);
  mlir::Value compute(mlir::Value value, const RowTile &rows, const Chunk *chunk);
  /// What a tile holds at rows that do not exist.
  attn::Padding rowPadding(mlir::Value value, const RowTile &rows, bool channels);
  mlir::Value load(mlir::Value outside, attn::WholeTensorType type, const RowTile &rows, const Chunk *chunk);
  mlir::Value map(attn::MapOp op, mlir::Value value, const RowTile &rows, const Chunk *chunk);
  mlir::Value rope(attn::RopeOp op, const RowTile &rows, const Chunk &chunk);
  mlir::Value rmsNorm(attn::RmsNormOp op, const RowTile &rows, const Chunk &chunk);
  mlir::Value convolve(attn::ConvolveOp op, const RowTile &rows, const Chunk &chunk);
  mlir::Value neighbours(mlir::Value source, attn::ConvolveOp op, const RowTile &rows, const Chunk &chunk, int64_t down,
                         int64_t right);
  /// A rectangle's tokens and those `reach` lines and columns around it as one tile, in lines of columns + 2 reach:
  /// what is around it is loaded, once for all taps. Null where it would be too large, or the tile is not at hand.
  mlir::Value withSurroundings(attn::ConvolveOp op, const RowTile &rows, const Chunk &chunk, int64_t reach);
  mlir::Value sumOfChannels(attn::SumOp op, const RowTile &rows, const Chunk *chunk);
  mlir::Value shift(attn::ShiftOp op, const RowTile &rows, const Chunk *chunk);
  /// The sequences that the rows' tokens belong to, of those packed by `starts` (may be null).
  SequenceOfRows sequences(mlir::Value starts, const RowTile &rows, mlir::Value length);
  mlir::Value ropePositions(attn::RopeOp op, const RowTile &rows, const Chunk &chunk);
  RowTile movedRows(attn::ConvolveOp op, const RowTile &rows, int64_t down, int64_t right);
  mlir::Value spread(attn::SpreadOp op, const RowTile &rows, const Chunk &chunk);
  /// The sum of squares, or of the values, of a source's channels: f32 [count].
  mlir::Value sumChannels(mlir::Value source, const RowTile &rows, bool squares);
  mlir::Value sumSquaresOfHalves(mlir::Value source, const RowTile &rows);

  struct Key {
    mlir::Value value, token;
    int64_t channel;
    mlir::Value base = {};
    bool operator==(const Key &other) const {
      return value == other.value && token == other.token && channel == other.channel && base == other.base;
    }
  };
  /// What is repeated along the channels is one tile for all chunks.
  static Key keyOf(mlir::Value value, const RowTile &rows, const Chunk *chunk);
  void storeRows(const TensorParameter &output, mlir::Value value, const RowTile &rows, llvm::ArrayRef<Chunk> chunks,
                 const RowTile &places);
  struct Entry {
    Key key;
    mlir::Value tile;
    mlir::Block *block;
  };
  mlir::Value lookup(const Key &key) const;

  KernelFrame &frame;
  TileBuilder &b;
  llvm::DenseMap<mlir::Value, mlir::Value> *stored;
  int64_t widest;
  llvm::SmallVector<Entry> made;
  llvm::DenseMap<mlir::Value, attn::Padding> promised;
};

/// Looked up in `cu` ([S+1] i32, stored); one sequence of `length` tokens where it is null. Tokens are numbered over
/// all sequences.
SequenceOfRows sequenceOfRows(KernelFrame &frame, mlir::Value cu, mlir::Value tokens, mlir::Value length);

/// Where the taps of a convolution lie: tap j of a line is direction (j - centre) tokens back, tap (i, j) of a grid as
/// much in each coordinate.
struct TapGeometry {
  bool grid;
  int64_t side;      ///< taps of a line, or of a side of a grid
  int64_t centre;    ///< the tap at the token itself
  int64_t direction; ///< the dilation; negative for the transpose

  /// Of an `attn.convolve` or `attn.convolve_taps_grad` with so many taps.
  template <typename Op> static TapGeometry of(Op op, int64_t taps) {
    bool grid = op.getGrid().has_value();
    int64_t side = grid ? std::llround(std::sqrt(double(taps))) : taps;
    return {grid, side, op.getCentred() || grid ? (side - 1) / 2 : 0,
            (op.getTransposed() ? -1 : 1) * int64_t(op.getDilation())};
  }
};

/// Whether a convolution is one of products of chunks: causal, with a number of taps that is not known, or many.
template <typename Op> bool isLongConvolution(Op op, attn::WholeTensorType taps) {
  return !op.getCuSeqlens() && !op.getCentred() && !op.getGrid() && op.getDilation() == 1 &&
         taps.staticDim(0).value_or(33) > 32;
}

/// The sum of a value's squares over its channels, [B, H, N], where the program has one by itself; null else.
attn::SumOp sumOfSquares(mlir::Value value);

/// Whether a puller can compute `op` (may be null) on a tile of rows.
bool isRowLocal(mlir::Operation *op);
/// Whether it takes other rows of its operands than the tile's for that.
bool readsOtherRows(mlir::Operation *op);

} // namespace weft

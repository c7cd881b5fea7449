// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What kernels of a recurrence share: a program stands at a head of a batch or of a packed sequence, and works on its
// tokens chunk by chunk. With G the decays summed up from a chunk's first token on, the pair of a query n and a key m
// of one chunk decays by exp(G_n - G_m).
//
//   token    0 ········ 63 | 64 ······· 127 | 128 ··· 199            a state S [D, Dv] goes from chunk to chunk:
//   chunk         0        |       1        |      2 (ragged)        S ← exp(G_end) S + Σ_m exp(G_end - G_m) k_m v_mᵀ
#pragma once

#include "compiler/Conversion/AttnToTile/Rows/Puller.h"
#include "dialects/Attn/IR/Recurrence.h"

namespace weft {

/// Where a program stands.
struct RecurrencePlace {
  mlir::Value state; ///< which of the states: a batch, or a packed sequence
  mlir::Value batch, head;
  mlir::Value base;   ///< of a packed sequence: its first token; null without
  mlir::Value length; ///< tokens of the batch or sequence
  mlir::Value chunks; ///< and its chunks
};

/// A chunk's decays, summed up to and including each token, in powers of two: [tokens], or [tokens, channels]. Each is
/// the sum of a multiple of 2⁻⁶, whose sums are exact, and a remainder, whose sums stay small: so the difference of two
/// has the accuracy of the decays between them, whatever came before.
struct ChunkDecays {
  mlir::Value coarse, fine;       ///< null without decays
  mlir::Value coarseEnd, fineEnd; ///< at the chunk's last token: a scalar, or [channels]
  bool byChannel = false;

  explicit operator bool() const { return static_cast<bool>(coarse); }
};

/// What kernels for all chunks at once make of decays, stored, where programs that go from chunk to chunk would make it
/// for each part of the values' channels, or have no room: nulls elsewhere.
struct StoredDecays {
  mlir::Value coarse, fine; ///< their sums in each chunk: two tensors [B, H, N, D] of f32, or [B, H, N]
  mlir::Value pairs;        ///< [B, H, N, side]: of each query and the keys of its chunk, as `pairs`
};

/// A kernel of a recurrence being written.
class RecurrenceKernel {
public:
  RecurrenceKernel(mlir::Operation *op, const attn::RecurrenceOperands &its, const StoredDecays &storedDecays,
                   StoredValues &stored, llvm::StringRef name);

  KernelFrame frame;
  TileBuilder &b;
  Puller puller;
  const attn::RecurrenceOperands &its;
  const int64_t side;       ///< tokens of a chunk
  const mlir::Type element; ///< of what enters products
  RecurrencePlace place;

  /// The tokens of a chunk, of all query heads.
  RowTile rows(mlir::Value chunk);
  /// [side, width] of a stored tensor of tokens.
  mlir::Value tile(mlir::Value tensor, const RowTile &rows, const Chunk &chunk);
  /// [side] f32 of a stored tensor [B, H, N].
  mlir::Value numbers(mlir::Value tensor, const RowTile &rows);
  /// Stores a tile, or numbers where there is no chunk, at the tokens that exist.
  void store(const TensorParameter &output, const RowTile &rows, const Chunk *chunk, mlir::Value tile);

  /// a · b + sum, operands in `element`; `sum` may be null.
  mlir::Value product(mlir::Value a, mlir::Value b, mlir::Value sum = {});

  /// The decays of a chunk, of the channels `keys` where each has its own.
  ChunkDecays decays(const RowTile &rows, const Chunk &keys);
  /// exp of the decays from the chunk's start to each token, as rows of a tile; and from each token to the chunk's end.
  mlir::Value fromStart(const ChunkDecays &decays);
  mlir::Value toEnd(const ChunkDecays &decays);
  /// `tile` [side, width] by them; as it is where there are no decays.
  mlir::Value decayed(mlir::Value tile, mlir::Value factors);
  /// The same where decays are by channel, as it enters products from here on, in place of 32 bits for each factor.
  void decayForProducts(mlir::Value &tile, mlir::Value &factors);
  /// `rows` · state, and aᵀ x + sum, decayed by `factors` (may be null): those of tokens are applied to f32 results and to x, those
  /// of channels to `rows` and to a.
  mlir::Value through(mlir::Value rows, mlir::Value state, mlir::Value factors);
  mlir::Value outer(mlir::Value a, mlir::Value x, mlir::Value factors, mlir::Value sum);
  /// A state [D, width] at the chunk's end, as far as it comes from its start.
  mlir::Value carried(mlir::Value state, const ChunkDecays &decays);
  /// [side, side] f32: left_n · right_m, decayed, for m <= n, m < n where `strict`, else 0; decays are one a token.
  mlir::Value pairs(mlir::Value left, mlir::Value right, const ChunkDecays &decays, bool strict = false);
  /// The same of queries and keys times `scale`, whatever the decays; those that are stored enter products as they are.
  mlir::Value pairsOfQueries(const RowTile &rows, mlir::Value q, mlir::Value k, const ChunkDecays &decays,
                             double scale);
  /// The same where decays are by channel, computed.
  mlir::Value pairsByChannel(const RowTile &rows);
  /// `weights` [side, side] decayed as `pairs` are where decays are one a token, 0 but for their pairs.
  mlir::Value decayPairs(mlir::Value weights, const ChunkDecays &decays, bool strict = false);
  /// Where decays are by channel: Σ_m weights_nm decay_nm k_m of the queries, Σ_n weights_nm decay_nm q_n of the keys, and
  /// what of their products with q and k remains of pairs of unlike tokens: q times the first less k times the second.
  struct Mixed {
    mlir::Value later, earlier, difference;
  };
  /// `weights` count for m <= n.
  Mixed mixByChannel(mlir::Value weights, mlir::Value q, mlir::Value k, const ChunkDecays &decays, const RowTile &rows,
                     const Chunk &keys);
  /// [side, side] i1: the pairs of neighbouring blocks of `half` tokens, n in the later and m in the earlier one of two
  /// that begin at a multiple of 2 `half`.
  mlir::Value acrossMiddle(int64_t half);

  /// A state's part [keys, values], zeros where there is none (`tensor` may be null).
  mlir::Value loadState(mlir::Value tensor, const Chunk &keys, const Chunk &values);
  void storeState(const TensorParameter &output, const Chunk &keys, const Chunk &values, mlir::Value tile);
  /// The same of a tensor with a state for each chunk, [B, H, chunks, D, Dv].
  mlir::Value loadChunkState(mlir::Value tensor, mlir::Value chunk, const Chunk &keys, const Chunk &values);
  void storeChunkState(const TensorParameter &output, mlir::Value chunk, const Chunk &keys, const Chunk &values,
                       mlir::Value tile);
  /// The type of such a tensor.
  attn::WholeTensorType chunkStatesType();

  /// The grid of programs that each have one of `across` parts of a head; and of those that have one chunk of it.
  std::array<std::string, 3> grid(int64_t across);
  std::array<std::string, 3> chunkGrid();
  /// As many as hold a state and a chunk's queries and keys in their registers.
  int64_t warps() const;
  /// Writes `body` for the chunk that a program of such a grid has, where there is such a chunk.
  void withChunk(llvm::function_ref<void(mlir::Value chunk)> body);

private:
  mlir::Value statePointers(const TensorParameter &tensor, llvm::ArrayRef<mlir::Value> indices, const Chunk &keys,
                            const Chunk &values);
  mlir::Value stateExists(const Chunk &keys, const Chunk &values);
  llvm::SmallVector<mlir::Value> chunkIndices(mlir::Value chunk);
  /// Of decays whose sums are stored, at tokens of the chunk: [side, channels], or [side].
  std::pair<mlir::Value, mlir::Value> sumsAt(const RowTile &rows, const Chunk &keys);
  /// The same at the chunk's last token: [channels], or a scalar.
  std::pair<mlir::Value, mlir::Value> sumsAtEnd(const RowTile &rows, const Chunk &keys);
  /// Of pairs of the halves of 2 `half` tokens, [side, channels]: exp of the decays from the middle to later tokens, and
  /// from earlier ones to the middle.
  mlir::Value aboutMiddle(const ChunkDecays &decays, const RowTile &rows, const Chunk &keys, int64_t half);
  /// [side, 1] i1: which tokens are in the later one of two halves.
  mlir::Value isLaterHalf(int64_t half);
  /// [side, side] i1: m <= n, or m < n.
  mlir::Value ordered(bool strict);

  StoredDecays storedDecays;
};

/// The channels of a tile of `size` of them: a power of two, at least 16.
Chunk paddedChannels(int64_t size);
/// The same of `size` in parts of at most `most`, of which `part` (i32) is one; and how many there are.
Chunk channelPart(TileBuilder &b, int64_t size, int64_t most, mlir::Value part);
int64_t channelParts(int64_t size, int64_t most);
/// Columns of values that a program takes, so that a state of so many rows stays in registers.
int64_t columnsBeside(int64_t keys);

/// Sums up the decays of each chunk, and makes its pairs, times `scale`, for programs that each have one of `parts` of the
/// values' channels.
StoredDecays lowerDecays(mlir::Operation *op, const attn::RecurrenceOperands &its, StoredValues &stored, double scale,
                         int64_t parts);

mlir::LogicalResult lowerRecur(attn::RecurOp op, StoredValues &stored);
mlir::LogicalResult lowerRecurBackward(attn::RecurBackwardOp op, StoredValues &stored);

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the backward kernels of attention have in common: their operands at tiles of queries and of keys, the
// probabilities and the score gradients of a block of pairs, and walks over blocks.
#pragma once

#include "compiler/Conversion/AttnToTile/Attention/AttendBackward.h"
#include "compiler/Conversion/AttnToTile/Patterns/BlockLists.h"
#include "compiler/Conversion/AttnToTile/Patterns/WideValues.h"
#include "compiler/Conversion/AttnToTile/Patterns/Windows.h"
#include "dialects/Attn/Pattern/Membership.h"

namespace weft {

/// What the queries of a tile bring: chunks of channels in the storage type, and a number each of their softmax.
struct QuerySide {
  RowTile rows;
  llvm::SmallVector<mlir::Value> q, g; ///< queries, and the gradient of their outputs (none where values are wide)
  mlir::Value minusShift, minusDelta;  ///< [count] f32: SoftmaxNumbers
};

struct KeySide {
  RowTile rows;
  llvm::SmallVector<mlir::Value> k, v; ///< keys, and values (none where they are wide)
};

/// A block of pairs, [queries, keys] or [keys, queries], f32.
struct Pairs {
  mlir::Value weights; ///< P, 0 where it is not kept
  mlir::Value dScores; ///< gradient in scale · q k; null where it was not asked for
};

/// What `attn.accumulate` says of a block: `value` (scalar, or broadcasts to the block) is added at `indices`.
struct Accumulation {
  int64_t target;
  mlir::Value value;
  mlir::ValueRange indices;
  mlir::Value exists; ///< i1, broadcasts to the block: pairs that belong
};

/// The writing of one backward kernel.
class BackwardKernel {
public:
  /// `queriesDown`: blocks of pairs are [queries, keys], and rows of the kernel are queries; else keys. The kernels that
  /// list blocks for it are written first, where it walks any.
  BackwardKernel(attn::AttendBackwardOp op, const SoftmaxNumbers &numbers, StoredValues &stored, llvm::StringRef name,
                 attn::ScheduleAttr schedule, bool queriesDown, bool walks = true);

  attn::AttendBackwardOp op;
  Attend attend;
  SoftmaxNumbers numbers;
  StoredValues &stored;
  attn::ScheduleAttr schedule;
  bool queriesDown;
  const std::optional<WindowTiling> &windows;
  llvm::SmallVector<BlockLists> lists; ///< as listsForDomains gives them
  KernelFrame frame;
  TileBuilder &b;
  Puller puller;
  EmitArithmetic arithmetic;
  llvm::SmallVector<Chunk> queryChunks, valueChunks;
  std::optional<WideValues> pieces; ///< of wide values, contracted one after another
  std::optional<WideValues> split;  ///< of wide values, over the grid; set before `begin` by kernels that make dv
  std::optional<ChannelPart> part;  ///< of `split`; then valueChunks are its chunks
  Standing standing;
  WindowStanding windowStanding;
  /// Sums go over the kernel's rows: pairs of rows that do not exist have no weight. (Their scores are 0, and what
  /// makes them weights may be infinite, which the zeros that it is multiplied by do not take back.)
  bool sumsRows = false;
  bool readsValues = true; ///< dv alone does not need them
  bool descending = false; ///< walks go from the last block to the first (not those over lists)
  bool joins = true;       ///< walks may be joined

  /// Finds out where the program stands, and gives the tile of its rows: queries, or keys of `domain`. Batch and heads
  /// are left to the sides. `place` as findStanding's.
  RowTile begin(unsigned domain, mlir::Value place = {});
  /// Tokens as queries of a head, and as keys of a domain.
  RowTile asQueries(RowTile tokens, mlir::Value head);
  RowTile asKeys(unsigned domain, RowTile tokens, mlir::Value head);
  QuerySide pullQueries(const RowTile &rows);
  KeySide pullKeys(unsigned domain, const RowTile &rows);

  using Accumulate = llvm::function_ref<void(const Accumulation &)>;
  /// P and the score gradients of a block; `full` where every pair belongs and every column exists.
  Pairs pairs(unsigned domain, const QuerySide &queries, const KeySide &keys, Fullness full, Accumulate accumulate);
  /// P alone.
  Pairs weights(unsigned domain, const QuerySide &queries, const KeySide &keys, Fullness full);

  using Body = llvm::function_ref<llvm::SmallVector<mlir::Value>(const RowTile &columns, Fullness full,
                                                                 mlir::ValueRange carried)>;
  /// Walks the blocks of the other side that the tile `rows` touches under query head `head`.
  llvm::SmallVector<mlir::Value> walk(unsigned domain, const RowTile &rows, mlir::Value head, mlir::ValueRange initial,
                                      Body body);

  /// Of a tile of keys: goes through the query heads that share its head, one after another.
  llvm::SmallVector<mlir::Value>
  overHeads(mlir::ValueRange initial,
            llvm::function_ref<llvm::SmallVector<mlir::Value>(mlir::Value head, mlir::ValueRange carried)> body);

  /// The sum over channels of a product of two sides, a bᵀ, onto `sum`.
  mlir::Value outer(mlir::ValueRange a, mlir::ValueRange c, mlir::Value sum);
  /// Adds `factors`ᵀ-free products to sums: sums[i] + factors · chunks[i], the factors rounded to the chunks' elements.
  llvm::SmallVector<mlir::Value> accumulateProducts(mlir::Value factors, mlir::ValueRange chunks,
                                                    mlir::ValueRange sums);
  llvm::SmallVector<mlir::Value> zeroSums(llvm::ArrayRef<Chunk> chunks);
  /// Makes a gradient known to the puller, in the type of the result.
  void provide(mlir::Value result, const RowTile &rows, llvm::ArrayRef<Chunk> chunks, mlir::ValueRange sums,
               double factor);
  /// The rows of which gradients are stored: all that exist, where `rows` are keys in use.
  RowTile storedRows(RowTile rows);
  /// Stores the roots at `rows`, ends the kernel, and notes what is stored. Gives the launch's results, those of the
  /// roots last.
  llvm::SmallVector<mlir::Value> finish(llvm::ArrayRef<mlir::Value> roots, const RowTile &rows);

protected:
  /// Which pairs of a block belong: the pattern's, of columns that exist; null where all do.
  mlir::Value belongs(unsigned domain, const RowTile &queries, const RowTile &keys, const Fullness &full);
  /// Which weights of a block multiply values; null where all do.
  mlir::Value keptPairs(unsigned domain, const RowTile &queries, const RowTile &keys);
  /// A number of each query, or of each key, along its side of a block.
  mlir::Value downOrAcross(mlir::Value vector, bool ofQueries) {
    return ofQueries == queriesDown ? b.column(vector) : b.row(vector);
  }

private:
  attn::Place<EmitArithmetic> placeOf(unsigned domain, const RowTile &queries, const RowTile &keys);
  /// Whether the SoftmaxNumbers of a tile are there for all its rows, as weights of 0 for those that do not exist.
  bool numbersArePadded(const RowTile &rows) const;
  /// Whether rows may be keys past their count: they have gradients, of zero.
  bool hasUnusedKeys() const { return !queriesDown && !attend.counts.empty(); }
  /// [count] of one of the SoftmaxNumbers.
  mlir::Value loadNumber(mlir::Value number, const RowTile &rows);
  unsigned tiledDomain = 0;
  TileOrder order; // of the launch's programs
  Pairs pairs(unsigned domain, const QuerySide &queries, const KeySide &keys, Fullness full, Accumulate accumulate,
              bool weightsOnly);
  /// Which of a tile's rows exist, or null in blocks that only tiles with all of them meet.
  mlir::Value rowsInside(const RowTile &rows) const { return wholeRows ? mlir::Value() : rows.inside; }
  bool wholeRows = false; // while such a block's body is written
  /// Whether weights of rows that do not exist are selected away: what a score_mod makes of a score is not known.
  bool masksRows() const { return attend.scoreMod || attend.scale == 0; }
  /// What the sums of a block's products begin at: 0; of rows that do not exist what no score comes back from.
  mlir::Value productStart(const RowTile &rows, llvm::ArrayRef<int64_t> shape);
  /// dP, onto `sum`.
  mlir::Value weightGradients(unsigned domain, const QuerySide &queries, const KeySide &keys, mlir::Value sum);
  llvm::SmallVector<mlir::Value> walkWindow(mlir::ValueRange initial, Body body);
};

} // namespace weft

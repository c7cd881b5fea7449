// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the forward and the backward kernels of attention share: their operands by one name, where a program stands, and
// walks over blocks.
#pragma once

#include "compiler/Conversion/AttnToTile/Patterns/EmitArithmetic.h"
#include "compiler/Conversion/AttnToTile/Patterns/TileOrder.h"
#include "compiler/Conversion/AttnToTile/Rows/Puller.h"

namespace weft {

/// A partition into windows that a kernel is tiled by.
struct WindowTiling {
  llvm::SmallVector<int64_t> window, grid; ///< as of `#attn.block_window`; grid is empty for a line of tokens
  bool exact = true;                       ///< the pattern has nothing beside the window
  int64_t tokens = 0;                      ///< of a whole window

  int64_t tilesOf(int64_t rows) const { return llvm::divideCeil(tokens, rows); }
};

/// The form of an attention: what chooses among kinds of kernels and their schedules, forward and backward.
struct AttentionForm {
  /// The windows that kernels are tiled by: its only domain's pattern is a partition of the tokens that queries and keys
  /// share, or an intersection with one, and either over a grid or no longer than 256.
  std::optional<WindowTiling> windows;
  bool isPacked = false; ///< `cu_seqlens` say where sequences begin and end
  bool isWide = false;   ///< values have more channels than a program sums in registers (WideValues.h)
  bool isSingle = false; ///< f32: products are three of TF32, and tiles take twice the memory
};

/// The operands of an `attn.attend`, its tangent or its gradient, and its form.
struct Attend {
  mlir::Operation *op;
  mlir::Value query;
  mlir::ValueRange keys, values, counts, cuSeqlens, patternOperands;
  mlir::ArrayAttr patterns; ///< which pairs of a domain attend
  double scale;
  attn::Precision attnPrecision;
  mlir::Region *scoreMod; ///< null where there is none
  llvm::SmallVector<mlir::Region *> masks;
  AttentionForm form;
  llvm::SmallVector<mlir::Attribute> kept = {}; ///< of a domain, whose weights multiply values; null where all do

  static Attend of(attn::AttendOp op);
  static Attend of(attn::AttendBackwardOp op);
  /// Its kernel walks windows as it does any pattern.
  static Attend of(attn::AttendTangentOp op);
  static Attend of(attn::AttendBackwardTangentOp op);

  attn::WholeTensorType queryType() const;
  attn::WholeTensorType keyType(unsigned domain) const;
  attn::WholeTensorType valueType(unsigned domain) const;
  int64_t headSize() const { return *queryType().staticDim(3); }
  int64_t valueSize() const { return *valueType(0).staticDim(3); }
  /// Query heads that share a key head of a domain.
  int64_t group(unsigned domain) const;
  /// Neighbouring query heads that share a key head in every domain.
  int64_t sharedGroup() const;
  /// How the products of these operands are multiplied: `tf32x3` for f32 unless TF32 is asked for.
  tile::Precision precision() const;
  /// Whether programs of all tiles walk over the same blocks, also those of tiles behind the last rows.
  bool walksTheSame() const;
  bool keepsAll() const {
    return llvm::none_of(kept, [](mlir::Attribute each) -> bool { return each != nullptr; });
  }
  /// The wider of the element types of queries and keys and of values: what tiles of both fit into.
  mlir::Type storage() const;
};

/// Whether a value is 8-bit floats as f16, which holds each of them.
bool isFloat8AsHalf(mlir::Value value);

/// Where one program of a kernel over row tiles stands.
struct Standing {
  mlir::Value number;                        ///< i32: number of its tile among those of all sequences
  mlir::Value tile;                          ///< i32: number of its tile within its sequence
  mlir::Value part;                          ///< i32: which part of the channels it has, or null
  mlir::Value batch, head;                   ///< i32, on the axes of the tiled tensor
  mlir::Value sequence;                      ///< i32: which packed sequence, or null
  mlir::Value queryBase, keyBase;            ///< i32: first token of the packed sequence, or null
  mlir::Value queryLength;                   ///< i32: N
  llvm::SmallVector<mlir::Value> keyLengths; ///< i32: M of each domain, clipped to its count
  llvm::SmallVector<mlir::Value> keyExtents; ///< i32: M of each domain
};

/// The kernel's grid: tiles of `rows` on the tiled side ("cdiv(N, rows)", more for packed sequences), heads, batch.
/// Where each program packs `packed` query heads that share keys, a tile has rows / packed tokens of each.
std::array<std::string, 3> attendGrid(const Attend &attend, attn::WholeTensorType tiled, int64_t rows,
                                      int64_t packed = 1);

/// Programs of a cluster: as many as the schedule says where all walk over the same blocks, else 1. A grid that is rounded
/// up to clusters has programs behind the last rows, whose walk would begin behind the last block where rows decide it.
int64_t clusterOf(const Attend &attend, attn::ScheduleAttr schedule);

/// How a kernel's programs are spread over one side of an attention.
struct TiledSide {
  int64_t rows;                    ///< of a tile
  bool keys = false;               ///< the side is that of the keys; otherwise the queries'
  std::optional<unsigned> headsOf; ///< the domain whose key heads the program's y counts; the queries' without one
  int64_t packed = 1;              ///< query heads of a tile
  int64_t parts = 1;               ///< programs after one another that stand at the same tile
  mlir::Value place = {};          ///< i32: a program's number among those of its head and batch, null for its x
  TileOrder order = {};            ///< without one of its own, a program's place
};

/// Finds out where the program stands.
Standing findStanding(KernelFrame &frame, const Attend &attend, const StoredValues &stored, const TiledSide &side);

inline constexpr double log2OfE = 1.4426950408889634;

/// Whether a pattern has no pair of a column that does not exist, so that nobody need ask: a span's tables say so.
bool keepsInside(const Attend &attend, mlir::Attribute pattern);

/// A tile's positions on its axis, `places`, if all of them exist.
inline WholePlaces wholePlaces(const RowTile &tile, mlir::Value places) {
  return {tile.inside ? mlir::Value() : places, tile.tokens};
}

/// An element of a stored tensor that a score_mod captures, at a block of pairs. `places` are what the region is given:
/// such indices are inside, or past the end of a ragged block. Any others are read only where `exists` (i1 of the
/// block's shape; null for everywhere).
mlir::Value loadAtPairs(KernelFrame &frame, mlir::Value tensor, mlir::ValueRange indices, mlir::ValueRange places,
                        mlir::Value exists, const WholePlaces &whole);

/// Blocks `first` .. `past` - 1 (i32), of which a program walks what its rows touch.
struct BlockRun {
  mlir::Value first, past;
};

/// A walk over the blocks of one domain that a tile of rows touches.
struct Walk {
  mlir::Attribute pattern; ///< rows × blocks: transposed already where keys are tiled
  EmitArithmetic &arithmetic;
  mlir::Value rowBegin, rowEnd, head; ///< i32; rowEnd exclusive, clipped to the rows' length
  mlir::Value rowLength, columnLength, batch;
  int64_t columns;                  ///< block size
  mlir::Value rowsExist = {};       ///< i1, or null where every program has rows: without any there is nothing to walk
  bool descending = false;          ///< the last block first
  std::optional<BlockRun> run = {}; ///< no others than these
  /// i1, or null where nobody asks: whether all of the tile's rows exist. Where they do not, no block is full.
  mlir::Value rowsWhole = {};
  /// Full blocks and the partial ones beside them are one loop: copies that run ahead of it never begin anew.
  bool joined = false;
};

/// Whether every pair of a block belongs: in all that a loop walks, or, of joined segments, in those where `at`, an i1,
/// is true.
struct Fullness {
  bool everywhere;
  mlir::Value at = {};
  /// Elsewhere, i1 of the block: which pairs belong and exist, where that is known (PairBits.h). Null: the pattern says.
  mlir::Value pairs = {};
};

/// What a body is given of one block: its number, whether every pair in it belongs, and whether besides only tiles meet
/// it whose rows all exist, as is so wherever `full.at` is true.
struct WalkedBlock {
  mlir::Value number;
  Fullness full;
  bool wholeRows = false;
  bool columnsExist = false; ///< all of a block that is not full: it ends before the sequence does

  /// Whether some of the columns may lie past the end.
  bool isBounded() const { return !full.everywhere && !columnsExist; }
};

/// Whether the walks of an attention's kernel are joined: where boxes are copied ahead of loops, whose rows past the end
/// are zeros of themselves (of packed sequences and counted keys they are others'), and where one block of so many warps
/// fills a multiprocessor: of several, others compute while one begins a loop.
bool walksJoined(const Attend &attend, attn::ScheduleAttr schedule);

/// Writes the loops of a walk, one for each segment or for those that are joined; `body` gives the carried values' next. Gives what they end as.
/// Nothing where the pattern has no affine structure.
std::optional<llvm::SmallVector<mlir::Value>>
walkBlocks(const Walk &walk, mlir::ValueRange initial,
           llvm::function_ref<llvm::SmallVector<mlir::Value>(const WalkedBlock &, mlir::ValueRange)> body);

} // namespace weft

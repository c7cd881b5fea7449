// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Tiles of rows of whole tensors: which tokens of which batch and head they are.
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
  bool isBlock = false;    ///< scalarStart is a multiple of `count`, and offsets are 0, 1, ... count - 1
  mlir::Value counts;      ///< a value of the program, or null: rows that are inside lie below its number for the batch
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
  /// The same of a tensor of the row space, of [B, H, N, D] where `channels`.
  bool tellsHeadsApart(attn::WholeTensorType type, bool channels) const;
  /// The head of such a tensor that the tile's first head has: a scalar.
  mlir::Value firstHeadIn(TileBuilder &b, llvm::StringRef heads) const;
  /// How far each row's head of such a tensor is from there: tensor<count x i32>, or null where all have the same.
  mlir::Value headsBeyond(TileBuilder &b, llvm::StringRef heads) const;
  /// The head of such a tensor that each row has, as `headOfRow` gives it.
  mlir::Value headIn(TileBuilder &b, llvm::StringRef heads, bool asColumn) const;

  /// The same rows of `batch` and `head` (i32 scalars, on the axes of values of type `space`).
  RowTile of(attn::WholeTensorType space, mlir::Value batch, mlir::Value head) const;

  // The same batch and heads at other rows.

  /// As many rows in an order that nothing is known of, at `token` on the axis N, of which `inside` exist (null: all).
  RowTile anyRows(mlir::Value token, mlir::Value inside) const;
  /// The same, where tokens count from a stored tensor's first: not from a packed sequence's start.
  RowTile anyPositions(mlir::Value position, mlir::Value inside) const;
  /// Rows that follow one another, each `by` tokens (a constant) before its own; `inside` as it was.
  RowTile movedBack(TileBuilder &b, int64_t by) const;
  /// Rows that follow one another, the last one of `length` again in the place of those past it, so that nothing is
  /// loaded under a mask; `unread`: of what is computed from these nothing is stored, so that they may be any.
  RowTile clamped(TileBuilder &b, mlir::Value length, bool unread = false) const;
  /// The one row that a value of a single row has, whatever the rows of the tile are: once for each of them where these
  /// have different heads of it (`byHead`).
  RowTile onlyToken(TileBuilder &b, bool byHead) const;
};

/// The axes of the row space [B, H, N, D] (or [B, H, N]).
enum RowAxis { batchAxis, headAxis, tokenAxis, channelAxis };

/// The axis of the row space, of [B, H, N, D] where `channels`, that axis `i` of a tensor stands for; nothing where the
/// tensor is repeated along it. `oneToken`: a size of 1 is the axis N.
std::optional<RowAxis> rowSpaceAxis(attn::WholeTensorType type, unsigned i, bool channels, bool oneToken);

/// Whether a tensor has an axis of the row space, and is not repeated along it.
bool hasAxis(attn::WholeTensorType type, RowAxis axis, bool channels, bool oneToken);

/// [B, H, N] of a type of the row space.
inline llvm::ArrayRef<mlir::StringAttr> rowSpaceOf(mlir::Value value) {
  return wholeType(value).getDims().take_front(3);
}

/// "cdiv(N, rows)": tiles of `rows` tokens of [B, H, N, ..], as a grid expression.
std::string tilesOf(attn::WholeTensorType type, int64_t rows);

/// `count` rows from `start` (i32) on, of `length`. Where `bounded`, `inside` says which exist.
RowTile rowsFrom(TileBuilder &b, mlir::Value start, int64_t count, mlir::Value length, bool bounded);

/// Rows [start, start + count) below `end` of a value of `type`, for the head and batch that the program's y and z are.
RowTile programRows(TileBuilder &b, attn::WholeTensorType type, mlir::Value start, int64_t count, mlir::Value end);

/// The same of a part of the tokens, which goes on past `end`: a convolution's neighbours there are not found in the
/// tile.
RowTile partRows(TileBuilder &b, attn::WholeTensorType type, mlir::Value start, int64_t count, mlir::Value end);

} // namespace weft

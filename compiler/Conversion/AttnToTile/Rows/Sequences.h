// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Packed sequences: which one each row's token belongs to.
#pragma once

#include "compiler/Conversion/AttnToTile/Rows/Puller.h"

namespace weft {

/// The sequence that each row's token belongs to: first token and one past the last, both tensor<count x i32>.
struct SequenceOfRows {
  mlir::Value first, past;
};

/// Looked up in `cuSeqlens` ([S+1] i32, stored); one sequence of `length` tokens where it is null. Tokens are numbered over
/// all sequences.
SequenceOfRows sequenceOfRows(KernelFrame &frame, mlir::Value cuSeqlens, mlir::Value tokens, mlir::Value length);

/// The sequences that the rows' tokens belong to, of those that `cuSeqlens` (a value of the program, may be null) packs
/// into values of type `space`: looked up once for a tile.
SequenceOfRows sequencesOf(Puller &puller, mlir::Value cuSeqlens, const RowTile &rows, attn::WholeTensorType space);

/// Where packed sequence `which` (i32) begins: the largest of its start in `cuSeqlens` and those before, within the tokens.
/// Whatever starts say, no sequence overlaps another.
mlir::Value sequenceStart(TileBuilder &b, const TensorParameter &cuSeqlens, mlir::Value which, mlir::Value length);

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Sums over the channels of rows.
#pragma once

#include "compiler/Conversion/AttnToTile/Rows/Puller.h"

namespace weft {

/// The sum of a source's channels, or of their squares: f32 [count].
mlir::Value sumChannels(mlir::Value source, Puller &puller, const RowTile &rows, bool squares);

/// The sum of a value's squares over its channels, [B, H, N], where the program has one by itself; null else.
attn::SumOp sumOfSquares(mlir::Value value);

} // namespace weft

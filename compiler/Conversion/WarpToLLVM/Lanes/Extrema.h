// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The largest or smallest of 16-bit floats within a thread, of two at once. They may have been widened, which keeps their
// order: one of them is found, and widened alone.
//
//   max of extf(|x0|), extf(|x1|), … extf(|x7|)     -->     max.bf16x2 of abs.bf16x2 of four words, then of two halves
#pragma once

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Tile/IR/TileOps.h"

namespace weft {

/// What a reduction finds the largest or smallest of.
struct Halves {
  mlir::Value source;    ///< f16 or bf16, two in a word, of which both fall on one result
  bool absolute = false; ///< whether it is of their sizes
};

/// The numbers of 16 bits whose extremum a reduction finds, where it finds one and they lie in words. `source` is the
/// layout of what it reduces.
std::optional<Halves> halvesReduced(tile::ReduceOp op, const warp::LinearLayout &source, Emitter &e);

/// The extremum of some of them, an even number of neighbours, in the type of the result.
mlir::Value extremumOf(tile::ReduceOp op, const Halves &halves, llvm::ArrayRef<mlir::Value> values, Emitter &e);

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Where partial results of a reduction over warps lie in scratch memory.
//
//   a thread reads columns 4 l .. 4 l + 3 for its lane l     ─▶     column c of each warp's results at c: one access of four
//   a thread reads columns l, l + 8, l + 16, l + 24          ─▶     column c at 4 (c mod 8) + c / 8
#pragma once

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include <vector>

namespace weft {

/// Places in elements, of what one warp has of the results. Neighbouring registers of a thread that reads them are
/// neighbours, so that four words are one access, and neighbouring lanes follow one another, so that they use all banks.
class PartialPlaces {
public:
  /// For those that are read in the layout `wanted`, and written in the layout `held`.
  PartialPlaces(const warp::LinearLayout &wanted, const warp::LinearLayout &held, bool isOfWords);

  /// Where the elements of a layout are: by the bits of lane, warp and register, whose places are brought together by
  /// exclusive or.
  struct Of {
    llvm::SmallVector<uint32_t> lane, warp, reg;
    unsigned neighbours = 1; // registers that are

    mlir::Value ofThread(Emitter &e) const { return e.xorOfBits(lane, warp); }
    mlir::Value ofRegister(Emitter &e, mlir::Value thread, unsigned number) const;
  };
  Of of(const warp::LinearLayout &layout) const;

private:
  /// What the bits of places move to for a layout's threads: neighbouring registers first, then lanes.
  llvm::SmallVector<uint32_t> inOrder(const warp::LinearLayout &layout) const;

  bool isOfWords;
  std::vector<uint32_t> numberOf; // by element
};

} // namespace weft

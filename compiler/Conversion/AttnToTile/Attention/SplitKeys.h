// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Attention of few queries: each sequence's keys are divided among programs, whose results another kernel merges.
#pragma once

#include "compiler/Conversion/AttnToTile/Patterns/Attend.h"

namespace weft {

/// How the keys of an attention are divided. A split is a run of blocks of keys, the same for every row and head of a
/// sequence, and follows from the sequence's own length alone: whatever else is in a batch changes no bit of it.
///
///   length   300     blocks of 32 keys   0 1 2 | 3 4 5 | 6 7 8 | 9       splits 0 .. 3
struct KeySplits {
  const Attend &attend;
  int64_t columns; ///< keys of a block
  int64_t wanted;  ///< splits of every sequence; 0: as its length asks for

  static std::optional<KeySplits> of(const Attend &attend, attn::ScheduleAttr schedule);

  /// How many splits a sequence has at most, as an expression over the program's symbols.
  std::string most() const;
  /// The blocks of split `split` (i32) among `length` keys.
  BlockRun blocksOf(TileBuilder &b, mlir::Value split, mlir::Value length) const;
  /// How many splits keys of such lengths have, a length for each domain.
  mlir::Value used(TileBuilder &b, mlir::ValueRange lengths) const;
  /// What the splits give for rows [B, H, N, ...] of `type`: [B, H, most() * N, ...] f32, row n of split s at s * N + n.
  attn::WholeTensorType partsOf(attn::WholeTensorType type) const;
  /// Where the first row of the sequence that a program stands in lies among those parts, of split `split`.
  mlir::Value firstRow(KernelFrame &frame, mlir::Value split, const Standing &standing) const;

private:
  int64_t fewestBlocks() const;
  mlir::Value blocksEach(TileBuilder &b, mlir::Value length) const;
};

/// What the splits' kernel stores, as `KeySplits::partsOf` has it.
struct SplitResults {
  mlir::Value out, lse;
};

/// Writes the kernel that merges the splits of an attention with results `out` and `lse`, in the splits' order, with
/// what is computed from these row by row, and its launch. `roots` are the values to be stored.
void lowerMergedSplits(const Attend &attend, const KeySplits &splits, const SplitResults &parts, mlir::Value out,
                       mlir::Value lse, llvm::ArrayRef<mlir::Value> roots, StoredValues &stored);

} // namespace weft

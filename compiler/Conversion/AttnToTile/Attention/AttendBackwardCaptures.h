// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Gradients of tensors that a score_mod captures. What `attn.accumulate` adds up decides where the sums are made:
//
//   PerQuery, PerKey   indices are the program's batch, head and row: a row's sum is kept in registers along the walk
//   and stored
//                      once; sums over batches, heads or rows that the tensor lacks are an ordinary sum of those
//   PerPair            indices name the query and the key: each pair's value is stored in its place
//   Scattered          any other: atomics. In f32 where `fast`; otherwise in 64-bit fixed point, which no order changes
//
// All but fast atomics give the same bits every time.
#pragma once

#include "compiler/Conversion/AttnToTile/Attention/AttendBackwardKernel.h"

namespace weft {

/// How one captured tensor's gradient is made.
struct CapturePlan {
  enum class Kind { PerQuery, PerKey, PerPair, Scattered } kind;
  int64_t target;
  attn::WholeTensorType type;
  /// For each axis of the tensor the index that it takes: 0 batch, 1 head, 2 query, 3 key; -1 where its size is 1. Not
  /// of Scattered.
  llvm::SmallVector<int> axes;
};
llvm::SmallVector<CapturePlan> planCaptures(attn::AttendBackwardOp op);

/// The gradients of captured tensors that one kernel makes. Use: make one; per walk `initial`, `enter` with what is
/// carried at the start of each block's body, `add` for its accumulations, `carried` at its end, `leave` with the
/// walk's results; after the launch `sum`.
class CaptureGradients {
public:
  CaptureGradients(BackwardKernel &kernel, llvm::ArrayRef<CapturePlan> plans);

  llvm::SmallVector<mlir::Value> initial();
  void enter(mlir::ValueRange carried) { sums.assign(carried.begin(), carried.end()); }
  void add(const Accumulation &accumulation);
  llvm::SmallVector<mlir::Value> carried() const { return sums; }
  void leave(mlir::ValueRange sums, const RowTile &rows);
  /// Makes the gradients of what the launch stored.
  mlir::LogicalResult sum(mlir::ValueRange launched);

private:
  struct Capture {
    CapturePlan plan;
    TensorParameter output;
    llvm::SmallVector<int> axes; ///< of the output, as CapturePlan's
    bool complete;               ///< the output is the gradient
  };
  Capture makeOutput(const CapturePlan &plan);
  void storePair(const Capture &capture, const Accumulation &accumulation);
  void scatter(const Capture &capture, const Accumulation &accumulation);
  mlir::LogicalResult fromFixedPoint(const Capture &capture, mlir::Value launched);

  BackwardKernel &kernel;
  TileBuilder &b;
  llvm::SmallVector<Capture> captures;
  llvm::SmallVector<mlir::Value> sums; // one for each capture that is kept per row
};

} // namespace weft

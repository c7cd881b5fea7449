// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What attn.recurrence, attn.recur and attn.recur_backward read alike.
#pragma once

#include "dialects/Attn/IR/AttnOps.h"

namespace weft::attn {

/// The operands of a recurrence; null where there are none. A mixer has no value.
struct RecurrenceOperands {
  mlir::Value query, key, value, decay, beta, initialState, cuSeqlens;

  template <typename Op> static RecurrenceOperands of(Op op) {
    RecurrenceOperands its{op.getQuery(),        op.getKey(),      {}, op.getDecay(), op.getBeta(),
                           op.getInitialState(), op.getCuSeqlens()};
    if constexpr (!std::is_same_v<Op, RecurrenceOp>)
      its.value = op.getValue();
    return its;
  }

  WholeTensorType queryType() const { return mlir::cast<WholeTensorType>(query.getType()); }
  WholeTensorType valueType() const { return mlir::cast<WholeTensorType>(value.getType()); }
  int64_t headSize() const { return *queryType().staticDim(3); }
  int64_t valueSize() const { return *valueType().staticDim(3); }
  /// Whether each channel of the keys has a decay of its own.
  bool decaysByChannel() const { return decay && mlir::cast<WholeTensorType>(decay.getType()).getRank() == 4; }
  /// How many tokens are worked on together: a chunk.
  int64_t chunk() const;
  /// How many states there are, as a size: one for each batch, or each packed sequence.
  std::string states() const;

  /// The shape of what each query head has for a token of an operand.
  WholeTensorType byQueryHead(mlir::Value operand) const;
  /// The types of the results of attn.recur on `value`, out with elements of `element`.
  llvm::SmallVector<mlir::Type> resultTypes(mlir::Type element) const;
};

} // namespace weft::attn

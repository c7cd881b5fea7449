// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A pattern evaluated on the host: its matrix, and the classes of its blocks.
#pragma once

#include "dialects/Attn/Pattern/HostArithmetic.h"
#include "mlir/IR/Attributes.h"
#include <string>

namespace weft::attn {

/// A pattern with all that it names, and sizes. Heads are query heads.
struct PatternInstance {
  mlir::Attribute pattern;
  int64_t batches = 1, heads = 1, N = 0, M = 0;
  llvm::ArrayRef<HostOperand> operands;
  /// What each mask region says of the pair of the matrix, [batches, heads, N, M] each: whatever shifts and transposes
  /// stand around the mask are taken into account already.
  llvm::ArrayRef<const uint8_t *> masks;
};

/// What is wrong with an instance ("expected ..., but got ..."): operands or masks that are not there, or too small.
std::optional<std::string> findFault(const PatternInstance &instance);

/// Which pairs belong: 0 or 1 in [batches, heads, N, M]. The instance has no fault.
void fillMatrix(const PatternInstance &instance, llvm::MutableArrayRef<uint8_t> matrix);

/// The classes of blocks of blockM queries and blockN keys, by the pairs that there are: 0 none belongs, 1 some do, 2
/// all do, in [batches, heads, cdiv(N, blockM), cdiv(M, blockN)]. The instance has no fault.
void fillSummary(const PatternInstance &instance, int64_t blockM, int64_t blockN,
                 llvm::MutableArrayRef<uint8_t> summary);

} // namespace weft::attn

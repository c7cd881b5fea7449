// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What products of warpgroups have in common in inline PTX, whether their sums are in registers or in tensor memory:
// operands of the code, and descriptors of tiles in shared memory.
//
//   desc(tile + step) = desc(tile) + step / 16:   descriptors of all steps are one value and constants
//
// In a ring, each step's is the last one's, moved by an addition of 64 bits: with additions to the lower half alone ptxas
// writes the upper one, a constant, again for every step. Where no loop changes a tile's place it does so in either case,
// and takes the sum of 64 bits apart.
#pragma once

#include "compiler/Conversion/WarpToLLVM/SharedAccess.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/WgmmaLayouts.h"

namespace weft {

/// Inline PTX with its operands, numbered in the order in which they are added: results first.
class Assembly {
public:
  explicit Assembly(Emitter &e) : e(e) {}

  /// Registers that the code changes; `fresh`: that it only writes.
  void inOut(llvm::ArrayRef<mlir::Value> registers, bool fresh);
  /// A value that the code reads: its name in the code.
  std::string in(mlir::Value value, llvm::StringRef kind);
  llvm::SmallVector<mlir::Value> emit(llvm::StringRef code);

private:
  Emitter &e;
  std::string outputs, inputs;
  llvm::SmallVector<mlir::Type> types;
  llvm::SmallVector<mlir::Value> operands;
  size_t next = 0;
};

/// An operand in shared memory: the lower half of its descriptor where this warpgroup's part begins, and the name of
/// that in the code.
struct InShared {
  warp::WgmmaOperand operand;
  mlir::Value low;
  std::string name;
  bool moves = false;                       ///< from iteration to iteration
  std::optional<int64_t> at = std::nullopt; ///< where the code's descriptor is, from `low` on, in units of 16 bytes

  uint32_t high() const { return operand.descriptor() >> 32; }
  /// The code that makes the descriptor `bytes` from the begin on: "da" of `name` "a", with the upper half "ha".
  std::string step(llvm::StringRef name, int64_t bytes);
};

/// A part of a block's warpgroups' numbers: (number / first) mod count. Taken from the warp's first lane, so that ptxas
/// knows it to be the same in all.
mlir::Value groupNumber(Emitter &e, unsigned first, unsigned count);

/// The descriptor of a tile from its `outer`-th row or column of group `group` on, each group having as many.
InShared descriptorOf(Emitter &e, mlir::Value shared, unsigned innerAxis, int64_t outer, mlir::Value group);

/// "f16" in an instruction's name; empty for what has none.
llvm::StringRef nameOfOperand(mlir::Type type);

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The description of a target. This is the only place that knows a target's numbers: passes ask here instead of
// comparing names.
#pragma once

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <array>
#include <cstdint>
#include <optional>

namespace mlir {
class Operation;
class Type;
} // namespace mlir

namespace weft {

/// What a matrix instruction multiplies.
enum class MmaElement : uint8_t { F16, BF16, TF32, S8 };
/// What it accumulates in.
enum class MmaAccumulator : uint8_t { F16, F32, S32 };

/// One matrix instruction of a warp: D = A · B + C with A [m, k], B [k, n], C and D [m, n] (PTX ISA 9.7.14.5).
struct MmaInstruction {
  MmaElement element;
  MmaAccumulator accumulator;
  std::array<int32_t, 3> shape; // m, n, k
};

/// A machine that kernels are compiled for. Instances are constants: see `TargetInfo::find`.
struct TargetInfo {
  llvm::StringRef name;               // "sm_80", as in the module attribute `warp.target` and in PTX's .target
  llvm::StringRef ptxFeature;         // LLVM subtarget feature that sets the PTX version, "+ptx80"
  int ptxVersion;                     // 80 for PTX ISA 8.0
  int warpSize;                       // lanes of a warp
  int maxWarps;                       // warps of a block
  int registersPerThread;             // most registers ptxas gives one thread
  int registersPerProcessor;          // 32-bit registers of a multiprocessor
  int64_t sharedBytesPerBlock;        // dynamic shared memory one block may ask for
  int64_t sharedBytesPerProcessor;    // shared memory of a multiprocessor, for all blocks that are resident on it
  int64_t reservedSharedBytes;        // what the system takes of it for each of them
  int maxWarpsPerProcessor;           // warps resident on a multiprocessor
  int maxBlocksPerProcessor;          // blocks resident on a multiprocessor
  int vectorBytes;                    // widest global or shared access of a lane
  int sectorBytes;                    // unit of global memory traffic
  int bankCount, bankBytes;           // shared memory: banks, and the width of one
  llvm::ArrayRef<int> asyncCopyBytes; // sizes of cp.async, ascending; empty where there is none
  bool bf16Arithmetic; // whether add, sub and mul exist on bf16 (PTX ISA 9.7.4); fma does on every target
  llvm::ArrayRef<MmaInstruction> mma;

  /// The target called `name`, or nullptr.
  static const TargetInfo *find(llvm::StringRef name);
  /// Every target, for messages and tools.
  static llvm::ArrayRef<TargetInfo> all();
  /// The target that the module around `op` names in `warp.target`. Without that attribute, or with an unknown name, an
  /// error is reported at the module and nullptr returned.
  static const TargetInfo *of(mlir::Operation *op);

  /// The matrix instruction for operands of `element` (f32 stands for tf32) and an accumulator type, if the target has
  /// one: of those, the one with the largest k that `inner`, the product's inner size, fills; else the smallest.
  std::optional<MmaInstruction> mmaFor(mlir::Type element, mlir::Type accumulator, int64_t inner) const;
  /// Whether cp.async can copy pieces of `bytes` bytes.
  bool canCopyAsync(int64_t bytes) const { return llvm::is_contained(asyncCopyBytes, bytes); }
};

} // namespace weft

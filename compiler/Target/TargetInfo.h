// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The description of a target, which targets/ has, as passes ask for it: passes compare numbers, never names.
//
//   module attributes {warp.target = "sm_80"} { .. }   const TargetInfo *target = TargetInfo::of(op);
//                                                      target->canCopyAsync(8)              // true
//                                                      target->mmaFor(f16, f32, /*rows=*/64, /*inner=*/64)  // m16n8k16
#pragma once

#include "targets/Target.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringRef.h"
#include <optional>

namespace mlir {
class Operation;
class Type;
} // namespace mlir

namespace weft {

using targets::MmaAccumulator;
using targets::MmaElement;
using targets::MmaInstruction;

/// The module's attribute that names its target ("sm_80"): set by the C interface before all passes, or by the option of
/// `tile-to-warp`.
inline constexpr llvm::StringLiteral targetAttrName = "warp.target";

/// On a module: products are rounded before they are added, none of the two become fused multiply-adds.
inline constexpr llvm::StringLiteral roundsProductsAttrName = "warp.rounds_products";

/// A machine that kernels are compiled for. Instances are constants: see `TargetInfo::find`.
struct TargetInfo : targets::Target {
  /// The target called `name`, or nullptr.
  static const TargetInfo *find(llvm::StringRef name);
  /// Every target, for messages and tools; the first is the one compiled for where nothing says which.
  static llvm::ArrayRef<TargetInfo> all();
  /// The target that the module around `op` names in `targetAttrName`. Without that attribute, or with an unknown name, an
  /// error is reported at the module and nullptr returned.
  static const TargetInfo *of(mlir::Operation *op);
  /// The same where IR may go without a target: the default one then, and for an unknown name.
  static const TargetInfo &ofOrDefault(mlir::Operation *op);

  /// The matrix instruction for operands of `element` (f32 stands for tf32) and an accumulator type, if the target has
  /// one: of those, the largest that the product's `rows` and `inner` size fill; else the smallest.
  std::optional<MmaInstruction> mmaFor(mlir::Type element, mlir::Type accumulator, int64_t rows, int64_t inner) const;
  /// The family of matrix instructions of warpgroups for operands of `element` and an accumulator type; null where the
  /// target has none.
  const targets::WarpgroupMma *warpgroupMmaFor(mlir::Type element, mlir::Type accumulator) const;
  /// Whether cp.async can copy pieces of `bytes` bytes.
  bool canCopyAsync(int64_t bytes) const { return llvm::is_contained(asyncCopyBytes, bytes); }
  /// How many neighbours of a float type one atomic addition takes: two of 16 bits as one word (PTX ISA 9.7.13.5).
  int64_t elementsOfAtomicAdd(mlir::Type element) const;
};

} // namespace weft

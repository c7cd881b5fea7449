// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How the layout of an op's result and those of its operands determine each other, op by op. Everything else in
// tile-to-warp is the same for all ops.
#pragma once

#include "compiler/Conversion/TileToWarp/KnownCosts.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/MmaLayouts.h"
#include "dialects/Warp/Layout/WgmmaLayouts.h"
#include "mlir/IR/Operation.h"
#include <array>
#include <memory>

namespace weft {

/// What an op is to the assignment of layouts.
enum class OpKind : uint8_t {
  Scalar,      // no tensor operand or result: emitted as it is
  Source,      // makes a tensor from scalars or nothing, in any layout for free: splat, constant, make_range
  Elementwise, // operands and results share one layout: arithmetic, and shifts along an axis
  View,        // renames elements in a way that a result's layout gives the operand's: expand_dims, broadcast
  Reorder,     // renames elements one to one, either layout gives the other: permute, reshape
  Fixed,  // computes something worth computing once, in a layout of its own: load, atomics, dot, reduce, scan, join,
          // split, inline PTX
  Effect, // has tensor operands, no tensor results and an effect: store, assert, print
  Structured, // scf.for, scf.while, scf.if and their terminators
  Unknown,    // no rule: cannot be lowered
};
OpKind kindOf(mlir::Operation *op);

/// The tensor type of a value, or null when it is a scalar.
mlir::RankedTensorType tensorOf(mlir::Value value);

/// How a tile.dot is computed.
struct DotPlan {
  /// The matrix instruction's shape (m, n, k), or zeros for fused multiply-adds.
  std::array<int32_t, 3> instruction{};
  /// Without meaning for fused multiply-adds.
  warp::WarpGrid warps;
  /// For instructions of warpgroups: how these split the product, and the layouts in which the operands come, which are
  /// the operands' own.
  std::optional<warp::WarpgroupGrid> groups{};
  std::array<warp::LayoutAttr, 2> operands{};
  /// Whether neighbours along M, and along N, are in one lane.
  std::array<bool, 2> interleaved{};
  /// How many neighbours along K are in one lane, of both operands of 16-bit elements.
  unsigned neighboursAlongK = 2;
  bool usesMma() const { return instruction[0] != 0; }
  bool usesWarpgroups() const { return groups.has_value(); }
  /// The fragments of that instruction.
  const warp::MmaFragments &fragments() const { return *warp::fragmentsOf(instruction); }
  /// The layouts for instructions of single warps: of the sums, and of an operand, 0 or 1, of `elementBits`.
  warp::LinearLayout sums(llvm::ArrayRef<int64_t> shape) const;
  warp::LinearLayout operand(unsigned index, llvm::ArrayRef<int64_t> shape, unsigned elementBits, unsigned batch) const;
};

/// The rules. An op *runs in* a layout: that of its results for Source, Elementwise, View, Reorder and those Fixed ops
/// that keep it (load, atomics, scan, join); the accumulator's for dot; the operand's for reduce, split and Effect; the
/// source's for gather.
class LayoutRules {
public:
  LayoutRules(mlir::MLIRContext *context, llvm::DenseMap<mlir::Operation *, DotPlan> dots)
      : context(context), dots(std::move(dots)) {}

  /// The layout that `op` wants for operand `index` when it runs in `layout`. Null for a scalar operand.
  warp::LayoutAttr operandLayout(mlir::Operation *op, warp::LayoutAttr layout, unsigned index) const;
  /// The layout of result `index` when `op` runs in `layout`; null for a scalar.
  warp::LayoutAttr resultLayout(mlir::Operation *op, warp::LayoutAttr layout, unsigned index) const;
  /// The layout in which `op`, of kind Elementwise, Reorder, reduce, scan, join or split, runs when it takes an operand
  /// as it is, in `operand`. None where there is no such layout.
  warp::LayoutAttr layoutFromOperand(mlir::Operation *op, warp::LayoutAttr operand) const;
  /// The plan of a tile.dot.
  const DotPlan &dot(mlir::Operation *op) const { return dots.find(op)->second; }
  /// Sets the layouts in which a product of warpgroups takes its operands.
  void setOperands(mlir::Operation *op, std::array<warp::LayoutAttr, 2> operands) {
    dots.find(op)->second.operands = operands;
  }
  /// Costs that were found, which all plans of a kernel share.
  KnownCosts &knownCosts() const { return *costs; }
  /// A layout as an attribute.
  warp::LayoutAttr attr(const warp::LinearLayout &layout) const { return warp::LayoutAttr::get(context, layout); }

private:
  warp::LayoutAttr dotOperandLayout(mlir::Operation *op, warp::LayoutAttr accumulator, unsigned index) const;

  mlir::MLIRContext *context;
  llvm::DenseMap<mlir::Operation *, DotPlan> dots;
  std::shared_ptr<KnownCosts> costs = std::make_shared<KnownCosts>();
};

/// The layout of a join's result whose operands are in `half`: a new lowest register bit along the new last axis.
warp::LinearLayout joinedLayout(const warp::LinearLayout &half);
/// The layout of a split's results whose source is in `whole`, if `whole` keeps both halves of every pair in one lane,
/// apart from all else.
std::optional<warp::LinearLayout> splitLayout(const warp::LinearLayout &whole);

} // namespace weft

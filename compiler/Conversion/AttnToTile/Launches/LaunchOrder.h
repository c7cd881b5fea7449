// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which launches of a program can become one, as attn-batch-launches and attn-merge-launches ask.
#pragma once

#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace weft {

/// The programs of a module: functions on whole tensors, kernels apart.
llvm::SmallVector<mlir::func::FuncOp> programsOf(mlir::ModuleOp module);

/// The kernel that a launch runs; null where the module has none of that name.
mlir::func::FuncOp kernelOf(attn::LaunchOp launch);
/// How many parameters of a kernel a tensor is: its address, and a stride for every axis but the last.
int64_t parametersOf(attn::WholeTensorType type);
/// Whether two kernels are one but for their names.
bool doTheSame(mlir::func::FuncOp a, mlir::func::FuncOp b);

/// Whether `first` may be launched as late as `second`, an op after it: nothing between them waits for it.
bool canPostpone(attn::LaunchOp first, mlir::Operation *second);
/// Whether `second` may be launched right after `first`, an op before it: it waits for nothing between them.
bool canAdvance(mlir::Operation *first, attn::LaunchOp second);
/// Whether `later` uses, directly or through other ops of the block, what `earlier` makes.
bool waitsFor(mlir::Operation *later, mlir::Operation *earlier);

/// The grid of launches as one of a single extent: all programs of the first, then those of the next.
std::string gridOfAll(llvm::ArrayRef<attn::LaunchOp> launches);
/// What a library's expressions may be long (docs/LibraryFormat.md), less what surrounds this one.
inline constexpr size_t longestGrid = 900;

/// Puts a program's numbers in a grid, and the grid's extents, in the place of what the ops of a block ask for; `except` is
/// left as it is.
void numberPrograms(mlir::Block &block, llvm::ArrayRef<mlir::Value> ids, llvm::ArrayRef<mlir::Value> extents,
                    mlir::Operation *except = nullptr);

/// Whether a launch without blocks has results without elements. (What it would have written is zero else, which a
/// launch sees to that has no block at all, not one that has another's.)
bool writesNothingWithoutBlocks(attn::LaunchOp launch);

/// One launch in place of several, at the place of the last, of a kernel that takes their operands, then their
/// results, then `sizes`; what they gave is its results.
attn::LaunchOp replaceLaunches(llvm::ArrayRef<attn::LaunchOp> launches, llvm::StringRef kernel,
                               llvm::ArrayRef<mlir::Value> inputs, llvm::ArrayRef<std::string> sizes);

} // namespace weft

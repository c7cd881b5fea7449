// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A tile kernel being written for an attn program: its parameters are those that `attn.launch` passes, found as they
// are needed.
#pragma once

#include "compiler/Conversion/AttnToTile/Kernel/TileBuilder.h"
#include "compiler/Conversion/AttnToTile/Kernel/Tilings.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/StringMap.h"

namespace weft {

/// How a tensor reaches a kernel.
struct TensorParameter {
  attn::WholeTensorType type;
  mlir::Value pointer;
  /// One for each axis but the last, i64, in elements.
  llvm::SmallVector<mlir::Value> strides;
  bool aligned = false;
};

/// The name, or where the module has it already, the name with the first free number from 2.
std::string freeName(mlir::ModuleOp module, llvm::StringRef name);

/// How many blocks run a kernel, as expressions over the program's symbols, and on how many warps.
struct KernelShape {
  std::array<std::string, 3> grid;
  int64_t warps = 4, stages = 3;
  bool shares = false; ///< may share a launch with others that may, matrix products or not
  int64_t cluster = 1; ///< programs that may share copies: the grid has a multiple of it, of which the last do nothing
  bool persistent = false; ///< blocks may go over the programs
};

/// A kernel and its launch. Use: make one; write its body with `b`, asking for inputs, outputs and sizes; `finish`.
class KernelFrame {
public:
  /// Starts the kernel `name` (made unique in the module of `anchor`), to be launched before `anchor`.
  KernelFrame(mlir::Operation *anchor, llvm::StringRef name);

  TileBuilder b;

  /// The parameter for an operand of the launch.
  TensorParameter input(mlir::Value tensor);
  /// The parameter for a fresh result of the launch; zero-filled before when asked for. Numbered in order.
  TensorParameter output(attn::WholeTensorType type, bool zeroed = false);
  /// The value of a size as i32: a constant, or a parameter.
  mlir::Value size(llvm::StringRef expression);

  /// What `compute` gives, computed once for `value`: here, or before what surrounds this place (loops), for whoever
  /// asks again.
  mlir::Value once(mlir::Value value, llvm::function_ref<mlir::Value()> compute);

  /// What `compute`, of operands and sizes alone, gives where the kernel begins.
  mlir::Value atEntry(llvm::function_ref<mlir::Value()> compute);

  /// The tiling that is chosen for the kernel, or the usual one. Asked for once, before what depends on it is written;
  /// where the choice cannot be taken the pass fails once the program has been gone through.
  KernelTiling tiling(const KernelTilings &tilings);

  /// Reports that the kernel cannot have a value's tiles; the pass fails once the program has been gone through.
  void refuse(mlir::Value value);

  /// Ends the kernel: orders the parameters, sets the schedule, and makes the launch. Gives the launch's results, one
  /// for each output.
  llvm::SmallVector<mlir::Value> finish(const KernelShape &shape);

private:
  TensorParameter parameter(attn::WholeTensorType type, bool aligned);

  mlir::Operation *anchor;
  std::string kind;
  mlir::func::FuncOp kernel;
  mlir::Block *body;
  llvm::MapVector<mlir::Value, TensorParameter> inputs;
  llvm::SmallVector<TensorParameter> outputs;
  llvm::SmallVector<int64_t> zeroedOutputs;
  llvm::MapVector<mlir::StringAttr, mlir::Value> sizes;
  llvm::DenseMap<mlir::Value, mlir::Value> known;
};

/// The type of a value of a program.
inline attn::WholeTensorType wholeType(mlir::Value value) { return mlir::cast<attn::WholeTensorType>(value.getType()); }

/// Moves loads whose places do not change in a loop, with what these are computed from, before it. For kernels that
/// read nothing they write, and loops that run at least once.
void hoistLoads(mlir::scf::ForOp loop);

/// How many blocks of `each` elements hold a tensor, as an expression; an integer where all sizes are.
std::string blocksOf(attn::WholeTensorType type, int64_t each);

/// On a kernel that was refused something.
inline constexpr llvm::StringLiteral refusedAttrName = "refused";

/// Whether a whole tensor's address and strides are multiples of 16 bytes, as far as the program says.
bool isAligned(mlir::Value tensor);

} // namespace weft

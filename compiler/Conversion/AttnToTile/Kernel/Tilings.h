// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How kernels that are no attention's are tiled: each has a usual tiling, and others that it can take. A choice goes by
// the kernel's place, "forward.rows.0": the part of the program, the kernel's kind, and which of that kind it is there.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Interfaces/FunctionInterfaces.h"
#include <optional>

namespace weft {

/// So many rows, or tokens, of a program of a kernel, and warps.
struct KernelTiling {
  int64_t rows = 0, warps = 0;
};

/// The tilings that a kernel can take: any of `rows` with any of `warps`, the usual ones among them.
struct KernelTilings {
  KernelTiling usual;
  llvm::SmallVector<int64_t> rows, warps;

  bool has(const KernelTiling &tiling) const {
    return llvm::is_contained(rows, tiling.rows) && llvm::is_contained(warps, tiling.warps);
  }
};

struct TilingChoice {
  std::string place;
  KernelTiling tiling;
};

/// Reads "forward.rows.0=32x4". Nothing where it is something else.
std::optional<TilingChoice> parseTilingChoice(llvm::StringRef text);
/// Whether a text is a place: PART.KIND.NUMBER with the part "forward" or "backward".
bool isTilingPlace(llvm::StringRef text);

/// Notes the choices for the kernels that will be made of a module's programs.
void setTilingChoices(mlir::ModuleOp module, llvm::ArrayRef<TilingChoice> choices);
/// Takes them away again. Fails, with an error, where one is for a kernel that a part of the module does not have.
mlir::LogicalResult takeTilingChoices(mlir::ModuleOp module);

/// The tiling of the next kernel of a kind in a program: the one chosen for it, else the usual one. It is noted in the
/// program where choices are on the module, if only none. Nothing, with an error, where the kernel cannot take what is
/// chosen.
std::optional<KernelTiling> nextTiling(mlir::FunctionOpInterface program, mlir::Location location, llvm::StringRef kind,
                                       const KernelTilings &tilings);

/// A kernel's place, its tiling, and what it can take.
struct TilingFacts {
  std::string place;
  KernelTiling tiling;
  llvm::SmallVector<int64_t> rows, warps;
};

/// Those noted in a module's programs, each place once.
llvm::SmallVector<TilingFacts> tilingFacts(mlir::ModuleOp module);

} // namespace weft

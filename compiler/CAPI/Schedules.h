// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Schedules as compile options spell them, and as a compilation reports them.
#pragma once

#include "compiler/Conversion/AttnToTile/Attention/Schedules.h"
#include "llvm/Support/JSON.h"
#include <variant>
#include <vector>

namespace weft::capi {

/// Reads {"0.forward": [128, 64, 4, 3], "0.backward.query": ..., "forward.rows.0": [32, 4]}: rows, columns, warps and
/// stages by attention and role, rows and warps by the place of another kernel. A message where it is something else.
std::variant<KernelChoices, std::string> readSchedules(const llvm::json::Object &object);

/// Every attention's kernels: {"attend": 0, "role": "forward", "schedule": [128, 64, 4, 3], "head_size", "value_size",
/// "element_bits", "group", "window_tokens", "alone"}.
llvm::json::Array describeSchedules(mlir::ModuleOp module);

/// Every other kernel that can be tiled in more ways than one: {"place": "forward.rows.0", "tiling": [64, 4], "rows":
/// [16, 32, 64, 128], "warps": [1, 2, 4, 8]}.
llvm::json::Array describeTilings(mlir::ModuleOp module);

} // namespace weft::capi

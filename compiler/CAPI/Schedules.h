// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Schedules as compile options spell them, and as a compilation reports them.
#pragma once

#include "compiler/Conversion/AttnToTile/Attention/Schedules.h"
#include "llvm/Support/JSON.h"
#include <variant>
#include <vector>

namespace weft::capi {

/// Reads {"0.forward": [128, 64, 4, 3], "0.backward.query": ..., "0.backward.keys": ...}: rows, columns, warps and
/// stages by attention and role. A message where it is something else.
std::variant<std::vector<ScheduleChoice>, std::string> readSchedules(const llvm::json::Object &object);

/// Every attention's kernels: {"attend": 0, "role": "forward", "schedule": [128, 64, 4, 3], "head_size", "value_size",
/// "element_bits", "group", "window_tokens"}.
llvm::json::Array describeSchedules(mlir::ModuleOp module);

} // namespace weft::capi

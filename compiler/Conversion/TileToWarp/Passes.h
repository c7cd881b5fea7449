// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The passes `tile-split-interior` and `tile-to-warp`, described in Passes.td.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

#define GEN_PASS_DECL
#include "compiler/Conversion/TileToWarp/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "compiler/Conversion/TileToWarp/Passes.h.inc"

} // namespace weft

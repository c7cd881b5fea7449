// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Passes on the tile dialect; each is described in Passes.td.
#pragma once

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft::tile {

#define GEN_PASS_DECL
#include "dialects/Tile/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dialects/Tile/Transforms/Passes.h.inc"

} // namespace weft::tile

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Passes on the warp dialect; each is described in Passes.td.
#pragma once

#include "dialects/Warp/IR/WarpDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft::warp {

#define GEN_PASS_DECL
#include "dialects/Warp/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dialects/Warp/Transforms/Passes.h.inc"

} // namespace weft::warp

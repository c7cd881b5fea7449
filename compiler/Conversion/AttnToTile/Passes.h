// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The passes that make launches of tile kernels from a program on whole tensors; each is described in Passes.td.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

#define GEN_PASS_DECL
#include "compiler/Conversion/AttnToTile/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "compiler/Conversion/AttnToTile/Passes.h.inc"

} // namespace weft

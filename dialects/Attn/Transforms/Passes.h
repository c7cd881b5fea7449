// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Passes on the attn dialect; each is described in Passes.td.
#pragma once

#include "dialects/Attn/IR/AttnDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"

namespace weft::attn {

#define GEN_PASS_DECL
#include "dialects/Attn/Transforms/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "dialects/Attn/Transforms/Passes.h.inc"

} // namespace weft::attn

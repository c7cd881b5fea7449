// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The passes `attn-differentiate` and `attn-linearise`, described in Passes.td.
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Pass/Pass.h"

namespace weft {

#define GEN_PASS_DECL
#include "compiler/Differentiate/Passes.h.inc"
#define GEN_PASS_REGISTRATION
#include "compiler/Differentiate/Passes.h.inc"

} // namespace weft

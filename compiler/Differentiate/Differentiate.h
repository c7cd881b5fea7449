// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The pass `attn-differentiate`: a forward and a backward function for every program of a module.
#pragma once

#include "mlir/Pass/Pass.h"
#include <memory>

namespace weft {

/// For each program @f (level 2: no mixers left), @f.forward and @f.backward; docs/Differentiation.md has their
/// signatures. Programs that have them already, those functions themselves, and programs in which no result depends on
/// an argument of floats are left alone. `fast` lets the attention gradients add in an order that changes from run to
/// run.
std::unique_ptr<mlir::Pass> createDifferentiatePass(bool fast = false);
/// Makes `attn-differentiate` known to weft-opt.
void registerDifferentiatePass();

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn-to-tile: a program on whole tensors becomes launches of tile kernels.
#pragma once

#include "mlir/Pass/Pass.h"

namespace weft {

std::unique_ptr<mlir::Pass> createAttnToTilePass();
void registerAttnToTilePass();

} // namespace weft

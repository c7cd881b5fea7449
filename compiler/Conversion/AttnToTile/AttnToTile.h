// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The passes that make launches of tile kernels from a program on whole tensors.
#pragma once

#include "mlir/Pass/Pass.h"

namespace weft {

/// `attn-to-tile`: every op becomes a launch, or part of one.
std::unique_ptr<mlir::Pass> createAttnToTilePass();
void registerAttnToTilePass();

/// `attn-batch-launches`: launches of kernels that do the same, and do not wait for one another, become one.
std::unique_ptr<mlir::Pass> createBatchLaunchesPass();
void registerBatchLaunchesPass();

/// `attn-merge-launches`: launches that do not wait for one another become one.
std::unique_ptr<mlir::Pass> createMergeLaunchesPass();
void registerMergeLaunchesPass();

/// `attn-share-kernels`: kernels that do the same become one.
std::unique_ptr<mlir::Pass> createShareKernelsPass();
void registerShareKernelsPass();

} // namespace weft

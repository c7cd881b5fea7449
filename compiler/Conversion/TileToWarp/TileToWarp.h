// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The pass `tile-to-warp`: gives every tensor of a kernel a layout, and every product its instruction.
//
// After it, loads, stores and atomics on tensors carry `warp.contiguity = c : i32`: every aligned group of c registers
// of the op's layout holds neighbours in memory, the first at an address that is a multiple of the group's bytes, and
// all under the same mask.
#pragma once

#include "dialects/Tile/IR/TileDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Pass/Pass.h"
#include <memory>
#include <string>

namespace weft {

/// The schedule of a kernel: its `tile.schedule`, or 4 warps and 3 stages.
tile::ScheduleAttr scheduleOf(mlir::func::FuncOp function);
/// Whether a function is a kernel with a body: what the passes of the compiler work on.
bool isKernel(mlir::func::FuncOp function);

/// The pass, for the target that the module names, or for `target` when it is not empty, which the module is then
/// marked with.
std::unique_ptr<mlir::Pass> createTileToWarpPass(std::string target = "");
/// Makes `tile-to-warp` known to weft-opt.
void registerTileToWarpPass();

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The generated definitions of the tile ops.
#include "dialects/Tile/IR/TileOps.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/DialectImplementation.h"

using namespace mlir;
using namespace weft::tile;

#define GET_OP_CLASSES
#include "dialects/Tile/IR/TileOps.cpp.inc"

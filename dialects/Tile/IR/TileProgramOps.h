// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The ops by which a program prints and brings PTX along.
#pragma once

#include "dialects/Tile/IR/TileOps.h"
#include "llvm/ADT/STLFunctionalExtras.h"
#include "llvm/ADT/Twine.h"

#define GET_OP_CLASSES
#include "dialects/Tile/IR/TileProgramOps.h.inc"

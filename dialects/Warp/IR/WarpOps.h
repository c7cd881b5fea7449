// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The ops of the warp dialect.
#pragma once

#include "dialects/Warp/IR/WarpDialect.h"
#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#define GET_OP_CLASSES
#include "dialects/Warp/IR/WarpOps.h.inc"

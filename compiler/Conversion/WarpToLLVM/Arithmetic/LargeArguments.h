// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What takes long division: remainders of floats, and angles of many turns. The machine's quotient and f64 are enough
// for most arguments; a thread whose are not branches.
#pragma once

#include "compiler/Conversion/WarpToLLVM/Emitter.h"

namespace weft {

/// x - y * trunc(x / y) of two f32 or f64, exactly, with the sign of x; x where y is infinite, NaN where x is or
/// y is 0.
mlir::Value remainderOf(mlir::Value x, mlir::Value y, Emitter &e);

/// An f32 angle in f64: itself below 2^30, else the same angle within half a turn, to 2^-52 of a turn.
mlir::Value withinTurns(mlir::Value x, Emitter &e);

} // namespace weft

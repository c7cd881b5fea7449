// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which f32 values are numbers of TF32: of 8 bits of exponent and 10 of mantissa.
#pragma once

#include "mlir/IR/Value.h"

namespace weft::warp {

/// Bits of an f32's mantissa that TF32 has not.
constexpr unsigned bitsBeyondTF32 = 13;

/// Sums of a thread, at most, beside which it has as many of what rounding lost, where three products make up for that.
constexpr unsigned mostSumsWithRests = 64;

/// Whether f32 values are numbers of TF32 already: those widened from 16 bits and fewer are, and those rounded or cut off
/// there.
bool isTF32(mlir::Value value);

} // namespace weft::warp

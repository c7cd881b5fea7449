// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Conversions of single registers between number types.
#pragma once

#include "compiler/Conversion/WarpToLLVM/Emitter.h"

namespace mlir::arith {
class TruncFOp;
} // namespace mlir::arith

namespace weft {

/// An f16, bf16 or f32 as an f32, exactly.
mlir::Value extendToF32(mlir::Value value, mlir::Type f32OrNarrower, Emitter &e);
inline mlir::Value extendToF32(mlir::Value value, Emitter &e) { return extendToF32(value, value.getType(), e); }
/// An f32 rounded to nearest even, to f16, bf16 or f32.
mlir::Value truncateFromF32(mlir::Value value, mlir::Type type, Emitter &e);
/// The bits of an f32 rounded to the nearest TF32: ties to even where the target does that in one instruction, away from
/// zero elsewhere.
mlir::Value roundToTF32(mlir::Value value, Emitter &e);
/// An integer in another width: truncated, or extended by its sign or by zeros.
mlir::Value resizeInteger(mlir::Value value, mlir::Type type, bool isSigned, Emitter &e);

/// Two f8s (`format` is f8E4M3FN or f8E5M2) of a 32-bit word that holds up to four, the lower two or the upper two, as a
/// vector of two f16, exactly.
mlir::Value float8ToF16(mlir::Value word, bool isUpper, mlir::Type format, Emitter &e);
/// The bits of the f8s nearest to up to four f16, bf16 or f32, ties to even, i8 each; what is too large becomes the largest
/// finite number, as in PTX's `cvt.rn.satfinite` (PTX ISA 9.7.9.21).
llvm::SmallVector<mlir::Value> toFloat8(llvm::ArrayRef<mlir::Value> values, mlir::Type format, Emitter &e);

/// Emits the rounding to f16 or bf16 of a sum, difference or product of such numbers, and the operation itself in the
/// narrow type. False, and nothing is emitted, where `op` rounds anything else.
bool roundsWhatIsNarrow(mlir::arith::TruncFOp op, Emitter &e);

/// Whether integers of 8 bits become numbers of this type by `bytesToHalves`.
bool convertsBytes(mlir::Type to, bool isSigned);
/// The four integers of 8 bits of a word as f16 or bf16, exactly.
llvm::SmallVector<mlir::Value, 4> bytesToHalves(mlir::Value word, mlir::Type to, bool isSigned, Emitter &e);

/// Casts of arith.
void addCastLowerings(LoweringTable &table);

} // namespace weft

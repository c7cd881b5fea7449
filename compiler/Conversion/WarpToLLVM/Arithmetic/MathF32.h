// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Elementary functions of one f32 register, in PTX's approximations where they are accurate and in polynomials of our
// own elsewhere.
#pragma once

#include "compiler/Conversion/WarpToLLVM/Emitter.h"

namespace weft::f32 {

/// 2^x by `ex2.approx.ftz.f32` (2 ulp; PTX ISA 9.7.3.21). Subnormal results are 0.
mlir::Value exp2(mlir::Value x, Emitter &e);
/// 2^x of two values, a vector, without the unit for special functions: a polynomial of the fraction times the power of the
/// whole part (2 ulp). Where `exp2` gives 0, infinity or not a number, so does it.
mlir::Value exp2OfPair(mlir::Value x, Emitter &e);
/// e^x as 2^(x · log2 e).
mlir::Value exp(mlir::Value x, Emitter &e);
/// Base-2 logarithm by `lg2.approx.f32` (2^-22, absolute between 0.5 and 2, else relative; PTX ISA 9.7.3.20).
mlir::Value log2(mlir::Value x, Emitter &e);
/// Natural logarithm, 2 ulp.
mlir::Value log(mlir::Value x, Emitter &e);
/// e^x - 1, 5 ulp.
mlir::Value expm1(mlir::Value x, Emitter &e);
/// x^y through the base-2 logarithm of |x|, off by about |y log2 x| 2^-23 of itself; of x below 0 where y is whole, else
/// NaN.
mlir::Value pow(mlir::Value x, mlir::Value y, Emitter &e);
/// log(1 + x), 3 ulp.
mlir::Value log1p(mlir::Value x, Emitter &e);
/// `sqrt.approx.f32` and `rsqrt.approx.f32` (1 and 2 ulp).
mlir::Value sqrt(mlir::Value x, Emitter &e);
mlir::Value rsqrt(mlir::Value x, Emitter &e);
/// Sine and cosine, 2 ulp; the argument is reduced in f64, of many turns in integers, unless it is known to be small:
/// at most 2^31.
mlir::Value sin(mlir::Value x, bool isSmall, Emitter &e);
mlir::Value cos(mlir::Value x, bool isSmall, Emitter &e);
/// Hyperbolic tangent and error function, 3 ulp.
mlir::Value tanh(mlir::Value x, Emitter &e);
mlir::Value erf(mlir::Value x, Emitter &e);

} // namespace weft::f32

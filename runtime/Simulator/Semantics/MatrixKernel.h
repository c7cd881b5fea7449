// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The body of the matrix kernels, compiled once for each instruction set by a file that includes it (MatrixPortable,
// MatrixAvx2, MatrixAvx512). Everything here has internal linkage and uses no function of a standard header, so that
// code of one instruction set can never stand in for another's.
//
// Fragments are unpacked to row-major f32 (or s32) matrices, multiplied eight columns at a time, and packed again.
#pragma once

#include "runtime/Simulator/Semantics/MatrixTiles.h"

namespace weft::simulator::semantics {
namespace {

/// A dense A: element i of a row meets row i of B.
struct EveryRow {
  unsigned stored;
  unsigned of(unsigned, unsigned i) const { return i; }
};
/// A sparse one: the row that its metadata say.
struct ChosenRows {
  const SparseRows &rows;
  unsigned stored = rows.stored;
  unsigned of(unsigned row, unsigned i) const { return rows.of[row][i]; }
};

/// Eight rows and columns of D over those of C: the sum of products in ascending k, then C.
template <unsigned k> inline void addProducts(const float *a, const float *b, float *tile) {
  Float8 sum[8];
  const Float8 first = loadAs<Float8>(b);
#pragma clang loop unroll(full)
  for (unsigned row = 0; row < 8; ++row)
    sum[row] = a[row * k] * first;
  for (unsigned i = 1; i < k; ++i) {
    const Float8 values = loadAs<Float8>(b + 8 * i);
#pragma clang loop unroll(full)
    for (unsigned row = 0; row < 8; ++row) {
      const float x = a[row * k + i];
      sum[row] = fma8(Float8{x, x, x, x, x, x, x, x}, values, sum[row]);
    }
  }
#pragma clang loop unroll(full)
  for (unsigned row = 0; row < 8; ++row)
    storeAs(tile + 8 * row, canonical(sum[row] + loadAs<Float8>(tile + 8 * row)));
}

template <MatrixType type, unsigned k>
inline void multiplyFloatOf(const MatrixProduct &product, const void *const *a, const void *const *b,
                            const void *const *c, void *const *d) {
  const unsigned down = product.shape.m / 8, across = product.shape.n / 8; // tiles, at most four together
  const unsigned ofC = product.c == AccumulatorType::F16 ? 1 : 2, ofD = product.d == AccumulatorType::F16 ? 1 : 2;
  alignas(64) float left[32 * k], right[32 * k], sums[4 * 64];
  for (unsigned i = 0; i < down; ++i)
    unpackRows<type, k>(a + i, down, left + 8 * k * i);
  for (unsigned i = 0; i < across; ++i)
    unpackColumns<type, k>(b + k / inPiece<type> * i, right + 8 * k * i);
  for (unsigned i = 0; i < down * across; ++i)
    loadTile(product.c, c + ofC * i, sums + 64 * i);
  for (unsigned i = 0; i < down * across; ++i)
    addProducts<k>(left + i % down * 8 * k, right + i / down * 8 * k, sums + 64 * i);
  for (unsigned i = 0; i < down * across; ++i)
    storeTile(product.d, sums + 64 * i, d + ofD * i);
}

/// f16, bf16 and tf32.
inline void multiplyFloat(const MatrixProduct &product, const void *const *a, const void *const *b,
                          const void *const *c, void *const *d) {
  const bool half = product.a == MatrixType::F16;
  if (product.a == MatrixType::TF32)
    product.shape.k == 8 ? multiplyFloatOf<MatrixType::TF32, 8>(product, a, b, c, d)
                         : multiplyFloatOf<MatrixType::TF32, 4>(product, a, b, c, d);
  else if (product.shape.k == 16)
    half ? multiplyFloatOf<MatrixType::F16, 16>(product, a, b, c, d)
         : multiplyFloatOf<MatrixType::BF16, 16>(product, a, b, c, d);
  else
    half ? multiplyFloatOf<MatrixType::F16, 8>(product, a, b, c, d)
         : multiplyFloatOf<MatrixType::BF16, 8>(product, a, b, c, d);
}

/// f16, bf16 and tf32 of a sparse A: as `addProducts`, but that each row of A meets rows of B of its own.
inline void multiplySparseFloat(const MatrixProduct &product, const ChosenRows &rows, const void *const *a,
                                const void *const *b, const void *const *c, void *const *d) {
  const auto [m, n, whole] = product.shape;
  const unsigned k = rows.stored;
  alignas(64) float left[16 * 16], right[64 * 8], sums[16 * 8];
  unpackA(product.a, {m, n, uint16_t(k)}, a, left);
  unpackB(product.b, product.shape, b, right);
  unpackC(product.c, product.shape, c, sums);
  constexpr unsigned together = 8; // chains of additions, so that none waits for itself
  for (unsigned row = 0; row < m; row += together) {
    Float8 sum[together];
#pragma clang loop unroll(full)
    for (unsigned r = 0; r < together; ++r)
      sum[r] = left[(row + r) * k] * loadAs<Float8>(right + rows.of(row + r, 0) * n);
    for (unsigned i = 1; i < k; ++i) {
#pragma clang loop unroll(full)
      for (unsigned r = 0; r < together; ++r)
        sum[r] = fma8(Float8{} + left[(row + r) * k + i], loadAs<Float8>(right + rows.of(row + r, i) * n), sum[r]);
    }
#pragma clang loop unroll(full)
    for (unsigned r = 0; r < together; ++r)
      storeAs(sums + (row + r) * n, canonical(sum[r] + loadAs<Float8>(sums + (row + r) * n)));
  }
  packD(product.d, product.shape, sums, d);
}

template <MatrixType type> inline void multiplyPiecesOf(const PiecesProduct &product) {
  constexpr unsigned k = 2 * inPiece<type>;
  const unsigned each = product.accumulator == AccumulatorType::F16 ? 1 : 2;
  alignas(64) float left[16 * k], right[k * 8], sums[2 * 64];
  for (unsigned i = 0; i < 2; ++i)
    unpackRows<type, k>(product.a + i, 2, left + 8 * k * i);
  for (unsigned tile = 0; tile < product.tiles; ++tile) {
    unpackPieces<type>(static_cast<const unsigned char *>(product.memory), product.pieces + 16 * tile, product.byRow,
                       right);
    if (!product.adds)
      __builtin_memset(sums, 0, sizeof sums);
    for (unsigned i = 0; i < 2; ++i) {
      void *const *d = product.d + each * (2 * tile + i);
      if (product.adds)
        loadTile(product.accumulator, d, sums + 64 * i);
      addProducts<k>(left + 8 * k * i, right, sums + 64 * i);
      storeTile(product.accumulator, sums + 64 * i, d);
    }
  }
}

/// `multiplyPieces` for the instruction set this file is compiled for.
inline void multiplyPiecesHere(const PiecesProduct &product) {
  if (product.type == MatrixType::F16)
    multiplyPiecesOf<MatrixType::F16>(product);
  else if (product.type == MatrixType::BF16)
    multiplyPiecesOf<MatrixType::BF16>(product);
  else
    multiplyPiecesOf<MatrixType::TF32>(product);
}

/// Which bits of an 8-bit float are what.
struct Float8Format {
  unsigned mantissa; ///< bits
  int least;         ///< the exponent of subnormals
  bool infinite;     ///< the largest exponent is infinity's and NaNs'; else only all ones are, NaN
};

constexpr Float8Format formatOf(MatrixType type) {
  return type == MatrixType::E4M3 ? Float8Format{3, -6, false} : Float8Format{2, -14, true};
}

/// The exponent of what is zero: below every other's.
constexpr int exponentOfZero = -1024;

/// An 8-bit float as significand * 2^(exponent - mantissa), its sign in the significand.
struct Float8Parts {
  int32_t significand, exponent;
  float special; ///< 0, or infinity or NaN
};

constexpr Float8Parts partsOf(const Float8Format &format, uint32_t byte) {
  const uint32_t magnitude = byte & 0x7f, field = magnitude >> format.mantissa;
  const uint32_t fraction = magnitude & ((1u << format.mantissa) - 1);
  Float8Parts parts{};
  if (format.infinite ? field == 0x1f : magnitude == 0x7f)
    parts.special = fraction ? __builtin_nanf("") : byte & 0x80 ? -__builtin_inff() : __builtin_inff();
  parts.significand = int32_t(field ? fraction | 1u << format.mantissa : fraction);
  parts.exponent = magnitude ? int32_t(field ? field - 1 : 0) + format.least : exponentOfZero;
  if (byte & 0x80)
    parts.significand = -parts.significand;
  return parts;
}

struct Float8Table {
  Float8Parts of[256] = {};
  constexpr explicit Float8Table(const Float8Format &format) {
    for (uint32_t byte = 0; byte < 256; ++byte)
      of[byte] = partsOf(format, byte);
  }
};

constexpr Float8Table tableOfE4M3{formatOf(MatrixType::E4M3)}, tableOfE5M2{formatOf(MatrixType::E5M2)};

/// A matrix of 8-bit floats, in parts.
struct Float8Matrix {
  alignas(32) int32_t significands[32 * 16];
  alignas(32) int32_t exponents[32 * 16];
  alignas(32) float specials[32 * 16];
  bool anySpecial = false;

  void fill(MatrixType type, const int32_t *bytes, unsigned count) {
    const Float8Table &table = type == MatrixType::E4M3 ? tableOfE4M3 : tableOfE5M2;
    for (unsigned i = 0; i < count; ++i) {
      const Float8Parts &parts = table.of[bytes[i]];
      significands[i] = parts.significand, exponents[i] = parts.exponent, specials[i] = parts.special;
      anySpecial |= !(parts.special == 0);
    }
  }
};

[[gnu::always_inline]] inline Int8 larger(const Int8 &a, const Int8 &b) { return a > b ? a : b; }

/// 2^exponent, down to 0 and up to infinity, in two factors.
[[gnu::always_inline]] inline Float8 scaled(const Float8 &value, const Int8 &exponent) {
  const Int8 half = exponent >> 1, rest = exponent - half;
  return value * (Float8)((half + 127) << 23) * (Float8)((rest + 127) << 23);
}

/// What is cut behind the 13th place below `top`: `value` has `places` binary places and the exponent `exponent`.
[[gnu::always_inline]] inline Int8 aligned(const Int8 &value, int places, const Int8 &exponent, const Int8 &top) {
  constexpr int kept = 13;
  const Int8 sign = value >> 31, distance = top - exponent + (places > kept ? places - kept : 0);
  const Int8 magnitude = ((value ^ sign) - sign) << (places < kept ? kept - places : 0);
  const Int8 shift = distance < 31 ? distance : Int8{} + 31;
  return ((magnitude >> shift) ^ sign) - sign;
}

/// e4m3 and e5m2 as Matrix.h says: eight columns at a time.
template <typename Rows>
inline void multiplyFloat8(const MatrixProduct &product, const Rows &rows, const void *const *a, const void *const *b,
                           const void *const *c, void *const *d) {
  const auto [m, n, whole] = product.shape;
  const unsigned k = rows.stored;
  alignas(32) int32_t bytes[32 * 16];
  alignas(32) float sums[16 * 8];
  Float8Matrix left, right;
  unpackA(MatrixType::U8, {m, n, uint16_t(k)}, a, bytes);
  left.fill(product.a, bytes, m * k);
  unpackB(MatrixType::U8, product.shape, b, bytes);
  right.fill(product.b, bytes, whole * n);
  unpackC(product.c, product.shape, c, sums);
  const int places = int(formatOf(product.a).mantissa + formatOf(product.b).mantissa);
  const int leastOfC = product.c == AccumulatorType::F16 ? -14 : -126;
  for (unsigned row = 0; row < m; ++row) {
    const auto start = loadAs<Float8>(sums + row * n);
    const Word8 bits = (Word8)start & 0x7fffffff;
    // C as an integer with 23 places; an f16's are counted from its own smallest exponent.
    const Int8 field = (Int8)(bits >> 23), own = (field > 0 ? field : Int8{} + 1) - 127;
    const Int8 exponent = larger(own, Int8{} + leastOfC), late = exponent - own;
    const Int8 significand = (Int8)((bits & 0x7fffff) | (field > 0 ? Word8{} + 0x800000 : Word8{}));
    const Int8 magnitude = significand >> (late < 31 ? late : Int8{} + 31);
    const Int8 signOfC = (Int8)start >> 31;
    const Int8 exponentOfC = bits > 0 ? exponent : Int8{} + exponentOfZero;
    Int8 top = exponentOfC;
    for (unsigned i = 0; i < k; ++i)
      top = larger(top, left.exponents[row * k + i] + loadAs<Int8>(right.exponents + rows.of(row, i) * n));
    Int8 sum = aligned((magnitude ^ signOfC) - signOfC, 23, exponentOfC, top);
    for (unsigned i = 0; i < k; ++i)
      sum += aligned(left.significands[row * k + i] * loadAs<Int8>(right.significands + rows.of(row, i) * n), places,
                     left.exponents[row * k + i] + loadAs<Int8>(right.exponents + rows.of(row, i) * n), top);
    Float8 result = __builtin_convertvector(sum, Float8); // at most 21 bits: exact
    if (product.d == AccumulatorType::F32)
      result = (Float8)((Word8)result & ~0x3ffu);
    result = scaled(result, larger(top, Int8{} - 200) - 13);
    // Of infinities and NaNs signs and zeros alone count.
    Float8 plain = start;
    for (unsigned i = 0; i < k && (left.anySpecial || right.anySpecial); ++i) {
      const auto values = __builtin_convertvector(loadAs<Int8>(right.significands + rows.of(row, i) * n), Float8);
      const float value = float(left.significands[row * k + i]) + left.specials[row * k + i];
      plain += value * (values + loadAs<Float8>(right.specials + rows.of(row, i) * n));
    }
    storeAs(sums + row * n, canonical(plain - plain == 0.0f ? result : plain));
  }
  packD(product.d, product.shape, sums, d);
}

/// s8, u8, s4 and u4.
template <typename Rows>
inline void multiplyInteger(const MatrixProduct &product, const Rows &rows, const void *const *a, const void *const *b,
                            const void *const *c, void *const *d) {
  const auto [m, n, whole] = product.shape;
  const unsigned k = rows.stored;
  alignas(64) int32_t left[32 * 64], right[64 * 32], sums[32 * 32];
  unpackA(product.a, {m, n, uint16_t(k)}, a, left);
  unpackB(product.b, product.shape, b, right);
  unpackC(product.c, product.shape, c, sums);
  for (unsigned row = 0; row < m; ++row)
    for (unsigned col = 0; col < n; col += 8) {
      Word8 sum = {}; // at most 64 * 255 * 255: never overflows
      for (unsigned i = 0; i < k; ++i)
        sum += uint32_t(left[row * k + i]) * loadAs<Word8>(right + rows.of(row, i) * n + col);
      int32_t *to = sums + row * n + col;
      const Word8 start = loadAs<Word8>(to), total = sum + start;
      if (product.saturate) { // overflow: both addends have one sign and the total the other
        const Word8 overflow = (Word8)((Int8)(~(sum ^ start) & (sum ^ total)) >> 31);
        const Word8 limit = (Word8)((Int8)start >> 31) ^ 0x7fffffff;
        storeAs(to, (overflow & limit) | (~overflow & total));
      } else {
        storeAs(to, total);
      }
    }
  packD(product.d, product.shape, sums, d);
}

/// b1: every register is an 8 x 128 tile, a lane's word against a lane's word.
inline void multiplyBits(const MatrixProduct &product, const void *const *a, const void *const *b, const void *const *c,
                         void *const *d) {
  const auto [m, n, k] = product.shape;
  alignas(64) uint32_t sums[16 * 8];
  unpackC(product.c, product.shape, c, sums);
  for (unsigned row = 0; row < m; ++row)
    for (unsigned col = 0; col < n; ++col)
      for (unsigned word = 0; word < k / 32u; ++word) {
        const auto *left = static_cast<const uint32_t *>(a[word / 4 * (m / 8) + row / 8]);
        const auto *right = static_cast<const uint32_t *>(b[word / 4]);
        const uint32_t x = left[row % 8 * 4 + word % 4], y = right[col * 4 + word % 4];
        sums[row * n + col] += __builtin_popcount(product.bits == BitOperation::XorPopc ? x ^ y : x & y);
      }
  packD(product.d, product.shape, sums, d);
}

/// f64: each element of the result as a chain of fused multiply-adds along k, as of fma.f64.
inline void multiplyDouble(const MatrixProduct &product, const void *const *a, const void *const *b,
                           const void *const *c, void *const *d) {
  constexpr unsigned mostRows = 16, mostInner = 16, columns = 8;
  const MatrixShape shape = product.shape;
  double left[mostRows][mostInner], right[mostInner][columns];
  auto spread = [&](Operand operand, const void *const *registers, auto &&at) {
    for (unsigned i = 0; i < multiplicandRegisters(operand, shape, 64); ++i)
      for (unsigned lane = 0; lane < 32; ++lane)
        at(multiplicandPosition(operand, shape, 64, lane, i)) = static_cast<const double *>(registers[i])[lane];
  };
  spread(Operand::A, a, [&](Position p) -> double & { return left[p.row][p.col]; });
  spread(Operand::B, b, [&](Position p) -> double & { return right[p.row][p.col]; });
  for (unsigned i = 0; i < accumulatorElements(shape); ++i) {
    double result[32];
    for (unsigned lane = 0; lane < 32; ++lane) {
      const Position p = accumulatorPosition(shape, lane, i);
      double sum = static_cast<const double *>(c[i])[lane];
      for (unsigned k = 0; k < shape.k; ++k)
        sum = __builtin_fma(left[p.row][k], right[k][p.col], sum);
      result[lane] = sum;
    }
    __builtin_memcpy(d[i], result, sizeof result);
  }
}

/// `multiply` for the instruction set this file is compiled for.
inline void multiplyHere(const MatrixProduct &product, const void *const *a, const void *const *b, const void *const *c,
                         void *const *d) {
  switch (product.a) {
  case MatrixType::F16:
  case MatrixType::BF16:
  case MatrixType::TF32:
    return multiplyFloat(product, a, b, c, d);
  case MatrixType::S8:
  case MatrixType::U8:
  case MatrixType::S4:
  case MatrixType::U4:
    return multiplyInteger(product, EveryRow{product.shape.k}, a, b, c, d);
  case MatrixType::B1:
    return multiplyBits(product, a, b, c, d);
  case MatrixType::F64:
    return multiplyDouble(product, a, b, c, d);
  case MatrixType::E4M3:
  case MatrixType::E5M2:
    return multiplyFloat8(product, EveryRow{product.shape.k}, a, b, c, d);
  }
}

/// `multiplySparse` for the instruction set this file is compiled for.
inline void multiplySparseHere(const MatrixProduct &product, const SparseRows &rows, const void *const *a,
                               const void *const *b, const void *const *c, void *const *d) {
  if (bitsOf(product.a) >= 16)
    return multiplySparseFloat(product, {rows}, a, b, c, d);
  if (isFloat8(product.a))
    return multiplyFloat8(product, ChosenRows{rows}, a, b, c, d);
  return multiplyInteger(product, ChosenRows{rows}, a, b, c, d);
}

} // namespace
} // namespace weft::simulator::semantics

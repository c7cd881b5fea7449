// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The body of the matrix kernels, compiled once for each instruction set by a file that includes it (MatrixPortable,
// MatrixAvx2, MatrixAvx512). Everything here has internal linkage and uses no function of a standard header, so that
// code of one instruction set can never stand in for another's.
//
// Fragments are unpacked to row-major f32 (or s32) matrices, multiplied eight columns at a time, and packed again.
#pragma once

#include "runtime/Simulator/Semantics/Matrix.h"

namespace weft::simulator::semantics {
namespace {

typedef float Float8 __attribute__((vector_size(32)));
typedef float Float4 __attribute__((vector_size(16)));
typedef uint32_t Word8 __attribute__((vector_size(32)));
typedef int32_t Int8 __attribute__((vector_size(32)));
typedef uint16_t Short8 __attribute__((vector_size(16)));
typedef uint32_t Word4 __attribute__((vector_size(16)));

template <typename T> [[gnu::always_inline]] inline T loadAs(const void *from) {
  T value;
  __builtin_memcpy(&value, from, sizeof(T));
  return value;
}
template <typename T> [[gnu::always_inline]] inline void storeAs(void *to, const T &value) {
  __builtin_memcpy(to, &value, sizeof(T));
}

/// Eight f16 to f32, exactly: the exponent is rebiased by a multiplication, which also normalises subnormals.
[[gnu::always_inline]] inline Float8 widenHalf(const Short8 &half) {
#ifdef __F16C__
  typedef _Float16 Half8 __attribute__((vector_size(16)));
  return __builtin_convertvector((Half8)half, Float8);
#else
  const Word8 bits = __builtin_convertvector(half, Word8);
  const Word8 magnitude = (bits & 0x7fff) << 13;
  const Word8 special = (Word8)((bits & 0x7c00) == 0x7c00) & 0x7f800000;
  const Float8 scaled = (Float8)magnitude * 0x1p112f;
  return (Float8)((Word8)scaled | special | (bits & 0x8000) << 16);
#endif
}

/// Eight f32 to f16, to nearest even, NaN to 0x7fff.
[[gnu::always_inline]] inline Short8 narrowHalf(const Float8 &value) {
  const Word8 bits = (Word8)value, magnitude = bits & 0x7fffffff;
  // Adding 0.5 ulp of the smallest normal f16 aligns a subnormal's last bit with the f32's last bit.
  const Word8 subnormal = (Word8)((Float8)magnitude + 0.5f) - 0x3f000000;
  const Word8 normal = (magnitude + 0xc8000fff + (magnitude >> 13 & 1)) >> 13;
  const Word8 small = (Word8)(magnitude < 0x38800000), large = (Word8)(magnitude >= 0x477ff000);
  const Word8 nan = (Word8)(magnitude > 0x7f800000);
  Word8 result = (small & subnormal) | (~small & normal);
  result = (large & 0x7c00) | (~large & result);
  result |= bits >> 16 & 0x8000;
  result = (nan & 0x7fff) | (~nan & result);
  return __builtin_convertvector(result, Short8);
}

/// NaN becomes PTX's canonical one.
[[gnu::always_inline]] inline Float8 canonical(const Float8 &value) {
  const Word8 nan = (Word8)(value != value);
  return (Float8)((nan & 0x7fffffff) | (~nan & (Word8)value));
}

[[gnu::always_inline]] inline Float8 fma8(const Float8 &a, const Float8 &b, const Float8 &c) {
#if defined(__clang__)
  return __builtin_elementwise_fma(a, b, c);
#else
  Float8 result;
  for (int i = 0; i < 8; ++i)
    result[i] = __builtin_fmaf(a[i], b[i], c[i]);
  return result;
#endif
}

/// One row of a tile, four lanes' registers, as `4 * perRegister` f32.
[[gnu::always_inline]] inline void widenRow(MatrixType type, const uint32_t *lanes, float *row) {
  if (type == MatrixType::F16) {
    storeAs(row, widenHalf(loadAs<Short8>(lanes)));
  } else if (type == MatrixType::BF16) {
    storeAs(row, __builtin_convertvector(loadAs<Short8>(lanes), Word8) << 16);
  } else {
    storeAs(row, loadAs<Word4>(lanes) & 0xffffe000);
  }
}

/// One row of a tile, four lanes' registers, as `4 * perRegister` sign- or zero-extended integers.
[[gnu::always_inline]] inline void widenRow(MatrixType type, const uint32_t *lanes, int32_t *row) {
  const unsigned bits = type == MatrixType::S8 || type == MatrixType::U8 ? 8 : 4;
  const bool isSigned = type == MatrixType::S8 || type == MatrixType::S4;
  for (unsigned lane = 0; lane < 4; ++lane)
    for (unsigned i = 0; i < 32 / bits; ++i) {
      const uint32_t top = lanes[lane] << (32 - bits - i * bits);
      row[lane * (32 / bits) + i] = isSigned ? int32_t(top) >> (32 - bits) : int32_t(top >> (32 - bits));
    }
}

/// A as a row-major m x k matrix.
template <typename T> inline void unpackA(MatrixType type, MatrixShape shape, const void *const *registers, T *matrix) {
  const unsigned columns = 4 * perRegister(bitsOf(type)), rowTiles = shape.m / 8, colTiles = shape.k / columns;
  for (unsigned col = 0; col < colTiles; ++col)
    for (unsigned row = 0; row < rowTiles; ++row) {
      const auto *lanes = static_cast<const uint32_t *>(registers[col * rowTiles + row]);
      T *tile = matrix + row * 8 * shape.k + col * columns;
      for (unsigned g = 0; g < 8; ++g)
        widenRow(type, lanes + 4 * g, tile + g * shape.k);
    }
}

/// B as a row-major k x n matrix: its tiles hold columns, so each is turned.
template <typename T> inline void unpackB(MatrixType type, MatrixShape shape, const void *const *registers, T *matrix) {
  const unsigned columns = 4 * perRegister(bitsOf(type)), rowTiles = shape.k / columns, colTiles = shape.n / 8;
  for (unsigned col = 0; col < colTiles; ++col)
    for (unsigned row = 0; row < rowTiles; ++row) {
      const auto *lanes = static_cast<const uint32_t *>(registers[col * rowTiles + row]);
      alignas(32) T tile[8][32];
      for (unsigned g = 0; g < 8; ++g)
        widenRow(type, lanes + 4 * g, tile[g]);
      T *to = matrix + row * columns * shape.n + col * 8;
      for (unsigned k = 0; k < columns; ++k)
        for (unsigned g = 0; g < 8; ++g)
          to[k * shape.n + g] = tile[g][k];
    }
}

/// Four rows of four in each half: [row][k] to [k][row], the halves by themselves.
[[gnu::always_inline]] inline void turnHalves(Float8 (&x)[4]) {
  const Float8 a = __builtin_shufflevector(x[0], x[1], 0, 8, 1, 9, 4, 12, 5, 13);
  const Float8 b = __builtin_shufflevector(x[0], x[1], 2, 10, 3, 11, 6, 14, 7, 15);
  const Float8 c = __builtin_shufflevector(x[2], x[3], 0, 8, 1, 9, 4, 12, 5, 13);
  const Float8 d = __builtin_shufflevector(x[2], x[3], 2, 10, 3, 11, 6, 14, 7, 15);
  x[0] = __builtin_shufflevector(a, c, 0, 1, 8, 9, 4, 5, 12, 13);
  x[1] = __builtin_shufflevector(a, c, 2, 3, 10, 11, 6, 7, 14, 15);
  x[2] = __builtin_shufflevector(b, d, 0, 1, 8, 9, 4, 5, 12, 13);
  x[3] = __builtin_shufflevector(b, d, 2, 3, 10, 11, 6, 7, 14, 15);
}

/// Eight columns of B as a row-major matrix, from pieces of 16 bytes: eight for each half of k.
template <MatrixType type>
inline void unpackPieces(const unsigned char *memory, const uint32_t *pieces, bool byRow, float *matrix) {
  constexpr unsigned each = type == MatrixType::TF32 ? 4 : 8;
  for (unsigned half = 0; half < 2; ++half) {
    float *rows = matrix + half * each * 8;
    alignas(32) float values[8][each];
    for (unsigned i = 0; i < 8; ++i) {
      alignas(16) uint32_t words[4];
      __builtin_memcpy(words, memory + pieces[8 * half + i], 16);
      widenRow(type, words, byRow ? rows + 8 * i : values[i]);
    }
    for (unsigned from = 0; from < each && !byRow; from += 4) {
      Float8 x[4];
      for (unsigned i = 0; i < 4; ++i)
        x[i] = __builtin_shufflevector(loadAs<Float4>(values[i] + from), loadAs<Float4>(values[i + 4] + from), 0, 1, 2,
                                       3, 4, 5, 6, 7);
      turnHalves(x);
      for (unsigned k = 0; k < 4; ++k)
        storeAs(rows + (from + k) * 8, x[k]);
    }
  }
}

/// C as a row-major m x n matrix of 32-bit elements: bits of f32 or s32, or f16 widened.
inline void unpackC(AccumulatorType type, MatrixShape shape, const void *const *registers, void *matrix) {
  const unsigned rowTiles = shape.m / 8;
  for (unsigned tile = 0; tile < rowTiles * (shape.n / 8u); ++tile)
    for (unsigned g = 0; g < 8; ++g) {
      auto *row = static_cast<uint32_t *>(matrix) + (tile % rowTiles * 8 + g) * shape.n + tile / rowTiles * 8;
      if (type == AccumulatorType::F16) {
        storeAs(row, widenHalf(loadAs<Short8>(static_cast<const uint32_t *>(registers[tile]) + 4 * g)));
        continue;
      }
      const auto even = loadAs<Word4>(static_cast<const uint32_t *>(registers[2 * tile]) + 4 * g);
      const auto odd = loadAs<Word4>(static_cast<const uint32_t *>(registers[2 * tile + 1]) + 4 * g);
      storeAs(row, __builtin_shufflevector(even, odd, 0, 4, 1, 5, 2, 6, 3, 7));
    }
}

/// The inverse of unpackC.
inline void packD(AccumulatorType type, MatrixShape shape, const void *matrix, void *const *registers) {
  const unsigned rowTiles = shape.m / 8;
  for (unsigned tile = 0; tile < rowTiles * (shape.n / 8u); ++tile)
    for (unsigned g = 0; g < 8; ++g) {
      const auto *row =
          static_cast<const uint32_t *>(matrix) + (tile % rowTiles * 8 + g) * shape.n + tile / rowTiles * 8;
      if (type == AccumulatorType::F16) {
        storeAs(static_cast<uint32_t *>(registers[tile]) + 4 * g, narrowHalf(loadAs<Float8>(row)));
        continue;
      }
      const auto values = loadAs<Word8>(row);
      storeAs(static_cast<uint32_t *>(registers[2 * tile]) + 4 * g,
              __builtin_shufflevector(values, values, 0, 2, 4, 6));
      storeAs(static_cast<uint32_t *>(registers[2 * tile + 1]) + 4 * g,
              __builtin_shufflevector(values, values, 1, 3, 5, 7));
    }
}

/// Eight rows and eight columns of D: the sum of products in ascending k, then C.
[[gnu::always_inline]] inline void block(const float *a, const float *b, const float *c, float *d, unsigned n,
                                         unsigned k) {
  Float8 sum[8];
  const Float8 first = loadAs<Float8>(b);
#pragma clang loop unroll(full)
  for (unsigned row = 0; row < 8; ++row)
    sum[row] = a[row * k] * first;
  for (unsigned i = 1; i < k; ++i) {
    const Float8 values = loadAs<Float8>(b + i * n);
#pragma clang loop unroll(full)
    for (unsigned row = 0; row < 8; ++row)
      sum[row] = fma8(Float8{} + a[row * k + i], values, sum[row]);
  }
#pragma clang loop unroll(full)
  for (unsigned row = 0; row < 8; ++row)
    storeAs(d + row * n, canonical(sum[row] + loadAs<Float8>(c + row * n)));
}

/// f16, bf16 and tf32.
inline void multiplyFloat(const MatrixProduct &product, const void *const *a, const void *const *b,
                          const void *const *c, void *const *d) {
  const auto [m, n, k] = product.shape;
  alignas(64) float left[32 * 16], right[16 * 32], sums[32 * 32];
  unpackA(product.a, product.shape, a, left);
  unpackB(product.b, product.shape, b, right);
  unpackC(product.c, product.shape, c, sums);
  for (unsigned row = 0; row < m; row += 8)
    for (unsigned col = 0; col < n; col += 8)
      block(left + row * k, right + col, sums + row * n + col, sums + row * n + col, n, k);
  packD(product.d, product.shape, sums, d);
}

template <MatrixType type> inline void multiplyPiecesOf(const PiecesProduct &product) {
  constexpr uint16_t k = type == MatrixType::TF32 ? 8 : 16;
  constexpr MatrixShape shape{16, 8, k};
  const AccumulatorType kind = product.accumulator;
  const unsigned registers = kind == AccumulatorType::F16 ? 2 : 4;
  alignas(64) float left[16 * k], right[k * 8], sums[16 * 8];
  unpackA(type, shape, product.a, left);
  for (unsigned tile = 0; tile < product.tiles; ++tile) {
    unpackPieces<type>(static_cast<const unsigned char *>(product.memory), product.pieces + 16 * tile, product.byRow,
                       right);
    void *const *d = product.d + registers * tile;
    if (product.adds)
      unpackC(kind, shape, d, sums);
    else
      __builtin_memset(sums, 0, sizeof sums);
    for (unsigned row = 0; row < 16; row += 8)
      block(left + row * k, right, sums + row * 8, sums + row * 8, 8, k);
    packD(kind, shape, sums, d);
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
inline void multiplyFloat8(const MatrixProduct &product, const void *const *a, const void *const *b,
                           const void *const *c, void *const *d) {
  const auto [m, n, k] = product.shape;
  alignas(32) int32_t bytes[32 * 16];
  alignas(32) float sums[16 * 8];
  Float8Matrix left, right;
  unpackA(MatrixType::U8, product.shape, a, bytes);
  left.fill(product.a, bytes, m * k);
  unpackB(MatrixType::U8, product.shape, b, bytes);
  right.fill(product.b, bytes, k * n);
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
      top = larger(top, left.exponents[row * k + i] + loadAs<Int8>(right.exponents + i * n));
    Int8 sum = aligned((magnitude ^ signOfC) - signOfC, 23, exponentOfC, top);
    for (unsigned i = 0; i < k; ++i)
      sum += aligned(left.significands[row * k + i] * loadAs<Int8>(right.significands + i * n), places,
                     left.exponents[row * k + i] + loadAs<Int8>(right.exponents + i * n), top);
    Float8 result = __builtin_convertvector(sum, Float8); // at most 21 bits: exact
    if (product.d == AccumulatorType::F32)
      result = (Float8)((Word8)result & ~0x3ffu);
    result = scaled(result, larger(top, Int8{} - 200) - 13);
    // Of infinities and NaNs signs and zeros alone count.
    Float8 plain = start;
    for (unsigned i = 0; i < k && (left.anySpecial || right.anySpecial); ++i) {
      const auto values = __builtin_convertvector(loadAs<Int8>(right.significands + i * n), Float8);
      const float value = float(left.significands[row * k + i]) + left.specials[row * k + i];
      plain += value * (values + loadAs<Float8>(right.specials + i * n));
    }
    storeAs(sums + row * n, canonical(plain - plain == 0.0f ? result : plain));
  }
  packD(product.d, product.shape, sums, d);
}

/// s8, u8, s4 and u4.
inline void multiplyInteger(const MatrixProduct &product, const void *const *a, const void *const *b,
                            const void *const *c, void *const *d) {
  const auto [m, n, k] = product.shape;
  alignas(64) int32_t left[32 * 64], right[64 * 32], sums[32 * 32];
  unpackA(product.a, product.shape, a, left);
  unpackB(product.b, product.shape, b, right);
  unpackC(product.c, product.shape, c, sums);
  for (unsigned row = 0; row < m; ++row)
    for (unsigned col = 0; col < n; col += 8) {
      Word8 sum = {}; // at most 64 * 255 * 255: never overflows
      for (unsigned i = 0; i < k; ++i)
        sum += uint32_t(left[row * k + i]) * loadAs<Word8>(right + i * n + col);
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
    return multiplyInteger(product, a, b, c, d);
  case MatrixType::B1:
    return multiplyBits(product, a, b, c, d);
  case MatrixType::F64:
    return multiplyDouble(product, a, b, c, d);
  case MatrixType::E4M3:
  case MatrixType::E5M2:
    return multiplyFloat8(product, a, b, c, d);
  }
}

} // namespace
} // namespace weft::simulator::semantics

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Fragments unpacked to row-major matrices of f32 or s32, and packed again, for MatrixKernel.h, whose rules hold here.
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

/// Eight rows of eight: [row][k] to [k][row]. Each step moves a bit of the row's number behind those of k.
[[gnu::always_inline]] inline void turn(Short8 (&x)[8]) {
#pragma clang loop unroll(full)
  for (unsigned step = 0; step < 3; ++step) {
    Short8 y[8];
#pragma clang loop unroll(full)
    for (unsigned i = 0; i < 4; ++i) {
      y[2 * i] = __builtin_shufflevector(x[i], x[i + 4], 0, 8, 1, 9, 2, 10, 3, 11);
      y[2 * i + 1] = __builtin_shufflevector(x[i], x[i + 4], 4, 12, 5, 13, 6, 14, 7, 15);
    }
#pragma clang loop unroll(full)
    for (unsigned i = 0; i < 8; ++i)
      x[i] = y[i];
  }
}

// Products of f16, bf16 and tf32 have the eight columns of a tile of B, C and D in the order in which two registers
// hold those of f32: the even ones first.

/// Which column the one at `place` is.
constexpr unsigned columnAt(unsigned place) { return place < 4 ? 2 * place : 2 * place - 7; }

[[gnu::always_inline]] inline Short8 evenFirst(const Short8 &row) {
  return __builtin_shufflevector(row, row, 0, 2, 4, 6, 1, 3, 5, 7);
}

/// Eight elements of a 16-bit type.
template <MatrixType type> [[gnu::always_inline]] inline Float8 widen(const Short8 &values) {
  if constexpr (type == MatrixType::F16)
    return widenHalf(values);
  else
    return (Float8)(__builtin_convertvector(values, Word8) << 16);
}

/// How many elements of a row, or of a column, 16 bytes hold.
template <MatrixType type> constexpr unsigned inPiece = type == MatrixType::TF32 ? 4 : 8;

/// Eight columns of B from 16 bytes of each: `inPiece` rows of eight.
template <MatrixType type, typename Piece>
[[gnu::always_inline]] inline void turnColumns(const Piece &piece, float *rows) {
  if constexpr (type == MatrixType::TF32) {
    Float8 x[4];
    for (unsigned i = 0; i < 4; ++i) {
      const auto even = loadAs<Word4>(piece(columnAt(i))), odd = loadAs<Word4>(piece(columnAt(i + 4)));
      x[i] = (Float8)(__builtin_shufflevector(even, odd, 0, 1, 2, 3, 4, 5, 6, 7) & 0xffffe000);
    }
    turnHalves(x);
    for (unsigned k = 0; k < 4; ++k)
      storeAs(rows + 8 * k, x[k]);
  } else {
    Short8 x[8];
    for (unsigned i = 0; i < 8; ++i)
      x[i] = loadAs<Short8>(piece(columnAt(i)));
    turn(x);
    for (unsigned k = 0; k < 8; ++k)
      storeAs(rows + 8 * k, widen<type>(x[k]));
  }
}

/// Eight columns of B from pieces of 16 bytes in memory: eight for each half of k.
template <MatrixType type>
inline void unpackPieces(const unsigned char *memory, const uint32_t *pieces, bool byRow, float *rows) {
  for (unsigned half = 0; half < 2; ++half, pieces += 8, rows += 8 * inPiece<type>) {
    const auto piece = [&](unsigned i) { return memory + pieces[i]; };
    if (!byRow)
      turnColumns<type>(piece, rows);
    else if constexpr (type != MatrixType::TF32)
      for (unsigned k = 0; k < 8; ++k)
        storeAs(rows + 8 * k, widen<type>(evenFirst(loadAs<Short8>(piece(k)))));
  }
}

/// Eight columns of B, `k` rows of eight, from a fragment's registers.
template <MatrixType type, unsigned k> inline void unpackColumns(const void *const *registers, float *rows) {
  for (unsigned i = 0; i < k / inPiece<type>; ++i) {
    const auto *lanes = static_cast<const uint32_t *>(registers[i]);
    turnColumns<type>([&](unsigned column) { return lanes + 4 * column; }, rows + 8 * inPiece<type> * i);
  }
}

/// Eight rows of A by `k`; `registers[i * apart]` hold 16 bytes of each. Only the first column may have a zero with a
/// sign: so zeros add up to the same zero that they always did.
template <MatrixType type, unsigned k>
inline void unpackRows(const void *const *registers, unsigned apart, float *rows) {
  constexpr unsigned each = inPiece<type>;
  for (unsigned i = 0; i < k / each; ++i) {
    const auto *lanes = static_cast<const uint32_t *>(registers[i * apart]);
    const float first = i == 0 ? -0.0f : 0.0f; // -0 changes nothing that it is added to
    for (unsigned row = 0; row < 8; ++row) {
      float *to = rows + row * k + i * each;
      if constexpr (type == MatrixType::TF32)
        storeAs(to, (Float4)(loadAs<Word4>(lanes + 4 * row) & 0xffffe000) + Float4{first});
      else
        storeAs(to, widen<type>(loadAs<Short8>(lanes + 4 * row)) + Float8{first});
    }
  }
}

/// Eight rows and columns of C from its registers: one of f16, two of f32.
inline void loadTile(AccumulatorType type, const void *const *registers, float *tile) {
  const auto *first = static_cast<const uint32_t *>(registers[0]);
  if (type == AccumulatorType::F16) {
    for (unsigned row = 0; row < 8; ++row)
      storeAs(tile + 8 * row, widenHalf(evenFirst(loadAs<Short8>(first + 4 * row))));
    return;
  }
  const auto *second = static_cast<const uint32_t *>(registers[1]);
  for (unsigned row = 0; row < 8; ++row) {
    storeAs(tile + 8 * row, loadAs<Float4>(first + 4 * row));
    storeAs(tile + 8 * row + 4, loadAs<Float4>(second + 4 * row));
  }
}

/// The inverse, of D.
inline void storeTile(AccumulatorType type, const float *tile, void *const *registers) {
  auto *first = static_cast<uint32_t *>(registers[0]);
  if (type == AccumulatorType::F16) {
    for (unsigned row = 0; row < 8; ++row) {
      const Short8 values = narrowHalf(loadAs<Float8>(tile + 8 * row));
      storeAs(first + 4 * row, __builtin_shufflevector(values, values, 0, 4, 1, 5, 2, 6, 3, 7));
    }
    return;
  }
  auto *second = static_cast<uint32_t *>(registers[1]);
  for (unsigned row = 0; row < 8; ++row) {
    storeAs(first + 4 * row, loadAs<Float4>(tile + 8 * row));
    storeAs(second + 4 * row, loadAs<Float4>(tile + 8 * row + 4));
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

} // namespace
} // namespace weft::simulator::semantics

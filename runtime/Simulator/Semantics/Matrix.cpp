// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which products exist, which kernel runs them, and the 8x8 matrices of ldmatrix.
#include "runtime/Simulator/Semantics/Matrix.h"
#include "runtime/Simulator/Semantics/MatrixTiles.h"

#include <array>
#include <cstring>
#include <initializer_list>

namespace weft::simulator::semantics {

#define WEFT_MATRIX_KERNEL(NAME)                                                                                       \
  void multiply##NAME(const MatrixProduct &, const void *const *, const void *const *, const void *const *,            \
                      void *const *);                                                                                  \
  void multiplyPieces##NAME(const PiecesProduct &);                                                                    \
  void multiplySparse##NAME(const MatrixProduct &, const SparseRows &, const void *const *, const void *const *,       \
                            const void *const *, void *const *)
WEFT_MATRIX_KERNEL(Portable);
WEFT_MATRIX_KERNEL(Avx2);
WEFT_MATRIX_KERNEL(Avx512);
#undef WEFT_MATRIX_KERNEL

namespace {

bool isIntegerPair(MatrixType a, MatrixType b, unsigned bits) {
  const auto isInteger = [&](MatrixType type) { return type >= MatrixType::S8 && type <= MatrixType::U4; };
  return isInteger(a) && isInteger(b) && bitsOf(a) == bits && bitsOf(b) == bits;
}

bool isAny(MatrixShape shape, std::initializer_list<MatrixShape> shapes) {
  for (const MatrixShape &each : shapes)
    if (shape == each)
      return true;
  return false;
}

bool isFloatAccumulator(AccumulatorType type) { return type == AccumulatorType::F32 || type == AccumulatorType::F16; }

struct KernelList {
  std::array<MatrixKernel, 3> kernels{
      MatrixKernel{"portable", multiplyPortable, multiplyPiecesPortable, multiplySparsePortable}};
  size_t count = 1;

  KernelList() {
#ifdef WEFT_SIMULATOR_X86_KERNELS
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c")) {
      kernels[count++] = {"avx2", multiplyAvx2, multiplyPiecesAvx2, multiplySparseAvx2};
      if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") &&
          __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq"))
        kernels[count++] = {"avx512", multiplyAvx512, multiplyPiecesAvx512, multiplySparseAvx512};
    }
#endif
  }
};

const KernelList &kernelList() {
  static const KernelList list;
  return list;
}

} // namespace

bool isMmaProduct(const MatrixProduct &product) {
  const auto &[shape, a, b, c, d, saturate, bits] = product;
  const bool isInteger32 = c == AccumulatorType::S32 && d == c;
  if (isIntegerPair(a, b, 8))
    return isInteger32 && isAny(shape, {{8, 8, 16}, {16, 8, 16}, {16, 8, 32}});
  if (isIntegerPair(a, b, 4))
    return isInteger32 && isAny(shape, {{8, 8, 32}, {16, 8, 32}, {16, 8, 64}});
  if (isFloat8(a) && isFloat8(b))
    return isFloatAccumulator(c) && c == d && isAny(shape, {{16, 8, 16}, {16, 8, 32}}) && !saturate;
  if (a != b || saturate)
    return false;
  switch (a) {
  case MatrixType::F16:
    return isFloatAccumulator(c) && c == d && isAny(shape, {{16, 8, 8}, {16, 8, 16}});
  case MatrixType::BF16:
    return c == AccumulatorType::F32 && d == c && isAny(shape, {{16, 8, 8}, {16, 8, 16}});
  case MatrixType::TF32:
    return c == AccumulatorType::F32 && d == c && isAny(shape, {{16, 8, 4}, {16, 8, 8}});
  case MatrixType::F64:
    return c == AccumulatorType::F64 && d == c && isAny(shape, {{8, 8, 4}, {16, 8, 4}, {16, 8, 8}, {16, 8, 16}});
  case MatrixType::B1:
    return isInteger32 && isAny(shape, {{8, 8, 128}, {16, 8, 128}, {16, 8, 256}});
  default:
    return false;
  }
}

bool isWmmaProduct(const MatrixProduct &product) {
  const auto &[shape, a, b, c, d, saturate, bits] = product;
  const bool isInteger32 = c == AccumulatorType::S32 && d == c;
  const bool isSquareOrLong = isAny(shape, {{16, 16, 16}, {32, 8, 16}, {8, 32, 16}});
  if (a != b)
    return false;
  switch (a) {
  case MatrixType::S8:
  case MatrixType::U8:
    return isInteger32 && isSquareOrLong;
  case MatrixType::S4:
  case MatrixType::U4:
    return isInteger32 && isAny(shape, {{8, 8, 32}});
  case MatrixType::F16:
    return isFloatAccumulator(c) && isFloatAccumulator(d) && isSquareOrLong && !saturate;
  case MatrixType::BF16:
    return c == AccumulatorType::F32 && d == c && isSquareOrLong && !saturate;
  case MatrixType::TF32:
    return c == AccumulatorType::F32 && d == c && isAny(shape, {{16, 16, 8}}) && !saturate;
  case MatrixType::F64:
    return c == AccumulatorType::F64 && d == c && isAny(shape, {{8, 8, 4}}) && !saturate;
  case MatrixType::B1:
    return isInteger32 && isAny(shape, {{8, 8, 128}}) && !saturate;
  case MatrixType::E4M3:
  case MatrixType::E5M2:
    return false;
  }
  return false;
}

void multiply(const MatrixProduct &product, const void *const *a, const void *const *b, const void *const *c,
              void *const *d) {
  static const auto best = matrixKernels().back().multiply;
  best(product, a, b, c, d);
}

void multiplyPieces(const PiecesProduct &product) {
  static const auto best = matrixKernels().back().multiplyPieces;
  best(product);
}

void multiplySparse(const MatrixProduct &product, const SparseRows &rows, const void *const *a, const void *const *b,
                    const void *const *c, void *const *d) {
  static const auto best = matrixKernels().back().multiplySparse;
  best(product, rows, a, b, c, d);
}

std::span<const MatrixKernel> matrixKernels() { return std::span(kernelList().kernels).first(kernelList().count); }

void loadMatrix(const std::byte *const rows[8], bool transpose, uint32_t lanes[32]) {
  for (unsigned row = 0; row < 8; ++row)
    std::memcpy(lanes + 4 * row, rows[row], 16);
  if (transpose)
    transposeMatrix(lanes, lanes);
}

void storeMatrix(const uint32_t lanes[32], bool transpose, std::byte *const rows[8]) {
  uint32_t turned[32];
  if (transpose)
    transposeMatrix(lanes, turned);
  for (unsigned row = 0; row < 8; ++row)
    std::memcpy(rows[row], (transpose ? turned : lanes) + 4 * row, 16);
}

void transposeMatrix(const uint32_t source[32], uint32_t lanes[32]) {
  Short8 rows[8];
  std::memcpy(rows, source, sizeof rows);
  turn(rows);
  std::memcpy(lanes, rows, sizeof rows);
}

} // namespace weft::simulator::semantics

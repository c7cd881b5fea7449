// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Semantics/Tensor/Product.h"
#include "runtime/Simulator/Semantics/Convert.h"
#include "runtime/Simulator/Semantics/Half.h"
#include "runtime/Simulator/Semantics/Matrix.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstring>

namespace weft::simulator::semantics {
namespace {

constexpr size_t rowBytes = 32;
using Words = std::array<uint32_t, 32>;

MatrixType typeOf(TensorElement element) {
  switch (element) {
  case TensorElement::BF16:
    return MatrixType::BF16;
  case TensorElement::TF32:
    return MatrixType::TF32;
  case TensorElement::U8:
    return MatrixType::U8;
  case TensorElement::S8:
    return MatrixType::S8;
  default:
    return MatrixType::F16;
  }
}

/// Steps of 16 elements along k, or of 32 bytes, that rows of 32 bytes have.
unsigned stepsOf(const TensorProduct &product) { return !isNarrow(product.a) ? 1 : product.packed ? 4 : 2; }

/// Rows as products take them: narrow elements as f16, in steps, the others as they are.
std::vector<std::byte> prepared(TensorElement element, const std::byte *rows, uint32_t count, unsigned steps) {
  if (!isNarrow(element))
    return {rows, rows + count * rowBytes};
  std::vector<std::byte> result(steps * count * rowBytes);
  for (uint32_t row = 0; row < count; ++row)
    for (size_t step = 0; step < steps; ++step) {
      uint16_t halves[16];
      widen(element, rows + row * rowBytes + rowBytes / steps * step, halves);
      std::memcpy(&result[(step * count + row) * rowBytes], halves, sizeof halves);
    }
  return result;
}

/// The signs of all elements changed.
void negate(TensorElement element, std::vector<std::byte> &rows) {
  const size_t width = element == TensorElement::TF32 ? 4 : 2;
  for (size_t i = width - 1; i < rows.size(); i += width)
    rows[i] ^= std::byte{0x80};
}

/// The four registers of A of 16 rows: rows 0 to 7 and 8 to 15 of the first 16 bytes, and of the second.
std::array<Words, 4> tilesOf(const std::byte *rows) {
  std::array<Words, 4> tiles;
  for (size_t tile = 0; tile < 4; ++tile) {
    const std::byte *each[8];
    for (size_t i = 0; i < 8; ++i)
      each[i] = rows + (8 * (tile % 2) + i) * rowBytes + 16 * (tile / 2);
    loadMatrix(each, false, tiles[tile].data());
  }
  return tiles;
}

} // namespace

TensorMultiplier::TensorMultiplier(const TensorProduct &product, const std::byte *rows, uint32_t n)
    : product_(product), n_(n), steps_(stepsOf(product)), b_(prepared(product.b, rows, n, steps_)) {
  for (uint32_t tile = 0; tile < n / 8; ++tile)
    for (uint32_t part = 0; part < 2; ++part)
      for (uint32_t i = 0; i < 8; ++i)
        begins_.push_back(uint32_t((8 * tile + i) * rowBytes + 16 * part));
}

namespace {

/// Where a lane's element of a register of 16 rows and eight columns lies in D.
size_t placeOf(size_t fragment, size_t stride) {
  const size_t lane = fragment % 32, reg = fragment / 32;
  return (lane / 4 + 8 * (reg % 4 / 2)) * stride + 8 * (reg / 4) + lane % 4 * 2 + reg % 2;
}

} // namespace

namespace {

typedef uint32_t Word8 __attribute__((vector_size(32)));
typedef uint32_t Word4 __attribute__((vector_size(16)));
typedef float Float8 __attribute__((vector_size(32)));

/// The lanes of a register, and of the one behind it, that hold eight elements of a row: the even ones, and the odd.
size_t lanesOf(size_t row, size_t tile) { return 32 * (4 * tile + 2 * (row / 8)) + 4 * (row % 8); }

} // namespace

void TensorMultiplier::load(const uint32_t *d, size_t stride, std::vector<uint32_t> &fragments) const {
  const float factor = std::ldexp(1.0f, -int(product_.scale));
  for (size_t row = 0; row < 16; ++row)
    for (size_t tile = 0; tile < n_ / 8; ++tile) {
      Word8 words;
      std::memcpy(&words, d + row * stride + 8 * tile, sizeof words);
      for (size_t i = 0; i < 8 && product_.d == AccumulatorType::F16; ++i)
        words[i] = std::bit_cast<uint32_t>(halfToFloat(uint16_t(words[i])));
      if (product_.d != AccumulatorType::S32)
        words = (Word8)((Float8)words * factor);
      const Word4 even = __builtin_shufflevector(words, words, 0, 2, 4, 6);
      const Word4 odd = __builtin_shufflevector(words, words, 1, 3, 5, 7);
      uint32_t *lanes = &fragments[lanesOf(row, tile)];
      std::memcpy(lanes, &even, sizeof even);
      std::memcpy(lanes + 32, &odd, sizeof odd);
    }
}

void TensorMultiplier::store(const std::vector<uint32_t> &fragments, uint32_t *d, size_t stride,
                             uint32_t written) const {
  for (size_t row = 0; row < 16; ++row)
    for (size_t tile = 0; tile < n_ / 8 && (written >> row & 1); ++tile) {
      Word4 even, odd;
      const uint32_t *lanes = &fragments[lanesOf(row, tile)];
      std::memcpy(&even, lanes, sizeof even);
      std::memcpy(&odd, lanes + 32, sizeof odd);
      Word8 words = __builtin_shufflevector(even, odd, 0, 4, 1, 5, 2, 6, 3, 7);
      for (size_t i = 0; i < 8 && product_.d == AccumulatorType::F16; ++i) {
        const float value = std::bit_cast<float>(words[i]);
        words[i] = value != value ? 0x7fffu : floatToHalf(value);
      }
      std::memcpy(d + row * stride + 8 * tile, &words, sizeof words);
    }
}

void TensorMultiplier::multiplyIntegers(const std::byte *rows, std::vector<uint32_t> &fragments) const {
  MatrixProduct step;
  step.shape = {16, 8, 32};
  step.a = typeOf(product_.a);
  step.b = typeOf(product_.b);
  step.c = step.d = AccumulatorType::S32;
  step.saturate = product_.saturate;
  const std::array<Words, 4> a = tilesOf(rows);
  const void *left[] = {&a[0], &a[1], &a[2], &a[3]};
  for (size_t tile = 0; tile < n_ / 8; ++tile) {
    std::array<Words, 2> b;
    for (size_t part = 0; part < 2; ++part) {
      const std::byte *each[8];
      for (size_t i = 0; i < 8; ++i)
        each[i] = b_.data() + begins_[16 * tile + 8 * part + i];
      loadMatrix(each, false, b[part].data());
    }
    const void *right[] = {&b[0], &b[1]};
    void *d[4];
    for (size_t i = 0; i < 4; ++i)
      d[i] = &fragments[32 * (4 * tile + i)];
    semantics::multiply(step, left, right, d, d);
  }
}

void TensorMultiplier::multiplyStep(const std::vector<std::byte> &a, size_t step, std::vector<uint32_t> &fragments,
                                    bool adds) const {
  std::vector<void *> registers(fragments.size() / 32);
  for (size_t i = 0; i < registers.size(); ++i)
    registers[i] = &fragments[32 * i];
  const std::array<Words, 4> tiles = tilesOf(a.data() + step * 16 * rowBytes);
  const void *left[] = {&tiles[0], &tiles[1], &tiles[2], &tiles[3]};
  multiplyPieces({typeOf(product_.a), AccumulatorType::F32, n_ / 8, left, b_.data() + step * n_ * rowBytes,
                  begins_.data(), false, adds, registers.data()});
}

/// Each block's sum by itself, then both scales.
void TensorMultiplier::multiplyScaled(const std::vector<std::byte> &a, std::vector<uint32_t> &fragments,
                                      const BlockScales &scales) const {
  const size_t each = product_.block / 16, blocks = steps_ / each;
  std::vector<uint32_t> sums(fragments.size());
  for (size_t block = 0; block < blocks; ++block) {
    for (size_t step = 0; step < each; ++step)
      multiplyStep(a, block * each + step, sums, step > 0);
    for (size_t i = 0; i < sums.size(); ++i) {
      const size_t row = placeOf(i, n_) / n_, column = placeOf(i, n_) % n_;
      const double scale = scales.a[row * blocks + block] * scales.b[column * blocks + block];
      const auto before = double(std::bit_cast<float>(fragments[i]));
      fragments[i] = std::bit_cast<uint32_t>(float(before + double(std::bit_cast<float>(sums[i])) * scale));
    }
  }
}

void TensorMultiplier::multiply(const std::byte *rows, uint32_t *d, size_t stride, uint32_t written,
                                const BlockScales &scales) const {
  std::vector<uint32_t> fragments(16 * n_);
  if (product_.adds)
    load(d, stride, fragments);
  if (isInteger(product_.a)) {
    multiplyIntegers(rows, fragments);
    return store(fragments, d, stride, written);
  }
  std::vector<std::byte> a = prepared(product_.a, rows, 16, steps_);
  if (product_.negate)
    negate(product_.a, a);
  if (product_.block)
    multiplyScaled(a, fragments, scales);
  for (size_t step = 0; !product_.block && step < steps_; ++step)
    multiplyStep(a, step, fragments, product_.adds || step > 0);
  store(fragments, d, stride, written);
}

} // namespace weft::simulator::semantics

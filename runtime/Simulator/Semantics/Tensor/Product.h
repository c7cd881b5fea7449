// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What tcgen05.mma computes (PTX ISA 9.7.16.10): D = A * B + D * 2^-scale, of rows of 32 bytes along K.
//
// Sums are as of mma.sync (Matrix.h). 8-bit floats and narrower ones are multiplied as f16, which they are exactly, and
// summed in f32, 16 of k at a time: the tensor cores of sm_100 do not cut their sums as those of sm_90 do.
#pragma once

#include "runtime/Simulator/Semantics/Fragment.h"
#include "runtime/Simulator/Semantics/Tensor/Elements.h"

#include <cstddef>
#include <vector>

namespace weft::simulator::semantics {

struct TensorProduct {
  TensorElement a = TensorElement::F16, b = TensorElement::F16;
  AccumulatorType d = AccumulatorType::F32;
  bool saturate = false; ///< integers only
  bool negate = false;   ///< A or B, not both
  bool adds = true;      ///< D is read
  unsigned scale = 0;    ///< of D, floating point only
  unsigned block = 0;    ///< elements along k that a scale is of; 0 without scales
  bool packed = false;   ///< 64 elements of 4 bits in 32 bytes
};

/// The scales of 16 rows of A, and of the rows of B: for each row those of its blocks.
struct BlockScales {
  std::vector<double> a, b;
};

/// Some rows of D, 16 at a time, from one B.
class TensorMultiplier {
public:
  /// `rows`: the n rows of B, transposed, of 32 bytes each.
  TensorMultiplier(const TensorProduct &product, const std::byte *rows, uint32_t n);

  /// The 16 rows of D that `rows` of A, of 32 bytes each, give. D's rows are n words of 32 bits, `stride` words apart,
  /// a 16-bit element in the lower half of each; those without their bit in `written` stay.
  void multiply(const std::byte *rows, uint32_t *d, size_t stride, uint32_t written,
                const BlockScales &scales = {}) const;

private:
  void load(const uint32_t *d, size_t stride, std::vector<uint32_t> &fragments) const;
  void store(const std::vector<uint32_t> &fragments, uint32_t *d, size_t stride, uint32_t written) const;
  void multiplyStep(const std::vector<std::byte> &a, size_t step, std::vector<uint32_t> &fragments, bool adds) const;
  void multiplyScaled(const std::vector<std::byte> &a, std::vector<uint32_t> &fragments,
                      const BlockScales &scales) const;
  void multiplyIntegers(const std::byte *rows, std::vector<uint32_t> &fragments) const;

  const TensorProduct product_;
  const uint32_t n_;
  const unsigned steps_;         ///< along k, of 32 bytes each
  std::vector<std::byte> b_;     ///< by step, row, byte
  std::vector<uint32_t> begins_; ///< where in a step's bytes the pieces lie, see PiecesProduct
};

} // namespace weft::simulator::semantics

// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Semantics/Tensor/Elements.h"
#include "runtime/Simulator/Semantics/Convert.h"
#include "runtime/Simulator/Semantics/Half.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace weft::simulator::semantics {
namespace {

/// Of a format without infinities and NaNs, whose exponent is narrower than f16's.
uint16_t halfOfSmall(uint32_t bits, unsigned exponentBits, unsigned fractionBits) {
  const uint32_t sign = bits >> (exponentBits + fractionBits) & 1;
  const uint32_t exponent = bits >> fractionBits & ((1u << exponentBits) - 1);
  uint32_t fraction = bits & ((1u << fractionBits) - 1);
  const int bias = (1 << (exponentBits - 1)) - 1;
  if (!exponent && !fraction)
    return uint16_t(sign << 15);
  int power = int(exponent) - bias;
  if (!exponent) {
    for (power = 1 - bias; !(fraction >> fractionBits); --power)
      fraction <<= 1;
    fraction &= (1u << fractionBits) - 1;
  }
  return uint16_t(sign << 15 | uint32_t(power + 15) << 10 | fraction << (10 - fractionBits));
}

} // namespace

uint16_t halfOf(TensorElement element, uint32_t bits) {
  switch (element) {
  case TensorElement::E4M3:
    return halfFromE4M3(uint8_t(bits));
  case TensorElement::E5M2:
    return halfFromE5M2(uint8_t(bits));
  case TensorElement::E2M3:
    return halfOfSmall(bits, 2, 3);
  case TensorElement::E3M2:
    return halfOfSmall(bits, 3, 2);
  default:
    return halfOfSmall(bits, 2, 1);
  }
}

void widen(TensorElement element, const void *bytes, uint16_t halves[16]) {
  const unsigned width = bitsOf(element);
  uint64_t words[2] = {};
  std::memcpy(words, bytes, 2 * width);
  const auto all = static_cast<unsigned __int128>(words[1]) << 64 | words[0];
  for (unsigned i = 0; i < 16; ++i)
    halves[i] = halfOf(element, uint32_t(all >> i * width) & ((1u << width) - 1));
}

double scaleOf(ScaleElement element, uint8_t bits) {
  if (element == ScaleElement::UE4M3)
    return double(halfToFloat(halfFromE4M3(bits & 0x7f)));
  return bits == 0xff ? std::numeric_limits<double>::quiet_NaN() : std::ldexp(1.0, int(bits) - 127);
}

} // namespace weft::simulator::semantics

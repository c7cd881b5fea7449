// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Element types of tcgen05.mma (PTX ISA 9.7.16.2.1), and those of 8 bits and fewer as f16, which all of them are exactly.
#pragma once

#include <cstdint>

namespace weft::simulator::semantics {

enum class TensorElement : uint8_t { F16, BF16, TF32, E4M3, E5M2, E2M3, E3M2, E2M1, U8, S8 };

/// Bits of an element where nothing is between it and the next; in shared memory .kind::f8f6f4 pads 16 elements to 16
/// bytes.
constexpr unsigned bitsOf(TensorElement element) {
  switch (element) {
  case TensorElement::TF32:
    return 32;
  case TensorElement::F16:
  case TensorElement::BF16:
    return 16;
  case TensorElement::E2M3:
  case TensorElement::E3M2:
    return 6;
  case TensorElement::E2M1:
    return 4;
  default:
    return 8;
  }
}

constexpr bool isInteger(TensorElement element) { return element == TensorElement::U8 || element == TensorElement::S8; }
/// Whether it is one of .kind::f8f6f4.
constexpr bool isNarrow(TensorElement element) { return element >= TensorElement::E4M3 && !isInteger(element); }

/// The bits as f16 of the bits of a narrow element.
uint16_t halfOf(TensorElement element, uint32_t bits);

/// 16 narrow elements that bytes hold, low bits first, as f16; no more bytes are read than those have.
void widen(TensorElement element, const void *bytes, uint16_t halves[16]);

/// Scales of blocks of elements: an exponent, or a number without a sign.
enum class ScaleElement : uint8_t { UE8M0, UE4M3 };
double scaleOf(ScaleElement element, uint8_t bits);

} // namespace weft::simulator::semantics

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Small floating-point formats as tables of their values: the definition of rounding, by search.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace weft::test {

/// The values of the magnitudes 0, 1, 2 ... of a format, up to the largest finite one.
struct SmallFloats {
  SmallFloats(int exponentBits, int fractionBits, unsigned largest) {
    const int bias = (1 << (exponentBits - 1)) - 1;
    for (unsigned bits = 0; bits <= largest; ++bits) {
      const int exponent = int(bits >> fractionBits);
      const double fraction = std::ldexp(double(bits & ((1u << fractionBits) - 1)), -fractionBits);
      values.push_back(exponent == 0 ? std::ldexp(fraction, 1 - bias) : std::ldexp(1 + fraction, exponent - bias));
    }
    const double last = values[values.size() - 2];
    past = values.back() + (values.back() - last);
  }

  /// The magnitude just at or below x >= 0.
  unsigned below(double x) const {
    return unsigned(std::upper_bound(values.begin(), values.end(), x) - values.begin()) - 1;
  }
  /// The value of a magnitude; one past the largest stands for infinity.
  double at(unsigned bits) const { return bits < values.size() ? values[bits] : past; }
  /// The magnitude nearest to x >= 0, ties to the even one; may be one past the largest.
  unsigned nearest(double x) const {
    const unsigned low = below(std::min(x, past));
    const double under = x - at(low), over = at(low + 1) - x;
    return under < over || (under == over && low % 2 == 0) ? low : low + 1;
  }
  /// The same with ties away from zero.
  unsigned nearestAway(double x) const {
    const unsigned low = below(std::min(x, past));
    return x - at(low) < at(low + 1) - x ? low : low + 1;
  }

  std::vector<double> values;
  double past; ///< the value that would follow the largest
};

inline const SmallFloats &halfs() {
  static const SmallFloats table(5, 10, 0x7bff);
  return table;
}
inline const SmallFloats &bfloats() {
  static const SmallFloats table(8, 7, 0x7f7f);
  return table;
}

} // namespace weft::test

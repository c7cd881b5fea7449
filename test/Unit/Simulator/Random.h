// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Random values for tests: one generator, its seed shown in the trace of every failure.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <string>

namespace weft::test {

/// The seed of this run: WEFT_TEST_SEED, or one of the machine's choice.
inline uint64_t seed() {
  static const uint64_t value = [] {
    const char *given = std::getenv("WEFT_TEST_SEED");
    return given ? std::strtoull(given, nullptr, 0) : uint64_t(std::random_device{}());
  }();
  return value;
}

/// A generator that starts from `seed()`; failures in its scope name the seed.
class Random {
public:
  Random() : trace_(__FILE__, __LINE__, "WEFT_TEST_SEED=" + std::to_string(seed())), engine_(seed()) {}

  uint64_t bits() { return engine_(); }
  uint32_t word() { return uint32_t(engine_()); }
  uint32_t below(uint32_t bound) { return uint32_t(engine_() % bound); }

  /// An f32: half of them any bits, the others of moderate size or special.
  float real() {
    static constexpr uint32_t special[] = {0,          0x80000000, 1,          0x80000001, 0x007fffff, 0x00800000,
                                           0x3f800000, 0xbf800000, 0x7f7fffff, 0xff7fffff, 0x7f800000, 0xff800000,
                                           0x7fc00000, 0x7fffffff, 0x34000000, 0x4b000000};
    const uint32_t choice = below(16);
    if (choice < 7)
      return std::bit_cast<float>(word());
    if (choice < 8)
      return std::bit_cast<float>(special[below(16)]);
    return std::bit_cast<float>((word() & 0x80ffffff) | (0x3b000000 + (below(16) << 23)));
  }

private:
  testing::ScopedTrace trace_;
  std::mt19937_64 engine_;
};

} // namespace weft::test

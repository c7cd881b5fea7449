// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Values that atomics leave, and SIMD video instructions, against their definitions.
#include "runtime/Simulator/Semantics/Atomic.h"
#include "runtime/Simulator/Semantics/Video.h"
#include "test/Unit/Simulator/Random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>

namespace weft::simulator::semantics {
namespace {

TEST(Atomic, Integers) {
  test::Random random;
  for (int i = 0; i < 50000; ++i) {
    const uint32_t old = random.below(3) ? random.word() : random.below(4),
                   b = random.below(3) ? random.word() : random.below(4);
    EXPECT_EQ(atomicResult(AtomicOp::Exchange, old, b), b);
    EXPECT_EQ(atomicResult(AtomicOp::Add, old, b), uint32_t(uint64_t(old) + b));
    EXPECT_EQ(atomicResult(AtomicOp::Min, old, b), std::min(old, b));
    EXPECT_EQ(atomicResult(AtomicOp::Max, int32_t(old), int32_t(b)), std::max(int32_t(old), int32_t(b)));
    EXPECT_EQ(atomicResult(AtomicOp::Inc, old, b), old >= b ? 0 : old + 1);
    EXPECT_EQ(atomicResult(AtomicOp::Dec, old, b), old == 0 || old > b ? b : old - 1);
    EXPECT_EQ(atomicResult(AtomicOp::And, old, b), old & b);
    EXPECT_EQ(atomicResult(AtomicOp::Or, old, b), old | b);
    EXPECT_EQ(atomicResult(AtomicOp::Xor, uint64_t(old) << 20, uint64_t(b)), uint64_t(old) << 20 ^ b);
    EXPECT_EQ(atomicCompareAndSwap(old, b, 7u), old == b ? 7u : old);
  }
}

TEST(Atomic, Floats) {
  EXPECT_EQ(atomicAdd(0x1p-140f, 0x1p-140f, false), 0x1p-139f);
  EXPECT_EQ(atomicAdd(0x1p-140f, 0x1p-140f, true), 0.0f);
  EXPECT_EQ(atomicAdd(1.5, 2.25), 3.75);
  EXPECT_EQ(atomicAddHalf<HalfFormat>(0x3c00, 0x3c00), 0x4000);
  EXPECT_EQ(atomicAddHalf2<HalfFormat>(0x3c000001, 0x3c000001), 0x40000002u);
  EXPECT_EQ(atomicAddHalf2<BfloatFormat>(0x3f803f80, 0x3f800000), 0x40003f80u);
  EXPECT_EQ((atomicMinMaxHalf<HalfFormat, true>(0xbc00, 0x3c00)), 0x3c00);
  EXPECT_EQ((atomicMinMaxHalf<HalfFormat, false>(0x7fff, 0x3c00)), 0x3c00);
}

TEST(Video, SumOfAbsoluteDifferences) {
  test::Random random;
  VideoForm<4> merge, sum;
  merge.op = sum.op = VideoOp::AbsDiff;
  sum.accumulate = true;
  for (int i = 0; i < 20000; ++i) {
    const uint32_t a = random.word(), b = random.word(), c = random.word();
    uint32_t bytes = 0, total = c;
    for (int at = 0; at < 32; at += 8) {
      const uint32_t difference = uint32_t(std::abs(int(a >> at & 255) - int(b >> at & 255)));
      bytes |= difference << at, total += difference;
    }
    EXPECT_EQ(video(merge, a, b, c), bytes);
    EXPECT_EQ(video(sum, a, b, c), total);
  }
}

TEST(Video, SelectionMaskAndSaturation) {
  VideoForm<2> add;
  add.dSigned = add.aSigned = add.bSigned = add.saturate = true;
  EXPECT_EQ(video(add, 0x7fff8000, 0x0001ffff, 0), 0x7fff8000u);
  add.saturate = false;
  EXPECT_EQ(video(add, 0x7fff8000, 0x0001ffff, 0), 0x80007fffu);
  VideoForm<4> reversed;
  reversed.op = VideoOp::Sub;
  reversed.aSelect = {7, 6, 5, 4}; // bytes of b, backwards
  reversed.bSelect = {0, 0, 0, 0}; // the lowest byte of a
  reversed.mask = 0b0101;
  EXPECT_EQ(video(reversed, 0x01, 0x11223344, 0xaabbccdd), 0xaa32cc10u);
  VideoForm<4> average;
  average.op = VideoOp::Average;
  average.dSigned = average.aSigned = average.bSigned = true;
  EXPECT_EQ(video(average, 0x00fffe03, 0x01fffd04, 0), 0x01fffd04u); // halves away from zero: -1, -2.5 -> -3, 3.5 -> 4
  VideoForm<4> less;
  less.op = VideoOp::Lt;
  EXPECT_EQ(video(less, 0x01ff0005, 0x02fe0006, 0), 0x01000001u);
  less.aSigned = less.bSigned = true;
  EXPECT_EQ(video(less, 0x01800005, 0x027f0006, 0), 0x01010001u);
}

} // namespace
} // namespace weft::simulator::semantics

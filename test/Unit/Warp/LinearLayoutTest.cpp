// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The algebra of layouts, against trying every place.
#include "test/Unit/Warp/RandomLayout.h"
#include "llvm/ADT/STLExtras.h"
#include "gtest/gtest.h"
#include <set>

using namespace weft::warp;
using namespace weft::warp::test;

namespace {
constexpr int rounds = 40;

class LinearLayoutTest : public testing::Test {
protected:
  LinearLayoutTest() : random(seed()), trace(__FILE__, __LINE__, "WEFT_SEED=" + std::to_string(seed())) {}
  RandomLayouts random;
  testing::ScopedTrace trace;
};

TEST_F(LinearLayoutTest, AppliesBasesByXor) {
  LinearLayout layout({8, 4});
  layout.append(InDim::Register, {0, 1})
      .append(InDim::Register, {4, 2})
      .append(InDim::Lane, {1, 0})
      .append(InDim::Lane, {5, 3});
  Place place;
  place[InDim::Register] = 3;
  place[InDim::Lane] = 2;
  // (0, 1) ^ (4, 2) ^ (5, 3) = (1, 0)
  EXPECT_EQ(layout.delinearize(layout.apply(place)), (llvm::SmallVector<int64_t, 4>{1, 0}));
  EXPECT_EQ(layout.size(InDim::Register), 4u);
  EXPECT_EQ(layout.size(InDim::Warp), 1u);
}

TEST_F(LinearLayoutTest, IsLinear) {
  for (int round = 0; round < rounds; ++round) {
    LinearLayout layout = random.any(random.shape());
    Place a, b, sum;
    for (InDim dim : allInDims) {
      a[dim] = random.below(layout.size(dim));
      b[dim] = random.below(layout.size(dim));
      sum[dim] = a[dim] ^ b[dim];
    }
    EXPECT_EQ(layout.apply(sum), layout.apply(a) ^ layout.apply(b)) << layout.str();
  }
}

TEST_F(LinearLayoutTest, LinearizesBothWays) {
  LinearLayout layout({4, 1, 8});
  for (uint32_t element = 0; element < layout.numElements(); ++element)
    EXPECT_EQ(layout.linearize(layout.delinearize(element)), element);
  EXPECT_EQ(layout.linearize({3, 0, 5}), 29u);
}

TEST_F(LinearLayoutTest, KnowsWhatItHolds) {
  for (int round = 0; round < rounds; ++round) {
    LinearLayout layout = random.any(random.shape());
    std::map<uint32_t, unsigned> held;
    for (const Place &place : placesOf(layout))
      ++held[layout.apply(place)];
    EXPECT_EQ(layout.isSurjective(), held.size() == layout.numElements()) << layout.str();
    EXPECT_EQ(layout.isInjective(), llvm::all_of(held, [](auto &entry) { return entry.second == 1; })) << layout.str();
  }
}

TEST_F(LinearLayoutTest, FreeBitsLeaveEachElementOnce) {
  for (int round = 0; round < rounds; ++round) {
    LinearLayout layout = random.any(random.shape());
    Place free = layout.freeBits();
    std::set<uint32_t> all, once;
    for (const Place &place : placesOf(layout)) {
      all.insert(layout.apply(place));
      if (llvm::none_of(allInDims, [&](InDim dim) { return place[dim] & free[dim]; }))
        EXPECT_TRUE(once.insert(layout.apply(place)).second) << layout.str();
    }
    EXPECT_EQ(all, once) << layout.str();
  }
}

TEST_F(LinearLayoutTest, FreeBitsAreThoseOfHigherInputs) {
  // Register 1 and lane 1 hold the same element: the lane repeats the register.
  LinearLayout layout({2});
  layout.append(InDim::Lane, 1u).append(InDim::Register, 1u);
  EXPECT_EQ(layout.freeBits()[InDim::Register], 0u);
  EXPECT_EQ(layout.freeBits()[InDim::Lane], 1u);
}

TEST_F(LinearLayoutTest, ComposesWithAnInverse) {
  for (int round = 0; round < rounds; ++round) {
    auto shape = random.shape();
    LinearLayout wanted = random.any(shape), source = random.covering(shape, random.below(3));
    std::optional<LinearLayout> from = wanted.composeInverse(source);
    ASSERT_TRUE(from) << wanted.str() << "\n" << source.str();
    Place free = source.freeBits();
    for (const Place &place : placesOf(wanted)) {
      Place found = LinearLayout::placeOf(source, from->apply(place));
      EXPECT_EQ(source.apply(found), wanted.apply(place)) << wanted.str() << "\n" << source.str();
      for (InDim dim : allInDims)
        EXPECT_EQ(found[dim] & free[dim], 0u);
    }
  }
}

TEST_F(LinearLayoutTest, ComposesWithOffsets) {
  for (int round = 0; round < rounds; ++round) {
    auto shape = random.shape();
    LinearLayout wanted = random.any(shape), shared = random.offsets(shape);
    std::optional<LinearLayout> offsets = wanted.composeInverse(shared);
    ASSERT_TRUE(offsets);
    for (const Place &place : placesOf(wanted))
      EXPECT_EQ(shared.apply(InDim::Offset, offsets->apply(place)), wanted.apply(place)) << wanted.str() << "\n"
                                                                                         << shared.str();
  }
}

TEST_F(LinearLayoutTest, HasNoInverseOfWhatIsMissing) {
  LinearLayout half({4}), whole({4});
  half.append(InDim::Lane, 1u);
  whole.append(InDim::Register, 1u).append(InDim::Register, 2u);
  EXPECT_FALSE(whole.composeInverse(half));
  EXPECT_TRUE(half.composeInverse(whole));
}

TEST_F(LinearLayoutTest, DividesWhatItMultiplied) {
  for (int round = 0; round < rounds; ++round) {
    auto shape = random.shape();
    auto outerShape = shape;
    for (int64_t &size : outerShape)
      size = int64_t(1) << random.below(3);
    LinearLayout tile = random.any(shape), outer = random.any(outerShape);
    LinearLayout product = tile * outer;
    std::optional<LinearLayout> quotient = product.divideLeft(tile);
    ASSERT_TRUE(quotient) << tile.str() << "\n" << outer.str();
    EXPECT_EQ(*quotient, outer);
    // Each place of the product: the tile's element inside the copy that the outer layout names.
    for (const Place &place : placesOf(product)) {
      Place inner, copy;
      for (InDim dim : allInDims) {
        inner[dim] = place[dim] % tile.size(dim);
        copy[dim] = place[dim] / tile.size(dim);
      }
      auto inside = tile.delinearize(tile.apply(inner)), which = outer.delinearize(outer.apply(copy));
      auto at = product.delinearize(product.apply(place));
      for (unsigned axis = 0; axis < product.rank(); ++axis)
        EXPECT_EQ(at[axis], which[axis] * tile.shape()[axis] + inside[axis]);
    }
  }
}

TEST_F(LinearLayoutTest, DividesNothingElse) {
  LinearLayout tile({4}), layout({8});
  tile.append(InDim::Register, 1u).append(InDim::Register, 2u);
  layout.append(InDim::Register, 1u).append(InDim::Register, 2u).append(InDim::Lane, 3u);
  EXPECT_FALSE(layout.divideLeft(tile)); // lane 1 does not step by whole tiles
  EXPECT_FALSE(tile.divideLeft(layout));
}

TEST_F(LinearLayoutTest, FindsRegisterPermutations) {
  for (int round = 0; round < rounds; ++round) {
    auto shape = random.shape();
    LinearLayout source = random.covering(shape, random.below(2)), shuffled(shape);
    llvm::SmallVector<uint32_t> registers(source.bases(InDim::Register));
    for (size_t i = registers.size(); i > 1; --i)
      std::swap(registers[i - 1], registers[random.below(i)]);
    for (uint32_t basis : registers)
      shuffled.append(InDim::Register, basis);
    for (InDim dim : {InDim::Lane, InDim::Warp})
      for (uint32_t basis : source.bases(dim))
        shuffled.append(dim, basis);
    auto permutation = shuffled.registerPermutation(source);
    ASSERT_TRUE(permutation) << source.str();
    for (uint32_t reg = 0; reg < shuffled.size(InDim::Register); ++reg)
      EXPECT_EQ(shuffled.apply(InDim::Register, reg), source.apply(InDim::Register, (*permutation)[reg]));
  }
}

TEST_F(LinearLayoutTest, RefusesPermutationsThatMoveLanes) {
  LinearLayout source({4}), target({4});
  source.append(InDim::Register, 1u).append(InDim::Lane, 2u);
  target.append(InDim::Register, 2u).append(InDim::Lane, 1u);
  EXPECT_FALSE(target.registerPermutation(source));
}

TEST_F(LinearLayoutTest, PrintsBases) {
  LinearLayout layout({8, 4});
  layout.append(InDim::Register, {0, 1}).append(InDim::Lane, {1, 0}).append(InDim::Lane, {2, 0});
  EXPECT_EQ(layout.str(), "[8, 4], register = [[0, 1]], lane = [[1, 0], [2, 0]]");
}

} // namespace

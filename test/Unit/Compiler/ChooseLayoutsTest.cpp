// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The layouts that ops choose by themselves, and the swizzles of shared memory, checked by counting what memory would
// do.
#include "compiler/Conversion/TileToWarp/ChooseLayouts.h"

#include "dialects/Warp/Transforms/SwizzledLayout.h"
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

using namespace weft;
using namespace weft::warp;
using ::testing::ElementsAre;

namespace {

const TargetInfo &target() { return *TargetInfo::find("sm_80"); }

/// The access of a row-major [rows, columns] tile whose rows are aligned to 16 bytes.
Access rowMajor(llvm::ArrayRef<int64_t> shape, int64_t elementBytes) {
  AxisInfo pointer = AxisInfo::unknown(2);
  pointer.contiguity = {1, shape[1]};
  pointer.divisibility = {16, 16};
  return {shape, pointer, std::nullopt, elementBytes, 16 / elementBytes};
}

TEST(ChooseLayouts, CoalescedAccessIsSixteenBytesALane) {
  const int64_t shape[] = {64, 64};
  Access access = rowMajor(shape, 2);
  LinearLayout layout = coalescedLayout(access, 4, target());
  EXPECT_TRUE(layout.isSurjective());
  EXPECT_TRUE(layout.isInjective());
  EXPECT_EQ(accessWidth(layout, access), 8);
  EXPECT_EQ(bytesPerRun(layout, access), 128);
}

TEST(ChooseLayouts, MaskNarrowsTheAccess) {
  const int64_t shape[] = {64, 64};
  Access access = rowMajor(shape, 2);
  access.mask = AxisInfo::unknown(2);
  access.mask->constancy = {64, 2};
  EXPECT_EQ(accessWidth(coalescedLayout(access, 4, target()), access), 2);
}

TEST(ChooseLayouts, AlignmentNarrowsTheAccess) {
  const int64_t shape[] = {64, 64};
  Access access = rowMajor(shape, 2);
  access.pointer.divisibility = {4, 4};
  EXPECT_EQ(accessWidth(coalescedLayout(access, 4, target()), access), 2);
}

TEST(ChooseLayouts, SectorsAreThoseThatLanesTouch) {
  const int64_t shape[] = {128, 4};
  Access access = rowMajor(shape, 2);
  LinearLayout rows = blockedLayout(shape, {1, 0}, 4, 4), elements = blockedLayout(shape, {1, 0}, 1, 4);
  EXPECT_EQ(sectorsTouched(rows, access, target()), 32); // rows may lie anywhere
  access.steps = {{4, 128}, {1, 4}};
  EXPECT_EQ(sectorsTouched(rows, access, target()), 8);
  EXPECT_EQ(sectorsTouched(elements, access, target()), 2);
  EXPECT_EQ(instructionsOf(rows, access, {}), 1);
  EXPECT_EQ(instructionsOf(elements, access, {}), 4);
  access.mostElements = 1;
  EXPECT_EQ(sectorsTouched(rows, access, target()), 8);
  EXPECT_EQ(instructionsOf(rows, access, {}), 4);
  EXPECT_EQ(instructionsOf(rows, access, {1, 4}), 1);
}

TEST(ChooseLayouts, LanesGoOnWhereARunEnds) {
  // Pages of 16 keys, of which eight channels lie together: 16 bytes, and the next key's behind them.
  const int64_t shape[] = {64, 32};
  Access access = rowMajor(shape, 2);
  access.pointer.contiguity = {8, 1};
  access.pointer.divisibility = {16, 16};
  access.steps = {{1, 8}, {8, 16}};
  LinearLayout layout = coalescedLayout(access, 4, target());
  EXPECT_EQ(accessWidth(layout, access), 8);
  EXPECT_EQ(sectorsTouched(layout, access, target()), 16);
  access.steps = {{1, 8}, {}};
  EXPECT_EQ(sectorsTouched(coalescedLayout(access, 4, target()), access, target()), 32);
}

TEST(ChooseLayouts, OfAddressesApartLanesFollowTheNearest) {
  const int64_t shape[] = {32, 64};
  Access access = rowMajor(shape, 2);
  access.pointer.contiguity = {1, 1};
  access.steps = {{1, 16}, {16, 64}};
  EXPECT_EQ(sectorsTouched(coalescedLayout(access, 4, target()), access, target()), 2);
}

TEST(ChooseLayouts, LanesThatReadTheSameTouchOneSector) {
  const int64_t shape[] = {64, 64};
  Access access = rowMajor(shape, 4);
  access.pointer.contiguity = {1, 1};
  access.pointer.constancy = {1, 64};
  LinearLayout layout = blockedLayout(shape, {1, 0}, 1, 4);
  EXPECT_EQ(sectorsTouched(layout, access, target()), 1);
  access.pointer.constancy = {1, 1};
  EXPECT_EQ(sectorsTouched(layout, access, target()), 32);
}

TEST(ChooseLayouts, ColumnMajorWalksTheOtherAxis) {
  const int64_t shape[] = {64, 64};
  Access access = rowMajor(shape, 2);
  access.pointer.contiguity = {64, 1};
  LinearLayout layout = coalescedLayout(access, 4, target());
  EXPECT_THAT(layout.delinearize(layout.apply(InDim::Register, 1)), ElementsAre(1, 0));
  EXPECT_EQ(accessWidth(layout, access), 8);
}

TEST(ChooseLayouts, SmallTensorIsSpreadOverAllLanes) {
  const int64_t shape[] = {16, 16};
  LinearLayout layout = coalescedLayout(rowMajor(shape, 2), 4, target());
  EXPECT_EQ(layout.size(InDim::Register), 2u);
  EXPECT_TRUE(layout.isInjective());
}

TEST(ChooseLayouts, TensorSmallerThanTheBlockRepeats) {
  const int64_t shape[] = {16};
  LinearLayout layout = defaultLayout(shape, 4);
  EXPECT_TRUE(layout.isSurjective());
  EXPECT_EQ(layout.size(InDim::Lane), 32u);
  EXPECT_EQ(layout.size(InDim::Warp), 4u);
}

TEST(ChooseLayouts, F32AccumulatorIsStoredInWholeSectors) {
  const int64_t shape[] = {64, 64};
  LinearLayout layout = mmaAccLayout(shape, {4, 1});
  EXPECT_EQ(bytesPerRun(layout, rowMajor(shape, 4)), 32);
  EXPECT_EQ(bytesPerRun(layout, rowMajor(shape, 2)), 16) << "half a sector: goes through shared memory";
}

TEST(ChooseLayouts, WarpGrid) {
  auto grid = [](int64_t M, int64_t N, int warps, bool chained) {
    WarpGrid chosen = warpGrid(M, N, {16, 8, 16}, warps, chained);
    return std::pair(chosen.rows, chosen.columns);
  };
  EXPECT_EQ(grid(128, 128, 4, false), std::pair(2u, 2u));
  EXPECT_EQ(grid(128, 64, 4, true), std::pair(4u, 1u));
  EXPECT_EQ(grid(16, 256, 4, false), std::pair(1u, 4u));
  EXPECT_EQ(grid(32, 64, 8, true), std::pair(2u, 4u)) << "no more than the rows there are";
}

TEST(ChooseLayouts, FmaOperandsHoldWhatTheirAccumulatorNeeds) {
  const int64_t shape[] = {64, 32};
  LinearLayout accumulator = fmaLayout(shape, 4);
  ASSERT_TRUE(accumulator.isInjective());
  ASSERT_TRUE(accumulator.isSurjective());
  LinearLayout a = fmaOperandLayout(accumulator, 0, 16), b = fmaOperandLayout(accumulator, 1, 16);
  for (uint32_t lane = 0; lane < 32; ++lane)
    for (uint32_t warp = 0; warp < 4; ++warp) {
      std::set<std::pair<int64_t, int64_t>> heldA, heldB;
      for (uint32_t reg = 0; reg < a.size(InDim::Register); ++reg) {
        auto at =
            a.delinearize(a.apply(InDim::Register, reg) ^ a.apply(InDim::Lane, lane) ^ a.apply(InDim::Warp, warp));
        heldA.insert({at[0], at[1]});
      }
      for (uint32_t reg = 0; reg < b.size(InDim::Register); ++reg) {
        auto at =
            b.delinearize(b.apply(InDim::Register, reg) ^ b.apply(InDim::Lane, lane) ^ b.apply(InDim::Warp, warp));
        heldB.insert({at[0], at[1]});
      }
      for (uint32_t reg = 0; reg < accumulator.size(InDim::Register); ++reg) {
        auto at = accumulator.delinearize(accumulator.apply(InDim::Register, reg) ^
                                          accumulator.apply(InDim::Lane, lane) ^ accumulator.apply(InDim::Warp, warp));
        for (int64_t k = 0; k < 16; ++k) {
          ASSERT_TRUE(heldA.count({at[0], k}));
          ASSERT_TRUE(heldB.count({k, at[1]}));
        }
      }
    }
}

// --- swizzles ---

struct SwizzleCase {
  int64_t lines, length; // lines × elements of a line
  unsigned elementBytes;
};
void PrintTo(const SwizzleCase &c, std::ostream *out) {
  *out << c.lines << "x" << c.length << ", " << c.elementBytes << " bytes";
}

class Swizzle : public ::testing::TestWithParam<SwizzleCase> {
protected:
  const SwizzleCase &size = GetParam();
  std::array<int64_t, 2> shape{size.lines, size.length};
  LinearLayout layout = swizzledLayout(shape, 1, size.elementBytes);
  /// Byte offset of every element, by row-major index.
  std::vector<uint32_t> offsets = [this] {
    std::vector<uint32_t> result(layout.numElements());
    for (uint32_t offset = 0; offset < layout.numElements(); ++offset)
      result[layout.apply(InDim::Offset, offset)] = offset * size.elementBytes;
    return result;
  }();
  uint32_t at(int64_t line, int64_t element) const { return offsets[line * size.length + element]; }
};

TEST_P(Swizzle, IsABijectionThatKeepsPiecesWhole) {
  EXPECT_TRUE(layout.isSurjective());
  EXPECT_TRUE(layout.isInjective());
  int64_t piece = 16 / size.elementBytes;
  for (int64_t line = 0; line < size.lines; ++line)
    for (int64_t element = 0; element < size.length; ++element)
      EXPECT_EQ(at(line, element), at(line, element / piece * piece) + element % piece * size.elementBytes);
}

TEST_P(Swizzle, MatrixReadsHaveNoConflict) {
  int64_t piece = 16 / size.elementBytes;
  for (int64_t line = 0; line + 8 <= size.lines; line += 8)
    for (int64_t element = 0; element < size.length; element += piece) {
      llvm::SmallVector<uint32_t> bytes;
      for (int64_t i = 0; i < 8; ++i)
        bytes.push_back(at(line + i, element));
      // Eight rows of 16 bytes are one phase of ldmatrix: as 32 lanes of four bytes they must take one wavefront.
      llvm::SmallVector<uint32_t> words;
      for (uint32_t byte : bytes)
        for (uint32_t word = 0; word < 4; ++word)
          words.push_back(byte + 4 * word);
      EXPECT_EQ(countWavefronts(words, 4).needed, 1u) << "lines from " << line << ", element " << element;
    }
}

TEST_P(Swizzle, VectorWritesHaveNoConflict) {
  int64_t piece = 16 / size.elementBytes, pieces = size.lines * size.length / piece;
  for (int64_t first = 0; first + 32 <= pieces; first += 32) {
    llvm::SmallVector<uint32_t> bytes;
    for (int64_t lane = 0; lane < 32; ++lane)
      bytes.push_back(offsets[(first + lane) * piece]);
    Wavefronts count = countWavefronts(bytes, 16);
    EXPECT_EQ(count.needed, count.ideal) << "pieces from " << first;
  }
}

TEST(ShiftedLayout, TurnsWhatLiesAlongTheShift) {
  // 32 heads of 64 channels, eight of these a thread: words of two heads, as a product's sums have them.
  const int64_t shape[] = {1, 64, 32};
  LinearLayout loaded = blockedLayout(shape, {1, 2, 0}, 8, 8);
  LinearLayout shifted = shiftedLayout(loaded, 1);
  EXPECT_EQ(shifted, mmaAccLayout({64, 32}, {4, 2}, fragments16x8()).reshape(shape));
  EXPECT_EQ(shiftedLayout(shifted, 1), shifted);
  EXPECT_EQ(shiftedLayout(loaded, 2), loaded);
}

TEST(ShiftedLayout, RepeatsNothing) {
  // A product of 8 columns has no more warps than rows: each has one of two halves of its rows then.
  const int64_t shape[] = {1, 64, 8};
  LinearLayout shifted = shiftedLayout(blockedLayout(shape, {1, 2, 0}, 2, 8), 1);
  EXPECT_TRUE(shifted.isInjective());
  EXPECT_TRUE(shifted.isSurjective());
  EXPECT_EQ(shifted.bases(InDim::Register).front(), 1u);
}

TEST(ShiftedLayout, HasWhatItCanOfShortLines) {
  const int64_t shape[] = {4, 64, 4};
  LinearLayout shifted = shiftedLayout(blockedLayout(shape, {1, 2, 0}, 4, 8), 1);
  EXPECT_THAT(shifted.bases(InDim::Register), ElementsAre(1u, 2u));
  EXPECT_TRUE(shifted.isInjective());
}

/// Tiles of f32 whose lines fill all banks: what a tf32 operand that ldmatrix cannot transpose is read from.
class Tf32Swizzle : public Swizzle {};

TEST_P(Tf32Swizzle, UntransposedReadsHaveNoConflict) {
  for (int64_t line = 0; line + 4 <= size.lines; line += 4)
    for (int64_t element = 0; element < size.length; element += 8) {
      llvm::SmallVector<uint32_t> bytes;
      for (int64_t lane = 0; lane < 32; ++lane)
        bytes.push_back(at(line + lane % 4, element + lane / 4));
      EXPECT_EQ(countWavefronts(bytes, 4).needed, 1u) << "lines from " << line << ", element " << element;
    }
}

INSTANTIATE_TEST_SUITE_P(Tiles, Swizzle,
                         ::testing::Values(SwizzleCase{64, 64, 2}, SwizzleCase{64, 128, 2}, SwizzleCase{128, 32, 2},
                                           SwizzleCase{128, 16, 2}, SwizzleCase{32, 256, 2}, SwizzleCase{64, 32, 4},
                                           SwizzleCase{32, 64, 4}, SwizzleCase{64, 16, 4}, SwizzleCase{128, 128, 4},
                                           SwizzleCase{64, 64, 1}, SwizzleCase{64, 128, 1}, SwizzleCase{64, 32, 1}));
INSTANTIATE_TEST_SUITE_P(Tiles, Tf32Swizzle,
                         ::testing::Values(SwizzleCase{64, 32, 4}, SwizzleCase{32, 64, 4}, SwizzleCase{128, 128, 4}));

} // namespace

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Accesses to shared memory: widths, ldmatrix, and bank conflicts of the layouts that the compiler chooses.
#include "compiler/Conversion/TileToWarp/ChooseLayouts.h"
#include "dialects/Warp/Layout/MatrixAccess.h"
#include "dialects/Warp/Layout/MmaLayouts.h"
#include "dialects/Warp/Layout/ScratchLayout.h"
#include "dialects/Warp/Transforms/SwizzledLayout.h"
#include "test/Unit/Warp/RandomLayout.h"
#include "gtest/gtest.h"
#include <set>

using namespace weft::warp;
using namespace weft::warp::test;

namespace {

/// Row-major, each lane `vector` neighbours along the last axis: how tiles are copied.
LinearLayout rowMajor(llvm::ArrayRef<int64_t> shape, int64_t vector, int warps) {
  return weft::blockedLayout(shape, {1, 0}, vector, warps);
}
LinearLayout columnMajor(llvm::ArrayRef<int64_t> shape, int64_t vector, int warps) {
  return weft::blockedLayout(shape, {0, 1}, vector, warps);
}

void expectNoConflicts(Wavefronts wavefronts, const std::string &what) {
  EXPECT_GT(wavefronts.needed, 0u) << what;
  EXPECT_EQ(wavefronts.needed, wavefronts.ideal) << what;
}

TEST(Wavefronts, CountsBanks) {
  auto strided = [](unsigned stride, unsigned bytes) {
    llvm::SmallVector<uint32_t> offsets;
    for (uint32_t lane = 0; lane < 32; ++lane)
      offsets.push_back(lane * stride);
    return countWavefronts(offsets, bytes).needed;
  };
  EXPECT_EQ(strided(4, 4), 1u);    // neighbours
  EXPECT_EQ(strided(0, 4), 1u);    // one word for all
  EXPECT_EQ(strided(2, 2), 1u);    // two lanes a word
  EXPECT_EQ(strided(8, 4), 2u);    // every other bank
  EXPECT_EQ(strided(128, 4), 32u); // one bank
  EXPECT_EQ(strided(8, 8), 2u);    // half warps
  EXPECT_EQ(strided(16, 16), 4u);  // quarter warps
  EXPECT_EQ(strided(128, 16), 32u);
}

TEST(SharedAccess, FindsTheWidestPieces) {
  LinearLayout shared = LinearLayout({64, 64});
  shared.appendAxis(InDim::Offset, 1, 6, 1).appendAxis(InDim::Offset, 0, 6, 1);
  EXPECT_EQ(accessOf(rowMajor({64, 64}, 8, 4), shared, 2).pieceElements(), 8u);
  EXPECT_EQ(accessOf(rowMajor({64, 64}, 8, 4), shared, 4).pieceElements(), 4u); // 16 bytes at most
  EXPECT_EQ(accessOf(rowMajor({64, 64}, 2, 4), shared, 2).pieceElements(), 2u);
  EXPECT_EQ(accessOf(columnMajor({64, 64}, 8, 4), shared, 2).pieceElements(), 1u);
  EXPECT_EQ(accessOf(mmaAccLayout({64, 64}, {4, 1}), shared, 4).pieceElements(), 2u);
}

TEST(SharedAccess, PiecesAreNeighboursInAnyLayout) {
  RandomLayouts random(seed());
  SCOPED_TRACE("WEFT_SEED=" + std::to_string(seed()));
  for (int round = 0; round < 300; ++round) {
    auto shape = random.shape();
    LinearLayout layout = random.covering(shape, random.below(3)), shared = random.offsets(shape);
    SharedAccess access = accessOf(layout, shared, 2);
    for (const Place &place : placesOf(layout)) {
      uint32_t inside = 0, expected = 0;
      for (auto [position, bit] : llvm::enumerate(access.pieceBits))
        if (place[InDim::Register] >> bit & 1) {
          inside |= 1u << bit;
          expected |= 1u << position;
        }
      Place first = place;
      first[InDim::Register] ^= inside;
      EXPECT_EQ(access.offsets.apply(first) % access.pieceElements(), 0u);
      EXPECT_EQ(access.offsets.apply(place), access.offsets.apply(first) + expected);
    }
  }
}

// --- scratch ---

struct Exchange {
  const char *name;
  LinearLayout source, target;
};

std::vector<Exchange> exchanges() {
  std::vector<Exchange> all;
  for (auto [m, n] : {std::pair<int64_t, int64_t>{128, 64}, {64, 64}, {128, 128}, {32, 32}, {64, 256}}) {
    for (WarpGrid warps : {WarpGrid{4, 1}, WarpGrid{2, 2}, WarpGrid{8, 1}}) {
      int count = warps.rows * warps.columns;
      LinearLayout acc = mmaAccLayout({m, n}, warps);
      for (int64_t vector : {1, 2, 4, 8}) {
        all.push_back({"accumulator to rows", acc, rowMajor({m, n}, vector, count)});
        all.push_back({"rows to accumulator", rowMajor({m, n}, vector, count), acc});
        all.push_back({"accumulator to columns", acc, columnMajor({m, n}, vector, count)});
        all.push_back({"rows to columns", rowMajor({m, n}, vector, count), columnMajor({m, n}, vector, count)});
        all.push_back(
            {"rows to operand A", rowMajor({m, n}, vector, count), mmaOperandLayout(MmaOperand::A, {m, n}, warps, 16)});
        all.push_back(
            {"rows to operand B", rowMajor({m, n}, vector, count), mmaOperandLayout(MmaOperand::B, {m, n}, warps, 16)});
      }
    }
  }
  return all;
}

TEST(ScratchLayout, HasNoBankConflicts) {
  for (const Exchange &exchange : exchanges())
    for (unsigned bytes : {1, 2, 4, 8}) {
      std::string what = std::string(exchange.name) + ", " + std::to_string(bytes) + " bytes\n" +
                         exchange.source.str() + "\n" + exchange.target.str();
      LinearLayout shared = scratchLayout(exchange.source, exchange.target, bytes);
      EXPECT_TRUE(shared.isSurjective() && shared.isInjective()) << what;
      expectNoConflicts(wavefrontsOf(accessOf(exchange.source, shared, bytes), bytes), "writing, " + what);
      expectNoConflicts(wavefrontsOf(accessOf(exchange.target, shared, bytes), bytes), "reading, " + what);
    }
}

TEST(ScratchLayout, AccessesAreAsWideAsTheLayoutsAllow) {
  // The accumulator shares two directions of its registers with the rows: both access 8 bytes at a time.
  LinearLayout acc = mmaAccLayout({128, 64}, {4, 1}), rows = rowMajor({128, 64}, 8, 4);
  LinearLayout shared = scratchLayout(acc, rows, 2);
  auto count = [&](const LinearLayout &layout) {
    return layout.size(InDim::Register) / accessOf(layout, shared, 2).pieceElements();
  };
  EXPECT_LE(count(acc), 16u);
  EXPECT_LE(count(rows), 16u);
  // Rows to rows: whole pieces of 16 bytes on both sides.
  LinearLayout other = rowMajor({128, 64}, 16, 4), same = scratchLayout(rows, other, 2);
  EXPECT_EQ(accessOf(rows, same, 2).pieceElements(), 8u);
  EXPECT_EQ(accessOf(other, same, 2).pieceElements(), 8u);
}

TEST(ScratchLayout, ReadsOperandsWhole) {
  // Of the first operand's words the writer holds two that follow one another, and two of another instruction: neither is
  // read with the others, and no neighbour is left for a wider access to take.
  LinearLayout written({64, 32}), operand({64, 32});
  for (auto [rows, columns] : {std::pair(0, 1), {0, 2}, {8, 0}, {16, 0}, {32, 0}})
    written.append(InDim::Register, uint32_t(rows * 32 + columns));
  for (uint32_t element : {4u, 8u, 16u, 32u, 64u})
    written.append(InDim::Lane, element);
  written.append(InDim::Warp, 4 * 32);
  for (auto [rows, columns] : {std::pair(0, 1), {8, 0}, {0, 8}, {0, 16}, {16, 0}})
    operand.append(InDim::Register, uint32_t(rows * 32 + columns));
  for (uint32_t element : {2u, 4u, 32u, 64u, 128u})
    operand.append(InDim::Lane, element);
  operand.append(InDim::Warp, 32 * 32);
  auto read = [&](unsigned operandBits) {
    return accessOf(operand, scratchLayout(written, operand, 2, operandBits), 2).pieceBits;
  };
  EXPECT_EQ(read(0), (llvm::SmallVector<unsigned, 4>{0, 1, 4}));
  EXPECT_EQ(read(2), (llvm::SmallVector<unsigned, 4>{0, 1, 2}));
  for (const Exchange &exchange : exchanges())
    for (unsigned operandBits : {1, 2}) {
      LinearLayout shared = scratchLayout(exchange.source, exchange.target, 2, operandBits);
      expectNoConflicts(wavefrontsOf(accessOf(exchange.source, shared, 2), 2), exchange.name);
      llvm::SmallVector<unsigned, 4> bits = accessOf(exchange.target, shared, 2).pieceBits;
      size_t ordered = 0;
      while (ordered < bits.size() && bits[ordered] == ordered)
        ++ordered;
      EXPECT_TRUE(ordered == bits.size() || ordered < 1 || ordered >= 1 + operandBits) << exchange.name;
    }
}

TEST(ScratchLayout, IsABijectionForAnyLayouts) {
  // The first seed has layouts whose lanes' sums are dependent.
  for (uint32_t start : {uint32_t(3251520952), uint32_t(seed())}) {
    RandomLayouts random(start);
    SCOPED_TRACE("WEFT_SEED=" + std::to_string(start));
    for (int round = 0; round < 300; ++round) {
      auto shape = random.shape();
      LinearLayout source = random.covering(shape, random.below(3)), target = random.covering(shape, random.below(3));
      LinearLayout shared = scratchLayout(source, target, 1u << random.below(4));
      EXPECT_EQ(shared.size(InDim::Offset), shared.numElements());
      EXPECT_TRUE(shared.isSurjective()) << source.str() << "\n" << target.str();
    }
  }
}

// --- tiles of operands ---

struct Tile {
  int64_t rows, columns;
  unsigned bytes;
};
class OperandTile : public testing::TestWithParam<Tile> {
protected:
  Tile tile = GetParam();
  llvm::SmallVector<int64_t, 2> shape{tile.rows, tile.columns}, transposed{tile.columns, tile.rows};
  LinearLayout shared = swizzledLayout(shape, 1, tile.bytes);
};

TEST_P(OperandTile, IsWrittenWithoutConflicts) {
  LinearLayout copy = rowMajor(shape, 16 / tile.bytes, 4);
  SharedAccess access = accessOf(copy, shared, tile.bytes);
  EXPECT_EQ(access.pieceElements(), 16 / tile.bytes);
  expectNoConflicts(wavefrontsOf(access, tile.bytes), shared.str());
}

/// ldmatrix fits, and has no conflicts.
void expectMatrices(const LinearLayout &operand, const LinearLayout &shared, unsigned bytes, bool transposed) {
  std::string what = operand.str() + "\n" + shared.str();
  LinearLayout offsets = *operand.composeInverse(shared);
  std::optional<MatrixAccess> access = matrixAccess(offsets, 8 * bytes);
  ASSERT_TRUE(access) << what;
  EXPECT_EQ(access->transposed, transposed) << what;
  expectNoConflicts(wavefrontsOf(*access, offsets, bytes), what);
  // Each register is delivered once.
  std::set<uint32_t> delivered;
  for (uint32_t first : access->first)
    for (unsigned matrix = 0; matrix < access->matrices(); ++matrix)
      for (uint32_t part = 0; part < 1u << access->packedBits; ++part)
        EXPECT_TRUE(delivered.insert(access->registerAt(first, matrix) + part).second) << what;
  EXPECT_EQ(delivered.size(), operand.size(InDim::Register)) << what;
  // What PTX ISA 9.7.14.5.15 delivers to each lane is what the operand's layout asks for.
  for (uint32_t first : access->first)
    for (unsigned matrix = 0; matrix < access->matrices(); ++matrix)
      for (uint32_t lane = 0; lane < 32; ++lane)
        for (uint32_t part = 0; part < 1u << access->packedBits; ++part) {
          uint32_t row = transposed ? lane % 4 * 2 + part : lane / 4;
          uint32_t column = transposed ? lane / 4 : lane % 4 * (4 / bytes) + part;
          uint32_t giver = matrix * 8 + row, address = offsets.apply(InDim::Register, first);
          for (auto [bit, offset] : llvm::enumerate(access->laneOffsets))
            address ^= giver >> bit & 1 ? offset : 0;
          Place place;
          place[InDim::Register] = access->registerAt(first, matrix) + part;
          place[InDim::Lane] = lane;
          ASSERT_EQ(address + column, offsets.apply(place)) << what;
        }
}

TEST_P(OperandTile, IsReadAsOperandA) {
  if (tile.columns * tile.bytes < 32 || tile.rows < 16)
    GTEST_SKIP() << "smaller than an instruction";
  expectMatrices(mmaOperandLayout(MmaOperand::A, shape, {2, 2}, 8 * tile.bytes), shared, tile.bytes, false);
}

TEST_P(OperandTile, IsReadTransposedAsOperandB) { // K of attention: [N, K] in memory
  if (tile.columns * tile.bytes < 32)
    GTEST_SKIP() << "smaller than an instruction";
  expectMatrices(mmaOperandLayout(MmaOperand::B, transposed, {4, 1}, 8 * tile.bytes), shared.permute({1, 0}),
                 tile.bytes, false);
}

TEST_P(OperandTile, IsReadAsOperandB) { // V of attention: [K, N] in memory
  LinearLayout operand = mmaOperandLayout(MmaOperand::B, shape, {4, 1}, 8 * tile.bytes);
  if (tile.bytes == 2)
    return expectMatrices(operand, shared, 2, true);
  if (tile.bytes == 4) { // ldmatrix cannot transpose words: plain loads
    SharedAccess access = accessOf(operand, shared, 4);
    expectNoConflicts(wavefrontsOf(access, 4), operand.str() + "\n" + shared.str());
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, OperandTile,
                         testing::Values(Tile{64, 64, 2}, Tile{128, 64, 2}, Tile{64, 128, 2}, Tile{128, 32, 2},
                                         Tile{32, 128, 2}, Tile{64, 16, 2}, Tile{16, 256, 2}, Tile{64, 64, 4},
                                         Tile{64, 32, 4}, Tile{32, 128, 4}, Tile{64, 16, 4}, Tile{64, 64, 1},
                                         Tile{64, 128, 1}));

TEST(MatrixAccess, TakesSwizzledBitsIntoTheAddress) {
  // V, 64 x 64 halves: three bits of the column are swizzled; two of them go into the lanes' addresses, so that two
  // addresses serve the tile.
  LinearLayout shared = swizzledLayout({64, 64}, 1, 2);
  LinearLayout offsets = *mmaOperandLayout(MmaOperand::B, {64, 64}, {4, 1}, 16).composeInverse(shared);
  MatrixAccess access = *matrixAccess(offsets, 16);
  uint32_t lanes = 0;
  for (uint32_t offset : access.laneOffsets)
    lanes |= offset;
  std::set<uint32_t> addresses;
  for (uint32_t first : access.first)
    addresses.insert(offsets.apply(InDim::Register, first) & lanes);
  EXPECT_EQ(access.matrices(), 4u);
  EXPECT_EQ(addresses.size(), 2u);
}

TEST(MatrixAccess, TurnsVectorsOfLines) {
  // Lanes take 8 halves of a line that lie apart by lines in memory: rows 0, 1, 8, 9 and so on make a matrix.
  LinearLayout turned({64, 64});
  turned.appendAxis(InDim::Register, 0, 3, 1)
      .appendAxis(InDim::Register, 0, 1, 32)
      .appendAxis(InDim::Register, 1, 1, 32);
  turned.appendAxis(InDim::Lane, 0, 2, 8).appendAxis(InDim::Lane, 1, 3, 1).appendAxis(InDim::Warp, 1, 2, 8);
  auto wavefronts = [&](llvm::ArrayRef<unsigned> firstBits) {
    LinearLayout shared = swizzledLayout({64, 64}, 1, 2, firstBits);
    EXPECT_TRUE(shared.isInjective() && shared.isSurjective());
    LinearLayout offsets = *turned.composeInverse(shared);
    std::optional<MatrixAccess> access = matrixAccess(offsets, 16);
    EXPECT_TRUE(access && access->transposed);
    return wavefrontsOf(*access, offsets, 2);
  };
  EXPECT_GT(wavefronts({}).needed, wavefronts({}).ideal);
  EXPECT_EQ(wavefronts({0, 3, 4}).needed, wavefronts({0, 3, 4}).ideal);
}

TEST(MatrixAccess, RefusesOtherLayouts) {
  LinearLayout shared = swizzledLayout({64, 64}, 1, 2);
  EXPECT_FALSE(matrixAccess(*rowMajor({64, 64}, 8, 4).composeInverse(shared), 16));
  EXPECT_FALSE(matrixAccess(*mmaAccLayout({64, 64}, {4, 1}).composeInverse(shared.permute({1, 0})), 32));
  // Rows that do not begin at a multiple of 16 bytes.
  LinearLayout odd({64, 64});
  odd.appendAxis(InDim::Offset, 1, 2, 1).appendAxis(InDim::Offset, 0, 6, 1).appendAxis(InDim::Offset, 1, 4, 4);
  EXPECT_FALSE(matrixAccess(*mmaOperandLayout(MmaOperand::A, {64, 64}, {4, 1}, 16).composeInverse(odd), 16));
}

} // namespace

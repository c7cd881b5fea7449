// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Products of a sparse A: all kernels' bits, 8-bit floats as sm_89 and sm_90 run them, and metadata that are none.
#include "runtime/Simulator/Semantics/Matrix.h"
#include "test/Unit/Simulator/Random.h"

#include <gtest/gtest.h>

#include <array>
#include <vector>

namespace weft::simulator::semantics {
namespace {

using Lanes = std::array<uint32_t, 32>;

/// The registers of one operand.
struct SparseRegisters {
  explicit SparseRegisters(unsigned count) : lanes(count) {}
  std::vector<const void *> in() const {
    std::vector<const void *> pointers;
    for (const Lanes &each : lanes)
      pointers.push_back(each.data());
    return pointers;
  }
  std::vector<void *> out() {
    std::vector<void *> pointers;
    for (Lanes &each : lanes)
      pointers.push_back(each.data());
    return pointers;
  }
  std::vector<Lanes> lanes;
};

std::vector<MatrixProduct> everySparse() {
  std::vector<MatrixProduct> all;
  for (uint16_t k : {8, 16, 32, 64, 128})
    for (MatrixType a : {MatrixType::F16, MatrixType::BF16, MatrixType::TF32, MatrixType::S8, MatrixType::U8,
                         MatrixType::S4, MatrixType::U4, MatrixType::E4M3, MatrixType::E5M2})
      for (AccumulatorType d : {AccumulatorType::F16, AccumulatorType::F32, AccumulatorType::S32})
        if (const MatrixProduct product{.shape = {16, 8, k}, .a = a, .b = a, .c = d, .d = d};
            isSparseMmaProduct(product))
          all.push_back(product);
  return all;
}

/// 16 bits without infinities and NaNs in f16 and bf16, and whose bytes are numbers as 8-bit floats.
uint32_t tameWord(test::Random &random) { return random.word() & 0x3b3b'3b3b; }

TEST(Sparse, AllKernelsGiveTheSameBits) {
  test::Random random;
  const std::vector<MatrixProduct> all = everySparse();
  EXPECT_EQ(all.size(), 18u);
  for (const MatrixProduct &p : all) {
    SparseRegisters a(multiplicandRegisters(Operand::A, p.shape, bitsOf(p.a)) / 2);
    SparseRegisters b(multiplicandRegisters(Operand::B, p.shape, bitsOf(p.a)));
    SparseRegisters c(accumulatorRegisters(p.shape, p.c));
    for (SparseRegisters *each : {&a, &b, &c})
      for (Lanes &lanes : each->lanes)
        for (uint32_t &word : lanes)
          word = tameWord(random);
    Lanes words;
    words.fill(0xe4ee'4ee4u); // of every type
    const Metadata metadata = readMetadata({p, 0, true}, words.data());
    EXPECT_FALSE(metadata.fault);
    std::vector<Lanes> first;
    for (const MatrixKernel &kernel : matrixKernels()) {
      SCOPED_TRACE(kernel.name);
      SparseRegisters d(unsigned(c.lanes.size()));
      kernel.multiplySparse(p, metadata.rows, a.in().data(), b.in().data(), c.in().data(), d.out().data());
      if (first.empty())
        first = d.lanes;
      EXPECT_EQ(d.lanes, first);
    }
  }
}

/// The first two of each four: a dense product of half of k, whose B has every other pair of rows.
TEST(Sparse, IsTheDenseProductOfWhatIsStored) {
  test::Random random;
  const MatrixProduct whole{.shape = {16, 8, 32}, .a = MatrixType::F16, .b = MatrixType::F16};
  MatrixProduct half = whole;
  half.shape.k = 16;
  SparseRegisters a(4), b(4), picked(2), c(4), d(4), expected(4);
  for (SparseRegisters *each : {&a, &b, &c})
    for (Lanes &lanes : each->lanes)
      for (uint32_t &word : lanes)
        word = tameWord(random);
  for (unsigned lane = 0; lane < 32; ++lane) // rows 4i, 4i + 1 of B: the even words of its columns
    for (unsigned i = 0; i < 2; ++i)
      picked.lanes[i][lane] = b.lanes[2 * i + lane % 4 / 2][lane / 4 * 4 + lane % 2 * 2];
  Lanes words;
  words.fill(0x4444'4444u);
  const SparseRows rows = readMetadata({whole, 1, true}, words.data()).rows;
  multiplySparse(whole, rows, a.in().data(), b.in().data(), c.in().data(), d.out().data());
  multiply(half, a.in().data(), picked.in().data(), c.in().data(), expected.out().data());
  EXPECT_EQ(d.lanes, expected.lanes);
}

TEST(Sparse, MetadataThatAreNone) {
  const MatrixProduct p{.shape = {16, 8, 16}, .a = MatrixType::F16, .b = MatrixType::F16};
  EXPECT_EQ(selectorsOf(p), 4u);
  EXPECT_EQ(metadataLanes({p, 2, true}), 0x4444'4444u);
  Lanes words;
  words.fill(0x4444'4444u);
  words[6] = 0x4414'4444u; // 0b0001 for the second four of the lower row
  EXPECT_FALSE(readMetadata({p, 1, true}, words.data()).fault) << "another thread's";
  EXPECT_FALSE(readMetadata({p, 2, false}, words.data()).fault) << "in any order";
  const auto fault = readMetadata({p, 2, true}, words.data()).fault;
  ASSERT_TRUE(fault);
  EXPECT_EQ(fault->lane, 6u);
  EXPECT_EQ(fault->bits, 1u);
  EXPECT_EQ(fault->row, 9u);
  EXPECT_EQ(fault->element, 4u);
  EXPECT_FALSE(readMetadata({p, 2, true}, words.data(), 1u << 6).fault);
}

} // namespace
} // namespace weft::simulator::semantics

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Matrix products against sums in f64 and int64 over positions written out from the PTX ISA's fragment tables.
#include "runtime/Simulator/Semantics/Convert.h"
#include "runtime/Simulator/Semantics/Half.h"
#include "runtime/Simulator/Semantics/Matrix.h"
#include "test/Unit/Simulator/Random.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <numeric>
#include <vector>

namespace weft::simulator::semantics {
namespace {

/// The registers of one operand, 32-bit or 64-bit lanes.
struct Registers {
  explicit Registers(unsigned count) : words(count * 64), pointers(count) {
    for (unsigned i = 0; i < count; ++i)
      pointers[i] = words.data() + i * 64;
  }
  uint32_t *lanes(unsigned index) { return static_cast<uint32_t *>(pointers[index]); }
  double *doubles(unsigned index) { return static_cast<double *>(pointers[index]); }
  const void *const *in() const { return pointers.data(); }
  void *const *out() { return pointers.data(); }
  alignas(64) std::vector<uint32_t> words;
  std::vector<void *> pointers;
};

bool isSignedType(MatrixType type) { return type == MatrixType::S8 || type == MatrixType::S4; }

double multiplicandValue(MatrixType type, Registers &registers, unsigned lane, unsigned element) {
  const unsigned bits = bitsOf(type), width = perRegister(bits);
  if (type == MatrixType::F64)
    return registers.doubles(element)[lane];
  const uint32_t word = registers.lanes(element / width)[lane];
  if (type == MatrixType::TF32)
    return std::bit_cast<float>(word & 0xffffe000);
  const uint32_t value = word >> (element % width * bits) & ((1u << bits) - 1);
  if (type == MatrixType::F16)
    return halfToFloat(uint16_t(value));
  if (type == MatrixType::BF16)
    return bfloatToFloat(uint16_t(value));
  if (isFloat8(type))
    return halfToFloat(type == MatrixType::E4M3 ? halfFromE4M3(uint8_t(value)) : halfFromE5M2(uint8_t(value)));
  return isSignedType(type) && value >> (bits - 1) ? double(value) - double(1u << bits) : double(value);
}

double accumulatorValue(AccumulatorType type, Registers &registers, unsigned lane, unsigned element) {
  switch (type) {
  case AccumulatorType::F16:
    return halfToFloat(uint16_t(registers.lanes(element / 2)[lane] >> element % 2 * 16));
  case AccumulatorType::F32:
    return std::bit_cast<float>(registers.lanes(element)[lane]);
  case AccumulatorType::F64:
    return registers.doubles(element)[lane];
  case AccumulatorType::S32:
    return int32_t(registers.lanes(element)[lane]);
  }
  return 0;
}

/// Any 8-bit float that is a number.
uint32_t numberOfFloat8(test::Random &random, MatrixType type) {
  const uint32_t most = type == MatrixType::E4M3 ? 0x7f : 0x7c;
  return random.below(most) | random.below(2) << 7;
}

/// Fills every register with values of `type` of magnitude about one (or any integers, any 8-bit floats).
void fill(test::Random &random, Registers &registers, MatrixType type) {
  for (unsigned i = 0; i < registers.pointers.size(); ++i)
    for (unsigned lane = 0; lane < 32; ++lane) {
      const auto unit = [&] { return float(int32_t(random.word())) * 0x1p-30f; };
      if (type == MatrixType::F64)
        registers.doubles(i)[lane] = double(unit()) * (1 + 0x1p-40 * random.below(1000));
      else if (type == MatrixType::TF32)
        registers.lanes(i)[lane] = std::bit_cast<uint32_t>(unit());
      else if (type == MatrixType::F16)
        registers.lanes(i)[lane] = pack16(floatToHalf(unit()), floatToHalf(unit()));
      else if (type == MatrixType::BF16)
        registers.lanes(i)[lane] = pack16(floatToBfloat(unit()), floatToBfloat(unit()));
      else if (isFloat8(type))
        for (unsigned byte = 0; byte < 4; ++byte)
          registers.lanes(i)[lane] = registers.lanes(i)[lane] << 8 | numberOfFloat8(random, type);
      else
        registers.lanes(i)[lane] = random.word();
    }
}

void fill(test::Random &random, Registers &registers, AccumulatorType type) {
  switch (type) {
  case AccumulatorType::F16:
    return fill(random, registers, MatrixType::F16);
  case AccumulatorType::F32:
    return fill(random, registers, MatrixType::TF32);
  case AccumulatorType::F64:
    return fill(random, registers, MatrixType::F64);
  case AccumulatorType::S32:
    return fill(random, registers, MatrixType::S8);
  }
}

/// Positions in an m x n matrix, held by value.
struct Matrix {
  Matrix(unsigned rows, unsigned cols) : cols(cols), values(rows * cols) {}
  double &at(Position p) { return values[p.row * cols + p.col]; }
  double &at(unsigned row, unsigned col) { return values[row * cols + col]; }
  unsigned cols;
  std::vector<double> values;
};

class Product : public testing::TestWithParam<MatrixProduct> {};

std::string nameOf(const testing::TestParamInfo<MatrixProduct> &info) {
  static const char *types[] = {"f16", "bf16", "tf32", "f64", "s8", "u8", "s4", "u4", "b1", "e4m3", "e5m2"};
  static const char *accumulators[] = {"f16", "f32", "f64", "s32"};
  const auto &p = info.param;
  return "m" + std::to_string(p.shape.m) + "n" + std::to_string(p.shape.n) + "k" + std::to_string(p.shape.k) + "_" +
         accumulators[int(p.d)] + "_" + types[int(p.a)] + "_" + types[int(p.b)] + "_" + accumulators[int(p.c)] +
         (p.saturate ? "_satfinite" : "") + (p.bits == BitOperation::AndPopc ? "_and" : "");
}

double roundingOf(const MatrixProduct &p) {
  return p.d == AccumulatorType::F16 ? 0x1p-11 : p.d == AccumulatorType::F32 ? 0x1p-24 : 0x1p-53;
}

/// D by definition, and the sum of magnitudes that scales its rounding errors.
struct Expected {
  double value, magnitude;
};

Expected expected(const MatrixProduct &p, Matrix &a, Matrix &b, Matrix &c, unsigned row, unsigned col) {
  double sum = 0, magnitude = std::fabs(c.at(row, col));
  for (unsigned k = 0; k < p.shape.k; ++k) {
    const double x = a.at(row, k), y = b.at(k, col);
    sum += p.a != MatrixType::B1 ? x * y : p.bits == BitOperation::XorPopc ? double(x != y) : x * y;
    magnitude += std::fabs(x * y);
  }
  sum += c.at(row, col);
  if (p.c != AccumulatorType::S32)
    return {sum, magnitude};
  const double low = std::numeric_limits<int32_t>::min(), high = std::numeric_limits<int32_t>::max();
  return {p.saturate ? std::fmin(std::fmax(sum, low), high) : double(int32_t(uint32_t(int64_t(sum)))), 0};
}

/// The exponent of a number whose type has none below `least`; of zero, below all.
int exponentOf(double value, int least) { return value == 0 ? -1000 : std::max(std::ilogb(value), least); }

double cut(double value, int place) { return std::ldexp(std::trunc(std::ldexp(value, -place)), place); }

/// A sum of 8-bit floats' products as tensor cores of sm_89 and sm_90 have it (Matrix.h), before an f16 is rounded.
double float8Sum(const MatrixProduct &p, Matrix &a, Matrix &b, double c, unsigned row, unsigned col) {
  const auto least = [](MatrixType type) { return type == MatrixType::E4M3 ? -6 : -14; };
  const auto exponent = [&](unsigned k) {
    return exponentOf(a.at(row, k), least(p.a)) + exponentOf(b.at(k, col), least(p.b));
  };
  int top = exponentOf(c, p.c == AccumulatorType::F16 ? -14 : -126);
  for (unsigned k = 0; k < p.shape.k; ++k)
    top = std::max(top, exponent(k));
  double sum = cut(c, top - 13);
  for (unsigned k = 0; k < p.shape.k; ++k)
    sum += cut(a.at(row, k) * b.at(k, col), top - 13);
  return p.d == AccumulatorType::F32 && sum != 0 ? cut(sum, std::ilogb(sum) - 13) : sum;
}

TEST_P(Product, AgreesWithTheDefinition) {
  test::Random random;
  const MatrixProduct p = GetParam();
  ASSERT_TRUE(isMmaProduct(p) || isWmmaProduct(p));
  const unsigned bits = bitsOf(p.a);
  Registers a(wmmaRegisters(Operand::A, p.shape, p.a)), b(wmmaRegisters(Operand::B, p.shape, p.b));
  Registers c(accumulatorRegisters(p.shape, p.c));
  for (int round = 0; round < 20; ++round) {
    fill(random, a, p.a), fill(random, b, p.b), fill(random, c, p.c);
    Matrix left(p.shape.m, p.shape.k), right(p.shape.k, p.shape.n), sums(p.shape.m, p.shape.n);
    for (unsigned lane = 0; lane < 32; ++lane) {
      for (unsigned i = 0; i < multiplicandRegisters(Operand::A, p.shape, bits) * perRegister(bits); ++i)
        left.at(multiplicandPosition(Operand::A, p.shape, bits, lane, i)) = multiplicandValue(p.a, a, lane, i);
      for (unsigned i = 0; i < multiplicandRegisters(Operand::B, p.shape, bits) * perRegister(bits); ++i)
        right.at(multiplicandPosition(Operand::B, p.shape, bits, lane, i)) = multiplicandValue(p.b, b, lane, i);
      for (unsigned i = 0; i < accumulatorElements(p.shape); ++i)
        sums.at(accumulatorPosition(p.shape, lane, i)) = accumulatorValue(p.c, c, lane, i);
    }
    std::vector<uint32_t> first;
    for (const MatrixKernel &kernel : matrixKernels()) {
      SCOPED_TRACE(kernel.name);
      Registers d(accumulatorRegisters(p.shape, p.d));
      kernel.multiply(p, a.in(), b.in(), c.in(), d.out());
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned i = 0; i < accumulatorElements(p.shape); ++i) {
          const Position at = accumulatorPosition(p.shape, lane, i);
          const Expected want = expected(p, left, right, sums, at.row, at.col);
          const double got = accumulatorValue(p.d, d, lane, i);
          const double slack = p.d == AccumulatorType::F16 ? std::fabs(want.value) * 0x1p-11 + want.magnitude * 0x1p-19
                                                           : want.magnitude * roundingOf(p) * (p.shape.k + 1);
          if (isFloat8(p.a)) {
            const double sum = float8Sum(p, left, right, sums.at(at.row, at.col), at.row, at.col);
            ASSERT_EQ(got, p.d == AccumulatorType::F16 ? double(halfToFloat(floatToHalf(float(sum)))) : sum)
                << "lane " << lane << " element " << i << " instead of " << want.value;
            ASSERT_LE(std::fabs(sum - want.value), (p.shape.k + 2) * 0x1p-12 * want.magnitude);
            continue;
          }
          ASSERT_NEAR(got, want.value, slack) << "lane " << lane << " element " << i;
        }
      if (first.empty())
        first = d.words;
      ASSERT_EQ(d.words, first) << "not the portable kernel's bits";
    }
  }
}

/// What `multiply` gives for each eight columns, bit for bit, of B by columns and by rows.
TEST(Pieces, AreProductsOfEightColumns) {
  test::Random random;
  constexpr unsigned tiles = 5;
  for (const MatrixType type : {MatrixType::F16, MatrixType::BF16, MatrixType::TF32})
    for (const AccumulatorType kind : {AccumulatorType::F32, AccumulatorType::F16})
      for (const bool byRow : {false, true})
        for (const bool adds : {false, true}) {
          const MatrixProduct step{{16, 8, uint16_t(256 / bitsOf(type))}, type, type, kind, kind};
          if (!isMmaProduct(step) || (byRow && type == MatrixType::TF32))
            continue;
          const unsigned each = accumulatorRegisters(step.shape, kind);
          Registers a(4), b(2 * tiles), c(each * tiles), expected(each * tiles);
          fill(random, a, type), fill(random, b, type), fill(random, c, kind);
          const Registers zeros(each);
          std::vector<uint32_t> memory(tiles * 64), pieces(tiles * 16);
          std::iota(pieces.begin(), pieces.end(), 0);
          std::reverse(pieces.begin(), pieces.end());
          for (uint32_t &piece : pieces)
            piece *= 16;
          for (unsigned tile = 0; tile < tiles; ++tile) {
            for (unsigned half = 0; half < 2; ++half) {
              uint32_t words[32];
              std::memcpy(words, b.lanes(2 * tile + half), sizeof words);
              if (byRow)
                transposeMatrix(words, words);
              for (unsigned i = 0; i < 8; ++i)
                std::memcpy(memory.data() + pieces[16 * tile + 8 * half + i] / 4, words + 4 * i, 16);
            }
            multiply(step, a.in(), b.in() + 2 * tile, adds ? c.in() + each * tile : zeros.in(),
                     expected.out() + each * tile);
          }
          for (const MatrixKernel &kernel : matrixKernels()) {
            SCOPED_TRACE(kernel.name);
            Registers d(each * tiles);
            d.words = c.words;
            kernel.multiplyPieces({type, kind, tiles, a.in(), memory.data(), pieces.data(), byRow, adds, d.out()});
            for (unsigned i = 0; i < each * tiles; ++i)
              for (unsigned lane = 0; lane < 32; ++lane)
                ASSERT_EQ(d.lanes(i)[lane], expected.lanes(i)[lane]);
          }
        }
}

/// D may be written over C, and over A where it has room.
TEST_P(Product, WritesOverItsOperands) {
  test::Random random;
  const MatrixProduct p = GetParam();
  Registers a(wmmaRegisters(Operand::A, p.shape, p.a)), b(wmmaRegisters(Operand::B, p.shape, p.b));
  const unsigned count = std::max(accumulatorRegisters(p.shape, p.c), accumulatorRegisters(p.shape, p.d));
  Registers c(count), d(count);
  fill(random, a, p.a), fill(random, b, p.b), fill(random, c, p.c);
  multiply(p, a.in(), b.in(), c.in(), d.out());
  multiply(p, a.in(), b.in(), c.in(), c.out());
  for (unsigned i = 0; i < accumulatorRegisters(p.shape, p.d); ++i)
    for (unsigned lane = 0; lane < 32 * (p.d == AccumulatorType::F64 ? 2 : 1); ++lane)
      ASSERT_EQ(c.lanes(i)[lane], d.lanes(i)[lane]);
}

std::vector<MatrixProduct> everyProduct() {
  std::vector<MatrixProduct> result;
  std::vector<MatrixShape> shapes;
  for (unsigned m : {8, 16, 32})
    for (unsigned n : {8, 16, 32})
      for (unsigned k : {4, 8, 16, 32, 64, 128, 256})
        shapes.push_back({uint16_t(m), uint16_t(n), uint16_t(k)});
  for (const MatrixShape &shape : shapes)
    for (int a = 0; a < 11; ++a)
      for (int b = 0; b < 11; ++b)
        for (int c = 0; c < 4; ++c)
          for (int d = 0; d < 4; ++d)
            for (bool saturate : {false, true})
              for (BitOperation bits : {BitOperation::XorPopc, BitOperation::AndPopc}) {
                const MatrixProduct p{shape,    MatrixType(a), MatrixType(b), AccumulatorType(c), AccumulatorType(d),
                                      saturate, bits};
                if (bits == BitOperation::AndPopc && p.a != MatrixType::B1)
                  continue;
                if (isMmaProduct(p) || isWmmaProduct(p))
                  result.push_back(p);
              }
  return result;
}

INSTANTIATE_TEST_SUITE_P(Mma, Product, testing::ValuesIn(everyProduct()), nameOf);

TEST(Matrix, EveryShapeOfTheISAIsThere) {
  std::array<unsigned, 11> mma{}, wmma{};
  for (const MatrixProduct &p : everyProduct()) {
    mma[int(p.a)] += isMmaProduct(p);
    wmma[int(p.a)] += isWmmaProduct(p);
  }
  // f16 m16n8k8, k16 with two accumulators; four shapes of f64, three of them of sm_90; three shapes of s8 and s4, times two types of B, times .satfinite;
  // two shapes of 8-bit floats, times two types of B and two accumulators
  EXPECT_THAT(mma, testing::ElementsAre(4, 2, 2, 4, 12, 12, 12, 12, 6, 8, 8));
  EXPECT_THAT(wmma, testing::ElementsAre(12, 3, 1, 1, 6, 6, 2, 2, 2, 0, 0));
}

/// PTX ISA, "Matrix Fragments for mma.m16n8k16 with floating point type", its formulas word for word.
TEST(Fragment, M16N8K16Floats) {
  const MatrixShape shape{16, 8, 16};
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned groupID = lane >> 2, threadID = lane % 4;
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned row = i < 2 || (4 <= i && i < 6) ? groupID : groupID + 8;
      const unsigned col = threadID * 2 + (i & 1) + (i < 4 ? 0 : 8);
      EXPECT_EQ(multiplicandPosition(Operand::A, shape, 16, lane, i), (Position{uint16_t(row), uint16_t(col)}));
    }
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = threadID * 2 + (i & 1) + (i < 2 ? 0 : 8);
      EXPECT_EQ(multiplicandPosition(Operand::B, shape, 16, lane, i), (Position{uint16_t(row), uint16_t(groupID)}));
      const unsigned accumulatorRow = i < 2 ? groupID : groupID + 8, accumulatorCol = threadID * 2 + (i & 1);
      EXPECT_EQ(accumulatorPosition(shape, lane, i), (Position{uint16_t(accumulatorRow), uint16_t(accumulatorCol)}));
    }
  }
}

/// PTX ISA, the fragments of m16n8k8 .tf32, m16n8k32 .s8, m16n8k64 .s4, m16n8k256 .b1 and m8n8k4 .f64.
TEST(Fragment, OtherShapes) {
  const auto at = [](unsigned row, unsigned col) { return Position{uint16_t(row), uint16_t(col)}; };
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned g = lane >> 2, t = lane % 4;
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_EQ(multiplicandPosition(Operand::A, {16, 8, 8}, 32, lane, i),
                at(i == 0 || i == 2 ? g : g + 8, i < 2 ? t : t + 4));
    for (unsigned i = 0; i < 2; ++i)
      EXPECT_EQ(multiplicandPosition(Operand::B, {16, 8, 8}, 32, lane, i), at(i == 0 ? t : t + 4, g));
    for (unsigned i = 0; i < 16; ++i)
      EXPECT_EQ(multiplicandPosition(Operand::A, {16, 8, 32}, 8, lane, i),
                at(i < 4 || (8 <= i && i < 12) ? g : g + 8, t * 4 + (i & 3) + (i < 8 ? 0 : 16)));
    for (unsigned i = 0; i < 8; ++i)
      EXPECT_EQ(multiplicandPosition(Operand::B, {16, 8, 32}, 8, lane, i), at(t * 4 + (i & 3) + (i < 4 ? 0 : 16), g));
    for (unsigned i = 0; i < 32; ++i)
      EXPECT_EQ(multiplicandPosition(Operand::A, {16, 8, 64}, 4, lane, i),
                at(i < 8 || (16 <= i && i < 24) ? g : g + 8, t * 8 + (i & 7) + (i < 16 ? 0 : 32)));
    for (unsigned i = 0; i < 64; ++i)
      EXPECT_EQ(multiplicandPosition(Operand::B, {16, 8, 256}, 1, lane, i),
                at(t * 32 + (i & 31) + (i < 32 ? 0 : 128), g));
    EXPECT_EQ(multiplicandPosition(Operand::A, {8, 8, 4}, 64, lane, 0), at(g, t));
    EXPECT_EQ(multiplicandPosition(Operand::B, {8, 8, 4}, 64, lane, 0), at(t, g));
    for (unsigned i = 0; i < 2; ++i)
      EXPECT_EQ(accumulatorPosition({8, 8, 4}, lane, i), at(g, t * 2 + (i & 1)));
  }
}

/// The formulas of "Matrix Fragments for mma.m8n8k4 with .f16" on small integers, which every type holds exactly.
TEST(Matrix, QuadPairs) {
  test::Random random;
  const auto rank = [](unsigned lane) { return lane % 4 + (lane < 16 ? 0 : 4); };
  for (int variant = 0; variant < 8; ++variant) {
    const bool aByColumn = variant & 1, bByRow = variant & 2;
    const auto type = variant & 4 ? AccumulatorType::F16 : AccumulatorType::F32;
    const unsigned count = type == AccumulatorType::F16 ? 4 : 8;
    Registers a(2), b(2), c(count), d(count);
    Matrix left(4 * 8, 4), right(4 * 4, 8), sums(4 * 8, 8);
    const auto put = [](Registers &r, unsigned lane, unsigned i, float value) {
      reinterpret_cast<uint16_t *>(r.lanes(i / 2))[lane * 2 + i % 2] = floatToHalf(value);
    };
    const auto position = [&](unsigned lane, unsigned i) {
      const unsigned x = (lane & 1) + (i & 2);
      const unsigned row = type == AccumulatorType::F16 ? rank(lane) : lane < 16 ? x : x + 4;
      return Position{uint16_t(row), uint16_t(type == AccumulatorType::F16 ? i : (i & 4) + (lane & 2) + (i & 1))};
    };
    for (unsigned lane = 0; lane < 32; ++lane) {
      const unsigned quad = lane % 16 / 4;
      for (unsigned i = 0; i < 4; ++i) {
        const float x = float(random.below(17)) - 8, y = float(random.below(17)) - 8;
        put(a, lane, i, x), put(b, lane, i, y);
        left.at(quad * 8 + (aByColumn ? i % 4 + (lane < 16 ? 0 : 4) : rank(lane)), aByColumn ? lane % 4 : i) = x;
        right.at(quad * 4 + (bByRow ? lane % 4 : i), bByRow ? (lane < 16 ? i : i + 4) : rank(lane)) = y;
      }
      for (unsigned i = 0; i < 8; ++i) {
        const float z = float(random.below(17)) - 8;
        type == AccumulatorType::F16 ? put(c, lane, i, z) : void(c.lanes(i)[lane] = std::bit_cast<uint32_t>(z));
        sums.at(quad * 8 + position(lane, i).row, position(lane, i).col) = z;
      }
    }
    multiplyQuadPairs({aByColumn, bByRow, type, type}, a.in(), b.in(), c.in(), d.out());
    for (unsigned lane = 0; lane < 32; ++lane)
      for (unsigned i = 0; i < 8; ++i) {
        const unsigned quad = lane % 16 / 4;
        const Position at = position(lane, i);
        double want = sums.at(quad * 8 + at.row, at.col);
        for (unsigned k = 0; k < 4; ++k)
          want += left.at(quad * 8 + at.row, k) * right.at(quad * 4 + k, at.col);
        ASSERT_EQ(accumulatorValue(type, d, lane, i), want) << "variant " << variant << " lane " << lane;
      }
  }
}

TEST(Matrix, NaNIsCanonicalAndInfinitySurvives) {
  const MatrixProduct p;
  Registers a(4), b(2), c(4), d(4);
  a.lanes(0)[0] = 0x7c00; // A[0][0] = inf
  a.lanes(0)[4] = 0xfe01; // A[1][0] = a NaN
  for (unsigned lane = 0; lane < 32; lane += 4)
    b.lanes(0)[lane] = 0x3c00; // B[0][*] = 1
  multiply(p, a.in(), b.in(), c.in(), d.out());
  EXPECT_EQ(d.lanes(0)[0], 0x7f800000u);
  EXPECT_EQ(d.lanes(1)[7], 0x7fffffffu);
  EXPECT_EQ(d.lanes(2)[0], 0u);
}

/// A's zeros past its first column have no sign, which shows where all products and C are zeros.
TEST(Matrix, SignsOfZeros) {
  const MatrixProduct p;
  Registers a(4), b(2), c(4), d(4);
  const auto fillAll = [](Registers &registers, uint32_t word) {
    std::fill(registers.words.begin(), registers.words.end(), word);
  };
  const auto product = [&](const MatrixKernel &kernel, uint32_t left, uint32_t right) {
    fillAll(a, left), fillAll(b, right), fillAll(c, 0x80000000);
    kernel.multiply(p, a.in(), b.in(), c.in(), d.out());
    return d.lanes(0)[0];
  };
  for (const MatrixKernel &kernel : matrixKernels()) {
    SCOPED_TRACE(kernel.name);
    EXPECT_EQ(product(kernel, 0x3c003c00, 0x80008000), 0x80000000u);
    EXPECT_EQ(product(kernel, 0x80008000, 0x3c003c00), 0u);
    EXPECT_EQ(product(kernel, 0x80008000, 0xbc00bc00), 0u);
    EXPECT_EQ(product(kernel, 0x00000000, 0xbc00bc00), 0x80000000u);
  }
}

TEST(Matrix, SpecialFloat8) {
  const MatrixProduct p{{16, 8, 32}, MatrixType::E5M2, MatrixType::E4M3};
  Registers a(4), b(2), c(4), d(4);
  a.lanes(0)[0] = 0x7c; // A[0][0] = inf
  a.lanes(0)[4] = 0xfd; // A[1][0] = a NaN
  a.lanes(0)[8] = 0xfc; // A[2][0] = -inf
  a.lanes(1)[0] = 0x3c; // A[8][0] = 1
  a.lanes(1)[4] = 0x7b; // A[9][0] = 57344
  for (unsigned lane = 0; lane < 28; lane += 4)
    b.lanes(0)[lane] = 0x38;                              // B[0][0 to 6] = 1, B[0][7] = 0
  c.lanes(0)[8] = 0x7f800000, c.lanes(2)[0] = 0xff800000; // C[2][0], C[8][0]
  for (const MatrixKernel &kernel : matrixKernels()) {
    SCOPED_TRACE(kernel.name);
    kernel.multiply(p, a.in(), b.in(), c.in(), d.out());
    EXPECT_EQ(d.lanes(0)[0], 0x7f800000u);
    EXPECT_EQ(d.lanes(1)[3], 0x7fffffffu) << "inf * 0";
    EXPECT_EQ(d.lanes(1)[4], 0x7fffffffu);
    EXPECT_EQ(d.lanes(0)[8], 0x7fffffffu) << "inf - inf";
    EXPECT_EQ(d.lanes(1)[8], 0xff800000u);
    EXPECT_EQ(d.lanes(2)[0], 0xff800000u);
    EXPECT_EQ(d.lanes(3)[0], 0x3f800000u);
    EXPECT_EQ(std::bit_cast<float>(d.lanes(2)[4]), 57344.0f);
    EXPECT_EQ(d.lanes(0)[12], 0u);
  }
}

/// mma.sync of 8-bit floats: in halves of k, or as f16 whose sums miss nothing of these.
TEST(Matrix, Float8OfMma) {
  test::Random random;
  const MatrixProduct p{{16, 8, 32}, MatrixType::E4M3, MatrixType::E5M2};
  Registers a(4), b(2), c(4), halves(4), whole(4), widened(4);
  for (const bool small : {true, false}) {
    fill(random, a, p.a), fill(random, b, p.b), fill(random, c, p.c);
    for (unsigned i = 0; i < 4 * 64 && small; ++i) { // 1 and -2: sums are exact in any order
      a.words[i] = (a.words[i] & 0x80808080) | 0x38383838;
      b.words[i % (2 * 64)] = (b.words[i % (2 * 64)] & 0x80808080) | 0x40404040;
      c.words[i] = 0x40400000;
    }
    multiply(p, a.in(), b.in(), c.in(), whole.out());
    multiplyHalves(p, a.in(), b.in(), c.in(), halves.out());
    multiplyWidened(p, a.in(), b.in(), c.in(), widened.out());
    EXPECT_EQ(halves.words == whole.words, small);
    EXPECT_EQ(widened.words == whole.words, small);
  }
  for (auto run : {multiplyHalves, multiplyWidened}) { // over A
    Registers over(4), apart(4);
    over.words = a.words;
    run(p, over.in(), b.in(), c.in(), over.out());
    run(p, a.in(), b.in(), c.in(), apart.out());
    for (unsigned i = 0; i < 4; ++i)
      EXPECT_TRUE(std::equal(over.lanes(i), over.lanes(i) + 32, apart.lanes(i)));
  }
  for (unsigned lane = 0; lane < 32; ++lane)
    for (unsigned i = 0; i < accumulatorElements(p.shape); ++i) {
      const Position at = accumulatorPosition(p.shape, lane, i);
      double want = accumulatorValue(p.c, c, lane, i), magnitude = std::fabs(want);
      for (unsigned other = 0; other < 32; ++other)
        for (unsigned x = 0; x < 16; ++x)
          if (const Position left = multiplicandPosition(Operand::A, p.shape, 8, other, x); left.row == at.row)
            for (unsigned third = 0; third < 32; ++third)
              for (unsigned y = 0; y < 8; ++y)
                if (multiplicandPosition(Operand::B, p.shape, 8, third, y) == Position{left.col, at.col}) {
                  const double product = multiplicandValue(p.a, a, other, x) * multiplicandValue(p.b, b, third, y);
                  want += product, magnitude += std::fabs(product);
                }
      EXPECT_NEAR(accumulatorValue(p.d, widened, lane, i), want, magnitude * 0x1p-20);
      EXPECT_NEAR(accumulatorValue(p.d, halves, lane, i), want, magnitude * 36 * 0x1p-12);
    }
}

/// PTX ISA "ldmatrix": thread t of matrix i gets elements 2 (t % 4) and the next of row t / 4.
TEST(Matrix, LoadStoreTranspose) {
  uint16_t matrix[8][8], back[8][8];
  const std::byte *rows[8];
  std::byte *to[8];
  for (unsigned row = 0; row < 8; ++row) {
    rows[row] = reinterpret_cast<const std::byte *>(matrix[row]);
    to[row] = reinterpret_cast<std::byte *>(back[row]);
    for (unsigned col = 0; col < 8; ++col)
      matrix[row][col] = uint16_t(row * 8 + col);
  }
  uint32_t lanes[32], turned[32], moved[32];
  loadMatrix(rows, false, lanes);
  loadMatrix(rows, true, turned);
  transposeMatrix(lanes, moved);
  for (unsigned t = 0; t < 32; ++t) {
    const unsigned row = t / 4, col = t % 4 * 2;
    EXPECT_EQ(lanes[t], pack16(matrix[row][col], matrix[row][col + 1]));
    EXPECT_EQ(turned[t], pack16(matrix[col][row], matrix[col + 1][row]));
    EXPECT_EQ(moved[t], turned[t]);
  }
  storeMatrix(lanes, false, to);
  EXPECT_EQ(std::memcmp(back, matrix, sizeof back), 0);
  storeMatrix(turned, true, to);
  EXPECT_EQ(std::memcmp(back, matrix, sizeof back), 0);
}

} // namespace
} // namespace weft::simulator::semantics

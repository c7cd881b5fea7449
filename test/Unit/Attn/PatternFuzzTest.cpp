// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Random patterns against their definitions, pair by pair: membership, block classes, transposes, simplification.
#include "CountingArithmetic.h"
#include "Patterns.h"
#include "dialects/Attn/Pattern/Simplify.h"
#include "dialects/Attn/Pattern/Transpose.h"
#include <gtest/gtest.h>

using namespace weft::attn;
using namespace weft::attn::test;
using mlir::Attribute;

namespace {

/// A pattern and what it means, written down a second time.
struct Sample {
  Attribute pattern;
  Reference belongs;
};

int64_t floorDiv(int64_t x, int64_t y) { return x / y - (x % y != 0 && x < 0); }

class Samples {
public:
  explicit Samples(uint32_t seed) : numbers(seed) {}

  int64_t between(int64_t least, int64_t most) { return std::uniform_int_distribution<int64_t>(least, most)(numbers); }

  /// A composition of at most `depth` levels above the leaves.
  Sample any(int depth) {
    if (depth == 0 || between(0, 4) == 0)
      return leaf();
    switch (between(0, 5)) {
    case 0:
      return combined(depth, true);
    case 1:
      return combined(depth, false);
    case 2: {
      Sample part = any(depth - 1);
      return {NotAttr::get(&context(), part.pattern),
              [f = part.belongs](int64_t h, int64_t n, int64_t m, int64_t N, int64_t M) { return !f(h, n, m, N, M); }};
    }
    case 3: {
      Sample part = any(depth - 1);
      int64_t by = between(-6, 6);
      return {ShiftAttr::get(&context(), part.pattern, by),
              [f = part.belongs, by](int64_t h, int64_t n, int64_t m, int64_t N, int64_t M) {
                return f(h, n, m - by, N, M);
              }};
    }
    case 4: {
      Sample part = any(depth - 1);
      return {TransposeAttr::get(&context(), part.pattern),
              [f = part.belongs](int64_t h, int64_t n, int64_t m, int64_t N, int64_t M) { return f(h, m, n, M, N); }};
    }
    default: {
      Sample first = any(depth - 1), second = any(depth - 1);
      return {PerHeadAttr::get(&context(), {first.pattern, second.pattern, first.pattern}),
              [f = first.belongs, g = second.belongs](int64_t h, int64_t n, int64_t m, int64_t N, int64_t M) {
                return h == 1 ? g(h, n, m, N, M) : f(h, n, m, N, M);
              }};
    }
    }
  }

private:
  Sample combined(int depth, bool all) {
    std::vector<Reference> parts;
    llvm::SmallVector<Attribute> patterns;
    for (int64_t i = between(1, 3); i > 0; --i) {
      Sample part = any(depth - 1);
      parts.push_back(part.belongs);
      patterns.push_back(part.pattern);
    }
    Attribute joined =
        all ? Attribute(AndAttr::get(&context(), patterns)) : Attribute(OrAttr::get(&context(), patterns));
    return {joined, [parts, all](int64_t h, int64_t n, int64_t m, int64_t N, int64_t M) {
              for (const Reference &part : parts)
                if (part(h, n, m, N, M) != all)
                  return !all;
              return all;
            }};
  }

  /// A leaf from its text and its definition in terms of the query's position p and the key m.
  Sample leaf() {
    auto byPosition = [](const std::string &text, std::function<bool(int64_t p, int64_t m)> belongs) -> Sample {
      return {pattern(text),
              [belongs](int64_t, int64_t n, int64_t m, int64_t N, int64_t M) { return belongs(n + M - N, m); }};
    };
    int64_t x = between(0, 12), y = between(0, 12), w = between(1, 9);
    std::string a = std::to_string(x), b = std::to_string(y), c = std::to_string(w);
    switch (between(0, 13)) {
    case 0:
      return byPosition("full", [](int64_t, int64_t) { return true; });
    case 1:
      return byPosition("empty", [](int64_t, int64_t) { return false; });
    case 2:
    case 3:
      return byPosition("causal", [](int64_t p, int64_t m) { return m <= p; });
    case 4:
      return byPosition("window<left = " + a + ", right = " + b + ">",
                        [=](int64_t p, int64_t m) { return p - x <= m && m <= p + y; });
    case 5:
      return byPosition("window<left = " + std::to_string(x - 6) + ">",
                        [=](int64_t p, int64_t m) { return m >= p - (x - 6); });
    case 6:
      return byPosition("window<left = " + std::to_string(x - 4) + ", right = " + std::to_string(y - 4) + ">",
                        [=](int64_t p, int64_t m) { return p - (x - 4) <= m && m <= p + (y - 4); });
    case 7:
      return byPosition("block_window<[" + c + "]>",
                        [=](int64_t p, int64_t m) { return floorDiv(p, w) == floorDiv(m, w); });
    case 8:
      return byPosition("prefix<" + a + ">", [=](int64_t, int64_t m) { return m < x; });
    case 9:
      return byPosition("global_tokens<" + a + ">", [=](int64_t p, int64_t m) { return p < x || m < x; });
    case 10:
      return byPosition("strided<" + c + ">", [=](int64_t p, int64_t m) { return (p - m) % w == 0; });
    case 11:
      return byPosition("dilated<step = " + c + ", width = " + std::to_string(x / 4) + ">",
                        [=](int64_t p, int64_t m) { return (p - m) % w == 0 && std::abs(p - m) <= w * (x / 4); });
    case 12: {
      // The window of `taps` keys nearest to the query, earlier ones first where two are as near.
      int64_t taps = between(1, w), size = w + x;
      return byPosition("neighbourhood<shape = [" + std::to_string(size) + "], kernel = [" + std::to_string(taps) +
                            "], dilation = [1]>",
                        [=](int64_t p, int64_t m) {
                          if (p < 0 || p >= size || m < 0 || m >= size)
                            return false;
                          int64_t start = p - taps / 2;
                          start = start < 0 ? 0 : start > size - taps ? size - taps : start;
                          return m >= start && m < start + taps;
                        });
    }
    default: {
      int64_t rows = between(1, 4), columns = between(1, 5), wr = between(1, 3), wc = between(1, 3);
      auto list = [](int64_t i, int64_t j) { return "[" + std::to_string(i) + ", " + std::to_string(j) + "]"; };
      return byPosition("block_window<" + list(wr, wc) + ", grid = " + list(rows, columns) + ">",
                        [=](int64_t p, int64_t m) {
                          if (p < 0 || p >= rows * columns || m < 0 || m >= rows * columns)
                            return false;
                          return p / columns / wr == m / columns / wr && p % columns / wc == m % columns / wc;
                        });
    }
    }
  }

  std::mt19937 numbers;
};

/// How many patterns took which path.
struct Tally {
  int patterns = 0, segmented = 0, simplified = 0;
};

/// The classes of the blocks of rows begin .. end - 1 as `rowSegments` has them; nothing where it has none.
template <class A>
std::optional<std::string> segmentClasses(A &a, Attribute pattern, int64_t begin, int64_t end, int64_t h, int64_t N,
                                          int64_t M, int64_t blockN, std::function<typename A::Int(int64_t)> number,
                                          std::function<int64_t(typename A::Int)> valueOf,
                                          std::optional<typename A::Bool> mayBeFull = {}) {
  RowBlock<A> rows{number(begin), number(end), number(h), number(N), number(M)};
  rows.mayBeFull = mayBeFull;
  auto segments = rowSegments(a, pattern, rows, blockN);
  if (!segments)
    return std::nullopt;
  std::string found = classes<A>(*segments, M, blockN, valueOf);
  // Segments that adjoin are a run without gaps: what one loop walks is no more than what they are.
  if (segments->size() > 1 && llvm::all_of(llvm::drop_begin(*segments), [](auto &each) { return each.adjoins; }))
    for (int64_t block = valueOf(segments->front().begin); block < valueOf(segments->back().end); ++block)
      EXPECT_NE(found.at(block), '.') << "block " << block << " of " << found << " lies between segments";
  return found;
}

} // namespace

TEST(PatternFuzz, AgreesWithDefinitions) {
  Samples samples(seed());
  Tally tally;
  for (; tally.patterns < 10000; ++tally.patterns) {
    Sample sample = samples.any(samples.between(0, 4));
    int64_t N = samples.between(1, 22), M = samples.between(0, 2) == 0 ? N : samples.between(1, 22);
    int64_t h = samples.between(0, 2), blockM = samples.between(1, 9), blockN = samples.between(1, 9);
    SCOPED_TRACE("WEFT_SEED=" + std::to_string(seed()) + " pattern " + std::to_string(tally.patterns) + ": " +
                 text(sample.pattern) + ", N = " + std::to_string(N) + ", M = " + std::to_string(M) +
                 ", h = " + std::to_string(h));

    Lengths known[] = {{}, Lengths::of(N, M), {std::nullopt, std::nullopt, M - N}};
    Attribute simple = simplifyPattern(sample.pattern, known[samples.between(0, 2)]);
    Attribute transposed = transposePattern(sample.pattern, known[samples.between(0, 2)]);
    tally.simplified += simple != sample.pattern;
    ASSERT_EQ(simplifyPattern(simple), simplifyPattern(simplifyPattern(simple)));
    std::vector<char> dense(N * M);
    for (int64_t n = 0; n < N; ++n)
      for (int64_t m = 0; m < M; ++m) {
        dense[n * M + m] = sample.belongs(h, n, m, N, M);
        ASSERT_EQ(has(sample.pattern, n, m, N, M, h), bool(dense[n * M + m])) << n << ", " << m;
        ASSERT_EQ(has(simple, n, m, N, M, h), bool(dense[n * M + m])) << text(simple) << " at " << n << ", " << m;
        ASSERT_EQ(has(transposed, m, n, M, N, h), sample.belongs(h, n, m, N, M))
            << text(transposed) << " at " << m << ", " << n;
      }

    HostArithmetic host;
    CountingArithmetic counting;
    using Int = CountingArithmetic::Int;
    bool lengthsKnown = samples.between(0, 1);
    bool both = false;
    for (int64_t begin = 0; begin < N; begin += blockM) {
      int64_t end = std::min(begin + blockM, N);
      std::string expected = classes([&](int64_t n, int64_t m) { return dense[n * M + m]; }, begin, end, M, blockN);
      auto byHost = segmentClasses<HostArithmetic>(
          host, sample.pattern, begin, end, h, N, M, blockN, [](int64_t x) { return x; }, [](int64_t x) { return x; });
      auto byCode = segmentClasses<CountingArithmetic>(
          counting, sample.pattern, begin, end, h, N, M, blockN,
          [&](int64_t x) { return Int{x, lengthsKnown && (x == N || x == M) && x != begin && x != end && x != h}; },
          [](Int x) { return x.value; });
      if (byHost)
        ASSERT_EQ(*byHost, expected) << "rows " << begin << " to " << end << ", blocks of " << blockN;
      std::string partial = expected;
      std::replace(partial.begin(), partial.end(), 'F', 'p');
      for (bool mayBeFull : {false, true}) {
        auto handed = segmentClasses<HostArithmetic>(
            host, sample.pattern, begin, end, h, N, M, blockN, [](int64_t x) { return x; }, [](int64_t x) { return x; },
            mayBeFull);
        ASSERT_EQ(handed.has_value(), byHost.has_value());
        if (handed)
          ASSERT_EQ(*handed, mayBeFull ? expected : partial)
              << "rows " << begin << " to " << end << ", blocks of " << blockN;
      }
      if (byCode)
        ASSERT_EQ(*byCode, expected) << "rows " << begin << " to " << end << ", blocks of " << blockN << ", emitted";
      both = byHost && byCode;
    }
    tally.segmented += both;
    for (int64_t begin = 0; begin < M; begin += blockM) {
      int64_t end = std::min(begin + blockM, M);
      auto columns = segmentClasses<HostArithmetic>(
          host, transposed, begin, end, h, M, N, blockN, [](int64_t x) { return x; }, [](int64_t x) { return x; });
      if (columns)
        ASSERT_EQ(*columns, classes([&](int64_t m, int64_t n) { return dense[n * M + m]; }, begin, end, N, blockN))
            << text(transposed) << ", columns " << begin << " to " << end;
    }
  }
  std::printf("%d patterns, %d with segments, %d simplified (seed %u)\n", tally.patterns, tally.segmented,
              tally.simplified, seed());
  EXPECT_GT(tally.segmented, tally.patterns / 3);
  EXPECT_GT(tally.simplified, tally.patterns / 4);
}

TEST(PatternFuzz, SectionsAreOfTheWhole) {
  Samples samples(seed());
  int patterns = 0, segmented = 0;
  for (; patterns < 4000; ++patterns) {
    Sample sample = samples.any(samples.between(0, 3));
    int64_t N = samples.between(1, 14), M = samples.between(1, 14), h = samples.between(0, 2);
    int32_t row = samples.between(0, 12), key = samples.between(0, 12);
    int32_t allRows = row + N + samples.between(0, 5), allKeys = key + M + samples.between(0, 5);
    int64_t blockM = samples.between(1, 9), blockN = samples.between(1, 9);
    Attribute section = SectionAttr::get(&context(), sample.pattern, 0, 1);
    SCOPED_TRACE("WEFT_SEED=" + std::to_string(seed()) + " pattern " + std::to_string(patterns) + ": " + text(section) +
                 ", rows from " + std::to_string(row) + " of " + std::to_string(allRows) + ", keys from " +
                 std::to_string(key) + " of " + std::to_string(allKeys));
    int32_t values[] = {row, allRows, key, allKeys};
    HostOperand places[] = {{llvm::ArrayRef(values).take_front(2), {2}}, {llvm::ArrayRef(values).drop_front(2), {2}}};
    HostArithmetic host(places, {}, 3);
    CountingArithmetic counting;
    counting.places = {{row, allRows}, {key, allKeys}};
    Attribute simple = simplifyPattern(section, Lengths::of(N, M)), transposed = transposePattern(section);
    std::vector<char> dense(N * M);
    for (int64_t n = 0; n < N; ++n)
      for (int64_t m = 0; m < M; ++m) {
        bool belongs = dense[n * M + m] = sample.belongs(h, n + row, m + key, allRows, allKeys);
        ASSERT_EQ(contains(host, section, Place<HostArithmetic>{0, h, n, m, N, M}), belongs) << n << ", " << m;
        ASSERT_EQ(contains(host, simple, Place<HostArithmetic>{0, h, n, m, N, M}), belongs) << text(simple);
        ASSERT_EQ(contains(host, transposed, Place<HostArithmetic>{0, h, m, n, M, N}), belongs) << text(transposed);
      }
    using Int = CountingArithmetic::Int;
    auto same = [](int64_t x) { return x; };
    bool byFormula = false;
    for (int64_t begin = 0; begin < N; begin += blockM) {
      int64_t end = std::min(begin + blockM, N);
      std::string expected = classes([&](int64_t n, int64_t m) { return dense[n * M + m]; }, begin, end, M, blockN);
      auto byHost = segmentClasses<HostArithmetic>(host, section, begin, end, h, N, M, blockN, same, same);
      auto byCode = segmentClasses<CountingArithmetic>(counting, section, begin, end, h, N, M, blockN,
                                                       CountingArithmetic::unknown, [](Int x) { return x.value; });
      ASSERT_EQ(byCode.has_value(), hasSegments(section));
      byFormula = byHost && byCode;
      if (byHost)
        ASSERT_EQ(*byHost, expected) << "rows " << begin << " to " << end << ", blocks of " << blockN;
      if (byCode)
        ASSERT_EQ(*byCode, expected) << "rows " << begin << " to " << end << ", blocks of " << blockN << ", emitted";
    }
    segmented += byFormula;
    for (int64_t begin = 0; begin < M; begin += blockM) {
      int64_t end = std::min(begin + blockM, M);
      auto columns = segmentClasses<HostArithmetic>(host, transposed, begin, end, h, M, N, blockN, same, same);
      if (columns)
        ASSERT_EQ(*columns, classes([&](int64_t m, int64_t n) { return dense[n * M + m]; }, begin, end, N, blockN));
    }
  }
  std::printf("%d sections, %d with segments (seed %u)\n", patterns, segmented, seed());
  EXPECT_GT(segmented, patterns / 3);
}

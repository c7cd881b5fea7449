// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the tests of patterns share: a context, patterns from text, the seed, dense matrices and the classes of blocks.
#pragma once

#include "dialects/Attn/IR/AttnDialect.h"
#include "dialects/Attn/Pattern/HostArithmetic.h"
#include "dialects/Attn/Pattern/Membership.h"
#include "dialects/Attn/Pattern/Segments.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/MLIRContext.h"
#include <cstdlib>
#include <functional>
#include <random>
#include <string>
#include <vector>

namespace weft::attn::test {

/// The seed of a test's random numbers: WEFT_SEED, or a new one for each run. Tests print it where they fail.
inline uint32_t seed() {
  static const uint32_t value = [] {
    const char *given = std::getenv("WEFT_SEED");
    return given ? static_cast<uint32_t>(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  }();
  return value;
}

inline mlir::MLIRContext &context() {
  static mlir::MLIRContext context(mlir::MLIRContext::Threading::DISABLED);
  context.loadDialect<AttnDialect>();
  return context;
}

/// The pattern `#attn.TEXT`; null, with a diagnostic, where the text spells none.
inline mlir::Attribute pattern(const std::string &text) { return mlir::parseAttribute("#attn." + text, &context()); }

inline std::string text(mlir::Attribute attribute) {
  std::string out;
  llvm::raw_string_ostream(out) << attribute;
  return out;
}

/// Whether a pair of a head belongs, of N queries and M keys.
using Reference = std::function<bool(int64_t h, int64_t n, int64_t m, int64_t N, int64_t M)>;

/// `contains` on the host, for one head.
inline bool has(mlir::Attribute pattern, int64_t n, int64_t m, int64_t N, int64_t M, int64_t h = 0) {
  HostArithmetic host;
  return contains(host, pattern, Place<HostArithmetic>{0, h, n, m, N, M});
}

/// A row of characters for each query: '#' where the pair belongs, '.' where not.
inline std::string matrix(mlir::Attribute pattern, int64_t N, int64_t M, int64_t h = 0) {
  std::string rows;
  for (int64_t n = 0; n < N; ++n) {
    for (int64_t m = 0; m < M; ++m)
      rows += has(pattern, n, m, N, M, h) ? '#' : '.';
    rows += n + 1 < N ? "\n" : "";
  }
  return rows;
}

/// The classes of the blocks that rows begin .. end - 1 have by the pairs themselves: '.' none, 'p' some, 'F' all and
/// below M.
template <typename Belongs>
std::string classes(Belongs belongs, int64_t begin, int64_t end, int64_t M, int64_t blockN) {
  std::string result;
  for (int64_t first = 0; first < M; first += blockN) {
    int64_t some = 0;
    for (int64_t n = begin; n < end; ++n)
      for (int64_t m = first; m < std::min(first + blockN, M); ++m)
        some += belongs(n, m);
    result += some == 0 ? '.' : some == (end - begin) * blockN ? 'F' : 'p';
  }
  return result;
}

/// The same by segments; '!' where two cover a block, and a line about what is out of order.
template <class A>
std::string classes(const std::vector<Segment<A>> &segments, int64_t M, int64_t blockN,
                    std::function<int64_t(typename A::Int)> valueOf) {
  std::string result((M + blockN - 1) / blockN, '.');
  int64_t past = 0;
  for (const Segment<A> &segment : segments) {
    int64_t begin = valueOf(segment.begin), end = valueOf(segment.end);
    if (begin >= end)
      continue;
    if (begin < past || end > static_cast<int64_t>(result.size()))
      return result + " then " + std::to_string(begin) + " to " + std::to_string(end);
    past = end;
    for (int64_t block = begin; block < end; ++block)
      result[block] = segment.full ? 'F' : 'p';
  }
  return result;
}

} // namespace weft::attn::test

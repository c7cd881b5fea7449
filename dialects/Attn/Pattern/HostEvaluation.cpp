// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A pattern evaluated on the host.
#include "dialects/Attn/Pattern/HostEvaluation.h"
#include "dialects/Attn/Pattern/Membership.h"
#include "dialects/Attn/Pattern/Segments.h"
#include "llvm/ADT/Twine.h"

using namespace mlir;
using namespace weft::attn;

namespace {

using Fault = std::optional<std::string>;

int64_t divideCeil(int64_t x, int64_t y) { return (x + y - 1) / y; }

/// The checks of one instance; lengths are exchanged inside transposes.
class Checker {
public:
  explicit Checker(const PatternInstance &instance) : instance(instance) {}

  Fault check(Attribute pattern, int64_t N, int64_t M) const {
    auto all = [&](ArrayRef<Attribute> parts) -> Fault {
      for (Attribute part : parts)
        if (Fault fault = check(part, N, M))
          return fault;
      return std::nullopt;
    };
    return llvm::TypeSwitch<Attribute, Fault>(pattern)
        .Case<AndAttr, OrAttr>([&](auto part) { return all(part.getPatterns()); })
        .Case<NotAttr, ShiftAttr>([&](auto part) { return check(part.getPattern(), N, M); })
        .Case([&](TransposeAttr part) { return check(part.getPattern(), M, N); })
        .Case([&](KeptAttr part) { return all({part.getPattern(), part.getWeights()}); })
        .Case([&](PerHeadAttr part) -> Fault {
          if (static_cast<int64_t>(part.getPatterns().size()) != instance.heads)
            return ("expected a pattern for each of " + llvm::Twine(instance.heads) + " heads, but got " +
                    llvm::Twine(part.getPatterns().size()))
                .str();
          return all(part.getPatterns());
        })
        .Case([&](DocumentAttr part) -> Fault {
          if (Fault fault = ids("query", part.getQueryIds(), N))
            return fault;
          return ids("key", part.getKeyIds(), M);
        })
        .Case([&](BlocksAttr part) -> Fault {
          int64_t rows = divideCeil(N, part.getBlockM());
          if (Fault fault = table("index", part.getIndex(), {rows, 0}))
            return fault;
          return table("count", part.getCount(), {rows});
        })
        .Case([&](BlockBitmapAttr part) {
          return table("bits", part.getBits(), {divideCeil(N, part.getBlockM()), divideCeil(M, part.getBlockN())});
        })
        .Case([&](SpanAttr part) { return span(part, N, M); })
        .Case([&](SectionAttr part) { return section(part, N, M); })
        .Case([&](MaskAttr part) -> Fault {
          if (part.getRegion() >= 0 && part.getRegion() < static_cast<int64_t>(instance.masks.size()))
            return std::nullopt;
          return missing("mask", part.getRegion(), instance.masks.size());
        })
        .Default([](Attribute) { return std::nullopt; });
  }

private:
  static Fault missing(const char *what, int64_t number, size_t count) {
    return (llvm::Twine("expected ") + what + " " + llvm::Twine(number) + ", but got " + llvm::Twine(count)).str();
  }

  Fault present(int64_t number) const {
    if (number >= 0 && number < static_cast<int64_t>(instance.operands.size()))
      return std::nullopt;
    return missing("operand", number, instance.operands.size());
  }

  Fault ids(const char *whose, int64_t number, int64_t length) const {
    if (Fault fault = present(number))
      return fault;
    ArrayRef<int64_t> shape = instance.operands[number].shape;
    if ((shape.size() == 1 || (shape.size() == 2 && isOneOr(shape[0], instance.batches))) && shape.back() == length)
      return std::nullopt;
    return (llvm::Twine("expected ") + whose + " ids of " + llvm::Twine(length) + " tokens, or [" +
            llvm::Twine(instance.batches) + ", " + llvm::Twine(length) + "], but got [" + spelled(shape) + "]")
        .str();
  }

  /// A tensor over batches and heads with at least these sizes after them.
  Fault table(const char *what, int64_t number, ArrayRef<int64_t> least) const {
    if (Fault fault = present(number))
      return fault;
    ArrayRef<int64_t> shape = instance.operands[number].shape;
    bool fits =
        shape.size() == least.size() + 2 && isOneOr(shape[0], instance.batches) && isOneOr(shape[1], instance.heads);
    for (size_t i = 0; fits && i < least.size(); ++i)
      fits = shape[i + 2] >= least[i];
    if (fits)
      return std::nullopt;
    return (llvm::Twine("expected '") + what + "' of [" + llvm::Twine(instance.batches) + ", " +
            llvm::Twine(instance.heads) + ", " + spelled(least) + "] or more blocks, but got [" + spelled(shape) + "]")
        .str();
  }

  /// The tables of a span: their shapes, and what is promised of their values.
  Fault span(SpanAttr part, int64_t N, int64_t M) const {
    std::tuple<const char *, int64_t, int64_t, int64_t> tables[] = {{"lower", part.getLower(), N, M},
                                                                    {"upper", part.getUpper(), N, M},
                                                                    {"first", part.getFirst(), M, N},
                                                                    {"past", part.getPast(), M, N}};
    for (auto [name, number, length, most] : tables)
      if (Fault fault = bounds(name, number, length, most))
        return fault;
    return std::nullopt;
  }

  /// Bounds [B, Hkv, length] from 0 to `most` that never fall along the sequence.
  Fault bounds(const char *name, int64_t number, int64_t length, int64_t most) const {
    if (Fault fault = present(number))
      return fault;
    const HostOperand &table = instance.operands[number];
    ArrayRef<int64_t> shape = table.shape;
    auto said = [&](const llvm::Twine &text) { return (llvm::Twine("expected '") + name + "' " + text).str(); };
    if (shape.size() != 3 || !isOneOr(shape[0], instance.batches) || shape[1] < 1 || instance.heads % shape[1] ||
        shape[2] != length)
      return said(llvm::Twine("of [") + llvm::Twine(instance.batches) + ", " + llvm::Twine(instance.heads) + ", " +
                  llvm::Twine(length) + "], or of heads that several queries' share, but got [" + spelled(shape) + "]");
    for (int64_t i = 0, count = table.values.size(); i < count; ++i) {
      int32_t value = table.values[i];
      if (value < 0 || value > most)
        return said(llvm::Twine("from 0 to ") + llvm::Twine(most) + ", but got " + llvm::Twine(value));
      if (i % length != 0 && table.values[i - 1] > value)
        return said(llvm::Twine("never to fall along the sequence, but got ") + llvm::Twine(table.values[i - 1]) +
                    " before " + llvm::Twine(value));
    }
    return std::nullopt;
  }

  /// Where a section lies, and what it is of.
  Fault section(SectionAttr part, int64_t N, int64_t M) const {
    for (auto [what, number, count] : {std::tuple("rows", part.getRows(), N), std::tuple("keys", part.getKeys(), M)}) {
      if (Fault fault = present(number))
        return fault;
      const HostOperand &place = instance.operands[number];
      if (ArrayRef<int64_t>(place.shape) != ArrayRef<int64_t>{2})
        return ("expected '" + llvm::Twine(what) +
                "' of a section [2], the first one and how many the whole has, but got [" + spelled(place.shape) + "]")
            .str();
      if (int64_t first = place.values[0], whole = place.values[1]; first < 0 || first + count > whole)
        return ("expected " + llvm::Twine(count) + " " + what + " of a section to lie among " + llvm::Twine(whole) +
                ", but they begin at " + llvm::Twine(first))
            .str();
    }
    return check(part.getPattern(), instance.operands[part.getRows()].values[1],
                 instance.operands[part.getKeys()].values[1]);
  }

  static bool isOneOr(int64_t size, int64_t wanted) { return size == 1 || size == wanted; }
  static std::string spelled(ArrayRef<int64_t> sizes) {
    return llvm::join(llvm::map_range(sizes, [](int64_t size) { return std::to_string(size); }), ", ");
  }

  const PatternInstance &instance;
};

/// Asks about pairs of one instance.
class Oracle {
public:
  explicit Oracle(const PatternInstance &instance) : instance(instance) {}

  bool operator()(int64_t b, int64_t h, int64_t n, int64_t m) const {
    // A mask is given by the matrix's own pairs, not by those of a shifted or transposed view.
    auto mask = [&](int64_t region, int64_t, int64_t, int64_t, int64_t) {
      int64_t row = (b * instance.heads + h) * instance.N + n;
      return instance.masks[region][row * instance.M + m] != 0;
    };
    HostArithmetic arithmetic(instance.operands, mask, instance.heads);
    return contains(arithmetic, instance.pattern, Place<HostArithmetic>{b, h, n, m, instance.N, instance.M});
  }

private:
  const PatternInstance &instance;
};

/// The class of a block, pair by pair.
uint8_t classOf(const Oracle &oracle, int64_t b, int64_t h, int64_t firstRow, int64_t endRow, int64_t first,
                int64_t end) {
  bool some = false, all = true;
  for (int64_t n = firstRow; n < endRow; ++n)
    for (int64_t m = first; m < end; ++m) {
      bool belongs = oracle(b, h, n, m);
      some |= belongs;
      all &= belongs;
      if (some && !all)
        return 1;
    }
  return some ? 2 : 0;
}

} // namespace

std::optional<std::string> weft::attn::findFault(const PatternInstance &instance) {
  return Checker(instance).check(instance.pattern, instance.N, instance.M);
}

void weft::attn::fillMatrix(const PatternInstance &instance, MutableArrayRef<uint8_t> matrix) {
  Oracle oracle(instance);
  size_t next = 0;
  for (int64_t b = 0; b < instance.batches; ++b)
    for (int64_t h = 0; h < instance.heads; ++h)
      for (int64_t n = 0; n < instance.N; ++n)
        for (int64_t m = 0; m < instance.M; ++m)
          matrix[next++] = oracle(b, h, n, m);
}

void weft::attn::fillSummary(const PatternInstance &instance, int64_t blockM, int64_t blockN,
                             MutableArrayRef<uint8_t> summary) {
  Oracle oracle(instance);
  HostArithmetic host(instance.operands, {}, instance.heads);
  int64_t N = instance.N, M = instance.M, columns = divideCeil(M, blockN);
  auto row = summary.begin();
  for (int64_t b = 0; b < instance.batches; ++b)
    for (int64_t h = 0; h < instance.heads; ++h)
      for (int64_t begin = 0; begin < N; begin += blockM, row += columns) {
        int64_t end = std::min(begin + blockM, N);
        auto segments = rowSegments(host, instance.pattern, RowBlock<HostArithmetic>{begin, end, h, N, M, b}, blockN);
        // By the pattern's structure where it has one; a ragged last block, whose class there is the kernels', by its
        // pairs.
        std::fill(row, row + columns, 0);
        int64_t byPairs = segments ? M / blockN : 0;
        if (segments)
          for (const Segment<HostArithmetic> &segment : *segments)
            for (int64_t block = segment.begin; block < segment.end; ++block)
              row[block] = segment.full ? 2 : 1;
        for (int64_t block = byPairs; block < columns; ++block)
          row[block] = classOf(oracle, b, h, begin, end, block * blockN, std::min((block + 1) * blockN, M));
      }
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The matrix products of a program, from its ops before they are lowered: two operations for each multiply-add of the
// mathematics, however many kernels compute it again. Causal attention of head size 64 becomes
//
//   {"flops": "256*(B)*(H)", "queries": "N", "keys": "M",
//    "pairs": [{"bands": [{"from": [], "to": ["p+(1)"], "rows_from": [], "rows_to": []}]}]}
//
// `p` is a query's position, from M - N to M - 1.
#include "compiler/CAPI/Products.h"

#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Attn/Pattern/Bands.h"
#include "dialects/Attn/Pattern/Heads.h"
#include "dialects/Attn/Pattern/Simplify.h"
#include "llvm/ADT/TypeSwitch.h"
#include <numeric>

using namespace mlir;
using namespace weft;
using namespace weft::attn;

namespace {

/// A size as a factor of an expression.
std::string factor(StringRef size) { return ("*(" + size + ")").str(); }

std::string factors(ArrayRef<StringAttr> sizes) {
  std::string text;
  for (StringAttr size : sizes)
    text += factor(size.getValue());
  return text;
}

WholeTensorType typeOf(Value value) { return cast<WholeTensorType>(value.getType()); }

/// The band patterns' part of a pattern: what has no bands counts as full, or, in what is taken away, as empty.
Attribute inBands(Attribute pattern, bool takenAway) {
  MLIRContext *context = pattern.getContext();
  auto parts = [&](ArrayRef<Attribute> patterns) {
    return llvm::map_to_vector(patterns, [&](Attribute part) { return inBands(part, takenAway); });
  };
  Attribute bound = takenAway ? Attribute(EmptyAttr::get(context)) : Attribute(FullAttr::get(context));
  return llvm::TypeSwitch<Attribute, Attribute>(pattern)
      .Case([&](AndAttr both) { return AndAttr::get(context, parts(both.getPatterns())); })
      .Case([&](OrAttr either) { return OrAttr::get(context, parts(either.getPatterns())); })
      .Case([&](NotAttr inner) { return NotAttr::get(context, inBands(inner.getPattern(), !takenAway)); })
      .Case([&](ShiftAttr shift) {
        return ShiftAttr::get(context, inBands(shift.getPattern(), takenAway), shift.getBy());
      })
      .Case([&](TransposeAttr inner) { return TransposeAttr::get(context, inBands(inner.getPattern(), takenAway)); })
      .Case([&](DilatedAttr dilated) -> Attribute {
        int64_t reach = dilated.getStep() * dilated.getWidth();
        return takenAway ? bound : WindowAttr::get(context, reach, reach);
      })
      .Default([&](Attribute leaf) { return bandsOf(leaf, takenAway, {}) ? leaf : bound; });
}

/// The keys that a query has at most, by what no band says; nothing where only bands bound it.
std::optional<int64_t> mostKeys(Attribute pattern) {
  auto product = [](ArrayRef<int64_t> sizes) {
    return std::accumulate(sizes.begin(), sizes.end(), int64_t(1), std::multiplies<>());
  };
  return llvm::TypeSwitch<Attribute, std::optional<int64_t>>(pattern)
      .Case([&](NeighbourhoodAttr leaf) { return product(leaf.getKernel()); })
      .Case([&](BlockWindowAttr leaf) { return product(leaf.getWindow()); })
      .Case([](RandomBlocksAttr leaf) { return leaf.getPerRow() * leaf.getBlock(); })
      .Case([](DilatedAttr leaf) { return 2 * leaf.getWidth() + 1; })
      .Case([](ShiftAttr shift) { return mostKeys(shift.getPattern()); })
      .Case([](AndAttr both) {
        std::optional<int64_t> least;
        for (Attribute part : both.getPatterns())
          if (std::optional<int64_t> most = mostKeys(part))
            least = std::min(*most, least.value_or(*most));
        return least;
      })
      .Default([](Attribute) { return std::nullopt; });
}

/// The pairs of a product, for the plan.
class Pairs {
public:
  Pairs(WholeTensorType query, WholeTensorType key)
      : N(query.dim(2)), M(key.dim(2)), lengths(Lengths::of(query.staticDim(2), key.staticDim(2))) {}

  /// {"flops", "queries", "keys", "pairs"}; "pairs" is left out where every pair belongs.
  llvm::json::Object describe(std::string flops, Attribute pattern) const {
    llvm::json::Object entry{{"flops", std::move(flops)}, {"queries", N}, {"keys", M}};
    SmallVector<Attribute> united{pattern}, banded;
    if (auto either = dyn_cast<OrAttr>(pattern))
      united.assign(either.getPatterns().begin(), either.getPatterns().end());
    llvm::json::Array terms;
    for (Attribute part : united)
      if (inBands(part, false) != part && mostKeys(part))
        terms.push_back(term(part));
      else
        banded.push_back(part);
    if (!banded.empty())
      terms.push_back(term(banded.size() == 1 ? banded.front() : OrAttr::get(pattern.getContext(), banded)));
    if (llvm::none_of(terms, [](const llvm::json::Value &each) { return isAll(*each.getAsObject()); }))
      entry["pairs"] = std::move(terms);
    return entry;
  }

private:
  static bool isAll(const llvm::json::Object &term) { return !term.get("bands") && !term.get("most"); }

  /// {"bands", "most"}: pairs in one of the bands, and of each query as many as said. Without bands, all.
  llvm::json::Object term(Attribute pattern) const {
    llvm::json::Object found;
    Attribute bound = inBands(pattern, false);
    auto bands = bandsOf(simplifyPattern(bound, lengths), false, lengths);
    auto isUnbounded = [](const Band &band) {
      return band.rowsFrom.empty() && band.rowsTo.empty() && band.keysFrom.empty() && band.keysTo.empty() &&
             band.stairsFrom.empty() && band.stairsTo.empty();
    };
    if (bands && llvm::none_of(*bands, isUnbounded)) {
      llvm::json::Array list;
      for (const Band &band : *bands)
        list.push_back(describe(band));
      found["bands"] = std::move(list);
    }
    if (std::optional<int64_t> most = bound == pattern ? std::nullopt : mostKeys(pattern))
      found["most"] = *most;
    return found;
  }

  std::string spelled(Linear value) const {
    std::string text = "(" + std::to_string(value.constant) + ")";
    if (value.difference)
      text += "+(" + std::to_string(value.difference) + ")*((" + M.str() + ")-(" + N.str() + "))";
    return text;
  }

  std::string spelled(const Staircase &stairs) const {
    std::string inner = "p+" + spelled(stairs.before), step = std::to_string(stairs.step);
    if (stairs.step > 1) // Rounded down, also below 0.
      inner = "cdiv(" + inner + "-" + std::to_string(stairs.step - 1) + "," + step + ")*" + step;
    return inner + "+" + spelled(stairs.after);
  }

  llvm::json::Object describe(const Band &band) const {
    auto all = [&](const auto &bounds, llvm::json::Array list = {}) {
      for (const auto &bound : bounds)
        list.push_back(spelled(bound));
      return list;
    };
    return llvm::json::Object{{"from", all(band.stairsFrom, all(band.keysFrom))},
                              {"to", all(band.stairsTo, all(band.keysTo))},
                              {"rows_from", all(band.rowsFrom)},
                              {"rows_to", all(band.rowsTo)}};
  }

  StringRef N, M;
  Lengths lengths;
};

/// Products of an attention's pairs with `channels` multiply-adds a pair, of domain `domain`.
template <typename Op> void addPairs(Op op, unsigned domain, int64_t channels, llvm::json::Array &products) {
  WholeTensorType query = typeOf(op.getQuery()), key = typeOf(op.getKeys()[domain]);
  Pairs pairs(query, key);
  Attribute pattern = op.getPatterns()[domain];
  if (auto kept = dyn_cast<KeptAttr>(pattern))
    pattern = kept.getPattern();
  std::string each = std::to_string(2 * channels) + factor(query.dim(0));
  int64_t heads = headCount(pattern);
  if (heads == 0) {
    products.push_back(pairs.describe(each + factor(query.dim(1)), pattern));
    return;
  }
  SmallVector<Attribute> patterns;
  for (int64_t head = 0; head < heads; ++head)
    patterns.push_back(patternOfHead(pattern, head));
  for (const HeadGroup &group : headGroups(patterns)) {
    int64_t count = 0;
    for (HeadRun run : group.runs)
      count += run.end - run.begin;
    products.push_back(pairs.describe(each + factor(std::to_string(count)), group.pattern));
  }
}

/// Scores and the sum of values; a result that nobody takes costs nothing.
void addProducts(AttendOp op, llvm::json::Array &products) {
  for (unsigned i = 0; i < op.getKeys().size(); ++i) {
    int64_t channels = typeOf(op.getQuery()).staticDim(3).value_or(0);
    if (!op.getOut().use_empty())
      channels += typeOf(op.getValues()[i]).staticDim(3).value_or(0);
    addPairs(op, i, channels, products);
  }
}

/// Scores once more, the gradient of weights, and one product for each gradient that somebody takes.
void addProducts(AttendBackwardOp op, llvm::json::Array &products) {
  unsigned domains = op.getKeys().size();
  auto used = [](Value value) { return !value.use_empty(); };
  for (unsigned i = 0; i < domains; ++i) {
    int64_t keySize = typeOf(op.getQuery()).staticDim(3).value_or(0);
    int64_t valueSize = typeOf(op.getValues()[i]).staticDim(3).value_or(0);
    bool dQuery = used(op.getDQuery()), dKey = used(op.getGradients()[2 * i]),
         dValue = used(op.getGradients()[2 * i + 1]);
    bool scores = dQuery || dKey || llvm::any_of(op.getGradients().drop_front(2 * domains), used);
    addPairs(op, i, keySize * (1 + dQuery + dKey) + valueSize * (scores + dValue), products);
  }
}

/// Scores and values as ever, and a product with each tangent; one that changes scores makes other weights of values.
void addProducts(AttendTangentOp op, llvm::json::Array &products) {
  bool ofQuery = bool(op.getQueryTangent()), ofKeys = !op.getKeyTangents().empty();
  bool changes = ofQuery || ofKeys || op.getSinkTangent() || !op.getScoreModTangent().empty();
  for (unsigned i = 0; i < op.getKeys().size(); ++i) {
    int64_t keySize = typeOf(op.getQuery()).staticDim(3).value_or(0);
    int64_t valueSize = typeOf(op.getValues()[i]).staticDim(3).value_or(0);
    addPairs(op, i, keySize * (1 + ofQuery + ofKeys) + valueSize * (1 + changes + !op.getValueTangents().empty()),
             products);
  }
}

/// Scores and the gradient of weights with their tangents, of two products each, and two for each result that somebody
/// takes.
void addProducts(AttendBackwardTangentOp op, llvm::json::Array &products) {
  auto used = [](Value value) { return !value.use_empty(); };
  for (unsigned i = 0; i < op.getKeys().size(); ++i) {
    int64_t keySize = typeOf(op.getQuery()).staticDim(3).value_or(0);
    int64_t valueSize = typeOf(op.getValues()[i]).staticDim(3).value_or(0);
    bool dQuery = used(op.getDQueryTangent()), dKey = used(op.getGradientTangents()[2 * i]),
         dValue = used(op.getGradientTangents()[2 * i + 1]);
    addPairs(op, i, keySize * (3 + 2 * dQuery + 2 * dKey) + valueSize * (3 * (dQuery || dKey) + 2 * dValue), products);
  }
}

/// A product with a weight: as many multiply-adds as the weight has elements, for each of its axes' elements.
void addProducts(WeightedOpInterface op, llvm::json::Array &products) {
  std::string flops = "2" + factors(typeOf(op.weightOfProduct()).getDims()) + factors(op.axesOfProduct());
  products.push_back(llvm::json::Object{{"flops", std::move(flops)}});
}

} // namespace

llvm::json::Array weft::capi::describeProducts(func::FuncOp program) {
  llvm::json::Array products;
  program.walk([&](Operation *op) {
    llvm::TypeSwitch<Operation *>(op)
        .Case<AttendOp, AttendTangentOp, AttendBackwardOp, AttendBackwardTangentOp, WeightedOpInterface>(
            [&](auto product) { addProducts(product, products); });
  });
  return products;
}

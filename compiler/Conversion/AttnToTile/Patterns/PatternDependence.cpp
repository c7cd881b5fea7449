// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See PatternDependence.h.
#include "compiler/Conversion/AttnToTile/Patterns/PatternDependence.h"
#include "compiler/Conversion/AttnToTile/Patterns/PairBits.h"
#include "dialects/Attn/Pattern/Heads.h"

using namespace mlir;

namespace weft {

static bool isOne(Value tensor, unsigned axis) {
  return cast<attn::WholeTensorType>(tensor.getType()).dim(axis) == "1";
}

/// Whether a mask says another thing for other values of its argument: not where these are places on axes of one.
static bool matters(BlockArgument argument) {
  return llvm::any_of(argument.getUses(), [](OpOperand &use) {
    auto element = dyn_cast<attn::ElementOp>(use.getOwner());
    return !element || !isOne(element.getTensor(), use.getOperandNumber() - 1);
  });
}

static Dependence together(const Dependence &a, const Dependence &b) {
  return {a.batch || b.batch, a.head || b.head, std::gcd(a.rowStep, b.rowStep), std::gcd(a.columnStep, b.columnStep)};
}

Dependence dependenceOf(Attribute pattern, const Attend &attend) {
  auto all = [&](ArrayRef<Attribute> parts) {
    Dependence sum;
    for (Attribute part : parts)
      sum = together(sum, dependenceOf(part, attend));
    return sum;
  };
  auto blocks = [&](int64_t operand, int64_t rows, int64_t columns) {
    Value tensor = attend.patternOperands[operand];
    return Dependence{!isOne(tensor, 0), !isOne(tensor, 1), rows, columns};
  };
  if (isa<attn::FullAttr, attn::EmptyAttr>(pattern))
    return {};
  if (auto listed = dyn_cast<attn::BlocksAttr>(pattern))
    return together(blocks(listed.getIndex(), listed.getBlockM(), listed.getBlockN()),
                    blocks(listed.getCount(), listed.getBlockM(), listed.getBlockN()));
  if (auto bitmap = dyn_cast<attn::BlockBitmapAttr>(pattern))
    return blocks(bitmap.getBits(), bitmap.getBlockM(), bitmap.getBlockN());
  if (auto random = dyn_cast<attn::RandomBlocksAttr>(pattern))
    return {false, false, random.getBlock(), random.getBlock()};
  if (auto both = dyn_cast<attn::AndAttr>(pattern))
    return all(both.getPatterns());
  if (auto either = dyn_cast<attn::OrAttr>(pattern))
    return all(either.getPatterns());
  if (auto inner = dyn_cast<attn::NotAttr>(pattern))
    return dependenceOf(inner.getPattern(), attend);
  Dependence one{false, false, 1, 1};
  if (auto heads = dyn_cast<attn::PerHeadAttr>(pattern)) {
    Dependence sum = all(heads.getPatterns());
    sum.head = true;
    return sum;
  }
  if (auto shift = dyn_cast<attn::ShiftAttr>(pattern))
    return together(one, dependenceOf(shift.getPattern(), attend));
  if (auto transpose = dyn_cast<attn::TransposeAttr>(pattern))
    return together(one, dependenceOf(transpose.getPattern(), attend));
  if (auto section = dyn_cast<attn::SectionAttr>(pattern))
    return together(one, dependenceOf(section.getPattern(), attend));
  if (auto document = dyn_cast<attn::DocumentAttr>(pattern)) {
    for (int64_t ids : {document.getQueryIds(), document.getKeyIds()}) {
      auto type = cast<attn::WholeTensorType>(attend.patternOperands[ids].getType());
      one.batch |= type.getRank() == 2 && type.dim(0) != "1";
    }
  } else if (auto span = dyn_cast<attn::SpanAttr>(pattern)) {
    for (int64_t table : {span.getLower(), span.getUpper(), span.getFirst(), span.getPast()}) {
      one.batch |= !isOne(attend.patternOperands[table], 0);
      one.head |= !isOne(attend.patternOperands[table], 1);
    }
  } else if (auto mask = dyn_cast<attn::MaskAttr>(pattern)) {
    Block &body = attend.masks[mask.getRegion()]->front();
    one.batch = matters(body.getArgument(0));
    one.head = matters(body.getArgument(1));
  }
  return one;
}

bool anyPart(Attribute pattern, llvm::function_ref<bool(Attribute)> isSo) {
  return pattern.walk([&](Attribute part) { return isSo(part) ? WalkResult::interrupt() : WalkResult::advance(); })
      .wasInterrupted();
}

bool anyMask(Attribute pattern, const Attend &attend, llvm::function_ref<bool(Region &)> isSo) {
  return anyPart(pattern, [&](Attribute part) {
    auto mask = dyn_cast<attn::MaskAttr>(part);
    return mask && isSo(*attend.masks[mask.getRegion()]);
  });
}

bool tellsHeadsApart(Attribute pattern, const Attend &attend, int64_t packed) {
  StringRef heads = attend.queryType().dim(1);
  if (attn::headCount(pattern) > 1)
    return true;
  return anyPart(pattern, [&](Attribute part) {
    bool apart = false;
    if (auto mask = dyn_cast<attn::MaskAttr>(part))
      apart = matters(attend.masks[mask.getRegion()]->front().getArgument(1));
    if (auto span = dyn_cast<attn::SpanAttr>(part))
      for (int64_t table : {span.getLower(), span.getUpper(), span.getFirst(), span.getPast()}) {
        StringRef own = wholeType(attend.patternOperands[table]).dim(1);
        apart |= own != "1" && attn::headGroup(heads, own).value_or(1) % packed != 0;
      }
    return apart;
  });
}

/// Whether a region reads an element of each pair, of which its block's argument `query` and the next one are the
/// indices.
static bool readsPairs(Region &region, unsigned query) {
  Block &body = region.front();
  llvm::SmallPtrSet<Value, 8> ofQueries{body.getArgument(query)}, ofKeys{body.getArgument(query + 1)};
  for (Operation &op : body) {
    bool query = llvm::any_of(op.getOperands(), [&](Value each) { return ofQueries.contains(each); });
    bool key = llvm::any_of(op.getOperands(), [&](Value each) { return ofKeys.contains(each); });
    if (isa<attn::ElementOp>(op) && query && key)
      return true;
    for (Value result : op.getResults()) {
      if (query)
        ofQueries.insert(result);
      if (key)
        ofKeys.insert(result);
    }
  }
  return false;
}

bool masksReadPairs(const Attend &attend) {
  auto readsAny = [&](Attribute pattern) {
    return anyMask(pattern, attend, [](Region &mask) { return readsPairs(mask, 2); });
  };
  return llvm::any_of(llvm::seq<unsigned>(attend.keys.size()), [&](unsigned domain) {
    return (readsAny(attend.patterns[domain]) && !keepsPairBits(attend, domain)) ||
           (attend.kept[domain] && readsAny(attend.kept[domain]));
  });
}

bool readsPairs(const Attend &attend) {
  return (attend.scoreMod && readsPairs(*attend.scoreMod, 3)) || masksReadPairs(attend);
}

} // namespace weft

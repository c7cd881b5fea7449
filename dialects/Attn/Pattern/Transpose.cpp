// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The transpose of a pattern.
#include "dialects/Attn/Pattern/Transpose.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace weft::attn;

/// Whether (n, m) belongs or not by p - m alone.
static bool isByDistance(Attribute pattern) {
  return llvm::TypeSwitch<Attribute, bool>(pattern)
      .Case<FullAttr, EmptyAttr, CausalAttr, WindowAttr, StridedAttr, DilatedAttr>([](auto) { return true; })
      .Case<AndAttr, OrAttr, PerHeadAttr>(
          [](auto combined) { return llvm::all_of(combined.getPatterns(), isByDistance); })
      .Case<NotAttr, ShiftAttr, TransposeAttr>([](auto outer) { return isByDistance(outer.getPattern()); })
      .Default([](Attribute) { return false; });
}

Attribute weft::attn::transposePattern(Attribute pattern, const Lengths &lengths) {
  MLIRContext *context = pattern.getContext();
  bool square = lengths.difference == 0;
  auto each = [&](ArrayRef<Attribute> patterns) {
    return llvm::map_to_vector(patterns, [&](Attribute part) { return transposePattern(part, lengths); });
  };
  auto wrapped = [&] { return Attribute(TransposeAttr::get(context, pattern)); };
  return llvm::TypeSwitch<Attribute, Attribute>(pattern)
      .Case<FullAttr, EmptyAttr, StridedAttr, DilatedAttr>([](Attribute symmetric) { return symmetric; })
      .Case([&](CausalAttr) { return WindowAttr::get(context, 0, std::nullopt); })
      .Case([&](WindowAttr window) { return WindowAttr::get(context, window.getRight(), window.getLeft()); })
      .Case<BlockWindowAttr, GlobalTokensAttr>([&](Attribute part) { return square ? part : wrapped(); })
      .Case([&](SpanAttr span) {
        return SpanAttr::get(context, span.getFirst(), span.getPast(), span.getLower(), span.getUpper());
      })
      .Case([&](SectionAttr part) {
        return SectionAttr::get(context, transposePattern(part.getPattern()), part.getKeys(), part.getRows());
      })
      .Case([&](AndAttr part) { return AndAttr::get(context, each(part.getPatterns())); })
      .Case([&](OrAttr part) { return OrAttr::get(context, each(part.getPatterns())); })
      .Case([&](PerHeadAttr part) { return PerHeadAttr::get(context, each(part.getPatterns())); })
      .Case([&](NotAttr part) { return NotAttr::get(context, transposePattern(part.getPattern(), lengths)); })
      .Case([&](TransposeAttr part) { return part.getPattern(); })
      .Case([&](ShiftAttr part) -> Attribute {
        if (!isByDistance(part.getPattern()))
          return wrapped();
        return ShiftAttr::get(context, transposePattern(part.getPattern(), lengths), -part.getBy());
      })
      .Default([&](Attribute) { return wrapped(); });
}

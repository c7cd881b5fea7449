// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See TileOrder.h.
#include "compiler/Conversion/AttnToTile/Patterns/TileOrder.h"
#include "compiler/Conversion/AttnToTile/Patterns/Attend.h"
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Attn/Pattern/Membership.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace weft {

/// The most heads that stand side by side is two to this power: more begin hardly more evenly.
static constexpr int mostDoublings = 4;

/// The longest expression of how many heads stand side by side. Extents of the grid have it beside a length or the heads,
/// and a library's expressions have at most 1,000 characters.
static constexpr size_t longestAbreast = 450;

/// Whether later queries of a pattern have more keys, up to a last one: masks of language models.
static bool goesOnForLonger(Attribute pattern) {
  auto goesOn = [](Attribute each) { return goesOnForLonger(each); };
  if (std::optional<attn::WindowAttr> window = attn::patterns::asWindow(pattern))
    return !window->getLeft() && window->getRight();
  if (auto both = dyn_cast<attn::AndAttr>(pattern))
    return llvm::any_of(both.getPatterns(), goesOn);
  if (auto either = dyn_cast<attn::OrAttr>(pattern))
    return llvm::all_of(either.getPatterns(), goesOn);
  if (auto heads = dyn_cast<attn::PerHeadAttr>(pattern))
    return llvm::any_of(heads.getPatterns(), goesOn);
  return false;
}

/// How many tokens of one head, each of `bytes`, half of the smallest L2 cache among a target's GPUs holds.
static int64_t tokensInCache(const TargetInfo &target, int64_t bytes) {
  auto holdsLess = [](const targets::Gpu &a, const targets::Gpu &b) { return a.l2Bytes < b.l2Bytes; };
  return std::min_element(target.gpus.begin(), target.gpus.end(), holdsLess)->l2Bytes / 2 / bytes;
}

/// The largest power of two, up to 2^mostDoublings, that divides `heads`, and so many of whose tokens, `length` each, are
/// no more than `room`; a smaller one where names are long.
static std::string abreastOf(StringRef heads, StringRef length, int64_t room) {
  int64_t count = 0, tokens = 0;
  bool knowsHeads = !heads.getAsInteger(10, count), knowsTokens = !length.getAsInteger(10, tokens);
  std::string product;
  int64_t known = 1;
  for (int doublings = 1; doublings <= mostDoublings; ++doublings) {
    int64_t abreast = int64_t(1) << doublings, most = room / abreast;
    if (most == 0 || (knowsHeads && count % abreast != 0) || (knowsTokens && tokens > most))
      break;
    // 1 where both hold, else 0.
    std::string holds = knowsTokens ? "1" : "min(1, " + std::to_string(most) + " / max(1, " + length.str() + "))";
    if (!knowsHeads)
      holds += " / (1 + (" + heads.str() + ") % " + std::to_string(abreast) + ")";
    std::string doubled = (product.empty() ? "(1 + " : product + " * (1 + ") + holds + ")";
    if (doubled.size() > longestAbreast)
      break;
    if (holds == "1")
      known = abreast;
    else
      product = std::move(doubled);
  }
  return product.empty() ? std::to_string(known) : product;
}

TileOrder tileOrder(const Attend &attend, StringRef heads, bool keys) {
  const auto *longer = llvm::find_if(attend.patterns, goesOnForLonger);
  if (longer == attend.patterns.end())
    return {};
  unsigned domain = longer - attend.patterns.begin();
  Type element = attend.storage();
  int64_t bytes = (attend.headSize() + attend.valueSize()) * element.getIntOrFloatBitWidth() / 8;
  std::string length = (keys ? attend.queryType() : attend.keyType(domain)).dim(2).str();
  TileOrder order{!keys, abreastOf(heads, length, tokensInCache(TargetInfo::ofOrDefault(attend.op), bytes))};
  if (order.lastFirst)
    remarks::decided(remarks::tileOrder, attend.op)
        << remark::reason("tiles of queries begin from the last, which has the most keys");
  bool isKnown = order.abreast.find('(') == std::string::npos;
  if (order.abreast != "1")
    remarks::decided(remarks::tileOrder, attend.op)
        << remark::reason("tiles of {0} begin side by side, whose {1} the L2 cache holds",
                          isKnown ? order.abreast + " heads" : "2 to 16 heads, or of one,", keys ? "queries" : "keys");
  return order;
}

std::array<std::string, 3> TileOrder::grid(std::array<std::string, 3> tiles) const {
  if (abreast == "1")
    return tiles;
  return {"(" + tiles[0] + ") * " + abreast, "(" + tiles[1] + ") / (" + abreast + ")", tiles[2]};
}

TilePlace placeIn(KernelFrame &frame, const TileOrder &order) {
  TileBuilder &b = frame.b;
  Value x = b.programId(tile::Axis::X), y = b.programId(tile::Axis::Y);
  if (order.lastFirst)
    x = b.sub(b.sub(b.numPrograms(tile::Axis::X), b.i32(1)), x);
  if (order.abreast == "1")
    return {x, y};
  Value abreast = frame.size(order.abreast);
  // A power of two. Where a block fills a multiprocessor, it begins sooner with a shift; where others compute meanwhile, the
  // shift would be done again in loops, with registers that gradients of 128 channels do not have.
  if (TargetInfo::ofOrDefault(b.getInsertionBlock()->getParentOp()).boxCopies.mostRank == 0) {
    Value tile = arith::DivUIOp::create(b, x, abreast);
    return {tile, b.add(b.mul(y, abreast), b.sub(x, b.mul(tile, abreast)))};
  }
  Value tile = arith::ShRUIOp::create(b, x, math::CountTrailingZerosOp::create(b, abreast));
  Value within = arith::AndIOp::create(b, x, b.sub(abreast, b.i32(1)));
  return {tile, b.add(b.mul(y, abreast), within)};
}

} // namespace weft

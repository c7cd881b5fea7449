// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Layout/ShuffleExchange.h"
#include "llvm/ADT/STLExtras.h"
#include <algorithm>

using namespace llvm;
using namespace weft::warp;

/// What two barriers cost, in instructions that move a word.
static constexpr unsigned barrierCost = 8;

SmallVector<unsigned, 5> ShuffleExchange::choosingBits() const {
  SmallVector<unsigned, 5> bits;
  for (auto [bit, step] : enumerate(registerSteps))
    if (step)
      bits.push_back(bit);
  return bits;
}

bool ShuffleExchange::isOwnLane() const {
  return llvm::all_of(enumerate(laneSteps),
                      [](const auto &step) { return step.value() == (step.index() < 5 ? 1u << step.index() : 0); });
}

/// Whether every warp finds its elements in itself: warp bit i of the result stands for warp bit i of the source, or
/// the source repeats along it, and nothing else stands for another warp.
static bool staysInWarp(const LinearLayout &source, const LinearLayout &result, const LinearLayout &from) {
  auto leaves = [&](uint32_t basis, uint32_t warp) {
    Place place = LinearLayout::placeOf(source, basis);
    return place[InDim::Warp] != warp || place[InDim::Block];
  };
  for (InDim dim : {InDim::Register, InDim::Lane})
    for (uint32_t basis : from.bases(dim))
      if (leaves(basis, 0))
        return false;
  if (source.bases(InDim::Warp).size() != result.bases(InDim::Warp).size() || !result.bases(InDim::Block).empty())
    return false;
  for (auto [bit, basis] : enumerate(from.bases(InDim::Warp)))
    if (leaves(basis, 1u << bit) && (source.bases(InDim::Warp)[bit] != 0 || leaves(basis, 0)))
      return false;
  return true;
}

static bool areIndependent(ArrayRef<uint32_t> vectors) {
  SmallVector<uint32_t, 5> reduced;
  for (uint32_t vector : vectors) {
    if (vector == 0)
      continue;
    for (uint32_t other : reduced)
      vector = std::min(vector, vector ^ other);
    if (vector == 0)
      return false;
    reduced.push_back(vector);
  }
  return true;
}

std::optional<ShuffleExchange> weft::warp::shuffleExchange(const LinearLayout &source, const LinearLayout &result,
                                                           unsigned elementBytes) {
  std::optional<LinearLayout> from = result.composeInverse(source);
  if (!from || !staysInWarp(source, result, *from))
    return std::nullopt;
  ShuffleExchange exchange;
  for (InDim dim : {InDim::Lane, InDim::Warp})
    for (uint32_t basis : from->bases(dim)) {
      Place place = LinearLayout::placeOf(source, basis);
      exchange.registerSteps.push_back(place[InDim::Register]);
      exchange.laneSteps.push_back(place[InDim::Lane]);
    }
  for (auto [bit, basis] : enumerate(source.bases(InDim::Lane)))
    if (basis == 0)
      exchange.laneSteps[bit] |= 1u << bit;
  if (!areIndependent(exchange.registerSteps))
    return std::nullopt;
  unsigned different = result.size(InDim::Register) >> popcount(result.freeBits()[InDim::Register]);
  unsigned words = std::max(1u, elementBytes / 4);
  unsigned shuffles = (different << exchange.choosingBits().size()) * words;
  unsigned memoryWords = std::max(1u, different * elementBytes / 4);
  if (shuffles > 2 * memoryWords + barrierCost)
    return std::nullopt;
  for (uint32_t reg = 0; reg < result.size(InDim::Register); ++reg) {
    Place place = LinearLayout::placeOf(source, from->apply(InDim::Register, reg));
    exchange.registerOf.push_back(place[InDim::Register]);
    exchange.laneOf.push_back(place[InDim::Lane]);
  }
  return exchange;
}

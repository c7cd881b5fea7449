// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Layout/ShuffleGather.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/bit.h"
#include <algorithm>

using namespace llvm;
using namespace weft::warp;

/// What a barrier costs, and the addresses of an access by an index, in instructions that move a word.
static constexpr unsigned barrierCost = 4, addressCost = 2;

uint32_t ShuffleGather::choosingBits() const {
  uint32_t bits = 0;
  for (ArrayRef<Place> steps : {ArrayRef<Place>(laneSteps), ArrayRef<Place>(warpSteps), ArrayRef<Place>(indexSteps)})
    for (const Place &step : steps)
      bits |= step[InDim::Register];
  return bits;
}

/// Where a source has the elements of a gather whose index is 0, and how far an index moves.
static ShuffleGather placesOf(const LinearLayout &source, const LinearLayout &inverse, const LinearLayout &result,
                              unsigned axis) {
  auto placeOf = [&](ArrayRef<int64_t> at) {
    return LinearLayout::placeOf(source, inverse.apply(InDim::Register, source.linearize(at)));
  };
  auto beside = [&](uint32_t element) {
    SmallVector<int64_t, 4> at = result.delinearize(element);
    at[axis] = 0;
    return placeOf(at);
  };
  ShuffleGather gather;
  for (uint32_t reg = 0; reg < result.size(InDim::Register); ++reg)
    gather.ofRegister.push_back(beside(result.apply(InDim::Register, reg)));
  for (uint32_t basis : result.bases(InDim::Lane))
    gather.laneSteps.push_back(beside(basis));
  for (uint32_t basis : result.bases(InDim::Warp))
    gather.warpSteps.push_back(beside(basis));
  SmallVector<int64_t, 4> at(source.rank(), 0);
  for (int64_t index = 1; index < source.shape()[axis]; index *= 2) {
    at[axis] = index;
    gather.indexSteps.push_back(placeOf(at));
  }
  return gather;
}

/// Whether every warp finds its elements in itself; warps that hold the same are each other's.
static bool staysInWarp(ShuffleGather &gather, const LinearLayout &source) {
  ArrayRef<uint32_t> warps = source.bases(InDim::Warp);
  if (gather.warpSteps.size() != warps.size() || !source.bases(InDim::Block).empty())
    return false;
  auto stays = [](const Place &place) { return place[InDim::Warp] == 0; };
  if (!all_of(gather.ofRegister, stays) || !all_of(gather.laneSteps, stays) || !all_of(gather.indexSteps, stays))
    return false;
  for (auto [bit, step] : enumerate(gather.warpSteps)) {
    if (step[InDim::Warp] != (warps[bit] ? 1u << bit : 0))
      return false;
    step[InDim::Warp] = 0;
  }
  return true;
}

std::optional<ShuffleGather> weft::warp::shuffleGather(const LinearLayout &source, const LinearLayout &result,
                                                       unsigned axis, unsigned elementBytes) {
  LinearLayout elements(source.shape());
  for (uint32_t bit = 1; bit < source.numElements(); bit *= 2)
    elements.append(InDim::Register, bit);
  std::optional<LinearLayout> inverse = elements.composeInverse(source);
  if (!inverse)
    return std::nullopt;
  ShuffleGather gather = placesOf(source, *inverse, result, axis);
  if (!staysInWarp(gather, source))
    return std::nullopt;
  unsigned words = std::max(1u, elementBytes / 4), results = gather.ofRegister.size();
  unsigned shuffles = (results << popcount(gather.choosingBits())) * words;
  unsigned written = std::max(1u, source.size(InDim::Register) * elementBytes / 16);
  if (shuffles > written + barrierCost + results * (1 + addressCost))
    return std::nullopt;
  return gather;
}

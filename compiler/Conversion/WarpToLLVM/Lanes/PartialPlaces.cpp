// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/WarpToLLVM/Lanes/PartialPlaces.h"

using namespace mlir;
using weft::warp::InDim;
using weft::warp::LinearLayout;

static constexpr unsigned mostJoined = 2; // bits of registers: four words are an access

weft::PartialPlaces::PartialPlaces(const LinearLayout &wanted, const LinearLayout &held, bool isOfWords)
    : isOfWords(isOfWords), numberOf(wanted.numElements(), 0) {
  const size_t count = numberOf.size();
  SmallVector<uint32_t> bases = inOrder(wanted);
  if (size_t(1) << bases.size() != count)
    bases = inOrder(held);
  // Bits that move to the same elements as others leave elements at their own numbers.
  const bool isOwn = size_t(1) << bases.size() != count;
  for (uint32_t number = 0; number < count; ++number) {
    uint32_t element = isOwn ? number : 0;
    for (auto [bit, basis] : llvm::enumerate(bases))
      element ^= !isOwn && (number >> bit & 1) ? basis : 0;
    numberOf[element] = number;
  }
}

SmallVector<uint32_t> weft::PartialPlaces::inOrder(const LinearLayout &layout) const {
  ArrayRef<uint32_t> registers = layout.bases(InDim::Register);
  unsigned joined = 0;
  while (isOfWords && joined < std::min<size_t>(mostJoined, registers.size()) && registers[joined])
    ++joined;
  SmallVector<uint32_t> bases(registers.take_front(joined));
  for (InDim dim : {InDim::Lane, InDim::Warp})
    llvm::append_range(bases, layout.bases(dim));
  llvm::append_range(bases, registers.drop_front(joined));
  llvm::erase(bases, 0u);
  return bases;
}

Value weft::PartialPlaces::Of::ofRegister(Emitter &e, Value thread, unsigned number) const {
  uint32_t place = 0;
  for (auto [bit, basis] : llvm::enumerate(reg))
    place ^= (number >> bit & 1) ? basis : 0;
  return LLVM::XOrOp::create(e.b, e.loc, thread, e.i32(place));
}

weft::PartialPlaces::Of weft::PartialPlaces::of(const LinearLayout &layout) const {
  auto placesOf = [&](InDim dim) {
    return llvm::map_to_vector(layout.bases(dim), [&](uint32_t basis) { return numberOf[basis]; });
  };
  Of found{placesOf(InDim::Lane), placesOf(InDim::Warp), placesOf(InDim::Register)};
  for (unsigned bit = 0; isOfWords && bit < std::min<size_t>(mostJoined, found.reg.size()); ++bit) {
    if (found.reg[bit] != found.neighbours)
      break;
    found.neighbours *= 2;
  }
  return found;
}

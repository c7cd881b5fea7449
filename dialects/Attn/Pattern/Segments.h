// Part of Weft. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dialects/Attn/IR/AttnDialect.h"
#include <vector>
namespace weft::attn {
template <class A> struct RowBlock { typename A::Int begin, end, h, N, M; };
template <class A> struct Segment { typename A::Int begin, end; bool full; };
template <class A> std::optional<std::vector<Segment<A>>> rowSegments(A &a, mlir::Attribute p, const RowBlock<A> &r, int64_t bn) {
  auto c = a.constant(bn), zero = a.constant(0);
  auto up = [&](auto x) { return a.floorDiv(a.add(x, a.constant(bn - 1)), c); };
  auto shift = a.sub(r.M, r.N);
  auto p0 = a.add(r.begin, shift), p1 = a.sub(a.add(r.end, shift), a.constant(1));
  auto lo0 = zero, lo1 = zero, hi0 = r.M, hi1 = r.M; // at first and last row
  if (llvm::isa<CausalAttr>(p)) { hi0 = a.min(r.M, a.add(p0, a.constant(1))); hi1 = a.min(r.M, a.add(p1, a.constant(1))); }
  else if (auto w = llvm::dyn_cast<WindowAttr>(p)) {
    if (w.getLeft()) { lo0 = a.max(zero, a.sub(p0, a.constant(*w.getLeft()))); lo1 = a.max(zero, a.sub(p1, a.constant(*w.getLeft()))); }
    if (w.getRight()) { hi0 = a.min(r.M, a.add(p0, a.constant(*w.getRight() + 1))); hi1 = a.min(r.M, a.add(p1, a.constant(*w.getRight() + 1))); }
  } else if (auto w = llvm::dyn_cast<BlockWindowAttr>(p)) {
    auto k = a.constant(w.getWindow()[0]);
    lo0 = a.mul(a.floorDiv(p0, k), k); lo1 = a.mul(a.floorDiv(p1, k), k);
    hi0 = a.min(r.M, a.add(lo0, k)); hi1 = a.min(r.M, a.add(lo1, k));
  } else if (!llvm::isa<FullAttr>(p)) return std::nullopt;
  auto t0 = a.floorDiv(lo0, c), t1 = a.max(t0, up(hi1));
  auto f0 = a.min(a.max(up(lo1), t0), t1), f1 = a.min(a.max(a.floorDiv(hi0, c), f0), t1);
  return std::vector<Segment<A>>{{t0, f0, false}, {f0, f1, true}, {f1, t1, false}};
}
}

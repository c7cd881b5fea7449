// Part of Weft. SPDX-License-Identifier: Apache-2.0
#pragma once
#include "dialects/Attn/IR/AttnDialect.h"
namespace weft::attn {
template <class A> struct Place { typename A::Int b, h, n, m, N, M; };
template <class A> typename A::Bool contains(A &a, mlir::Attribute p, const Place<A> &at) {
  auto pos = a.add(at.n, a.sub(at.M, at.N));
  if (llvm::isa<CausalAttr>(p)) return a.le(at.m, pos);
  if (auto w = llvm::dyn_cast<WindowAttr>(p)) {
    auto t = a.truth(true);
    if (w.getLeft()) t = a.both(t, a.le(a.sub(pos, a.constant(*w.getLeft())), at.m));
    if (w.getRight()) t = a.both(t, a.le(at.m, a.add(pos, a.constant(*w.getRight()))));
    return t;
  }
  if (auto w = llvm::dyn_cast<BlockWindowAttr>(p)) {
    auto c = a.constant(w.getWindow()[0]);
    return a.eq(a.floorDiv(pos, c), a.floorDiv(at.m, c));
  }
  return a.truth(true);
}
}

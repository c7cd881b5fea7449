// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn-share-kernels: kernels that do the same become one. A program and its forward, which saves more, begin alike;
// each kernel that they share is compiled once.
//
//   attn.launch @rows(%x) ... attn.launch @rows_2(%x)     ─▶     attn.launch @rows(%x) ... attn.launch @rows(%x)
#include "compiler/Conversion/AttnToTile/Launches/LaunchOrder.h"
#include "compiler/Conversion/AttnToTile/Passes.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ATTNSHAREKERNELS
#include "compiler/Conversion/AttnToTile/Passes.h.inc"

namespace {
struct ShareKernels : impl::AttnShareKernelsBase<ShareKernels> {
  void runOnOperation() final {
    SmallVector<func::FuncOp> kept, dropped;
    llvm::StringMap<func::FuncOp> insteadOf;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      if (!function->hasAttr(tile::kernelAttrName))
        continue;
      auto same = llvm::find_if(kept, [&](func::FuncOp other) { return doTheSame(other, function); });
      if (same == kept.end()) {
        kept.push_back(function);
        continue;
      }
      insteadOf[function.getName()] = *same;
      dropped.push_back(function);
    }
    getOperation().walk([&](attn::LaunchOp launch) {
      if (auto found = insteadOf.find(launch.getKernel()); found != insteadOf.end())
        launch.setKernel(found->second.getName());
    });
    for (func::FuncOp function : dropped)
      function.erase();
  }
};
} // namespace

} // namespace weft

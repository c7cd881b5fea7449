// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-begin-tensor-memory: a kernel whose products sum up in tensor memory takes its columns, and has their barriers.
//
//   body         ─▶      %slots = warp.alloc
//                        %area, %lanes = warp.tensor_begin %slots
//                        body
//                        warp.tensor_end %area
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Roles/ProducerSlice.h"
#include "dialects/Warp/Transforms/Tensor/TensorColumns.h"
#include "dialects/Warp/Transforms/Tensor/TensorProducts.h"
#include "mlir/IR/Builders.h"
#include "llvm/Support/MathExtras.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPBEGINTENSORMEMORY
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct BeginTensorMemory : weft::warp::impl::WarpBeginTensorMemoryBase<BeginTensorMemory> {
  void runOnOperation() override;
};
} // namespace

bool weft::warp::isInTensorMemory(WgmmaOp product) {
  return TargetInfo::ofOrDefault(product).warpgroups.tensorColumns != 0;
}

bool weft::warp::fitsBesideOthers(WgmmaOp product) {
  const targets::WarpgroupUnit &unit = TargetInfo::ofOrDefault(product).warpgroups;
  int64_t columns = 0;
  for (auto each : product->getBlock()->getOps<WgmmaOp>()) {
    auto before = each.getAcc().getDefiningOp<WgmmaWaitOp>();
    if (before && before->getBlock() == each->getBlock()) // goes on from another's
      continue;
    columns += columnsOf(each.getResult().getType(), each.getShape()[0]);
  }
  const int64_t groups = tile::scheduleOf(product->getParentOfType<func::FuncOp>()).warps / unit.warps;
  return int64_t(llvm::PowerOf2Ceil(columns)) * groups <= unit.tensorColumns;
}

SharedType weft::warp::tensorSlots(func::FuncOp kernel, const TargetInfo &target) {
  auto hasProduct = [&] { return kernel->walk([](WgmmaOp) { return WalkResult::interrupt(); }).wasInterrupted(); };
  if (!target.warpgroups.tensorColumns || !hasProduct())
    return {};
  const int64_t groups = tile::scheduleOf(kernel).warps / target.warpgroups.warps;
  const int64_t words = llvm::PowerOf2Ceil(groups * tensorBarriers + 1);
  MLIRContext *context = kernel.getContext();
  LinearLayout layout({words});
  layout.appendAxis(InDim::Offset, 0, llvm::Log2_64(words), 1);
  return SharedType::get(context, 1, {words}, IntegerType::get(context, 64), LayoutAttr::get(context, layout));
}

void BeginTensorMemory::runOnOperation() {
  func::FuncOp kernel = getOperation();
  if (kernel.isDeclaration())
    return;
  SharedType slots = tensorSlots(kernel, TargetInfo::ofOrDefault(kernel));
  if (!slots)
    return;
  Block &body = kernel.getBody().front();
  Location loc = kernel.getLoc();
  OpBuilder b(kernel.getContext());
  setBehindAdded(kernel, b);
  auto alloc = AllocOp::create(b, loc, slots, IntegerAttr(), IntegerAttr());
  // The columns are counted when all else stands.
  auto begin = TensorBeginOp::create(b, loc, alloc, b.getI32IntegerAttr(512), b.getI32IntegerAttr(tensorBarriers));
  b.setInsertionPoint(body.getTerminator());
  TensorEndOp::create(b, loc, begin.getArea(), begin.getColumnsAttr());
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-place-totals: what several warps reduce meets in shared memory, where a thread finds any element, not those of its
// share of the source alone. So results that are wanted in another layout are read in that one, and what is computed of
// them before the conversion is computed there:
//
//   %sum = tile.reduce add %x           : #rows            %sum = tile.reduce add %x     : #wanted
//   %mean = arith.mulf %sum, %c         : #rows     -->    %mean = arith.mulf %sum, %c   : #wanted
//   %y = warp.convert_layout %mean : #rows -> #wanted

#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft::warp {
#define GEN_PASS_DEF_WARPPLACETOTALS
#include "dialects/Warp/Transforms/Passes.h.inc"

namespace {

unsigned registersOf(Type type) {
  const LinearLayout &layout = layoutAttrOf(type).getLayout();
  return layout.size(InDim::Register) >> llvm::popcount(layout.freeBits()[InDim::Register]);
}

/// Whether partial results of several warps meet in shared memory.
bool crossesWarps(Operation *op) {
  auto reduce = dyn_cast_or_null<tile::ReduceOp>(op);
  return reduce &&
         warpReduction(layoutAttrOf(reduce.getSources().front().getType()).getLayout(), reduce.getAxis()).partials > 1;
}

/// One number in every element, which is one in any layout.
bool isUniform(Value value) {
  DenseElementsAttr elements;
  return value.getDefiningOp<tile::SplatOp>() || (matchPattern(value, m_Constant(&elements)) && elements.isSplat());
}

/// What a conversion's source is computed from, back to reductions over warps: empty where it is from anything else, or
/// where someone asks for it in another layout than the conversion's.
llvm::SetVector<Operation *> computedFromTotals(ConvertLayoutOp convert) {
  const Type source = convert.getSource().getType(), wanted = convert.getType();
  llvm::SetVector<Operation *> slice;
  SmallVector<Value> waiting{convert.getSource()};
  while (!waiting.empty()) {
    Value value = waiting.pop_back_val();
    if (isUniform(value))
      continue;
    Operation *made = value.getDefiningOp();
    auto type = dyn_cast<RankedTensorType>(value.getType());
    const bool computes = made && made->hasTrait<OpTrait::Elementwise>() && isPure(made);
    if (!type || layoutAttrOf(type) != layoutAttrOf(source) || (!computes && !crossesWarps(made)))
      return {};
    if (slice.insert(made) && computes)
      waiting.append(made->operand_begin(), made->operand_end());
  }
  for (Operation *op : slice)
    for (Operation *user : op->getUsers()) {
      auto other = dyn_cast<ConvertLayoutOp>(user);
      if (!slice.contains(user) && !(other && layoutAttrOf(other.getType()) == layoutAttrOf(wanted)))
        return {};
    }
  return slice;
}

/// Gives the results of `slice` the layout, and drops conversions to it.
void place(const llvm::SetVector<Operation *> &slice, LayoutAttr layout) {
  auto placed = [&](Type type) -> Type {
    auto tensor = cast<RankedTensorType>(type);
    return RankedTensorType::get(tensor.getShape(), tensor.getElementType(), layout);
  };
  for (Operation *op : slice) {
    if (!isa<tile::ReduceOp>(op))
      for (OpOperand &operand : op->getOpOperands())
        if (Value uniform = operand.get(); isUniform(uniform)) {
          OpBuilder b(op);
          Operation *made = b.clone(*uniform.getDefiningOp());
          made->getResult(0).setType(placed(uniform.getType()));
          if (auto constant = dyn_cast<arith::ConstantOp>(made)) {
            auto number = cast<DenseElementsAttr>(constant.getValue()).getSplatValue<Attribute>();
            constant.setValueAttr(DenseElementsAttr::get(cast<ShapedType>(made->getResult(0).getType()), number));
          }
          operand.set(made->getResult(0));
        }
    for (OpResult result : op->getResults())
      result.setType(placed(result.getType()));
  }
  for (Operation *op : slice)
    for (Operation *user : llvm::make_early_inc_range(op->getUsers()))
      if (auto convert = dyn_cast<ConvertLayoutOp>(user)) {
        convert.replaceAllUsesWith(convert.getSource());
        convert.erase();
      }
}

struct WarpPlaceTotals : impl::WarpPlaceTotalsBase<WarpPlaceTotals> {
  void runOnOperation() final {
    SmallVector<ConvertLayoutOp> conversions;
    getOperation().walk([&](ConvertLayoutOp convert) { conversions.push_back(convert); });
    llvm::SmallPtrSet<Operation *, 8> placed;
    for (ConvertLayoutOp convert : conversions) {
      // Conversions of the same values go with the first of them.
      if (placed.contains(convert))
        continue;
      if (registersOf(convert.getType()) > registersOf(convert.getSource().getType()))
        continue;
      auto slice = computedFromTotals(convert);
      for (Operation *op : slice)
        for (Operation *user : op->getUsers())
          placed.insert(user);
      if (!slice.empty())
        place(slice, layoutAttrOf(convert.getType()));
    }
  }
};

} // namespace
} // namespace weft::warp

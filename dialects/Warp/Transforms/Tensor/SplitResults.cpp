// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "dialects/Warp/Transforms/Tensor/SplitResults.h"

#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/WgmmaLayouts.h"
#include "dialects/Warp/Transforms/Tensor/TensorOrder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace weft::warp {

/// Columns that a piece has of each thread's row, and the fewest of a row that is taken apart.
static constexpr int64_t pieceColumns = 32, fewestColumns = 64;

static int64_t registersOf(Type type) {
  return layoutAttrOf(cast<RankedTensorType>(type)).getLayout().size(InDim::Register);
}

/// A value of which each row has one number: what it is made of, without rows' columns.
static bool isAlikeInRow(Value value) {
  auto broadcast = value.getDefiningOp<tile::BroadcastOp>();
  auto from = broadcast ? cast<RankedTensorType>(broadcast.getSource().getType()) : RankedTensorType();
  Attribute constant;
  return (from && from.getRank() == 2 && from.getDimSize(1) == 1) || value.getDefiningOp<tile::SplatOp>() ||
         (matchPattern(value, m_Constant(&constant)) && isa<SplatElementsAttr>(constant));
}

/// The elementwise ops that a loaded value goes through, each the only user of the one before, up to the last one that
/// narrows it.
static SmallVector<Operation *> narrowing(TensorLoadOp load) {
  SmallVector<Operation *> ops;
  size_t upToNarrow = 0;
  for (Value value = load.getResult(); value.hasOneUse();) {
    Operation *user = *value.getUsers().begin();
    if (user->getBlock() != load->getBlock() || !user->hasTrait<OpTrait::Elementwise>() || user->getNumRegions() ||
        user->getNumResults() != 1 ||
        !llvm::all_of(user->getOperands(), [&](Value each) { return each == value || isAlikeInRow(each); }))
      break;
    ops.push_back(user);
    value = user->getResult(0);
    if (getElementTypeOrSelf(value).getIntOrFloatBitWidth() < 32)
      upToNarrow = ops.size();
  }
  ops.truncate(upToNarrow);
  // Pieces are loaded where the last op stands.
  if (!ops.empty() && writesBetween(load, ops.back()))
    ops.clear();
  return ops;
}

namespace {
/// Takes one load apart.
class Splitter {
public:
  Splitter(TensorLoadOp load, WarpgroupGrid grid) : load(load), grid(grid), b(load) {}

  void run(ArrayRef<Operation *> ops) {
    SmallVector<Value> pieces;
    b.setInsertionPoint(ops.back());
    for (int64_t first = 0; first < registersOf(load.getType()); first += pieceColumns) {
      Value piece = TensorLoadOp::create(b, load.getLoc(), pieceType(load.getType()), load.getLanes(),
                                         b.getI32IntegerAttr(load.getColumn() + first));
      Value whole = load.getResult();
      for (Operation *op : ops) {
        IRMapping mapping;
        for (Value operand : op->getOperands())
          mapping.map(operand, operand == whole ? piece : pieceOf(operand));
        Operation *clone = b.clone(*op, mapping);
        clone->getResult(0).setType(pieceType(op->getResult(0).getType()));
        piece = clone->getResult(0);
        whole = op->getResult(0);
      }
      pieces.push_back(piece);
    }
    Value joined = JoinColumnsOp::create(b, load.getLoc(), ops.back()->getResult(0).getType(), pieces);
    ops.back()->getResult(0).replaceAllUsesWith(joined);
    for (Operation *op : llvm::reverse(ops))
      op->erase();
    load->erase();
  }

private:
  Type pieceType(Type whole) {
    auto type = cast<RankedTensorType>(whole);
    SmallVector<int64_t> shape{type.getDimSize(0), pieceColumns * grid.columns};
    return RankedTensorType::get(shape, type.getElementType(),
                                 LayoutAttr::get(b.getContext(), wgmmaAccLayout(shape, grid)));
  }
  /// What is alike in a row's columns, of a piece.
  Value pieceOf(Value value) {
    Value &piece = known[value];
    if (piece)
      return piece;
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointAfterValue(value);
    Type type = pieceType(value.getType());
    if (auto broadcast = value.getDefiningOp<tile::BroadcastOp>())
      return piece = tile::BroadcastOp::create(b, value.getLoc(), type, broadcast.getSource());
    if (auto splat = value.getDefiningOp<tile::SplatOp>())
      return piece = tile::SplatOp::create(b, value.getLoc(), type, splat.getSource());
    SplatElementsAttr constant;
    matchPattern(value, m_Constant(&constant));
    auto shaped = cast<ShapedType>(type);
    return piece = arith::ConstantOp::create(b, value.getLoc(),
                                             DenseElementsAttr::get(shaped, constant.getSplatValue<Attribute>()));
  }

  TensorLoadOp load;
  WarpgroupGrid grid;
  OpBuilder b;
  llvm::DenseMap<Value, Value> known;
};
} // namespace

void splitResults(func::FuncOp kernel) {
  SmallVector<TensorLoadOp> loads;
  kernel.walk([&](TensorLoadOp load) { loads.push_back(load); });
  for (TensorLoadOp load : loads) {
    auto type = cast<RankedTensorType>(load.getType());
    WarpgroupGrid grid = *wgmmaGridOf(layoutAttrOf(type).getLayout());
    // Registers are the columns of one tile.
    if (grid.m != tensorRows || type.getDimSize(0) != int64_t(tensorRows) * grid.rows ||
        registersOf(type) < fewestColumns)
      continue;
    if (SmallVector<Operation *> ops = narrowing(load); !ops.empty())
      Splitter(load, grid).run(ops);
  }
}

} // namespace weft::warp

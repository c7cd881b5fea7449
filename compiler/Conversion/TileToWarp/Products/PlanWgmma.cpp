// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/TileToWarp/Products/PlanWgmma.h"

#include "compiler/Conversion/TileToWarp/ChooseLayouts.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace weft {
namespace {
/// Bytes of shared memory that a kernel's exchanges may need beside the tiles of its products.
constexpr int64_t roomForExchanges = 16 * 1024;
/// Of a warpgroup's accumulator, the most registers of a thread.
constexpr int64_t mostAccumulators = 192;

/// Of the rows or columns of an operand that lie in one line: 32 bytes of 16 bits.
constexpr int64_t leastInner = 16, leastColumns = 16;

/// A plan, or why there is none.
struct Attempt {
  std::optional<DotPlan> plan;
  std::string hindrance;
};

Attempt refuse(std::string hindrance) { return {std::nullopt, std::move(hindrance)}; }

/// How many warpgroups split rows and columns: rows first, as those of B are then read by all at once.
std::optional<warp::WarpgroupGrid> gridFor(int64_t M, int64_t N, const targets::WarpgroupUnit &unit, int warps) {
  unsigned groups = warps / unit.warps, m = std::min<int64_t>(M, unit.m);
  unsigned rows = std::min<int64_t>(groups, M / m), columns = groups / rows;
  if (N / columns < leastColumns)
    return std::nullopt;
  return warp::WarpgroupGrid{rows, columns, m};
}

/// Along which axis the tiles of operands lie that no descriptor turns, each in one way for all of its products.
class LinesAlongK {
public:
  explicit LinesAlongK(const AxisAnalysis &axes) : axes(axes) {}

  /// Why the operands of a product cannot both lie along K; empty where they can, and then do.
  StringRef add(tile::DotOp dot) {
    std::array<std::pair<Value, unsigned>, 2> operands;
    for (unsigned index : {0, 1}) {
      Value value = dot->getOperand(index);
      operands[index] = {rootOf(value), axisOfRoot(value, index == 0 ? 1 : 0)};
    }
    for (auto [root, axis] : operands) {
      auto load = root.getDefiningOp<tile::LoadOp>();
      // Threads round f32, and store it along K.
      if (load && !tile::elementTypeOf(load.getType()).isF32() &&
          fastestFirst(axes.lookup(load.getPtr())).front() != axis)
        return "its instructions take operands of this type whose neighbours in memory follow along K";
      auto known = chosen.find(root);
      if ((known != chosen.end() && known->second != axis) ||
          (operands[0].first == operands[1].first && operands[0].second != operands[1].second))
        return "an operand would have to lie in two ways, and its type is not turned";
    }
    chosen.insert(operands.begin(), operands.end());
    return "";
  }

private:
  const AxisAnalysis &axes;
  llvm::DenseMap<Value, unsigned> chosen;
};

Attempt planProduct(tile::DotOp dot, LinesAlongK &lines, const TargetInfo &target, int warps) {
  const targets::WarpgroupUnit &unit = target.warpgroups;
  auto a = cast<RankedTensorType>(dot.getA().getType()), acc = cast<RankedTensorType>(dot.getType());
  int64_t M = acc.getDimSize(0), N = acc.getDimSize(1), K = a.getDimSize(1);
  Type element = a.getElementType(), accumulator = acc.getElementType();
  const targets::WarpgroupMma *family = target.warpgroupMmaFor(element, accumulator);
  if (dot.getBatch() > 1)
    return refuse("it is of several products, each of which has its own warps");
  if (!family || !(accumulator.isF32() || accumulator.isInteger(32)))
    return refuse(
        llvm::formatv("operands of {0} with sums of {1} have no instruction of warpgroups here", element, accumulator));
  if (element.isF32() && dot.getPrecision() == tile::Precision::IEEE)
    return refuse("f32 is multiplied more precisely than as TF32");
  // Kernels that the compiler writes have schedules that were chosen for operands that are rounded in registers.
  if (element.isF32() && dot->getParentOfType<func::FuncOp>()->hasAttr(tile::ordersAccessesAttrName))
    return refuse("a program's products of f32 are made where their operands are rounded");
  if (warps % unit.warps != 0)
    return refuse(llvm::formatv("{0} warps are no whole warpgroups of {1}", warps, unit.warps));
  if (M < unit.leastM || N < leastColumns || K < std::max<int64_t>(leastInner, family->k))
    return refuse(llvm::formatv("a product of {0} × {1} × {2} does not fill an instruction of {3} × {4} × {5}", M, N, K,
                                unit.leastM, leastColumns, family->k));
  std::optional<warp::WarpgroupGrid> grid = gridFor(M, N, unit, warps);
  if (!grid)
    return refuse(llvm::formatv("{0} warps are more than a product of {1} × {2} fills", warps, M, N));
  int64_t columns = N / grid->columns, sums = M / grid->rows * columns;
  if (unit.tensorColumns ? sums * warps / unit.warps > int64_t(grid->m) * unit.tensorColumns
                         : sums / (unit.warps * target.warpSize) > mostAccumulators)
    return refuse(llvm::formatv("sums of {0} × {1} for each warpgroup do not fit {2}", M / grid->rows, columns,
                                unit.tensorColumns ? "tensor memory" : "registers"));
  if (StringRef hindrance = family->turned ? "" : lines.add(dot); !hindrance.empty())
    return refuse(hindrance.str());
  if (element.isF32() && dot.getPrecision() == tile::Precision::TF32x3)
    return refuse("both parts of its operands have no room in shared memory, or its chain has other instructions");
  DotPlan plan;
  plan.instruction = {int32_t(grid->m), int32_t(std::min<int64_t>(columns, unit.mostN)), family->k};
  plan.groups = *grid;
  return {plan, ""};
}

/// Bytes of the tiles that the operands of some products take at most. Those of a block may be there all at once, with
/// those of one op under it.
class OperandBytes {
public:
  explicit OperandBytes(const llvm::SetVector<Operation *> &products) {
    llvm::DenseSet<Value> roots;
    for (Operation *product : products)
      for (unsigned index : {0, 1})
        if (Value root = rootOf(product->getOperand(index)); roots.insert(root).second) {
          auto type = cast<RankedTensorType>(root.getType());
          ofBlock[root.getParentBlock()] += type.getNumElements() * type.getElementTypeBitWidth() / 8;
        }
  }
  int64_t under(Region &region) const {
    int64_t total = 0;
    for (Block &block : region) {
      int64_t largest = 0;
      for (Operation &op : block)
        for (Region &inner : op.getRegions())
          largest = std::max(largest, under(inner));
      total += ofBlock.lookup(&block) + largest;
    }
    return total;
  }

private:
  llvm::DenseMap<Block *, int64_t> ofBlock;
};

} // namespace

Value rootOf(Value operand) {
  while (auto permute = operand.getDefiningOp<tile::PermuteOp>())
    operand = permute.getSource();
  return operand;
}

unsigned axisOfRoot(Value value, unsigned axis) {
  while (auto permute = value.getDefiningOp<tile::PermuteOp>()) {
    axis = permute.getOrder()[axis];
    value = permute.getSource();
  }
  return axis;
}

WgmmaPlans planWgmma(func::FuncOp function, const llvm::DenseSet<Operation *> &chained, const AxisAnalysis &axes,
                     const TargetInfo &target, int warps) {
  WgmmaPlans plans;
  if (target.warpgroups.families.size() == 0)
    return plans;
  const bool lacksColumns = function->hasAttr(warp::lacksColumnsAttrName);
  llvm::SetVector<Operation *> products;
  LinesAlongK lines(axes);
  std::string ofChain;
  function.walk([&](tile::DotOp dot) {
    Attempt attempt = lacksColumns ? refuse("tensor memory does not hold what the kernel's products need at once")
                                   : planProduct(dot, lines, target, warps);
    if (attempt.plan) {
      plans.taken[dot] = *attempt.plan;
      products.insert(dot);
      return;
    }
    if (chained.contains(dot) && ofChain.empty())
      ofChain = attempt.hindrance;
    plans.refused.push_back({dot, std::move(attempt.hindrance), /*isOwn=*/true});
  });
  int64_t bytes = OperandBytes(products).under(function.getBody());
  bool fits = bytes + roomForExchanges <= target.sharedBytesPerBlock;
  for (Operation *product : products) {
    std::string hindrance;
    if (!fits)
      hindrance = llvm::formatv("a block's shared memory does not hold the {0} bytes of operands", bytes).str();
    else if (!ofChain.empty() && chained.contains(product))
      hindrance = "a product that its rows go to or come from has none: " + ofChain;
    else
      continue;
    plans.refused.push_back({product, std::move(hindrance), /*isOwn=*/false});
    plans.taken.erase(product);
  }
  return plans;
}

} // namespace weft

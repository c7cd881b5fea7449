// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A layout that was chosen is worth what the whole kernel costs with it, so the runner-up is found in the same way: each
// other layout that the access could have had, its neighbours' or the one that suits it alone, is given to it, the
// kernel planned anew and weighed.
#include "compiler/Conversion/TileToWarp/ExplainLayouts.h"

#include "compiler/Conversion/TileToWarp/LayoutCost.h"
#include "compiler/Support/Remarks.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/Layout/LayoutWords.h"
#include "dialects/Warp/Layout/ShuffleExchange.h"

using namespace mlir;
using llvm::SmallVector;
using weft::warp::inWords;
using weft::warp::LayoutAttr;

namespace weft {
namespace {

std::string wordsOf(LayoutAttr layout) { return inWords(layout.getLayout()); }

/// The layouts that an access could have had instead of `chosen`: the one that suits it alone, those in which what is
/// computed of what it loads is needed, or what that meets, and those of what it stores.
SmallVector<LayoutAttr> alternatives(Operation *op, LayoutAttr chosen, const LayoutPlan &plan, const AxisAnalysis &axes,
                                     const TargetInfo &target, int warps) {
  constexpr size_t most = 6;
  Access access = accessOf(op, axes, target);
  llvm::SmallSetVector<LayoutAttr, 4> found;
  found.insert(plan.rules.attr(coalescedLayout(access, warps, target)));
  llvm::SmallSetVector<Value, 8> values(op->result_begin(), op->result_end());
  if (auto store = dyn_cast<tile::StoreOp>(op))
    values.insert(store.getValue());
  for (size_t i = 0; i < values.size(); ++i) {
    RankedTensorType type = tensorOf(values[i]);
    if (!type || type.getShape() != access.shape)
      continue;
    for (LayoutAttr layout : plan.layoutsOf(values[i]))
      found.insert(layout);
    for (Operation *user : values[i].getUsers())
      if (kindOf(user) == OpKind::Elementwise && isa<tile::LoadOp>(op)) {
        values.insert(user->operand_begin(), user->operand_end());
        values.insert(user->result_begin(), user->result_end());
      }
  }
  // What reads the same differs in the order of lanes alone.
  SmallVector<LayoutAttr> layouts = found.takeVector();
  llvm::erase_if(layouts, [&](LayoutAttr layout) { return wordsOf(layout) == wordsOf(chosen); });
  if (layouts.size() > most)
    layouts.truncate(most);
  return layouts;
}

/// Whether an op is a load that nothing but products takes.
bool feedsProductsAlone(Operation *op) {
  return isa<tile::LoadOp>(op) && !op->use_empty() && llvm::all_of(op->getUsers(), llvm::IsaPred<tile::DotOp>);
}

/// Estimated instructions of a warp, of a cost.
std::string costText(int64_t cost) { return llvm::formatv("{0}", (cost + costOfInstruction / 2) / costOfInstruction); }

class Explainer {
public:
  Explainer(func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes, const TargetInfo &target,
            int warps, llvm::function_ref<LayoutPlan(Preferred)> replan)
      : function(function), plan(plan), axes(axes), target(target), warps(warps), replan(replan),
        cost(costOf(function, plan, axes, target)) {}

  void run() {
    function.walk<WalkOrder::PreOrder>([&](Operation *op) {
      if (isa<tile::LoadOp, tile::StoreOp, tile::AtomicRMWOp>(op) && plan.running.contains(op))
        sayAccess(op);
      else
        for (Value result : op->getResults())
          if (LayoutAttr layout = tensorOf(result) ? plan.own.lookup(result) : LayoutAttr())
            if (auto remark = remarks::decided(remarks::layout, op))
              remark << remark::reason("{0} lies as {1}", tile::textOf(result.getType()), wordsOf(layout));
      for (Value result : op->getResults())
        sayConversions(op, result);
      for (Region &region : op->getRegions())
        for (BlockArgument argument : region.getArguments())
          sayConversions(op, argument);
    });
  }

private:
  void sayAccess(Operation *op) {
    auto remark = remarks::decided(remarks::layout, op);
    if (!remark)
      return;
    LayoutAttr chosen = plan.running.lookup(op), next;
    if (feedsProductsAlone(op)) {
      remark << remark::reason("{0} lies as {1}, which copies most at once: products take it from shared memory",
                               tile::textOf(op->getOperand(0).getType()), wordsOf(chosen));
      return;
    }
    int64_t least = 0;
    // The other layout has to be one that the access can be given.
    for (LayoutAttr layout : alternatives(op, chosen, plan, axes, target, warps)) {
      Preferred given = plan.given;
      given[op] = layout;
      LayoutPlan other = replan(std::move(given));
      if (other.running.lookup(op) != layout)
        continue;
      int64_t otherCost = costOf(function, other, axes, target);
      if (!next || otherCost < least) {
        next = layout;
        least = otherCost;
      }
    }
    std::string rest =
        next ? llvm::formatv("the next best, {0}, {1}{2}", wordsOf(next), costText(least), least < cost ? whyNot() : "")
                   .str()
             : "nothing in the kernel suggests another";
    remark << remark::reason("{0} lies as {1}; with it a warp's instructions for layouts, arithmetic and accesses are "
                             "about {2} in all; {3}",
                             tile::textOf(op->getOperand(0).getType()), wordsOf(chosen), costText(cost), rest);
  }

  /// Why a layout was not taken with which the kernel is estimated to cost less.
  StringRef whyNot() const {
    if (function->hasAttr(tile::ordersAccessesAttrName))
      return ", but the kernel's schedule was chosen for the first";
    return ", but more is read, or less of each sector filled, or the search ended before";
  }

  void sayConversions(Operation *op, Value value) {
    if (feedsProductsAlone(op))
      return;
    LayoutAttr own = tensorOf(value) ? plan.own.lookup(value) : LayoutAttr();
    if (!own)
      return;
    for (LayoutAttr other : plan.layoutsOf(value)) {
      if (other == own)
        continue;
      auto remark = remarks::decided(remarks::conversion, op);
      if (!remark)
        return;
      unsigned bytes = travellingBytes(value, own.getLayout(), other.getLayout());
      int64_t each = conversionCost(own.getLayout(), other.getLayout(), bytes);
      bool inside = each == 0 || warp::shuffleExchange(own.getLayout(), other.getLayout(), bytes);
      remark << remark::reason("{0} is converted from {1} to {2} {3}, about {4} instructions of a warp{5}",
                               tile::textOf(value.getType()), wordsOf(own), wordsOf(other),
                               inside ? "inside the warp" : "through shared memory", costText(each),
                               timesText(tripsOf(op)));
    }
  }

  static std::string timesText(int64_t trips) {
    return trips > 1 ? llvm::formatv(", weighed {0} times", trips).str() : "";
  }

  func::FuncOp function;
  const LayoutPlan &plan;
  const AxisAnalysis &axes;
  const TargetInfo &target;
  int warps;
  llvm::function_ref<LayoutPlan(Preferred)> replan;
  int64_t cost;
};

} // namespace

void explainLayouts(func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes, const TargetInfo &target,
                    int warps, llvm::function_ref<LayoutPlan(Preferred)> replan) {
  if (remarks::asked(function))
    Explainer(function, plan, axes, target, warps, replan).run();
}

} // namespace weft

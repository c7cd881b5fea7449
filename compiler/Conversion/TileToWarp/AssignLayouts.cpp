// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/TileToWarp/AssignLayouts.h"

#include "compiler/Analysis/AxisTransfer.h"
#include "compiler/Conversion/TileToWarp/ExplainLayouts.h"
#include "compiler/Conversion/TileToWarp/Products/PlanDots.h"
#include "compiler/Conversion/TileToWarp/SearchLayouts.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/MmaLayouts.h"
#include "dialects/Warp/Transforms/LoopSlice.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/Sequence.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using llvm::SmallVector;
using weft::warp::LayoutAttr;
using weft::warp::LinearLayout;

namespace weft {

llvm::SmallBitVector reducedAxes(Value value) {
  const unsigned rank = cast<RankedTensorType>(value.getType()).getRank();
  llvm::SmallBitVector direct(rank), all(rank);
  // Each value computed of it, and which of its axes those of the value are.
  llvm::SmallMapVector<Value, SmallVector<unsigned, 4>, 8> made;
  made[value] = llvm::to_vector<4>(llvm::seq(rank));
  for (size_t i = 0; i < made.size(); ++i) {
    const auto [source, axes] = *std::next(made.begin(), i);
    for (OpOperand &use : source.getUses()) {
      Operation *user = use.getOwner();
      if (auto reduce = dyn_cast<tile::ReduceOp>(user)) {
        (axes.size() == rank ? direct : all).set(axes[reduce.getAxis()]);
        SmallVector<unsigned, 4> left(axes);
        left.erase(left.begin() + reduce.getAxis());
        for (Value result : user->getResults())
          if (!left.empty())
            made.try_emplace(result, left);
      } else if (kindOf(user) == OpKind::Elementwise) {
        for (Value result : user->getResults())
          made.try_emplace(result, axes);
      } else if (auto yield = dyn_cast<scf::YieldOp>(user); yield && isa<scf::ForOp, scf::IfOp>(yield->getParentOp())) {
        made.try_emplace(yield->getParentOp()->getResult(use.getOperandNumber()), axes);
      }
    }
  }
  all |= direct;
  return all.all() ? direct : all;
}

namespace {

/// Which of two layouts wins where they meet. A layout is only ever replaced by a stronger one, so spreading ends.
/// A loop's products run as often as the loop turns: what it carries, lies as they want it.
enum class Strength : uint8_t { None, Memory, Product, ProductInLoop };

struct Choice {
  LayoutAttr layout;
  Strength strength = Strength::None;
};

class Planner {
public:
  Planner(func::FuncOp function, LayoutRules rules, const AxisAnalysis &axes, const TargetInfo &target, int warps)
      : function(function), axes(axes), target(target), warps(warps), plan(std::move(rules)) {}

  /// Plans with some accesses' layouts given; the others choose theirs.
  LayoutPlan run(Preferred given) {
    plan.given = std::move(given);
    spreadAll();
    // What no layout has reached by now, none will: a loop's results have one only once its body has. It is computed of
    // nothing that was loaded, and lies as a tile of its shape does that was: the two are likely to meet.
    function.walk([&](Operation *op) {
      for (Value result : op->getResults())
        if (LayoutAttr own = tensorOf(result) ? plan.own.lookup(result) : LayoutAttr())
          alike.try_emplace(shapeKey(result), own);
    });
    defaults = true;
    spreadAll();
    function.walk([&](Operation *op) {
      if (kindOf(op) == OpKind::Effect)
        plan.running[op] = effectLayout(op);
    });
    function.walk([&](tile::DotOp dot) {
      // Operands go to shared memory from where they are, or are there in registers as the instructions take them.
      if (plan.rules.dot(dot).usesWarpgroups())
        plan.rules.setOperands(dot, {ownOrDefault(dot.getA()), ownOrDefault(dot.getB())});
    });
    function.walk<WalkOrder::PreOrder>([&](Operation *op) { needOperands(op); });
    return std::move(plan);
  }

private:
  // --- forward: layouts spread ---
  void spreadAll() {
    bool changed = true;
    while (changed) {
      changed = false;
      function.walk<WalkOrder::PreOrder>([&](Operation *op) { changed |= spreadThrough(op); });
    }
  }
  Choice choiceOf(Value value) const { return choices.lookup(value); }
  Choice strongest(ValueRange values) const;
  bool spread(Value to, Choice choice);
  bool adopt(Operation *op, Choice choice);
  bool spreadThrough(Operation *op);
  bool spreadThroughStructure(Operation *op);
  Choice fixedChoice(Operation *op);
  LayoutAttr accessLayout(Operation *op) const;
  /// Whether a load is a product's operand, rounded at most, whose tile has its lines along another axis than `fast`, along
  /// which memory has its elements.
  bool isTurnedOnTheWay(tile::LoadOp load, unsigned fast) const;
  /// The layout of such a load, where vectors fill it.
  std::optional<LinearLayout> turnedLayoutOf(tile::LoadOp load, const Access &access) const;
  LayoutAttr effectLayout(Operation *op) const;

  // --- backward: needs spread ---
  void need(Value value, LayoutAttr layout);
  void needSources(Value value, LayoutAttr layout);
  void needOperands(Operation *op);

  LayoutAttr attr(const LinearLayout &layout) const { return plan.rules.attr(layout); }
  LayoutAttr ownOrDefault(Value value) const {
    LayoutAttr own = plan.own.lookup(value);
    return own ? own : defaultFor(value);
  }
  Attribute shapeKey(Value value) const {
    return DenseI64ArrayAttr::get(value.getContext(), tensorOf(value).getShape());
  }
  LayoutAttr defaultFor(Value value) const { return attr(defaultLayout(tensorOf(value).getShape(), warps)); }

  func::FuncOp function;
  const AxisAnalysis &axes;
  const TargetInfo &target;
  int warps;
  LayoutPlan plan;
  bool defaults = false;                       // for what no layout reaches
  llvm::DenseMap<Attribute, LayoutAttr> alike; // of the first tile of a shape that layouts reach
  llvm::DenseMap<Value, Choice> choices;
  llvm::DenseMap<Operation *, Strength> adopted;
};

Choice Planner::strongest(ValueRange values) const {
  Choice best;
  for (Value value : values)
    if (Choice choice = choiceOf(value); choice.strength > best.strength)
      best = choice;
  return best;
}

bool Planner::spread(Value to, Choice choice) {
  if (!choice.layout || !tensorOf(to) || choiceOf(to).strength >= choice.strength)
    return false;
  choices[to] = choice;
  plan.own[to] = choice.layout;
  return true;
}

bool Planner::adopt(Operation *op, Choice choice) {
  Strength &current = adopted[op];
  if (!choice.layout || current >= choice.strength)
    return false;
  current = choice.strength;
  plan.running[op] = choice.layout;
  for (OpResult result : op->getResults())
    spread(result, {plan.rules.resultLayout(op, choice.layout, result.getResultNumber()), choice.strength});
  return true;
}

/// The access as it is where an instruction takes as many bytes as a load's.
static Access wholeVectors(Access access, const TargetInfo &target) {
  access.mostElements = target.vectorBytes / access.elementBytes;
  return access;
}

bool Planner::isTurnedOnTheWay(tile::LoadOp load, unsigned fast) const {
  SmallVector<std::pair<Value, unsigned>> made{{load.getResult(), fast}};
  bool isTurned = false;
  while (!made.empty()) {
    auto [value, axis] = made.pop_back_val();
    for (OpOperand &use : value.getUses()) {
      Operation *user = use.getOwner();
      if (auto permute = dyn_cast<tile::PermuteOp>(user)) {
        const auto *at = llvm::find(permute.getOrder(), int32_t(axis));
        made.emplace_back(permute.getResult(), at - permute.getOrder().begin());
      } else if (isa<warp::RoundTF32Op>(user)) {
        made.emplace_back(user->getResult(0), axis);
      } else if (auto dot = dyn_cast<tile::DotOp>(user);
                 dot && plan.rules.dot(dot).usesWarpgroups() && use.getOperandNumber() < 2) {
        if (axis == (use.getOperandNumber() == 0 ? 1u : 0u))
          return false;
        isTurned = true;
      } else {
        return false;
      }
    }
  }
  return isTurned;
}

std::optional<LinearLayout> Planner::turnedLayoutOf(tile::LoadOp load, const Access &access) const {
  if (access.shape.size() != 2 || !tile::elementTypeOf(load.getType()).isF32())
    return std::nullopt;
  unsigned fast = fastestFirst(access.pointer).front();
  if (!isTurnedOnTheWay(load, fast))
    return std::nullopt;
  std::optional<LinearLayout> blocks = turnedBlocks(access, fast, warps, target);
  return blocks && accessWidth(*blocks, access) * access.elementBytes == target.vectorBytes ? blocks : std::nullopt;
}

LayoutAttr Planner::accessLayout(Operation *op) const {
  Access access = accessOf(op, axes, target);
  // Whatever else would be cheaper for the load: its stores to shared memory take the most.
  if (auto load = dyn_cast<tile::LoadOp>(op))
    if (std::optional<LinearLayout> blocks = turnedLayoutOf(load, access))
      return attr(*blocks);
  if (LayoutAttr given = plan.given.lookup(op))
    return given;
  // Addresses that come from memory are as far apart as they like: stay where they are.
  if (LayoutAttr pointers = plan.own.lookup(op->getOperand(0));
      pointers && access.pointer.contiguity[fastestFirst(access.pointer).front()] == 1)
    return pointers;
  // Additions go to memory from where they are, if neighbours fill sectors. Of kernels that the compiler writes, whose
  // schedules count on sums not being moved, what two instructions fill will do.
  if (auto atomic = dyn_cast<tile::AtomicRMWOp>(op); atomic && atomic->use_empty())
    if (LayoutAttr value = plan.own.lookup(atomic.getValue());
        value &&
        bytesPerRun(value.getLayout(), function->hasAttr(tile::ordersAccessesAttrName) ? wholeVectors(access, target)
                                                                                       : access) >= target.sectorBytes)
      return value;
  llvm::SmallBitVector summed =
      isa<tile::LoadOp>(op) && access.shape.size() > 1 ? reducedAxes(op->getResult(0)) : llvm::SmallBitVector();
  return attr(coalescedLayout(access, warps, target, summed));
}

/// Bytes of an element of what is computed one by one of loads alone, or goes to stores alone, where it is in memory; none
/// where it is neither.
static unsigned bytesInMemory(Value value, bool loaded) {
  unsigned bytes = 0;
  auto visit = [&](Value other) { bytes = std::max(bytes, bytesInMemory(other, loaded)); };
  if (loaded) {
    Operation *op = value.getDefiningOp();
    if (isa_and_nonnull<tile::LoadOp>(op))
      return warp::elementBytes(tile::elementTypeOf(value.getType()));
    if (op && kindOf(op) == OpKind::Elementwise && isa<CastOpInterface, arith::SelectOp>(op))
      llvm::for_each(op->getOperands(), visit);
    return bytes;
  }
  for (Operation *user : value.getUsers())
    if (isa<tile::StoreOp>(user))
      bytes = std::max(bytes, warp::elementBytes(tile::elementTypeOf(value.getType())));
    else if (kindOf(user) == OpKind::Elementwise && isa<CastOpInterface, arith::SelectOp>(user))
      visit(user->getResult(0));
    else
      return warp::elementBytes(tile::elementTypeOf(value.getType()));
  return bytes;
}

Choice Planner::fixedChoice(Operation *op) {
  if (isa<tile::LoadOp, tile::AtomicRMWOp, tile::AtomicCASOp>(op))
    return {accessLayout(op), Strength::Memory};
  if (auto dot = dyn_cast<tile::DotOp>(op)) {
    const DotPlan &dotPlan = plan.rules.dot(op);
    Strength strength = op->getParentOfType<LoopLikeOpInterface>() ? Strength::ProductInLoop : Strength::Product;
    RankedTensorType type = cast<RankedTensorType>(dot.getType());
    if (dotPlan.usesWarpgroups())
      return {attr(warp::wgmmaAccLayout(type.getShape(), *dotPlan.groups)), strength};
    if (!dotPlan.usesMma())
      return {attr(fmaLayout(type.getShape(), warps)), strength};
    return {attr(dotPlan.sums(type.getShape())), strength};
  }
  if (auto dot = dyn_cast<tile::RowDotOp>(op)) {
    auto type = cast<RankedTensorType>(dot.getA().getType());
    unsigned rows = std::min<int64_t>(warps, type.getDimSize(0) / 16);
    return {attr(warp::mmaOperandLayout(warp::MmaOperand::A, type.getShape(), {rows, warps / rows},
                                        type.getElementTypeBitWidth())),
            Strength::Product};
  }
  // A lane that holds neighbours joins them without its fellows: as many as one access has, so that memory that they
  // come from or go to is accessed without gaps.
  if (auto scan = dyn_cast<tile::ScanOp>(op)) {
    auto type = cast<RankedTensorType>(scan.getSources().front().getType());
    int64_t each = type.getRank() == 1 ? type.getDimSize(0) / (int64_t(target.warpSize) * warps) : 0;
    unsigned bytes = std::max(bytesInMemory(scan.getSources().front(), /*loaded=*/true),
                              bytesInMemory(scan.getResults().front(), /*loaded=*/false));
    int64_t ofAccess = target.vectorBytes / (bytes ? bytes : warp::elementBytes(type.getElementType()));
    // Of several values at once each step costs as many exchanges.
    if (each * int64_t(scan.getSources().size()) >= 8)
      return {attr(blockedLayout(type.getShape(), {0}, std::min(each, ofAccess), warps)), Strength::Memory};
  }
  // A gather's indices come to its source, not the other way round.
  Choice operand = isa<tile::GatherOp>(op) ? choiceOf(op->getOperand(0)) : strongest(op->getOperands());
  if (operand.layout)
    if (LayoutAttr layout = plan.rules.layoutFromOperand(op, operand.layout))
      return {layout, operand.strength};
  if (!defaults)
    return {};
  if (LayoutAttr given = plan.given.lookup(op))
    return {given, Strength::Memory};
  if (auto split = dyn_cast<tile::SplitOp>(op))
    return {attr(joinedLayout(defaultLayout(cast<RankedTensorType>(split.getLhs().getType()).getShape(), warps))),
            Strength::Memory};
  LayoutAttr layout = alike.lookup(shapeKey(op->getOperand(0)));
  if (!layout)
    layout = defaultFor(op->getOperand(0));
  return {isa<tile::JoinOp>(op) ? plan.rules.layoutFromOperand(op, layout) : layout, Strength::Memory};
}

bool Planner::spreadThroughStructure(Operation *op) {
  bool changed = false;
  auto merge = [&](ArrayRef<Value> members, ValueRange sources) {
    Choice choice = strongest(sources);
    for (Value member : members)
      changed |= spread(member, choice);
  };
  if (auto loop = dyn_cast<scf::ForOp>(op))
    for (auto [argument, result, init, yielded] :
         llvm::zip(loop.getRegionIterArgs(), loop.getResults(), loop.getInitArgs(), loop.getYieldedValues()))
      merge({argument, result}, {init, yielded});
  if (auto branch = dyn_cast<scf::IfOp>(op))
    for (OpResult result : branch.getResults())
      merge({result}, {branch.thenYield().getOperand(result.getResultNumber()),
                       branch.elseYield().getOperand(result.getResultNumber())});
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    for (auto [argument, init, yielded] :
         llvm::zip(loop.getBeforeArguments(), loop.getInits(), loop.getYieldOp().getOperands()))
      merge({argument}, {init, yielded});
    for (auto [argument, result, passed] :
         llvm::zip(loop.getAfterArguments(), loop.getResults(), loop.getConditionOp().getArgs()))
      merge({argument, result}, {passed});
  }
  return changed;
}

bool Planner::spreadThrough(Operation *op) {
  switch (kindOf(op)) {
  case OpKind::Structured:
    return spreadThroughStructure(op);
  case OpKind::Fixed:
    return adopt(op, fixedChoice(op));
  case OpKind::Elementwise:
  case OpKind::Reorder: {
    Choice operand = strongest(op->getOperands());
    LayoutAttr given = plan.given.lookup(op);
    if (given && operand.strength <= Strength::Memory)
      return adopt(op, {given, Strength::Memory});
    return operand.layout && adopt(op, {plan.rules.layoutFromOperand(op, operand.layout), operand.strength});
  }
  default:
    return false;
  }
}

/// Whether elements lie apart in memory, and lanes that share them out store them by so much fewer instructions that
/// addresses of their own are less.
static bool storesApart(const Access &access, const LinearLayout &own, const LinearLayout &shares) {
  constexpr int64_t leastTimes = 4;
  return access.shape.size() == 1 && access.pointer.contiguity.front() == 1 &&
         instructionsOf(shares, access, {}) * leastTimes <= instructionsOf(own, access, {});
}

LayoutAttr Planner::effectLayout(Operation *op) const {
  auto store = dyn_cast<tile::StoreOp>(op);
  if (!store) {
    LayoutAttr own = plan.own.lookup(op->getOperand(0));
    return own ? own : defaultFor(op->getOperand(0));
  }
  if (LayoutAttr given = plan.given.lookup(op))
    return given;
  Access access = accessOf(op, axes, target);
  LayoutAttr coalesced = attr(coalescedLayout(access, warps, target));
  LayoutAttr own = plan.own.lookup(store.getValue());
  if (!own)
    own = plan.own.lookup(store.getPtr());
  if (!own)
    return coalesced;
  // Stored from where it is, unless going through shared memory first fills more of each sector.
  int64_t best = std::min<int64_t>(bytesPerRun(coalesced.getLayout(), access), target.sectorBytes);
  // Lanes that hold the same may each store a share of it: to choose among registers takes no exchange.
  LayoutAttr shares = attr(sharedOutLayout(own.getLayout(), accessWidth(own.getLayout(), access)));
  int64_t run = bytesPerRun(own.getLayout(), access);
  if ((run < best && bytesPerRun(shares.getLayout(), access) > run) ||
      (plan.isFree(store.getPtr()) && storesApart(access, own.getLayout(), shares.getLayout())))
    own = shares;
  bool fullVectors = accessWidth(own.getLayout(), access) * access.elementBytes >= target.vectorBytes;
  if (fullVectors || bytesPerRun(own.getLayout(), access) >= best)
    return own;
  std::optional<LinearLayout> turned = turnedLayout(own.getLayout(), access, warps, target);
  return turned ? attr(*turned) : coalesced;
}

void Planner::need(Value value, LayoutAttr layout) {
  if (!tensorOf(value) || !layout || !plan.needed[value].insert(layout) || !plan.isFree(value))
    return;
  needSources(value, layout);
}

void Planner::needSources(Value value, LayoutAttr layout) {
  if (auto argument = dyn_cast<BlockArgument>(value)) {
    Operation *parent = argument.getOwner()->getParentOp();
    if (auto loop = dyn_cast<scf::ForOp>(parent))
      need(loop.getTiedLoopResult(argument), layout);
    if (auto loop = dyn_cast<scf::WhileOp>(parent)) {
      unsigned index = argument.getArgNumber();
      if (argument.getOwner() == loop.getBeforeBody()) {
        need(loop.getInits()[index], layout);
        need(loop.getYieldOp().getOperand(index), layout);
      } else {
        need(loop.getResult(index), layout);
      }
    }
    return;
  }
  Operation *op = value.getDefiningOp();
  unsigned index = cast<OpResult>(value).getResultNumber();
  if (auto loop = dyn_cast<scf::ForOp>(op)) {
    need(loop.getRegionIterArg(index), layout);
    need(loop.getInitArgs()[index], layout);
    need(loop.getYieldedValues()[index], layout);
  } else if (auto branch = dyn_cast<scf::IfOp>(op)) {
    need(branch.thenYield().getOperand(index), layout);
    need(branch.elseYield().getOperand(index), layout);
  } else if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    need(loop.getAfterArguments()[index], layout);
    need(loop.getConditionOp().getArgs()[index], layout);
  } else {
    for (OpOperand &operand : op->getOpOperands())
      need(operand.get(), plan.rules.operandLayout(op, layout, operand.getOperandNumber()));
  }
}

void Planner::needOperands(Operation *op) {
  if (LayoutAttr layout = plan.running.lookup(op))
    for (OpOperand &operand : op->getOpOperands())
      need(operand.get(), plan.rules.operandLayout(op, layout, operand.getOperandNumber()));
  auto pass = [&](Value member, ValueRange sources) {
    for (Value source : sources)
      need(source, plan.own.lookup(member));
  };
  if (auto loop = dyn_cast<scf::ForOp>(op))
    for (auto [result, init, yielded] : llvm::zip(loop.getResults(), loop.getInitArgs(), loop.getYieldedValues()))
      pass(result, {init, yielded});
  if (auto branch = dyn_cast<scf::IfOp>(op))
    for (OpResult result : branch.getResults())
      pass(result, {branch.thenYield().getOperand(result.getResultNumber()),
                    branch.elseYield().getOperand(result.getResultNumber())});
  if (auto loop = dyn_cast<scf::WhileOp>(op)) {
    for (auto [argument, init, yielded] :
         llvm::zip(loop.getBeforeArguments(), loop.getInits(), loop.getYieldOp().getOperands()))
      pass(argument, {init, yielded});
    for (auto [result, passed] : llvm::zip(loop.getResults(), loop.getConditionOp().getArgs()))
      pass(result, {passed});
  }
}

/// A vector beside the products of a loop: it is copied ahead with their operands (warp-stage-operands), so that what
/// matters is how it is copied, not how it is read. Indices are not.
bool isCopiedAhead(tile::LoadOp load, const TargetInfo &target) {
  Type element = tile::elementTypeOf(load.getType());
  bool zerosElsewhere =
      !load.getOther() || matchPattern(load.getOther(), m_Zero()) || matchPattern(load.getOther(), m_AnyZeroFloat());
  return tensorOf(load.getResult()).getRank() == 1 && isa<scf::ForOp>(load->getParentOp()) && zerosElsewhere &&
         !load.getIsVolatile() && element.isIntOrFloat() && target.canCopyAsync(element.getIntOrFloatBitWidth() / 8) &&
         !warp::addressesLoads(load) && llvm::any_of(*load->getBlock(), llvm::IsaPred<tile::DotOp>);
}

/// Whether a load may take any layout: operands of products go through shared memory anyway, and want wide copies.
bool mayTakeAny(tile::LoadOp load, const LayoutPlan &plan, const TargetInfo &target) {
  return tensorOf(load.getResult()) && plan.isFree(load.getPtr()) && !isCopiedAhead(load, target) &&
         !llvm::any_of(load->getUsers(), llvm::IsaPred<tile::DotOp, tile::RowDotOp>);
}

/// Loads whose value nothing takes as it is loaded, but everything in one other layout, that can as well be loaded in
/// that one: the traffic stays the same and the conversion goes. Operands of products are left: they go through shared
/// memory anyway, and want wide copies.
Preferred betterLoads(func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes,
                      const TargetInfo &target) {
  Preferred better;
  function.walk([&](tile::LoadOp load) {
    auto needed = plan.needed.find(load.getResult());
    if (!tensorOf(load.getResult()) || needed == plan.needed.end() || needed->second.size() != 1 ||
        !plan.isFree(load.getPtr()))
      return;
    LayoutAttr only = needed->second.front();
    if (only == plan.own.lookup(load.getResult()) ||
        llvm::any_of(load->getUsers(), llvm::IsaPred<tile::DotOp, tile::RowDotOp>) || isCopiedAhead(load, target))
      return;
    Access access = accessOf(load, axes, target);
    int64_t run = bytesPerRun(only.getLayout(), access);
    int64_t width = accessWidth(only.getLayout(), access) * access.elementBytes;
    if (access.shape.size() == 1 || run >= target.sectorBytes || width >= target.vectorBytes)
      better[load] = only;
  });
  return better;
}

/// Loads of narrow elements whose results are stored wide, in the stores' layouts: a lane's share of a row then fills one
/// vector of the store, so that no access leaves gaps in sectors that the next one fills.
void meetWideStores(func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes, const TargetInfo &target,
                    int warps, Preferred &better) {
  llvm::DenseMap<Attribute, LayoutAttr> instead; // of a layout: that of a store which it suits badly
  function.walk([&](tile::StoreOp store) {
    LayoutAttr own = plan.running.lookup(store);
    if (!own || !tensorOf(store.getValue()))
      return;
    Access access = accessOf(store, axes, target);
    LayoutAttr coalesced = plan.rules.attr(coalescedLayout(access, warps, target));
    if (bytesPerRun(own.getLayout(), access) < target.sectorBytes &&
        bytesPerRun(coalesced.getLayout(), access) >= target.sectorBytes)
      instead.try_emplace(own, coalesced);
  });
  function.walk([&](tile::LoadOp load) {
    LayoutAttr chosen = tensorOf(load.getResult()) ? instead.lookup(plan.own.lookup(load.getResult())) : LayoutAttr();
    if (!chosen || better.count(load) || !plan.isFree(load.getPtr()) ||
        llvm::any_of(load->getUsers(), llvm::IsaPred<tile::DotOp, tile::RowDotOp>))
      return;
    Access access = accessOf(load, axes, target);
    if (bytesPerRun(chosen.getLayout(), access) >= target.sectorBytes)
      better[load] = chosen;
  });
}

/// Loads of wide elements that meet narrow ones in arithmetic, in the layout of those: a lane's share of a row is as
/// many elements of each then, several vectors of the wide ones, and nothing is exchanged.
void meetNarrowLoads(func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes, const TargetInfo &target,
                     Preferred &better) {
  SmallVector<tile::LoadOp> loads;
  function.walk([&](tile::LoadOp load) {
    if (RankedTensorType type = tensorOf(load.getResult());
        type && type.getRank() == 2 && plan.isFree(load.getPtr()) &&
        !llvm::any_of(load->getUsers(), llvm::IsaPred<tile::DotOp, tile::RowDotOp>))
      loads.push_back(load);
  });
  auto bytesOf = [](tile::LoadOp load) { return unitOf(load.getPtr().getType()); };
  llvm::DenseMap<Attribute, LayoutAttr> instead; // of a layout: that of narrow elements which meet it
  for (tile::LoadOp narrow : loads)
    for (tile::LoadOp wide : loads) {
      LayoutAttr its = plan.own.lookup(narrow.getResult()), other = plan.own.lookup(wide.getResult());
      if (bytesOf(narrow) >= bytesOf(wide) || !its || !other || its == other)
        continue;
      if (llvm::is_contained(plan.layoutsOf(narrow.getResult()), other) ||
          llvm::is_contained(plan.layoutsOf(wide.getResult()), its))
        instead.try_emplace(other, its);
    }
  for (tile::LoadOp load : loads) {
    LayoutAttr chosen = instead.lookup(plan.own.lookup(load.getResult()));
    if (!chosen || better.count(load))
      continue;
    Access access = accessOf(load, axes, target);
    if (accessWidth(chosen.getLayout(), access) * access.elementBytes >= target.vectorBytes)
      better[load] = chosen;
  }
}

/// Whether there is a rule for an op, apart from its operands: its kind, and control flow that can be written anew.
LogicalResult checkOp(Operation *op) {
  OpKind kind = kindOf(op);
  if (kind == OpKind::Unknown)
    return op->emitError(
               "expected an op on tensors that the tile dialect or element-wise arithmetic provides, but got '")
           << op->getName() << "'";
  if (op->getNumRegions() > 0 && kind != OpKind::Structured && !isa<tile::ReduceOp, tile::ScanOp, tile::MapOp>(op))
    return op->emitError("expected control flow by 'scf.for', 'scf.while' or 'scf.if', but got '")
           << op->getName() << "'";
  return success();
}

LogicalResult checkOps(func::FuncOp function) {
  if (!function.getBody().hasOneBlock())
    return function.emitError("expected a kernel of one block, with control flow by 'scf' ops");
  WalkResult result = function.getBody().walk([&](Operation *op) { return WalkResult(checkOp(op)); });
  return failure(result.wasInterrupted());
}

} // namespace

SmallVector<LayoutAttr> LayoutPlan::layoutsOf(Value value) const {
  SmallVector<LayoutAttr> layouts;
  if (LayoutAttr first = own.lookup(value))
    layouts.push_back(first);
  if (auto found = needed.find(value); found != needed.end())
    for (LayoutAttr layout : found->second)
      if (!llvm::is_contained(layouts, layout))
        layouts.push_back(layout);
  return layouts;
}

/// How many neighbours one instruction of a load, store or atomic can access.
static int64_t mostElements(Operation *op, const TargetInfo &target) {
  Type pointer = op->getOperand(0).getType();
  if (auto atomic = dyn_cast<tile::AtomicRMWOp>(op))
    return atomic.getKind() == tile::AtomicKind::FAdd ? target.elementsOfAtomicAdd(tile::pointeeTypeOf(pointer)) : 1;
  return isa<tile::AtomicCASOp>(op) ? 1 : std::max<int64_t>(1, target.vectorBytes / unitOf(pointer));
}

Access accessOf(Operation *op, const AxisAnalysis &axes, const TargetInfo &target) {
  Value pointer = op->getOperand(0), mask;
  if (auto load = dyn_cast<tile::LoadOp>(op))
    mask = load.getMask();
  if (auto store = dyn_cast<tile::StoreOp>(op))
    mask = store.getMask();
  if (auto atomic = dyn_cast<tile::AtomicRMWOp>(op))
    mask = atomic.getMask();
  Access access{tensorOf(pointer).getShape(), axes.lookup(pointer), std::nullopt, unitOf(pointer.getType()),
                mostElements(op, target)};
  if (mask)
    access.mask = axes.lookup(mask);
  const unsigned fastest = access.shape.empty() ? 0 : fastestFirst(access.pointer).front();
  if (access.shape.size() > 1 && access.pointer.contiguity[fastest] < access.shape[fastest])
    access.steps = axes.stepsOf(pointer);
  return access;
}

FailureOr<LayoutPlan> assignLayouts(func::FuncOp function, const AxisAnalysis &axes, const TargetInfo &target,
                                    int warps) {
  if (failed(checkOps(function)))
    return failure();
  auto dots = planDots(function, axes, target, warps);
  if (failed(dots))
    return failure();
  LayoutRules rules(function.getContext(), std::move(*dots));
  LayoutPlan plan = Planner(function, rules, axes, target, warps).run(Preferred());
  Preferred better = betterLoads(function, plan, axes, target);
  meetNarrowLoads(function, plan, axes, target, better);
  meetWideStores(function, plan, axes, target, warps, better);
  auto replan = [&](const Preferred &given) { return Planner(function, rules, axes, target, warps).run(given); };
  if (!better.empty())
    plan = replan(better);
  auto mayMove = [&](Operation *load, const LayoutPlan &plan) {
    return mayTakeAny(cast<tile::LoadOp>(load), plan, target);
  };
  // Kernels that the compiler writes have schedules that were chosen for the layouts that their vectors take.
  if (function->hasAttr(tile::ordersAccessesAttrName)) {
    plan = searchTiles(function, std::move(plan), std::move(better), axes, target, replan, mayMove);
  } else {
    auto isVector = [](Operation *load) { return tensorOf(load->getResult(0)).getRank() == 1; };
    // Vectors come to lie as what they meet does in this plan.
    auto withVectors = [&](Preferred given) {
      LayoutPlan other = replan(given);
      size_t before = given.size();
      for (auto [load, layout] : betterLoads(function, other, axes, target))
        if (isVector(load))
          given.try_emplace(load, layout);
      return given.size() == before ? std::move(other) : replan(given);
    };
    Preferred given;
    for (auto [load, layout] : better)
      if (!isVector(load))
        given[load] = layout;
    plan = searchLayouts(function, std::move(plan), std::move(given), axes, target, withVectors, mayMove);
  }
  explainLayouts(function, plan, axes, target, warps, replan);
  return plan;
}

} // namespace weft

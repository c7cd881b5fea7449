// Part of Weft. SPDX-License-Identifier: Apache-2.0
// tile-to-warp writes a kernel anew, in the order it was written, after its layouts have been planned
// (AssignLayouts.h): an op that is worth running once is emitted once and its result converted to every other layout it
// is needed in, right where it is used first; any other op is emitted once for each layout that it is needed in, and
// not at all when it is needed in none. So a loop carries a pointer tensor that two loads with different layouts
// advance as two tensors, and nothing has to be removed afterwards.
//
//   %r = tile.make_range ...          : tensor<128xi32>
//   %p = tile.addptr %base, %r        : tensor<128x!tile.ptr<f32>>
//   %x = tile.load %p                 : tensor<128x!tile.ptr<f32>>
// becomes
//   %r = tile.make_range ...          : tensor<128xi32, #layout>
//   %p = tile.addptr %base, %r        : tensor<128x!tile.ptr<f32>, #layout>
//   %x = tile.load %p {warp.contiguity = 4 : i32} : tensor<128x!tile.ptr<f32>, #layout>
#include "compiler/Conversion/TileToWarp/AssignLayouts.h"
#include "compiler/Conversion/TileToWarp/LayoutCost.h"
#include "compiler/Conversion/TileToWarp/Passes.h"
#include "compiler/Conversion/TileToWarp/Products/Float8Products.h"
#include "compiler/Conversion/TileToWarp/Products/TF32Products.h"
#include "compiler/Conversion/TileToWarp/Products/WidenedProducts.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Tile/IR/TileProgramOps.h"
#include "dialects/Warp/Transforms/LoopCarried.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using llvm::SmallVector;
using weft::warp::LayoutAttr;

namespace weft {
#define GEN_PASS_DEF_TILETOWARP
#include "compiler/Conversion/TileToWarp/Passes.h.inc"

namespace {

/// One value of the new kernel that stands for an old one: in one layout, or a scalar.
struct Slot {
  unsigned index;
  LayoutAttr layout;
};

class Writer {
public:
  Writer(func::FuncOp function, const LayoutPlan &plan, const AxisAnalysis &axes, const AxisAnalysis &proven,
         const TargetInfo &target)
      : function(function), plan(plan), axes(axes), proven(proven), target(target), b(function.getContext()) {}

  void run() {
    Region old;
    old.takeBody(function.getBody());
    Block &source = old.front();
    Block *entry = b.createBlock(&function.getBody());
    for (BlockArgument argument : source.getArguments())
      define(argument, {}, entry->addArgument(argument.getType(), argument.getLoc()));
    writeOps(source);
    Operation *end = source.getTerminator();
    b.clone(*end, scalars);
    source.dropAllReferences();
  }

private:
  using Key = std::pair<Value, Attribute>;

  Value get(Value old, LayoutAttr layout) const { return made.find(Key(old, layout))->second; }

  /// Records what stands for `old` in `layout`, and makes the conversions that others need of it.
  void define(Value old, LayoutAttr layout, Value value) {
    made[Key(old, layout)] = value;
    if (!layout)
      scalars.map(old, value);
    if (!layout || plan.isFree(old))
      return;
    for (LayoutAttr other : plan.layoutsOf(old))
      if (other != layout)
        made[Key(old, other)] = converted(old, value, other);
  }

  /// `value`, which stands for `old`, in another layout. What was widened travels as narrow as it was where that is cheaper.
  Value converted(Value old, Value value, LayoutAttr layout) {
    Operation *widened = wideningOf(value);
    if (!widened || !travelsNarrow(old, plan.own.lookup(old).getLayout(), layout.getLayout()))
      return warp::ConvertLayoutOp::create(b, old.getLoc(), typeIn(old, layout), value);
    Value narrow = widened->getOperand(0);
    Type type =
        cast<RankedTensorType>(typeIn(old, layout)).clone(cast<RankedTensorType>(narrow.getType()).getElementType());
    narrow = warp::ConvertLayoutOp::create(b, old.getLoc(), type, narrow);
    Operation *again = b.clone(*widened);
    again->setLoc(old.getLoc());
    again->setOperand(0, narrow);
    again->getResult(0).setType(typeIn(old, layout));
    return again->getResult(0);
  }

  static Type typeIn(Value old, LayoutAttr layout) {
    RankedTensorType type = tensorOf(old);
    return type ? RankedTensorType::get(type.getShape(), type.getElementType(), layout) : old.getType();
  }

  /// What carries `values` through a loop or out of a branch.
  SmallVector<Slot> slotsFor(ValueRange values) const {
    SmallVector<Slot> slots;
    for (auto [index, value] : llvm::enumerate(values)) {
      if (!tensorOf(value))
        slots.push_back({unsigned(index), {}});
      else if (LayoutAttr own = plan.own.lookup(value))
        slots.push_back({unsigned(index), own});
      else
        for (LayoutAttr layout : plan.layoutsOf(value))
          slots.push_back({unsigned(index), layout});
    }
    return slots;
  }
  SmallVector<Value> gather(ArrayRef<Slot> slots, ValueRange values) const {
    SmallVector<Value> gathered;
    for (Slot slot : slots)
      gathered.push_back(get(values[slot.index], slot.layout));
    return gathered;
  }
  void defineAll(ArrayRef<Slot> slots, ValueRange old, ValueRange values) {
    for (auto [slot, value] : llvm::zip_equal(slots, values))
      define(old[slot.index], slot.layout, value);
  }
  SmallVector<Type> typesOf(ArrayRef<Slot> slots, ValueRange old) const {
    SmallVector<Type> types;
    for (Slot slot : slots)
      types.push_back(typeIn(old[slot.index], slot.layout));
    return types;
  }

  void writeOps(Block &source) {
    for (Operation &op : source.without_terminator())
      write(&op);
  }
  void write(Operation *op);
  void writeFor(scf::ForOp loop);
  void writeIf(scf::IfOp branch);
  void writeWhile(scf::WhileOp loop);
  void writeIn(Operation *op, LayoutAttr layout);
  Operation *copy(Operation *op, LayoutAttr layout);
  Operation *writeDot(tile::DotOp dot, LayoutAttr layout);
  void describeAccess(Operation *op, LayoutAttr layout, Operation *written);
  void describeRepeats(Operation *op, LayoutAttr layout, Operation *written);

  func::FuncOp function;
  const LayoutPlan &plan;
  const AxisAnalysis &axes;
  const AxisAnalysis &proven; // without promises
  const TargetInfo &target;
  OpBuilder b;
  llvm::DenseMap<Key, Value> made;
  IRMapping scalars; // for regions that use scalars from outside
};

void Writer::write(Operation *op) {
  if (auto loop = dyn_cast<scf::ForOp>(op))
    return writeFor(loop);
  if (auto branch = dyn_cast<scf::IfOp>(op))
    return writeIf(branch);
  if (auto loop = dyn_cast<scf::WhileOp>(op))
    return writeWhile(loop);
  if (kindOf(op) == OpKind::Scalar)
    return writeIn(op, {});
  if (LayoutAttr layout = plan.running.lookup(op))
    return writeIn(op, layout);
  llvm::SmallSetVector<LayoutAttr, 2> layouts;
  for (Value result : op->getResults())
    for (LayoutAttr layout : plan.layoutsOf(result))
      layouts.insert(layout);
  for (LayoutAttr layout : layouts)
    writeIn(op, layout);
}

void Writer::writeIn(Operation *op, LayoutAttr layout) {
  auto dot = dyn_cast<tile::DotOp>(op);
  Operation *written = dot && plan.rules.dot(op).usesMma() ? writeDot(dot, layout) : copy(op, layout);
  for (auto [old, result] : llvm::zip_equal(op->getResults(), written->getResults()))
    define(old, plan.rules.resultLayout(op, layout, result.getResultNumber()), result);
}

Operation *Writer::copy(Operation *op, LayoutAttr layout) {
  Operation *written = op->clone(scalars, Operation::CloneOptions().cloneRegions(true).cloneOperands(false));
  SmallVector<Value> operands;
  for (OpOperand &operand : op->getOpOperands())
    operands.push_back(get(operand.get(), plan.rules.operandLayout(op, layout, operand.getOperandNumber())));
  written->setOperands(operands);
  for (auto [old, result] : llvm::zip_equal(op->getResults(), written->getResults()))
    result.setType(typeIn(old, plan.rules.resultLayout(op, layout, result.getResultNumber())));
  if (auto constant = dyn_cast<arith::ConstantOp>(written); constant && layout)
    constant.setValueAttr(cast<DenseElementsAttr>(constant.getValue()).reshape(cast<ShapedType>(constant.getType())));
  if (layout && isa<tile::LoadOp, tile::StoreOp, tile::AtomicRMWOp, tile::AtomicCASOp>(op))
    describeAccess(op, layout, written);
  if (layout)
    describeRepeats(op, layout, written);
  b.insert(written);
  return written;
}

void Writer::describeAccess(Operation *op, LayoutAttr layout, Operation *written) {
  int64_t width = accessWidth(layout.getLayout(), accessOf(op, axes, target));
  written->setAttr(warp::contiguityAttrName, b.getI32IntegerAttr(width));
  AxisInfo pointer = proven.lookup(op->getOperand(0));
  if (layout.getLayout().size(warp::InDim::Register) > width &&
      llvm::any_of(pointer.contiguity, [&](int64_t run) { return run > width; }))
    written->setAttr(warp::runsAttrName, b.getDenseI32ArrayAttr(llvm::to_vector_of<int32_t>(pointer.contiguity)));
}

/// Equal neighbours of a load, for which one is loaded.
static AxisInfo::Axes repeatsOf(tile::LoadOp load, const AxisAnalysis &proven) {
  AxisInfo::Axes repeats = proven.lookup(load.getPtr()).constancy;
  if (load.getIsVolatile() || (load.getOther() && !matchPattern(load.getOther(), m_Constant())))
    return AxisInfo::Axes(repeats.size(), 1);
  if (load.getMask())
    for (auto [run, ofMask] : llvm::zip_equal(repeats, proven.lookup(load.getMask()).constancy))
      run = std::min(run, ofMask);
  return repeats;
}

/// Equal neighbours of what is computed of integers that are not equal: of comparisons and quotients of what counts up.
static AxisInfo::Axes repeatsOf(Operation *op, const AxisAnalysis &proven) {
  AxisInfo::Axes repeats = proven.lookup(op->getResult(0)).constancy;
  for (auto [axis, run] : llvm::enumerate(repeats)) {
    int64_t given = run;
    for (Value operand : op->getOperands())
      if (AxisInfo info = proven.lookup(operand); info.rank() == repeats.size())
        given = std::min(given, info.constancy[axis]);
    if (given == run)
      run = 1;
  }
  return repeats;
}

void Writer::describeRepeats(Operation *op, LayoutAttr layout, Operation *written) {
  auto load = dyn_cast<tile::LoadOp>(op);
  if (layout.getLayout().size(warp::InDim::Register) == 1 ||
      !(load || isa<arith::CmpIOp, arith::DivSIOp, arith::DivUIOp, arith::ShRSIOp, arith::ShRUIOp>(op)))
    return;
  AxisInfo::Axes repeats = load ? repeatsOf(load, proven) : repeatsOf(op, proven);
  // Neighbours of which a thread has one each are nothing to it.
  bool areInThread = llvm::any_of(layout.getLayout().bases(warp::InDim::Register), [&](uint32_t basis) {
    SmallVector<int64_t, 4> step = layout.getLayout().delinearize(basis);
    return llvm::all_of(llvm::zip_equal(step, repeats),
                        [](auto each) { return std::get<0>(each) < std::get<1>(each); });
  });
  if (areInThread)
    written->setAttr(warp::constancyAttrName, b.getDenseI32ArrayAttr(llvm::to_vector_of<int32_t>(repeats)));
}

Operation *Writer::writeDot(tile::DotOp dot, LayoutAttr layout) {
  auto operand = [&](unsigned index) {
    return get(dot->getOperand(index), plan.rules.operandLayout(dot, layout, index));
  };
  if (plan.rules.dot(dot).usesWarpgroups()) {
    // Whatever comes next may touch the sums: they are waited for right away.
    auto started = warp::WgmmaOp::create(b, dot.getLoc(), operand(2).getType(), operand(0), operand(1), operand(2),
                                         b.getDenseI32ArrayAttr(plan.rules.dot(dot).instruction));
    SmallVector<Value, 2> inFlight{started.getResult()};
    return warp::WgmmaWaitOp::create(b, dot.getLoc(), inFlight, /*pending=*/0);
  }
  return warp::MmaOp::create(b, dot.getLoc(), operand(2).getType(), operand(0), operand(1), operand(2),
                             b.getDenseI32ArrayAttr(plan.rules.dot(dot).instruction), dot.getPrecisionAttr());
}

void Writer::writeFor(scf::ForOp loop) {
  SmallVector<Slot> slots = slotsFor(loop.getRegionIterArgs());
  auto written = scf::ForOp::create(b, loop.getLoc(), get(loop.getLowerBound(), {}), get(loop.getUpperBound(), {}),
                                    get(loop.getStep(), {}), gather(slots, loop.getInitArgs()));
  written->setAttrs(loop->getAttrs());
  {
    OpBuilder::InsertionGuard guard(b);
    Block *body = written.getBody();
    body->clear();
    b.setInsertionPointToStart(body);
    define(loop.getInductionVar(), {}, written.getInductionVar());
    defineAll(slots, loop.getRegionIterArgs(), written.getRegionIterArgs());
    writeOps(*loop.getBody());
    scf::YieldOp::create(b, loop.getBody()->getTerminator()->getLoc(), gather(slots, loop.getYieldedValues()));
  }
  defineAll(slots, loop.getResults(), written.getResults());
}

void Writer::writeIf(scf::IfOp branch) {
  SmallVector<Slot> slots = slotsFor(branch.getResults());
  bool hasElse = !branch.getElseRegion().empty();
  auto written = scf::IfOp::create(b, branch.getLoc(), typesOf(slots, branch.getResults()),
                                   get(branch.getCondition(), {}), true, hasElse);
  written->setAttrs(branch->getAttrs());
  auto writeBlock = [&](Block &from, Block &to) {
    OpBuilder::InsertionGuard guard(b);
    to.clear();
    b.setInsertionPointToStart(&to);
    writeOps(from);
    scf::YieldOp::create(b, from.getTerminator()->getLoc(), gather(slots, from.getTerminator()->getOperands()));
  };
  writeBlock(*branch.thenBlock(), *written.thenBlock());
  if (hasElse)
    writeBlock(*branch.elseBlock(), *written.elseBlock());
  defineAll(slots, branch.getResults(), written.getResults());
}

void Writer::writeWhile(scf::WhileOp loop) {
  SmallVector<Slot> before = slotsFor(loop.getBeforeArguments()), after = slotsFor(loop.getAfterArguments());
  SmallVector<Type> argumentTypes = typesOf(before, loop.getBeforeArguments()),
                    resultTypes = typesOf(after, loop.getAfterArguments());
  auto written = scf::WhileOp::create(b, loop.getLoc(), resultTypes, gather(before, loop.getInits()));
  written->setAttrs(loop->getAttrs());
  {
    OpBuilder::InsertionGuard guard(b);
    b.createBlock(&written.getBefore(), {}, argumentTypes, SmallVector<Location>(before.size(), loop.getLoc()));
    defineAll(before, loop.getBeforeArguments(), written.getBeforeArguments());
    writeOps(*loop.getBeforeBody());
    scf::ConditionOp condition = loop.getConditionOp();
    scf::ConditionOp::create(b, condition.getLoc(), get(condition.getCondition(), {}),
                             gather(after, condition.getArgs()));
    b.createBlock(&written.getAfter(), {}, resultTypes, SmallVector<Location>(after.size(), loop.getLoc()));
    defineAll(after, loop.getAfterArguments(), written.getAfterArguments());
    writeOps(*loop.getAfterBody());
    scf::YieldOp::create(b, loop.getYieldOp().getLoc(), gather(before, loop.getYieldOp().getOperands()));
  }
  defineAll(after, loop.getResults(), written.getResults());
}

/// Moves every conversion down to where its result is used first, inside its block: operands in registers then live as
/// short as they can.
void sinkConversions(func::FuncOp function) {
  SmallVector<warp::ConvertLayoutOp> conversions;
  function.walk([&](warp::ConvertLayoutOp convert) { conversions.push_back(convert); });
  for (warp::ConvertLayoutOp convert : llvm::reverse(conversions)) {
    Operation *first = nullptr;
    for (Operation *user : convert->getUsers()) {
      Operation *here = convert->getBlock()->findAncestorOpInBlock(*user);
      if (!first || here->isBeforeInBlock(first))
        first = here;
    }
    if (first)
      convert->moveBefore(first);
  }
}

/// The analysis has read them.
void erasePromises(func::FuncOp function) {
  function.walk([](tile::PromiseOp promise) {
    promise.getResult().replaceAllUsesWith(promise.getSource());
    promise.erase();
  });
}

/// Whether a function is a kernel with a body.
bool isKernel(func::FuncOp function) { return !function.isExternal() && function->hasAttr(tile::kernelAttrName); }

/// Layouts are linear in the bits of an index, so that sizes are powers of two.
LogicalResult verifySizes(func::FuncOp function) {
  auto isPower = [](Type type) {
    return llvm::all_of(tile::shapeOf(type), [](int64_t size) { return llvm::isPowerOf2_64(size); });
  };
  WalkResult result = function.walk([&](Operation *op) {
    for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())})
      for (Type type : types)
        if (!isPower(type)) {
          op->emitError("expected sizes that are powers of two, but got ") << type << "; run -tile-split-sizes first";
          return WalkResult::interrupt();
        }
    return WalkResult::advance();
  });
  return failure(result.wasInterrupted());
}

struct TileToWarp : impl::TileToWarpBase<TileToWarp> {
  using Base::Base;

  LogicalResult convert(func::FuncOp function, const TargetInfo &target) {
    int warps = tile::scheduleOf(function).warps;
    assert(warps <= target.maxWarps && "a schedule has at most 32 warps, which every target runs");
    if (failed(verifySizes(function)))
      return failure();
    narrowWidenedProducts(function);
    settleFloat8Products(function, target, warps);
    if (!function->hasAttr(tile::ordersAccessesAttrName)) // the compiler's own have schedules chosen without that
      turnBeforeWidening(function);
    splitTF32Products(function, target, warps);
    roundTF32Products(function, target, warps);
    AxisAnalysis axes(function), proven(function, Promises::Ignored);
    function.walk([](tile::AssumeOp promise) { promise.erase(); }); // the analysis has read them
    FailureOr<LayoutPlan> plan = assignLayouts(function, axes, target, warps);
    if (failed(plan))
      return failure();
    Writer(function, *plan, axes, proven, target).run();
    erasePromises(function);
    warp::eraseDeadOps(function);
    sinkConversions(function);
    roundOperandsOnce(function);
    warp::eraseDeadOps(function);
    return success();
  }

  void runOnOperation() final {
    if (!target.empty())
      getOperation()->setAttr(targetAttrName, StringAttr::get(&getContext(), target));
    const TargetInfo *info = TargetInfo::of(getOperation());
    if (!info)
      return signalPassFailure();
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>())
      if (isKernel(function) && failed(convert(function, *info)))
        return signalPassFailure();
  }
};

} // namespace

} // namespace weft

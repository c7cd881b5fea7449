// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See AttendBackwardCaptures.h.
#include "compiler/Conversion/AttnToTile/Attention/AttendBackwardCaptures.h"
#include "compiler/Conversion/AttnToTile/Sequence/LowerSum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft {

static constexpr double fixedPointOne = 4294967296.0; // 2^32: sums to 2·10^9, in steps of 2·10^-10
enum Index { batchIndex, headIndex, queryIndex, keyIndex };

/// Sizes of batch, heads, queries and keys, as they are spelled.
static std::array<StringAttr, 4> spelledSizes(attn::AttendBackwardOp op) {
  auto query = cast<attn::WholeTensorType>(op.getQuery().getType());
  auto key = cast<attn::WholeTensorType>(op.getKeys()[0].getType());
  return {query.getDims()[0], query.getDims()[1], query.getDims()[2], key.getDims()[2]};
}

/// The plan for a tensor all of whose indices are the pair's own, each once; Scattered for any other.
static CapturePlan planOf(attn::AttendBackwardOp op, attn::AccumulateOp add, attn::WholeTensorType type) {
  CapturePlan scattered{CapturePlan::Kind::Scattered, static_cast<int64_t>(add.getTarget()), type, {}};
  CapturePlan plan = scattered;
  std::array<StringAttr, 4> sizes = spelledSizes(op);
  bool taken[4] = {};
  for (auto [axis, index] : llvm::enumerate(add.getIndices())) {
    if (type.dim(axis) == "1") {
      plan.axes.push_back(-1);
      continue;
    }
    auto argument = dyn_cast<BlockArgument>(index);
    int number =
        argument && argument.getOwner()->getParent() == &op.getScoreModGrad() ? argument.getArgNumber() - 1 : -1;
    if (number < 0 || number > 3 || taken[number] || type.getDims()[axis] != sizes[number])
      return scattered;
    taken[number] = true;
    plan.axes.push_back(number);
  }
  bool packed = !op.getCuSeqlens().empty(); // Indices count from each sequence's start.
  if ((packed && (taken[queryIndex] || taken[keyIndex])) || (taken[keyIndex] && op.getKeys().size() > 1))
    return scattered;
  if (taken[queryIndex] && taken[keyIndex])
    plan.kind = CapturePlan::Kind::PerPair;
  else
    plan.kind = taken[keyIndex] ? CapturePlan::Kind::PerKey : CapturePlan::Kind::PerQuery;
  // Partial sums of every pair would take more memory than the gradient.
  bool partial = plan.kind == CapturePlan::Kind::PerPair && !(taken[batchIndex] && taken[headIndex]);
  return partial && op.getFast() ? scattered : plan;
}

SmallVector<CapturePlan> planCaptures(attn::AttendBackwardOp op) {
  SmallVector<CapturePlan> plans;
  unsigned first = 2 * op.getKeys().size();
  op.getScoreModGrad().walk([&](attn::AccumulateOp add) {
    auto type = cast<attn::WholeTensorType>(op.getGradients()[first + add.getTarget()].getType());
    CapturePlan plan = planOf(op, add, type);
    auto *other = llvm::find_if(plans, [&](const CapturePlan &p) { return p.target == plan.target; });
    if (other == plans.end())
      plans.push_back(plan);
    else if (other->kind != plan.kind || other->axes != plan.axes || plan.kind == CapturePlan::Kind::PerPair)
      *other = {CapturePlan::Kind::Scattered, plan.target, type, {}};
  });
  return plans;
}

CaptureGradients::CaptureGradients(BackwardKernel &kernel, ArrayRef<CapturePlan> plans) : kernel(kernel), b(kernel.b) {
  using Kind = CapturePlan::Kind;
  for (const CapturePlan &plan : plans)
    if ((plan.kind == Kind::PerKey) != kernel.queriesDown)
      captures.push_back(makeOutput(plan));
}

CaptureGradients::Capture CaptureGradients::makeOutput(const CapturePlan &plan) {
  using Kind = CapturePlan::Kind;
  Type f32 = b.getF32Type();
  if (plan.kind == Kind::Scattered) {
    attn::WholeTensorType type = plan.type.withElement(kernel.op.getFast() ? f32 : Type(b.getI64Type()));
    return {plan, kernel.frame.output(type, /*zeroed=*/true), {}, plan.type == type};
  }
  // What the tensor lacks comes first: the sum over leading axes is an ordinary one.
  SmallVector<int> axes, needed{batchIndex, headIndex};
  if (plan.kind != Kind::PerKey)
    needed.push_back(queryIndex);
  if (plan.kind != Kind::PerQuery)
    needed.push_back(keyIndex);
  for (int index : needed)
    if (!llvm::is_contained(plan.axes, index))
      axes.push_back(index);
  bool complete = axes.empty();
  axes.append(plan.axes);
  std::array<StringAttr, 4> sizes = spelledSizes(kernel.op);
  auto dims = llvm::map_to_vector(axes, [&](int index) { return index < 0 ? b.getStringAttr("1") : sizes[index]; });
  auto type = attn::WholeTensorType::get(dims, complete ? plan.type.getElementType() : f32);
  // Pairs that no block has, and rows that no packed sequence has, are not written.
  return {plan, kernel.frame.output(type, /*zeroed=*/true), axes, complete};
}

static bool isKeptPerRow(const CapturePlan &plan) {
  return plan.kind == CapturePlan::Kind::PerQuery || plan.kind == CapturePlan::Kind::PerKey;
}

SmallVector<Value> CaptureGradients::initial() {
  SmallVector<Value> zeros;
  for (const Capture &capture : captures)
    if (isKeptPerRow(capture.plan))
      zeros.push_back(b.zeros({kernel.schedule.getRows()}));
  return zeros;
}

void CaptureGradients::add(const Accumulation &accumulation) {
  unsigned row = 0;
  for (const Capture &capture : captures) {
    bool kept = isKeptPerRow(capture.plan);
    if (capture.plan.target == accumulation.target) {
      if (kept) {
        SmallVector<int64_t> shape{kernel.schedule.getRows(), kernel.schedule.getColumns()};
        Value value = b.broadcast(accumulation.value, shape);
        if (accumulation.exists)
          value = b.select(accumulation.exists, value, b.f32(0));
        sums[row] = b.add(sums[row], b.reduceSum(value, 1));
      } else if (capture.plan.kind == CapturePlan::Kind::PerPair) {
        storePair(capture, accumulation);
      } else {
        scatter(capture, accumulation);
      }
    }
    row += kept;
  }
}

/// Adds `index` steps along an axis to an offset (i64, may be null).
static Value step(TileBuilder &b, const TensorParameter &tensor, unsigned axis, Value index, Value offset) {
  Value step = b.cast(index, b.getI64Type());
  if (axis < tensor.strides.size())
    step = b.mul(step, tensor.strides[axis]);
  return offset ? b.add(offset, step) : step;
}

void CaptureGradients::storePair(const Capture &capture, const Accumulation &accumulation) {
  SmallVector<int64_t> shape{kernel.schedule.getRows(), kernel.schedule.getColumns()};
  // Of the pair's four indices the accumulation names those that the tensor has; batch and head are the program's.
  Value pair[4] = {kernel.standing.batch, kernel.standing.head, {}, {}};
  for (auto [axis, index] : llvm::zip_equal(capture.plan.axes, accumulation.indices))
    if (axis >= 0)
      pair[axis] = index;
  Value offset;
  for (auto [axis, index] : llvm::enumerate(capture.axes))
    if (index >= 0)
      offset = step(b, capture.output, axis, pair[index], offset);
  Value pointers = b.broadcast(b.addPtr(capture.output.pointer, offset), shape);
  Value value = b.cast(b.broadcast(accumulation.value, shape), capture.output.type.getElementType());
  b.store(pointers, value, accumulation.exists);
}

/// f32 as fixed point, rounded.
static Value toFixedPoint(TileBuilder &b, Value value) {
  Value scaled = b.mul(value, b.f32(fixedPointOne));
  Value half = b.select(b.compareFloat(arith::CmpFPredicate::OLT, scaled, b.f32(0)), b.f32(-0.5), b.f32(0.5));
  return b.cast(b.add(scaled, half), b.getI64Type());
}

void CaptureGradients::scatter(const Capture &capture, const Accumulation &accumulation) {
  SmallVector<int64_t> shape{kernel.schedule.getRows(), kernel.schedule.getColumns()};
  Value value = b.broadcast(accumulation.value, shape), mask = accumulation.exists, offset = b.i64(0);
  for (auto [axis, index] : llvm::enumerate(accumulation.indices))
    if (capture.plan.type.dim(axis) != "1")
      offset = step(b, capture.output, axis, index, offset);
  bool fixedPoint = capture.output.type.getElementType().isInteger(64);
  Value pointers = b.addPtr(capture.output.pointer, offset);
  if (!isa<RankedTensorType>(pointers.getType())) {
    // One place for the whole block.
    if (mask)
      value = b.select(mask, value, b.f32(0));
    value = b.reduceSum(b.reduceSum(value, 1), 0);
    mask = Value();
  } else {
    pointers = b.broadcast(pointers, shape);
    mask = mask ? b.broadcast(mask, shape) : mask;
  }
  if (fixedPoint)
    value = toFixedPoint(b, value);
  auto kind = fixedPoint ? tile::AtomicKind::Add : tile::AtomicKind::FAdd;
  tile::AtomicRMWOp::create(b, value.getType(), kind, pointers, value, mask, tile::MemoryOrder::Relaxed);
}

void CaptureGradients::leave(ValueRange ended, const RowTile &rows) {
  unsigned row = 0;
  for (const Capture &capture : captures) {
    if (!isKeptPerRow(capture.plan))
      continue;
    Value token = rows.base ? b.add(rows.token, rows.base) : rows.token, offset;
    Value place[4] = {rows.batch, rows.head, token, token};
    for (auto [axis, index] : llvm::enumerate(capture.axes))
      if (index >= 0)
        offset = step(b, capture.output, axis, place[index], offset);
    Value pointers = b.addPtr(capture.output.pointer, b.broadcast(offset, {rows.count}));
    b.store(pointers, b.cast(ended[row++], capture.output.type.getElementType()), rows.inside);
  }
}

/// The gradient from fixed point, an element a lane.
LogicalResult CaptureGradients::fromFixedPoint(const Capture &capture, Value launched) {
  constexpr int64_t block = 256;
  KernelFrame frame(kernel.op, "fixed_point");
  TileBuilder &b = frame.b;
  Value flat = b.add(b.mul(b.programId(tile::Axis::X), b.i32(block)), b.range(block)), count = b.i32(1);
  std::string total = "1";
  for (StringAttr dim : capture.plan.type.getDims()) {
    count = b.mul(count, frame.size(dim.getValue()));
    total += " * (" + dim.getValue().str() + ")";
  }
  Value inside = b.less(flat, count);
  Value sums = b.load(b.addPtr(frame.input(launched).pointer, flat), inside);
  Value value = b.mul(b.cast(sums, b.getF32Type()), b.f32(1 / fixedPointOne));
  b.store(b.addPtr(frame.output(capture.plan.type).pointer, flat), b.cast(value, capture.plan.type.getElementType()),
          inside);
  Value result = kernel.op.getGradients()[2 * kernel.attend.keys.size() + capture.plan.target];
  std::string programs = "cdiv(" + total + ", " + std::to_string(block) + ")";
  kernel.stored.record(ValueRange(result), frame.finish({{programs, "1", "1"}, 4, 1}));
  return success();
}

LogicalResult CaptureGradients::sum(ValueRange launched) {
  for (auto [capture, value] : llvm::zip_equal(captures, launched)) {
    Value result = kernel.op.getGradients()[2 * kernel.attend.keys.size() + capture.plan.target];
    if (capture.complete) {
      kernel.stored.record(result, value);
      continue;
    }
    if (capture.output.type.getElementType().isInteger(64)) {
      if (failed(fromFixedPoint(capture, value)))
        return failure();
      continue;
    }
    if (failed(addParts(kernel.op, result, value, kernel.stored)))
      return failure();
  }
  return success();
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How attention and its gradient become kernels: what of their operands is stored, and what is computed on the way.
#include "compiler/Conversion/AttnToTile/Attention/AttendBackward.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendBackwardTangent.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendDiagonal.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendForward.h"
#include "compiler/Conversion/AttnToTile/Kernel/ProgramKernels.h"
#include "compiler/Conversion/AttnToTile/Patterns/WideValues.h"
#include "compiler/Conversion/AttnToTile/Patterns/Windows.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Attn/IR/AttentionAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft {

/// Whether keys or values are those of the diagonal and of nothing else: their own tokens' programs meet them.
template <typename Op> static bool isMetOnDiagonalOnly(Op op, Value value) {
  std::optional<unsigned> own;
  if constexpr (std::is_same_v<Op, attn::AttendOp>)
    own = diagonalDomain(Attend::of(op));
  else
    own = diagonalDomain(op);
  bool met = false, walked = value == op.getQuery();
  for (auto [i, key, its] : llvm::enumerate(op.getKeys(), op.getValues()))
    if (key == value || its == value)
      (i == own ? met : walked) = true;
  return met && !walked;
}

/// Whether a value's rows are found in pages, or computed from such row by row.
static bool isPaged(Value value) {
  Operation *op = value.getDefiningOp();
  return isa_and_present<attn::PagedOp>(op) ||
         (isa_and_present<attn::MapOp>(op) && isRowLocal(op) && llvm::any_of(op->getOperands(), isPaged));
}

/// Head sizes are axes of tiles: they are integers.
template <typename Op> static LogicalResult checkHeadSizes(Op op) {
  Attend attend = Attend::of(op);
  for (attn::WholeTensorType type : {attend.queryType(), attend.valueType(0)})
    if (!type.staticDim(3))
      return op.emitOpError() << "expected head sizes that are integers, but got " << type;
  return success();
}

/// dq in the place of its sums in memory: scaled, and rounded, by whoever takes it.
static void takeSums(attn::AttendBackwardOp op, Value sums, StoredValues &stored) {
  stored.recordAsValues(sums);
  double scale = op.getScale().convertToDouble();
  auto scaled = [&](ImplicitLocOpBuilder &b, ValueRange x) -> SmallVector<Value> {
    return {arith::MulFOp::create(b, x[0], arith::ConstantOp::create(b, b.getF32FloatAttr(scale)))};
  };
  ImplicitLocOpBuilder b(op.getLoc(), op);
  auto map = attn::MapOp::create(b, op.getDQuery().getType(), sums, scaled);
  op.getDQuery().replaceAllUsesWith(map.getResult(0));
}

/// Lowers an attention with its row-local users; its operands are stored, but for those that `onTheWay` says its programs
/// compute.
template <typename Op, typename OnTheWay>
static LogicalResult lowerForward(Op attend, ProgramKernels &program, OnTheWay onTheWay) {
  if (failed(checkHeadSizes(attend)))
    return failure();
  for (Value value : attend->getOperands())
    if (failed(onTheWay(value) ? program.makePullable(value, attend) : program.store(value, attend)))
      return failure();
  if (failed(program.storeCaptured(attend, attend)))
    return failure();
  auto roots = program.joinRowLocalUsers(attend, attend->getResults(), Attend::of(attend).form.isWide);
  if (failed(roots))
    return failure();
  lowerAttend(attend, *roots, program.stored);
  return success();
}

/// Whether a target's matrix instructions multiply 8-bit floats.
static bool hasFloat8Products(const TargetInfo &target, Operation *op) {
  Type element = Float8E4M3FNType::get(op->getContext()), sums = Float32Type::get(op->getContext());
  return target.warpgroupMmaFor(element, sums) || target.mmaFor(element, sums, /*rows=*/16, /*inner=*/32);
}

namespace {
struct AttendKernel : KernelOpInterface::ExternalModel<AttendKernel, attn::AttendOp> {
  LogicalResult lower(Operation *op, ProgramKernels &program) const {
    auto attend = cast<attn::AttendOp>(op);
    // Keys and values that each program meets once are computed on the way, and those of few queries, which a tile of them
    // meets once; others would be computed for every tile of queries.
    bool once = Attend::of(attend).form.windows.has_value() || attend.getSplits() == 0;
    // Keys of 8 bits stay what they are where products have instructions for them.
    bool multipliesFloat8 = op->hasAttr(attn::float8AttrName) && hasFloat8Products(TargetInfo::ofOrDefault(attend), op);
    auto entersAsFloat8 = [&](Value value) {
      return multipliesFloat8 && llvm::is_contained(attend.getKeys(), value) && isFloat8AsHalf(value) &&
             isFloat8AsHalf(attend.getQuery()) && !llvm::is_contained(attend.getValues(), value);
    };
    return lowerForward(attend, program, [&](Value value) {
      return value == attend.getQuery() || isMetOnDiagonalOnly(attend, value) || isPaged(value) ||
             entersAsFloat8(value) ||
             (once && (llvm::is_contained(attend.getKeys(), value) || llvm::is_contained(attend.getValues(), value)));
    });
  }
};

struct AttendTangentKernel : KernelOpInterface::ExternalModel<AttendTangentKernel, attn::AttendTangentOp> {
  LogicalResult lower(Operation *op, ProgramKernels &program) const {
    auto attend = cast<attn::AttendTangentOp>(op);
    return lowerForward(attend, program,
                        [&](Value value) { return value == attend.getQuery() || value == attend.getQueryTangent(); });
  }
};

struct AttendBackwardTangentKernel
    : KernelOpInterface::ExternalModel<AttendBackwardTangentKernel, attn::AttendBackwardTangentOp> {
  LogicalResult lower(Operation *op, ProgramKernels &program) const {
    auto attend = cast<attn::AttendBackwardTangentOp>(op);
    if (failed(checkHeadSizes(attend)))
      return failure();
    for (Value value : op->getOperands())
      if (failed(program.store(value, op)))
        return failure();
    if (failed(program.storeCaptured(op, op)))
      return failure();
    return lowerAttendBackwardTangent(attend, program);
  }
};

struct AttendBackwardKernel : KernelOpInterface::ExternalModel<AttendBackwardKernel, attn::AttendBackwardOp> {
  LogicalResult lower(Operation *op, ProgramKernels &program) const;
};
} // namespace

LogicalResult AttendBackwardKernel::lower(Operation *op, ProgramKernels &program) const {
  auto attend = cast<attn::AttendBackwardOp>(op);
  if (failed(checkHeadSizes(attend)))
    return failure();
  if (StringRef hindrance = whyNotOnePass(attend); !hindrance.empty())
    remarks::missed(remarks::onePassBackward, op)
        << remark::reason("gradients take a pass for queries and one for keys: {0}", hindrance);
  SmallVector<BackwardPart> parts = backwardParts(attend);
  // Of several kernels, each walks what another holds: only the numbers of a query can be computed on the way.
  bool once = parts.front().kind == BackwardPart::Kind::Window;
  auto onTheWay = [&](Value value) {
    return once || value == attend.getLse() || value == attend.getDelta() || isMetOnDiagonalOnly(attend, value);
  };
  for (Value value : op->getOperands())
    if (failed(onTheWay(value) ? program.makePullable(value, op) : program.store(value, op)))
      return failure();
  if (failed(program.storeCaptured(op, op)))
    return failure();
  SoftmaxNumbers numbers;
  if (!once)
    numbers = lowerSoftmaxNumbers(attend, program.stored);
  for (const BackwardPart &part : parts) {
    bool split = part.kind == BackwardPart::Kind::Values && Attend::of(attend).form.isWide;
    auto roots = program.joinRowLocalUsers(op, part.results, split);
    if (succeeded(roots) && part.kind == BackwardPart::Kind::OnePass) {
      takeSums(attend, lowerOnePass(attend, part, numbers, *roots, program.stored), program.stored);
      continue;
    }
    if (failed(roots) || failed(lowerBackwardPart(attend, part, numbers, *roots, program.stored)))
      return failure();
  }
  return success();
}

void attachAttentionKernels(MLIRContext &context) {
  attn::AttendOp::attachInterface<AttendKernel>(context);
  attn::AttendTangentOp::attachInterface<AttendTangentKernel>(context);
  attn::AttendBackwardOp::attachInterface<AttendBackwardKernel>(context);
  attn::AttendBackwardTangentOp::attachInterface<AttendBackwardTangentKernel>(context);
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "compiler/Conversion/WarpToLLVM/Lanes/WholeWarp.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;

namespace weft {

using Kind = NVVM::ReduxKind;

Value voteOfWarp(Emitter &e, NVVM::VoteSyncKind decision, Value truth) {
  return NVVM::VoteSyncOp::create(e.b, e.loc, e.b.getI1Type(), e.i32(-1), truth, decision);
}

/// What an operation is to a warp, of the types that the target's instructions take.
static std::optional<WholeWarp> kindOf(Operation &operation, const TargetInfo &target) {
  Type type = operation.getResult(0).getType();
  if (isa<FloatType>(type) && (!target.floatsOfWarp || type.getIntOrFloatBitWidth() > 32))
    return std::nullopt;
  return llvm::TypeSwitch<Operation *, std::optional<WholeWarp>>(&operation)
      .Case([](arith::AddIOp) { return WholeWarp{Kind::ADD}; })
      .Case([](arith::AndIOp) { return WholeWarp{Kind::AND}; })
      .Case([](arith::OrIOp) { return WholeWarp{Kind::OR}; })
      .Case([](arith::XOrIOp) { return WholeWarp{Kind::XOR}; })
      .Case([](arith::MaxSIOp) { return WholeWarp{Kind::MAX}; })
      .Case([](arith::MinSIOp) { return WholeWarp{Kind::MIN}; })
      .Case([](arith::MaxUIOp) { return WholeWarp{Kind::UMAX}; })
      .Case([](arith::MinUIOp) { return WholeWarp{Kind::UMIN}; })
      .Case([](arith::MaxNumFOp) { return WholeWarp{Kind::FMAX}; })
      .Case([](arith::MinNumFOp) { return WholeWarp{Kind::FMIN}; })
      .Case([](arith::MaximumFOp) { return WholeWarp{Kind::FMAX, /*propagatesNan=*/true}; })
      .Case([](arith::MinimumFOp) { return WholeWarp{Kind::FMIN, /*propagatesNan=*/true}; })
      .Default(std::nullopt);
}

std::optional<WholeWarp> WholeWarp::of(tile::ReduceOp op, const TargetInfo &target) {
  Block &body = op.getCombiner().front();
  if (op.getSources().size() != 1 || !llvm::hasNItems(body, 2))
    return std::nullopt;
  Operation &first = body.front();
  if (first.getNumOperands() != 2 || first.getOperand(0) == first.getOperand(1) ||
      !llvm::all_of(first.getOperands(), llvm::IsaPred<BlockArgument>) ||
      body.getTerminator()->getOperand(0).getDefiningOp() != &first)
    return std::nullopt;
  return kindOf(first, target);
}

std::optional<NVVM::VoteSyncKind> WholeWarp::decision() const {
  if (!isIdempotent())
    return std::nullopt;
  // The least of two truths is whether both are, with a sign too: true is -1.
  const bool isSigned = kind == Kind::MIN || kind == Kind::MAX;
  const bool wantsAll = kind == Kind::AND || kind == (isSigned ? Kind::MAX : Kind::UMIN);
  return wantsAll ? NVVM::VoteSyncKind::all : NVVM::VoteSyncKind::any;
}

Value WholeWarp::overVotes(ArrayRef<unsigned> bits, Value truth, Emitter &e) const {
  const std::optional<NVVM::VoteSyncKind> decided = decision();
  if (decided && 1 << bits.size() == e.target.warpSize)
    return voteOfWarp(e, *decided, truth);
  Type i32 = e.b.getI32Type();
  Value votes = NVVM::VoteSyncOp::create(e.b, e.loc, i32, e.i32(-1), truth, NVVM::VoteSyncKind::ballot);
  uint32_t voters = 1, others = 31;
  for (unsigned bit : bits) {
    voters |= voters << (1u << bit);
    others &= ~(1u << bit);
  }
  Value asked = e.i32(static_cast<int32_t>(voters));
  if (others) {
    asked = LLVM::ShlOp::create(e.b, e.loc, asked, LLVM::AndOp::create(e.b, e.loc, e.lane(), e.i32(others)));
    votes = LLVM::AndOp::create(e.b, e.loc, votes, asked);
  }
  if (!decided)
    return LLVM::TruncOp::create(e.b, e.loc, e.b.getI1Type(), LLVM::CtPopOp::create(e.b, e.loc, votes));
  const bool wantsAll = *decided == NVVM::VoteSyncKind::all;
  return LLVM::ICmpOp::create(e.b, e.loc, wantsAll ? LLVM::ICmpPredicate::eq : LLVM::ICmpPredicate::ne, votes,
                              wantsAll ? asked : e.i32(0));
}

Value WholeWarp::over(Value number, Emitter &e) const {
  Type type = number.getType(), f32 = e.b.getF32Type(), i32 = e.b.getI32Type();
  auto over = [&](Value word) -> Value {
    return NVVM::ReduxOp::create(e.b, e.loc, word.getType(), word, kind, e.i32(-1), /*abs=*/false, propagatesNan);
  };
  if (type == f32 || type == i32)
    return over(number);
  if (isa<FloatType>(type))
    return LLVM::FPTruncOp::create(e.b, e.loc, type, over(LLVM::FPExtOp::create(e.b, e.loc, f32, number)));
  if (type.isInteger(64))
    return overWide(number, e);
  const bool isSigned = kind == Kind::MAX || kind == Kind::MIN;
  Value word = isSigned ? LLVM::SExtOp::create(e.b, e.loc, i32, number).getResult()
                        : LLVM::ZExtOp::create(e.b, e.loc, i32, number).getResult();
  return LLVM::TruncOp::create(e.b, e.loc, type, over(word));
}

/// Of 64 bits: halves by themselves where bits are; of a sum the lower half in two parts, whose sums have room in 32
/// bits; of extremes the lower halves of those lanes whose upper half is the extreme of these.
Value WholeWarp::overWide(Value number, Emitter &e) const {
  Type i32 = e.b.getI32Type(), i64 = e.b.getI64Type();
  auto shifted = [&](Value part, int64_t by) -> Value {
    return LLVM::ShlOp::create(e.b, e.loc, LLVM::ZExtOp::create(e.b, e.loc, i64, part), e.i64(by));
  };
  Value lower = LLVM::TruncOp::create(e.b, e.loc, i32, number);
  Value upper = LLVM::TruncOp::create(e.b, e.loc, i32, LLVM::LShrOp::create(e.b, e.loc, number, e.i64(32)));
  Value above = over(upper, e), below;
  if (kind == Kind::ADD) {
    Value first = over(LLVM::AndOp::create(e.b, e.loc, lower, e.i32(0xffff)), e);
    Value second = over(LLVM::LShrOp::create(e.b, e.loc, lower, e.i32(16)), e);
    below = LLVM::AddOp::create(e.b, e.loc, shifted(second, 16), LLVM::ZExtOp::create(e.b, e.loc, i64, first));
    return LLVM::AddOp::create(e.b, e.loc, shifted(above, 32), below);
  }
  if (kind == Kind::AND || kind == Kind::OR || kind == Kind::XOR) {
    below = over(lower, e);
  } else {
    const bool greatest = kind == Kind::MAX || kind == Kind::UMAX;
    Value isExtreme = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::eq, upper, above);
    Value candidate = LLVM::SelectOp::create(e.b, e.loc, isExtreme, lower, e.i32(greatest ? 0 : -1));
    below = WholeWarp{greatest ? Kind::UMAX : Kind::UMIN}.over(candidate, e);
  }
  return LLVM::OrOp::create(e.b, e.loc, shifted(above, 32), LLVM::ZExtOp::create(e.b, e.loc, i64, below));
}

} // namespace weft

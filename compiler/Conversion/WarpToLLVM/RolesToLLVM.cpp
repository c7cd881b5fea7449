// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The producer's program beside that of the schedule's warps, and registers that pass from one to the other.
//
//   warp.producer { copies }           llvm.cond_br (tid >= 32 * warps), ^producers, ^others
//   use                        ─▶    ^producers: setmaxnreg.dec; llvm.cond_br (tid < 32 * (warps + 1)), ^one, ^end
//                                    ^one: copies; llvm.br ^end
//                                    ^end: llvm.return
//                                    ^others: setmaxnreg.inc; use
//
// Turns of warpgroups, each at a named barrier of its own (PTX ISA 9.7.13.1), behind the three that blocks with roles have:
//
//   warp.turn_wait             ─▶    bar.sync 3 + warpgroup, 256
//   warp.turn_pass             ─▶    bar.arrive 3 + (warpgroup + 1) mod warpgroups, 256

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

Block *blockAtEnd(Emitter &e) {
  OpBuilder::InsertionGuard guard(e.b);
  Region &body = e.function().getBody();
  return e.b.createBlock(&body, body.end());
}

Value threadIsBelow(int64_t count, Emitter &e) {
  return LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ult, e.thread(), e.i32(count));
}

/// Gives registers back, or takes some (PTX ISA 9.7.19.5). Every warp of a warpgroup runs it.
void setRegisters(StringRef direction, std::optional<int32_t> count, Emitter &e) {
  if (count)
    e.inlineAsm(llvm::formatv("setmaxnreg.{0}.sync.aligned.u32 {1};", direction, *count).str(), "", {}, {},
                /*sideEffects=*/true);
}

LogicalResult lowerProducer(ProducerOp op, Emitter &e) {
  const int64_t threads = int64_t(e.target.warpSize) * e.warps;
  // One block of these fills a multiprocessor's registers: ptxas must know how many a thread starts with.
  e.function()->setAttr(NVVM::NVVMDialect::getMinctasmAttrName(), e.b.getI32IntegerAttr(1));
  Block *producers = blockAtEnd(e), *one = blockAtEnd(e), *end = blockAtEnd(e), *others = blockAtEnd(e);
  LLVM::CondBrOp::create(e.b, e.loc, threadIsBelow(threads, e), others, producers);

  e.b.setInsertionPointToStart(producers);
  setRegisters("dec", op.getRegisters(), e);
  LLVM::CondBrOp::create(e.b, e.loc, threadIsBelow(threads + e.target.warpSize, e), one, end);
  e.b.setInsertionPointToStart(one);
  for (Operation &each : op.getBody().front())
    if (failed(e.lower(&each)))
      return failure();
  LLVM::BrOp::create(e.b, e.loc, end);
  e.b.setInsertionPointToStart(end);
  LLVM::ReturnOp::create(e.b, e.loc, ValueRange());

  Region &body = e.function().getBody();
  others->moveBefore(&body, body.end());
  e.b.setInsertionPointToStart(others);
  setRegisters("inc", op.getOthers(), e);
  return success();
}

LogicalResult lowerArrive(MbarrierArriveOp op, Emitter &e) {
  if (!op.getTogether())
    NVVM::SyncWarpOp::create(e.b, e.loc, e.i32(-1));
  // Of a cluster each lane arrives at the block of its number.
  const int64_t blocks = op.getOfCluster() ? e.cluster : 1;
  Value lane = e.lane();
  Value acts = e.atEntry(
      [&]() -> Value { return LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ult, lane, e.i32(blocks)); });
  Value address = LLVM::PtrToIntOp::create(e.b, e.loc, e.b.getI32Type(),
                                           e.offset(e.scalar(op.getBarrier()), int64_t(8 * op.getIndex())));
  if (op.getOfCluster())
    e.arriveAtBlock(address, lane, acts);
  else
    e.inlineAsm("@$1 mbarrier.arrive.shared.b64 _, [$0];", "r,b,~{memory}", {}, {address, acts}, /*sideEffects=*/true);
  return success();
}

int64_t warpgroupsOf(Emitter &e) { return e.warps / e.target.warpgroups.warps; }

Value warpgroup(Emitter &e) {
  return LLVM::LShrOp::create(e.b, e.loc, e.warp(), e.i32(llvm::Log2_32(e.target.warpgroups.warps)));
}

/// Lets the warpgroup `only`, or each where there is none, do something at the barrier of its own turn or the next one's.
void atTurn(StringRef instruction, bool next, std::optional<int64_t> only, Emitter &e) {
  Value own, barrier, acts;
  e.atEntry([&]() -> Value {
    own = warpgroup(e);
    acts = only ? LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::eq, own, e.i32(*only)).getResult() : Value();
    if (next) {
      Value behind = LLVM::AddOp::create(e.b, e.loc, own, e.i32(1));
      Value isLast = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::eq, behind, e.i32(warpgroupsOf(e)));
      own = LLVM::SelectOp::create(e.b, e.loc, isLast, e.i32(0), behind);
    }
    return barrier = LLVM::AddOp::create(e.b, e.loc, own, e.i32(Emitter::firstBarrierOfTurns));
  });
  int64_t threads = 2 * int64_t(e.target.warpSize) * e.target.warpgroups.warps;
  std::string text = llvm::formatv("{0}{1} $0, {2};", only ? "@$1 " : "", instruction, threads).str();
  SmallVector<Value> operands{barrier};
  if (only)
    operands.push_back(acts);
  e.inlineAsm(text, only ? "r,b,~{memory}" : "r,~{memory}", {}, operands, /*sideEffects=*/true);
}

LogicalResult lowerTurnWait(TurnWaitOp op, Emitter &e) {
  atTurn("bar.sync", /*next=*/false, op.getFirst() ? std::optional<int64_t>(0) : std::nullopt, e);
  return success();
}

LogicalResult lowerTurnPass(TurnPassOp op, Emitter &e) {
  atTurn("bar.arrive", /*next=*/true, op.getLast() ? std::optional<int64_t>(warpgroupsOf(e) - 1) : std::nullopt, e);
  return success();
}

} // namespace

void addRoleLowerings(LoweringTable &table) {
  table.add<ProducerOp>(lowerProducer);
  table.add<MbarrierArriveOp>(lowerArrive);
  table.add<TurnWaitOp>(lowerTurnWait);
  table.add<TurnPassOp>(lowerTurnPass);
}

} // namespace weft

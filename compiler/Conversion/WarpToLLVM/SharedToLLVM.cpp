// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Tiles in shared memory: where they are, ldmatrix, plain loads and stores, asynchronous copies.
//
// Whether ldmatrix fits is read off the map from (register, lane, warp) to the offset in the tile: see MatrixAccess.h.
// Where several lanes or warps hold one element, one of them writes it.

#include "compiler/Conversion/WarpToLLVM/SharedAccess.h"
#include "compiler/Conversion/WarpToLLVM/VectorAccess.h"
#include "compiler/Support/Remarks.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/MatrixAccess.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

void sayPieces(Operation *op, StringRef verb, Type type, StringRef direction, const SharedAccess &access,
               unsigned bytes) {
  if (auto remark = remarks::decided(remarks::access, op))
    remark << remark::reason("a thread {0} {1} {2} shared memory by {3} of {4} bytes", verb, tile::textOf(type),
                             direction, instructionsText(access.distinctPieces()), access.pieceElements() * bytes);
}

LogicalResult lowerLoadShared(LoadSharedOp op, Emitter &e) {
  Type element = registerType(op.getResult().getType());
  SharedType shared = op.getShared().getType();
  unsigned bits = shared.getElementType().getIntOrFloatBitWidth();
  SharedAccess access = accessOf(layoutOf(op.getResult().getType()), shared.linear(), llvm::divideCeil(bits, 8));
  if (isReadByProduct(op)) {
    sayPieces(op, "reads", op.getResult().getType(), "from", access, llvm::divideCeil(bits, 8));
    return success();
  }
  Value base = e.scalar(op.getShared());
  if (std::optional<MatrixAccess> matrices = matrixAccess(access.offsets, bits, operandBits(op.getResult()))) {
    unsigned bytes = bits / 8;
    TileAddress addresses(e, base, inBytes(matrices->laneOffsets, bytes),
                          inBytes(access.offsets.bases(InDim::Warp), bytes));
    if (auto remark = remarks::decided(remarks::access, op))
      remark << remark::reason("a warp reads {0} from shared memory by {1} of 'ldmatrix{2}', of {3} matrices each",
                               tile::textOf(op.getResult().getType()), instructionsText(matrices->first.size()),
                               matrices->transposed ? ".trans" : "", matrices->matrices());
    e.bind(op.getResult(), emitMatrixLoad(e, *matrices, access.offsets, element,
                                          [&](uint32_t offset) { return addresses.at(offset * bytes); }));
  } else if (std::optional<PairedAccess> paired = pairedAccess(access.offsets, bits)) {
    TileAddress addresses(e, base, inBytes(paired->matrices.laneOffsets, 2),
                          inBytes(paired->pairs.bases(InDim::Warp), 2));
    if (auto remark = remarks::decided(remarks::access, op))
      remark << remark::reason(
          "a warp reads {0} from shared memory by {1} of 'ldmatrix.trans', of {2} matrices each, two "
          "neighbours as one element",
          tile::textOf(op.getResult().getType()), instructionsText(paired->matrices.first.size()),
          paired->matrices.matrices());
    e.bind(op.getResult(), emitPairedLoad(e, *paired, access.offsets, element,
                                          [&](uint32_t offset) { return addresses.at(offset * 2); }));
  } else {
    if (llvm::any_of(op->getUsers(), llvm::IsaPred<MmaOp>))
      remarks::missed(remarks::matrixLoad, op) << remark::reason(
          "an operand of {0} bits an element is read by plain loads: {1}", bits,
          bits == 16 ? "the tile's layout has no rows of 16 bytes for it" : "ldmatrix turns elements of 16 bits alone");
    sayPieces(op, "reads", op.getResult().getType(), "from", access, llvm::divideCeil(bits, 8));
    e.bind(op.getResult(), emitSharedLoad(e, base, access, element, isInLoopOfManyStores(op)));
  }
  return success();
}

/// Zeros in the lines before, between and after a tile's runs of lines.
void clearMargins(SharedType shared, Value base, Emitter &e) {
  const int64_t piece = std::min<int64_t>(16, shared.getLineBytes()), pieces = shared.getLineBytes() / piece;
  const int64_t lines = (shared.getRuns() + 1) * shared.getMargin(), threads = 32 * e.warps;
  auto constant = [&](int64_t number) { return e.i32(number); };
  for (int64_t first = 0; first < lines * pieces; first += threads) {
    Value number = LLVM::AddOp::create(e.b, e.loc, e.thread(), constant(first));
    auto quotient = [&](Value of, int64_t by) -> Value {
      return by == 1 ? of : LLVM::UDivOp::create(e.b, e.loc, of, constant(by)).getResult();
    };
    auto rest = [&](Value of, int64_t by) -> Value {
      return by == 1 ? constant(0) : LLVM::URemOp::create(e.b, e.loc, of, constant(by)).getResult();
    };
    auto times = [&](Value of, int64_t by) { return LLVM::MulOp::create(e.b, e.loc, of, constant(by)).getResult(); };
    Value line = quotient(number, pieces), run = times(quotient(line, shared.getMargin()), shared.getRunPitch());
    Value within = times(rest(line, shared.getMargin()), shared.getLinePitch());
    Value place = LLVM::AddOp::create(e.b, e.loc, LLVM::AddOp::create(e.b, e.loc, run, within),
                                      times(rest(number, pieces), piece));
    Value owner = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ult, number, constant(lines * pieces));
    Type type = piece > 4 ? Type(VectorType::get(piece / 4, e.b.getI32Type())) : Type(e.b.getIntegerType(8 * piece));
    predicatedStore(e, e.zero(type), e.offset(base, place), piece, owner);
  }
}

LogicalResult lowerStoreShared(StoreSharedOp op, Emitter &e) {
  SharedType shared = op.getShared().getType();
  unsigned bytes = llvm::divideCeil(shared.getElementType().getIntOrFloatBitWidth(), 8);
  SharedAccess access = accessOf(layoutOf(op.getValue().getType()), shared.linear(), bytes);
  keepWithinLines(access, shared);
  SmallVector<Apart, 2> apart = apartIn(shared);
  Value base = e.scalar(op.getShared());
  if (shared.getMargin()) {
    clearMargins(shared, base, e);
    base = e.offset(base, shared.getMarginBytes());
  }
  std::optional<MatrixAccess> matrices;
  if (e.target.matrixStores && repeatedThreadBits(access.offsets, e.warps) == 0)
    matrices = matrixStore(access, shared.getElementType().getIntOrFloatBitWidth());
  if (matrices) {
    TileAddress addresses(e, base, inBytes(matrices->laneOffsets, bytes),
                          inBytes(access.offsets.bases(InDim::Warp), bytes), apart);
    if (isInLoopOfManyStores(op))
      addresses.computeHere();
    if (auto remark = remarks::decided(remarks::access, op))
      remark << remark::reason("a warp writes {0} to shared memory by {1} of 'stmatrix{2}', of {3} matrices each",
                               tile::textOf(op.getValue().getType()), instructionsText(matrices->first.size()),
                               matrices->transposed ? ".trans" : "", matrices->matrices());
    emitMatrixStore(e, *matrices, access.offsets, e.registers(op.getValue()),
                    [&](uint32_t offset) { return addresses.at(offset * bytes); });
    return success();
  }
  sayPieces(op, "writes", op.getValue().getType(), "to", access, bytes);
  emitSharedStore(e, base, access, e.registers(op.getValue()), isInLoopOfManyStores(op), apart);
  return success();
}

/// One cp.async (PTX ISA 9.7.9.25.3.1).
struct Copy {
  Value to, from;
  unsigned bytes; // 4, 8 or 16
  Value filled;   // bytes that are read, the others become zero; null: all
  Value owner;    // only where this is true; null: everywhere
  bool throughL1; // .ca, which copies of fewer than 16 bytes are in any case
};

void copyPiece(Emitter &e, const Copy &copy) {
  std::string name = ("cp.async." + Twine(copy.bytes == 16 && !copy.throughL1 ? "cg" : "ca") + ".shared.global").str();
  SmallVector<Value, 4> operands{copy.to, copy.from};
  if (copy.filled)
    operands.push_back(copy.filled);
  if (!copy.owner) {
    std::string intrinsic = ("llvm.nvvm." + name + "." + Twine(copy.bytes) + (copy.filled ? ".s" : "")).str();
    LLVM::CallIntrinsicOp::create(e.b, e.loc, e.b.getStringAttr(intrinsic), operands);
    return;
  }
  operands.push_back(copy.owner);
  // Operands in memory print with their brackets, and constants at the end of an address as its immediate offset.
  std::string code =
      ("@$" + Twine(operands.size() - 1) + " " + name + " $0, $1, " + Twine(copy.bytes) + (copy.filled ? ", $2;" : ";"))
          .str();
  e.inlineAsm(code, copy.filled ? "*m,*m,r,b,~{memory}" : "*m,*m,b,~{memory}", {}, operands, /*sideEffects=*/true);
}

LogicalResult lowerAsyncCopy(AsyncCopyOp op, Emitter &e) {
  SharedType shared = op.getShared().getType();
  unsigned bytes = shared.getElementType().getIntOrFloatBitWidth() / 8, contiguity = op.getContiguity();
  std::optional<LinearLayout> offsets = layoutOf(op.getPtr().getType()).composeInverse(shared.linear());
  assert(offsets && "a tile in shared memory has an offset for every element");
  for (unsigned bit = 0; (1u << bit) < contiguity; ++bit)
    if (offsets->bases(InDim::Register).size() <= bit || offsets->bases(InDim::Register)[bit] != 1u << bit)
      return op.emitOpError("expected ")
             << contiguity << " neighbouring elements of the tile in each lane's first registers, but got the map "
             << offsets->str();
  TileAddress addresses(e, e.scalar(op.getShared()), inBytes(offsets->bases(InDim::Lane), bytes),
                        inBytes(offsets->bases(InDim::Warp), bytes));
  unsigned size = contiguity * bytes;
  ArrayRef<Value> pointers = e.registers(op.getPtr());
  ArrayRef<Value> mask = op.getMask() ? e.registers(op.getMask()) : ArrayRef<Value>();
  Value owner = e.isOwner(*offsets);
  uint32_t repeated = offsets->freeBits()[InDim::Register];
  // Bytes that nobody asked to be zero: cp.async makes them so, of a count that nothing wrote.
  Value none = mask.empty()        ? Value()
               : op.getUndefined() ? e.atEntry([&] { return undefinedValue(e.b.getI32Type(), e); })
                                   : e.i32(0);
  if (auto remark = remarks::decided(remarks::access, op))
    remark << remark::reason("a thread copies {0} to shared memory by {1} of {2} bytes",
                             tile::textOf(op.getPtr().getType()),
                             instructionsText((pointers.size() >> llvm::popcount(repeated)) / contiguity), size);
  for (unsigned reg = 0; reg < pointers.size(); reg += contiguity)
    if (!(reg & repeated)) {
      Value filled =
          mask.empty() ? Value() : LLVM::SelectOp::create(e.b, e.loc, mask[reg], e.i32(size), none).getResult();
      copyPiece(e, {addresses.at(offsets->apply(InDim::Register, reg) * bytes), pointers[reg], size, filled, owner,
                    op.getThroughL1()});
    }
  return success();
}

} // namespace

Value bytesBefore(StageOp stage, Emitter &e) {
  auto alloc = stage.getRing().getDefiningOp<AllocOp>();
  std::optional<int64_t> pitch = alloc ? alloc.getPitch() : std::nullopt;
  int64_t each = pitch.value_or(stage.getResult().getType().getTileBytes()) / int64_t(stage.getStep());
  Value index = e.scalar(stage.getIndex());
  return each == 1 ? index : LLVM::MulOp::create(e.b, e.loc, index, e.i32(each)).getResult();
}

void addSharedLowerings(LoweringTable &table) {
  table.add<AllocOp>([](AllocOp op, Emitter &e) -> LogicalResult {
    if (!op.getOffset())
      return op.emitOpError("has no place in shared memory; run 'warp-allocate-shared' before");
    e.bind(op.getResult(), e.sharedPointer(*op.getOffset()));
    return success();
  });
  table.add<DeallocOp>([](DeallocOp, Emitter &) { return success(); });
  table.add<StageOp>([](StageOp op, Emitter &e) -> LogicalResult {
    auto alloc = op.getRing().getDefiningOp<AllocOp>();
    std::optional<int64_t> pitch = alloc ? alloc.getPitch() : std::nullopt;
    int64_t each = pitch.value_or(op.getResult().getType().getTileBytes()), step = op.getStep();
    if (each % step != 0)
      return op.emitOpError("expected a step that divides the ")
             << each << " bytes between tiles of the ring, but got " << step;
    Value bytes = bytesBefore(op, e);
    // The ring's own place goes last, where it becomes part of accesses: what is before it, rings of a pitch share.
    if (alloc)
      e.bind(op.getResult(), e.offset(e.offset(e.sharedPointer(0), bytes), *alloc.getOffset()));
    else
      e.bind(op.getResult(), e.offset(e.scalar(op.getRing()), bytes));
    return success();
  });
  table.add<PermuteSharedOp>([](PermuteSharedOp op, Emitter &e) {
    e.bind(op.getResult(), e.scalar(op.getSource()));
    return success();
  });
  table.add<LoadSharedOp>(lowerLoadShared);
  table.add<StoreSharedOp>(lowerStoreShared);
  table.add<AsyncCopyOp>(lowerAsyncCopy);
  table.add<AsyncCommitOp>([](AsyncCommitOp, Emitter &e) {
    LLVM::CallIntrinsicOp::create(e.b, e.loc, e.b.getStringAttr("llvm.nvvm.cp.async.commit.group"), ValueRange());
    return success();
  });
  table.add<FenceOp>([](FenceOp, Emitter &e) {
    LLVM::FenceOp::create(e.b, e.loc, LLVM::AtomicOrdering::acq_rel, "device");
    return success();
  });
  table.add<BarrierOp>([](BarrierOp op, Emitter &e) {
    if (op.getOfCluster())
      e.barrierOfCluster();
    else if (op.getProducerArrives())
      e.barrierOfBegin(/*arrives=*/op->getParentOfType<ProducerOp>() != nullptr);
    else if (op.getWhere())
      e.barrierWhere(e.scalar(op.getWhere()), op.getWithProducer());
    else
      e.barrier(op.getWithProducer());
    return success();
  });
  table.add<AsyncWaitOp>([](AsyncWaitOp op, Emitter &e) {
    LLVM::CallIntrinsicOp::create(e.b, e.loc, e.b.getStringAttr("llvm.nvvm.cp.async.wait.group"),
                                  ValueRange{e.i32(op.getPending())});
    return success();
  });
}

} // namespace weft

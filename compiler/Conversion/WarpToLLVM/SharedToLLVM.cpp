// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Tiles in shared memory: where they are, ldmatrix, plain loads and stores, asynchronous copies.
//
// Whether ldmatrix fits is read off the map from (register, lane, warp) to the offset in the tile: a matrix is eight rows of 16 bytes, each at an address of
// its own, and its lanes hold either neighbours within a row or, transposed, neighbours along a column (PTX ISA 9.7.14.5.15).

#include "compiler/Conversion/WarpToLLVM/SharedAccess.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

/// How a tile is read by ldmatrix.
struct MatrixLoad {
  bool transposed;
  /// Offsets in elements that the bits of the lane that gives a row's address stand for: three bits of the row, then those of the matrix.
  SmallVector<uint32_t, 5> rowBases;
  /// Matrices of one instruction: 1, 2 or 4.
  unsigned count;
  /// Elements of one 32-bit result.
  unsigned packed;
};

/// The matrices of one instruction take the register bits that follow those inside a matrix.
MatrixLoad withMatrices(bool transposed, ArrayRef<uint32_t> rows, ArrayRef<uint32_t> registers, unsigned inside, unsigned packed) {
  MatrixLoad load{transposed, SmallVector<uint32_t, 5>(rows), 1, packed};
  for (uint32_t basis : registers.drop_front(inside).take_front(2)) {
    load.rowBases.push_back(basis);
    load.count *= 2;
  }
  return load;
}

/// Whether and how ldmatrix gives `offsets`, a map to offsets in elements of `bits` bits.
std::optional<MatrixLoad> matchMatrixLoad(const LinearLayout &offsets, unsigned bits) {
  if (bits != 8 && bits != 16 && bits != 32)
    return std::nullopt;
  ArrayRef<uint32_t> regs = offsets.bases(InDim::Register), lanes = offsets.bases(InDim::Lane);
  unsigned packed = 32 / bits, inside = llvm::Log2_32(packed), rowElements = 128 / bits;
  if (regs.size() < inside)
    return std::nullopt;
  auto leavesRows = [&](uint32_t basis) { return basis % rowElements == 0; };
  if (!llvm::all_of(regs.drop_front(inside), leavesRows) || !llvm::all_of(offsets.bases(InDim::Warp), leavesRows))
    return std::nullopt;
  bool straight = lanes[0] == packed && lanes[1] == 2 * packed && llvm::all_of(lanes.drop_front(2), leavesRows);
  for (unsigned bit = 0; bit < inside; ++bit)
    straight &= regs[bit] == 1u << bit;
  if (straight)
    return withMatrices(false, lanes.drop_front(2), regs, inside, packed);
  bool transposed = bits == 16 && lanes[2] == 1 && lanes[3] == 2 && lanes[4] == 4 && leavesRows(lanes[0]) &&
                    leavesRows(lanes[1]) && leavesRows(regs[0]);
  if (!transposed)
    return std::nullopt;
  uint32_t rows[] = {regs[0], lanes[0], lanes[1]};
  return withMatrices(true, rows, regs, inside, packed);
}

Registers emitMatrixLoad(Emitter &e, Value base, const MatrixLoad &load, const LinearLayout &offsets, Type element) {
  unsigned bytes = element.getIntOrFloatBitWidth() / 8;
  auto scaled = [&](ArrayRef<uint32_t> bases) { return llvm::map_to_vector(bases, [&](uint32_t basis) { return basis * bytes; }); };
  TileAddress addresses(e, base, scaled(load.rowBases), scaled(offsets.bases(InDim::Warp)));
  std::string name = ("llvm.nvvm.ldmatrix.sync.aligned.m8n8.x" + Twine(load.count) + (load.transposed ? ".trans" : "") + ".b16.p3").str();
  Type word = e.b.getI32Type();
  Type result = load.count == 1 ? word : Type(LLVM::LLVMStructType::getLiteral(e.b.getContext(), SmallVector<Type>(load.count, word)));
  unsigned step = load.count * load.packed;
  Registers registers;
  for (unsigned first = 0; first < offsets.size(InDim::Register); first += step) {
    Value words = e.intrinsic(name, result, {addresses.at(offsets.apply(InDim::Register, first) * bytes)});
    for (unsigned matrix = 0; matrix < load.count; ++matrix) {
      Value one = load.count == 1 ? words : LLVM::ExtractValueOp::create(e.b, e.loc, words, matrix).getResult();
      llvm::append_range(registers, e.unpack(one, element));
    }
  }
  return registers;
}

LogicalResult lowerLoadShared(LoadSharedOp op, Emitter &e) {
  Type element = registerType(op.getResult().getType());
  SharedType shared = op.getShared().getType();
  unsigned bits = shared.getElementType().getIntOrFloatBitWidth();
  SharedAccess access = accessOf(layoutOf(op.getResult().getType()), shared.linear(), llvm::divideCeil(bits, 8));
  Value base = e.scalar(op.getShared());
  if (std::optional<MatrixLoad> load = matchMatrixLoad(access.offsets, bits))
    e.bind(op.getResult(), emitMatrixLoad(e, base, *load, access.offsets, element));
  else
    e.bind(op.getResult(), emitSharedLoad(e, base, access, element));
  return success();
}

LogicalResult lowerStoreShared(StoreSharedOp op, Emitter &e) {
  SharedType shared = op.getShared().getType();
  unsigned bytes = llvm::divideCeil(shared.getElementType().getIntOrFloatBitWidth(), 8);
  emitSharedStore(e, e.scalar(op.getShared()), accessOf(layoutOf(op.getValue().getType()), shared.linear(), bytes),
                  e.registers(op.getValue()));
  return success();
}

LogicalResult lowerAsyncCopy(AsyncCopyOp op, Emitter &e) {
  SharedType shared = op.getShared().getType();
  unsigned bytes = shared.getElementType().getIntOrFloatBitWidth() / 8, contiguity = op.getContiguity();
  std::optional<LinearLayout> offsets = layoutOf(op.getPtr().getType()).composeInverse(shared.linear());
  if (!offsets)
    return op.emitOpError("copies into a tile that does not hold every element");
  for (unsigned bit = 0; (1u << bit) < contiguity; ++bit)
    if (offsets->bases(InDim::Register).size() <= bit || offsets->bases(InDim::Register)[bit] != 1u << bit)
      return op.emitOpError("expected ") << contiguity << " neighbouring elements of the tile in each lane's first registers, but got the map "
                                         << offsets->str();
  auto scaled = [&](ArrayRef<uint32_t> bases) { return llvm::map_to_vector(bases, [&](uint32_t basis) { return basis * bytes; }); };
  TileAddress addresses(e, e.scalar(op.getShared()), scaled(offsets->bases(InDim::Lane)), scaled(offsets->bases(InDim::Warp)));
  unsigned size = contiguity * bytes;
  ArrayRef<Value> pointers = e.registers(op.getPtr());
  ArrayRef<Value> mask = op.getMask() ? e.registers(op.getMask()) : ArrayRef<Value>();
  std::string name = ("llvm.nvvm.cp.async." + Twine(size == 16 ? "cg" : "ca") + ".shared.global." + Twine(size) + (mask.empty() ? "" : ".s")).str();
  for (unsigned reg = 0; reg < pointers.size(); reg += contiguity) {
    SmallVector<Value, 3> operands{addresses.at(offsets->apply(InDim::Register, reg) * bytes), pointers[reg]};
    if (!mask.empty())
      operands.push_back(LLVM::SelectOp::create(e.b, e.loc, mask[reg], e.i32(size), e.i32(0)));
    LLVM::CallIntrinsicOp::create(e.b, e.loc, e.b.getStringAttr(name), operands);
  }
  return success();
}

} // namespace

void addSharedLowerings(LoweringTable &table) {
  table.add<AllocOp>([](AllocOp op, Emitter &e) -> LogicalResult {
    if (!op.getOffset())
      return op.emitOpError("has no place in shared memory; run 'warp-allocate-shared' before");
    e.bind(op.getResult(), e.sharedPointer(*op.getOffset()));
    return success();
  });
  table.add<DeallocOp>([](DeallocOp, Emitter &) { return success(); });
  table.add<StageOp>([](StageOp op, Emitter &e) {
    Value bytes = LLVM::MulOp::create(e.b, e.loc, e.scalar(op.getIndex()), e.i32(op.getResult().getType().getTileBytes()));
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
  table.add<BarrierOp>([](BarrierOp, Emitter &e) {
    e.barrier();
    return success();
  });
  table.add<AsyncWaitOp>([](AsyncWaitOp op, Emitter &e) {
    LLVM::CallIntrinsicOp::create(e.b, e.loc, e.b.getStringAttr("llvm.nvvm.cp.async.wait.group"), ValueRange{e.i32(op.getPending())});
    return success();
  });
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Products whose sums are in tensor memory (PTX ISA 9.7.16).
//
// A product is one piece of inline PTX that a warpgroup's first thread acts in: an instruction for each tile of m × n
// and each step along K, and a commit, which arrives at a barrier of the warpgroup when all of them are done. A thread
// counts its warpgroup's products: the barrier of the c-th is the one of number c mod barriers, its phase c / barriers.
// Loads hold their wait, so that nothing reads registers which are still to be written.
#include "compiler/Conversion/WarpToLLVM/Arithmetic/Pairs.h"
#include "compiler/Conversion/WarpToLLVM/Products/InlineProduct.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

constexpr unsigned groupWarps = 4, lanesOfWarp = 32, barrierBytes = 8;
/// Lanes are the upper half of an address of tensor memory (PTX ISA 9.7.16.1.1).
constexpr unsigned laneShift = 16;

Value wordAddress(Value pointer, Emitter &e) { return LLVM::PtrToIntOp::create(e.b, e.loc, e.b.getI32Type(), pointer); }

/// Which warpgroup a thread is of, the same in a warp's threads.
Value groupOf(Emitter &e) { return groupNumber(e, 1, e.warps / groupWarps); }

void act(StringRef code, Value where, ArrayRef<Value> operands, Emitter &e) {
  std::string constraints;
  for (size_t i = 0; i < operands.size(); ++i)
    constraints += "r,";
  SmallVector<Value> all(operands);
  if (where) {
    constraints += "b,";
    all.push_back(where);
  }
  e.inlineAsm(code, constraints + "~{memory}", {}, all, /*sideEffects=*/true);
}

/// Whether a thread's number is below `count`, as a predicate.
Value isBelow(Value number, int64_t count, Emitter &e) {
  return e.atEntry(
      [&]() -> Value { return LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::ult, number, e.i32(count)); });
}

/// The number of a warp in its warpgroup, the same in its threads as ptxas knows.
Value warpInGroup(Emitter &e) {
  Value warp = e.warp();
  return e.atEntry([&]() -> Value {
    return LLVM::AndOp::create(e.b, e.loc, e.shuffleIndex(warp, e.i32(0)), e.i32(groupWarps - 1));
  });
}

Value isFirstOfGroup(Emitter &e) { return isBelow(warpInGroup(e), 1, e); }

constexpr StringLiteral fenceBefore = "tcgen05.fence::before_thread_sync;",
                        fenceAfter = "tcgen05.fence::after_thread_sync;";

LogicalResult lowerTensorBegin(TensorBeginOp op, Emitter &e) {
  const int64_t groups = e.warps / groupWarps, barriers = op.getBarriers(), columns = op.getColumns() * groups;
  Value slots = wordAddress(e.scalar(op.getSlots()), e), thread = e.thread();
  Value isFirstWarp = isBelow(thread, lanesOfWarp, e);
  // A thread begins each barrier.
  Value own = LLVM::AddOp::create(e.b, e.loc, slots, LLVM::MulOp::create(e.b, e.loc, thread, e.i32(barrierBytes)));
  act("@$1 mbarrier.init.shared.b64 [$0], 1; @$1 fence.mbarrier_init.release.cluster;",
      isBelow(thread, groups * barriers, e), own, e);
  const int64_t word = groups * barriers * barrierBytes;
  act(llvm::formatv("@$1 tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [$0+{0}], {1}; "
                    "@$1 tcgen05.relinquish_alloc_permit.cta_group::1.sync.aligned; {2}",
                    word, columns, fenceBefore)
          .str(),
      isFirstWarp, slots, e);
  e.barrier();
  act(fenceAfter, {}, {}, e);
  Value base = LLVM::LoadOp::create(e.b, e.loc, e.b.getI32Type(), e.offset(e.scalar(op.getSlots()), word));
  base = e.shuffleIndex(base, e.i32(0));
  Value area = base;
  if (groups > 1)
    area = LLVM::AddOp::create(e.b, e.loc, base, LLVM::MulOp::create(e.b, e.loc, groupOf(e), e.i32(op.getColumns())));
  Value lane = LLVM::ShlOp::create(e.b, e.loc, warpInGroup(e), e.i32(laneShift + llvm::Log2_32(lanesOfWarp)));
  e.bind(op.getArea(), area);
  e.bind(op.getLanes(), LLVM::AddOp::create(e.b, e.loc, area, lane).getResult());
  return success();
}

LogicalResult lowerTensorEnd(TensorEndOp op, Emitter &e) {
  act(fenceBefore, {}, {}, e);
  e.barrier();
  act(llvm::formatv("{0} @$1 tcgen05.dealloc.cta_group::1.sync.aligned.b32 $0, {1};", fenceAfter,
                    op.getColumns() * (e.warps / groupWarps))
          .str(),
      isBelow(e.thread(), lanesOfWarp, e), e.scalar(op.getArea()), e);
  return success();
}

/// How an access of words is spelt: its shape, and how many words of a thread, and columns, one of its repetitions has.
struct Access {
  StringRef shape;
  size_t words, columns;
};

/// Sums of 128 rows, and operands of products of as many, have a row a thread; those of 64 rows lie as the fragments of
/// `mma.m16n8` do (PTX ISA 9.7.16.2.3).
Access accessOf(RankedTensorType type) {
  std::optional<WarpgroupGrid> grid = wgmmaGridOf(layoutOf(type));
  bool byRows = layoutOf(type).bases(InDim::Lane).front() == layoutOf(type).linearize({1, 0});
  if (byRows)
    return {"32x32b", 1, 1};
  return type.getElementTypeBitWidth() == 32 && grid ? Access{"16x256b", 4, 8} : Access{"16x128b", 2, 4};
}

/// The pieces that an access of `count` words is made of: the first word of each, and how many.
template <typename Emit> void inPieces(size_t count, Emit emit) {
  constexpr size_t most = 32;
  for (size_t first = 0; first < count;) {
    size_t words = std::min(most, llvm::bit_floor(count - first));
    emit(first, words);
    first += words;
  }
}

std::string listFrom(size_t first, size_t count) {
  std::string names;
  for (size_t i = first; i < first + count; ++i)
    names += (i == first ? "$" : ", $") + std::to_string(i);
  return "{" + names + "}";
}

/// Some words from a word of a tile on, which begins at `column`.
SmallVector<Value> loadPiece(Value lanes, int64_t column, size_t first, size_t words, RankedTensorType type,
                             Emitter &e) {
  const Access access = accessOf(type);
  Type element = type.getElementType();
  std::string constraints;
  for (size_t i = 0; i < words; ++i)
    constraints += element.isF32() ? "=f," : "=r,";
  return e.inlineAsm(
      llvm::formatv("tcgen05.ld.sync.aligned.{0}.x{1}.b32 {2}, [${3}+{4}]; tcgen05.wait::ld.sync.aligned;",
                    access.shape, words / access.words, listFrom(0, words), words,
                    column + first / access.words * access.columns)
          .str(),
      constraints + "r,~{memory}", SmallVector<Type>(words, element), lanes, /*sideEffects=*/true);
}

void storePiece(ArrayRef<Value> words, Value lanes, int64_t column, size_t first, RankedTensorType type, Emitter &e) {
  const Access access = accessOf(type);
  SmallVector<Value> operands(words);
  operands.push_back(lanes);
  act(llvm::formatv("tcgen05.st.sync.aligned.{0}.x{1}.b32 [${2}+{3}], {4};", access.shape, words.size() / access.words,
                    words.size(), column + first / access.words * access.columns, listFrom(0, words.size()))
          .str(),
      {}, operands, e);
}

void awaitStores(Emitter &e) { act("tcgen05.wait::st.sync.aligned;", {}, {}, e); }

LogicalResult lowerTensorLoad(TensorLoadOp op, Emitter &e) {
  Registers registers;
  inPieces(*registerCount(op.getType()), [&](size_t first, size_t words) {
    llvm::append_range(registers, loadPiece(e.scalar(op.getLanes()), op.getColumn(), first, words,
                                            cast<RankedTensorType>(op.getType()), e));
  });
  e.bind(op.getResult(), registers);
  return success();
}

/// The registers of a value in words of 32 bits.
SmallVector<Value> wordsOf(Value value, Emitter &e) {
  ArrayRef<Value> registers = e.registers(value);
  unsigned packed = 32 / registers.front().getType().getIntOrFloatBitWidth();
  SmallVector<Value> words;
  for (size_t first = 0; first < registers.size(); first += packed)
    words.push_back(e.pack(registers.slice(first, packed)));
  return words;
}

LogicalResult lowerTensorStore(TensorStoreOp op, Emitter &e) {
  SmallVector<Value> words = wordsOf(op.getValue(), e);
  inPieces(words.size(), [&](size_t first, size_t count) {
    storePiece(ArrayRef(words).slice(first, count), e.scalar(op.getLanes()), op.getColumn(), first,
               cast<RankedTensorType>(op.getValue().getType()), e);
  });
  awaitStores(e);
  return success();
}

LogicalResult lowerTensorScale(TensorScaleOp op, Emitter &e) {
  ArrayRef<Value> factors = e.registers(op.getBy());
  Value lanes = e.scalar(op.getLanes());
  inPieces(factors.size(), [&](size_t first, size_t count) {
    auto type = cast<RankedTensorType>(op.getBy().getType());
    SmallVector<Value> words = loadPiece(lanes, op.getColumn(), first, count, type, e);
    for (size_t i = 0; i < count; i += 2) {
      Value pair = LLVM::FMulOp::create(e.b, e.loc, pairedUp(words[i], words[i + 1], e),
                                        pairedUp(factors[first + i], factors[first + i + 1], e));
      for (unsigned half : {0, 1})
        words[i + half] = LLVM::ExtractElementOp::create(e.b, e.loc, pair, e.i32(half));
    }
    storePiece(words, lanes, op.getColumn(), first, type, e);
  });
  awaitStores(e);
  return success();
}

LogicalResult lowerTensorReady(TensorReadyOp, Emitter &e) {
  Value group = groupOf(e);
  Value barrier =
      e.atEntry([&]() -> Value { return LLVM::SubOp::create(e.b, e.loc, e.i32(e.target.namedBarriers - 1), group); });
  act(llvm::formatv("{0} bar.sync $0, {1}; {2}", fenceBefore, groupWarps * lanesOfWarp, fenceAfter).str(), {}, barrier,
      e);
  return success();
}

/// A warpgroup's barrier of the product number `count`: its address.
Value barrierOf(Value slots, Value count, int64_t barriers, Emitter &e) {
  Value first = wordAddress(e.scalar(slots), e);
  if (e.warps > groupWarps) {
    Value group = groupOf(e);
    Value distance =
        e.atEntry([&]() -> Value { return LLVM::MulOp::create(e.b, e.loc, group, e.i32(barriers * barrierBytes)); });
    first = LLVM::AddOp::create(e.b, e.loc, first, distance);
  }
  if (barriers == 1)
    return first;
  Value number = LLVM::AndOp::create(e.b, e.loc, count, e.i32(barriers - 1));
  return LLVM::AddOp::create(e.b, e.loc, first, LLVM::MulOp::create(e.b, e.loc, number, e.i32(barrierBytes)));
}

/// How many barriers a warpgroup has.
int64_t barriersOf(Value slots) {
  for (Operation *user : slots.getUsers())
    if (auto begin = dyn_cast<TensorBeginOp>(user))
      return begin.getBarriers();
  return 0;
}

/// The instruction descriptor (PTX ISA 9.7.16.4.2) of a product of m × n.
uint32_t instructionDescriptor(Type element, bool aTurned, bool bTurned, int64_t m, int64_t n) {
  StringRef name = nameOfOperand(element);
  uint32_t type = llvm::StringSwitch<uint32_t>(name).Cases({"bf16", "e5m2", "s8"}, 1).Case("tf32", 2).Default(0);
  uint32_t sums = element.isInteger() ? 2 : 1;
  return sums << 4 | type << 7 | type << 10 | uint32_t(aTurned) << 15 | uint32_t(bTurned) << 16 |
         uint32_t(n >> 3) << 17 | uint32_t(m >> 4) << 24;
}

StringRef kindOfProduct(Type element) {
  return llvm::StringSwitch<StringRef>(nameOfOperand(element))
      .Cases({"f16", "bf16"}, "f16")
      .Case("tf32", "tf32")
      .Case("s8", "i8")
      .Default("f8f6f4");
}

/// The code of a product: one statement for each instruction, those of a tile after one another.
class TensorProduct {
public:
  TensorProduct(TensorProductOp op, Emitter &e, WarpgroupGrid grid) : op(op), e(e), assembly(e), m(grid.m) {
    auto sums = cast<RankedTensorType>(op.getSums());
    auto bType = cast<SharedType>(op.getB().getType());
    rows = sums.getDimSize(0) / grid.rows;
    columns = sums.getDimSize(1) / grid.columns;
    inner = bType.getShape()[0];
    area = assembly.in(e.scalar(op.getArea()), "r");
    leads = assembly.in(isFirstOfGroup(e), "b");
    if (op.getA()) {
      a = descriptorOf(e, op.getA(), 1, rows, grid.rows > 1 ? groupNumber(e, 1, grid.rows) : Value());
      a->name = assembly.in(a->low, "r");
    }
    b = descriptorOf(e, op.getB(), 0, columns, grid.columns > 1 ? groupNumber(e, grid.rows, grid.columns) : Value());
    b->name = assembly.in(b->low, "r");
  }

  void emit() {
    auto element = cast<SharedType>(op.getB().getType()).getElementType();
    const int64_t n = op.getShape()[1], k = op.getShape()[2];
    const int64_t wordsOfStep = k * element.getIntOrFloatBitWidth() / 32;
    // Bit 46: the version of descriptors here (PTX ISA 9.7.16.4.1). Swizzles are numbered as for wgmma in steps of two.
    constexpr uint32_t version = 1 << 14;
    std::string code = "{ .reg .pred acts, old, none; .reg .b32 la, lb, ha, hb, sums, from; .reg .b64 da, db; "
                       "@!" +
                       leads + " bra others; elect.sync _|acts, -1; setp.eq.u32 old, 0, 0; setp.ne.u32 none, 0, 0; ";
    if (a)
      code += llvm::formatv("mov.b32 ha, {0}; ", a->high() | version).str();
    code += llvm::formatv("mov.b32 hb, {0}; ", b->high() | version).str();
    const uint32_t descriptor = instructionDescriptor(element, a && a->operand.turned, b->operand.turned, m, n);
    for (int64_t row = 0; row < rows; row += m)
      for (int64_t column = 0; column < columns; column += n) {
        code += llvm::formatv("add.u32 sums, {0}, {1}; ", area, op.getColumn() + row / m * columns + column);
        for (int64_t step = 0; step < inner; step += k) {
          code += b->step("b", b->operand.offset(column, step));
          std::string from = "da";
          if (a) {
            code += a->step("a", a->operand.offset(row, step));
          } else {
            code += llvm::formatv("add.u32 from, {0}, {1}; ", area,
                                  *op.getFrom() + row / m * (inner / k * wordsOfStep) + step / k * wordsOfStep);
            from = "[from]";
          }
          code += llvm::formatv("@acts tcgen05.mma.cta_group::1.kind::{0} [sums], {1}, db, {2}, {3}; ",
                                kindOfProduct(element), from, descriptor, op.getZero() && step == 0 ? "none" : "old");
        }
      }
    Value count = e.productsSoFar();
    const int64_t barriers = barriersOf(op.getSlots());
    Value number = LLVM::LoadOp::create(e.b, e.loc, e.b.getI32Type(), count);
    std::string barrier = assembly.in(barrierOf(op.getSlots(), number, barriers, e), "r");
    assembly.emit(code +
                  llvm::formatv("@acts tcgen05.commit.cta_group::1.mbarrier::arrive::one.shared::cluster.b64 [{0}]; "
                                "others: }",
                                barrier)
                      .str());
    LLVM::StoreOp::create(e.b, e.loc, LLVM::AddOp::create(e.b, e.loc, number, e.i32(1)), count);
  }

private:
  TensorProductOp op;
  Emitter &e;
  Assembly assembly;
  int64_t m, rows, columns, inner;
  std::string area, leads;
  std::optional<InShared> a, b;
};

LogicalResult lowerTensorProduct(TensorProductOp op, Emitter &e) {
  std::optional<WarpgroupGrid> grid = wgmmaGridOf(layoutAttrOf(op.getSums()).getLayout());
  TensorProduct(op, e, *grid).emit();
  return success();
}

LogicalResult lowerTensorWait(TensorWaitOp op, Emitter &e) {
  const int64_t barriers = barriersOf(op.getSlots());
  Value count = LLVM::LoadOp::create(e.b, e.loc, e.b.getI32Type(), e.productsSoFar());
  for (int64_t before = op.getPending() + op.getCount(); before > op.getPending(); --before) {
    Value awaited = LLVM::SubOp::create(e.b, e.loc, count, e.i32(before));
    Value phase = LLVM::LShrOp::create(e.b, e.loc, awaited, e.i32(llvm::Log2_64(barriers)));
    Value parity = LLVM::AndOp::create(e.b, e.loc, phase, e.i32(1));
    Value none = LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::slt, awaited, e.i32(0));
    Value barrier = barrierOf(op.getSlots(), awaited, barriers, e);
    e.inlineAsm("{ .reg .pred done; @$2 bra ended; again: mbarrier.try_wait.parity.shared.b64 done, [$0], $1; "
                "@!done bra again; ended: }",
                "r,r,b,~{memory}", {}, {barrier, parity, none}, /*sideEffects=*/true);
  }
  act(fenceAfter, {}, {}, e);
  return success();
}

} // namespace

void addTensorLowerings(LoweringTable &table) {
  table.add<TensorBeginOp>(lowerTensorBegin);
  table.add<TensorEndOp>(lowerTensorEnd);
  table.add<TensorLoadOp>(lowerTensorLoad);
  table.add<TensorStoreOp>(lowerTensorStore);
  table.add<JoinColumnsOp>([](JoinColumnsOp op, Emitter &e) {
    Registers registers;
    for (Value piece : op.getPieces())
      llvm::append_range(registers, e.registers(piece));
    e.bind(op.getResult(), registers);
    return success();
  });
  table.add<TensorScaleOp>(lowerTensorScale);
  table.add<TensorReadyOp>(lowerTensorReady);
  table.add<TensorProductOp>(lowerTensorProduct);
  table.add<TensorWaitOp>(lowerTensorWait);
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp.wgmma, its wait, and the fence for what it reads (PTX ISA 9.7.15).
//
// A product is one piece of inline PTX: fence, an instruction for each tile of 64 × n and each step along K, commit.
// LLVM has no intrinsic with operand a in registers or with a scale-d. Accumulators go in and out of the piece in the
// same registers, and so through the wait: nothing that touches them can move into the time in which they are under way.
#include "compiler/Conversion/WarpToLLVM/Arithmetic/Casts.h"
#include "compiler/Conversion/WarpToLLVM/Products/InlineProduct.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/WgmmaLayouts.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

/// How many instructions a warpgroup's product has along each axis, and n and k of one.
struct GroupExtents {
  unsigned m, n, k;
  int64_t columns, inner;
};

/// The code of a product: one statement for each instruction, those of a tile after one another.
class Product {
public:
  Product(WgmmaOp op, Emitter &e, WarpgroupGrid grid) : op(op), assembly(e) {
    auto acc = cast<RankedTensorType>(op.getAcc().getType());
    int64_t inner = isa<SharedType>(op.getB().getType()) ? cast<SharedType>(op.getB().getType()).getShape()[0] : 0;
    int64_t rows = acc.getDimSize(0) / grid.rows, columns = acc.getDimSize(1) / grid.columns;
    int64_t n = op.getShape()[1], k = op.getShape()[2];
    extents = {unsigned(rows / 64), unsigned(columns / n), unsigned(inner / k), n, k};
    Value rowGroup = grid.rows > 1 ? groupNumber(e, 1, grid.rows) : Value();
    Value columnGroup = grid.columns > 1 ? groupNumber(e, grid.rows, grid.columns) : Value();
    zeroStart = op.startsFromZero();
    assembly.inOut(e.registers(op.getAcc()), zeroStart);
    if (isa<SharedType>(op.getA().getType())) {
      a = descriptorOf(e, op.getA(), 1, rows, rowGroup);
      a->name = assembly.in(a->low, "r");
    } else {
      ArrayRef<Value> registers = e.registers(op.getA());
      unsigned packed = 32 / registers.front().getType().getIntOrFloatBitWidth();
      for (size_t first = 0; first < registers.size(); first += packed)
        aWords.push_back(assembly.in(e.pack(registers.slice(first, packed)), "r"));
    }
    b = descriptorOf(e, op.getB(), 0, columns, columnGroup);
    b->name = assembly.in(b->low, "r");
  }

  Registers emit() {
    Type element = cast<SharedType>(op.getB().getType()).getElementType();
    name = llvm::formatv("wgmma.mma_async.sync.aligned.m64n{0}k{1}.{2}.{3}.{3}", extents.columns, extents.inner,
                         element.isInteger() ? "s32" : "f32", nameOfOperand(element));
    // Signs of operands that are floats, and which operands are turned where that may be.
    modifiers = element.isInteger() ? "" : ", 1, 1";
    if (element.getIntOrFloatBitWidth() == 16)
      modifiers += std::string(a ? (a->operand.turned ? ", 1" : ", 0") : "") + (b->operand.turned ? ", 1" : ", 0");
    std::string code = "{ .reg .pred old, none; .reg .b32 la, lb, ha, hb; .reg .b64 da, db; "
                       "setp.eq.u32 old, 0, 0; setp.ne.u32 none, 0, 0; ";
    if (a)
      code += "mov.b32 ha, " + std::to_string(a->high()) + "; ";
    code += "mov.b32 hb, " + std::to_string(b->high()) + "; ";
    if (!op.getFenced())
      code += "wgmma.fence.sync.aligned; ";
    for (unsigned m = 0; m < extents.m; ++m)
      for (unsigned n = 0; n < extents.n; ++n)
        for (unsigned k = 0; k < extents.k; ++k)
          code += statement(m, n, k);
    return assembly.emit(code + "wgmma.commit_group.sync.aligned; }");
  }

private:
  static std::string list(size_t first, size_t count, llvm::function_ref<std::string(size_t)> name) {
    std::string names;
    for (size_t i = first; i < first + count; ++i)
      names += (i == first ? "" : ", ") + name(i);
    return "{" + names + "}";
  }
  std::string statement(unsigned m, unsigned n, unsigned k) {
    constexpr unsigned wordsOfStep = 4;
    size_t each = extents.columns / 2;
    std::string sums = list((m * extents.n + n) * each, each, [](size_t i) { return "$" + std::to_string(i); });
    std::string code = b->step("b", b->operand.offset(n * extents.columns, k * extents.inner)), from;
    if (a) {
      code += a->step("a", a->operand.offset(m * 64, k * extents.inner));
      from = "da";
    } else {
      from = list((m * extents.k + k) * wordsOfStep, wordsOfStep, [&](size_t i) { return aWords[i]; });
    }
    return code + name + " " + sums + ", " + from + ", db, " + (zeroStart && k == 0 ? "none" : "old") + modifiers +
           "; ";
  }

  WgmmaOp op;
  Assembly assembly;
  GroupExtents extents{};
  bool zeroStart = false;
  std::optional<InShared> a, b;
  std::string name, modifiers;
  SmallVector<std::string> aWords;
};

LogicalResult lowerWgmma(WgmmaOp op, Emitter &e) {
  if (!isa<SharedType>(op.getB().getType()) || (!isa<SharedType>(op.getA().getType()) && !op.takesRegisters()))
    return op.emitOpError("has an operand that is not where its instructions take it from; run 'warp-stage-wgmma' "
                          "before");
  Type element = cast<SharedType>(op.getB().getType()).getElementType();
  auto acc = cast<RankedTensorType>(op.getAcc().getType());
  if (nameOfOperand(element).empty() ||
      !(element.isInteger() ? acc.getElementType().isInteger(32) : acc.getElementType().isF32()))
    return op.emitOpError("has no instruction for ") << element << " and " << acc.getElementType();
  for (unsigned index : {0, 1})
    if (auto shared = dyn_cast<SharedType>(op->getOperand(index).getType());
        shared && element.getIntOrFloatBitWidth() == 8 && wgmmaOperand(shared.linear(), 1 - index, 1)->turned)
      return op.emitOpError("has an operand of ") << element
                                                  << " whose neighbours do not lie along K, which no "
                                                     "instruction of a warpgroup turns";
  std::optional<WarpgroupGrid> grid = wgmmaGridOf(layoutAttrOf(acc).getLayout());
  e.bind(op.getResult(), Product(op, e, *grid).emit());
  return success();
}

/// Binds the results of an op to the registers of its operands behind `code`, those of less than 32 bits in words, as
/// instructions take them.
template <typename Op> LogicalResult passThrough(Op op, Emitter &e, StringRef code) {
  for (Type type : op.getValues().getTypes())
    if (Type element = getElementTypeOrSelf(type); !element.isIntOrFloat() || element.getIntOrFloatBitWidth() < 8)
      return op.emitOpError("expected elements of at least 8 bits, but got ") << element;
  Registers words;
  auto packedBy = [](Type element) { return std::max(1u, 32 / element.getIntOrFloatBitWidth()); };
  for (Value value : op.getValues()) {
    ArrayRef<Value> registers = e.registers(value);
    unsigned packed = packedBy(registers.front().getType());
    for (size_t first = 0; first < registers.size(); first += packed)
      words.push_back(packed == 1 ? registers[first] : e.pack(registers.slice(first, packed)));
  }
  Assembly assembly(e);
  assembly.inOut(words, /*fresh=*/false);
  SmallVector<Value> passed = assembly.emit(code);
  ArrayRef<Value> rest = passed;
  for (auto [value, result] : llvm::zip_equal(op.getValues(), op.getResults())) {
    Type element = e.registers(value).front().getType();
    size_t count = e.registers(value).size() / packedBy(element);
    Registers registers;
    for (Value word : rest.take_front(count))
      if (packedBy(element) == 1)
        registers.push_back(word);
      else
        llvm::append_range(registers, e.unpack(word, element));
    e.bind(result, registers);
    rest = rest.drop_front(count);
  }
  return success();
}

LogicalResult lowerFence(WgmmaFenceOp op, Emitter &e) { return passThrough(op, e, "wgmma.fence.sync.aligned;"); }

LogicalResult lowerWait(WgmmaWaitOp op, Emitter &e) {
  return passThrough(op, e, ("wgmma.wait_group.sync.aligned " + Twine(op.getPending()) + ";").str());
}

} // namespace

void addWgmmaLowerings(LoweringTable &table) {
  table.add<WgmmaOp>(lowerWgmma);
  table.add<WgmmaFenceOp>(lowerFence);
  table.add<WgmmaWaitOp>(lowerWait);
  table.add<RoundTF32Op>([](RoundTF32Op op, Emitter &e) {
    return e.perRegister(op, [&](ArrayRef<Value> in) { return e.bitcast(roundToTF32(in[0], e), in[0].getType()); });
  });
  table.add<ProxyFenceOp>([](ProxyFenceOp, Emitter &e) {
    e.inlineAsm("fence.proxy.async.shared::cta;", "~{memory}", {}, {}, /*sideEffects=*/true);
    return success();
  });
}

} // namespace weft

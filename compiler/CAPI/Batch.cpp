// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Axis 0 is the batch of every op of the dialect on tensors of rank 3 or more, and of maps and products with weights on
// any. What is left to see to: that no tensor has the symbol elsewhere, that nothing is summed over it, and that
// regions use a pair's batch to find its own entry of a tensor, and for nothing else.
#include "compiler/CAPI/Batch.h"

#include "dialects/Attn/IR/AttnOps.h"
#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace weft::attn;

namespace {

/// Whether an expression over sizes has a symbol in it.
bool mentions(StringRef expression, StringRef symbol) {
  auto isName = [](char c) { return llvm::isAlnum(c) || c == '_'; };
  for (size_t at = expression.find(symbol); at != StringRef::npos; at = expression.find(symbol, at + 1)) {
    size_t end = at + symbol.size();
    if ((at == 0 || !isName(expression[at - 1])) && (end == expression.size() || !isName(expression[end])))
      return true;
  }
  return false;
}

class Batch {
public:
  explicit Batch(StringRef symbol) : symbol(symbol) {}

  /// Whether the values of a program, and its ops, keep entries apart.
  bool isOf(func::FuncOp program) const {
    auto fits = [&](Type type) { return isFit(type); };
    return llvm::all_of(program.getArgumentTypes(), fits) && llvm::all_of(program.getResultTypes(), fits) &&
           llvm::all_of(program.getResultTypes(), [&](Type type) { return has(type); }) &&
           llvm::all_of(program.front().without_terminator(), [&](Operation &op) { return isApart(op); });
  }

private:
  /// Whether a tensor has the symbol as its first size.
  bool has(Type type) const {
    auto tensor = dyn_cast<WholeTensorType>(type);
    return tensor && tensor.getRank() > 0 && tensor.dim(0) == symbol;
  }

  /// Whether a tensor has the symbol nowhere but there.
  bool isFit(Type type) const {
    auto tensor = dyn_cast<WholeTensorType>(type);
    return !tensor || llvm::none_of(llvm::enumerate(tensor.getDims()), [&](auto each) {
      return (each.index() > 0 || each.value().getValue() != symbol) && mentions(each.value().getValue(), symbol);
    });
  }

  bool isApart(Operation &op) const {
    bool anyRank = isa<MapOp, LinearOp>(op), reads = false,
         apart = llvm::all_of(op.getResultTypes(), [&](Type type) { return isFit(type); });
    llvm::SmallPtrSet<Value, 4> own = ownEntries(op);
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        if (has(operand.getType())) {
          reads = true;
          apart &= anyRank || inner != &op || cast<WholeTensorType>(operand.getType()).getRank() >= 3;
        }
      apart &= keepsToEntry(inner, own);
    });
    return apart && (!reads || llvm::all_of(op.getResultTypes(), [&](Type type) { return has(type); }));
  }

  /// The numbers of an op's regions that are the batch of the present pair or element.
  llvm::SmallPtrSet<Value, 4> ownEntries(Operation &op) const {
    llvm::SmallPtrSet<Value, 4> own;
    auto add = [&](Region &region, unsigned argument) {
      if (!region.empty())
        own.insert(region.getArgument(argument));
    };
    auto addMasks = [&](auto attend) {
      add(attend.getScoreMod(), 1);
      for (Region &mask : attend.getMasks())
        add(mask, 0);
    };
    if (auto attend = dyn_cast<AttendOp>(op))
      addMasks(attend);
    if (auto attend = dyn_cast<AttendBackwardOp>(op)) {
      addMasks(attend);
      add(attend.getScoreModGrad(), 1);
    }
    if (auto attend = dyn_cast<AttendTangentOp>(op)) {
      addMasks(attend);
      add(attend.getScoreModTangent(), 1);
    }
    if (isa<MapOp>(op) && has(op.getResult(0).getType()))
      op.walk([&](IndexOp index) {
        if (index.getAxis() == 0)
          own.insert(index.getResult());
      });
    return own;
  }

  /// Whether an op of a region finds by `own` its own entry alone.
  bool keepsToEntry(Operation *op, const llvm::SmallPtrSet<Value, 4> &own) const {
    if (auto size = dyn_cast<SizeOp>(op))
      return !mentions(size.getSize(), symbol);
    ValueRange others = op->getOperands();
    if (auto element = dyn_cast<ElementOp>(op)) {
      auto tensor = cast<WholeTensorType>(element.getTensor().getType());
      others = element.getIndices();
      if (tensor.getRank() > 0 && (tensor.dim(0) == symbol || tensor.dim(0) == "1")) {
        if (tensor.dim(0) == symbol && !own.contains(others.front()))
          return false;
        others = others.drop_front();
      }
    } else if (auto added = dyn_cast<AccumulateOp>(op)) {
      others = added.getIndices();
      if (!others.empty() && own.contains(others.front()))
        others = others.drop_front();
      if (own.contains(added.getValue()))
        return false;
    }
    return llvm::none_of(others, [&](Value value) { return own.contains(value); });
  }

  StringRef symbol;
};

} // namespace

StringRef weft::capi::batchOf(func::FuncOp program) {
  if (!llvm::hasSingleElement(program.getBody()) || program.getNumResults() == 0)
    return {};
  auto first = dyn_cast<WholeTensorType>(program.getResultTypes().front());
  if (!first || first.getRank() == 0 ||
      !llvm::all_of(first.dim(0), [](char c) { return llvm::isAlnum(c) || c == '_'; }) ||
      llvm::isDigit(first.dim(0).front()))
    return {};
  return Batch(first.dim(0)).isOf(program) ? first.dim(0) : StringRef();
}

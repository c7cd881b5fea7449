// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Gradients.h.
#include "compiler/Differentiate/Gradients.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace weft;
using attn::WholeTensorType;

/// The tensors of floats that an op reads, each as often as it does: operands, and elements in regions.
static SmallVector<Value> floatsRead(Operation &op) {
  SmallVector<Value> read;
  for (Value operand : op.getOperands())
    if (isFloatTensor(operand))
      read.push_back(operand);
  for (Region &region : op.getRegions())
    region.walk([&](attn::ElementOp element) {
      if (isFloatTensor(element.getTensor()))
        read.push_back(element.getTensor());
    });
  return read;
}

Gradients::Gradients(func::FuncOp program, func::FuncOp backward, bool fast)
    : b(program.getLoc(), OpBuilder::atBlockEnd(&backward.front())), fast(fast), block(backward.front()),
      programArguments(program.getNumArguments()) {
  for (auto [from, to] : llvm::zip(program.getArguments(), block.getArguments()))
    primals.map(from, to);
  findUses(program);
}

void Gradients::findUses(func::FuncOp program) {
  llvm::DenseSet<Value> dependent, needed;
  for (BlockArgument argument : program.getArguments())
    if (isFloatTensor(argument) && !program.getArgAttr(argument.getArgNumber(), constantAttrName))
      dependent.insert(argument);
  Block &body = program.front();
  for (Operation &op : body)
    if (llvm::any_of(floatsRead(op), [&](Value value) { return dependent.contains(value); }))
      for (Value result : op.getResults())
        if (isFloatTensor(result))
          dependent.insert(result);
  for (Operation &op : llvm::reverse(body)) {
    bool isEnd = op.hasTrait<OpTrait::IsTerminator>();
    if (!isEnd && llvm::none_of(op.getResults(), [&](Value value) { return needed.contains(value); }))
      continue;
    for (Value value : floatsRead(op)) {
      needed.insert(value);
      if (dependent.contains(value))
        ++uses[value];
    }
  }
}

/// Whether a product with weights makes a value, by itself or before maps: its adjoint multiplies the value's gradient
/// rounded to the value's type.
static bool isMadeByProduct(Value value) {
  Operation *op = value.getDefiningOp();
  if (!op || op->hasTrait<attn::WeightProduct>())
    return op;
  auto map = dyn_cast<attn::MapOp>(op);
  return map && llvm::any_of(map.getInputs(), [&](Value input) {
           return tensorType(input) == tensorType(value) && isMadeByProduct(input);
         });
}

Type Gradients::elementFor(Value value) const {
  if (uses.lookup(value) == 1 && (isa<BlockArgument>(value) || isMadeByProduct(value)))
    return tensorType(value).getElementType();
  return Float32Type::get(value.getContext());
}

WholeTensorType Gradients::contributionType(Value value) const {
  return tensorType(value).withElement(elementFor(value));
}

void Gradients::add(Value value, Value contribution) {
  if (wants(value))
    terms[value].push_back(contribution);
}

void Gradients::addSummed(Value value, Value contribution) {
  if (!wants(value))
    return;
  WholeTensorType type = tensorType(value);
  if (type.getDims() != tensorType(contribution).getDims())
    contribution = attn::SumOp::create(b, contributionType(value), contribution);
  add(value, contribution);
}

Value Gradients::get(Value value, Type element) {
  auto found = terms.find(value);
  if (found == terms.end())
    return {};
  SmallVector<Value, 2> &its = found->second;
  WholeTensorType type = tensorType(value);
  if (its.size() == 1) {
    WholeTensorType only = tensorType(its.front());
    if (only.getDims() == type.getDims() && (!element || only.getElementType() == element))
      return its.front();
  }
  auto body = [](ImplicitLocOpBuilder &b, ValueRange scalars) -> SmallVector<Value> {
    Value sum = scalars.front();
    for (Value scalar : scalars.drop_front())
      sum = arith::AddFOp::create(b, sum, scalar);
    return {sum};
  };
  Type wanted = element ? element : its.size() > 1 ? b.getF32Type() : tensorType(its.front()).getElementType();
  Value sum = attn::MapOp::create(b, type.withElement(wanted), its, body).getResult(0);
  its = {sum};
  return sum;
}

/// The type in which the backward takes a value that is kept: an output of attention is rounded to its values'.
static WholeTensorType savedType(OpResult value) {
  WholeTensorType type = tensorType(value);
  auto attend = dyn_cast<attn::AttendOp>(value.getOwner());
  bool isOut = attend && value == attend.getOut();
  if (auto recur = dyn_cast<attn::RecurOp>(value.getOwner()); recur && value == recur.getOut())
    return type.withElement(tensorType(recur.getValue()).getElementType());
  return isOut ? type.withElement(tensorType(attend.getValues().front()).getElementType()) : type;
}

/// Whether an op's results are kept, wherever the backward takes them.
static bool isAlwaysSaved(Operation *op) { return isa<attn::AttendOp, attn::MergeUnitsOp, attn::RecurOp>(op); }

/// Whether a value that is computed again may have other bits than in the forward: products with weights lead to it
/// within its kernel chain, or outputs that are kept in a narrower type than the forward computed with.
static bool mayDifferAgain(Value value) {
  llvm::SetVector<Value> reached;
  reached.insert(value);
  for (size_t i = 0; i < reached.size(); ++i) {
    Operation *op = reached[i].getDefiningOp();
    if (op && op->hasTrait<attn::WeightProduct>())
      return true;
    if (op && savedType(cast<OpResult>(reached[i])) != tensorType(reached[i]))
      return true;
    if (op && !isAlwaysSaved(op))
      reached.insert(op->operand_begin(), op->operand_end());
  }
  return false;
}

/// Where computing a value again costs more than keeping it: so many multiply-adds for each element, 32 for each byte of
/// 16 bits that are written and read. An A100 does 77 in the time of a byte at best, and half of that where operands come
/// from shared memory; and what is computed again in a kernel of its own is written and read all the same. Not by the
/// element's type: what a program keeps is the same in float32, whose products take longer as its bytes do.
static constexpr int64_t productsForElement = 128;

/// Of sizes, the product of those that are known: of all of a tensor's, its elements for each of the others.
static int64_t knownSize(ArrayRef<StringAttr> sizes) {
  int64_t count = 1;
  for (StringAttr size : sizes)
    if (int64_t known; !size.getValue().getAsInteger(10, known))
      count *= known;
  return count;
}

/// The multiply-adds of a product with a weight, for each of the sizes that are not known.
static int64_t multiplyAdds(attn::WeightedOpInterface product) {
  return knownSize(tensorType(product.weightOfProduct()).getDims()) * knownSize(product.axesOfProduct());
}

/// A map of several values, which is one to keep in the place of all of them. Of one value a map costs nothing.
static bool joins(Operation *op) { return isa<attn::MapOp>(op) && op->getNumOperands() > 1; }

// A product's value, or what a map makes of several.
bool Gradients::isCheaperKept(OpResult value) {
  auto type = dyn_cast<WholeTensorType>(value.getType());
  if (!type || type.getRank() != 4 || !isFloatTensor(value) || !isMadeByProduct(value) ||
      (isa<attn::MapOp>(value.getOwner()) && !joins(value.getOwner())) || llvm::all_of(value.getUsers(), joins))
    return false;
  llvm::SetVector<Operation *> chain;
  chain.insert(value.getOwner());
  int64_t products = 0;
  for (size_t i = 0; i < chain.size(); ++i) {
    if (auto product = dyn_cast<attn::WeightedOpInterface>(chain[i]))
      products += multiplyAdds(product);
    for (Value operand : chain[i]->getOperands())
      if (auto result = dyn_cast<OpResult>(operand); result && !isSaved(result))
        chain.insert(result.getOwner());
  }
  return products > productsForElement * knownSize(type.getDims());
}

// A number that sums up a tensor costs nothing to keep, and a walk through everything to compute. Operands of attention
// are stored in any case, and must be the same bits in the backward as in the forward: probabilities of other scores do
// not sum to 1, and the products of other values with the gradient do not meet those of the output, which `delta` has.
// So they are kept where a chain that is computed again may give other bits.
bool Gradients::isSaved(OpResult value) {
  if (isAlwaysSaved(value.getOwner()))
    return true;
  if (isa<attn::SumOp>(value.getOwner()) && tensorType(value).getRank() == 0)
    return true;
  bool enters = llvm::any_of(value.getUsers(), [](Operation *user) {
    return isa<attn::AttendOp>(user) || user->getParentOfType<attn::AttendOp>();
  });
  if (enters && mayDifferAgain(value))
    return true;
  if (auto known = cheaperKept.find(value); known != cheaperKept.end())
    return known->second;
  bool cheaper = isCheaperKept(value);
  return cheaperKept[value] = cheaper;
}

Value Gradients::addSavedArgument(OpResult result) {
  WholeTensorType type = savedType(result);
  Operation *owner = result.getOwner();
  std::string name = isa<attn::MergeUnitsOp>(owner) ? "saved_units"
                     : isa<attn::SumOp>(owner)      ? "saved_sum"
                     : isa<attn::RecurOp>(owner)    ? "saved_recurrence"
                                                    : "saved_operand";
  if (auto attend = dyn_cast<attn::AttendOp>(owner))
    name = result == attend.getOut() ? "saved_out" : "saved_lse";
  name += std::to_string(savedValues.size());
  savedValues.push_back({result, type, name});
  return block.insertArgument(programArguments + savedValues.size() - 1, type, result.getLoc());
}

Value Gradients::primal(Value value) {
  if (Value known = primals.lookupOrNull(value))
    return known;
  auto result = cast<OpResult>(value);
  Operation *op = result.getOwner();
  if (isSaved(result)) {
    Value argument = addSavedArgument(result);
    primals.map(value, argument);
    return argument;
  }
  llvm::SetVector<Value> read(op->operand_begin(), op->operand_end());
  getUsedValuesDefinedAbove(op->getRegions(), read);
  for (Value each : read)
    primal(each);
  b.clone(*op, primals); // also maps the results
  return primals.lookup(value);
}

void Gradients::usePrimals(Region &region) {
  region.walk([&](Operation *op) {
    for (OpOperand &operand : op->getOpOperands())
      if (isa<WholeTensorType>(operand.get().getType()))
        if (Value known = operand.get(); known.getParentBlock() != &block)
          operand.set(primal(known));
  });
}

Value weft::copyOf(OpBuilder &b, Value value, WholeTensorType type) {
  auto body = [](ImplicitLocOpBuilder &, ValueRange x) -> SmallVector<Value> { return {x[0]}; };
  return attn::MapOp::create(b, value.getLoc(), type, value, body).getResult(0);
}

LogicalResult weft::checkOneBlockWithoutMixers(func::FuncOp program) {
  if (!llvm::hasSingleElement(program.getBody()))
    return program.emitOpError() << "expected a program of one block";
  for (Operation &op : program.front())
    for (Value result : op.getResults())
      if (isa<attn::MixerType>(result.getType()))
        return op.emitOpError() << "expected a program without mixers; run 'attn-apply-mixers' first";
  return success();
}

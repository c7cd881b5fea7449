// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn-differentiate: reverse mode over programs on whole tensors.
//
//   func @f(q, k, v) -> y                         func @f.forward(q, k, v) -> (y, saved...)
//                                          =>     func @f.backward(q, k, v, saved..., d_y) -> (d_q, d_k, d_v)
//
// The backward function visits the program's ops from last to first; each adds, through its DifferentiableOpInterface,
// to the gradients of what it read. Saved are what merges give, outputs and logarithms of normalisers of attention,
// operands of attention that might have other bits a second time, and single numbers that sum up a tensor: whatever
// else is needed is computed again.
#include "compiler/Differentiate/Adjoints.h"
#include "compiler/Differentiate/Passes.h"
#include "dialects/Attn/IR/Requirements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "compiler/Differentiate/DifferentiableOpInterface.cpp.inc"

namespace weft {
#define GEN_PASS_DEF_ATTNDIFFERENTIATE
#include "compiler/Differentiate/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;
using attn::WholeTensorType;

namespace {

/// Writes the two functions of one program.
class ProgramDifferentiation {
public:
  ProgramDifferentiation(func::FuncOp program, bool fast) : program(program), fast(fast), builder(program) {
    builder.setInsertionPointAfter(program);
  }
  LogicalResult run();

private:
  func::FuncOp makeFunction(StringRef suffix);
  LogicalResult addAdjoints(Gradients &gradients);
  LogicalResult writeBackward();
  void writeForward(ArrayRef<SavedValue> saved);
  /// A name given to an argument or a result of the program, or one made of its number.
  std::string nameOf(bool result, unsigned index);
  std::optional<unsigned> resultThatIs(const SavedValue &saved);

  func::FuncOp program;
  bool fast;
  OpBuilder builder;
};

} // namespace

/// Tensors of floats that a function takes or returns, by number.
static SmallVector<unsigned> floatsAmong(TypeRange types) {
  SmallVector<unsigned> floats;
  for (auto [i, type] : llvm::enumerate(types))
    if (attn::hasGradient(cast<WholeTensorType>(type)))
      floats.push_back(i);
  return floats;
}

std::string ProgramDifferentiation::nameOf(bool result, unsigned index) {
  DictionaryAttr attributes = result ? program.getResultAttrDict(index) : program.getArgAttrDict(index);
  if (attributes)
    if (auto name = attributes.getAs<StringAttr>(attn::nameAttrName))
      return name.str();
  return (result ? "result" : "argument") + std::to_string(index);
}

/// The result of the program that a saved value is: given once, and taken by the backward under the result's name.
std::optional<unsigned> ProgramDifferentiation::resultThatIs(const SavedValue &saved) {
  Operation *end = program.front().getTerminator();
  auto arguments = llvm::seq(program.getNumArguments());
  for (auto [i, value] : llvm::enumerate(end->getOperands())) {
    std::string name = nameOf(true, i);
    bool taken = llvm::any_of(arguments, [&](unsigned argument) { return nameOf(false, argument) == name; });
    if (value == saved.value && value.getType() == saved.type && !taken)
      return i;
  }
  return std::nullopt;
}

func::FuncOp ProgramDifferentiation::makeFunction(StringRef suffix) {
  auto function = func::FuncOp::create(builder, program.getLoc(), (program.getName() + suffix).str(),
                                       builder.getFunctionType(program.getArgumentTypes(), {}));
  function.setVisibility(program.getVisibility());
  function->setAttr(attn::programAttrName, builder.getUnitAttr());
  function.setAllArgAttrs(ArrayRef<DictionaryAttr>(llvm::map_to_vector(
      llvm::seq(program.getNumArguments()), [&](unsigned i) { return program.getArgAttrDict(i); })));
  return function;
}

/// The adjoint of an op whose transpose is an op of its kind.
static void addTranspose(Operation &op, Gradients &gradients) {
  IRMapping operands;
  Value source = op.getOperand(0);
  for (Value other : op.getOperands().drop_front())
    operands.map(other, gradients.primal(other));
  operands.map(source, gradients.get(op.getResult(0)));
  Operation *transposed = gradients.b.clone(op, operands);
  transposed->getResult(0).setType(gradients.contributionType(source));
  cast<attn::TransposableOpInterface>(transposed).transpose();
  gradients.add(source, transposed->getResult(0));
}

LogicalResult ProgramDifferentiation::addAdjoints(Gradients &gradients) {
  Block &body = program.front();
  unsigned first = program.getNumArguments();
  Block *block = gradients.b.getBlock();
  unsigned taken = 0;
  SmallVector<Value> seeds(block->getArguments().drop_front(first));
  for (unsigned i : floatsAmong(program.getResultTypes()))
    gradients.add(body.getTerminator()->getOperand(i), seeds[taken++]);
  for (Operation &op : llvm::reverse(body.without_terminator())) {
    bool wanted = llvm::any_of(op.getResults(), [&](Value result) {
      return isa<WholeTensorType>(result.getType()) && gradients.wants(result) && gradients.get(result);
    });
    if (!wanted)
      continue;
    gradients.b.setLoc(op.getLoc());
    if (isa<attn::TransposableOpInterface>(op)) {
      addTranspose(op, gradients);
      continue;
    }
    auto differentiable = dyn_cast<DifferentiableOpInterface>(op);
    if (!differentiable) {
      auto error = op.emitOpError() << "has no derivative";
      if (op.hasTrait<attn::GradientOnly>())
        error.attachNote() << "gradients of gradients are not supported: differentiate the program itself once";
      if (isa<attn::PagedOp>(op))
        error.attachNote() << "keys and values in pages have no gradients: use .detach(), or run under torch.no_grad()";
      return failure();
    }
    if (failed(differentiable.addAdjoint(gradients)))
      return failure();
  }
  return success();
}

static Value zeros(ImplicitLocOpBuilder &b, WholeTensorType type) {
  auto body = [](ImplicitLocOpBuilder &b, ValueRange) -> SmallVector<Value> {
    return {arith::ConstantOp::create(b, b.getF32FloatAttr(0))};
  };
  return attn::MapOp::create(b, b.getLoc(), type, ValueRange(), body).getResult(0);
}

/// Whether the backward function is promised that `type`, which it takes beside the program's arguments, is aligned:
/// where arguments are, and the tensor, if nothing lies between its rows, is too.
static bool isPromisedAligned(func::FuncOp program, WholeTensorType type) {
  bool some = llvm::any_of(llvm::seq(program.getNumArguments()),
                           [&](unsigned i) { return bool(program.getArgAttr(i, attn::alignedAttrName)); });
  std::optional<int64_t> last = type.getRank() ? type.staticDim(type.getRank() - 1) : std::nullopt;
  return some && last && *last * type.getElementType().getIntOrFloatBitWidth() % 128 == 0;
}

LogicalResult ProgramDifferentiation::writeBackward() {
  func::FuncOp backward = makeFunction(".backward");
  Block *block = backward.addEntryBlock();
  SmallVector<unsigned> results = floatsAmong(program.getResultTypes());
  for (unsigned i : results)
    block->addArgument(program.getResultTypes()[i], program.getLoc());
  Gradients gradients(program, backward, fast);
  if (failed(addAdjoints(gradients))) {
    backward.erase();
    return failure();
  }

  SmallVector<Value> returned;
  SmallVector<int64_t> numbers;
  SmallVector<DictionaryAttr> resultAttributes;
  auto named = [&](const Twine &name) {
    return builder.getDictionaryAttr(builder.getNamedAttr(attn::nameAttrName, builder.getStringAttr(name)));
  };
  for (unsigned i : floatsAmong(program.getArgumentTypes())) {
    Value argument = program.getArgument(i);
    Value gradient = gradients.get(argument, tensorType(argument).getElementType());
    if (!gradient && program.getArgAttr(i, attn::leftOutAttrName) && !program.getArgAttr(i, constantAttrName))
      gradient = zeros(gradients.b, tensorType(argument));
    if (!gradient)
      continue;
    if (isa<BlockArgument>(gradient) || llvm::is_contained(returned, gradient))
      gradient = copyOf(gradients.b, gradient, tensorType(argument));
    returned.push_back(gradient);
    numbers.push_back(i);
    resultAttributes.push_back(named("d_" + nameOf(false, i)));
  }
  func::ReturnOp::create(gradients.b, returned);
  SmallVector<DictionaryAttr> argumentAttributes;
  for (unsigned i = 0; i < program.getNumArguments(); ++i)
    argumentAttributes.push_back(program.getArgAttrDict(i));
  auto taken = [&](const Twine &name, WholeTensorType type) {
    NamedAttrList attributes(named(name));
    if (isPromisedAligned(program, type))
      attributes.set(attn::alignedAttrName, builder.getUnitAttr());
    return attributes.getDictionary(builder.getContext());
  };
  for (const SavedValue &saved : gradients.saved()) {
    std::optional<unsigned> result = resultThatIs(saved);
    argumentAttributes.push_back(taken(result ? nameOf(true, *result) : saved.name, saved.type));
  }
  for (unsigned i : results)
    argumentAttributes.push_back(taken("d_" + nameOf(true, i), cast<WholeTensorType>(program.getResultTypes()[i])));
  backward.setFunctionType(builder.getFunctionType(block->getArgumentTypes(), ValueRange(returned).getTypes()));
  backward.setAllArgAttrs(argumentAttributes);
  backward.setAllResultAttrs(resultAttributes);
  backward->setAttr(attn::gradientsOfAttrName, builder.getDenseI64ArrayAttr(numbers));
  builder.setInsertionPoint(backward);
  writeForward(gradients.saved());
  return success();
}

void ProgramDifferentiation::writeForward(ArrayRef<SavedValue> saved) {
  func::FuncOp forward = makeFunction(".forward");
  if (Attribute requirements = program->getAttr(attn::requiresAttrName)) // sizes of all its arguments
    forward->setAttr(attn::requiresAttrName, requirements);
  IRMapping mapping;
  program.getBody().cloneInto(&forward.getBody(), mapping);
  Operation *end = forward.front().getTerminator();
  OpBuilder b(end);
  SmallVector<Value> returned(end->getOperands());
  SmallVector<DictionaryAttr> attributes;
  for (unsigned i = 0; i < program.getNumResults(); ++i)
    attributes.push_back(program.getResultAttrDict(i));
  for (const SavedValue &each : saved) {
    if (resultThatIs(each))
      continue;
    Value value = mapping.lookup(each.value);
    if (value.getType() != each.type || llvm::is_contained(returned, value))
      value = copyOf(b, value, each.type);
    returned.push_back(value);
    attributes.push_back(b.getDictionaryAttr(b.getNamedAttr(attn::nameAttrName, b.getStringAttr(each.name))));
  }
  end->setOperands(returned);
  forward.setFunctionType(builder.getFunctionType(program.getArgumentTypes(), ValueRange(returned).getTypes()));
  forward.setAllResultAttrs(attributes);
}

LogicalResult ProgramDifferentiation::run() {
  return failed(checkOneBlockWithoutMixers(program)) ? failure() : writeBackward();
}

/// Whether a function is one that this pass is to differentiate.
static bool isWanted(func::FuncOp function, SymbolTable &symbols) {
  if (!function->hasAttr(attn::programAttrName) || function.isExternal() ||
      symbols.lookup((function.getName() + ".backward").str()))
    return false;
  for (StringRef suffix : {".forward", ".backward"})
    if (StringRef base = function.getName(); base.consume_back(suffix) && symbols.lookup(base))
      return false;
  return !floatsAmong(function.getArgumentTypes()).empty() && !floatsAmong(function.getResultTypes()).empty();
}

void weft::registerDerivatives(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, attn::AttnDialect *) {
    attachMapAdjoint(*context);
    attachAttendAdjoint(*context);
    attachAttendTangents(*context);
    attachSequenceAdjoints(*context);
    attachMergeAdjoints(*context);
    attachHeadAdjoints(*context);
    attachRecurrenceAdjoint(*context);
  });
}

namespace {
struct Differentiate : weft::impl::AttnDifferentiateBase<Differentiate> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const final {
    Base::getDependentDialects(registry);
    registerDerivatives(registry);
  }
  void runOnOperation() final {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> programs;
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (isWanted(function, symbols))
        programs.push_back(function);
    for (func::FuncOp program : programs)
      if (failed(ProgramDifferentiation(program, fast).run()))
        return signalPassFailure();
  }
};
} // namespace

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn-linearise: forward mode over programs on whole tensors.
//
//   func @f(q, k, v) -> y      =>      func @f.tangent(q, k, v, t_q, t_k, t_v) -> (y, t_y)
//
// The linearised function visits the program's ops from first to last; each gives, through its
// LinearisableOpInterface, the tangents of its results from those of what it reads. An op that reads no value with a
// tangent is as it was. Softmax attention computes its results and their tangents in one walk over the keys.
#include "compiler/Differentiate/Adjoints.h"
#include "compiler/Differentiate/Passes.h"
#include "dialects/Attn/IR/Requirements.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

namespace weft {
#define GEN_PASS_DEF_ATTNLINEARISE
#include "compiler/Differentiate/Passes.h.inc"
} // namespace weft

using namespace mlir;
using namespace weft;

namespace {

/// Writes the linearised function of one program.
class ProgramLinearisation {
public:
  ProgramLinearisation(func::FuncOp program, ArrayRef<unsigned> arguments) : program(program), builder(program) {
    builder.setInsertionPointAfter(program);
    for (unsigned i = 0; i < program.getNumArguments(); ++i)
      if (hasTangent(i, arguments))
        active.push_back(i);
  }
  LogicalResult run();

private:
  bool hasTangent(unsigned argument, ArrayRef<unsigned> arguments);
  /// The attributes of the tangent of an argument or a result: t_NAME, another name than those of the program's own
  /// arguments or results, and its alignment.
  DictionaryAttr ofTangent(bool result, unsigned index);
  /// Whether one of the program's results, or of its arguments, has a name.
  bool isNamed(bool result, StringRef name);
  func::FuncOp makeFunction();
  LogicalResult addTangents(Tangents &tangents);
  void finish(func::FuncOp linearised, Tangents &tangents);

  func::FuncOp program;
  OpBuilder builder;
  SmallVector<unsigned> active; ///< the arguments that have tangents
};

} // namespace

static constexpr llvm::StringLiteral suffix = ".tangent";

bool ProgramLinearisation::hasTangent(unsigned argument, ArrayRef<unsigned> arguments) {
  if (!isFloatTensor(program.getArgument(argument)))
    return false;
  if (!arguments.empty())
    return llvm::is_contained(arguments, argument);
  return !program.getArgAttr(argument, constantAttrName);
}

bool ProgramLinearisation::isNamed(bool result, StringRef name) {
  return llvm::any_of(llvm::seq(result ? program.getNumResults() : program.getNumArguments()), [&](unsigned i) {
    DictionaryAttr its = result ? program.getResultAttrDict(i) : program.getArgAttrDict(i);
    auto own = its ? its.getAs<StringAttr>(attn::nameAttrName) : StringAttr();
    return own && own == name;
  });
}

DictionaryAttr ProgramLinearisation::ofTangent(bool result, unsigned index) {
  NamedAttrList attributes;
  DictionaryAttr its = result ? program.getResultAttrDict(index) : program.getArgAttrDict(index);
  auto name = its ? its.getAs<StringAttr>(attn::nameAttrName) : StringAttr();
  std::string own = "t_" + (name ? name.str() : (result ? "result" : "argument") + std::to_string(index));
  while (isNamed(result, own))
    own += "_";
  attributes.set(attn::nameAttrName, builder.getStringAttr(own));
  if (its && its.contains(attn::alignedAttrName))
    attributes.set(attn::alignedAttrName, builder.getUnitAttr());
  return attributes.getDictionary(builder.getContext());
}

func::FuncOp ProgramLinearisation::makeFunction() {
  SmallVector<Type> types(program.getArgumentTypes());
  SmallVector<DictionaryAttr> attributes;
  for (unsigned i = 0; i < program.getNumArguments(); ++i)
    attributes.push_back(program.getArgAttrDict(i));
  for (unsigned i : active) {
    types.push_back(program.getArgumentTypes()[i]);
    attributes.push_back(ofTangent(false, i));
  }
  auto function = func::FuncOp::create(builder, program.getLoc(), (program.getName() + suffix).str(),
                                       builder.getFunctionType(types, {}));
  function.setVisibility(program.getVisibility());
  function->setAttr(attn::programAttrName, builder.getUnitAttr());
  if (Attribute requirements = program->getAttr(attn::requiresAttrName))
    function->setAttr(attn::requiresAttrName, requirements);
  function.setAllArgAttrs(attributes);
  function.addEntryBlock();
  return function;
}

LogicalResult ProgramLinearisation::addTangents(Tangents &tangents) {
  Block *block = tangents.b.getBlock();
  for (auto [number, tangent] : llvm::zip(active, block->getArguments().drop_front(program.getNumArguments())))
    tangents.set(program.getArgument(number), tangent);
  for (Operation &op : program.front().without_terminator()) {
    if (!tangents.reads(&op) || llvm::none_of(op.getResults(), isFloatTensor))
      continue;
    tangents.b.setLoc(op.getLoc());
    if (isa<attn::TransposableOpInterface>(op)) {
      if (Operation *term = tangents.cloneWithTangent(&op, 0))
        tangents.setSum(&op, term);
      continue;
    }
    auto linearisable = dyn_cast<LinearisableOpInterface>(op);
    if (!linearisable)
      return op.emitOpError() << "has no tangent";
    if (failed(linearisable.addTangent(tangents)))
      return failure();
  }
  return success();
}

void ProgramLinearisation::finish(func::FuncOp linearised, Tangents &tangents) {
  SmallVector<Value> returned;
  SmallVector<DictionaryAttr> attributes;
  auto give = [&](Value value, DictionaryAttr its) {
    // Every result of a program is a tensor of its own.
    if (isa<BlockArgument>(value) || llvm::is_contained(returned, value))
      value = copyOf(tangents.b, value, tensorType(value));
    returned.push_back(value);
    attributes.push_back(its);
  };
  Operation *end = program.front().getTerminator();
  for (auto [i, value] : llvm::enumerate(end->getOperands()))
    give(tangents.primal(value), program.getResultAttrDict(i));
  for (auto [i, value] : llvm::enumerate(end->getOperands()))
    if (isFloatTensor(value))
      give(tangents.getOrZero(value), ofTangent(true, i));
  func::ReturnOp::create(tangents.b, returned);
  linearised.setFunctionType(builder.getFunctionType(linearised.getArgumentTypes(), ValueRange(returned).getTypes()));
  linearised.setAllResultAttrs(attributes);
}

LogicalResult ProgramLinearisation::run() {
  if (failed(checkOneBlockWithoutMixers(program)))
    return failure();
  func::FuncOp linearised = makeFunction();
  Tangents tangents(program, linearised);
  if (failed(addTangents(tangents))) {
    linearised.erase();
    return failure();
  }
  finish(linearised, tangents);
  return success();
}

/// Whether a function is one that this pass is to linearise.
static bool isWanted(func::FuncOp function, SymbolTable &symbols) {
  if (!function->hasAttr(attn::programAttrName) || function.isExternal() ||
      symbols.lookup((function.getName() + suffix).str()))
    return false;
  if (StringRef base = function.getName(); base.consume_back(suffix) && symbols.lookup(base))
    return false;
  return llvm::any_of(function.getArguments(), isFloatTensor) &&
         llvm::any_of(function.front().getTerminator()->getOperands(), isFloatTensor);
}

namespace {
struct Linearise : weft::impl::AttnLineariseBase<Linearise> {
  using Base::Base;

  void getDependentDialects(DialectRegistry &registry) const final {
    Base::getDependentDialects(registry);
    registerDerivatives(registry);
  }
  void runOnOperation() final {
    SymbolTable symbols(getOperation());
    SmallVector<func::FuncOp> programs, others;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      bool named = only.empty() || function.getName() == only;
      if (named && isWanted(function, symbols))
        programs.push_back(function);
      if (!only.empty() && function->hasAttr(attn::programAttrName))
        others.push_back(function);
    }
    if (!only.empty() && programs.empty()) {
      getOperation().emitError() << "expected a program '" << only << "' to linearise";
      return signalPassFailure();
    }
    for (func::FuncOp program : programs)
      if (failed(ProgramLinearisation(program, SmallVector<unsigned>(arguments.begin(), arguments.end())).run()))
        return signalPassFailure();
    for (func::FuncOp other : others)
      other.erase();
  }
};
} // namespace

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Programs as plans. A function
//
//   func.func @f(%x: !attn.tensor<[N, 64], f16>) -> !attn.tensor<[N, 64], f16> attributes {attn.program} {
//     %y = attn.launch @k(%x) grid ["cdiv(N, 128)", "1", "1"] sizes ["N"] : ...
//     func.return %y
//   }
//
// becomes {"name": "f", "inputs": [..], "outputs": [..], "variants": [{"target", "buffers", "launches"}]}. Tensors are
// numbered: inputs, then outputs, then buffers, which are the results that are not returned.

#include "compiler/CAPI/Programs.h"

#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Attn/IR/Requirements.h"
#include "dialects/Tile/IR/TileDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SmallPtrSet.h"

using namespace mlir;
using namespace weft;
using namespace weft::attn;

namespace {

/// An element type in the library's words.
StringRef typeName(Type type) {
  if (type.isF16())
    return "fp16";
  if (type.isBF16())
    return "bf16";
  if (type.isF32())
    return "fp32";
  if (isFloat8(type))
    return isa<Float8E5M2Type>(type) ? "fp8e5" : "fp8e4nv";
  switch (type.getIntOrFloatBitWidth()) {
  case 1:
    return "i1";
  case 8:
    return "i8";
  case 32:
    return "i32";
  default:
    return "i64";
  }
}

llvm::json::Object describe(WholeTensorType type) {
  llvm::json::Array dims;
  for (StringAttr dim : type.getDims())
    dims.push_back(dim.getValue());
  return llvm::json::Object{{"type", typeName(type.getElementType())}, {"dims", std::move(dims)}};
}

/// An argument's or a result's description with its name.
llvm::json::Object describeNamed(WholeTensorType type, StringAttr name, const Twine &otherwise) {
  llvm::json::Object object = describe(type);
  object["name"] = name ? name.getValue().str() : otherwise.str();
  return object;
}

/// An argument's description, with what is promised of its memory and its numbers.
llvm::json::Object describeArgument(func::FuncOp function, unsigned index) {
  llvm::json::Object object =
      describeNamed(cast<WholeTensorType>(function.getArgumentTypes()[index]),
                    function.getArgAttrOfType<StringAttr>(index, nameAttrName), "argument" + Twine(index));
  if (function.getArgAttr(index, alignedAttrName))
    object["aligned"] = true;
  if (auto tokens = function.getArgAttrOfType<ArrayAttr>(index, startsAttrName)) {
    llvm::json::Array numbers;
    for (auto each : tokens.getAsRange<StringAttr>())
      numbers.push_back(each.getValue());
    object["starts"] = std::move(numbers);
  }
  return object;
}

/// A number as JSON holds it; infinities and NaN, which JSON has not, by name.
llvm::json::Value realValue(const APFloat &value) {
  if (value.isFinite())
    return value.convertToDouble();
  return value.isNaN() ? "nan" : value.isNegative() ? "-inf" : "inf";
}

/// What a program asks of its sizes.
llvm::json::Array describeRequirements(ArrayAttr requirements) {
  llvm::json::Array described;
  for (auto facts : requirements.getAsRange<DictionaryAttr>()) {
    llvm::json::Object one;
    for (StringRef key : attn::requirementKeys)
      one[key] = facts.getAs<StringAttr>(key).getValue();
    described.push_back(std::move(one));
  }
  return described;
}

/// Tile parameters that a launch passes: for each tensor its address and strides, then the sizes, then the reals.
SmallVector<Type> parametersOf(LaunchOp launch) {
  Builder builder(launch.getContext());
  SmallVector<Type> types;
  auto add = [&](Value tensor) {
    auto type = cast<WholeTensorType>(tensor.getType());
    types.push_back(tile::PointerType::get(type.getElementType()));
    types.append(std::max<int64_t>(type.getRank() - 1, 0), builder.getI64Type());
  };
  llvm::for_each(launch.getInputs(), add);
  llvm::for_each(launch.getResults(), add);
  types.append(launch.getSizes().size(), builder.getI32Type());
  types.append(launch.getReals().size(), builder.getF32Type());
  return types;
}

/// Refuses a launch whose kernel is missing or takes other parameters.
LogicalResult checkKernel(LaunchOp launch, ModuleOp module) {
  auto kernel = module.lookupSymbol<func::FuncOp>(launch.getKernel());
  if (!kernel || !kernel->hasAttr(tile::kernelAttrName))
    return launch.emitOpError("expected '") << launch.getKernel() << "' to be a tile kernel of the module";
  SmallVector<Type> expected = parametersOf(launch);
  if (kernel.getArgumentTypes() == ArrayRef<Type>(expected))
    return success();
  InFlightDiagnostic error = launch.emitOpError("expected '")
                             << launch.getKernel() << "' to take (" << expected << "), but it takes ("
                             << kernel.getArgumentTypes() << ")";
  error.attachNote(kernel.getLoc()) << "the kernel is here";
  return error;
}

/// One function as a plan.
class Plan {
public:
  Plan(func::FuncOp function, StringRef target) : function(function), target(target) {}

  /// The object, or failure after a diagnostic.
  FailureOr<llvm::json::Object> make() {
    auto module = function->getParentOfType<ModuleOp>();
    if (failed(checkBody()))
      return failure();
    auto launches = liveLaunches();
    for (LaunchOp launch : launches)
      if (failed(checkKernel(launch, module)))
        return failure();
    llvm::json::Object program{{"name", function.getName()}};
    program["inputs"] = numberInputs();
    FailureOr<llvm::json::Array> outputs = numberOutputs();
    if (failed(outputs))
      return failure();
    program["outputs"] = std::move(*outputs);
    if (auto of = function->getAttrOfType<DenseI64ArrayAttr>("attn.gradients_of"))
      program["gradients_of"] = llvm::json::Array(of.asArrayRef());
    if (auto requirements = function->getAttrOfType<ArrayAttr>(attn::requiresAttrName))
      program["requires"] = describeRequirements(requirements);
    llvm::json::Object variant{{"target", target}};
    variant["buffers"] = numberBuffers(launches);
    llvm::json::Array steps;
    for (LaunchOp launch : launches)
      steps.push_back(step(launch));
    variant["launches"] = std::move(steps);
    program["variants"] = llvm::json::Array{std::move(variant)};
    return program;
  }

private:
  LogicalResult checkBody() {
    if (!llvm::hasSingleElement(function.getBody()))
      return function.emitError("expected a program of one block");
    for (Operation &op : function.getBody().front())
      if (!isa<LaunchOp, func::ReturnOp>(op))
        return op.emitError("expected a lowered program of 'attn.launch' ops, but got '") << op.getName() << "'";
    return success();
  }

  /// The launches that a result depends on, in order.
  SmallVector<LaunchOp> liveLaunches() {
    SmallPtrSet<Operation *, 16> live;
    for (Operation &op : llvm::reverse(function.getBody().front())) {
      bool used = isa<func::ReturnOp>(op) || live.contains(&op);
      for (Value operand : op.getOperands())
        if (Operation *producer = used ? operand.getDefiningOp() : nullptr)
          live.insert(producer);
    }
    return llvm::filter_to_vector(function.getBody().getOps<LaunchOp>(),
                                  [&](LaunchOp launch) { return live.contains(launch); });
  }

  llvm::json::Array numberInputs() {
    llvm::json::Array inputs;
    for (auto [i, argument] : llvm::enumerate(function.getArguments())) {
      numbers.try_emplace(argument, numbers.size());
      inputs.push_back(describeArgument(function, i));
    }
    return inputs;
  }

  FailureOr<llvm::json::Array> numberOutputs() {
    llvm::json::Array outputs;
    Operation *end = function.getBody().front().getTerminator();
    for (auto [i, value] : llvm::enumerate(end->getOperands())) {
      if (!numbers.try_emplace(value, numbers.size()).second) {
        InFlightDiagnostic error = end->emitError("expected result ")
                                   << i << " to be a launch's own, but it is "
                                   << (isa<BlockArgument>(value) ? "an argument" : "returned twice");
        error.attachNote() << "give it by a launch that copies";
        return error;
      }
      outputs.push_back(describeNamed(cast<WholeTensorType>(value.getType()),
                                      function.getResultAttrOfType<StringAttr>(i, nameAttrName), "result" + Twine(i)));
    }
    return outputs;
  }

  llvm::json::Array numberBuffers(ArrayRef<LaunchOp> launches) {
    llvm::json::Array buffers;
    for (LaunchOp launch : launches)
      for (Value result : launch.getResults())
        if (numbers.try_emplace(result, numbers.size()).second)
          buffers.push_back(describe(cast<WholeTensorType>(result.getType())));
    return buffers;
  }

  llvm::json::Object step(LaunchOp launch) {
    llvm::json::Array arguments, writes, zeroed, grid;
    auto pass = [&](Value tensor) {
      int64_t number = numbers.lookup(tensor);
      arguments.push_back(llvm::json::Object{{"pointer", number}});
      for (int64_t axis = 0; axis + 1 < cast<WholeTensorType>(tensor.getType()).getRank(); ++axis)
        arguments.push_back(llvm::json::Object{{"stride", llvm::json::Array{number, axis}}});
    };
    llvm::for_each(launch.getInputs(), pass);
    llvm::for_each(launch.getResults(), pass);
    for (auto size : launch.getSizes().getAsRange<StringAttr>())
      arguments.push_back(llvm::json::Object{{"size", size.getValue()}});
    for (auto real : launch.getReals().getAsRange<FloatAttr>())
      arguments.push_back(llvm::json::Object{{"real", realValue(real.getValue())}});
    for (Value result : launch.getResults())
      writes.push_back(numbers.lookup(result));
    for (int64_t result : launch.getZeroed())
      zeroed.push_back(numbers.lookup(launch.getResult(result)));
    for (auto extent : launch.getGrid().getAsRange<StringAttr>())
      grid.push_back(extent.getValue());
    return llvm::json::Object{{"kernel", launch.getKernel()},
                              {"grid", std::move(grid)},
                              {"writes", std::move(writes)},
                              {"zeroed", std::move(zeroed)},
                              {"arguments", std::move(arguments)}};
  }

  func::FuncOp function;
  StringRef target;
  DenseMap<Value, int64_t> numbers;
};

} // namespace

bool weft::capi::hasPrograms(ModuleOp module) {
  return llvm::any_of(module.getOps<func::FuncOp>(),
                      [](func::FuncOp function) { return function->hasAttr(programAttrName); });
}

bool weft::capi::needsLowering(ModuleOp module) {
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(programAttrName))
      for (Block &block : function.getBody())
        for (Operation &op : block)
          if (!isa<LaunchOp, func::ReturnOp>(op))
            return true;
  return false;
}

FailureOr<llvm::json::Array> weft::capi::takePrograms(ModuleOp module, StringRef target) {
  llvm::json::Array programs;
  for (auto function : llvm::make_early_inc_range(module.getOps<func::FuncOp>())) {
    if (!function->hasAttr(programAttrName))
      continue;
    FailureOr<llvm::json::Object> program = Plan(function, target).make();
    if (failed(program))
      return failure();
    programs.push_back(std::move(*program));
    function.erase();
  }
  return programs;
}

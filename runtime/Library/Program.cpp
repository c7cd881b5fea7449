// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Reads programs. What passes here can be run without a further check of the plan itself: every index is in range,
// every expression has its symbols, every kernel gets the kinds of arguments that it takes, and every tensor is
// written, once, before it is read.
#include "runtime/Library/Program.h"

#include "runtime/Library/Json.h"
#include "runtime/Library/Manifest.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <set>

namespace weft::library {
namespace {

constexpr size_t maxTensors = 4096, maxLaunches = 4096, maxPlanArguments = 1024, maxPlans = 1024, maxGuards = 16;

/// A program being read.
class ProgramReader {
public:
  ProgramReader(const Cursor &at, const std::vector<Kernel> &kernels) : at(at), kernels(kernels) {}

  Program read() {
    program.name = at.at("name").name("_$.");
    at.at("inputs").each(maxTensors, [&](const Cursor &input) { bindSymbols(input.at("dims")); });
    at.at("inputs").each(maxTensors, [&](const Cursor &input) { program.inputs.push_back(readNamed(input)); });
    at.at("outputs").each(maxTensors, [&](const Cursor &output) { program.outputs.push_back(readNamed(output)); });
    refuseTwins();
    if (at.has("requires"))
      at.at("requires").each(maxTensors, [&](const Cursor &one) {
        program.required.push_back(
            {readExpression(one.at("size")), readExpression(one.at("at_least")), one.at("what").string(1000)});
      });
    if (at.has("gradients_of"))
      at.at("gradients_of").each(maxTensors, [&](const Cursor &of) {
        program.gradientsOf.push_back(of.integer(0, maxTensors));
      });
    if (!at.failed() && !program.gradientsOf.empty() && program.gradientsOf.size() != program.outputs.size())
      at.at("gradients_of")
          .wrong(weft::format("expected one for each of {} outputs, but got {}", program.outputs.size(),
                              program.gradientsOf.size()));
    at.at("variants").each(maxPlans, [&](const Cursor &variant) { program.variants.push_back(readVariant(variant)); });
    if (program.variants.empty())
      at.at("variants").wrong("expected at least one variant");
    checkReach();
    return std::move(program);
  }

private:
  /// Takes each size of an input that is a name as a symbol.
  void bindSymbols(const Cursor &dims) {
    dims.each(maxRank, [&](const Cursor &dim) {
      std::string text = dim.string(1000);
      bool plain = !text.empty() &&
                   std::ranges::all_of(text, [](unsigned char c) { return std::isalnum(c) || c == '_'; }) &&
                   !std::isdigit(static_cast<unsigned char>(text[0]));
      if (plain && !slotOf(text))
        program.symbols.push_back(text);
    });
  }

  std::optional<uint32_t> slotOf(std::string_view name) const {
    auto found = std::ranges::find(program.symbols, name);
    return found == program.symbols.end() ? std::nullopt : std::optional<uint32_t>(found - program.symbols.begin());
  }

  Expression readExpression(const Cursor &where) const {
    std::string text = where.string(1000);
    if (where.failed())
      return {};
    Result<Expression> parsed = Expression::parse(text, [&](std::string_view name) { return slotOf(name); });
    if (parsed)
      return std::move(*parsed);
    where.wrong(parsed.error().message + ": the names are those sizes of the inputs that are nothing but a name");
    return {};
  }

  TensorType readTensor(const Cursor &where) const {
    TensorType tensor;
    std::string type = where.at("type").string(32);
    if (Result<Element> element = parseElement(type))
      tensor.element = *element;
    else
      where.at("type").wrong(element.error().message);
    where.at("dims").each(maxRank, [&](const Cursor &dim) { tensor.dims.push_back(readExpression(dim)); });
    return tensor;
  }

  NamedTensor readNamed(const Cursor &where) const {
    NamedTensor tensor{where.at("name").name("_$."), readTensor(where), false, {}};
    if (where.has("aligned")) {
      const nlohmann::json &aligned = where.at("aligned").value();
      if (!aligned.is_boolean())
        where.at("aligned").wrong("expected true or false");
      tensor.aligned = aligned == true;
    }
    if (where.has("starts"))
      readStarts(where.at("starts"), tensor);
    return tensor;
  }

  void readStarts(const Cursor &where, NamedTensor &tensor) const {
    where.each(maxTensors, [&](const Cursor &tokens) { tensor.starts.push_back(readExpression(tokens)); });
    if (!where.failed() && (tensor.type.element != Element::I32 || tensor.type.dims.size() != 1))
      where.wrong(weft::format("expected starts of packed sequences to be i32 of one axis, but '{}' is {} with {} axes",
                               tensor.name, elementName(tensor.type.element), tensor.type.dims.size()));
  }

  void refuseTwins() const {
    std::set<std::string_view> seen;
    for (const std::vector<NamedTensor> *tensors : {&program.inputs, &program.outputs}) {
      seen.clear();
      for (const NamedTensor &tensor : *tensors)
        if (!seen.insert(tensor.name).second)
          at.at(tensors == &program.inputs ? "inputs" : "outputs")
              .wrong(weft::format("two are named '{}'", tensor.name));
    }
  }

  PlanVariant readVariant(const Cursor &where) {
    PlanVariant plan;
    std::string targetText = where.at("target").string(16);
    if (Result<driver::Target> target = driver::parseTarget(targetText))
      plan.target = *target;
    else
      where.at("target").wrong(target.error().message);
    if (where.has("guards"))
      plan.guards = readGuards(where.at("guards"));
    where.at("buffers").each(maxTensors, [&](const Cursor &buffer) { plan.buffers.push_back(readTensor(buffer)); });
    // Inputs are there from the beginning; all others once a launch has written them.
    written.assign(program.inputs.size() + program.outputs.size() + plan.buffers.size(), false);
    std::fill_n(written.begin(), program.inputs.size(), true);
    where.at("launches").each(maxLaunches, [&](const Cursor &launch) {
      plan.launches.push_back(readLaunch(launch, plan));
    });
    for (size_t i = 0; i < program.outputs.size() && !where.failed(); ++i)
      if (!written[program.inputs.size() + i])
        where.at("launches").wrong(weft::format("no launch writes the output '{}'", program.outputs[i].name));
    return plan;
  }

  const TensorType &tensorAt(const PlanVariant &plan, uint32_t number) const {
    size_t inputs = program.inputs.size(), outputs = program.outputs.size();
    if (number < inputs)
      return program.inputs[number].type;
    return number < inputs + outputs ? program.outputs[number - inputs].type : plan.buffers[number - inputs - outputs];
  }

  uint32_t readNumber(const Cursor &where) const {
    if (written.empty())
      where.wrong("expected the number of a tensor, but the program has none");
    return written.empty() ? 0 : where.integer(0, static_cast<int64_t>(written.size()) - 1);
  }

  PlanLaunch readLaunch(const Cursor &where, const PlanVariant &plan) {
    PlanLaunch launch;
    findKernel(where.at("kernel"), plan.target, launch);
    size_t axis = 0;
    where.at("grid").each(3, [&](const Cursor &extent) { launch.grid[axis++] = readExpression(extent); });
    if (!where.failed() && axis != 3)
      where.at("grid").wrong(weft::format("expected 3 expressions, but got {}", axis));
    where.at("arguments").each(maxPlanArguments, [&](const Cursor &argument) {
      launch.arguments.push_back(readArgument(argument, plan));
    });
    readWrites(where, launch);
    if (!where.failed())
      checkArguments(where.at("arguments"), launch, plan);
    return launch;
  }

  /// The sizes that a plan is for.
  std::vector<PlanGuard> readGuards(const Cursor &where) const {
    std::vector<PlanGuard> guards;
    where.each(maxGuards, [&](const Cursor &one) {
      PlanGuard guard{readExpression(one.at("size")), std::nullopt, std::nullopt};
      if (one.has("at_least"))
        guard.atLeast = one.at("at_least").integer(INT64_MIN, INT64_MAX);
      if (one.has("below"))
        guard.below = one.at("below").integer(INT64_MIN, INT64_MAX);
      if (!one.failed() && !guard.atLeast && !guard.below)
        one.wrong("expected 'at_least', 'below' or both");
      if (!one.failed() && guard.atLeast && guard.below && *guard.atLeast >= *guard.below)
        one.wrong(weft::format("no size is at least {} and below {}", *guard.atLeast, *guard.below));
      guards.push_back(std::move(guard));
    });
    return guards;
  }

  /// Every size must have a plan on every target, and every plan some size.
  void checkReach() const {
    std::vector<driver::Target> open, served;
    for (size_t i = 0; i < program.variants.size() && !at.failed(); ++i) {
      const PlanVariant &variant = program.variants[i];
      if (std::ranges::count(served, variant.target))
        return at.at("variants")
            .wrong(weft::format("variant {} for {} is never taken: an earlier one without guards "
                                "serves all sizes",
                                i, driver::targetName(variant.target)));
      (variant.guards.empty() ? served : open).push_back(variant.target);
    }
    for (driver::Target target : open)
      if (!at.failed() && !std::ranges::count(served, target))
        return at.at("variants")
            .wrong(weft::format("expected the last variant for {} to have no guards", driver::targetName(target)));
  }

  /// The kernel by name, and its variant for the plan's own target.
  void findKernel(const Cursor &where, driver::Target target, PlanLaunch &launch) const {
    std::string name = where.name("_$.");
    auto kernel = std::ranges::find(kernels, name, &Kernel::name);
    if (where.failed())
      return;
    if (kernel == kernels.end())
      return where.wrong(weft::format("no kernel is named '{}'", name));
    auto variant = std::ranges::find(kernel->variants, target, &Variant::target);
    if (variant == kernel->variants.end())
      return where.wrong(weft::format("the kernel '{}' has no variant for {}", name, driver::targetName(target)));
    launch.kernel = kernel - kernels.begin();
    launch.variant = variant - kernel->variants.begin();
  }

  PlanArgument readArgument(const Cursor &where, const PlanVariant &plan) const {
    using Kind = PlanArgument::Kind;
    PlanArgument argument;
    if (where.has("pointer")) {
      argument.kind = Kind::Pointer;
      argument.tensor = readNumber(where.at("pointer"));
    } else if (where.has("stride")) {
      argument.kind = Kind::Stride;
      readStride(where.at("stride"), plan, argument);
    } else if (where.has("size")) {
      argument.kind = Kind::Size;
      argument.size = readExpression(where.at("size"));
    } else if (where.has("real")) {
      argument.kind = Kind::Real;
      argument.real = where.at("real").real();
    } else {
      where.wrong("expected an object with 'pointer', 'stride', 'size' or 'real'");
    }
    return argument;
  }

  void readStride(const Cursor &where, const PlanVariant &plan, PlanArgument &argument) const {
    size_t count = 0;
    where.each(2, [&](const Cursor &number) {
      if (count++ == 0) {
        argument.tensor = readNumber(number);
        return;
      }
      size_t rank = tensorAt(plan, argument.tensor).dims.size();
      if (rank == 0)
        number.wrong("a tensor without axes has no stride");
      else
        argument.axis = number.integer(0, static_cast<int64_t>(rank) - 1);
    });
    if (!where.failed() && count != 2)
      where.wrong("expected a tensor and an axis");
  }

  void readWrites(const Cursor &where, PlanLaunch &launch) {
    where.at("writes").each(maxTensors, [&](const Cursor &element) {
      uint32_t tensor = readNumber(element);
      if (!element.failed() && tensor < program.inputs.size())
        element.wrong(weft::format("tensor {} is an input", tensor));
      else if (!element.failed() && std::ranges::count(launch.writes, tensor))
        element.wrong(weft::format("tensor {} stands twice", tensor));
      else if (!element.failed() && written[tensor])
        element.wrong(weft::format("tensor {} is written by an earlier launch", tensor));
      launch.writes.push_back(tensor);
    });
    where.at("zeroed").each(maxTensors, [&](const Cursor &element) {
      uint32_t tensor = readNumber(element);
      if (!element.failed() && !std::ranges::count(launch.writes, tensor))
        element.wrong(weft::format("tensor {} is not among those that the launch writes", tensor));
      launch.zeroed.push_back(tensor);
    });
  }

  /// Arguments against the kernel's own, and reads against what is there by now.
  void checkArguments(const Cursor &where, const PlanLaunch &launch, const PlanVariant &plan) {
    const Kernel &kernel = kernels[launch.kernel];
    if (launch.arguments.size() != kernel.arguments.size())
      return where.wrong(weft::format("expected {} arguments for the kernel '{}', but got {}", kernel.arguments.size(),
                                      kernel.name, launch.arguments.size()));
    std::set<uint32_t> passed;
    for (size_t i = 0; i < launch.arguments.size(); ++i) {
      const PlanArgument &argument = launch.arguments[i];
      if (!fits(argument, kernel.arguments[i].type, plan))
        return where.wrong(weft::format("argument {} of the kernel '{}' is '{}', which this does not give", i,
                                        kernel.name, kernel.arguments[i].type.spelling));
      if (argument.kind != PlanArgument::Kind::Pointer)
        continue;
      passed.insert(argument.tensor);
      if (!written[argument.tensor] && !std::ranges::count(launch.writes, argument.tensor))
        return where.wrong(weft::format("tensor {} is read before a launch has written it", argument.tensor));
    }
    for (uint32_t tensor : launch.writes) {
      if (!passed.count(tensor))
        return where.wrong(weft::format("tensor {} is written, but its address is not passed", tensor));
      written[tensor] = true;
    }
  }

  bool fits(const PlanArgument &argument, const ArgumentType &type, const PlanVariant &plan) const {
    bool real = type.kind == ScalarKind::Float || type.kind == ScalarKind::BFloat;
    switch (argument.kind) {
    case PlanArgument::Kind::Pointer: {
      Element element = tensorAt(plan, argument.tensor).element;
      bool same = type.pointer && type.spelling.substr(1) == elementName(element);
      return same || (type.pointer && element == Element::I1 && type.bits == 8 && !real);
    }
    case PlanArgument::Kind::Stride:
    case PlanArgument::Kind::Size:
      return !type.pointer && !real && type.bits >= 32;
    default:
      return !type.pointer && real;
    }
  }

  const Cursor &at;
  const std::vector<Kernel> &kernels;
  Program program;
  std::vector<bool> written; ///< by tensor: whether there is anything in it yet
};

} // namespace

Program readProgram(const Cursor &at, const std::vector<Kernel> &kernels) { return ProgramReader(at, kernels).read(); }

} // namespace weft::library

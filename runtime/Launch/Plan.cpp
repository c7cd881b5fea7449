// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Launch/Plan.h"

#include "runtime/Launch/Starts.h"
#include "runtime/Launch/Values.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <cstring>

namespace weft::launch {

using library::PlanArgument;
using Kind = PlanArgument::Kind;

struct Plan::Prepared {
  driver::Extent3 grid;
  bool empty = false; ///< no block runs
  std::vector<std::byte> parameters;
  const Step *step = nullptr; ///< of the launch's variant that runs
};

struct Plan::Bound {
  const Way *way = nullptr;
  std::vector<int64_t> symbols;
  std::vector<Tensor> tensors;
};

namespace {

/// The plans whose target runs on the device, up to the first that serves all sizes.
Result<std::vector<const library::PlanVariant *>> choosePlans(const library::Program &program,
                                                              const driver::DeviceProperties &device) {
  std::vector<const library::PlanVariant *> plans;
  std::string targets;
  for (const library::PlanVariant &variant : program.variants) {
    if (driver::runsOn(variant.target, device.major, device.minor)) {
      plans.push_back(&variant);
      if (variant.guards.empty())
        return plans;
    }
    targets += (targets.empty() ? "" : ", ") + driver::targetName(variant.target);
  }
  return failure(StatusCode::WrongTarget,
                 weft::format("the program '{}' is compiled for {}, and none of these runs on {}, which is of compute "
                              "capability {}.{}",
                              program.name, targets, device.name, device.major, device.minor));
}

/// From the launch that writes a buffer to the last that takes it.
std::vector<BufferLife> livesOf(const library::Program &program, const library::PlanVariant &plan) {
  uint32_t first = program.inputs.size() + program.outputs.size();
  std::vector<BufferLife> lives(plan.buffers.size(), BufferLife{0, UINT32_MAX, 0});
  for (uint32_t step = 0; step < plan.launches.size(); ++step)
    for (const PlanArgument &argument : plan.launches[step].arguments)
      if (argument.kind == Kind::Pointer && argument.tensor >= first) {
        BufferLife &life = lives[argument.tensor - first];
        life.first = std::min(life.first, step);
        life.last = step;
      }
  return lives;
}

/// Refuses an output in the memory of an input or of an output before it: kernels read while they write, and two that
/// write one place leave what the later one wrote. `placed` are the inputs and those outputs.
Status checkApart(const library::Program &program, std::span<const Tensor> placed, const Tensor &given) {
  size_t inputs = program.inputs.size();
  for (size_t i = 0; i < placed.size(); ++i)
    if (overlap(placed[i], given))
      return failure(StatusCode::InvalidArgument,
                     weft::format("output '{}': expected memory of its own, but it shares some with {} '{}'",
                                  program.outputs[placed.size() - inputs].name, i < inputs ? "argument" : "output",
                                  i < inputs ? program.inputs[i].name : program.outputs[i - inputs].name));
  return {};
}

/// Refuses a workspace in the memory of an input or an output.
Status checkApart(const library::Program &program, std::span<const Tensor> placed, const Workspace &workspace,
                  uint64_t bytes) {
  size_t inputs = program.inputs.size();
  Tensor whole{.address = workspace.address, .element = library::Element::I8, .rank = 1};
  whole.shape[0] = static_cast<int64_t>(bytes);
  whole.strides[0] = 1;
  for (size_t i = 0; i < placed.size() && bytes; ++i)
    if (overlap(placed[i], whole))
      return failure(StatusCode::InvalidArgument,
                     weft::format("expected a workspace of its own memory, but it shares some with {} '{}'",
                                  i < inputs ? "argument" : "output",
                                  i < inputs ? program.inputs[i].name : program.outputs[i - inputs].name));
  return {};
}

/// Whether the sizes are those that a plan was chosen for.
Result<bool> holds(const library::PlanVariant &plan, std::span<const int64_t> symbols) {
  for (const library::PlanGuard &guard : plan.guards) {
    Result<int64_t> size = guard.size.evaluate(symbols);
    if (!size)
      return std::unexpected(size.error());
    if ((guard.atLeast && *size < *guard.atLeast) || (guard.below && *size >= *guard.below))
      return false;
  }
  return true;
}

std::unexpected<Error> within(const library::Program &program, const Error &error) {
  return failure(error.code, weft::format("'{}': {}", program.name, error.message));
}

} // namespace

Result<size_t> requireProgram(const library::Library &library, std::string_view name) {
  if (std::optional<size_t> index = library::findProgram(library.manifest, name))
    return *index;
  std::string known;
  for (const library::Program &program : library.manifest.programs)
    known += weft::format("{}'{}'", known.empty() ? "" : ", ", program.name);
  return failure(StatusCode::NotFound, weft::format("the library '{}' has no program '{}': it has {}", library.path,
                                                    name, known.empty() ? "none" : known));
}

Result<Plan::Step> Plan::makeStep(const library::Library &library, const library::PlanLaunch &launch, size_t variant) {
  Step step{&launch, &library.manifest.kernels[launch.kernel], nullptr, nullptr, {}, {}, nullptr};
  step.variant = &step.kernel->variants[variant];
  std::vector<library::ArgumentType> types;
  std::vector<Value> values;
  uint32_t offset = 0;
  for (size_t i = 0; i < launch.arguments.size(); ++i) {
    const PlanArgument &argument = launch.arguments[i];
    types.push_back(step.kernel->arguments[i].type);
    uint32_t width = types.back().parameterBytes();
    offset = (offset + width - 1) / width * width;
    values.push_back(argument.kind == Kind::Pointer ? Value::ofAddress(0)
                     : argument.kind == Kind::Real  ? Value::ofReal(argument.real)
                                                    : Value::ofInteger(0));
    if (argument.kind != Kind::Real)
      step.fields.push_back({&argument, offset, width, 1, std::nullopt});
    for (const library::Guard &guard : step.variant->guards)
      if (guard.argument == i && argument.kind != Kind::Real) {
        step.fields.back().divisibleBy = guard.divisibleBy;
        step.fields.back().equals = guard.equals;
      }
    offset += width;
  }
  return packParameters(types, values).transform([&](std::vector<std::byte> bytes) {
    step.parameters = std::move(bytes);
    return std::move(step);
  });
}

/// A launch by each of the kernel's variants for the plan's target, in their order.
Result<Plan::Step> Plan::makeSteps(const library::Library &library, const library::PlanLaunch &launch) {
  Result<Step> first = makeStep(library, launch, launch.variant);
  const std::vector<library::Variant> &variants = library.manifest.kernels[launch.kernel].variants;
  Step *last = first ? &*first : nullptr;
  for (size_t i = launch.variant + 1; last && i < variants.size(); ++i) {
    if (variants[i].target != variants[launch.variant].target)
      continue;
    Result<Step> next = makeStep(library, launch, i);
    if (!next)
      return next;
    last->otherwise = std::make_unique<Step>(std::move(*next));
    last = last->otherwise.get();
  }
  return first;
}

Status Plan::addWay(const library::Library &library, const library::PlanVariant &plan) {
  Way &way = ways.emplace_back();
  way.plan = &plan;
  way.lives = livesOf(*source, plan);
  for (const library::PlanLaunch &launch : plan.launches) {
    Result<Step> step = makeSteps(library, launch);
    if (!step)
      return std::unexpected(step.error());
    way.steps.push_back(std::move(*step));
  }
  return {};
}

Status Plan::load(const Way &way) const {
  if (way.loaded.load(std::memory_order_acquire))
    return {};
  std::scoped_lock lock(way.guard);
  if (way.loaded.load(std::memory_order_relaxed))
    return {};
  for (const Step &first : way.steps)
    for (const Step *step = &first; step; step = step->otherwise.get()) {
      Result<std::shared_ptr<driver::Kernel>> kernel = modules->load(*step->variant);
      if (!kernel)
        return std::unexpected(kernel.error());
      step->loaded = std::move(*kernel);
    }
  way.loaded.store(true, std::memory_order_release);
  return {};
}

Status Plan::load() const {
  for (const Way &way : ways)
    if (Status status = load(way); !status)
      return within(*source, status.error());
  return {};
}

Result<std::shared_ptr<const Plan>> Plan::make(std::shared_ptr<const library::Library> library, size_t index,
                                               std::shared_ptr<driver::Device> device,
                                               std::shared_ptr<Modules> modules) {
  std::shared_ptr<Plan> made(new Plan);
  made->source = &library->manifest.programs[index];
  Result<std::vector<const library::PlanVariant *>> plans = choosePlans(*made->source, device->properties());
  if (!plans)
    return std::unexpected(plans.error());
  for (const library::PlanVariant *plan : *plans)
    if (Status status = made->addWay(*library, *plan); !status)
      return within(*made->source, status.error());
  made->modules = std::move(modules);
  made->owner = std::move(library);
  made->device = std::move(device);
  return std::shared_ptr<const Plan>(std::move(made));
}

Result<const Plan::Way *> Plan::wayFor(std::span<const int64_t> symbols) const {
  for (const Way &way : ways) {
    Result<bool> fits = holds(*way.plan, symbols);
    if (!fits)
      return std::unexpected(fits.error());
    if (*fits)
      return &way;
  }
  return &ways.back();
}

Result<size_t> Plan::choose(std::span<const Tensor> inputs) const {
  auto chosen =
      bindSymbols(*source, inputs, true).and_then([&](const std::vector<int64_t> &symbols) { return wayFor(symbols); });
  if (!chosen)
    return within(*source, chosen.error());
  return static_cast<size_t>((*chosen)->plan - source->variants.data());
}

Result<Plan::Bound> Plan::bind(std::span<const Tensor> inputs, bool shapesOnly) const {
  Result<std::vector<int64_t>> symbols = bindSymbols(*source, inputs, shapesOnly);
  if (!symbols)
    return std::unexpected(symbols.error());
  Result<const Way *> way = wayFor(*symbols);
  if (!way)
    return std::unexpected(way.error());
  Bound bound{*way, std::move(*symbols), {}};
  const library::PlanVariant *plan = (*way)->plan;
  bound.tensors.reserve(inputs.size() + source->outputs.size() + plan->buffers.size());
  bound.tensors.assign(inputs.begin(), inputs.end());
  auto add = [&](const library::TensorType &type) {
    return contiguousTensor(type, bound.symbols).transform([&](const Tensor &tensor) {
      bound.tensors.push_back(tensor);
    });
  };
  for (const library::NamedTensor &output : source->outputs)
    if (Status status = add(output.type); !status)
      return failure(status.error().code, weft::format("output '{}': {}", output.name, status.error().message));
  for (const library::TensorType &buffer : plan->buffers)
    if (Status status = add(buffer); !status)
      return std::unexpected(status.error());
  return bound;
}

ArenaLayout Plan::arenaOf(const Bound &bound) const {
  if (bound.way->lives.empty())
    return {};
  std::vector<BufferLife> sized = bound.way->lives;
  for (size_t i = 0; i < sized.size(); ++i)
    sized[i].bytes = bytesOf(bound.tensors[source->inputs.size() + source->outputs.size() + i]);
  return layOut(sized);
}

Result<Requirements> Plan::require(std::span<const Tensor> inputs) const {
  Result<Bound> bound = bind(inputs, true);
  if (!bound)
    return within(*source, bound.error());
  auto outputs = bound->tensors.begin() + source->inputs.size();
  return Requirements{{outputs, outputs + source->outputs.size()}, arenaOf(*bound).bytes};
}

Status Plan::place(Bound &bound, std::span<const Tensor> outputs, Workspace workspace) const {
  size_t inputs = source->inputs.size();
  if (outputs.size() != source->outputs.size())
    return failure(StatusCode::InvalidArgument,
                   weft::format("expected {} outputs, but got {}", source->outputs.size(), outputs.size()));
  for (size_t i = 0; i < outputs.size(); ++i) {
    Status status = checkOutput(source->outputs[i], bound.tensors[inputs + i], outputs[i]);
    if (status)
      status = checkApart(*source, std::span(bound.tensors).first(inputs + i), outputs[i]);
    if (!status)
      return status;
    bound.tensors[inputs + i] = outputs[i];
  }
  const library::PlanVariant *plan = bound.way->plan;
  if (plan->buffers.empty())
    return {};
  ArenaLayout layout = arenaOf(bound);
  if (workspace.bytes < layout.bytes || (layout.bytes && (!workspace.address || workspace.address % 256)))
    return failure(StatusCode::InvalidArgument,
                   weft::format("expected a workspace of {} bytes at a multiple of 256, but got {} bytes at {:#x}",
                                layout.bytes, workspace.bytes, workspace.address));
  auto placed = std::span(bound.tensors).first(inputs + outputs.size());
  if (Status status = checkApart(*source, placed, workspace, layout.bytes); !status)
    return status;
  for (size_t i = 0; i < plan->buffers.size(); ++i)
    bound.tensors[inputs + outputs.size() + i].address = workspace.address + layout.offsets[i];
  return {};
}

/// What an argument of a launch is, in the words of the program.
std::string Plan::describe(const PlanArgument &argument) const {
  if (argument.kind == Kind::Size)
    return weft::format("the size {}", argument.size.text());
  size_t inputs = source->inputs.size(), outputs = source->outputs.size();
  std::string tensor = argument.tensor < inputs ? weft::format("argument '{}'", source->inputs[argument.tensor].name)
                       : argument.tensor < inputs + outputs
                           ? weft::format("output '{}'", source->outputs[argument.tensor - inputs].name)
                           : weft::format("buffer {}", argument.tensor - inputs - outputs);
  return argument.kind == Kind::Pointer ? weft::format("the address of {}", tensor)
                                        : weft::format("the stride of axis {} of {}", argument.axis, tensor);
}

Status Plan::fillParameters(const Step &step, const Bound &bound, std::vector<std::byte> &parameters) const {
  for (const Field &field : step.fields) {
    const PlanArgument &argument = *field.argument;
    int64_t value = 0;
    if (argument.kind == Kind::Size) {
      Result<int64_t> size = argument.size.evaluate(bound.symbols);
      if (!size)
        return std::unexpected(size.error());
      value = *size;
    } else {
      const Tensor &tensor = bound.tensors[argument.tensor];
      // the stride of an axis with one element or none says nothing
      value = argument.kind == Kind::Pointer    ? static_cast<int64_t>(tensor.address)
              : tensor.shape[argument.axis] > 1 ? tensor.strides[argument.axis]
                                                : 0;
    }
    if (value % field.divisibleBy || (field.equals && value != *field.equals))
      return failure(StatusCode::InvalidArgument,
                     weft::format("expected {} to be {} {}, but got {}: the kernel '{}' was compiled for that",
                                  describe(argument), field.equals ? "equal to" : "a multiple of",
                                  field.equals ? *field.equals : field.divisibleBy, value, step.kernel->name));
    if (field.width == 4 && value != static_cast<int32_t>(value))
      return failure(StatusCode::InvalidArgument,
                     weft::format("expected {} to fit 32 bits, but got {}", describe(argument), value));
    std::memcpy(parameters.data() + field.offset, &value, field.width); // little-endian
  }
  return {};
}

Result<Plan::Prepared> Plan::prepare(const Step &step, const Bound &bound) const {
  constexpr std::array<int64_t, 3> limits{INT32_MAX, 65535, 65535};
  Prepared prepared{{}, false, {}, &step};
  std::array<uint32_t *, 3> extents{&prepared.grid.x, &prepared.grid.y, &prepared.grid.z};
  for (size_t axis = 0; axis < 3; ++axis) {
    Result<int64_t> extent = step.launch->grid[axis].evaluate(bound.symbols);
    if (!extent)
      return std::unexpected(extent.error());
    if (*extent < 0 || *extent > limits[axis])
      return failure(StatusCode::InvalidArgument,
                     weft::format("expected a grid of 0 to {} blocks for the kernel '{}', but {} is {}", limits[axis],
                                  step.kernel->name, step.launch->grid[axis].text(), *extent));
    prepared.empty |= *extent == 0;
    *extents[axis] = static_cast<uint32_t>(*extent);
  }
  if (prepared.empty)
    return prepared;
  prepared.parameters = step.parameters;
  return fillParameters(step, bound, prepared.parameters).transform([&] { return std::move(prepared); });
}

Result<Plan::Prepared> Plan::prepareFirst(const Step &step, const Bound &bound) const {
  Result<Prepared> prepared = prepare(step, bound);
  for (const Step *next = step.otherwise.get(); next && !prepared; next = next->otherwise.get())
    prepared = prepare(*next, bound);
  return prepared;
}

/// Why a launch has no tensor maps, in the words of the program.
Status Plan::explain(const Step &step, const Bound &bound, const Error &error) const {
  for (const Field &field : step.fields) {
    const PlanArgument &argument = *field.argument;
    if (argument.kind != Kind::Stride)
      continue;
    const Tensor &tensor = bound.tensors[argument.tensor];
    if (tensor.shape[argument.axis] > 1 && tensor.strides[argument.axis] < 0)
      return failure(
          StatusCode::InvalidArgument,
          weft::format("expected {} to be at least 0, but got {}: the kernel '{}' copies boxes of it; pass a "
                       "contiguous copy",
                       describe(argument), tensor.strides[argument.axis], step.kernel->name));
  }
  return failure(error.code, weft::format("the kernel '{}': {}", step.kernel->name, error.message));
}

Result<Plan::Prepared> Plan::complete(Prepared prepared, const Bound &bound) const {
  if (prepared.empty)
    return prepared;
  Result<std::vector<std::byte>> whole = prepared.step->loaded->complete(std::move(prepared.parameters));
  if (whole) {
    prepared.parameters = std::move(*whole);
    return prepared;
  }
  const Step *next = prepared.step->otherwise.get();
  Result<Prepared> other = next ? prepareFirst(*next, bound) : std::unexpected(whole.error());
  if (other)
    other = complete(std::move(*other), bound);
  if (other)
    return other;
  return std::unexpected(explain(*prepared.step, bound, whole.error()).error());
}

Status Plan::run(std::span<const Tensor> inputs, std::span<const Tensor> outputs, Workspace workspace,
                 driver::StreamHandle stream) const {
  Result<Bound> bound = bind(inputs, false);
  if (!bound)
    return within(*source, bound.error());
  if (Status status = place(*bound, outputs, workspace); !status)
    return within(*source, status.error());
  if (Status status = checkStarts(*source, inputs, bound->symbols, *device, stream); !status)
    return within(*source, status.error());
  const std::vector<Step> &steps = bound->way->steps;
  std::vector<Prepared> prepared;
  prepared.reserve(steps.size());
  for (const Step &step : steps) {
    Result<Prepared> one = prepareFirst(step, *bound);
    if (!one)
      return within(*source, one.error());
    prepared.push_back(std::move(*one));
  }
  if (Status status = load(*bound->way); !status)
    return within(*source, status.error());
  for (Prepared &each : prepared) {
    Result<Prepared> whole = complete(std::move(each), *bound);
    if (!whole)
      return within(*source, whole.error());
    each = std::move(*whole);
  }
  for (size_t i = 0; i < steps.size(); ++i) {
    const library::PlanLaunch &launch = *steps[i].launch;
    for (uint32_t tensor : prepared[i].empty ? launch.writes : launch.zeroed)
      if (Status status = zero(*device, bound->tensors[tensor], stream); !status)
        return within(*source, status.error());
    if (prepared[i].empty)
      continue;
    const Step &step = *prepared[i].step;
    const library::Variant &variant = *step.variant;
    driver::LaunchShape shape{prepared[i].grid,
                              {variant.numWarps * 32, 1, 1},
                              {variant.cluster[0], variant.cluster[1], variant.cluster[2]},
                              variant.sharedBytes};
    if (Status status = step.loaded->launch(shape, prepared[i].parameters, stream); !status)
      return within(*source, status.error());
  }
  return {};
}

} // namespace weft::launch

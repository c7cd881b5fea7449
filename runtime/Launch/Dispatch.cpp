// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Launch/Dispatch.h"

#include "runtime/Library/GridExpression.h"

#include "runtime/Support/Format.h"
#include <algorithm>

namespace weft::launch {
namespace {

/// Why a guard does not hold, or "" where it does.
std::string guardObjection(const library::Kernel &kernel, const library::Guard &guard, const Value &value) {
  const std::string &name = kernel.arguments[guard.argument].name;
  bool isSigned = value.kind == Value::Kind::Integer, pointer = value.kind == Value::Kind::Address;
  uint64_t divisor = static_cast<uint64_t>(guard.divisibleBy);
  uint64_t magnitude = isSigned && value.integer < 0 ? 0 - value.unsignedInteger : value.unsignedInteger;
  bool divides = magnitude % divisor == 0;
  if (divides && (!guard.equals || (value.integer == *guard.equals && (isSigned || value.integer >= 0))))
    return {};
  std::string what = pointer ? weft::format("the address of '{}'", name) : weft::format("'{}'", name);
  std::string number = isSigned ? std::to_string(value.integer) : std::to_string(value.unsignedInteger);
  if (divides)
    return weft::format("{} is {}, not {}", what, number, *guard.equals);
  return pointer ? weft::format("{} is not divisible by {}", what, divisor)
                 : weft::format("{} = {} is not divisible by {}", what, number, divisor);
}

std::string guardsObjection(const library::Kernel &kernel, const library::Variant &variant,
                            std::span<const Value> values) {
  for (const library::Guard &guard : variant.guards)
    if (std::string objection = guardObjection(kernel, guard, values[guard.argument]); !objection.empty())
      return objection;
  return {};
}

} // namespace

Result<size_t> chooseVariant(const library::Kernel &kernel, const driver::DeviceProperties &device,
                             std::span<const Value> values, size_t from) {
  std::string reasons;
  bool anyRuns = false;
  for (size_t i = from; i < kernel.variants.size(); ++i) {
    const library::Variant &variant = kernel.variants[i];
    bool runs = runsOn(variant.target, device.major, device.minor);
    anyRuns |= runs;
    std::string objection = runs ? guardsObjection(kernel, variant, values)
                                 : weft::format("made for {}", driver::targetName(variant.target));
    if (objection.empty())
      return i;
    reasons += weft::format("\n  variant {} ({}): {}", i, driver::targetName(variant.target), objection);
  }
  if (!anyRuns)
    return failure(StatusCode::WrongTarget,
                   weft::format("no variant of '{}' runs on {}, which is of compute capability {}.{}:{}", kernel.name,
                                device.name, device.major, device.minor, reasons));
  return failure(StatusCode::InvalidArgument,
                 weft::format("no variant of '{}' takes these arguments:{}", kernel.name, reasons));
}

Result<driver::Extent3> gridOf(const library::Kernel &kernel, const library::Variant &variant,
                               std::span<const Value> values) {
  if (variant.grid.empty())
    return failure(StatusCode::InvalidArgument,
                   weft::format("'{}' has no grid expression: give the grid with the launch", kernel.name));
  library::NameLookup lookup = [&](std::string_view name) -> std::optional<int64_t> {
    auto argument = std::ranges::find(kernel.arguments, name, &library::Argument::name);
    if (argument != kernel.arguments.end()) {
      const Value &value = values[argument - kernel.arguments.begin()];
      return value.asInteger();
    }
    auto constant = variant.constants.find(std::string(name));
    const int64_t *integer = constant == variant.constants.end() ? nullptr : std::get_if<int64_t>(&constant->second);
    return integer ? std::optional(*integer) : std::nullopt;
  };
  std::array<uint32_t, 3> extents{};
  constexpr std::array<int64_t, 3> limits{INT32_MAX, 65535, 65535};
  for (size_t axis = 0; axis < 3; ++axis) {
    Result<int64_t> extent = library::evaluateGrid(variant.grid[0][axis], lookup);
    if (!extent)
      return std::unexpected(extent.error());
    if (*extent < 1 || *extent > limits[axis])
      return failure(StatusCode::InvalidArgument,
                     weft::format("the grid expression '{}' of '{}' gives {}: expected 1 to {}", variant.grid[0][axis],
                                  kernel.name, *extent, limits[axis]));
    extents[axis] = static_cast<uint32_t>(*extent);
  }
  return driver::Extent3{extents[0], extents[1], extents[2]};
}

} // namespace weft::launch

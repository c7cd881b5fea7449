// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Launch/Launcher.h"

#include "runtime/Launch/Dispatch.h"

#include "runtime/Support/Format.h"

namespace weft::launch {

Result<size_t> requireKernel(const library::Library &library, std::string_view name) {
  if (std::optional<size_t> index = library::findKernel(library.manifest, name))
    return *index;
  std::string known;
  for (const library::Kernel &kernel : library.manifest.kernels)
    known += weft::format("{}'{}'", known.empty() ? "" : ", ", kernel.name);
  return failure(StatusCode::NotFound, weft::format("the library '{}' has no kernel '{}': it has {}", library.path,
                                                    name, known.empty() ? "none" : known));
}

Result<std::shared_ptr<const Plan>> Launcher::program(std::string_view name) {
  Result<size_t> index = requireProgram(*library, name);
  if (!index)
    return std::unexpected(index.error());
  std::scoped_lock lock(guard);
  if (auto made = plans.find(*index); made != plans.end())
    return made->second;
  return Plan::make(library, *index, device, modules).transform([&](std::shared_ptr<const Plan> plan) {
    plans[*index] = plan;
    return plan;
  });
}

Result<LaunchChoice> Launcher::launch(std::string_view name, std::optional<driver::Extent3> grid,
                                      std::span<const Value> values, driver::StreamHandle stream) {
  Result<size_t> index = requireKernel(*library, name);
  if (!index)
    return std::unexpected(index.error());
  const library::Kernel &kernel = library->manifest.kernels[*index];
  std::vector<library::ArgumentType> types;
  types.reserve(kernel.arguments.size());
  for (const library::Argument &argument : kernel.arguments)
    types.push_back(argument.type);
  Result<std::vector<std::byte>> parameters = packParameters(types, values);
  if (!parameters)
    return failure(parameters.error().code, weft::format("'{}': {}", name, parameters.error().message));
  Result<size_t> choice = chooseVariant(kernel, device->properties(), values);
  if (!choice)
    return std::unexpected(choice.error());
  Result<LaunchChoice> launched = launchVariant(kernel, *choice, grid, values, *parameters, stream);
  // A variant may have tensor maps of which there are none for these arguments, as for negative strides.
  for (Result<size_t> next = choice; !launched && launched.error().code == StatusCode::InvalidArgument;) {
    next = chooseVariant(kernel, device->properties(), values, *next + 1);
    if (!next)
      break;
    if (Result<LaunchChoice> other = launchVariant(kernel, *next, grid, values, *parameters, stream); other)
      return other;
  }
  return launched;
}

Result<LaunchChoice> Launcher::launchVariant(const library::Kernel &kernel, size_t number,
                                             std::optional<driver::Extent3> grid, std::span<const Value> values,
                                             const std::vector<std::byte> &parameters, driver::StreamHandle stream) {
  const library::Variant &variant = kernel.variants[number];
  Result<driver::Extent3> extents = grid ? *grid : gridOf(kernel, variant, values);
  if (!extents)
    return std::unexpected(extents.error());
  const auto &[x, y, z] = variant.cluster;
  if (extents->x % x || extents->y % y || extents->z % z)
    return failure(
        StatusCode::InvalidArgument,
        weft::format("'{}': expected a grid that clusters of {} x {} x {} blocks divide, but got {} x {} x {}",
                     kernel.name, x, y, z, extents->x, extents->y, extents->z));
  Result<std::shared_ptr<driver::Kernel>> loaded = modules->load(variant);
  if (!loaded)
    return std::unexpected(loaded.error());
  Result<std::vector<std::byte>> whole = (*loaded)->complete(parameters);
  if (!whole)
    return failure(whole.error().code, weft::format("'{}': {}", kernel.name, whole.error().message));
  driver::LaunchShape shape{*extents,
                            {variant.numWarps * 32, 1, 1},
                            {variant.cluster[0], variant.cluster[1], variant.cluster[2]},
                            variant.sharedBytes};
  return (*loaded)->launch(shape, *whole, stream).transform([&] { return LaunchChoice{number, *extents}; });
}

} // namespace weft::launch

// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/CAPI/Handles.h"

#include "runtime/Support/Format.h"

using namespace weft;
using namespace weft::capi;

namespace {

/// The types of an entry's parameters by their names.
Result<std::vector<library::ArgumentType>> typesOf(const char *entry, std::span<const char *const> names) {
  std::vector<library::ArgumentType> types;
  for (size_t i = 0; i < names.size(); ++i) {
    if (Status status = needed(names[i]); !status)
      return std::unexpected(status.error());
    Result<library::ArgumentType> type = library::parseArgumentType(names[i]);
    if (!type)
      return failure(type.error().code, weft::format("parameter {} of '{}': {}", i, entry, type.error().message));
    types.push_back(std::move(*type));
  }
  return types;
}

/// Refuses types of other sizes than the parameters that the PTX declares.
Status checkTypes(const weft_module &module, const weft_kernel &kernel) {
  Status status = library::checkEntry(module.entries, kernel.entry, kernel.types);
  return status ? status : failure(StatusCode::InvalidArgument, std::move(status.error().message));
}

} // namespace

extern "C" {

weft_status weft_module_load(weft_device *device, const char *ptx, weft_module **module, weft_error **error) {
  if (module)
    *module = nullptr;
  return guarded(error, [&] {
    return needed(device, ptx, module).and_then([&] {
      return device->device->loadModule(ptx).transform([&](std::shared_ptr<driver::Module> loaded) {
        *module = new weft_module{std::move(loaded), library::entriesOf(ptx)};
      });
    });
  });
}

void weft_module_close(weft_module *module) { delete module; }

weft_status weft_module_kernel(weft_module *module, const char *entry, uint32_t shared_bytes, const char *const *types,
                               size_t type_count, weft_kernel **kernel, weft_error **error) {
  if (kernel)
    *kernel = nullptr;
  return guarded(error, [&] {
    return needed(module, entry, kernel).and_then([&] { return neededArray(types, type_count); }).and_then([&] {
      auto made = std::make_unique<weft_kernel>();
      made->entry = entry;
      made->sharedBytes = shared_bytes;
      return store(typesOf(entry, {types, type_count}), &made->types)
          .and_then([&] { return store(module->module->kernel(entry, shared_bytes), &made->kernel); })
          .and_then([&] { return checkTypes(*module, *made); })
          .transform([&] { *kernel = made.release(); });
    });
  });
}

void weft_kernel_close(weft_kernel *kernel) { delete kernel; }

weft_status weft_kernel_get_attributes(const weft_kernel *kernel, weft_kernel_attributes *attributes,
                                       weft_error **error) {
  return guarded(error, [&] {
    return needed(kernel, attributes).transform([&] {
      driver::KernelAttributes facts = kernel->kernel->attributes();
      *attributes = {facts.registers, facts.localBytes, facts.staticSharedBytes};
    });
  });
}

weft_status weft_kernel_launch(weft_kernel *kernel, weft_extent grid, weft_extent block, const weft_extent *cluster,
                               const weft_value *values, size_t count, weft_stream stream, weft_error **error) {
  return guarded(error, [&] {
    return needed(kernel).and_then([&] { return neededArray(values, count); }).and_then([&]() -> Status {
      Result<std::vector<std::byte>> parameters = launch::packParameters(kernel->types, valuesOf(values, count));
      if (!parameters)
        return failure(parameters.error().code, weft::format("'{}': {}", kernel->entry, parameters.error().message));
      driver::LaunchShape shape{extentOf(grid), extentOf(block), cluster ? extentOf(*cluster) : driver::Extent3{},
                                kernel->sharedBytes};
      return kernel->kernel->launch(shape, *parameters, stream);
    });
  });
}

} // extern "C"

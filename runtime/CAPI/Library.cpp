// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/CAPI/Handles.h"

#include "runtime/Support/Format.h"

using namespace weft;
using namespace weft::capi;

namespace {

const library::Kernel *kernelOf(const weft_library *library, size_t kernel) {
  bool there = library && kernel < library->library->manifest.kernels.size();
  return there ? &library->library->manifest.kernels[kernel] : nullptr;
}

const library::Argument *argumentOf(const weft_library *library, size_t kernel, size_t argument) {
  const library::Kernel *found = kernelOf(library, kernel);
  return found && argument < found->arguments.size() ? &found->arguments[argument] : nullptr;
}

} // namespace

std::unique_ptr<weft_library> weft::capi::handleOf(library::Library opened) {
  auto handle = std::make_unique<weft_library>();
  for (const library::Kernel &kernel : opened.manifest.kernels) {
    std::vector<std::string> &targets = handle->targets.emplace_back();
    for (const library::Variant &variant : kernel.variants)
      targets.push_back(driver::targetName(variant.target));
  }
  handle->library = std::make_shared<const library::Library>(std::move(opened));
  return handle;
}

std::shared_ptr<launch::Launcher> weft::capi::launcherOf(weft_library &library, const weft_device &device) {
  std::scoped_lock lock(library.guard);
  std::shared_ptr<launch::Launcher> &launcher = library.launchers[device.device.get()];
  if (!launcher)
    launcher = std::make_shared<launch::Launcher>(library.library, device.device);
  return launcher;
}

Result<std::vector<library::File>> weft::capi::filesOf(const weft_file *files, size_t count) {
  if (Status status = neededArray(files, count); !status)
    return std::unexpected(status.error());
  std::vector<library::File> result;
  for (size_t i = 0; i < count; ++i) {
    if (Status status = needed(files[i].name).and_then([&] { return neededArray(files[i].data, files[i].bytes); });
        !status)
      return std::unexpected(status.error());
    result.push_back({files[i].name, files[i].bytes ? std::string(files[i].data, files[i].bytes) : std::string()});
  }
  return result;
}

extern "C" {

weft_status weft_library_open(const char *path, weft_library **library, weft_error **error) {
  if (library)
    *library = nullptr;
  return guarded(error, [&] {
    return needed(path, library).and_then([&]() -> Status {
      return library::openLibrary(path).transform(
          [&](library::Library opened) { *library = handleOf(std::move(opened)).release(); });
    });
  });
}

void weft_library_close(weft_library *library) { delete library; }

const char *weft_library_manifest(const weft_library *library) {
  return library ? library->library->manifestText.c_str() : nullptr;
}

size_t weft_library_kernel_count(const weft_library *library) {
  return library ? library->library->manifest.kernels.size() : 0;
}

const char *weft_library_kernel_name(const weft_library *library, size_t kernel) {
  const library::Kernel *found = kernelOf(library, kernel);
  return found ? found->name.c_str() : nullptr;
}

weft_status weft_library_find_kernel(const weft_library *library, const char *name, size_t *kernel,
                                     weft_error **error) {
  return guarded(error, [&] {
    return needed(library, name, kernel).and_then([&] {
      return store(launch::requireKernel(*library->library, name), kernel);
    });
  });
}

size_t weft_library_argument_count(const weft_library *library, size_t kernel) {
  const library::Kernel *found = kernelOf(library, kernel);
  return found ? found->arguments.size() : 0;
}

const char *weft_library_argument_name(const weft_library *library, size_t kernel, size_t argument) {
  const library::Argument *found = argumentOf(library, kernel, argument);
  return found ? found->name.c_str() : nullptr;
}

const char *weft_library_argument_type(const weft_library *library, size_t kernel, size_t argument) {
  const library::Argument *found = argumentOf(library, kernel, argument);
  return found ? found->type.spelling.c_str() : nullptr;
}

size_t weft_library_variant_count(const weft_library *library, size_t kernel) {
  const library::Kernel *found = kernelOf(library, kernel);
  return found ? found->variants.size() : 0;
}

weft_status weft_library_get_variant(const weft_library *library, size_t kernel, size_t variant,
                                     weft_variant_info *info, weft_error **error) {
  return guarded(error, [&] {
    return needed(library, info).and_then([&]() -> Status {
      const library::Kernel *found = kernelOf(library, kernel);
      if (!found || variant >= found->variants.size())
        return failure(StatusCode::InvalidArgument, weft::format("no variant {} of kernel {}", variant, kernel));
      const library::Variant &facts = found->variants[variant];
      const auto &resources = facts.resources;
      info->target = library->targets[kernel][variant].c_str();
      info->file = library->library->manifest.parts[facts.part].file.c_str();
      info->ptx = library->library->parts[facts.part].c_str();
      info->entry = facts.entry.c_str();
      info->num_warps = facts.numWarps;
      info->num_stages = facts.numStages;
      info->shared_bytes = facts.sharedBytes;
      info->registers = resources ? static_cast<int32_t>(resources->registers) : -1;
      info->spill_bytes = resources ? static_cast<int32_t>(resources->spillStoreBytes + resources->spillLoadBytes) : -1;
      return {};
    });
  });
}

weft_status weft_library_launch(weft_library *library, weft_device *device, const char *kernel, const weft_extent *grid,
                                const weft_value *values, size_t count, weft_stream stream, weft_error **error) {
  return guarded(error, [&] {
    return needed(library, device, kernel).and_then([&] { return neededArray(values, count); }).and_then([&] {
      std::optional<driver::Extent3> extent = grid ? std::optional(extentOf(*grid)) : std::nullopt;
      return launcherOf(*library, *device)
          ->launch(kernel, extent, valuesOf(values, count), stream)
          .transform([](const launch::LaunchChoice &) {});
    });
  });
}

weft_status weft_library_write(const char *path, const char *kernels_json, const weft_file *files, size_t count,
                               weft_error **error) {
  return guarded(error, [&] {
    return needed(path, kernels_json)
        .and_then([&] { return filesOf(files, count); })
        .and_then(
            [&](const std::vector<library::File> &parts) { return library::writeLibrary(path, kernels_json, parts); });
  });
}

weft_status weft_library_make(const char *name, const char *kernels_json, const weft_file *files, size_t count,
                              weft_library **library, weft_error **error) {
  if (library)
    *library = nullptr;
  return guarded(error, [&] {
    return needed(name, kernels_json, library)
        .and_then([&] { return filesOf(files, count); })
        .and_then(
            [&](const std::vector<library::File> &parts) { return library::makeLibrary(name, kernels_json, parts); })
        .transform([&](library::Library made) { *library = handleOf(std::move(made)).release(); });
  });
}

} // extern "C"

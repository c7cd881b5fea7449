// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Launch/Modules.h"

#include "runtime/Library/Cubin.h"
#include "runtime/Support/Format.h"

namespace weft::launch {
namespace {

/// Whether a driver that refuses machine code in this way may still take PTX: it knows no such code or no such GPU. Any
/// other failure, as of memory, would meet the PTX as well.
bool passesOver(StatusCode code) { return code == StatusCode::WrongTarget || code == StatusCode::Corrupt; }

} // namespace

Result<std::shared_ptr<driver::Kernel>> Modules::load(const library::Variant &variant) {
  std::scoped_lock lock(guard);
  if (auto loaded = kernels.find(&variant); loaded != kernels.end())
    return loaded->second;
  return module(variant.part)
      .and_then(
          [&](const std::shared_ptr<driver::Module> &from) { return from->kernel(variant.entry, variant.sharedBytes); })
      .transform([&](std::shared_ptr<driver::Kernel> kernel) {
        kernels[&variant] = kernel;
        return kernel;
      });
}

Result<std::shared_ptr<driver::Module>> Modules::module(uint32_t part) {
  if (auto loaded = modules.find(part); loaded != modules.end())
    return loaded->second;
  return loadPart(part).transform([&](std::shared_ptr<driver::Module> fresh) {
    modules[part] = fresh;
    return fresh;
  });
}

Result<std::shared_ptr<driver::Module>> Modules::loadPart(uint32_t part) const {
  const driver::DeviceProperties &facts = device->properties();
  auto refused = [&](uint32_t tried, const Error &error) {
    return failure(error.code, weft::format("'{}' of the library '{}' on {}: {}", library->manifest.parts[tried].file,
                                            library->path, device->name(), error.message));
  };
  if (!facts.simulated)
    for (size_t i : library::cubinsFor(library->manifest, part, facts.major, facts.minor)) {
      uint32_t file = library->manifest.cubins[i].part;
      Result<std::shared_ptr<driver::Module>> loaded = device->loadBinary(library->parts[file], library->parts[part]);
      if (loaded)
        return loaded;
      if (!passesOver(loaded.error().code))
        return refused(file, loaded.error());
    }
  Result<std::shared_ptr<driver::Module>> loaded = device->loadModule(library->parts[part]);
  return loaded ? loaded : refused(part, loaded.error());
}

} // namespace weft::launch

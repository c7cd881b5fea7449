// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The kernels of a library on a device, each loaded when it is first asked for.
#pragma once

#include "runtime/Driver/Driver.h"
#include "runtime/Library/Library.h"

#include <map>
#include <memory>
#include <mutex>

namespace weft::launch {

/// Loads parts of a library on a device, each at most once: machine code that fits the device where there is some, else
/// PTX. May be used from several threads.
class Modules {
public:
  Modules(std::shared_ptr<const library::Library> library, std::shared_ptr<driver::Device> device)
      : library(std::move(library)), device(std::move(device)) {}

  /// The loaded kernel of one variant. A cubin that the driver refuses as unknown to it is passed over; errors are
  /// those of the PTX, and name the part and the library.
  Result<std::shared_ptr<driver::Kernel>> load(const library::Variant &variant);

private:
  Result<std::shared_ptr<driver::Module>> module(uint32_t part);
  Result<std::shared_ptr<driver::Module>> loadPart(uint32_t part) const;

  std::shared_ptr<const library::Library> library;
  std::shared_ptr<driver::Device> device;
  std::mutex guard;
  std::map<uint32_t, std::shared_ptr<driver::Module>> modules; // by the part of the PTX
  std::map<const library::Variant *, std::shared_ptr<driver::Kernel>> kernels;
};

} // namespace weft::launch

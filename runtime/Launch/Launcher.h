// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A library bound to a device: its kernels, loaded when first launched.
#pragma once

#include "runtime/Driver/Driver.h"
#include "runtime/Launch/Plan.h"
#include "runtime/Launch/Values.h"
#include "runtime/Library/Library.h"

#include <map>
#include <memory>
#include <mutex>
#include <optional>

namespace weft::launch {

/// What a launch came to.
struct LaunchChoice {
  size_t variant = 0;   ///< index into the kernel's variants
  driver::Extent3 grid; ///< blocks
};

/// Launches kernels of one library on one device. Loads each part at most once. May be used from several threads.
class Launcher {
public:
  Launcher(std::shared_ptr<const library::Library> library, std::shared_ptr<driver::Device> device)
      : library(std::move(library)), device(std::move(device)) {}

  /// Chooses the variant, packs the parameters and queues the launch. Without `grid` the manifest's expressions give
  /// it. NotFound for a kernel that the library has not; see chooseVariant, packParameters and Kernel::launch.
  Result<LaunchChoice> launch(std::string_view kernel, std::optional<driver::Extent3> grid,
                              std::span<const Value> values, driver::StreamHandle stream);

  /// A program of the library, ready to run on the device: made once. NotFound for one that the library has not; see
  /// Plan::make.
  Result<std::shared_ptr<const Plan>> program(std::string_view name);

  /// The loaded kernel of one variant.
  Result<std::shared_ptr<driver::Kernel>> load(const library::Variant &variant);

private:
  std::shared_ptr<const library::Library> library;
  std::shared_ptr<driver::Device> device;
  std::mutex guard;
  std::map<uint32_t, std::shared_ptr<driver::Module>> modules; // by part
  std::map<const library::Variant *, std::shared_ptr<driver::Kernel>> kernels;
  std::mutex planGuard;                                // held while a plan is made, which takes the other
  std::map<size_t, std::shared_ptr<const Plan>> plans; // by program
};

/// Index of a kernel; NotFound names those that there are.
Result<size_t> requireKernel(const library::Library &library, std::string_view name);

} // namespace weft::launch

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A library bound to a device: its kernels, loaded when first launched.
#pragma once

#include "runtime/Driver/Driver.h"
#include "runtime/Launch/Modules.h"
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

/// Launches kernels of one library on one device. Nothing is loaded before it is launched, and each part at most once.
/// May be used from several threads.
class Launcher {
public:
  Launcher(std::shared_ptr<const library::Library> library, std::shared_ptr<driver::Device> device)
      : library(library), device(device), modules(std::make_shared<Modules>(std::move(library), std::move(device))) {}

  /// Chooses the variant, packs the parameters and queues the launch. Without `grid` the manifest's expressions give
  /// it. NotFound for a kernel that the library has not; see chooseVariant, packParameters and Kernel::launch.
  Result<LaunchChoice> launch(std::string_view kernel, std::optional<driver::Extent3> grid,
                              std::span<const Value> values, driver::StreamHandle stream);

  /// A program of the library, ready to run on the device: made once. NotFound for one that the library has not; see
  /// Plan::make.
  Result<std::shared_ptr<const Plan>> program(std::string_view name);

private:
  Result<LaunchChoice> launchVariant(const library::Kernel &kernel, size_t number, std::optional<driver::Extent3> grid,
                                     std::span<const Value> values, const std::vector<std::byte> &parameters,
                                     driver::StreamHandle stream);

  std::shared_ptr<const library::Library> library;
  std::shared_ptr<driver::Device> device;
  std::shared_ptr<Modules> modules;
  std::mutex guard;
  std::map<size_t, std::shared_ptr<const Plan>> plans; // by program
};

/// Index of a kernel; NotFound names those that there are.
Result<size_t> requireKernel(const library::Library &library, std::string_view name);

} // namespace weft::launch

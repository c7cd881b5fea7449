// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The simulator as a `Device`.
#pragma once

#include "runtime/Driver/Driver.h"
#include "runtime/Driver/Target.h"

#include <optional>

namespace weft::driver {

/// A fresh simulator with empty memory, which answers as a device of `named`'s compute capability, and says so in its
/// name: kernels for it are compiled for that target. Without one it runs PTX of every target. Which checks it pays for
/// is read from WEFT_SIMULATOR_CHECKS ("all", "none", or names as simulator::Checks::parse takes them; "all" where it is
/// not set); bounds and alignment are always checked.
Result<std::shared_ptr<Device>> openSimulated(std::optional<Target> named);

} // namespace weft::driver

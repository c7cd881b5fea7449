// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which variant of a kernel serves a launch.
#pragma once

#include "runtime/Driver/Driver.h"
#include "runtime/Launch/Values.h"
#include "runtime/Library/Manifest.h"

namespace weft::launch {

/// The first variant from number `from` on, in the manifest's order, whose target runs on the device and whose guards hold for `values`
/// (already known to fit the signature). WrongTarget where no target runs there, InvalidArgument where only guards
/// failed; the text gives the reason for each variant.
Result<size_t> chooseVariant(const library::Kernel &kernel, const driver::DeviceProperties &device,
                             std::span<const Value> values, size_t from = 0);

/// The grid of a launch from the variant's expressions. InvalidArgument where there are none, where one does not
/// evaluate, or where an extent is outside CUDA's limits (x up to 2^31 - 1, y and z up to 65535, none 0 or negative).
Result<driver::Extent3> gridOf(const library::Kernel &kernel, const library::Variant &variant,
                               std::span<const Value> values);

} // namespace weft::launch

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The tensor maps that a launch makes of a kernel's parameters, as the simulator's 128 bytes.
#pragma once

#include "runtime/Simulator/Interface/Export.h"
#include "runtime/Support/TensorMaps.h"

namespace weft::simulator {

/// The 128 bytes of a map. InvalidArgument where cuTensorMapEncodeTiled would refuse it.
Result<TensorMapBytes> encodeValues(const TensorMapValues &values);

/// What PTX says of the maps of its entries: see `weft::tensorMapsOf`.
WEFT_SIMULATOR_API Result<TensorMapsOfEntries> launchMapsOf(std::string_view ptx);

/// A launch's parameters with the maps behind them.
WEFT_SIMULATOR_API Result<std::vector<std::byte>> withMaps(const TensorMapRecipes &recipes,
                                                           std::span<const std::byte> parameters);

} // namespace weft::simulator

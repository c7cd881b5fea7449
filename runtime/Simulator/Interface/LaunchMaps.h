// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a launch adds to a kernel's parameters: tensor maps, as the simulator's 128 bytes, and the grid of programs that
// blocks go over.
#pragma once

#include "runtime/Simulator/Interface/Export.h"
#include "runtime/Simulator/Interface/Simulator.h"
#include "runtime/Support/Programs.h"

namespace weft::simulator {

/// The 128 bytes of a map. InvalidArgument where cuTensorMapEncodeTiled would refuse it.
Result<TensorMapBytes> encodeValues(const TensorMapValues &values);

/// What PTX says of the parameters that its entries' launches add: see `weft::addedParametersOf`.
WEFT_SIMULATOR_API Result<AddedOfEntries> launchAddsOf(std::string_view ptx);

/// A launch's parameters with the maps behind them.
WEFT_SIMULATOR_API Result<std::vector<std::byte>> withMaps(const TensorMapRecipes &recipes,
                                                           std::span<const std::byte> parameters);

/// A launch's parameters with the grid of programs behind them, from byte `at` on, and how many blocks go over these: no
/// more than WEFT_SIMULATOR_MULTIPROCESSORS, or else than the GPU has.
WEFT_SIMULATOR_API Result<ProgramsLaunch> overPrograms(const Dim3 &grid, uint32_t multiprocessors, uint32_t at,
                                                       std::span<const std::byte> parameters);

} // namespace weft::simulator

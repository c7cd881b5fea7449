// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Interface/LaunchMaps.h"

#include "runtime/Simulator/Interface/TensorMap.h"
#include "runtime/Support/Format.h"
#include "runtime/Support/Numbers.h"

#include <algorithm>
#include <cstdlib>

namespace weft::simulator {

Result<TensorMapBytes> encodeValues(const TensorMapValues &values) {
  TensorMap map;
  map.type = tensorTypeNamed(values.type).value_or(TensorType::U16);
  map.rank = uint8_t(values.box.size());
  map.address = values.address;
  map.swizzle = uint8_t(values.swizzle);
  std::copy(values.sizes.begin(), values.sizes.end(), map.dims.begin());
  std::copy(values.strides.begin(), values.strides.end(), map.strides.begin());
  std::copy(values.box.begin(), values.box.end(), map.box.begin());
  return encode(map);
}

Result<AddedOfEntries> launchAddsOf(std::string_view ptx) { return addedParametersOf(ptx); }

Result<std::vector<std::byte>> withMaps(const TensorMapRecipes &recipes, std::span<const std::byte> parameters) {
  return TensorMapParameters(recipes, encodeValues).complete(parameters);
}

Result<ProgramsLaunch> overPrograms(const Dim3 &grid, uint32_t multiprocessors, uint32_t at,
                                    std::span<const std::byte> parameters) {
  if (const char *chosen = std::getenv("WEFT_SIMULATOR_MULTIPROCESSORS"); chosen && *chosen) {
    std::optional<uint32_t> count = numberOf<uint32_t>(chosen);
    if (!count || *count == 0)
      return failure(
          StatusCode::InvalidArgument,
          weft::format("expected WEFT_SIMULATOR_MULTIPROCESSORS to be a number from 1, but got '{}'", chosen));
    multiprocessors = *count;
  }
  return launchOver({grid.x, grid.y, grid.z}, multiprocessors, at, parameters);
}

} // namespace weft::simulator

// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Interface/LaunchMaps.h"

#include "runtime/Simulator/Interface/TensorMap.h"

#include <algorithm>

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

Result<TensorMapsOfEntries> launchMapsOf(std::string_view ptx) { return tensorMapsOf(ptx); }

Result<std::vector<std::byte>> withMaps(const TensorMapRecipes &recipes, std::span<const std::byte> parameters) {
  return TensorMapParameters(recipes, encodeValues).complete(parameters);
}

} // namespace weft::simulator

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Kernels whose blocks go over the programs of a grid: how PTX says so, and their launches. Whoever launches one gives the
// grid of its programs and the kernel's own parameters; the device's driver starts no more blocks than there are
// multiprocessors, and passes the grid's extents behind all other parameters.
//
//   // weft.programs 1 attend at=400
//
// Three unsigned numbers of 4 bytes, from byte 400 of the parameters on (docs/LibraryFormat.md).
#pragma once

#include "runtime/Support/TensorMaps.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

constexpr size_t axesOfPrograms = 3;

/// What launches of a kernel add behind its own parameters.
struct AddedParameters {
  TensorMapRecipes maps;
  std::optional<uint32_t> programs; ///< where the extents of its programs' grid begin; nothing: its blocks are programs

  /// How many parameters they are.
  size_t count() const { return maps.size() + (programs ? axesOfPrograms : 0); }
  /// Where they begin; nothing where there are none.
  std::optional<uint32_t> begin() const { return maps.empty() ? programs : std::optional(maps.front().at); }
  /// Whether a launch's parameters lack the extents, alone or with the maps.
  bool lacksPrograms(std::span<const std::byte> parameters) const { return programs && parameters.size() <= *programs; }
};
using AddedOfEntries = std::map<std::string, AddedParameters, std::less<>>;

/// Those of each entry of a module that has any. Corrupt where the text is no such description, Unsupported where it is
/// of a later version.
Result<AddedOfEntries> addedParametersOf(std::string_view ptx);

/// How many blocks a launch has, along the grid's first axis, and its parameters.
struct ProgramsLaunch {
  uint32_t blocks = 0;
  std::vector<std::byte> parameters;
};

/// The launch over a grid of programs. `parameters` end where the extents begin, or before. InvalidArgument for more
/// than 2^31 - 1 programs.
Result<ProgramsLaunch> launchOver(const std::array<uint32_t, 3> &grid, uint32_t multiprocessors, uint32_t at,
                                  std::span<const std::byte> parameters);

} // namespace weft

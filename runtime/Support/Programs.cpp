// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Support/Programs.h"

#include "runtime/Support/Format.h"
#include "runtime/Support/Numbers.h"

#include <algorithm>
#include <cstring>

namespace weft {
namespace {

constexpr std::string_view programsMark = "// weft.programs ", programsPlace = " at=";

/// Adds what a line says of an entry.
Status addPrograms(std::string_view line, AddedOfEntries &found) {
  const size_t space = line.find(' '), at = line.find(programsPlace, space);
  if (line.substr(0, space) != "1")
    return failure(StatusCode::Unsupported,
                   weft::format("expected programs of version 1, but got '{}': the PTX is of a later Weft", line));
  std::optional<uint32_t> offset;
  if (at != std::string_view::npos && at > space)
    offset = numberOf<uint32_t>(line.substr(at + programsPlace.size()));
  if (!offset || *offset % sizeof(uint32_t) || *offset >= 1 << 16)
    return failure(StatusCode::Corrupt,
                   weft::format("expected where a kernel's grid of programs is passed, but got '{}'", line));
  AddedParameters &added = found[std::string(line.substr(space + 1, at - space - 1))];
  if (added.programs || (!added.maps.empty() && *offset < added.maps.back().at + sizeof(TensorMapBytes)))
    return failure(StatusCode::Corrupt,
                   weft::format("expected one grid of programs behind all tensor maps, but got '{}'", line));
  added.programs = offset;
  return {};
}

} // namespace

Result<AddedOfEntries> addedParametersOf(std::string_view ptx) {
  Result<TensorMapsOfEntries> maps = tensorMapsOf(ptx);
  if (!maps)
    return std::unexpected(maps.error());
  AddedOfEntries found;
  for (auto &[entry, recipes] : *maps)
    found[entry].maps = std::move(recipes);
  for (size_t begin = ptx.find(programsMark); begin != std::string_view::npos;
       begin = ptx.find(programsMark, begin + 1)) {
    std::string_view line = ptx.substr(begin + programsMark.size());
    if (Status status = addPrograms(line.substr(0, line.find('\n')), found); !status)
      return std::unexpected(status.error());
  }
  return found;
}

Result<ProgramsLaunch> launchOver(const std::array<uint32_t, 3> &grid, uint32_t multiprocessors, uint32_t at,
                                  std::span<const std::byte> parameters) {
  constexpr uint64_t most = INT32_MAX;
  uint64_t programs = uint64_t(grid[0]) * grid[1]; // below 2^64, and the next product is asked for by a quotient
  if (programs > most || (grid[2] && programs > most / grid[2]))
    return failure(StatusCode::InvalidArgument,
                   weft::format("expected at most {} programs of a kernel whose blocks go over them, but got a grid of "
                                "{} x {} x {}",
                                most, grid[0], grid[1], grid[2]));
  programs *= grid[2];
  ProgramsLaunch launch{uint32_t(std::min<uint64_t>(programs, std::max(multiprocessors, 1u))),
                        {parameters.begin(), parameters.end()}};
  launch.parameters.resize(at + sizeof(grid));
  std::memcpy(launch.parameters.data() + at, grid.data(), sizeof(grid));
  return launch;
}

} // namespace weft

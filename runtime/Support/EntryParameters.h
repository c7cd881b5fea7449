// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Where the parameters of a module's entries lie. A launch's parameters come as one packed buffer, each at its own
// alignment counted from the buffer's first byte. NVIDIA's driver lays them out otherwise: ptxas aligns a parameter of more
// than 16 bytes' alignment, as a tensor map of 64, at its address in constant memory, whose parameters begin at no multiple
// of 64 (0x210 on sm_90). So the driver is given a pointer to each parameter, never the buffer.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// A parameter's bytes among the packed ones.
struct EntryParameter {
  uint32_t offset, bytes;
  bool operator==(const EntryParameter &) const = default;
};
using EntryParameters = std::vector<EntryParameter>;

/// The parameters of each entry of PTX text, in the order of their declarations (PTX ISA 5.1.6.1 "Kernel Function
/// Parameters"). An entry whose list is of another form than the ISA's is left out.
std::map<std::string, EntryParameters, std::less<>> entryParametersOf(std::string_view ptx);

} // namespace weft

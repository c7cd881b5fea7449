// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Machine code beside PTX: what a cubin says of itself, and whether that is what the manifest says of it.
#pragma once

#include "runtime/Library/Manifest.h"

#include <string>
#include <string_view>
#include <vector>

namespace weft::library {

/// What a cubin's ELF headers say.
struct CubinFacts {
  int architecture = 0;             ///< the number in sm_80
  bool accelerated = false;         ///< marked as using what one architecture alone has. Not every ptxas marks it
  std::vector<std::string> entries; ///< functions with machine code, in the order of the file
};

/// Reads an ELF file's header and section names. Corrupt with the reason for what is no 64-bit little-endian ELF file,
/// of another machine than NVIDIA's, no executable, of an ABI version that is not known here, or cut short. Safe on any
/// bytes.
Result<CubinFacts> readCubin(std::string_view bytes);

/// Whether `bytes` are what the manifest says of `cubin`: machine code for its target, with the entries of all variants
/// that its PTX holds. Corrupt with what was expected and what came.
Status checkCubin(const Manifest &manifest, const Cubin &cubin, std::string_view bytes);

/// The cubins, by index into Manifest::cubins, that run on a device of compute capability major.minor in the place of
/// the PTX in `part`: the nearest to the device first.
std::vector<size_t> cubinsFor(const Manifest &manifest, uint32_t part, int major, int minor);

} // namespace weft::library

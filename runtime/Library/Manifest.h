// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a PTX library says about itself: docs/LibraryFormat.md as C++ structs.
#pragma once

#include "runtime/Driver/Target.h"
#include "runtime/Library/Program.h"
#include "runtime/Library/Types.h"
#include "runtime/Support/Status.h"

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace weft::library {

/// Name and version of the schema that this runtime reads and writes.
inline constexpr std::string_view schemaName = "weft-library";
inline constexpr int64_t schemaVersion = 1;
/// The manifest's file name inside a library's directory.
inline constexpr std::string_view manifestName = "manifest.json";
/// What a reader accepts at most, in bytes.
inline constexpr uint64_t maxManifestBytes = 16u << 20, maxPartBytes = 256u << 20;

/// A file of the library: a bare name, its size and its SHA-256 in lower-case hexadecimal.
struct Part {
  std::string file;
  uint64_t bytes = 0;
  std::string sha256;
};

/// A run-time argument, in the order of the PTX parameters.
struct Argument {
  std::string name;
  ArgumentType type;
};

/// A compile-time value: BLOCK = 128, CAUSAL = true, DTYPE = "fp16"; nothing stands for None.
using Constant = std::variant<std::monostate, bool, int64_t, double, std::string>;

/// What a variant assumes of an argument: that it (an integer, or a pointer's address) is a multiple of `divisibleBy`,
/// and, where `equals` is set, that it has this one value.
struct Guard {
  uint32_t argument = 0; ///< index into Kernel::arguments
  int64_t divisibleBy = 1;
  std::optional<int64_t> equals;
};

/// What ptxas reported, where it was there to ask.
struct Resources {
  uint32_t registers = 0;       ///< per thread
  uint32_t spillStoreBytes = 0; ///< per thread
  uint32_t spillLoadBytes = 0;  ///< per thread
  uint32_t sharedBytes = 0;     ///< static shared memory per block
};

/// One compiled form of a kernel.
struct Variant {
  driver::Target target;
  uint32_t part = 0; ///< index into Manifest::parts: the PTX
  std::string entry; ///< .entry name in it
  uint32_t numWarps = 4, numStages = 1;
  uint32_t sharedBytes = 0; ///< dynamic shared memory per block
  std::array<uint32_t, 3> cluster{1, 1, 1};
  std::vector<std::array<std::string, 3>> grid; ///< empty, or one triple of expressions (GridExpression.h)
  std::map<std::string, Constant> constants;
  std::vector<Guard> guards;
  std::optional<Resources> resources;
};

/// A kernel: what it is called with, and its variants in order of preference.
struct Kernel {
  std::string name;
  std::vector<Argument> arguments;
  std::vector<Variant> variants;
  std::string sourceFile; ///< where it was written; for people
  uint32_t sourceLine = 0;
  std::string sourceSha256; ///< of the kernel's source, "" where unknown
};

/// Machine code that was assembled of a part's PTX.
struct Cubin {
  uint32_t part = 0;     ///< index into Manifest::parts: the ELF file
  uint32_t ptx = 0;      ///< index into Manifest::parts: the PTX that it was assembled of
  driver::Target target; ///< what it was assembled for
};

/// The whole of manifest.json.
struct Manifest {
  std::string weftVersion;
  std::vector<Part> parts;
  std::vector<Cubin> cubins;
  std::vector<Kernel> kernels;
  std::vector<Program> programs;
};

/// Reads a manifest. Corrupt with what is wrong and where ("kernels[0].variants[1].target: ..."): text that is no JSON
/// or cut short, a key twice, another schema or version, a digest that does not match, a part's name that is no bare
/// file name, an index out of range, a count or size past the limits. Safe on any bytes.
Result<Manifest> parseManifest(std::string_view text);

/// A file to be put into a library.
struct File {
  std::string name;
  std::string bytes;
};

/// Completes a manifest of which `json` holds "kernels" (and "programs", and any keys beside): adds schema, versions,
/// one part per file and the digest, and checks the whole by reading it back. Returns the text of manifest.json.
Result<std::string> composeManifest(std::string_view json, const std::vector<File> &files);

/// Index of a kernel by name.
std::optional<size_t> findKernel(const Manifest &manifest, std::string_view name);
/// Index of a program by name.
std::optional<size_t> findProgram(const Manifest &manifest, std::string_view name);

} // namespace weft::library

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The simulator's public face: PTX text in, results in memory and a report out.
//
//   auto module = simulator::Module::parse(text);
//   simulator::Memory memory;
//   auto x = memory.allocate(bytes);   memory.write(*x, hostBytes);
//   auto report = simulator::launch(**module, "add", memory, {.grid = {8}, .block = {128}}, parameterBytes, {});
//
// Everything here may be called from several threads; two launches on one Memory may run at once.
#pragma once

#include "runtime/Simulator/Interface/Memory.h"
#include "runtime/Simulator/Interface/Report.h"
#include "runtime/Support/Status.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace weft::targets {
struct Target;
}

namespace weft::simulator {

/// Three counts or coordinates, x fastest.
struct Dim3 {
  uint32_t x = 1, y = 1, z = 1;
  bool operator==(const Dim3 &) const = default;
  /// How many points the box holds.
  uint64_t volume() const { return uint64_t(x) * y * z; }
};

/// One parameter of an entry, where the packed parameter bytes hold it.
struct ParameterInfo {
  std::string name;
  uint32_t offset = 0; ///< bytes from the start of the packed parameters, naturally aligned
  uint32_t size = 0;   ///< bytes
  uint32_t align = 1;
  bool pointer = false; ///< declared `.ptr`, or of a type that can hold an address (.u64, .b64)
};

/// What a module says about one `.entry`.
struct EntryInfo {
  std::string name;
  std::vector<ParameterInfo> parameters;
  uint32_t parameterBytes = 0;
  uint32_t staticSharedBytes = 0; ///< shared variables the PTX itself sizes
  uint32_t localBytes = 0;        ///< local memory of one thread
  bool usesDynamicShared = false; ///< refers to an `.extern .shared` array
  Dim3 requiredBlock{0, 0, 0};    ///< .reqntid, zero where absent
  Dim3 maximumBlock{0, 0, 0};     ///< .maxntid, zero where absent
  Dim3 requiredCluster{0, 0, 0};  ///< .reqnctapercluster, zero where absent: what a launch without a cluster gets
  uint32_t maximumRanks = 0;      ///< .maxclusterrank, zero where absent
  bool explicitCluster = false;   ///< .explicitcluster: a launch must say its clusters
};

namespace machine {
class Program;
}

/// How near the approximate functions (`ex2.approx`, `rcp.approx`, ...) of f32 are to the exact ones.
enum class Approximations {
  Close, ///< the nearest f32, or one beside it
  Loose, ///< the farthest that PTX allows, above or below by the argument
};
/// Reads "close" or "loose". Errors: InvalidArgument.
WEFT_SIMULATOR_API Result<Approximations> approximationsNamed(std::string_view text);

/// A parsed, checked and decoded PTX module. Immutable; share it freely.
class Module {
public:
  /// Reads PTX text. Errors: Corrupt, with the line, the column and what was expected, where the text is no PTX;
  /// Unsupported, naming the instruction and its line, where it is PTX this machine does not have.
  /// `name` stands for the file in messages.
  WEFT_SIMULATOR_API static Result<std::shared_ptr<const Module>>
  parse(std::string_view ptx, std::string_view name = "<ptx>", Approximations approximations = {});

  /// All entries in the order of the text.
  WEFT_SIMULATOR_API const std::vector<EntryInfo> &entries() const;
  /// The entry of that name, or null.
  WEFT_SIMULATOR_API const EntryInfo *entry(std::string_view name) const;
  /// The `.target` line's first word, for example "sm_80".
  WEFT_SIMULATOR_API const std::string &target() const;

  /// What the machine runs; not for users.
  const machine::Program &program() const { return *program_; }

  ~Module();
  Module(const Module &) = delete;
  Module &operator=(const Module &) = delete;

private:
  explicit Module(std::unique_ptr<const machine::Program> program);
  std::unique_ptr<const machine::Program> program_;
};

/// Which strictness a launch pays for. Bounds and alignment are always checked.
struct Checks {
  bool uninitialised = true; ///< registers and memory read before anything wrote them
  bool races = true;         ///< shared-memory accesses that nothing orders
  bool async = true;         ///< cp.async read before its wait or overwritten in flight, exit with copies in flight
  bool barriers = true;      ///< .aligned divergence, barrier mismatches
  /// Reads "all", "none", or a comma-separated list of `uninitialised`, `races`, `async`, `barriers`.
  WEFT_SIMULATOR_API static Result<Checks> parse(std::string_view text);
  static Checks none() { return {false, false, false, false}; }
};

/// How many blocks of how many threads, and how much dynamic shared memory each.
struct LaunchShape {
  Dim3 grid;
  Dim3 block;
  Dim3 cluster; ///< blocks of a cluster; one: as the kernel says by .reqnctapercluster
  uint32_t sharedBytes = 0;
};

/// How to run a launch.
struct LaunchOptions {
  Checks checks;
  uint64_t seed = 0;      ///< 0 runs warps in order; any other value interleaves them pseudo-randomly
  uint32_t schedules = 1; ///< how many interleavings to run and compare
  uint32_t threads = 0;   ///< worker threads; 0 means one per core. Results do not depend on it
  uint32_t maxFindings = 64;
  uint64_t sample = 0; ///< how many of the grid's blocks run, spread over it; 0: all. For counting what all would cost
  const targets::Target *target = nullptr; ///< whose limits hold; null: those of the module's `.target` (limitsOf)
  bool countsTouched = true;               ///< whether Report::touched is wanted, which takes time
  uint64_t maximumInstructions = 0;        ///< warp instructions after which a launch counts as stuck; 0: no limit
};

/// The target whose limits hold for a module where no device says otherwise: its own, or the nearest that is known.
WEFT_SIMULATOR_API const targets::Target &limitsOf(const Module &module);

/// Runs one grid. `parameters` holds the packed parameter bytes (see ParameterInfo::offset).
/// A program at fault gives a Report with findings, not an Error. Errors: NotFound for an unknown entry;
/// InvalidArgument for a wrong shape, parameter size or too much shared memory; Unsupported for clusters of a target
/// that has none.
WEFT_SIMULATOR_API Result<Report> launch(const Module &module, std::string_view entry, Memory &memory,
                                         const LaunchShape &shape, std::span<const std::byte> parameters,
                                         const LaunchOptions &options = {});

} // namespace weft::simulator

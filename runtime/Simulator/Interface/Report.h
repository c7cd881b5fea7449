// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a launch found and counted.
#pragma once

#include "runtime/Simulator/Interface/Export.h"

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace weft::simulator {

/// What can be wrong with a program. The spelling users see is `findingName`.
enum class FindingKind : uint8_t {
  OutOfBounds,
  Misaligned,
  UseAfterFree,
  Uninitialised,
  SharedRace,
  GlobalRace,
  AsyncUnwaited,
  AsyncOverwrite,
  MissingProxyFence,
  WgmmaAccumulator,
  WgmmaWarpgroup,
  MbarrierMisuse,
  Deadlock,
  BarrierMismatch,
  DivergentAligned,
  RegisterLimit,
  ExitWithAsync,
  SparseMetadata,
  TensorAllocation,
  TensorRace,
  TensorOperands,
  Unsupported,
  Trap,
};

/// The public spelling: "out-of-bounds", "shared-race", ...
WEFT_SIMULATOR_API std::string_view findingName(FindingKind kind);

/// One thing wrong, at one place. Repeats of a kind at an instruction are counted, not listed.
struct Finding {
  FindingKind kind;
  std::string message; ///< one sentence with the facts: kernel, block, warp, lane, address, both sides
  std::string kernel;
  uint32_t line = 0;             ///< PTX line, from 1
  std::string source;            ///< "file:line" through .loc, empty without
  std::array<uint32_t, 3> cta{}; ///< block coordinates
  uint32_t warp = 0, lane = 0;   ///< the first thread that showed it
  std::string other;             ///< the other side of a conflict, empty without
  uint64_t count = 1;            ///< how often it was seen
};

/// Where instructions are put to be counted.
enum class InstructionClass : uint8_t {
  Integer,
  Float,
  Half,
  Double,
  Convert,
  Special,
  Move,
  Compare,
  Predicate,
  Branch,
  GlobalLoad,
  GlobalStore,
  SharedLoad,
  SharedStore,
  LocalMemory,
  ParameterMemory,
  Atomic,
  AsyncCopy,
  MatrixLoad,
  Matrix,
  Shuffle,
  Vote,
  Barrier,
  Fence,
  Other,
  Count
};

/// The name of a class in `counters`: "integer", "matrix", ...
WEFT_SIMULATOR_API std::string_view className(InstructionClass c);

/// What the launch cost, summed over all blocks. Independent of the number of worker threads.
struct Counters {
  uint64_t threadInstructions = 0;
  uint64_t warpInstructions = 0;
  std::array<uint64_t, size_t(InstructionClass::Count)> warpInstructionsByClass{};
  uint64_t mmaMacs = 0;
  uint64_t globalSectorsRead = 0, globalSectorsWritten = 0;
  uint64_t globalSectorsIdeal = 0; ///< sectors the bytes asked for would fill, coalesced perfectly
  uint64_t sharedWavefronts = 0, sharedWavefrontsIdeal = 0;
  uint64_t barriers = 0;
  uint64_t divergentBranches = 0;
  uint64_t bulkCopies = 0; ///< cp.async.bulk and cp.reduce.async.bulk, by thread
  uint64_t bulkBytesRead = 0, bulkBytesWritten = 0;
  uint64_t bulkBytesFilled = 0;                           ///< of boxes, outside of their tensors
  uint64_t wgmma = 0;                                     ///< wgmma.mma_async of warpgroups
  uint64_t wgmmaSharedBytes = 0;                          ///< of shared memory that they read, B once a warpgroup
  uint64_t tensorProducts = 0;                            ///< tcgen05.mma
  uint64_t tensorBytesRead = 0, tensorBytesWritten = 0;   ///< of tensor memory, by tcgen05.ld, .st and .cp
  uint64_t clusterBarriers = 0;                           ///< arrivals of warps at barrier.cluster
  uint64_t clusterBytesRead = 0, clusterBytesWritten = 0; ///< of other blocks' shared memory, by threads
  uint64_t clusterBytesCopied = 0;                        ///< into it, by st.async, red.async and bulk copies
  uint64_t clusterArrivals = 0;                           ///< at other blocks' mbarriers
  uint64_t multicastCopies = 0, multicastBytes = 0;       ///< bulk copies to several blocks; bytes that arrive by them
  uint64_t ringWaits = 0, ringWaitsFull = 0; ///< phases of copies that warps waited for; whose copies were all issued
  uint64_t ringStagesFull = 0;               ///< stages whose copies were all issued, at each of these waits

  void add(const Counters &other);
  /// Every counter by its public name ("thread_instructions", "warp_instructions", "warp_instructions.matrix", ...).
  WEFT_SIMULATOR_API std::map<std::string, uint64_t> named() const;
};

/// What one instruction of the PTX cost, in the units of Counters.
struct LineProfile {
  uint32_t line = 0;
  std::string source;
  std::string text; ///< mnemonic with modifiers
  InstructionClass cls = InstructionClass::Other;
  uint64_t warpInstructions = 0, threadInstructions = 0;
  uint64_t globalSectorsRead = 0, globalSectorsWritten = 0, globalSectorsIdeal = 0;
  uint64_t globalBytes = 0; ///< that threads asked for
  uint64_t sharedWavefronts = 0, sharedWavefrontsIdeal = 0;
  uint64_t mmaMacs = 0;
  uint64_t barrierWaits = 0; ///< warps that came to a barrier before the last one did
  uint64_t divergentBranches = 0;
};

/// Sectors of 32 bytes of one allocation, each counted once, however many blocks access it.
struct TouchedAllocation {
  uint64_t sectors = 0; ///< all of the allocation's
  uint64_t read = 0, written = 0;
};

/// All that a launch tells.
struct Report {
  std::vector<Finding> findings;
  std::vector<Finding> advisories;
  Counters counters;
  std::vector<LineProfile> profile;       ///< executed lines in PTX order
  std::vector<TouchedAllocation> touched; ///< allocations that were accessed, by address
  std::string output;                     ///< what the kernel printed
};

} // namespace weft::simulator

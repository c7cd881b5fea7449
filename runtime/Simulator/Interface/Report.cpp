// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Interface/Report.h"

namespace weft::simulator {

std::string_view findingName(FindingKind kind) {
  static constexpr std::string_view names[] = {"out-of-bounds",
                                               "misaligned",
                                               "use-after-free",
                                               "uninitialised",
                                               "shared-race",
                                               "global-race",
                                               "async-unwaited",
                                               "async-overwrite",
                                               "missing-proxy-fence",
                                               "wgmma-accumulator",
                                               "wgmma-warpgroup",
                                               "mbarrier-misuse",
                                               "deadlock",
                                               "barrier-mismatch",
                                               "divergent-aligned",
                                               "register-limit",
                                               "exit-with-async",
                                               "sparse-metadata",
                                               "tensor-allocation",
                                               "tensor-race",
                                               "tensor-operands",
                                               "unsupported",
                                               "trap"};
  return names[size_t(kind)];
}

std::string_view className(InstructionClass c) {
  static constexpr std::string_view names[] = {"integer",     "float",        "half",        "double",       "convert",
                                               "special",     "move",         "compare",     "predicate",    "branch",
                                               "global_load", "global_store", "shared_load", "shared_store", "local",
                                               "parameter",   "atomic",       "async_copy",  "matrix_load",  "matrix",
                                               "shuffle",     "vote",         "barrier",     "fence",        "other"};
  static_assert(std::size(names) == size_t(InstructionClass::Count));
  return names[size_t(c)];
}

void Counters::add(const Counters &other) {
  threadInstructions += other.threadInstructions;
  warpInstructions += other.warpInstructions;
  for (size_t i = 0; i < warpInstructionsByClass.size(); ++i)
    warpInstructionsByClass[i] += other.warpInstructionsByClass[i];
  mmaMacs += other.mmaMacs;
  globalSectorsRead += other.globalSectorsRead;
  globalSectorsWritten += other.globalSectorsWritten;
  globalSectorsIdeal += other.globalSectorsIdeal;
  sharedWavefronts += other.sharedWavefronts;
  sharedWavefrontsIdeal += other.sharedWavefrontsIdeal;
  barriers += other.barriers;
  divergentBranches += other.divergentBranches;
  bulkCopies += other.bulkCopies;
  bulkBytesRead += other.bulkBytesRead;
  bulkBytesWritten += other.bulkBytesWritten;
  bulkBytesFilled += other.bulkBytesFilled;
  wgmma += other.wgmma;
  wgmmaSharedBytes += other.wgmmaSharedBytes;
  tensorProducts += other.tensorProducts;
  tensorBytesRead += other.tensorBytesRead;
  tensorBytesWritten += other.tensorBytesWritten;
  clusterBarriers += other.clusterBarriers;
  clusterBytesRead += other.clusterBytesRead;
  clusterBytesWritten += other.clusterBytesWritten;
  clusterBytesCopied += other.clusterBytesCopied;
  clusterArrivals += other.clusterArrivals;
  multicastCopies += other.multicastCopies;
  multicastBytes += other.multicastBytes;
  ringWaits += other.ringWaits;
  ringWaitsFull += other.ringWaitsFull;
  ringStagesFull += other.ringStagesFull;
}

std::map<std::string, uint64_t> Counters::named() const {
  std::map<std::string, uint64_t> result{
      {"thread_instructions", threadInstructions},
      {"warp_instructions", warpInstructions},
      {"mma_macs", mmaMacs},
      {"global_sectors_read", globalSectorsRead},
      {"global_sectors_written", globalSectorsWritten},
      {"global_sectors_ideal", globalSectorsIdeal},
      {"shared_wavefronts", sharedWavefronts},
      {"shared_wavefronts_ideal", sharedWavefrontsIdeal},
      {"barriers", barriers},
      {"divergent_branches", divergentBranches},
      {"bulk_copies", bulkCopies},
      {"bulk_bytes_read", bulkBytesRead},
      {"bulk_bytes_written", bulkBytesWritten},
      {"bulk_bytes_filled", bulkBytesFilled},
      {"wgmma", wgmma},
      {"wgmma_shared_bytes", wgmmaSharedBytes},
      {"tcgen05_mma", tensorProducts},
      {"tensor_bytes_read", tensorBytesRead},
      {"tensor_bytes_written", tensorBytesWritten},
      {"cluster_barriers", clusterBarriers},
      {"cluster_bytes_read", clusterBytesRead},
      {"cluster_bytes_written", clusterBytesWritten},
      {"cluster_bytes_copied", clusterBytesCopied},
      {"cluster_arrivals", clusterArrivals},
      {"multicast_copies", multicastCopies},
      {"multicast_bytes", multicastBytes},
      {"ring_waits", ringWaits},
      {"ring_waits_full", ringWaitsFull},
      {"ring_stages_full", ringStagesFull},
  };
  for (size_t i = 0; i < warpInstructionsByClass.size(); ++i)
    result["warp_instructions." + std::string(className(InstructionClass(i)))] = warpInstructionsByClass[i];
  return result;
}

} // namespace weft::simulator

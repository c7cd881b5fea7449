// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The target descriptions for those who choose schedules outside of the compiler.
#include "compiler/CAPI/Internal.h"
#include "compiler/Target/TargetInfo.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace weft;

static llvm::json::Object describe(const MmaInstruction &mma) {
  static constexpr const char *elements[] = {"f16", "bf16", "tf32", "s8"}, *accumulators[] = {"f16", "f32", "s32"};
  return llvm::json::Object{{"element", elements[static_cast<size_t>(mma.element)]},
                            {"accumulator", accumulators[static_cast<size_t>(mma.accumulator)]},
                            {"shape", llvm::json::Array(mma.shape)}};
}

char *weftc_targets(void) {
  llvm::json::Array targets;
  for (const TargetInfo &target : TargetInfo::all()) {
    llvm::json::Array mma;
    for (const MmaInstruction &each : target.mma)
      mma.push_back(describe(each));
    targets.push_back(llvm::json::Object{{"name", target.name},
                                         {"warp_size", target.warpSize},
                                         {"max_warps", target.maxWarps},
                                         {"registers_per_thread", target.registersPerThread},
                                         {"registers_per_processor", target.registersPerProcessor},
                                         {"shared_bytes_per_block", target.sharedBytesPerBlock},
                                         {"shared_bytes_per_processor", target.sharedBytesPerProcessor},
                                         {"reserved_shared_bytes", target.reservedSharedBytes},
                                         {"max_warps_per_processor", target.maxWarpsPerProcessor},
                                         {"max_blocks_per_processor", target.maxBlocksPerProcessor},
                                         {"vector_bytes", target.vectorBytes},
                                         {"mma", std::move(mma)}});
  }
  std::string text;
  llvm::raw_string_ostream(text) << llvm::json::Value(std::move(targets));
  return capi::copyText(text);
}

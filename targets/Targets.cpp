// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The table of targets. One that differs from another in numbers alone is one entry of `table`, with its GPUs above.
//
// Limits: CUDA C++ Programming Guide, table of technical specifications per compute capability, and cuda_occupancy.h of
// CUDA 13.0. Rates: dense ones at boost clock, from the sources that each GPU names. Bandwidths of L2 caches are
// published for the A100 alone (whitepaper, page 38): H100 and H200 are taken to have the same, the others as much for
// each multiprocessor.
#include "targets/Target.h"

#include <charconv>

namespace weft::targets {
namespace {

// PTX ISA 9.7.14.5, table of shapes; 9.7.9.25.3 for the sizes of cp.async.
constexpr MmaInstruction ampereMma[] = {
    {MmaElement::F16, MmaAccumulator::F32, {16, 8, 16}},  {MmaElement::F16, MmaAccumulator::F16, {16, 8, 16}},
    {MmaElement::BF16, MmaAccumulator::F32, {16, 8, 16}}, {MmaElement::TF32, MmaAccumulator::F32, {16, 8, 8}},
    {MmaElement::S8, MmaAccumulator::S32, {16, 8, 32}},   {MmaElement::F16, MmaAccumulator::F32, {16, 8, 8}},
    {MmaElement::F16, MmaAccumulator::F16, {16, 8, 8}},   {MmaElement::BF16, MmaAccumulator::F32, {16, 8, 8}},
};
constexpr int asyncSizes[] = {4, 8, 16};

constexpr MatrixRate ampereRates[] = {{"f16", 312'000}, {"bf16", 312'000}, {"tf32", 156'000}, {"f64", 19'500},
                                      {"s8", 624'000},  {"s4", 1'248'000}, {"b1", 4'992'000}};
constexpr Gpu ampereGpus[] = {
    {.key = "A100",
     .name = "A100 SXM4 80 GB",
     .multiprocessors = 108,
     .clock = 1.410,
     .memoryBandwidth = 2039,
     .float32 = 19'500,
     .float64 = 9'700,
     .l2BytesPerClock = 5120,
     .matrix = ampereRates,
     .source = "NVIDIA A100 Tensor Core GPU data sheet (2021) and Ampere architecture whitepaper, table 3"}};

constexpr MatrixRate hopperRates[] = {{"f16", 989'400},  {"bf16", 989'400},   {"tf32", 494'700},  {"f64", 66'900},
                                      {"s8", 1'978'900}, {"e4m3", 1'978'900}, {"e5m2", 1'978'900}};
constexpr Gpu hopperGpus[] = {
    {.key = "H100",
     .name = "H100 SXM5 80 GB",
     .multiprocessors = 132,
     .clock = 1.830,
     .memoryBandwidth = 3352,
     .float32 = 66'900,
     .float64 = 33'500,
     .l2BytesPerClock = 5120,
     .matrix = hopperRates,
     .source = "NVIDIA H100 Tensor Core GPU architecture whitepaper (2023), tables 1 and 3"},
    {.key = "H200",
     .name = "H200 SXM 141 GB",
     .multiprocessors = 132,
     .clock = 1.830,
     .memoryBandwidth = 4800,
     .float32 = 66'900,
     .float64 = 33'500,
     .l2BytesPerClock = 5120,
     .matrix = hopperRates,
     .source = "NVIDIA H200 Tensor Core GPU data sheet (2024); multiprocessors and clock as H100's"}};

constexpr Target table[] = {
    {.name = "sm_80",
     .ptxVersion = 80,
     .sharedBytesPerBlock = 163 * 1024,
     .sharedBytesPerProcessor = 164 * 1024,
     .maxWarpsPerProcessor = 64,
     .maxBlocksPerProcessor = 32,
     .bf16Arithmetic = false,
     .mma = ampereMma,
     .asyncCopyBytes = asyncSizes,
     .gpus = ampereGpus},
    {.name = "sm_90a",
     .ptxVersion = 80,
     .sharedBytesPerBlock = 227 * 1024,
     .sharedBytesPerProcessor = 228 * 1024,
     .maxWarpsPerProcessor = 64,
     .maxBlocksPerProcessor = 32,
     .bf16Arithmetic = true,
     .mma = ampereMma,
     .asyncCopyBytes = asyncSizes,
     .gpus = hopperGpus,
     .simulated = true},
};

} // namespace

int capabilityOf(std::string_view name) {
  int number = 0;
  if (std::string_view prefix = "sm_"; name.substr(0, prefix.size()) == prefix)
    std::from_chars(name.data() + prefix.size(), name.data() + name.size(), number);
  return number;
}

int Target::capability() const { return capabilityOf(name); }

List<Target> all() { return table; }

const Target *find(std::string_view name) {
  for (const Target &target : table)
    if (target.name == name)
      return &target;
  return nullptr;
}

const Target &nearest(int capability) {
  const Target *best = nullptr, *oldest = table;
  for (const Target &target : table) {
    if (target.capability() <= capability && (!best || target.capability() > best->capability()))
      best = &target;
    if (target.capability() < oldest->capability())
      oldest = &target;
  }
  return best ? *best : *oldest;
}

const Target &simulated() {
  for (const Target &target : table)
    if (target.simulated)
      return target;
  return table[0];
}

std::string names() {
  std::string text;
  for (const Target &target : table)
    text.append(text.empty() ? "'" : ", '").append(target.name).append("'");
  return text;
}

} // namespace weft::targets

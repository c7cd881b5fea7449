// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The table of targets. One that differs from another in numbers alone is one entry of `table`, with its GPUs above.
//
// Limits: CUDA C++ Programming Guide, table of technical specifications per compute capability, and cuda_occupancy.h of
// CUDA 13.0. Rates: dense ones at boost clock, from the sources that each GPU names. Bandwidths of L2 caches are
// published for the A100 alone (whitepaper, page 38): H100 and H200 are taken to have the same, the others as much for
// each multiprocessor. Their sizes are in each architecture's whitepaper.
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
    {MmaElement::F64, MmaAccumulator::F64, {8, 8, 4}},
};
// Ada and the GPUs of sm_120 multiply 8-bit floats too; ptxas widens such operands on sm_90, whose warpgroups multiply them.
constexpr MmaInstruction adaMma[] = {
    {MmaElement::F16, MmaAccumulator::F32, {16, 8, 16}},  {MmaElement::F16, MmaAccumulator::F16, {16, 8, 16}},
    {MmaElement::BF16, MmaAccumulator::F32, {16, 8, 16}}, {MmaElement::TF32, MmaAccumulator::F32, {16, 8, 8}},
    {MmaElement::S8, MmaAccumulator::S32, {16, 8, 32}},   {MmaElement::F16, MmaAccumulator::F32, {16, 8, 8}},
    {MmaElement::F16, MmaAccumulator::F16, {16, 8, 8}},   {MmaElement::BF16, MmaAccumulator::F32, {16, 8, 8}},
    {MmaElement::F64, MmaAccumulator::F64, {8, 8, 4}},    {MmaElement::E4M3, MmaAccumulator::F32, {16, 8, 32}},
    {MmaElement::E5M2, MmaAccumulator::F32, {16, 8, 32}}, {MmaElement::E4M3, MmaAccumulator::F16, {16, 8, 32}},
    {MmaElement::E5M2, MmaAccumulator::F16, {16, 8, 32}},
};
constexpr MmaInstruction hopperMma[] = {
    {MmaElement::F16, MmaAccumulator::F32, {16, 8, 16}},  {MmaElement::F16, MmaAccumulator::F16, {16, 8, 16}},
    {MmaElement::BF16, MmaAccumulator::F32, {16, 8, 16}}, {MmaElement::TF32, MmaAccumulator::F32, {16, 8, 8}},
    {MmaElement::S8, MmaAccumulator::S32, {16, 8, 32}},   {MmaElement::F16, MmaAccumulator::F32, {16, 8, 8}},
    {MmaElement::F16, MmaAccumulator::F16, {16, 8, 8}},   {MmaElement::BF16, MmaAccumulator::F32, {16, 8, 8}},
    {MmaElement::F64, MmaAccumulator::F64, {16, 8, 16}},  {MmaElement::F64, MmaAccumulator::F64, {16, 8, 8}},
    {MmaElement::F64, MmaAccumulator::F64, {16, 8, 4}},   {MmaElement::F64, MmaAccumulator::F64, {8, 8, 4}},
};
constexpr int asyncSizes[] = {4, 8, 16};
constexpr int64_t mebibyte = 1 << 20;

// PTX ISA 9.7.15.2, table of shapes; only operands of 16 bits may be turned (9.7.15.5.1).
constexpr WarpgroupMma hopperFamilies[] = {
    {MmaElement::F16, MmaAccumulator::F32, 16, true},   {MmaElement::F16, MmaAccumulator::F16, 16, true},
    {MmaElement::BF16, MmaAccumulator::F32, 16, true},  {MmaElement::TF32, MmaAccumulator::F32, 8, false},
    {MmaElement::S8, MmaAccumulator::S32, 32, false},   {MmaElement::E4M3, MmaAccumulator::F32, 32, false},
    {MmaElement::E4M3, MmaAccumulator::F16, 32, false}, {MmaElement::E5M2, MmaAccumulator::F32, 32, false},
    {MmaElement::E5M2, MmaAccumulator::F16, 32, false},
};

// PTX ISA 9.7.16.2.1 and 9.7.16.3: of one block, 128 rows. TF32 is turned in another pattern of 128 bytes only
// (9.7.16.10.3).
constexpr WarpgroupMma blackwellFamilies[] = {
    {MmaElement::F16, MmaAccumulator::F32, 16, true},  {MmaElement::BF16, MmaAccumulator::F32, 16, true},
    {MmaElement::TF32, MmaAccumulator::F32, 8, false}, {MmaElement::S8, MmaAccumulator::S32, 32, true},
    {MmaElement::E4M3, MmaAccumulator::F32, 32, true}, {MmaElement::E5M2, MmaAccumulator::F32, 32, true},
};

// Lanes: CUDA C++ Programming Guide, arithmetic instructions' throughput by compute capability; shared memory serves 32
// lanes of 4 bytes, L1 16. Latencies: arXiv 2208.11174 and 2402.13499, as far as they measure them; the rest are those that
// ptxas' stall counts allow for. Integers are multiplied by the units of "multiply" where there are some, else by those of
// "float32".
constexpr Pipe ampere80Pipes[] = {{"float32", 64, 4, 1},  {"integer", 64, 4, 1},  {"uniform", 64, 10, 1},
                                  {"float64", 32, 8, 1},  {"special", 16, 20, 4}, {"shared", 32, 29, 8},
                                  {"shuffle", 32, 24, 8}, {"global", 16, 38, 8},  {"control", 64, 8, 1},
                                  {"matrix", 32, 33, 1}};
constexpr Pipe hopperPipes[] = {{"float32", 128, 4, 1}, {"multiply", 64, 4, 1}, {"integer", 64, 4, 1},
                                {"uniform", 64, 10, 1}, {"float64", 64, 8, 1},  {"special", 16, 20, 4},
                                {"shared", 32, 29, 8},  {"shuffle", 32, 24, 8}, {"global", 16, 41, 8},
                                {"control", 64, 8, 1},  {"matrix", 32, 33, 1}};

// As hopperPipes, and as measured on a B300 (github.com/ademeure/QuickRunCUDA: B300_PIPE_CATALOG.md for units,
// b300_clean/06_tensor_cores.md for tensor memory): 64 pairs of float32 a clock, through "float32"; extrema of three
// through "integer", also 64; a warp loads 53 to 57 bytes a clock from tensor memory and stores 85 to 115 there, 64 and 128
// here. A B200's special units have 16 lanes and its shared memory 128 bytes a clock (arXiv 2603.05451, section 2). The
// latencies of tensor memory are assumed.
constexpr Pipe blackwellPipes[] = {{"float32", 128, 4, 1},      {"multiply", 64, 4, 1}, {"integer", 64, 4, 1},
                                   {"uniform", 64, 10, 1},      {"float64", 64, 8, 1},  {"special", 16, 20, 4},
                                   {"shared", 32, 29, 8},       {"shuffle", 32, 24, 8}, {"global", 16, 41, 8},
                                   {"control", 64, 8, 1},       {"matrix", 32, 33, 1},  {"tensor load", 64, 24, 8},
                                   {"tensor store", 128, 24, 8}};

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
     .l2Bytes = 40 * mebibyte,
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
     .l2Bytes = 50 * mebibyte,
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
     .l2Bytes = 50 * mebibyte,
     .matrix = hopperRates,
     .source = "NVIDIA H200 Tensor Core GPU data sheet (2024); multiprocessors and clock as H100's"}};

constexpr MatrixRate a10Rates[] = {
    {"f16", 125'000}, {"bf16", 125'000}, {"tf32", 62'500}, {"s8", 250'000}, {"s4", 500'000}};
constexpr Gpu ga102Gpus[] = {
    {.key = "A10",
     .name = "A10",
     .multiprocessors = 72,
     .clock = 1.695,
     .memoryBandwidth = 600,
     .float32 = 31'200,
     .float64 = 488,
     .l2BytesPerClock = 3413,
     .l2Bytes = 6 * mebibyte,
     .matrix = a10Rates,
     .source =
         "NVIDIA A10 Tensor Core GPU data sheet (2021); float64 at 1/64 of float32 (CUDA C++ Programming Guide)"}};

// GeForce cards multiply f16 at half their rate where they accumulate f32.
constexpr MatrixRate rtx4090Rates[] = {{"f16", 165'200},  {"bf16", 165'200}, {"tf32", 82'600}, {"s8", 660'600},
                                       {"s4", 1'321'200}, {"e4m3", 330'300}, {"e5m2", 330'300}};
constexpr MatrixRate l40sRates[] = {{"f16", 362'050}, {"bf16", 362'050}, {"tf32", 183'000},
                                    {"s8", 733'000},  {"e4m3", 733'000}, {"e5m2", 733'000}};
constexpr Gpu ad102Gpus[] = {
    {.key = "RTX4090",
     .name = "GeForce RTX 4090",
     .multiprocessors = 128,
     .clock = 2.520,
     .memoryBandwidth = 1008,
     .float32 = 82'600,
     .float64 = 1'290,
     .l2BytesPerClock = 6068,
     .l2Bytes = 72 * mebibyte,
     .matrix = rtx4090Rates,
     .source = "NVIDIA Ada GPU architecture whitepaper (2023), appendix A"},
    {.key = "L40S",
     .name = "L40S",
     .multiprocessors = 142,
     .clock = 2.520,
     .memoryBandwidth = 864,
     .float32 = 91'600,
     .float64 = 1'430,
     .l2BytesPerClock = 6732,
     .l2Bytes = 96 * mebibyte,
     .matrix = l40sRates,
     .source = "NVIDIA L40S data sheet (2023); float64 at 1/64 of float32 (CUDA C++ Programming Guide)"}};

constexpr MatrixRate rtx5090Rates[] = {{"f16", 209'500}, {"bf16", 209'500}, {"tf32", 104'800},
                                       {"s8", 838'000},  {"e4m3", 419'000}, {"e5m2", 419'000}};
constexpr Gpu gb202Gpus[] = {{.key = "RTX5090",
                              .name = "GeForce RTX 5090",
                              .multiprocessors = 170,
                              .clock = 2.407,
                              .memoryBandwidth = 1792,
                              .float32 = 104'800,
                              .float64 = 1'640,
                              .l2BytesPerClock = 8059,
                              .l2Bytes = 96 * mebibyte,
                              .matrix = rtx5090Rates,
                              .source = "NVIDIA RTX Blackwell GPU architecture whitepaper (2025), appendix A"}};

constexpr MatrixRate b200Rates[] = {{"f16", 2'250'000}, {"bf16", 2'250'000}, {"tf32", 1'125'000}, {"f64", 37'000},
                                    {"s8", 4'500'000},  {"e4m3", 4'500'000}, {"e5m2", 4'500'000}};
constexpr Gpu gb100Gpus[] = {
    {.key = "B200",
     .name = "B200 SXM 180 GB",
     .multiprocessors = 148,
     .clock = 1.965,
     .memoryBandwidth = 8000,
     .float32 = 75'000,
     .float64 = 37'000,
     .l2BytesPerClock = 7016,
     .l2Bytes = 126 * mebibyte,
     .matrix = b200Rates,
     .source =
         "NVIDIA HGX B200 data sheet (2025), whose matrix rates are those of tcgen05; multiprocessors, clock and L2 "
         "cache as CUDA reports them"}};

constexpr Target table[] = {
    {.name = "sm_80",
     .ptxVersion = 80,
     .sharedBytesPerBlock = 163 * 1024,
     .sharedBytesPerProcessor = 164 * 1024,
     .maxWarpsPerProcessor = 64,
     .maxBlocksPerProcessor = 32,
     .bf16Arithmetic = false,
     .float8Conversions = false,
     .mma = ampereMma,
     .asyncCopyBytes = asyncSizes,
     .pipes = ampere80Pipes,
     .latencies = {.l2 = 262, .memory = 466, .barrier = 20},
     .gpus = ampereGpus},
    {.name = "sm_90a",
     .ptxVersion = 80,
     .sharedBytesPerBlock = 227 * 1024,
     .sharedBytesPerProcessor = 228 * 1024,
     .maxWarpsPerProcessor = 64,
     .maxBlocksPerProcessor = 32,
     .bf16Arithmetic = true,
     .float8Conversions = true,
     .mma = hopperMma,
     .matrixStores = true,
     .roundsTF32ToEven = true,
     .warpgroups = {.families = hopperFamilies},
     .asyncCopyBytes = asyncSizes,
     .boxCopies = {.mostRank = 5},
     .mostCluster = 8,
     .roleRegisters = 8,
     .leastRoleRegisters = 24,
     .pipes = hopperPipes,
     .latencies = {.l2 = 263, .memory = 479, .warpgroupMma = 28, .barrier = 20, .warpMmaShare = 0.62},
     .gpus = hopperGpus,
     .simulated = true},
    {.name = "sm_86",
     .ptxVersion = 80,
     .sharedBytesPerBlock = 99 * 1024,
     .sharedBytesPerProcessor = 100 * 1024,
     .maxWarpsPerProcessor = 48,
     .maxBlocksPerProcessor = 16,
     .bf16Arithmetic = false,
     .float8Conversions = false,
     .mma = ampereMma,
     .asyncCopyBytes = asyncSizes,
     .gpus = ga102Gpus},
    {.name = "sm_89",
     .ptxVersion = 80,
     .sharedBytesPerBlock = 99 * 1024,
     .sharedBytesPerProcessor = 100 * 1024,
     .maxWarpsPerProcessor = 48,
     .maxBlocksPerProcessor = 24,
     .bf16Arithmetic = false,
     .float8Conversions = true,
     .mma = adaMma,
     .asyncCopyBytes = asyncSizes,
     .gpus = ad102Gpus},
    {.name = "sm_100a",
     .ptxVersion = 86,
     .sharedBytesPerBlock = 227 * 1024,
     .sharedBytesPerProcessor = 228 * 1024,
     .maxWarpsPerProcessor = 64,
     .maxBlocksPerProcessor = 32,
     .bf16Arithmetic = true,
     .float8Conversions = true,
     .mma = hopperMma,
     .wholeFloat8Sums = true,
     .matrixStores = true,
     .roundsTF32ToEven = true,
     .float32Pairs = true,
     .extremaOfThree = true,
     .floatsOfWarp = true,
     .warpgroups = {.families = blackwellFamilies, .m = 128, .leastN = 16, .tensorColumns = 512},
     .asyncCopyBytes = asyncSizes,
     .boxCopies = {.mostRank = 5},
     .mostCluster = 8,
     .roleRegisters = 8,
     .leastRoleRegisters = 24,
     .pipes = blackwellPipes,
     // 8,192 operations of 16 bits a clock: arXiv 2603.05451; that a product takes N / 2 clocks, and 44 at the least, that
     // one unit serves all warps, and what is left to matrix instructions of warps: b300_clean/06_tensor_cores.md. Assumed:
     // the clocks from the end of products to who waits for them, and how many may be under way.
     .latencies = {.l2 = 263,
                   .memory = 479,
                   .warpgroupMma = 64,
                   .barrier = 20,
                   .warpMmaShare = 0.25,
                   .halfOperations = 8192,
                   .queuedProducts = 32,
                   .leastProduct = 44},
     .gpus = gb100Gpus},
    {.name = "sm_120",
     .ptxVersion = 87,
     .sharedBytesPerBlock = 99 * 1024,
     .sharedBytesPerProcessor = 100 * 1024,
     .maxWarpsPerProcessor = 48,
     .maxBlocksPerProcessor = 24,
     .bf16Arithmetic = true,
     .float8Conversions = true,
     .mma = adaMma,
     .wholeFloat8Sums = true,
     .roundsTF32ToEven = true,
     .asyncCopyBytes = asyncSizes,
     .gpus = gb202Gpus},
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
  for (const Target &target : table) {
    text.append(text.empty() ? "'" : ", '").append(target.name).append("' (");
    for (const Gpu &gpu : target.gpus)
      text.append(&gpu == target.gpus.begin() ? "" : ", ").append(gpu.key);
    text.append(")");
  }
  return text;
}

} // namespace weft::targets

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The description of targets and of their GPUs. This room is the only place that knows their numbers: the compiler, the
// runtime, the simulator, the tuner and its cost model read them here. It depends on nothing, and is C++17, as MLIR is.
//
//   Targets.cpp ──┬── compiler/Target      what passes ask (TargetInfo)
//                 ├── runtime/Driver       what a simulated device says of itself
//                 ├── runtime/Simulator    what a launch may ask for
//                 └── Json.cpp ── python/weft/targets.py ── tuning, cost model, profiles, command line
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace weft::targets {

/// Elements of a constant array.
template <typename T> struct List {
  const T *data = nullptr;
  size_t count = 0;

  constexpr List() = default;
  template <size_t N> constexpr List(const T (&array)[N]) : data(array), count(N) {}
  constexpr const T *begin() const { return data; }
  constexpr const T *end() const { return data + count; }
  constexpr size_t size() const { return count; }
  constexpr const T &front() const { return *data; }
};

/// What a matrix instruction multiplies.
enum class MmaElement : uint8_t { F16, BF16, TF32, S8, E4M3, E5M2, F64 };
/// What it accumulates in.
enum class MmaAccumulator : uint8_t { F16, F32, S32, F64 };

/// One matrix instruction of a warp: D = A · B + C with A [m, k], B [k, n], C and D [m, n] (PTX ISA 9.7.14.5).
struct MmaInstruction {
  MmaElement element;
  MmaAccumulator accumulator;
  std::array<int32_t, 3> shape; ///< m, n, k
};

/// A family of matrix instructions of a warpgroup, four warps (PTX ISA 9.7.15): D = A · B + D, asynchronous, with D
/// [64, n] in registers, A [64, k] in registers or shared memory, B [k, n] in shared memory.
struct WarpgroupMma {
  MmaElement element;
  MmaAccumulator accumulator;
  int32_t k;
  bool turned; ///< whether operands in shared memory may have their neighbours along M or N; along K they always may
};

/// What a target's matrix instructions of warpgroups have in common; `families` is empty where there are none.
struct WarpgroupUnit {
  List<WarpgroupMma> families;
  int32_t m = 64, leastN = 8, mostN = 256; ///< n is a multiple of `leastN`
  int32_t leastM = 64;                     ///< rows of the lowest instruction; `m` are those of the highest
  int warps = 4;                           ///< the first one's number is a multiple of this
  int tileAlignment = 1024;                ///< bytes: where a tile's pattern of swizzled lines begins anew
  int tensorColumns = 0;                   ///< of tensor memory, where sums lie, m lanes of 32 bits; 0: in registers
};

/// What copies of whole boxes between global and shared memory (PTX ISA 9.7.9.27) ask for. No copies where `mostRank`
/// is 0.
struct BoxCopies {
  int mostRank = 0;      ///< axes of a box
  int mostBox = 256;     ///< elements of a box along an axis
  int strideBytes = 16;  ///< what bases and strides in global memory are multiples of
  int sharedBytes = 128; ///< what boxes in shared memory begin at multiples of
};

/// One kind of a multiprocessor's execution units, for the loop model: an instruction of a warp keeps it for
/// warpSize / lanes clocks for each 4 bytes of a lane, and results that a scoreboard tells of are there after `latency`.
struct Pipe {
  std::string_view name; ///< as python/weft/cycles/opcodes.py sorts mnemonics
  int lanes;             ///< of the whole multiprocessor
  int latency;           ///< clocks
  int waiting;           ///< instructions that a scheduler's warps may have waiting for it
};

/// Clocks that the loop model waits for what no scoreboard of a pipe tells.
struct Latencies {
  int l2 = 0;              ///< a load that the L2 cache has
  int memory = 0;          ///< a load from device memory
  int warpgroupMma = 0;    ///< from the end of a warpgroup's last matrix instruction to the release of who waits
  int barrier = 0;         ///< from the last arrival at a barrier to the next instruction
  double warpMmaShare = 1; ///< of the matrix units' peak that matrix instructions of one warp reach
  /// Multiplies and adds of products of 16 bits that a multiprocessor makes a clock; 0 where the rate of a second and
  /// the clock of a data sheet give them. Other types are to them as their rates are.
  int halfOperations = 0;
  int queuedProducts = 1; ///< products with sums in tensor memory that may be under way on a multiprocessor
  int leastProduct = 0;   ///< what one such product takes at the least
};

/// Multiplies and adds of matrix instructions whose factors are of `element` ("f16", "tf32", "e4m3"): 1e9 a second, a
/// multiply-add counting two, without structured sparsity, accumulating as the compiler does (f32, s32).
struct MatrixRate {
  std::string_view element;
  double rate;
};

/// What one GPU can do at most, at boost clock: rates in units of 1e9 a second.
struct Gpu {
  std::string_view key;  ///< "A100", by which users name it
  std::string_view name; ///< "A100 SXM4 80 GB"
  int multiprocessors;
  double clock;           ///< GHz
  double memoryBandwidth; ///< GB/s of device memory
  double float32;         ///< GFLOP/s, a fused multiply-add counting two
  double float64;
  int l2BytesPerClock; ///< what the L2 cache gives to all multiprocessors
  int64_t l2Bytes;     ///< what it holds
  List<MatrixRate> matrix;
  std::string_view source; ///< where the numbers are published
};

/// A machine that kernels are compiled for. Instances are constants: see `find`. What has a default here is the same on
/// every target so far.
struct Target {
  std::string_view name;       ///< "sm_80", as in the module attribute `warp.target` and in PTX's .target
  int ptxVersion;              ///< 80 for PTX ISA 8.0: what PTX for the target says, the least that LLVM takes for it
  int64_t sharedBytesPerBlock; ///< dynamic shared memory one block may ask for
  int64_t sharedBytesPerProcessor; ///< shared memory of a multiprocessor, for all blocks that are resident on it
  int maxWarpsPerProcessor;        ///< warps resident on a multiprocessor
  int maxBlocksPerProcessor;       ///< blocks resident on a multiprocessor
  bool bf16Arithmetic;             ///< whether add, sub and mul exist on bf16 (PTX ISA 9.7.4); fma does on every target
  bool float8Conversions;          ///< whether cvt takes pairs of e4m3 and e5m2 to pairs of f16, and f32 to them
  List<MmaInstruction> mma;
  bool wholeFloat8Sums = false;       ///< whether products of 8-bit floats are summed in f32, not in about 14 bits
  bool matrixStores = false;          ///< stmatrix (PTX ISA 9.7.14.5.16)
  bool roundsTF32ToEven = false;      ///< cvt.rn to tf32 (PTX ISA 9.7.9.21), one instruction where cvt.rna is three
  bool float32Pairs = false;          ///< add, sub, mul and fma of two f32 at once (PTX ISA 9.7.3)
  bool extremaOfThree = false;        ///< the least or greatest of three f32 in one instruction (PTX ISA 9.7.3)
  bool floatsOfWarp = false;          ///< the least or greatest f32 of a warp in one instruction (PTX ISA 9.7.13)
  WarpgroupUnit warpgroups{};         ///< matrix instructions of four warps
  List<int> asyncCopyBytes;           ///< sizes of cp.async, ascending; empty where there is none
  BoxCopies boxCopies{};              ///< copies of whole boxes, which arrive at an mbarrier
  int mostCluster = 1;                ///< blocks of a cluster that every GPU of the target runs; 1: no clusters
  int roleRegisters = 0;              ///< warpgroups may trade registers in multiples of this; 0: they may not
  int leastRoleRegisters = 0;         ///< registers that a thread of one keeps at the least
  List<Pipe> pipes{};                 ///< for the loop model; empty where it does not know the target
  Latencies latencies{};              ///< likewise
  List<Gpu> gpus;                     ///< those of the target; the rates of the first stand for it
  bool simulated = false;             ///< whether the device "simulator" is one of these; so is exactly one target
  int64_t reservedSharedBytes = 1024; ///< what the system takes of a multiprocessor's shared memory for each block
  int warpSize = 32;                  ///< lanes of a warp
  int maxWarps = 32;                  ///< warps of a block
  int registersPerThread = 255;       ///< most registers ptxas gives one thread
  int registersPerProcessor = 65536;  ///< 32-bit registers of a multiprocessor
  int registerGranule = 256;          ///< registers are given to a warp in multiples of this
  int schedulers = 4;                 ///< warp instructions that a multiprocessor issues a clock
  int specialLanes = 16;              ///< lanes of a multiprocessor's special-function units
  int vectorBytes = 16;               ///< widest global or shared access of a lane
  int sectorBytes = 32;               ///< unit of global memory traffic
  int bankCount = 32, bankBytes = 4;  ///< shared memory: banks, and the width of one
  int namedBarriers = 16;             ///< barriers of a block, that of all its threads included

  /// That of its name, as `capabilityOf` gives it.
  int capability() const;
  /// Threads of a block.
  int maxThreads() const { return maxWarps * warpSize; }
};

/// 80 for "sm_80", 90 for "sm_90a", 120 for "sm_120": ten times major plus minor. 0 where no digits follow "sm_".
int capabilityOf(std::string_view name);
/// Every target. The first is the one compiled for where nothing says which.
List<Target> all();
/// The target called `name`, or nullptr.
const Target *find(std::string_view name);
/// The target whose limits a device of that compute capability (89 for 8.9) has: its own; else those of the nearest
/// older one; else of the oldest.
const Target &nearest(int capability);
/// The target that the device "simulator" is one of.
const Target &simulated();
/// The names of all, as text of a message: "'sm_80', 'sm_90a'".
std::string names();
/// All targets with their GPUs as JSON: a list of objects whose keys are the fields' names in snake_case.
std::string json();

} // namespace weft::targets

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The table of targets as JSON, for Python and whoever else is not C++. Names hold no character that JSON escapes.
#include "targets/Target.h"

#include <charconv>

namespace weft::targets {
namespace {

/// One object, written key by key.
class Object {
public:
  Object &add(std::string_view key, std::string_view text) { return raw(key, "\"" + std::string(text) + "\""); }
  Object &add(std::string_view key, const char *text) { return add(key, std::string_view(text)); }
  Object &add(std::string_view key, bool value) { return raw(key, value ? "true" : "false"); }
  Object &add(std::string_view key, int value) { return raw(key, std::to_string(value)); }
  Object &add(std::string_view key, int64_t value) { return raw(key, std::to_string(value)); }
  Object &add(std::string_view key, double value) {
    char digits[32];
    return raw(key, std::string_view(digits, std::to_chars(digits, digits + sizeof digits, value).ptr - digits));
  }
  Object &raw(std::string_view key, std::string_view value) {
    text += (text.empty() ? "\"" : ", \"") + std::string(key) + "\": " + std::string(value);
    return *this;
  }
  std::string str() const { return "{" + text + "}"; }

private:
  std::string text;
};

/// "[...]" of what `describe` gives for each.
template <typename T, typename Describe> std::string listOf(List<T> list, Describe describe) {
  std::string text;
  for (const T &each : list)
    text += (text.empty() ? "" : ", ") + describe(each);
  return "[" + text + "]";
}

constexpr const char *elements[] = {"f16", "bf16", "tf32", "s8", "e4m3", "e5m2", "f64"};
constexpr const char *accumulators[] = {"f16", "f32", "s32", "f64"};

std::string describe(const MmaInstruction &mma) {
  auto [m, n, k] = mma.shape;
  return Object()
      .add("element", elements[static_cast<size_t>(mma.element)])
      .add("accumulator", accumulators[static_cast<size_t>(mma.accumulator)])
      .raw("shape", "[" + std::to_string(m) + ", " + std::to_string(n) + ", " + std::to_string(k) + "]")
      .str();
}

/// The largest shape of each family.
std::string describe(const WarpgroupUnit &unit) {
  return listOf(unit.families, [&](const WarpgroupMma &each) {
    return Object()
        .add("element", elements[static_cast<size_t>(each.element)])
        .add("accumulator", accumulators[static_cast<size_t>(each.accumulator)])
        .raw("shape",
             "[" + std::to_string(unit.m) + ", " + std::to_string(unit.mostN) + ", " + std::to_string(each.k) + "]")
        .str();
  });
}

std::string describe(const Pipe &pipe) {
  return Object()
      .add("name", pipe.name)
      .add("lanes", pipe.lanes)
      .add("latency", pipe.latency)
      .add("waiting", pipe.waiting)
      .str();
}

std::string describe(const Latencies &latencies) {
  return Object()
      .add("l2", latencies.l2)
      .add("memory", latencies.memory)
      .add("warpgroup_mma", latencies.warpgroupMma)
      .add("barrier", latencies.barrier)
      .add("warp_mma_share", latencies.warpMmaShare)
      .add("half_operations", latencies.halfOperations)
      .add("queued_products", latencies.queuedProducts)
      .add("least_product", latencies.leastProduct)
      .str();
}

std::string describe(const Gpu &gpu) {
  Object rates;
  for (const MatrixRate &each : gpu.matrix)
    rates.add(each.element, each.rate);
  return Object()
      .add("key", gpu.key)
      .add("name", gpu.name)
      .add("multiprocessors", gpu.multiprocessors)
      .add("clock", gpu.clock)
      .add("memory_bandwidth", gpu.memoryBandwidth)
      .add("float32", gpu.float32)
      .add("float64", gpu.float64)
      .add("l2_bytes_per_clock", gpu.l2BytesPerClock)
      .add("l2_bytes", gpu.l2Bytes)
      .raw("matrix", rates.str())
      .add("source", gpu.source)
      .str();
}

std::string describe(const Target &target) {
  return Object()
      .add("name", target.name)
      .add("capability", target.capability())
      .add("ptx_version", target.ptxVersion)
      .add("warp_size", target.warpSize)
      .add("max_warps", target.maxWarps)
      .add("registers_per_thread", target.registersPerThread)
      .add("registers_per_processor", target.registersPerProcessor)
      .add("register_granule", target.registerGranule)
      .add("shared_bytes_per_block", target.sharedBytesPerBlock)
      .add("shared_bytes_per_processor", target.sharedBytesPerProcessor)
      .add("reserved_shared_bytes", target.reservedSharedBytes)
      .add("max_warps_per_processor", target.maxWarpsPerProcessor)
      .add("max_blocks_per_processor", target.maxBlocksPerProcessor)
      .add("schedulers", target.schedulers)
      .add("special_lanes", target.specialLanes)
      .add("vector_bytes", target.vectorBytes)
      .add("named_barriers", target.namedBarriers)
      .add("box_axes", target.boxCopies.mostRank)
      .add("whole_float8_sums", target.wholeFloat8Sums)
      .add("matrix_stores", target.matrixStores)
      .add("rounds_tf32_to_even", target.roundsTF32ToEven)
      .add("most_cluster", target.mostCluster)
      .add("role_registers", target.roleRegisters)
      .add("least_role_registers", target.leastRoleRegisters)
      .raw("mma", listOf(target.mma, [](const MmaInstruction &each) { return describe(each); }))
      .raw("warpgroup_mma", describe(target.warpgroups))
      .add("tensor_columns", target.warpgroups.tensorColumns)
      .raw("pipes", listOf(target.pipes, [](const Pipe &each) { return describe(each); }))
      .raw("latencies", describe(target.latencies))
      .raw("gpus", listOf(target.gpus, [](const Gpu &each) { return describe(each); }))
      .str();
}

} // namespace

std::string json() {
  return listOf(all(), [](const Target &each) { return describe(each); });
}

} // namespace weft::targets

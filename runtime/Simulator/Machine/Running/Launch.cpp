// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A launch: checks of its shape, module variables, worker threads, and the report.
#include "runtime/Simulator/Machine/Running/Interpreter.h"
#include "runtime/Simulator/Machine/Running/Spinning.h"
#include "runtime/Support/Format.h"
#include "targets/Target.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <thread>

namespace weft::simulator {
namespace machine {
namespace {

/// Blocks that a worker holds at once when they may wait for each other.
constexpr size_t residentBlocks = 128;
/// Turns of a block before others get one.
constexpr uint64_t turnsPerVisit = 64;
/// The first target with clusters.
constexpr int clusterCapability = 90;

/// Gives the module's variables memory and their initial values.
Result<std::vector<Address>> makeVariables(const Program &program, Memory &memory) {
  std::vector<Address> addresses;
  for (const ProgramVariable &variable : program.variables) {
    Result<Address> address = memory.allocate(std::max<uint64_t>(variable.size, 1), variable.name);
    if (!address)
      return std::unexpected(address.error());
    addresses.push_back(*address);
  }
  for (size_t i = 0; i < program.variables.size(); ++i) {
    const ptx::Variable &declaration = *program.variables[i].declaration;
    std::vector<std::byte> bytes(std::max<uint64_t>(program.variables[i].size, 1));
    uint64_t element = std::max(1u, ptx::typeBits(declaration.type) / 8);
    for (size_t k = 0; k < declaration.initial.size() && (k + 1) * element <= bytes.size(); ++k) {
      const ptx::InitialValue &initial = declaration.initial[k];
      uint64_t value = initial.bits;
      if (!initial.symbol.empty()) {
        auto found = std::find_if(program.variables.begin(), program.variables.end(),
                                  [&](const ProgramVariable &other) { return other.name == initial.symbol; });
        const ptx::Function *function = program.syntax.function(initial.symbol);
        if (found == program.variables.end() && !function)
          return failure(StatusCode::Unsupported,
                         format("the initialiser of '{}' names '{}', which is no variable of the module",
                                declaration.name, initial.symbol));
        value += found == program.variables.end() ? functionAddress(program.syntax, *function)
                                                  : addresses[size_t(found - program.variables.begin())];
        if (initial.byteOfAddress)
          value = value >> initial.maskShift & 0xff;
      }
      std::memcpy(bytes.data() + k * element, &value, std::min<uint64_t>(element, 8));
    }
    if (Status written = memory.write(addresses[i], bytes); !written)
      return std::unexpected(written.error());
  }
  return addresses;
}

Status checkCluster(const EntryInfo &info, const LaunchShape &shape, const targets::Target &target) {
  auto refuse = [](std::string message) { return failure(StatusCode::InvalidArgument, std::move(message)); };
  const Dim3 &cluster = shape.cluster, &grid = shape.grid;
  auto name = [](const Dim3 &each) { return format("{} x {} x {}", each.x, each.y, each.z); };
  if (info.requiredCluster.x && !(info.requiredCluster == cluster))
    return refuse(format("the kernel '{}' requires clusters of {} blocks, but got {}", info.name,
                         name(info.requiredCluster), name(cluster)));
  if (cluster.volume() == 1)
    return {};
  if (target.capability() < clusterCapability)
    return failure(StatusCode::Unsupported,
                   format("expected a target with clusters, sm_90 or later, but got {}", target.name));
  if (cluster.volume() == 0 || cluster.volume() > mostRanks)
    return refuse(format("expected a cluster of 1 to {} blocks, but got {}", mostRanks, name(cluster)));
  if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    return refuse(format("expected a grid of whole clusters of {} blocks, but got {}", name(cluster), name(grid)));
  if (info.maximumRanks && cluster.volume() > info.maximumRanks)
    return refuse(format("the kernel '{}' takes clusters of at most {} blocks, but got {}", info.name,
                         info.maximumRanks, name(cluster)));
  return {};
}

Status checkShape(const Kernel &kernel, const LaunchShape &shape, size_t parameterBytes,
                  const targets::Target &target) {
  const uint32_t maximumThreads = uint32_t(target.maxThreads());
  uint64_t threads = shape.block.volume();
  auto refuse = [](std::string message) { return failure(StatusCode::InvalidArgument, std::move(message)); };
  const EntryInfo &info = kernel.info;
  if (threads == 0 || threads > maximumThreads || shape.block.z > 64)
    return refuse(format("expected a block of 1 to {} threads, but got {} x {} x {}", maximumThreads, shape.block.x,
                         shape.block.y, shape.block.z));
  if (shape.grid.volume() == 0 || shape.grid.x > 0x7fffffff || shape.grid.y > 65535 || shape.grid.z > 65535)
    return refuse(
        format("expected a grid of at most 2147483647 x 65535 x 65535 blocks and at least one, but got {} x {} x {}",
               shape.grid.x, shape.grid.y, shape.grid.z));
  if (info.requiredBlock.x && !(info.requiredBlock == shape.block))
    return refuse(format("the kernel '{}' requires blocks of {} x {} x {} threads, but got {} x {} x {}", info.name,
                         info.requiredBlock.x, info.requiredBlock.y, info.requiredBlock.z, shape.block.x, shape.block.y,
                         shape.block.z));
  if (info.maximumBlock.x && threads > info.maximumBlock.volume())
    return refuse(format("the kernel '{}' takes at most {} threads per block, but got {}", info.name,
                         info.maximumBlock.volume(), threads));
  if (Status good = checkCluster(info, shape, target); !good)
    return good;
  uint64_t shared = uint64_t(kernel.staticShared) + shape.sharedBytes;
  if (shared > uint64_t(target.sharedBytesPerBlock))
    return refuse(format("expected at most {} bytes of shared memory, but got {} ({} of them static)",
                         target.sharedBytesPerBlock, shared, kernel.staticShared));
  if (parameterBytes < info.parameterBytes)
    return refuse(format("the kernel '{}' takes {} bytes of parameters, but got {}", info.name, info.parameterBytes,
                         parameterBytes));
  return {};
}

/// The kernel of that name. NotFound names those there are; a kernel with an instruction that is not supported is
/// refused.
Result<const Kernel *> findKernel(const Program &program, std::string_view entry) {
  auto found = program.kernels.find(entry);
  if (found == program.kernels.end()) {
    std::string names;
    for (const EntryInfo &info : program.entries)
      names += (names.empty() ? "'" : ", '") + info.name + "'";
    return failure(StatusCode::NotFound,
                   format("no entry '{}' in {}: expected {}", entry, program.name, names.empty() ? "one" : names));
  }
  if (found->second.refusal)
    return failure(found->second.refusal->code, format("{}: {}", program.name, found->second.refusal->message));
  return &found->second;
}

/// How many blocks of the grid a GPU may hold at once.
uint64_t heldAtOnce(const Grid &grid) {
  const targets::Target &target = *grid.options.target;
  const uint64_t byWarps = uint64_t(target.maxWarpsPerProcessor) / grid.warpsPerBlock;
  const uint64_t byShared = uint64_t(target.sharedBytesPerProcessor / (grid.sharedBytes + target.reservedSharedBytes));
  return uint64_t(target.gpus.front().multiprocessors) *
         std::max<uint64_t>(1, std::min({byWarps, byShared, uint64_t(target.maxBlocksPerProcessor)}));
}

/// Which clusters of a grid run.
struct Selection {
  uint64_t count, volume;
  uint64_t step = 1; ///< without a common divisor with the volume: no block comes twice, and every axis is gone through

  explicit Selection(const Grid &grid) : count(grid.shape.grid.volume() / grid.shape.cluster.volume()), volume(count) {
    const uint64_t ranks = grid.shape.cluster.volume(), sample = (grid.options.sample + ranks - 1) / ranks;
    if (!sample || sample >= volume)
      return;
    count = sample;
    step = std::max<uint64_t>(1, uint64_t(double(volume) * 0.6180339887));
    while (std::gcd(step, volume) != 1)
      ++step;
  }
  /// The number of the cluster that runs in place `index`.
  uint64_t operator[](uint64_t index) const { return index * step % volume; }
};

/// Whether all blocks of a cluster that have not ended wait.
bool isIdle(const Cluster &cluster) {
  return std::all_of(cluster.blocks.begin(), cluster.blocks.end(),
                     [](const auto &block) { return !block->liveWarps || block->idle; });
}

/// The block of clusters that spin for ever which says most of it: one that waits at an mbarrier, or that runs.
Block &spinningBlock(const std::vector<std::unique_ptr<Cluster>> &resident) {
  Block *chosen = resident.front()->blocks.front().get();
  for (const auto &block : resident.front()->blocks) {
    auto waits = [](const Warp &warp) { return warp.live && warp.awaited != ~0u; };
    if (std::any_of(block->warps.begin(), block->warps.end(), waits))
      return *block;
    if (!chosen->liveWarps)
      chosen = block.get();
  }
  return *chosen;
}

/// Runs clusters until none is left. One that does not end in its turns, since it waits for others, stays resident
/// while further ones start.
void work(Worker &worker, std::atomic<uint64_t> &next, std::atomic<bool> &stop) {
  Grid &grid = *worker.grid;
  const Selection selected(grid);
  const uint64_t total = selected.count;
  std::vector<std::unique_ptr<Cluster>> resident, idle;
  const size_t ranks = grid.shape.cluster.volume();
  size_t turn = 0, room = std::max<size_t>(1, residentBlocks / ranks);
  struct Leave {
    Grid &grid;
    ~Leave() { --grid.working; }
  } leave{grid};
  SpinWatch watch(grid);
  while (!stop.load(std::memory_order_relaxed)) {
    if (resident.size() < room && turn >= resident.size()) {
      uint64_t index = next.load();
      while (index < total && !next.compare_exchange_weak(index, index + 1)) {
      }
      if (index < total) {
        if (idle.empty())
          idle.push_back(std::make_unique<Cluster>());
        resident.push_back(std::move(idle.back()));
        idle.pop_back();
        startCluster(*resident.back(), worker, selected[index]);
        turn = resident.size() - 1;
      }
    }
    if (resident.empty())
      return;
    turn = turn < resident.size() ? turn : 0;
    const BlockState state = runCluster(*resident[turn], turnsPerVisit);
    const bool aborted = std::any_of(resident[turn]->blocks.begin(), resident[turn]->blocks.end(),
                                     [](const auto &block) { return block->aborted; });
    if (aborted) {
      stop = true;
      return;
    }
    if (state == BlockState::Running) {
      const bool waiting = next.load() < total;
      if (++turn < resident.size())
        continue;
      // All may wait for blocks that a GPU would hold besides them.
      if (waiting && resident.size() >= room && room * ranks * grid.workers < heldAtOnce(grid) &&
          std::all_of(resident.begin(), resident.end(), [](const auto &cluster) { return isIdle(*cluster); }))
        room *= 2;
      if (watch.visited(resident, waiting && resident.size() < room)) {
        reportSpinning(spinningBlock(resident));
        stop = true;
      }
      continue;
    }
    idle.push_back(std::move(resident[turn]));
    resident.erase(resident.begin() + long(turn));
  }
}

void countClasses(const Kernel &kernel, Worker &worker) {
  for (size_t i = 0; i < kernel.code.size(); ++i) {
    const Record &record = kernel.code[i];
    if (record.hidden)
      continue;
    worker.counters.warpInstructions += worker.executed[i];
    worker.counters.threadInstructions += worker.executedThreads[i];
    worker.counters.warpInstructionsByClass[size_t(record.cls)] += worker.executed[i];
  }
}

/// What all workers touched together.
std::vector<TouchedAllocation> touchedOf(const Grid &grid, const std::vector<Worker> &workers) {
  std::vector<TouchedAllocation> found;
  const std::vector<Allocation> &allocations = grid.view->allocations();
  for (size_t i = 0; i < allocations.size(); ++i) {
    TouchedAllocation one{TouchedSectors::count(allocations[i])};
    for (const Worker &worker : workers) {
      one.read += worker.touched[i].read;
      one.written += worker.touched[i].written;
    }
    if (one.read || one.written)
      found.push_back(one);
  }
  return found;
}

Report collect(const Grid &grid, std::vector<Worker> &workers) {
  const Kernel &kernel = *grid.kernel;
  Report report;
  std::vector<uint64_t> executed(kernel.code.size()), threads(kernel.code.size());
  std::vector<RecordCost> costs(kernel.code.size());
  std::map<std::pair<uint32_t, uint32_t>, FindingLog::Entry> merged;
  std::map<uint64_t, std::string> output;
  for (Worker &worker : workers) {
    countClasses(kernel, worker);
    report.counters.add(worker.counters);
    for (size_t i = 0; i < executed.size(); ++i) {
      executed[i] += worker.executed[i];
      threads[i] += worker.executedThreads[i];
      costs[i].add(worker.costs[i]);
    }
    for (auto &[key, entry] : worker.findings.entries) {
      auto [at, fresh] = merged.try_emplace(key, entry);
      if (fresh)
        continue;
      uint64_t count = at->second.finding.count + entry.finding.count;
      if (entry.block < at->second.block)
        at->second = entry;
      at->second.finding.count = count;
    }
    output.merge(worker.output);
  }
  std::vector<FindingLog::Entry> entries;
  for (auto &[key, entry] : merged)
    entries.push_back(std::move(entry));
  std::sort(entries.begin(), entries.end(), [](const auto &a, const auto &b) {
    return std::tie(a.block, a.pc, a.finding.kind) < std::tie(b.block, b.pc, b.finding.kind);
  });
  for (auto &entry : entries) {
    auto &list = entry.advisory ? report.advisories : report.findings;
    if (list.size() < grid.options.maxFindings)
      list.push_back(std::move(entry.finding));
  }
  report.touched = touchedOf(grid, workers);
  for (auto &[block, text] : output)
    report.output += text;
  for (size_t i = 0; i < kernel.code.size(); ++i) {
    if (kernel.code[i].hidden || !executed[i])
      continue;
    const Site &site = kernel.sites[i];
    const RecordCost &cost = costs[i];
    report.profile.push_back({site.line, site.source, site.instruction->spelling(), kernel.code[i].cls, executed[i],
                              threads[i], cost.sectorsRead, cost.sectorsWritten, cost.sectorsIdeal, cost.bytes,
                              cost.wavefronts, cost.wavefrontsIdeal, cost.macs, cost.waits, cost.divergent});
  }
  return report;
}

/// Whether an access of one block may be ordered before another block's: by what both do strongly, by fences between, or
/// by a cluster's barriers.
bool ordersBlocks(const Grid &grid) {
  constexpr uint8_t orders = uint8_t(~(orderUniform | orderCopy));
  return grid.shape.cluster.volume() > 1 ||
         std::ranges::any_of(grid.kernel->code, [](const Record &record) { return record.order & orders; });
}

Report runOnce(Grid &grid) {
  grid.instructionsLeft = int64_t(std::min<uint64_t>(grid.options.maximumInstructions, uint64_t{1} << 62));
  const uint64_t clusters = Selection(grid).count, blocks = clusters * grid.shape.cluster.volume();
  grid.order.clear();
  grid.proxyFences.clear();
  std::vector<uint64_t> sizes;
  if (grid.options.checks.races && blocks <= GlobalShadow::maximumBlocks)
    for (const Allocation &allocation : grid.view->allocations())
      sizes.push_back(allocation.live ? allocation.size + 8 : 0);
  grid.globalShadow.reset(sizes, grid.kernel->globalGranule);
  grid.moreReaders.clear();
  grid.ordersBlocks = ordersBlocks(grid);
  if (grid.options.countsTouched)
    grid.touchedSectors.reset(grid.view);
  size_t count = grid.options.threads ? grid.options.threads : std::max(1u, std::thread::hardware_concurrency());
  count = size_t(std::min<uint64_t>(count, clusters));
  std::vector<Worker> workers(count);
  for (Worker &worker : workers) {
    worker.grid = &grid;
    worker.executed.assign(grid.kernel->code.size(), 0);
    worker.executedThreads.assign(grid.kernel->code.size(), 0);
    worker.costs.assign(grid.kernel->code.size(), {});
    worker.raced.assign(grid.kernel->code.size(), 0);
    worker.lastAllocation.assign(grid.kernel->code.size(), nullptr);
    worker.touched.assign(grid.view->allocations().size(), {});
    worker.sharedShapes.resize(grid.kernel->code.size());
    worker.globalShapes.resize(grid.kernel->code.size());
  }
  std::atomic<uint64_t> next{0};
  std::atomic<bool> stop{false};
  grid.working = grid.workers = uint32_t(count);
  std::vector<std::thread> threads;
  for (size_t i = 1; i < count; ++i)
    threads.emplace_back([&, i] { work(workers[i], next, stop); });
  work(workers[0], next, stop);
  for (std::thread &thread : threads)
    thread.join();
  return collect(grid, workers);
}

/// The bytes that kernels may write, to go back to and to compare.
class Snapshot {
public:
  explicit Snapshot(const Grid &grid) : heap_(grid.heap.get()) {
    if (heap_)
      blocks_ = heap_->state();
    const MemoryView &view = *grid.view;
    for (const Allocation &allocation : view.allocations())
      if (allocation.live && !allocation.constant && allocation.host) {
        Part part{&allocation, {allocation.host, allocation.host + allocation.size}, {}};
        if (allocation.written)
          part.written.assign(allocation.written->data(), allocation.written->data() + allocation.size);
        parts_.push_back(std::move(part));
      }
  }
  void restore() const {
    for (const Part &part : parts_) {
      std::memcpy(part.allocation->host, part.bytes.data(), part.bytes.size());
      if (part.allocation->written)
        std::copy(part.written.begin(), part.written.end(), part.allocation->written->data());
    }
    if (heap_)
      heap_->restore(blocks_);
  }
  /// Where memory differs from the snapshot, as "byte 12 of 'x'"; empty where it does not.
  std::string difference() const {
    for (const Part &part : parts_) {
      if (heap_ && heap_->contains(part.allocation->base)) // which thread gets which of its blocks is nobody's result
        continue;
      auto [mine, now] = std::mismatch(part.bytes.begin(), part.bytes.end(), part.allocation->host);
      if (mine != part.bytes.end())
        return format("byte {} of '{}'", mine - part.bytes.begin(), part.allocation->name);
    }
    return {};
  }

private:
  struct Part {
    const Allocation *allocation;
    std::vector<std::byte> bytes;
    std::vector<uint8_t> written;
  };
  std::vector<Part> parts_;
  DeviceHeap *heap_;
  DeviceHeap::State blocks_;
};

/// Memory for the barrier of a whole grid, as the driver gives it to a cooperative launch: its size, and zeros.
class Workspace {
public:
  explicit Workspace(Memory &memory) : memory_(memory) {}
  ~Workspace() {
    if (base_)
      static_cast<void>(memory_.free(base_));
  }
  Workspace(const Workspace &) = delete;
  Workspace &operator=(const Workspace &) = delete;
  Result<Address> make() {
    constexpr uint32_t bytes = 64;
    Result<Address> base = memory_.allocate(bytes, "grid workspace");
    if (!base)
      return base;
    base_ = *base;
    std::array<uint32_t, bytes / 4> words{bytes};
    if (Status written = memory_.write(base_, std::as_bytes(std::span(words))); !written)
      return std::unexpected(written.error());
    return base_;
  }

private:
  Memory &memory_;
  Address base_ = 0;
};

/// Runs the first schedule, whose results stay, and the others, which must agree with it.
Report runSchedules(Grid &grid) {
  if (grid.options.schedules <= 1)
    return runOnce(grid);
  Snapshot before(grid);
  Report first = runOnce(grid);
  Snapshot after(grid);
  uint64_t seed = grid.options.seed;
  for (uint32_t schedule = 1; schedule < grid.options.schedules && first.findings.empty(); ++schedule) {
    before.restore();
    grid.options.seed = seed * 0x9E3779B97F4A7C15u + schedule;
    Report other = runOnce(grid);
    first.findings = std::move(other.findings);
    std::string where = after.difference();
    if (where.empty() || !first.findings.empty())
      continue;
    Finding finding{};
    finding.kind = FindingKind::GlobalRace;
    finding.kernel = grid.kernel->info.name;
    finding.message =
        format("kernel '{}' leaves another value in {} when warps and blocks take turns in another order (seed {})",
               finding.kernel, where, grid.options.seed);
    first.findings.push_back(std::move(finding));
  }
  after.restore();
  return first;
}

} // namespace
} // namespace machine

Result<Report> launch(const Module &module, std::string_view entry, Memory &memory, const LaunchShape &asked,
                      std::span<const std::byte> parameters, const LaunchOptions &options) {
  using namespace machine;
  const Program &program = module.program();
  Result<const Kernel *> found = findKernel(program, entry);
  if (!found)
    return std::unexpected(found.error());
  const Kernel &kernel = **found;
  const targets::Target &target = options.target ? *options.target : limitsOf(module);
  LaunchShape shape = asked;
  if (kernel.info.requiredCluster.x && shape.cluster == Dim3{})
    shape.cluster = kernel.info.requiredCluster;
  if (Status good = checkShape(kernel, shape, parameters.size(), target); !good)
    return std::unexpected(good.error());
  Result<std::vector<Address>> addresses =
      memory.variablesOf(program.key, [&] { return makeVariables(program, memory); });
  if (!addresses)
    return std::unexpected(addresses.error());

  Grid grid;
  grid.program = &program;
  grid.kernel = &kernel;
  grid.shape = shape;
  grid.options = options;
  grid.options.target = &target;
  grid.memory = &memory;
  if (kernel.usesHeap) {
    // What kernels leave in the heap stays until the memory goes.
    Result<std::shared_ptr<DeviceHeap>> heap = memory.shared<DeviceHeap>([&] {
      return memory.allocate(DeviceHeap::bytes, "device heap", false).transform([](Address base) {
        return std::make_shared<DeviceHeap>(base);
      });
    });
    if (!heap)
      return std::unexpected(heap.error());
    grid.heap = *heap;
  }
  Workspace workspace(memory);
  if (kernel.usesWorkspace) {
    Result<Address> made = workspace.make();
    if (!made)
      return std::unexpected(made.error());
    grid.workspace = *made;
  }
  grid.view = memory.view();
  grid.parameters.assign(parameters.begin(), parameters.end());
  grid.constants = kernel.constants;
  for (const Relocation &relocation : kernel.relocations) {
    uint64_t value = (*addresses)[relocation.variable] + uint64_t(relocation.addend);
    for (unsigned lane = 0; lane < laneCount; ++lane)
      std::memcpy(grid.constants.data() + relocation.offset + 8 * lane, &value, 8);
  }
  grid.sharedBytes = kernel.staticShared + shape.sharedBytes;
  if (kernel.usesReserved)
    grid.sharedBytes = (grid.sharedBytes + 15) / 16 * 16 + uint32_t(target.reservedSharedBytes);
  grid.threadsPerBlock = uint32_t(shape.block.volume());
  grid.warpsPerBlock = (grid.threadsPerBlock + laneCount - 1) / laneCount;
  return runSchedules(grid);
}

} // namespace weft::simulator

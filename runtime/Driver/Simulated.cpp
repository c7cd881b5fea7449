// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The simulator as a `Device`. Every operation runs to its end before it returns, so streams and events need no queue.
#include "runtime/Driver/Simulated.h"

#include "runtime/Simulator/Interface/LaunchMaps.h"
#include "runtime/Simulator/Interface/Simulator.h"

#include "runtime/Support/Format.h"
#include "targets/Target.h"
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <thread>

namespace weft::driver {
namespace {

/// What modules, kernels and their device share.
struct Machine {
  const targets::Target &limits;
  simulator::Memory memory;
  simulator::Checks checks;
  simulator::Approximations approximations = simulator::Approximations::Close;
};

simulator::Dim3 dimOf(const Extent3 &extent) { return {extent.x, extent.y, extent.z}; }

/// The first findings as the text of an error.
std::string describe(const std::string &entry, const std::vector<simulator::Finding> &findings) {
  constexpr size_t shown = 5;
  std::string text = weft::format("the simulator found '{}' at fault:", entry);
  for (size_t i = 0; i < std::min(findings.size(), shown); ++i) {
    const simulator::Finding &finding = findings[i];
    text += weft::format("\n  {}: {}", simulator::findingName(finding.kind), finding.message);
    if (finding.line)
      text += weft::format(" (PTX line {}{}{})", finding.line, finding.source.empty() ? "" : ", ", finding.source);
  }
  if (findings.size() > shown)
    text += weft::format("\n  and {} more", findings.size() - shown);
  return text;
}

class SimulatedKernel final : public Kernel {
public:
  SimulatedKernel(std::shared_ptr<Machine> machine, std::shared_ptr<const simulator::Module> module,
                  const simulator::EntryInfo &entry, AddedParameters adds)
      : machine(std::move(machine)), module(std::move(module)), entry(entry), added(std::move(adds)),
        maps(added.maps, simulator::encodeValues) {}

  KernelAttributes attributes() const override { return {0, entry.localBytes, entry.staticSharedBytes}; }

  Result<std::vector<std::byte>> complete(std::vector<std::byte> parameters) override {
    if (maps.lacksIn(parameters))
      return maps.complete(parameters);
    return parameters;
  }

  Status launch(const LaunchShape &shape, std::span<const std::byte> parameters, StreamHandle stream) override {
    if (maps.lacksIn(parameters))
      return maps.complete(parameters).and_then([&](const std::vector<std::byte> &all) {
        return launch(shape, all, stream);
      });
    if (added.lacksPrograms(parameters))
      return simulator::overPrograms(dimOf(shape.grid), uint32_t(machine->limits.gpus.front().multiprocessors),
                                     *added.programs, parameters)
          .and_then([&](const ProgramsLaunch &blocks) {
            return launch({{blocks.blocks, 1, 1}, shape.block, shape.cluster, shape.sharedBytes}, blocks.parameters,
                          stream);
          });
    simulator::LaunchShape where{dimOf(shape.grid), dimOf(shape.block), dimOf(shape.cluster), shape.sharedBytes};
    simulator::LaunchOptions options;
    options.checks = machine->checks;
    options.countsTouched = false; // nobody sees what a launch counts
    options.target = &machine->limits;
    return simulator::launch(*module, entry.name, machine->memory, where, parameters, options)
        .and_then([&](const simulator::Report &report) -> Status {
          // what a kernel prints goes where CUDA would put it
          std::fwrite(report.output.data(), 1, report.output.size(), stdout);
          if (!report.findings.empty())
            return failure(StatusCode::Finding, describe(entry.name, report.findings));
          return {};
        });
  }

private:
  std::shared_ptr<Machine> machine;
  std::shared_ptr<const simulator::Module> module;
  const simulator::EntryInfo &entry;
  AddedParameters added;
  TensorMapParameters maps;
};

class SimulatedModule final : public Module {
public:
  SimulatedModule(std::shared_ptr<Machine> machine, std::shared_ptr<const simulator::Module> module,
                  AddedOfEntries added, uint32_t maxShared)
      : machine(std::move(machine)), module(std::move(module)), added(std::move(added)), maxShared(maxShared) {}

  Result<std::shared_ptr<Kernel>> kernel(const std::string &name, uint32_t sharedBytes) override {
    const simulator::EntryInfo *entry = module->entry(name);
    if (!entry)
      return failure(StatusCode::NotFound, weft::format("the PTX has no entry '{}': it has {}", name, entryNames()));
    if (sharedBytes + entry->staticSharedBytes > maxShared)
      return failure(StatusCode::InvalidArgument,
                     weft::format("expected '{}' to take at most {} bytes of shared memory, but got {}", name,
                                  maxShared, sharedBytes + entry->staticSharedBytes));
    auto own = added.find(name);
    return std::make_shared<SimulatedKernel>(machine, module, *entry,
                                             own == added.end() ? AddedParameters() : own->second);
  }

private:
  std::string entryNames() const {
    std::string names;
    for (const simulator::EntryInfo &entry : module->entries())
      names += weft::format("{}'{}'", names.empty() ? "" : ", ", entry.name);
    return names.empty() ? "none" : names;
  }

  std::shared_ptr<Machine> machine;
  std::shared_ptr<const simulator::Module> module;
  AddedOfEntries added;
  uint32_t maxShared;
};

/// Host memory in use by kernels, by its first byte. Ranges inside one that is mapped share its mapping.
class HostMappings {
public:
  Result<Address> map(simulator::Memory &memory, void *data, size_t bytes) {
    std::scoped_lock lock(guard);
    auto begin = reinterpret_cast<uintptr_t>(data);
    auto [around, inside] = find(begin);
    if (inside && bytes <= around->second.bytes - (begin - around->first)) {
      ++around->second.users;
      return around->second.address + (begin - around->first);
    }
    auto next = ranges.lower_bound(begin);
    if (inside || (next != ranges.end() && next->first - begin < bytes))
      return failure(StatusCode::InvalidArgument, "expected host memory that overlaps no other mapping only in part");
    return memory.map(data, bytes, "host array").transform([&](simulator::Address address) {
      ranges[begin] = {bytes, address, 1};
      return address;
    });
  }

  Status unmap(simulator::Memory &memory, Address address) {
    std::scoped_lock lock(guard);
    for (auto range = ranges.begin(); range != ranges.end(); ++range) {
      Mapping &mapping = range->second;
      if (address < mapping.address || address - mapping.address >= std::max<size_t>(mapping.bytes, 1))
        continue;
      if (--mapping.users)
        return {};
      Address base = mapping.address;
      ranges.erase(range);
      return memory.unmap(base);
    }
    return failure(StatusCode::InvalidArgument, weft::format("address {:#x} is no mapped host memory", address));
  }

private:
  struct Mapping {
    size_t bytes = 0;
    Address address = 0;
    size_t users = 0;
  };
  using Ranges = std::map<uintptr_t, Mapping>;

  /// The mapping whose range holds `begin`, where there is one.
  std::pair<Ranges::iterator, bool> find(uintptr_t begin) {
    auto after = ranges.upper_bound(begin);
    if (after == ranges.begin())
      return {after, false};
    auto around = std::prev(after);
    return {around, begin - around->first < around->second.bytes || begin == around->first};
  }

  std::mutex guard;
  Ranges ranges;
};

using Clock = std::chrono::steady_clock;

class SimulatedDevice final : public Device {
public:
  SimulatedDevice(std::shared_ptr<Machine> machine, Target target, bool isNamed)
      : machine(std::move(machine)), target(target), isNamed(isNamed) {
    facts.name = "Weft simulator";
    facts.major = target.major;
    facts.minor = target.minor;
    facts.memoryBytes = uint64_t(64) << 30;
    facts.multiprocessors = std::max(1u, std::thread::hardware_concurrency());
    facts.maxThreadsPerBlock = uint32_t(this->machine->limits.maxThreads());
    facts.maxSharedBytes = uint32_t(this->machine->limits.sharedBytesPerBlock);
    facts.simulated = true;
  }

  const DeviceProperties &properties() const override { return facts; }
  std::string name() const override { return isNamed ? "simulator:" + targetName(target) : "simulator"; }

  Result<Address> allocate(size_t bytes) override { return machine->memory.allocate(bytes); }
  Status free(Address address) override { return machine->memory.free(address); }
  Status copyIn(Address destination, std::span<const std::byte> source, StreamHandle) override {
    return machine->memory.write(destination, source);
  }
  Status copyOut(std::span<std::byte> destination, Address source, StreamHandle) override {
    return machine->memory.read(destination, source);
  }
  Status copyWithin(Address destination, Address source, size_t bytes, StreamHandle) override {
    return machine->memory.copy(destination, source, bytes);
  }
  Status fill(Address destination, uint8_t value, size_t bytes, StreamHandle) override {
    return machine->memory.fill(destination, value, bytes);
  }
  Result<Address> mapHost(void *data, size_t bytes) override { return mappings.map(machine->memory, data, bytes); }
  Status unmapHost(Address address) override { return mappings.unmap(machine->memory, address); }

  // A stream is only an identity here, an event only a time.
  Result<StreamHandle> createStream() override { return static_cast<StreamHandle>(new char); }
  Status destroyStream(StreamHandle stream) override {
    delete static_cast<char *>(stream);
    return {};
  }
  Status synchronize(StreamHandle) override { return {}; }
  Result<EventHandle> createEvent() override { return static_cast<EventHandle>(new Clock::time_point()); }
  Status destroyEvent(EventHandle event) override {
    delete static_cast<Clock::time_point *>(event);
    return {};
  }
  Status recordEvent(EventHandle event, StreamHandle) override {
    *static_cast<Clock::time_point *>(event) = Clock::now();
    return {};
  }
  Result<float> elapsedMilliseconds(EventHandle begin, EventHandle end) override {
    auto span = *static_cast<Clock::time_point *>(end) - *static_cast<Clock::time_point *>(begin);
    return std::chrono::duration<float, std::milli>(span).count();
  }

  Result<std::shared_ptr<Module>> loadModule(const std::string &ptx) override {
    return simulator::Module::parse(ptx, "<ptx>", machine->approximations)
        .and_then([&](std::shared_ptr<const simulator::Module> module) -> Result<std::shared_ptr<Module>> {
          // Hardware refuses PTX of another target when it loads it, and so does this device.
          if (Result<Target> made = parseTarget(module->target()); made && !runsOn(*made, target.major, target.minor))
            return failure(StatusCode::WrongTarget,
                           weft::format("the PTX is for {}, and this device is {}", module->target(), name()));
          return simulator::launchAddsOf(ptx).transform([&](AddedOfEntries added) -> std::shared_ptr<Module> {
            return std::make_shared<SimulatedModule>(machine, std::move(module), std::move(added),
                                                     facts.maxSharedBytes);
          });
        });
  }
  Result<std::shared_ptr<Module>> loadBinary(std::string_view, std::string_view) override {
    return failure(StatusCode::Unsupported, weft::format("{} runs PTX, and no machine code", name()));
  }

private:
  std::shared_ptr<Machine> machine;
  Target target;
  bool isNamed; ///< whether whoever opened it asked for its target, which kernels are compiled for then
  DeviceProperties facts;
  HostMappings mappings;
};

} // namespace

Result<std::shared_ptr<Device>> openSimulated(std::optional<Target> named) {
  Target target = named ? *named : *parseTarget(targets::simulated().name);
  const char *chosen = std::getenv("WEFT_SIMULATOR_CHECKS");
  Result<simulator::Checks> checks = simulator::Checks::parse(chosen && *chosen ? chosen : "all");
  if (!checks)
    return failure(checks.error().code, "WEFT_SIMULATOR_CHECKS: " + checks.error().message);
  const char *near = std::getenv("WEFT_SIMULATOR_APPROXIMATIONS");
  Result<simulator::Approximations> approximations = simulator::approximationsNamed(near && *near ? near : "close");
  if (!approximations)
    return failure(approximations.error().code, "WEFT_SIMULATOR_APPROXIMATIONS: " + approximations.error().message);
  auto machine = std::make_shared<Machine>(targets::nearest(10 * target.major + target.minor));
  machine->checks = *checks;
  machine->approximations = *approximations;
  return std::make_shared<SimulatedDevice>(std::move(machine), target, named.has_value());
}

} // namespace weft::driver

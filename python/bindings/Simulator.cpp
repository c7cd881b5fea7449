// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The module `_simulator`: weft.simulator's launch over runtime/Simulator/Interface/Simulator.h. Buffers come as address and
// size; each is copied into memory with guards around it, so that a small overrun hits nothing else, and copied back. What
// kernels reach by its address on the host stays where it is.
#include "runtime/Simulator/Interface/Simulator.h"
#include "runtime/Simulator/Interface/LaunchMaps.h"
#include "runtime/Simulator/Interface/TensorMap.h"
#include "targets/Target.h"

#include "python/bindings/Text.h"

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <cstring>

namespace py = pybind11;
using namespace weft;
using namespace weft::simulator;

namespace {

constexpr size_t guardBytes = 4096;

[[noreturn]] void raise(const Error &error) {
  py::object type = py::module_::import("weft.simulator").attr("SimulatorError");
  py::object value = type(weft::python::text(error.message));
  value.attr("code") = std::string(statusName(error.code));
  PyErr_SetObject(type.ptr(), value.ptr());
  throw py::error_already_set();
}

/// One argument as Python hands it over: a buffer (address, bytes, offset of the pointer passed, read only) or the
/// bytes of a scalar or a struct.
struct Buffer {
  std::byte *host = nullptr;
  size_t bytes = 0;
  size_t offset = 0;
  bool readOnly = false;
  std::string name;
  bool inPlace = false; ///< known to the kernel by the address that it has
};

/// A tensor map as a parameter: where it stands, and the buffer that its tensor begins in.
struct MapArgument {
  TensorMap map;
  uint32_t parameter = 0;
  size_t buffer = 0;
};

/// Host ranges that overlap share one device buffer, which is the host's own where one of them is in place.
struct DeviceRange {
  std::byte *begin, *end;
  bool readOnly;
  std::string name;
  bool inPlace;
  std::vector<std::byte> storage;
  std::byte *device = nullptr;
};

std::vector<DeviceRange> mergeRanges(const std::vector<Buffer> &buffers) {
  std::vector<DeviceRange> ranges;
  for (const Buffer &buffer : buffers)
    ranges.push_back(
        {buffer.host, buffer.host + buffer.bytes, buffer.readOnly, buffer.name, buffer.inPlace, {}, nullptr});
  std::sort(ranges.begin(), ranges.end(), [](const DeviceRange &a, const DeviceRange &b) { return a.begin < b.begin; });
  std::vector<DeviceRange> merged;
  for (DeviceRange &range : ranges) {
    if (!merged.empty() && (range.begin < merged.back().end || range.begin == merged.back().begin)) {
      merged.back().end = std::max(merged.back().end, range.end);
      merged.back().readOnly &= range.readOnly;
      merged.back().inPlace |= range.inPlace;
    } else {
      merged.push_back(std::move(range));
    }
  }
  for (DeviceRange &range : merged) {
    if (range.inPlace) {
      range.device = range.begin;
      continue;
    }
    range.storage.resize(size_t(range.end - range.begin) + 2 * guardBytes + 256);
    auto start = reinterpret_cast<uintptr_t>(range.storage.data()) + guardBytes;
    // The same residue as the host's address, so that alignment is what the caller gave, 256 bytes at least.
    range.device = reinterpret_cast<std::byte *>((start + 255) / 256 * 256);
  }
  return merged;
}

py::dict findingDict(const Finding &finding) {
  py::dict result;
  result["kind"] = std::string(findingName(finding.kind));
  result["message"] = weft::python::text(finding.message);
  result["kernel"] = finding.kernel;
  result["line"] = finding.line;
  result["source"] = finding.source;
  result["cta"] = py::make_tuple(finding.cta[0], finding.cta[1], finding.cta[2]);
  result["warp"] = finding.warp;
  result["lane"] = finding.lane;
  result["other"] = finding.other;
  result["count"] = finding.count;
  return result;
}

py::list linesOf(const std::vector<LineProfile> &lines) {
  py::list profile;
  for (const LineProfile &line : lines) {
    py::dict entry;
    entry["line"] = line.line;
    entry["source"] = line.source;
    entry["text"] = line.text;
    entry["warp_instructions"] = line.warpInstructions;
    entry["thread_instructions"] = line.threadInstructions;
    entry["kind"] = std::string(className(line.cls));
    entry["global_sectors_read"] = line.globalSectorsRead;
    entry["global_sectors_written"] = line.globalSectorsWritten;
    entry["global_sectors_ideal"] = line.globalSectorsIdeal;
    entry["global_bytes"] = line.globalBytes;
    entry["shared_wavefronts"] = line.sharedWavefronts;
    entry["shared_wavefronts_ideal"] = line.sharedWavefrontsIdeal;
    entry["mma_macs"] = line.mmaMacs;
    entry["barrier_waits"] = line.barrierWaits;
    entry["divergent_branches"] = line.divergentBranches;
    profile.append(entry);
  }
  return profile;
}

/// "profile" is a function that gives the lines.
py::dict reportDict(Report report) {
  py::dict result;
  py::list findings, advisories;
  for (const Finding &finding : report.findings)
    findings.append(findingDict(finding));
  for (const Finding &finding : report.advisories)
    advisories.append(findingDict(finding));
  py::dict counters, byClass;
  for (const auto &[name, value] : report.counters.named()) {
    if (size_t dot = name.find('.'); dot == std::string::npos)
      counters[py::str(name)] = value;
    else if (value)
      byClass[py::str(name.substr(dot + 1))] = value;
  }
  counters["by_class"] = byClass;
  result["findings"] = findings;
  result["advisories"] = advisories;
  result["counters"] = counters;
  result["profile"] = py::cpp_function([lines = std::move(report.profile)] { return linesOf(lines); });
  py::list touched;
  for (const TouchedAllocation &each : report.touched)
    touched.append(py::make_tuple(each.sectors, each.read, each.written));
  result["touched"] = touched;
  result["output"] = weft::python::text(report.output);
  return result;
}

Dim3 dim(const std::array<uint32_t, 3> &counts) { return {counts[0], counts[1], counts[2]}; }

/// The values of a launch's parameters, and the buffers that some of them point to.
struct Arguments {
  std::vector<std::byte> parameters;
  std::vector<Buffer> buffers;
  std::vector<std::optional<uint32_t>> pointers; ///< where in the parameters each buffer's address goes, if it does
  std::vector<MapArgument> maps;
  AddedParameters added; ///< by the launch
};

/// A module, and what its PTX says of parameters that launches add.
struct Parsed {
  std::shared_ptr<const Module> module;
  AddedOfEntries added;

  AddedParameters addedOf(const std::string &entry) const {
    auto found = added.find(entry);
    return found == added.end() ? AddedParameters() : found->second;
  }
};

/// Copies the buffers in, launches, and copies them back.
/// `shape` becomes that of the blocks, where these go over the programs of its grid.
Result<Report> runOnCopies(const Module &module, const std::string &entry, LaunchShape &shape, Arguments arguments,
                           const LaunchOptions &options) {
  auto &[parameters, buffers, pointers, maps, added] = arguments;
  std::vector<uint64_t> addresses;
  std::vector<DeviceRange> ranges = mergeRanges(buffers);
  for (size_t i = 0; i < buffers.size(); ++i) {
    const Buffer &buffer = buffers[i];
    auto range = std::find_if(ranges.begin(), ranges.end(), [&](const DeviceRange &r) {
      return buffer.host >= r.begin && buffer.host + buffer.bytes <= r.end;
    });
    auto address = reinterpret_cast<uint64_t>(range->device + (buffers[i].host - range->begin) + buffers[i].offset);
    addresses.push_back(address);
    if (pointers[i])
      std::memcpy(parameters.data() + *pointers[i], &address, 8);
  }
  for (MapArgument &argument : maps) {
    argument.map.address = addresses[argument.buffer];
    Result<std::array<std::byte, 128>> bytes = encode(argument.map);
    if (!bytes)
      return std::unexpected(bytes.error());
    std::memcpy(parameters.data() + argument.parameter, bytes->data(), bytes->size());
  }
  if (!added.maps.empty()) {
    Result<std::vector<std::byte>> complete = withMaps(added.maps, parameters);
    if (!complete)
      return std::unexpected(complete.error());
    parameters = std::move(*complete);
  }
  if (added.programs) {
    Result<ProgramsLaunch> blocks =
        overPrograms(shape.grid, uint32_t(limitsOf(module).gpus.front().multiprocessors), *added.programs, parameters);
    if (!blocks)
      return std::unexpected(blocks.error());
    shape.grid = {blocks->blocks, 1, 1};
    parameters = std::move(blocks->parameters);
  }
  Memory memory;
  for (DeviceRange &range : ranges) {
    auto bytes = size_t(range.end - range.begin);
    if (bytes && !range.inPlace)
      std::memcpy(range.device, range.begin, bytes);
    if (Result<Address> mapped = memory.map(range.device, bytes, range.name); !mapped)
      return std::unexpected(mapped.error());
  }
  Result<Report> report = launch(module, entry, memory, shape, parameters, options);
  for (DeviceRange &range : ranges)
    if (report && !range.readOnly && !range.inPlace && range.begin != range.end)
      std::memcpy(range.begin, range.device, size_t(range.end - range.begin));
  return report;
}

/// The fields of weft.simulator's tensor maps, dimensions innermost first.
TensorMap mapOf(const py::dict &fields) {
  TensorMap map;
  const auto name = fields["dtype"].cast<std::string>();
  const std::optional<TensorType> type = tensorTypeNamed(name);
  if (!type)
    raise({StatusCode::InvalidArgument, "expected a type that a tensor map may have, but got '" + name + "'"});
  map.type = *type;
  const auto dims = fields["dims"].cast<std::vector<uint64_t>>(),
             strides = fields["strides"].cast<std::vector<uint64_t>>();
  const auto box = fields["box"].cast<std::vector<uint32_t>>(),
             steps = fields["element_strides"].cast<std::vector<uint32_t>>();
  map.rank = uint8_t(std::min<size_t>(dims.size(), 6));
  std::copy_n(dims.begin(), std::min<size_t>(dims.size(), 5), map.dims.begin());
  std::copy_n(strides.begin(), std::min<size_t>(strides.size(), 4), map.strides.begin());
  std::copy_n(box.begin(), std::min<size_t>(box.size(), 5), map.box.begin());
  std::copy_n(steps.begin(), std::min<size_t>(steps.size(), 5), map.elementStrides.begin());
  map.swizzle = fields["swizzle"].cast<uint8_t>();
  map.fillsNaN = fields["nan"].cast<bool>();
  return map;
}

/// Takes a buffer, whose address goes to an offset in the parameters, or nowhere.
void addBuffer(Arguments &arguments, const std::string &name, const py::handle &place, std::optional<uint32_t> pointer,
               bool inPlace = false) {
  auto [host, bytes, offset, readOnly] = place.cast<std::tuple<uint64_t, size_t, size_t, bool>>();
  arguments.buffers.push_back({reinterpret_cast<std::byte *>(host), bytes, offset, readOnly, name, inPlace});
  arguments.pointers.push_back(pointer);
}

/// Takes an argument as weft.simulator packs it: the bytes of a value, the fields of a tensor map with the buffer that
/// it is of, a struct as its bytes with the buffers it points to and the maps in it, or a buffer.
void addArgument(Arguments &arguments, const ParameterInfo &parameter, const py::handle &argument) {
  auto setBytes = [&](const std::string &bytes) {
    std::memcpy(arguments.parameters.data() + parameter.offset, bytes.data(),
                std::min<size_t>(bytes.size(), parameter.size));
  };
  if (py::isinstance<py::bytes>(argument))
    return setBytes(argument.cast<std::string>());
  auto addMap = [&](const py::dict &fields, uint32_t offset) {
    addBuffer(arguments, parameter.name, fields["buffer"], std::nullopt);
    arguments.maps.push_back({mapOf(fields), offset, arguments.buffers.size() - 1});
  };
  if (py::isinstance<py::dict>(argument))
    return addMap(argument.cast<py::dict>(), parameter.offset);
  if (py::isinstance<py::list>(argument)) {
    const auto [bytes, pointers] = argument.cast<std::pair<py::bytes, py::list>>();
    setBytes(bytes);
    for (const py::handle &each : pointers) {
      const auto [offset, place] = each.cast<std::pair<uint32_t, py::object>>();
      if (py::isinstance<py::dict>(place))
        addMap(place.cast<py::dict>(), parameter.offset + offset);
      else
        addBuffer(arguments, parameter.name, place, parameter.offset + offset);
    }
    return;
  }
  addBuffer(arguments, parameter.name, argument, parameter.offset);
}

/// `settings`: grid, block, cluster, shared, checks, seed, schedules, threads, limit, sample, memory.
py::dict launchArguments(const Parsed &source, const std::string &entry, const py::list &arguments,
                         const py::kwargs &settings) {
  const Module &module = *source.module;
  const EntryInfo *info = module.entry(entry);
  Result<Checks> parsed = Checks::parse(settings["checks"].cast<std::string>());
  if (!parsed)
    raise(parsed.error());
  LaunchOptions options;
  options.checks = *parsed;
  options.seed = settings["seed"].cast<uint64_t>();
  options.schedules = settings["schedules"].cast<uint32_t>();
  options.threads = settings["threads"].cast<uint32_t>();
  options.maximumInstructions = settings["limit"].cast<uint64_t>();
  options.sample = settings["sample"].cast<uint64_t>();
  auto counts = [&](const char *name) { return dim(settings[name].cast<std::array<uint32_t, 3>>()); };
  LaunchShape shape{counts("grid"), counts("block"), counts("cluster"), settings["shared"].cast<uint32_t>()};
  Arguments packed;
  packed.added = source.addedOf(entry);
  packed.parameters.resize(info ? info->parameterBytes : 0);
  for (size_t i = 0; info && i < arguments.size(); ++i)
    addArgument(packed, info->parameters.at(i), arguments[i]);
  for (const py::handle &each : settings["memory"])
    addBuffer(packed, "memory", each, std::nullopt, /*inPlace=*/true);
  Result<Report> report = failure(StatusCode::Internal, "");
  {
    py::gil_scoped_release release;
    report = runOnCopies(module, entry, shape, std::move(packed), options);
  }
  if (!report)
    raise(report.error());
  py::dict result = reportDict(std::move(*report));
  result["grid"] = py::make_tuple(shape.grid.x, shape.grid.y, shape.grid.z);
  return result;
}

} // namespace

PYBIND11_MODULE(_simulator, m) {
  m.doc() = "The PTX simulator.";
  py::class_<Parsed, std::shared_ptr<Parsed>>(m, "Module")
      .def_property_readonly("target", [](const Parsed &parsed) { return parsed.module->target(); })
      .def("parameters",
           [](const Parsed &parsed, const std::string &entry) {
             const EntryInfo *info = parsed.module->entry(entry);
             if (!info)
               return py::object(py::none());
             const std::optional<uint32_t> added = parsed.addedOf(entry).begin();
             py::list result;
             for (const ParameterInfo &parameter : info->parameters)
               if (!added || parameter.offset < *added)
                 result.append(py::make_tuple(parameter.name, parameter.size, parameter.align, parameter.pointer));
             return py::object(result);
           })
      .def_property_readonly("entries",
                             [](const Parsed &parsed) {
                               std::vector<std::string> names;
                               for (const EntryInfo &info : parsed.module->entries())
                                 names.push_back(info.name);
                               return names;
                             })
      .def("launch", [](const std::shared_ptr<Parsed> &self, const std::string &entry, const py::list &arguments,
                        const py::kwargs &settings) { return launchArguments(*self, entry, arguments, settings); });
  m.def("targets", [] { return targets::json(); });
  m.def("simulated_target", [] { return std::string(targets::simulated().name); });
  m.def("parse", [](const std::string &text, const std::string &name, const std::string &approximations) {
    Result<Approximations> near = approximationsNamed(approximations);
    if (!near)
      raise(near.error());
    Result<std::shared_ptr<const Module>> module = failure(StatusCode::Internal, "");
    {
      py::gil_scoped_release release;
      module = Module::parse(text, name, *near);
    }
    if (!module)
      raise(module.error());
    Result<AddedOfEntries> added = launchAddsOf(text);
    if (!added)
      raise(added.error());
    return std::make_shared<Parsed>(Parsed{*module, std::move(*added)});
  });
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which device a name means.
#include "runtime/Driver/Driver.h"

#include "runtime/Driver/Cuda.h"
#include "runtime/Driver/Simulated.h"
#include "runtime/Driver/Target.h"

#include "runtime/Support/Format.h"
#include "targets/Target.h"
#include <charconv>
#include <cstdlib>

namespace weft::driver {
namespace {

/// The ordinal in "cuda" or "cuda:N".
Result<int> cudaOrdinal(const std::string &name) {
  if (name == "cuda")
    return 0;
  int ordinal = -1;
  const char *begin = name.data() + 5, *end = name.data() + name.size();
  auto [rest, error] = std::from_chars(begin, end, ordinal);
  if (error != std::errc() || rest != end || ordinal < 0)
    return failure(StatusCode::InvalidArgument, weft::format("expected a device 'cuda:N', but got '{}'", name));
  return ordinal;
}

} // namespace

Result<std::shared_ptr<Device>> openDevice(const std::string &requested) {
  std::string name = requested.empty() ? defaultDeviceName() : requested;
  if (name == "cuda" || name.starts_with("cuda:"))
    return cudaOrdinal(name).and_then(openCuda);
  if (name == "simulator")
    return openSimulated(std::nullopt);
  if (name.starts_with("simulator:"))
    return parseTarget(name.substr(10)).and_then([](Target target) { return openSimulated(target); });
  return failure(StatusCode::InvalidArgument,
                 weft::format("expected a device 'cuda:N', 'simulator' or 'simulator:sm_NN', but got '{}'", name));
}

std::string defaultDeviceName() {
  if (const char *chosen = std::getenv("WEFT_DEVICE"); chosen && *chosen)
    return chosen;
  Result<int> count = cudaDeviceCount();
  return count && *count > 0 ? "cuda:0" : "simulator";
}

std::vector<std::string> deviceNames() {
  std::vector<std::string> names;
  for (int ordinal = 0, count = cudaDeviceCount().value_or(0); ordinal < count; ++ordinal)
    names.push_back(weft::format("cuda:{}", ordinal));
  names.push_back("simulator");
  return names;
}

} // namespace weft::driver

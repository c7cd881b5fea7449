// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Driver/Target.h"

#include "runtime/Support/Format.h"
#include "targets/Target.h"
#include <charconv>
#include <utility>

namespace weft::driver {

Result<Target> parseTarget(std::string_view name) {
  auto refuse = [&] {
    return failure(StatusCode::InvalidArgument,
                   weft::format("expected a target like {}, but got '{}'", targets::names(), name));
  };
  if (!name.starts_with("sm_"))
    return refuse();
  int number = 0;
  const char *end = name.data() + name.size();
  auto [rest, error] = std::from_chars(name.data() + 3, end, number);
  if (error != std::errc() || number < 10 || number > 999)
    return refuse();
  std::string_view suffix(rest, end);
  if (!suffix.empty() && suffix != "a" && suffix != "f")
    return refuse();
  return Target{number / 10, number % 10, suffix.empty() ? '\0' : suffix[0]};
}

std::string targetName(Target target) {
  std::string name = weft::format("sm_{}{}", target.major, target.minor);
  return target.suffix ? name + target.suffix : name;
}

bool runsOn(Target target, int major, int minor) {
  if (target.suffix == 'a')
    return target.major == major && target.minor == minor;
  if (target.suffix == 'f')
    return target.major == major && target.minor <= minor;
  return std::pair(target.major, target.minor) <= std::pair(major, minor);
}

bool binaryRunsOn(Target target, int major, int minor) {
  return target.major == major && (target.suffix == 'a' ? target.minor == minor : target.minor <= minor);
}

} // namespace weft::driver

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// PTX targets as names, and which device runs which (PTX ISA, ".target": plain targets run on everything newer,
// those with an 'a' on exactly one architecture, those with an 'f' on one family).
#pragma once

#include "runtime/Support/Status.h"

#include <string>
#include <string_view>

namespace weft::driver {

/// A parsed target name: sm_80 is {8, 0, 0}, sm_90a is {9, 0, 'a'}, sm_100f is {10, 0, 'f'}.
struct Target {
  int major = 0, minor = 0;
  char suffix = 0; ///< 0, 'a' or 'f'
  bool operator==(const Target &) const = default;
};

/// Parses "sm_90a". InvalidArgument on anything else.
Result<Target> parseTarget(std::string_view name);

/// "sm_90a"
std::string targetName(Target target);

/// Whether PTX made for `target` runs on a device of compute capability major.minor.
bool runsOn(Target target, int major, int minor);

/// Whether machine code made for `target` runs on a device of compute capability major.minor: on the same and later
/// minor versions of its major one, and where it uses what one architecture alone has, on that one.
bool binaryRunsOn(Target target, int major, int minor);

} // namespace weft::driver

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Weft's version, as the top CMakeLists.txt gives it.
#pragma once

#include <string_view>

namespace weft {

/// "0.1.0"
inline constexpr std::string_view version = WEFT_VERSION;

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// SHA-256, by libmd.
#pragma once

#include <string>
#include <string_view>

namespace weft::library {

/// SHA-256 (FIPS 180-4) of `bytes` in lower-case hexadecimal.
std::string sha256(std::string_view bytes);

} // namespace weft::library

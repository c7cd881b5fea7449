// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Library/Digest.h"

#include <array>
#include <cstdint>
#include <sha256.h>

namespace weft::library {

std::string sha256(std::string_view bytes) {
  SHA256_CTX state;
  std::array<char, SHA256_DIGEST_STRING_LENGTH> text{};
  SHA256_Init(&state);
  SHA256_Update(&state, reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size());
  SHA256_End(&state, text.data());
  return text.data();
}

} // namespace weft::library

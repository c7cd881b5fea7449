// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Interface/Simulator.h"
#include "runtime/Support/Format.h"

namespace weft::simulator {

Result<Checks> Checks::parse(std::string_view text) {
  if (text == "all")
    return Checks();
  Checks checks = none();
  if (text == "none")
    return checks;
  while (!text.empty()) {
    std::string_view word = text.substr(0, text.find(','));
    text.remove_prefix(std::min(word.size() + 1, text.size()));
    bool *known = word == "uninitialised" ? &checks.uninitialised
                  : word == "races"       ? &checks.races
                  : word == "async"       ? &checks.async
                  : word == "barriers"    ? &checks.barriers
                                          : nullptr;
    if (!known)
      return failure(
          StatusCode::InvalidArgument,
          format("expected 'all', 'none', or some of 'uninitialised', 'races', 'async', 'barriers', but got '{}'",
                 word));
    *known = true;
  }
  return checks;
}

} // namespace weft::simulator

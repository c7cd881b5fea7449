// Part of Weft. SPDX-License-Identifier: Apache-2.0
// MLIR text that MLIR's own parser must not see: it would end the process instead of reporting an error.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <optional>
#include <string>

namespace weft {

/// A place in MLIR text on which the parser of MLIR 22 is known to die; line and column from 1.
struct TextHazard {
  unsigned line, column;
  std::string message; ///< what was expected, and what came
};

/// The first hazard in a text, if there is one: an array attribute of `index` elements, or the number of a result
/// (`%x#123456`) with more than five digits, for which the parser makes room before it looks whether there are as many.
std::optional<TextHazard> findTextHazard(llvm::StringRef text);

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The transpose of a pattern: what the gradients of keys and values walk.
#pragma once

#include "dialects/Attn/Pattern/Bands.h"

namespace weft::attn {

/// The pattern that has (n, m) of N queries and M keys where `pattern` has (m, n) of M queries and N keys. In closed
/// form where there is one (causal becomes window<left = 0>), else with `#attn.transpose` around the parts that have
/// none; `rowSegments` sees through it. `lengths` are those of the result: block windows and global tokens are their
/// own transposes where N = M.
mlir::Attribute transposePattern(mlir::Attribute pattern, const Lengths &lengths = {});

} // namespace weft::attn

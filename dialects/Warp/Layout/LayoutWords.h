// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Layouts as people read them.
#pragma once

#include "dialects/Warp/Layout/LinearLayout.h"

namespace weft::warp {

/// How much of a tensor a thread's registers, a warp's lanes and a block's warps cover along each axis:
///
///     registers 2x8 (8 neighbours along axis 1), lanes 4x8, warps 4x1
///
/// The products are the tensor's shape, unless something repeats it, which is said.
std::string inWords(const LinearLayout &layout);

} // namespace weft::warp

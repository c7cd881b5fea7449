// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What cp.reduce.async.bulk does to each element (PTX ISA 9.7.9.25.4.2).
#pragma once

#include "runtime/Simulator/Interface/TensorMap.h"
#include "runtime/Simulator/Machine/State/Program.h"

namespace weft::simulator::machine {

/// Combines the elements of `bytes` at `from` into those at `to`.
using Reduction = void (*)(std::byte *to, const std::byte *from, uint32_t bytes);

/// The reduction of a name such as "add" on elements of a type; null where PTX has none.
Reduction bulkReduction(std::string_view operation, ptx::Type type);
/// The same for the elements of a tensor.
Reduction tensorReduction(std::string_view operation, TensorType type);

} // namespace weft::simulator::machine

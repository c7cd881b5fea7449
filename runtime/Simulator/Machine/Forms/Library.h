// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Functions that CUDA's device runtime provides and PTX only declares: vprintf, malloc, free, __assertfail.
#pragma once

#include "runtime/Simulator/Machine/Decoding/Table.h"

namespace weft::simulator::machine {

/// Binds a call of a function without a body.
void bindLibraryCall(Binding &binding);

} // namespace weft::simulator::machine

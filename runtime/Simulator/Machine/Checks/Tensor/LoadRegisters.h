// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Registers that tcgen05.ld writes. Whoever reads one waits for the load (PTX ISA 9.7.16.6.4.5), and compiled code rests on
// that where it should have tcgen05.wait::ld: a load whose registers were all read is over for the warp that made it.
#pragma once

#include "runtime/Simulator/Machine/State/Tensor/Tensor.h"

namespace weft::simulator::machine {

/// Before a record runs on a warp with loads whose registers it has not read.
void watchLoads(Warp &warp, const Record &record);

} // namespace weft::simulator::machine

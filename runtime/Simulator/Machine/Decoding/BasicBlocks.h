// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The control-flow graph of a decoded kernel.
#pragma once

#include "runtime/Simulator/Machine/State/Program.h"

#include <vector>

namespace weft::simulator::machine {

/// Records [begin, end) that run one after the other.
struct BasicBlock {
  uint32_t begin = 0, end = 0;
  std::vector<uint32_t> successors;
  bool exits = false; ///< may end the thread
};

/// The basic blocks of a kernel in the order of its records.
std::vector<BasicBlock> basicBlocks(const Kernel &kernel);

} // namespace weft::simulator::machine

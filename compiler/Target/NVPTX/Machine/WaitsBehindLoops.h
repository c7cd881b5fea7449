// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Where products of warpgroups that a loop leaves under way are waited for.
#pragma once

namespace llvm {
class MachineFunctionPass;
} // namespace llvm

namespace weft {

/// The pass; see WaitsBehindLoops.cpp.
llvm::MachineFunctionPass *createWaitsBehindLoops();

} // namespace weft

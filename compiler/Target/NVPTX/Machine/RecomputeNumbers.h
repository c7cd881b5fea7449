// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Computes a block's numbers again where they are used, instead of keeping them in registers across loops.
#pragma once

namespace llvm {
class MachineFunctionPass;
} // namespace llvm

namespace weft {

/// The pass, for kernels that say how many blocks a multiprocessor holds: theirs is a share of its registers.
llvm::MachineFunctionPass *createRecomputeNumbers();

} // namespace weft

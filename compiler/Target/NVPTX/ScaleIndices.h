// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Scales a program's number before it is widened.
#pragma once

namespace llvm {
class Function;
class LoopInfo;
} // namespace llvm

namespace weft {

/// Outside of loops, multiplies a factor of an index by the bytes of an element before it is widened to 64 bits, where no
/// bit is lost: both are one instruction then, and the index and the pointer that it is added to another.
void scaleIndices(llvm::Function &function, const llvm::LoopInfo &loops);

} // namespace weft

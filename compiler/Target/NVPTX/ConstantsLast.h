// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Sums whose constant is added last.
#pragma once

namespace llvm {
class Function;
} // namespace llvm

namespace weft {

/// Rewrites a + (x + c) as (a + x) + c for constants c: the indices of a thread's elements are one sum then, and each a
/// constant more, which is left out where its bits do not matter.
void addConstantsLast(llvm::Function &function);

} // namespace weft

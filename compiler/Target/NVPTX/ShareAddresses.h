// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Adds what addresses share before what sets them apart.
#pragma once

namespace llvm {
class Function;
} // namespace llvm

namespace weft {

/// Where several addresses of a block add one index to sums of one pointer with indices of their own, adds it to the
/// pointer instead: each address is one addition less.
void shareAddresses(llvm::Function &function);

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Addresses that a loop counts up together take one instruction each.
#pragma once

namespace llvm {
class MachineFunctionPass;
} // namespace llvm

namespace weft {

/// The pass; see AddressesInLoops.cpp.
llvm::MachineFunctionPass *createAddressesInLoops();

} // namespace weft

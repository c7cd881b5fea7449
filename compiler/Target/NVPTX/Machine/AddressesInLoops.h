// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Addresses that a loop counts up together take one instruction each.
#pragma once

#include "llvm/ADT/StringMap.h"

namespace llvm {
class MachineFunctionPass;
class TargetInstrInfo;
} // namespace llvm

namespace weft {

/// The pass; see AddressesInLoops.cpp.
llvm::MachineFunctionPass *createAddressesInLoops();

/// Instructions by their names: LLVM's header of opcodes is not installed.
const llvm::StringMap<unsigned> &opcodesByName(const llvm::TargetInstrInfo &instructions);

} // namespace weft

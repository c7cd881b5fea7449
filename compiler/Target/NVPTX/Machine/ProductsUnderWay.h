// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the machine code of a kernel may do with registers while products of warpgroups are under way.
#pragma once

#include "llvm/ADT/StringRef.h"
#include <functional>

namespace llvm {
class MachineFunctionPass;
} // namespace llvm

namespace weft {

/// The pass; see ProductsUnderWay.cpp. `inserted` is told of kernels that were given waits, and how many.
llvm::MachineFunctionPass *createProductsUnderWay(std::function<void(llvm::StringRef kernel, int waits)> inserted);

} // namespace weft

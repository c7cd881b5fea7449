// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the machine code of a kernel may do with registers while products of warpgroups are under way.
#pragma once

namespace llvm {
class MachineFunctionPass;
} // namespace llvm

namespace weft {

/// The pass; see ProductsUnderWay.cpp.
llvm::MachineFunctionPass *createProductsUnderWay();

} // namespace weft

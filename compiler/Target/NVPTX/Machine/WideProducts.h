// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Products of widened numbers are made of the numbers.
#pragma once

namespace llvm {
class Function;
class MachineFunctionPass;
} // namespace llvm

namespace weft {

/// Keeps what is loaded, and widened for products, as numbers of 32 bits: other loads widen what they load.
void keepNumbersOfProducts(llvm::Function &function);

/// The pass; see WideProducts.cpp.
llvm::MachineFunctionPass *createWideProducts();

} // namespace weft

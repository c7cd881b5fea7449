// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the record of a matrix product keeps: for its executor, and for what follows unwritten values through it.
#pragma once

#include "runtime/Simulator/Semantics/Matrix.h"

namespace weft::simulator::machine {

/// Record::aux of a matrix product: how many registers each operand has, in Record::wide as d, a, b, c, and, of a sparse
/// one, the metadata.
struct Product {
  semantics::MatrixProduct product;
  unsigned dCount = 0, aCount = 0, bCount = 0, cCount = 0;
  uint64_t macs = 0;
  /// How `product` is computed, where it is none of quad pairs.
  decltype(&semantics::multiply) multiply = semantics::multiply;
  bool quadPairs = false, aByColumn = false, bByRow = false;
  bool sparse = false, ordered = false; ///< mma.sp, and its metadata's indices
  unsigned selector = 0;
  decltype(&semantics::multiplySparse) multiplySparse = semantics::multiplySparse;
};

} // namespace weft::simulator::machine

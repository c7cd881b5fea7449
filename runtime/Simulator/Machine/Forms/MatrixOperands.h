// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What binding and running mma.sync and wmma share.
#pragma once

#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Semantics/Matrix.h"

#include <string_view>
#include <vector>

namespace weft::simulator::machine {

/// Record::aux of a matrix product: how many registers each operand has, in Record::wide as d, a, b, c.
struct Product {
  semantics::MatrixProduct product;
  unsigned dCount = 0, aCount = 0, bCount = 0, cCount = 0;
  uint64_t macs = 0;
  bool quadPairs = false, aByColumn = false, bByRow = false;
};

/// Runs a record whose aux is a Product.
void runProduct(Warp &warp, const Record &record, uint32_t mask);

/// Puts the registers of operands 0 to 3, counted by `product`, and `product` itself into the record.
void bindProduct(Binding &b, const Product &product);

/// A multiplicand's and an accumulator's element type by its PTX type.
semantics::MatrixType matrixType(ptx::Type type);
semantics::AccumulatorType accumulatorType(ptx::Type type);

/// "m16n8k16" to its three numbers.
semantics::MatrixShape shapeNamed(std::string_view text);

/// Appends the `count` registers of a vector operand, or the one register.
void appendRegisters(Binding &b, const ptx::Operand &operand, size_t count, ptx::Type type, bool destination,
                     std::vector<Ref> &refs);

} // namespace weft::simulator::machine

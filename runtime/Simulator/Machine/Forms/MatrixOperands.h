// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What binding and running mma.sync and wmma share.
#pragma once

#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/State/MatrixProduct.h"

#include <string_view>
#include <vector>

namespace weft::simulator::machine {

/// The lanes of each register of a matrix product.
struct ProductLanes {
  void *d[32];
  const void *a[32], *b[32], *c[32];
};

/// Those of a record whose aux is a Product.
ProductLanes lanesOf(Warp &warp, const Record &record);

/// Counts a product's multiply-adds.
void countProduct(Warp &warp, const Product &product);

/// Runs a record whose aux is a Product.
void runProduct(Warp &warp, const Record &record, uint32_t mask);

/// Puts the registers of operands 0 to 3, counted by `product`, and `product` itself into the record.
void bindProduct(Binding &b, const Product &product);

/// A multiplicand's and an accumulator's element type by its PTX type.
semantics::MatrixType matrixType(ptx::Type type);
semantics::AccumulatorType accumulatorType(ptx::Type type);

/// The sparsity selector of a product with a sparse A; refused where PTX leaves it undefined.
unsigned sparsitySelector(Binding &b, const ptx::Operand &operand, const semantics::MatrixProduct &product);

/// "m16n8k16" to its three numbers.
semantics::MatrixShape shapeNamed(std::string_view text);

/// Appends the `count` registers of a vector operand, or the one register.
void appendRegisters(Binding &b, const ptx::Operand &operand, size_t count, ptx::Type type, bool destination,
                     std::vector<Ref> &refs);

} // namespace weft::simulator::machine

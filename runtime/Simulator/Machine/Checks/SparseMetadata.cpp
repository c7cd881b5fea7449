// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/Checks/SparseMetadata.h"
#include "runtime/Simulator/Machine/Checks/Access.h"
#include "runtime/Simulator/Machine/Checks/Poison.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {

namespace sem = semantics;

sem::SparseRows sparseRows(Warp &warp, const sem::SparseProduct &sparse, Ref metadata) {
  const sem::Metadata read =
      sem::readMetadata(sparse, warp.reg<const uint32_t>(metadata), warp.anyPoison ? poisonOf(warp, metadata) : 0);
  if (read.fault) {
    const auto &[lane, bits, row, element] = *read.fault;
    const unsigned width = sem::bitsOf(sparse.product.a);
    const char *expected = width == 32      ? "0b0100 or 0b1110"
                           : sparse.ordered ? "two indices that ascend from the low bits on"
                                            : "two indices that differ";
    report(warp, FindingKind::SparseMetadata, lane,
           format("has 0b{}{}{}{} in its metadata for the elements from {} on of row {} of A: expected {}",
                  bits >> 3 & 1, bits >> 2 & 1, bits >> 1 & 1, bits & 1, element, row, expected));
  }
  return read.rows;
}

} // namespace weft::simulator::machine

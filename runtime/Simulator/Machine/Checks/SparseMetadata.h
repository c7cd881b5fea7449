// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The metadata of a sparse A, read from the register that holds them, and what is wrong with them.
#pragma once

#include "runtime/Simulator/Machine/State/MatrixProduct.h"
#include "runtime/Simulator/Machine/State/Warp.h"

namespace weft::simulator::machine {

/// The rows of B that the stored elements of a warp's 16 rows of A meet. Metadata that PTX leaves undefined are
/// reported, but for lanes whose register nothing wrote, which reach the result as such.
semantics::SparseRows sparseRows(Warp &warp, const semantics::SparseProduct &sparse, Ref metadata);

} // namespace weft::simulator::machine

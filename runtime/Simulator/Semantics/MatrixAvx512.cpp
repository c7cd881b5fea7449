// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The matrix kernels compiled for AVX-512: CMakeLists.txt gives this file its instruction set.
#include "runtime/Simulator/Semantics/MatrixKernel.h"

namespace weft::simulator::semantics {

void multiplyAvx512(const MatrixProduct &product, const void *const *a, const void *const *b, const void *const *c,
                    void *const *d) {
  multiplyHere(product, a, b, c, d);
}

void multiplyPiecesAvx512(const PiecesProduct &product) { multiplyPiecesHere(product); }

void multiplySparseAvx512(const MatrixProduct &product, const SparseRows &rows, const void *const *a,
                          const void *const *b, const void *const *c, void *const *d) {
  multiplySparseHere(product, rows, a, b, c, d);
}

} // namespace weft::simulator::semantics

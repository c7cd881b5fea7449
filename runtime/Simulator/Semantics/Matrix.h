// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Warp-wide matrix instructions: mma.sync, wmma.mma, ldmatrix, stmatrix, movmatrix.
//
// A fragment is a list of registers; a register is the address of its 32 lanes (uint32_t[32], or uint64_t[32] for
// f64), in lane order. Results may be written over operands.
//
// Rounding. PTX leaves the order and the intermediate precision of the sums open. Here:
//  - f16, bf16, tf32: products are exact; the k products of one instruction are summed by f32 fused multiply-adds in
//    ascending k, then C is added, each step rounded to nearest even. An f16 result is rounded once more at the end.
//    Tensor cores align the products and truncate, so their last bits differ; neither is nearer to PTX.
//  - e4m3, e5m2: as the tensor cores of sm_89 and sm_90 do, whose sums keep far fewer bits than f32 has: each product
//    and C are cut, towards zero, behind the 13th binary place below the largest exponent among them; their sum is
//    exact, and an f32 result is cut behind its own 13th place, an f16 result rounded to nearest even (measured bit
//    for bit by Xie et al., "MMA-Sim", arXiv 2511.10909, which the GPU's errors in our tests agree with).
//  - f64: fused multiply-adds in ascending k that start from C.
//  - integers and bits are exact; without .satfinite they wrap.
// tf32 operands have their low 13 bits ignored. A NaN result is the canonical one (0x7fffffff, 0x7fff).
#pragma once

#include "runtime/Simulator/Semantics/Fragment.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

namespace weft::simulator::semantics {

/// How mma combines single-bit operands (.bitOp).
enum class BitOperation : uint8_t { XorPopc, AndPopc };

/// The qualifiers of one `mma.sync` or `wmma.mma`.
struct MatrixProduct {
  MatrixShape shape{16, 8, 16};
  MatrixType a = MatrixType::F16;
  MatrixType b = MatrixType::F16;
  AccumulatorType c = AccumulatorType::F32;
  AccumulatorType d = AccumulatorType::F32;
  bool saturate = false;                     ///< .satfinite, integers only
  BitOperation bits = BitOperation::XorPopc; ///< b1 only
  constexpr bool operator==(const MatrixProduct &) const = default;
};

/// Whether PTX has `product` as an `mma.sync` of sm_80, of sm_89 for 8-bit floats or of sm_90 for f64, whose maps
/// Fragment.h has (every one but m8n8k4.f16).
bool isMmaProduct(const MatrixProduct &product);

/// Whether PTX has `product` as a `wmma.mma` of sm_80.
bool isWmmaProduct(const MatrixProduct &product);

/// D = A * B + C over a warp (PTX ISA "mma", "wmma.mma"). `product` must be one that isMmaProduct or isWmmaProduct
/// accepts. Operands hold at least multiplicandRegisters and accumulatorRegisters registers, in the order of
/// Fragment.h. `d` may overlap the operands. Uses the widest vectors of this machine.
void multiply(const MatrixProduct &product, const void *const *a, const void *const *b, const void *const *c,
              void *const *d);

/// D = A * B + C of 8-bit floats as sm_89 runs `mma.sync`: `multiply` of 16 of k at a time.
void multiplyHalves(const MatrixProduct &product, const void *const *a, const void *const *b, const void *const *c,
                    void *const *d);

/// D = A * B + C of 8-bit floats as sm_90 runs `mma.sync`, having no such instruction: widened to f16, the first two
/// of each register, then the others.
void multiplyWidened(const MatrixProduct &product, const void *const *a, const void *const *b, const void *const *c,
                     void *const *d);

/// D = A * B + C for the f16 m8n8k4 of sm_70 (PTX ISA "Matrix Fragments for mma.m8n8k4 with .f16"): four products at
/// once, one for each quad pair of lanes.
struct QuadPairProduct {
  bool aByColumn, bByRow; ///< the .col of A and the .row of B
  AccumulatorType c, d;
};
void multiplyQuadPairs(const QuadPairProduct &product, const void *const *a, const void *const *b, const void *const *c,
                       void *const *d);

/// A warp's rows of a wgmma of f16, bf16 or tf32 whose B lies in shared memory: for each eight columns what `multiply` of
/// m16n8k16 or m16n8k8 gives.
struct PiecesProduct {
  MatrixType type;
  AccumulatorType accumulator; ///< F16 or F32
  unsigned tiles;              ///< of eight columns
  const void *const *a;        ///< four registers
  const void *memory;
  const uint32_t *pieces; ///< where in memory the 16 bytes of B lie: per tile and half of k those of eight columns
  bool byRow;             ///< or, of 16-bit types, of eight rows
  bool adds;              ///< to what D holds, which is otherwise not read
  void *const *d;         ///< the registers of one tile after those of another
};
void multiplyPieces(const PiecesProduct &product);

/// Which row of B each element that a sparse A stores is multiplied by.
struct SparseRows {
  unsigned stored = 0;     ///< elements of each row of A: half of k
  uint8_t of[16][64] = {}; ///< per row of A and element
};

/// A product with a structured sparse A, as `mma.sp` and a warp's rows of `wgmma.mma_async.sp` have it.
struct SparseProduct {
  MatrixProduct product; ///< k counts the elements that are not stored too
  unsigned selector = 0; ///< which threads of four hold the metadata, below selectorsOf
  bool ordered = false;  ///< indices must ascend
};

/// Four bits of metadata that are no indices: lane and bits, and the row and the first element of A they are for.
struct MetadataFault {
  unsigned lane, bits, row, element;
};

/// The metadata of 16 rows of A, read.
struct Metadata {
  SparseRows rows;
  std::optional<MetadataFault> fault; ///< the first
};

/// Reads the metadata that 32 lanes hold (PTX ISA "Sparse matrix storage" and "Matrix fragments for multiply-accumulate
/// operation with sparse matrix A"). Lanes of which `ignored` has the bit are never at fault.
Metadata readMetadata(const SparseProduct &sparse, const uint32_t lanes[32], uint32_t ignored = 0);

/// How many selectors a product has: 4, 2 or 1, as one, two or all of four threads hold its metadata.
unsigned selectorsOf(const MatrixProduct &product);
/// The lanes that hold the metadata.
uint32_t metadataLanes(const SparseProduct &sparse);

/// Whether PTX has `product` as an `mma.sp` of sm_80, or of sm_89 for 8-bit floats.
bool isSparseMmaProduct(const MatrixProduct &product);

/// D = A * B + C of a sparse A: what `multiply` gives of the stored elements of each row and the rows of B they meet.
/// Elements that are not stored multiply nothing, not even infinities.
void multiplySparse(const MatrixProduct &product, const SparseRows &rows, const void *const *a, const void *const *b,
                    const void *const *c, void *const *d);

/// The same of 8-bit floats as sm_89 and as sm_90 run `mma.sp`: see multiplyHalves and multiplyWidened.
void multiplySparseHalves(const MatrixProduct &product, const SparseRows &rows, const void *const *a,
                          const void *const *b, const void *const *c, void *const *d);
void multiplySparseWidened(const MatrixProduct &product, const SparseRows &rows, const void *const *a,
                           const void *const *b, const void *const *c, void *const *d);

/// One way to compute `multiply`, `multiplyPieces` and `multiplySparse`; all give the same bits.
struct MatrixKernel {
  std::string_view name; ///< "portable", "avx2" or "avx512"
  void (*multiply)(const MatrixProduct &, const void *const *, const void *const *, const void *const *, void *const *);
  void (*multiplyPieces)(const PiecesProduct &);
  void (*multiplySparse)(const MatrixProduct &, const SparseRows &, const void *const *, const void *const *,
                         const void *const *, void *const *);
};

/// The ways this machine can run, slowest first.
std::span<const MatrixKernel> matrixKernels();

/// One 8x8 matrix of 16-bit elements as `ldmatrix` gives it to a warp: `rows[i]` is row i's 16 bytes, `lanes` the 32
/// results (PTX ISA "ldmatrix"). Transposed with `.trans`.
void loadMatrix(const std::byte *const rows[8], bool transpose, uint32_t lanes[32]);

/// The inverse: the 16 bytes of each row as `stmatrix` stores them (PTX ISA "stmatrix").
void storeMatrix(const uint32_t lanes[32], bool transpose, std::byte *const rows[8]);

/// The transpose of an 8x8 matrix of 16-bit elements held across a warp (PTX ISA "movmatrix").
void transposeMatrix(const uint32_t source[32], uint32_t lanes[32]);

} // namespace weft::simulator::semantics

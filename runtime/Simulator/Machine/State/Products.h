// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The wgmma of a warp that no wgmma.wait_group has retired, and what has been done to its registers.
#pragma once

#include "runtime/Simulator/Machine/State/MatrixProduct.h"
#include "runtime/Simulator/Machine/State/Program.h"

#include <memory>
#include <unordered_map>
#include <vector>

namespace weft::simulator::machine {

/// Where the 16 bytes lie that hold eight rows' (or, transposed, columns') elements of an operand, by descriptor.
struct MatrixDescriptor {
  uint32_t start = 0, leading = 0, stride = 0; ///< bytes
  uint32_t span = 16;                          ///< of the swizzle: 16 is none
  bool coarse = false;                         ///< it moves 32 bytes at a time, in four lines of 128
  bool valid = true;

  /// PTX ISA "Matrix Descriptor Format".
  static MatrixDescriptor decode(uint64_t bits);
  /// PTX ISA 9.7.16.4.1: the same fields for tcgen05, but for the swizzle's.
  static MatrixDescriptor decodeTensor(uint64_t bits);
  /// The byte of shared memory of 16 bytes: of row `row` and bytes 16 * chunk on, K being contiguous;
  uint32_t alongK(uint32_t row, uint32_t chunk) const;
  /// of element k of the columns 8 * group on, M or N being contiguous.
  uint32_t alongRows(uint32_t group, uint32_t k) const;

private:
  uint32_t swizzled(uint32_t address) const;
};

/// Where an operand's 16-byte pieces lie: of each eight rows (or, transposed, columns) eight for the first part of k,
/// then eight for the next. k has two parts, or, of a B that a sparse A meets, four.
struct OperandPieces {
  std::vector<uint32_t> begins;
  uint32_t last = 0; ///< the largest of them
  bool valid = true;
  bool tooWide = false; ///< for the swizzle
};

/// A loop's products have the same operands again and again: their pieces, by descriptor.
class KnownPieces {
public:
  /// Of `rows` rows (or columns) from `row` on.
  std::shared_ptr<const OperandPieces> of(uint64_t descriptor, bool transposed, uint32_t row, uint32_t rows,
                                          uint32_t parts = 2);

private:
  struct Key {
    uint64_t descriptor;
    uint32_t row, rows, parts;
    bool transposed;
    bool operator==(const Key &) const = default;
  };
  struct Hash {
    size_t operator()(const Key &key) const {
      return (key.descriptor ^ (uint64_t(key.rows) << 49 | uint64_t(key.row) << 14 | key.parts << 1 | key.transposed)) *
             0x9E3779B97F4A7C15u;
    }
  };
  std::unordered_map<Key, std::shared_ptr<const OperandPieces>, Hash> known_;
};

/// Record::aux of wgmma.mma_async: Record::wide is d, then a where it is in registers, then a sparse one's metadata.
struct WgmmaForm {
  semantics::MatrixProduct step; ///< the mma of a warp's 16 rows and 8 columns that it is made of
  uint32_t n = 8;
  unsigned dCount = 0;
  bool aInRegisters = false, aTransposed = false, bTransposed = false, negated = false;
  bool sparse = false; ///< of A half of k is stored
  unsigned selector = 0;
  /// Registers of D, then of A: those that a wgmma in flight has. The metadata of a sparse A are behind them.
  unsigned registers() const { return dCount + (aInRegisters ? 4 : 0); }
};

/// One wgmma.mma_async of a warp.
struct PendingProduct {
  const Record *record = nullptr;
  uint32_t pc = 0;
  uint32_t group = 0;                        ///< how many groups the warp had committed before
  std::shared_ptr<const OperandPieces> a, b; ///< of the warp's rows, none where they are in registers; of all columns
  std::shared_ptr<const semantics::SparseRows> rows; ///< of a sparse A: its metadata when it was issued
  uint64_t step = 0;                                 ///< its number among the wgmma of the warpgroup
  bool read = false;                                 ///< what it reads of shared memory is over:
  uint32_t reader = 0, over = 0;                     ///< as of which clock
  uint32_t clock = 0;                                ///< of the warp when it was issued, where A is in registers
  bool adds = true;                                  ///< scale-d
  bool computed = false;                             ///< early
};

/// Of one warp.
struct Products {
  enum : uint8_t { Accumulates = 1, Multiplied = 2 };
  std::vector<PendingProduct> pending;
  uint32_t committed = 0;
  uint32_t fences = 1;           ///< wgmma.fence so far
  std::vector<uint32_t> written; ///< per slot: `fences` when something else than wgmma wrote it last
  std::vector<uint8_t> inFlight; ///< per slot
};

} // namespace weft::simulator::machine

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The wgmma of a warp that no wgmma.wait_group has retired, and what has been done to its registers.
#pragma once

#include "runtime/Simulator/Machine/State/MatrixProduct.h"
#include "runtime/Simulator/Machine/State/Program.h"

#include <vector>

namespace weft::simulator::machine {

/// Where the 16 bytes lie that hold eight rows' (or, transposed, columns') elements of an operand, by descriptor.
struct MatrixDescriptor {
  uint32_t start = 0, leading = 0, stride = 0; ///< bytes
  uint32_t span = 16;                          ///< of the swizzle: 16 is none
  bool valid = true;

  /// PTX ISA "Matrix Descriptor Format".
  static MatrixDescriptor decode(uint64_t bits);
  /// The byte of shared memory of 16 bytes: of row `row` and bytes 16 * chunk on, K being contiguous;
  uint32_t alongK(uint32_t row, uint32_t chunk) const;
  /// of element k of the columns 8 * group on, M or N being contiguous.
  uint32_t alongRows(uint32_t group, uint32_t k) const;

private:
  uint32_t swizzled(uint32_t address) const;
};

/// Record::aux of wgmma.mma_async: Record::wide is d, then a where it is in registers.
struct WgmmaForm {
  semantics::MatrixProduct step; ///< the mma of a warp's 16 rows and 8 columns that it is made of
  uint32_t n = 8;
  unsigned dCount = 0;
  bool aInRegisters = false, aTransposed = false, bTransposed = false, negated = false;
  /// Registers of D, then of A.
  unsigned registers() const { return dCount + (aInRegisters ? 4 : 0); }
  uint8_t narrow[2] = {}; ///< formats of 8-bit floating-point a and b, 0: none, 4: e4m3, 5: e5m2
};

/// One wgmma.mma_async of a warp.
struct PendingProduct {
  const Record *record = nullptr;
  uint32_t pc = 0;
  uint32_t group = 0; ///< how many groups the warp had committed before
  MatrixDescriptor a, b;
  bool adds = true;      ///< scale-d
  bool computed = false; ///< early
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

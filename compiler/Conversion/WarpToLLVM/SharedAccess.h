// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Addresses of what each lane accesses in a tile in shared memory.
#pragma once

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Warp/Layout/ScratchLayout.h"

namespace weft {

/// Pointers into one tile, for places whose offsets are the xor of what lanes, warps and a constant contribute. All
/// offsets in bytes.
class TileAddress {
public:
  /// `base` is the tile's address; `laneBases` and `warpBases` say what each bit of the lane and the warp contributes.
  TileAddress(Emitter &emitter, mlir::Value base, llvm::ArrayRef<uint32_t> laneBases,
              llvm::ArrayRef<uint32_t> warpBases);
  /// The address for a constant part. The bits of it that no lane or warp touches become an immediate offset; the
  /// others cost one xor and one addition, shared by equal ones.
  mlir::Value at(uint32_t constant);

private:
  Emitter &emitter;
  mlir::Value base, variable;
  uint32_t variableBits = 0;
  llvm::DenseMap<uint32_t, mlir::Value> pointers;
};

/// Gives registers that repeat others, and are null, those others' values.
void shareRepeated(const warp::LinearLayout &offsets, llvm::MutableArrayRef<mlir::Value> registers);

/// Writes a tensor's registers to a tile, or reads them, in the widest pieces that the access allows. Elements narrower
/// than a byte, and pointers, travel as integers. Where several lanes or warps hold an element, one of them writes it.
void emitSharedStore(Emitter &emitter, mlir::Value base, const warp::SharedAccess &access,
                     llvm::ArrayRef<mlir::Value> registers);
Registers emitSharedLoad(Emitter &emitter, mlir::Value base, const warp::SharedAccess &access, mlir::Type element);

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Addresses of what each lane accesses in a tile in shared memory.
#pragma once

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Layout/MatrixAccess.h"
#include "dialects/Warp/Layout/ScratchLayout.h"

namespace weft {

/// Bytes that lie between the lines of a tile with a margin, and between its runs of lines: at every multiple of
/// 2^`bit` bytes of an offset `bytes` more. Places of offsets without a bit in common add up.
struct Apart {
  unsigned bit;
  int64_t bytes;
};
/// Those of a tile; none without a margin.
llvm::SmallVector<Apart, 2> apartIn(warp::SharedType shared);
/// The place of an offset, in bytes.
int64_t placeOf(uint32_t offset, llvm::ArrayRef<Apart> apart);
/// Leaves of a piece what is of one line, where lines are apart.
void keepWithinLines(warp::SharedAccess &access, warp::SharedType shared);

/// Pointers into one tile, for places whose offsets are the xor of what lanes, warps and a constant contribute. All
/// offsets in bytes.
class TileAddress {
public:
  /// `base` is the tile's address; `laneBases` and `warpBases` say what each bit of the lane and the warp contributes.
  TileAddress(Emitter &emitter, mlir::Value base, llvm::ArrayRef<uint32_t> laneBases,
              llvm::ArrayRef<uint32_t> warpBases, llvm::ArrayRef<Apart> apart = {});
  /// The address for a constant part. The bits of it that no lane or warp touches become an immediate offset; the
  /// others cost one xor and one addition, shared by equal ones.
  mlir::Value at(uint32_t constant);
  /// From here on, addresses are computed where they are asked for, and not before a loop around it.
  void computeHere();

private:
  Emitter &emitter;
  mlir::Value base, variable;
  llvm::SmallVector<Apart, 2> apart;
  uint32_t variableBits = 0;
  int64_t constantBytes = 0;
  llvm::DenseMap<uint32_t, mlir::Value> pointers;
};

/// Bytes of a ring before one of its stages.
mlir::Value bytesBefore(warp::StageOp stage, Emitter &e);

/// Gives registers that repeat others, and are null, those others' values.
void shareRepeated(const warp::LinearLayout &offsets, llvm::MutableArrayRef<mlir::Value> registers);

/// Stores `value`, of `bytes` bytes, to `pointer` in shared memory where `predicate` is true.
void predicatedStore(Emitter &emitter, mlir::Value value, mlir::Value pointer, unsigned bytes, mlir::Value predicate);
/// Writes a tensor's registers to a tile, or reads them, in the widest pieces that the access allows. Elements narrower
/// than a byte, and pointers, travel as integers. Where several lanes or warps hold an element, one of them writes it.
/// `here`: by addresses that are computed where it happens. `apart`: bytes between the tile's lines.
void emitSharedStore(Emitter &emitter, mlir::Value base, const warp::SharedAccess &access,
                     llvm::ArrayRef<mlir::Value> registers, bool here = false, llvm::ArrayRef<Apart> apart = {});
/// `value` (i32) as something that nobody knows before: what is computed from it is computed here.
mlir::Value computedHere(Emitter &emitter, mlir::Value value);
/// Whether a loop around an op writes so many tiles that the addresses of them all, which are the same in every round,
/// would take registers that its values need (a tile takes up to a dozen): they are better computed anew.
bool isInLoopOfManyStores(mlir::Operation *op);
Registers emitSharedLoad(Emitter &emitter, mlir::Value base, const warp::SharedAccess &access, mlir::Type element,
                         bool here = false);

/// Registers that lie side by side in a tile, lowest offset first, and the constant part of that, in elements.
struct SharedPiece {
  llvm::SmallVector<unsigned, 16> registers;
  uint32_t offset;
};

/// Reads a tensor's registers from a tile in the widest pieces, each where one of its registers is first asked for.
class PieceReader {
public:
  PieceReader(Emitter &emitter, mlir::Value base, const warp::SharedAccess &access, mlir::Type element);
  mlir::Value at(unsigned reg);

private:
  /// The register of a piece that has what a register has, maybe itself.
  struct Place {
    unsigned piece, reg;
  };

  Emitter &emitter;
  TileAddress addresses;
  mlir::Type element;
  llvm::SmallVector<SharedPiece> pieces;
  llvm::SmallVector<Place> places; ///< each register's
  Registers registers;             ///< what has been read
};

/// Whether a tile is read for one product by multiply-adds alone, right before it: that reads the tile itself, a few
/// elements at a time, so that they need not all be held.
bool isReadByProduct(warp::LoadSharedOp load);

/// The address for the constant part of an offset, in elements.
using AddressAt = llvm::function_ref<mlir::Value(uint32_t)>;
/// As `emitSharedLoad`, from addresses that the caller makes.
Registers emitSharedLoad(Emitter &emitter, const warp::SharedAccess &access, mlir::Type element, AddressAt addressAt);
/// How many register bits tell apart the words that a matrix instruction takes as one operand, for what takes a tensor.
unsigned operandBits(mlir::Value tensor);
/// Reads a tensor's registers by `ldmatrix` from addresses that the caller makes, to which each lane contributes
/// `access.laneOffsets`. `finish` may replace the word that holds the registers from a number on, in order.
Registers emitMatrixLoad(Emitter &emitter, const warp::MatrixAccess &access, const warp::LinearLayout &offsets,
                         mlir::Type element, AddressAt addressAt,
                         llvm::function_ref<mlir::Value(mlir::Value word, uint32_t firstRegister)> finish = nullptr);
/// Reads a tensor of 8-bit elements by `ldmatrix` of pairs; `addressAt` is asked for places in pairs.
Registers emitPairedLoad(Emitter &emitter, const warp::PairedAccess &paired, const warp::LinearLayout &offsets,
                         mlir::Type element, AddressAt addressAt);
/// Writes a tensor's registers by `stmatrix` to such addresses, where `access.first` leaves no two lanes one element.
void emitMatrixStore(Emitter &emitter, const warp::MatrixAccess &access, const warp::LinearLayout &offsets,
                     llvm::ArrayRef<mlir::Value> registers, AddressAt addressAt);
/// Offsets or sizes in elements, in bytes.
llvm::SmallVector<uint32_t> inBytes(llvm::ArrayRef<uint32_t> offsets, unsigned elementBytes);

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// How accesses to memory are cut into vectors, and how vectors travel in PTX registers.
#pragma once

#include "compiler/Conversion/WarpToLLVM/Emitter.h"

namespace weft {

/// How a value lies in memory: an i1 or f8 as a byte, anything else as in a register.
mlir::Type memoryType(mlir::Type element);
/// Bytes of a memory type.
unsigned bytesOf(mlir::Type memory);

/// For each register of a layout, the lowest register that holds the same element.
/// Elements whose numbers differ in `equal` alone are taken for one.
llvm::SmallVector<unsigned> firstHolders(const warp::LinearLayout &layout, uint32_t equal = 0);

/// An access cut into vectors: which registers begin one, and how many elements each has.
struct Vectors {
  unsigned width;                            // elements, a power of two
  llvm::SmallVector<unsigned> firstRegister; // of each vector; registers that repeat others are left out
  llvm::SmallVector<unsigned> holders;       // as `firstHolders`
};

/// The vectors of an access of `pointer`: as wide as its `warp.contiguity` and its layout allow, and at most `widest`
/// elements.
Vectors vectorsOf(mlir::Operation *op, mlir::Value pointer, unsigned widest);
/// The vectors of a load or store, as wide as the target allows; what it does, and why no more, is a remark.
Vectors cutIntoVectors(mlir::Operation *op, mlir::Value pointer, Emitter &e);

/// "1 instruction", "2 instructions", for remarks.
std::string instructionsText(size_t count);

/// The addresses of some registers of an access. Where pointers are known to count up (`warp.runs`), those of one run are
/// one address and constants, which become immediate offsets.
Registers addressesOf(mlir::Operation *op, mlir::Value pointer, llvm::ArrayRef<unsigned> registers, Emitter &e);

/// How the bytes of a vector travel in PTX registers: `count` words of `bits` bits.
struct Words {
  unsigned count, bits;
  /// The inline-assembly constraint of one word.
  llvm::StringRef constraint() const { return bits == 64 ? "l" : bits == 32 ? "r" : "h"; }
  /// Its LLVM type; PTX has no 8-bit registers.
  mlir::Type type(Emitter &e) const { return e.b.getIntegerType(std::max(16u, bits)); }
  /// "v4.b32", "b16": the type of the access (PTX ISA 9.7.9.8).
  std::string accessType() const;
  /// PTX that makes $0, $1, ... undefined: 0 to the machine, and to the simulator numbers that nothing wrote, which it
  /// reports where they matter. As many instructions as there are words; to be put in braces.
  std::string undefinedCode() const;
  /// PTX that makes $0, $1, ... zeros.
  std::string zeroCode() const;
};
Words wordsOf(unsigned bytes, unsigned elementBytes);

/// A value of an integer or float type of 16 to 64 bits that is undefined, as `Words::undefinedCode` has it.
mlir::Value undefinedValue(mlir::Type type, Emitter &e);

/// Values of a memory type as words, and back.
Registers toWords(llvm::ArrayRef<mlir::Value> elements, Words words, Emitter &e);
Registers fromWords(llvm::ArrayRef<mlir::Value> values, Words words, unsigned elements, mlir::Type memory, Emitter &e);

} // namespace weft

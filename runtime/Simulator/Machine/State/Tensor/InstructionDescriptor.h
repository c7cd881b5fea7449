// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the descriptors of tcgen05.mma say (PTX ISA 9.7.16.4): shapes and types in 32 bits, and in 64 bits where the
// elements of an operand lie in shared memory.
#pragma once

#include "runtime/Simulator/Machine/State/Products.h"
#include "runtime/Simulator/Semantics/Tensor/Elements.h"

#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

namespace weft::simulator::machine {

/// The .kind of a tcgen05.mma.
enum class TensorKind : uint8_t { F16, TF32, F8F6F4, I8, MXF8F6F4, MXF4, MXF4NVF4 };
/// Whether its operands have a scale for each block of elements along K.
constexpr bool isScaled(TensorKind kind) { return kind >= TensorKind::MXF8F6F4; }
/// Whether 64 elements of 4 bits go into 32 bytes.
constexpr bool isPacked(TensorKind kind) { return kind >= TensorKind::MXF4; }

/// The instruction descriptor, read.
struct InstructionDescriptor {
  uint32_t m = 0, n = 0;
  semantics::TensorElement a{}, b{};
  semantics::AccumulatorType d = semantics::AccumulatorType::F32;
  bool saturate = false, negateA = false, negateB = false;
  bool transposeA = false, transposeB = false; ///< M, or N, is contiguous
  semantics::ScaleElement scale{};             ///< of both operands
  uint8_t scaleA = 0, scaleB = 0;              ///< the first byte of a word of scales that is meant
  uint8_t mostShift = 0;                       ///< of .ws, by which a B that was kept is shifted
  std::string fault;                           ///< what is wrong with it; empty where nothing is

  /// `stationary`: of .ws.
  static InstructionDescriptor decode(uint32_t bits, TensorKind kind, bool pair, bool stationary);
  /// The same of a kind with scales, of so many for each row.
  static InstructionDescriptor decodeScaled(uint32_t bits, TensorKind kind, unsigned scales, bool pair);
  /// Columns of tensor memory that the 32 bytes of a row of A take.
  static constexpr uint32_t aColumns = 8;
  bool operator==(const InstructionDescriptor &) const = default;
};

/// Where the 16 bytes lie that hold an operand's elements: of each row two (or one), or, transposed, for each group of as many rows
/// as elements go into them, one for each of k.
struct TensorPieces {
  std::vector<uint32_t> begins;
  uint32_t last = 0; ///< the largest of them
  bool transposed = false;
  unsigned bytes = 2; ///< of an element
  std::string fault;  ///< what is wrong with the descriptor
  bool unsupported = false;
};

/// Pieces by descriptor: a loop's products have the same again and again.
class KnownTensorPieces {
public:
  std::shared_ptr<const TensorPieces> of(uint64_t descriptor, bool transposed, unsigned bytes, uint32_t rows,
                                         uint32_t parts = 2);

private:
  struct Key {
    uint64_t descriptor;
    uint32_t rows, parts;
    unsigned bytes;
    bool transposed;
    bool operator==(const Key &) const = default;
  };
  struct Hash {
    size_t operator()(const Key &key) const {
      return (key.descriptor ^ (uint64_t(key.rows) << 48 | key.parts << 5 | key.bytes << 1 | key.transposed)) *
             0x9E3779B97F4A7C15u;
    }
  };
  std::unordered_map<Key, std::shared_ptr<const TensorPieces>, Hash> known_;
};

/// The 32 bytes of each row, one row after another.
void gatherRows(const TensorPieces &pieces, const std::byte *shared, std::byte *rows);

} // namespace weft::simulator::machine

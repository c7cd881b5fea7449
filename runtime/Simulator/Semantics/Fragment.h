// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which element of which matrix a lane's register holds: the fragment maps of mma.sync and wmma.
//
// Every map is one rule. A 32-bit register of a warp holds 32 / bits elements a lane, and the warp's 32 registers in
// lane order are an 8 x (4 * perRegister) tile in row-major order: lane = 4 * row + chunk. A is tiled over (m, k), B
// over (n, k) (its tiles hold the transpose), and the accumulators over (m, n) with two elements a lane. What is left
// is the order of the tiles over the registers.
#pragma once

#include <cstdint>

namespace weft::simulator::semantics {

/// Element types of the multiplicands of mma, wmma and wgmma (PTX ISA 9.7.14.2).
enum class MatrixType : uint8_t { F16, BF16, TF32, F64, S8, U8, S4, U4, B1, E4M3, E5M2 };

constexpr bool isFloat8(MatrixType type) { return type == MatrixType::E4M3 || type == MatrixType::E5M2; }

/// Element types of the accumulators of mma and wmma.
enum class AccumulatorType : uint8_t { F16, F32, F64, S32 };

/// A matrix of D[m, n] = A[m, k] * B[k, n] + C[m, n].
enum class Operand : uint8_t { A, B, C };

/// The .shape qualifier, for example {16, 8, 16}.
struct MatrixShape {
  uint16_t m, n, k;
  constexpr bool operator==(const MatrixShape &) const = default;
};

/// Where an element lies in its matrix.
struct Position {
  uint16_t row, col;
  constexpr bool operator==(const Position &) const = default;
};

/// Bits of one multiplicand as registers hold it: TF32 lies in 32.
constexpr unsigned bitsOf(MatrixType type) {
  switch (type) {
  case MatrixType::F64:
    return 64;
  case MatrixType::TF32:
    return 32;
  case MatrixType::F16:
  case MatrixType::BF16:
    return 16;
  case MatrixType::S8:
  case MatrixType::U8:
  case MatrixType::E4M3:
  case MatrixType::E5M2:
    return 8;
  case MatrixType::S4:
  case MatrixType::U4:
    return 4;
  case MatrixType::B1:
    return 1;
  }
  return 0;
}

/// Bits of one accumulator.
constexpr unsigned bitsOf(AccumulatorType type) {
  return type == AccumulatorType::F16 ? 16 : type == AccumulatorType::F64 ? 64 : 32;
}

/// How many elements of `type` one register of a lane holds; an f64 has a 64-bit register to itself.
constexpr unsigned perRegister(unsigned bits) { return bits >= 32 ? 1 : 32 / bits; }

/// Where element `element` of lane `lane` lies in A (m x k) or B (k x n) of `mma.sync` (PTX ISA "Matrix Fragments
/// for mma.m16n8k16" and its siblings), `bits` wide each. Elements count through the lane's registers, low bits
/// first. Wmma's fragments, whose layout PTX leaves open, follow the same rule: tiles of A walk m, then k; tiles of
/// B walk k, then n; a fragment with more registers than tiles starts over.
constexpr Position multiplicandPosition(Operand operand, MatrixShape shape, unsigned bits, unsigned lane,
                                        unsigned element) {
  const unsigned width = perRegister(bits), columns = 4 * width;
  const unsigned row = lane / 4, chunk = lane % 4 * width + element % width;
  if (operand == Operand::A) {
    const unsigned rowTiles = shape.m / 8, colTiles = shape.k / columns;
    const unsigned tile = element / width % (rowTiles * colTiles);
    return {uint16_t(tile % rowTiles * 8 + row), uint16_t(tile / rowTiles * columns + chunk)};
  }
  const unsigned rowTiles = shape.k / columns, colTiles = shape.n / 8;
  const unsigned tile = element / width % (rowTiles * colTiles);
  return {uint16_t(tile % rowTiles * columns + chunk), uint16_t(tile / rowTiles * 8 + row)};
}

/// Where element `element` of lane `lane` lies in C or D (m x n). An f16 accumulator packs elements 2i and 2i + 1
/// into register i. Tiles walk m, then n.
constexpr Position accumulatorPosition(MatrixShape shape, unsigned lane, unsigned element) {
  const unsigned rowTiles = shape.m / 8, tile = element / 2;
  return {uint16_t(tile % rowTiles * 8 + lane / 4), uint16_t(tile / rowTiles * 8 + lane % 4 * 2 + element % 2)};
}

/// How many elements of C or D a lane holds.
constexpr unsigned accumulatorElements(MatrixShape shape) { return shape.m * shape.n / 32; }

/// How many registers hold one lane's part of A or B of `mma.sync`, each element once.
constexpr unsigned multiplicandRegisters(Operand operand, MatrixShape shape, unsigned bits) {
  return (operand == Operand::A ? shape.m : shape.n) * shape.k / (32 * perRegister(bits));
}

/// How many registers hold one lane's part of C or D.
constexpr unsigned accumulatorRegisters(MatrixShape shape, AccumulatorType type) {
  return accumulatorElements(shape) / (type == AccumulatorType::F16 ? 2 : 1);
}

/// How many registers `wmma.load` gives a lane for A or B (PTX ISA "Matrix Fragments for WMMA"): f16 has always
/// eight, so that its elements lie in several lanes; every other type holds each element once.
constexpr unsigned wmmaRegisters(Operand operand, MatrixShape shape, MatrixType type) {
  return type == MatrixType::F16 ? 8 : multiplicandRegisters(operand, shape, bitsOf(type));
}

} // namespace weft::simulator::semantics

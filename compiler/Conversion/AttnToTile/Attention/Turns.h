// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Sums in device memory that many programs add to, each tile of them in the programs' order: the same bits every time.
//
//   a program takes the next tile of keys of its head     place = tickets[b, h]++
//   at a block of queries, once the programs before it have been there:
//                                                          wait until turns[b, h, block] = those before it that meet it
//     memory[block] += ...                                 (red.global.add.f32)
//     turns[b, h, block]++
//
// Places are handed out in the order in which programs start, so that whoever is waited for has started, and goes on. A
// walk goes from the last block to the first: programs of a diagonal then follow one another at the same blocks, where
// each would else begin at a block that all before it reach last.
#pragma once

#include "compiler/Conversion/AttnToTile/Attention/AttendBackwardKernel.h"

namespace weft {

/// Whether every program can say how many of those before it meet a block: the pattern's blocks are exactly known.
bool canTakeTurns(const Attend &attend);

/// The turns of the programs of one kernel whose rows are keys, of one domain that is not counted.
class Turns {
public:
  /// Asks for the tensors of tickets and turns, and takes a place: what BackwardKernel::begin is given.
  explicit Turns(BackwardKernel &kernel);
  mlir::Value place;

  /// Waits for the program's turn at a block of queries.
  void wait(const RowTile &queries);
  /// Lets the next one go, once all that was added before is there.
  void pass(const RowTile &queries);

private:
  mlir::Value pointerTo(const RowTile &queries);
  mlir::Value countBefore(const RowTile &queries);

  BackwardKernel &kernel;
  TileBuilder &b;
  TensorParameter turns;
};

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// A producer's ring whose loop runs its second products beside the next iteration's (Warpgroups/LateProducts.h), as
// `warp-specialise` and `warp-copy-with-ring` leave it, and what keeps it in a loop around that one:
//
//   for %tile {                              warp.mbarrier_init %ring
//     warp.mbarrier_init %ring               for %tile iter_args(%place, %turn) {
//     produce k(0), and q                      produce k(0), and q, where it is read no more
//     if any iteration {                       %next = if any iteration {
//       wait; produce k(1), v(0); use            wait; produce k(1), v(0), where the tile is free; use
//       for {                                    for {
//         arrive; wait; produce; use    ─▶         arrive; wait; produce; use
//       }                                        }
//       the last products                        arrive; the last products; arrive
//     }                                        }
//     warp.mbarrier_inval %ring                store
//     store                                    yield %next
//   }                                        }
//                                            warp.mbarrier_inval %ring
//
// The ring's place and turn go on from one iteration of the outer loop to the next. The copies before the loop go where
// others have been read: each waits as a copy in the loop would. What is copied beside the first tiles, for the loop to
// read in each iteration, waits until the last iteration's first products have read it: they arrive behind the loop.
#pragma once

#include "dialects/Warp/Transforms/Roles/KeptRing.h"

namespace weft::warp {

struct LateRing : KeptRing {
  RingStartOp start;
  mlir::scf::ForOp loop;
  MbarrierArriveOp arrive;             ///< of the loop, for the iteration before
  MbarrierWaitOp last;                 ///< for the tiles of the last products
  llvm::SmallVector<ProduceOp> copies; ///< before the loop, in the order of their iterations
  bool hasBeside = false;              ///< whether other tiles come with the first ones

  int stages() { return llvm::cast<SharedType>(init.getRing().getType()).getStages(); }
};

/// Finds the parts of the ring that `init` makes. The reason where it is of another form.
llvm::StringRef findLateRing(MbarrierInitOp init, LateRing &ring);

/// Keeps the ring in `outer`, which is changed: branches alone stand between the two.
void keepLateRing(LateRing &ring, mlir::scf::ForOp &outer);

} // namespace weft::warp

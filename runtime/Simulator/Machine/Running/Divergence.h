// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Lanes of a warp that take different ways, and how they come together again.
//
// A warp is a set of fragments, each with its own pc. A branch that divides a fragment makes two; both wait at the
// branch's join for each other. Waiting there is for speed only: a fragment that spins on memory does not hold up the
// lanes at a join for long (see `rotate`), so that lanes may wait for each other in any way that ends on a GPU.
#pragma once

#include "runtime/Simulator/Machine/State/Warp.h"

namespace weft::simulator::machine {

/// Divides the current fragment: lanes of `taken` go on at `target`, the rest at the next record.
void divide(Warp &warp, uint32_t taken, uint32_t target, uint32_t join);

/// The current fragment enters a region that its lanes leave at `join` each by itself.
void divideInto(Warp &warp, uint32_t join);

/// The current fragment has reached the join record at `pc`: waits there unless it is nobody's join.
void arrive(Warp &warp, uint32_t pc);

/// Ends lanes of the current fragment.
void exitLanes(Warp &warp, uint32_t mask);

/// Makes sure that all live lanes of `needed` are in `mask`, the lanes that run the current record. If they are not,
/// takes the current fragment off, to come back to this record when they are here too, and returns false.
bool gather(Warp &warp, uint32_t mask, uint32_t needed);

/// The same where each lane names the lanes that it waits for: returns those of `mask` that wait for nobody and go on.
/// The others are taken off; 0 where that is all.
uint32_t gatherGroups(Warp &warp, uint32_t mask, const uint32_t *members);

/// Lets fragments that wait for each other's lanes at different instructions of one kind execute it together; true
/// where any did (see Meetings.cpp).
bool meetApart(Warp &warp);

/// Lets a fragment go on at a warp-wide instruction for which it waited only for lanes that have ended since: those that
/// exit are not waited for (PTX ISA 9.7.13, "all non-exited threads"); true where one does.
bool leftByExits(Warp &warp);

/// Takes the current fragment off in the given state; it will go on at `pc`.
void suspend(Warp &warp, FragmentState state, uint32_t pc, uint8_t barrier = 0);

/// Whether lanes are at a warp-wide instruction whose other lanes are not there.
bool waitsForLanes(const Warp &warp);

/// Loads a fragment that can run into the warp; false where there is none.
bool resume(Warp &warp);

/// At the end of a turn: lets another fragment go first, and frees lanes that wait for a fragment that spins.
void rotate(Warp &warp);

/// Frees the lanes that wait at a join of the warp, to go on without those they wait for; false where none wait.
bool releaseWaiting(Warp &warp);

} // namespace weft::simulator::machine

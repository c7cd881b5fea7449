// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Executors that a part other than their own knows a record by, or puts into one: those of control flow, and of records
// that the decoder makes.
#pragma once

#include "runtime/Simulator/Machine/State/Program.h"

namespace weft::simulator::machine {

/// What a branch with a table may do; Record::aux.
struct BranchTable {
  std::vector<uint32_t> targets;
};

void runJoin(Warp &warp, const Record &record, uint32_t mask);
void runBranch(Warp &warp, const Record &record, uint32_t mask);
void runBranchTable(Warp &warp, const Record &record, uint32_t mask);
void runExit(Warp &warp, const Record &record, uint32_t mask);
void runTrap(Warp &warp, const Record &record, uint32_t mask);
void runNarrow(Warp &warp, const Record &record, uint32_t mask);
void runWidenUnsigned(Warp &warp, const Record &record, uint32_t mask);
void runWidenSigned(Warp &warp, const Record &record, uint32_t mask);
/// The stack's top to op[0], and back; T is uint32_t or uint64_t.
template <typename T> void runStackSave(Warp &warp, const Record &record, uint32_t mask);
template <typename T> void runStackRestore(Warp &warp, const Record &record, uint32_t mask);
/// op[0] = op[1] == Record::imm, 64 bits.
void runCallTest(Warp &warp, const Record &record, uint32_t mask);
/// Predicate op[0] = op[1] != 0, 32 bits.
void runNonZero(Warp &warp, const Record &record, uint32_t mask);
/// Predicate op[0] = !op[1].
void runOpposite(Warp &warp, const Record &record, uint32_t mask);
void runDynamicSpecial(Warp &warp, const Record &record, uint32_t mask);

} // namespace weft::simulator::machine

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Collecting findings: the first of each kind at each instruction is kept whole, the rest are counted.
#pragma once

#include "runtime/Simulator/Interface/Report.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

namespace weft::simulator::machine {

struct Warp;

/// What a worker found; logs of all workers are merged in block order.
class FindingLog {
public:
  /// Whether a finding of this kind at this record would be new; counts it where it is not.
  bool isNew(FindingKind kind, uint32_t pc, bool advisory);
  void add(Finding finding, uint64_t block, bool advisory);

  struct Entry {
    Finding finding;
    uint64_t block;
    bool advisory;
    uint32_t pc;
  };
  std::map<std::pair<uint32_t, uint32_t>, Entry> entries; ///< by (kind and advisory bit, record)
private:
  std::pair<uint32_t, uint32_t> pending_{};
};

/// Reports `kind` for lane `lane` of `warp` at the record that runs. `what` is the sentence's end ("read 4 bytes at
/// ..., which ..."); kernel, block, warp, lane and lines are put in here. `other` is the other side of a conflict.
void report(Warp &warp, FindingKind kind, unsigned lane, const std::string &what, std::string other = {},
            bool advisory = false);

/// "line 12 (add.py:3)" for a record of the warp's kernel.
std::string siteName(const Warp &warp, uint32_t pc);

/// "a bulk copy of line 12": the engine that a record of the warp's kernel makes work.
std::string engineName(const Warp &warp, uint32_t pc);

} // namespace weft::simulator::machine

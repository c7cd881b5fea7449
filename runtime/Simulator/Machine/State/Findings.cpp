// Part of Weft. SPDX-License-Identifier: Apache-2.0
#include "runtime/Simulator/Machine/State/Findings.h"
#include "runtime/Simulator/Machine/State/Warp.h"
#include "runtime/Support/Format.h"

namespace weft::simulator::machine {

bool FindingLog::isNew(FindingKind kind, uint32_t pc, bool advisory) {
  pending_ = {uint32_t(kind) * 2 + advisory, pc};
  auto found = entries.find(pending_);
  if (found == entries.end())
    return true;
  ++found->second.finding.count;
  return false;
}

void FindingLog::add(Finding finding, uint64_t block, bool advisory) {
  entries[pending_] = {std::move(finding), block, advisory, pending_.second};
}

std::string siteName(const Warp &warp, uint32_t pc) {
  const Site &site = warp.kernel->sites[std::min<size_t>(pc, warp.kernel->sites.size() - 1)];
  return site.source.empty() ? format("line {}", site.line) : format("line {} ({})", site.line, site.source);
}

std::string engineName(const Warp &warp, uint32_t pc) {
  const ptx::Instruction *instruction = warp.kernel->sites[pc].instruction;
  const std::string_view mnemonic = instruction ? instruction->mnemonic : std::string_view();
  const std::string name = mnemonic == "wgmma" ? "a wgmma" : "a bulk copy";
  return format("{} of {}", mnemonic == "tcgen05" ? format("a tcgen05.{}", instruction->modifiers[0]) : name,
                siteName(warp, pc));
}

void report(Warp &warp, FindingKind kind, unsigned lane, const std::string &what, std::string other, bool advisory) {
  uint32_t pc = std::min<uint32_t>(warp.here(), uint32_t(warp.kernel->sites.size() - 1));
  Worker &worker = *warp.worker;
  if (!worker.findings.isNew(kind, pc, advisory))
    return;
  const Site &site = warp.kernel->sites[pc];
  const auto &cta = warp.block->coordinates;
  Finding finding;
  finding.kind = kind;
  finding.kernel = warp.kernel->info.name;
  finding.line = site.line;
  finding.source = site.source;
  finding.cta = cta;
  finding.warp = warp.index;
  finding.lane = lane;
  finding.other = std::move(other);
  std::string text = site.instruction ? site.instruction->spelling() : std::string("the end of the kernel");
  finding.message = format("'{}' in kernel '{}', block ({}, {}, {}), warp {}, lane {}: {}", text, finding.kernel,
                           cta[0], cta[1], cta[2], warp.index, lane, what);
  if (!finding.other.empty())
    finding.message += "; " + finding.other;
  worker.findings.add(std::move(finding), warp.block->index, advisory);
}

} // namespace weft::simulator::machine

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Where lanes that a branch divides meet again: at the branch's immediate post-dominator. A hidden record is put there.
//
//   @%p bra L;        @%p bra L;   join = J
//   add ...           add ...
//   L: sub ...        J: (join)  L: sub ...
#include "runtime/Simulator/Machine/Decoding/BasicBlocks.h"
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Running/Calls.h"

namespace weft::simulator::machine {
namespace {

constexpr uint32_t none = ~0u;

/// Basic blocks in the post order of a walk from the exit against the edges, and each block's place in it: `none` where no
/// path leads to the exit.
struct PostOrder {
  std::vector<uint32_t> blocks, places;
};

PostOrder postOrder(const std::vector<BasicBlock> &blocks) {
  const uint32_t exit = uint32_t(blocks.size());
  std::vector<std::vector<uint32_t>> predecessors(blocks.size() + 1);
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    for (uint32_t next : blocks[b].successors)
      predecessors[next].push_back(b);
    if (blocks[b].exits)
      predecessors[exit].push_back(b);
  }
  PostOrder order{{}, std::vector<uint32_t>(blocks.size() + 1, none)};
  std::vector<std::pair<uint32_t, size_t>> stack{{exit, 0}};
  std::vector<bool> seen(blocks.size() + 1);
  seen[exit] = true;
  while (!stack.empty()) {
    auto &[block, next] = stack.back();
    if (next < predecessors[block].size()) {
      uint32_t child = predecessors[block][next++];
      if (!seen[child]) {
        seen[child] = true;
        stack.emplace_back(child, 0);
      }
      continue;
    }
    order.places[block] = uint32_t(order.blocks.size());
    order.blocks.push_back(block);
    stack.pop_back();
  }
  return order;
}

/// Immediate post-dominators of all basic blocks, `none` where only the exit is one (Cooper, Harvey, Kennedy: A Simple, Fast
/// Dominance Algorithm), on the reversed graph with one more, the exit, numbered `blocks.size()`.
std::vector<uint32_t> postDominators(const std::vector<BasicBlock> &blocks) {
  const uint32_t exit = uint32_t(blocks.size());
  const PostOrder order = postOrder(blocks);
  std::vector<uint32_t> dominator(blocks.size() + 1, none);
  dominator[exit] = exit;
  auto meet = [&](uint32_t a, uint32_t b) {
    while (a != b) {
      while (order.places[a] < order.places[b])
        a = dominator[a];
      while (order.places[b] < order.places[a])
        b = dominator[b];
    }
    return a;
  };
  for (bool changed = true; changed;) {
    changed = false;
    for (size_t i = order.blocks.size(); i-- > 0;) {
      uint32_t block = order.blocks[i];
      if (block == exit)
        continue;
      uint32_t best = none;
      auto consider = [&](uint32_t next) {
        if (dominator[next] != none)
          best = best == none ? next : meet(best, next);
      };
      for (uint32_t next : blocks[block].successors)
        consider(next);
      if (blocks[block].exits)
        consider(exit);
      if (best != none && dominator[block] != best) {
        dominator[block] = best;
        changed = true;
      }
    }
  }
  dominator.pop_back();
  for (uint32_t &d : dominator)
    if (d == exit)
      d = none;
  return dominator;
}

} // namespace

std::vector<BasicBlock> basicBlocks(const Kernel &kernel) {
  const std::vector<Record> &code = kernel.code;
  std::vector<bool> leads(code.size() + 1);
  leads[0] = true;
  for (const CalledFunction &called : kernel.called)
    leads[called.begin] = true;
  auto each = [&](const Record &record, auto visit) {
    if (record.run == runBranch)
      visit(record.target);
    else if (record.run == runBranchTable)
      for (uint32_t target : static_cast<const BranchTable *>(record.aux)->targets)
        visit(target);
  };
  auto ends = [&](const Record &record) {
    return record.run == runBranch || record.run == runBranchTable || record.run == runExit || record.run == runReturn;
  };
  for (size_t i = 0; i < code.size(); ++i) {
    each(code[i], [&](uint32_t target) { leads[target] = true; });
    if (ends(code[i]))
      leads[i + 1] = true;
  }
  std::vector<BasicBlock> blocks;
  std::vector<uint32_t> blockOf(code.size() + 1, none);
  for (size_t i = 0; i < code.size(); ++i) {
    if (leads[i])
      blocks.push_back({uint32_t(i), uint32_t(i), {}, false});
    blocks.back().end = uint32_t(i + 1);
    blockOf[i] = uint32_t(blocks.size() - 1);
  }
  for (BasicBlock &block : blocks) {
    const Record &last = code[block.end - 1];
    each(last, [&](uint32_t target) { block.successors.push_back(blockOf[target]); });
    bool falls = !ends(last) || (last.guard != noRef && last.run != runBranchTable);
    if (last.run == runBranchTable && last.guard != noRef)
      falls = true;
    if (falls && block.end < code.size())
      block.successors.push_back(blockOf[block.end]);
    block.exits = last.run == runExit || last.run == runReturn || block.end == code.size();
  }
  return blocks;
}

void placeJoins(Kernel &kernel) {
  std::vector<BasicBlock> blocks = basicBlocks(kernel);
  std::vector<uint32_t> dominator = postDominators(blocks);
  std::vector<bool> meets(kernel.code.size() + 1);
  for (uint32_t b = 0; b < blocks.size(); ++b) {
    Record &last = kernel.code[blocks[b].end - 1];
    bool divides = (last.run == runBranch && last.guard != noRef) || last.run == runBranchTable;
    if (!divides || dominator[b] == none)
      continue;
    last.join = blocks[dominator[b]].begin;
    meets[last.join] = true;
  }
  // Insert the joins; a label now means the join before its record.
  std::vector<uint32_t> moved(kernel.code.size() + 1);
  std::vector<Record> code;
  std::vector<Site> sites;
  for (size_t i = 0; i < kernel.code.size(); ++i) {
    moved[i] = uint32_t(code.size());
    if (meets[i]) {
      Record join;
      join.run = runJoin;
      join.hidden = true;
      code.push_back(join);
      Site site;
      site.line = kernel.sites[i].line;
      site.source = kernel.sites[i].source;
      site.instruction = kernel.sites[i].instruction;
      sites.push_back(std::move(site));
    }
    code.push_back(kernel.code[i]);
    sites.push_back(std::move(kernel.sites[i]));
  }
  moved[kernel.code.size()] = uint32_t(code.size());
  for (Record &record : code) {
    if (record.run == runBranch || record.run == runCall)
      record.target = moved[record.target];
    if (record.run == runBranchTable)
      for (uint32_t &target : const_cast<BranchTable *>(static_cast<const BranchTable *>(record.aux))->targets)
        target = moved[target];
    if (record.join != none)
      record.join = moved[record.join];
  }
  for (CalledFunction &called : kernel.called) {
    called.begin = moved[called.begin];
    called.end = moved[called.end];
  }
  kernel.code = std::move(code);
  kernel.sites = std::move(sites);
}

} // namespace weft::simulator::machine

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Control flow (PTX ISA 9.7.12): bra, brx, call, ret, exit; barriers and fences (9.7.13); trap and other leftovers.
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Decoding/OperandRules.h"
#include "runtime/Simulator/Machine/Forms/Families.h"
#include "runtime/Simulator/Machine/Forms/Library.h"
#include "runtime/Simulator/Machine/Running/Barriers.h"
#include "runtime/Simulator/Machine/Running/Calls.h"
#include "runtime/Simulator/Machine/Running/Divergence.h"
#include "runtime/Simulator/Machine/Running/Mbarriers.h"
#include "runtime/Simulator/Machine/State/Lanes.h"
#include "runtime/Support/Format.h"

#include <atomic>

namespace weft::simulator::machine {
namespace {

void runWarpBarrier(Warp &warp, const Record &record, uint32_t mask) {
  const uint32_t *members = warp.reg<const uint32_t>(record.op[0]);
  mask = gatherGroups(warp, mask, members);
  if (!mask || !warp.block->grid->options.checks.races)
    return;
  fenceReads(warp);
  for (uint32_t rest = mask; rest;) {
    const unsigned lane = firstLane(rest);
    const uint32_t group = members[lane] & warp.live;
    if (group == warp.live)
      warp.block->shadow.syncWarp(warp.index);
    else
      warp.block->shadow.syncLanes(warp.index, group);
    rest &= ~(group | 1u << lane);
  }
}

void runFence(Warp &warp, const Record &record, uint32_t) {
  std::atomic_thread_fence(std::memory_order_seq_cst);
  if (warp.block->grid->options.checks.races)
    fence(warp, scopeOf(record.order));
}

void runInitFence(Warp &warp, const Record &record, uint32_t mask) {
  fenceInitialised(warp, mask);
  runFence(warp, record, mask);
}

void runYield(Warp &warp, const Record &, uint32_t) {
  warp.spun = true;
  warp.stop(); // it comes back after the other warps
}

void runActiveMask(Warp &warp, const Record &record, uint32_t mask) {
  uint32_t values[laneCount];
  std::fill_n(values, laneCount, mask);
  commit(warp.reg<uint32_t>(record.op[0]), values, mask);
}

void runNothing(Warp &, const Record &, uint32_t) {}

void bindBranch(Binding &b) {
  const ptx::Operand &target = b.operand(0);
  if (target.kind != ptx::OperandKind::Label)
    b.fail(target, format("expected a label, but got '{}'", target.text));
  b.decoder.branchTo(target.index);
  b.record.run = runBranch;
}

void bindBranchTable(Binding &b) {
  b.record.op[0] = b.source(b.operand(0), ptx::Type::U32);
  const ptx::Operand &list = b.operand(1);
  const ptx::Function &function = *b.decoder.frame(b.frame).function;
  if (list.kind != ptx::OperandKind::Label || !function.labels[list.index].isTargetList)
    b.fail(list, format("expected the label of a '.branchtargets', but got '{}'", list.text));
  b.decoder.branchTable(function.labels[list.index].targets);
  b.record.run = runBranchTable;
}

void bindReturn(Binding &b) {
  if (b.instruction.mnemonic == "ret" && b.decoder.frame(b.frame).caller >= 0) {
    b.decoder.branchToEnd();
    b.record.run = runBranch;
    return;
  }
  if (b.instruction.mnemonic == "ret" && !b.decoder.frame(b.frame).function->isEntry) {
    b.record.run = runReturn;
    return;
  }
  b.record.run = runExit;
}

void bindBarrier(Binding &b) {
  BarrierForm form;
  form.aligned = b.instruction.mnemonic == "bar" || b.has("aligned");
  form.waits = b.modifier("what") != "arrive";
  b.site.aligned = form.aligned;
  size_t at = 0;
  if (b.modifier("what") == "red") {
    std::string_view op = b.modifier("op");
    form.reduction = op == "popc" ? BarrierForm::Popc : op == "and" ? BarrierForm::And : BarrierForm::Or;
    b.setDestination(0,
                     op == "popc" ? b.destination(b.operand(0), ptx::Type::U32) : b.predicateDestination(b.operand(0)));
    at = 1;
    const ptx::Operand &predicate = b.operand(b.operandCount() - 1);
    form.negated = predicate.negated;
    b.record.op[3] = b.predicate(predicate);
  }
  size_t end = b.operandCount() - (form.reduction != BarrierForm::None ? 1 : 0);
  if (at >= end || end - at > 2)
    b.fail("expected a barrier and perhaps a count of threads");
  const ptx::Operand &number = b.operand(at);
  expectAtMost(b, number, 15);
  b.record.op[1] = b.source(number, ptx::Type::U32);
  if (end - at == 2) {
    const ptx::Operand &threads = b.operand(at + 1);
    const bool none = threads.bits == 0 && !form.waits;
    if (threads.kind == ptx::OperandKind::Integer && (threads.bits % laneCount || none))
      b.fail(threads, format("expected a multiple of {} threads, but got '{}'", laneCount, threads.text));
    b.record.op[2] = b.source(threads, ptx::Type::U32);
  } else if (!form.waits) {
    b.fail("expected a barrier and a count of threads");
  }
  b.keep(form);
  b.record.run = runBarrier;
}

void bindFence(Binding &b) {
  std::string_view scope = b.has("level") ? b.modifier("level") : b.modifier("scope");
  b.record.order = b.has("mbarrier_init") ? uint8_t(orderCluster) : scope.empty() ? orderWide : orderOfScope(scope);
  b.record.run = b.has("mbarrier_init") ? runInitFence : runFence;
}

template <Executor run> void bindTo(Binding &b) { b.record.run = run; }

/// An event of a performance monitor, or several by their bits.
void bindEvent(Binding &b) {
  const ptx::Operand &event = b.operand(0);
  const unsigned below = b.has("mask") ? 1u << 16 : 16;
  if (event.kind != ptx::OperandKind::Integer || event.bits >= below)
    b.fail(event, format("expected a number below {}, but got '{}'", below, event.text));
  b.record.run = runNothing;
}

void bindWarpBarrier(Binding &b) {
  b.record.members = 0;
  b.record.run = runWarpBarrier;
}

const Form forms[] = {
    {"bra", "uni?", "*", InstructionClass::Branch, bindBranch},
    {"brx", "idx uni?", "*", InstructionClass::Branch, bindBranchTable},
    {"call", "uni?", "*", InstructionClass::Branch, bindLibraryCall},
    {"ret", "uni?", "", InstructionClass::Branch, bindReturn},
    {"exit", "", "", InstructionClass::Branch, bindReturn},
    {"trap", "", "", InstructionClass::Other, bindTo<runTrap>},
    {"brkpt", "", "", InstructionClass::Other, bindTo<runNothing>},
    {"pmevent", "mask?", "*", InstructionClass::Other, bindEvent},
    {"nanosleep", "u32", "s:u32", InstructionClass::Other, bindTo<runYield>},
    {"activemask", "b32", "d:b32", InstructionClass::Vote, bindTo<runActiveMask>},
    {"bar", "warp sync", "s:u32", InstructionClass::Barrier, bindWarpBarrier},
    {"bar", "cta? what=sync|arrive|red op=popc|and|or? type=u32|pred?", "*", InstructionClass::Barrier, bindBarrier},
    {"barrier", "cta? what=sync|arrive|red op=popc|and|or? aligned? type=u32|pred?", "*", InstructionClass::Barrier,
     bindBarrier},
    {"membar", "level=cta|gl|sys", "", InstructionClass::Fence, bindFence},
    {"fence", "order=sc|acq_rel|acquire|release? scope=cta|cluster|gpu|sys", "", InstructionClass::Fence, bindFence},
    {"membar", "proxy alias", "", InstructionClass::Fence, bindFence},
    {"fence", "proxy alias", "", InstructionClass::Fence, bindFence},
    {"fence", "mbarrier_init release cluster", "", InstructionClass::Fence, bindFence},
    {"griddepcontrol", "what=launch_dependents|wait", "", InstructionClass::Other, bindTo<runNothing>},
};

} // namespace

std::span<const Form> controlForms() { return forms; }

} // namespace weft::simulator::machine

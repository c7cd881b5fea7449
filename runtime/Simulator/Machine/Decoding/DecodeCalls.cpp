// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Calls while decoding: copies of functions inline, calls of functions that may call themselves, and, through a
// register, a test and a copy for each function that fits.
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Running/Calls.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <utility>

namespace weft::simulator::machine {
namespace {

constexpr int maximumCallDepth = 48;

/// Where the `.local` variables of an inlined function lie.
FrameName variablesOf(const Frame &frame) {
  FrameName range{std::string(frame.function->name), ~0u, 0};
  for (size_t i = 0; i < frame.places.size(); ++i)
    if (const ptx::Variable &variable = frame.function->variables[i]; variable.space == ptx::Space::Local) {
      range.begin = std::min(range.begin, frame.places[i].offset);
      range.end = std::max(range.end, frame.places[i].offset + uint32_t(variable.size()));
    }
  return range;
}

} // namespace

uint32_t Decoder::hiddenBranch(Ref guard, bool negated, const Site &site) {
  Record branch;
  branch.run = runBranch;
  branch.guard = guard;
  branch.guardNegated = negated;
  branch.hidden = true;
  emit(branch, site);
  return uint32_t(kernel_.code.size() - 1);
}

void Decoder::guardedCall(uint32_t frame, const ptx::Instruction &instruction) {
  if (instruction.guard < 0)
    return call(frame, instruction);
  Site site;
  site.line = instruction.at.line;
  site.source = sourceOf(instruction);
  site.instruction = &instruction;
  const Ref guard = virtualRef | (frames_[frame].registerBase + uint32_t(instruction.guard));
  const uint32_t skip = hiddenBranch(guard, !instruction.guardNegated, site);
  call(frame, instruction);
  kernel_.code[skip].target = uint32_t(kernel_.code.size());
}

void Decoder::call(uint32_t frame, const ptx::Instruction &instruction) {
  // call[.uni] [(results),] function [, (arguments)] [, prototype];
  const ptx::Operand *results = nullptr, *target = nullptr, *arguments = nullptr;
  for (const ptx::Operand &operand : instruction.operands) {
    if (operand.kind == ptx::OperandKind::List)
      (target ? arguments : results) = &operand;
    else if (!target)
      target = &operand;
  }
  if (!target)
    fail(instruction.at, "expected a function to call");
  if (target->kind == ptx::OperandKind::Register)
    return callIndirect(frame, instruction, *target, results, arguments);
  const ptx::Function *callee =
      target->kind == ptx::OperandKind::Symbol ? program_.syntax.function(target->text) : nullptr;
  if (!callee)
    fail(target->at, format("expected a function, but '{}' is not one", target->text));
  if (!callee->hasBody)
    fail(target->at,
         format("the function '{}' is declared, but not defined, and not supported by the simulator", target->text),
         StatusCode::Unsupported);
  if (program_.recursive.contains(callee))
    return callOutOfLine(frame, instruction, *target, *callee, results, arguments);
  inlineCall(frame, *target, *callee, results, arguments);
}

void Decoder::inlineCall(uint32_t frame, const ptx::Operand &at, const ptx::Function &callee,
                         const ptx::Operand *results, const ptx::Operand *arguments) {
  if (++depth_ > maximumCallDepth)
    fail(at.at, "expected calls less deep", StatusCode::Unsupported);
  uint32_t restore = localTop_;
  uint32_t inner = enter(callee, int32_t(frame), frames_[frame].base);
  auto bind = [&](const ptx::Operand *list, size_t first, size_t count, const char *what) {
    size_t given = list ? list->elements.size() : 0;
    if (given != count)
      fail(at.at, format("expected {} {} in the call of '{}', but got {}", count, what, callee.name, given));
    for (size_t i = 0; i < count; ++i) {
      const ptx::Operand &operand = list->elements[i];
      if (operand.kind != ptx::OperandKind::Variable)
        fail(operand.at, format("expected a '.param' variable, but got '{}'", operand.text));
      const ptx::Variable &variable = frames_[frame].function->variables[operand.index];
      if (variable.size() < callee.variables[first + i].size() ||
          frames_[frame].places[operand.index].space != ptx::Space::Local)
        fail(operand.at, format("expected a '.param' variable of {} bytes, but '{}' is no such variable",
                                callee.variables[first + i].size(), operand.text));
      frames_[inner].places[first + i] = frames_[frame].places[operand.index];
    }
  };
  bind(results, 0, callee.resultCount, "results");
  bind(arguments, callee.resultCount, callee.parameterCount, "arguments");
  // What the function allocates ends with it.
  const bool allocates = std::any_of(callee.body.begin(), callee.body.end(),
                                     [](const ptx::Instruction &each) { return each.mnemonic == "alloca"; });
  Record save, release;
  Site site;
  site.line = at.at.line;
  if (allocates) {
    save.run = runStackSave<uint64_t>;
    release.run = runStackRestore<uint64_t>;
    save.hidden = release.hidden = true;
    save.op[0] = release.op[0] = scratch(ptx::Type::B64);
    Site saved = site;
    saved.destinations = 1;
    emit(save, std::move(saved));
  }
  const FrameName own = variablesOf(frames_[inner]);
  auto mark = [&](Executor run) {
    Record record;
    record.run = run;
    record.hidden = true;
    record.op[0] = frames_[inner].base;
    record.imm = own.begin;
    record.target = own.end;
    if (own.begin < own.end)
      emit(record, site);
  };
  mark(runEnterFrame);
  if (frames_[inner].base == noRef)
    kernel_.frameNames.push_back(own);
  flatten(inner);
  mark(runLeaveFrame);
  if (allocates)
    emit(release, std::move(site));
  localTop_ = restore;
  --depth_;
}

uint32_t Decoder::calledFunction(const ptx::Function &function) {
  auto [known, fresh] = called_.try_emplace(&function, uint32_t(kernel_.called.size()));
  if (!fresh)
    return known->second;
  CalledFunction &called = kernel_.called.emplace_back();
  called.name = std::string(function.name);
  called.frame = scratch(ptx::Type::B64);
  for (const ptx::Variable &variable : function.variables)
    called.align = std::max(called.align, variable.align);
  const uint32_t top = std::exchange(localTop_, 0), most = std::exchange(localMost_, 0);
  calledFrames_.push_back(enter(function, -1, called.frame));
  called.bytes = localTop_;
  localTop_ = top;
  localMost_ = most;
  kernel_.usesStack = true;
  return known->second;
}

void Decoder::decodeCalled() {
  for (size_t i = 0; i < kernel_.called.size(); ++i) { // bodies may call for more
    localTop_ = localMost_ = kernel_.called[i].bytes;
    kernel_.called[i].begin = uint32_t(kernel_.code.size());
    flatten(calledFrames_[i]);
    Record back; // the end of a body returns
    back.run = runReturn;
    back.hidden = true;
    Site site;
    site.line = kernel_.sites.back().line;
    emit(back, std::move(site));
    kernel_.called[i].end = uint32_t(kernel_.code.size());
    kernel_.called[i].bytes = alignUp(localMost_, 16);
  }
  for (Record &record : kernel_.code)
    if (record.run == runCall)
      record.target = kernel_.called[static_cast<const CallForm *>(record.aux)->function].begin;
}

void Decoder::callOutOfLine(uint32_t frame, const ptx::Instruction &instruction, const ptx::Operand &at,
                            const ptx::Function &callee, const ptx::Operand *results, const ptx::Operand *arguments) {
  auto form = std::make_shared<CallForm>();
  form->function = calledFunction(callee);
  const Frame &own = frames_[frame], &other = frames_[calledFrames_[form->function]];
  auto bind = [&](const ptx::Operand *list, size_t first, size_t count, const char *what,
                  std::vector<ParameterCopy> &copies) {
    const size_t given = list ? list->elements.size() : 0;
    if (given != count)
      fail(at.at, format("expected {} {} in the call of '{}', but got {}", count, what, callee.name, given));
    for (size_t i = 0; i < count; ++i) {
      const ptx::Operand &operand = list->elements[i];
      const auto bytes = uint32_t(callee.variables[first + i].size());
      if (operand.kind != ptx::OperandKind::Variable || own.function->variables[operand.index].size() < bytes ||
          own.places[operand.index].space != ptx::Space::Local)
        fail(operand.at,
             format("expected a '.param' variable of {} bytes, but '{}' is no such variable", bytes, operand.text));
      copies.push_back({own.places[operand.index].offset, other.places[first + i].offset, bytes});
    }
  };
  bind(results, 0, callee.resultCount, "results", form->results);
  bind(arguments, callee.resultCount, callee.parameterCount, "arguments", form->arguments);
  Record call, join;
  call.run = runCall;
  call.cls = InstructionClass::Branch;
  call.op[0] = baseOf(frame);
  call.aux = form.get();
  kernel_.owned.push_back(std::move(form));
  Site site;
  site.line = instruction.at.line;
  site.source = sourceOf(instruction);
  site.instruction = &instruction;
  emit(call, site);
  join.run = runJoin;
  join.hidden = true;
  emit(join, std::move(site));
}

void Decoder::callIndirect(uint32_t frame, const ptx::Instruction &instruction, const ptx::Operand &target,
                           const ptx::Operand *results, const ptx::Operand *arguments) {
  before_.clear();
  Ref address = source(frame, target, ptx::Type::B64, false);
  Site site;
  site.line = instruction.at.line;
  site.instruction = &instruction;
  auto sizesFit = [&](const ptx::Operand *list, const ptx::Function &callee, size_t first, size_t count) {
    if ((list ? list->elements.size() : 0) != count)
      return false;
    for (size_t i = 0; i < count; ++i) {
      const ptx::Operand &operand = list->elements[i];
      if (operand.kind != ptx::OperandKind::Variable ||
          frames_[frame].function->variables[operand.index].size() != callee.variables[first + i].size())
        return false;
    }
    return true;
  };
  std::vector<uint32_t> toEnd;
  for (const ptx::Function &callee : program_.syntax.functions) {
    if (callee.isEntry || !callee.hasBody || !program_.addressTaken.contains(callee.name) ||
        !sizesFit(results, callee, 0, callee.resultCount) ||
        !sizesFit(arguments, callee, callee.resultCount, callee.parameterCount))
      continue;
    Record test;
    test.run = runCallTest;
    test.op[0] = scratch(ptx::Type::Pred);
    test.op[1] = address;
    test.imm = int64_t(functionAddress(program_.syntax, callee));
    test.hidden = true;
    Site testSite = site;
    testSite.destinations = 1;
    emit(test, testSite);
    uint32_t skip = hiddenBranch(test.op[0], true, site);
    if (program_.recursive.contains(&callee))
      callOutOfLine(frame, instruction, target, callee, results, arguments);
    else
      inlineCall(frame, target, callee, results, arguments);
    toEnd.push_back(hiddenBranch(noRef, false, site));
    kernel_.code[skip].target = uint32_t(kernel_.code.size());
  }
  Record wrong;
  wrong.run = runTrap;
  emit(wrong, site);
  for (uint32_t branch : toEnd)
    kernel_.code[branch].target = uint32_t(kernel_.code.size());
}

} // namespace weft::simulator::machine

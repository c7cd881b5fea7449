// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Walks a kernel and the functions it calls, and binds each instruction to a record.
#include "runtime/Simulator/Machine/Decoding/Decode.h"
#include "runtime/Simulator/Machine/Decoding/OperandRules.h"
#include "runtime/Simulator/Machine/Running/Calls.h"
#include "runtime/Support/Format.h"

#include <algorithm>
#include <atomic>
#include <utility>

namespace weft::simulator::machine {
namespace {

constexpr size_t maximumRecords = 4u << 20;
constexpr uint32_t maximumLocalBytes = 1u << 20;
constexpr uint32_t maximumSharedBytes = 256u << 10;

/// The functions with a body that an instruction may call.
std::vector<const ptx::Function *> calleesOf(const Program &program, const ptx::Instruction &call) {
  std::vector<const ptx::Function *> callees;
  for (const ptx::Operand &operand : call.operands) {
    if (operand.kind == ptx::OperandKind::Symbol)
      if (const ptx::Function *callee = program.syntax.function(operand.text); callee && callee->hasBody)
        callees.push_back(callee);
    if (operand.kind == ptx::OperandKind::Register)
      for (const ptx::Function &callee : program.syntax.functions)
        if (!callee.isEntry && callee.hasBody && program.addressTaken.contains(callee.name))
          callees.push_back(&callee);
  }
  return callees;
}

/// The functions from which calls lead back to them.
std::set<const ptx::Function *> recursiveFunctions(const Program &program) {
  std::map<const ptx::Function *, std::set<const ptx::Function *>> calls;
  for (const ptx::Function &function : program.syntax.functions)
    for (const ptx::Instruction &instruction : function.body)
      if (instruction.mnemonic == "call")
        for (const ptx::Function *callee : calleesOf(program, instruction))
          calls[&function].insert(callee);
  std::set<const ptx::Function *> recursive;
  for (const auto &[function, direct] : calls) {
    std::set<const ptx::Function *> seen;
    std::vector<const ptx::Function *> open(direct.begin(), direct.end());
    while (!open.empty() && !seen.contains(function)) {
      const ptx::Function *next = open.back();
      open.pop_back();
      if (auto further = calls.find(next); seen.insert(next).second && further != calls.end())
        open.insert(open.end(), further->second.begin(), further->second.end());
    }
    if (seen.contains(function))
      recursive.insert(function);
  }
  return recursive;
}

} // namespace

void Decoder::fail(ptx::Position at, std::string message, StatusCode code) {
  throw DecodeFailure{ptx::errorAt(at, std::move(message), code)};
}

void Decoder::layoutParameters() {
  uint32_t offset = 0;
  EntryInfo &info = kernel_.info;
  for (uint32_t i = 0; i < entry_.parameterCount; ++i) {
    const ptx::Variable &variable = entry_.variables[entry_.resultCount + i];
    offset = alignUp(offset, variable.align);
    bool pointer =
        variable.pointer || (!variable.isArray && (variable.type == ptx::Type::U64 || variable.type == ptx::Type::B64));
    if (variable.size() > 32764 || offset + variable.size() > 32764)
      fail(variable.at, "expected at most 32764 bytes of parameters");
    info.parameters.push_back({std::string(variable.name), offset, uint32_t(variable.size()), variable.align, pointer});
    offset += uint32_t(variable.size());
  }
  info.parameterBytes = offset;
}

void Decoder::layoutShared(const ptx::Variable &variable, Place &place) {
  place.space = ptx::Space::Shared;
  if (auto known = sharedOffsets_.find(&variable); known != sharedOffsets_.end()) {
    place.offset = known->second;
    return;
  }
  if (variable.isExtern || variable.size() == 0) {
    kernel_.info.usesDynamicShared = true;
    kernel_.dynamicSharedAlign = std::max(kernel_.dynamicSharedAlign, variable.align);
    dynamicShared_.push_back(&variable);
    return;
  }
  uint64_t at = alignUp(kernel_.staticShared, variable.align);
  if (at + variable.size() > maximumSharedBytes)
    fail(variable.at, format("expected at most {} bytes of shared variables", maximumSharedBytes));
  place.offset = uint32_t(at);
  sharedOffsets_[&variable] = place.offset;
  kernel_.staticShared = uint32_t(at + variable.size());
}

uint32_t Decoder::enter(const ptx::Function &function, int32_t caller, Ref base) {
  Frame frame;
  frame.base = base;
  frame.function = &function;
  frame.caller = caller;
  frame.registerBase = uint32_t(registers_.size());
  for (const ptx::Register &reg : function.registers)
    registers_.push_back(reg.type == ptx::Type::B128 ? ptx::Type::B64 : reg.type);
  for (uint32_t i = 0; i < function.registers.size(); ++i)
    if (function.registers[i].type == ptx::Type::B128) {
      highHalves_[frame.registerBase + i] = uint32_t(registers_.size());
      registers_.push_back(ptx::Type::B64);
    }
  if (registers_.size() >= (1u << 24))
    fail(function.at, "expected fewer registers after inlining", StatusCode::Unsupported);
  frame.labels.assign(function.labels.size(), ~0u);
  frame.places.resize(function.variables.size());
  for (size_t i = 0; i < function.variables.size(); ++i) {
    const ptx::Variable &variable = function.variables[i];
    bool isParameter = i < function.resultCount + function.parameterCount;
    if (variable.space == ptx::Space::Shared) {
      layoutShared(variable, frame.places[i]);
    } else if (isParameter && function.isEntry) {
      frame.places[i] = {ptx::Space::Param, kernel_.info.parameters[i - function.resultCount].offset};
    } else if (!isParameter || caller < 0) {
      uint64_t at = alignUp(localTop_, std::max(variable.align, 1u));
      if (at + variable.size() > maximumLocalBytes)
        fail(variable.at, format("expected at most {} bytes of local memory", maximumLocalBytes));
      frame.places[i] = {ptx::Space::Local, uint32_t(at)};
      localTop_ = uint32_t(at + variable.size());
    }
  }
  localMost_ = std::max(localMost_, localTop_);
  frames_.push_back(std::move(frame));
  return uint32_t(frames_.size() - 1);
}

void Decoder::flatten(uint32_t index) {
  const ptx::Function &function = *frames_[index].function;
  std::vector<std::vector<uint32_t>> labelsAt(function.body.size() + 1);
  for (uint32_t i = 0; i < function.labels.size(); ++i)
    labelsAt[function.labels[i].target].push_back(i);
  for (size_t i = 0; i <= function.body.size(); ++i) {
    for (uint32_t label : labelsAt[i])
      frames_[index].labels[label] = uint32_t(kernel_.code.size());
    if (i < function.body.size())
      decode(index, function.body[i]);
  }
  frames_[index].end = uint32_t(kernel_.code.size());
}

void Decoder::emit(Record record, Site site) {
  if (kernel_.code.size() >= maximumRecords)
    throw DecodeFailure{{StatusCode::Unsupported, "expected a kernel of fewer instructions after inlining"}};
  kernel_.code.push_back(record);
  kernel_.sites.push_back(std::move(site));
}

std::string Decoder::sourceOf(const ptx::Instruction &instruction) const {
  if (!instruction.source.line)
    return {};
  auto file = program_.syntax.files.find(instruction.source.file);
  return file == program_.syntax.files.end() ? format("file {}:{}", instruction.source.file, instruction.source.line)
                                             : format("{}:{}", file->second, instruction.source.line);
}

/// Whether a form takes as many operands as are there; one that leaves them to its binder takes any.
static bool takesOperands(const Form &form, size_t count) {
  return form.operands.starts_with('*') || size_t(std::ranges::count(form.operands, ':')) == count;
}

/// The form of an instruction, and the modifiers that it has in each of the form's choices: of several with these
/// modifiers the first that takes as many operands, else the first. Fails, with what the nearest form expects, where there
/// is none.
static const Form &findForm(std::span<const Form *const> forms, const ptx::Instruction &instruction,
                            std::vector<std::pair<std::string_view, std::string_view>> &chosen) {
  MatchResult best;
  const Form *fitting = nullptr;
  for (const Form *candidate : forms) {
    MatchResult match = matchModifiers(*candidate, instruction.modifiers, chosen);
    if (match.matched && takesOperands(*candidate, instruction.operands.size()))
      return *candidate;
    if (match.matched)
      fitting = fitting ? fitting : candidate;
    else if (best.expected.empty() || match.depth > best.depth)
      best = std::move(match);
    else if (match.depth == best.depth && best.expected.find(match.expected) == std::string::npos &&
             best.expected.size() < 200)
      best.expected += ", " + match.expected;
  }
  if (fitting) {
    matchModifiers(*fitting, instruction.modifiers, chosen);
    return *fitting;
  }
  Decoder::fail(instruction.at,
                format("the instruction '{}' is not supported by the simulator: expected {}, but got {}",
                       instruction.spelling(), best.expected, best.got),
                StatusCode::Unsupported);
}

/// Whether a call is of a function without a body, which the simulator itself has as forms of `call`.
bool Decoder::callsBuiltin(const ptx::Instruction &instruction) const {
  return std::any_of(instruction.operands.begin(), instruction.operands.end(), [&](const ptx::Operand &operand) {
    const ptx::Function *callee =
        operand.kind == ptx::OperandKind::Symbol ? program_.syntax.function(operand.text) : nullptr;
    return callee && !callee->hasBody;
  });
}

void Decoder::decode(uint32_t frame, const ptx::Instruction &instruction) {
  std::span<const Form *const> forms = formsOf(instruction.mnemonic);
  if (forms.empty())
    fail(instruction.at, format("the instruction '{}' is not supported by the simulator", instruction.spelling()),
         StatusCode::Unsupported);
  if (instruction.mnemonic == "call" && !callsBuiltin(instruction)) {
    expectMarks(instruction, false);
    return guardedCall(frame, instruction);
  }
  before_.clear();
  after_.clear();
  pendingLabel_ = -1;
  pendingEnd_ = false;
  pendingTable_.clear();

  Binding binding{*this, instruction, frame, {}, {}, {}};
  const Form &form = findForm(forms, instruction, binding.chosen);
  binding.record.cls = form.cls;
  binding.site.line = instruction.at.line;
  binding.site.instruction = &instruction;
  binding.site.source = sourceOf(instruction);
  if (instruction.guard >= 0) {
    binding.record.guard = virtualRef | (frames_[frame].registerBase + uint32_t(instruction.guard));
    binding.record.guardNegated = instruction.guardNegated;
  }
  binding.site.aligned =
      std::find(instruction.modifiers.begin(), instruction.modifiers.end(), "aligned") != instruction.modifiers.end();
  expectMarks(instruction, form.operands == "**");
  bindOperands(binding, form.operands);
  form.bind(binding);
  expectAllRead(binding);
  emitBound(binding);
}

/// Puts the record of an instruction, if it has one, between the hidden ones that go before and after it.
void Decoder::emitBound(const Binding &binding) {
  auto emitHidden = [&](const std::pair<Record, uint8_t> &extra) {
    Record record = extra.first;
    record.hidden = true;
    record.guard = binding.record.guard;
    record.guardNegated = binding.record.guardNegated;
    Site site = binding.site;
    site.destinations = extra.second;
    site.wideCount = site.wideDestinations = 0;
    site.addressOperand = -1;
    emit(record, std::move(site));
  };
  for (const auto &extra : before_)
    emitHidden(extra);
  if (binding.record.run) {
    uint32_t at = uint32_t(kernel_.code.size());
    if (pendingLabel_ >= 0 || pendingEnd_ || !pendingTable_.empty())
      branches_.push_back({at, binding.frame, pendingEnd_ ? -1 : pendingLabel_, pendingTable_});
    emit(binding.record, binding.site);
  }
  for (const auto &extra : after_)
    emitHidden(extra);
}

void Decoder::resolveBranches() {
  for (Branch &branch : branches_) {
    const Frame &frame = frames_[branch.frame];
    Record &record = kernel_.code[branch.record];
    if (!branch.table.empty()) {
      auto table = std::make_shared<BranchTable>();
      for (uint32_t label : branch.table)
        table->targets.push_back(frame.labels[label]);
      record.aux = table.get();
      kernel_.owned.push_back(std::move(table));
      continue;
    }
    record.target = branch.label < 0 ? frame.end : frame.labels[size_t(branch.label)];
  }
}

namespace {

/// Registers that a thread of a kernel with setmaxnreg begins with, as ptxas 13.0 gives them: `.maxnreg`, or the block's
/// share of a multiprocessor's 65,536 in units of eight, but no more than its largest `.inc` asks for. 0 where neither
/// is known, and ptxas ignores setmaxnreg.
uint32_t launchRegisters(const ptx::Function &entry, uint32_t mostRegisters) {
  if (entry.maximumRegisters)
    return entry.maximumRegisters;
  const auto &block = entry.requiredBlock[0] ? entry.requiredBlock : entry.maximumBlock;
  const uint64_t threads = uint64_t(block[0]) * block[1] * block[2] * entry.minimumBlocks;
  if (threads == 0)
    return 0;
  const auto share = uint32_t(std::min<uint64_t>(65536 / threads / 8 * 8, 256));
  return mostRegisters ? std::min(share, mostRegisters) : share;
}

} // namespace

void Decoder::run() {
  kernel_.info.name = std::string(entry_.name);
  kernel_.info.requiredBlock = {entry_.requiredBlock[0], entry_.requiredBlock[1], entry_.requiredBlock[2]};
  kernel_.info.maximumBlock = {entry_.maximumBlock[0], entry_.maximumBlock[1], entry_.maximumBlock[2]};
  kernel_.info.requiredCluster = {entry_.requiredCluster[0], entry_.requiredCluster[1], entry_.requiredCluster[2]};
  kernel_.info.maximumRanks = entry_.maximumRanks;
  kernel_.info.explicitCluster = entry_.explicitCluster;
  registers_.push_back(ptx::Type::None);             // number 0 is nobody's
  kernel_.sharedGranule = kernel_.globalGranule = 4; // 16 bytes, or what the smallest access takes
  layoutParameters();
  flatten(enter(entry_, -1, noRef));
  kernel_.localBytes = localMost_;
  Record exit; // the end of the text ends the threads
  exit.run = runExit;
  exit.hidden = true;
  Site site;
  site.line = kernel_.sites.empty() ? entry_.at.line : kernel_.sites.back().line;
  emit(exit, site);
  decodeCalled();
  resolveBranches();
  kernel_.launchRegisters = launchRegisters(entry_, kernel_.mostRegisters);
  // Dynamic shared memory starts where the static part ends; its size is known at launch.
  uint32_t dynamicStart = alignUp(kernel_.staticShared, kernel_.dynamicSharedAlign);
  if (kernel_.info.usesDynamicShared)
    kernel_.staticShared = dynamicStart;
  for (uint32_t offset : dynamicPatches_) {
    bool wide = offset & 1; // see dynamicSharedConstant
    std::byte *slot = kernel_.constants.data() + (offset & ~1u);
    for (unsigned lane = 0; lane < laneCount; ++lane) {
      if (wide) {
        uint64_t value;
        std::memcpy(&value, slot + 8 * lane, 8);
        value += dynamicStart;
        std::memcpy(slot + 8 * lane, &value, 8);
      } else {
        uint32_t value;
        std::memcpy(&value, slot + 4 * lane, 4);
        value += dynamicStart;
        std::memcpy(slot + 4 * lane, &value, 4);
      }
    }
  }
  kernel_.info.staticSharedBytes = kernel_.staticShared;
  kernel_.info.localBytes = kernel_.localBytes;
  kernel_.stackStart = alignUp(kernel_.localBytes, 16);
  if (kernel_.usesStack)
    kernel_.localBytes = kernel_.stackStart + stackBytes;
  placeJoins(kernel_);
  for (const auto &[variable, offset] : sharedOffsets_)
    kernel_.sharedNames.push_back({std::string(variable->name), offset, variable->size()});
  for (const ptx::Variable *variable : dynamicShared_)
    kernel_.sharedNames.push_back({std::string(variable->name), dynamicStart, ~uint64_t{0}});
  std::sort(kernel_.sharedNames.begin(), kernel_.sharedNames.end(), [](const SharedName &a, const SharedName &b) {
    return std::tie(a.offset, a.name) < std::tie(b.offset, b.name);
  });
  assignSlots(kernel_, registers_, [this](uint32_t number) { return nameOf(number); });
}

std::string Decoder::nameOf(uint32_t number) const {
  if ((carry_ & ~virtualRef) == number)
    return "CC.CF";
  auto after =
      std::find_if(frames_.begin(), frames_.end(), [&](const Frame &frame) { return frame.registerBase > number; });
  if (after == frames_.begin())
    return {};
  const Frame &frame = *std::prev(after);
  if (number - frame.registerBase >= frame.function->registers.size())
    return {};
  const ptx::Register &reg = frame.function->registers[number - frame.registerBase];
  return std::string(reg.name) + (reg.number < 0 ? "" : std::to_string(reg.number));
}

Result<std::unique_ptr<const Program>> decodeProgram(ptx::Module syntax, std::string_view name,
                                                     Approximations approximations) {
  static std::atomic<uint64_t> nextKey{1};
  auto program = std::make_unique<Program>();
  program->syntax = std::move(syntax);
  program->name = std::string(name);
  program->approximations = approximations;
  program->target = std::string(program->syntax.target);
  program->key = nextKey++;
  for (const ptx::Variable &variable : program->syntax.variables)
    if (variable.space == ptx::Space::Global || variable.space == ptx::Space::Const)
      program->variables.push_back({std::string(variable.name), variable.size(), variable.align,
                                    variable.space == ptx::Space::Const, &variable});
  for (const ptx::Variable &variable : program->syntax.variables)
    for (const ptx::InitialValue &initial : variable.initial)
      program->addressTaken.insert(initial.symbol);
  for (const ptx::Function &function : program->syntax.functions)
    for (const ptx::Instruction &instruction : function.body)
      for (const ptx::Operand &operand : instruction.operands)
        if (operand.kind == ptx::OperandKind::Symbol && instruction.mnemonic != "call")
          program->addressTaken.insert(operand.text);
  for (const auto &[alias, name] : program->syntax.aliases)
    if (program->addressTaken.contains(alias))
      program->addressTaken.insert(name);
  program->recursive = recursiveFunctions(*program);
  const Kernel *refused = nullptr;
  bool runs = false;
  for (const ptx::Function &function : program->syntax.functions) {
    if (!function.isEntry || !function.hasBody)
      continue;
    Kernel &kernel = program->kernels[std::string(function.name)];
    try {
      Decoder(*program, function, kernel).run();
      runs = true;
    } catch (DecodeFailure &failure) {
      if (failure.error.code != StatusCode::Unsupported)
        return std::unexpected(std::move(failure.error));
      kernel.refusal = std::move(failure.error);
      refused = refused ? refused : &kernel;
    }
    program->entries.push_back(kernel.info);
  }
  if (refused && !runs)
    return std::unexpected(*refused->refusal);
  return program;
}

} // namespace weft::simulator::machine

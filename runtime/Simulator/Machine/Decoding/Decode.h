// Part of Weft. SPDX-License-Identifier: Apache-2.0
// From syntax to records: device functions inlined, instructions matched with the table, control flow analysed,
// registers given slots.
#pragma once

#include "runtime/Simulator/Machine/Decoding/Table.h"
#include "runtime/Simulator/Machine/State/Executors.h"

#include <array>
#include <functional>
#include <unordered_map>

namespace weft::simulator::machine {

/// Decodes every entry of a parsed module. Errors: Corrupt for instructions that are no PTX or have wrong operands;
/// Unsupported, with line and name, for what this machine does not have.
Result<std::unique_ptr<const Program>> decodeProgram(ptx::Module syntax, std::string_view name,
                                                     Approximations approximations);

/// Thrown inside the decoder only.
struct DecodeFailure {
  Error error;
};

/// Where a variable of a function lies for the inlined copy that a frame is.
struct Place {
  ptx::Space space = ptx::Space::None; ///< Param for an entry's parameters, Local, or Shared
  uint32_t offset = 0;
};

/// One inlined copy of a function.
struct Frame {
  const ptx::Function *function = nullptr;
  uint32_t registerBase = 0;
  std::vector<Place> places;    ///< per variable
  std::vector<uint32_t> labels; ///< per label: record it stands before; ~0 until reached
  uint32_t end = ~0u;           ///< record after the function's last
  int32_t caller = -1;
  Ref base = noRef; ///< where its variables begin in local memory; noRef: where the kernel's do
};

/// An address operand: base + offset in a space that is fixed, or found per lane.
struct AddressOperand {
  ptx::Space space = ptx::Space::None; ///< None where the instruction or the address itself decides
  Ref base = noRef;
  bool wide = true;   ///< base is 64 bits
  bool named = false; ///< a variable's name
  int64_t offset = 0;
};

/// Decodes one kernel.
class Decoder {
public:
  Decoder(const Program &program, const ptx::Function &entry, Kernel &kernel)
      : program_(program), entry_(entry), kernel_(kernel) {}
  void run();

  // For binders.
  Ref source(uint32_t frame, const ptx::Operand &operand, ptx::Type type, bool wider);
  Ref destination(uint32_t frame, const ptx::Operand &operand, ptx::Type type, bool wider);
  /// The two 64-bit halves, low one first, that a .b128 register is kept in; of a vector of two 64-bit registers too.
  std::array<Ref, 2> halves(uint32_t frame, const ptx::Operand &operand, bool written);
  AddressOperand address(uint32_t frame, const ptx::Operand &operand);
  Ref constant32(uint32_t value);
  Ref constant64(uint64_t value);
  Ref scratch(ptx::Type type);
  ptx::Type registerType(uint32_t frame, const ptx::Operand &operand) const;
  /// A hidden record that runs before, or after, the instruction being bound.
  void before(Record record, uint8_t destinations);
  void after(Record record, uint8_t destinations);
  /// The record will branch to a label.
  void branchTo(uint32_t label) { pendingLabel_ = int32_t(label); }
  void branchToEnd() { pendingEnd_ = true; }
  void branchTable(std::vector<uint32_t> labels) { pendingTable_ = std::move(labels); }
  void call(uint32_t frame, const ptx::Instruction &instruction);
  /// The same, around which lanes go whose guard does not hold.
  void guardedCall(uint32_t frame, const ptx::Instruction &instruction);
  /// Puts a copy of `callee` here.
  void inlineCall(uint32_t frame, const ptx::Operand &at, const ptx::Function &callee, const ptx::Operand *results,
                  const ptx::Operand *arguments);
  /// A call through a register: a test and a copy for each function whose address is taken and which fits.
  void callIndirect(uint32_t frame, const ptx::Instruction &instruction, const ptx::Operand &target,
                    const ptx::Operand *results, const ptx::Operand *arguments);
  const Frame &frame(uint32_t index) const { return frames_[index]; }
  /// Where the variables of a frame begin, as a register or constant.
  Ref baseOf(uint32_t frame) { return frames_[frame].base == noRef ? constant64(0) : frames_[frame].base; }
  Kernel &kernel() { return kernel_; }
  const Program &program() const { return program_; }
  /// Accesses of so many bytes go to a space, or, if it is generic, to any.
  void noteAccess(ptx::Space space, unsigned bytes);
  /// The carry flag CC.CF (PTX ISA 9.7.2).
  Ref carryFlag();
  Ref special(const ptx::Operand &operand, ptx::Type type);
  /// The bits of a special register, which must be one.
  static unsigned expectSpecial(const ptx::Operand &operand);
  /// A predicate that a hidden record makes of 32 bits.
  Ref nonZero(Ref value);
  /// The opposite of a predicate.
  Ref opposite(Ref value);
  /// The address of a module-level name or of a variable, as a constant.
  Ref addressConstant(uint32_t frame, const ptx::Operand &operand, ptx::Type type, ptx::Space *space);
  [[noreturn]] static void fail(ptx::Position at, std::string message, StatusCode code = StatusCode::Corrupt);

private:
  Ref predicateOf(Executor run, Ref value);
  Ref dynamicSharedConstant(int64_t offset, bool wide);
  Ref frameAddress(Ref base, int64_t offset, bool wide);
  void layoutParameters();
  void layoutShared(const ptx::Variable &variable, Place &place);
  uint32_t enter(const ptx::Function &function, int32_t caller, Ref base);
  /// The copy of a function that is not inlined: its place in Kernel::called.
  uint32_t calledFunction(const ptx::Function &function);
  void callOutOfLine(uint32_t frame, const ptx::Instruction &instruction, const ptx::Operand &at,
                     const ptx::Function &callee, const ptx::Operand *results, const ptx::Operand *arguments);
  void decodeCalled();
  void flatten(uint32_t frame);
  void decode(uint32_t frame, const ptx::Instruction &instruction);
  bool callsBuiltin(const ptx::Instruction &instruction) const;
  void bindOperands(Binding &binding, std::string_view pattern);
  void emitBound(const Binding &binding);
  std::string sourceOf(const ptx::Instruction &instruction) const; ///< "file:line" by its `.loc`, or empty
  std::string nameOf(uint32_t number) const;                       ///< of a register; empty for scratch ones
  void emit(Record record, Site site);
  /// A branch of the decoder's own; gives its place, for the target.
  uint32_t hiddenBranch(Ref guard, bool negated, const Site &site);
  void resolveBranches();

  const Program &program_;
  const ptx::Function &entry_;
  Kernel &kernel_;
  std::deque<Frame> frames_;
  std::vector<ptx::Type> registers_; ///< of all frames, scratch ones too
  std::unordered_map<uint64_t, Ref> constants32_, constants64_;
  std::map<std::string, Ref, std::less<>> specials_;
  std::map<const ptx::Variable *, uint32_t> sharedOffsets_;
  uint32_t localTop_ = 0, localMost_ = 0; ///< bytes of variables in the kernel, or in the function outside of it
  std::map<const ptx::Function *, uint32_t> called_;
  std::vector<uint32_t> calledFrames_; ///< frames of Kernel::called
  int depth_ = 0;
  std::unordered_map<uint32_t, uint32_t> highHalves_; ///< of .b128 registers: the number of the other half
  Ref carry_ = noRef;

  // State of the instruction being decoded.
  std::vector<std::pair<Record, uint8_t>> before_, after_;
  int32_t pendingLabel_ = -1;
  bool pendingEnd_ = false;
  std::vector<uint32_t> pendingTable_;

  struct Branch {
    uint32_t record;
    uint32_t frame;
    int32_t label; ///< -1: the frame's end
    std::vector<uint32_t> table;
  };
  std::vector<Branch> branches_;
  std::vector<const ptx::Variable *> dynamicShared_;
  std::vector<uint32_t> dynamicPatches_; ///< pool offsets of addresses of dynamic shared memory

  friend struct ControlFlow;
};

/// Inserts the records where divided lanes meet, and fills Record::join.
void placeJoins(Kernel &kernel);

/// Gives every register a slot, sharing slots between registers that are never live together, and finds those that may
/// be read before they are written, which `nameOf` names.
void assignSlots(Kernel &kernel, const std::vector<ptx::Type> &registers,
                 const std::function<std::string(uint32_t)> &nameOf);

template <typename T> const T *Binding::keep(T value) {
  auto owned = std::make_shared<T>(std::move(value));
  const T *result = owned.get();
  decoder.kernel().owned.push_back(std::move(owned));
  record.aux = result;
  return result;
}

} // namespace weft::simulator::machine

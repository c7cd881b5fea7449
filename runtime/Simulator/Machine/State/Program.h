// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The decoded form of a module: what the interpreter walks. Made once by Decode.h, never changed afterwards.
//
// A kernel is one flat list of records: device functions are inlined, branch targets are record numbers, registers and
// immediates are byte offsets, and a record holds the function that runs it.
//
//   add.s32 %r2, %r1, 5;     {run = 32 additions, op = {slot of %r2, slot of %r1, 32 times 5 in the constant pool}}
//   @%p bra L;               {run = runBranch, guard = slot of %p, target = record of L, join = where both ways meet}
#pragma once

#include "runtime/Simulator/Interface/Report.h"
#include "runtime/Simulator/Interface/Simulator.h"
#include "runtime/Simulator/PTX/Syntax.h"

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace weft::simulator::machine {

struct Warp;
struct Record;

/// Runs one instruction for the lanes of `mask`, which is never empty.
using Executor = void (*)(Warp &warp, const Record &record, uint32_t mask);

/// Threads of a warp.
inline constexpr unsigned laneCount = 32;
/// Bytes of a register slot that holds 32-bit values; 64-bit ones take two.
inline constexpr uint32_t slotBytes = 4 * laneCount;

/// Where generic addresses that are not global memory lie. Host addresses stay far below.
inline constexpr uint64_t windowShift = 56;
inline constexpr uint64_t sharedWindow = uint64_t{1} << windowShift;
inline constexpr uint64_t localWindow = uint64_t{2} << windowShift;
inline constexpr uint64_t paramWindow = uint64_t{3} << windowShift;
inline constexpr uint64_t codeWindow = uint64_t{4} << windowShift; ///< "addresses" of functions
inline constexpr uint64_t windowOffsetMask = (uint64_t{1} << 32) - 1;

/// A register or an immediate: bit 31 chooses the constant pool, the rest is a byte offset.
using Ref = uint32_t;
inline constexpr Ref constantRef = 0x8000'0000u;
inline constexpr Ref virtualRef = 0x4000'0000u; ///< before registers have slots: the rest is a register number
inline constexpr Ref noRef = 0;                 ///< slot 0 of every warp is nobody's

/// One instruction, ready to run.
struct Record {
  Executor run = nullptr;
  Ref op[6] = {};            ///< destinations and sources in the order of the instruction's form
  int64_t imm = 0;           ///< an address offset or whatever the executor keeps here
  const void *aux = nullptr; ///< longer descriptions, owned by the kernel
  const Ref *wide = nullptr; ///< operand lists that do not fit `op`
  uint32_t target = 0;       ///< of a branch
  uint32_t join = ~0u;       ///< where the two sides of a branch meet again; ~0 where they never do
  Ref guard = noRef;         ///< predicate, or noRef
  bool guardNegated = false;
  InstructionClass cls = InstructionClass::Other;
  bool hidden = false;      ///< made by the decoder, not written in the PTX: not counted
  uint8_t vector = 1;       ///< elements of a vector access
  bool wideAddress = false; ///< the address operand is a 64-bit register
  bool named = false;       ///< the address operand is a variable's name: it cannot dangle
  bool inCluster = false;   ///< a shared address may be another block's: `.shared::cluster`, or a generic address
  int8_t members = -1;      ///< which op names the lanes that the instruction waits for, or -1
  uint8_t order = 0;        ///< OrderBits of a volatile, relaxed, acquiring, releasing or atomic access; 0: a weak one
};

/// What is said about a record in messages and profiles.
struct Site {
  uint32_t line = 0;
  std::string source; ///< "file:line" or empty
  const ptx::Instruction *instruction = nullptr;
  uint8_t destinations = 0; ///< bit i: op[i] is written
  uint16_t wideCount = 0, wideDestinations = 0;
  int8_t addressOperand = -1; ///< which op is an address, or -1
  bool aligned = false;       ///< `.aligned`: the whole warp must execute it together
};

/// A slot of the constant pool that holds an address known at launch only.
struct Relocation {
  uint32_t offset = 0;   ///< bytes into the pool
  uint32_t variable = 0; ///< index into Program::variables
  int64_t addend = 0;
};

/// Special registers that a kernel reads, each in a slot filled when a warp starts.
struct SpecialSlot {
  std::string name;
  Ref ref = noRef;
  bool wide = false; ///< 64 bits
};

/// A register that may be read before it is written.
struct MaybeUninitialised {
  Ref slot = noRef;
  std::string name; ///< as the PTX has it; empty for one of the decoder's own
};

/// Where a shared variable lies, for messages.
struct SharedName {
  std::string name;
  uint64_t offset = 0, bytes = 0;
};

/// A register that a function saves.
struct SavedSlot {
  enum Kind : uint8_t { Predicate, Word, Double } kind = Word;
  Ref ref = noRef;
};

/// A function that may call itself (see Calls.h).
struct CalledFunction {
  std::string name;
  uint32_t begin = 0, end = 0;    ///< its records
  Ref frame = noRef;              ///< the register that says where its variables begin in local memory
  uint32_t bytes = 0, align = 16; ///< of its variables
  std::vector<SavedSlot> saved;   ///< that it writes
  uint32_t firstUninitialised = 0, lastUninitialised = 0; ///< its part of Kernel::maybeUninitialised
};

/// Variables of an inlined function, for messages.
struct FrameName {
  std::string name;
  uint32_t begin = 0, end = 0; ///< bytes of local memory
};

struct Kernel {
  EntryInfo info;
  std::vector<Record> code;
  std::vector<Site> sites;
  std::vector<std::byte> constants; ///< 32 equal lanes per immediate
  std::vector<Relocation> relocations;
  std::vector<SpecialSlot> specials;
  std::vector<MaybeUninitialised> maybeUninitialised; ///< of the kernel itself first
  uint32_t entryUninitialised = 0;                    ///< how many these are
  std::deque<CalledFunction> called;
  std::vector<FrameName> frameNames;
  std::vector<SharedName> sharedNames;
  uint32_t registerBytes = slotBytes; ///< of one warp
  uint32_t meetingStart = 0;          ///< where in them a meeting of fragments keeps operands, see Meetings.cpp
  uint32_t vectorStart = 0;           ///< where in them predicates end and values per lane begin
  uint32_t localBytes = 0;            ///< of one thread
  uint32_t stackStart = 0;            ///< where in them alloca's memory begins
  uint32_t staticShared = 0;
  uint32_t dynamicSharedAlign = 16;
  unsigned sharedGranule = 2; ///< log2 of the smallest shared access: what races are tracked by
  unsigned globalGranule = 2; ///< likewise of global accesses
  bool usesAsync = false;
  bool usesEngines = false;                 ///< has bulk copies or wgmma
  bool usesProducts = false;                ///< has wgmma
  bool usesTensor = false;                  ///< has tcgen05
  bool usesPairs = false;                   ///< has copies with .cta_group::2
  uint32_t mostRegisters = 0;               ///< the largest that setmaxnreg.inc asks for, 0 without
  uint32_t launchRegisters = 0;             ///< of a thread as it begins, 0 where ptxas ignores setmaxnreg
  bool usesReserved = false;                ///< reads %reserved_smem_offset_*: gets shared memory behind its own
  bool usesStack = false;                   ///< has alloca
  bool usesHeap = false;                    ///< calls malloc
  bool usesWorkspace = false;               ///< reads %envreg1 or 2: gets a workspace for its grid's barrier
  std::deque<std::vector<Ref>> wideLists;   ///< owns Record::wide
  std::vector<std::shared_ptr<void>> owned; ///< owns Record::aux
  /// Why it cannot run, where it holds what this machine does not have; the module's other kernels can.
  std::optional<Error> refusal;
};

/// A module-level variable in global or constant memory.
struct ProgramVariable {
  std::string name;
  uint64_t size = 0;
  uint32_t align = 1;
  bool constant = false;
  const ptx::Variable *declaration = nullptr;
};

/// Room for the operands of an instruction that fragments of a warp execute together.
inline constexpr uint32_t meetingBytes = 7 * 2 * slotBytes;

/// What alloca may take of a thread's local memory.
inline constexpr uint32_t stackBytes = 16384;

inline uint32_t alignUp(uint64_t value, uint64_t align) { return uint32_t((value + align - 1) / align * align); }

/// The value that stands for a function's address: its place in the module.
inline uint64_t functionAddress(const ptx::Module &module, const ptx::Function &function) {
  return codeWindow | uint64_t(&function - module.functions.data() + 1) * 16;
}

class Program {
public:
  ptx::Module syntax;
  std::string name; ///< stands for the file in messages
  std::string target;
  Approximations approximations = Approximations::Close;
  std::vector<EntryInfo> entries;
  std::map<std::string, Kernel, std::less<>> kernels;
  std::vector<ProgramVariable> variables;    ///< of the module, in the order of the text
  std::set<const ptx::Function *> recursive; ///< functions that may call themselves, through others too
  std::set<std::string_view> addressTaken;   ///< names that stand where an address is wanted
  uint64_t key = 0;                          ///< unique per parsed module
};

} // namespace weft::simulator::machine

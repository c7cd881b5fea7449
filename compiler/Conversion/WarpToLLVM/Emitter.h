// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What the families of `convert-warp-to-llvm` share: where the registers of each value are, and where a lane is.
//
// One walk over a kernel emits LLVM dialect ops beside it. A tensor is as many scalars as its layout has registers, a
// scalar is one, a tile in shared memory a pointer. Values are found in a table instead of through casts, so that the
// walk costs a few microseconds an op and nothing has to be rolled back: an op that cannot be lowered is reported, and
// the walk ends.
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "dialects/Warp/Layout/LinearLayout.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/Allocator.h"
#include <functional>
#include <map>

namespace weft {

/// The registers of a value: one LLVM value for each register of its layout.
using Registers = llvm::SmallVector<mlir::Value>;

class Emitter;
/// Emits what an op becomes, through `Emitter::bind` for its results. A failure has been reported at the op.
using Lowering = std::function<mlir::LogicalResult(mlir::Operation *, Emitter &)>;

/// Which op is lowered by which function.
class LoweringTable {
public:
  /// Lowers ops of type `Op` by `lower`, a callable `LogicalResult(Op, Emitter &)`.
  template <typename Op, typename Function> void add(Function lower) {
    table[mlir::TypeID::get<Op>()] = [lower](mlir::Operation *op, Emitter &emitter) {
      return lower(mlir::cast<Op>(op), emitter);
    };
  }
  /// The function for an op, or null.
  const Lowering *find(mlir::Operation *op) const {
    auto entry = table.find(op->getName().getTypeID());
    return entry == table.end() ? nullptr : &entry->second;
  }

private:
  llvm::DenseMap<mlir::TypeID, Lowering> table;
};

/// The LLVM type of one register of `type`: of a tensor's element, a scalar, or a tile in shared memory.
///
///     f8E4M3FN, f8E5M2    i8
///     index               i64
///     !tile.ptr<T>        !llvm.ptr<1>
///     !warp.shared<..>    !llvm.ptr<3>
///     !warp.tensor_map    !llvm.ptr, of a parameter
///     other scalars       themselves
///
/// Null for other types.
mlir::Type registerType(mlir::Type type);
/// How many registers hold a value of `type`: those of its layout, or 1. A tensor without a layout gives none.
std::optional<unsigned> registerCount(mlir::Type type);
/// The layout of a tensor type, which must have one.
const warp::LinearLayout &layoutOf(mlir::Type tensor);

/// Emits one kernel. Public members are the whole interface of the families.
class Emitter {
public:
  /// How many warps a block has: those of the schedule, a power of two, and those that a `warp.producer` adds; and how
  /// many blocks a cluster.
  struct Warps {
    unsigned ofSchedule, added, cluster;
  };
  /// Emits into `function`, whose entry block must be empty.
  Emitter(mlir::LLVM::LLVMFuncOp function, const TargetInfo &target, Warps warps, const LoweringTable &table);

  /// Where ops are created now. Its location is `loc`.
  mlir::OpBuilder b;
  /// The location of the op that is being lowered.
  mlir::Location loc;
  const TargetInfo &target;
  /// Warps over which tensors lie: those of the schedule; and warps of the block that come behind them.
  const unsigned warps, addedWarps;
  /// Blocks of a cluster; 1: there are none.
  const unsigned cluster;

  // --- values ---
  /// The registers of a value of the kernel that has been lowered. They stay where they are until the kernel is
  /// complete.
  llvm::ArrayRef<mlir::Value> registers(mlir::Value value) const;
  /// The only register of a scalar or of a tile in shared memory.
  mlir::Value scalar(mlir::Value value) const { return registers(value).front(); }
  /// Says where the registers of `value` are: exactly `registerCount` of them.
  void bind(mlir::Value value, llvm::ArrayRef<mlir::Value> registers);
  void bind(mlir::Value value, mlir::Value single) { bind(value, llvm::ArrayRef(single)); }
  /// Emits an op, or all ops of a block but its terminator.
  mlir::LogicalResult lower(mlir::Operation *op);
  mlir::LogicalResult lowerBody(mlir::Block &block);
  /// Emits the block of a combiner region on scalars and gives what it yields. May be called many times on one block.
  /// None after a reported failure.
  std::optional<Registers> inlineBlock(mlir::Block &block, llvm::ArrayRef<mlir::Value> arguments);

  // --- constants ---
  mlir::Value i32(int64_t value);
  mlir::Value i64(int64_t value);
  mlir::Value i1(bool value);
  /// Zero of an LLVM type.
  mlir::Value zero(mlir::Type type);
  /// Constants are shared over the kernel: created once, at its entry.
  mlir::Value constant(mlir::TypedAttr value);

  // --- where a thread is; i32, created once, at the entry ---
  mlir::Value thread();
  mlir::Value lane();
  mlir::Value warp();
  /// Where this thread counts the products in tensor memory that its warpgroup has started; i32, from 0 on.
  mlir::Value productsSoFar();
  /// The xor, over the set bits i of the lane, of laneBases[i], and over those of the warp, of warpBases[i]. Shared by
  /// equal bases.
  mlir::Value xorOfBits(llvm::ArrayRef<uint32_t> laneBases, llvm::ArrayRef<uint32_t> warpBases);
  /// The xor, over the set bits i of `value` (i32, below 2^bases.size()), of bases[i].
  mlir::Value xorOfBases(mlir::Value value, llvm::ArrayRef<uint32_t> bases);
  /// The coordinate along `axis` of the element in register 0 of this lane and warp. The element in register r is at
  /// `coordinate ^ layout.delinearize(layout.apply(InDim::Register, r))[axis]`.
  mlir::Value coordinate(const warp::LinearLayout &layout, unsigned axis);
  /// Coordinate plus a register's part: `base ^ constant`, as an addition (disjoint or) when their bits cannot overlap,
  /// that is, when no lane or warp basis of `layout` has a bit of `constant` along `axis`.
  mlir::Value coordinate(const warp::LinearLayout &layout, unsigned axis, uint32_t reg);
  /// True in exactly one of the threads that hold an element in this layout; null when every thread holds its own. i1.
  mlir::Value isOwner(const warp::LinearLayout &layout);

  // --- code ---
  /// For each register of the op's only result, what `emit` makes of the operands' registers; equal operands share one
  /// result.
  mlir::LogicalResult perRegister(mlir::Operation *op,
                                  llvm::function_ref<mlir::Value(llvm::ArrayRef<mlir::Value>)> emit);
  /// A call of an LLVM intrinsic, "llvm.nvvm.ex2.approx.ftz.f32".
  mlir::Value intrinsic(llvm::StringRef name, mlir::Type result, llvm::ArrayRef<mlir::Value> operands);
  /// `asm volatile` with a struct of the results when there are several. Constraints as LLVM spells them ("=r,l,b").
  llvm::SmallVector<mlir::Value> inlineAsm(llvm::StringRef code, llvm::StringRef constraints,
                                           llvm::ArrayRef<mlir::Type> results, llvm::ArrayRef<mlir::Value> operands,
                                           bool sideEffects);
  /// A value of 32 bits from as many narrower ones as fill it, lowest first; and back, into values of `type`.
  mlir::Value pack(llvm::ArrayRef<mlir::Value> parts);
  llvm::SmallVector<mlir::Value> unpack(mlir::Value word, mlir::Type type);
  /// The word of 32 bits that `parts` were taken from, if they are all of it and in order; null otherwise.
  mlir::Value unpackedFrom(llvm::ArrayRef<mlir::Value> parts);
  mlir::Value bitcast(mlir::Value value, mlir::Type type);
  /// The value of `value` in the lane whose index differs by `mask` (`shfl.sync.bfly`), any type of 8 to 64 bits.
  mlir::Value shuffleXor(mlir::Value value, unsigned mask);
  /// The value of `value` in lane `source` (i32) (`shfl.sync.idx`).
  mlir::Value shuffleIndex(mlir::Value value, mlir::Value source);
  /// The value of `value` `delta` lanes below (`shfl.sync.up`), or above (`shfl.sync.down`); a lane's own where there
  /// is none.
  mlir::Value shuffleUp(mlir::Value value, unsigned delta);
  mlir::Value shuffleDown(mlir::Value value, unsigned delta);
  /// Of the warps over which tensors lie: `bar.sync 0`, a named barrier where the block has others, `bar.warp.sync` where
  /// it is one warp. `withProducer`: of those and the first of the others.
  void barrier(bool withProducer = false);
  /// The same, where a predicate is true, which is one number in the whole block.
  void barrierWhere(mlir::Value where, bool withProducer);
  /// The one at which the others wait for what the producer, which `arrives`, has begun.
  void barrierOfBegin(bool arrives);
  /// Its number: 0 is that of both programs, 1 that of the others. Turns have those from `firstBarrierOfTurns` on.
  static constexpr int barrierOfBeginning = 2, firstBarrierOfTurns = 3;
  /// Of all threads of the cluster: `barrier.cluster`.
  void barrierOfCluster();
  /// Arrives at the barrier that lies in the cluster's block of a number where `address` (i32) is in this one; where `acts`
  /// holds, if it is given.
  void arriveAtBlock(mlir::Value address, mlir::Value block, mlir::Value acts = {});
  /// A pointer into the block's dynamic shared memory, `byteOffset` bytes from its start. !llvm.ptr<3>.
  mlir::Value sharedPointer(int64_t byteOffset);
  /// `pointer` (any address space) plus a number of bytes, i32 or i64.
  mlir::Value offset(mlir::Value pointer, mlir::Value bytes);
  mlir::Value offset(mlir::Value pointer, int64_t bytes);

  /// Runs `emit` with the insertion point at the end of the kernel's entry code: for what is computed once. Values from
  /// outside of the entry must not be used.
  template <typename Function> auto atEntry(Function emit) {
    mlir::OpBuilder::InsertionGuard guard(b);
    b.setInsertionPoint(entryEnd);
    return emit();
  }
  /// To be called when the kernel is complete.
  void finish() { entryEnd->erase(); }
  /// The function that is being emitted into.
  mlir::LLVM::LLVMFuncOp function() const { return kernel; }

private:
  mlir::Value shuffle(mlir::Value value, mlir::Value operand, mlir::NVVM::ShflKind kind, unsigned clamp);

  mlir::LLVM::LLVMFuncOp kernel;
  /// An op that ends the code at the entry; `finish` erases it.
  mlir::Operation *entryEnd;
  const LoweringTable &table;
  llvm::DenseMap<mlir::Value, llvm::ArrayRef<mlir::Value>> values;
  llvm::BumpPtrAllocator storage;
  llvm::DenseMap<mlir::Attribute, mlir::Value> constants;
  std::map<std::vector<uint32_t>, mlir::Value> bitSums;
  mlir::Value threadIndex, sharedBase, products;
};

/// True in the one thread that acts for a value of `type`: the owner of each element of a tensor, thread 0 for a
/// scalar. Null: every thread.
mlir::Value ownerOf(mlir::Type type, Emitter &e);

// --- the families: each adds its ops to the table ---
void addElementwiseLowerings(LoweringTable &table);   // arith
void addMathLowerings(LoweringTable &table);          // math
void addSpanLowerings(LoweringTable &table);          // warp.span_select
void addShapeLowerings(LoweringTable &table);         // tile: make_range ... split
void addMemoryLowerings(LoweringTable &table);        // tile: addptr, load, store
void addAtomicLowerings(LoweringTable &table);        // tile: atomic_rmw, atomic_cas
void addProgramLowerings(LoweringTable &table);       // tile: program_id, num_programs, assert; tile.barrier
void addControlFlowLowerings(LoweringTable &table);   // scf
void addFmaDotLowerings(LoweringTable &table);        // tile.dot of precision ieee
void addRowDotLowerings(LoweringTable &table);        // tile.row_dot
void addMatrixLowerings(LoweringTable &table);        // warp.mma
void addWgmmaLowerings(LoweringTable &table);         // warp.wgmma, wgmma_wait, proxy_fence
void addTensorLowerings(LoweringTable &table);        // warp: tensor_begin ... tensor_wait
void addSharedLowerings(LoweringTable &table);        // warp: alloc ... async_wait
void addBoxLowerings(LoweringTable &table);           // warp: tensor_map ... mbarrier_wait
void addRoleLowerings(LoweringTable &table);          // warp: producer, mbarrier_arrive
void addConvertLayoutLowerings(LoweringTable &table); // warp.convert_layout
void addReduceLowerings(LoweringTable &table);        // tile.reduce
void addScanLowerings(LoweringTable &table);          // tile.scan
void addGatherLowerings(LoweringTable &table);        // tile.gather
void addHistogramLowerings(LoweringTable &table);     // tile.histogram
void addShiftLowerings(LoweringTable &table);         // warp.load_shifted

} // namespace weft

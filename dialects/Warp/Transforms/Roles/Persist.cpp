// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-persist: one block on each multiprocessor goes over the grid's programs, and copies for the next one while it ends
// one.
//
//   %x = tile.program_id x                    %programs:3 = warp.programs
//   ring, copies, loop              ─▶        scf.for %round = 0 to %count {
//   store                                       %x, %y, %z = of the block's program in this round
//                                               copies, loop           of a ring that goes on
//                                               store
//                                             }
//
// Programs are numbered as blocks of the grid would begin, the first axis first. Block b of n takes the program n r + b in
// round r, and in each other round n r + (n - 1 - b): where the first programs are the longest, the block that has the
// longest of one round has the shortest of the next.
#include "compiler/Support/Remarks.h"
#include "dialects/Tile/IR/Schedule.h"
#include "dialects/Tile/IR/TileProgramOps.h"
#include "dialects/Warp/Transforms/LoopCarried.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Roles/KeptRing.h"
#include "dialects/Warp/Transforms/Roles/RoleShares.h"
#include "dialects/Warp/Transforms/Scratch.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPPERSIST
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct Persist : weft::warp::impl::WarpPersistBase<Persist> {
  void runOnOperation() override;
};
} // namespace

/// Why a kernel's programs stay a block each; empty where `ring`, which is found, can go on from one to the next.
static StringRef whyNot(func::FuncOp kernel, std::unique_ptr<KeptRing> &ring) {
  const TargetInfo &target = TargetInfo::ofOrDefault(kernel);
  SmallVector<MbarrierInitOp> rings;
  kernel.walk([&](MbarrierInitOp init) { rings.push_back(init); });
  if (rings.size() != 1 || rings.front().getArrivals().size() != 2)
    return rings.size() > 1 ? "it has several rings of copies" : "no warp of its own makes the copies of its loop";
  if (!sharesOf(kernel, target).consumer)
    return "a multiprocessor holds several of its blocks";
  for (Operation *parent = rings.front()->getParentOp(); parent != kernel; parent = parent->getParentOp())
    if (!isa<scf::IfOp>(parent))
      return "its ring stands in a loop";
  StringRef hindrance;
  ring = findKeptRing(rings.front(), hindrance);
  if (!ring)
    return hindrance;
  Block &body = kernel.getBody().front();
  if (!ring->fits(&body.front(), body.getTerminator()->getPrevNode(), target))
    return "shared memory does not hold its ring beside what it stores";
  return {};
}

/// Adds an op of a block, and what its operands are computed from.
static void addSlice(Operation *op, llvm::SetVector<Operation *> &slice) {
  for (Value operand : op->getOperands())
    if (Operation *from = operand.getDefiningOp(); from && from->getBlock() == op->getBlock())
      addSlice(from, slice);
  slice.insert(op);
}

/// Moves the tensor maps, and what they are made of, to the kernel's begin. What stands behind them.
static Operation *moveMapsToBegin(Block &body) {
  llvm::SetVector<Operation *> slice;
  for (auto map : body.getOps<TensorMapOp>())
    addSlice(map, slice);
  Operation *last = nullptr;
  for (Operation *op : slice) {
    last ? op->moveAfter(last) : op->moveBefore(&body, body.begin());
    last = op;
  }
  return last ? last->getNextNode() : &body.front();
}

namespace {
/// The numbers of a persistent kernel, unsigned.
class Rounds {
public:
  Rounds(OpBuilder &b, Location loc) : b(b), loc(loc) {
    programs = ProgramsOp::create(b, loc);
    block = tile::ProgramIdOp::create(b, loc, tile::Axis::X);
    blocks = tile::NumProgramsOp::create(b, loc, tile::Axis::X);
    last = arith::SubIOp::create(b, loc, arith::SubIOp::create(b, loc, blocks, i32(1)), block);
    Value plane = arith::MulIOp::create(b, loc, programs.getX(), programs.getY());
    all = arith::MulIOp::create(b, loc, plane, programs.getZ());
  }
  Value i32(int64_t value) { return arith::ConstantOp::create(b, loc, b.getI32IntegerAttr(value)); }

  /// How many programs the block has.
  Value count() {
    Value whole = arith::DivUIOp::create(b, loc, all, blocks);
    Value rest = arith::SubIOp::create(b, loc, all, arith::MulIOp::create(b, loc, whole, blocks));
    Value more = arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ult, within(whole), rest);
    return arith::AddIOp::create(b, loc, whole, arith::ExtUIOp::create(b, loc, b.getI32Type(), more));
  }
  /// Its program in a round, by axes.
  std::array<Value, 3> programOf(Value round) {
    Value number = arith::AddIOp::create(b, loc, arith::MulIOp::create(b, loc, round, blocks), within(round));
    auto [rest, x] = divided(number, programs.getX());
    auto [z, y] = divided(rest, programs.getY());
    return {x, y, z};
  }

  ProgramsOp programs;

private:
  /// Which of a round's programs it is.
  Value within(Value round) {
    Value odd = arith::TruncIOp::create(b, loc, b.getI1Type(), round);
    return arith::SelectOp::create(b, loc, odd, last, block);
  }
  /// Quotient and remainder.
  std::pair<Value, Value> divided(Value number, Value by) {
    Value quotient = arith::DivUIOp::create(b, loc, number, by);
    return {quotient, arith::SubIOp::create(b, loc, number, arith::MulIOp::create(b, loc, quotient, by))};
  }

  OpBuilder &b;
  Location loc;
  Value block, blocks, last, all;
};
} // namespace

/// Lets ops of a block name the program that they run, and its grid.
static void nameProgram(Block &block, const std::array<Value, 3> &ids, ProgramsOp programs) {
  block.walk([&](Operation *op) {
    Value number;
    if (auto id = dyn_cast<tile::ProgramIdOp>(op))
      number = ids[static_cast<size_t>(id.getAxis())];
    else if (auto count = dyn_cast<tile::NumProgramsOp>(op))
      number = programs->getResult(static_cast<unsigned>(count.getAxis()));
    if (!number)
      return;
    op->getResult(0).replaceAllUsesWith(number);
    op->erase();
  });
}

/// Puts the kernel's body into a loop over the block's programs.
static scf::ForOp loopOverPrograms(func::FuncOp kernel) {
  Block &body = kernel.getBody().front();
  Operation *first = moveMapsToBegin(body);
  OpBuilder b(first);
  Location loc = kernel.getLoc();
  Rounds rounds(b, loc);
  Value count = rounds.count();
  auto loop = scf::ForOp::create(b, loc, rounds.i32(0), count, rounds.i32(1));
  Operation *yield = loop.getBody()->getTerminator();
  loop.getBody()->getOperations().splice(yield->getIterator(), body.getOperations(), first->getIterator(),
                                         body.getTerminator()->getIterator());
  b.setInsertionPointToStart(loop.getBody());
  nameProgram(*loop.getBody(), rounds.programOf(loop.getInductionVar()), rounds.programs);
  return loop;
}

// --- stores ---

namespace {
/// A tile that boxes are stored from, in an iteration of a loop.
struct StoredTile {
  AllocOp alloc;
  StoreSharedOp filled;
  scf::IfOp wait; // of the thread that stores, until the tile has been read
  DeallocOp dealloc;
};
} // namespace

/// The tile of an allocation of a loop's body, where nothing else is done with it.
static std::optional<StoredTile> storedTile(AllocOp alloc, scf::ForOp loop) {
  StoredTile tile{alloc, {}, {}, {}};
  for (Operation *user : alloc->getUsers()) {
    if (isa<BoxStoreOp>(user))
      continue;
    if (auto filled = dyn_cast<StoreSharedOp>(user); filled && !tile.filled)
      tile.filled = filled;
    else if (auto dealloc = dyn_cast<DeallocOp>(user))
      tile.dealloc = dealloc;
    else if (isa<BoxWaitOp>(user) && !tile.wait)
      tile.wait = dyn_cast<scf::IfOp>(user->getParentOp());
    else
      return std::nullopt;
  }
  for (Operation *op : {tile.filled.getOperation(), tile.wait.getOperation(), tile.dealloc.getOperation()})
    if (!op || op->getParentOp() != loop)
      return std::nullopt;
  return isa<IsFirstThreadOp>(tile.wait.getCondition().getDefiningOp()) ? std::optional(tile) : std::nullopt;
}

/// Lets the thread that stores wait before it stores again, where shared memory holds the tile until then.
static void awaitStoresLate(scf::ForOp loop, const TargetInfo &target) {
  for (AllocOp alloc : llvm::to_vector(loop.getBody()->getOps<AllocOp>())) {
    std::optional<StoredTile> tile = storedTile(alloc, loop);
    if (!tile)
      continue;
    Operation *back = alloc->getNextNode(), *freed = tile->dealloc->getNextNode();
    alloc->moveBefore(loop);
    tile->dealloc->moveAfter(loop);
    if (leastSharedBytes(loop->getParentOfType<func::FuncOp>()) > target.sharedBytesPerBlock) {
      alloc->moveBefore(back);
      tile->dealloc->moveBefore(freed);
      continue;
    }
    OpBuilder b(tile->dealloc);
    auto last = scf::IfOp::create(b, tile->wait.getLoc(), IsFirstThreadOp::create(b, tile->wait.getLoc()),
                                  /*withElseRegion=*/false);
    b.setInsertionPointToStart(last.thenBlock());
    for (Operation &op : tile->wait.thenBlock()->without_terminator())
      b.clone(op);
    tile->wait.getCondition().getDefiningOp()->moveBefore(tile->filled);
    tile->wait->moveBefore(tile->filled);
  }
}

void Persist::runOnOperation() {
  func::FuncOp kernel = getOperation();
  if (!tile::scheduleOf(kernel).persistent)
    return;
  eraseDeadOps(kernel); // what boxes store is no longer exchanged between threads, which would take room
  std::unique_ptr<KeptRing> ring;
  if (StringRef hindrance = whyNot(kernel, ring); !hindrance.empty()) {
    remarks::missed(remarks::blockPerProgram, kernel)
        << remark::reason("each program is a block of its own: {0}", hindrance);
    return;
  }
  scf::ForOp outer = loopOverPrograms(kernel);
  ring->keep(outer);
  awaitStoresLate(outer, TargetInfo::ofOrDefault(kernel));
  remarks::decided(remarks::persistent, kernel)
      << remark::reason("each multiprocessor has one block, which goes over the grid's programs");
}

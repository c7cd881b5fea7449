// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Rows that are computed from themselves and the row before: a program takes a stretch of tokens, and each of `groups`
// groups of lanes walks through `steps` of them, carrying what the row before gave. So that every row is computed once,
// not once for itself and once for the next.
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "compiler/Conversion/AttnToTile/Rows/Sequences.h"
#include "compiler/Conversion/AttnToTile/Sequence/LowerRows.h"
#include "compiler/Conversion/AttnToTile/Sequence/RowSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {

namespace {
// As many warps as kernels over tiles of rows have, so that both fit one launch.
constexpr int64_t warps = 4, groups = 8 * warps, widest = 32;

/// A part of what a shift takes: channels, or for values of rank 3 the row's number.
struct Carried {
  attn::ShiftOp shift;
  std::optional<Chunk> chunk;
};
} // namespace

/// The shifts that row-local `roots` are made of, where each takes the row before and none takes what another gives.
static SmallVector<attn::ShiftOp> shiftsOf(ArrayRef<Value> roots, const StoredValues &stored) {
  llvm::SetVector<Value> reached;
  reached.insert(roots.begin(), roots.end());
  SmallVector<attn::ShiftOp> shifts;
  for (size_t i = 0; i < reached.size(); ++i) {
    Operation *op = reached[i].getDefiningOp();
    if (!op || stored.contains(reached[i]))
      continue;
    reached.insert(op->operand_begin(), op->operand_end());
    auto shift = dyn_cast<attn::ShiftOp>(op);
    if (readsOtherRows(op) && (!shift || shift.getBy() != 1))
      return {};
    if (shift)
      shifts.push_back(shift);
  }
  // A shift's source must not contain another shift.
  for (attn::ShiftOp shift : shifts) {
    llvm::SetVector<Value> before;
    before.insert(shift.getSource());
    for (size_t i = 0; i < before.size(); ++i) {
      Operation *op = before[i].getDefiningOp();
      if (!op || stored.contains(before[i]))
        continue;
      if (isa<attn::ShiftOp>(op))
        return {};
      before.insert(op->operand_begin(), op->operand_end());
    }
  }
  return shifts;
}

static Value pullPart(Puller &puller, Value value, const RowTile &rows, const std::optional<Chunk> &chunk) {
  return chunk ? puller.pull(value, rows, *chunk, Zeros::Rows) : puller.pullRow(value, rows);
}

/// A tile's rows where `mask` holds, 0 elsewhere.
static Value onlyWhere(TileBuilder &b, Value mask, Value tile) {
  Value none = b.full(TileBuilder::shapeOf(tile), 0, TileBuilder::elementOf(tile));
  return b.select(TileBuilder::shapeOf(tile).size() == 2 ? b.column(mask) : mask, tile, none);
}

namespace {
/// The kernel: its program's place, and what it carries from row to row.
class RowWalk {
public:
  RowWalk(Operation *anchor, const RowRoots &roots, ArrayRef<attn::ShiftOp> shifts, StoredValues &stored);
  void run();

private:
  RowTile rowsAt(Value place);
  SmallVector<Value> carriedAtStart();
  void provideShifted(const RowTile &rows, ValueRange carried);
  void storeRoots(const RowTile &rows, const RowTile &places);
  SmallVector<Value> step(Value place, ValueRange carried, RowSums &sums);

  const RowRoots &roots;
  StoredValues &stored;
  KernelFrame frame;
  int64_t steps; ///< rows that a group of lanes walks through
  TileBuilder &b;
  Puller puller;
  attn::WholeTensorType space;
  Value start, length, head, batch;
  SmallVector<Carried> parts;
  SmallVector<TensorParameter> outputs;
};
} // namespace

RowWalk::RowWalk(Operation *anchor, const RowRoots &roots, ArrayRef<attn::ShiftOp> shifts, StoredValues &stored)
    : roots(roots), stored(stored), frame(anchor, "rows_walked"),
      steps(frame.tiling({{groups * 32, warps}, {groups * 8, groups * 16, groups * 32, groups * 64}, {warps}}).rows /
            groups),
      b(frame.b), puller(frame, stored, widest), space(wholeType(roots.pulled().front())) {
  start = b.mul(b.programId(tile::Axis::X), b.i32(groups * steps));
  length = frame.size(space.dim(2));
  head = b.programId(tile::Axis::Y);
  batch = b.programId(tile::Axis::Z);
  for (attn::ShiftOp shift : shifts) {
    attn::WholeTensorType type = wholeType(shift.getSource());
    if (type.getRank() == 3)
      parts.push_back({shift, std::nullopt});
    else
      for (const Chunk &chunk : chunksOf(*type.staticDim(3), widest))
        parts.push_back({shift, chunk});
  }
}

/// The rows that the groups of lanes are at in a step: one of each group's stretch.
RowTile RowWalk::rowsAt(Value place) {
  RowTile rows;
  rows.count = groups;
  rows.scalarStart = b.add(start, place);
  rows.offsets = b.mul(b.range(groups), b.i32(steps));
  rows.token = b.add(rows.scalarStart, rows.offsets);
  rows.inside = b.less(rows.token, length);
  return rows.of(space, batch, head);
}

/// What the rows before each group's first give.
SmallVector<Value> RowWalk::carriedAtStart() {
  RowTile before = rowsAt(b.i32(-1));
  before.inside = b.both(before.inside, b.compareInt(arith::CmpIPredicate::sge, before.token, b.i32(0)));
  SmallVector<Value> carried;
  for (Carried &part : parts)
    carried.push_back(pullPart(puller, part.shift.getSource(), before, part.chunk));
  return carried;
}

/// Gives the puller what shifts take at `rows`: what the rows before gave, 0 at the first row of a sequence.
void RowWalk::provideShifted(const RowTile &rows, ValueRange carried) {
  llvm::DenseMap<Value, Value> goesOn; // by cu_seqlens: which rows have one before them in their sequence
  for (auto [part, tile] : llvm::zip(parts, carried)) {
    Value kept = tile; // Token 0 is in the first step, where the carried tile is 0 already.
    if (part.shift.getCuSeqlens()) {
      Value cuSeqlens = stored.at(part.shift.getCuSeqlens());
      Value &within = goesOn[cuSeqlens];
      if (!within)
        within = b.less(sequenceOfRows(frame, cuSeqlens, rows.token, length).first, rows.token);
      kept = onlyWhere(b, within, tile);
    }
    puller.provide(part.shift.getResult(), rows, part.chunk ? part.chunk->first : 0,
                   b.cast(kept, wholeType(part.shift.getResult()).getElementType()));
  }
}

void RowWalk::storeRoots(const RowTile &rows, const RowTile &places) {
  for (auto [root, output] : llvm::zip(roots.values, outputs)) {
    if (output.type.getRank() == 3) {
      puller.store(output, places, nullptr, puller.pullRow(root, rows, Zeros::Nowhere));
      continue;
    }
    for (const Chunk &chunk : chunksOf(*output.type.staticDim(3), widest))
      puller.store(output, places, &chunk, puller.pull(root, rows, chunk, Zeros::Nowhere));
  }
}

/// One row of each group; from and to what is carried, sums last.
SmallVector<Value> RowWalk::step(Value place, ValueRange carried, RowSums &sums) {
  RowTile places = rowsAt(place);
  // Past the end the last row is computed again and not stored, so that loads need no mask.
  RowTile rows = places.anyRows(b.min(places.token, b.sub(length, b.i32(1))), {});
  provideShifted(rows, carried);
  SmallVector<Value> next;
  for (Carried &part : parts)
    next.push_back(pullPart(puller, part.shift.getSource(), rows, part.chunk));
  storeRoots(rows, places);
  for (unsigned i = 0; i < sums.size(); ++i)
    next.push_back(b.add(carried[parts.size() + i], sums.terms(i, rows, places.inside)));
  return next;
}

void RowWalk::run() {
  SmallVector<Value> initial = carriedAtStart();
  for (Value root : roots.values)
    outputs.push_back(frame.output(wholeType(root)));
  RowSums sums(frame, puller, roots.sums, groups * steps);
  initial.append(sums.size(), b.zeros({groups}));
  // Two rows in a turn: what is carried then need not be moved to where it was.
  auto loop = scf::ForOp::create(b, b.i32(0), b.i32(steps), b.i32(2), initial);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    SmallVector<Value> first = step(loop.getInductionVar(), loop.getRegionIterArgs(), sums);
    scf::YieldOp::create(b, step(b.add(loop.getInductionVar(), b.i32(1)), first, sums));
  }
  hoistLoads(loop);
  for (unsigned i = 0; i < sums.size(); ++i)
    sums.store(i, loop.getResult(parts.size() + i));
  auto results = frame.finish({{tilesOf(space, groups * steps), space.dim(1).str(), space.dim(0).str()}, warps, 2});
  stored.record(roots.values, results);
  sums.replace(ArrayRef(results).take_back(sums.size()), stored);
}

bool walkRows(Operation *anchor, const RowRoots &roots, StoredValues &stored) {
  SmallVector<attn::ShiftOp> shifts = shiftsOf(roots.pulled(), stored);
  if (shifts.empty())
    return false;
  RowWalk(anchor, roots, shifts, stored).run();
  return true;
}

} // namespace weft

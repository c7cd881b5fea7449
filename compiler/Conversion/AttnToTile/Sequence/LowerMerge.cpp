// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn.merge_units: a program takes a stretch of tokens of one head. It counts the units before its stretch from the
// joins alone, numbers its own tokens' units by scans, and then walks: each of `groups` groups of lanes goes through
// `steps` tokens and adds up rows, on to the end of the last unit that began among them, and stores a unit where it
// ends.
//
//   tokens of a program:   | group 0: t0, t0+1, ... | group 1 | ... |        one step is one token of every group
//
// A token's phase is its place in its unit: its distance from the last token without a join, modulo max_joins + 1.
// Programs share nothing but the joins, so they need no order, and lengths stay on the device.
#include "compiler/Conversion/AttnToTile/Rows/Sequences.h"
#include "compiler/Conversion/AttnToTile/Sequence/LowerSequence.h"
#include "compiler/Conversion/AttnToTile/Sequence/RowSums.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {
namespace {

// One warp, so that a group's state passes between lanes by shuffles.
constexpr int64_t warps = 1, groups = 8;
/// Channels of a chunk: so that a row is few lanes', whose sums are few exchanges.
constexpr int64_t widest = 32;
/// Rows of zeros after the units: what a block of keys may reach past them.
constexpr int64_t cleared = 256;

/// The tokens of a stretch, each tensor<stretch x ..>.
struct Numbered {
  Value phase, unit;
  Value units; ///< i32: how many began up to the stretch's end
};

/// Where the groups stand: tensor<groups x i32> each, `ours` i1, and the sums so far, a tile for each chunk.
struct Walked {
  Value phase; ///< of the token that comes next
  Value unit;
  Value ours;    ///< whether the unit that is open began in the group's stretch
  Value leading; ///< whether it is its sequence's first (null where nobody asks)
  SmallVector<Value> sums;

  SmallVector<Value> values() const {
    SmallVector<Value> all{phase, unit, ours};
    if (leading)
      all.push_back(leading);
    all.append(sums);
    return all;
  }
  Walked with(ValueRange values) const {
    Walked next{values[0], values[1], values[2], leading ? values[3] : Value(), {}};
    next.sums.assign(values.begin() + (leading ? 4 : 3), values.end());
    return next;
  }
};

class MergeKernel {
public:
  MergeKernel(attn::MergeUnitsOp op, ArrayRef<Value> along, ArrayRef<attn::SumOp> sums, StoredValues &stored);
  void lower();

private:
  Value joinsAt(Value tokens, Value inside) { return b.load(b.addPtr(joinRow, tokens), inside); }
  Value firstOf(const TensorParameter &tensor);
  Value phaseOf(Value tokens, Value alone);
  Value beginsUnit(Value distance);
  Value endOf(Value scanned);
  /// Carries of a stretch's start: the last token without a join, units begun, units begun before the sequence.
  std::array<Value, 3> lookBefore();
  Numbered number();
  void store(Value table, Value places, Value values, Value mask);
  void addUp(Value tokens, Value inside, ValueRange tables);
  Walked begin(const Numbered &numbered);
  Walked step(Value place, const Walked &at, bool begins);
  void storeUnits(const Walked &at, const RowTile &rows, Value survives);
  void storeAlong(const RowTile &rows, Value token);
  void walk(const Numbered &numbered);
  void clearRest(Value units);

  attn::MergeUnitsOp op;
  SmallVector<Value> along;
  StoredValues &stored;
  KernelFrame frame;
  int64_t stretch, steps; ///< tokens of a program, and of a group of lanes
  TileBuilder &b;
  Puller puller;
  Value cuSeqlens; ///< where sequences start, or null
  Value start, length, head, batch, joinRow;
  llvm::MapVector<Value, TensorParameter> outputs; ///< of the results that someone uses
  std::optional<RowSums> sums;
};

} // namespace

static Value equals(TileBuilder &b, Value x, Value y) { return b.compareInt(arith::CmpIPredicate::eq, x, y); }

MergeKernel::MergeKernel(attn::MergeUnitsOp op, ArrayRef<Value> along, ArrayRef<attn::SumOp> sums, StoredValues &stored)
    : op(op), along(along), stored(stored), frame(op, "merge_units"),
      stretch(
          frame.tiling({{groups * 64, warps}, {groups * 16, groups * 32, groups * 64, groups * 128}, {warps}}).rows),
      steps(stretch / groups), b(frame.b), puller(frame, stored, widest) {
  cuSeqlens = op.getCuSeqlens() ? stored.at(op.getCuSeqlens()) : Value();
  start = b.mul(b.programId(tile::Axis::X), b.i32(stretch));
  head = b.programId(tile::Axis::Y);
  batch = b.programId(tile::Axis::Z);
  length = frame.size(wholeType(op.getJoins()).dim(2));
  joinRow = firstOf(frame.input(stored.at(op.getJoins())));
  // Sums read these tables inside the kernel.
  std::function<bool(Operation *)> isMade = [&](Operation *user) {
    return llvm::is_contained(sums, user) || (isa<attn::MapOp>(user) && llvm::all_of(user->getUsers(), isMade));
  };
  for (Value result : op.getResults())
    if (!llvm::all_of(result.getUsers(), isMade))
      outputs[result] = frame.output(wholeType(result));
  for (Value value : along)
    outputs[value] = frame.output(wholeType(value));
  this->sums.emplace(frame, puller, sums, stretch);
}

/// The address of a head's first element, of [B, H, N].
Value MergeKernel::firstOf(const TensorParameter &tensor) {
  Value offset = b.mul(b.cast(batch, b.getI64Type()), tensor.strides[0]);
  return b.addPtr(tensor.pointer, b.add(offset, b.mul(b.cast(head, b.getI64Type()), tensor.strides[1])));
}

Value MergeKernel::phaseOf(Value tokens, Value alone) {
  Value distance = b.sub(tokens, alone);
  if (op.getMaxJoins() == 0)
    return b.broadcastLike(b.i32(0), distance);
  return arith::RemUIOp::create(b, distance, b.broadcastLike(b.i32(op.getMaxJoins() + 1), distance));
}

/// Whether the phase of tokens so far from the last one without a join is 0: whether max_joins + 1 divides the
/// distance. (A multiple times the divisor's inverse modulo 2^32 is the quotient, and nothing else gives a number as
/// small.)
Value MergeKernel::beginsUnit(Value distance) {
  uint32_t divisor = op.getMaxJoins() + 1, odd = divisor >> llvm::countr_zero(divisor), inverse = odd;
  for (int step = 0; step < 4; ++step) // Newton's iteration: 3 correct bits, then 6, 12, 24, 48.
    inverse *= 2 - odd * inverse;
  Value quotient = b.mul(distance, b.i32(static_cast<int32_t>(inverse)));
  if (unsigned twos = llvm::countr_zero(divisor)) {
    auto by = [&](unsigned bits) { return b.broadcastLike(b.i32(bits), quotient); };
    Value low = arith::ShRUIOp::create(b, quotient, by(twos)), high = arith::ShLIOp::create(b, quotient, by(32 - twos));
    quotient = arith::OrIOp::create(b, low, high);
  }
  return b.compareInt(arith::CmpIPredicate::ule, quotient, b.i32(static_cast<int32_t>(UINT32_MAX / divisor)));
}

/// The last element of a stretch.
Value MergeKernel::endOf(Value scanned) {
  Value place = b.full({1}, stretch - 1, b.getI32Type());
  Value end = tile::GatherOp::create(b, place.getType(), scanned, place, b.getI32IntegerAttr(0));
  return b.reduceMax(end, 0);
}

std::array<Value, 3> MergeKernel::lookBefore() {
  Value none = b.full({stretch}, 0, b.getI32Type());
  SmallVector<Value> initial{b.i32(0), none};
  Value first;
  if (cuSeqlens) {
    first = sequenceOfRows(frame, cuSeqlens, start, length).first;
    initial.push_back(none);
  }
  auto loop = scf::ForOp::create(b, b.i32(0), b.programId(tile::Axis::X), b.i32(1), initial);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value tokens = b.add(b.mul(loop.getInductionVar(), b.i32(stretch)), b.range(stretch));
    Value alone = b.select(joinsAt(tokens, Value()), b.i32(0), tokens);
    Value last = b.prefixMax(alone);
    Value begins = beginsUnit(b.sub(tokens, b.max(last, loop.getRegionIterArg(0))));
    SmallVector<Value> next{b.max(loop.getRegionIterArg(0), endOf(last)),
                            b.add(loop.getRegionIterArg(1), b.cast(begins, b.getI32Type()))};
    if (cuSeqlens)
      next.push_back(b.add(loop.getRegionIterArg(2), b.cast(b.both(begins, b.less(tokens, first)), b.getI32Type())));
    scf::YieldOp::create(b, next);
  }
  Value units = b.reduceSum(loop.getResult(1), 0);
  return {loop.getResult(0), units, cuSeqlens ? b.reduceSum(loop.getResult(2), 0) : b.i32(0)};
}

void MergeKernel::store(Value table, Value places, Value values, Value mask) {
  auto found = outputs.find(table);
  if (found == outputs.end())
    return;
  Value pointers = b.addPtr(firstOf(found->second), places);
  b.store(pointers, b.broadcast(values, TileBuilder::shapeOf(places)), mask);
}

/// Numbers the stretch's tokens, and writes every table.
Numbered MergeKernel::number() {
  auto [lastAlone, unitsBefore, lowerBefore] = lookBefore();
  Value tokens = b.add(start, b.range(stretch)), next = b.add(tokens, b.i32(1)), zero = b.i32(0), one = b.i32(1);
  Value inside = b.less(tokens, length), joined = joinsAt(tokens, inside);
  Value alone = b.select(b.both(inside, b.negate(joined)), tokens, zero);
  Value phase = phaseOf(tokens, b.max(b.prefixMax(alone), lastAlone));
  Value begins = b.both(inside, equals(b, phase, zero)), counted = b.cast(begins, b.getI32Type());
  Value unit = b.sub(b.add(b.prefixSum(counted), unitsBefore), one);
  Value joinedNext = joinsAt(next, b.less(next, length));
  Value goesOn = b.both(joinedNext, b.negate(equals(b, phase, b.i32(op.getMaxJoins()))));
  Value survives = b.both(inside, b.negate(goesOn));

  SequenceOfRows sequence = sequenceOfRows(frame, cuSeqlens, tokens, length);
  Value lower = b.broadcastLike(zero, tokens);
  if (cuSeqlens)
    lower = b.max(b.prefixMax(b.select(equals(b, tokens, sequence.first), unit, zero)), lowerBefore);
  Value upper = unit;
  if (op.hasOffset())
    upper = b.add(lower, b.max(b.sub(b.sub(b.add(unit, b.cast(survives, b.getI32Type())), lower), one), zero));

  store(op.getUnit(), tokens, unit, inside);
  store(op.getLower(), tokens, lower, inside);
  store(op.getUpper(), tokens, upper, inside);
  Value kept = b.both(inside, b.negate(equals(b, phase, zero)));
  store(op.getKept(), tokens, kept, inside);
  addUp(tokens, inside, {unit, lower, upper, kept});
  store(op.getEnds(), unit, next, survives);
  if (op.hasOffset()) {
    Value carried = b.both(survives, b.less(lower, unit)), before = b.sub(unit, one);
    store(op.getFirst(), before, tokens, carried);
    store(op.getPast(), before, sequence.past, carried);
    Value last = b.both(inside, equals(b, next, sequence.past)); // no query sees it
    store(op.getFirst(), unit, sequence.past, last);
    store(op.getPast(), unit, sequence.past, last);
  } else {
    store(op.getFirst(), unit, next, survives);
    store(op.getPast(), unit, sequence.past, survives);
  }
  return {phase, unit, b.add(unitsBefore, b.reduceSum(counted, 0))};
}

/// So many rows that are yet to be said.
static RowTile withCount(int64_t count) {
  RowTile rows;
  rows.count = count;
  return rows;
}

/// Stores the program's parts of sums over tokens, whose tables are at hand.
void MergeKernel::addUp(Value tokens, Value inside, ValueRange tables) {
  RowTile rows = withCount(stretch).of(wholeType(op.getJoins()), batch, head);
  rows.token = tokens;
  rows.inside = inside;
  rows.scalarStart = start;
  rows.offsets = b.range(stretch);
  if (!sums->empty())
    for (auto [table, tile] : llvm::zip(tokenTablesOf(op), tables))
      puller.provide(table, rows, 0, tile);
  for (unsigned i = 0; i < sums->size(); ++i)
    sums->store(i, sums->terms(i, rows, inside));
}

Walked MergeKernel::begin(const Numbered &numbered) {
  Value places = b.mul(b.range(groups), b.i32(steps));
  auto ofGroups = [&](Value tokens) -> Value {
    return tile::GatherOp::create(b, places.getType(), tokens, places, b.getI32IntegerAttr(0));
  };
  Value no = b.full({groups}, 0, b.getI1Type());
  Walked at{ofGroups(numbered.phase), ofGroups(numbered.unit), no, op.hasOffset() ? no : Value(), {}};
  for (Value source : op.getSources())
    for (const Chunk &chunk : chunksOf(*wholeType(source).staticDim(3), widest))
      at.sums.push_back(b.zeros({groups, chunk.width}));
  return at;
}

/// One token of every group: that at `place` in its stretch. A unit is ours where it begins while `begins`.
Walked MergeKernel::step(Value place, const Walked &at, bool begins) {
  RowTile rows = withCount(groups).of(wholeType(op.getJoins()), batch, head);
  Value token = b.add(b.add(start, place), b.mul(b.range(groups), b.i32(steps))), next = b.add(token, b.i32(1));
  // Rows past the stretch are read but not stored, so that loads need no mask.
  rows.token = b.min(token, b.sub(length, b.i32(1)));
  Value first = equals(b, at.phase, b.i32(0));
  Value ours = begins ? b.either(first, at.ours) : b.both(b.negate(first), at.ours);
  ours = b.both(ours, b.less(token, length));
  Value goesOn = b.both(joinsAt(next, b.less(next, length)), b.negate(equals(b, at.phase, b.i32(op.getMaxJoins()))));

  Walked now{at.phase, at.unit, ours, at.leading, {}};
  if (at.leading) {
    Value leads = equals(b, token, sequenceOfRows(frame, cuSeqlens, token, length).first);
    now.leading = b.select(first, leads, at.leading);
  }
  // A unit's first row begins its sum anew. A factor of 0 or 1 takes part in the addition; but what is not finite would
  // outlast it, from one packed sequence to the next.
  // Only units that began in this stretch are stored; the sums of others are discarded.
  Value factor = b.column(b.select(first, b.f32(0), b.f32(1)));
  auto keep = [&](Value sum) {
    return !begins ? sum : cuSeqlens ? b.select(b.column(first), b.f32(0), sum) : b.mul(sum, factor);
  };
  unsigned i = 0;
  for (auto [number, source] : llvm::enumerate(op.getSources()))
    for (const Chunk &chunk : chunksOf(*wholeType(source).staticDim(3), widest)) {
      Value row = puller.pull(source, rows, chunk, Zeros::Nowhere), x = b.cast(row, b.getF32Type()), sum = at.sums[i++];
      puller.provide(source, rows, chunk.first, row); // also for the maps of it that are stored
      // A value of one channel is a tile of one column.
      bool last = op.modeOf(number) == attn::MergeMode::Last;
      now.sums.push_back(last ? b.broadcast(x, {groups, chunk.width}) : b.add(keep(sum), x));
    }
  storeUnits(now, rows, b.both(ours, b.negate(goesOn)));
  if (begins)
    storeAlong(rows, token);
  now.phase = b.select(goesOn, b.add(at.phase, b.i32(1)), b.i32(0));
  now.unit = b.add(at.unit, b.cast(b.negate(goesOn), b.getI32Type()));
  return now;
}

/// Stores the units that end at the rows' tokens.
void MergeKernel::storeUnits(const Walked &at, const RowTile &rows, Value survives) {
  unsigned i = 0;
  for (auto [number, source, merged] : llvm::enumerate(op.getSources(), op.getMerged())) {
    RowTile place = rows.anyRows(at.unit, survives);
    RowTile last = place; // with an offset the units lie one place earlier, and a sequence's last place is zeroed
    int64_t offset = op.getOffsets()[number];
    if (offset) {
      place.token = b.sub(at.unit, b.i32(1));
      place.inside = b.both(survives, b.negate(at.leading));
      Value past = sequenceOfRows(frame, cuSeqlens, rows.token, length).past;
      last.inside = b.both(survives, equals(b, b.add(rows.token, b.i32(1)), past));
    }
    Value share;
    if (op.modeOf(number) == attn::MergeMode::Mean)
      share = b.div(b.f32(1), b.cast(b.add(at.phase, b.i32(1)), b.getF32Type()));
    auto output = outputs.find(merged);
    for (const Chunk &chunk : chunksOf(*wholeType(source).staticDim(3), widest)) {
      Value sum = at.sums[i++];
      if (output == outputs.end())
        continue;
      puller.store(output->second, place, &chunk, share ? b.mul(sum, b.column(share)) : sum);
      if (offset)
        puller.store(output->second, last, &chunk, b.zeros({groups, chunk.width}));
    }
  }
}

/// Stores what others take that is made of the rows.
void MergeKernel::storeAlong(const RowTile &rows, Value token) {
  RowTile places = rows.anyRows(token, b.less(token, length));
  for (Value value : along)
    for (const Chunk &chunk : chunksOf(*wholeType(value).staticDim(3), widest))
      puller.store(outputs[value], places, &chunk, puller.pull(value, rows, chunk, Zeros::Nowhere));
}

void MergeKernel::walk(const Numbered &numbered) {
  Walked at = begin(numbered);
  SmallVector<Value> initial = at.values();
  auto loop = scf::ForOp::create(b, b.i32(0), b.i32(steps), b.i32(1), initial);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Walked next = step(loop.getInductionVar(), at.with(loop.getRegionIterArgs()), /*begins=*/true);
    scf::YieldOp::create(b, next.values());
  }
  // On to the end of the units that are open.
  SmallVector<Value> carried{b.i32(steps)};
  carried.append(loop.getResults().begin(), loop.getResults().end());
  SmallVector<Type> types(ValueRange(carried).getTypes());
  SmallVector<Location> locations(types.size(), b.getLoc());
  auto rest = scf::WhileOp::create(b, types, carried);
  OpBuilder::InsertionGuard guard(b);
  Block *condition = b.createBlock(&rest.getBefore(), {}, types, locations);
  Walked open = at.with(condition->getArguments().drop_front());
  Value isOpen = b.both(open.ours, b.negate(equals(b, open.phase, b.i32(0))));
  Value some = b.less(b.i32(0), b.reduceMax(b.cast(isOpen, b.getI32Type()), 0));
  scf::ConditionOp::create(b, some, condition->getArguments());
  Block *body = b.createBlock(&rest.getAfter(), {}, types, locations);
  Value place = body->getArgument(0);
  Walked next = step(place, at.with(body->getArguments().drop_front()), /*begins=*/false);
  SmallVector<Value> yielded{b.add(place, b.i32(1))};
  yielded.append(next.values());
  scf::YieldOp::create(b, yielded);
}

/// The last program writes what lies after the units.
void MergeKernel::clearRest(Value units) {
  Value isLast = b.less(b.sub(length, b.i32(stretch + 1)), start);
  Value rest = b.select(isLast, b.sub(length, units), b.i32(0));
  auto tables = scf::ForOp::create(b, b.i32(0), b.ceilDiv(rest, stretch), b.i32(1));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(tables.getBody());
    Value column = b.add(b.add(units, b.mul(tables.getInductionVar(), b.i32(stretch))), b.range(stretch));
    for (Value table : {op.getEnds(), op.getFirst(), op.getPast()})
      store(table, column, length, b.less(column, length));
  }
  auto zeros = scf::ForOp::create(b, b.i32(0), b.ceilDiv(b.min(rest, b.i32(cleared)), groups), b.i32(1));
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(zeros.getBody());
  Value first = b.add(units, b.mul(zeros.getInductionVar(), b.i32(groups)));
  RowTile rows = rowsFrom(b, first, groups, length, /*bounded=*/true).of(wholeType(op.getJoins()), batch, head);
  for (Value merged : op.getMerged())
    if (auto output = outputs.find(merged); output != outputs.end())
      for (const Chunk &chunk : chunksOf(*wholeType(merged).staticDim(3), widest))
        puller.store(output->second, rows, &chunk, b.zeros({groups, chunk.width}));
}

void MergeKernel::lower() {
  Numbered numbered = number();
  walk(numbered);
  clearRest(numbered.units);
  attn::WholeTensorType rows = wholeType(op.getJoins());
  auto results = frame.finish({{tilesOf(rows, stretch), rows.dim(1).str(), rows.dim(0).str()}, warps, 1});
  for (auto [output, result] : llvm::zip(outputs, results))
    stored.record(output.first, result);
  sums->replace(ArrayRef(results).take_back(sums->size()), stored);
}

SmallVector<Value, 4> tokenTablesOf(attn::MergeUnitsOp op) {
  return {op.getUnit(), op.getLower(), op.getUpper(), op.getKept()};
}

LogicalResult lowerMergeUnits(attn::MergeUnitsOp op, ArrayRef<Value> along, ArrayRef<attn::SumOp> sums,
                              StoredValues &stored) {
  MergeKernel(op, along, sums, stored).lower();
  return success();
}

} // namespace weft

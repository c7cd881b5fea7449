// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Attention forward: a program holds a tile of queries, walks the blocks of keys that their pattern touches, domain
// after domain, with one online softmax (Milakov and Gimelshein 2018; Dao et al. 2022) in base 2, and ends with what is
// computed from the output row by row.
//
//   m = -inf, l = 0, acc = 0                       (with a sink: m = sink, l = 1)
//   for each block:  s = q kᵀ;  m' = max(m, rowmax s);  p = 2^(s c - m' c);  α = 2^((m - m') c)       c = scale log2 e
//                    l = l α + rowsum p;  acc = acc α + p v;  m = m'
//   out = acc / l;  lse = (m c + log2 l) ln 2
//
// Scores stay products until the exponent, which is one fused multiply-add. As m c is rounded there and s c is not, the
// largest weight is 2^r for the residue r of m c, which scores in the thousands make as large as 2^-10: then p, rounded
// for the product, and l, which is not, differ where a row has one weight alone. So l ends with the rounding of 2^r. A
// score_mod, or a scale that is not positive, takes c = 1 of scaled scores.
#include "compiler/Conversion/AttnToTile/Attention/AttendForward.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendDiagonal.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendForwardKernel.h"
#include "compiler/Conversion/AttnToTile/Patterns/PatternDependence.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "compiler/Support/Remarks.h"
#include "dialects/Attn/IR/AttentionAttributes.h"
#include "dialects/Attn/Pattern/Membership.h"
#include "dialects/Attn/Pattern/Scattered.h"
#include "dialects/Tile/IR/LoopAttributes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

static constexpr double ln2 = 0.6931471805599453;

int64_t packedHeads(const Attend &attend, attn::ScheduleAttr schedule) {
  int64_t group = attend.sharedGroup();
  if (group > schedule.getRows())
    group = std::gcd(group, schedule.getRows());
  if (attend.form.windows)
    return 1;
  for (Attribute pattern : attend.patterns)
    if (tellsHeadsApart(attn::withoutScattered(pattern), attend, group) ||
        (!hasSegments(pattern) && schedule.getRows() % group))
      return 1;
  return group;
}

ForwardOp ForwardOp::of(attn::AttendOp op) {
  return {"attend", Attend::of(op), op.getSink(), op.getOut(), op.getLse(), forwardSchedule(op)};
}

void ForwardKernel::stand() {
  if (!splits && !windows)
    order = tileOrder(attend, wide ? "1" : attendGrid(attend, attend.queryType(), schedule.getRows(), packed)[1],
                      /*keys=*/false);
  Value place;
  if (splits) {
    Value number = b.programId(tile::Axis::X), most = frame.size(splits->most());
    place = b.div(number, most);
    split = b.sub(number, b.mul(place, most));
  }
  standing = findStanding(
      frame, attend, stored,
      {schedule.getRows(), /*keys=*/false, /*headsOf=*/std::nullopt, packed, wide ? wide->parts : 1, place, order});
  if (wide) {
    part = partOf(b, *wide, standing);
    valueChunks = part->chunks;
  }
}

/// The rows of the tile where the program stands, and their queries.
void ForwardKernel::begin() {
  queries.clear();
  queryTangents.clear();
  if (packed > 1) {
    // Row by row the heads of one token, then those of the next.
    Value index = b.add(b.mul(standing.tile, b.i32(schedule.getRows())), b.range(schedule.getRows()));
    rows.count = schedule.getRows();
    rows.token = b.div(index, b.i32(packed));
    rows.member = b.sub(index, b.mul(rows.token, b.i32(packed)));
    rows.packed = packed;
    rows.inside = b.less(rows.token, standing.queryLength);
  } else if (windows) {
    windowStanding = weft::windowStanding(b, *windows, schedule.getRows(), standing.queryLength, standing.tile);
    rows =
        windowRows(b, *windows, windowStanding.window, windowStanding.tile, schedule.getRows(), standing.queryLength);
  } else {
    Value start = b.mul(standing.tile, b.i32(schedule.getRows()));
    rows = rowsFrom(b, start, schedule.getRows(), standing.queryLength, /*bounded=*/true);
  }
  rows = rows.of(attend.queryType(), standing.batch, standing.head);
  rows.base = standing.queryBase;
  // Clamping repeats the last row; an empty packed sequence has none.
  Value tangent = op.tangents ? op.tangents->query : Value();
  auto needsNeighbours = [&](Value value) { return value && needsOf(value, stored).neighbours; };
  bool clamps =
      rows.scalarStart && !rows.base && !windows && !needsNeighbours(attend.query) && !needsNeighbours(tangent);
  read = clamps ? rows.clamped(b, standing.queryLength, /*unread=*/true) : rows;
  for (const Chunk &chunk : queryChunks) {
    queries.push_back(puller.pull(attend.query, read, chunk, Zeros::Channels));
    if (tangent)
      queryTangents.push_back(puller.pull(tangent, read, chunk, Zeros::Channels));
  }
}

State ForwardKernel::initial() {
  int64_t count = schedule.getRows();
  State state;
  double infinity = std::numeric_limits<double>::infinity();
  state.maximum = b.full({count}, -infinity, b.getF32Type());
  state.total = b.zeros({count});
  if (Value sink = op.sink) {
    Value logit = b.cast(loadElement(frame, stored.at(sink), {rows.headOfRow(b, false)}), b.getF32Type());
    state.maximum = b.broadcast(b.mul(logit, b.f32(log2OfE / exponentScale())), {count});
    state.total = b.full({count}, 1, b.getF32Type());
    if (splits) { // It counts once, in the first.
      Value isFirst = b.compareInt(arith::CmpIPredicate::eq, split, b.i32(0));
      state.maximum = b.select(isFirst, state.maximum, b.full({count}, -infinity, b.getF32Type()));
      state.total = b.select(isFirst, state.total, b.zeros({count}));
    }
  }
  for (const Chunk &chunk : valueChunks)
    state.sums.push_back(b.zeros({count, chunk.width}));
  if (op.tangents)
    beginTangent(state);
  return state;
}

/// The state with the diagonal's pairs, before any block. Without a sink and a score_mod it starts there: the pair's
/// weight is 1.
State ForwardKernel::meetOwnKeys(unsigned domain, State state) {
  RowTile own = read;
  own.member = Value();
  own = keysOf(domain, own);
  Value score = rowProduct(frame, puller, stored, {attend.query, read, queryChunks, queries},
                           {attend.keys[domain], own, queryChunks});
  if (attend.scoreMod) {
    score = evaluateAtDiagonal(frame, stored, *attend.scoreMod, rows, b.mul(score, b.f32(attend.scale)));
    score = b.mul(score, b.f32(log2OfE));
  } else if (!scaledLate) {
    score = b.mul(score, b.f32(attend.scale * log2OfE));
  }
  bool starts = !op.sink && !attend.scoreMod;
  Value weight;
  if (starts) {
    state.maximum = ownScore = score;
    state.total = b.full({rows.count}, 1, b.getF32Type());
  } else {
    double infinity = std::numeric_limits<double>::infinity();
    Value before = state.maximum;
    state.maximum = b.max(before, score);
    Value none = b.compareFloat(arith::CmpFPredicate::OEQ, state.maximum, b.f32(-infinity));
    Value shift = b.select(none, b.f32(0), state.maximum);
    weight = b.exp2(scaled(b.sub(score, shift)));
    state.total = b.add(b.mul(state.total, b.exp2(scaled(b.sub(before, shift)))), weight);
  }
  state.sums.clear();
  for (const Chunk &chunk : valueChunks) {
    Value v = b.cast(puller.pull(attend.values[domain], own, chunk, Zeros::Nowhere), b.getF32Type());
    // A value of one channel is a tile of one column, but the loop carries sums as wide as its products.
    v = b.broadcast(v, {rows.count, chunk.width});
    state.sums.push_back(starts ? v : b.mul(v, b.column(weight)));
  }
  return state;
}

/// `region` (score_mod, or its tangent, which takes `change` too) of the scaled product, natural. `belongs` is null
/// where every pair does.
Value ForwardKernel::modified(Region &region, Value product, const RowTile &keys, Value belongs, Value change) {
  SmallVector<Value> arguments{product, rows.batch, rows.headOfRow(b, true), b.column(rows.token), b.row(keys.token)};
  Value exists = b.column(rows.inside);
  exists = b.broadcast(belongs ? b.both(belongs, exists) : exists, {rows.count, keys.count});
  const WholePlaces whole = wholePlaces(keys, arguments.back());
  auto element = [&](Value tensor, ValueRange indices) {
    return loadAtPairs(frame, stored.at(tensor), indices, arguments, exists, whole);
  };
  SmallVector<Value> given(arguments);
  if (change)
    given.push_back(change);
  return evaluateRegion(region, given, {frame, element, nullptr, nullptr})[0];
}

attn::Place<EmitArithmetic> ForwardKernel::placeOf(unsigned domain, const RowTile &keys) {
  return {rows.batch,        rows.headOfRow(b, true), b.column(rows.token),
          b.row(keys.token), standing.queryLength,    standing.keyLengths[domain]};
}

/// Which weights of a block multiply values; null where all do.
Value ForwardKernel::keptPairs(unsigned domain, const RowTile &keys) {
  Attribute weights = attend.kept[domain];
  return weights ? attn::contains(arithmetic, weights, placeOf(domain, keys)) : Value();
}

/// [rows, columns], exponents of 2 but for exponentScale(); -inf where a pair does not belong.
ForwardKernel::Scores ForwardKernel::scores(unsigned domain, const RowTile &keys, Fullness full) {
  Value product = b.zeros({rows.count, keys.count}), change;
  for (auto [i, chunk, query] : llvm::enumerate(queryChunks, queries)) {
    Value key = puller.pull(attend.keys[domain], keys, chunk, Zeros::Channels);
    Value turned = b.transpose(key), ofFloat8;
    if (attend.op->hasAttr(attn::float8AttrName))
      ofFloat8 = b.dotOfFloat8(query, turned, product);
    product = ofFloat8 ? ofFloat8 : b.dot(query, turned, product, attend.precision());
    if (op.tangents)
      change = addProductTangent(domain, keys, i, key, change);
  }
  Value belongs = full.pairs;
  if (!full.everywhere && !belongs) {
    attn::Place<EmitArithmetic> place = placeOf(domain, keys);
    belongs = keys.inside ? b.row(keys.inside) : Value();
    Attribute pattern = attend.patterns[domain];
    arithmetic.whole = wholePlaces(keys, place.m);
    // A count may end the keys before the pattern does.
    if (!belongs || (attn::patterns::keysExist(pattern) && attend.counts.empty()) || keepsInside(attend, pattern))
      belongs = attn::contains(arithmetic, pattern, place);
    else if (!windows || !windows->exact)
      belongs = b.both(belongs, attn::contains(arithmetic, pattern, place));
    if (full.at)
      belongs = b.either(belongs, full.at);
  }
  Value score;
  if (attend.scoreMod)
    score = b.mul(modified(*attend.scoreMod, b.mul(product, b.f32(attend.scale)), keys, belongs), b.f32(log2OfE));
  else
    score = scaledLate ? product : b.mul(product, b.f32(attend.scale * log2OfE));
  score = b.broadcast(score, {rows.count, keys.count});
  if (op.tangents)
    change = changeOfScores(product, change, keys, belongs);
  if (!full.everywhere)
    score = b.selectColumns(belongs, score, b.f32(-std::numeric_limits<double>::infinity()));
  return {score, change};
}

/// Tokens as keys of a domain.
RowTile ForwardKernel::keysOf(unsigned domain, RowTile tokens) {
  tokens.batch = standing.batch;
  tokens.head = b.div(standing.head, b.i32(attend.group(domain)));
  tokens.heads = attend.keyType(domain).dim(1).str();
  tokens.tokens = attend.keyType(domain).dim(2).str();
  tokens.base = standing.keyBase;
  return tokens;
}

State ForwardKernel::step(unsigned domain, const RowTile &keys, Fullness full, const State &state) {
  auto [score, change] = scores(domain, keys, full);
  State next;
  next.maximum = b.max(state.maximum, b.reduceMax(score, 1));
  Value shift = next.maximum;
  // A row that has seen no key keeps -inf; 0 in its place keeps 2^(-inf - -inf) away.
  if (!full.everywhere || attend.scoreMod) {
    Value none =
        b.compareFloat(arith::CmpFPredicate::OEQ, next.maximum, b.f32(-std::numeric_limits<double>::infinity()));
    if (full.at && !attend.scoreMod)
      none = b.both(none, b.negate(full.at));
    shift = b.select(none, b.f32(0), next.maximum);
  }
  Value weights = b.exp2(b.sub(scaled(score), b.column(scaled(shift))));
  Value decay = b.exp2(scaled(b.sub(state.maximum, shift)));
  next.total = b.add(b.mul(state.total, decay), b.reduceSum(weights, 1));
  Value kept = keptPairs(domain, keys);
  Value factors = b.cast(b.selectWhere(kept, weights, b.f32(0)), attend.valueType(domain).getElementType());
  TangentStep tangent;
  if (op.tangents)
    tangent = moveMean(domain, kept, weights, decay, change, state, next);
  // A key past the end has weight 0, but 0 times infinity or NaN is NaN: its value must be 0 as well.
  for (auto [i, chunk, sum] : llvm::enumerate(valueChunks, state.sums)) {
    // A single channel is broadcast over the product's columns, unless the other columns are zeroed.
    Zeros zeros = attend.valueSize() == 1 ? Zeros::Everywhere : Zeros::Rows;
    Value v = puller.pull(attend.values[domain], keys, chunk, zeros);
    next.sums.push_back(b.dot(factors, v, b.mul(sum, b.column(decay)), attend.precision()));
    if (op.tangents)
      next.tangents.push_back(sumTangent(domain, keys, i, tangent, v, factors, decay, state));
  }
  return next;
}

/// Where the rows are the whole window, and a convolution takes their values too: reads these, for it and for the
/// products. Gives whether it did.
bool ForwardKernel::holdValues() {
  Value values = attend.values[0];
  // Operands of wide f32 heads would leave no registers for the products.
  bool fit = (!attend.form.isSingle || attend.valueSize() <= 64) && attend.valueSize() > 1;
  if (!rows.columns || part || !isConvolved(values) || !fit)
    return false;
  for (const Chunk &chunk : valueChunks)
    puller.provide(values, rows, chunk.first, puller.pull(values, rows, chunk, Zeros::Nowhere));
  return true;
}

/// The values of a tile of the window, picked from those of all its rows.
void ForwardKernel::takeHeldValues(const RowTile &keys, Value tile) {
  Value values = attend.values[0];
  Value place = b.add(b.mul(tile, b.i32(keys.count)), b.range(keys.count));
  for (const Chunk &chunk : valueChunks) {
    Value all = puller.pull(values, rows, chunk, Zeros::Nowhere);
    Type type = RankedTensorType::get({keys.count, chunk.width}, TileBuilder::elementOf(all));
    Value index = b.broadcast(b.column(place), {keys.count, chunk.width});
    puller.provide(values, keys, chunk.first, tile::GatherOp::create(b, type, all, index, b.getI32IntegerAttr(0)));
  }
}

/// The window's keys: tiles of it one after another, or all at once where it is no more than a tile. Then the tokens of
/// rows and keys are the same, and what has been read of them serves to the kernel's end.
State ForwardKernel::walkWindow(const State &state) {
  int64_t columns = schedule.getColumns();
  if (windows->tilesOf(columns) > 1) {
    bool held = holdValues();
    auto loop = scf::ForOp::create(b, b.i32(0), b.i32(windows->tilesOf(columns)), b.i32(1), state.packed());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    RowTile keys = keysOf(
        0, windowRows(b, *windows, windowStanding.window, loop.getInductionVar(), columns, standing.queryLength));
    if (held)
      takeHeldValues(keys, loop.getInductionVar());
    State next = step(0, keys, {false}, unpacked(loop.getRegionIterArgs()));
    scf::YieldOp::create(b, next.packed());
    return unpacked(loop.getResults());
  }
  RowTile keys = keysOf(0, rows);
  for (const Chunk &chunk : queryChunks)
    puller.provide(attend.keys[0], keys, chunk.first, puller.pull(attend.keys[0], keys, chunk, Zeros::Nowhere));
  for (const Chunk &chunk : valueChunks)
    puller.provide(attend.values[0], keys, chunk.first, puller.pull(attend.values[0], keys, chunk, Zeros::Nowhere),
                   chunk.base);
  if (!windows->exact || windows->tokens != columns)
    return step(0, keys, {false}, state);
  SmallVector<Type> types(ValueRange(state.packed()).getTypes());
  auto whole = scf::IfOp::create(b, types, windowStanding.whole, /*withElseRegion=*/true);
  for (bool full : {true, false}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(full ? whole.thenBlock() : whole.elseBlock());
    scf::YieldOp::create(b, step(0, keys, {full}, state).packed());
  }
  return unpacked(whole.getResults());
}

State ForwardKernel::walkDomain(unsigned domain, const State &state) {
  if (windows)
    return walkWindow(state);
  arithmetic.holdSpans(attend.patterns[domain], standing.batch, standing.head, rows);
  Value first = b.mul(standing.tile, b.i32(schedule.getRows())), end = b.add(first, b.i32(schedule.getRows()));
  Value rowBegin = b.div(first, b.i32(packed)), rowEnd = b.min(b.ceilDiv(end, packed), standing.queryLength);
  Walk walk{attend.patterns[domain],
            arithmetic,
            rowBegin,
            rowEnd,
            standing.head,
            standing.queryLength,
            standing.keyLengths[domain],
            standing.batch,
            schedule.getColumns()};
  if (splits)
    walk.run = splits->blocksOf(b, split, standing.keyLengths[domain]);
  walk.joined = walksJoined(attend, schedule) && !splits;
  auto body = [&](const WalkedBlock &block, ValueRange carried) {
    // Runs that follow from lengths are as short as is worth a program.
    if (splits && !splits->wanted)
      cast<scf::ForOp>(b.getInsertionBlock()->getParentOp())->setAttr(tile::fewIterationsAttrName, b.getUnitAttr());
    Value start = b.mul(block.number, b.i32(schedule.getColumns()));
    RowTile keys = rowsFrom(b, start, schedule.getColumns(), standing.keyLengths[domain], block.isBounded());
    keys.isBlock = !standing.keyBase;
    if (!attend.counts.empty())
      keys.counts = attend.counts[domain];
    return step(domain, keysOf(domain, keys), block.full, unpacked(carried)).packed();
  };
  if (lists[domain].blocks)
    return unpacked(walkListed(frame, lists[domain], standing.number, standing.batch, standing.head, state.packed(),
                               body, masksReadPairs(attend), walk.run));
  return unpacked(*walkBlocks(walk, state.packed(), body));
}

/// Makes the op's results known to the puller.
void ForwardKernel::end(State state) {
  Value maximum = scaled(state.maximum);
  if (scaledLate && !op.sink) {
    Value factor = b.full({schedule.getRows()}, exponentScale(), b.getF32Type());
    Value residue = math::FmaOp::create(b, state.maximum, factor, b.mul(maximum, b.f32(-1)));
    Value largest = b.exp2(residue), rounded = b.cast(largest, attend.valueType(0).getElementType());
    Value correction = b.sub(b.cast(rounded, b.getF32Type()), largest);
    Value any = b.compareFloat(arith::CmpFPredicate::OGT, state.total, b.f32(0));
    // The diagonal's weight is exactly 1.
    if (ownScore)
      any = b.compareFloat(arith::CmpFPredicate::OGT, state.maximum, ownScore);
    state.total = b.add(state.total, b.select(any, correction, b.f32(0)));
  }
  // NaN is seen: it is the log-sum-exp's as it is the output's, not that of a row without keys.
  Value seen = b.compareFloat(arith::CmpFPredicate::UNE, state.total, b.f32(0));
  Value inverse = b.select(seen, b.div(b.f32(1), b.select(seen, state.total, b.f32(1))), b.f32(0));
  Value infinity = b.f32(-std::numeric_limits<double>::infinity());
  Value logarithm = b.select(seen, b.mul(b.add(maximum, b.log2(state.total)), b.f32(ln2)), infinity);
  if (splits)
    return storeSplit(
        llvm::map_to_vector(state.sums, [&](Value sum) -> Value { return b.mul(sum, b.column(inverse)); }), logarithm);
  Type element = cast<attn::WholeTensorType>(op.out.getType()).getElementType();
  for (auto [chunk, sum] : llvm::zip(valueChunks, state.sums))
    puller.provide(op.out, rows, chunk.first, b.cast(b.mul(sum, b.column(inverse)), element), chunk.base);
  bool zero = llvm::all_of(attend.values, [&](Value v) { return puller.channelPadding(v) == attn::Padding::Zero; });
  puller.promise(op.out, zero ? attn::Padding::Zero : attn::Padding::Unknown);
  puller.provide(op.lse, rows, 0, logarithm);
  if (op.tangents)
    endTangent(state, seen, inverse);
}

/// Stores a split's output, a chunk of channels each, and its log-sum-exp, where the sequence has so many splits.
void ForwardKernel::storeSplit(ValueRange sums, Value lse) {
  TensorParameter outs = frame.output(splits->partsOf(wholeType(op.out)));
  TensorParameter lses = frame.output(splits->partsOf(wholeType(op.lse)));
  auto used = scf::IfOp::create(b, b.less(split, splits->used(b, standing.keyLengths)), /*withElseRegion=*/false);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(used.thenBlock());
  RowTile places = rows.anyPositions(b.add(rows.token, splits->firstRow(frame, split, standing)), rows.inside);
  places.tokens.clear();
  for (auto [chunk, sum] : llvm::zip(valueChunks, sums))
    puller.store(outs, places, &chunk, sum);
  if (part) {
    auto once = scf::IfOp::create(b, part->isFirst, /*withElseRegion=*/false);
    b.setInsertionPointToStart(once.thenBlock());
  }
  puller.store(lses, places, nullptr, lse);
}

/// Everything for the tile where the program stands.
void ForwardKernel::writeTile(ArrayRef<Value> roots) {
  begin();
  State state = initial();
  std::optional<unsigned> own = op.tangents || splits ? std::nullopt : diagonalDomain(attend);
  if (own)
    state = meetOwnKeys(*own, state);
  for (unsigned domain = 0; domain < attend.keys.size(); ++domain)
    if (domain != own)
      state = walkDomain(domain, state);
  end(state);
  if (!splits)
    puller.storeAll(roots, rows, part ? &*part : nullptr);
}

/// Window after window, `each` to a program: what does not change from one to the next is read before them.
void ForwardKernel::writeWindows(int64_t each, ArrayRef<Value> roots) {
  Value count = windowCount(b, *windows, standing.queryLength);
  Value first = b.mul(standing.tile, b.i32(each)), end = b.min(b.add(first, b.i32(each)), count);
  auto loop = scf::ForOp::create(b, first, end, b.i32(1));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    standing.tile = loop.getInductionVar();
    writeTile(roots);
  }
  hoistLoads(loop);
}

/// How many windows a program takes: several small ones, where its end reads what is the same for all of them (taps of
/// convolutions, means), which would else be a good part of all that it reads.
static int64_t windowsEach(const ForwardOp &op, const WindowTiling &windows, ArrayRef<Value> roots) {
  attn::ScheduleAttr schedule = op.schedule;
  bool more = llvm::any_of(roots, [&](Value root) { return root.getDefiningOp() != op.attend.op; });
  // A convolution over a grid has many taps.
  bool small = windows.tokens < (windows.grid.empty() ? 64 : 65) && windows.tilesOf(schedule.getRows()) == 1;
  return more && small ? std::max<int64_t>(llvm::bit_floor(uint64_t(512 / windows.tokens)), 1) : 1;
}

void ForwardKernel::write(ArrayRef<Value> roots) {
  stand();
  int64_t each = windows ? windowsEach(op, *windows, roots) : 1;
  if (each > 1)
    writeWindows(each, roots);
  else
    writeTile(roots);
  auto grid = windows ? windowGrid(*windows, attend.queryType(), schedule.getRows(), each)
                      : order.grid(attendGrid(attend, attend.queryType(), schedule.getRows(), packed));
  grid = overParts(grid, wide);
  if (splits)
    grid[0] = "(" + grid[0] + ") * " + splits->most();
  int64_t cluster = wide || splits ? 1 : clusterOf(attend, schedule);
  SmallVector<Value> made = frame.finish(
      {grid, schedule.getWarps(), schedule.getStages(), /*shares=*/false, cluster, schedule.getPersistent()});
  if (splits)
    lowerMergedSplits(attend, *splits, {made[0], made[1]}, op.out, op.lse, roots, stored);
  else
    stored.record(roots, made);
}

static void lowerAttend(const ForwardOp &op, ArrayRef<Value> roots, StoredValues &stored) {
  int64_t packed = packedHeads(op.attend, op.schedule);
  if (packed == 1 && op.attend.sharedGroup() > 1)
    remarks::missed(remarks::packedHeads, op.attend.op) << remark::reason(
        "the {0} query heads that share keys read them each for itself: {1}", op.attend.sharedGroup(),
        op.attend.form.windows                            ? "windows tile the kernel"
        : op.attend.sharedGroup() > op.schedule.getRows() ? "they are more than a tile's rows"
                                                          : "their patterns differ, or do not divide a tile");
  SmallVector<BlockLists> lists = listsForDomains(op.attend, /*tileKeys=*/false, op.schedule.getRows() / packed,
                                                  op.schedule.getColumns(), stored, packed);
  ForwardKernel(op, stored, lists).write(roots);
}

void lowerAttend(attn::AttendOp op, ArrayRef<Value> roots, StoredValues &stored) {
  lowerAttend(ForwardOp::of(op), roots, stored);
}

void lowerAttend(attn::AttendTangentOp op, ArrayRef<Value> roots, StoredValues &stored) {
  lowerAttend(ForwardOp::of(op), roots, stored);
}

} // namespace weft

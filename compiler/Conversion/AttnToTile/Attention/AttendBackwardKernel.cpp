// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See AttendBackwardKernel.h.
#include "compiler/Conversion/AttnToTile/Attention/AttendBackwardKernel.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendDiagonal.h"
#include "compiler/Conversion/AttnToTile/Patterns/PatternDependence.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "dialects/Attn/Pattern/Membership.h"
#include "dialects/Attn/Pattern/Segments.h"
#include "dialects/Attn/Pattern/Transpose.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/Support/SaveAndRestore.h"

using namespace mlir;

namespace weft {

/// Pointers to a row's number each.
static Value numberPointers(TileBuilder &b, const TensorParameter &numbers, const RowTile &rows) {
  Value pointer = numbers.pointer;
  pointer = b.addPtr(pointer, b.mul(b.cast(rows.batch, b.getI64Type()), numbers.strides[0]));
  pointer = b.addPtr(pointer, b.mul(b.cast(rows.head, b.getI64Type()), numbers.strides[1]));
  if (rows.base)
    pointer = b.addPtr(pointer, rows.base);
  if (rows.scalarStart)
    pointer = b.addPtr(pointer, rows.scalarStart);
  return b.addPtr(pointer, rows.scalarStart ? rows.offsets : rows.token);
}

/// -lse · log2 e, and -inf for rows that attend to nothing: 2^(score - inf) is 0 whatever the score.
static Value minusShiftOf(TileBuilder &b, Value lse) {
  double infinity = std::numeric_limits<double>::infinity();
  Value none = b.compareFloat(arith::CmpFPredicate::OEQ, lse, b.f32(-infinity));
  return b.select(none, b.f32(-infinity), b.mul(lse, b.f32(-log2OfE)));
}

SoftmaxNumbers lowerSoftmaxNumbers(attn::AttendBackwardOp op, StoredValues &stored) {
  Attend attend = Attend::of(op);
  bool wide = attend.form.isWide;
  const int64_t count = wide ? 32 : numbersTile;
  auto type = cast<attn::WholeTensorType>(op.getLse().getType());
  KernelFrame frame(op, "attend_backward_rows");
  TileBuilder &b = frame.b;
  RowNeeds needs = needsOf({op.getLse(), op.getDelta()}, stored);
  Puller puller(frame, stored, needs.widest);
  Value start = b.mul(b.programId(tile::Axis::X), b.i32(count));
  Value length = frame.size(type.dim(2));
  RowTile places = programRows(b, type, start, count, length), rows = places.clamped(b, length);
  std::string tiles = tilesOf(type, numbersTile);
  auto padded = attn::WholeTensorType::get(
      {type.getDims()[0], type.getDims()[1], b.getStringAttr(tiles), b.getStringAttr(std::to_string(numbersTile))},
      b.getF32Type());
  double infinity = std::numeric_limits<double>::infinity();
  Value minusShift = minusShiftOf(b, puller.pullRow(op.getLse(), rows));
  Value minusDelta = b.mul(puller.pullRow(op.getDelta(), rows), b.f32(-1));
  for (Value number :
       {b.select(places.inside, minusShift, b.f32(-infinity)), b.select(places.inside, minusDelta, b.f32(0))})
    b.store(numberPointers(b, frame.output(padded), places), number, {});
  if (count != numbersTile)
    tiles += " * " + std::to_string(numbersTile / count);
  // As many warps as kernels of rows have, so that both fit one launch.
  SmallVector<Value> results = frame.finish({{tiles, type.dim(1).str(), type.dim(0).str()}, 4, 2});
  return {results[0], results[1]};
}

BackwardKernel::BackwardKernel(attn::AttendBackwardOp op, const SoftmaxNumbers &numbers, StoredValues &stored,
                               StringRef name, attn::ScheduleAttr schedule, bool queriesDown, bool walks)
    : op(op), attend(Attend::of(op)), numbers(numbers), stored(stored), schedule(schedule), queriesDown(queriesDown),
      windows(attend.form.windows),
      lists(walks ? listsForDomains(attend, !queriesDown, schedule.getRows(), schedule.getColumns(), stored)
                  : SmallVector<BlockLists>()),
      frame(op, name), b(frame.b), puller(frame, stored), arithmetic(EmitArithmetic::of(frame, attend, stored)),
      queryChunks(chunksOf(attend.headSize())), valueChunks(chunksOf(attend.valueSize())),
      pieces(splitInLoop(attend, schedule)) {
  if (pieces)
    valueChunks.clear();
}

RowTile BackwardKernel::begin(unsigned domain, Value place) {
  tiledDomain = domain;
  attn::WholeTensorType tiled = queriesDown ? attend.queryType() : attend.keyType(domain);
  if (!place && !windows)
    order = tileOrder(attend, split ? "1" : tiled.dim(1), /*keys=*/!queriesDown);
  standing =
      findStanding(frame, attend, stored,
                   {schedule.getRows(), /*keys=*/!queriesDown, queriesDown ? std::nullopt : std::optional(domain),
                    /*packed=*/1, split ? split->parts : 1, place, order});
  if (split) {
    part = partOf(b, *split, standing);
    valueChunks = part->chunks;
  }
  Value length = queriesDown ? standing.queryLength : standing.keyLengths[domain];
  if (!windows)
    return rowsFrom(b, b.mul(standing.tile, b.i32(schedule.getRows())), schedule.getRows(), length, /*bounded=*/true);
  windowStanding = weft::windowStanding(b, *windows, schedule.getRows(), standing.queryLength, standing.tile);
  return windowRows(b, *windows, windowStanding.window, windowStanding.tile, schedule.getRows(), standing.queryLength);
}

RowTile BackwardKernel::asQueries(RowTile tokens, Value head) {
  tokens = tokens.of(attend.queryType(), standing.batch, head);
  tokens.base = standing.queryBase;
  return tokens;
}

RowTile BackwardKernel::asKeys(unsigned domain, RowTile tokens, Value head) {
  tokens = tokens.of(attend.keyType(domain), standing.batch, head);
  tokens.base = standing.keyBase;
  return tokens;
}

QuerySide BackwardKernel::pullQueries(const RowTile &rows) {
  QuerySide side{rows, {}, {}, {}, {}};
  for (const Chunk &chunk : queryChunks)
    side.q.push_back(puller.pull(attend.query, rows, chunk));
  for (const Chunk &chunk : valueChunks)
    side.g.push_back(puller.pull(op.getDOut(), rows, chunk));
  if (numbers.minusShift) {
    side.minusShift = loadNumber(numbers.minusShift, rows);
    side.minusDelta = loadNumber(numbers.minusDelta, rows);
  } else {
    side.minusShift = minusShiftOf(b, puller.pullRow(op.getLse(), rows));
    side.minusDelta = b.mul(puller.pullRow(op.getDelta(), rows), b.f32(-1));
  }
  return side;
}

bool BackwardKernel::numbersArePadded(const RowTile &rows) const {
  // A cluster's last programs may be as many tiles of queries behind the last that has any.
  int64_t together = rows.count * (queriesDown ? schedule.getCluster() : 1);
  return numbers.minusShift && rows.scalarStart && !rows.base && !windows && numbersTile % together == 0;
}

Value BackwardKernel::loadNumber(Value number, const RowTile &rows) {
  return b.load(numberPointers(b, frame.input(number), rows), numbersArePadded(rows) ? Value() : rows.inside);
}

KeySide BackwardKernel::pullKeys(unsigned domain, const RowTile &rows) {
  KeySide side{rows, {}, {}};
  for (const Chunk &chunk : queryChunks)
    side.k.push_back(puller.pull(attend.keys[domain], rows, chunk));
  if (!readsValues)
    return side;
  for (const Chunk &chunk : valueChunks)
    side.v.push_back(puller.pull(attend.values[domain], rows, chunk));
  return side;
}

Value BackwardKernel::outer(ValueRange a, ValueRange c, Value sum) {
  for (auto [left, right] : llvm::zip_equal(a, c))
    sum = b.dot(left, b.transpose(right), sum, attend.precision());
  return sum;
}

SmallVector<Value> BackwardKernel::accumulateProducts(Value factors, ValueRange chunks, ValueRange sums) {
  if (chunks.empty())
    return {};
  factors = b.cast(factors, getElementTypeOrSelf(chunks.front()));
  return llvm::map_to_vector(llvm::zip_equal(chunks, sums), [&](auto pair) -> Value {
    auto [chunk, sum] = pair;
    return b.dot(factors, chunk, sum, attend.precision());
  });
}

SmallVector<Value> BackwardKernel::zeroSums(ArrayRef<Chunk> chunks) {
  return llvm::map_to_vector(chunks, [&](const Chunk &chunk) { return b.zeros({schedule.getRows(), chunk.width}); });
}

attn::Place<EmitArithmetic> BackwardKernel::placeOf(unsigned domain, const RowTile &queries, const RowTile &keys) {
  return {queries.batch,
          queries.head,
          downOrAcross(queries.token, true),
          downOrAcross(keys.token, false),
          standing.queryLength,
          standing.keyLengths[domain]};
}

Value BackwardKernel::keptPairs(unsigned domain, const RowTile &queries, const RowTile &keys) {
  Attribute weights = attend.kept[domain];
  return weights ? attn::contains(arithmetic, weights, placeOf(domain, queries, keys)) : Value();
}

Value BackwardKernel::belongs(unsigned domain, const RowTile &queries, const RowTile &keys, const Fullness &full) {
  if (full.everywhere || full.pairs)
    return full.pairs;
  const RowTile &columns = queriesDown ? keys : queries;
  Value inside = columns.inside ? b.row(columns.inside) : Value();
  if (windows && windows->exact)
    return inside;
  Attribute pattern = attend.patterns[domain];
  attn::Place<EmitArithmetic> place = placeOf(domain, queries, keys);
  // A span's bounds come from the tables of the rows, which the kernel holds.
  bool turned = !queriesDown && attn::hasSpan(pattern);
  arithmetic.whole = wholePlaces(columns, queriesDown ? place.m : place.n);
  Value contained = turned ? attn::contains(arithmetic, attn::transposePattern(pattern), place.transposed())
                           : attn::contains(arithmetic, pattern, place);
  // Keys past the end are in no such pattern, and queries past it have weights of 0.
  bool exist = queriesDown ? attn::patterns::keysExist(pattern) && attend.counts.empty()
                           : numbersArePadded(queries) && !attend.scoreMod;
  return !inside || exist || keepsInside(attend, pattern) ? contained : b.both(inside, contained);
}

Pairs BackwardKernel::pairs(unsigned domain, const QuerySide &queries, const KeySide &keys, Fullness full,
                            Accumulate accumulate) {
  return pairs(domain, queries, keys, full, accumulate, /*weightsOnly=*/false);
}

Pairs BackwardKernel::weights(unsigned domain, const QuerySide &queries, const KeySide &keys, Fullness full) {
  return pairs(domain, queries, keys, full, [](const Accumulation &) {}, /*weightsOnly=*/true);
}

Value BackwardKernel::weightGradients(unsigned domain, const QuerySide &queries, const KeySide &keys, Value sum) {
  auto add = [&](ValueRange g, ValueRange v, Value sum) { return queriesDown ? outer(g, v, sum) : outer(v, g, sum); };
  if (!pieces)
    return add(queries.g, keys.v, sum);
  auto loop = scf::ForOp::create(b, b.i32(0), b.i32(pieces->parts), b.i32(1), sum);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  SmallVector<Value> g, v;
  for (const Chunk &chunk : pieces->chunksAt(b.mul(loop.getInductionVar(), b.i32(pieces->width)))) {
    g.push_back(puller.pull(op.getDOut(), queries.rows, chunk));
    v.push_back(puller.pull(attend.values[domain], keys.rows, chunk));
  }
  scf::YieldOp::create(b, add(g, v, loop.getRegionIterArg(0)));
  return loop.getResult(0);
}

Value BackwardKernel::productStart(const RowTile &rows, ArrayRef<int64_t> shape) {
  if (!sumsRows || !rowsInside(rows) || masksRows())
    return b.zeros(shape);
  double none = attend.scale > 0 ? -std::numeric_limits<double>::infinity() : std::numeric_limits<double>::infinity();
  return b.broadcast(b.column(b.select(rows.inside, b.f32(0), b.f32(none))), shape);
}

Pairs BackwardKernel::pairs(unsigned domain, const QuerySide &queries, const KeySide &keys, Fullness full,
                            Accumulate accumulate, bool weightsOnly) {
  const RowTile &rows = queriesDown ? queries.rows : keys.rows, &columns = queriesDown ? keys.rows : queries.rows;
  SmallVector<int64_t> shape{rows.count, columns.count};
  Value product = productStart(rows, shape);
  if (full.at)
    product = b.select(full.at, b.zeros(shape), product);
  product = queriesDown ? outer(queries.q, keys.k, product) : outer(keys.k, queries.q, product);
  Value minusShift = downOrAcross(queries.minusShift, true), exists = belongs(domain, queries.rows, keys.rows, full);
  if (sumsRows && masksRows() && rowsInside(rows))
    exists = exists ? b.both(exists, b.column(rows.inside)) : b.column(rows.inside);
  if (full.at)
    exists = b.either(exists, full.at);
  Value there = exists;
  if (attend.scoreMod && rowsInside(rows))
    there = there ? b.both(there, b.column(rows.inside)) : b.column(rows.inside);
  SmallVector<Value> arguments{{},
                               queries.rows.batch,
                               queries.rows.head,
                               downOrAcross(queries.rows.token, true),
                               downOrAcross(keys.rows.token, false)};
  Value read = there ? b.broadcast(there, shape) : Value();
  const WholePlaces whole = wholePlaces(columns, arguments[queriesDown ? 4 : 3]);
  auto element = [&](Value tensor, ValueRange indices) {
    return loadAtPairs(frame, stored.at(tensor), indices, arguments, read, whole);
  };
  Value score;
  if (attend.scoreMod) {
    arguments[0] = b.mul(product, b.f32(attend.scale));
    Value modified = evaluateRegion(*attend.scoreMod, arguments, {frame, element, nullptr, nullptr})[0];
    score = b.broadcast(b.mul(modified, b.f32(log2OfE)), shape);
  } else {
    score = b.mul(product, b.f32(attend.scale * log2OfE));
  }
  Pairs made;
  made.weights = b.exp2(b.add(score, minusShift));
  if (exists)
    made.weights = b.selectColumns(exists, made.weights, b.f32(0));
  // dP - delta: the sum of the product begins at -delta.
  Value minusDelta, dWeights;
  if (!weightsOnly) {
    minusDelta = b.broadcast(downOrAcross(queries.minusDelta, true), shape);
    dWeights = weightGradients(domain, queries, keys, minusDelta);
  }
  Value kept = keptPairs(domain, queries.rows, keys.rows);
  if (!weightsOnly)
    made.dScores = b.mul(made.weights, b.selectWhere(kept, dWeights, minusDelta));
  made.weights = b.selectWhere(kept, made.weights, b.f32(0));
  if (weightsOnly || !attend.scoreMod)
    return made;
  auto add = [&](int64_t target, Value value, ValueRange indices) { accumulate({target, value, indices, there}); };
  arguments.push_back(made.dScores);
  made.dScores = evaluateRegion(op.getScoreModGrad(), arguments, {frame, element, nullptr, add})[0];
  made.dScores = b.broadcast(made.dScores, shape);
  // The derivative of a pair outside the pattern may be infinite or NaN.
  made.dScores = b.selectWhere(exists, made.dScores, b.f32(0));
  return made;
}

/// The tiles of the window, one after another.
SmallVector<Value> BackwardKernel::walkWindow(ValueRange initial, Body body) {
  int64_t columns = schedule.getColumns();
  auto loop = scf::ForOp::create(b, b.i32(0), b.i32(windows->tilesOf(columns)), b.i32(1), initial);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  RowTile tokens =
      windowRows(b, *windows, windowStanding.window, loop.getInductionVar(), columns, standing.queryLength);
  scf::YieldOp::create(b, body(tokens, {false}, loop.getRegionIterArgs()));
  return SmallVector<Value>(loop.getResults());
}

SmallVector<Value> BackwardKernel::walk(unsigned domain, const RowTile &rows, Value head, ValueRange initial,
                                        Body body) {
  if (windows)
    return walkWindow(initial, body);
  int64_t columns = schedule.getColumns();
  Value rowLength = queriesDown ? standing.queryLength : standing.keyLengths[domain];
  Value columnLength = queriesDown ? standing.keyLengths[domain] : standing.queryLength;
  Attribute pattern = attend.patterns[domain];
  if (!queriesDown)
    pattern = attn::transposePattern(pattern);
  arithmetic.holdSpans(pattern, standing.batch, head, rows);
  Value rowEnd = b.min(b.add(rows.scalarStart, b.i32(rows.count)), rowLength);
  Walk blocks{pattern, arithmetic, rows.scalarStart, rowEnd, head, rowLength, columnLength, standing.batch, columns};
  blocks.descending = descending;
  // What a score_mod and its derivative hold leaves no registers for the masks of all blocks.
  blocks.joined = joins && walksJoined(attend, schedule) && !attend.scoreMod;
  // Programs past the last packed sequence, and keys past a count.
  if (attend.form.isPacked || !attend.counts.empty())
    blocks.rowsExist = b.less(rows.scalarStart, rowEnd);
  // What a block does for rows that do not exist it need not do in tiles that have them all.
  if (sumsRows && rows.inside)
    blocks.rowsWhole = b.compareInt(arith::CmpIPredicate::eq, b.sub(rowEnd, rows.scalarStart), b.i32(rows.count));
  auto atBlock = [&](const WalkedBlock &block, ValueRange carried) {
    llvm::SaveAndRestore whole(wholeRows, block.wholeRows);
    Value start = b.mul(block.number, b.i32(columns));
    return body(rowsFrom(b, start, columns, columnLength, block.isBounded()), block.full, carried);
  };
  if (lists[domain].blocks)
    return walkListed(frame, lists[domain], standing.number, standing.batch, head, initial, atBlock,
                      masksReadPairs(attend));
  return *walkBlocks(blocks, initial, atBlock);
}

SmallVector<Value> BackwardKernel::overHeads(ValueRange initial,
                                             llvm::function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  int64_t group = attend.group(tiledDomain);
  if (group == 1)
    return body(standing.head, initial);
  auto loop = scf::ForOp::create(b, b.i32(0), b.i32(group), b.i32(1), initial);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Value head = b.add(b.mul(standing.head, b.i32(group)), loop.getInductionVar());
  scf::YieldOp::create(b, body(head, loop.getRegionIterArgs()));
  return SmallVector<Value>(loop.getResults());
}

void BackwardKernel::provide(Value result, const RowTile &rows, ArrayRef<Chunk> chunks, ValueRange sums,
                             double factor) {
  Type element = cast<attn::WholeTensorType>(result.getType()).getElementType();
  for (auto [chunk, sum] : llvm::zip_equal(chunks, sums)) {
    Value gradient = factor == 1 ? sum : b.mul(sum, b.f32(factor));
    if (hasUnusedKeys())
      gradient = b.select(b.column(rows.inside), gradient, b.f32(0));
    puller.provide(result, rows, chunk.first, b.cast(gradient, element), chunk.base);
  }
  puller.promise(result, attn::Padding::Zero); // Its operands are 0 at those channels.
}

RowTile BackwardKernel::storedRows(RowTile rows) {
  if (hasUnusedKeys())
    rows.inside = b.less(rows.token, standing.keyExtents[tiledDomain]);
  return rows;
}

SmallVector<Value> BackwardKernel::finish(ArrayRef<Value> roots, const RowTile &rows) {
  puller.storeAll(roots, storedRows(rows), part ? &*part : nullptr);
  attn::WholeTensorType tiled = queriesDown ? attend.queryType() : attend.keyType(tiledDomain);
  auto grid = windows ? windowGrid(*windows, tiled, schedule.getRows())
                      : order.grid(attendGrid(attend, tiled, schedule.getRows()));
  bool shares = diagonalDomain(op).has_value();
  int64_t cluster = split ? 1 : clusterOf(attend, schedule);
  SmallVector<Value> results = frame.finish(
      {overParts(grid, split), schedule.getWarps(), schedule.getStages(), shares, cluster, schedule.getPersistent()});
  stored.record(roots, ArrayRef(results).take_back(roots.size()));
  return results;
}

} // namespace weft

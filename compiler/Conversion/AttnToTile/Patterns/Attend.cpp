// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Attend.h. A walk has a loop for each segment of blocks. Under #attn.causal, with tiles of 64 queries and blocks
// of 64 keys, program 2 holds queries 128 .. 191:
//
//   scf.for %block = 0 to 2 { body(%block, full) }          %rowBegin / 64: every pair belongs, no mask
//   scf.for %block = 2 to 3 { body(%block, not full) }      (%rowEnd + 63) / 64: a mask asks each pair
#include "compiler/Conversion/AttnToTile/Patterns/Attend.h"
#include "compiler/Support/Remarks.h"
#include "compiler/Target/TargetInfo.h"
#include "dialects/Attn/Pattern/Membership.h"
#include "dialects/Attn/Pattern/Scattered.h"
#include "dialects/Attn/Pattern/Segments.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

bool isFloat8AsHalf(Value value) {
  auto map = value.getDefiningOp<attn::MapOp>();
  if (!map || map.getInputs().size() != 1 || !cast<attn::WholeTensorType>(value.getType()).getElementType().isF16())
    return false;
  auto from = cast<attn::WholeTensorType>(map.getInputs().front().getType());
  Block &body = map.getRegion().front();
  return attn::isFloat8(from.getElementType()) &&
         from.getDims() == cast<attn::WholeTensorType>(value.getType()).getDims() &&
         body.getTerminator()->getOperand(0) == body.getArgument(0);
}

static Region *presentOrNull(Region &region) { return region.empty() ? nullptr : &region; }

static std::optional<WindowTiling> windowTiling(const Attend &attend) {
  if (attend.keys.size() != 1 || !attend.cuSeqlens.empty() || !attend.counts.empty() ||
      attend.queryType().dim(2) != attend.keyType(0).dim(2))
    return std::nullopt;
  Attribute pattern = attend.patterns[0];
  WindowTiling tiling;
  if (auto both = dyn_cast<attn::AndAttr>(pattern)) {
    for (Attribute part : both.getPatterns())
      if (isa<attn::BlockWindowAttr>(part))
        pattern = part;
    tiling.exact = false;
  }
  auto window = dyn_cast<attn::BlockWindowAttr>(pattern);
  if (!window)
    return std::nullopt;
  tiling.window.assign(window.getWindow().begin(), window.getWindow().end());
  tiling.grid.assign(window.getGrid().begin(), window.getGrid().end());
  tiling.tokens = 1;
  for (int64_t size : tiling.window)
    tiling.tokens *= size;
  // Longer windows along a line are walked block by block as any pattern is.
  if (tiling.grid.empty() && tiling.tokens > 256)
    return std::nullopt;
  return tiling;
}

/// Values are wide from 257 channels on: those of 64 queries would be more than 128 registers of 128 threads. Head sizes
/// that are no integers are refused later.
static AttentionForm formOf(const Attend &attend) {
  constexpr int64_t widest = 256;
  return {windowTiling(attend), !attend.cuSeqlens.empty(), attend.valueType(0).staticDim(3).value_or(0) > widest,
          attend.storage().isF32()};
}

template <typename Op> static Attend attendOf(Op op) {
  Attend made{op,
              op.getQuery(),
              op.getKeys(),
              op.getValues(),
              op.getCounts(),
              op.getCuSeqlens(),
              op.getPatternOperands(),
              op.getPatterns(),
              op.getScale().convertToDouble(),
              op.getPrecision(),
              presentOrNull(op.getScoreMod()),
              {},
              {}};
  for (Region &mask : op.getMasks())
    made.masks.push_back(&mask);
  SmallVector<Attribute> patterns;
  for (Attribute pattern : op.getPatterns()) {
    auto part = dyn_cast<attn::KeptAttr>(pattern);
    patterns.push_back(part ? part.getPattern() : pattern);
    made.kept.push_back(part ? part.getWeights() : Attribute());
  }
  made.patterns = ArrayAttr::get(op.getContext(), patterns);
  made.form = formOf(made);
  return made;
}

Attend Attend::of(attn::AttendOp op) {
  Attend made = attendOf(op);
  if (op.getSplits()) // Few queries have no use for windows as tiles.
    made.form.windows.reset();
  return made;
}
Attend Attend::of(attn::AttendBackwardOp op) { return attendOf(op); }
Attend Attend::of(attn::AttendBackwardTangentOp op) { return attendOf(op); }
Attend Attend::of(attn::AttendTangentOp op) {
  Attend made = attendOf(op);
  made.form.windows.reset();
  return made;
}

attn::WholeTensorType Attend::queryType() const { return cast<attn::WholeTensorType>(query.getType()); }
attn::WholeTensorType Attend::keyType(unsigned domain) const {
  return cast<attn::WholeTensorType>(keys[domain].getType());
}
attn::WholeTensorType Attend::valueType(unsigned domain) const {
  return cast<attn::WholeTensorType>(values[domain].getType());
}
int64_t Attend::group(unsigned domain) const {
  return attn::headGroup(queryType().dim(1), keyType(domain).dim(1)).value_or(1);
}
int64_t Attend::sharedGroup() const {
  int64_t shared = 0;
  for (unsigned domain = 0; domain < keys.size(); ++domain)
    shared = std::gcd(shared, group(domain));
  return shared;
}

bool Attend::walksTheSame() const {
  return !form.windows && !form.isWide && !form.isPacked && llvm::all_of(patterns, llvm::IsaPred<attn::FullAttr>);
}

int64_t clusterOf(const Attend &attend, attn::ScheduleAttr schedule) {
  if (schedule.getCluster() == 1 || attend.walksTheSame())
    return schedule.getCluster();
  remarks::missed(remarks::sharedCopies, attend.op)
      << remark::reason("blocks share no copies: programs walk over blocks of their own");
  return 1;
}

tile::Precision Attend::precision() const {
  return attnPrecision == attn::Precision::TF32 ? tile::Precision::TF32 : tile::Precision::TF32x3;
}

Type Attend::storage() const {
  Type query = queryType().getElementType(), value = valueType(0).getElementType();
  return value.isF32() ? value : query;
}

std::array<std::string, 3> attendGrid(const Attend &attend, attn::WholeTensorType tiled, int64_t rows, int64_t packed) {
  std::string length = packed == 1 ? tiled.dim(2).str() : "(" + tiled.dim(2).str() + ") * " + std::to_string(packed);
  std::string tiles = "cdiv(" + length + ", " + std::to_string(rows) + ")";
  // Each packed sequence may begin one tile more than the whole has.
  if (!attend.cuSeqlens.empty())
    tiles += " + " + cast<attn::WholeTensorType>(attend.cuSeqlens[0].getType()).dim(0).str();
  return {tiles, attn::dividedSize(tiled.dim(1), packed), tiled.dim(0).str()};
}

/// The tokens of a packed sequence: where it begins, and one past its end.
struct SequenceBounds {
  Value begin, end;
};

/// Which packed sequence has tile `tile` of all sequences' tiles: its number, the tile within it, and where it begins
/// and ends. Programs past the last tile have an empty one.
///
/// Starts are what memory says, and it may say anything: a sequence begins at the largest of the starts so far, and
/// none leaves the tokens. So sequences never overlap, and of starts that rise from 0 to the length each is what it
/// says.
static SequenceBounds findSequence(KernelFrame &frame, const TensorParameter &cuSeqlens, Value length, int64_t rows,
                                   int64_t packed, Standing &standing) {
  TileBuilder &b = frame.b;
  constexpr int64_t together = 32; // sequences looked at in a turn, one a lane
  Value count = b.sub(frame.size(cuSeqlens.type.dim(0)), b.i32(1)), none = b.i32(-1), tile = standing.tile,
        zero = b.i32(0);
  auto boundAt = [&](Value index) {
    Value bound = b.load(b.addPtr(cuSeqlens.pointer, b.cast(b.min(index, count), b.getI64Type())), {});
    return b.max(b.min(bound, length), zero);
  };
  // tiles so far, the sequence, the tile in it, its bounds, the largest start so far
  SmallVector<Value> initial{zero, none, zero, zero, zero, boundAt(zero)};
  auto loop = scf::ForOp::create(b, zero, count, b.i32(together), initial);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value s = b.add(b.range(together), loop.getInductionVar()), largest = loop.getRegionIterArg(5);
    Value begin = b.max(b.prefixMax(boundAt(s)), largest);
    Value end = b.max(b.prefixMax(boundAt(b.add(s, b.i32(1)))), largest);
    Value tiles = b.ceilDiv(b.mul(b.sub(end, begin), b.i32(packed)), rows);
    Value ends = b.add(b.prefixSum(tiles), loop.getRegionIterArg(0)), begins = b.sub(ends, tiles);
    Value here = b.both(b.less(begins, b.add(tile, b.i32(1))), b.less(tile, ends));
    auto best = [&](Value found, Value otherwise) {
      return b.max(b.reduceMax(b.select(here, found, b.broadcastLike(none, found)), 0), otherwise);
    };
    scf::YieldOp::create(b, ValueRange{b.reduceMax(ends, 0), best(s, loop.getRegionIterArg(1)),
                                       best(b.sub(tile, begins), loop.getRegionIterArg(2)),
                                       best(begin, loop.getRegionIterArg(3)), best(end, loop.getRegionIterArg(4)),
                                       b.reduceMax(end, 0)});
  }
  standing.sequence = b.max(loop.getResult(1), zero);
  standing.tile = loop.getResult(2);
  return {loop.getResult(3), loop.getResult(4)};
}

/// Where the other side's packed sequence of that number begins and ends, for one who only reads it: within the tokens.
static SequenceBounds sequenceRead(KernelFrame &frame, const TensorParameter &cuSeqlens, Value length,
                                   const Standing &standing) {
  TileBuilder &b = frame.b;
  auto boundAt = [&](int64_t plus, Value least) {
    Value place = b.cast(b.add(standing.sequence, b.i32(plus)), b.getI64Type());
    return b.max(b.min(b.load(b.addPtr(cuSeqlens.pointer, place), {}), length), least);
  };
  Value begin = boundAt(0, b.i32(0));
  return {begin, boundAt(1, begin)};
}

Standing findStanding(KernelFrame &frame, const Attend &attend, const StoredValues &stored, const TiledSide &side) {
  auto [rows, tileKeys, headsOf, packed, parts, place, order] = side;
  TileBuilder &b = frame.b;
  Standing standing;
  TilePlace own = placeIn(frame, order);
  standing.tile = place ? place : own.tile;
  if (parts > 1) {
    standing.part = b.rem(standing.tile, b.i32(parts));
    standing.tile = b.div(standing.tile, b.i32(parts));
  }
  standing.number = standing.tile;
  standing.head = b.mul(own.head, b.i32(packed));
  standing.batch = b.programId(tile::Axis::Z);
  standing.queryLength = frame.size(attend.queryType().dim(2));
  for (unsigned i = 0; i < attend.keys.size(); ++i)
    standing.keyLengths.push_back(frame.size(attend.keyType(i).dim(2)));
  if (!attend.cuSeqlens.empty()) {
    const TensorParameter queries = frame.input(stored.at(attend.cuSeqlens[0]));
    const TensorParameter keys = frame.input(stored.at(attend.cuSeqlens[1]));
    auto [tiled, other] = tileKeys ? std::pair(keys, queries) : std::pair(queries, keys);
    Value lengths[] = {standing.queryLength, standing.keyLengths[0]};
    SequenceBounds tiles = findSequence(frame, tiled, lengths[tileKeys], rows, packed, standing);
    SequenceBounds read = tiles;
    if (attend.cuSeqlens[0] != attend.cuSeqlens[1]) {
      read = sequenceRead(frame, other, lengths[!tileKeys], standing);
      // A program without a tile reads nothing.
      read.end = b.select(b.less(tiles.begin, tiles.end), read.end, read.begin);
    }
    const SequenceBounds &query = tileKeys ? read : tiles, &key = tileKeys ? tiles : read;
    standing.queryBase = query.begin;
    standing.keyBase = key.begin;
    standing.queryLength = b.sub(query.end, query.begin);
    standing.keyLengths = {b.sub(key.end, key.begin)};
  }
  standing.keyExtents = standing.keyLengths;
  for (unsigned i = 0; i < attend.counts.size(); ++i) {
    if (headsOf.value_or(i) != i) // a domain that the program does not meet
      continue;
    Value keyHead = headsOf ? standing.head : b.div(standing.head, b.i32(attend.group(i)));
    SmallVector<Value> place{standing.batch, keyHead};
    place.resize(cast<attn::WholeTensorType>(attend.counts[i].getType()).getRank());
    Value count = loadElement(frame, stored.at(attend.counts[i]), place);
    standing.keyLengths[i] = b.min(standing.keyLengths[i], b.max(count, b.i32(0)));
  }
  return standing;
}

bool keepsInside(const Attend &attend, Attribute pattern) { return attend.counts.empty() && attn::asSpan(pattern); }

Value loadAtPairs(KernelFrame &frame, Value tensor, ValueRange indices, ValueRange places, Value exists,
                  const WholePlaces &whole) {
  bool inside = llvm::all_of(indices, [&](Value index) {
    return llvm::is_contained(places, index) || !isa<RankedTensorType>(index.getType());
  });
  return loadElement(frame, tensor, indices, inside ? Value() : exists, whole);
}

bool walksJoined(const Attend &attend, attn::ScheduleAttr schedule) {
  const TargetInfo &target = TargetInfo::ofOrDefault(attend.op);
  const bool isAlone = target.warpgroups.warps != 0 && schedule.getWarps() >= 2 * target.warpgroups.warps;
  return isAlone && target.boxCopies.mostRank != 0 && !attend.form.isPacked && attend.counts.empty();
}

/// Blocks start .. stop - 1 that one loop walks, in any order: all of them full, or none, or those from fullFrom (null:
/// the first) to fullTo - 1 (null: the last).
struct BlockLoop {
  Value start, stop;
  bool full, joined = false;
  Value fullFrom = {}, fullTo = {};
};

using Segments = std::vector<attn::Segment<EmitArithmetic>>;

/// One loop of segments that adjoin, one of them full.
static BlockLoop joined(const Segments &segments) {
  BlockLoop loop{segments.front().begin, segments.back().end, false, /*joined=*/true};
  for (const auto &segment : segments) {
    if (!segment.full)
      continue;
    if (&segment != &segments.front())
      loop.fullFrom = segment.begin;
    if (&segment != &segments.back())
      loop.fullTo = segment.end;
  }
  return loop;
}

/// The segments where no block is whole; one, where they adjoin.
static Segments partlyFull(Segments segments) {
  for (auto &segment : segments)
    segment.full = false;
  if (!segments.empty() && llvm::all_of(llvm::drop_begin(segments), [](auto &each) { return each.adjoins; })) {
    segments.front().end = segments.back().end;
    segments.resize(1, segments.front());
  }
  return segments;
}

static SmallVector<BlockLoop> loopsOf(const Walk &walk, const Segments &segments) {
  bool mixed = segments.size() > 1 && llvm::any_of(segments, [](auto &each) { return each.full; });
  if (walk.joined && mixed && llvm::all_of(llvm::drop_begin(segments), [](auto &each) { return each.adjoins; }))
    return {joined(segments)};
  SmallVector<BlockLoop> loops;
  for (const auto &segment : segments)
    loops.push_back({segment.begin, segment.end, segment.full});
  if (walk.descending)
    std::reverse(loops.begin(), loops.end());
  return loops;
}

std::optional<SmallVector<Value>>
walkBlocks(const Walk &walk, ValueRange initial,
           llvm::function_ref<SmallVector<Value>(const WalkedBlock &, ValueRange)> body) {
  TileBuilder &b = walk.arithmetic.frame.b;
  attn::RowBlock<EmitArithmetic> rows{walk.rowBegin,  walk.rowEnd,       walk.head,
                                      walk.rowLength, walk.columnLength, walk.batch};
  if (walk.rowsWhole)
    rows.mayBeFull = walk.rowsWhole;
  const Attribute pattern = attn::withoutScattered(walk.pattern);
  auto segments = attn::rowSegments(walk.arithmetic, pattern, rows, walk.columns);
  if (!segments)
    return std::nullopt;
  if (pattern != walk.pattern)
    *segments = partlyFull(*segments);
  SmallVector<Value> carried(initial);
  for (const BlockLoop &blocks : loopsOf(walk, *segments)) {
    std::optional<int64_t> begin = TileBuilder::constantOf(blocks.start), end = TileBuilder::constantOf(blocks.stop);
    if (blocks.start == blocks.stop || (begin && end && *begin >= *end))
      continue;
    Value start = blocks.start, stop = blocks.stop;
    if (walk.rowsExist)
      stop = b.select(walk.rowsExist, stop, start);
    if (walk.run) {
      start = b.max(start, walk.run->first);
      stop = b.min(stop, walk.run->past);
    }
    auto loopOver = [&] {
      auto loop = scf::ForOp::create(b, start, stop, b.i32(1), carried);
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      WalkedBlock block{loop.getInductionVar(), {blocks.full}, blocks.full && walk.rowsWhole};
      if (walk.descending)
        block.number = b.sub(b.add(start, b.sub(stop, b.i32(1))), block.number);
      if (blocks.joined) {
        Value &isFull = block.full.at = b.i1(true);
        if (blocks.fullFrom)
          isFull = b.both(isFull, b.compareInt(arith::CmpIPredicate::sge, block.number, blocks.fullFrom));
        if (blocks.fullTo)
          isFull = b.both(isFull, b.less(block.number, blocks.fullTo));
      }
      scf::YieldOp::create(b, body(block, loop.getRegionIterArgs()));
      return loop.getResults();
    };
    // What a loop begins with, its first copies, is not for nothing where it has no blocks.
    SmallVector<Type> types(ValueRange(carried).getTypes());
    auto some = scf::IfOp::create(b, types, b.less(start, stop), /*withElseRegion=*/true);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(some.elseBlock());
    scf::YieldOp::create(b, carried);
    b.setInsertionPointToStart(some.thenBlock());
    scf::YieldOp::create(b, loopOver());
    carried.assign(some.getResults().begin(), some.getResults().end());
  }
  return carried;
}

} // namespace weft

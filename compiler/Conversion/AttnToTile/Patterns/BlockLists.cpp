// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See BlockLists.h. A program goes through all blocks of its tile's row, counts the pairs that belong in each, and
// appends the block's number to one list or the other: the cost of a mask, without products. Patterns that are the same
// in every pair of a block (lists and bitmaps of blocks at least as large) are asked once a block. Of what has to hold
// beside a pattern with formulas, as documents beside `causal`, only the blocks that these give are gone through, and
// where they give whole ones the rest alone is asked.
#include "compiler/Conversion/AttnToTile/Patterns/BlockLists.h"
#include "compiler/Conversion/AttnToTile/Patterns/PairBits.h"
#include "compiler/Conversion/AttnToTile/Patterns/PatternDependence.h"
#include "compiler/Conversion/AttnToTile/Patterns/Windows.h"
#include "compiler/Support/Remarks.h"
#include "dialects/Attn/Pattern/Membership.h"
#include "dialects/Attn/Pattern/Scattered.h"
#include "dialects/Attn/Pattern/Segments.h"
#include "dialects/Attn/Pattern/Transpose.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

bool hasSegments(Attribute pattern) { return attn::hasSegments(attn::withoutScattered(pattern)); }

/// A tile of queries with a block of keys, or a block with a tile where keys are tiled.
struct Pairs {
  const RowTile &queries, &keys;
  Value queryLength, keyLength; ///< i32
  bool tileKeys, coarse;
};

/// Whether pairs belong, by tiles of their places, or by their first places' numbers where they are alike.
static Value belongs(EmitArithmetic &arithmetic, Attribute pattern, const Pairs &of) {
  TileBuilder &b = arithmetic.frame.b;
  Value query = of.coarse ? of.queries.scalarStart : b.column(of.queries.token);
  Value key = of.coarse ? of.keys.scalarStart : b.row(of.keys.token);
  attn::Place<EmitArithmetic> place{of.queries.batch, of.queries.head, query, key, of.queryLength, of.keyLength};
  arithmetic.whole = wholePlaces(of.keys, key);
  return attn::contains(arithmetic, pattern, place);
}

/// The pairs that belong and exist as bits of numbers along the block, [tile, numbers].
static Value packPairs(EmitArithmetic &arithmetic, Attribute pattern, const Pairs &of) {
  TileBuilder &b = arithmetic.frame.b;
  const RowTile &tile = of.tileKeys ? of.keys : of.queries, &block = of.tileKeys ? of.queries : of.keys;
  Value pairs = b.broadcast(belongs(arithmetic, pattern, of), {of.queries.count, of.keys.count});
  Value words = packBits(b, pairs, block.inside, of.tileKeys ? 0 : 1, pairBitsWidth(block.count));
  if (of.tileKeys)
    words = b.transpose(words);
  return tile.inside ? b.select(b.column(tile.inside), words, b.i32(0)) : words;
}

/// How many rows or columns of a block exist (i32).
static Value countExisting(TileBuilder &b, const RowTile &side, Value length) {
  return b.max(b.i32(0), b.min(b.i32(side.count), b.sub(length, side.scalarStart)));
}

/// How many pairs a tile and a block have (i32). A ragged block lacks pairs; a ragged tile does not.
static Value pairsOf(TileBuilder &b, const Pairs &of) {
  return of.tileKeys ? b.mul(countExisting(b, of.keys, of.keyLength), b.i32(of.queries.count))
                     : b.mul(countExisting(b, of.queries, of.queryLength), b.i32(of.keys.count));
}

/// How many pairs of a tile and a block belong (i32).
static Value countPairs(EmitArithmetic &arithmetic, Attribute pattern, const Pairs &of) {
  const RowTile &queries = of.queries, &keys = of.keys;
  TileBuilder &b = arithmetic.frame.b;
  Value belong = belongs(arithmetic, pattern, of);
  Value rows = countExisting(b, queries, of.queryLength), columns = countExisting(b, keys, of.keyLength);
  if (of.coarse)
    return b.select(belong, b.mul(rows, columns), b.i32(0));
  // What is so of a row belongs with all of its keys that exist, and what is so of a key with all queries.
  TileBuilder::Shape shape = TileBuilder::shapeOf(belong);
  if (shape.size() == 2 && (shape[0] == 1 || shape[1] == 1)) {
    Value exist = shape[1] == 1 ? b.column(queries.inside) : b.row(keys.inside);
    Value count = b.reduceSum(b.reduceSum(b.cast(b.both(exist, belong), b.getI32Type()), 1), 0);
    return b.mul(count, shape[1] == 1 ? columns : rows);
  }
  Value inside = b.both(b.column(queries.inside), b.row(keys.inside));
  Value counted = b.broadcast(b.cast(b.both(inside, belong), b.getI32Type()), {queries.count, keys.count});
  return b.reduceSum(b.reduceSum(counted, 1), 0);
}

/// What `count` gives of each of `heads` heads from the queries' on, added up.
static std::pair<Value, Value> countOfHeads(TileBuilder &b, const RowTile &queries, int64_t heads,
                                            llvm::function_ref<std::pair<Value, Value>(const RowTile &)> count) {
  auto loop = scf::ForOp::create(b, b.i32(0), b.i32(heads), b.i32(1), ValueRange{b.i32(0), b.i32(0)});
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  RowTile one = queries;
  one.head = b.add(queries.head, loop.getInductionVar());
  auto [belong, pairs] = count(one);
  scf::YieldOp::create(b, ValueRange{b.add(loop.getRegionIterArg(0), belong), b.add(loop.getRegionIterArg(1), pairs)});
  return {loop.getResult(0), loop.getResult(1)};
}

namespace {
/// The sizes of the lists of a domain, as expressions: [batches, heads, tiles, blocks].
struct ListSizes {
  std::string batches, heads, tiles, blocks;

  attn::WholeTensorType type(TileBuilder &b, StringRef last) const { return type(b, tiles, last); }
  attn::WholeTensorType bits(TileBuilder &b, int64_t rows, int64_t columns) const {
    return type(b, "(" + tiles + ") * " + std::to_string(rows),
                "(" + blocks + ") * " + std::to_string(columns / pairBitsWidth(columns)));
  }

private:
  attn::WholeTensorType type(TileBuilder &b, const Twine &third, const Twine &last) const {
    SmallVector<StringAttr> dims;
    for (const Twine &dim : {Twine(batches), Twine(heads), third, last})
      dims.push_back(b.getStringAttr(dim));
    return attn::WholeTensorType::get(dims, b.getI32Type());
  }
};
} // namespace

/// Of tiles of `rows` and blocks of `columns`. Batches and heads for which the lists are alike have one; of packed
/// sequences, every one has tiles of its own, and blocks from its start on.
static ListSizes sizesOfLists(const Attend &attend, unsigned domain, bool tileKeys, int64_t rows, int64_t columns,
                              int64_t packed) {
  attn::WholeTensorType query = attend.queryType(), key = attend.keyType(domain), tiled = tileKeys ? key : query;
  Dependence depends = dependenceOf(attn::withoutScattered(attend.patterns[domain]), attend);
  ListSizes sizes;
  sizes.tiles = attend.form.isPacked ? attendGrid(attend, tiled, rows * packed, packed)[0] : tilesOf(tiled, rows);
  sizes.blocks = tilesOf(tileKeys ? query : key, columns);
  sizes.batches = depends.batch || !attend.counts.empty() ? query.dim(0).str() : "1";
  sizes.heads = depends.head || !attend.counts.empty() ? attn::dividedSize(query.dim(1), packed) : "1";
  return sizes;
}

/// Appends a block, of which `belong` pairs of `pairs` belong, to its row's list: partial blocks from the list's start
/// on, whole ones from its end backwards. From and to how many of either there are.
static SmallVector<Value> appendBlock(TileBuilder &b, Value listRow, Value blockCount, Value block,
                                      std::pair<Value, Value> count, ValueRange lengths) {
  auto [belong, pairs] = count;
  Value some = b.less(b.i32(0), belong), all = b.both(some, b.compareInt(arith::CmpIPredicate::eq, belong, pairs));
  Value partial = lengths[0], whole = lengths[1];
  Value place = b.select(all, b.sub(b.sub(blockCount, b.i32(1)), whole), partial);
  b.store(b.addPtr(listRow, place), block, some);
  Value one = b.i32(1);
  return {b.select(b.both(some, b.negate(all)), b.add(partial, one), partial), b.select(all, b.add(whole, one), whole)};
}

namespace {
/// A pattern in two parts that both hold of its pairs: one whose blocks are given by formulas, or null, and the rest.
struct Conjunction {
  Attribute formula, rest;
};
} // namespace

static Conjunction conjunctionOf(Attribute pattern) {
  auto both = dyn_cast<attn::AndAttr>(pattern);
  if (!both)
    return {{}, pattern};
  SmallVector<Attribute> formulas, rest;
  for (Attribute part : both.getPatterns())
    (attn::hasSegments(part) && !attn::hasSpan(part) ? formulas : rest).push_back(part);
  auto together = [&](ArrayRef<Attribute> parts) -> Attribute {
    return parts.size() == 1 ? parts.front() : attn::AndAttr::get(pattern.getContext(), parts);
  };
  if (formulas.empty() || rest.empty() || !attn::hasSegments(together(formulas)) ||
      !attn::hasSegments(attn::transposePattern(together(formulas))))
    return {{}, pattern};
  return {together(formulas), together(rest)};
}

namespace {
/// The kernel that lists the blocks of a domain, for tiles of `rows` queries, or keys where `tileKeys`, and blocks of
/// `columns` of the other.
class ListKernel {
public:
  ListKernel(const Attend &attend, unsigned domain, bool tileKeys, int64_t rows, int64_t columns, StoredValues &stored,
             int64_t packed);
  /// Goes through the blocks; gives how many are partial, and how many whole.
  SmallVector<Value> walk();
  BlockLists finish(ValueRange lengths);

private:
  RowTile sideOf(Value number, int64_t count, bool ofKeys);
  /// The row of a tensor [batches, heads, tiles * each, ..] that is the program's first.
  Value rowOf(const TensorParameter &tensor, int64_t each = 1);
  /// Whether `asked` is the same in every pair of a block.
  bool isCoarse(Attribute asked) const;
  /// How many of a block's pairs belong to `asked`, and how many it has.
  std::pair<Value, Value> belonging(Value number, Attribute asked);
  /// Keeps block `number`'s pairs of `asked` as bits; gives how many there are.
  Value keepBits(Value number, Attribute asked, const Pairs &of);
  /// The same; of keys that all exist, whose elements lie side by side, apart from those that may not.
  Value keepBitsApart(Value number, Attribute asked, const Pairs &of);
  /// The list with a block at its end if `asked` has one of its pairs.
  SmallVector<Value> appended(Value number, Attribute asked, ValueRange lengths);
  /// Over the blocks that a formula gives, in whole ones of which the rest alone is asked.
  SmallVector<Value> walkFormula(const Conjunction &parts, ValueRange none);

  const Attend &attend;
  unsigned domain;
  bool tileKeys;
  int64_t rows, columns, packed;
  Attribute pattern;
  Dependence depends;
  KernelFrame frame;
  TileBuilder &b;
  EmitArithmetic arithmetic;
  ListSizes sizes;
  StoredValues &stored;
  Standing standing;
  Value rowLength, columnLength; ///< i32
  RowTile tile;
  Value listRow, countRow, blockCount;
  std::optional<TensorParameter> bits;
};
} // namespace

ListKernel::ListKernel(const Attend &attend, unsigned domain, bool tileKeys, int64_t rows, int64_t columns,
                       StoredValues &stored, int64_t packed)
    : attend(attend), domain(domain), tileKeys(tileKeys), rows(rows), columns(columns), packed(packed),
      pattern(attn::withoutScattered(attend.patterns[domain])), depends(dependenceOf(pattern, attend)),
      frame(attend.op, tileKeys ? "blocks_of_keys" : "blocks_of_queries"), b(frame.b),
      arithmetic(EmitArithmetic::of(frame, attend, stored)),
      sizes(sizesOfLists(attend, domain, tileKeys, rows, columns, packed)), stored(stored),
      standing(findStanding(frame, attend, stored, {rows * packed, tileKeys, /*headsOf=*/std::nullopt, packed})),
      rowLength(tileKeys ? standing.keyLengths[domain] : standing.queryLength),
      columnLength(tileKeys ? standing.queryLength : standing.keyLengths[domain]) {
  TensorParameter list = frame.output(sizes.type(b, sizes.blocks)), counts = frame.output(sizes.type(b, "2"));
  listRow = rowOf(list);
  countRow = rowOf(counts);
  if (keepsPairBits(attend, domain))
    bits = frame.output(sizes.bits(b, rows, columns));
  blockCount = frame.size(sizes.blocks);
  tile = sideOf(standing.tile, rows, tileKeys);
}

RowTile ListKernel::sideOf(Value number, int64_t count, bool ofKeys) {
  Value length = ofKeys == tileKeys ? rowLength : columnLength;
  RowTile side = rowsFrom(b, b.mul(number, b.i32(count)), count, length, /*bounded=*/true);
  side.tokens = (ofKeys ? attend.keyType(domain) : attend.queryType()).dim(2).str();
  side.batch = standing.batch;
  side.head = standing.head;
  return side;
}

Value ListKernel::rowOf(const TensorParameter &tensor, int64_t each) {
  Value offset = b.mul(b.cast(b.mul(standing.number, b.i32(each)), b.getI64Type()), tensor.strides[2]);
  offset = b.add(offset, b.mul(b.cast(standing.batch, b.getI64Type()), tensor.strides[0]));
  offset = b.add(offset, b.mul(b.cast(b.programId(tile::Axis::Y), b.getI64Type()), tensor.strides[1]));
  return b.addPtr(tensor.pointer, offset);
}

bool ListKernel::isCoarse(Attribute asked) const {
  Dependence its = dependenceOf(asked, attend);
  return its.rowStep % (tileKeys ? columns : rows) == 0 && its.columnStep % (tileKeys ? rows : columns) == 0;
}

Value ListKernel::keepBits(Value number, Attribute asked, const Pairs &of) {
  Value words = packPairs(arithmetic, asked, of);
  Value count = b.reduceSum(b.reduceSum(math::CtPopOp::create(b, words), 1), 0);
  const int64_t each = TileBuilder::shapeOf(words)[1];
  Value places = b.add(b.mul(b.column(b.range(rows)), b.cast(bits->strides[2], b.getI32Type())), b.row(b.range(each)));
  Value first = b.addPtr(rowOf(*bits, rows), b.mul(number, b.i32(each)));
  b.store(b.addPtr(first, places), words, b.less(b.i32(0), count));
  return count;
}

Value ListKernel::keepBitsApart(Value number, Attribute asked, const Pairs &of) {
  const RowTile all = of.keys;
  Value end = b.add(all.scalarStart, b.i32(all.count)), some = b.less(of.keyLength, end);
  auto either = scf::IfOp::create(b, b.getI32Type(), some, /*withElseRegion=*/true);
  for (bool whole : {false, true}) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(whole ? either.elseBlock() : either.thenBlock());
    RowTile keys = all;
    if (whole)
      keys.inside = {};
    Pairs kept{of.queries, keys, of.queryLength, of.keyLength, of.tileKeys, of.coarse};
    scf::YieldOp::create(b, keepBits(number, asked, kept));
  }
  return either.getResult(0);
}

std::pair<Value, Value> ListKernel::belonging(Value number, Attribute asked) {
  const RowTile block = sideOf(number, columns, !tileKeys);
  const RowTile &queries = tileKeys ? block : tile, &keys = tileKeys ? tile : block;
  auto count = [&](const RowTile &ofHead) -> std::pair<Value, Value> {
    Pairs of{ofHead, keys, standing.queryLength, standing.keyLengths[domain], tileKeys, isCoarse(asked)};
    return {bits ? keepBitsApart(number, asked, of) : countPairs(arithmetic, asked, of), pairsOf(b, of)};
  };
  return depends.head && packed > 1 ? countOfHeads(b, queries, packed, count) : count(queries);
}

SmallVector<Value> ListKernel::appended(Value number, Attribute asked, ValueRange lengths) {
  auto counted = belonging(number, asked);
  if (pattern != attend.patterns[domain]) // None is known to be whole.
    counted.second = b.i32(-1);
  return appendBlock(b, listRow, blockCount, number, counted, lengths);
}

SmallVector<Value> ListKernel::walkFormula(const Conjunction &parts, ValueRange none) {
  Value rowEnd = b.min(b.add(tile.scalarStart, b.i32(rows)), rowLength);
  Walk walk{tileKeys ? attn::transposePattern(parts.formula) : parts.formula,
            arithmetic,
            tile.scalarStart,
            rowEnd,
            standing.head,
            rowLength,
            columnLength,
            standing.batch,
            columns};
  walk.rowsExist = b.less(tile.scalarStart, rowEnd);
  return *walkBlocks(walk, none, [&](const WalkedBlock &block, ValueRange lengths) {
    return appended(block.number, block.full.everywhere ? parts.rest : pattern, lengths);
  });
}

SmallVector<Value> ListKernel::walk() {
  const SmallVector<Value> none{b.i32(0), b.i32(0)};
  const Conjunction parts = conjunctionOf(pattern);
  // Heads in one tile are asked one after another: formulas that tell them apart give each other blocks.
  if (parts.formula && !(depends.head && packed > 1))
    return walkFormula(parts, none);
  Value end = attend.form.isPacked ? b.ceilDiv(columnLength, columns) : blockCount;
  auto loop = scf::ForOp::create(b, b.i32(0), end, b.i32(1), none);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  scf::YieldOp::create(b, appended(loop.getInductionVar(), pattern, loop.getRegionIterArgs()));
  return SmallVector<Value>(loop.getResults());
}

BlockLists ListKernel::finish(ValueRange lengths) {
  b.store(countRow, lengths[0], {});
  b.store(b.addPtr(countRow, b.i32(1)), lengths[1], {});
  // A block has one number to ask, or so many that a thread holds at most 64 of them.
  const int64_t warps = isCoarse(pattern) ? 1 : std::max<int64_t>(rows * columns / (32 * 64), 4);
  auto results = frame.finish({{sizes.tiles, sizes.heads, sizes.batches}, warps, 1});
  stored.recordAsValues(results);
  return {results[0], results[1], packed, rows, columns, bits ? results[2] : Value()};
}

BlockLists buildBlockLists(const Attend &attend, unsigned domain, bool tileKeys, int64_t rows, int64_t columns,
                           StoredValues &stored, int64_t packed) {
  ListKernel kernel(attend, domain, tileKeys, rows, columns, stored, packed);
  return kernel.finish(kernel.walk());
}

SmallVector<BlockLists> listsForDomains(const Attend &attend, bool tileKeys, int64_t rows, int64_t columns,
                                        StoredValues &stored, int64_t packed) {
  SmallVector<BlockLists> lists(attend.keys.size());
  if (attend.form.windows)
    return lists;
  for (unsigned domain = 0; domain < attend.keys.size(); ++domain) {
    Attribute pattern = attend.patterns[domain];
    if (hasSegments(pattern))
      continue;
    if (remarks::asked(attend.op)) {
      std::string text;
      llvm::raw_string_ostream(text) << pattern;
      remarks::missed(remarks::blockFormulas, attend.op)
          << remark::reason("no formula gives the blocks of {0}: a kernel before lists them", text);
    }
    lists[domain] = buildBlockLists(attend, domain, tileKeys, rows, columns, stored, packed);
  }
  return lists;
}

namespace {
/// What a program reads of the lists of its domain.
class ListedRow {
public:
  ListedRow(KernelFrame &frame, const BlockLists &lists, Value tile, Value batch, Value head)
      : frame(frame), b(frame.b), lists(lists), batch(batch), head(head), list(first(lists.blocks, tile)),
        counts(first(lists.counts, tile)) {
    if (!lists.bits)
      return;
    // Rows of one token's heads have the same.
    Value row = b.div(b.range(lists.rows * lists.packed), b.i32(lists.packed));
    Value stride = b.cast(frame.input(lists.bits).strides[2], b.getI32Type());
    bits = b.addPtr(first(lists.bits, b.mul(tile, b.i32(lists.rows))), b.mul(row, stride));
  }

  Value count(bool full) const { return b.load(full ? b.addPtr(counts, b.i32(1)) : counts, {}); }
  Value block(Value place, bool full) const {
    Value last = b.sub(frame.size(cast<attn::WholeTensorType>(lists.blocks.getType()).dim(3)), b.i32(1));
    return b.load(b.addPtr(list, full ? b.sub(last, place) : place), {});
  }
  /// Which pairs of a block belong, or null where they are not kept.
  Value pairs(Value number) const {
    if (!lists.bits)
      return {};
    const int64_t width = pairBitsWidth(lists.columns), each = lists.columns / width;
    Value places = b.add(b.mul(number, b.i32(each)), b.range(each));
    return unpackBits(b, b.load(b.addPtr(b.column(bits), b.row(places)), {}), width);
  }

private:
  /// Row `row` of a tensor, of the program's batch and head.
  Value first(Value tensor, Value row) const {
    TensorParameter parameter = frame.input(tensor);
    Value offset = b.mul(b.cast(row, b.getI64Type()), parameter.strides[2]);
    Value listed = lists.packed == 1 ? head : b.div(head, b.i32(lists.packed));
    for (auto [axis, index] : {std::pair(0, batch), std::pair(1, listed)})
      if (parameter.type.dim(axis) != "1")
        offset = b.add(offset, b.mul(b.cast(index, b.getI64Type()), parameter.strides[axis]));
    return b.addPtr(parameter.pointer, offset);
  }

  KernelFrame &frame;
  TileBuilder &b;
  const BlockLists &lists;
  Value batch, head, list, counts, bits;
};
} // namespace

SmallVector<Value> walkListed(KernelFrame &frame, const BlockLists &lists, Value tile, Value batch, Value head,
                              ValueRange initial,
                              llvm::function_ref<SmallVector<Value>(const WalkedBlock &, ValueRange)> body,
                              bool lastApart, const std::optional<BlockRun> &run) {
  TileBuilder &b = frame.b;
  const ListedRow row(frame, lists, tile, batch, head);
  SmallVector<Value> carried(initial);
  auto loopOver = [&](Value first, Value past, const WalkedBlock &kind) {
    auto loop = scf::ForOp::create(b, first, past, b.i32(1), carried);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    WalkedBlock block = kind;
    block.number = row.block(loop.getInductionVar(), kind.full.everywhere);
    if (!kind.full.everywhere)
      block.full.pairs = row.pairs(block.number);
    scf::YieldOp::create(b, body(block, loop.getRegionIterArgs()));
    carried.assign(loop.getResults().begin(), loop.getResults().end());
  };
  for (bool full : {true, false}) {
    Value count = row.count(full);
    Value first = run ? run->first : b.i32(0), past = run ? b.min(count, run->past) : count;
    if (!full && lastApart && !lists.bits) {
      Value final = b.max(first, b.sub(past, b.i32(1)));
      loopOver(first, final, {{}, {false}, false, /*columnsExist=*/true});
      first = final;
    }
    loopOver(first, past, {{}, {full}});
  }
  return carried;
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See BlockLists.h. A program goes through all blocks of its tile's row, counts the pairs that belong in each, and
// appends the block's number to one list or the other: the cost of a mask, without products. Patterns that are the same
// in every pair of a block (lists and bitmaps of blocks at least as large) are asked once a block. Of what has to hold
// beside a pattern with formulas, as documents beside `causal`, only the blocks that these give are gone through, and
// where they give whole ones the rest alone is asked.
#include "compiler/Conversion/AttnToTile/Patterns/BlockLists.h"
#include "compiler/Conversion/AttnToTile/Patterns/PatternDependence.h"
#include "compiler/Conversion/AttnToTile/Patterns/Windows.h"
#include "compiler/Support/Remarks.h"
#include "dialects/Attn/Pattern/Membership.h"
#include "dialects/Attn/Pattern/Scattered.h"
#include "dialects/Attn/Pattern/Segments.h"
#include "dialects/Attn/Pattern/Transpose.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
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

/// How many pairs of a tile and a block belong (i32), and how many pairs they have (f the first's type); scalars.
static std::pair<Value, Value> countPairs(EmitArithmetic &arithmetic, Attribute pattern, const Pairs &of) {
  auto [queries, keys, queryLength, keyLength, tileKeys, coarse] = of;
  TileBuilder &b = arithmetic.frame.b;
  Value places[2];
  if (coarse) {
    places[0] = queries.scalarStart;
    places[1] = keys.scalarStart;
  } else {
    places[0] = b.column(queries.token);
    places[1] = b.row(keys.token);
  }
  attn::Place<EmitArithmetic> place{queries.batch, queries.head, places[0], places[1], queryLength, keyLength};
  Value belongs = attn::contains(arithmetic, pattern, place);
  Value rows = b.max(b.i32(0), b.min(b.i32(queries.count), b.sub(queryLength, queries.scalarStart)));
  Value columns = b.max(b.i32(0), b.min(b.i32(keys.count), b.sub(keyLength, keys.scalarStart)));
  // A ragged block lacks pairs; a ragged tile does not.
  Value pairs = tileKeys ? b.mul(columns, b.i32(queries.count)) : b.mul(rows, b.i32(keys.count));
  if (coarse)
    return {b.select(belongs, b.mul(rows, columns), b.i32(0)), pairs};
  // What is so of a row belongs with all of its keys that exist, and what is so of a key with all queries.
  TileBuilder::Shape shape = TileBuilder::shapeOf(belongs);
  if (shape.size() == 2 && (shape[0] == 1 || shape[1] == 1)) {
    Value exist = shape[1] == 1 ? b.column(queries.inside) : b.row(keys.inside);
    Value count = b.reduceSum(b.reduceSum(b.cast(b.both(exist, belongs), b.getI32Type()), 1), 0);
    return {b.mul(count, shape[1] == 1 ? columns : rows), pairs};
  }
  Value inside = b.both(b.column(queries.inside), b.row(keys.inside));
  Value counted = b.broadcast(b.cast(b.both(inside, belongs), b.getI32Type()), {queries.count, keys.count});
  return {b.reduceSum(b.reduceSum(counted, 1), 0), pairs};
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

  attn::WholeTensorType type(TileBuilder &b, StringRef last) const {
    SmallVector<StringAttr> dims;
    for (StringRef dim : {StringRef(batches), StringRef(heads), StringRef(tiles), last})
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
  /// The row of a tensor [batches, heads, tiles, ..] that is the program's.
  Value rowOf(const TensorParameter &tensor);
  /// Whether `asked` is the same in every pair of a block.
  bool isCoarse(Attribute asked) const;
  /// How many of a block's pairs belong to `asked`, and how many it has.
  std::pair<Value, Value> belonging(const RowTile &block, Attribute asked);
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
  blockCount = frame.size(sizes.blocks);
  tile = sideOf(standing.tile, rows, tileKeys);
}

RowTile ListKernel::sideOf(Value number, int64_t count, bool ofKeys) {
  Value length = ofKeys == tileKeys ? rowLength : columnLength;
  RowTile side = rowsFrom(b, b.mul(number, b.i32(count)), count, length, /*bounded=*/true);
  side.batch = standing.batch;
  side.head = standing.head;
  return side;
}

Value ListKernel::rowOf(const TensorParameter &tensor) {
  Value offset = b.mul(b.cast(standing.number, b.getI64Type()), tensor.strides[2]);
  offset = b.add(offset, b.mul(b.cast(standing.batch, b.getI64Type()), tensor.strides[0]));
  offset = b.add(offset, b.mul(b.cast(b.programId(tile::Axis::Y), b.getI64Type()), tensor.strides[1]));
  return b.addPtr(tensor.pointer, offset);
}

bool ListKernel::isCoarse(Attribute asked) const {
  Dependence its = dependenceOf(asked, attend);
  return its.rowStep % (tileKeys ? columns : rows) == 0 && its.columnStep % (tileKeys ? rows : columns) == 0;
}

std::pair<Value, Value> ListKernel::belonging(const RowTile &block, Attribute asked) {
  const RowTile &queries = tileKeys ? block : tile, &keys = tileKeys ? tile : block;
  auto count = [&](const RowTile &ofHead) {
    return countPairs(arithmetic, asked,
                      {ofHead, keys, standing.queryLength, standing.keyLengths[domain], tileKeys, isCoarse(asked)});
  };
  return depends.head && packed > 1 ? countOfHeads(b, queries, packed, count) : count(queries);
}

SmallVector<Value> ListKernel::appended(Value number, Attribute asked, ValueRange lengths) {
  auto counted = belonging(sideOf(number, columns, !tileKeys), asked);
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
  const int64_t warps = isCoarse(pattern) ? 1 : 4; // of one number for a block
  auto results = frame.finish({{sizes.tiles, sizes.heads, sizes.batches}, warps, 1});
  stored.recordAsValues(results);
  return {results[0], results[1], packed};
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

SmallVector<Value> walkListed(KernelFrame &frame, const BlockLists &lists, Value tile, Value batch, Value head,
                              ValueRange initial,
                              llvm::function_ref<SmallVector<Value>(const WalkedBlock &, ValueRange)> body,
                              bool lastApart, const std::optional<BlockRun> &run) {
  TileBuilder &b = frame.b;
  auto rowOf = [&](Value tensor) {
    TensorParameter parameter = frame.input(tensor);
    Value offset = b.mul(b.cast(tile, b.getI64Type()), parameter.strides[2]);
    Value first = lists.packed == 1 ? head : b.div(head, b.i32(lists.packed));
    for (auto [axis, index] : {std::pair(0, batch), std::pair(1, first)})
      if (parameter.type.dim(axis) != "1")
        offset = b.add(offset, b.mul(b.cast(index, b.getI64Type()), parameter.strides[axis]));
    return b.addPtr(parameter.pointer, offset);
  };
  Value listRow = rowOf(lists.blocks), countRow = rowOf(lists.counts);
  Value last = b.sub(frame.size(cast<attn::WholeTensorType>(lists.blocks.getType()).dim(3)), b.i32(1));
  SmallVector<Value> carried(initial);
  auto loopOver = [&](Value first, Value past, const WalkedBlock &kind) {
    auto loop = scf::ForOp::create(b, first, past, b.i32(1), carried);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value place = kind.full.everywhere ? b.sub(last, loop.getInductionVar()) : loop.getInductionVar();
    WalkedBlock block = kind;
    block.number = b.load(b.addPtr(listRow, place), {});
    scf::YieldOp::create(b, body(block, loop.getRegionIterArgs()));
    carried.assign(loop.getResults().begin(), loop.getResults().end());
  };
  for (bool full : {true, false}) {
    Value count = b.load(full ? b.addPtr(countRow, b.i32(1)) : countRow, {});
    Value first = run ? run->first : b.i32(0), past = run ? b.min(count, run->past) : count;
    if (!full && lastApart) {
      Value final = b.max(first, b.sub(past, b.i32(1)));
      loopOver(first, final, {{}, {false}, false, /*columnsExist=*/true});
      first = final;
    }
    loopOver(first, past, {{}, {full}});
  }
  return carried;
}

} // namespace weft

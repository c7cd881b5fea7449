// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See ExpansionKernel.h.
#include "compiler/Conversion/AttnToTile/Expansions/ExpansionKernel.h"
#include "compiler/Conversion/AttnToTile/Elements/Products.h"
#include "compiler/Conversion/AttnToTile/Kernel/ScalarRegion.h"
#include "compiler/Conversion/AttnToTile/Rows/RowTile.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

ExpansionKernel::ExpansionKernel(const Expansion &expansion, StoredValues &stored)
    : expansion(expansion), stored(stored),
      frame(expansion.ops.back(), expansion.sums() ? "expand_backward" : "expand"),
      tiling(expansionTiling(expansion, frame)), b(frame.b), element(expansion.element()),
      type(wholeType(expansion.sources().front())) {}

// --- products ---

Value ExpansionKernel::startOf(const Tiles *start, unsigned index, Value bias, ArrayRef<int64_t> shape) {
  Value sums = bias ? b.broadcast(bias, shape) : b.zeros(shape);
  if (!start)
    return sums;
  Value from = b.cast(start->tiles[index], b.getF32Type());
  return bias ? b.add(from, sums) : from;
}

ExpansionTiles ExpansionKernel::product(Operation *op, const Tiles *start) {
  return cast<ProductOpInterface>(op).multiply(*this, start);
}

// --- maps ---

Operation *ExpansionKernel::residualOf(attn::MapOp op, Value &added) {
  Block &body = op.getBody().front();
  auto add = dyn_cast<arith::AddFOp>(body.front());
  if (op.getInputs().size() != 2 || !add || body.getOperations().size() != 2 || add.getLhs() == add.getRhs() ||
      !isa<BlockArgument>(add.getLhs()) || !isa<BlockArgument>(add.getRhs()))
    return nullptr;
  for (unsigned i : {0, 1}) {
    Operation *made = op.getInputs()[i].getDefiningOp();
    Value other = op.getInputs()[1 - i];
    if (!isInside(op.getInputs()[i]) || !weights.count(made) || !made->getResult(0).hasOneUse() || !isInside(other))
      continue;
    if (compute(other).asRows == (productForm(made) == ProductForm::Rows)) {
      added = other;
      return made;
    }
  }
  return nullptr;
}

ExpansionTiles ExpansionKernel::map(attn::MapOp op) {
  Value added;
  if (Operation *made = residualOf(op, added)) {
    Tiles start = compute(added);
    return product(made, &start);
  }
  SmallVector<Tiles> inputs;
  bool asRows = expansion.comesAsRows(op.getResult(0));
  for (Value input : op.getInputs()) {
    inputs.push_back(asRows ? chunkedRowsOf(input) : compute(input));
  }
  auto index = [](int64_t) { return Value(); };
  auto elementAt = [](Value, ValueRange) { return Value(); };
  Tiles results{asRows, {}};
  for (unsigned i = 0; i < inputs.front().tiles.size(); ++i) {
    SmallVector<Value> arguments;
    for (const Tiles &input : inputs)
      arguments.push_back(b.cast(input.tiles[i], b.getF32Type()));
    Value result = evaluateRegion(op.getBody(), arguments, {frame, elementAt, index, nullptr}).front();
    results.tiles.push_back(b.broadcast(result, TileBuilder::shapeOf(arguments.front())));
  }
  return results;
}

const ExpansionTiles &ExpansionKernel::compute(Value value) {
  auto found = known.find(value.getAsOpaquePointer());
  if (found != known.end())
    return found->second;
  Tiles tiles;
  if (!isInside(value))
    tiles = loadSource(value, expansion.byHead());
  else if (auto map = value.getDefiningOp<attn::MapOp>())
    tiles = this->map(map);
  else
    tiles = product(value.getDefiningOp(), nullptr);
  // What is kept for several maps beside sums of gradients is kept as its type says.
  if (expansion.sums() && isInside(value) && llvm::count_if(value.getUsers(), llvm::IsaPred<attn::MapOp>) > 1)
    for (Value &tile : tiles.tiles)
      tile = b.cast(tile, wholeType(value).getElementType());
  return known[value.getAsOpaquePointer()] = std::move(tiles);
}

// --- the whole ---

void ExpansionKernel::loadAllWeights() {
  for (Operation *op : llvm::make_filter_range(expansion.ops, isProduct)) {
    SmallVector<Chunk> inner = chunksOfRows(op->getOperand(0));
    weights[op] = cast<ProductOpInterface>(op).loadWeights(frame, stored, inner, element);
  }
}

// Of signals gradients of weights come last: their operands wait in shared memory, when what they were computed beside
// has left the registers. Rows are operands where they are.
SmallVector<Value> ExpansionKernel::computeTokens(ArrayRef<TensorParameter> outputs, ValueRange sums) {
  known.clear();
  loaded.clear();
  signal.clear();
  SmallVector<Operation *> last;
  SmallVector<Value> next;
  const TensorParameter *output = outputs.begin();
  auto isSum = [&](Operation *op) { return expansion.has(op) && !gradientTiles(op).empty(); };
  auto add = [&](Operation *op) { next.append(addGradients(op, sums.drop_front(next.size()))); };
  for (Operation *op : expansion.ops) {
    if (isSum(op)) {
      expansion.byHead() ? add(op) : last.push_back(op);
      continue;
    }
    Value value = op->getResult(0);
    if (!expansion.byHead() && llvm::any_of(op->getUsers(), isSum))
      signals(value);
    if (llvm::is_contained(expansion.roots, value))
      store(*output++, value);
  }
  for (Operation *op : last)
    add(op);
  return next;
}

/// Behind the first of the rows, puts what a store needs just before it, and nothing else between, but rows themselves
/// first: each piece is computed from its rows to its store before the next one's sums take registers.
static void orderByStores(ArrayRef<Value> rows) {
  Operation *begin = rows.front().getDefiningOp();
  Block &body = *begin->getBlock();
  llvm::SetVector<Operation *> order;
  std::function<void(Operation *)> place = [&](Operation *op) {
    if (!op || op->getBlock() != &body || op->isBeforeInBlock(begin) || order.contains(op))
      return;
    op->walk([&](Operation *inside) {
      for (Value operand : inside->getOperands())
        if (Operation *from = operand.getDefiningOp(); from && !op->isAncestor(from))
          place(body.findAncestorOpInBlock(*from));
    });
    order.insert(op);
  };
  auto behind = llvm::make_range(begin->getIterator(), body.getTerminator()->getIterator());
  for (Value each : rows)
    place(each.getDefiningOp());
  for (Operation &op : behind)
    if (isa<tile::StoreOp>(op))
      place(&op);
  for (Operation &op : behind)
    place(&op);
  for (Operation *op : order)
    op->moveBefore(body.getTerminator());
}

/// A program for some rounds of tokens.
void ExpansionKernel::runTokens() {
  SmallVector<TensorParameter> outputs;
  for (Value root : expansion.roots)
    outputs.push_back(frame.output(wholeType(root)));
  batch = b.programId(tile::Axis::Z);
  head = expansion.byHead() ? b.programId(tile::Axis::Y) : Value();
  Value length = frame.size(type.dim(2)), tokens = b.i32(tiling.tokens);
  Value begin = b.mul(b.programId(tile::Axis::X), b.i32(tiling.tokens * tiling.rounds));
  Value end = b.min(b.add(begin, b.i32(tiling.tokens * tiling.rounds)), length);
  auto loop = scf::ForOp::create(b, begin, end, tokens);
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    firstToken = loop.getInductionVar();
    tokensLeft = b.sub(length, firstToken);
    computeTokens(outputs, {});
    if (!turned.empty())
      orderByStores(turned);
  }
  std::string programs = tilesOf(type, tiling.tokens * tiling.rounds);
  std::string heads = expansion.byHead() ? type.dim(1).str() : "1";
  stored.record(expansion.roots, frame.finish({{programs, heads, type.dim(0).str()}, tiling.warps, 1}));
}

LogicalResult ExpansionKernel::run() {
  loadAllWeights();
  if (expansion.sums())
    return runParts();
  runTokens();
  return success();
}

LogicalResult lowerExpansion(const Expansion &expansion, StoredValues &stored) {
  if (Operation *op = expansion.takesRowsAsSignals())
    return op->emitOpError("expected signals of an expansion, but its source comes as rows");
  return ExpansionKernel(expansion, stored).run();
}

} // namespace weft

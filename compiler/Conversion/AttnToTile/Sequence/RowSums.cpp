// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See RowSums.h.
#include "compiler/Conversion/AttnToTile/Sequence/RowSums.h"
#include "compiler/Conversion/AttnToTile/Sequence/LowerSum.h"
#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace mlir;

namespace weft {

/// Whether a sum is one of parts.
static bool isSummed(attn::SumOp op) { return op.getSource().getDefiningOp<attn::LaunchOp>(); }

bool sumsRows(attn::SumOp op) {
  attn::WholeTensorType from = wholeType(op.getSource());
  bool rows = from.getRank() == 3 || (from.getRank() == 4 && from.staticDim(3));
  return rows && !isSummed(op) && from.dim(2) != "1" && wholeType(op.getResult()).getRank() == 0;
}

RowSums::RowSums(KernelFrame &frame, Puller &puller, ArrayRef<attn::SumOp> sums, int64_t stretch)
    : b(frame.b), puller(puller), sums(sums) {
  for (attn::SumOp sum : this->sums) {
    attn::WholeTensorType rows = wholeType(sum.getSource());
    StringAttr dims[] = {rows.getDims()[0], rows.getDims()[1], b.getStringAttr(tilesOf(rows, stretch))};
    outputs.push_back(frame.output(attn::WholeTensorType::get(dims, b.getF32Type())));
  }
}

Value RowSums::terms(unsigned sum, const RowTile &rows, Value inside) {
  Value source = sums[sum].getSource(), all;
  attn::WholeTensorType type = wholeType(source);
  if (type.getRank() == 3)
    all = b.cast(puller.pullRow(source, rows, Zeros::Nowhere), b.getF32Type());
  else
    for (const Chunk &chunk : chunksOf(*type.staticDim(3), puller.widestChunk())) {
      Value x = b.cast(puller.pull(source, rows, chunk, Zeros::Channels), b.getF32Type());
      Value part = b.reduceSum(x, 1);
      all = all ? b.add(all, part) : part;
    }
  all = b.broadcast(all, {rows.count});
  return inside ? b.select(inside, all, b.zeros({rows.count})) : all;
}

void RowSums::store(unsigned sum, Value terms) {
  const TensorParameter &output = outputs[sum];
  auto along = [&](tile::Axis axis) { return b.cast(b.programId(axis), b.getI64Type()); };
  Value place = b.add(b.mul(along(tile::Axis::Z), output.strides[0]), b.mul(along(tile::Axis::Y), output.strides[1]));
  Value address = b.addPtr(output.pointer, b.add(place, along(tile::Axis::X)));
  b.store(b.broadcast(address, {1}), b.broadcast(b.reduceSum(terms, 0), {1}), {});
}

void RowSums::replace(ValueRange results, StoredValues &stored) {
  stored.recordAsValues(results.take_front(sums.size()));
  for (auto [sum, parts] : llvm::zip(sums, results)) {
    sum.getSourceMutable().assign(parts);
    sum.setAway(ArrayRef<int64_t>{0, 1, 2});
  }
}

/// Whether a map's result is the sum of its inputs, each taken once.
static bool addsInputs(attn::MapOp map) {
  Block &body = map.getBody().front();
  return map.getNumResults() == 1 && map.getInputs().size() > 1 &&
         llvm::all_of(body.getArguments(), [](Value argument) { return argument.hasOneUse(); }) &&
         llvm::all_of(body.without_terminator(),
                      [](Operation &op) { return isa<arith::AddFOp>(op) && op.hasOneUse(); }) &&
         llvm::range_size(body.without_terminator()) + 1 == map.getInputs().size();
}

void addBeforeSumming(Block &block) {
  for (auto map : llvm::make_early_inc_range(block.getOps<attn::MapOp>())) {
    if (!addsInputs(map))
      continue;
    auto first = map.getInputs().front().getDefiningOp<attn::SumOp>();
    if (!first)
      continue;
    SmallVector<Value> sources;
    for (Value input : map.getInputs()) {
      auto sum = input.getDefiningOp<attn::SumOp>();
      if (sum && sum->hasOneUse() && (sumsTokens(sum) || sumsTokensAndMore(sum)) &&
          sum.getAwayAttr() == first.getAwayAttr() && sum.getType() == first.getType() &&
          wholeType(sum.getSource()).getDims() == wholeType(first.getSource()).getDims())
        sources.push_back(sum.getSource());
    }
    if (sources.size() != map.getInputs().size() ||
        wholeType(map.getResult(0)).getDims() != wholeType(first.getResult()).getDims())
      continue;
    OpBuilder builder(map);
    Type terms = wholeType(sources.front()).withElement(builder.getF32Type());
    auto added = attn::MapOp::create(builder, map.getLoc(), terms, sources, [](ImplicitLocOpBuilder &b, ValueRange x) {
      Value sum = x.front();
      for (Value term : x.drop_front())
        sum = arith::AddFOp::create(b, sum, term);
      return SmallVector<Value>{sum};
    });
    Type type = map.getResult(0).getType();
    auto sum = attn::SumOp::create(builder, map.getLoc(), type, added.getResult(0), first.getAwayAttr());
    map.getResult(0).replaceAllUsesWith(sum.getResult());
    SmallVector<Value> replaced(map.getInputs());
    map.erase();
    for (Value each : replaced)
      each.getDefiningOp()->erase();
  }
}

} // namespace weft

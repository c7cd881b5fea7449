// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See SplitKeys.h. Of splits s with outputs o_s and log-sum-exps l_s, 16 at a time:
//
//   m' = max(m, max l_s);  w_s = e^(l_s - m');  α = e^(m - m');  total = total α + Σ w_s;  acc = acc α + Σ w_s o_s
//   out = acc / total;  lse = m + log total
#include "compiler/Conversion/AttnToTile/Attention/SplitKeys.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {

/// Keys of a split at least, so that what is stored of it stays small beside what is read, and the most splits.
static constexpr int64_t fewestKeys = 96, mostSplits = 128;

std::optional<KeySplits> KeySplits::of(const Attend &attend, attn::ScheduleAttr schedule) {
  auto op = dyn_cast<attn::AttendOp>(attend.op);
  if (!op || !op.getSplits())
    return std::nullopt;
  return KeySplits{attend, schedule.getColumns(), static_cast<int64_t>(*op.getSplits())};
}

int64_t KeySplits::fewestBlocks() const { return llvm::divideCeil(fewestKeys, columns); }

std::string KeySplits::most() const {
  if (wanted)
    return std::to_string(wanted);
  std::string most = "1";
  for (unsigned domain = 0; domain < attend.keys.size(); ++domain)
    most = "max(" + most + ", cdiv(" + attend.keyType(domain).dim(2).str() + ", " +
           std::to_string(fewestBlocks() * columns) + "))";
  return "min(" + std::to_string(mostSplits) + ", " + most + ")";
}

Value KeySplits::blocksEach(TileBuilder &b, Value length) const {
  return b.max(b.ceilDiv(length, (wanted ? wanted : mostSplits) * columns), b.i32(wanted ? 1 : fewestBlocks()));
}

BlockRun KeySplits::blocksOf(TileBuilder &b, Value split, Value length) const {
  Value each = blocksEach(b, length), first = b.mul(split, each);
  return {first, b.add(first, each)};
}

Value KeySplits::used(TileBuilder &b, ValueRange lengths) const {
  // A sink counts in the first split, which a sequence without keys has for it.
  Value used = b.i32(cast<attn::AttendOp>(attend.op).getSink() ? 1 : 0);
  for (Value length : lengths) {
    Value each = blocksEach(b, length), blocks = b.ceilDiv(length, columns);
    used = b.max(used, b.div(b.add(blocks, b.sub(each, b.i32(1))), each));
  }
  return used;
}

Value KeySplits::firstRow(KernelFrame &frame, Value split, const Standing &standing) const {
  TileBuilder &b = frame.b;
  Value row = b.mul(split, frame.size(attend.queryType().dim(2)));
  return standing.queryBase ? b.add(row, standing.queryBase) : row;
}

attn::WholeTensorType KeySplits::partsOf(attn::WholeTensorType type) const {
  std::string rows = "(" + most() + ") * (" + type.dim(2).str() + ")";
  return type.withDim(2, rows).withElement(Float32Type::get(type.getContext()));
}

namespace {
/// The state of a merge: scalars, and a chunk of value channels each.
struct Merged {
  Value maximum, total;
  SmallVector<Value> sums;

  SmallVector<Value> packed() const {
    SmallVector<Value> values{maximum, total};
    values.append(sums);
    return values;
  }
};

/// The writing of the kernel: a program has one row, and takes so many splits at once.
class MergeKernel {
public:
  static constexpr int64_t together = 16;

  MergeKernel(const Attend &attend, const KeySplits &splits, const SplitResults &parts, StoredValues &stored)
      : attend(attend), splits(splits), stored(stored), frame(attend.op, "merge_splits"), b(frame.b),
        puller(frame, stored), chunks(chunksOf(attend.valueSize())), outs(frame.input(parts.out)),
        lses(frame.input(parts.lse)) {}

  void write(Value out, Value lse, ArrayRef<Value> roots) {
    TiledSide side{};
    side.rows = 1;
    Standing standing = findStanding(frame, attend, stored, side);
    // Past the last packed sequence there is no row.
    rows = rowsFrom(b, standing.tile, 1, standing.queryLength, /*bounded=*/static_cast<bool>(standing.queryBase))
               .of(attend.queryType(), standing.batch, standing.head);
    rows.base = standing.queryBase;
    end(walk(standing), out, lse);
    puller.storeAll(roots, rows);
    attn::WholeTensorType type = attend.queryType();
    std::array<std::string, 3> grid{type.dim(2).str(), type.dim(1).str(), type.dim(0).str()};
    stored.record(roots, frame.finish({grid, /*warps=*/4, /*stages=*/1}));
  }

private:
  /// e^(a - b), 0 of an `a` of -inf; `b` is finite.
  Value weight(Value a, Value by) { return b.exp2(b.mul(b.sub(a, by), b.f32(log2OfE))); }

  Merged walk(const Standing &standing) {
    double infinity = std::numeric_limits<double>::infinity();
    Merged none{b.f32(-infinity), b.f32(0), {}};
    for (const Chunk &chunk : chunks)
      none.sums.push_back(b.zeros({chunk.width}));
    Value used = splits.used(b, standing.keyLengths);
    auto loop = scf::ForOp::create(b, b.i32(0), used, b.i32(together), none.packed());
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    auto unpacked = [](ValueRange values) {
      return Merged{values[0], values[1], SmallVector<Value>(values.drop_front(2))};
    };
    scf::YieldOp::create(b, step(standing, loop.getInductionVar(), used, unpacked(loop.getRegionIterArgs())).packed());
    return unpacked(loop.getResults());
  }

  Merged step(const Standing &standing, Value first, Value used, const Merged &before) {
    Value infinity = b.f32(-std::numeric_limits<double>::infinity());
    Value split = b.add(b.range(together), first), exists = b.less(split, used);
    RowTile parts = rows.anyPositions(b.add(splits.firstRow(frame, split, standing), standing.tile), exists);
    parts.count = together;
    parts.tokens.clear();
    Value lse = b.select(exists, puller.load(lses, parts, nullptr), infinity);
    Merged next;
    next.maximum = b.max(before.maximum, b.reduceMax(lse, 0));
    // Where no split has a key, 0 in the place of -inf keeps their difference away.
    Value shift = b.select(b.compareFloat(arith::CmpFPredicate::OEQ, next.maximum, infinity), b.f32(0), next.maximum);
    Value weights = weight(lse, shift), decay = weight(before.maximum, shift);
    next.total = b.add(b.mul(before.total, decay), b.reduceSum(weights, 0));
    for (auto [chunk, sum] : llvm::zip(chunks, before.sums)) {
      Value out = puller.load(outs, parts, &chunk);
      next.sums.push_back(b.add(b.mul(sum, decay), b.reduceSum(b.mul(out, b.column(weights)), 0)));
    }
    return next;
  }

  void end(const Merged &merged, Value out, Value lse) {
    Value infinity = b.f32(-std::numeric_limits<double>::infinity());
    Value seen = b.compareFloat(arith::CmpFPredicate::UNE, merged.total, b.f32(0));
    Value total = b.select(seen, merged.total, b.f32(1));
    Value inverse = b.select(seen, b.div(b.f32(1), total), b.f32(0));
    Type element = wholeType(out).getElementType();
    for (auto [chunk, sum] : llvm::zip(chunks, merged.sums))
      puller.provide(out, rows, chunk.first, b.cast(b.row(b.mul(sum, inverse)), element));
    puller.promise(out, attn::Padding::Zero);
    Value logarithm = b.add(merged.maximum, b.mul(b.log2(total), b.f32(1 / log2OfE)));
    puller.provide(lse, rows, 0, b.broadcast(b.select(seen, logarithm, infinity), {1}));
  }

  const Attend &attend;
  const KeySplits &splits;
  StoredValues &stored;
  KernelFrame frame;
  TileBuilder &b;
  Puller puller;
  SmallVector<Chunk> chunks;
  TensorParameter outs, lses;
  RowTile rows;
};
} // namespace

void lowerMergedSplits(const Attend &attend, const KeySplits &splits, const SplitResults &parts, Value out, Value lse,
                       ArrayRef<Value> roots, StoredValues &stored) {
  MergeKernel(attend, splits, parts, stored).write(out, lse, roots);
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See AttendDiagonal.h.
#include "compiler/Conversion/AttnToTile/Attention/AttendDiagonal.h"
#include "compiler/Conversion/AttnToTile/Attention/AttendBackwardCaptures.h"
#include "compiler/Conversion/AttnToTile/Attention/ScheduleTable.h"
#include "compiler/Conversion/AttnToTile/Patterns/WideValues.h"
#include "compiler/Conversion/AttnToTile/Rows/RowLocal.h"
#include "dialects/Attn/Pattern/Simplify.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {

std::optional<unsigned> diagonalDomain(const Attend &attend) {
  if (attend.form.isWide || !attend.counts.empty() || !attend.keepsAll() ||
      (attend.form.isPacked && attend.cuSeqlens[0] != attend.cuSeqlens[1]))
    return std::nullopt;
  attn::Lengths square;
  square.difference = 0;
  for (unsigned i = 0; i < attend.keys.size(); ++i) {
    if (attend.queryType().dim(2) != attend.keyType(i).dim(2))
      continue;
    auto window = dyn_cast<attn::WindowAttr>(attn::simplifyPattern(attend.patterns[i], square));
    if (window && window.getLeft() == 0 && window.getRight() == 0)
      return i;
  }
  return std::nullopt;
}

std::optional<unsigned> diagonalDomain(attn::AttendBackwardOp op) {
  return planCaptures(op).empty() ? diagonalDomain(Attend::of(op)) : std::nullopt;
}

/// Of 16 channels a lane of a warp reads half, with which its fused multiply-adds go from piece to piece; one exchange
/// is left.
static constexpr int64_t pieceWidth = 16;

static Value productOfPieces(KernelFrame &frame, StoredValues &stored, const RowSide &a, const RowSide &c) {
  TileBuilder &b = frame.b;
  // A puller identifies a chunk by its first channel, so other widths need another puller.
  Puller pieces(frame, stored);
  Value sum;
  const Chunk &last = a.chunks.back();
  for (const Chunk &piece : chunksOf(last.first + last.valid, pieceWidth)) {
    auto part = [&](const RowSide &side) {
      return b.cast(pieces.pull(side.value, side.rows, piece, Zeros::Channels), b.getF32Type());
    };
    Value left = part(a), right = part(c);
    sum = sum ? Value(math::FmaOp::create(b, left, right, sum)) : b.mul(left, right);
  }
  return b.reduceSum(sum, 1);
}

static SmallVector<Value> tilesOf(Puller &puller, const RowSide &side) {
  if (!side.tiles.empty())
    return side.tiles;
  return llvm::map_to_vector(
      side.chunks, [&](const Chunk &chunk) { return puller.pull(side.value, side.rows, chunk, Zeros::Channels); });
}

Value rowProduct(KernelFrame &frame, Puller &puller, StoredValues &stored, const RowSide &a, const RowSide &c) {
  TileBuilder &b = frame.b;
  Type element = wholeType(a.value).getElementType();
  bool halves = (element.isF16() || element.isBF16()) && element == wholeType(c.value).getElementType();
  if (!halves && stored.contains(a.value) && stored.contains(c.value))
    return productOfPieces(frame, stored, a, c);
  Value sum;
  for (auto [left, right] : llvm::zip_equal(tilesOf(puller, a), tilesOf(puller, c))) {
    Value term;
    if (halves) {
      auto type = RankedTensorType::get({TileBuilder::shapeOf(left)[0]}, b.getF32Type());
      term = tile::RowDotOp::create(b, type, left, right);
    } else {
      term = b.reduceSum(b.mul(b.cast(left, b.getF32Type()), b.cast(right, b.getF32Type())), 1);
    }
    sum = sum ? b.add(sum, term) : term;
  }
  return sum;
}

Value evaluateAtDiagonal(KernelFrame &frame, StoredValues &stored, Region &region, const RowTile &queries, Value score,
                         ValueRange more) {
  TileBuilder &b = frame.b;
  Value token = b.column(queries.token);
  SmallVector<Value> arguments{b.column(score), queries.batch, queries.headOfRow(b, true), token, token};
  for (Value each : more)
    arguments.push_back(b.column(each));
  Value exists = queries.inside ? b.column(queries.inside) : Value();
  auto element = [&](Value tensor, ValueRange indices) {
    return loadAtPairs(frame, stored.at(tensor), indices, arguments, exists, {});
  };
  Value result = evaluateRegion(region, arguments, {frame, element, nullptr, nullptr})[0];
  return b.reshape(b.broadcast(result, {queries.count, 1}), {queries.count});
}

DiagonalPairs pairsAtDiagonal(BackwardKernel &kernel, unsigned domain, const QuerySide &queries, const RowTile &keys) {
  TileBuilder &b = kernel.b;
  const Attend &attend = kernel.attend;
  auto product = [&](Value ofQuery, const SmallVector<Value> &tiles, Value ofKey, ArrayRef<Chunk> chunks) {
    return rowProduct(kernel.frame, kernel.puller, kernel.stored, {ofQuery, queries.rows, chunks, tiles},
                      {ofKey, keys, chunks});
  };
  Value products = product(attend.query, queries.q, attend.keys[domain], kernel.queryChunks);
  Value scaled = b.mul(products, b.f32(attend.scale));
  Value score = scaled;
  if (attend.scoreMod)
    score = evaluateAtDiagonal(kernel.frame, kernel.stored, *attend.scoreMod, queries.rows, scaled);
  DiagonalPairs made;
  made.weights = b.exp2(b.add(b.mul(score, b.f32(log2OfE)), queries.minusShift));
  Value dWeights = product(kernel.op.getDOut(), queries.g, attend.values[domain], kernel.valueChunks);
  dWeights = b.add(dWeights, queries.minusDelta);
  made.dScores = b.mul(made.weights, dWeights);
  if (!attend.scoreMod)
    return made;
  Value derived =
      evaluateAtDiagonal(kernel.frame, kernel.stored, kernel.op.getScoreModGrad(), queries.rows, scaled, made.dScores);
  // The derivative of a pair of weight 0 may be infinite or NaN.
  Value some = b.compareFloat(arith::CmpFPredicate::OGT, made.weights, b.f32(0));
  made.dScores = b.select(some, derived, b.f32(0));
  return made;
}

/// The rows of queries as keys of a domain.
static RowTile ownKeys(BackwardKernel &kernel, unsigned domain, const QuerySide &queries) {
  Value keyHead = kernel.b.div(queries.rows.head, kernel.b.i32(kernel.attend.group(domain)));
  return kernel.asKeys(domain, queries.rows, keyHead);
}

DiagonalPairs pairsAtDiagonal(BackwardKernel &kernel, unsigned domain, const QuerySide &queries) {
  return pairsAtDiagonal(kernel, domain, queries, ownKeys(kernel, domain, queries));
}

SmallVector<Value> diagonalQuerySums(BackwardKernel &kernel, unsigned domain, const QuerySide &queries,
                                     const DiagonalPairs &pairs) {
  TileBuilder &b = kernel.b;
  RowTile keys = ownKeys(kernel, domain, queries);
  return llvm::map_to_vector(kernel.queryChunks, [&](const Chunk &chunk) {
    Value k = b.cast(kernel.puller.pull(kernel.attend.keys[domain], keys, chunk, Zeros::Channels), b.getF32Type());
    return b.mul(k, b.column(pairs.dScores));
  });
}

/// Whether a value is made of gradients of other domains.
static bool needsOtherGradients(Value value, attn::AttendBackwardOp op, unsigned domain, DenseSet<Operation *> &known) {
  Operation *made = value.getDefiningOp();
  if (made == op) {
    ValueRange gradients = op.getGradients();
    return value != op.getDQuery() && value != gradients[2 * domain] && value != gradients[2 * domain + 1];
  }
  return made && known.insert(made).second && llvm::any_of(made->getOperands(), [&](Value operand) {
           return needsOtherGradients(operand, op, domain, known);
         });
}

bool diagonalGradientsAreTerms(attn::AttendBackwardOp op, unsigned domain) {
  if (Attend::of(op).group(domain) != 1)
    return false;
  for (Value gradient : op.getGradients().slice(2 * domain, 2)) {
    llvm::SetVector<Value> made;
    made.insert(gradient);
    bool meets = gradient.use_empty();
    for (size_t i = 0; i < made.size() && !meets; ++i)
      for (Operation *user : made[i].getUsers()) {
        DenseSet<Operation *> known;
        meets |= isRowLocal(user) && llvm::any_of(user->getOperands(), [&](Value operand) {
                   return needsOtherGradients(operand, op, domain, known);
                 });
        if (isRowLocal(user) && !readsOtherRows(user))
          made.insert(user->result_begin(), user->result_end());
      }
    if (!meets)
      return false;
  }
  return true;
}

/// factors ⊙ rows, for a gradient.
static void replaceByProduct(attn::AttendBackwardOp op, Value gradient, Value rows, Value factors, double scale) {
  OpBuilder builder(op);
  auto body = [&](ImplicitLocOpBuilder &b, ValueRange x) -> SmallVector<Value> {
    Value product = arith::MulFOp::create(b, x[0], x[1]);
    if (scale == 1)
      return {product};
    return {arith::MulFOp::create(b, product, arith::ConstantOp::create(b, b.getF32FloatAttr(scale)))};
  };
  auto map = attn::MapOp::create(builder, op.getLoc(), gradient.getType(), ValueRange{rows, factors}, body);
  gradient.replaceAllUsesWith(map.getResult(0));
}

void storeDiagonalPairs(BackwardKernel &kernel, const QuerySide &queries, const DiagonalPairs &pairs) {
  attn::WholeTensorType rows = kernel.attend.queryType().withDim(3, "1").withElement(kernel.b.getF32Type());
  Chunk one{0, 1, 1};
  for (Value numbers : {pairs.weights, pairs.dScores})
    kernel.puller.store(kernel.frame.output(rows), queries.rows, &one, kernel.b.column(numbers));
}

void makeDiagonalTerms(attn::AttendBackwardOp op, unsigned domain, ValueRange numbers, StoredValues &stored) {
  stored.recordAsValues(numbers);
  replaceByProduct(op, op.getGradients()[2 * domain], op.getQuery(), numbers[1], Attend::of(op).scale);
  replaceByProduct(op, op.getGradients()[2 * domain + 1], op.getDOut(), numbers[0], 1);
}

void lowerDiagonalGradients(attn::AttendBackwardOp op, const SoftmaxNumbers &numbers, unsigned domain,
                            ArrayRef<Value> roots, StoredValues &stored) {
  attn::ScheduleAttr beside = keyGradientSchedule(op); // As many warps, so that both fit one launch.
  int64_t rowCount = diagonalRows(Attend::of(op), beside.getWarps());
  auto schedule = attn::ScheduleAttr::get(op.getContext(), rowCount, 16, beside.getWarps(), beside.getStages());
  BackwardKernel kernel(op, numbers, stored, "attend_backward_diagonal", schedule, /*queriesDown=*/false,
                        /*walks=*/false);
  TileBuilder &b = kernel.b;
  RowTile rows = kernel.begin(domain);
  RowTile keys = kernel.asKeys(domain, rows, kernel.standing.head);
  auto addHead = [&](Value head, ValueRange sums) {
    QuerySide queries = kernel.pullQueries(kernel.asQueries(rows, head));
    DiagonalPairs pairs = pairsAtDiagonal(kernel, domain, queries, keys);
    SmallVector<Value> next;
    auto add = [&](Value factor, ValueRange tiles) {
      Value each = b.column(factor);
      for (Value tile : tiles) {
        Value product = b.mul(b.cast(tile, b.getF32Type()), each);
        next.push_back(sums.empty() ? product : b.add(sums[next.size()], product));
      }
    };
    add(pairs.dScores, queries.q);
    add(pairs.weights, queries.g);
    return next;
  };
  SmallVector<Value> sums;
  if (int64_t group = kernel.attend.group(domain); group == 1) {
    sums = addHead(kernel.standing.head, {});
  } else {
    sums = kernel.zeroSums(kernel.queryChunks);
    sums.append(kernel.zeroSums(kernel.valueChunks));
    auto loop = scf::ForOp::create(b, b.i32(0), b.i32(group), b.i32(1), sums);
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value head = b.add(b.mul(kernel.standing.head, b.i32(group)), loop.getInductionVar());
    scf::YieldOp::create(b, addHead(head, loop.getRegionIterArgs()));
    sums.assign(loop.getResults().begin(), loop.getResults().end());
  }
  unsigned count = kernel.queryChunks.size();
  ValueRange all(sums), gradients = op.getGradients();
  kernel.provide(gradients[2 * domain], keys, kernel.queryChunks, all.take_front(count), kernel.attend.scale);
  kernel.provide(gradients[2 * domain + 1], keys, kernel.valueChunks, all.drop_front(count), 1);
  kernel.finish(roots, keys);
}

} // namespace weft

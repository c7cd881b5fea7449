// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Gradients of linear recurrences (RecurrenceForward.cpp has the names). Z is the gradient of the state after a chunk;
// g that of out. Kernels, one after another:
//
//   chunk_states     S before each chunk, from k and w as in the forward
//   chunk_gradients  from the last chunk to the first: Z after each, and with t = scale Pᵀ g + exp(G_end - G) k Z
//                      dv = t;   the delta rule: x = t - Kᵀ β t, dv = y = β x
//                      Z <- exp(G_end) Z + scale (exp(G) q)ᵀ g - (exp(G) k)ᵀ y
//   token_gradients  for all chunks at once, with decays exp(G_n - G_m) on all products of tokens:
//                      dq       = scale ((g wᵀ) k + exp(G) g Sᵀ)
//                      dk later = -((y wᵀ) k + exp(G) y Sᵀ)                 as a key that reads the state, delta rule
//                      dk early = scale (g wᵀ)ᵀ q - (y wᵀ)ᵀ k + exp(G_end - G) w Zᵀ    as one that is written to it
//                      dβ       = Σ x r                                     in chunk_gradients where a program has all
//                                                                           values: x is rounded where it is stored
//
// A decay counts in all pairs that it lies between. Of a chunk's token i these are the state before and that after,
// exp(G_end) Σ S Z; what tokens before i write and later chunks read; what the state before gives tokens from i on; and
// pairs in the chunk: with the row sums of what products of tokens add to q dq + k dk later, less the column sums of
// what they add to k dk early, Σ over the tokens from i on, in which pairs on one side of i cancel.
#include "compiler/Conversion/AttnToTile/Recurrences/RecurrenceKernel.h"
#include "mlir/Dialect/SCF/IR/SCF.h"

using namespace mlir;

namespace weft {
namespace {

class RecurrenceGradients {
public:
  RecurrenceGradients(attn::RecurBackwardOp op, StoredValues &stored)
      : op(op), its(attn::RecurrenceOperands::of(op)), stored(stored), scale(op.getScale().convertToDouble()),
        keysWidth(paddedChannels(its.headSize()).width), columns(columnsBeside(keysWidth)),
        parts(channelParts(its.valueSize(), columns)), storedDecays(lowerDecays(op, its, stored, scale, parts)) {
    if (its.decay)
      decayGradient = op.getGradients()[0];
    if (its.beta)
      betaGradient = op.getGradients()[its.decay ? 1 : 0];
    if (its.initialState)
      stateGradient = op.getGradients().back();
  }

  void chunkStates();
  void chunkGradients();
  void tokenGradients();

private:
  /// Products of a chunk's tokens, summed over the channels of the values; the last two of the delta rule. `decayTokens`
  /// makes them what enters products, where decays are not by channel.
  struct OfTokens {
    Value outByWritten;  ///< g wᵀ
    Value readByWritten; ///< y wᵀ
    Value betas;         ///< Σ x r; null where `ownBetas`
  };
  /// Products with states, of some channels of the keys.
  struct OfStates {
    Value outState;     ///< g Sᵀ
    Value writtenState; ///< w Zᵀ
    Value states;       ///< Σ S Z of each channel; null without decays
    Value readState;    ///< y Sᵀ; of the delta rule
  };
  struct Gradient {
    Value query, key, decay;
  };
  /// y = β x of t, with x = t - Kᵀ β t; stores x or y, and dβ where `ownBetas`.
  Value throughInverse(RecurrenceKernel &kernel, const RowTile &rows, const Chunk &values, Value t,
                       const TensorParameter &xOut, const TensorParameter &dBeta);
  /// Sums over parts of the values' channels, from zeros.
  SmallVector<Value> overValues(RecurrenceKernel &kernel, ValueRange zeros,
                                function_ref<SmallVector<Value>(const Chunk &values, ValueRange sums)> body);
  OfTokens productsOfTokens(RecurrenceKernel &kernel, const RowTile &rows);
  OfStates productsOfStates(RecurrenceKernel &kernel, Value chunk, const RowTile &rows, const Chunk &keys);
  void decayTokens(RecurrenceKernel &kernel, OfTokens &tokens, const ChunkDecays &decays);
  Gradient gradientOfChunk(RecurrenceKernel &kernel, const RowTile &rows, const Chunk &keys, const OfTokens &tokens,
                           const OfStates &products, const ChunkDecays &decays);
  /// y = β x, as it enters products.
  Value read(RecurrenceKernel &kernel, const RowTile &rows, const Chunk &values);
  /// What the forward writes to the state: v, or β r.
  Value written(RecurrenceKernel &kernel, const RowTile &rows, const Chunk &values);

  attn::RecurBackwardOp op;
  attn::RecurrenceOperands its;
  StoredValues &stored;
  double scale;
  int64_t keysWidth, columns, parts;
  StoredDecays storedDecays;
  Value decayGradient, betaGradient, stateGradient; ///< results, null where there are none
  Value states, gradients; ///< of each chunk: the state before it, and the gradient of that after it
  Value x;                 ///< or y = β x, where `ownBetas`
  bool ownBetas() const { return its.beta && parts == 1; }
};

} // namespace

Value RecurrenceGradients::written(RecurrenceKernel &kernel, const RowTile &rows, const Chunk &values) {
  if (!its.beta)
    return kernel.tile(its.value, rows, values);
  TileBuilder &b = kernel.b;
  Value beta = b.column(kernel.numbers(its.beta, rows));
  return b.mul(b.cast(kernel.tile(op.getDelta()[0], rows, values), b.getF32Type()), beta);
}

void RecurrenceGradients::chunkStates() {
  RecurrenceKernel kernel(op, its, storedDecays, stored, "chunk_states");
  TileBuilder &b = kernel.b;
  Chunk keys = paddedChannels(its.headSize());
  Chunk values = channelPart(b, its.valueSize(), columns, b.programId(tile::Axis::X));
  TensorParameter output = kernel.frame.output(kernel.chunkStatesType());
  auto loop =
      scf::ForOp::create(b, b.i32(0), kernel.place.chunks, b.i32(1), kernel.loadState(its.initialState, keys, values));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value chunk = loop.getInductionVar(), state = loop.getRegionIterArg(0);
    kernel.storeChunkState(output, chunk, keys, values, state);
    RowTile rows = kernel.rows(chunk);
    ChunkDecays decays = kernel.decays(rows, keys);
    Value k = kernel.tile(its.key, rows, keys), w = written(kernel, rows, values);
    scf::YieldOp::create(b, kernel.outer(k, w, kernel.toEnd(decays), kernel.carried(state, decays)));
  }
  states = kernel.frame.finish({kernel.grid(parts), kernel.warps(), 1})[0];
}

Value RecurrenceGradients::throughInverse(RecurrenceKernel &kernel, const RowTile &rows, const Chunk &values, Value t,
                                          const TensorParameter &xOut, const TensorParameter &dBeta) {
  TileBuilder &b = kernel.b;
  Chunk tokens{0, kernel.side, kernel.side};
  Value beta = b.column(kernel.numbers(its.beta, rows));
  Value inverse = b.transpose(kernel.tile(op.getDelta()[1], rows, tokens));
  Value x = b.sub(t, kernel.product(inverse, b.mul(t, beta))), y = b.mul(x, beta);
  kernel.store(xOut, rows, &values, ownBetas() ? y : x);
  if (ownBetas()) {
    Value residual = b.cast(kernel.tile(op.getDelta()[0], rows, values), b.getF32Type());
    kernel.store(dBeta, rows, nullptr, b.reduceSum(b.mul(x, residual), 1));
  }
  return y;
}

void RecurrenceGradients::chunkGradients() {
  RecurrenceKernel kernel(op, its, storedDecays, stored, "chunk_gradients");
  TileBuilder &b = kernel.b;
  Chunk keys = paddedChannels(its.headSize());
  Chunk values = channelPart(b, its.valueSize(), columns, b.programId(tile::Axis::X));
  TensorParameter output = kernel.frame.output(kernel.chunkStatesType());
  TensorParameter dValue = kernel.frame.output(wholeType(op.getDValue())), xOut, dBeta, dState;
  if (its.beta) {
    attn::WholeTensorType type = wholeType(op.getDelta()[0]);
    xOut = kernel.frame.output(ownBetas() ? type : type.withElement(b.getF32Type()));
  }
  if (ownBetas())
    dBeta = kernel.frame.output(wholeType(betaGradient));
  if (stateGradient)
    dState = kernel.frame.output(wholeType(stateGradient));
  auto loop =
      scf::ForOp::create(b, b.i32(0), kernel.place.chunks, b.i32(1), kernel.loadState(op.getDState(), keys, values));
  {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(loop.getBody());
    Value after = loop.getRegionIterArg(0);
    Value chunk = b.sub(b.sub(kernel.place.chunks, b.i32(1)), loop.getInductionVar());
    kernel.storeChunkState(output, chunk, keys, values, after);
    RowTile rows = kernel.rows(chunk);
    ChunkDecays decays = kernel.decays(rows, keys);
    Value start = kernel.fromStart(decays), end = kernel.toEnd(decays);
    Value q = kernel.tile(its.query, rows, keys), k = kernel.tile(its.key, rows, keys);
    if (decays.byChannel)
      kernel.decayForProducts(q, start), kernel.decayForProducts(k, end);
    Value g = kernel.tile(op.getDOut(), rows, values);
    Value scaled = kernel.pairsOfQueries(rows, q, k, decays, scale);
    Value held = b.cast(after, kernel.element);
    Value t = kernel.through(k, held, end);
    t = kernel.product(b.transpose(b.cast(scaled, kernel.element)), g, t);
    Value before = kernel.carried(after, decays);
    before = kernel.outer(q, b.mul(b.cast(g, b.getF32Type()), b.f32(scale)), start, before);
    if (its.beta) {
      t = throughInverse(kernel, rows, values, t, xOut, dBeta);
      before = kernel.outer(k, b.mul(t, b.f32(-1)), start, before);
    }
    kernel.store(dValue, rows, &values, t);
    scf::YieldOp::create(b, before);
  }
  if (stateGradient)
    kernel.storeState(dState, keys, values, loop.getResult(0));
  SmallVector<Value> made = kernel.frame.finish({kernel.grid(parts), kernel.warps(), 1});
  gradients = made[0];
  stored.record(op.getDValue(), made[1]);
  if (its.beta) {
    x = made[2];
    stored.recordAsValues(x);
  }
  if (ownBetas())
    stored.record(betaGradient, made[3]);
  if (stateGradient)
    stored.record(stateGradient, made.back());
}

SmallVector<Value> RecurrenceGradients::overValues(RecurrenceKernel &kernel, ValueRange zeros,
                                                   function_ref<SmallVector<Value>(const Chunk &, ValueRange)> body) {
  constexpr int64_t most = 64;
  TileBuilder &b = kernel.b;
  auto loop = scf::ForOp::create(b, b.i32(0), b.i32(channelParts(its.valueSize(), most)), b.i32(1), zeros);
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(loop.getBody());
  Chunk values = channelPart(b, its.valueSize(), most, loop.getInductionVar());
  scf::YieldOp::create(b, body(values, loop.getRegionIterArgs()));
  return llvm::to_vector_of<Value>(loop.getResults());
}

Value RecurrenceGradients::read(RecurrenceKernel &kernel, const RowTile &rows, const Chunk &values) {
  TileBuilder &b = kernel.b;
  Value own = kernel.tile(x, rows, values);
  return ownBetas() ? own : b.cast(b.mul(own, b.column(kernel.numbers(its.beta, rows))), kernel.element);
}

RecurrenceGradients::OfTokens RecurrenceGradients::productsOfTokens(RecurrenceKernel &kernel, const RowTile &rows) {
  TileBuilder &b = kernel.b;
  SmallVector<Value> sums{b.zeros({kernel.side, kernel.side})};
  if (its.beta)
    sums.push_back(sums[0]);
  if (its.beta && !ownBetas())
    sums.push_back(b.zeros({kernel.side}));
  sums = overValues(kernel, sums, [&](const Chunk &values, ValueRange so) {
    Value g = kernel.tile(op.getDOut(), rows, values), w = b.cast(written(kernel, rows, values), kernel.element);
    SmallVector<Value> next{kernel.product(g, b.transpose(w), so[0])};
    if (its.beta)
      next.push_back(kernel.product(read(kernel, rows, values), b.transpose(w), so[1]));
    if (its.beta && !ownBetas()) {
      Value residual = b.cast(kernel.tile(op.getDelta()[0], rows, values), b.getF32Type());
      next.push_back(b.add(so[2], b.reduceSum(b.mul(kernel.tile(x, rows, values), residual), 1)));
    }
    return next;
  });
  sums.resize(3);
  return {sums[0], sums[1], sums[2]};
}

RecurrenceGradients::OfStates RecurrenceGradients::productsOfStates(RecurrenceKernel &kernel, Value chunk,
                                                                    const RowTile &rows, const Chunk &keys) {
  TileBuilder &b = kernel.b;
  Value none = b.zeros({kernel.side, keys.width});
  SmallVector<Value> sums{none, none};
  if (its.decay)
    sums.push_back(b.zeros({keys.width}));
  if (its.beta)
    sums.push_back(none);
  sums = overValues(kernel, sums, [&](const Chunk &values, ValueRange so) {
    Value g = kernel.tile(op.getDOut(), rows, values), w = b.cast(written(kernel, rows, values), kernel.element);
    Value before = kernel.loadChunkState(states, chunk, keys, values);
    Value after = kernel.loadChunkState(gradients, chunk, keys, values);
    SmallVector<Value> next{kernel.product(g, b.transpose(before), so[0]),
                            kernel.product(w, b.transpose(after), so[1])};
    if (its.decay) {
      Value both = b.mul(b.cast(before, b.getF32Type()), b.cast(after, b.getF32Type()));
      next.push_back(b.add(so[2], b.reduceSum(both, 1)));
    }
    if (its.beta)
      next.push_back(kernel.product(read(kernel, rows, values), b.transpose(before), so.back()));
    return next;
  });
  return {sums[0], sums[1], its.decay ? sums[2] : Value(), its.beta ? sums.back() : Value()};
}

void RecurrenceGradients::decayTokens(RecurrenceKernel &kernel, OfTokens &tokens, const ChunkDecays &decays) {
  TileBuilder &b = kernel.b;
  auto decayed = [&](Value weights, double factor, bool strict) {
    return b.cast(kernel.decayPairs(b.mul(weights, b.f32(factor)), decays, strict), kernel.element);
  };
  tokens.outByWritten = decayed(tokens.outByWritten, scale, /*strict=*/false);
  if (its.beta)
    tokens.readByWritten = decayed(tokens.readByWritten, -1, /*strict=*/true);
}

RecurrenceGradients::Gradient RecurrenceGradients::gradientOfChunk(RecurrenceKernel &kernel, const RowTile &rows,
                                                                   const Chunk &keys, const OfTokens &tokens,
                                                                   const OfStates &products,
                                                                   const ChunkDecays &decays) {
  TileBuilder &b = kernel.b;
  Value start = kernel.fromStart(decays);
  Value q = kernel.tile(its.query, rows, keys), k = kernel.tile(its.key, rows, keys);
  auto wide = [&](Value value) { return b.cast(value, b.getF32Type()); };
  Value dq = b.mul(kernel.decayed(products.outState, start), b.f32(scale));
  Value write = kernel.decayed(products.writtenState, kernel.toEnd(decays));
  Value early, later, term;
  if (decays.byChannel) {
    // Row and column sums cancel where the operands are rounded alike.
    term = b.mul(wide(q), dq);
    auto mixed = kernel.mixByChannel(b.mul(tokens.outByWritten, b.f32(scale)), q, k, decays, rows, keys);
    dq = b.add(dq, mixed.later);
    early = mixed.earlier;
    term = b.add(term, mixed.difference);
  } else {
    dq = kernel.product(tokens.outByWritten, k, dq);
    early = kernel.product(b.transpose(tokens.outByWritten), q);
    if (its.beta) {
      later = kernel.product(tokens.readByWritten, k, b.mul(kernel.decayed(products.readState, start), b.f32(-1)));
      early = kernel.product(b.transpose(tokens.readByWritten), k, early);
    }
    if (decays)
      term = b.add(b.mul(wide(q), dq), b.mul(wide(k), later ? b.sub(later, early) : b.mul(early, b.f32(-1))));
  }
  Gradient made{dq, b.add(early, write), {}};
  if (later)
    made.key = b.add(made.key, later);
  if (!decays)
    return made;
  // Over the tokens from each one on, and of what is written over those before it.
  Value writes = b.mul(wide(k), write);
  Value through = b.mul(products.states, b.exp2(b.add(decays.coarseEnd, decays.fineEnd)));
  if (!decays.byChannel) {
    term = b.reduceSum(term, 1);
    writes = b.reduceSum(writes, 1);
    through = b.reduceSum(through, 0);
  }
  Value whole = b.add(b.reduceSum(term, 0), through), difference = b.sub(term, writes);
  made.decay = b.sub(b.add(difference, decays.byChannel ? b.row(whole) : whole), b.prefixSum(difference));
  return made;
}

void RecurrenceGradients::tokenGradients() {
  // Of more channels at once a thread would hold more than it has registers for, or a block, in f32, more memory.
  const bool isSingle = its.queryType().getElementType().isF32();
  const int64_t most = its.decaysByChannel() || (its.decay && its.beta && isSingle && keysWidth > 64) ? 32 : 64;
  RecurrenceKernel kernel(op, its, storedDecays, stored, "token_gradients");
  TileBuilder &b = kernel.b;
  TensorParameter dQuery = kernel.frame.output(wholeType(op.getDQuery()));
  TensorParameter dKey = kernel.frame.output(wholeType(op.getDKey())), dBeta, dDecay;
  if (its.beta && !ownBetas())
    dBeta = kernel.frame.output(wholeType(betaGradient));
  if (its.decay)
    dDecay = kernel.frame.output(wholeType(decayGradient));
  kernel.withChunk([&](Value chunk) {
    RowTile rows = kernel.rows(chunk);
    OfTokens tokens = productsOfTokens(kernel, rows);
    if (dBeta.pointer)
      kernel.store(dBeta, rows, nullptr, tokens.betas);
    ChunkDecays decays;
    if (!its.decaysByChannel()) {
      decays = kernel.decays(rows, {});
      decayTokens(kernel, tokens, decays);
    }
    SmallVector<Value> decay; // of all channels, where they share one
    if (its.decay && !its.decaysByChannel())
      decay.push_back(b.zeros({kernel.side}));
    auto loop = scf::ForOp::create(b, b.i32(0), b.i32(channelParts(its.headSize(), most)), b.i32(1), decay);
    {
      OpBuilder::InsertionGuard guard(b);
      b.setInsertionPointToStart(loop.getBody());
      Chunk keys = channelPart(b, its.headSize(), most, loop.getInductionVar());
      OfStates products = productsOfStates(kernel, chunk, rows, keys);
      // Sums that are stored are read again: nothing of them is held beside the products with states.
      ChunkDecays own = storedDecays.coarse ? kernel.decays(rows, keys) : decays;
      Gradient found = gradientOfChunk(kernel, rows, keys, tokens, products, own);
      kernel.store(dQuery, rows, &keys, found.query);
      kernel.store(dKey, rows, &keys, found.key);
      if (its.decaysByChannel())
        kernel.store(dDecay, rows, &keys, found.decay);
      if (!decay.empty())
        scf::YieldOp::create(b, b.add(loop.getRegionIterArg(0), found.decay));
    }
    if (!decay.empty())
      kernel.store(dDecay, rows, nullptr, loop.getResult(0));
  });
  const bool isWide = keysWidth > 64 || (keysWidth > 32 && (its.decay || its.beta));
  SmallVector<Value> made = kernel.frame.finish({kernel.chunkGrid(), isWide ? 8 : 4, 1});
  stored.record(op.getDQuery(), made[0]);
  stored.record(op.getDKey(), made[1]);
  if (dBeta.pointer)
    stored.record(betaGradient, made[2]);
  if (its.decay)
    stored.record(decayGradient, made.back());
}

LogicalResult lowerRecurBackward(attn::RecurBackwardOp op, StoredValues &stored) {
  RecurrenceGradients gradients(op, stored);
  gradients.chunkStates();
  gradients.chunkGradients();
  gradients.tokenGradients();
  return success();
}

} // namespace weft

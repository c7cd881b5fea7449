// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The writing of a forward kernel of attention, with the tangent of its results or without.
#pragma once

#include "compiler/Conversion/AttnToTile/Attention/ScheduleTable.h"
#include "compiler/Conversion/AttnToTile/Attention/SplitKeys.h"
#include "compiler/Conversion/AttnToTile/Patterns/BlockLists.h"
#include "compiler/Conversion/AttnToTile/Patterns/WideValues.h"
#include "compiler/Conversion/AttnToTile/Patterns/Windows.h"
#include "dialects/Attn/Pattern/Membership.h"

namespace weft {

/// How many query heads a tile holds: all that share keys, so that keys are read once for them, or as many of them as
/// it has rows; 1 where their patterns tell them apart. All else that depends on the head is found by each row's own.
int64_t packedHeads(const Attend &attend, attn::ScheduleAttr schedule);

/// The state of the online softmax.
struct State {
  mlir::Value maximum, total;
  llvm::SmallVector<mlir::Value> sums;          // a chunk of value channels each
  mlir::Value mean = {};                        // of a tangent: Σ p ds / Σ p so far
  llvm::SmallVector<mlir::Value> tangents = {}; // Σ p (ds - mean) v + Σ p dv so far

  llvm::SmallVector<mlir::Value> packed() const {
    llvm::SmallVector<mlir::Value> values{maximum, total};
    values.append(sums);
    if (mean)
      values.push_back(mean);
    values.append(tangents);
    return values;
  }
  /// `chunks` of value channels, with the tangent or without.
  static State unpack(mlir::ValueRange values, size_t chunks) {
    State state{values[0], values[1], llvm::SmallVector<mlir::Value>(values.slice(2, chunks))};
    if (values.size() > chunks + 2) {
      state.mean = values[chunks + 2];
      state.tangents = llvm::SmallVector<mlir::Value>(values.drop_front(chunks + 3));
    }
    return state;
  }
};

/// The tangents of an attention's operands and results; what is not there is zero.
struct ForwardTangents {
  mlir::Value query, sink;
  mlir::ValueRange keys, values;
  mlir::Region *scoreMod; // null where there is no score_mod
  mlir::Value out, lse;   // results
};

/// An attention, or one with its tangent, as a forward kernel computes it.
struct ForwardOp {
  llvm::StringRef name;
  Attend attend;
  mlir::Value sink, out, lse;
  attn::ScheduleAttr schedule;
  std::optional<ForwardTangents> tangents = {};

  static ForwardOp of(attn::AttendOp op);
  static ForwardOp of(attn::AttendTangentOp op);
};

/// The products of a block of pairs with value channels in a step, as the tangent has them.
struct TangentStep {
  mlir::Value factors; // p (ds - mean), in the values' element type; null where scores do not change
  mlir::Value shift;   // [rows]: what the sums so far add as the mean moves; null as factors
};

/// The writing of one forward kernel.
class ForwardKernel {
public:
  ForwardKernel(const ForwardOp &op, StoredValues &stored, llvm::ArrayRef<BlockLists> lists)
      : op(op), attend(op.attend), stored(stored), schedule(op.schedule), windows(attend.form.windows),
        packed(packedHeads(attend, schedule)), scaledLate(!attend.scoreMod && attend.scale > 0),
        frame(attend.op, op.name), b(frame.b), puller(frame, stored), lists(lists),
        queryChunks(chunksOf(attend.headSize())), valueChunks(chunksOf(attend.valueSize())),
        wide(splitOverGrid(attend, schedule)), splits(KeySplits::of(attend, schedule)) {}

  void write(llvm::ArrayRef<mlir::Value> roots);

private:
  void stand();
  void begin();
  void writeTile(llvm::ArrayRef<mlir::Value> roots);
  void writeWindows(int64_t each, llvm::ArrayRef<mlir::Value> roots);
  State initial();
  State meetOwnKeys(unsigned domain, State state);
  State walkDomain(unsigned domain, const State &state);
  State walkWindow(const State &state);
  bool holdValues();
  void takeHeldValues(const RowTile &keys, mlir::Value tile);
  RowTile keysOf(unsigned domain, RowTile tokens);
  State step(unsigned domain, const RowTile &keys, Fullness full, const State &state);
  /// The scores of a block: exponents, and of a tangent how they change, null where they do not.
  struct Scores {
    mlir::Value exponents, change;
  };
  Scores scores(unsigned domain, const RowTile &keys, Fullness full);
  attn::Place<EmitArithmetic> placeOf(unsigned domain, const RowTile &keys);
  mlir::Value keptPairs(unsigned domain, const RowTile &keys);
  /// What takes scores to base-2 exponents.
  double exponentScale() const { return scaledLate ? attend.scale * log2OfE : 1; }
  mlir::Value scaled(mlir::Value scores) { return scaledLate ? b.mul(scores, b.f32(exponentScale())) : scores; }
  mlir::Value modified(mlir::Region &region, mlir::Value product, const RowTile &keys, mlir::Value belongs,
                       mlir::Value change = {});
  State unpacked(mlir::ValueRange values) const { return State::unpack(values, valueChunks.size()); }
  void end(State state);
  void storeSplit(mlir::ValueRange sums, mlir::Value lse);

  // Of a tangent (AttendTangent.cpp).
  void beginTangent(State &state);
  mlir::Value addProductTangent(unsigned domain, const RowTile &keys, unsigned chunk, mlir::Value key, mlir::Value sum);
  mlir::Value changeOfScores(mlir::Value product, mlir::Value change, const RowTile &keys, mlir::Value belongs);
  TangentStep moveMean(unsigned domain, mlir::Value kept, mlir::Value weights, mlir::Value decay, mlir::Value change,
                       const State &state, State &next);
  mlir::Value sumTangent(unsigned domain, const RowTile &keys, unsigned chunk, const TangentStep &step, mlir::Value v,
                         mlir::Value weights, mlir::Value decay, const State &state);
  void endTangent(const State &state, mlir::Value seen, mlir::Value inverse);

  const ForwardOp &op;
  const Attend &attend;
  StoredValues &stored;
  attn::ScheduleAttr schedule;
  const std::optional<WindowTiling> &windows;
  int64_t packed;  // query heads in a tile
  TileOrder order; // of the launch's programs
  bool scaledLate; // scores are products, and scaled in the exponent
  KernelFrame frame;
  TileBuilder &b;
  Puller puller;
  EmitArithmetic arithmetic = EmitArithmetic::of(frame, attend, stored);
  llvm::ArrayRef<BlockLists> lists;                  // empty ones where a domain needs none
  llvm::SmallVector<Chunk> queryChunks, valueChunks; // valueChunks: those of the program's part
  std::optional<WideValues> wide;
  std::optional<ChannelPart> part;
  std::optional<KeySplits> splits;
  mlir::Value split; // i32: which of them the program has
  Standing standing;
  WindowStanding windowStanding;
  RowTile rows, read;                     // the tile's tokens, and what is read for them
  llvm::SmallVector<mlir::Value> queries; // a chunk of channels each, in the storage type
  llvm::SmallVector<mlir::Value> queryTangents;
  mlir::Value ownScore; // where the state started from the diagonal: its maximum then
};

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What an expansion is, and how its kernel is spread. The kernel itself is in ExpansionKernel.cpp.
#include "compiler/Conversion/AttnToTile/Expansion.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace weft {

static std::optional<int64_t> headsOf(attn::WholeTensorType type) { return type.staticDim(1); }

/// Whether a value is [B, H, N, D] in halves, with H and D that tiles can hold: D a multiple of 8.
static bool isTokens(Value value) {
  auto type = dyn_cast<attn::WholeTensorType>(value.getType());
  return type && type.getRank() == 4 && headsOf(type) && type.staticDim(3) && *type.staticDim(3) % 8 == 0 &&
         (type.getElementType().isF16() || type.getElementType().isBF16());
}

/// Arithmetic on the elements of values of one shape, and nothing else.
static bool isPlainMap(attn::MapOp map) {
  if (map->getNumResults() != 1 || map.getInputs().empty())
    return false;
  auto shape = wholeType(map.getResult(0)).getDims();
  bool sameShapes = llvm::all_of(map.getInputs(),
                                 [&](Value input) { return isTokens(input) && wholeType(input).getDims() == shape; });
  return sameShapes && llvm::all_of(map.getBody().front().without_terminator(), [](Operation &op) {
           return isa<arith::ArithDialect, math::MathDialect>(op.getDialect());
         });
}

/// Convolutions shift rows of D channels: a power of two, so that tokens and channels make whole tiles.
static bool isPlainConv(attn::HeadConvOp conv) {
  int64_t channels = isTokens(conv.getSource()) ? *wholeType(conv.getSource()).staticDim(3) : 0;
  int64_t taps = *wholeType(conv.getWeight()).staticDim(2);
  return !conv.getTransposed() && channels >= 16 && channels <= 128 && llvm::isPowerOf2_64(channels) && taps <= 15;
}

static bool isPart(Operation *op) {
  if (op->getNumResults() != 1 || !isTokens(op->getResult(0)))
    return false;
  if (auto conv = dyn_cast<attn::HeadConvOp>(op))
    return isPlainConv(conv);
  if (auto linear = dyn_cast<attn::LinearOp>(op))
    return isTokens(linear.getSource()) && !linear.getTransposed() && !linear.getConcatenated();
  auto map = dyn_cast<attn::MapOp>(op);
  return map && isPlainMap(map);
}

static bool isProduct(Operation *op) { return isa<attn::HeadConvOp, attn::LinearOp>(op); }

/// What an op computes from, weights apart.
static ValueRange sourcesOf(Operation *op) {
  return isProduct(op) ? op->getOperands().take_front(1) : ValueRange(op->getOperands());
}

/// The last value that is computed from `op` alone in a row of parts, each the only user of the one before.
static Operation *endOf(Operation *op) {
  for (;;) {
    Operation *next = op->getResult(0).hasOneUse() ? *op->getResult(0).user_begin() : nullptr;
    if (!next || next->getBlock() != op->getBlock() || !isPart(next) ||
        !llvm::is_contained(sourcesOf(next), op->getResult(0)))
      return op;
    op = next;
  }
}

/// All that only `end` is computed from.
static std::optional<Expansion> expansionEndingIn(Operation *end) {
  llvm::SmallSetVector<Operation *, 8> inside;
  inside.insert(end);
  for (Operation *op = end->getPrevNode(); op; op = op->getPrevNode())
    if (isPart(op) && !op->use_empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
          return inside.contains(user) && llvm::is_contained(sourcesOf(user), op->getResult(0));
        }))
      inside.insert(op);
  Expansion expansion;
  expansion.root = end->getResult(0);
  for (Operation *op : llvm::reverse(inside))
    expansion.ops.push_back(op);
  llvm::SmallSetVector<Value, 2> sources;
  for (Operation *op : expansion.ops)
    for (Value value : sourcesOf(op))
      if (!inside.contains(value.getDefiningOp()))
        sources.insert(value);
  if (sources.size() != 1 || llvm::count_if(expansion.ops, isProduct) < 2)
    return std::nullopt;
  expansion.source = sources.front();
  return expansion;
}

SmallVector<Expansion> findExpansions(Block &program) {
  SmallVector<Expansion> found;
  llvm::DenseSet<Operation *> taken;
  for (Operation &op : llvm::reverse(program.without_terminator())) {
    if (!isProduct(&op) || !isPart(&op) || taken.contains(&op))
      continue;
    std::optional<Expansion> expansion = expansionEndingIn(endOf(&op));
    if (!expansion || llvm::any_of(expansion->ops, [&](Operation *each) { return taken.contains(each); }))
      continue;
    taken.insert(expansion->ops.begin(), expansion->ops.end());
    found.push_back(std::move(*expansion));
  }
  return found;
}

SmallVector<HeadPiece> headPieces(int64_t heads) {
  SmallVector<HeadPiece> pieces;
  for (int64_t first = 0; first < heads;) {
    int64_t left = heads - first, width = left > 4 ? 8 : 4;
    if (left >= 8)
      width = std::min<int64_t>(32, llvm::bit_floor(uint64_t(left)));
    pieces.push_back({first, width, std::min(width, left)});
    first += width;
  }
  return pieces;
}

SmallVector<Chunk> channelChunks(int64_t channels) {
  SmallVector<Chunk> chunks;
  for (int64_t first = 0; first < channels; first += chunks.back().width) {
    int64_t width = std::min<int64_t>(64, llvm::bit_floor(uint64_t(channels - first)));
    chunks.push_back({first, width, width});
  }
  return chunks;
}

SmallVector<ConvTerm> convTerms(ArrayRef<HeadPiece> pieces, int64_t taps) {
  SmallVector<ConvTerm> terms;
  for (auto [index, piece] : llvm::enumerate(pieces))
    for (int64_t tap = 0; tap < taps; tap += terms.back().taps) {
      // Two taps of four heads fill an instruction.
      int64_t left = llvm::alignTo(taps - tap, 2);
      int64_t together = piece.width >= 8 ? 1 : std::min<int64_t>(8, llvm::bit_floor(uint64_t(left)));
      terms.push_back({static_cast<unsigned>(index), tap, together});
    }
  return terms;
}

ExpansionTiling expansionTiling(const Expansion &expansion) {
  constexpr int64_t warps = 8, tokensOfProgram = 64;
  // Beside a linear map's sums there are those it starts from, and the next one's operand.
  bool chained = llvm::any_of(expansion.ops, llvm::IsaPred<attn::LinearOp>);
  int64_t mostSums = chained ? 48 : 96;
  int64_t least = 1;
  auto sums = [&](int64_t tokens) { // registers of a thread that hold a product's sums
    int64_t most = 0;
    for (Operation *op : llvm::make_filter_range(expansion.ops, isProduct)) {
      attn::WholeTensorType type = wholeType(op->getResult(0));
      SmallVector<HeadPiece> pieces = headPieces(*type.staticDim(1));
      int64_t columns = 0, widest = 0;
      for (const HeadPiece &piece : pieces) {
        columns += piece.columns();
        widest = std::max(widest, piece.width);
        if (isa<attn::LinearOp>(op))
          least = std::max(least, 16 / piece.width);
      }
      int64_t elements = isa<attn::LinearOp>(op) ? widest * *type.staticDim(3) : columns * *type.staticDim(3);
      most = std::max(most, tokens * elements / (32 * warps));
    }
    return most;
  };
  int64_t tokens = 16;
  while (sums(tokens) > mostSums && tokens > least)
    tokens /= 2;
  return {tokens, std::max<int64_t>(1, tokensOfProgram / tokens), warps};
}

} // namespace weft

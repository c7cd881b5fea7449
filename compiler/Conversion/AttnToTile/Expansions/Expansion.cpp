// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What an expansion is, and how its kernel is spread. The kernel itself is in ExpansionKernel.cpp.
#include "compiler/Conversion/AttnToTile/Expansions/ExpansionKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace weft {

static bool isHalf(Type element) { return element.isF16() || element.isBF16(); }

/// Whether a value is [B, H, N, D] with H and D that tiles can hold: D a multiple of 8.
static bool isTokens(Value value) {
  auto type = dyn_cast<attn::WholeTensorType>(value.getType());
  return type && type.getRank() == 4 && type.staticDim(1) && type.staticDim(3) && *type.staticDim(3) % 8 == 0 &&
         (isHalf(type.getElementType()) || type.getElementType().isF32());
}

/// The same in halves: what can be a product's operand.
static bool isOperand(Value value) { return isTokens(value) && isHalf(wholeType(value).getElementType()); }

/// Arithmetic on the elements of values of one shape, and nothing else.
static bool isPlainMap(attn::MapOp map) {
  if (map->getNumResults() != 1 || map.getInputs().empty() || !isOperand(map.getResult(0)))
    return false;
  auto shape = wholeType(map.getResult(0)).getDims();
  bool sameShapes = llvm::all_of(map.getInputs(),
                                 [&](Value input) { return isTokens(input) && wholeType(input).getDims() == shape; });
  return sameShapes && llvm::all_of(map.getBody().front().without_terminator(), [](Operation &op) {
           return isa<arith::ArithDialect, math::MathDialect>(op.getDialect());
         });
}

/// Convolutions shift rows of D channels: a power of two, so that tokens and channels make whole tiles.
static bool canShift(Value signal, int64_t taps) {
  int64_t channels = isOperand(signal) ? *wholeType(signal).staticDim(3) : 0;
  return channels >= 16 && channels <= 128 && llvm::isPowerOf2_64(channels) && taps <= 15;
}

bool isExpansionPart(Operation *op) {
  if (auto conv = dyn_cast<attn::HeadConvOp>(op))
    return isOperand(conv.getResult()) && canShift(conv.getSource(), *wholeType(conv.getWeight()).staticDim(2));
  if (auto grad = dyn_cast<attn::HeadConvWeightGradOp>(op))
    return isOperand(grad.getGradient()) && canShift(grad.getSource(), *wholeType(grad.getResult()).staticDim(2));
  if (auto linear = dyn_cast<attn::LinearOp>(op))
    return isOperand(linear.getResult()) && isOperand(linear.getSource()) && !linear.getConcatenated();
  if (auto grad = dyn_cast<attn::LinearWeightGradOp>(op)) // (Channels of the gradient are rows of instructions.)
    return isOperand(grad.getGradient()) && isOperand(grad.getSource()) && !grad.getConcatenated() &&
           *wholeType(grad.getGradient()).staticDim(3) % 16 == 0;
  auto map = dyn_cast<attn::MapOp>(op);
  return map && isPlainMap(map);
}

static bool isProduct(Operation *op) { return isa<attn::HeadConvOp, attn::LinearOp>(op); }
static bool isGradient(Operation *op) { return isa<attn::HeadConvWeightGradOp, attn::LinearWeightGradOp>(op); }

ValueRange sourcesOf(Operation *op) {
  return isProduct(op) ? op->getOperands().take_front(1) : ValueRange(op->getOperands());
}

bool Expansion::sums() const { return llvm::any_of(ops, isGradient); }

SmallVector<Value> Expansion::sources() const {
  llvm::SmallSetVector<Value, 2> sources;
  for (Operation *op : ops)
    for (Value value : sourcesOf(op))
      if (!has(value.getDefiningOp()))
        sources.insert(value);
  return sources.takeVector();
}

bool Expansion::byHead() const {
  return llvm::none_of(ops, llvm::IsaPred<attn::HeadConvOp, attn::HeadConvWeightGradOp>);
}

Type Expansion::element() const {
  for (Operation *op : ops)
    if (!isa<attn::MapOp>(op))
      return wholeType(op->getOperand(0)).getElementType();
  return {};
}

/// The last value that is computed from `op` alone in a row of parts, each the only user of the one before.
static Operation *endOf(Operation *op, llvm::function_ref<bool(Operation *)> isPart) {
  for (;;) {
    Operation *next = op->getResult(0).hasOneUse() ? *op->getResult(0).user_begin() : nullptr;
    if (!next || next->getBlock() != op->getBlock() || !isPart(next) ||
        !llvm::is_contained(sourcesOf(next), op->getResult(0)))
      return op;
    op = next;
  }
}

/// All that only `end` is computed from.
static std::optional<Expansion> expansionEndingIn(Operation *end, llvm::function_ref<bool(Operation *)> isPart) {
  llvm::SmallSetVector<Operation *, 8> inside;
  inside.insert(end);
  for (Operation *op = end->getPrevNode(); op; op = op->getPrevNode())
    if (isPart(op) && !op->use_empty() && llvm::all_of(op->getUsers(), [&](Operation *user) {
          return inside.contains(user) && llvm::is_contained(sourcesOf(user), op->getResult(0));
        }))
      inside.insert(op);
  Expansion expansion;
  expansion.roots = {end->getResult(0)};
  for (Operation *op : llvm::reverse(inside))
    expansion.ops.push_back(op);
  SmallVector<Value> sources = expansion.sources();
  if (sources.size() != 1 || !isOperand(sources.front()) || llvm::count_if(expansion.ops, isProduct) < 2)
    return std::nullopt;
  return expansion;
}

SmallVector<Expansion> findExpansions(Block &program, const llvm::DenseSet<Operation *> &taken) {
  SmallVector<Expansion> found;
  llvm::DenseSet<Operation *> used = taken;
  auto isPart = [&](Operation *op) { return !isGradient(op) && !taken.contains(op) && isExpansionPart(op); };
  for (Operation &op : llvm::reverse(program.without_terminator())) {
    if (!isProduct(&op) || !isPart(&op) || used.contains(&op))
      continue;
    std::optional<Expansion> expansion = expansionEndingIn(endOf(&op, isPart), isPart);
    if (!expansion || llvm::any_of(expansion->ops, [&](Operation *each) { return used.contains(each); }))
      continue;
    used.insert(expansion->ops.begin(), expansion->ops.end());
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

/// Registers of a thread that hold sums: of the largest product, for one token and one warp.
static int64_t sumsOfToken(const Expansion &expansion) {
  int64_t most = 0;
  for (Operation *op : llvm::make_filter_range(expansion.ops, isProduct)) {
    attn::WholeTensorType type = wholeType(op->getResult(0));
    int64_t columns = 0, widest = 0;
    for (const HeadPiece &piece : headPieces(*type.staticDim(1))) {
      columns += piece.columns();
      widest = std::max(widest, piece.width);
    }
    int64_t heads = expansion.byHead() ? 1 : isa<attn::LinearOp>(op) ? widest : columns;
    most = std::max(most, heads * *type.staticDim(3) / 32);
  }
  return most;
}

/// Tokens that make whole tiles of every linear map.
static int64_t leastTokens(const Expansion &expansion) {
  int64_t least = 1;
  for (Operation *op : expansion.ops)
    if (isa<attn::LinearOp>(op))
      for (const HeadPiece &piece : headPieces(*wholeType(op->getResult(0)).staticDim(1)))
        least = std::max(least, 16 / piece.width);
  return least;
}

ExpansionTiling expansionTiling(const Expansion &expansion) {
  constexpr int64_t tokensOfProgram = 64, rowsOfHead = 64;
  int64_t sums = 0; // of gradients
  for (Operation *op : expansion.ops)
    for (const GradientTile &tile : gradientTiles(op))
      sums += tile.rows * tile.columns / 32;
  // Few warps share small products of gradients better.
  int64_t warps = sums && !expansion.byHead() && sums / 4 <= 72 ? 4 : 8;
  if (expansion.byHead())
    return {rowsOfHead, 1, warps};
  // Beside a linear map's sums there are those it starts from, and the next one's operand; or gradients' sums.
  bool chained = llvm::any_of(expansion.ops, llvm::IsaPred<attn::LinearOp>);
  int64_t mostSums = chained || sums ? 48 : 96, tokens = 16, least = leastTokens(expansion);
  // (All channels of the tokens are the inner size of gradients' products, whose operands take registers.)
  if (sums)
    tokens = std::max<int64_t>(1, 64 / *wholeType(expansion.sources().front()).staticDim(3));
  while (tokens * sumsOfToken(expansion) / warps > mostSums && tokens > least)
    tokens /= 2;
  return {tokens, std::max<int64_t>(1, tokensOfProgram / tokens), warps};
}

} // namespace weft

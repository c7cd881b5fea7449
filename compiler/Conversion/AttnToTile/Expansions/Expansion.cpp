// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What an expansion is, and how its kernel is spread. The kernel itself is in ExpansionKernel.cpp.
//
//   %a = attn.head_conv %x, %w             ─▶      func.func @expand {                    grid [cdiv(N, 64), 1, B]
//   %r = attn.map ins(%a) { max(a, 0) }              load %w and %w2, as operands of products
//   %y = attn.linear %r, %w2                         for each 4 of 64 tokens {
//                                                      %x = load 12 heads, as pieces of 8 and 4
//   x: [B, 12, N, 64]   w: [36, 12, 3]                 %r = max(Σ over taps of shifted %x · %w, 0)
//   y: [B, 36, N, 64]   w2: [64, 64]                   store %r · %w2ᵀ, 36 heads as pieces of 32 and 4
//                                                    }
//                                                  }
#include "compiler/Conversion/AttnToTile/Expansions/ExpansionKernel.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"

using namespace mlir;

namespace weft {

/// Whether an op is a product of rows.
static bool multipliesRows(Operation *op) { return isProduct(op) && productForm(op) == ProductForm::Rows; }

/// Whether a value can be a map's input: a product's operand, or the same in f32.
static bool isMapInput(Value value) {
  return isProductOperand(value) || (hasProductShape(value) && wholeType(value).getElementType().isF32());
}

/// Arithmetic on the elements of values of one shape, and nothing else.
static bool isPlainMap(attn::MapOp map) {
  if (map->getNumResults() != 1 || map.getInputs().empty() || !isProductOperand(map.getResult(0)))
    return false;
  auto shape = wholeType(map.getResult(0)).getDims();
  bool sameShapes = llvm::all_of(map.getInputs(),
                                 [&](Value input) { return isMapInput(input) && wholeType(input).getDims() == shape; });
  return sameShapes && llvm::all_of(map.getBody().front().without_terminator(), [](Operation &op) {
           return isa<arith::ArithDialect, math::MathDialect>(op.getDialect());
         });
}

bool isExpansionPart(Operation *op) {
  if (auto product = dyn_cast<ProductOpInterface>(op))
    return product.fitsExpansion();
  auto map = dyn_cast<attn::MapOp>(op);
  return map && isPlainMap(map);
}

ValueRange sourcesOf(Operation *op) {
  return isProduct(op) ? op->getOperands().take_front(1) : ValueRange(op->getOperands());
}

bool Expansion::sums() const { return llvm::any_of(ops, isWeightGradient); }

SmallVector<Value> Expansion::sources() const {
  llvm::SmallSetVector<Value, 2> sources;
  for (Operation *op : ops)
    for (Value value : sourcesOf(op))
      if (!has(value.getDefiningOp()))
        sources.insert(value);
  return sources.takeVector();
}

bool Expansion::byHead() const {
  return llvm::none_of(ops, [](Operation *op) { return productForm(op) == ProductForm::Signals; });
}

bool Expansion::comesAsRows(Value value) const {
  if (byHead() || !has(value.getDefiningOp()) || productForm(value.getDefiningOp()) == ProductForm::Rows)
    return true;
  auto map = value.getDefiningOp<attn::MapOp>();
  return map && llvm::any_of(map.getInputs(), [&](Value v) { return has(v.getDefiningOp()) && comesAsRows(v); });
}

Operation *Expansion::takesRowsAsSignals() const {
  for (Operation *op : ops)
    if (productForm(op) == ProductForm::Signals &&
        llvm::any_of(sourcesOf(op), [&](Value source) { return has(source.getDefiningOp()) && comesAsRows(source); }))
      return op;
  return nullptr;
}

Type Expansion::element() const {
  for (Operation *op : ops)
    if (!isa<attn::MapOp>(op))
      return wholeType(op->getOperand(0)).getElementType();
  return {};
}

/// The last value that is computed from `op` alone in a row of parts, each the only user of the one before. Rows are
/// not turned into signals, so that a convolution after a linear map begins another row.
static Operation *endOf(Operation *op, llvm::function_ref<bool(Operation *)> isPart) {
  for (bool asRows = false;;) {
    Operation *next = op->getResult(0).hasOneUse() ? *op->getResult(0).user_begin() : nullptr;
    if (!next || next->getBlock() != op->getBlock() || !isPart(next) ||
        !llvm::is_contained(sourcesOf(next), op->getResult(0)))
      return op;
    asRows |= multipliesRows(op);
    if (asRows && productForm(next) == ProductForm::Signals)
      return op;
    op = next;
  }
}

/// All that `end` is computed from, up to where rows would have to become signals, and that nothing before it takes
/// besides: what ops behind it take is stored on the way.
static std::optional<Expansion> expansionEndingIn(Operation *end, llvm::function_ref<bool(Operation *)> isPart) {
  llvm::SmallSetVector<Operation *, 8> inside;
  llvm::SmallPtrSet<Operation *, 8> signals; // maps inside that convolutions take, by themselves or through others
  auto becomesSignal = [&](Operation *op) {
    return llvm::any_of(op->getUsers(), [&](Operation *user) {
      return productForm(user) == ProductForm::Signals || signals.contains(user);
    });
  };
  inside.insert(end);
  for (Operation *op = end->getPrevNode(); op; op = op->getPrevNode()) {
    bool entersInside = false, onlyInside = true;
    for (Operation *user : op->getUsers()) {
      bool isSource = inside.contains(user) && llvm::is_contained(sourcesOf(user), op->getResult(0));
      entersInside |= isSource;
      onlyInside &= isSource || (user->getBlock() == end->getBlock() && end->isBeforeInBlock(user));
    }
    if (!isPart(op) || !entersInside || !onlyInside || (multipliesRows(op) && becomesSignal(op)))
      continue;
    inside.insert(op);
    if (isa<attn::MapOp>(op) && becomesSignal(op))
      signals.insert(op);
  }
  Expansion expansion;
  for (Operation *op : llvm::reverse(inside)) {
    expansion.ops.push_back(op);
    if (!llvm::all_of(op->getUsers(), [&](Operation *user) { return inside.contains(user); }) || op == end)
      expansion.roots.push_back(op->getResult(0));
  }
  SmallVector<Value> sources = expansion.sources();
  if (sources.size() != 1 || !isProductOperand(sources.front()) || llvm::count_if(expansion.ops, isProduct) < 2)
    return std::nullopt;
  return expansion;
}

SmallVector<Expansion> findExpansions(Block &program, const llvm::DenseSet<Operation *> &taken) {
  SmallVector<Expansion> found;
  llvm::DenseSet<Operation *> used = taken;
  auto isPart = [&](Operation *op) { return !isWeightGradient(op) && !taken.contains(op) && isExpansionPart(op); };
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
    int64_t heads = expansion.byHead() ? 1 : productForm(op) == ProductForm::Rows ? widest : columns;
    most = std::max(most, heads * *type.staticDim(3) / 32);
  }
  return most;
}

/// Tokens that make whole tiles of every product of rows.
static int64_t leastTokens(const Expansion &expansion) {
  int64_t least = 1;
  for (Operation *op : expansion.ops)
    if (multipliesRows(op))
      for (const HeadPiece &piece : headPieces(*wholeType(op->getResult(0)).staticDim(1)))
        least = std::max(least, 16 / piece.width);
  return least;
}

/// Registers that hold sums of gradients, of one warp.
static int64_t sumsOfGradients(const Expansion &expansion) {
  int64_t sums = 0;
  for (Operation *op : expansion.ops)
    for (const GradientTile &tile : gradientTiles(op))
      sums += tile.rows * tile.columns / 32;
  return sums;
}

/// Whether a thread holds sums of gradients beside those of a product of so many tokens, and what they are made of.
static bool holdsSums(const Expansion &expansion, int64_t tokens, int64_t warps) {
  constexpr int64_t most = 128;
  return (sumsOfGradients(expansion) + tokens * sumsOfToken(expansion)) / warps <= most;
}

/// Tokens that a program takes at a time.
static int64_t tokensAtOnce(const Expansion &expansion, int64_t warps) {
  // Of more tokens a weight's gradient has more to multiply for what its warps read of each other's rows.
  if (expansion.byHead())
    return expansion.sums() && holdsSums(expansion, 128, warps) ? 128 : 64;
  // Beside a product's sums there are what it multiplies, or gradients' sums.
  bool sums = expansion.sums();
  int64_t mostSums = sums ? 48 : 96, tokens = 16, least = leastTokens(expansion);
  // A weight's gradient contracts over the channels of all tokens, and its operands take registers: 128 of them.
  if (sums)
    tokens = std::max<int64_t>(1, 128 / *wholeType(expansion.sources().front()).staticDim(3));
  auto fits = [&] {
    return tokens * sumsOfToken(expansion) / warps <= mostSums && (!sums || holdsSums(expansion, tokens, warps));
  };
  while (!fits() && tokens > least)
    tokens /= 2;
  return tokens;
}

ExpansionTiling expansionTiling(const Expansion &expansion, KernelFrame &frame) {
  bool sums = expansion.sums();
  // Few warps read what they share less often: each has more of a product.
  int64_t warps = sums && !expansion.byHead() && holdsSums(expansion, 1, 4) ? 4 : 8;
  KernelTilings tilings{{std::max<int64_t>(64, tokensAtOnce(expansion, warps)), warps}, {}, {4, 8}};
  // Parts of sums are as many as there are tokens for: such a kernel is tiled by its warps alone.
  for (int64_t rows : {16, 32, 64, 128, 256})
    if (rows == tilings.usual.rows || (!sums && rows >= tokensAtOnce(expansion, 8)))
      tilings.rows.push_back(rows);
  KernelTiling chosen = frame.tiling(tilings);
  int64_t tokens = tokensAtOnce(expansion, chosen.warps);
  return {tokens, std::max<int64_t>(1, chosen.rows / tokens), chosen.warps};
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Which gradients of weights one kernel sums up, and what it computes beside them.
//
// The backward of a chain of products takes every value of the chain twice: to go on from it, and as an operand of a
// weight's gradient. A kernel that does both reads it once, and what it computes on the way need not be stored:
//
//   %r = relu(conv(%x, %w1))          (again, from %x)         one kernel: reads %x and %g, stores %dx and partial
//   %h = conv(%g, %w2) {transposed}                            sums of %dw1 and %dw2
//   %m = select(%r > 0, %h) + %g                        ─▶
//   %dx = conv(%m, %w1) {transposed}
//   %dw2 = conv_weight_grad %r, %g
//   %dw1 = conv_weight_grad %x, %m
//
// Convolutions and linear maps are in kernels of their own: the former take all heads of a token, the latter tokens of
// one head, and the sums of both would not fit registers. Stages say what may be together: a value that crosses from
// one kind to the other, or through an op that is neither, is of a later stage than what it is computed from.
#include "compiler/Conversion/AttnToTile/Expansions/ExpansionKernel.h"
#include "compiler/Target/TargetInfo.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/EquivalenceClasses.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {
namespace {

using Kind = std::optional<ProductForm>; ///< of a map, that of what it goes with

struct Level {
  int64_t stage = 0;
  Kind kind;
  bool part = false; ///< whether it can be in an expansion
};

using Levels = llvm::DenseMap<Operation *, Level>;

llvm::SetVector<Value> usedBy(Operation &op) {
  llvm::SetVector<Value> used;
  used.insert(op.operand_begin(), op.operand_end());
  for (Region &region : op.getRegions())
    getUsedValuesDefinedAbove(region, used);
  return used;
}

/// Of an op of the block, from those of what it is computed from.
Level levelOf(Operation &op, const Levels &levels) {
  Level own{0, productForm(&op), isExpansionPart(&op)};
  bool mixed = false;
  for (Value value : usedBy(op)) {
    Level from = levels.lookup(value.getDefiningOp());
    int64_t stage = from.stage;
    if (!own.part || (productForm(&op) != std::nullopt && from.kind != std::nullopt && from.kind != own.kind))
      stage += from.part;
    else if (productForm(&op) == std::nullopt && from.part && stage >= own.stage && from.kind != std::nullopt) {
      // A map goes with what it takes last.
      mixed = stage == own.stage && own.kind != std::nullopt && own.kind != from.kind;
      own.kind = from.kind;
    }
    own.stage = std::max(own.stage, stage);
  }
  return mixed ? Level{own.stage + 1, std::nullopt, false} : own;
}

Levels levelsOf(Block &block) {
  Levels levels;
  for (Operation &op : block.without_terminator())
    levels[&op] = levelOf(op, levels);
  // As late as what takes it, where that is of one kind with it.
  for (Operation &op : llvm::reverse(block.without_terminator())) {
    Level &own = levels[&op];
    if (!own.part || isWeightGradient(&op) || op.use_empty())
      continue;
    std::optional<int64_t> first;
    bool alike = true;
    for (Operation *user : op.getUsers()) {
      Level its = levels.lookup(user);
      alike &= its.part;
      first = std::min(first.value_or(its.stage), its.stage);
    }
    Kind kind = own.kind;
    for (Operation *user : op.getUsers())
      if (Level its = levels.lookup(user); its.stage == *first) {
        alike &= kind == std::nullopt || its.kind == kind;
        kind = its.kind;
      }
    if (alike)
      own = {*first, kind, true};
  }
  return levels;
}

/// Sums of gradients that a thread of a program holds, at most: what is computed beside them needs as much again.
constexpr int64_t mostSums = 72, threads = 256;

int64_t sumsOf(Operation *op) {
  int64_t sums = 0;
  for (const GradientTile &tile : gradientTiles(op))
    sums += tile.rows * tile.columns;
  return sums / threads;
}

/// Whether a kernel can hold a group: its weights and values in shared memory, and any one product's sums in registers.
bool fits(ArrayRef<Operation *> group) {
  constexpr int64_t forExchanges = 3 << 10, mostProduct = 64, rows = 64;
  int64_t sharedBytes = TargetInfo::ofOrDefault(group.front()).sharedBytesPerBlock - forExchanges;
  int64_t bytes = 0, largest = 0;
  llvm::SmallSetVector<Value, 16> values;
  for (Operation *op : group) {
    values.insert(sourcesOf(op).begin(), sourcesOf(op).end());
    if (isWeightGradient(op))
      continue;
    values.insert(op->getResult(0));
    for (Value weight : op->getOperands().drop_front(sourcesOf(op).size()).take_front(1)) {
      int64_t elements = 1;
      for (int64_t axis = 0; axis < wholeType(weight).getRank(); ++axis)
        elements *= *wholeType(weight).staticDim(axis);
      bytes += 2 * elements;
    }
  }
  bool signals = llvm::any_of(group, [](Operation *op) { return productForm(op) == ProductForm::Signals; });
  for (Value value : values) {
    int64_t channels = *wholeType(value).staticDim(3), heads = *wholeType(value).staticDim(1);
    int64_t elements = signals ? heads * std::max(channels, rows) : rows * channels;
    bytes += 2 * elements;
    largest = std::max(largest, elements / threads);
  }
  return bytes <= sharedBytes && largest <= mostProduct;
}

/// Where convolving or mapping once more costs less than keeping a value: so many multiply-adds for each byte that is
/// neither written nor read.
constexpr int64_t productsForByte = 32;

/// The ops that compute `value` from what is stored anyway, parts of earlier stages and of kind `kind`; empty where
/// that is too much.
SmallVector<Operation *> cheapChain(Value value, Kind kind, const Levels &levels) {
  llvm::SetVector<Operation *> chain;
  chain.insert(value.getDefiningOp());
  int64_t products = 0;
  for (unsigned i = 0; i < chain.size(); ++i) {
    Operation *op = chain[i];
    if (productForm(op) != std::nullopt && productForm(op) != kind)
      return {};
    if (auto product = dyn_cast<ProductOpInterface>(op))
      products += product.multiplyAdds();
    for (Value source : sourcesOf(op))
      if (levels.lookup(source.getDefiningOp()).part)
        chain.insert(source.getDefiningOp());
  }
  attn::WholeTensorType type = wholeType(value);
  int64_t bytes = 2 * 2 * *type.staticDim(1) * *type.staticDim(3);
  if (products > productsForByte * bytes)
    return {};
  return SmallVector<Operation *>(chain.begin(), chain.end());
}

using Members = SmallVector<Operation *>;

/// Clones into a group what is cheaper computed there than kept from earlier stages.
void recompute(Members &group, Levels &levels) {
  llvm::DenseSet<Operation *> inside(group.begin(), group.end());
  IRMapping clones;
  Members made;
  Level level = levels.lookup(group.front());
  std::function<void(Operation *)> clone = [&](Operation *op) {
    if (clones.contains(op->getResult(0)))
      return;
    for (Value source : sourcesOf(op))
      if (levels.lookup(source.getDefiningOp()).part)
        clone(source.getDefiningOp());
    OpBuilder b(op);
    b.setInsertionPointAfter(op);
    Operation *copy = b.clone(*op, clones);
    // Its sources may have been cloned after the group's first op: it goes behind them, just before the group.
    copy->moveBefore(group.front());
    levels[copy] = level;
    made.push_back(copy);
  };
  for (Operation *op : group)
    for (OpOperand &operand : op->getOpOperands()) {
      Operation *from = operand.get().getDefiningOp();
      if (!from || inside.contains(from) || !levels.lookup(from).part)
        continue;
      // Named: llvm::reverse does not keep a temporary alive.
      SmallVector<Operation *> chain = cheapChain(operand.get(), level.kind, levels);
      for (Operation *each : llvm::reverse(chain))
        clone(each);
      if (Value copy = clones.lookupOrNull(operand.get()))
        operand.set(copy);
    }
  group.insert(group.begin(), made.begin(), made.end());
}

/// Parts of one stage and kind that hang together, with a gradient of a weight among them, as many as fit.
SmallVector<Members> groupsOf(Block &block, Levels &levels) {
  llvm::EquivalenceClasses<Operation *> together;
  auto alike = [&](Operation *one, Operation *other) {
    Level a = levels.lookup(one), b = levels.lookup(other);
    return a.part && b.part && a.stage == b.stage && a.kind == b.kind;
  };
  for (Operation &op : block.without_terminator()) {
    if (!levels[&op].part)
      continue;
    together.insert(&op);
    for (Value value : sourcesOf(&op))
      if (Operation *from = value.getDefiningOp(); from && alike(from, &op))
        together.unionSets(from, &op);
    // What goes on from the gradient is computed from the same tile.
    if (isWeightGradient(&op))
      for (Operation *user : op.getOperand(1).getUsers())
        if (user->getBlock() == &block && alike(user, &op) && !isWeightGradient(user))
          together.unionSets(user, &op);
  }
  llvm::MapVector<Operation *, Members> groups;
  for (Operation &op : block.without_terminator())
    if (levels[&op].part)
      groups[together.getLeaderValue(&op)].push_back(&op);
  SmallVector<Members> found;
  for (auto &[leader, group] : groups) {
    // The largest first: small ones are the cheaper to leave out.
    Members gradients = llvm::to_vector(llvm::make_filter_range(group, isWeightGradient));
    llvm::sort(gradients, [&](Operation *one, Operation *other) {
      int64_t a = sumsOf(one), b = sumsOf(other);
      return a != b ? a > b : one != other && one->isBeforeInBlock(other);
    });
    int64_t sums = 0;
    for (Operation *op : gradients) {
      int64_t own = sumsOf(op);
      if (sums + own <= mostSums) {
        sums += own;
        continue;
      }
      levels[op] = {levels[op].stage + 1, std::nullopt, false}; // a kernel of its own
      llvm::erase(group, op);
    }
    if (llvm::any_of(group, isWeightGradient) && fits(group))
      found.push_back(std::move(group));
  }
  return found;
}

void sortByStage(Block &block, const Levels &levels) {
  std::map<std::pair<int64_t, bool>, SmallVector<Operation *>> ordered;
  for (Operation &op : block.without_terminator()) {
    Level level = levels.lookup(&op);
    ordered[{level.stage, level.part}].push_back(&op);
  }
  for (auto &[level, ops] : ordered)
    for (Operation *op : ops)
      op->moveBefore(block.getTerminator());
}

Expansion expansionOf(const Members &group) {
  Expansion expansion;
  expansion.ops = group;
  llvm::sort(expansion.ops, [](Operation *one, Operation *other) { return one->isBeforeInBlock(other); });
  for (Operation *op : expansion.ops)
    if (!isWeightGradient(op) && llvm::any_of(op->getUsers(), [&](Operation *user) { return !expansion.has(user); }))
      expansion.roots.push_back(op->getResult(0));
  return expansion;
}

} // namespace

SmallVector<Expansion> findGradientExpansions(Block &program) {
  if (llvm::none_of(program, [](Operation &op) { return isWeightGradient(&op) && isExpansionPart(&op); }))
    return {};
  Levels levels = levelsOf(program);
  SmallVector<Members> groups = groupsOf(program, levels);
  if (groups.empty())
    return {};
  for (Members &group : groups)
    recompute(group, levels);
  sortByStage(program, levels);
  return llvm::map_to_vector(groups, expansionOf);
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// warp-tensor-memory: the sums of products lie in tensor memory, and threads load them where they compute with them.
//
//   scf.for .. iter_args(%acc = %zero) {                    warp.tensor_store %zero
//     %d = warp.wgmma %a, %b, %acc                          scf.for .. {
//     %e = warp.wgmma_wait %d {pending = 0}                   warp.tensor_product %b with %a
//     scf.yield %e                                  ─▶        warp.tensor_wait {pending = 0}
//   }                                                       }
//   use(%result)                                            %x = warp.tensor_load
//                                                           use(%x)
//
// A chain of sums (SumChains.h) has a tile. The pass walks the kernel in its order and knows which of a chain's values the
// tile holds. A product that adds to that value, a wait, and a loop that carries it need nothing of the threads; another
// value is stored before. What else uses a value loads it there, while the tile still holds it, or right where it is
// defined. An operand a that is computed is stored to a tile of its own.
#include "dialects/Warp/Transforms/LoopCarried.h"
#include "dialects/Warp/Transforms/Passes.h"
#include "dialects/Warp/Transforms/Tensor/SplitResults.h"
#include "dialects/Warp/Transforms/Tensor/SumChains.h"
#include "dialects/Warp/Transforms/Tensor/TensorColumns.h"
#include "dialects/Warp/Transforms/Tensor/TensorOrder.h"
#include "dialects/Warp/Transforms/Tensor/TensorProducts.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Interfaces/LoopLikeInterface.h"

namespace weft::warp {
#define GEN_PASS_DEF_WARPTENSORMEMORY
#include "dialects/Warp/Transforms/Passes.h.inc"
} // namespace weft::warp

using namespace mlir;
using namespace weft;
using namespace weft::warp;

namespace {
struct TensorMemory : weft::warp::impl::WarpTensorMemoryBase<TensorMemory> {
  using WarpTensorMemoryBase::WarpTensorMemoryBase;
  void runOnOperation() override;
};

/// Rewrites the products of a kernel.
class Placer {
public:
  Placer(func::FuncOp kernel, TensorBeginOp begin) : kernel(kernel), begin(begin), chains(kernel), b(kernel) {}

  void run() {
    walk(kernel.getBody().front());
    eraseProducts();
  }

private:
  /// What a chain's tile holds now, null where that is not known; by chain.
  using Contents = llvm::DenseMap<Value, Value>;

  void walk(Block &block);
  void place(WgmmaOp product);
  void place(WgmmaWaitOp wait);
  void place(scf::ForOp loop);
  void place(scf::IfOp branch);
  void placeOthers(Operation *op);
  void storeOperand(WgmmaOp product, IntegerAttr column);

  /// The value in registers, for an op.
  Value load(Value value, Operation *user);
  Value loadHere(Value value);
  /// Sees to it that the tile of `chain` holds a value where `user` stands.
  void hold(Value value, Value chain, Operation *user);
  void loadOperands(Operation *op, llvm::function_ref<bool(OpOperand &)> which);

  /// The number of a chain's tile.
  int tileOf(Value chain) { return tiles.insert({chain, tileCount}).second ? tileCount++ : tiles.lookup(chain); }
  int tileOfOperand(WgmmaOp product, Value chain);
  bool holds(Value value) { return contents.lookup(chains.leader(value)) == value; }
  /// The chains that products under an op write, and those that it carries.
  llvm::SmallDenseSet<Value> writtenBy(Operation *op);
  void wait(int pending) { TensorWaitOp::create(b, kernel.getLoc(), begin.getSlots(), pending); }
  void eraseProducts();

  func::FuncOp kernel;
  TensorBeginOp begin;
  SumChains chains;
  OpBuilder b;
  Contents contents;
  llvm::DenseMap<int, Value> operands; // what tiles of operands hold, of the block that is walked
  llvm::DenseMap<Value, int> tiles;
  std::map<std::tuple<void *, void *, int>, int> operandTiles; // by chain, type and place in a block
  int tileCount = 0;
  llvm::DenseMap<Value, SmallVector<Value, 1>> loaded;
  SmallVector<Operation *> placed; // products and waits, to be erased
};
} // namespace

llvm::SmallDenseSet<Value> Placer::writtenBy(Operation *op) {
  llvm::SmallDenseSet<Value> written;
  op->walk([&](Operation *inner) {
    if (isa<WgmmaOp, scf::ForOp, scf::IfOp>(inner))
      for (Value result : inner->getResults())
        if (chains.contains(result))
          written.insert(chains.leader(result));
  });
  return written;
}

Value Placer::loadHere(Value value) {
  if (chains.isUnderWay(value))
    wait(0);
  return TensorLoadOp::create(b, value.getLoc(), value.getType(), begin.getLanes(),
                              b.getI32IntegerAttr(tileOf(chains.leader(value))));
}

Value Placer::load(Value value, Operation *user) {
  for (Value known : loaded.lookup(value))
    if (known.getParentBlock()->findAncestorOpInBlock(*user))
      return known;
  OpBuilder::InsertionGuard guard(b);
  if (holds(value)) {
    // Once, before the loops that do not define it.
    Operation *at = user;
    for (Operation *parent = user->getParentOp(); parent && parent != value.getParentRegion()->getParentOp();
         parent = parent->getParentOp())
      if (isa<LoopLikeOpInterface>(parent))
        at = parent;
    b.setInsertionPoint(at);
  } else {
    b.setInsertionPointAfterValue(value);
  }
  Value result = loadHere(value);
  loaded[value].push_back(result);
  return result;
}

void Placer::hold(Value value, Value chain, Operation *user) {
  if (chains.contains(value) && chains.leader(value) == chain && contents.lookup(chain) == value)
    return;
  Value registers = chains.contains(value) ? load(value, user) : value;
  b.setInsertionPoint(user);
  TensorStoreOp::create(b, user->getLoc(), registers, begin.getLanes(), b.getI32IntegerAttr(tileOf(chain)));
  contents[chain] = value;
}

void Placer::loadOperands(Operation *op, llvm::function_ref<bool(OpOperand &)> which) {
  for (OpOperand &operand : op->getOpOperands())
    if (chains.contains(operand.get()) && which(operand))
      operand.set(load(operand.get(), op));
}

/// The number of the tile of a product's operand a: that of the value where another product has it, or of the operand in
/// the same place of another block, which is needed before or behind it.
int Placer::tileOfOperand(WgmmaOp product, Value chain) {
  Value a = product.getA();
  if (auto known = tiles.find(a); known != tiles.end())
    return known->second;
  int before = 0;
  for (Operation *op = product->getPrevNode(); op; op = op->getPrevNode())
    if (auto other = dyn_cast<WgmmaOp>(op))
      before += chains.leader(other.getResult()) == chain && isa<RankedTensorType>(other.getA().getType());
  auto [tile, isNew] = operandTiles.insert(
      {{chain.getAsOpaquePointer(), const_cast<void *>(a.getType().getAsOpaquePointer()), before}, tileCount});
  tileCount += isNew;
  return tiles[a] = tile->second;
}

/// Stores operand a of a product, unless its tile holds it.
void Placer::storeOperand(WgmmaOp product, IntegerAttr column) {
  Value &held = operands[column.getInt()];
  if (held == product.getA())
    return;
  held = product.getA();
  TensorStoreOp::create(b, product.getLoc(), held, begin.getLanes(), column);
}

void Placer::place(WgmmaOp product) {
  Value chain = chains.leader(product.getResult());
  const bool zero = product.startsFromZero();
  loadOperands(product, [](OpOperand &operand) { return operand.getOperandNumber() == 0; });
  if (!zero)
    hold(product.getAcc(), chain, product);
  b.setInsertionPoint(product);
  Value a = isa<SharedType>(product.getA().getType()) ? product.getA() : Value();
  IntegerAttr from;
  TypeAttr stored;
  if (!a) {
    from = b.getI32IntegerAttr(tileOfOperand(product, chain));
    stored = TypeAttr::get(product.getA().getType());
    storeOperand(product, from);
  }
  TensorProductOp::create(b, product.getLoc(), product.getB(), begin.getArea(), begin.getSlots(), a,
                          b.getI32IntegerAttr(tileOf(chain)), from, stored,
                          TypeAttr::get(product.getResult().getType()), product.getShapeAttr(),
                          zero ? b.getUnitAttr() : UnitAttr());
  contents[chain] = product.getResult();
  placed.push_back(product);
}

void Placer::place(WgmmaWaitOp op) {
  b.setInsertionPoint(op);
  wait(std::min<int>(op.getPending(), mostUnderWay - 1));
  for (auto [value, result] : llvm::zip_equal(op.getValues(), op.getResults())) {
    if (!chains.contains(value))
      result.replaceAllUsesWith(value);
    else if (holds(value))
      contents[chains.leader(value)] = result;
    else
      loaded[result].push_back(load(value, op));
  }
  placed.push_back(op);
}

void Placer::place(scf::ForOp loop) {
  for (auto [init, argument] : llvm::zip_equal(loop.getInitArgs(), loop.getRegionIterArgs()))
    if (chains.contains(argument))
      hold(init, chains.leader(argument), loop);
  loadOperands(loop, [&](OpOperand &operand) {
    BlockArgument argument = loop.getTiedLoopRegionIterArg(&operand);
    return !argument || !chains.contains(argument);
  });
  llvm::SmallDenseSet<Value> written = writtenBy(loop);
  auto forget = [&] {
    for (Value chain : written)
      contents[chain] = Value();
  };
  forget();
  for (Value argument : loop.getRegionIterArgs())
    if (chains.contains(argument))
      contents[chains.leader(argument)] = argument;
  walk(*loop.getBody());
  forget();
  for (Value result : loop.getResults())
    if (chains.contains(result))
      contents[chains.leader(result)] = result;
}

void Placer::place(scf::IfOp branch) {
  loadOperands(branch, [](OpOperand &) { return true; });
  llvm::SmallDenseSet<Value> written = writtenBy(branch);
  Contents before = contents;
  walk(*branch.thenBlock());
  if (branch.elseBlock()) {
    contents = before;
    walk(*branch.elseBlock());
  }
  contents = std::move(before);
  for (Value chain : written)
    contents[chain] = Value();
  for (Value result : branch.getResults())
    if (chains.contains(result))
      contents[chains.leader(result)] = result;
}

/// Sums that leave a block go to a result that is of their chain as they are.
void Placer::placeOthers(Operation *op) {
  auto yield = dyn_cast<scf::YieldOp>(op);
  auto resultOf = [&](OpOperand &operand) -> Value {
    return yield && isa<scf::ForOp, scf::IfOp>(op->getParentOp())
               ? op->getParentOp()->getResult(operand.getOperandNumber())
               : Value();
  };
  if (yield)
    for (OpOperand &operand : op->getOpOperands())
      if (Value result = resultOf(operand); result && chains.contains(result))
        hold(operand.get(), chains.leader(result), op);
  loadOperands(op, [&](OpOperand &operand) {
    Value result = resultOf(operand);
    return !result || !chains.contains(result);
  });
  llvm::SmallDenseSet<Value> written = writtenBy(op);
  for (Region &region : op->getRegions())
    for (Block &block : region) {
      for (Value chain : written)
        contents[chain] = Value();
      walk(block);
    }
  for (Value chain : written)
    contents[chain] = Value();
}

void Placer::walk(Block &block) {
  // Operands of other blocks, and of other iterations, share tiles.
  const bool mayStore = block.walk([](WgmmaOp) { return WalkResult::interrupt(); }).wasInterrupted();
  if (mayStore)
    operands.clear();
  for (Operation &op : llvm::make_early_inc_range(block)) {
    if (auto product = dyn_cast<WgmmaOp>(op))
      place(product);
    else if (auto wait = dyn_cast<WgmmaWaitOp>(op))
      place(wait);
    else if (auto loop = dyn_cast<scf::ForOp>(op))
      place(loop);
    else if (auto branch = dyn_cast<scf::IfOp>(op))
      place(branch);
    else if (!isa<ProducerOp>(op))
      placeOthers(&op);
  }
  if (mayStore)
    operands.clear();
}

/// What is left of the values of chains is handed on, and read by nobody: zero stands for it until it is gone.
void Placer::eraseProducts() {
  llvm::DenseMap<Type, Value> zeros;
  auto zeroOf = [&](Type type) {
    Value &zero = zeros[type];
    if (!zero) {
      b.setInsertionPointAfter(begin);
      zero = arith::ConstantOp::create(b, kernel.getLoc(), b.getZeroAttr(type));
    }
    return zero;
  };
  kernel.walk([&](Operation *op) {
    if (!isa<WgmmaOp, WgmmaWaitOp, scf::ForOp, scf::IfOp>(op))
      return;
    for (Value result : op->getResults())
      if (chains.contains(result))
        result.replaceAllUsesWith(zeroOf(result.getType()));
    if (auto branch = dyn_cast<scf::IfOp>(op))
      for (OpResult result : branch.getResults())
        if (chains.contains(result))
          for (Region *region : {&branch.getThenRegion(), &branch.getElseRegion()})
            region->front().getTerminator()->setOperand(result.getResultNumber(), zeroOf(result.getType()));
    if (auto loop = dyn_cast<scf::ForOp>(op))
      for (auto [index, argument] : llvm::enumerate(loop.getRegionIterArgs()))
        if (chains.contains(argument)) {
          Value zero = zeroOf(argument.getType());
          argument.replaceAllUsesWith(zero);
          loop.getInitArgsMutable()[index].set(zero);
          (*loop.getYieldedValuesMutable())[index].set(zero);
        }
  });
  for (Operation *op : placed)
    op->erase();
  removeUnusedOfConsumers(kernel);
}

/// Sums that are loaded, multiplied and stored where they were need not be in registers all at once.
static void scaleInPlace(func::FuncOp kernel) {
  SmallVector<TensorStoreOp> stores;
  kernel.walk([&](TensorStoreOp store) { stores.push_back(store); });
  for (TensorStoreOp store : stores) {
    auto product = store.getValue().getDefiningOp<arith::MulFOp>();
    if (!product || !product->hasOneUse() || product->getBlock() != store->getBlock())
      continue;
    for (unsigned index : {0, 1}) {
      auto load = product->getOperand(index).getDefiningOp<TensorLoadOp>();
      if (!load || !load->hasOneUse() || load.getColumn() != store.getColumn() ||
          load->getBlock() != store->getBlock() || writesBetween(load, store, store.getColumn()))
        continue;
      OpBuilder b(store);
      TensorScaleOp::create(b, store.getLoc(), product->getOperand(1 - index), store.getLanes(), store.getColumnAttr());
      store->erase();
      product->erase();
      load->erase();
      break;
    }
  }
}

void TensorMemory::runOnOperation() {
  func::FuncOp kernel = getOperation();
  auto begins = kernel.getOps<TensorBeginOp>();
  if (begins.empty())
    return;
  TensorBeginOp begin = *begins.begin();
  Placer(kernel, begin).run();
  scaleInPlace(kernel);
  awaitBeforeStores(kernel.getBody().front(), begin);
  boundUnderWay(kernel.getBody().front(), begin);
  insertReady(kernel.getBody().front());
  boundLead(kernel.getBody().front());
  ColumnPlaces places(kernel);
  if (places.fit()) {
    places.set(begin);
    places.keepOthersOff();
    return splitResults(kernel);
  }
  if (mark)
    kernel->setAttr(lacksColumnsAttrName, UnitAttr::get(kernel.getContext()));
  else {
    places.report();
    signalPassFailure();
  }
}

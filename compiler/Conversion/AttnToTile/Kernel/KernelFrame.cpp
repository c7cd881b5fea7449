// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See KernelFrame.h. A kernel that asks for an input x : [B, H, N, 64], f16, for an output of that type and for the size
// N, in this order, and ends as {"cdiv(N, 64)", "H", "B"}, is
//
//   func.func @rows(%x: !tile.ptr<f16>, %xB: i64, %xH: i64, %xN: i64,      address, and strides but the last, of x
//                   %y: !tile.ptr<f16>, %yB: i64, %yH: i64, %yN: i64,      and of the output
//                   %n: i32) attributes {tile.kernel, ...}                 sizes
//   %y = attn.launch @rows(%x) grid ["cdiv(N, 64)", "H", "B"] {sizes = ["N"]} : (x's type) -> x's type
//
// Parameters are made in the order in which they are asked for; `finish` sorts them as above.
#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

using namespace mlir;

namespace weft {

bool isAligned(Value tensor) {
  if (auto argument = dyn_cast<BlockArgument>(tensor)) {
    auto function = dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp());
    return function && function.getArgAttr(argument.getArgNumber(), attn::alignedAttrName);
  }
  // A launch's result is fresh and contiguous: its strides are multiples of its last size.
  auto type = cast<attn::WholeTensorType>(tensor.getType());
  if (type.getRank() < 2)
    return true;
  std::optional<int64_t> last = type.staticDim(type.getRank() - 1);
  int64_t bytes = std::max(8u, type.getElementType().getIntOrFloatBitWidth()) / 8;
  return last && *last * bytes % 16 == 0;
}

/// The product of an integer and sizes that are none.
static std::string productOf(int64_t factor, ArrayRef<StringRef> sizes) {
  std::string product = factor == 1 && !sizes.empty() ? "" : std::to_string(factor);
  for (StringRef size : sizes)
    product += (product.empty() ? "(" : " * (") + size.str() + ")";
  return product;
}

/// The integers among a tensor's sizes multiplied, and the others.
static std::pair<int64_t, SmallVector<StringRef>> factorsOf(attn::WholeTensorType type) {
  int64_t known = 1;
  SmallVector<StringRef> others;
  for (int64_t axis = 0; axis < type.getRank(); ++axis)
    if (std::optional<int64_t> size = type.staticDim(axis))
      known *= *size;
    else
      others.push_back(type.dim(axis));
  return {known, others};
}

std::string blocksOf(attn::WholeTensorType type, int64_t each) {
  auto [known, others] = factorsOf(type);
  if (others.empty())
    return std::to_string(llvm::divideCeil(known, each));
  return known % each == 0 ? productOf(known / each, others)
                           : "cdiv(" + productOf(known, others) + ", " + std::to_string(each) + ")";
}

void hoistLoads(scf::ForOp loop) {
  // In the order of the loop: what an op is computed from has been moved before it.
  for (Operation &op : llvm::make_early_inc_range(loop.getBody()->without_terminator())) {
    bool movable = isa<tile::LoadOp>(op) || (isMemoryEffectFree(&op) && op.getNumRegions() == 0);
    bool fixed = llvm::all_of(op.getOperands(), [&](Value value) { return loop.isDefinedOutsideOfLoop(value); });
    if (movable && fixed)
      op.moveBefore(loop);
  }
}

std::string freeName(ModuleOp module, StringRef name) {
  std::string unique = name.str();
  for (int i = 2; module.lookupSymbol(unique); ++i)
    unique = (name + "_" + Twine(i)).str();
  return unique;
}

static func::FuncOp createKernel(Operation *anchor, StringRef name) {
  auto module = anchor->getParentOfType<ModuleOp>();
  OpBuilder b(anchor->getContext());
  b.setInsertionPointToEnd(module.getBody());
  auto kernel = func::FuncOp::create(b, anchor->getLoc(), freeName(module, name), b.getFunctionType({}, {}));
  kernel.addEntryBlock();
  return kernel;
}

KernelFrame::KernelFrame(Operation *anchor, StringRef name)
    : b(anchor->getLoc(), anchor->getContext()), anchor(anchor), kind(name), kernel(createKernel(anchor, name)),
      body(&kernel.front()) {
  b.setInsertionPointToEnd(body);
}

TensorParameter KernelFrame::parameter(attn::WholeTensorType type, bool aligned) {
  TensorParameter made{type, {}, {}, aligned};
  made.pointer = body->addArgument(tile::PointerType::get(type.getElementType()), b.getLoc());
  for (int64_t axis = 0; axis + 1 < type.getRank(); ++axis)
    made.strides.push_back(body->addArgument(b.getI64Type(), b.getLoc()));
  return made;
}

TensorParameter KernelFrame::input(Value tensor) {
  auto [it, inserted] = inputs.try_emplace(tensor);
  if (inserted)
    it->second = parameter(cast<attn::WholeTensorType>(tensor.getType()), isAligned(tensor));
  return it->second;
}

TensorParameter KernelFrame::output(attn::WholeTensorType type, bool zeroed) {
  if (zeroed)
    zeroedOutputs.push_back(outputs.size());
  std::optional<int64_t> last = type.getRank() ? type.staticDim(type.getRank() - 1) : std::nullopt;
  int64_t bytes = std::max(8u, type.getElementType().getIntOrFloatBitWidth()) / 8;
  outputs.push_back(parameter(type, type.getRank() < 2 || (last && *last * bytes % 16 == 0)));
  return outputs.back();
}

Value KernelFrame::size(StringRef expression) {
  int64_t constant;
  if (!expression.getAsInteger(10, constant)) {
    OpBuilder::InsertionGuard guard(b);
    return b.i32(constant);
  }
  auto [it, inserted] = sizes.try_emplace(b.getStringAttr(expression));
  if (inserted)
    it->second = body->addArgument(b.getI32Type(), b.getLoc());
  return it->second;
}

Value KernelFrame::once(Value value, llvm::function_ref<Value()> compute) {
  if (Value found = known.lookup(value))
    return found;
  OpBuilder::InsertionGuard guard(b);
  if (b.getInsertionBlock() != body)
    b.setInsertionPoint(body->findAncestorOpInBlock(*b.getInsertionBlock()->getParentOp()));
  return known[value] = compute();
}

Value KernelFrame::atEntry(llvm::function_ref<Value()> compute) {
  OpBuilder::InsertionGuard guard(b);
  b.setInsertionPointToStart(body);
  return compute();
}

KernelTiling KernelFrame::tiling(const KernelTilings &tilings) {
  auto program = anchor->getParentOfType<FunctionOpInterface>();
  if (std::optional<KernelTiling> found = nextTiling(program, anchor->getLoc(), kind, tilings))
    return *found;
  kernel->setAttr(refusedAttrName, b.getUnitAttr());
  return tilings.usual;
}

void KernelFrame::refuse(Value value) {
  Operation *made = value.getDefiningOp();
  InFlightDiagnostic error = emitError(value.getLoc(), "expected a value that is stored, or computed row by row or "
                                                       "element by element, but got ");
  error << (made ? "the result of '" + made->getName().getStringRef() + "'" : Twine("an argument")).str() << ", "
        << value.getType() << ", in the kernel '" << kernel.getName() << "'";
  kernel->setAttr(refusedAttrName, b.getUnitAttr());
}

/// The promise that a tensor's address, and its strides, are multiples of 16 bytes.
static void promiseAlignment(func::FuncOp kernel, unsigned first, const TensorParameter &tensor) {
  OpBuilder b(kernel.getContext());
  int64_t elementBytes = std::max(8u, tensor.type.getElementType().getIntOrFloatBitWidth()) / 8;
  if (!tensor.aligned)
    return;
  kernel.setArgAttr(first, tile::divisibilityAttrName, b.getI32IntegerAttr(16));
  for (unsigned i = 0; i < tensor.strides.size(); ++i)
    kernel.setArgAttr(first + 1 + i, tile::divisibilityAttrName, b.getI32IntegerAttr(16 / elementBytes));
}

SmallVector<Value> KernelFrame::finish(const KernelShape &shape) {
  func::ReturnOp::create(b);
  // The parameters were made in the order of their discovery; the launch passes tensors, then sizes.
  SmallVector<TensorParameter> tensors;
  SmallVector<Value> operands, order;
  for (auto &[value, parameter] : inputs) {
    operands.push_back(value);
    tensors.push_back(parameter);
  }
  tensors.append(outputs.begin(), outputs.end());
  SmallVector<unsigned> firsts;
  for (const TensorParameter &tensor : tensors) {
    firsts.push_back(order.size());
    order.push_back(tensor.pointer);
    order.append(tensor.strides.begin(), tensor.strides.end());
  }
  SmallVector<Attribute> sizeNames;
  for (auto &[name, value] : sizes) {
    sizeNames.push_back(name);
    order.push_back(value);
  }
  unsigned count = order.size();
  SmallVector<Type> types;
  for (Value value : order) {
    types.push_back(value.getType());
    Value final = body->addArgument(value.getType(), value.getLoc());
    value.replaceAllUsesWith(final);
  }
  body->eraseArguments(0, count);
  kernel.setFunctionType(b.getFunctionType(types, {}));
  for (auto [first, tensor] : llvm::zip(firsts, tensors))
    promiseAlignment(kernel, first, tensor);
  kernel->setAttr(tile::kernelAttrName, b.getUnitAttr());
  kernel->setAttr(tile::ordersAccessesAttrName, b.getUnitAttr());
  kernel->setAttr(tile::scheduleAttrName,
                  tile::ScheduleAttr::get(b.getContext(), shape.warps, shape.stages, shape.cluster, shape.persistent));

  if (shape.shares)
    kernel->setAttr(attn::sharesLaunchAttrName, b.getUnitAttr());

  std::string cluster = std::to_string(shape.cluster), programs = shape.grid[0];
  if (shape.cluster > 1)
    programs = "cdiv(" + programs + ", " + cluster + ") * " + cluster;
  b.setInsertionPoint(anchor);
  SmallVector<Type> results;
  for (const TensorParameter &tensor : outputs)
    results.push_back(tensor.type);
  auto launch = attn::LaunchOp::create(
      b, results, kernel.getName(), operands, b.getStrArrayAttr({programs, shape.grid[1], shape.grid[2]}),
      b.getArrayAttr(sizeNames), b.getF64ArrayAttr({}), b.getDenseI64ArrayAttr(zeroedOutputs));
  return SmallVector<Value>(launch.getResults());
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Tensor maps, copies of boxes, and the barriers in shared memory at which they arrive; boxes that are stored, and their
// groups (PTX ISA 9.7.9.25.4.3, 9.7.9.27, 9.7.13.15).
//
// A map becomes a parameter behind the kernel's own. How the runtime makes it, from the values of the others, is said in
// `warp.tensor_maps`, one line for each map, which becomes a comment in the PTX: see docs/LibraryFormat.md. Behind them a
// persistent kernel has its programs' grid, said in the same way. One thread of the block makes barriers, expects bytes
// and starts copies; all wait.

#include "compiler/Conversion/WarpToLLVM/Emitter.h"
#include "compiler/Support/Remarks.h"
#include "dialects/Tile/IR/TileOps.h"
#include "dialects/Warp/IR/WarpOps.h"
#include "dialects/Warp/Transforms/Copies/IndexSums.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace weft::warp;

namespace weft {
namespace {

constexpr int64_t mapBytes = 128, mapAlignment = 64, barrierBytes = 8;

int64_t bytesOf(Type type) {
  return isa<LLVM::LLVMPointerType>(type) ? 8 : llvm::divideCeil(type.getIntOrFloatBitWidth(), 8);
}

/// Where each parameter lies, as in a C struct, and where the next one would begin at the least.
SmallVector<int64_t> offsetsOf(ArrayRef<Type> parameters) {
  SmallVector<int64_t> offsets;
  int64_t end = 0;
  for (Type type : parameters) {
    bool isMap = isa<LLVM::LLVMPointerType>(type) && cast<LLVM::LLVMPointerType>(type).getAddressSpace() == 0;
    offsets.push_back(llvm::alignTo(end, isMap ? mapAlignment : bytesOf(type)));
    end = offsets.back() + (isMap ? mapBytes : bytesOf(type));
  }
  offsets.push_back(end);
  return offsets;
}

/// "2*i8@40*i4@12+64": a sum of products of numbers and of parameters by their bytes and offsets.
std::string textOf(const IndexSum &sum, ArrayRef<int64_t> offsets) {
  std::string text;
  for (const auto &[factors, coefficient] : sum.terms) {
    text += (text.empty() ? "" : "+") + std::to_string(coefficient);
    for (Value factor : factors) {
      unsigned number = cast<BlockArgument>(factor).getArgNumber();
      text += llvm::formatv("*i{0}@{1}", bytesOf(registerType(factor.getType())), offsets[number]).str();
    }
  }
  return text.empty() ? "0" : text;
}

/// What maps call a type; those of 8 bits, and integers, are copied as they are.
StringRef nameOf(Type element) {
  if (element.isBF16() || element.isF16())
    return element.isBF16() ? "bf16" : "f16";
  if (element.isF32() || element.isF64())
    return element.isF32() ? "f32" : "f64";
  switch (element.isIntOrFloat() ? element.getIntOrFloatBitWidth() : 0) {
  case 8:
    return "u8";
  case 16:
    return "u16";
  case 32:
    return "s32";
  case 64:
    return "s64";
  default:
    return "";
  }
}

/// One more parameter, behind the others.
Value addParameter(LLVM::LLVMFuncOp function, Type type, DictionaryAttr attributes, Location loc) {
  SmallVector<DictionaryAttr> all;
  for (unsigned i = 0; i < function.getNumArguments(); ++i)
    all.push_back(function.getArgAttrDict(i));
  all.push_back(attributes);
  SmallVector<Type> types(function.getArgumentTypes());
  types.push_back(type);
  function->removeAttr(function.getArgAttrsAttrName());
  function.setFunctionType(LLVM::LLVMFunctionType::get(function.getFunctionType().getReturnType(), types));
  Value added = function.getBody().front().addArgument(type, loc);
  function.setAllArgAttrs(all);
  return added;
}

LogicalResult lowerTensorMap(TensorMapOp op, Emitter &e) {
  Type element = cast<tile::PointerType>(op.getBase().getType()).getPointee();
  if (nameOf(element).empty())
    return op.emitOpError("has no map of elements of ") << element;
  LLVM::LLVMFuncOp function = e.function();
  SmallVector<int64_t> offsets = offsetsOf(function.getArgumentTypes());
  IndexForms forms{scf::ForOp()};
  int64_t bytes = element.getIntOrFloatBitWidth() / 8;
  std::optional<IndexForm> base = forms.of(op.getBase());
  bool known = base && base->base && base->offset.isOfLaunch();
  auto list = [&](ValueRange values, int64_t scale) {
    std::string text;
    for (Value value : values) {
      IndexSum sum = forms.sumOf(value) * IndexSum(scale);
      known &= sum.isOfLaunch();
      text += (text.empty() ? "" : ",") + (known ? textOf(sum, offsets) : std::string());
    }
    return text.empty() ? std::string("-") : text;
  };
  std::string sizes = list(op.getSizes(), 1), strides = list(op.getStrides(), bytes);
  if (!known)
    return op.emitOpError("expected a base, sizes and strides that are sums of products of the kernel's arguments");
  std::string box = llvm::join(llvm::map_range(op.getBox(), [](int32_t size) { return std::to_string(size); }), ",");
  int64_t at = llvm::alignTo(offsets.back(), mapAlignment);
  std::string line =
      llvm::formatv("{0} at={1} type={2} swizzle={3} box={4} base={5} sizes={6} strides={7}", function.getName(), at,
                    nameOf(element), op.getVector() ? 0 : op.getBox().front() * bytes, box,
                    textOf(IndexSum(base->base) + base->offset * IndexSum(bytes), offsets), sizes, strides)
          .str();
  SmallVector<Attribute> lines;
  if (auto before = function->getAttrOfType<ArrayAttr>(tensorMapsAttrName))
    llvm::append_range(lines, before);
  lines.push_back(e.b.getStringAttr(line));
  function->setAttr(tensorMapsAttrName, e.b.getArrayAttr(lines));
  auto type = LLVM::LLVMArrayType::get(e.b.getI8Type(), mapBytes);
  auto attributes = e.b.getDictionaryAttr(
      {e.b.getNamedAttr(LLVM::LLVMDialect::getByValAttrName(), TypeAttr::get(type)),
       e.b.getNamedAttr(LLVM::LLVMDialect::getAlignAttrName(), e.b.getI64IntegerAttr(mapAlignment)),
       e.b.getNamedAttr(NVVM::NVVMDialect::getGridConstantAttrName(), e.b.getUnitAttr())});
  e.bind(op.getMap(), addParameter(function, registerType(op.getMap().getType()), attributes, op.getLoc()));
  return success();
}

/// The grid's extents are parameters behind all others.
LogicalResult lowerPrograms(ProgramsOp op, Emitter &e) {
  LLVM::LLVMFuncOp function = e.function();
  const int64_t at = llvm::alignTo(offsetsOf(function.getArgumentTypes()).back(), bytesOf(e.b.getI32Type()));
  function->setAttr(programsAttrName, e.b.getI64IntegerAttr(at));
  for (Value extent : op.getResults())
    e.bind(extent, addParameter(function, e.b.getI32Type(), e.b.getDictionaryAttr({}), op.getLoc()));
  return success();
}

/// Whether a thread is the one that acts for the block where an op stands: the first, or the first of the producer's.
Value isFirst(Operation *op, Emitter &e) {
  Value thread = e.thread();
  const int64_t first = op->getParentOfType<ProducerOp>() ? int64_t(e.target.warpSize) * e.warps : 0;
  return e.atEntry(
      [&]() -> Value { return LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::eq, thread, e.i32(first)); });
}

/// The number in the cluster that differs from this block's in the bits of `distance`.
Value blockAt(Emitter &e, int64_t distance) {
  return e.atEntry([&]() -> Value {
    return LLVM::XOrOp::create(e.b, e.loc, NVVM::ClusterId::create(e.b, e.loc, e.b.getI32Type()), e.i32(distance));
  });
}

/// Whether this block makes a copy of its cluster, and the blocks that get it: each for itself where they differ.
SmallVector<Value, 2> whoCopies(BoxCopyOp op, int64_t by, Emitter &e) {
  Value rank;
  Value isBy = e.atEntry([&]() -> Value {
    rank = NVVM::ClusterId::create(e.b, e.loc, e.b.getI32Type());
    return LLVM::ICmpOp::create(e.b, e.loc, LLVM::ICmpPredicate::eq, rank, e.i32(by));
  });
  Value all = e.constant(e.b.getI16IntegerAttr(int16_t((1 << e.cluster) - 1)));
  if (!op.getWhere())
    return {isBy, all};
  Value same = e.scalar(op.getWhere());
  Value own =
      LLVM::TruncOp::create(e.b, e.loc, e.b.getI16Type(), LLVM::ShlOp::create(e.b, e.loc, e.i32(1), rank).getResult());
  Value differs = LLVM::XOrOp::create(e.b, e.loc, same, e.constant(e.b.getBoolAttr(true)));
  return {LLVM::OrOp::create(e.b, e.loc, differs, isBy), LLVM::SelectOp::create(e.b, e.loc, same, all, own)};
}

/// An address in shared memory as inline PTX takes it.
Value addressOf(Emitter &e, Value pointer) { return LLVM::PtrToIntOp::create(e.b, e.loc, e.b.getI32Type(), pointer); }

/// `codes` for each stage's barriers, by one thread: "$0" is an address, "$1" whether the thread acts.
LogicalResult lowerForEachStage(Operation *op, Value ring, ArrayRef<std::string> codes, Emitter &e) {
  auto alloc = ring.getDefiningOp<AllocOp>();
  if (!alloc)
    return op->emitOpError("expected a ring that 'warp.alloc' gives");
  SharedType type = alloc.getResult().getType();
  int64_t pitch = alloc.getPitch().value_or(type.getTileBytes());
  for (int64_t stage = 0; stage < type.getStages(); ++stage)
    for (auto [index, code] : llvm::enumerate(codes))
      e.inlineAsm(
          code, "r,b,~{memory}", {},
          {addressOf(e, e.offset(e.scalar(ring), stage * pitch + barrierBytes * int64_t(index))), isFirst(op, e)},
          /*sideEffects=*/true);
  return success();
}

LogicalResult lowerBoxCopy(BoxCopyOp op, Emitter &e) {
  if (op.getBy().value_or(0) >= e.cluster)
    return op.emitOpError("expected 'by' to be one of the cluster's ")
           << e.cluster << " blocks, but got " << *op.getBy();
  SmallVector<Value> operands{addressOf(e, e.offset(e.scalar(op.getShared()), int64_t(op.getOffset()))),
                              e.scalar(op.getMap()), addressOf(e, e.scalar(op.getBarrier()))};
  remarks::decided(remarks::access, op) << remark::reason("one thread copies a box of {0} dimensions to shared memory",
                                                          op.getCoordinates().size());
  std::string coordinates, constraints = "r,l,r";
  for (Value coordinate : op.getCoordinates()) {
    coordinates += (coordinates.empty() ? "$" : ", $") + std::to_string(operands.size());
    constraints += ",r";
    operands.push_back(e.scalar(coordinate));
  }
  std::string acts, all;
  if (std::optional<int64_t> by = op.getBy()) {
    acts = "@$" + std::to_string(operands.size()) + " ";
    all = ", $" + std::to_string(operands.size() + 1);
    constraints += ",b,h";
    llvm::append_range(operands, whoCopies(op, *by, e));
  }
  std::string code =
      llvm::formatv("{0}cp.async.bulk.tensor.{1}d.shared::cluster.global.tile.mbarrier::complete_tx::"
                    "bytes{2} [$0], [$1, {{{3}}], [$2]{4};",
                    acts, op.getCoordinates().size(), all.empty() ? "" : ".multicast::cluster", coordinates, all);
  e.inlineAsm(code, constraints + ",~{memory}", {}, operands, /*sideEffects=*/true);
  return success();
}

/// PTX's name of what a stored box does with what is there.
StringRef operationOf(tile::AtomicKind kind) {
  switch (kind) {
  case tile::AtomicKind::Add:
  case tile::AtomicKind::FAdd:
    return "add";
  case tile::AtomicKind::Max:
    return "max";
  case tile::AtomicKind::Min:
    return "min";
  default:
    return tile::stringifyAtomicKind(kind); // and, or, xor
  }
}

LogicalResult lowerBoxStore(BoxStoreOp op, Emitter &e) {
  std::optional<tile::AtomicKind> combine = op.getCombine();
  SmallVector<Value> operands{e.scalar(op.getMap()),
                              addressOf(e, e.offset(e.scalar(op.getShared()), int64_t(op.getOffset())))};
  remarks::decided(remarks::access, op) << remark::reason("one thread {0} a box of {1} dimensions from shared memory",
                                                          combine ? "combines" : "stores", op.getCoordinates().size());
  std::string coordinates, constraints = "l,r";
  for (Value coordinate : op.getCoordinates()) {
    coordinates += (coordinates.empty() ? "$" : ", $") + std::to_string(operands.size());
    constraints += ",r";
    operands.push_back(e.scalar(coordinate));
  }
  std::string code =
      llvm::formatv("cp.{0}async.bulk.tensor.{1}d.global.shared::cta{2}.tile.bulk_group [$0, {{{3}}], [$1];",
                    combine ? "reduce." : "", op.getCoordinates().size(),
                    combine ? "." + operationOf(*combine).str() : "", coordinates);
  e.inlineAsm(code, constraints + ",~{memory}", {}, operands, /*sideEffects=*/true);
  return success();
}

} // namespace

void addBoxLowerings(LoweringTable &table) {
  table.add<TensorMapOp>(lowerTensorMap);
  table.add<ProgramsOp>(lowerPrograms);
  table.add<BoxCopyOp>(lowerBoxCopy);
  table.add<BoxStoreOp>(lowerBoxStore);
  table.add<BoxCommitOp>([](BoxCommitOp, Emitter &e) {
    e.inlineAsm("cp.async.bulk.commit_group;", "~{memory}", {}, {}, /*sideEffects=*/true);
    return success();
  });
  table.add<BoxWaitOp>([](BoxWaitOp op, Emitter &e) {
    e.inlineAsm(op.getWritten() ? "cp.async.bulk.wait_group 0;" : "cp.async.bulk.wait_group.read 0;", "~{memory}", {},
                {}, /*sideEffects=*/true);
    return success();
  });
  table.add<MbarrierInitOp>([](MbarrierInitOp op, Emitter &e) {
    auto codes = llvm::map_to_vector(op.getArrivals(), [](int64_t arrivals) {
      return llvm::formatv("@$1 mbarrier.init.shared.b64 [$0], {0};", arrivals).str();
    });
    if (failed(lowerForEachStage(op, op.getRing(), codes, e)))
      return failure();
    // The producer copies to them with no barrier between.
    if (e.cluster > 1 || op->getParentOfType<ProducerOp>())
      e.inlineAsm("@$0 fence.mbarrier_init.release.cluster;", "b,~{memory}", {}, {isFirst(op, e)},
                  /*sideEffects=*/true);
    return success();
  });
  table.add<MbarrierInvalOp>([](MbarrierInvalOp op, Emitter &e) {
    int64_t count = cast<SharedType>(op.getRing().getType()).getTileBytes() / barrierBytes;
    return lowerForEachStage(op, op.getRing(), SmallVector<std::string>(count, "@$1 mbarrier.inval.shared.b64 [$0];"),
                             e);
  });
  table.add<MbarrierExpectOp>([](MbarrierExpectOp op, Emitter &e) {
    std::string code = llvm::formatv("mbarrier.arrive.expect_tx.shared.b64 _, [$0], {0};", op.getBytes()).str();
    Value address = addressOf(e, e.scalar(op.getBarrier()));
    e.inlineAsm(code, "r,~{memory}", {}, {address}, /*sideEffects=*/true);
    for (int64_t distance = 1; op.getOfCluster() && distance < e.cluster; ++distance)
      e.arriveAtBlock(address, blockAt(e, distance));
    return success();
  });
  table.add<IsFirstThreadOp>([](IsFirstThreadOp op, Emitter &e) {
    e.bind(op.getResult(), isFirst(op, e));
    return success();
  });
  table.add<MbarrierWaitOp>([](MbarrierWaitOp op, Emitter &e) {
    std::string code =
        llvm::formatv("{{ .reg .pred done; again: mbarrier.try_wait.parity{0}.shared.b64 done, [$0], $1; "
                      "@!done bra again; }",
                      op.getOfCluster() ? ".acquire.cluster" : "");
    e.inlineAsm(code, "r,r,~{memory}", {},
                {addressOf(e, e.offset(e.scalar(op.getBarrier()), barrierBytes * int64_t(op.getIndex()))),
                 e.scalar(op.getParity())},
                /*sideEffects=*/true);
    return success();
  });
}

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn-batch-launches: launches of kernels that do the same, and do not wait for one another, become one launch of that
// kernel, whose programs choose what they work on.
//
//   %a = attn.launch @f(%x) grid ["N", "1", "1"] ...     %a, %b = attn.launch @f_batch(%x, %y) grid ["(N) + (M)", ...]
//   %b = attn.launch @f_2(%y) grid ["M", "1", "1"]   ─▶  func.func @f_batch { %own = select program < N, x's, y's; f }
//
// Queries and keys that are treated alike, gradients of weights of one shape, and sums of their parts come so: half the
// launches, whose grids fill a GPU that one would not, and code as long as one's. (attn-merge-launches is for kernels
// that differ.)
#include "compiler/Conversion/AttnToTile/Kernel/TileBuilder.h"
#include "compiler/Conversion/AttnToTile/Launches/LaunchOrder.h"
#include "compiler/Conversion/AttnToTile/Passes.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/IRMapping.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ATTNBATCHLAUNCHES
#include "compiler/Conversion/AttnToTile/Passes.h.inc"

namespace {

/// The parameters of a batch's kernel: operands (those that all launches share once), results, then sizes.
struct Parameters {
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  SmallVector<Value> inputs;
  SmallVector<std::string> sizes;
  unsigned sizesAt = 0;
  SmallVector<SmallVector<unsigned>> places; ///< of each launch: for each parameter of its kernel, that of the batch's
};

/// What tells the launches' programs apart.
struct Programs {
  Value number;               ///< i32: of all programs
  Value own;                  ///< i32: a program's number in its launch
  SmallVector<Value> isLater; ///< for each launch but the first, i1: whether the program is of it or of a later one
};

} // namespace

static Parameters parametersOf(ArrayRef<attn::LaunchOp> launches) {
  attn::LaunchOp first = launches.front();
  func::FuncOp kernel = kernelOf(first);
  Parameters made;
  made.places.resize(launches.size());
  // Parameters [from, from + count) of the kernel become new ones, of one launch.
  auto add = [&](unsigned launch, unsigned from, int64_t count) {
    for (unsigned i = from; i < from + count; ++i) {
      made.places[launch].push_back(made.types.size());
      made.types.push_back(kernel.getArgumentTypes()[i]);
      DictionaryAttr promises = kernel.getArgAttrDict(i);
      made.attributes.push_back(promises ? promises : DictionaryAttr::get(kernel.getContext()));
    }
  };
  unsigned next = 0;
  for (auto [number, input] : llvm::enumerate(first.getInputs())) {
    int64_t count = parametersOf(cast<attn::WholeTensorType>(input.getType()));
    for (auto [i, launch] : llvm::enumerate(launches)) {
      Value own = attn::LaunchOp(launch).getInputs()[number];
      if (i > 0 && own == input) {
        for (unsigned place = next; place < next + count; ++place)
          made.places[i].push_back(made.places[0][place]);
        continue;
      }
      add(i, next, count);
      made.inputs.push_back(own);
    }
    next += count;
  }
  unsigned results = kernel.getNumArguments() - first.getSizes().size() - next;
  for (unsigned i = 0; i < launches.size(); ++i)
    add(i, next, results);
  made.sizesAt = made.types.size();
  auto placeOfSize = [&](StringRef expression) {
    auto *found = llvm::find(made.sizes, expression);
    unsigned index = found - made.sizes.begin();
    if (found == made.sizes.end()) {
      made.sizes.push_back(expression.str());
      made.types.push_back(IntegerType::get(kernel.getContext(), 32));
      made.attributes.push_back(DictionaryAttr::get(kernel.getContext()));
    }
    return made.sizesAt + index;
  };
  int64_t constant;
  for (auto [launch, places] : llvm::zip(launches, made.places)) {
    for (auto size : attn::LaunchOp(launch).getSizes().getAsRange<StringAttr>())
      places.push_back(placeOfSize(size.getValue()));
    for (auto extent : attn::LaunchOp(launch).getGrid().getAsRange<StringAttr>())
      if (extent.getValue().getAsInteger(10, constant))
        placeOfSize(extent.getValue());
  }
  return made;
}

/// Of one value for each launch, that of the launch whose program this is.
static Value ownOf(TileBuilder &b, const Programs &programs, ArrayRef<Value> values) {
  Value chosen = values.front();
  for (auto [value, isLater] : llvm::zip(values.drop_front(), programs.isLater))
    chosen = value == chosen ? chosen : b.select(isLater, value, chosen);
  return chosen;
}

/// For each launch, the value of axis `axis` of its grid.
static SmallVector<Value> extentsOf(TileBuilder &b, func::FuncOp batch, const Parameters &parameters,
                                    ArrayRef<attn::LaunchOp> launches, unsigned axis) {
  return llvm::map_to_vector(launches, [&](attn::LaunchOp launch) -> Value {
    StringRef extent = cast<StringAttr>(launch.getGrid()[axis]).getValue();
    int64_t constant;
    if (!extent.getAsInteger(10, constant))
      return b.i32(constant);
    return batch.getArgument(parameters.sizesAt + (llvm::find(parameters.sizes, extent) - parameters.sizes.begin()));
  });
}

static Programs programsOf(TileBuilder &b, ArrayRef<SmallVector<Value>> extents) {
  Programs programs;
  Value program = programs.number = b.programId(tile::Axis::X), begin = b.i32(0);
  SmallVector<Value> begins{begin};
  for (unsigned i = 0; i + 1 < extents[0].size(); ++i) {
    begin = b.add(begin, b.mul(b.mul(extents[0][i], extents[1][i]), extents[2][i]));
    begins.push_back(begin);
    programs.isLater.push_back(b.compareInt(arith::CmpIPredicate::sge, program, begin));
  }
  // It is never negative, which makes divisions of it cheaper.
  programs.own = b.max(b.sub(program, ownOf(b, programs, begins)), b.i32(0));
  return programs;
}

/// The coordinates of this program in its launch's grid.
static std::array<Value, 3> coordinatesOf(TileBuilder &b, const Programs &programs, Value columns, Value rows) {
  // A program runs only if all extents are at least 1.
  Value row = arith::DivUIOp::create(b, programs.own, columns), z = arith::DivUIOp::create(b, row, rows);
  return {b.sub(programs.own, b.mul(row, columns)), b.sub(row, b.mul(z, rows)), z};
}

static func::FuncOp createKernel(ArrayRef<attn::LaunchOp> launches, const Parameters &parameters) {
  func::FuncOp kernel = kernelOf(launches.front());
  auto module = kernel->getParentOfType<ModuleOp>();
  std::string name = (kernel.getName() + "_batch").str();
  for (int i = 2; module.lookupSymbol(name); ++i)
    name = (kernel.getName() + "_batch_" + Twine(i)).str();
  TileBuilder b(attn::LaunchOp(launches.back()).getLoc(), kernel.getContext());
  b.setInsertionPointAfter(kernel);
  auto batch = func::FuncOp::create(b, name, b.getFunctionType(parameters.types, {}));
  batch->setDiscardableAttrs(kernel->getDiscardableAttrDictionary());
  batch.addEntryBlock();
  batch.setAllArgAttrs(parameters.attributes);

  b.setInsertionPointToEnd(&batch.front());
  SmallVector<SmallVector<Value>> extents;
  for (unsigned axis : {0, 1, 2})
    extents.push_back(extentsOf(b, batch, parameters, launches, axis));
  Programs programs = programsOf(b, extents);
  auto grid = llvm::map_to_vector(extents, [&](ArrayRef<Value> each) { return ownOf(b, programs, each); });
  auto ids = coordinatesOf(b, programs, grid[0], grid[1]);
  IRMapping mapping;
  for (unsigned i = 0; i < kernel.getNumArguments(); ++i)
    mapping.map(kernel.getArgument(i),
                ownOf(b, programs, llvm::map_to_vector(parameters.places, [&](const auto &places) -> Value {
                        return batch.getArgument(places[i]);
                      })));
  for (Operation &op : kernel.front())
    b.clone(op, mapping);
  numberPrograms(batch.front(), ids, grid, programs.number.getDefiningOp());
  return batch;
}

/// Whether tensors are the same parameters of a kernel: their sizes may differ.
static bool areAlike(TypeRange some, TypeRange others) {
  return some.size() == others.size() && llvm::all_of_zip(some, others, [](Type one, Type other) {
           return parametersOf(cast<attn::WholeTensorType>(one)) == parametersOf(cast<attn::WholeTensorType>(other));
         });
}

/// Whether the kernels do the same, and the launches may run as one.
static bool canShareLaunch(attn::LaunchOp first, attn::LaunchOp second) {
  func::FuncOp kernels[2] = {kernelOf(first), kernelOf(second)};
  return kernels[0] && kernels[1] && first.getReals().empty() && second.getReals().empty() &&
         areAlike(first->getOperandTypes(), second->getOperandTypes()) &&
         areAlike(first->getResultTypes(), second->getResultTypes()) && first.getZeroed() == second.getZeroed() &&
         writesNothingWithoutBlocks(first) && writesNothingWithoutBlocks(second) && doTheSame(kernels[0], kernels[1]);
}

/// The launches after `first` that can be one with it, and it; moved next to one another.
static SmallVector<attn::LaunchOp> gather(attn::LaunchOp first, ArrayRef<attn::LaunchOp> later) {
  SmallVector<attn::LaunchOp> found{first};
  for (attn::LaunchOp launch : later) {
    auto waits = [&](attn::LaunchOp earlier) { return waitsFor(launch, earlier); };
    if (!canShareLaunch(first, launch) || llvm::any_of(found, waits))
      continue;
    found.push_back(launch);
    bool early = canAdvance(found[found.size() - 2], launch);
    bool late = !early && llvm::all_of(ArrayRef(found).drop_back(),
                                       [&](attn::LaunchOp earlier) { return canPostpone(earlier, launch); });
    if ((!early && !late) || gridOfAll(found).size() > longestGrid) {
      found.pop_back();
      continue;
    }
    if (early)
      launch->moveAfter(found[found.size() - 2]);
    else
      for (attn::LaunchOp earlier : ArrayRef(found).drop_back())
        earlier->moveBefore(launch);
  }
  return found;
}

namespace {
struct BatchLaunches : impl::AttnBatchLaunchesBase<BatchLaunches> {
  void runOnOperation() final {
    for (func::FuncOp program : programsOf(getOperation()))
      batchLaunches(program);
  }
  static void batchLaunches(func::FuncOp program) {
    auto launches = llvm::to_vector(program.front().getOps<attn::LaunchOp>());
    while (!launches.empty()) {
      SmallVector<attn::LaunchOp> together = gather(launches.front(), ArrayRef(launches).drop_front());
      llvm::erase_if(launches, [&](attn::LaunchOp launch) { return llvm::is_contained(together, launch); });
      if (together.size() == 1)
        continue;
      Parameters parameters = parametersOf(together);
      func::FuncOp kernel = createKernel(together, parameters);
      replaceLaunches(together, kernel.getName(), parameters.inputs, parameters.sizes);
    }
  }
};
} // namespace

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn-merge-launches: launches that do not wait for one another become one launch of a kernel that runs the one's
// programs or the other's.
//
//   %a = attn.launch @f(%x) grid ["A", "H", "B"]          %a, %b = attn.launch @f_g(%x, %y) grid ["(A)*(H)*(B) +
//   (C)*(D)*(E)", "1", "1"] %b = attn.launch @g(%y) grid ["C", "D", "E"]    ─▶    func.func @f_g { if program < A·H·B {
//   f } else { g } }
//
// A launch costs microseconds and a wait for the last program of the one before; small kernels (sums over tokens, taps'
// gradients, sums of parts) spend their time so. Kernels merge that run on as many warps and hold no matrix products: a
// program is given the registers and the shared memory of the larger, and those with products need them. Kernels that
// say that they share (`attn.shares_launch`) merge with one another whatever they hold.
#include "compiler/Conversion/AttnToTile/AttnToTile.h"
#include "compiler/Conversion/AttnToTile/KernelFrame.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {
namespace {

func::FuncOp kernelOf(attn::LaunchOp launch) {
  return launch->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(launch.getKernel());
}

tile::ScheduleAttr scheduleOf(func::FuncOp kernel) {
  return kernel->getAttrOfType<tile::ScheduleAttr>(tile::scheduleAttrName);
}

bool hasProducts(func::FuncOp kernel) {
  return kernel.walk([](tile::DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

/// Whether `later` uses, directly or through other ops of the block, what `earlier` makes.
bool waitsFor(Operation *later, Operation *earlier) {
  llvm::SetVector<Operation *> reached;
  reached.insert(later);
  for (size_t i = 0; i < reached.size(); ++i)
    for (Value operand : reached[i]->getOperands())
      if (Operation *made = operand.getDefiningOp()) {
        if (made == earlier)
          return true;
        reached.insert(made);
      }
  return false;
}

std::string productOf(ArrayAttr grid) {
  std::string product;
  for (auto extent : grid.getAsRange<StringAttr>())
    if (extent.getValue() != "1")
      product += (product.empty() ? "(" : " * (") + extent.getValue().str() + ")";
  return product.empty() ? "1" : product;
}

/// The grid of two launches as one: all programs of the first, then those of the second.
std::string gridOfBoth(attn::LaunchOp first, attn::LaunchOp second) {
  return productOf(first.getGrid()) + " + " + productOf(second.getGrid());
}

/// What a library's expressions may be long (docs/LibraryFormat.md), less what surrounds this one.
constexpr size_t longestGrid = 900;

/// Merges two launches, `first` before `second`, at the place of `second`.
class Merger {
public:
  Merger(attn::LaunchOp first, attn::LaunchOp second) : launches{first, second} {}
  attn::LaunchOp merge();

private:
  func::FuncOp createKernel();
  void inlinePrograms(func::FuncOp merged);
  /// The value of a size in the merged kernel.
  Value sizeOf(func::FuncOp merged, StringRef expression) {
    return merged.getArgument(sizesAt + (llvm::find(sizes, expression) - sizes.begin()));
  }

  attn::LaunchOp launches[2];
  SmallVector<std::string> sizes;
  unsigned sizesAt = 0;
  // For each parameter of the two kernels, that of the merged one.
  SmallVector<unsigned> places[2];
};

} // namespace

static int64_t parametersOf(attn::WholeTensorType type) { return std::max<int64_t>(1, type.getRank()); }

func::FuncOp Merger::createKernel() {
  OpBuilder b(launches[0].getContext());
  auto module = launches[0]->getParentOfType<ModuleOp>();
  func::FuncOp kernels[2] = {kernelOf(launches[0]), kernelOf(launches[1])};
  SmallVector<Type> types;
  SmallVector<DictionaryAttr> attributes;
  unsigned next[2] = {0, 0};
  places[0].resize(kernels[0].getNumArguments());
  places[1].resize(kernels[1].getNumArguments());
  auto take = [&](int which, int64_t count) {
    for (int64_t i = 0; i < count; ++i, ++next[which]) {
      places[which][next[which]] = types.size();
      types.push_back(kernels[which].getArgumentTypes()[next[which]]);
      DictionaryAttr promises = kernels[which].getArgAttrDict(next[which]);
      attributes.push_back(promises ? promises : b.getDictionaryAttr({}));
    }
  };
  // The launch passes operands first, then results, then sizes.
  for (int which : {0, 1})
    for (Value input : launches[which].getInputs())
      take(which, parametersOf(cast<attn::WholeTensorType>(input.getType())));
  for (int which : {0, 1})
    for (Value result : launches[which].getResults())
      take(which, parametersOf(cast<attn::WholeTensorType>(result.getType())));
  sizesAt = types.size();
  auto placeOfSize = [&](StringRef expression) {
    auto found = llvm::find(sizes, expression);
    if (found == sizes.end()) {
      sizes.push_back(expression.str());
      types.push_back(b.getI32Type());
      attributes.push_back(b.getDictionaryAttr({}));
      return types.size() - 1;
    }
    return sizesAt + static_cast<size_t>(found - sizes.begin());
  };
  for (int which : {0, 1}) {
    for (auto size : launches[which].getSizes().getAsRange<StringAttr>())
      places[which][next[which]++] = placeOfSize(size.getValue());
    for (auto extent : launches[which].getGrid().getAsRange<StringAttr>())
      placeOfSize(extent.getValue());
  }
  std::string name = (kernels[0].getName() + "_" + kernels[1].getName()).str();
  while (module.lookupSymbol(name))
    name += "_2";
  b.setInsertionPointAfter(kernels[1]);
  auto merged = func::FuncOp::create(b, launches[1].getLoc(), name, b.getFunctionType(types, {}));
  merged.addEntryBlock();
  merged.setAllArgAttrs(attributes);
  merged->setAttr(tile::kernelAttrName, b.getUnitAttr());
  int64_t stages = std::max(scheduleOf(kernels[0]).getStages(), scheduleOf(kernels[1]).getStages());
  merged->setAttr(tile::scheduleAttrName,
                  tile::ScheduleAttr::get(b.getContext(), scheduleOf(kernels[0]).getWarps(), stages));
  if (kernels[0]->hasAttr(attn::sharesLaunchAttrName))
    merged->setAttr(attn::sharesLaunchAttrName, b.getUnitAttr());
  return merged;
}

void Merger::inlinePrograms(func::FuncOp merged) {
  TileBuilder b(merged.getLoc(), merged.getContext());
  b.setInsertionPointToEnd(&merged.front());
  Value program = b.programId(tile::Axis::X);
  auto extents = [&](int which) {
    return llvm::map_to_vector(launches[which].getGrid().getAsRange<StringAttr>(),
                               [&](StringAttr e) { return sizeOf(merged, e.getValue()); });
  };
  SmallVector<Value> grids[2] = {extents(0), extents(1)};
  Value firstCount = b.mul(b.mul(grids[0][0], grids[0][1]), grids[0][2]);
  auto choice = scf::IfOp::create(b, b.less(program, firstCount), /*withElseRegion=*/true);
  func::ReturnOp::create(b);
  for (int which : {0, 1}) {
    b.setInsertionPointToStart(which == 0 ? choice.thenBlock() : choice.elseBlock());
    Value id = which == 0 ? program : b.sub(program, firstCount);
    // (All counts are at least 1 where a program runs, and ids are not negative: division as the machine has it.)
    Value row = arith::DivUIOp::create(b, id, grids[which][0]), x = b.sub(id, b.mul(row, grids[which][0]));
    Value z = arith::DivUIOp::create(b, row, grids[which][1]), y = b.sub(row, b.mul(z, grids[which][1]));
    Value ids[3] = {x, y, z};
    IRMapping mapping;
    func::FuncOp kernel = kernelOf(launches[which]);
    for (auto [argument, place] : llvm::zip(kernel.getArguments(), places[which]))
      mapping.map(argument, merged.getArgument(place));
    for (Operation &op : kernel.front().without_terminator())
      b.clone(op, mapping);
    Block *body = b.getInsertionBlock();
    body->walk([&](tile::ProgramIdOp programId) {
      programId.replaceAllUsesWith(ids[static_cast<int>(programId.getAxis())]);
      programId.erase();
    });
  }
}

attn::LaunchOp Merger::merge() {
  func::FuncOp merged = createKernel();
  inlinePrograms(merged);
  OpBuilder b(launches[1]);
  SmallVector<Value> inputs, results;
  SmallVector<Type> types;
  SmallVector<int64_t> zeroed;
  for (attn::LaunchOp launch : launches) {
    inputs.append(launch.getInputs().begin(), launch.getInputs().end());
    for (int64_t i : launch.getZeroed())
      zeroed.push_back(types.size() + i);
    types.append(launch.getResultTypes().begin(), launch.getResultTypes().end());
    results.append(launch.getResults().begin(), launch.getResults().end());
  }
  SmallVector<StringRef> sizeNames(sizes.begin(), sizes.end());
  std::string grid = gridOfBoth(launches[0], launches[1]);
  auto launch = attn::LaunchOp::create(b, launches[1].getLoc(), types, merged.getName(), inputs,
                                       b.getStrArrayAttr({grid, "1", "1"}), b.getStrArrayAttr(sizeNames),
                                       b.getF64ArrayAttr({}), b.getDenseI64ArrayAttr(zeroed));
  for (auto [from, to] : llvm::zip(results, launch.getResults()))
    from.replaceAllUsesWith(to);
  for (attn::LaunchOp old : {launches[1], launches[0]}) {
    func::FuncOp kernel = kernelOf(old);
    old.erase();
    kernel.erase();
  }
  return launch;
}

/// The symbols of a size.
static SmallVector<StringRef> symbolsOf(StringRef size) {
  SmallVector<StringRef> symbols;
  while (!size.empty()) {
    StringRef word = size.take_while([](char c) { return llvm::isAlnum(c) || c == '_'; });
    if (!word.empty() && !llvm::isDigit(word.front()) && word != "cdiv" && word != "min" && word != "max")
      symbols.push_back(word);
    size = size.drop_front(std::max<size_t>(word.size(), 1));
  }
  return symbols;
}

/// Whether a tensor has no elements where `symbol` is 0: one of its sizes is a multiple of it, or a number of its
/// parts.
static bool isEmptyWithout(attn::WholeTensorType type, StringRef symbol) {
  return llvm::any_of(type.getDims(), [&](StringAttr size) {
    return size.getValue().find_first_of("+-") == StringRef::npos && llvm::is_contained(symbolsOf(size), symbol);
  });
}

/// Whether one of a sum's terms is a positive number.
static bool isNeverZero(StringRef extent) {
  SmallVector<StringRef> terms;
  extent.split(terms, '+');
  return llvm::any_of(terms, [](StringRef term) {
    int64_t number;
    return !term.trim().getAsInteger(10, number) && number > 0;
  });
}

/// Whether a launch without blocks has results without elements. (What it would have written is zero else, which a
/// launch sees to that has no block at all, not one that has another's.)
static bool writesNothingWithoutBlocks(attn::LaunchOp launch) {
  return llvm::all_of(launch.getResultTypes(), [&](Type result) {
    return llvm::all_of(launch.getGrid().getAsRange<StringAttr>(), [&](StringAttr extent) {
      auto covers = [&](StringRef symbol) { return isEmptyWithout(cast<attn::WholeTensorType>(result), symbol); };
      if (isNeverZero(extent))
        return true;
      if (extent.getValue().contains('-'))
        return false;
      // A sum is 0 where all its terms are, a product where one factor is.
      bool isSum = extent.getValue().contains('+');
      SmallVector<StringRef> symbols = symbolsOf(extent);
      return symbols.empty() || (isSum ? llvm::any_of(symbols, covers) : llvm::all_of(symbols, covers));
    });
  });
}

/// Whether the two may share a kernel.
static bool canMerge(attn::LaunchOp first, attn::LaunchOp second) {
  func::FuncOp kernels[2] = {kernelOf(first), kernelOf(second)};
  if (!kernels[0] || !kernels[1] || !first.getReals().empty() || !second.getReals().empty())
    return false;
  if (scheduleOf(kernels[0]).getWarps() != scheduleOf(kernels[1]).getWarps())
    return false;
  if (gridOfBoth(first, second).size() > longestGrid)
    return false;
  auto shares = [](func::FuncOp kernel) { return kernel->hasAttr(attn::sharesLaunchAttrName); };
  bool fit = shares(kernels[0]) ? shares(kernels[1]) : !hasProducts(kernels[0]) && !hasProducts(kernels[1]);
  if (!writesNothingWithoutBlocks(first) || !writesNothingWithoutBlocks(second))
    return false;
  return fit && !waitsFor(second, first);
}

/// Whether `first` may be launched as late as `second`: nothing between them waits for it.
static bool canPostpone(attn::LaunchOp first, attn::LaunchOp second) {
  for (Operation *op = first->getNextNode(); op != second; op = op->getNextNode())
    if (waitsFor(op, first))
      return false;
  return true;
}

/// Whether `second` may be launched as early as `first`: it waits for nothing between them.
static bool canAdvance(attn::LaunchOp first, attn::LaunchOp second) {
  for (Operation *op = first->getNextNode(); op != second; op = op->getNextNode())
    if (waitsFor(second, op))
      return false;
  return true;
}

namespace {
struct MergeLaunches : PassWrapper<MergeLaunches, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(MergeLaunches)
  StringRef getArgument() const final { return "attn-merge-launches"; }
  StringRef getDescription() const final { return "launches that do not wait for one another become one"; }
  void getDependentDialects(DialectRegistry &registry) const final {
    registry.insert<tile::TileDialect, scf::SCFDialect, arith::ArithDialect>();
  }
  void runOnOperation() final {
    SmallVector<func::FuncOp> programs; // (Kernels come and go meanwhile.)
    for (auto function : getOperation().getOps<func::FuncOp>())
      if (function->hasAttr(attn::programAttrName))
        programs.push_back(function);
    for (func::FuncOp program : programs)
      while (mergeOne(program)) {
      }
  }
  /// Merges the first two launches of a program that can be; whether there were any.
  static bool mergeOne(func::FuncOp program) {
    auto launches = llvm::to_vector(program.front().getOps<attn::LaunchOp>());
    for (size_t i = 0; i < launches.size(); ++i)
      for (size_t j = i + 1; j < launches.size(); ++j)
        if (canMerge(launches[i], launches[j])) {
          bool early = canAdvance(launches[i], launches[j]);
          if (!early && !canPostpone(launches[i], launches[j]))
            continue;
          if (early)
            launches[j]->moveAfter(launches[i]);
          Merger(launches[i], launches[j]).merge();
          return true;
        }
    return false;
  }
};
} // namespace

std::unique_ptr<Pass> createMergeLaunchesPass() { return std::make_unique<MergeLaunches>(); }
void registerMergeLaunchesPass() { PassRegistration<MergeLaunches>(); }

} // namespace weft

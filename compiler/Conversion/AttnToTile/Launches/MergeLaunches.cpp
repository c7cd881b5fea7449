// Part of Weft. SPDX-License-Identifier: Apache-2.0
// attn-merge-launches: launches that do not wait for one another become one launch of a kernel that runs the one's
// programs or the other's.
//
//   %a = attn.launch @f(%x) grid ["A", "H", "B"]
//   %b = attn.launch @g(%y) grid ["C", "D", "E"]
//     ─▶
//   %a, %b = attn.launch @f_g(%x, %y) grid ["(A)*(H)*(B) + (C)*(D)*(E)", "1", "1"]
//   func.func @f_g { if program < A·H·B { f } else { g } }
//
// A launch costs microseconds and a wait for the last program of the one before; small kernels (sums over tokens, taps'
// gradients, sums of parts) spend their time so. Kernels merge that run on as many warps and hold no matrix products: a
// program is given the registers and the shared memory of the larger, and those with products need them. Kernels that
// say that they share (`attn.shares_launch`) merge with one another whatever they hold. One program that gives numbers
// alone, such as the last sum of a loss, goes along with any kernel, on as many warps as that has.
#include "compiler/Conversion/AttnToTile/Kernel/KernelFrame.h"
#include "compiler/Conversion/AttnToTile/Kernel/TileBuilder.h"
#include "compiler/Conversion/AttnToTile/Launches/LaunchOrder.h"
#include "compiler/Conversion/AttnToTile/Passes.h"
#include "compiler/Support/Remarks.h"
#include "dialects/Tile/IR/Schedule.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/Support/FormatVariadic.h"

using namespace mlir;

namespace weft {
#define GEN_PASS_DEF_ATTNMERGELAUNCHES
#include "compiler/Conversion/AttnToTile/Passes.h.inc"

namespace {

bool hasProducts(func::FuncOp kernel) {
  return kernel.walk([](tile::DotOp) { return WalkResult::interrupt(); }).wasInterrupted();
}

bool sharesLaunch(func::FuncOp kernel) { return kernel->hasAttr(attn::sharesLaunchAttrName); }

/// Whether a launch gives numbers alone, by one program: it goes along with any other.
bool givesNumbers(attn::LaunchOp launch) {
  auto isNumber = [](Type type) { return cast<attn::WholeTensorType>(type).getRank() == 0; };
  auto isOne = [](StringAttr extent) { return extent.getValue() == "1"; };
  return llvm::all_of(launch.getResultTypes(), isNumber) &&
         llvm::all_of(launch.getGrid().getAsRange<StringAttr>(), isOne) && !hasProducts(kernelOf(launch));
}

/// How many warps run the kernel of both launches: as many as each alone, numbers on any. Nothing where they differ.
std::optional<int64_t> warpsOfBoth(attn::LaunchOp first, attn::LaunchOp second) {
  int64_t warps[] = {tile::scheduleOf(kernelOf(first)).warps, tile::scheduleOf(kernelOf(second)).warps};
  if (warps[0] == warps[1] || givesNumbers(second))
    return warps[0];
  return givesNumbers(first) ? std::optional(warps[1]) : std::nullopt;
}

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

/// Both names, or where that is longer than a library takes, the first and that there are others.
static std::string nameOfBoth(StringRef first, StringRef second) {
  constexpr size_t longest = 128; // A manifest's names have at most 255 bytes, and a number may be appended.
  if (first.size() + 1 + second.size() <= longest)
    return (first + "_" + second).str();
  constexpr StringRef others = "_and_others";
  first.consume_back(others);
  return (first.take_front(longest - others.size()) + others).str();
}

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
  std::string name = freeName(module, nameOfBoth(kernels[0].getName(), kernels[1].getName()));
  b.setInsertionPointAfter(kernels[1]);
  auto merged = func::FuncOp::create(b, launches[1].getLoc(), name, b.getFunctionType(types, {}));
  merged.addEntryBlock();
  merged.setAllArgAttrs(attributes);
  merged->setAttr(tile::kernelAttrName, b.getUnitAttr());
  merged->setAttr(tile::ordersAccessesAttrName, b.getUnitAttr());
  int64_t warps = warpsOfBoth(launches[0], launches[1]).value();
  int64_t stages = std::max<int64_t>(tile::scheduleOf(kernels[0]).stages, tile::scheduleOf(kernels[1]).stages);
  merged->setAttr(tile::scheduleAttrName, tile::ScheduleAttr::get(b.getContext(), warps, stages));
  if (llvm::any_of(kernels, sharesLaunch))
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
    // A program runs only if all counts are at least 1, and ids are never negative: a plain division is right.
    Value row = arith::DivUIOp::create(b, id, grids[which][0]), x = b.sub(id, b.mul(row, grids[which][0]));
    Value z = arith::DivUIOp::create(b, row, grids[which][1]), y = b.sub(row, b.mul(z, grids[which][1]));
    Value ids[3] = {x, y, z};
    IRMapping mapping;
    func::FuncOp kernel = kernelOf(launches[which]);
    for (auto [argument, place] : llvm::zip(kernel.getArguments(), places[which]))
      mapping.map(argument, merged.getArgument(place));
    for (Operation &op : kernel.front().without_terminator())
      b.clone(op, mapping);
    numberPrograms(*b.getInsertionBlock(), ids, grids[which]);
  }
}

attn::LaunchOp Merger::merge() {
  func::FuncOp merged = createKernel();
  inlinePrograms(merged);
  SmallVector<Value> inputs;
  for (attn::LaunchOp launch : launches)
    inputs.append(launch.getInputs().begin(), launch.getInputs().end());
  return replaceLaunches(launches, merged.getName(), inputs, sizes);
}

/// Why the two may not share a kernel, as far as they do not wait for one another; nothing where they may.
static std::optional<std::string> hindranceOf(attn::LaunchOp first, attn::LaunchOp second) {
  func::FuncOp kernels[2] = {kernelOf(first), kernelOf(second)};
  if (!first.getReals().empty() || !second.getReals().empty())
    return "one of them takes a real number";
  if (!warpsOfBoth(first, second))
    return llvm::formatv("they run on {0} and {1} warps", tile::scheduleOf(kernels[0]).warps,
                         tile::scheduleOf(kernels[1]).warps)
        .str();
  if (gridOfAll({first, second}).size() > longestGrid)
    return "the grid of both is longer than a library's expressions may be";
  bool fit =
      givesNumbers(first) || givesNumbers(second) ||
      (sharesLaunch(kernels[0]) ? sharesLaunch(kernels[1]) : !hasProducts(kernels[0]) && !hasProducts(kernels[1]));
  if (!fit)
    return "every program would hold the registers and the shared memory of matrix products";
  if (!writesNothingWithoutBlocks(first) || !writesNothingWithoutBlocks(second))
    return "one of them has results to zero where its grid is empty";
  return std::nullopt;
}

/// Whether the two may share a kernel.
static bool canMerge(attn::LaunchOp first, attn::LaunchOp second) {
  return kernelOf(first) && kernelOf(second) && !waitsFor(second, first) && !hindranceOf(first, second);
}

/// Says of launches that follow one another, and do not wait, why they stay two.
static void reportApart(func::FuncOp program) {
  auto launches = llvm::to_vector(program.front().getOps<attn::LaunchOp>());
  for (size_t i = 1; i < launches.size(); ++i) {
    attn::LaunchOp first = launches[i - 1], second = launches[i];
    if (!kernelOf(first) || !kernelOf(second) || waitsFor(second, first))
      continue;
    if (std::optional<std::string> hindrance = hindranceOf(first, second))
      remarks::missed(remarks::mergedLaunches, second)
          << remark::reason("'{0}' and '{1}', which do not wait for one another, are two launches: {2}",
                            kernelOf(first).getName(), kernelOf(second).getName(), *hindrance);
  }
}

namespace {
struct MergeLaunches : impl::AttnMergeLaunchesBase<MergeLaunches> {
  void runOnOperation() final {
    for (func::FuncOp program : programsOf(getOperation())) { // Kernels are added and erased in the loop.
      while (mergeOne(program)) {
      }
      if (remarks::asked(program))
        reportApart(program);
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

} // namespace weft

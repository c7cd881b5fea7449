// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See LaunchOrder.h. Of
//
//   %a = attn.launch @f(%x)
//   %b = attn.launch @g(%a)
//   %c = attn.launch @h(%y)
//
// @g waits for @f; @h waits for neither, so that its launch may advance to that of @f and become one with it.
#include "compiler/Conversion/AttnToTile/Launches/LaunchOrder.h"
#include "mlir/IR/OperationSupport.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {

SmallVector<func::FuncOp> programsOf(ModuleOp module) {
  SmallVector<func::FuncOp> programs;
  for (auto function : module.getOps<func::FuncOp>())
    if (function->hasAttr(attn::programAttrName))
      programs.push_back(function);
  return programs;
}

func::FuncOp kernelOf(attn::LaunchOp launch) {
  return launch->getParentOfType<ModuleOp>().lookupSymbol<func::FuncOp>(launch.getKernel());
}

int64_t parametersOf(attn::WholeTensorType type) { return std::max<int64_t>(1, type.getRank()); }

/// All of a function's attributes but its name.
static DictionaryAttr attributesBesideName(func::FuncOp function) {
  NamedAttrList attributes(function->getAttrDictionary());
  attributes.erase(SymbolTable::getSymbolAttrName());
  return attributes.getDictionary(function.getContext());
}

bool doTheSame(func::FuncOp a, func::FuncOp b) {
  return attributesBesideName(a) == attributesBesideName(b) &&
         OperationEquivalence::isRegionEquivalentTo(&a.getBody(), &b.getBody(), OperationEquivalence::IgnoreLocations);
}

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

bool canPostpone(attn::LaunchOp first, Operation *second) {
  for (Operation *op = first->getNextNode(); op != second; op = op->getNextNode())
    if (waitsFor(op, first))
      return false;
  return true;
}

bool canAdvance(Operation *first, attn::LaunchOp second) {
  for (Operation *op = first->getNextNode(); op != second; op = op->getNextNode())
    if (waitsFor(second, op))
      return false;
  return true;
}

static std::string productOf(ArrayAttr grid) {
  std::string product;
  for (auto extent : grid.getAsRange<StringAttr>())
    if (extent.getValue() != "1")
      product += (product.empty() ? "(" : " * (") + extent.getValue().str() + ")";
  return product.empty() ? "1" : product;
}

std::string gridOfAll(ArrayRef<attn::LaunchOp> launches) {
  return llvm::join(llvm::map_range(launches, [](attn::LaunchOp launch) { return productOf(launch.getGrid()); }),
                    " + ");
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

bool writesNothingWithoutBlocks(attn::LaunchOp launch) {
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

void numberPrograms(Block &block, ArrayRef<Value> ids, ArrayRef<Value> extents, Operation *except) {
  block.walk([&](Operation *op) {
    Value number;
    if (auto id = dyn_cast<tile::ProgramIdOp>(op))
      number = ids[static_cast<int>(id.getAxis())];
    else if (auto count = dyn_cast<tile::NumProgramsOp>(op))
      number = extents[static_cast<int>(count.getAxis())];
    if (!number || op == except)
      return;
    op->getResult(0).replaceAllUsesWith(number);
    op->erase();
  });
}

attn::LaunchOp replaceLaunches(ArrayRef<attn::LaunchOp> launches, StringRef kernel, ArrayRef<Value> inputs,
                               ArrayRef<std::string> sizes) {
  attn::LaunchOp last = launches.back();
  OpBuilder b(last);
  SmallVector<Value> results;
  SmallVector<Type> types;
  SmallVector<int64_t> zeroed;
  for (attn::LaunchOp launch : launches) {
    for (int64_t i : launch.getZeroed())
      zeroed.push_back(types.size() + i);
    types.append(launch.getResultTypes().begin(), launch.getResultTypes().end());
    results.append(launch.getResults().begin(), launch.getResults().end());
  }
  SmallVector<StringRef> sizeNames(sizes.begin(), sizes.end());
  auto launch = attn::LaunchOp::create(b, last.getLoc(), types, kernel, inputs,
                                       b.getStrArrayAttr({gridOfAll(launches), "1", "1"}), b.getStrArrayAttr(sizeNames),
                                       b.getF64ArrayAttr({}), b.getDenseI64ArrayAttr(zeroed));
  for (auto [from, to] : llvm::zip(results, launch.getResults()))
    from.replaceAllUsesWith(to);
  for (attn::LaunchOp old : llvm::reverse(launches)) {
    func::FuncOp replaced = kernelOf(old);
    old.erase();
    replaced.erase();
  }
  return launch;
}

} // namespace weft

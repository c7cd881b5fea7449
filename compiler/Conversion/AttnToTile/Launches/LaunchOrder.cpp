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

/// What stands between operators of an expression, outside of parentheses, each with the operator before it (0: none).
static SmallVector<std::pair<char, StringRef>> partsOf(StringRef expression, StringRef operators) {
  SmallVector<std::pair<char, StringRef>> parts;
  int depth = 0;
  size_t begin = 0;
  char before = 0;
  for (size_t i = 0; i <= expression.size(); ++i) {
    char c = i < expression.size() ? expression[i] : operators.front();
    depth += c == '(' ? 1 : c == ')' ? -1 : 0;
    if (depth != 0 || !operators.contains(c))
      continue;
    parts.push_back({before, expression.slice(begin, i).trim()});
    before = c;
    begin = i + 1;
  }
  return parts;
}

/// An expression without parentheses around all of it.
static StringRef withoutParentheses(StringRef expression) {
  while (expression.starts_with("(")) {
    int depth = 0;
    size_t i = 0;
    do {
      depth += expression[i] == '(' ? 1 : expression[i] == ')' ? -1 : 0;
    } while (++i < expression.size() && depth > 0);
    if (i < expression.size() || depth != 0)
      break;
    expression = expression.drop_front().drop_back().trim();
  }
  return expression;
}

namespace {
/// Factors of expressions, above a fraction's line and below it.
struct Fraction {
  SmallVector<StringRef> above, below;
  void add(StringRef expression, bool isBelow);
  void cancel();
};
} // namespace

void Fraction::add(StringRef expression, bool isBelow) {
  expression = withoutParentheses(expression.trim());
  SmallVector<std::pair<char, StringRef>> factors = partsOf(expression, "*/");
  if (partsOf(expression, "+-%").size() > 1)
    factors.resize(1); // a sum is one factor, and so is a remainder
  if (factors.size() > 1) {
    for (auto [before, factor] : factors)
      add(factor, isBelow != (before == '/'));
  } else if (expression != "1") {
    (isBelow ? below : above).push_back(expression);
  }
}

void Fraction::cancel() {
  llvm::erase_if(below, [&](StringRef factor) {
    auto *same = llvm::find(above, factor);
    if (same == above.end())
      return false;
    above.erase(same);
    return true;
  });
}

/// How many programs a grid has. What one extent divides by and another is a multiple of, such as how many heads stand
/// side by side, is left out: what is divided in a grid is a multiple of what divides it.
static std::string productOf(ArrayAttr grid) {
  Fraction fraction;
  for (auto extent : grid.getAsRange<StringAttr>())
    fraction.add(extent.getValue(), /*isBelow=*/false);
  size_t below = fraction.below.size();
  fraction.cancel();
  bool isShorter = fraction.below.size() < below;
  std::string product;
  auto multiply = [&](StringRef factor) { product += (product.empty() ? "(" : " * (") + factor.str() + ")"; };
  if (isShorter) {
    llvm::for_each(fraction.above, multiply);
  } else {
    for (auto extent : grid.getAsRange<StringAttr>())
      if (extent.getValue() != "1")
        multiply(extent.getValue());
  }
  if (product.empty())
    product = "1";
  if (isShorter)
    for (StringRef factor : fraction.below)
      product += " / (" + factor.str() + ")";
  return product;
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

/// Whether `result` has no elements where an expression of its program's symbols is 0: a sum is where all its terms are,
/// a product where one factor is. Quotients are 0 where what is divided is: a size by what divides it.
static bool isEmptyWhereZero(attn::WholeTensorType result, StringRef expression) {
  expression = withoutParentheses(expression.trim());
  SmallVector<std::pair<char, StringRef>> terms = partsOf(expression, "+-"), factors = partsOf(expression, "*/");
  auto isPositive = [](std::pair<char, StringRef> term) {
    int64_t number;
    return term.first != '-' && !term.second.getAsInteger(10, number) && number > 0;
  };
  if (llvm::any_of(terms, [](auto term) { return term.first == '-'; }))
    return false;
  if (llvm::any_of(terms, isPositive))
    return true; // never 0
  if (terms.size() > 1)
    return llvm::any_of(terms, [&](auto term) { return isEmptyWhereZero(result, term.second); });
  if (factors.size() > 1)
    return llvm::all_of(factors,
                        [&](auto factor) { return factor.first == '/' || isEmptyWhereZero(result, factor.second); });
  if (expression.find_first_of("-%") != StringRef::npos)
    return false;
  SmallVector<StringRef> symbols = symbolsOf(expression);
  auto covers = [&](StringRef symbol) { return isEmptyWithout(result, symbol); };
  // Of a sum in a function one symbol is enough.
  return symbols.empty() || (expression.contains('+') ? llvm::any_of(symbols, covers) : llvm::all_of(symbols, covers));
}

bool writesNothingWithoutBlocks(attn::LaunchOp launch) {
  return llvm::all_of(launch.getResultTypes(), [&](Type result) {
    return llvm::all_of(launch.getGrid().getAsRange<StringAttr>(), [&](StringAttr extent) {
      return isEmptyWhereZero(cast<attn::WholeTensorType>(result), extent.getValue());
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

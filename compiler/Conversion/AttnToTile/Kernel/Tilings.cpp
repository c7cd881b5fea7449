// Part of Weft. SPDX-License-Identifier: Apache-2.0
// See Tilings.h.
#include "compiler/Conversion/AttnToTile/Kernel/Tilings.h"
#include "dialects/Attn/IR/AttnOps.h"
#include "dialects/Attn/IR/TilingAttributes.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/SetVector.h"

using namespace mlir;

namespace weft {

static constexpr StringLiteral parts[] = {"forward", "backward"};

/// Which part of a program's derivative a function is; empty of those whose kernels are not chosen.
static StringRef partOf(StringRef function) {
  StringRef suffix = function.rsplit('.').second;
  if (suffix.empty())
    return parts[0];
  return llvm::is_contained(parts, suffix) ? suffix : StringRef();
}

bool isTilingPlace(StringRef text) {
  auto [part, rest] = text.split('.');
  auto [kind, number] = rest.split('.');
  unsigned value;
  return llvm::is_contained(parts, part) && !kind.empty() && !number.getAsInteger(10, value);
}

std::optional<TilingChoice> parseTilingChoice(StringRef text) {
  auto [place, numbers] = text.split('=');
  auto [rows, warps] = numbers.split('x');
  TilingChoice choice{place.str(), {}};
  if (!isTilingPlace(place) || rows.getAsInteger(10, choice.tiling.rows) || warps.getAsInteger(10, choice.tiling.warps))
    return std::nullopt;
  return choice;
}

void setTilingChoices(ModuleOp module, ArrayRef<TilingChoice> choices) {
  Builder b(module.getContext());
  SmallVector<NamedAttribute> entries;
  for (const TilingChoice &choice : choices)
    entries.push_back(b.getNamedAttr(choice.place, b.getDenseI64ArrayAttr({choice.tiling.rows, choice.tiling.warps})));
  module->setAttr(attn::tilingChoicesAttrName, b.getDictionaryAttr(entries));
}

/// Calls `visit` with each place that is noted in a module's programs, and what is.
static void visitNoted(ModuleOp module, llvm::function_ref<void(StringRef, DictionaryAttr)> visit) {
  for (auto program : module.getOps<func::FuncOp>())
    if (auto noted = program->getAttrOfType<ArrayAttr>(attn::tilingsAttrName))
      for (auto each : noted.getAsRange<DictionaryAttr>())
        visit(cast<StringAttr>(each.get("place")).getValue(), each);
}

LogicalResult takeTilingChoices(ModuleOp module) {
  auto choices = module->getAttrOfType<DictionaryAttr>(attn::tilingChoicesAttrName);
  if (!choices)
    return success();
  module->removeAttr(attn::tilingChoicesAttrName);
  llvm::SetVector<StringRef> places;
  visitNoted(module, [&](StringRef place, DictionaryAttr) { places.insert(place); });
  llvm::DenseSet<StringRef> present;
  for (auto program : module.getOps<func::FuncOp>())
    if (program->hasAttr(attn::programAttrName))
      present.insert(partOf(program.getName()));
  for (NamedAttribute choice : choices) {
    StringRef place = choice.getName().getValue();
    if (!present.contains(place.split('.').first) || places.contains(place))
      continue;
    InFlightDiagnostic error = module.emitError("expected tilings of kernels that the programs have, but got one for '")
                               << place << "'";
    error.attachNote() << "they have " << (places.empty() ? "none" : llvm::join(places, ", "));
    return failure();
  }
  return success();
}

static std::string spelled(ArrayRef<int64_t> numbers) {
  return llvm::join(llvm::map_range(numbers, [](int64_t each) { return std::to_string(each); }), ", ");
}

std::optional<KernelTiling> nextTiling(FunctionOpInterface program, Location location, StringRef kind,
                                       const KernelTilings &tilings) {
  StringRef part = partOf(program.getName());
  auto choices = program->getParentOfType<ModuleOp>()->getAttrOfType<DictionaryAttr>(attn::tilingChoicesAttrName);
  if (part.empty() || !choices)
    return tilings.usual;
  Builder b(program.getContext());
  SmallVector<Attribute> noted;
  if (auto before = program->getAttrOfType<ArrayAttr>(attn::tilingsAttrName))
    noted.append(before.begin(), before.end());
  std::string prefix = (part + "." + kind + ".").str();
  size_t number = llvm::count_if(noted, [&](Attribute each) {
    return cast<StringAttr>(cast<DictionaryAttr>(each).get("place")).getValue().starts_with(prefix);
  });
  std::string place = prefix + std::to_string(number);
  KernelTiling tiling = tilings.usual;
  if (auto chosen = choices.getAs<DenseI64ArrayAttr>(place)) {
    tiling = {chosen[0], chosen[1]};
    if (!tilings.has(tiling)) {
      emitError(location) << "'" << place << "' cannot take its tiling: expected rows among " << spelled(tilings.rows)
                          << " and warps among " << spelled(tilings.warps) << ", but got " << tiling.rows << "x"
                          << tiling.warps;
      return std::nullopt;
    }
  }
  noted.push_back(b.getDictionaryAttr({b.getNamedAttr("place", b.getStringAttr(place)),
                                       b.getNamedAttr("tiling", b.getDenseI64ArrayAttr({tiling.rows, tiling.warps})),
                                       b.getNamedAttr("rows", b.getDenseI64ArrayAttr(tilings.rows)),
                                       b.getNamedAttr("warps", b.getDenseI64ArrayAttr(tilings.warps))}));
  program->setAttr(attn::tilingsAttrName, b.getArrayAttr(noted));
  return tiling;
}

SmallVector<TilingFacts> tilingFacts(ModuleOp module) {
  SmallVector<TilingFacts> found;
  llvm::DenseSet<StringRef> seen;
  visitNoted(module, [&](StringRef place, DictionaryAttr facts) {
    if (!seen.insert(place).second)
      return;
    auto numbers = [&](StringRef name) { return facts.getAs<DenseI64ArrayAttr>(name).asArrayRef(); };
    found.push_back({place.str(),
                     {numbers("tiling")[0], numbers("tiling")[1]},
                     llvm::to_vector(numbers("rows")),
                     llvm::to_vector(numbers("warps"))});
  });
  return found;
}

} // namespace weft

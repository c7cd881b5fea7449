// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Modules: parsed, or built one operation at a time. Regions are built before the operation that takes them, so that an
// operation's result types may depend on what its regions turned out to hold.

#include "compiler/CAPI/Internal.h"
#include "compiler/Support/TextGuard.h"

#include "mlir/IR/OperationSupport.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace weft::capi;

weftc_module::weftc_module(weftc_context *context, OwningOpRef<ModuleOp> module)
    : context(context), module(std::move(module)), insertion((*this->module).getBody()) {}

weftc_module::~weftc_module() {
  for (auto &region : pending)
    region->region.dropAllReferences();
  pending.clear();
}

weftc_module *weftc_module_create(weftc_context *context, weftc_location location) {
  return new weftc_module(context, ModuleOp::create(unwrap(location)));
}

weftc_module *weftc_module_parse(weftc_context *context, const char *text, const char *name) {
  if (std::optional<weft::TextHazard> hazard = weft::findTextHazard(text)) {
    emitError(FileLineColLoc::get(&context->context, name, hazard->line, hazard->column), hazard->message);
    return nullptr;
  }
  ParserConfig config(&context->context);
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, config, name);
  return module ? new weftc_module(context, std::move(module)) : nullptr;
}

void weftc_module_destroy(weftc_module *module) { delete module; }

char *weftc_module_print(const weftc_module *module, bool locations) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  OpPrintingFlags flags;
  if (locations)
    flags.enableDebugInfo();
  ModuleOp op = *const_cast<weftc_module *>(module)->module;
  op.print(stream, flags);
  return copyText(text);
}

bool weftc_module_verify(weftc_module *module) { return succeeded(verify(*module->module)); }

void weftc_module_set_attribute(weftc_module *module, const char *name, weftc_attribute value) {
  (*module->module)->setAttr(name, unwrap(value));
}

weftc_block weftc_module_insertion_block(const weftc_module *module) { return wrap(module->insertion); }

void weftc_module_set_insertion_block(weftc_module *module, weftc_block block) { module->insertion = unwrap(block); }

weftc_region *weftc_region_create(weftc_module *module, const weftc_type *arguments, size_t count,
                                  weftc_location location) {
  module->pending.push_back(std::make_unique<weftc_region>());
  weftc_region *region = module->pending.back().get();
  Block &block = region->region.emplaceBlock();
  for (weftc_type type : ArrayRef(arguments, count))
    block.addArgument(unwrap(type), unwrap(location));
  return region;
}

weftc_block weftc_region_block(const weftc_region *region) {
  return wrap(&const_cast<weftc_region *>(region)->region.front());
}

weftc_value weftc_region_argument(const weftc_region *region, size_t index) {
  return wrap(Value(const_cast<weftc_region *>(region)->region.front().getArgument(index)));
}

weftc_value weftc_region_add_argument(weftc_region *region, weftc_type type, weftc_location location) {
  return wrap(Value(region->region.front().addArgument(unwrap(type), unwrap(location))));
}

/// Moves the pending regions into the state of the operation to be. A region that nothing was put into has no block:
/// that is how an operation's optional region is left out.
static void takeRegions(weftc_module *module, ArrayRef<weftc_region *> regions, OperationState &state) {
  for (weftc_region *region : regions) {
    if (Block &block = region->region.front(); block.empty() && block.getNumArguments() == 0)
      region->region.getBlocks().clear();
    state.addRegion()->takeBody(region->region);
    llvm::erase_if(module->pending, [&](const auto &pending) { return pending.get() == region; });
  }
}

weftc_operation weftc_operation_create(weftc_module *module, const weftc_operation_spec *spec) {
  MLIRContext *context = &module->context->context;
  Location location = unwrap(spec->location);
  auto name = RegisteredOperationName::lookup(spec->name, context);
  if (!name) {
    emitError(location) << "expected the name of an operation, but got '" << spec->name << "'";
    return nullptr;
  }
  OperationState state(location, *name);
  for (weftc_value operand : ArrayRef(spec->operands, spec->operand_count))
    state.operands.push_back(unwrap(operand));
  for (weftc_type type : ArrayRef(spec->results, spec->result_count))
    state.types.push_back(unwrap(type));
  for (const weftc_named_attribute &attribute : ArrayRef(spec->attributes, spec->attribute_count))
    state.addAttribute(attribute.name, unwrap(attribute.value));
  takeRegions(module, ArrayRef(spec->regions, spec->region_count), state);
  Operation *operation = Operation::create(state);
  module->insertion->push_back(operation);
  return wrap(operation);
}

weftc_value weftc_operation_result(weftc_operation operation, size_t index) {
  return wrap(Value(unwrap(operation)->getResult(index)));
}

void weftc_operation_set_attribute(weftc_operation operation, const char *name, weftc_attribute value) {
  unwrap(operation)->setDiscardableAttr(name, unwrap(value));
}

bool weftc_value_set_attribute(weftc_value value, const char *name, weftc_attribute attribute) {
  Operation *definition = unwrap(value).getDefiningOp();
  if (!definition)
    return false;
  definition->setDiscardableAttr(name, unwrap(attribute));
  return true;
}

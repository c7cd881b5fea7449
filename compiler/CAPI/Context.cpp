// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Contexts, their diagnostics, and what they unique: types, attributes and locations.

#include "compiler/CAPI/Internal.h"

#include "dialects/Attn/IR/AttnDialect.h"
#include "dialects/Tile/IR/TileDialect.h"

#include "mlir/AsmParser/AsmParser.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/Support/raw_ostream.h"

#include <cstdlib>
#include <cstring>

using namespace mlir;
using namespace weft::capi;

FileLineColLoc weft::capi::filePosition(Location location) {
  if (auto file = dyn_cast<FileLineColLoc>(location))
    return file;
  if (auto call = dyn_cast<CallSiteLoc>(location))
    return filePosition(call.getCallee());
  if (auto name = dyn_cast<NameLoc>(location))
    return filePosition(name.getChildLoc());
  if (auto fused = dyn_cast<FusedLoc>(location))
    for (Location part : fused.getLocations())
      if (FileLineColLoc file = filePosition(part))
        return file;
  return {};
}

static weftc_severity severityOf(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Error:
    return WEFTC_ERROR;
  case DiagnosticSeverity::Warning:
    return WEFTC_WARNING;
  case DiagnosticSeverity::Remark:
    return WEFTC_REMARK;
  case DiagnosticSeverity::Note:
    return WEFTC_NOTE;
  }
  return WEFTC_ERROR;
}

static KeptDiagnostic keep(const Diagnostic &diagnostic) {
  KeptDiagnostic kept{severityOf(diagnostic.getSeverity()), diagnostic.str(), {}, 0, 0};
  if (FileLineColLoc position = filePosition(diagnostic.getLocation())) {
    kept.file = position.getFilename().str();
    kept.line = position.getLine();
    kept.column = position.getColumn();
  }
  return kept;
}

weftc_context::weftc_context() : context(MLIRContext::Threading::DISABLED) {
  context.loadDialect<arith::ArithDialect, math::MathDialect, scf::SCFDialect, func::FuncDialect,
                      weft::tile::TileDialect, weft::attn::AttnDialect>();
  context.getDiagEngine().registerHandler([this](Diagnostic &diagnostic) {
    diagnostics.push_back(keep(diagnostic));
    for (const Diagnostic &note : diagnostic.getNotes())
      diagnostics.push_back(keep(note));
    return success();
  });
}

char *weft::capi::copyText(StringRef text) {
  auto *copy = static_cast<char *>(std::malloc(text.size() + 1));
  if (!copy)
    return nullptr;
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

const char *weftc_version(void) { return WEFT_VERSION; }

int weftc_abi_version(void) { return WEFTC_ABI_VERSION; }

void weftc_string_free(char *text) { std::free(text); }

weftc_context *weftc_context_create(void) { return new (std::nothrow) weftc_context(); }

void weftc_context_destroy(weftc_context *context) { delete context; }

size_t weftc_context_diagnostic_count(const weftc_context *context) { return context->diagnostics.size(); }

weftc_diagnostic weftc_context_diagnostic(const weftc_context *context, size_t index) {
  const KeptDiagnostic &kept = context->diagnostics[index];
  return {kept.severity, kept.message.c_str(), kept.file.c_str(), kept.line, kept.column};
}

void weftc_context_clear_diagnostics(weftc_context *context) { context->diagnostics.clear(); }

weftc_type weftc_type_parse(weftc_context *context, const char *text) {
  return wrap(parseType(text, &context->context));
}

char *weftc_type_print(weftc_type type) {
  std::string text;
  llvm::raw_string_ostream(text) << unwrap(type);
  return copyText(text);
}

weftc_attribute weftc_attribute_parse(weftc_context *context, const char *text) {
  return wrap(parseAttribute(text, &context->context));
}

/// `scalar` itself, or repeated over all of `type` where that is a tensor.
static Attribute repeated(Type type, TypedAttr scalar) {
  if (auto tensor = dyn_cast<RankedTensorType>(type))
    return DenseElementsAttr::get(tensor, Attribute(scalar));
  return scalar;
}

weftc_attribute weftc_attribute_integer(weftc_type type, int64_t value) {
  auto element = dyn_cast<IntegerType>(getElementTypeOrSelf(unwrap(type)));
  if (!element)
    return nullptr;
  APInt bits = APInt(64, static_cast<uint64_t>(value), true).sextOrTrunc(element.getWidth());
  return wrap(repeated(unwrap(type), IntegerAttr::get(element, bits)));
}

weftc_attribute weftc_attribute_float(weftc_type type, double value) {
  auto element = dyn_cast<FloatType>(getElementTypeOrSelf(unwrap(type)));
  if (!element)
    return nullptr;
  return wrap(repeated(unwrap(type), FloatAttr::get(element, value)));
}

weftc_attribute weftc_attribute_string(weftc_context *context, const char *text) {
  return wrap(Attribute(StringAttr::get(&context->context, text)));
}

weftc_attribute weftc_attribute_unit(weftc_context *context) {
  return wrap(Attribute(UnitAttr::get(&context->context)));
}

weftc_attribute weftc_attribute_i32_array(weftc_context *context, const int32_t *values, size_t count) {
  return wrap(Attribute(DenseI32ArrayAttr::get(&context->context, ArrayRef(values, count))));
}

weftc_location weftc_location_file(weftc_context *context, const char *file, unsigned line, unsigned column) {
  return wrap(Location(FileLineColLoc::get(&context->context, file, line, column)));
}

weftc_location weftc_location_inlined(weftc_location callee, weftc_location caller) {
  return wrap(Location(CallSiteLoc::get(unwrap(callee), unwrap(caller))));
}

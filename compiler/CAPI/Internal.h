// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What stands behind the opaque types of weft-compiler.h; for the files of this folder only.
#pragma once

#include "compiler/CAPI/weft-compiler.h"
#include "compiler/Pipelines/Checks.h"

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"

#include <memory>
#include <string>
#include <vector>

namespace weft::capi {

/// A diagnostic, kept: MLIR's own lives only while its handler runs.
struct KeptDiagnostic {
  weftc_severity severity;
  std::string message;
  std::string file;
  unsigned line = 0;
  unsigned column = 0;
};

/// The file position nearest to the code that a location stands for: the callee's for inlined code. None where there is
/// no file.
mlir::FileLineColLoc filePosition(mlir::Location location);

/// A copy of `text` that `weftc_string_free` frees.
char *copyText(llvm::StringRef text);

inline mlir::Type unwrap(weftc_type type) { return mlir::Type::getFromOpaquePointer(type); }
inline weftc_type wrap(mlir::Type type) { return static_cast<weftc_type>(type.getAsOpaquePointer()); }
inline mlir::Attribute unwrap(weftc_attribute attribute) { return mlir::Attribute::getFromOpaquePointer(attribute); }
inline weftc_attribute wrap(mlir::Attribute attribute) {
  return static_cast<weftc_attribute>(attribute.getAsOpaquePointer());
}
inline mlir::Location unwrap(weftc_location location) { return mlir::Location::getFromOpaquePointer(location); }
inline weftc_location wrap(mlir::Location location) {
  return static_cast<weftc_location>(location.getAsOpaquePointer());
}
inline mlir::Value unwrap(weftc_value value) { return mlir::Value::getFromOpaquePointer(value); }
inline weftc_value wrap(mlir::Value value) { return static_cast<weftc_value>(value.getAsOpaquePointer()); }
inline mlir::Operation *unwrap(weftc_operation operation) { return reinterpret_cast<mlir::Operation *>(operation); }
inline weftc_operation wrap(mlir::Operation *operation) { return reinterpret_cast<weftc_operation>(operation); }
inline mlir::Block *unwrap(weftc_block block) { return reinterpret_cast<mlir::Block *>(block); }
inline weftc_block wrap(mlir::Block *block) { return reinterpret_cast<weftc_block>(block); }

} // namespace weft::capi

struct weftc_context {
  weftc_context();

  mlir::MLIRContext context;
  weft::KeptPasses passes;
  std::vector<weft::capi::KeptDiagnostic> diagnostics;
};

struct weftc_region {
  mlir::Region region;
};

struct weftc_module {
  weftc_module(weftc_context *context, mlir::OwningOpRef<mlir::ModuleOp> module);
  /// Frees regions that no operation took first: they may use values of the module.
  ~weftc_module();

  weftc_context *context;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::Block *insertion;
  std::vector<std::unique_ptr<weftc_region>> pending;
};

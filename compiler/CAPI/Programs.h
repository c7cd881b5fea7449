// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Programs of a module as plans of launches (docs/LibraryFormat.md, "A program").
#pragma once

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/JSON.h"

namespace weft::capi {

/// Whether the module holds a function with `attn.program`.
bool hasPrograms(mlir::ModuleOp module);

/// Whether a program of the module holds anything but `attn.launch` and its return.
bool needsLowering(mlir::ModuleOp module);

/// Takes the programs out of a module: each function with `attn.program`, whose body is `attn.launch` ops and a return,
/// becomes an object of the array, for `target`, and is erased. Launches whose results nobody uses are left out. Fails
/// after diagnostics.
mlir::FailureOr<llvm::json::Array> takePrograms(mlir::ModuleOp module, llvm::StringRef target);

/// Makes every float of a module of programs an f32: elements of tensors, scalars of regions, constants. What it
/// computes then differs from what it computed by the rounding of narrower types alone.
void widenFloats(mlir::ModuleOp module);

} // namespace weft::capi

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// From a module of the LLVM dialect to PTX text, by LLVM's optimiser and its NVPTX back end.
//
//   llvm.func @f(%p: !llvm.ptr<1>)                      .visible .entry f(.param .u64 .ptr .global .align 1 f_param_0)
//       attributes {nvvm.kernel} {                        {
//     %0 = llvm.load %p : !llvm.ptr<1> -> f32               ld.param.b64     %rd1, [f_param_0];
//     %1 = llvm.fadd %0, %0 : f32                 -->       ld.global.b32    %r1, [%rd1];
//     llvm.store %1, %p : f32, !llvm.ptr<1>                 add.f32          %r2, %r1, %r1;
//     llvm.return                                           st.global.b32    [%rd1], %r2;
//   }                                                       ret;
//                                                         }
#pragma once

#include "compiler/Target/TargetInfo.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"
#include <string>

namespace mlir {
class DialectRegistry;
} // namespace mlir

namespace weft {

/// PTX and what it cost.
struct EmittedPTX {
  std::string text;
  int version = 0;    // 80 for PTX ISA 8.0: the target's, or the least that has the instructions
  std::string llvmIR; // after optimisation, when asked for
  double translateMs = 0, optimiseMs = 0, instructionSelectMs = 0; // processor time of the three steps
};

/// What to emit besides the code.
struct EmitOptions {
  bool lineInfo = true;  // .file and .loc directives from MLIR's locations (PTX ISA 11.5)
  bool keepLLVM = false; // fill `EmittedPTX::llvmIR`
  int registers = 0;     // of a thread, in place of the target's where it is not 0
  bool verify = false;   // LLVM's verifier after the translation, the optimiser and each pass of the back end
};

/// Makes the translations to LLVM IR available to contexts of this registry; needed before `emitPTX`.
void registerPTXTranslations(mlir::DialectRegistry &registry);

/// Emits PTX for `target` from a module in which only LLVM and NVVM ops are left. Failures are reported at the module.
mlir::FailureOr<EmittedPTX> emitPTX(mlir::ModuleOp module, const TargetInfo &target, EmitOptions options = {});

} // namespace weft

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Schedules and the other attributes of the attn dialect's ops.
#ifndef WEFT_DIALECTS_ATTN_IR_ATTNATTRS_TD
#define WEFT_DIALECTS_ATTN_IR_ATTNATTRS_TD

include "dialects/Attn/IR/AttnPatterns.td"
include "mlir/IR/EnumAttr.td"

def Attn_ScheduleAttr : AttrDef<Attn_Dialect, "Schedule"> {
  let mnemonic = "schedule";
  let summary = "how a kernel over blocks is tiled and spread";
  let description = [{
    `#attn.schedule<rows = 128, columns = 64, warps = 4, stages = 3>`: a program of the kernel holds `rows` rows (queries; in the key and value gradient,
    keys) and walks the other side in steps of `columns`. Powers of two, at least 16; warps 1 to 32, stages at least 1.

    `#attn.schedule<rows = 64, columns = 32, warps = 8, stages = 2, channels = 512>`: of values that are too wide for one program (more than 256 channels), a program holds
    at most so many channels (output, gradient of values), or takes so many at once (the other gradients). A multiple of 16 up to 4096; left out where the default is meant, or values are not wide.

    `#attn.schedule<rows = 128, columns = 128, warps = 8, stages = 2, cluster = 2>`: so many programs (1, 2, 4 or 8) of neighbouring tiles share the blocks that they walk over, where they walk
    over the same ones and the target has clusters (`warp-multicast`).

    `#attn.schedule<rows = 128, columns = 128, warps = 8, stages = 2, persistent = true>`: blocks go over the programs, one on each multiprocessor, where the kernel's copies have a warp
    of their own (`warp-persist`).
  }];
  let parameters = (ins "int64_t":$rows, "int64_t":$columns, "int64_t":$warps, "int64_t":$stages, DefaultValuedParameter<"int64_t", "0">:$channels, DefaultValuedParameter<"int64_t", "1">:$cluster, DefaultValuedParameter<"bool", "false">:$persistent);
  let builders = [AttrBuilder<(ins "int64_t":$rows, "int64_t":$columns, "int64_t":$warps, "int64_t":$stages, CArg<"int64_t", "0">:$channels, CArg<"int64_t", "1">:$cluster, CArg<"bool", "false">:$persistent), [{
    return $_get($_ctxt, rows, columns, warps, stages, channels, cluster, persistent);
  }]>];
  let skipDefaultBuilders = 1;
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Attn_Precision : I32Enum<"Precision", "how f32 operands of a product are multiplied", [
    I32EnumCase<"F32", 0, "f32">,     // f32 accuracy (three tf32 products)
    I32EnumCase<"TF32", 1, "tf32">]> {
  let cppNamespace = "::weft::attn";
}
def Attn_PrecisionAttr : EnumAttr<Attn_Dialect, Attn_Precision, "precision">;

def Attn_MergeMode : I32Enum<"MergeMode", "how the rows of a unit become one", [
    I32EnumCase<"Sum", 0, "sum">,
    I32EnumCase<"Last", 1, "last">,     // the survivor's
    I32EnumCase<"Mean", 2, "mean">]> {
  let cppNamespace = "::weft::attn";
}
def Attn_MergeAttr : EnumAttr<Attn_Dialect, Attn_MergeMode, "merge">;

/// A list of patterns, one for each domain.
def Attn_PatternArray : ArrayAttrBase<CPred<"::llvm::isa<::mlir::ArrayAttr>($_self) && ::llvm::all_of(::llvm::cast<::mlir::ArrayAttr>($_self), ::weft::attn::isPattern)">, "array of patterns"> {
  let storageType = "::mlir::ArrayAttr";
  let returnType = "::mlir::ArrayAttr";
  let convertFromStorage = "$_self";
}

#endif // WEFT_DIALECTS_ATTN_IR_ATTNATTRS_TD

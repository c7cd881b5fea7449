// Part of Weft. SPDX-License-Identifier: Apache-2.0
// All ops of the attn dialect, one family a file.
#ifndef WEFT_DIALECTS_ATTN_IR_ATTNOPS_TD
#define WEFT_DIALECTS_ATTN_IR_ATTNOPS_TD

include "dialects/Attn/IR/AttnAttrs.td"
include "dialects/Attn/IR/AttnInterfaces.td"
include "mlir/IR/BuiltinAttributes.td"
include "mlir/IR/SymbolInterfaces.td"
include "mlir/Interfaces/InferTypeOpInterface.td"
include "mlir/Interfaces/SideEffectInterfaces.td"
include "mlir/Interfaces/ControlFlowInterfaces.td"

/// A product of a value with a weight.
def Attn_WeightProduct : NativeOpTrait<"WeightProduct"> { let cppNamespace = "::weft::attn"; }
/// Written by differentiation alone; it has no derivative itself.
def Attn_GradientOnly : NativeOpTrait<"GradientOnly"> { let cppNamespace = "::weft::attn"; }

/// Takes and gives no tensors of 8-bit floats, which are converted before anything is computed on them.
def Attn_NoFloat8 : NativeOpTrait<"NoFloat8"> { let cppNamespace = "::weft::attn"; }

class Attn_AnyElementOp<string mnemonic, list<Trait> traits = []> : Op<Attn_Dialect, mnemonic, traits>;
class Attn_Op<string mnemonic, list<Trait> traits = []> : Attn_AnyElementOp<mnemonic, !listconcat(traits, [Attn_NoFloat8])>;

include "dialects/Attn/IR/Ops/AttnMixerOps.td"
include "dialects/Attn/IR/Ops/AttnTensorOps.td"
include "dialects/Attn/IR/Ops/AttnHeadOps.td"
include "dialects/Attn/IR/Ops/AttnAttendOps.td"
include "dialects/Attn/IR/Ops/AttnMergeOps.td"
include "dialects/Attn/IR/Ops/AttnRecurrenceOps.td"

#endif // WEFT_DIALECTS_ATTN_IR_ATTNOPS_TD

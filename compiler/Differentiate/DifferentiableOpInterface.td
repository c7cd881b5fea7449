// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What an op of a program implements to be differentiated, in reverse mode and in forward mode.
#ifndef WEFT_COMPILER_DIFFERENTIATE_DIFFERENTIABLEOPINTERFACE_TD
#define WEFT_COMPILER_DIFFERENTIATE_DIFFERENTIABLEOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def DifferentiableOpInterface : OpInterface<"DifferentiableOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    Reverse mode, one adjoint for each op: given the gradients of the op's results, add those of its operands. The implementations are external models in
    compiler/Differentiate, so that the dialect does not know of them.
  }];
  let methods = [InterfaceMethod<
    [{
      Writes at `gradients`' builder what the gradients of this op's results (`gradients.get`) contribute to the values it read, and adds it there (`gradients.add`).
      Values of the program are had through `gradients.primal`. Reports an error where the op has no derivative.
    }],
    "::llvm::LogicalResult", "addAdjoint", (ins "::weft::Gradients &":$gradients)>];
}

def LinearisableOpInterface : OpInterface<"LinearisableOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    Forward mode, one tangent rule for each op, beside its adjoint: given the tangents of the values that the op reads, give those of its results. Ops that are linear in their first operand
    and say so (`attn::TransposableOpInterface`) need none.
  }];
  let methods = [InterfaceMethod<
    [{
      Writes at `tangents`' builder the tangents of this op's results (`tangents.set`), from those of what it reads (`tangents.get`). An op that computes its results along with their tangents
      gives them too (`tangents.setPrimal`). Reports an error where the op has no derivative.
    }],
    "::llvm::LogicalResult", "addTangent", (ins "::weft::Tangents &":$tangents)>];
}

#endif // WEFT_COMPILER_DIFFERENTIATE_DIFFERENTIABLEOPINTERFACE_TD

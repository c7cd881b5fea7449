// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What an op of a program implements to become a kernel of its own.
#ifndef WEFT_COMPILER_CONVERSION_ATTNTOTILE_KERNEL_KERNELOPINTERFACE_TD
#define WEFT_COMPILER_CONVERSION_ATTNTOTILE_KERNEL_KERNELOPINTERFACE_TD

include "mlir/IR/OpBase.td"

def KernelOpInterface : OpInterface<"KernelOpInterface"> {
  let cppNamespace = "::weft";
  let description = [{
    An op that walks the sequence, or whatever else needs a kernel of its own: attention, sums, means, products with
    weights. Ops without it (maps, and what is row-local) are computed by the kernels that read them.
  }];
  let methods = [
    InterfaceMethod<"Whether it computes what it reads element by element, and so needs no map of stored values stored.",
      "bool", "readsElements", (ins), "", [{ return false; }]>,
    InterfaceMethod<
    [{
      Sees to it that the operands can be had (`program.store` and the like), writes the op's kernels, and notes in
      `program.stored` where its results are. Reports an error where it cannot.
    }],
    "::llvm::LogicalResult", "lower", (ins "::weft::ProgramKernels &":$program)>];
}

#endif // WEFT_COMPILER_CONVERSION_ATTNTOTILE_KERNEL_KERNELOPINTERFACE_TD

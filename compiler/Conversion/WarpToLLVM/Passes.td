// Part of Weft. SPDX-License-Identifier: Apache-2.0
// The pass that lowers kernels to LLVM.
#ifndef WEFT_COMPILER_CONVERSION_WARPTOLLVM_PASSES_TD
#define WEFT_COMPILER_CONVERSION_WARPTOLLVM_PASSES_TD

include "mlir/Pass/PassBase.td"

def ConvertWarpToLLVM : Pass<"convert-warp-to-llvm", "::mlir::ModuleOp"> {
  let summary = "lower kernels on tensors with layouts to LLVM functions of one thread";
  let description = [{
    Each `func.func` with `tile.kernel` becomes an `llvm.func` that one thread runs. A tensor becomes as many values as
    its layout has registers; one walk over the kernel, with a table from value to registers, emits the code
    (Emitter.h). PTX that LLVM's back end does not give is inline assembly.

    Needs: a module with `warp.target`; a layout on every tensor (`tile-to-warp`); shared memory allocated
    (`warp-allocate-shared`) and barriers in their places (`warp-insert-barriers`, `warp-order-accesses`).

    Rejects: a target that is not known; a kernel of several blocks, with results, or with arguments that are no scalars
    or pointers; a tensor without a layout; an op that has no lowering, or that has none for its types or layouts (a
    change of layout elsewhere than in `warp.convert_layout`, a matrix product that its operands do not fill); a tile
    or an exchange without a place in shared memory.

    ```mlir
    module attributes {warp.target = "sm_80"} {
      func.func @twice(%x: f32, %p: !tile.ptr<f32>)
          attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
        %y = arith.addf %x, %x : f32
        tile.store %p, %y : !tile.ptr<f32>
        return
      }
    }
    ```
    becomes, one thread of the program storing what all of them hold,
    ```mlir
    llvm.func @twice(%x: f32, %p: !llvm.ptr<1>) attributes {nvvm.kernel, nvvm.reqntid = array<i32: 32>} {
      %thread = nvvm.read.ptx.sreg.tid.x range <i32, 0, 32> : i32
      %zero = llvm.mlir.constant(0 : i32) : i32
      %y = llvm.fadd %x, %x : f32
      %first = llvm.icmp "eq" %thread, %zero : i32
      %bits = llvm.bitcast %y : f32 to i32
      llvm.inline_asm has_side_effects asm_dialect = att "@$2 st.global.b32 $1, $0;", "r,*m,b" %bits, %p, %first
        : (i32, !llvm.ptr<1>, i1) -> ()
      llvm.return
    }
    ```
  }];
  let dependentDialects = ["::mlir::LLVM::LLVMDialect", "::mlir::NVVM::NVVMDialect"];
}

#endif // WEFT_COMPILER_CONVERSION_WARPTOLLVM_PASSES_TD

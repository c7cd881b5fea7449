// Part of Weft. SPDX-License-Identifier: Apache-2.0
// What a program prints, and the PTX that it brings along.
#ifndef WEFT_DIALECTS_TILE_IR_TILEPROGRAMOPS_TD
#define WEFT_DIALECTS_TILE_IR_TILEPROGRAMOPS_TD

include "dialects/Tile/IR/TileOpBase.td"

def Tile_PrintOp : Tile_Op<"print", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "print a value, with a text before it";
  let description = [{
    Every element of a tensor is printed once, on a line of its own, with the program's and its own indices; a scalar once for the program. The order of
    lines is not specified. `first` is added to the indices. Integers are signed unless `isUnsigned` or `hex` says otherwise. C1: the value is of i32, i64, f32 or f64. C2: `first` is empty, or has a number for each axis. PTX: a call of `vprintf`.

    ```mlir
    tile.print "total: ", %x : tensor<64xf32>
    tile.print "starts"
    ```
  }];
  let arguments = (ins StrAttr:$text, Optional<Tile_Value>:$value, UnitAttr:$hex, UnitAttr:$isUnsigned,
                       DefaultValuedOptionalAttr<DenseI32ArrayAttr, "{}">:$first);
  let assemblyFormat = "$text (`,` $value^ `:` type($value))? attr-dict";
  let hasVerifier = 1;
}

def Tile_PromiseOp : Tile_Op<"promise", [Pure, AllTypesMatch<["source", "result"]>, Tile_KnowsRange]> {
  let summary = "a value as it is, of which its attributes promise something";
  let description = [{
    Promises (`tile.divisibility`, `tile.contiguity`, `tile.constancy`) are attributes of the op that makes a value; what a loop carries is made by
    none, and has this one. Nothing is checked, and nothing is left of it behind `tile-to-warp`.

    ```mlir
    %q = tile.promise %p {tile.divisibility = array<i32: 16>} : tensor<64x!tile.ptr<f16>>
    ```
  }];
  let arguments = (ins Tile_Value:$source);
  let results = (outs Tile_Value:$result);
  let assemblyFormat = "$source attr-dict `:` type($source)";
}

def Tile_InlineAsmOp : Tile_Op<"inline_asm", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>,
                                              DeclareOpInterfaceMethods<ConditionallySpeculatable>]> {
  let summary = "PTX, for every element or every few of them";
  let description = [{
    The code runs once for every `pack` elements that a thread holds; which ones these are is not specified. Its operands are, in LLVM's syntax, first the
    results as `$0`, `$1` ..., then the operands. Elements of less than 32 bits are packed: as many as fill 32 bits, at most `pack`, are one operand, the first in the lowest
    bits; the bits that they leave are 0. A value that is as wide as its register travels as its bits.

    `constraints` has one entry for each operand of the code, separated by commas, the results first: `=r` for 32 bits, `=h` 16, `=l` 64, `=f` and `=d` for f32 and
    f64 registers, the same without `=` for operands, `n` or `i` for an integer that is a constant and stands in the code as a number, a number for an operand that shares a result's register, then clobbers such as `~{memory}`. Without `pure` the code
    is kept, in order with accesses to memory.

    C1: at least one result, and at least one operand beside tensors. C2: all have one shape. C3: no pointers. C4: `pack` is a power of two. C5: constraints fit the operands in number, kind and
    width. C6: `$` is followed by the number of an operand, in braces or not, or by another `$`.

    ```mlir
    %y = tile.inline_asm "shf.l.wrap.b32 $0, $1, $1, 8;", "=r,r" pack 1 pure %x : (tensor<64xi32>) -> tensor<64xi32>
    ```
  }];
  let arguments = (ins StrAttr:$code, StrAttr:$constraints, I32Attr:$pack, UnitAttr:$pure, Variadic<Tile_Value>:$operands);
  let results = (outs Variadic<Tile_Value>:$results);
  let assemblyFormat = [{
    $code `,` $constraints `pack` $pack (`pure` $pure^)? $operands attr-dict `:` functional-type($operands, $results)
  }];
  let hasVerifier = 1;
  let extraClassDeclaration = [{
    /// One operand of the code: the class of its register ('r', 'h', 'l', 'f', 'd'), or 'n' or 'i' for a number in the
    /// code, and how wide that is.
    struct Constraint {
      char kind;
      unsigned bits;
      bool isResult;
      bool isImmediate() const { return kind == 'n' || kind == 'i'; }
    };
    /// The entries of `constraints`, results first, without clobbers; or what is wrong with them.
    ::mlir::FailureOr<::llvm::SmallVector<Constraint>> parseConstraints(::llvm::function_ref<void(const ::llvm::Twine &)> wrong);
    /// Elements of `type` that one operand of the code holds.
    unsigned elementsPerOperand(::mlir::Type type);
  }];
}

#endif // WEFT_DIALECTS_TILE_IR_TILEPROGRAMOPS_TD

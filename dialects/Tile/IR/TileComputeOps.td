// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Matrix products, reductions and scans. Included by TileOps.td.

def Tile_DotOp : Tile_Op<"dot", [Pure, AllTypesMatch<["acc", "result"]>]> {
  let summary = "matrix product, accumulated: result = a · b + acc";
  let description = [{
    C1: a is [M, K], b is [K, N], acc and result are [M, N]; of `batch` products at once a is [batch · M, K], b is [K, batch · N], and acc and result are [batch · M, N]: the i-th M rows
    of the result are those of a times the i-th N columns of b. C2: M is at least 16, N and K at least 8; of f64 M and N at least 8, K at least 4. C3: a and b have one element type, and the
    accumulator one that its products are summed in: f32 or f16 for f16, f8E4M3FN and f8E5M2; f32 for bf16 and f32; f64 for f64; i32 for i8. C4: `batch` and, of several products, all
    sizes are powers of two, and the products are made by matrix instructions, not of 8-bit floats and not to `ieee` precision.
    `precision` matters for f32 operands only. Products are exact and sums are kept in the accumulator's type. PTX: `mma.sync` (ISA
    9.7.14), or `fma.rn` for `ieee`.

    What is added to a product, and to nothing else of it, becomes its accumulator (`canonicalize`): `acc += a · b` is one instruction. Not so of
    8-bit floats and in f16, whose own sums keep fewer bits, nor what a row or a column repeats, which registers need not hold whole.

    ```mlir
    %d = tile.dot %a, %b, %c : tensor<64x32xf16> * tensor<32x64xf16> -> tensor<64x64xf32>
    ```
  }];
  let arguments = (ins Tile_Tensor:$a, Tile_Tensor:$b, Tile_Tensor:$acc,
                       DefaultValuedAttr<Tile_PrecisionAttr, "::weft::tile::Precision::TF32">:$precision,
                       DefaultValuedAttr<I32Attr, "1">:$batch);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$a `,` $b `,` $acc attr-dict `:` type($a) `*` type($b) `->` type($result)";
  let hasVerifier = 1;
  let hasCanonicalizeMethod = 1;
}

def Tile_RowDotOp : Tile_Op<"row_dot", [Pure, SameTypeOperands]> {
  let summary = "products of rows: result[i] = sum over k of a[i, k] * b[i, k]";
  let description = [{
    C1: a and b are [M, K] of f16 or bf16. C2: M and K are at least 16. C3: result is [M] of f32. Products are exact and sums are kept in f32. PTX: `mma.sync`
    (ISA 9.7.14) on pieces of rows, of whose products the diagonal is taken.

    ```mlir
    %s = tile.row_dot %q, %k : tensor<128x64xf16> -> tensor<128xf32>
    ```
  }];
  let arguments = (ins Tile_Tensor:$a, Tile_Tensor:$b);
  let results = (outs Tile_Tensor:$result);
  let assemblyFormat = "$a `,` $b attr-dict `:` type($a) `->` type($result)";
  let hasVerifier = 1;
}

def Tile_ReduceOp : Tile_Op<"reduce", [Pure, SingleBlock]> {
  let summary = "combine the elements along an axis";
  let description = [{
    Combines, in an order that is fixed but not specified, all elements along `axis` with an associative and commutative region of 2n scalar
    arguments (n accumulated, n new) that yields n scalars.

    C1: the n >= 1 sources have one shape, and `axis` is one of its axes. C2: result i is source i without the axis (a scalar when the
    source has rank 1). C3: the region takes the element types twice and yields them once. C4: it neither reads nor writes memory.

    ```mlir
    %m = tile.reduce %x {axis = 1 : i32} : (tensor<64x32xf32>) -> tensor<64xf32> {
    ^bb0(%a: f32, %b: f32):
      %c = arith.maximumf %a, %b : f32
      tile.yield %c : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$sources, I32Attr:$axis);
  let results = (outs Variadic<Tile_Value>:$results);
  let regions = (region SizedRegion<1>:$combiner);
  let assemblyFormat = "$sources attr-dict `:` functional-type(operands, results) $combiner";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_MapOp : Tile_Op<"map", [Pure, SingleBlock]> {
  let summary = "a function of scalars, for every element or every few of them";
  let description = [{
    The region runs once for every `pack` elements that a thread holds; which ones these are is not specified. It takes `pack` elements of the first source, `pack` of the
    second and so on, and yields as many of each result. It may branch and loop: each thread goes its own way.

    C1: the sources, at least one, and the results, at least one, have one shape. C2: `pack` is a power of two up to 32. C3: the region takes and yields `pack` times the
    element types. C4: it neither reads nor writes memory.

    ```mlir
    %y = tile.map %x {pack = 1 : i32} : (tensor<64xi32>) -> tensor<64xf32> {
    ^bb0(%a: i32):
      %f = arith.sitofp %a : i32 to f32
      tile.yield %f : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$sources, I32Attr:$pack);
  let results = (outs Variadic<Tile_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "$sources attr-dict `:` functional-type(operands, results) $body";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_ScanOp : Tile_Op<"scan", [Pure, SingleBlock]> {
  let summary = "combine the elements along an axis up to and including each one";
  let description = [{
    As `tile.reduce`, but every prefix is kept, and the region needs only be associative. With `reverse`, prefixes start at the last element.

    C1: the n >= 1 sources have one shape, and `axis` is one of its axes. C2: the results have the sources' types. C3: the region takes the
    element types twice and yields them once. C4: it neither reads nor writes memory.

    ```mlir
    %s = tile.scan %x {axis = 0 : i32} : (tensor<64xi32>) -> tensor<64xi32> {
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tile.yield %c : i32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Tensor>:$sources, I32Attr:$axis, UnitAttr:$reverse);
  let results = (outs Variadic<Tile_Tensor>:$results);
  let regions = (region SizedRegion<1>:$combiner);
  let assemblyFormat = "$sources attr-dict `:` functional-type(operands, results) $combiner";
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Tile_YieldOp : Tile_Op<"yield", [Pure, Terminator, ParentOneOf<["MapOp", "ReduceOp", "ScanOp"]>]> {
  let summary = "what a region of scalars gives";
  let description = [{
    Ends the region of a `tile.reduce`, `tile.scan` or `tile.map`, which checks its operands.

    ```mlir
    %sum = tile.reduce %x {axis = 0 : i32} : (tensor<64xi32>) -> i32 {
    ^bb0(%a: i32, %b: i32):
      %c = arith.addi %a, %b : i32
      tile.yield %c : i32
    }
    ```
  }];
  let arguments = (ins Variadic<Tile_Element>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Tile_BarrierOp : Tile_Op<"barrier", [MemoryEffects<[MemRead, MemWrite]>]> {
  let summary = "wait until every thread of the program arrives";
  let description = [{
    Memory that any thread wrote before it is visible to all of them after. PTX: `bar.sync`.

    ```mlir
    tile.barrier
    ```
  }];
  let assemblyFormat = "attr-dict";
}

def Tile_AssertOp : Tile_Op<"assert", [MemoryEffects<[MemWrite]>]> {
  let summary = "trap, with the message, when a condition is false";
  let description = [{
    Each element of a tensor is checked. PTX: `trap`, behind a call of `vprintf`.

    ```mlir
    tile.assert %inside, "index out of range" : tensor<64xi1>
    ```
  }];
  let arguments = (ins Tile_BoolLike:$condition, StrAttr:$message);
  let assemblyFormat = "$condition `,` $message attr-dict `:` type($condition)";
  let hasCanonicalizeMethod = 1;
}

def Tile_AssumeOp : Tile_Op<"assume", [DeclareOpInterfaceMethods<MemoryEffectsOpInterface>]> {
  let summary = "a promise that a condition holds wherever the program gets here";
  let description = [{
    Each element of a tensor is promised. The pointer analysis takes bounds and divisors from comparisons with constants, `x % c == 0`, and
    conjunctions of those; what else is promised is not used. Nothing is checked, and nothing is left of it behind `tile-to-warp`.

    ```mlir
    tile.assume %positive : i1
    ```
  }];
  let arguments = (ins Tile_BoolLike:$condition);
  let assemblyFormat = "$condition attr-dict `:` type($condition)";
  let hasCanonicalizeMethod = 1;
}

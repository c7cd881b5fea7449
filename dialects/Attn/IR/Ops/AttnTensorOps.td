// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Ops on whole tensors that are no softmax: maps, sums, convolutions, rope, rmsnorm. Included by AttnOps.td.

def Attn_MapOp : Attn_AnyElementOp<"map", [Pure, SingleBlock, DeclareOpInterfaceMethods<Attn_PaddingOpInterface>]> {
  let summary = "a scalar function of every element";
  let description = [{
    The region (arith and math ops on scalars, ends in `attn.yield`) takes one scalar for each input (floats as f32 whatever their storage, i1 as i1, other integers as i32) and
    yields one for each result, rounded once to the result's element. Inputs broadcast to the results' shape as in NumPy, aligned at the last axis; besides, where the results have
    size "k*X" at the axis of heads (1 of 4), an input may have X there: head h takes its h / k. `attn.index` and `attn.size` give positions.

    C1: at least one result; all of one shape. C2: each input broadcasts to it. C3: region arguments and yielded values as said. C4: no result is of 8-bit floats.

    ```mlir
    %y = attn.map ins(%x : !attn.tensor<[N, 64], f16>) -> !attn.tensor<[N, 64], f16> {
    ^bb0(%a: f32):
      %b = arith.negf %a : f32
      attn.yield %b : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Attn_Tensor>:$inputs);
  let results = (outs Variadic<Attn_Tensor>:$results);
  let regions = (region SizedRegion<1>:$body);
  let assemblyFormat = "(`ins` `(` $inputs^ `:` type($inputs) `)`)? attr-dict `->` type($results) $body";
  let builders = [OpBuilder<(ins "::mlir::TypeRange":$results, "::mlir::ValueRange":$inputs,
                                 "::llvm::function_ref<llvm::SmallVector<::mlir::Value>(::mlir::ImplicitLocOpBuilder &, ::mlir::ValueRange)>":$body)>];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
}

def Attn_IndexOp : Attn_Op<"index", [Pure, ParentOneOf<["MapOp"]>]> {
  let summary = "in a map: the element's position on an axis of the results";
  let description = [{
    ```mlir
    %positions = attn.map -> !attn.tensor<[N], i32> {
      %n = attn.index 0 : i32
      attn.yield %n : i32
    }
    ```
  }];
  let arguments = (ins I64Attr:$axis);
  let results = (outs I32:$result);
  let assemblyFormat = "$axis attr-dict `:` type($result)";
}

def Attn_SizeOp : Attn_Op<"size", [Pure]> {
  let summary = "in a scalar region: the value of a size";
  let description = [{
    `attn.size "N" : i32`. The expression is over symbols of the program's arguments.

    ```mlir
    %blocks = attn.size "cdiv(N, 64)" : i32
    ```
  }];
  let arguments = (ins StrAttr:$size);
  let results = (outs I32:$result);
  let assemblyFormat = "$size attr-dict `:` type($result)";
}

def Attn_ElementOp : Attn_AnyElementOp<"element", [Pure]> {
  let summary = "in a scalar region: an element of a tensor from outside";
  let description = [{
    Floats come as f32, i1 as i1, other integers as i32. An index on an axis of size 1 is taken as 0; one outside of another axis as the nearest inside. Differentiable in the tensor.

    ```mlir
    %slope = attn.element %slopes[%h] : !attn.tensor<[H], f32> -> f32
    ```
  }];
  let arguments = (ins Attn_Tensor:$tensor, Variadic<I32>:$indices);
  let results = (outs Attn_Scalar:$result);
  let assemblyFormat = "$tensor `[` $indices `]` attr-dict `:` type($tensor) `->` type($result)";
  let hasVerifier = 1;
}

def Attn_AccumulateOp : Attn_Op<"accumulate", [ParentOneOf<["AttendBackwardOp"]>]> {
  let summary = "in a gradient region: add to an element of a captured tensor's gradient";
  let description = [{
    `target` numbers the capture gradients among the op's results, from 0.

    ```mlir
    !x = !attn.tensor<[B, H, N, 64], f16>
    !n = !attn.tensor<[B, H, N], f32>
    %dq, %d:3 = attn.attend_backward %q keys(%k : !x) values(%v : !x) lse(%lse : !n) delta(%delta : !n)
      gradient(%do : !x) {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !x, !x, !attn.tensor<[H], f32>
      score_mod {
      ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
        %slope = attn.element %slopes[%h] : !attn.tensor<[H], f32> -> f32
        %r = arith.mulf %s, %slope : f32
        attn.yield %r : f32
      } grad {
      ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %g: f32):
        %slope = attn.element %slopes[%h] : !attn.tensor<[H], f32> -> f32
        %ds = arith.mulf %g, %slope : f32
        %dslope = arith.mulf %g, %s : f32
        attn.accumulate %dslope into 0[%h]
        attn.yield %ds : f32
      }
    ```
  }];
  let arguments = (ins F32:$value, I64Attr:$target, Variadic<I32>:$indices);
  let assemblyFormat = "$value `into` $target `[` $indices `]` attr-dict";
}

def Attn_YieldOp : Attn_Op<"yield", [Pure, Terminator]> {
  let summary = "what a scalar region gives";
  let description = [{
    ```mlir
    %y = attn.map ins(%x : !attn.tensor<[N], f16>) -> !attn.tensor<[N], f16> {
    ^bb0(%a: f32):
      attn.yield %a : f32
    }
    ```
  }];
  let arguments = (ins Variadic<Attn_Scalar>:$values);
  let assemblyFormat = "($values^ `:` type($values))? attr-dict";
}

def Attn_SumOp : Attn_Op<"sum", [Pure, DeclareOpInterfaceMethods<Attn_PaddingOpInterface>]> {
  let summary = "sum, in f32, over the axes at which the result has size 1, or fewer heads";
  let description = [{
    The transpose of a broadcast (`attn.map`): where the source has "k*X" heads and the result X, groups of k neighbouring heads are summed; a rank lower than the source's
    sums the missing leading axes away. With `away`, the source's axes that it lists are summed and are not in the result at all:

    ```mlir
    %delta = attn.sum %x away [3] : !attn.tensor<[B, H, N, 64], f32> -> !attn.tensor<[B, H, N], f32>
    ```

    C1: the result's shape, the axes of `away` taken as 1, broadcasts to the source's. C2: `away` ascends and is in range; the result has the rank that is left.
  }];
  let arguments = (ins Attn_Tensor:$source, OptionalAttr<DenseI64ArrayAttr>:$away);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$source (`away` $away^)? attr-dict `:` type($source) `->` type($result)";
  let builders = [OpBuilder<(ins "::mlir::Type":$result, "::mlir::Value":$source), [{
    build($_builder, $_state, result, source, /*away=*/nullptr);
  }]>];
  let extraClassDeclaration = [{
    /// The result's type in the source's rank: axes that it lacks have size 1. As it is where the ranks do not fit.
    WholeTensorType resultAtSourceRank();
  }];
  let hasVerifier = 1;
  let hasFolder = 1;
  let hasCanonicalizer = 1;
}

def Attn_PrefixMeanOp : Attn_Op<"prefix_mean", [Pure, DeclareOpInterfaceMethods<Attn_TransposableOpInterface>]> {
  let summary = "the causal mean: row n is the mean of rows 0 .. n of [B, H, N, D]; transposed: row m is the sum over n >= m of x_n / (n+1)";
  let description = [{
    C1: the source has rank 4, and the result its shape.

    ```mlir
    %mean = attn.prefix_mean %v : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f32>
    ```
  }];
  let arguments = (ins Attn_Tensor:$source, UnitAttr:$transposed);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDefinition = [{
    void $cppClass::transpose() { setTransposed(!getTransposed()); }
  }];
}

def Attn_SequenceMeanOp : Attn_Op<"sequence_mean", [Pure, DeclareOpInterfaceMethods<Attn_TransposableOpInterface>]> {
  let summary = "the mean over each of the sequences packed in [B, H, N, D]: row n is the mean, in f32, of the rows of its sequence";
  let description = [{
    It is its own transpose.

    C1: the source has rank 4 and static D, and the result its shape. C2: cu_seqlens ([S+1], where each sequence starts) has rank 1 and i32 elements.

    ```mlir
    %mean = attn.sequence_mean %v cu_seqlens %starts
      : !attn.tensor<[1, H, N, 64], f16>, !attn.tensor<["S + 1"], i32> -> !attn.tensor<[1, H, N, 64], f32>
    ```
  }];
  let arguments = (ins Attn_Tensor:$source, Attn_Tensor:$cuSeqlens);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$source `cu_seqlens` $cuSeqlens attr-dict `:` type($source) `,` type($cuSeqlens) `->` type($result)";
  let hasVerifier = 1;
  let extraClassDefinition = [{
    void $cppClass::transpose() {  }
  }];
}

def Attn_ConvolveOp : Attn_Op<"convolve", [Pure, DeclareOpInterfaceMethods<Attn_PaddingOpInterface>]> {
  let summary = "a Toeplitz mixer applied: depthwise convolution along the sequence, or over a grid of tokens";
  let description = [{
    result[b, h, n, c] = Σ_j taps[j, h·C + c] · x[b, h, n - dilation (j - centre), c], zero outside. With `grid` as `attn.toeplitz`. `transposed` is the transpose:
    n + dilation (j - centre).

    K may be a symbol, such as N: then the taps are neither centred nor dilated, there is no grid, and the products of a convolution with as many taps as tokens are those of matrices.
    With `cu_seqlens` ([S+1] i32) rows outside of row n's sequence count as 0.

    C1: x is [B, H, N, C]; taps [K, H·C], with static K where they are centred, dilated, on a grid or of packed sequences. C2: the result has x's shape. C3: centred taps have odd K.
    C4: cu_seqlens has rank 1 and i32 elements, and there is no grid with it.

    ```mlir
    !x = !attn.tensor<[B, H, N, 64], f16>
    %y = attn.convolve %x, %taps {centred, dilation = 2 : i64} : !x, !attn.tensor<[3, "H*64"], f16> -> !x
    ```
  }];
  let arguments = (ins Attn_Tensor:$source, Attn_Tensor:$taps, Optional<Attn_Tensor>:$cuSeqlens, UnitAttr:$centred, DefaultValuedAttr<I64Attr, "1">:$dilation,
                       OptionalAttr<DenseI64ArrayAttr>:$grid, UnitAttr:$transposed);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$source `,` $taps (`cu_seqlens` $cuSeqlens^)? attr-dict `:` type($source) `,` type($taps) (`,` type($cuSeqlens)^)? `->` type($result)";
  let hasVerifier = 1;
}

def Attn_ConvolveTapsGradOp : Attn_Op<"convolve_taps_grad", [Pure, Attn_GradientOnly]> {
  let summary = "gradient of `attn.convolve` in its taps: Σ_{b, n} gradient[b, h, n, c] · x[b, h, n - dilation (j - centre), c] at tap j, channel h·C + c";
  let description = [{
    `transposed`: of the transposed convolution, x[b, h, n + dilation (j - centre), c]. C1: as `attn.convolve` C1, C3
    and C4, the result in place of the taps. C2: source and gradient have one shape.

    ```mlir
    !x = !attn.tensor<[B, H, N, 64], f16>
    %dtaps = attn.convolve_taps_grad %x, %dy {centred, dilation = 2 : i64} : !x, !x -> !attn.tensor<[3, "H*64"], f16>
    ```
  }];
  let arguments = (ins Attn_Tensor:$source, Attn_Tensor:$gradient, Optional<Attn_Tensor>:$cuSeqlens, UnitAttr:$centred, DefaultValuedAttr<I64Attr, "1">:$dilation,
                       OptionalAttr<DenseI64ArrayAttr>:$grid, UnitAttr:$transposed);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$source `,` $gradient (`cu_seqlens` $cuSeqlens^)? attr-dict `:` type($source) `,` type($gradient) (`,` type($cuSeqlens)^)? `->` type($result)";
  let hasVerifier = 1;
}

def Attn_RopeForm : I32Enum<"RopeForm", "which position turns which pair of channels", [
    I32EnumCase<"Line", 0, "line">,     // one position for all pairs
    I32EnumCase<"Axial", 1, "axial">]> { // the first half of the pairs turns with the row of the grid, the second with the column
  let cppNamespace = "::weft::attn";
}
def Attn_RopeFormAttr : EnumAttr<Attn_Dialect, Attn_RopeForm, "rope">;

def Attn_RopeOp : Attn_Op<"rope", [Pure, DeclareOpInterfaceMethods<Attn_PaddingOpInterface>, DeclareOpInterfaceMethods<Attn_TransposableOpInterface>]> {
  let summary = "rotary positions on [B, H, N, D]: pair (2i, 2i+1) turned by position · base^(-2i/D)";
  let description = [{
    The position is n, or the index in the query's window where `window` = [w] is given; with `window` = [wr, wc] and `grid` = [h, w], tokens are those of a grid: form `axial` turns
    pairs 0 .. D/4-1 with the row in the window and the rest with the column, pair j of each half by base^(-j/(D/4)); form `line` takes the one position r·wc + c.
    `inverse` turns back (the transpose). With `cu_seqlens` ([S+1] i32) positions count from the start of the row's sequence.

    C1: D is static and even; for `axial` 4 divides it. C2: `axial` needs window and grid of two. C3: cu_seqlens has rank 1 and i32 elements, and there is no grid with it.

    ```mlir
    !x = !attn.tensor<[B, H, N, 64], f16>
    %q = attn.rope %x : !x -> !x
    %p = attn.rope %x {form = #attn<rope axial>, grid = array<i64: 56, 56>, window = array<i64: 7, 7>} : !x -> !x
    ```
  }];
  let arguments = (ins Attn_Tensor:$source, Optional<Attn_Tensor>:$cuSeqlens, DefaultValuedAttr<F64Attr, "10000.0">:$base, OptionalAttr<DenseI64ArrayAttr>:$window,
                       OptionalAttr<DenseI64ArrayAttr>:$grid, DefaultValuedAttr<Attn_RopeFormAttr, "::weft::attn::RopeForm::Line">:$form, UnitAttr:$inverse);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$source (`cu_seqlens` $cuSeqlens^)? attr-dict `:` type($source) (`,` type($cuSeqlens)^)? `->` type($result)";
  let hasVerifier = 1;
  let extraClassDefinition = [{
    // Pairs of padding are turned with each other.
    Padding $cppClass::paddingOf(unsigned, int64_t, ::llvm::ArrayRef<Padding> operands) { return weighted(operands[0]); }
    void $cppClass::transpose() { setInverse(!getInverse()); }
  }];
}

def Attn_RmsNormOp : Attn_Op<"rms_norm", [Pure, DeclareOpInterfaceMethods<Attn_PaddingOpInterface>]> {
  let summary = "x · gain / sqrt(mean(x²) + eps) over the last axis; gain [H, D], or none";
  let description = [{
    C1: the source has rank 4, and the result its shape. C2: the gain is [H, D] of the source.

    ```mlir
    !x = !attn.tensor<[B, H, N, 64], f16>
    %q = attn.rms_norm %x, %gain {eps = 1.0e-5 : f64} : !x, !attn.tensor<[H, 64], f32> -> !x
    ```
  }];
  let arguments = (ins Attn_Tensor:$source, Optional<Attn_Tensor>:$gain, DefaultValuedAttr<F64Attr, "1e-6">:$eps);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$source (`,` $gain^)? attr-dict `:` type($source) (`,` type($gain)^)? `->` type($result)";
  let hasVerifier = 1;
}

def Attn_PagedOp : Attn_AnyElementOp<"paged", [Pure, DeclareOpInterfaceMethods<Attn_PaddingOpInterface>]> {
  let summary = "sequences of keys or values whose rows lie in pages, which a table names";
  let description = [{
    Row m of key head h of sequence b is row m % S of page `table[b, m / S]`, pages being of S rows; from row `lengths[b]`, or `lengths[b, h]`, on there is nothing but 0. What lies in pages behind a sequence's end is never read, and an entry of the
    table that names no page is read as the last page.

    It is an address, not a copy: kernels that read the result find its rows in the pages. There is no gradient.

    C1: pages are [P, S, Hkv, D], S an integer; the result is [B, Hkv, M, D] of their elements, M being S times the table's second size. C2: the table is [B, T] and lengths [B] or [B, Hkv], of i32.

    ```mlir
    %k = attn.paged %pages by %table lengths %lengths
      : !attn.tensor<[P, 16, Hkv, 64], f16>, !attn.tensor<[B, T], i32>, !attn.tensor<[B], i32> -> !attn.tensor<[B, Hkv, "16*T", 64], f16>
    ```
  }];
  let arguments = (ins Attn_Tensor:$pages, Attn_Tensor:$table, Attn_Tensor:$lengths);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$pages `by` $table `lengths` $lengths attr-dict `:` type($pages) `,` type($table) `,` type($lengths) `->` type($result)";
  let hasVerifier = 1;
}

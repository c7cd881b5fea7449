// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Ops that merge runs of adjacent tokens (semantic foundation attention), and the shift that decides which. Included by
// AttnOps.td.

def Attn_ShiftOp : Attn_Op<"shift", [Pure, DeclareOpInterfaceMethods<Attn_PaddingOpInterface>, DeclareOpInterfaceMethods<Attn_TransposableOpInterface>]> {
  let summary = "rows of [B, H, N, D] or [B, H, N] moved along the sequence: row n is the source's row n - by, 0 where there is none";
  let description = [{
    With `cu_seqlens` ([S+1] i32) rows stay within their sequence: row n is 0 where n - by lies in another. The transpose is the shift by -by.

    C1: the source has rank 3 or 4, and the result its shape. C2: cu_seqlens has rank 1 and i32 elements. C3: `by` is not 0.

    ```mlir
    %before = attn.shift %k {by = 1 : i64} : !attn.tensor<[B, H, N, 64], f32> -> !attn.tensor<[B, H, N, 64], f32>
    ```
  }];
  let arguments = (ins Attn_Tensor:$source, Optional<Attn_Tensor>:$cuSeqlens, I64Attr:$by);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$source (`cu_seqlens` $cuSeqlens^)? attr-dict `:` type($source) (`,` type($cuSeqlens)^)? `->` type($result)";
  let hasVerifier = 1;
  let extraClassDefinition = [{
    void $cppClass::transpose() { setBy(-getBy()); }
  }];
}

def Attn_MergeUnitsOp : Attn_Op<"merge_units", [Pure, AttrSizedOperandSegments]> {
  let summary = "runs of joined tokens become units, and rows of tensors are merged over each";
  let description = [{
    `joins` [B, H, N] i1 joins token n to n - 1; token 0 has none before it, and where `cu_seqlens` packs sequences joins at their starts are false already. A chain is a maximal run
    of joins, numbered from 1; join j is dropped where maxJoins + 1 divides j. A unit is a maximal run of tokens so joined, and its survivor its last token; units are numbered along
    each (b, h) from 0, and there are as many as tokens that are not joined.

    Row m of `merged` is, of unit m's rows in the source: `sum`, in f32, rounded once; `last`, the survivor's; `mean`. With offset 1 it is unit m + 1's of the same sequence, and 0 where
    m is its last. Rows past the units are finite.

    `unit` [B, H, N]: each token's unit. `lower`: the unit of the first token of its sequence. `upper`: lower[n] <= m < upper[n] are the units that token n sees: those whose survivor
    is before n, or with an offset of 1 among the sources those with unit m + 1's survivor at n or before. `ends` [B, H, N], by unit: one past its survivor. `first`, `past` [B, H, N], by
    unit: first[m] <= n < past[m] are the tokens that see it. Past the last unit ends, first and past are N. `kept` [B, H, N] i1: the joins that are not dropped.

    C1: joins is [B, H, N] of i1; results beside merged have its shape, i1 for kept and i32 for others. C2: each source is [B, H, N, D] with static D; its merged has the same shape; modes
    and offsets are as many, offsets 0 or 1. C3: maxJoins is at least 0. C4: cu_seqlens has rank 1 and i32 elements.

    ```mlir
    !n = !attn.tensor<[B, H, N], i32>
    %ku, %unit, %lower, %upper, %ends, %first, %past, %kept = attn.merge_units %joins (%k)
      {maxJoins = 20 : i64, modes = [#attn<merge sum>], offsets = array<i64: 0>}
      : !attn.tensor<[B, H, N], i1> (!attn.tensor<[B, H, N, 64], f16>)
      -> (!attn.tensor<[B, H, N, 64], f16>), !n, !n, !n, !n, !n, !n, !attn.tensor<[B, H, N], i1>
    ```
  }];
  let arguments = (ins Attn_Tensor:$joins, Optional<Attn_Tensor>:$cuSeqlens, Variadic<Attn_Tensor>:$sources, I64Attr:$maxJoins,
                       TypedArrayAttrBase<Attn_MergeAttr, "array of merges">:$modes, DenseI64ArrayAttr:$offsets);
  let results = (outs Variadic<Attn_Tensor>:$merged, Attn_Tensor:$unit, Attn_Tensor:$lower, Attn_Tensor:$upper, Attn_Tensor:$ends, Attn_Tensor:$first,
                      Attn_Tensor:$past, Attn_Tensor:$kept);
  let assemblyFormat = [{
    $joins (`cu_seqlens` $cuSeqlens^)? `(` $sources `)` attr-dict `:` type($joins) (`,` type($cuSeqlens)^)? `(` type($sources) `)` `->` `(` type($merged) `)` `,` type($unit) `,` type($lower) `,`
    type($upper) `,` type($ends) `,` type($first) `,` type($past) `,` type($kept)
  }];
  let extraClassDeclaration = [{
    /// How source `i` is merged.
    MergeMode modeOf(unsigned i) { return ::llvm::cast<MergeModeAttr>(getModes()[i]).getValue(); }
    /// Whether a source's rows lie one unit earlier, so that units are seen one survivor later.
    bool hasOffset() { return ::llvm::is_contained(getOffsets(), 1); }
  }];
  let hasVerifier = 1;
}

def Attn_SpreadOp : Attn_Op<"spread", [Pure, Attn_GradientOnly, AttrSizedOperandSegments, DeclareOpInterfaceMethods<Attn_PaddingOpInterface>]> {
  let summary = "the transpose of a merge: each token takes its unit's row";
  let description = [{
    Row n of the result is row unit[n] - offset of the source: `sum`, as it is; `last`, where n is the unit's survivor (ends[unit[n]] = n + 1), else 0; `mean`, over the unit's length.
    With offset 1 the tokens of a sequence's first unit (unit[n] = lower[n]) get 0. `ends` is there for `last` and `mean`, `lower` for offset 1.

    C1: source and result are [B, H, N, D] of one shape. C2: unit, and lower and ends where they are, are [B, H, N] of i32. C3: offset is 0 or 1, with lower where it is 1; ends is there
    where the mode is not `sum`.

    ```mlir
    %dk = attn.spread %dku by %unit {mode = #attn<merge sum>, offset = 0 : i64} : !attn.tensor<[B, H, N, 64], f32>, !attn.tensor<[B, H, N], i32> -> !attn.tensor<[B, H, N, 64], f32>
    ```
  }];
  let arguments = (ins Attn_Tensor:$source, Attn_Tensor:$unit, Optional<Attn_Tensor>:$lower, Optional<Attn_Tensor>:$ends, Attn_MergeAttr:$mode, I64Attr:$offset);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = [{
    $source `by` $unit (`lower` $lower^)? (`ends` $ends^)? attr-dict `:` type($source) `,` type($unit) (`lower` type($lower)^)? (`ends` type($ends)^)? `->` type($result)
  }];
  let hasVerifier = 1;
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Sequence mixers, how they combine, and their application. Included by AttnOps.td.

def Attn_SoftmaxOp : Attn_Op<"softmax", [Pure, AttrSizedOperandSegments]> {
  let summary = "the mixer of softmax attention, over one domain of keys or several under one softmax";
  let description = [{
    Row n is the softmax over every pair of every domain's pattern of s = score_mod(scale * q_n . k_m); operands and regions as those of `attn.attend`, without values; so are `cu_seqlens`, sequences packed in the batch of 1, and `splits`.

    ```mlir
    %a = attn.softmax %q keys(%k : !attn.tensor<[B, H, N, 64], f16>) {patterns = [#attn.causal], scale = 0.125 : f32} : !attn.tensor<[B, H, N, 64], f16>
    ```
  }];
  let arguments = (ins Attn_Tensor:$query, Variadic<Attn_Tensor>:$keys, Variadic<Attn_Tensor>:$counts, Optional<Attn_Tensor>:$sink,
                       Variadic<Attn_Tensor>:$cuSeqlens, Variadic<Attn_Tensor>:$patternOperands, Attn_PatternArray:$patterns, F32Attr:$scale,
                       DefaultValuedAttr<Attn_PrecisionAttr, "::weft::attn::Precision::F32">:$precision,
                       OptionalAttr<I64Attr>:$splits, OptionalAttr<Attn_ScheduleAttr>:$schedule);
  let results = (outs Attn_MixerType:$result);
  let regions = (region AnyRegion:$scoreMod, VariadicRegion<SizedRegion<1>>:$masks);
  let assemblyFormat = [{
    $query `keys` `(` $keys `:` type($keys) `)` (`counts` `(` $counts^ `:` type($counts) `)`)? (`sink` `(` $sink^ `:` type($sink) `)`)?
    (`cu_seqlens` `(` $cuSeqlens^ `:` type($cuSeqlens) `)`)? (`over` `(` $patternOperands^ `:` type($patternOperands) `)`)? attr-dict `:` type($query) (`score_mod` $scoreMod^)? (`masks` `(` $masks^ `)`)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
}

def Attn_MeanOp : Attn_Op<"mean", [Pure]> {
  let summary = "the mixer (1/N) 1·1ᵀ; causal: A[n, m] = 1/(n+1) for m <= n; with cu_seqlens ([S+1] i32), of each packed sequence's own rows";
  let description = [{
    C1: cu_seqlens has rank 1 and i32 elements, and a mean of packed sequences is not causal.

    ```mlir
    %mean = attn.mean {causal}
    ```
  }];
  let arguments = (ins Optional<Attn_Tensor>:$cuSeqlens, UnitAttr:$causal);
  let results = (outs Attn_MixerType:$result);
  let assemblyFormat = "(`cu_seqlens` $cuSeqlens^)? attr-dict (`:` type($cuSeqlens)^)?";
  let hasVerifier = 1;
}

def Attn_ToeplitzOp : Attn_Op<"toeplitz", [Pure]> {
  let summary = "the mixer A[n, m] = w[j] where n - m = dilation (j - c), for each channel";
  let description = [{
    Taps are [K, H·C], channel h·C + c; c = 0, or (K-1)/2 where `centred`. With `grid` = [h, w] the sequence is a grid of tokens numbered row by row, taps are
    [K·K, H·C], tap i·K + j, centred, and n - m is that of both coordinates. With `cu_seqlens` ([S+1] i32) A[n, m] is 0 where n and m are of different sequences.
    C1: centred taps have odd K. C2: cu_seqlens as `attn.convolve` has them.

    ```mlir
    %conv = attn.toeplitz %taps {centred} : !attn.tensor<[3, "H*64"], f16>
    ```
  }];
  let arguments = (ins Attn_Tensor:$taps, Optional<Attn_Tensor>:$cuSeqlens, UnitAttr:$centred, DefaultValuedAttr<I64Attr, "1">:$dilation, OptionalAttr<DenseI64ArrayAttr>:$grid);
  let results = (outs Attn_MixerType:$result);
  let assemblyFormat = "$taps (`cu_seqlens` $cuSeqlens^)? attr-dict `:` type($taps) (`,` type($cuSeqlens)^)?";
  let hasVerifier = 1;
}

def Attn_DiagOp : Attn_Op<"diag", [Pure]> {
  let summary = "the mixer diag(g): a gate. g is [B, H, N] or [B, H, N, 1], one a head, or [B, H, N, Dv], one a channel; [1, 1, 1, 1] is a number";
  let description = [{
    ```mlir
    %gate = attn.diag %g : !attn.tensor<[B, H, N, 1], f16>
    ```
  }];
  let arguments = (ins Attn_Tensor:$gate);
  let results = (outs Attn_MixerType:$result);
  let assemblyFormat = "$gate attr-dict `:` type($gate)";
  let hasVerifier = 1;
}

def Attn_AddOp : Attn_Op<"add", [Pure]> {
  let summary = "A + B";
  let description = [{
    ```mlir
    %sum = attn.add %softmax, %mean
    ```
  }];
  let arguments = (ins Attn_MixerType:$lhs, Attn_MixerType:$rhs);
  let results = (outs Attn_MixerType:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict";
}

def Attn_ComposeOp : Attn_Op<"compose", [Pure]> {
  let summary = "A · B: B mixes first";
  let description = [{
    Means of means fold: mean · mean is mean.

    ```mlir
    %gated = attn.compose %gate, %softmax
    ```
  }];
  let arguments = (ins Attn_MixerType:$lhs, Attn_MixerType:$rhs);
  let results = (outs Attn_MixerType:$result);
  let assemblyFormat = "$lhs `,` $rhs attr-dict";
  let hasFolder = 1;
}

def Attn_ApplyOp : Attn_Op<"apply", [Pure]> {
  let summary = "A · v: a mixer applied to values [B, Hkv, M, Dv], one tensor for each of its domains";
  let description = [{
    The result is [B, H, N, Dv] in the values' element type; sums inside are f32.

    ```mlir
    %y = attn.apply %a, %v : (!attn.tensor<[B, H, N, 64], f16>) -> !attn.tensor<[B, H, N, 64], f16>
    ```
  }];
  let arguments = (ins Attn_MixerType:$mixer, Variadic<Attn_Tensor>:$values);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$mixer `,` $values attr-dict `:` functional-type($values, $result)";
  let hasVerifier = 1;
}

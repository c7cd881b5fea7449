// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Softmax attention applied, its gradient, and the launches that both become. Included by AttnOps.td.

def Attn_AttendOp : Attn_Op<"attend", [Pure, AttrSizedOperandSegments]> {
  let summary = "softmax attention of queries over one domain of keys and values or several, under one softmax";
  let description = [{
    s(n, m) = score_mod(scale · q_n · k_m) for the pairs of each domain's pattern; P is the softmax over all of them; out = Σ P v, lse = log Σ exp s (natural, f32). A row that
    attends to nothing gives 0 and -inf. `sink` [H] is a logit in the normaliser without a value.

    `keys` [B, Hkv, M, D] and `values` [B, Hkv, M, Dv] are one of each for each domain, whose Hkv is its own; H is Hkv or "k*Hkv". `counts`, none or one a domain, [B, Hkv] or [B] i32: how many of the
    domain's keys there are. `cu_seqlens`, none or two ([S+1] i32, of queries and of keys): B is 1, and rows cu[s] .. cu[s+1]-1 attend to keys of the same s only, patterns and their regions counting from each start; so they
    name no spans and no documents, which are of the tokens of all.
    Regions: `score_mod` (score f32, b, h, n, m i32) -> f32, may be empty; `masks` (b, h, n, m) -> i1, that `#attn.mask<i>` names. They may use tensors from outside by `attn.element`.

    With `splits` each sequence's keys are divided among programs, whose results are merged in the keys' order: into so many runs, or for 0 into as many as the sequence's own length asks for. It is for few queries, and
    changes no result but in its last bits.

    C1: query, keys and values have rank 4, one batch size; each key's D is the query's; each value's M is its key's, and all have one Dv. C2: one pattern a domain; operands and regions they name exist.
    C3: out is [B, H, N, Dv]; lse is [B, H, N] f32. C4: regions as said. C5: counts, sink and cu_seqlens as said. C6: splits are not negative.

    ```mlir
    !x = !attn.tensor<[B, H, N, 64], f16>
    %out, %lse = attn.attend %q keys(%k : !x) values(%v : !x) {patterns = [#attn.causal], scale = 0.125 : f32}
      : !x -> !x, !attn.tensor<[B, H, N], f32>
    ```
  }];
  let arguments = (ins Attn_Tensor:$query, Variadic<Attn_Tensor>:$keys, Variadic<Attn_Tensor>:$values, Variadic<Attn_Tensor>:$counts, Optional<Attn_Tensor>:$sink,
                       Variadic<Attn_Tensor>:$cuSeqlens, Variadic<Attn_Tensor>:$patternOperands, Attn_PatternArray:$patterns, F32Attr:$scale,
                       DefaultValuedAttr<Attn_PrecisionAttr, "::weft::attn::Precision::F32">:$precision,
                       OptionalAttr<I64Attr>:$splits, OptionalAttr<Attn_ScheduleAttr>:$schedule);
  let results = (outs Attn_Tensor:$out, Attn_Tensor:$lse);
  let regions = (region AnyRegion:$scoreMod, VariadicRegion<SizedRegion<1>>:$masks);
  let assemblyFormat = [{
    $query `keys` `(` $keys `:` type($keys) `)` `values` `(` $values `:` type($values) `)` (`counts` `(` $counts^ `:` type($counts) `)`)?
    (`sink` `(` $sink^ `:` type($sink) `)`)? (`cu_seqlens` `(` $cuSeqlens^ `:` type($cuSeqlens) `)`)? (`over` `(` $patternOperands^ `:` type($patternOperands) `)`)?
    attr-dict `:` type($query) `->` type($out) `,` type($lse) (`score_mod` $scoreMod^)? (`masks` `(` $masks^ `)`)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
}

def Attn_AttendBackwardOp : Attn_Op<"attend_backward", [Pure, Attn_GradientOnly, AttrSizedOperandSegments]> {
  let summary = "gradients of `attn.attend` in queries, keys, values and captured tensors";
  let description = [{
    With P = exp(s - lse): dP = dOut · vᵀ, g = P ⊙ (dP - delta), ds = g · score_mod'(s), dq = scale Σ ds k, dk = scale Σ dsᵀ q, dv = Σ Pᵀ dOut. `delta` [B, H, N] f32 is the row sum of
    dOut ⊙ out, less the gradient of lse. Operands and attributes otherwise as `attn.attend`.

    `score_mod` as there. `score_mod_grad` (score before the mod, b, h, n, m, g) -> f32: the gradient in the score; `attn.accumulate` in it adds to gradients of captured
    tensors, which are the results after dv. Both are empty together, or `score_mod_grad` gives the derivative of the other.

    `fast` allows sums in an order that changes from run to run (atomics); without it results are the same bits every time.

    The schedules are those of the kernels that make dq, dk with dv, and dv where values are wide; one kernel that makes several runs by that of the keys.

    C1: as `attn.attend` C1-C5. C2: lse and delta are [B, H, N] f32; dOut has the shape of out. C3: results are dq, then dk and dv of each domain, in the shapes of query, keys and values,
    then the gradients of captures.

    ```mlir
    !x = !attn.tensor<[B, H, N, 64], f16>
    !n = !attn.tensor<[B, H, N], f32>
    %dq, %d:2 = attn.attend_backward %q keys(%k : !x) values(%v : !x) lse(%lse : !n) delta(%delta : !n)
      gradient(%do : !x) {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !x, !x
    ```
  }];
  let arguments = (ins Attn_Tensor:$query, Variadic<Attn_Tensor>:$keys, Variadic<Attn_Tensor>:$values, Variadic<Attn_Tensor>:$counts, Attn_Tensor:$lse, Attn_Tensor:$delta, Attn_Tensor:$dOut,
                       Variadic<Attn_Tensor>:$cuSeqlens, Variadic<Attn_Tensor>:$patternOperands, Attn_PatternArray:$patterns, F32Attr:$scale,
                       DefaultValuedAttr<Attn_PrecisionAttr, "::weft::attn::Precision::F32">:$precision, UnitAttr:$fast,
                       OptionalAttr<Attn_ScheduleAttr>:$scheduleQuery, OptionalAttr<Attn_ScheduleAttr>:$scheduleKeys,
                       OptionalAttr<Attn_ScheduleAttr>:$scheduleValues);
  let results = (outs Attn_Tensor:$dQuery, Variadic<Attn_Tensor>:$gradients);
  let regions = (region AnyRegion:$scoreMod, AnyRegion:$scoreModGrad, VariadicRegion<SizedRegion<1>>:$masks);
  let assemblyFormat = [{
    $query `keys` `(` $keys `:` type($keys) `)` `values` `(` $values `:` type($values) `)` (`counts` `(` $counts^ `:` type($counts) `)`)?
    `lse` `(` $lse `:` type($lse) `)` `delta` `(` $delta `:` type($delta) `)` `gradient` `(` $dOut `:` type($dOut) `)`
    (`cu_seqlens` `(` $cuSeqlens^ `:` type($cuSeqlens) `)`)? (`over` `(` $patternOperands^ `:` type($patternOperands) `)`)?
    attr-dict `:` type($query) `->` type($dQuery) `,` type($gradients) (`score_mod` $scoreMod^ `grad` $scoreModGrad)? (`masks` `(` $masks^ `)`)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
  let hasCanonicalizer = 1;
}

def Attn_AttendTangentOp : Attn_Op<"attend_tangent", [Pure, AttrSizedOperandSegments]> {
  let summary = "softmax attention and its tangent, in one walk over the keys";
  let description = [{
    out and lse as `attn.attend` has them, and how they change with the operands: with ds = score_mod'(scale · (dq · k + q · dk)) and mu = Σ P ds (and P_sink dsink, where there is a sink),
    dout = Σ P (ds - mu) v + Σ P dv and dlse = mu. Operands and attributes otherwise as there.

    `tangents` are those of the query, of the keys and of the values, one of each for each domain, and of the sink; what is not given is zero. `score_mod` as there; `score_mod_tangent` (score before
    the mod, b, h, n, m, its tangent) -> f32: the tangent of the score. Both are empty together.

    C1: as `attn.attend` C1-C5. C2: a tangent has the type of what it is the tangent of; of keys and of values there are none, or as many as domains; of the sink only where there is a sink.
    C3: out's tangent has the shape of out, and lse's is [B, H, N] f32. C4: `score_mod_tangent` as said.

    ```mlir
    !x = !attn.tensor<[B, H, N, 64], f16>
    !n = !attn.tensor<[B, H, N], f32>
    %out, %lse, %dout, %dlse = attn.attend_tangent %q keys(%k : !x) values(%v : !x) query_tangent(%dq : !x) value_tangents(%dv : !x)
      {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !n, !x, !n
    ```
  }];
  let arguments = (ins Attn_Tensor:$query, Variadic<Attn_Tensor>:$keys, Variadic<Attn_Tensor>:$values, Variadic<Attn_Tensor>:$counts, Optional<Attn_Tensor>:$sink,
                       Variadic<Attn_Tensor>:$cuSeqlens, Variadic<Attn_Tensor>:$patternOperands, Optional<Attn_Tensor>:$queryTangent, Variadic<Attn_Tensor>:$keyTangents,
                       Variadic<Attn_Tensor>:$valueTangents, Optional<Attn_Tensor>:$sinkTangent, Attn_PatternArray:$patterns, F32Attr:$scale,
                       DefaultValuedAttr<Attn_PrecisionAttr, "::weft::attn::Precision::F32">:$precision);
  let results = (outs Attn_Tensor:$out, Attn_Tensor:$lse, Attn_Tensor:$outTangent, Attn_Tensor:$lseTangent);
  let regions = (region AnyRegion:$scoreMod, AnyRegion:$scoreModTangent, VariadicRegion<SizedRegion<1>>:$masks);
  let assemblyFormat = [{
    $query `keys` `(` $keys `:` type($keys) `)` `values` `(` $values `:` type($values) `)` (`counts` `(` $counts^ `:` type($counts) `)`)?
    (`sink` `(` $sink^ `:` type($sink) `)`)? (`cu_seqlens` `(` $cuSeqlens^ `:` type($cuSeqlens) `)`)? (`over` `(` $patternOperands^ `:` type($patternOperands) `)`)?
    (`query_tangent` `(` $queryTangent^ `:` type($queryTangent) `)`)? (`key_tangents` `(` $keyTangents^ `:` type($keyTangents) `)`)?
    (`value_tangents` `(` $valueTangents^ `:` type($valueTangents) `)`)? (`sink_tangent` `(` $sinkTangent^ `:` type($sinkTangent) `)`)?
    attr-dict `:` type($query) `->` type($out) `,` type($lse) `,` type($outTangent) `,` type($lseTangent)
    (`score_mod` $scoreMod^ `tangent` $scoreModTangent)? (`masks` `(` $masks^ `)`)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Attn_AttendBackwardTangentOp : Attn_Op<"attend_backward_tangent", [Pure, Attn_GradientOnly, AttrSizedOperandSegments]> {
  let summary = "the tangent of `attn.attend_backward`: what second derivatives are made of";
  let description = [{
    How dq, and dk and dv of each domain, change with all that `attn.attend_backward` reads, given tangents of query, keys, values, lse, delta and dOut. With a = dOut · vᵀ - delta and x' the tangent
    of x: P' = P ⊙ (s' - lse'), g' = P' ⊙ a + P ⊙ (dOut' · vᵀ + dOut · v'ᵀ - delta'), ds' of g' through `score_mod_grad`; dq' = scale (ds' k + ds k'), dk' = scale (ds'ᵀ q + dsᵀ q'),
    dv' = P'ᵀ dOut + Pᵀ dOut'. No gradients of captured tensors.

    `score_mod_tangent` as `attn.attend_tangent` has it; `score_mod_grad` as `attn.attend_backward`, without `attn.accumulate`; `score_mod_grad_tangent` (score before the mod, b, h, n, m, g, and the
    tangents of score and g) -> f32: the tangent of the other. All four are empty together.

    C1: as `attn.attend_backward` C1 and C2. C2: tangents as `attn.attend_tangent` C2. C3: results are those of dq, and of dk and dv of each domain, in the shapes of query, keys and values. C4: regions as said.

    ```mlir
    !x = !attn.tensor<[B, H, N, 64], f16>
    !n = !attn.tensor<[B, H, N], f32>
    %tq, %t:2 = attn.attend_backward_tangent %q keys(%k : !x) values(%v : !x) lse(%lse : !n) delta(%delta : !n) gradient(%do : !x)
      query_tangent(%q : !x) key_tangents(%k : !x) value_tangents(%v : !x) lse_tangent(%lse : !n) delta_tangent(%delta : !n) gradient_tangent(%do : !x)
      {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !x, !x
    ```
  }];
  let arguments = (ins Attn_Tensor:$query, Variadic<Attn_Tensor>:$keys, Variadic<Attn_Tensor>:$values, Variadic<Attn_Tensor>:$counts, Attn_Tensor:$lse, Attn_Tensor:$delta, Attn_Tensor:$dOut,
                       Variadic<Attn_Tensor>:$cuSeqlens, Variadic<Attn_Tensor>:$patternOperands, Attn_Tensor:$queryTangent, Variadic<Attn_Tensor>:$keyTangents,
                       Variadic<Attn_Tensor>:$valueTangents, Attn_Tensor:$lseTangent, Attn_Tensor:$deltaTangent, Attn_Tensor:$dOutTangent, Attn_PatternArray:$patterns, F32Attr:$scale,
                       DefaultValuedAttr<Attn_PrecisionAttr, "::weft::attn::Precision::F32">:$precision);
  let results = (outs Attn_Tensor:$dQueryTangent, Variadic<Attn_Tensor>:$gradientTangents);
  let regions = (region AnyRegion:$scoreMod, AnyRegion:$scoreModTangent, AnyRegion:$scoreModGrad, AnyRegion:$scoreModGradTangent, VariadicRegion<SizedRegion<1>>:$masks);
  let assemblyFormat = [{
    $query `keys` `(` $keys `:` type($keys) `)` `values` `(` $values `:` type($values) `)` (`counts` `(` $counts^ `:` type($counts) `)`)?
    `lse` `(` $lse `:` type($lse) `)` `delta` `(` $delta `:` type($delta) `)` `gradient` `(` $dOut `:` type($dOut) `)`
    (`cu_seqlens` `(` $cuSeqlens^ `:` type($cuSeqlens) `)`)? (`over` `(` $patternOperands^ `:` type($patternOperands) `)`)?
    `query_tangent` `(` $queryTangent `:` type($queryTangent) `)` `key_tangents` `(` $keyTangents `:` type($keyTangents) `)` `value_tangents` `(` $valueTangents `:` type($valueTangents) `)`
    `lse_tangent` `(` $lseTangent `:` type($lseTangent) `)` `delta_tangent` `(` $deltaTangent `:` type($deltaTangent) `)` `gradient_tangent` `(` $dOutTangent `:` type($dOutTangent) `)`
    attr-dict `:` type($query) `->` type($dQueryTangent) `,` type($gradientTangents)
    (`score_mod` $scoreMod^ `tangent` $scoreModTangent `grad` $scoreModGrad `grad_tangent` $scoreModGradTangent)? (`masks` `(` $masks^ `)`)?
  }];
  let hasVerifier = 1;
  let hasRegionVerifier = 1;
}

def Attn_LaunchOp : Attn_AnyElementOp<"launch", [DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "run a tile kernel on whole tensors";
  let description = [{
    Results are fresh, contiguous tensors; those numbered in `zeroed` are filled with zero before. The kernel's parameters are, for each operand and then each result: its address,
    then, for every axis but the last, its stride in elements (i64); then each of `sizes` (i32); then each of `reals` (f32). The last axis' stride is 1.
    Grid extents and sizes are expressions over the program's symbols.

    C1: the kernel is a function of the module that takes as many parameters. C2: the grid has three extents. C3: `zeroed`
    names results, in ascending order. That the parameters have those types is seen where the program is written down,
    after the last pass that changes them.

    ```mlir
    func.func @program(%x: !attn.tensor<[N, 64], f16>) -> !attn.tensor<[N, 64], f16> attributes {attn.program} {
      %y = attn.launch @scale(%x) grid ["N", "1", "1"] {sizes = ["N"], reals = [2.0]}
        : (!attn.tensor<[N, 64], f16>) -> !attn.tensor<[N, 64], f16>
      return %y : !attn.tensor<[N, 64], f16>
    }
    func.func @scale(%x: !tile.ptr<f16>, %xRow: i64, %y: !tile.ptr<f16>, %yRow: i64, %n: i32, %factor: f32)
        attributes {tile.kernel} {
      return
    }
    ```
  }];
  let arguments = (ins FlatSymbolRefAttr:$kernel, Variadic<Attn_Tensor>:$inputs, StrArrayAttr:$grid, DefaultValuedAttr<StrArrayAttr, "{}">:$sizes,
                       DefaultValuedAttr<F64ArrayAttr, "{}">:$reals, DefaultValuedAttr<DenseI64ArrayAttr, "{}">:$zeroed);
  let results = (outs Variadic<Attn_Tensor>:$results);
  let assemblyFormat = "$kernel `(` $inputs `)` `grid` $grid attr-dict `:` functional-type($inputs, $results)";
  let hasVerifier = 1;
}

// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Linear recurrences: linear attention with decays, and the delta rule. Included by AttnOps.td.

def Attn_RecurrenceOp : Attn_Op<"recurrence", [Pure, AttrSizedOperandSegments]> {
  let summary = "the mixer of a linear recurrence: linear attention, or with `beta` the delta rule";
  let description = [{
    Applied to values it is `attn.recur`, whose operands and attributes it has.
    C1: as `attn.recur` C1-C4, without values.

    ```mlir
    %a = attn.recurrence %q, %k decay(%g) {scale = 0.125 : f32}
      : (!attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>) -> !attn.mixer
    ```
  }];
  let arguments = (ins Attn_Tensor:$query, Attn_Tensor:$key, Optional<Attn_Tensor>:$decay, Optional<Attn_Tensor>:$beta,
                       Optional<Attn_Tensor>:$initialState, Optional<Attn_Tensor>:$cuSeqlens, F32Attr:$scale);
  let results = (outs Attn_MixerType:$result);
  let assemblyFormat = [{
    $query `,` $key (`decay` `(` $decay^ `)`)? (`beta` `(` $beta^ `)`)? (`state` `(` $initialState^ `)`)? (`cu_seqlens` `(` $cuSeqlens^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Attn_FinalStateOp : Attn_Op<"final_state", [Pure]> {
  let summary = "the state of a recurrence after the last token of values that it is applied to";
  let description = [{
    C1: the mixer is made by `attn.recurrence`, which `attn-apply-mixers` checks. C2: value is [B, Hv, N, Dv] with static Dv; the result is f32
    [B, H, D, Dv], with packed sequences [S, H, D, Dv], with static D.

    ```mlir
    %s = attn.final_state %a, %v : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, 64, 64], f32>
    ```
  }];
  let arguments = (ins Attn_MixerType:$mixer, Attn_Tensor:$value);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$mixer `,` $value attr-dict `:` type($value) `->` type($result)";
  let hasVerifier = 1;
}

def Attn_RecurOp : Attn_Op<"recur", [Pure, AttrSizedOperandSegments]> {
  let summary = "a linear recurrence over the tokens: linear attention, or with `beta` the delta rule";
  let description = [{
    The state S [D, Dv] of a batch and head begins as `state`, or 0. With a_n = exp(decay_n), 1 without decays, each token makes

        S_n = a_n S_{n-1} + k_n v_nᵀ;     with beta,  S_n = a_n S_{n-1} + k_n β_n r_nᵀ,  r_n = v_n - a_n S_{n-1}ᵀ k_n;     out_n = scale · S_nᵀ q_n.

    Decays are one number a token or, without beta, one for each channel of the keys (a row of S). They are at most 0 as a rule; each counts as at least -110, below which exp is 0 in f32, and at most 110.
    Positive ones let the state grow, and what is too large for a type is not finite.

    Results: out, the state after the last token, and with beta `delta`: the residuals r, and of each chunk of tokens K = (I + L β)⁻¹ L, of which the gradient is made: L holds the decayed products
    of later keys with earlier ones, and r = (I - K β)(v - the state's part). `cu_seqlens` [S+1] i32: B is 1, and each of S sequences has a state of its own.

    C1: query and key are [B, H, N, D] and [B, Hk, N, D] with static D of at most 256, value is [B, Hv, N, Dv] with static Dv; of one element type; Hk and Hv divide H.
    C2: decay is [B, H, N], or [B, Hg, N, D] where Hg divides H, and beta [B, H, N], of floats. C3: with beta, decay is [B, H, N].
    C4: state is f32 [B, H, D, Dv], with cu_seqlens [S, H, D, Dv]; cu_seqlens is [S+1] i32.
    C5: out is [B, H, N, Dv]; the final state is f32 [B or S, H, D, Dv]; with beta, and only then, follow r [B, H, N, Dv] and K [B, H, N, C], C the tokens of a chunk: 16 where N is at most 16, else 64.

    ```mlir
    !x = !attn.tensor<[B, H, N, 64], f16>
    %o, %s = attn.recur %q, %k, %v decay(%g) {scale = 0.125 : f32}
      : (!x, !x, !x, !attn.tensor<[B, H, N], f32>) -> (!x, !attn.tensor<[B, H, 64, 64], f32>)
    ```
  }];
  let arguments = (ins Attn_Tensor:$query, Attn_Tensor:$key, Attn_Tensor:$value, Optional<Attn_Tensor>:$decay, Optional<Attn_Tensor>:$beta,
                       Optional<Attn_Tensor>:$initialState, Optional<Attn_Tensor>:$cuSeqlens, F32Attr:$scale);
  let results = (outs Attn_Tensor:$out, Attn_Tensor:$finalState, Variadic<Attn_Tensor>:$delta);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`decay` `(` $decay^ `)`)? (`beta` `(` $beta^ `)`)? (`state` `(` $initialState^ `)`)? (`cu_seqlens` `(` $cuSeqlens^ `)`)?
    attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

def Attn_RecurBackwardOp : Attn_Op<"recur_backward", [Pure, Attn_GradientOnly, AttrSizedOperandSegments]> {
  let summary = "gradients of `attn.recur` in all that it reads";
  let description = [{
    Operands as there, with `delta` its results of that name, the gradient of out and, where it has one, that of the final state. The results are the gradients of query, key and value, then those of
    decay, beta and the initial state, each where the operand is given; each for all H heads of the queries, so that whoever shares heads adds them up.

    C1: as `attn.recur` C1-C4. C2: with beta, and only then, delta is the two tensors of C5 there. C3: the gradient is [B, H, N, Dv] in the values' element type, that of the state f32 [B or S, H, D, Dv].
    C4: as many results as said, in the operands' shapes with H heads.

    ```mlir
    !x = !attn.tensor<[B, H, N, 64], f16>
    %dq, %dk, %dv = attn.recur_backward %q, %k, %v gradient(%do) {scale = 0.125 : f32} : (!x, !x, !x, !x) -> (!x, !x, !x)
    ```
  }];
  let arguments = (ins Attn_Tensor:$query, Attn_Tensor:$key, Attn_Tensor:$value, Optional<Attn_Tensor>:$decay, Optional<Attn_Tensor>:$beta,
                       Optional<Attn_Tensor>:$initialState, Optional<Attn_Tensor>:$cuSeqlens, Variadic<Attn_Tensor>:$delta, Attn_Tensor:$dOut,
                       Optional<Attn_Tensor>:$dState, F32Attr:$scale);
  let results = (outs Attn_Tensor:$dQuery, Attn_Tensor:$dKey, Attn_Tensor:$dValue, Variadic<Attn_Tensor>:$gradients);
  let assemblyFormat = [{
    $query `,` $key `,` $value (`decay` `(` $decay^ `)`)? (`beta` `(` $beta^ `)`)? (`state` `(` $initialState^ `)`)? (`cu_seqlens` `(` $cuSeqlens^ `)`)?
    (`delta` `(` $delta^ `)`)? `gradient` `(` $dOut `)` (`state_gradient` `(` $dState^ `)`)? attr-dict `:` functional-type(operands, results)
  }];
  let hasVerifier = 1;
}

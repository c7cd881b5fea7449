// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Ops that mix heads or the channels of a head: matrix products with weights. Included by AttnOps.td.
//
// All multiply on matrix instructions: operands are rounded to the narrower of the two element types (f32 keeps f32's accuracy), products are added in f32, and the result
// is rounded once.

def Attn_HeadConvOp : Attn_Op<"head_conv", [Pure, Attn_WeightProduct, DeclareOpInterfaceMethods<Attn_PaddingOpInterface>, DeclareOpInterfaceMethods<Attn_WeightedOpInterface>]> {
  let summary = "a convolution along the channels of each token, with heads as its channels";
  let description = [{
    result[b, o, n, d] = bias[o] + Σ_{h, j} weight[o, h, j] · x[b, h, n, d + j - (K-1)/2], zero outside of the token's D channels: torch.nn.Conv1d over [B·N, H, D] with padding
    (K-1)/2. `transposed` is the transpose, from Ho heads to H: result[b, h, n, d] = Σ_{o, j} weight[o, h, j] · x[b, o, n, d - j + (K-1)/2].

    ```mlir
    %y = attn.head_conv %x, %w bias %b : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[36, 12, 3], f16>, !attn.tensor<[36], f16> -> !attn.tensor<[B, 36, N, 64], f16>
    ```

    C1: x is [B, H, N, D] (transposed: [B, Ho, N, D]), the result [B, Ho, N, D] (transposed: [B, H, N, D]); D is static. C2: the weight is [Ho, H, K], static, K odd.
    C3: the bias is [Ho]; there is none where `transposed`. C4: elements are floats; f16 and bf16 do not meet.
  }];
  let arguments = (ins Attn_Tensor:$source, Attn_Tensor:$weight, Optional<Attn_Tensor>:$bias, UnitAttr:$transposed);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$source `,` $weight (`bias` $bias^)? attr-dict `:` type($source) `,` type($weight) (`,` type($bias)^)? `->` type($result)";
  let hasVerifier = 1;
}

def Attn_HeadConvWeightGradOp : Attn_Op<"head_conv_weight_grad", [Pure, Attn_GradientOnly, DeclareOpInterfaceMethods<Attn_WeightedOpInterface>]> {
  let summary = "gradient of `attn.head_conv` in its weight: Σ_{b, n, d} gradient[b, o, n, d] · x[b, h, n, d + j - (K-1)/2] at [o, h, j]";
  let description = [{
    That of the transposed op, whose source is s and whose result's gradient is g, is the same with x = g and gradient = s.
    Sums are in f32 and in an order that is the same in every run. The second result, if asked for, is the gradient of the bias, Σ_{b, n, d} gradient[b, o, n, d] at [o].

    C1: source [B, H, N, D], gradient [B, Ho, N, D], D static. C2: the result is [Ho, H, K], static, K odd. C3: as `attn.head_conv` C4. C4: the bias' gradient is [Ho].

    ```mlir
    %dw, %db = attn.head_conv_weight_grad %x, %dy : !attn.tensor<[B, 12, N, 64], f16>, !attn.tensor<[B, 36, N, 64], f16>
      -> !attn.tensor<[36, 12, 3], f16>, !attn.tensor<[36], f16>
    ```
  }];
  let arguments = (ins Attn_Tensor:$source, Attn_Tensor:$gradient);
  let results = (outs Attn_Tensor:$result, Optional<Attn_Tensor>:$bias);
  let assemblyFormat = "$source `,` $gradient attr-dict `:` type($source) `,` type($gradient) `->` type($result) (`,` type($bias)^)?";
  let hasVerifier = 1;
}

def Attn_LinearOp : Attn_Op<"linear", [Pure, Attn_WeightProduct, DeclareOpInterfaceMethods<Attn_PaddingOpInterface>, DeclareOpInterfaceMethods<Attn_WeightedOpInterface>]> {
  let summary = "a linear map of the last axis, shared by all heads; or of heads side by side";
  let description = [{
    result[..., e] = bias[e] + Σ_d weight[e, d] · x[..., d], torch.nn.Linear. `transposed` is the transpose, from E channels to D: result[..., d] = Σ_e weight[e, d] · x[..., e].

    With `concatenated`, groups of H neighbouring heads stand side by side as one row of H·D channels: x is [B, G·H, N, D], the weight [E, H·D], and the result [B, G, N, E], or,
    where G is 1, [B, N, E]. Transposed, the heads of the result do: from [B, G, N, E] or [B, N, E] to [B, G·H, N, D].

    ```mlir
    %y = attn.linear %x, %w bias %b : !attn.tensor<[B, 36, N, 64], f16>, !attn.tensor<[96, 64], f16>, !attn.tensor<[96], f16> -> !attn.tensor<[B, 36, N, 96], f16>
    %z = attn.linear %x, %o {concatenated} : !attn.tensor<[B, 36, N, 64], f16>, !attn.tensor<[256, 768], f16> -> !attn.tensor<[B, 3, N, 256], f16>
    ```

    C1: the weight is of rank 2 and static; it fits the last axes of x and of the result as said, which agree on the others. C2: with `concatenated`, ranks, heads and H·D fit as said.
    C3: the bias is [E]; there is none where `transposed`. C4: elements are floats; f16 and bf16 do not meet.
  }];
  let arguments = (ins Attn_Tensor:$source, Attn_Tensor:$weight, Optional<Attn_Tensor>:$bias, UnitAttr:$transposed, UnitAttr:$concatenated);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$source `,` $weight (`bias` $bias^)? attr-dict `:` type($source) `,` type($weight) (`,` type($bias)^)? `->` type($result)";
  let hasVerifier = 1;
}

def Attn_LinearWeightGradOp : Attn_Op<"linear_weight_grad", [Pure, Attn_GradientOnly, DeclareOpInterfaceMethods<Attn_WeightedOpInterface>]> {
  let summary = "gradient of `attn.linear` in its weight: Σ gradient[..., e] · x[..., d] at [e, d], over all other axes";
  let description = [{
    With `concatenated`, of that form: d counts the channels of H neighbouring heads. That of the transposed op is the same with source and gradient exchanged.
    Sums are in f32 and in an order that is the same in every run. The second result, if asked for, is the gradient of the bias, Σ gradient[..., e] at [e].

    C1: as `attn.linear` C1, C2 and C4, with x the source, the gradient in place of the result and the result in place of the weight. C2: the bias' gradient is [E].

    ```mlir
    %dw, %db = attn.linear_weight_grad %x, %dy : !attn.tensor<[B, 36, N, 64], f16>, !attn.tensor<[B, 36, N, 96], f16>
      -> !attn.tensor<[96, 64], f16>, !attn.tensor<[96], f16>
    ```
  }];
  let arguments = (ins Attn_Tensor:$source, Attn_Tensor:$gradient, UnitAttr:$concatenated);
  let results = (outs Attn_Tensor:$result, Optional<Attn_Tensor>:$bias);
  let assemblyFormat = "$source `,` $gradient attr-dict `:` type($source) `,` type($gradient) `->` type($result) (`,` type($bias)^)?";
  let hasVerifier = 1;
}

def Attn_MeanHeadsOp : Attn_Op<"mean_heads", [Pure, DeclareOpInterfaceMethods<Attn_PaddingOpInterface>]> {
  let summary = "the mean over groups of heads: head h of the result is the mean of heads h, H + h, 2 H + h, ...";
  let description = [{
    From [B, G·H, N, D] to [B, H, N, D]; where H is 1 the result may be [B, N, D]. The mean is taken in f32.

    Canonical form: the mean of a linear map of concatenated heads is the linear map of the mean, which multiplies once instead of G times.

    C1: heads are static, the result's divide the source's; the other axes are the same.

    ```mlir
    %y = attn.mean_heads %x : !attn.tensor<[B, 12, N, 64], f16> -> !attn.tensor<[B, 4, N, 64], f16>
    ```
  }];
  let arguments = (ins Attn_Tensor:$source);
  let results = (outs Attn_Tensor:$result);
  let assemblyFormat = "$source attr-dict `:` type($source) `->` type($result)";
  let hasVerifier = 1;
  let hasCanonicalizer = 1;
}

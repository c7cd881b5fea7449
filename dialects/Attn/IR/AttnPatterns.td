// Part of Weft. SPDX-License-Identifier: Apache-2.0
// Patterns: which pairs (n, m) of a query and a key attend. With N queries and M keys the query's position is p = n + (M - N).
#ifndef WEFT_DIALECTS_ATTN_IR_ATTNPATTERNS_TD
#define WEFT_DIALECTS_ATTN_IR_ATTNPATTERNS_TD

include "dialects/Attn/IR/AttnTypes.td"

class Attn_Pattern<string name, string spelling> : AttrDef<Attn_Dialect, name> {
  let mnemonic = spelling;
}

def Attn_FullAttr : Attn_Pattern<"Full", "full"> { let summary = "every pair"; }
def Attn_EmptyAttr : Attn_Pattern<"Empty", "empty"> { let summary = "no pair"; }
def Attn_CausalAttr : Attn_Pattern<"Causal", "causal"> { let summary = "m <= p"; }

def Attn_WindowAttr : Attn_Pattern<"Window", "window"> {
  let summary = "p - left <= m <= p + right; a side that is not given is open";
  let description = "`#attn.window<left = 128, right = 0>`, `#attn.window<left = 128>`.";
  let parameters = (ins OptionalParameter<"std::optional<int64_t>">:$left, OptionalParameter<"std::optional<int64_t>">:$right);
  let assemblyFormat = "`<` struct($left, $right) `>`";
  let genVerifyDecl = 1;
}

def Attn_BlockWindowAttr : Attn_Pattern<"BlockWindow", "block_window"> {
  let summary = "p and m lie in one window of a partition of the sequence, or of a grid of tokens";
  let description = [{
    `#attn.block_window<[64]>`: floor(p/64) = floor(m/64). `#attn.block_window<[7, 7], grid = [56, 56]>`: tokens are numbered row by row
    over a 56×56 grid; both axes of p and m lie in one window. Windows at the ends are ragged. C1: one or two positive sizes; `grid` has as many as they, and is given for two.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$window, OptionalArrayRefParameter<"int64_t">:$grid);
  let assemblyFormat = "`<` `[` $window `]` (`,` `grid` `=` `[` $grid^ `]`)? `>`";
  let genVerifyDecl = 1;
}

def Attn_PrefixAttr : Attn_Pattern<"Prefix", "prefix"> {
  let summary = "m < n";
  let parameters = (ins "int64_t":$size);
  let assemblyFormat = "`<` $size `>`";
  let genVerifyDecl = 1;
}
def Attn_GlobalTokensAttr : Attn_Pattern<"GlobalTokens", "global_tokens"> {
  let summary = "p < n or m < n";
  let parameters = (ins "int64_t":$size);
  let assemblyFormat = "`<` $size `>`";
  let genVerifyDecl = 1;
}
def Attn_StridedAttr : Attn_Pattern<"Strided", "strided"> {
  let summary = "step divides p - m";
  let parameters = (ins "int64_t":$step);
  let assemblyFormat = "`<` $step `>`";
  let genVerifyDecl = 1;
}
def Attn_DilatedAttr : Attn_Pattern<"Dilated", "dilated"> {
  let summary = "step divides p - m, and |p - m| <= step * width";
  let parameters = (ins "int64_t":$step, "int64_t":$width);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}
def Attn_NeighbourhoodAttr : Attn_Pattern<"Neighbourhood", "neighbourhood"> {
  let summary = "the kernel's keys around the query on a grid of one to three axes, moved inwards at borders (as NATTEN)";
  let description = [{
    `#attn.neighbourhood<shape = [56, 56], kernel = [7, 7], dilation = [1, 1]>`. Exactly `kernel` keys an axis among those of the query's residue under the dilation.
    C1: three lists of one length, 1 to 3. C2: kernel * dilation <= shape on each axis.
  }];
  let parameters = (ins ArrayRefParameter<"int64_t">:$shape, ArrayRefParameter<"int64_t">:$kernel, ArrayRefParameter<"int64_t">:$dilation);
  let assemblyFormat = "`<` `shape` `=` `[` $shape `]` `,` `kernel` `=` `[` $kernel `]` `,` `dilation` `=` `[` $dilation `]` `>`";
  let genVerifyDecl = 1;
}
def Attn_RandomBlocksAttr : Attn_Pattern<"RandomBlocks", "random_blocks"> {
  let summary = "`perRow` distinct key blocks for each row of blocks, from a counter-based generator, the same for every batch and head";
  let parameters = (ins "int64_t":$seed, "int64_t":$perRow, "int64_t":$block);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}

def Attn_DocumentAttr : Attn_Pattern<"Document", "document"> {
  let summary = "equal ids; operands of the op that carries the pattern, i32, [N] or [B, N] and [M] or [B, M]";
  let parameters = (ins "int64_t":$queryIds, "int64_t":$keyIds);
  let assemblyFormat = "`<` struct(params) `>`";
}
def Attn_BlocksAttr : Attn_Pattern<"Blocks", "blocks"> {
  let summary = "blocks listed in device memory: operands index [B, H, R, K] i32 and count [B, H, R] i32";
  let description = "Row block r has the key blocks index[b, h, r, :count[b, h, r]]; entries past the count are ignored. Rows are raw (n / blockM), keys raw.";
  let parameters = (ins "int64_t":$index, "int64_t":$count, "int64_t":$blockM, "int64_t":$blockN);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}
def Attn_BlockBitmapAttr : Attn_Pattern<"BlockBitmap", "block_bitmap"> {
  let summary = "blocks set in device memory: operand bits [B, H, R, C] i1";
  let parameters = (ins "int64_t":$bits, "int64_t":$blockM, "int64_t":$blockN);
  let assemblyFormat = "`<` struct(params) `>`";
  let genVerifyDecl = 1;
}
def Attn_SpanAttr : Attn_Pattern<"Span", "span"> {
  let summary = "keys from lower to upper - 1 of each query, by tables in device memory whose bounds never fall";
  let description = [{
    (n, m) belongs iff lower[b, h, n] <= m < upper[b, h, n]. Operands i32: `lower`, `upper` [B, Hkv, N] and, for the transpose, `first`, `past` [B, Hkv, M]: first[b, h, m] <= n < past[b, h, m].
    Heads of a table are shared as key heads are. Promised: all four never fall along the sequence, 0 <= lower, upper <= M, 0 <= first, past <= N, and both pairs say the same; a row or column without
    a pair has lower >= upper, or first >= past.
  }];
  let parameters = (ins "int64_t":$lower, "int64_t":$upper, "int64_t":$first, "int64_t":$past);
  let assemblyFormat = "`<` struct(params) `>`";
}
def Attn_MaskAttr : Attn_Pattern<"Mask", "mask"> {
  let summary = "what a mask region of the op says of (b, h, n, m), raw indices";
  let description = [{
    Under `#attn.shift` the indices are any integers, negative ones too: positions of a sequence only where no shift is around.
    A `scattered` mask leaves pairs out here and there, as chance does: hardly a block is whole, and none is empty, so that blocks are not asked.
  }];
  let parameters = (ins "int64_t":$region, DefaultValuedParameter<"bool", "false">:$scattered);
  let assemblyFormat = "`<` $region (`,` `scattered` `=` $scattered^)? `>`";
}

def Attn_AndAttr : Attn_Pattern<"And", "and"> {
  let summary = "in every one of the patterns";
  let parameters = (ins ArrayRefParameter<"::mlir::Attribute">:$patterns);
  let assemblyFormat = "`<` $patterns `>`";
  let genVerifyDecl = 1;
}
def Attn_OrAttr : Attn_Pattern<"Or", "or"> {
  let summary = "in one of the patterns or more";
  let parameters = (ins ArrayRefParameter<"::mlir::Attribute">:$patterns);
  let assemblyFormat = "`<` $patterns `>`";
  let genVerifyDecl = 1;
}
def Attn_NotAttr : Attn_Pattern<"Not", "not"> {
  let summary = "not in the pattern";
  let parameters = (ins "::mlir::Attribute":$pattern);
  let assemblyFormat = "`<` $pattern `>`";
  let genVerifyDecl = 1;
}
def Attn_ShiftAttr : Attn_Pattern<"Shift", "shift"> {
  let summary = "(n, m) where the pattern has (n, m - by)";
  let parameters = (ins "::mlir::Attribute":$pattern, "int64_t":$by);
  let assemblyFormat = "`<` $pattern `,` $by `>`";
  let genVerifyDecl = 1;
}
def Attn_PerHeadAttr : Attn_Pattern<"PerHead", "per_head"> {
  let summary = "query head h has pattern h";
  let parameters = (ins ArrayRefParameter<"::mlir::Attribute">:$patterns);
  let assemblyFormat = "`<` $patterns `>`";
  let genVerifyDecl = 1;
}
def Attn_TransposeAttr : Attn_Pattern<"Transpose", "transpose"> {
  let summary = "(n, m) of N queries and M keys where the pattern has (m, n) of M queries and N keys";
  let parameters = (ins "::mlir::Attribute":$pattern);
  let assemblyFormat = "`<` $pattern `>`";
  let genVerifyDecl = 1;
}

def Attn_SectionAttr : Attn_Pattern<"Section", "section"> {
  let summary = "a section of a pattern of longer sequences, whose place device memory says: one compiled form for all of them";
  let description = [{
    `#attn.section<#attn.causal, rows = 0, keys = 1>`: (n, m) belongs where the pattern, of N' queries and M' keys, has (n + r, m + c). Operand `rows` i32 [2] is r and N', `keys` i32 [2] is c and M'.
    Tensors that the pattern names are those of the longer sequences. Promised: 0 <= r, r + N <= N', 0 <= c, c + M <= M', and of those tensors as many tokens as N' and M'.
  }];
  let parameters = (ins "::mlir::Attribute":$pattern, "int64_t":$rows, "int64_t":$keys);
  let assemblyFormat = "`<` $pattern `,` `rows` `=` $rows `,` `keys` `=` $keys `>`";
  let genVerifyDecl = 1;
}

def Attn_KeptAttr : Attn_Pattern<"Kept", "kept"> {
  let summary = "the pairs of a pattern, of whose weights those outside of another multiply no value";
  let description = [{
    `#attn.kept<#attn.causal, #attn.mask<0>>`: attention is of the first pattern's pairs, their softmax and lse with it; out sums the weights of the pairs that the second one has too. Dropout is one.
    Nothing is around it.
  }];
  let parameters = (ins "::mlir::Attribute":$pattern, "::mlir::Attribute":$weights);
  let assemblyFormat = "`<` $pattern `,` $weights `>`";
  let genVerifyDecl = 1;
}

#endif // WEFT_DIALECTS_ATTN_IR_ATTNPATTERNS_TD

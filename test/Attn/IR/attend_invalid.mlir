// RUN: weft-opt %s --split-input-file --verify-diagnostics
// Constraints of attn.softmax, attn.attend and attn.attend_backward, one a case, named after them.

func.func @attend_c1_keys(%q: !attn.tensor<[B, H, N, 64], f16>, %k: !attn.tensor<[B, H, M, 32], f16>) {
  // expected-error@+1 {{expected keys of shape [B, H, M, 64], but got '!attn.tensor<[B, H, M, 32], f16>'}}
  %0 = attn.softmax %q keys(%k : !attn.tensor<[B, H, M, 32], f16>) {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @attend_c1_heads(%q: !attn.tensor<[B, 6, N, 64], f16>, %k: !attn.tensor<[B, 4, M, 64], f16>) {
  // expected-error@+1 {{expected the heads of the queries to be the keys' '4' or "k*4", but got '6'}}
  %0 = attn.softmax %q keys(%k : !attn.tensor<[B, 4, M, 64], f16>) {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, 6, N, 64], f16>
  return
}

// -----

func.func @attend_c1_values(%q: !attn.tensor<[B, H, N, 64], f16>, %v: !attn.tensor<[B, H, P, 64], f16>) {
  // expected-error@+1 {{expected values of shape [B, H, N, 64], but got '!attn.tensor<[B, H, P, 64], f16>'}}
  %o, %l = attn.attend %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) values(%v : !attn.tensor<[B, H, P, 64], f16>) {patterns = [#attn.full], scale = 1.0 : f32}
    : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f32>
  return
}

// -----

// The heads of a sum with something else are not those of the softmax.
func.func @attend_c3_heads(%q: !attn.tensor<[B, H, N, 64], f16>) {
  // expected-error@+1 {{expected outputs of shape [B, H, N, 64], but got '!attn.tensor<[B, "2*H", N, 64], f16>'}}
  %o, %l = attn.attend %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) values(%q : !attn.tensor<[B, H, N, 64], f16>) {patterns = [#attn.full], scale = 1.0 : f32}
    : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, "2*H", N, 64], f16>, !attn.tensor<[B, H, N], f32>
  return
}

// -----

// Groups of one symbol's multiples: 4 of 4*H share one of H, 2 one of 2*H, and none one of 3*H.
func.func @attend_c1_multiples(%q: !attn.tensor<[B, "4*H", N, 64], f16>, %k: !attn.tensor<[B, "2*H", M, 64], f16>, %l: !attn.tensor<[B, "3*H", M, 64], f16>) {
  %0 = attn.softmax %q keys(%k : !attn.tensor<[B, "2*H", M, 64], f16>) {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, "4*H", N, 64], f16>
  // expected-error@+1 {{expected the heads of the queries to be the keys' '3*H' or "k*3*H", but got '4*H'}}
  %1 = attn.softmax %q keys(%l : !attn.tensor<[B, "3*H", M, 64], f16>) {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, "4*H", N, 64], f16>
  return
}

// -----

func.func @attend_c2_count(%q: !attn.tensor<[B, H, N, 64], f16>) {
  // expected-error@+1 {{expected one pattern for each of 1 domains, but got 2}}
  %0 = attn.softmax %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) {patterns = [#attn.full, #attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @attend_c2_operand(%q: !attn.tensor<[B, H, N, 64], f16>, %ids: !attn.tensor<[N], i32>) {
  // expected-error@+1 {{expected ids to name one of 1 pattern operands, but got 1 in #attn.document<queryIds = 0, keyIds = 1>}}
  %0 = attn.softmax %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) over(%ids : !attn.tensor<[N], i32>)
    {patterns = [#attn.and<#attn.causal, #attn.document<queryIds = 0, keyIds = 1>>], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @attend_c2_type(%q: !attn.tensor<[B, H, N, 64], f16>, %bits: !attn.tensor<[B, H, R], i1>) {
  // expected-error@+1 {{expected bits of rank 4 and i1 elements for #attn.block_bitmap<}}
  %0 = attn.softmax %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) over(%bits : !attn.tensor<[B, H, R], i1>)
    {patterns = [#attn.block_bitmap<bits = 0, blockM = 64, blockN = 64>], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @attend_c2_span_rank(%q: !attn.tensor<[B, H, N, 64], f16>, %rows: !attn.tensor<[B, H, N], i32>, %flat: !attn.tensor<[H, N], i32>) {
  // expected-error@+1 {{expected a past query of rank 3 and i32 elements for #attn.span<}}
  %0 = attn.softmax %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) over(%rows, %flat : !attn.tensor<[B, H, N], i32>, !attn.tensor<[H, N], i32>)
    {patterns = [#attn.span<lower = 0, upper = 0, first = 0, past = 1>], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @attend_c2_span_heads(%q: !attn.tensor<[B, "2*H", N, 64], f16>, %rows: !attn.tensor<[B, H2, N], i32>) {
  // expected-error@+1 {{expected a lower bound of 1 head, or of a divisor of the queries' 2*H, but got H2 for #attn.span<}}
  %0 = attn.softmax %q keys(%q : !attn.tensor<[B, "2*H", N, 64], f16>) over(%rows : !attn.tensor<[B, H2, N], i32>)
    {patterns = [#attn.span<lower = 0, upper = 0, first = 0, past = 0>], scale = 1.0 : f32} : !attn.tensor<[B, "2*H", N, 64], f16>
  return
}

// -----

func.func @attend_c2_span_missing(%q: !attn.tensor<[B, H, N, 64], f16>) {
  // expected-error@+1 {{expected a lower bound to name one of 0 pattern operands, but got 0 in #attn.span<}}
  %0 = attn.softmax %q keys(%q : !attn.tensor<[B, H, N, 64], f16>)
    {patterns = [#attn.span<lower = 0, upper = 1, first = 2, past = 3>], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @attend_c2_section(%q: !attn.tensor<[B, H, N, 64], f16>, %place: !attn.tensor<[2], i32>, %flat: !attn.tensor<[1, 2], i32>) {
  // expected-error@+1 {{expected a section's keys of rank 1 and i32 elements for #attn.section<}}
  %0 = attn.softmax %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) over(%place, %flat : !attn.tensor<[2], i32>, !attn.tensor<[1, 2], i32>)
    {patterns = [#attn.section<#attn.causal, rows = 0, keys = 1>], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @attend_c5_span(%q: !attn.tensor<[1, H, N, 64], f16>, %starts: !attn.tensor<[S], i32>, %rows: !attn.tensor<[1, H, N], i32>) {
  // expected-error@+2 {{expected no span, no document and no section with sequence starts, but got [#attn.not<#attn.span<}}
  // expected-note@+1 {{their tables keep packed sequences apart by themselves: leave out the starts}}
  %o, %l = attn.attend %q keys(%q : !attn.tensor<[1, H, N, 64], f16>) values(%q : !attn.tensor<[1, H, N, 64], f16>) cu_seqlens(%starts, %starts : !attn.tensor<[S], i32>, !attn.tensor<[S], i32>)
    over(%rows : !attn.tensor<[1, H, N], i32>) {patterns = [#attn.not<#attn.span<lower = 0, upper = 0, first = 0, past = 0>>], scale = 1.0 : f32}
    : !attn.tensor<[1, H, N, 64], f16> -> !attn.tensor<[1, H, N, 64], f16>, !attn.tensor<[1, H, N], f32>
  return
}

// -----

func.func @attend_c2_region(%q: !attn.tensor<[B, H, N, 64], f16>) {
  // expected-error@+1 {{expected a mask to name one of 0 regions, but got 0}}
  %0 = attn.softmax %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) {patterns = [#attn.not<#attn.mask<0>>], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @attend_c2_heads(%q: !attn.tensor<[B, 3, N, 64], f16>) {
  // expected-error@+1 {{expected a pattern for each of 3 heads, but got 2}}
  %0 = attn.softmax %q keys(%q : !attn.tensor<[B, 3, N, 64], f16>) {patterns = [#attn.per_head<#attn.full, #attn.causal>], scale = 1.0 : f32} : !attn.tensor<[B, 3, N, 64], f16>
  return
}

// -----

func.func @attend_c3(%q: !attn.tensor<[B, H, N, 64], f16>) {
  // expected-error@+1 {{expected lse of f32 elements, but got '!attn.tensor<[B, H, N], f16>'}}
  %o, %l = attn.attend %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) values(%q : !attn.tensor<[B, H, N, 64], f16>) {patterns = [#attn.full], scale = 1.0 : f32}
    : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N], f16>
  return
}

// -----

func.func @attend_c4(%q: !attn.tensor<[B, H, N, 64], f16>) {
  // expected-error@+1 {{expected score_mod to take ('f32', 'i32', 'i32', 'i32', 'i32'), but it takes ('f32')}}
  %0 = attn.softmax %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16>
    score_mod {
    ^bb0(%s: f32):
      attn.yield %s : f32
    }
  return
}

// -----

func.func @attend_c5_counts(%q: !attn.tensor<[B, H, N, 64], f16>, %count: !attn.tensor<[B, H], i64>) {
  // expected-error@+1 {{expected counts of rank 2 and i32 elements, but got '!attn.tensor<[B, H], i64>'}}
  %0 = attn.softmax %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) counts(%count : !attn.tensor<[B, H], i64>) {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @attend_c5_sink(%q: !attn.tensor<[B, H, N, 64], f16>, %sink: !attn.tensor<[N], f32>) {
  // expected-error@+1 {{expected the sink of shape [H], but got '!attn.tensor<[N], f32>'}}
  %0 = attn.softmax %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) sink(%sink : !attn.tensor<[N], f32>) {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

func.func @attend_c5_packed(%q: !attn.tensor<[2, H, N, 64], f16>, %starts: !attn.tensor<[S], i32>) {
  // expected-error@+1 {{expected a batch of 1 for packed sequences, but got '!attn.tensor<[2, H, N, 64], f16>'}}
  %o, %l = attn.attend %q keys(%q : !attn.tensor<[2, H, N, 64], f16>) values(%q : !attn.tensor<[2, H, N, 64], f16>) cu_seqlens(%starts, %starts : !attn.tensor<[S], i32>, !attn.tensor<[S], i32>)
    {patterns = [#attn.full], scale = 1.0 : f32} : !attn.tensor<[2, H, N, 64], f16> -> !attn.tensor<[2, H, N, 64], f16>, !attn.tensor<[2, H, N], f32>
  return
}

// -----

func.func @attend_backward_c3(%q: !attn.tensor<[B, H, N, 64], f16>, %row: !attn.tensor<[B, H, N], f32>) {
  // expected-error@+1 {{expected a gradient of keys and one of values for each of 1 domains, but got 1}}
  %dq, %d = attn.attend_backward %q keys(%q : !attn.tensor<[B, H, N, 64], f16>) values(%q : !attn.tensor<[B, H, N, 64], f16>)
    lse(%row : !attn.tensor<[B, H, N], f32>) delta(%row : !attn.tensor<[B, H, N], f32>) gradient(%q : !attn.tensor<[B, H, N, 64], f16>)
    {patterns = [#attn.causal], scale = 0.125 : f32} : !attn.tensor<[B, H, N, 64], f16> -> !attn.tensor<[B, H, N, 64], f16>, !attn.tensor<[B, H, N, 64], f16>
  return
}

// -----

// expected-error@+1 {{expected 'channels' to be a multiple of 16 from 16 to 4096, but got 200}}
#channels = #attn.schedule<rows = 64, columns = 32, warps = 8, stages = 2, channels = 200>

// -----

// expected-error@+1 {{expected 'channels' to be a multiple of 16 from 16 to 4096, but got 8192}}
#channels = #attn.schedule<rows = 64, columns = 32, warps = 8, stages = 2, channels = 8192>

// -----

// expected-error@+1 {{expected no cluster of a persistent kernel, but got 2}}
#persistent = #attn.schedule<rows = 64, columns = 32, warps = 8, stages = 2, cluster = 2, persistent = true>

// -----

// expected-error@+1 {{expected 'cluster' to be 1, 2, 4 or 8, but got 3}}
#cluster = #attn.schedule<rows = 64, columns = 32, warps = 8, stages = 2, cluster = 3>

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
func.func @attend_c1_domains(%q: !x) {
  // expected-error@+1 {{expected at least one domain of keys}}
  %0 = "attn.softmax"(%q) <{operandSegmentSizes = array<i32: 1, 0, 0, 0, 0, 0>, patterns = [], scale = 1.0 : f32}> ({}) : (!x) -> !attn.mixer
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
func.func @attend_c1_as_many(%q: !x) {
  // expected-error@+1 {{expected as many values as keys, 1, but got 2}}
  %o, %l = attn.attend %q keys(%q : !x) values(%q, %q : !x, !x) {patterns = [#attn.full], scale = 1.0 : f32} : !x -> !x, !attn.tensor<[B, H, N], f32>
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
func.func @attend_c4_block(%q: !x) {
  // expected-error@+1 {{expected score_mod to be one block that ends in 'attn.yield'}}
  %0 = attn.softmax %q keys(%q : !x) {patterns = [#attn.full], scale = 1.0 : f32} : !x
    score_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %n: i32, %m: i32):
      attn.yield %s : f32
    ^bb1:
      attn.yield
    }
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
func.func @attend_c5_count(%q: !x, %count: !attn.tensor<[B, H], i32>) {
  // expected-error@+1 {{expected no counts or one for each of 2 domains, but got 1}}
  %0 = attn.softmax %q keys(%q, %q : !x, !x) counts(%count : !attn.tensor<[B, H], i32>) {patterns = [#attn.full, #attn.full], scale = 1.0 : f32} : !x
  return
}

// -----

!x = !attn.tensor<[1, H, N, 64], f16>
func.func @attend_c5_starts(%q: !x, %s: !attn.tensor<[S], i32>) {
  // expected-error@+1 {{expected no sequence starts, or those of queries and of keys, but got 1}}
  %0 = attn.softmax %q keys(%q : !x) cu_seqlens(%s : !attn.tensor<[S], i32>) {patterns = [#attn.full], scale = 1.0 : f32} : !x
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_backward_c1(%q: !x, %n: !n) {
  // expected-error@+1 {{expected one pattern for each of 1 domains, but got 0}}
  %dq, %d:2 = attn.attend_backward %q keys(%q : !x) values(%q : !x) lse(%n : !n) delta(%n : !n) gradient(%q : !x)
    {patterns = [], scale = 0.125 : f32} : !x -> !x, !x, !x
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_backward_c2_delta(%q: !x, %n: !n, %half: !attn.tensor<[B, H, N], f16>) {
  // expected-error@+1 {{expected delta of f32 elements, but got '!attn.tensor<[B, H, N], f16>'}}
  %dq, %d:2 = attn.attend_backward %q keys(%q : !x) values(%q : !x) lse(%n : !n) delta(%half : !attn.tensor<[B, H, N], f16>) gradient(%q : !x)
    {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !x, !x
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_backward_c2_gradient(%q: !x, %n: !n, %g: !attn.tensor<[B, H, M, 64], f16>) {
  // expected-error@+1 {{expected the outputs' gradient of shape [B, H, N, 64], but got '!attn.tensor<[B, H, M, 64], f16>'}}
  %dq, %d:2 = attn.attend_backward %q keys(%q : !x) values(%q : !x) lse(%n : !n) delta(%n : !n) gradient(%g : !attn.tensor<[B, H, M, 64], f16>)
    {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !x, !x
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_backward_c3_keys(%q: !x, %n: !n) {
  // expected-error@+1 {{expected the keys' gradient of shape [B, H, N, 64], but got '!attn.tensor<[B, H, N], f32>'}}
  %dq, %d:2 = attn.attend_backward %q keys(%q : !x) values(%q : !x) lse(%n : !n) delta(%n : !n) gradient(%q : !x)
    {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !n, !x
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @attend_backward_grad(%q: !x, %n: !n) {
  // expected-error@+1 {{expected both score_mod and its gradient, or neither}}
  %dq, %d:2 = attn.attend_backward %q keys(%q : !x) values(%q : !x) lse(%n : !n) delta(%n : !n) gradient(%q : !x)
    {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !x, !x
    score_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
      attn.yield %s : f32
    } grad {
    }
  return
}

// -----

!x = !attn.tensor<[B, H, N, 64], f16>
!n = !attn.tensor<[B, H, N], f32>
func.func @accumulate_target(%q: !x, %n: !n) {
  %dq, %d:2 = attn.attend_backward %q keys(%q : !x) values(%q : !x) lse(%n : !n) delta(%n : !n) gradient(%q : !x)
    {patterns = [#attn.causal], scale = 0.125 : f32} : !x -> !x, !x, !x
    score_mod {
    ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32):
      attn.yield %s : f32
    } grad {
    ^bb0(%s: f32, %b: i32, %h: i32, %i: i32, %j: i32, %g: f32):
      // expected-error@+1 {{expected one of 0 gradients of captured tensors, but got 0}}
      attn.accumulate %g into 0[%h]
      attn.yield %g : f32
    }
  return
}

// -----

// expected-error@+1 {{expected 'columns' to be a power of two from 16 to 1024, but got 48}}
#columns = #attn.schedule<rows = 64, columns = 48, warps = 8, stages = 2>

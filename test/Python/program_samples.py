# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Small programs for tests: one as its user writes it, and one lowered by hand, as the compiler makes it of attn ops,
for tests of plans and their runs.
"""

import json

from weft import native

#: the source of a file of one program
SCORES = """
import weft

@weft.program
def scores(q: "fp16[B,H,N,16]:16", k: "fp16[B,H,N,16]:16", v: "fp16[B,H,N,16]:16"):
    return weft.softmax(q, k, weft.causal()) @ v
"""

#: y = f16(2 · x · gain), row sums of it in f32, and their total: three launches, two buffers, one zeroed output.
MODULE = """
func.func @scaled(%x: !tile.ptr<f16> {tile.divisibility = 16 : i32}, %x0: i64 {tile.divisibility = 8 : i32},
                  %x1: i64 {tile.divisibility = 8 : i32}, %gain: !tile.ptr<f32>, %t: !tile.ptr<f32>, %t0: i64, %t1: i64,
                  %factor: f32) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %n = tile.program_id x : i32
  %b = tile.program_id y : i32
  %n64 = arith.extsi %n : i32 to i64
  %b64 = arith.extsi %b : i32 to i64
  %c = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %xb = arith.muli %b64, %x0 : i64
  %xn = arith.muli %n64, %x1 : i64
  %xo = arith.addi %xb, %xn : i64
  %xr = tile.addptr %x, %xo : !tile.ptr<f16>, i64
  %xs = tile.splat %xr : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %xp = tile.addptr %xs, %c : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  %xv = tile.load %xp : tensor<64x!tile.ptr<f16>>
  %xf = arith.extf %xv : tensor<64xf16> to tensor<64xf32>
  %gs = tile.splat %gain : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %gp = tile.addptr %gs, %c : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %gv = tile.load %gp : tensor<64x!tile.ptr<f32>>
  %xg = arith.mulf %xf, %gv : tensor<64xf32>
  %fs = tile.splat %factor : f32 -> tensor<64xf32>
  %out = arith.mulf %xg, %fs : tensor<64xf32>
  %tb = arith.muli %b64, %t0 : i64
  %tn = arith.muli %n64, %t1 : i64
  %to = arith.addi %tb, %tn : i64
  %tr = tile.addptr %t, %to : !tile.ptr<f32>, i64
  %ts = tile.splat %tr : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %tp = tile.addptr %ts, %c : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  tile.store %tp, %out : tensor<64x!tile.ptr<f32>>
  func.return
}
func.func @round(%t: !tile.ptr<f32>, %t0: i64, %t1: i64, %y: !tile.ptr<f16>, %y0: i64, %y1: i64, %s: !tile.ptr<f32>,
                 %s0: i64) attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %n = tile.program_id x : i32
  %b = tile.program_id y : i32
  %n64 = arith.extsi %n : i32 to i64
  %b64 = arith.extsi %b : i32 to i64
  %c = tile.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
  %tb = arith.muli %b64, %t0 : i64
  %tn = arith.muli %n64, %t1 : i64
  %to = arith.addi %tb, %tn : i64
  %tr = tile.addptr %t, %to : !tile.ptr<f32>, i64
  %ts = tile.splat %tr : !tile.ptr<f32> -> tensor<64x!tile.ptr<f32>>
  %tp = tile.addptr %ts, %c : tensor<64x!tile.ptr<f32>>, tensor<64xi32>
  %tv = tile.load %tp : tensor<64x!tile.ptr<f32>>
  %yv = arith.truncf %tv : tensor<64xf32> to tensor<64xf16>
  %yb = arith.muli %b64, %y0 : i64
  %yn = arith.muli %n64, %y1 : i64
  %yo = arith.addi %yb, %yn : i64
  %yr = tile.addptr %y, %yo : !tile.ptr<f16>, i64
  %ys = tile.splat %yr : !tile.ptr<f16> -> tensor<64x!tile.ptr<f16>>
  %yp = tile.addptr %ys, %c : tensor<64x!tile.ptr<f16>>, tensor<64xi32>
  tile.store %yp, %yv : tensor<64x!tile.ptr<f16>>
  %sum = tile.reduce %tv {axis = 0 : i32} : (tensor<64xf32>) -> f32 {
  ^bb0(%p: f32, %q: f32):
    %r = arith.addf %p, %q : f32
    tile.yield %r : f32
  }
  %sb = arith.muli %b64, %s0 : i64
  %so = arith.addi %sb, %n64 : i64
  %sp = tile.addptr %s, %so : !tile.ptr<f32>, i64
  tile.store %sp, %sum : !tile.ptr<f32>
  func.return
}
func.func @total(%s: !tile.ptr<f32>, %s0: i64, %z: !tile.ptr<f32>, %count: i32)
    attributes {tile.kernel, tile.schedule = #tile.schedule<warps = 1, stages = 1>} {
  %n = tile.program_id x : i32
  %b = tile.program_id y : i32
  %n64 = arith.extsi %n : i32 to i64
  %b64 = arith.extsi %b : i32 to i64
  %sb = arith.muli %b64, %s0 : i64
  %so = arith.addi %sb, %n64 : i64
  %sp = tile.addptr %s, %so : !tile.ptr<f32>, i64
  %inside = arith.cmpi slt, %n, %count : i32
  %value = tile.load %sp, %inside : !tile.ptr<f32>
  %zp = tile.addptr %z, %b64 : !tile.ptr<f32>, i64
  %old = tile.atomic_rmw fadd %zp, %value, %inside : (!tile.ptr<f32>, f32, i1) -> f32
  func.return
}
func.func @norm(%x: !attn.tensor<[B, N, 64], f16> {attn.name = "x", attn.aligned},
                %gain: !attn.tensor<[64], f32> {attn.name = "gain"})
    -> (!attn.tensor<[B, N, 64], f16> {attn.name = "y"}, !attn.tensor<[B], f32> {attn.name = "total"})
    attributes {attn.program} {
  %t = attn.launch @scaled(%x, %gain) grid ["N", "B", "1"] {reals = [2.0]}
      : (!attn.tensor<[B, N, 64], f16>, !attn.tensor<[64], f32>) -> !attn.tensor<[B, N, 64], f32>
  %y, %s = attn.launch @round(%t) grid ["N", "B", "1"]
      : (!attn.tensor<[B, N, 64], f32>) -> (!attn.tensor<[B, N, 64], f16>, !attn.tensor<[B, N], f32>)
  %z = attn.launch @total(%s) grid ["N", "B", "1"] {sizes = ["N"], zeroed = array<i64: 0>}
      : (!attn.tensor<[B, N], f32>) -> !attn.tensor<[B], f32>
  func.return %y, %z : !attn.tensor<[B, N, 64], f16>, !attn.tensor<[B], f32>
}
"""


def compiled(text=MODULE, **options):
    """(PTX, info) of a module in MLIR text; AssertionError with the compiler's words where it is refused."""
    context = native.load("_compiler").Context()
    ptx, info, error = context.parse(text).compile(json.dumps({"target": "sm_80", **options}))
    assert error is None, "\n".join([error, *(str(each) for each in context.take_diagnostics())])
    return ptx, json.loads(info)

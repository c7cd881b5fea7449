# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What a description computes, in plain PyTorch with dense masks, by docs/Programs.md and docs/Mechanisms.md. Exact in
float64; or ``rounded``: in float32, with every tensor rounded to its type after the step that makes it, and gradients
likewise, as programs of plain operations would.
"""

from __future__ import annotations

import math

import torch
from weft.testing import recurrences

from . import patterns, scalars
from .tensors import TYPES, Invalid, shape


class Interpreter:
    """The values of a description by name, for tensors of given sizes."""

    def __init__(self, description, sizes, leaves, tables, rounded):
        self.description, self.sizes, self.tables = description, sizes, tables
        self.rounded = rounded
        self.real = torch.float32 if rounded else torch.float64
        self.values = dict(leaves)
        self.types = {name: each["dtype"] for name, each in description["inputs"].items()}

    def run(self):
        """The results."""
        for step in self.description["steps"]:
            self.types[step["name"]] = step["dtype"]
            found = getattr(self, step["op"])(step, *(self.values[name] if name else None for name in step["of"]))
            if step.get("lse"):
                found, self.values[step["lse"]] = found
            expected = shape(step["dims"], self.sizes)
            if found.shape != expected:
                raise Invalid(f"{step['name']} has shape {tuple(found.shape)}, not {expected}")
            self.values[step["name"]] = self.round(found, step["dtype"])
        return [self.values[name] for name in self.description["results"]]

    def round(self, x, dtype):
        return x.to(TYPES[dtype]).to(self.real) if self.rounded else x

    # ---- Rows

    def map(self, step, *_):
        given = {}
        rank = max(self.values[name].dim() for name in step["of"])
        heads = [self.values[name].shape[1] for name in step["of"] if self.values[name].dim() == 4 == rank]
        for name in step["of"]:
            x = self.values[name]
            if x.dim() == 4 and x.shape[1] not in (1, max(heads)):
                x = repeated(x, max(heads))
            given[name] = x
        try:
            return scalars.value(step["tree"], given, self.real)
        except RuntimeError as error:
            raise Invalid(str(error)) from None

    def to(self, step, x):
        return x

    def rope(self, step, x):
        need(x.shape[3] % 2 == 0, "an odd head size")
        N, D = x.shape[2:]
        token = torch.arange(N)
        if step["cu"]:
            token, _, _ = self.sequences(step["cu"], N)
        base, pairs = step["base"], torch.arange(D // 2)
        if step["grid"]:
            height, width = step["grid"]
            need(height * width == N, "a grid of other tokens")
            rows, columns = step["window"]
            row, column = token // width % rows, token % width % columns
            if step["form"] == "line":
                angle = (row * columns + column)[:, None] * base ** (-2.0 * pairs.double() / D)
            else:
                need(D % 4 == 0, "a head size that 4 does not divide")
                quarter = D // 4
                turn = base ** (-(pairs % quarter).double() / quarter)
                angle = torch.where(pairs < quarter, row[:, None], column[:, None]) * turn
        else:
            position = token if step["window"] is None else token % step["window"]
            angle = position[:, None] * base ** (-2.0 * pairs.double() / D)
        cos, sin = angle.cos().to(self.real), angle.sin().to(self.real)
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], -1).flatten(-2)

    def rms_norm(self, step, x, gain):
        y = x / (x.square().mean(-1, keepdim=True) + step["eps"]).sqrt()
        if gain is None:
            return y
        need(gain.shape == (x.shape[1], x.shape[3]), "another gain")
        return y * gain[:, None, :]

    def head_conv(self, step, x, weight, bias):
        D = x.shape[3]
        heads, taps = weight.shape[1:]
        need(heads == x.shape[1] and taps % 2 == 1, "another weight")
        padded = torch.nn.functional.pad(x, (taps // 2, taps // 2))
        y = sum(torch.einsum("oh,bhnd->bond", weight[:, :, j], padded[..., j : j + D]) for j in range(taps))
        return y if bias is None else y + bias[:, None, None]

    def linear(self, step, x, weight, bias):
        heads = step["heads"]
        if heads is not None:
            B, GH, N, D = x.shape
            need(GH % heads == 0, "other heads")
            x = x.reshape(B, GH // heads, heads, N, D).transpose(2, 3).reshape(B, GH // heads, N, heads * D)
        need(x.shape[-1] == weight.shape[1], "another weight")
        y = x @ weight.mT
        return y if bias is None else y + bias

    def mean_heads(self, step, x):
        B, GH, N, D = x.shape
        need(GH % step["heads"] == 0, "other heads")
        return x.reshape(B, GH // step["heads"], step["heads"], N, D).mean(1)

    def shift(self, step, x):
        N = x.shape[2]
        source = torch.arange(N) - step["by"]
        return self.taken(x, source, step["cu"])

    def taken(self, x, source, cu):
        """Rows ``source`` of x, 0 where there is none in the row's sequence."""
        N = x.shape[2]
        valid = (source >= 0) & (source < N)
        if cu and N:
            number = self.sequences(cu, N)[1]
            valid = valid & (number[source.clamp(0, N - 1)] == number)
        rows = x[:, :, source.clamp(0, max(N - 1, 0))]
        return torch.where(valid[:, None], rows, torch.zeros((), dtype=x.dtype))

    def sum(self, step, x):
        return x.sum(tuple(step["axes"]), keepdim=step["keepdims"])

    def sequences(self, cu, N):
        """Of packed tokens: the place in the sequence, the sequence's number and length."""
        starts = self.tables[cu].long()
        need(int(starts[-1]) == N and self.sizes["B"] == 1, "other sequences")
        token = torch.arange(N)
        number = torch.searchsorted(starts, token, right=True) - 1
        return token - starts[number], number, starts.diff()[number]

    # ---- Mixers

    def apply(self, step, *values):
        return self.mixed(step["mixer"], list(values))

    def mixed(self, tree, values):
        kind, *parts = tree
        if kind == "add":
            a, b = (self.mixed(part, values) for part in parts)
            heads = max(a.shape[1], b.shape[1])
            need(a.shape[2:] == b.shape[2:], "mixers of other sizes")
            return repeated(a, heads) + repeated(b, heads)
        if kind == "compose":
            return self.mixed(parts[0], [self.mixed(parts[1], values)])
        return getattr(self, f"_{kind}")(parts[0], values)

    def _mean(self, given, values):
        (x,) = values
        N = x.shape[2]
        if given["cu"]:
            _, number, length = self.sequences(given["cu"], N)
            matrix = (number[:, None] == number).to(x.dtype) / length[:, None].clamp(min=1)
        elif given["causal"]:
            matrix = torch.ones(N, N, dtype=x.dtype).tril() / torch.arange(1, N + 1)[:, None]
        else:
            matrix = torch.full((N, N), 1 / max(N, 1), dtype=x.dtype)
        return matrix.to(x.dtype) @ x

    def _toeplitz(self, given, values):
        (x,) = values
        taps = self.values[given["taps"]]
        H, N, D = x.shape[1:]
        need(taps.shape[1] == H * D, "other taps")
        token, step = torch.arange(N), given["dilation"]
        result = torch.zeros_like(x)
        if given["grid"]:
            height, width = given["grid"]
            side = math.isqrt(taps.shape[0])
            need(height * width == N and side * side == taps.shape[0] and side % 2, "another grid")
            row, column = token // width, token % width
            for j in range(side * side):
                r = row - step * (j // side - side // 2)
                c = column - step * (j % side - side // 2)
                inside = (r >= 0) & (r < height) & (c >= 0) & (c < width)
                result = result + self.taken(x, torch.where(inside, r * width + c, -1), None) * taps[j].view(H, 1, D)
            return result
        centre = (taps.shape[0] - 1) // 2 if given["centred"] else 0
        need(not given["centred"] or taps.shape[0] % 2, "an even number of taps")
        for j in range(taps.shape[0]):
            result = result + self.taken(x, token - step * (j - centre), given["cu"]) * taps[j].view(H, 1, D)
        return result

    def _diag(self, given, values):
        (x,) = values
        gate = self.values[given["g"]]
        need(gate.shape[2] == x.shape[2] and gate.shape[3] in (1, x.shape[3]), "another gate")
        return gate * repeated(x, gate.shape[1])

    def _recurrence(self, given, values):
        """Token by token; rounded, chunk by chunk, as kernels have it."""
        (v,) = values
        q, k, decay, beta = (given[name] and self.values[given[name]] for name in ("q", "k", "decay", "beta"))
        heads, N = q.shape[1:3]
        need(k.shape[2] == v.shape[2] == N and k.shape[3] == q.shape[3], "other keys")
        scale = 1 / math.sqrt(max(q.shape[3], 1)) if given["scale"] is None else given["scale"]
        v = repeated(v, heads)
        if not (N and v.numel()):
            return torch.zeros_like(v)
        tokens = [N]
        if given["cu"]:
            self.sequences(given["cu"], N)
            tokens = self.tables[given["cu"]].long().diff().tolist()
        split = [
            [None] * len(tokens) if x is None else x.split(tokens, 2) for x in (q, repeated(k, heads), v, decay, beta)
        ]
        form = self._by_chunks if self.rounded else recurrences.recurrence
        return torch.cat([form(*each, scale=scale)[0] for each in zip(*split, strict=True) if each[0].shape[2]], 2)

    def _by_chunks(self, q, k, v, decay, beta, scale):
        kind = TYPES[self.description["dtype"]]
        found, state = recurrences.chunked(q.to(kind), k.to(kind), v.to(kind), decay, beta)
        return found.to(self.real) * (scale * math.sqrt(q.shape[3])), state

    def _softmax(self, given, values):
        q = self.values[given["q"]]
        keys = [self.values[k] for k, _, _ in given["domains"]]
        need(len(keys) == len(values), "other domains")
        places = [(pattern, count) for _, pattern, count in given["domains"]]
        cu = [given["cu"]] * 2 if given["cu"] else None
        return self.attention(q, keys, values, places, given, cu)[0]

    def attend(self, step, q, k, v):
        out, lse = self.attention(q, [k], [v], [(step["pattern"], None)], step, step["cu"])
        return (out, lse) if step["lse"] else out

    def merged(self, step, q, k, v):
        B, heads, N, _ = k.shape
        need(q.shape[2] == N and v.shape[:3] == k.shape[:3], "other keys")
        number = self.sequences(step["cu"], N)[1].tolist() if step["cu"] else [0] * N
        joins = self.tables[step["joins"]].tolist()
        of_keys, of_values = (torch.zeros(B, heads, N, N, dtype=self.real) for _ in range(2))
        seen = torch.zeros(B, heads, N, N, dtype=torch.bool)
        for b in range(B):
            for h in range(heads):
                runs = units(joins[b][h], number, step["most"])
                for j, tokens in enumerate(runs):
                    later = runs[j + 1] if j + 1 < len(runs) and number[runs[j + 1][0]] == number[tokens[0]] else None
                    carried = later if step["offset"] else tokens
                    of_keys[b, h, j, tokens] = 1
                    if carried is None:
                        continue
                    weights = {"sum": (carried, 1), "last": (carried[-1:], 1), "mean": (carried, 1 / len(carried))}
                    rows, weight = weights[step["mode"]]
                    of_values[b, h, j, rows] = weight
                    first = carried[-1] + (0 if step["offset"] else 1)
                    rows = [i for i in range(first, N) if number[i] == number[tokens[0]]]
                    seen[b, h, rows, j] = True
        keys, values = self.round(of_keys @ k, step["dtype"]), self.round(of_values @ v, step["dtype"])
        plain = {"score": None, "sink": None, "scale": None}
        group = q.shape[1] // max(heads, 1)
        masks = [torch.eye(N, dtype=torch.bool), seen.repeat_interleave(group, 1)]
        return self.attention(q, [k, keys], [v, values], [(m, None) for m in masks], plain, None)[0]

    def attention(self, q, keys, values, places, given, cu):
        """(out, lse) under one softmax over all domains."""
        B, H, N, D = q.shape
        scale = 1 / math.sqrt(max(D, 1)) if given["scale"] is None else given["scale"]
        scores, masks = [], []
        for k, v, (pattern, count) in zip(keys, values, places, strict=True):
            M = k.shape[2]
            need(k.shape[0] == B and k.shape[3] == D and k.shape[:3] == v.shape[:3], "other keys")
            at = self.pairs(B, H, N, M, H // max(k.shape[1], 1), cu)
            s = scale * (q @ repeated(k, H).mT)
            if given["score"]:
                known = {"s": s, "b": at.b, "h": at.h, "n": at.n, "m": at.m, **self.values}
                s = scalars.value(given["score"], known, self.real).expand(B, H, N, M)
            if given.get("bias"):
                try:
                    s = s + self.values[given["bias"]]
                except RuntimeError as error:
                    raise Invalid(str(error)) from None
            given_mask = isinstance(pattern, torch.Tensor)
            mask = pattern if given_mask else patterns.member(pattern or ["full"], at, self.tables)
            mask = mask.expand(B, H, N, M)
            if cu:
                _, rows, _ = self.sequences(cu[0], N)
                _, columns, _ = self.sequences(cu[1], M)
                mask = mask & (rows[:, None] == columns)
            if count:
                limits = self.tables[count].long().repeat_interleave(H // k.shape[1], 1)
                mask = mask & (torch.arange(M) < limits[:, :, None, None])
            scores.append(s)
            masks.append(mask)
        s, mask = torch.cat(scores, -1), torch.cat(masks, -1)
        if given["sink"]:
            sink = self.values[given["sink"]]
            need(sink.shape == (H,), "another sink")
            s = torch.cat([s, sink[:, None, None].expand(B, H, N, 1)], -1)
            mask = torch.cat([mask, torch.ones(B, H, N, 1, dtype=torch.bool)], -1)
        some = mask.any(-1, keepdim=True)
        inf = torch.tensor(-torch.inf, dtype=s.dtype)
        s = torch.where(some, torch.where(mask, s, inf), torch.zeros((), dtype=s.dtype))
        if s.shape[-1] == 0:
            out = torch.zeros(B, H, N, values[0].shape[3], dtype=s.dtype)
            return out, torch.full((B, H, N), -torch.inf, dtype=s.dtype)
        v = torch.cat([repeated(v, H) for v in values], 2)
        if self.rounded:
            return Flash.apply(s, some, v, TYPES[self.description["dtype"]])
        p = torch.where(some, s.softmax(-1), torch.zeros((), dtype=s.dtype))
        return p[..., : v.shape[2]] @ v, torch.where(some[..., 0], s.logsumexp(-1), inf)

    def pairs(self, B, H, N, M, group, cu):
        b, h = torch.arange(B).view(-1, 1, 1, 1), torch.arange(H).view(1, -1, 1, 1)
        n, m = torch.arange(N).view(1, 1, -1, 1), torch.arange(M).view(1, 1, 1, -1)
        lengths = torch.tensor(N), torch.tensor(M)
        if cu:
            rows, numbers, of_n = self.sequences(cu[0], N)
            columns, _, _ = self.sequences(cu[1], M)
            n, m = rows.view(1, 1, -1, 1), columns.view(1, 1, 1, -1)
            of_m = self.tables[cu[1]].long().diff()[numbers]  # of the row's own sequence
            lengths = of_n.view(1, 1, -1, 1), of_m.view(1, 1, -1, 1)
        return patterns.Pairs(b, h, n, m, *lengths, group)


class Flash(torch.autograd.Function):
    """softmax(s) @ v and the LSE as kernels have them: probabilities are rounded where they enter a product, and the
    gradient of scores is p (dp - delta) with delta of the rounded output. ``s`` may have a last column without values.
    The tangent is the sum of p (ds - mean of ds) v and p dv, both weights rounded.
    """

    @staticmethod
    def forward(ctx, s, some, v, dtype):
        lse = torch.where(some, s.logsumexp(-1, keepdim=True), torch.zeros((), dtype=s.dtype))
        p = torch.where(some, (s - lse).exp(), torch.zeros((), dtype=s.dtype))
        out = (p[..., : v.shape[2]].to(dtype).to(s.dtype) @ v).to(dtype).to(s.dtype)
        ctx.save_for_backward(p, v, out)
        ctx.save_for_forward(p, v, some)
        ctx.dtype = dtype
        return out, torch.where(some, lse, torch.tensor(-torch.inf))[..., 0]

    @staticmethod
    def backward(ctx, d_out, d_lse):
        p, v, out = ctx.saved_tensors
        d_out = d_out.to(ctx.dtype).to(p.dtype)
        values = v.shape[2]
        delta = (d_out * out).sum(-1, keepdim=True) - d_lse[..., None]
        dp = torch.nn.functional.pad(d_out @ v.mT, (0, p.shape[3] - values))
        ds = p * (dp - delta)
        ds = torch.cat([ds[..., :values].to(ctx.dtype).to(p.dtype), ds[..., values:]], -1)
        return ds, None, p[..., :values].to(ctx.dtype).to(p.dtype).mT @ d_out, None

    @staticmethod
    def jvp(ctx, ds, _, dv, __):
        p, v, some = ctx.saved_tensors
        values = v.shape[2]

        def product(weights, x):
            return weights[..., :values].to(ctx.dtype).to(p.dtype) @ x

        out, lse = p.new_zeros(*p.shape[:3], v.shape[3]), torch.zeros_like(p[..., 0])
        if ds is not None:
            mean = (p * ds).sum(-1, keepdim=True)
            out, lse = out + product(p * (ds - mean), v), mean[..., 0].where(some[..., 0], lse)
        if dv is not None:
            out = out + product(p, dv)
        return out.to(ctx.dtype).to(p.dtype), lse


def units(joins, number, most):
    """Runs of tokens in which each joins the one before, in its sequence; of a chain's joins every (most + 1)st is
    dropped."""
    runs, chain = [], 0
    for token, joined in enumerate(joins):
        inside = token > 0 and number[token] == number[token - 1]
        chain = chain + 1 if joined and inside else 0
        if chain and chain % (most + 1):
            runs[-1].append(token)
        else:
            runs.append([token])
    return runs


def repeated(x, heads):
    """Each head of fewer over its group of ``heads``."""
    if x.shape[1] == heads:
        return x
    need(x.shape[1] > 0 and heads % x.shape[1] == 0, "heads that do not divide")
    return x.repeat_interleave(heads // x.shape[1], 1)


def need(condition, what):
    if not condition:
        raise Invalid(what)

# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Ranks as processes of this machine: what a function gives on each, held against one process in float64."""

import dataclasses
import math
import pathlib
import pickle
import traceback

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
import weft


def on_ranks(ranks, function, *arguments, folder):
    """What ``function(rank, *arguments)`` gives on each of ``ranks`` processes that form a group."""
    multiprocessing.spawn(_rank, (ranks, str(folder), function, arguments), nprocs=ranks)
    found = [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(ranks)]
    faults = [f"rank {rank}: {given}" for rank, (failed, given) in enumerate(found) if failed]
    assert not faults, "\n".join(faults)
    return [given for _, given in found]


def _rank(rank, ranks, folder, function, arguments):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{folder}/store", rank=rank, world_size=ranks)
    try:
        given = (False, function(rank, *arguments))
    except BaseException:
        given = (True, traceback.format_exc())
    (pathlib.Path(folder) / f"{rank}.pickle").write_bytes(pickle.dumps(given))
    dist.destroy_process_group()


@dataclasses.dataclass
class Case:
    """An attention of the whole, with its gradients. ``pattern`` is a function: patterns with masks are not pickled."""

    pattern: object
    rotate: str = "ring"
    layout: str = "consecutive"
    heads: tuple = (2, 1)
    n: int = 48
    m: int | None = None
    batch: int = 1
    size: int = 8
    sink: bool = False
    score_mod: object = None
    starts: tuple = ()
    dtype: torch.dtype = torch.float32
    domains: int = 1
    learned: bool = False

    def tensors(self, seed):
        """q, keys and values of each domain, the sink, gradients of output and log-sum-exp, a learned table."""
        made = torch.Generator().manual_seed(seed)

        def normal(*shape):
            return torch.randn(shape, generator=made).to(self.dtype)

        heads, groups = self.heads
        keys = [(self.batch, groups, self.m or self.n, self.size)] * self.domains
        return {
            "q": normal(self.batch, heads, self.n, self.size),
            "k": [normal(*shape) for shape in keys],
            "v": [normal(*shape) for shape in keys],
            "sink": normal(heads).float() if self.sink else None,
            "of_out": normal(self.batch, heads, self.n, self.size),
            "of_lse": normal(self.batch, heads, self.n).float(),
            "table": 0.5 * torch.randn(self.n, generator=made) if self.learned else None,
        }

    def held(self, ranks):
        """Which tokens each rank has."""
        return weft.distributed.layout(self.layout, ranks, self.patterns()[0], self.n)

    def patterns(self):
        found = self.pattern()
        return found if isinstance(found, (list, tuple)) else [found]

    def matrix(self):
        """Which pairs attend, of all domains side by side, [B, H, N, M]."""
        n, m = self.n, self.m or self.n
        heads, _ = self.heads
        sides = []
        for pattern in self.patterns():
            if pattern is None:
                found = torch.ones(n, m, dtype=torch.bool)
            elif self.starts:
                found = torch.zeros(self.batch, heads, n, m, dtype=torch.bool)
                for begin, end in zip(self.starts, self.starts[1:], strict=False):
                    own = pattern.matrix(end - begin, end - begin, batch=self.batch, heads=heads)
                    found[..., begin:end, begin:end] = torch.from_numpy(own.copy())
            else:
                found = torch.from_numpy(pattern.matrix(n, m, batch=self.batch, heads=heads).copy())
                if found.dim() == 4:  # of a span, those of heads that several queries' share
                    found = found.repeat_interleave(heads // found.shape[1], 1)
            sides.append(found.expand(self.batch, heads, n, m))
        return torch.cat(sides, -1)


def reference(case, given, matrix):
    """The output, the log-sum-exp and all gradients, in float64 by torch; and of the sink's gradient, a sum over rows,
    the norm of its terms for each head."""
    leaves = {
        name: None if x is None else [y.double().requires_grad_() for y in (x if isinstance(x, list) else [x])]
        for name, x in given.items()
        if not name.startswith("of_")
    }
    q, keys, values = leaves["q"][0], torch.cat(leaves["k"], 2), torch.cat(leaves["v"], 2)
    group = q.shape[1] // keys.shape[1]
    keys, values = (x.repeat_interleave(group, 1) for x in (keys, values))
    scores = q @ keys.mT / math.sqrt(q.shape[-1])
    if case.score_mod is not None:
        b, h, n, m = (torch.arange(size).view([-1 if i == axis else 1 for i in range(4)])
                      for axis, size in enumerate(scores.shape))  # fmt: skip
        table = leaves["table"][0] if case.learned else None
        if case.starts:
            first = torch.cat([torch.full((e - s,), s) for s, e in zip(case.starts, case.starts[1:], strict=False)])
            n, m = n - first[n], m - first[m]
        scores = case.score_mod(table)(scores, b, h, n, m)
    scores = scores.masked_fill(~matrix, -torch.inf)
    if case.sink:
        column = leaves["sink"][0].view(1, -1, 1, 1).expand(*scores.shape[:3], 1)
        column.retain_grad()
        scores = torch.cat([scores, column], -1)
    lse = scores.logsumexp(-1)
    weights = torch.exp(scores - torch.where(lse.isfinite(), lse, 0.0)[..., None])
    out = weights[..., : keys.shape[2]] @ values
    of_lse = torch.where(lse.isfinite(), given["of_lse"].double(), 0.0)
    ((out * given["of_out"].double()).sum() + (torch.where(lse.isfinite(), lse, 0.0) * of_lse).sum()).backward()
    found = {"out": out.detach(), "lse": lse.detach()}
    for name, those in leaves.items():
        found[name] = None if those is None else [leaf.grad for leaf in those]
    if case.sink:
        found["sink's terms"] = column.grad.square().sum((0, 2, 3)).sqrt()
    return found


IDS = torch.tensor([0] * 11 + [1] * 22 + [2] * 15, dtype=torch.int32)
TABLE = torch.tensor([3 * i % 7 < 4 for i in range(48)])
BITS = torch.tensor([[i * j % 3 != 1 for j in range(6)] for i in range(6)]).view(1, 1, 6, 6).expand(1, 2, 6, 6)


def causal():
    return weft.causal()


def span(heads=1):
    """Each query sees the keys from every eighth token on, up to twice as far as the tokens before it are, as pairs of
    heads differ by a token."""
    n = torch.arange(48)
    lower = torch.stack([n // 8 * 8 - head for head in range(heads)]).clamp(min=0)
    upper = torch.stack([(5 + n + n // 3 + head).clamp(max=48) for head in range(heads)])
    pairs = (lower[..., None] <= n) & (n < upper[..., None])  # [heads, n, m]
    begins = torch.where(pairs.any(1), pairs.int().argmax(1), 48)
    ends = torch.where(pairs.any(1), 48 - pairs.flip(1).int().argmax(1), 0)
    return weft.span(*(x.to(torch.int32)[None] for x in (lower, upper, begins, ends)))


def two_domains():
    return [weft.causal(), weft.strided(3)]


def distance(_):
    return lambda score, b, h, n, m: score - 0.125 * (h + 1) * (n - m)


def learned(table):
    return lambda score, b, h, n, m: score + table[n] * table[m]


#: one a kind of pattern and of what attention takes beside it; functions that make patterns are named, to be pickled
CASES = {
    "full": Case(lambda: None),
    "causal": Case(causal, layout="head-tail"),
    "causal to all": Case(causal, rotate="all-gather", batch=2),
    "window": Case(lambda: weft.window(9, 0)),
    "window, both sides": Case(lambda: weft.window(5, 12), rotate="all-to-all"),
    "block window": Case(lambda: weft.block_window(10)),
    "prefix": Case(lambda: weft.prefix(20) | weft.causal(), heads=(4, 2)),
    "global": Case(lambda: weft.global_tokens(3) | weft.window(4, 4), rotate="all-to-all"),
    "dilated": Case(lambda: weft.dilated(3, 4) & weft.causal(), layout="head-tail"),
    "grid": Case(lambda: weft.neighbourhood((6, 8), (3, 5))),
    "random": Case(lambda: weft.random_blocks(7, 2, 8), m=96),
    "documents": Case(lambda: weft.document(IDS, IDS) & weft.causal()),
    "documents, counted": Case(lambda: weft.document(IDS, IDS) & weft.causal(), layout="counted"),
    "bitmap": Case(lambda: weft.block_bitmap(BITS, block=8)),
    "mask": Case(lambda: weft.mask(lambda b, h, n, m: TABLE[m] | (n % 5 == m % 5)), rotate="all-gather"),
    "per head": Case(lambda: weft.per_head([weft.causal(), weft.window(6, 6)])),
    "not": Case(lambda: ~weft.window(20, None), layout="head-tail"),
    "sink": Case(lambda: weft.window(7, 0), sink=True),
    "span": Case(span),
    "span of each key head": Case(lambda: span(heads=2), heads=(4, 2), layout="head-tail"),
    "span and window": Case(lambda: span() & weft.window(11, 4), rotate="all-to-all", sink=True),
    "empty rows": Case(lambda: weft.window(30, -20)),
    "packed": Case(lambda: weft.prefix(6) | weft.causal(), starts=(0, 11, 33, 48)),
    "packed, scored": Case(causal, starts=(0, 20, 20, 48), score_mod=distance, sink=True),
    "score_mod": Case(causal, score_mod=distance, layout="head-tail"),
    "learned score_mod": Case(lambda: None, score_mod=learned, learned=True),
    "two domains": Case(two_domains, domains=2, sink=True),
    "bfloat16": Case(causal, dtype=torch.bfloat16, size=16),
}


def computed(rank, names, seed):
    """Of each case: this rank's results and gradients, those of a second run at another pace compared to the bit, the
    traffic, and the texts of the forms that were compiled."""
    import time

    from weft import distributed
    from weft.distributed import parts

    texts = set()
    traced = parts.part.trace

    def trace(call):
        found = traced(call)
        texts.add(found.plain)
        return found

    parts.part.trace = trace
    results = {}
    for name in names:
        case = CASES[name]
        layout = case.held(dist.get_world_size())
        given = case.tensors(seed)
        own = {
            key: [layout.shard(x, rank).clone() for x in (those if isinstance(those, list) else [those])]
            for key, those in given.items()
            if key not in ("sink", "table")
        }
        texts.clear()
        runs = []
        for pace in (0.0, 0.03):
            leaves = {key: [x.clone().requires_grad_() for x in own[key]] for key in ("q", "k", "v")}
            sink, table = (None if x is None else x.clone().requires_grad_() for x in (given["sink"], given["table"]))
            time.sleep(pace * (rank % 3))
            with distributed.counting() as traffic:
                out, lse = distributed.attend(
                    *(leaves["q"][0], leaves["k"], leaves["v"], case.patterns()),
                    rotate=case.rotate, layout=layout, sink=sink, return_lse=True,
                    cu_seqlens=torch.tensor(case.starts, dtype=torch.int32) if case.starts else None,
                    score_mod=case.score_mod(table) if case.score_mod else None,
                )  # fmt: skip
            finite = torch.where(lse.isfinite(), lse, 0.0)
            time.sleep(pace * ((rank + 1) % 3))
            ((out.float() * own["of_out"][0].float()).sum() + (finite * own["of_lse"][0]).sum()).backward()
            gradients = {key: [x.grad for x in those] for key, those in leaves.items()}
            shares = {key: None if x is None else [x.grad] for key, x in (("sink", sink), ("table", table))}
            runs.append({"out": out.detach(), "lse": lse.detach(), **gradients, **shares})
        same = all(
            torch.equal(x, y)
            for key in runs[0]
            if runs[0][key] is not None
            for x, y in zip(*(run[key] if isinstance(run[key], list) else [run[key]] for run in runs), strict=True)
        )
        results[name] = {**runs[0], "same": same, "texts": sorted(texts), "sent": traffic.sent}
    return results


#: keywords of weft.attention.sema, the sizes of q, k and v, and how many taps (0: none)
MECHANISMS = {
    "line": ({"window": 10}, (1, 4, 48, 8), 2, 5),
    "line, wide taps": ({"window": 12, "rope_values": True}, (2, 2, 48, 8), 2, 15),
    "no rope": ({"window": 16, "rope": False, "mean": False}, (1, 2, 48, 8), 1, 3),
    "grid": ({"window": (2, 4), "grid": (6, 8)}, (1, 2, 48, 8), 2, 9),
    "grid, flat": ({"window": (3, 3), "grid": (8, 6), "rope_2d": "flat"}, (1, 2, 48, 8), 2, 25),
}


def mechanism_inputs(name, seed):
    """q, k, v, the taps, the bias and the gradient of the output, of the whole."""
    keywords, (batch, heads, n, size), groups, taps = MECHANISMS[name]
    made = torch.Generator().manual_seed(seed)
    side = round(taps**0.5) if "grid" in keywords else taps
    shape = (groups * size, 1, side, side) if "grid" in keywords else (groups * size, 1, taps)
    shapes = [
        (batch, heads, n, size),
        *[(batch, groups, n, size)] * 2,
        shape,
        (groups * size,),
        (batch, heads, n, size),
    ]
    return [torch.randn(each, generator=made) for each in shapes]


def mechanisms(rank, names, seed, ranks=None):
    """Of each SEMA: this rank's output and gradients; of one process with ``ranks`` None."""
    from weft import distributed

    found = {}
    for name in names:
        keywords = MECHANISMS[name][0]
        *leaves, by = mechanism_inputs(name, seed)
        if ranks:
            layout = distributed.layout("consecutive", ranks)
            leaves = [layout.shard(x, rank).clone() if i < 3 else x for i, x in enumerate(leaves)]
            by = layout.shard(by, rank)
        leaves = [x.requires_grad_() for x in leaves]
        out = (distributed if ranks else weft.attention).sema(*leaves, **keywords)
        (out * by).sum().backward()
        found[name] = [out.detach(), *(x.grad for x in leaves)]
    return found


#: keywords of weft.attention.sfa, and how much tokens are like the one before. A unit's key is the sum of its tokens':
#: by a smaller scale scores are near 1, as those of tokens are, and not up to 60, whose rounding alone exceeds limits
FOUNDATIONS = {
    "some": ({"similarity_threshold": 0.2, "difference_threshold": 0.3, "scale": 0.05}, 0.8),
    "chains": (
        {
            "similarity_threshold": 2.0,
            "difference_threshold": 2.0,
            "max_joins": 4,
            "value_merge": "mean",
            "scale": 0.05,
        },
        0.5,
    ),
    "long chains": ({"similarity_threshold": 2.0, "similarity_heads": 1, "max_joins": 20, "scale": 0.05}, 0.5),
    "nothing": ({"max_joins": 0}, 0.5),
    "turned, with loss": (
        {"similarity_threshold": 0.3, "rope": True, "return_loss": True, "value_merge": "last", "scale": 0.05},
        0.8,
    ),
    "merged loss": ({"similarity_threshold": 0.3, "return_loss": True, "loss_pairs": "merged", "scale": 0.05}, 0.8),
}


def foundation_inputs(name, seed):
    """q, k, v, both gains and the gradient of the output, of the whole."""
    like = FOUNDATIONS[name][1]
    made = torch.Generator().manual_seed(seed)
    q, k, v, by = (torch.randn(1, heads, 48, 8, generator=made) for heads in (4, 2, 2, 4))
    for n in range(1, 48):
        k[:, :, n] = like * k[:, :, n - 1] + (1 - like) * k[:, :, n]
    gains = [1 + 0.1 * torch.randn(heads, 8, generator=made) for heads in (4, 2)]
    return [q, k, v, *gains, by]


def foundations(rank, names, seed, ranks=None):
    """Of each SFA: this rank's output, loss and gradients, and what it sent; of one process with ``ranks`` None."""
    from weft import distributed

    found = {}
    for name in names:
        *leaves, by = foundation_inputs(name, seed)
        if ranks:
            layout = distributed.layout("consecutive", ranks)
            leaves = [layout.shard(x, rank).clone() if i < 3 else x for i, x in enumerate(leaves)]
            by = layout.shard(by, rank)
        leaves = [x.requires_grad_() for x in leaves]
        with distributed.counting() as traffic:
            out = (distributed if ranks else weft.attention).sfa(*leaves, **FOUNDATIONS[name][0])
        out, loss = out if isinstance(out, tuple) else (out, torch.zeros(()))
        ((out * by).sum() + loss).backward()
        found[name] = [out.detach(), *(x.grad for x in leaves), loss.detach(), traffic.sent]
    return found

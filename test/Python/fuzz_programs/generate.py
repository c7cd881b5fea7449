# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Random descriptions. Steps are drawn from the result backwards: a tensor of some dimensions is wanted, and is an
input, one that is there already, or what a step makes of others that are then wanted.

Dimensions are names of sizes, numbers, or expressions of them: ["B", "H", "N", "D"].
"""

from __future__ import annotations

import random

from . import mixers, patterns, scalars

LAYOUTS = ["contiguous"] * 6 + ["transposed", "transposed", "sliced", "unaligned", "batch expanded", "heads expanded",
                                "last strided"]  # fmt: skip


#: the share of programs with large sizes, which take longer
LARGE = 0.06


def describe(seed, depth=None, large=LARGE):
    """The random description of a seed; ``large`` is how likely its sizes are large ones."""
    return _Draw(random.Random(f"weft programs {seed}"), depth, large).description(seed)


class _Draw:
    def __init__(self, rng, depth, large):
        self.rng = rng
        self.large = rng.random() < large
        self.depth = depth or (1 if self.large else rng.choice([1, 1, 2, 2, 2, 3]))
        self.inputs, self.tables, self.steps = {}, {}, []
        self.dims, self.types = {}, {}
        self.dtype = rng.choice(["f16", "f16", "bf16", "f32", "f32"])
        self.packed = rng.random() < 0.15
        self.grid = None
        self.sizes = self._sizes()
        self.budget = self.rng.choice([1, 2] if self.large else [1, 2, 2, 3, 4, 6])  # steps, about

    # ---- Sizes

    def _sizes(self):
        rng = self.rng
        tokens = [1, 2, 3, 7, 15, 16, 17, 31, 33, 48, 63, 64, 65, 70, 100, 130]
        channels = [1, 2, 3, 4, 7, 8, 12, 16, 16, 20, 24, 32, 32, 33, 40, 48, 64, 64, 72, 80, 96]
        if self.large:
            tokens = [96, 127, 128, 129, 150, 192, 200, 256, 257, 300]
            channels = [8, 40, 56, 64, 88, 96, 100, 112, 120, 128, 128, 136, 160, 192, 200, 240, 256]
        key_heads, group = rng.choice([1, 1, 2, 2, 3]), rng.choice([1, 1, 1, 2, 3, 4])
        if self.large:
            key_heads, group = rng.choice([(1, 1), (1, 1), (2, 1), (1, 2), (1, 3), (1, 4)])
        sizes = {
            "B": 1 if self.packed or self.large else rng.choice([0, 1, 1, 1, 1, 2, 2, 3]),
            "H": key_heads * group,
            "K": key_heads,
            "E": rng.choice([1, 2, 3, 4, 6]),
            "N": rng.choice(tokens if rng.random() < 0.95 else [0]),
            "M": rng.choice(tokens if rng.random() < 0.95 else [0]),
            "D": rng.choice(channels),
            "C": rng.choice(channels),
            "S": rng.choice([1, 2, 3, 5]),
        }
        sizes["V"] = sizes["D"] if rng.random() < 0.6 else rng.choice(channels)
        if not self.packed and rng.random() < 0.12:
            self.grid = rng.choice([(1, 1), (1, 5), (3, 4), (4, 4), (5, 7), (8, 8), (9, 2)])
            sizes["N"] = self.grid[0] * self.grid[1]
        return sizes

    def description(self, seed):
        rng = self.rng
        results = []
        for _ in range(rng.choice([1, 1, 1, 1, 2, 3])):
            results.extend(self.result())
        results = list(dict.fromkeys(results))
        variants = []
        if rng.random() < 0.35:
            lengths = [0, 1, 2, 5, 16, 18, 64, 67, 129]
            other = {"M": rng.choice(lengths)}
            if not self.grid:
                other["N"] = rng.choice(lengths)
            if not self.packed:
                other["B"] = rng.choice([1, 2, 3, 0])
            variants.append(other)
        return {
            "seed": seed,
            "dtype": self.dtype,
            "sizes": self.sizes,
            "variants": variants,
            "inputs": self.inputs,
            "tables": self.tables,
            "steps": self.steps,
            "results": results,
            "backward": rng.random() < 0.88,
            "forward": rng.random() < 0.3 and not self.recurs(),  # recurrences have no tangents (docs/Limits.md)
        }

    def recurs(self):
        return any(step["op"] == "apply" and mixers.has_recurrence(step["mixer"]) for step in self.steps)

    def result(self):
        """The names of a result, and of what comes with it."""
        rng = self.rng
        dims = ["B", rng.choice(["H", "H", "H", "K"]), "N", rng.choice(["V", "V", "D"])]
        name = self.made(dims, self.depth)
        if rng.random() < 0.15:
            axes = rng.choice([[3], [2], [2, 3], [0], [1], [0, 1, 2, 3], [1, 2], [0, 2]])
            keep = rng.random() < 0.5
            left = [1 if i in axes else d for i, d in enumerate(dims) if keep or i not in axes]
            total = self.step("sum", left, [name], "f32", axes=axes, keepdims=keep)
            return [total] if rng.random() < 0.6 else [total, name]
        lse = next((s["lse"] for s in self.steps if s["name"] == name and s.get("lse")), None)
        return [name, lse] if lse else [name]

    # ---- Names

    def input(self, dims, role="data", dtype=None, reuse=0.35, capture=False):
        """An input; one that is captured is no argument, but a tensor that the program finds around it."""
        rng = self.rng
        dtype = dtype or self.dtype
        kind = {"dims": dims, "role": role, "dtype": dtype, "capture": capture}
        known = [n for n, x in self.inputs.items() if kind.items() <= x.items()]
        if known and rng.random() < reuse:
            return rng.choice(known)
        name = f"x{len(self.inputs)}"
        layout = rng.choice(LAYOUTS)
        if len(dims) < 4:
            layout = rng.choice(["contiguous"] * 4 + ["sliced", "unaligned"])
        grad = rng.random() < 0.85
        self.inputs[name] = {**kind, "layout": layout, "grad": grad}
        self.dims[name], self.types[name] = dims, dtype
        return name

    def table(self, kind, dims, along=None):
        name = f"t{len(self.tables)}"
        capture = kind not in ("starts", "joins") and self.rng.random() < 0.3
        self.tables[name] = {"kind": kind, "dims": dims, "along": along, "capture": capture}
        return name

    def starts(self, tokens):
        """The table of packed sequences' starts in so many tokens."""
        for name, table in self.tables.items():
            if table["kind"] == "starts" and table["along"] == tokens:
                return name
        return self.table("starts", ["S+1"], tokens)

    def step(self, op, dims, of, dtype=None, **more):
        name = f"y{len(self.steps)}"
        self.steps.append({"name": name, "op": op, "dims": dims, "dtype": dtype or self.dtype, "of": of, **more})
        self.dims[name], self.types[name] = dims, dtype or self.dtype
        return name

    # ---- Tensors

    def want(self, dims, depth):
        """A tensor of the storage type with four dimensions."""
        rng = self.rng
        if depth <= 0 or self.budget <= 0 or rng.random() < 0.35:
            known = [n for n, d in self.dims.items() if d == dims and self.types[n] == self.dtype and n[0] == "y"]
            if known and rng.random() < 0.3:
                return rng.choice(known)
            return self.input(dims)
        return self.made(dims, depth)

    def made(self, dims, depth):
        """A step that makes a tensor of four dimensions."""
        rng = self.rng
        self.budget -= 1
        kinds = ["apply"] * 9 + ["attend"] * 3 + ["map"] * 3 + ["rope", "rms_norm", "linear", "linear", "head_conv"]
        kinds += ["shift", "heads", "centre", "concatenated", "merged", "chain"]
        return getattr(self, f"_{rng.choice(kinds)}")(dims, depth)

    def _map(self, dims, depth):
        rng = self.rng
        x = self.want(dims, depth - 1)
        kind = rng.random()
        if kind < 0.5:
            return self.step("map", dims, [x], tree=scalars.mapped(rng, ["x", x], x[0] == "x"))
        other = self.want(dims, depth - 1) if rng.random() < 0.3 else self.parameter(dims)
        inner = ["x", other]
        if rng.random() < 0.3:
            inner = scalars.mapped(rng, inner, False)
        sign = rng.choice(["add", "mul", "mul", "sub"])
        tree = [sign, ["x", x], inner] if rng.random() < 0.7 else [sign, inner, ["x", x]]
        if rng.random() < 0.15:
            tree = ["div", ["x", x], ["add", ["const", 1.0], ["mul", inner, inner]]]
        of = list(dict.fromkeys([x, other]))
        mixed = {self.types[n] for n in of} != {self.dtype}
        found = self.step("map", dims, of, "f32" if mixed else None, tree=tree)
        return self.step("to", dims, [found], to=self.dtype) if mixed and self.dtype != "f32" else found

    def parameter(self, dims):
        """A tensor that broadcasts to these dimensions."""
        b, h, n, d = dims
        shapes = [[d], [h, 1, d], [1, h, 1, d], [1, h, 1, 1], [n, 1], [n, d], [b, 1, n, 1], [b, h, 1, d],
                  [b, h, n, 1], [1], [b, 1, 1, 1], [h, n, 1]]  # fmt: skip
        if h == "H":
            shapes.append([b, "K", n, d])
        role = self.rng.choice(["small", "gain", "data"])
        return self.input(self.rng.choice(shapes), role, self.rng.choice([None] * 5 + ["f32"]))

    def _rope(self, dims, depth):
        rng = self.rng
        grid = list(self.grid) if self.grid and dims[2] == "N" and rng.random() < 0.7 else None
        form = rng.choice([None, "axial", "line"]) if grid else None
        if self.size(dims[3]) % (4 if grid and form != "line" else 2):
            return self._rms_norm(dims, depth)
        x = self.want(dims, depth - 1)
        window = [rng.randint(1, side) for side in grid] if grid else rng.choice([None, None, 1, 7, 16])
        base = rng.choice([10000.0, 10000.0, 100.0])
        return self.step("rope", dims, [x], window=window, base=base, grid=grid, form=form, cu=self.cu(dims[2]))

    def cu(self, tokens, share=0.85):
        return self.starts(tokens) if self.packed and self.rng.random() < share else None

    def _rms_norm(self, dims, depth):
        x = self.want(dims, depth - 1)
        gain = self.input([dims[1], dims[3]], "gain") if self.rng.random() < 0.7 else None
        return self.step("rms_norm", dims, [x, gain], eps=self.rng.choice([1e-6, 1e-3]))

    def _linear(self, dims, depth):
        width = self.rng.choice(["C", "D", "V"])
        x = self.want([*dims[:3], width], depth - 1)
        bias = self.input([dims[3]], "small") if self.rng.random() < 0.5 else None
        return self.step("linear", dims, [x, self.input([dims[3], width], "weight"), bias], heads=None)

    def _concatenated(self, dims, depth):
        """Groups of heads side by side, and a product with one weight."""
        rng = self.rng
        heads, groups = rng.choice([1, 2, 3]), self.size(dims[1])
        if groups * heads > 8:
            return self._linear(dims, depth)
        width = rng.choice(["C", "V"])
        x = self.want([dims[0], f"{dims[1]}*{heads}", dims[2], width], depth - 1)
        bias = self.input([dims[3]], "small") if rng.random() < 0.5 else None
        weight = self.input([dims[3], f"{heads}*{width}"], "weight")
        return self.step("linear", dims, [x, weight, bias], heads=heads)

    def _heads(self, dims, depth):
        """A mean over groups of heads."""
        times = self.rng.choice([1, 2, 3])
        if self.size(dims[1]) * times > 8:
            times = 1
        x = self.want([dims[0], f"{dims[1]}*{times}", dims[2], dims[3]], depth - 1)
        return self.step("mean_heads", dims, [x], heads=self.size(dims[1]))

    def _head_conv(self, dims, depth):
        rng = self.rng
        heads = rng.choice(["E", "K", dims[1]])
        x = self.want([dims[0], heads, *dims[2:]], depth - 1)
        weight = self.input([dims[1], heads, rng.choice([1, 3, 5])], "weight")
        bias = self.input([dims[1]], "small") if rng.random() < 0.5 else None
        return self.step("head_conv", dims, [x, weight, bias])

    def _chain(self, dims, depth):
        """Products with weights in a row, in any order, with maps and residuals between."""
        self.budget -= 1
        return self.chained(dims, depth, self.rng.choice([2, 2, 3, 4]))

    def chained(self, dims, depth, length):
        rng = self.rng
        if not length:
            return self.want(dims, depth - 1)
        b, h, n, d = dims
        kind = rng.choice(["linear", "linear", "head_conv", "head_conv", "map", "residual"])
        if kind == "map":
            x = self.chained(dims, depth, length - 1)
            return self.step("map", dims, [x], tree=scalars.mapped(rng, ["x", x], False))
        heads = rng.choice(["E", "K", h]) if kind == "head_conv" else h
        width = rng.choice(["C", "D", "V"]) if kind == "linear" else d
        x = self.chained([b, heads, n, width], depth, length - 1)
        if kind == "head_conv" or (kind == "residual" and rng.random() < 0.5):
            weight = self.input([h, heads, rng.choice([1, 3, 5])], "weight")
            made = self.step("head_conv", dims, [x, weight, None])
        else:
            made = self.step("linear", dims, [x, self.input([d, width], "weight"), None], heads=None)
        if kind != "residual":
            return made
        return self.step("map", dims, [x, made], tree=["add", ["x", x], ["x", made]])

    def _shift(self, dims, depth):
        x = self.want(dims, depth - 1)
        return self.step("shift", dims, [x], by=self.rng.choice([1, 2, -1, 5, 17]), cu=self.cu(dims[2]))

    def _centre(self, dims, depth):
        """x less its mean over an axis, or times its sum."""
        rng = self.rng
        x = self.want(dims, depth - 1)
        axes = rng.choice([[3], [3], [2], [1], [2, 3], [0, 2]])
        inner = x
        if rng.random() < 0.4:
            inner = self.step("map", dims, [x], tree=scalars.mapped(rng, ["x", x], False))
        left = [1 if i in axes else d for i, d in enumerate(dims)]
        total = self.step("sum", left, [inner], "f32", axes=axes, keepdims=True)
        count = 1
        for axis in axes:
            count *= max(1, self.size(dims[axis]))
        mean = ["mul", ["x", total], ["const", 1.0 / count]]
        tree = rng.choice([["sub", ["x", x], mean], ["mul", ["x", x], mean], ["add", mean, ["x", x]]])
        found = self.step("map", dims, [x, total], "f32", tree=tree)
        return found if self.dtype == "f32" else self.step("to", dims, [found], to=self.dtype)

    # ---- Attention

    def _apply(self, dims, depth):
        return mixers.applied(self, dims, depth)

    def _attend(self, dims, depth):
        rng = self.rng
        b, h, n, v = dims
        tokens, heads = rng.choice([n, "M"]), self.key_heads(h)
        channels = rng.choice(["D", "D", "C"])
        q = self.want([b, h, n, channels], depth - 1)
        k = self.want([b, heads, tokens, channels], depth - 1)
        value = self.want([b, heads, tokens, v], depth - 1)
        packed = self.packed and rng.random() < 0.85
        more = {
            "pattern": self.pattern(h, heads, n, tokens, packed),
            "score": self.score(h, n, tokens) if rng.random() < 0.35 else None,
            "bias": None,
            "sink": self.input([h], "data") if rng.random() < 0.2 else None,
            "scale": rng.choice([None, None, 0.3, 1.0]),
            "lse": None,
            "cu": [self.starts(n), self.starts(tokens)] if packed else None,
            "deterministic": rng.random() < 0.88,
            "splits": self.splits(),
        }
        if rng.random() < 0.3 and not packed:
            full = [b, h, n, tokens]
            one = [d if rng.random() < 0.6 else 1 for d in full]
            more["bias"] = self.input(one[rng.choice([0, 0, 1, 2]) :], "small", rng.choice([None, "f32"]))
        name = f"y{len(self.steps)}"
        if rng.random() < 0.25:
            more["lse"] = f"{name}_lse"
        return self.step("attend", dims, [q, k, value], **more)

    def _merged(self, dims, depth):
        """Attention of each token to itself and to the runs of joined tokens before it."""
        rng = self.rng
        b, h, n, v = dims
        heads, channels = self.key_heads(h), rng.choice(["D", "C"])
        q = self.want([b, h, n, channels], depth - 1)
        k = self.want([b, heads, n, channels], depth - 1)
        value = self.want([b, heads, n, v], depth - 1)
        joins = self.table("joins", [b, heads, n])
        mode, offset = rng.choice(["sum", "last", "mean"]), rng.choice([0, 0, 1])
        return self.step("merged", dims, [q, k, value], joins=joins, most=rng.choice([0, 1, 2, 20]), mode=mode,
                         offset=offset, cu=self.cu(n))  # fmt: skip

    def key_heads(self, heads):
        """Heads that keys of queries with ``heads`` may have."""
        rng = self.rng
        if heads == "H":
            return rng.choice(["H", "K", "K", 1])
        return rng.choice([heads, heads, heads, 1])

    def splits(self):
        """Into how many runs keys are divided."""
        return self.rng.choice([0, 0, 1, 2, 3, 7]) if self.rng.random() < 0.12 else None

    def pattern(self, heads, key_heads, n, m, packed):
        rng = self.rng
        if rng.random() < 0.2:
            return None
        count = self.size(heads)
        grid = self.grid if n == m == "N" else None
        where = patterns.Where(n, m, self.table, count, key_heads, heads, packed=packed, grid=grid)
        return patterns.draw(rng, where, rng.choice([1, 1, 2, 3]))

    def size(self, dim):
        return dim if isinstance(dim, int) else eval(dim, {}, self.sizes)

    def score(self, heads, n, m):
        rng = self.rng

        def tensor(kind):
            if kind == "bias" and m is None:
                return None
            shapes = {"head": [heads], "relative": [7]}
            dims = shapes.get(kind) or [d if rng.random() < 0.6 else 1 for d in ("B", heads, n, m)]
            return self.input(dims, "small", rng.choice([None, "f32"]), capture=rng.random() < 0.4)

        return scalars.score(rng, tensor, rng.choice([1, 1, 2, 3]))

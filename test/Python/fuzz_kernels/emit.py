# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A described kernel as source text of the tile language."""

from __future__ import annotations

from . import describe as d


def source(kernel: d.Kernel) -> str:
    """The text of a module with one kernel, ``kernel``: its buffers, then ``n``, ``ticket`` and ``flag``."""
    names = ", ".join(buffer.name for buffer in kernel.buffers)
    lines = [
        "import weft",
        "import weft.language as wl",
        "",
        "",
        "@weft.jit",
        f"def kernel({names}{', ' if names else ''}n, ticket, flag):",
        "    pid = wl.program_id(0)",
    ]
    if len(kernel.shape) == 1:
        lines.append(f"    e = wl.arange(0, {kernel.shape[0]})")
    else:
        rows, columns = kernel.shape
        lines += [
            f"    i = wl.arange(0, {rows})[:, None]",
            f"    j = wl.arange(0, {columns})[None, :]",
            f"    e = i * {columns} + j",
        ]
    for statement in kernel.body:
        lines += ["    " + line for line in _emit(kernel, statement)]
    return "\n".join(lines) + "\n"


def _at(kernel: d.Kernel, name: str, index: str) -> str:
    private = kernel.buffer(name).role in ("private", "out")
    return f"{name} + {f'pid * {kernel.size} + ' if private else ''}({index})"


def _options(*parts: str) -> str:
    return "".join(f", {part}" for part in parts if part)


def _emit(kernel: d.Kernel, s: object) -> list[str]:
    return _EMITTERS[type(s)](kernel, s)


def _load(k, s):
    given = _options(f"mask={s.mask}" if s.mask else "", f"other={s.other}" if s.other is not None else "", s.policy)
    return [f"{s.to} = wl.load({_at(k, s.buffer, s.index)}{given}).to(wl.{s.dtype})"]


def _store(k, s):
    given = _options(f"mask={s.mask}" if s.mask else "", s.policy)
    return [f"wl.store({_at(k, s.buffer, s.index)}, {s.value}{given})"]


def _binary(k, s):
    text = f"{s.a} {s.op} {s.b}" if s.op in "+-" else f"wl.{s.op}({s.a}, {s.b})"
    return [f"{s.to} = {text}"]


def _cast(k, s):
    return [f"{s.to} = {'(e * 0)' if s.a == '0' else s.a}.to(wl.{s.dtype})"]


def _reduce(k, s):
    if s.axis is None:
        return [f"{s.to} = {s.a} + wl.{s.op}({s.a})"]
    return [f"{s.to} = {s.a} + wl.{s.op}({s.a}, {s.axis}, keep_dims=True)"]


def _store_reduced(k, s):
    if s.axis is None:
        return [f"wl.store({s.buffer} + pid * {k.size}, wl.{s.op}({s.value}))"]
    if len(k.shape) == 1:
        return [f"wl.store({s.buffer} + pid * {k.size}, wl.{s.op}({s.value}, 0))"]
    at = f"wl.arange(0, {k.shape[1 - s.axis]})"
    return [f"wl.store({s.buffer} + pid * {k.size} + {at}, wl.{s.op}({s.value}, {s.axis}))"]


def _atomic(k, s):
    given = _options(
        f"mask={s.mask}" if s.mask else "", f'sem="{s.sem}"' if s.sem else "", f'scope="{s.scope}"' if s.scope else ""
    )
    return [f"wl.atomic_{k.buffer(s.buffer).kind}({_at(k, s.buffer, s.index)}, {s.value}{given})"]


def _old(k, s):
    sem = f'sem="{s.sem}"' if s.sem else ""
    if s.kind == "cas":
        return [f"{s.to} = wl.atomic_cas({_at(k, s.buffer, s.index)}, {s.expected}, {s.value}{_options(sem)})"]
    given = _options(f"mask={s.mask}" if s.mask else "", sem)
    return [f"{s.to} = wl.atomic_{s.kind}({_at(k, s.buffer, s.index)}, {s.value}{given})"]


def _scalar(k, s):
    at = f"{s.buffer} + pid * {k.size} + {s.at}"
    if s.atomic:
        sem = _options(f'sem="{s.sem}"' if s.sem else "")
        return [f"{s.to} = {s.a} + wl.atomic_add({at}, {s.by}{sem})"]
    return [f"{s.to}_one = wl.load({at})", f"wl.store({at}, {s.to}_one + {s.by})", f"{s.to} = {s.a} + {s.to}_one"]


def _loop(k, s):
    lines = [f"for t in range({s.count}):"]
    for inner in s.body:
        lines += ["    " + line for line in _emit(k, inner)]
    return [*lines, f"    {s.carried} = {s.carried} + {s.added}"]


_WAITS = {
    "volatile": "while wl.load(flag + pid, volatile=True) == 0:",
    "acquire": 'while wl.atomic_add(flag + pid, 0, sem="acquire") == 0:',
    "lock": "while wl.atomic_cas(flag, 1, 0) == 0:",
}


def _turn(k, s):
    lines = [_WAITS[s.by], "    pass"]
    for inner in s.body:
        lines += _emit(k, inner)
    return [*lines, "wl.atomic_xchg(flag, 1)" if s.by == "lock" else "wl.atomic_xchg(flag + pid + 1, 1)"]


def _last(k, s):
    sem = _options(f'sem="{s.sem}"' if s.sem else "")
    return [
        f"if wl.atomic_add(ticket, 1{sem}) == {k.programs - 1}:",
        f"    total = (e * 0).to(wl.{k.buffer(s.buffer).dtype})",
        f"    for q in range({k.programs}):",
        f"        total += wl.load({s.buffer} + q * {k.size} + ({s.index}))",
        f"    wl.store({s.out} + e, total)",
    ]


_EMITTERS = {
    d.Load: _load,
    d.Store: _store,
    d.Binary: _binary,
    d.Scale: lambda k, s: [f"{s.to} = {s.a} * {s.by}"],
    d.Where: lambda k, s: [f"{s.to} = wl.where({s.mask}, {s.a}, {s.b})"],
    d.Cast: _cast,
    d.Reduce: _reduce,
    d.StoreReduced: _store_reduced,
    d.Scan: lambda k, s: [f"{s.to} = wl.cumsum({s.a}, {s.axis})"],
    d.Atomic: _atomic,
    d.AtomicOld: _old,
    d.ScalarInPlace: _scalar,
    d.Loop: _loop,
    d.Turn: _turn,
    d.LastBlock: _last,
}

# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What kernels ask of memory is what their PTX says: every atomic with every order, scope and type, volatile accesses,
cache operators and eviction priorities. And what programs tell one another through locks, counters and flags arrives,
under every interleaving that is tried.
"""

import pathlib
import re
import shutil
import subprocess

import numpy as np
import pytest
import torch
import weft
import weft.language as wl
from kernel_support import instructions, ptx_of, simulate
from weft.compiler import launches
from weft.runtime.extents import extent, share_memory

ORDERS = ("relaxed", "acquire", "release", "acq_rel")
SCOPES = ("cta", "gpu", "sys")


def assembles(ptx, folder, target="sm_80"):
    """ptxas, where it is, takes the text."""
    if shutil.which("ptxas"):
        file = pathlib.Path(folder) / "kernel.ptx"
        file.write_text(ptx)
        command = ["ptxas", f"-arch={target}", str(file), "-o", "/dev/null"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr


# ---- Orders and scopes

#: what a type's atomics are in PTX: the name of the language's function, and the instruction's operation and type
INTEGER = ("add.u{0}", "and.b{0}", "or.b{0}", "xor.b{0}", "exch.b{0}", "cas.b{0}")
NAMES = ("atomic_add", "atomic_and", "atomic_or", "atomic_xor", "atomic_xchg", "atomic_cas")
OPERATIONS = {
    "int32": dict(zip(NAMES, (o.format(32) for o in INTEGER), strict=True))
    | {"atomic_max": "max.s32", "atomic_min": "min.s32"},
    "uint32": dict(zip(NAMES, (o.format(32) for o in INTEGER), strict=True))
    | {"atomic_max": "max.u32", "atomic_min": "min.u32"},
    "int64": dict(zip(NAMES, (o.format(64) for o in INTEGER), strict=True))
    | {"atomic_max": "max.s64", "atomic_min": "min.s64"},
    "uint64": dict(zip(NAMES, (o.format(64) for o in INTEGER), strict=True))
    | {"atomic_max": "max.u64", "atomic_min": "min.u64"},
    "float32": {"atomic_add": "add.f32", "atomic_xchg": "exch.b32", "atomic_cas": "cas.b32"},
    "float64": {"atomic_add": "add.f64", "atomic_xchg": "exch.b64", "atomic_cas": "cas.b64"},
    "float16": {"atomic_add": "add.noftz.f16", "atomic_cas": "cas.b16"},
}
#: atomic_max and atomic_min of floats are two atomics on their bits
EXTREMA = {
    ("float32", "atomic_max"): ("max.s32", "min.u32"),
    ("float32", "atomic_min"): ("min.s32", "max.u32"),
    ("float64", "atomic_max"): ("max.s64", "min.u64"),
    ("float64", "atomic_min"): ("min.s64", "max.u64"),
}
CASES = [(kind, name, (text,)) for kind, names in OPERATIONS.items() for name, text in names.items()]
CASES += [(kind, name, texts) for (kind, name), texts in EXTREMA.items()]


def kernel_from(folder, source, name="kernel"):
    """The kernel of a module's text."""
    file = pathlib.Path(folder) / f"{name}.py"
    file.write_text(f"import weft\nimport weft.language as wl\n\n\n{source}")
    namespace = {"__name__": name}
    exec(compile(file.read_text(), str(file), "exec"), namespace)
    return namespace[name]


@pytest.mark.parametrize("is_read", [True, False], ids=["read", "unread"])
@pytest.mark.parametrize("shape", ["scalar", "block"])
@pytest.mark.parametrize(("kind", "name", "texts"), CASES, ids=lambda v: v if isinstance(v, str) else "")
def test_atomics_say_their_order(kind, name, texts, shape, is_read, tmp_path):
    lines = ["@weft.jit", "def kernel(x, y):", "    at = 0" if shape == "scalar" else "    at = wl.arange(0, 256)"]
    lines.append("    v = wl.load(y + at)")
    wanted = []
    for order in ORDERS:
        for scope in SCOPES:
            values = "v, 2" if name == "atomic_cas" else "v"
            call = f'wl.{name}(x + at, {values}, sem="{order}", scope="{scope}")'
            lines.append(f"    wl.store(y + at, {call})" if is_read else f"    {call}")
            # An atomic that only releases is a `red`, which has no acquire.
            reduces = not is_read and order in ("relaxed", "release")
            bare = reduces and name != "atomic_cas" and name != "atomic_xchg"
            count, pair = 1 if shape == "scalar" else 2, ""
            if shape == "block" and texts == ("add.noftz.f16",):  # neighbours of 16 bits are one addition
                count, pair = 1, "x2"
            wanted += [
                f"{'red' if bare else 'atom'}.{order}.{scope}.global.{text}{pair}"
                for text in texts
                for _ in range(count)
            ]
    kernel = kernel_from(tmp_path, "\n".join(lines) + "\n")
    x = np.zeros(256, kind)
    ptx = ptx_of(kernel, x, x)
    found = re.findall(r"\b((?:atom|red)\.[a-z_0-9.]+)", ptx)
    assert sorted(found) == sorted(wanted)
    assembles(ptx, tmp_path)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("scope", SCOPES)
def test_additions_that_the_target_lacks_have_fences(order, scope, tmp_path):
    """bf16 on sm_80: a loop of compare-and-swap, between a fence that releases and one that acquires."""
    kernel = kernel_from(
        tmp_path, f'@weft.jit\ndef kernel(x: "*bf16"):\n    wl.atomic_add(x, 1.0, sem="{order}", scope="{scope}")\n'
    )
    ptx = ptx_of(kernel, np.zeros(16, np.uint16))
    lines = instructions(ptx)
    swaps = [i for i, line in enumerate(lines) if re.search(r"\batom\..*\bcas\.b(16|32)\b", line)]
    fences = [i for i, line in enumerate(lines) if re.match(rf"fence\.acq_rel\.{scope}$", line)]
    assert swaps
    assert len(fences) == {"relaxed": 0, "acquire": 1, "release": 1, "acq_rel": 2}[order]
    assert (fences[:1] < swaps[:1]) == (order in ("release", "acq_rel")) or order == "relaxed"
    assert (fences[-1:] > swaps[-1:]) == (order in ("acquire", "acq_rel")) or order == "relaxed"
    assembles(ptx, tmp_path)


@pytest.mark.parametrize("shape", ["scalar", "block"])
@pytest.mark.parametrize("mask", ["", ", mask=at < n"])
@pytest.mark.parametrize("kind", ["uint8", "float16", "float32", "int64"])
def test_loads_and_stores_say_what_was_asked_for(kind, mask, shape, tmp_path):
    policies = [""]
    policies += [f', cache_modifier="{c}"' for c in (".ca", ".cg", ".cs")]
    policies += [f', eviction_policy="evict_{p}"' for p in ("first", "last")]
    lines = ["@weft.jit", "def kernel(x, y, n):", "    at = 0" if shape == "scalar" else "    at = wl.arange(0, 128)"]
    lines += [f"    wl.store(y + at, wl.load(x + at{mask}{policy}){mask})" for policy in (*policies, ", volatile=True")]
    lines += ["    v = wl.load(x + at)"]
    stores = [""] + [f', cache_modifier="{c}"' for c in (".wb", ".cg", ".cs", ".wt")] + policies[-2:]
    lines += [f"    wl.store(y + at, v{mask}{policy})" for policy in stores]
    kernel = kernel_from(tmp_path, "\n".join(lines) + "\n")
    x = np.zeros(128, kind)
    ptx = ptx_of(kernel, x, x, 100)
    loads = [
        re.sub(r"\.(v\d\.)?[bfus]\d+$", "", text) for text in re.findall(r"\b(ld\.(?:volatile\.)?global[\w.:]*)", ptx)
    ]
    stores = [re.sub(r"\.(v\d\.)?[bfus]\d+$", "", text) for text in re.findall(r"\b(st\.global[\w.:]*)", ptx)]
    asked = ["", ".ca", ".cg", ".cs", ".L1::evict_first", ".L1::evict_last"]
    wanted = [f"ld.global{text}" for text in asked] + ["ld.volatile.global", "ld.global"]
    assert [text for i, text in enumerate(loads) if i == 0 or text != loads[i - 1]] == wanted
    assert sorted({*stores}) == sorted(
        f"st.global{text}" for text in ("", ".wb", ".cg", ".cs", ".wt", ".L1::evict_first", ".L1::evict_last")
    )
    assembles(ptx, tmp_path)


# ---- What programs tell one another


@weft.jit
def last_block_sums(x, partial, count, out, N: wl.constexpr, PROGRAMS: wl.constexpr):
    """Every program sums its part; the last one to finish adds up the parts."""
    program = wl.program_id(0)
    at = wl.arange(0, N)
    wl.store(partial + program * N + at, wl.load(x + program * N + at) * 2)
    before = wl.atomic_add(count, 1)
    if before == PROGRAMS - 1:
        total = wl.zeros((N,), wl.float32)
        for i in range(PROGRAMS):
            total += wl.load(partial + i * N + (N - 1 - at))
        wl.store(out + at, total)


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
@pytest.mark.parametrize("n", [16, 64, 256])
def test_the_last_block_reduces(n, warps, seed):
    random = np.random.default_rng(seed)
    for interleaving in range(3):
        x = random.integers(-9, 9, 5 * n).astype(np.float32)
        partial, count, out = np.full(5 * n, np.nan, np.float32), np.zeros(1, np.int32), np.full(n, np.nan, np.float32)
        report = simulate(
            last_block_sums, 5, x, partial, count, out, N=n, PROGRAMS=5, num_warps=warps, seed=seed + interleaving
        )
        assert not report.findings, report.findings[0]
        assert np.array_equal(out, 2 * x.reshape(5, n).sum(0)[::-1])


@weft.jit
def hand_on_by_exchange(x, flag, N: wl.constexpr):
    """Each program waits for the one after it, adds its number to what that left, and lets the one before go on."""
    program = wl.program_id(0)
    at = wl.arange(0, N)
    while wl.load(flag + program + 1, volatile=True) == 0:
        pass
    wl.store(x + at, wl.load(x + (at + 1) % N) + program)
    wl.atomic_xchg(flag + program, 1)


@weft.jit
def hand_on_by_addition(x, flag, N: wl.constexpr):
    program = wl.program_id(0)
    at = wl.arange(0, N)
    while wl.atomic_add(flag, 0, sem="acquire") < wl.num_programs(0) - program:
        pass
    wl.store(x + at, wl.load(x + (at + 1) % N) + program)
    wl.atomic_add(flag, 1, sem="release")


def hand_on(kernel, n, warps, interleaving, ptx=None):
    """What four programs find and leave: the report, and whether each took its turn."""
    x = np.random.default_rng(interleaving).integers(-9, 9, n).astype(np.float32)
    expected = x.copy()
    for program in range(3, -1, -1):
        expected = np.roll(expected, -1) + program
    flag = np.zeros(8, np.int32)
    flag[4 if kernel is hand_on_by_exchange else 0] = 1
    report = simulate(kernel, 4, x, flag, N=n, num_warps=warps, seed=interleaving, ptx=ptx, limit=400_000)
    return report, np.array_equal(x, expected)


@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("n", [16, 64, 256])
@pytest.mark.parametrize("kernel", [hand_on_by_exchange, hand_on_by_addition], ids=["volatile", "atomic"])
def test_flags_hand_on(kernel, n, warps, seed):
    for interleaving in range(seed, seed + 3):
        report, right = hand_on(kernel, n, warps, interleaving)
        assert not report.findings, report.findings[0]
        assert right


@weft.jit
def norm_backward(dx, dy, dw, db, x, w, mean, rstd, lock, n, GROUPS: wl.constexpr, BLOCK: wl.constexpr):
    """Gradients of a row's normalisation; those of the weights are summed in groups of rows, each under a lock. The
    first of a group stores, and counts.
    """
    row = wl.program_id(0)
    at = wl.arange(0, BLOCK)
    mask = at < n
    group = row % GROUPS
    a = wl.load(x + row * n + at, mask=mask, other=0.0)
    g = wl.load(dy + row * n + at, mask=mask, other=0.0)
    scale = wl.load(w + at, mask=mask)
    r = wl.load(rstd + row)
    normal = wl.where(mask, (a - wl.load(mean + row)) * r, 0.0)
    wg = wl.where(mask, scale * g, 0.0)
    c1 = wl.sum(normal * wg, 0) / n
    c2 = wl.sum(wg, 0) / n
    wl.store(dx + row * n + at, (wg - (normal * c1 + c2)) * r, mask=mask)
    part_w, part_b = g * normal, g
    to_w, to_b = dw + group * n + at, db + group * n + at
    while wl.atomic_cas(lock + group, 0, 1) == 1:
        pass
    count = wl.load(lock + GROUPS + group)
    if count == 0:
        wl.atomic_xchg(lock + GROUPS + group, 1)
    else:
        part_w += wl.load(to_w, mask=mask)
        part_b += wl.load(to_b, mask=mask)
    wl.store(to_w, part_w, mask=mask)
    wl.store(to_b, part_b, mask=mask)
    wl.atomic_xchg(lock + group, 0)


@pytest.mark.parametrize("warps", [1, 4, 8])
@pytest.mark.parametrize("n", [13, 64, 200])
def test_locks_guard_sums(n, warps, seed):
    random = np.random.default_rng(seed)
    rows, groups, block = 9, 2, 1 << (n - 1).bit_length()
    x, dy = random.standard_normal((2, rows, n)).astype(np.float32)
    w = random.standard_normal(n).astype(np.float32)
    mean, rstd = x.mean(1), 1 / np.sqrt(x.astype(np.float64).var(1) + 1e-5)
    normal = (x - mean[:, None]) * rstd[:, None]
    wg = w * dy.astype(np.float64)
    expected = (wg - normal * (normal * wg).mean(1, keepdims=True) - wg.mean(1, keepdims=True)) * rstd[:, None]
    for interleaving in range(3):
        dx = np.full((rows, n), np.nan, np.float32)
        dw, db = np.full((2, groups, n), np.nan, np.float32)
        lock = np.zeros(2 * groups, np.int32)
        report = simulate(
            norm_backward, rows, dx, dy, dw, db, x, w, mean, rstd.astype(np.float32), lock, n,
            GROUPS=groups, BLOCK=block, num_warps=warps, seed=seed + interleaving,
        )  # fmt: skip
        assert not report.findings, report.findings[0]
        np.testing.assert_allclose(dx, expected, atol=2e-5)
        np.testing.assert_allclose(dw.sum(0), (dy * normal).sum(0), atol=2e-5)
        np.testing.assert_allclose(db.sum(0), dy.sum(0), atol=2e-5)
        assert not lock[:groups].any()


# ---- And it would not, without its orders


def weakened(ptx):
    """The PTX without one of its orders at a time: an acquire or release made relaxed, a fence or barrier gone."""
    for found in re.finditer(r"\b(atom|red)\.(acq_rel|acquire|release)\.", ptx):
        yield found.group(2), ptx[: found.start()] + f"{found.group(1)}.relaxed." + ptx[found.end() :]
    for found in re.finditer(r"\b(fence|bar)\.(acq_rel\.gpu|sync\s+0);", ptx):
        yield found.group(1), ptx[: found.start()] + ptx[found.end() :]


#: what the simulator lets pass: it takes a barrier behind a relaxed read for the read's fence (docs/Simulator.md), and
#: the old value goes round through one
SPARED = {"volatile": ["fence", "bar"], "atomic": ["acquire"]}


@pytest.mark.parametrize("kernel", [hand_on_by_exchange, hand_on_by_addition], ids=["volatile", "atomic"])
def test_each_order_is_needed(kernel, request):
    """Without any one of its orders, a kernel that hands on races."""
    flag = np.zeros(8, np.int32)
    ptx = ptx_of(kernel, np.zeros(256, np.float32), flag, N=256)
    missed = [
        what for what, text in weakened(ptx) if not any(hand_on(kernel, 256, 4, i, text)[0].findings for i in range(4))
    ]
    assert missed == SPARED[request.node.callspec.id]


@weft.jit
def in_place(x, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(x + at, wl.load(x + at) * 2)


@weft.jit
def under_two_names(x, y, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(y + at, wl.load(x + at) * 2)


@weft.jit
def reversed_in_place(x, N: wl.constexpr):
    at = wl.arange(0, N)
    wl.store(x + at, wl.load(x + N - 1 - at) * 2)


@pytest.mark.parametrize("warps", [1, 2, 4, 8])
@pytest.mark.parametrize("n", [1, 16, 64, 128, 512])
@pytest.mark.parametrize("kernel", [in_place, under_two_names, reversed_in_place], ids=lambda k: k.__name__)
def test_accesses_in_place_are_in_order(kernel, n, warps, seed):
    for interleaving in range(2):
        x = np.random.default_rng(seed).integers(-9, 9, n).astype(np.float32)
        expected = 2 * (x[::-1] if kernel is reversed_in_place else x)
        report = simulate(
            kernel, 1, *([x, x] if kernel is under_two_names else [x]), N=n, num_warps=warps, seed=interleaving
        )
        assert not report.findings, report.findings[0]
        assert np.array_equal(x, expected)


@weft.jit
def less_the_first(x, y, N: wl.constexpr):
    at = wl.arange(0, N)
    first = wl.load(x)
    wl.store(y + at, wl.load(x + at) - first)


#: where the result goes, as a view of the memory that the argument has the first 256 elements of
PLACES = {"elsewhere": slice(512, 768), "in place": slice(0, 256), "shifted": slice(1, 257), "behind": slice(256, 512)}


@pytest.mark.parametrize("of", ["numpy", "torch"])
@pytest.mark.parametrize("place", PLACES)
def test_arrays_that_share_memory_are_told_from_others(place, of, seed, monkeypatch):
    """Threads wait for one another before they overwrite what all read, where arguments share it."""
    monkeypatch.setenv("WEFT_CACHE", "0")
    memory = np.random.default_rng(seed).integers(-9, 9, 768).astype(np.float32)
    x, y = memory[:256], memory[PLACES[place]]
    expected = x - x[0]
    if of == "torch":
        x, y = torch.from_numpy(x), torch.from_numpy(y)
    shares = place in ("in place", "shifted")
    kernel = less_the_first[(1,)](x, y, 256)
    assert kernel.apart == (() if shares else ((0, 1),))
    assert kernel.ptx.count("bar.sync") == shares
    np.testing.assert_array_equal(np.asarray(y), expected)
    assert less_the_first.warmup(x, y, 256).ptx == kernel.ptx


@pytest.mark.parametrize("place", PLACES)
def test_a_compiled_kernel_sees_what_its_arrays_share(place, seed):
    """Launched as it is, and by way of its function; under every interleaving that is tried."""
    made = less_the_first.compile("x:*fp32, y:*fp32, N=256")
    assert made.apart == ((0, 1),)
    shares = place in ("in place", "shifted")
    taken = []
    with launches.taken(taken.append):
        for _ in range(2):
            memory = np.random.default_rng(seed).integers(-9, 9, 768).astype(np.float32)
            x, y = memory[:256], memory[PLACES[place]]
            made.run(1, 1, 1, None, None, None, None, None, None, x, y)
            made[(1,)](x, y)
    assert all(launch.kernel.ptx.count("bar.sync") == shares for launch in taken)
    for interleaving in range(4):
        memory = np.random.default_rng(seed).integers(-9, 9, 768).astype(np.float32)
        x, y = memory[:256], memory[PLACES[place]]
        expected = x - x[0]
        ptx = taken[0].kernel.ptx
        report = weft.simulator.launch(ptx, made.name, 1, 128, [x, y], shared=made.shared_bytes, seed=interleaving)
        assert report.findings == []
        np.testing.assert_array_equal(y, expected)


def test_a_library_takes_nothing_for_granted(tmp_path):
    """Its launches have no compiler for another kernel."""
    weft.compile(less_the_first, target="sm_80", signature="x:*fp32, y:*fp32, N=256", out=tmp_path / "library")
    assert next((tmp_path / "library").glob("*.ptx")).read_text().count("bar.sync") == 1


@pytest.mark.parametrize("kind", ["numpy", "torch"])
def test_extents(kind):
    memory = np.arange(60, dtype=np.int16).reshape(3, 4, 5)
    of = torch.from_numpy if kind == "torch" else np.asarray
    start = memory.ctypes.data
    assert extent(of(memory)) == (start, start + 120)
    assert extent(of(memory)[1:, ::2, 3]) == (start + 46, start + 2 * (20 + 3 + 20 + 10 + 1))
    empty = extent(of(memory)[2:2])
    assert empty[0] == empty[1]
    if kind == "numpy":
        assert extent(memory[::-1, 0, 1]) == (start + 2, start + 2 + 80 + 2)
    assert extent(start) is None
    assert share_memory([of(memory)[0], of(memory)[1]], [(0, 1)]) is False
    assert share_memory([of(memory)[:2], of(memory)[1]], [(0, 1)]) is True
    assert share_memory([of(memory), start], [(0, 1)]) is True


def test_accesses_of_a_thread_of_its_own_cost_nothing():
    """Where each thread reads and writes its own elements, there is no barrier."""
    x = np.zeros(512, np.float32)
    assert "bar.sync" not in ptx_of(in_place, x, N=512)
    assert "bar.sync" not in ptx_of(under_two_names, x, x, N=512)
    # Of threads that hold an element, the one reads it that writes it.
    assert "bar.sync" not in ptx_of(in_place, x, N=64) and "@%p1 ld.global" in ptx_of(in_place, x, N=64)
    assert ptx_of(less_the_first, x, x, N=64).count("bar.sync") == 1


# ---- Rows that a loop moves by a stride


@weft.jit
def rows_over_rows(x, out, stride, first, steps, COLUMNS: wl.constexpr, FACTOR: wl.constexpr, BLOCK: wl.constexpr):
    at = wl.arange(0, BLOCK)
    mask = at < COLUMNS
    total = wl.load(x + at, mask=mask)
    for step in wl.range(steps, loop_unroll_factor=FACTOR):
        p = out + first + step * stride + at
        total = total * 0.5 + wl.load(p, mask=mask)
        wl.store(p, total + at.to(wl.float32) / BLOCK, mask=mask)


@pytest.mark.parametrize("num_warps", [1, 4])
@pytest.mark.parametrize(("columns", "factor"), [(96, 1), (128, 1), (128, 3), (96, 2)])
@pytest.mark.parametrize("stride", [0, 1, -1, 33, 95, -95, 96, -96, 127, -127, 128, -128, 200])
def test_rows_that_may_overlap(stride, columns, factor, num_warps, seed):
    """What one step stores the next one reads, however near the rows lie; where they are far, nobody waits. A mask of
    constant bound makes rows shorter than their tile."""
    block, steps = 128, 5
    random = np.random.default_rng(seed)
    first = 0 if stride >= 0 else -stride * (steps - 1)
    x = random.standard_normal(columns).astype(np.float32)
    out = random.standard_normal(abs(stride) * (steps - 1) + columns).astype(np.float32)
    expected, total = out.astype(np.float64), x.astype(np.float64)
    for step in range(steps):
        row = slice(first + step * stride, first + step * stride + columns)
        total = total * 0.5 + expected[row]
        expected[row] = total + np.arange(columns) / block
    given = (x, out, np.int32(stride), np.int32(first), np.int32(steps))
    constants = {"COLUMNS": columns, "FACTOR": factor, "BLOCK": block}
    report = simulate(rows_over_rows, (1,), *given, num_warps=num_warps, **constants)
    assert not report.findings
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
    if abs(stride) >= columns:  # what is left over of an unrolled loop is another loop, of which nothing is known
        assert report.counters["barriers"] <= (num_warps if factor > 1 else 0)


@weft.jit
def rows_by_programs(x, out, steps, STRIDE: wl.constexpr, BLOCK: wl.constexpr):
    at = wl.arange(0, BLOCK)
    total = wl.load(x + at)
    for step in range(wl.program_id(0), steps, wl.num_programs(0)):
        p = out + step * STRIDE + at
        total = total * 0.5 + wl.load(p)
        wl.store(p, total + at.to(wl.float32) / BLOCK)


@pytest.mark.parametrize("stride", [1, 96, 128, 200])
def test_rows_that_programs_take_in_turn(stride, seed):
    """One program takes all rows, one after another: they overlap where they are shorter than its tile."""
    block, steps = 128, 4
    random = np.random.default_rng(seed)
    x = random.standard_normal(block).astype(np.float32)
    out = random.standard_normal(stride * (steps - 1) + block).astype(np.float32)
    expected, total = out.astype(np.float64), x.astype(np.float64)
    for step in range(steps):
        row = slice(step * stride, step * stride + block)
        total = total * 0.5 + expected[row]
        expected[row] = total + np.arange(block) / block
    report = simulate(rows_by_programs, (1,), x, out, np.int32(steps), num_warps=4, STRIDE=stride, BLOCK=block)
    assert not report.findings
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
    assert (report.counters["barriers"] == 0) == (stride >= block)


@weft.jit
def halves_of_rows(x, out, stride, ROWS: wl.constexpr, HALF: wl.constexpr):
    rows, columns = wl.arange(0, ROWS)[:, None], wl.arange(0, HALF)[None, :]
    value = wl.load(x + rows * HALF + columns)
    at = out + rows * stride + columns
    wl.store(at, value)
    wl.store(at + HALF, value + 1)


@pytest.mark.parametrize("stride", [32, 40, 63, 64, 80])
def test_halves_of_rows(stride, seed):
    """A second half that reaches into the next row is over what was stored there first."""
    rows, half = 16, 32
    x = np.random.default_rng(seed).standard_normal((rows, half)).astype(np.float32)
    out = np.zeros(rows * stride + half, np.float32)
    expected = out.copy()
    for more in (0, 1):
        for row in range(rows):
            expected[row * stride + more * half :][:half] = x[row] + more
    report = simulate(halves_of_rows, (1,), x, out, np.int32(stride), num_warps=4, ROWS=rows, HALF=half)
    assert not report.findings
    np.testing.assert_array_equal(out, expected)
    assert (report.counters["barriers"] == 0) == (stride >= 2 * half)


@weft.jit
def rows_by_blocks(x, out, stride, first, n, ROWS: wl.constexpr, BLOCK: wl.constexpr):
    rows, columns = wl.arange(0, ROWS)[:, None], wl.arange(0, BLOCK)[None, :]
    for k in range(0, n, BLOCK):
        mask = k + columns < n
        at = out + first + rows * stride + k + columns
        wl.store(at, wl.load(at, mask=mask) * 0.5 + wl.load(x + rows * n + k + columns, mask=mask), mask=mask)


@pytest.mark.parametrize("kinds", [(np.int32, np.int32), (np.int64, np.int32), (np.int32, np.int64)])
@pytest.mark.parametrize("stride", [32, 40, -40, 95, -95, 96, -96, 100])
def test_rows_of_which_blocks_of_columns_are_taken(stride, kinds, seed):
    """Rows are as long as the mask says: what one block stores another reads where the stride is less."""
    rows, block, n = 16, 32, 96
    random = np.random.default_rng(seed)
    first = 0 if stride >= 0 else -stride * (rows - 1)
    x = random.standard_normal((rows, n)).astype(np.float32)
    out = random.standard_normal(abs(stride) * (rows - 1) + n).astype(np.float32)
    expected = out.astype(np.float64)
    places = first + stride * np.arange(rows)[:, None] + np.arange(n)
    for k in range(0, n, block):
        expected[places[:, k : k + block]] = expected[places[:, k : k + block]] * 0.5 + x[:, k : k + block]
    given = (x, out, kinds[0](stride), np.int32(first), kinds[1](n))
    report = simulate(rows_by_blocks, (1,), *given, num_warps=4, ROWS=rows, BLOCK=block)
    assert not report.findings
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
    assert (report.counters["barriers"] == 0) == (abs(stride) >= n)

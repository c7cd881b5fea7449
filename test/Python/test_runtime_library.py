# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Libraries from Python: written, opened, asked, launched, refused."""

import hashlib
import json
import pathlib
import re

import numpy as np
import pytest
import torch
import weft
import weft.language as wl
from runtime_samples import vector_add_kernel, vector_add_ptx, write_vector_add
from weft import runtime


@pytest.fixture
def path(tmp_path):
    write_vector_add(tmp_path / "libadd")
    return tmp_path / "libadd"


def canonical_digest(manifest):
    """The digest as docs/LibraryFormat.md defines it, computed without Weft."""
    rest = {key: value for key, value in manifest.items() if key != "digest"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def test_what_is_inside(path):
    library = weft.load(path)
    assert list(library.kernels) == ["add"]
    kernel = library.kernels["add"]
    assert kernel.arguments == {"x": "*fp32", "y": "*fp32", "z": "*fp32", "n": "i32"}
    assert [variant["target"] for variant in kernel.variants] == ["sm_90a", "sm_80"]
    assert kernel.ptx(1) == vector_add_ptx("sm_80")
    assert "add(x: *fp32, y: *fp32, z: *fp32, n: i32)" in repr(kernel)
    assert library.manifest["schema"] == "weft-library"
    with pytest.raises(TypeError):
        library.kernels["other"] = kernel


def test_the_digest_is_as_documented(path):
    manifest = json.loads((path / "manifest.json").read_text())
    assert manifest["digest"] == canonical_digest(manifest)
    for part in manifest["parts"]:
        content = (path / part["file"]).read_bytes()
        assert (part["bytes"], part["sha256"]) == (len(content), hashlib.sha256(content).hexdigest())


def test_launch(path, seed):
    library = weft.load(path)
    x, y = np.random.default_rng(seed).standard_normal((2, 1000), dtype=np.float32)
    for grid in (8, (8,), (8, 1, 1), None):
        z = np.zeros(1000, np.float32)
        library.launch("add", grid, x, y, z, 1000, device="simulator")
        assert np.array_equal(z, x + y)
    z = torch.zeros(1000)
    library.kernels["add"][None](torch.from_numpy(x), y, n=1000, z=z, device="simulator")
    assert np.array_equal(z.numpy(), x + y)


def test_launch_refusals(path):
    library = weft.load(path)
    x = np.zeros(4, np.float32)
    with pytest.raises(runtime.Error, match="has no kernel 'sub': it has 'add'"):
        library.launch("sub", 1, x, device="simulator")
    with pytest.raises(runtime.Error, match="has no kernel 'sub'"):
        library.launch("sub", 1, x=x, device="simulator")
    with pytest.raises(TypeError, match="expected 'z', 'n' by name after 2 arguments by position, but got 'm'"):
        library.launch("add", 1, x, x, m=3, device="simulator")
    with pytest.raises(runtime.Error) as caught:
        library.launch("add", 1, x, x, x, 4, device="simulator:sm_75")
    assert caught.value.status == "wrong target"
    assert "variant 1 (sm_80): made for sm_80" in str(caught.value)


def test_no_library(tmp_path):
    with pytest.raises(runtime.Error) as caught:
        weft.load(tmp_path / "nowhere")
    assert caught.value.status == "not found"


def break_part(path):
    (path / "add.sm_80.ptx").write_text("short")


def alter_part(path):
    part = path / "add.sm_80.ptx"
    part.write_text(part.read_text().replace("add.f32", "sub.f32"))


def alter_manifest(path):
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"num_warps": 4', '"num_warps": 8'))


def cut_manifest(path):
    manifest = path / "manifest.json"
    manifest.write_text(manifest.read_text()[:-100])


def other_schema(path):
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["schema_version"] = 2
    (path / "manifest.json").write_text(json.dumps(manifest))


def escape(path):
    manifest = json.loads((path / "manifest.json").read_text())
    manifest["parts"][0]["file"] = "../add.sm_80.ptx"
    manifest["digest"] = canonical_digest(manifest)
    (path / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (break_part, "add.sm_80.ptx: cut short: expected"),
        (alter_part, "add.sm_80.ptx: altered"),
        (alter_manifest, "manifest.json: digest: does not match"),
        (cut_manifest, "manifest.json: cut short"),
        (other_schema, "schema_version: expected version 1, but got 2"),
        (escape, r"parts\[0\].file: expected a name"),
        (lambda path: (path / "manifest.json").write_text("{}"), "not a Weft library"),
        (lambda path: (path / "manifest.json").unlink(), "it holds no manifest.json"),
        (lambda path: (path / "add.sm_90a.ptx").unlink(), "add.sm_90a.ptx: No such file"),
    ],
)
def test_refused(path, damage, message):
    damage(path)
    with pytest.raises(runtime.Error, match=message) as caught:
        weft.load(path)
    assert caught.value.status == "corrupt"
    assert str(path) in str(caught.value)


def test_write_replaces_libraries_only(path, tmp_path):
    write_vector_add(path, targets=("sm_80",))
    assert sorted(part.name for part in path.iterdir()) == ["add.sm_80.ptx", "manifest.json"]
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "a.txt").write_text("mine")
    with pytest.raises(runtime.Error, match="no Weft library is there"):
        write_vector_add(notes)
    assert (notes / "a.txt").read_text() == "mine"
    assert sorted(pathlib.Path(tmp_path).iterdir()) == [path, notes]


def test_write_refuses_what_could_not_be_read(tmp_path):
    kernel = vector_add_kernel()
    kernel["variants"][0]["num_warps"] = 0
    with pytest.raises(runtime.Error, match=r"variants\[0\].num_warps: expected an integer from 1 to 32, but got 0"):
        runtime.write_library(tmp_path / "lib", [kernel], {f"add.{t}.ptx": "" for t in ("sm_80", "sm_90a")})
    assert not (tmp_path / "lib").exists()


@weft.jit
def as_reals(out, a, b):
    wl.store(out, a.to(wl.float64))
    wl.store(out + 1, b.to(wl.float64))


@pytest.mark.parametrize("kind", ["i8", "i32", "i64", "u8", "u32", "u64", "fp16", "fp32", "fp64"])
def test_integers_are_what_they_are_or_refused(tmp_path, kind):
    """An integer that its type has not is refused, and never another one."""
    library = weft.compile(as_reals, "sm_80", f"out:*fp64, a:{kind}, b:{kind}", tmp_path / "lib")
    bits = int(re.sub(r"\D", "", kind))
    low, high = {"i": (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1), "u": (0, 2**bits - 1)}.get(
        kind[0], (-(2**63), 2**64 - 1)
    )
    rounded = np.dtype(f"f{bits // 8}" if kind[0] == "f" else "f8").type
    edges = (0, 7, 8, 15, 16, 31, 32, 53, 63, 64)
    for value in sorted({sign * 2**power + step for power in edges for sign in (-1, 1) for step in (-1, 0, 1)}):
        out = np.full(2, np.nan)
        if low <= value <= high:
            library.launch("as_reals", 1, out, value, 1, device="simulator")
            with np.errstate(over="ignore"):
                assert out[0] == np.float64(rounded(float(value))) and out[1] == 1, value
        else:
            with pytest.raises(runtime.Error, match="argument 1: expected") as caught:
                library.launch("as_reals", 1, out, value, 1, device="simulator")
            assert caught.value.status == "invalid argument"


def attention_of(q, k, v):
    """Attention in float64."""
    q, k, v = (np.asarray(x, np.float64) for x in (q, k, v))
    scores = q @ k.swapaxes(-1, -2) / q.shape[-1] ** 0.5
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


@weft.program
def attention(q, k, v):
    return weft.softmax(q, k) @ v


@pytest.mark.parametrize("promised", ["", ":16"])
@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_rows_from_the_last_to_the_first(tmp_path, target, promised, seed):
    """Negative strides have no tensor maps: another form of the kernel runs, or the argument is named before anything
    is queued."""
    signature = ", ".join(f"{name}:fp16[B,2,N,16]{promised}" for name in "qkv")
    program = attention.compile(target, signature, tmp_path / "lib", differentiate=False).program("attention")
    rng = np.random.default_rng(seed)
    for turned in range(3):
        given = [rng.standard_normal((2, 2, 40, 16)).astype(np.float16) for _ in range(3)]
        given[turned] = given[turned][:, :, ::-1]
        out = np.full((2, 2, 40, 16), np.nan, np.float16)
        try:
            program.run(given, outputs=(out,), device=f"simulator:{target}")
            assert np.abs(out - attention_of(*given)).max() < 4e-3
        except runtime.Error as error:
            assert (target, promised) == ("sm_90a", ":16") and error.status == "invalid argument"
            name = "qkv"[turned]
            assert f"expected the stride of axis 2 of argument '{name}' to be at least 0, but got -16" in str(error)
            assert np.isnan(out).all()


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_rows_at_the_edge_of_32_bits(tmp_path, target, seed):
    """A row that begins within 2^31 elements of the first, and ends outside, is refused; the one before runs."""
    signature = ", ".join(f"{name}:fp16[B,2,N,16]:16" for name in "qkv")
    program = attention.compile(target, signature, tmp_path / "lib", differentiate=False).program("attention")
    rng = np.random.default_rng(seed)
    for stride, runs in ((2**31 - 16, True), (2**31 - 8, False), (2**31, False), (8 - 2**31, target == "sm_80")):
        room = np.zeros(2**31 + 64, np.float16)  # of which nothing is touched but two rows
        for place in range(4):
            given = [rng.standard_normal((1, 2, 2, 16)).astype(np.float16) for _ in range(3)]
            given.append(np.full((1, 2, 2, 16), np.nan, np.float16))
            first = room[max(-stride, 0) :]
            far = np.lib.stride_tricks.as_strided(first, (1, 2, 2, 16), (0, 32, 2 * stride, 2))
            far[...] = given[place]
            given[place] = far
            if runs or (stride < 0 and place == 3):  # of the others boxes are copied
                program.run(given[:3], outputs=given[3:], device=f"simulator:{target}")
                assert np.abs(given[3] - attention_of(*given[:3])).max() < 4e-3, (stride, place)
            else:
                with pytest.raises(runtime.Error, match=r"to lie within 2\^31 elements|to be at least 0"):
                    program.run(given[:3], outputs=given[3:], device=f"simulator:{target}")


@weft.jit
def doubled(x, y, rows, stride, BLOCK: wl.constexpr):
    given = wl.make_tensor_descriptor(x, [rows, BLOCK], [stride, 1], [BLOCK, BLOCK])
    made = wl.make_tensor_descriptor(y, [rows, BLOCK], [BLOCK, 1], [BLOCK, BLOCK])
    made.store([0, 0], given.load([0, 0]) * 2)


@pytest.mark.parametrize("target", ["sm_80", "sm_90a"])
def test_descriptors_of_rows_from_the_last_to_the_first(tmp_path, target, seed):
    signature = "x:*fp16, y:*fp16, rows:i32, stride:i64, BLOCK=32"
    library = weft.compile(doubled, target, signature, tmp_path / "lib", grid=["1"])
    x = np.random.default_rng(seed).standard_normal((32, 32)).astype(np.float16)
    for given, stride in ((x, 32), (x[::-1], -32)):
        y = np.full((32, 32), np.nan, np.float16)
        library.launch("doubled", None, given, y, 32, stride, device=f"simulator:{target}")
        assert np.array_equal(y, given * 2)

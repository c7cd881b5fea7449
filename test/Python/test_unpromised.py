# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Libraries whose signatures promise nothing of alignment: aligned tensors take bulk copies of boxes all the same,
others the kernel that counts on nothing, and both give what float64 gives.
"""

import math
import pathlib

import numpy as np
import pytest
import torch
import weft
from test_warpgroups import TARGET, bits, grouped, matmul
from weft import runtime
from weft.compiler import promises
from weft.compiler.signature import parse
from weft.targets import targets

DEVICE = f"simulator:{TARGET}"


def trapping(library, path, alike):
    """The library with kernels that trap, of the parts whose names are ``alike``: so that a run says which it takes."""
    manifest = library.manifest
    parts = {part["file"]: (pathlib.Path(library.path) / part["file"]).read_text() for part in manifest["parts"]}
    files = {name: text.replace("ret;", "trap;") if alike(name) else text for name, text in parts.items()}
    runtime.write_library(path, manifest["kernels"], files, manifest.get("programs"))
    return weft.load(path)


def two_ways(library, tmp_path):
    """The library where only its kernels for aligned tensors work, and where only the others do."""
    aligned = trapping(library, tmp_path / "aligned", lambda name: name.endswith(".ptx") and ".aligned." not in name)
    others = trapping(library, tmp_path / "others", lambda name: ".aligned." in name)
    return aligned, others


def off_by_one(array):
    """A copy that begins 2 bytes behind a multiple of 16."""
    room = np.empty(array.size + 16, array.dtype)
    skip = (2 - room.ctypes.data) % 16 // 2
    moved = room[skip : skip + array.size].reshape(array.shape)
    moved[...] = array
    assert moved.ctypes.data % 16 == 2
    return moved


def aligned_copy(array):
    """A copy that begins at a multiple of 16 bytes."""
    room = np.empty(array.size + 16, array.dtype)
    skip = -room.ctypes.data % 16 // 2
    moved = room[skip : skip + array.size].reshape(array.shape)
    moved[...] = array
    return moved


SIGNATURE = (
    "a:*bf16, b:*bf16, c:*fp32, M:i32, N:i32, K:i32, sam:i32, sak=1, sbk:i32, sbn=1, scm:i32, "
    "BM=64, BN=64, BK=32, EXACT=False"
)


def test_a_kernel_of_a_library(tmp_path):
    """What is asked of arguments is what maps count on: nothing of c, nor of M."""
    library = weft.compile(matmul, TARGET, SIGNATURE, tmp_path / "lib")
    first, second = library.kernels["matmul"].variants
    guards = [{"argument": name, "divisible_by": 16} for name in ("a", "b", "N", "K", "sam", "sbk")]
    assert first["guards"] == guards and second["guards"] == []
    ways = two_ways(library, tmp_path)
    start = np.random.SeedSequence().entropy
    print("seed", start)
    rng = np.random.default_rng(start)
    M, N, K = 80, 96, 112
    (a, a64), (b, b64) = (bits(rng.standard_normal(shape), "bf16") for shape in ((M, K), (K, N)))
    wide = np.zeros((M, K + 3), a.dtype)  # rows of an odd count of bytes
    wide[:, :K] = a
    for left, sam, way in (
        (aligned_copy(a), K, 0), (off_by_one(a), K, 1), (aligned_copy(wide), K + 3, 1),
    ):  # fmt: skip
        for number, each in enumerate((library, *ways)):
            c = np.full((M, N), np.nan, np.float32)
            launch = lambda lib, c=c, left=left, sam=sam: lib.launch(  # noqa: E731
                "matmul", (2, 2), left, aligned_copy(b), c, M, N, K, sam, N, N, device=DEVICE
            )
            if number == 2 - way:
                with pytest.raises(runtime.Error, match="trap"):
                    launch(each)
            else:
                launch(each)
                np.testing.assert_allclose(c, a64 @ b64, atol=2e-4, rtol=0)


def test_what_is_promised_stays_one_kernel(tmp_path):
    text = SIGNATURE.replace("a:*bf16", "a:*bf16:16").replace("b:*bf16", "b:*bf16:16")
    for name in ("N", "K", "sam", "sbk"):
        text = text.replace(f"{name}:i32", f"{name}:i32:16")
    assert len(weft.compile(matmul, TARGET, text, tmp_path / "lib").kernels["matmul"].variants) == 1


def test_other_targets_have_one_kernel(tmp_path):
    other = next(name for name, each in targets().items() if not each.box_axes)
    assert len(weft.compile(matmul, other, SIGNATURE, tmp_path / "lib").kernels["matmul"].variants) == 1


def test_places_of_arguments():
    """As in a C struct; terms that are multiples of 16 bytes whatever their factors are ask for nothing."""
    signature = parse("x:i8, p:*fp16, n:i32, s:i64, t:i32")
    line = "// weft.tensor_map 1 k at=64 type=f16 swizzle=128 box=64,64 base=1*i8@8+128*i4@16 sizes=64,1*i4@16 "
    line += "strides=2*i8@24"
    found = promises.needed(signature, line + "\n")
    assert {name: each.divisibility for name, each in found.arguments.items()} == {
        "x": 1,
        "p": 16,
        "n": 1,
        "s": 16,
        "t": 1,
    }
    assert promises.needed(signature, "") is None


def test_a_program_of_a_library(tmp_path):
    """Each launch of a plan chooses for itself."""
    heads, groups, tokens, D = 4, 2, 75, 64
    text = ", ".join(f"{name}:fp16[B,{heads if name == 'q' else groups},N,{D}]" for name in "qkv")
    library = grouped.compile(TARGET, text, tmp_path / "lib", differentiate=False)
    (kernel,) = library.kernels.values()
    first, second = ({each["argument"] for each in variant["guards"]} for variant in kernel.variants)
    assert second < first  # outputs are fresh, and so aligned
    assert not any(each.get("aligned") for each in library.programs["grouped"].inputs)
    ways = two_ways(library, tmp_path)
    start = np.random.SeedSequence().entropy
    print("seed", start)
    rng = np.random.default_rng(start)
    given = [rng.standard_normal((2, count, tokens, D)).astype(np.float16) for count in (heads, groups, groups)]
    wide = [torch.from_numpy(each).double().repeat_interleave(heads // each.shape[1], 1) for each in given]
    later = torch.ones(tokens, tokens).triu(1).bool()
    right = (wide[0] @ wide[1].mT / math.sqrt(D)).masked_fill(later, -math.inf).softmax(-1) @ wide[2]
    for move, way in ((aligned_copy, 0), (off_by_one, 1)):
        inputs = [aligned_copy(given[0]), move(given[1]), aligned_copy(given[2])]
        for number, each in enumerate((library, *ways)):
            if number == 2 - way:
                with pytest.raises(runtime.Error, match="trap"):
                    each.run("grouped", *inputs, device=DEVICE, poison=True)
                continue
            out = each.run("grouped", *inputs, device=DEVICE, poison=True)
            error = float((torch.from_numpy(out).double() - right).abs().max())
            assert error <= 4e-3 * float(right.abs().max())

# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""All mechanisms in one PTX library, compiled ahead of time: loaded and run, forward and backward, by a process that
has no compiler, and judged against their formulas.

    python examples/11_library.py                      compiles examples/mechanisms for this device, then runs it
    python examples/11_library.py LIBRARY              runs a library that `weft compile examples/mechanisms` made
    python examples/11_library.py LIBRARY --vectors D  also writes inputs and expected results for cpp/mechanisms.cpp
"""

import argparse
import functools
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass

import torch
import weft
from weft import testing
from weft.testing import FORMS, Domain, accuracy, drawn, hold, judge, masks
from weft.testing import sas as formulas

FOLDER = pathlib.Path(__file__).parent / "mechanisms"
TOKENS = 100


@dataclass(frozen=True)
class Case:
    """Tensors for a program of the library, in its order, and its formula."""

    inputs: Callable
    formula: Callable


def heads(randn, *counts, size=64):
    return {name: randn(1, count, TOKENS, size) for name, count in zip("qkv", counts, strict=True)}


def attention(q, k, v, form):
    return testing.attention(q, [Domain(k, v, masks.causal(TOKENS, TOKENS))], form=form)[0]


def sema(q, k, v, lepe, form):
    weight = lepe.flip(0).mT.reshape(-1, 1, 3)  # torch.nn.Conv1d reads its weight backwards
    return testing.sema(q, k, v, weight, window=64, form=form)


def units(randn, *names, taps=0, values=256):
    wide = {name: randn(1, 1, TOKENS, values if name[-1] in "vg" else 128) for name in names}
    filters = {"taps_0": randn(taps, 128), "taps_1": randn(taps, 256)} if taps else {}
    return wide | filters | {name: randn(128) for name in ("kappa_q", "mu_q", "kappa_k", "mu_k")}


def neighbours(randn):
    """Tokens of which every third is like the one before, and every fifth orthogonal to it."""
    tensors = heads(randn, 8, 8, 8, size=128)
    k = tensors["k"]
    k[:, :, 3::3] = k[:, :, 2:-1:3]
    for n in range(5, TOKENS, 5):
        k[:, :, n, 0::2], k[:, :, n, 1::2] = -k[:, :, n - 1, 1::2], k[:, :, n - 1, 0::2]
    return tensors | {name: 1 + 0.1 * randn(8, 128) for name in ("q_gain", "k_gain")}


def expanded(randn):
    tensors = {name: randn(1, 4, TOKENS, 64) for name in "qkv"}
    for name in "qkv":
        shapes = formulas.expansion_shapes(4, 12, 64, None if name == "v" else 96, 3)
        tensors |= {f"{name}_expand_{key}": x for key, x in formulas.drawn_weights(randn, shapes).items()}
    return tensors | {"weight": randn(256, 256) / 16, "bias": randn(256)}


def sas(*tensors, form):
    given = dict(zip(expanded(torch.empty), tensors, strict=True))
    weights = [
        {key.removeprefix(f"{name}_expand_"): x for key, x in given.items() if key.startswith(f"{name}_expand_")}
        for name in "qkv"
    ]
    y = formulas.sas(*tensors[:3], *weights, form=form)
    return formulas.peaa(y, given["weight"], given["bias"], 4)


CAUSAL = {"mask": masks.causal(TOKENS, TOKENS)}
CASES = {
    "attention": Case(lambda randn: heads(randn, 4, 1, 1), attention),
    "sema": Case(lambda randn: heads(randn, 2, 2, 2) | {"lepe": randn(3, 128)}, sema),
    "sfa": Case(neighbours, testing.sfa),
    "sas": Case(expanded, sas),
    "gau": Case(lambda randn: units(randn, "u", "v", "g"), functools.partial(testing.gau, **CAUSAL)),
    "large_gau": Case(lambda randn: units(randn, "u", "v", "g", values=1536), functools.partial(testing.gau, **CAUSAL)),
    "convolution_equipped": Case(
        lambda randn: units(randn, "x_u", "x_v", "x_g", taps=3), functools.partial(testing.convolved_gau, **CAUSAL)
    ),
}


def no_compiler():
    """Raise where the compiler is among the modules or the shared libraries of this process."""
    maps = pathlib.Path("/proc/self/maps")
    found = [name for name in sys.modules if name.startswith(("weft.compiler", "weft.programs", "weft.language"))]
    found += [line for line in (maps.read_text().splitlines() if maps.exists() else []) if "weft-compiler" in line]
    if found:
        raise RuntimeError(f"expected a process without the compiler, but it has {', '.join(found)}")


def compiled(folder):
    """The mechanisms compiled by another process."""
    command = [sys.executable, "-m", "weft.cli", "compile", FOLDER, "--target", "sm_80,sm_90a", "-o", folder]
    subprocess.run(command, check=True)
    return folder


def judged(program, case):
    """Judge a program of the library and its backward on fresh inputs, by the rule; gives what was found."""
    found = {}

    def draw():
        tensors = drawn(case.inputs, torch.float16)
        weights = [name for name, each in tensors.items() if each.dim() < 4]
        rule = {"parameters": weights, "unseen": formulas.unseen(tensors), "products_as_given": False}
        found.update(judge(program, case.formula, tensors, **rule))
        return found

    hold(draw)
    return found


def gradients(program, tensors, d_out, kind=None, **options):
    """A program's result and the gradients of its inputs, by their names in the library."""
    leaves = {name: each.detach().to(kind or each.dtype).requires_grad_() for name, each in tensors.items()}
    out = program(*leaves.values(), **options)
    out.backward(d_out.to(out.dtype))
    return {"out": out.detach(), **{f"d_{name}": each.grad for name, each in leaves.items()}}


def write_vectors(folder, name, program, case):
    """Inputs, and what is expected of them, as raw numbers in files NAME.TENSOR beside NAME.txt, of lines
    KIND TENSOR LIMIT RANK SIZES: `given` in float16, `expected` in float32, off by LIMIT at most. One draw in some two
    hundred breaks the rule by chance, which says nothing of a program: the inputs are of a draw that holds.
    """
    for _ in range(3):
        tensors = drawn(case.inputs, torch.float16)
        d_out = torch.randn_like(program(*tensors.values()))
        exact = gradients(case.formula, tensors, d_out, torch.float64, form=FORMS[1])
        plain = [gradients(case.formula, tensors, d_out, form=form) for form in FORMS]
        mine = gradients(program, tensors, d_out)
        for key in formulas.unseen(tensors):
            del exact[f"d_{key}"]
        results = {
            key: accuracy(mine[key], each, [form[key] for form in plain], gradient=key != "out")
            for key, each in exact.items()
        }
        if all(result.worst <= result.worst_limit for result in results.values()):
            break
    else:
        raise RuntimeError(f"expected {name} to be right on one of three draws, but it was wrong on all of them")
    lines = [("given", key, 0.0, each.half()) for key, each in {**tensors, "d_out": d_out}.items()]
    lines += [("expected", key, results[key].worst_limit, each.float()) for key, each in exact.items()]
    with (folder / f"{name}.txt").open("w") as index:
        for kind, key, limit, each in lines:
            print(kind, key, f"{limit:.6g}", each.dim(), *each.shape, file=index)
            (folder / f"{name}.{key}").write_bytes(each.contiguous().numpy().tobytes())


def main():
    parser = argparse.ArgumentParser(description="Run a library of all mechanisms without the compiler.")
    parser.add_argument("library", nargs="?", type=pathlib.Path, help="made by `weft compile examples/mechanisms`")
    parser.add_argument("--vectors", type=pathlib.Path, metavar="DIR", help="write inputs and expected results there")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        library = weft.load(options.library or compiled(pathlib.Path(place) / "libmechanisms"))
        for name, case in CASES.items():
            program = library.differentiable(name)
            errors = [
                f"{key} {each.worst:.1e} of {each.worst_limit:.1e}" for key, each in judged(program, case).items()
            ]
            print(f"{name}, {weft.device()}: largest errors and their limits: {', '.join(errors)}", flush=True)
            if options.vectors:
                options.vectors.mkdir(parents=True, exist_ok=True)
                write_vectors(options.vectors, name, program, case)
    no_compiler()
    print(f"ran {len(CASES)} mechanisms, forward and backward, without the compiler")


if __name__ == "__main__":
    main()

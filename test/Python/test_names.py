# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Names of arguments and results: whatever a program calls them, they are told apart from each other and from those
that the compiler gives; and a library gives as many results as its program."""

import linecache

import numpy as np
import pytest
import torch
import weft

SIGNATURE = ", ".join(f"{name}:fp32[B,2,N,16]" for name in ("q", "k", "{}"))


def program(text, name):
    """The program that returns an expression of ``y``, softmax attention, whose values are called ``name``."""
    source = f"def f(q, k, {name}):\n    y = weft.softmax(q, k) @ {name}\n    return {text}\n"
    file = f"<{abs(hash(source))}>"
    linecache.cache[file] = (len(source), None, source.splitlines(True), file)
    scope = {"weft": weft}
    exec(compile(source, file, "exec"), scope)
    return weft.program(scope["f"])


def leaves(result):
    """The tensors of a result, in order."""
    if isinstance(result, (dict, list, tuple)):
        return [leaf for each in (result.values() if isinstance(result, dict) else result) for leaf in leaves(each)]
    return [result]


def reference(q, k, v):
    q, k, v = (x.detach().double().requires_grad_() for x in (q, k, v))
    return (q, k, v), (q @ k.transpose(-1, -2) / 4).softmax(-1) @ v


@pytest.mark.parametrize("name", ["out", "d_out", "d_q", "out_", "t_q", "grad", "f", "saved", "saved_out"])
@pytest.mark.parametrize(
    "text",
    [
        "y",
        "{'d_q': y, 'q': 2 * y}",
        "{'q': y, 'd_q': 2 * y}",
        "{'x': {'a': y}, 'w': {'a': 2 * y}}",
        "{0: y, '': 2 * y}",
        "{'saved_lse1': y}",
        "{'out_': y, 'my out': [2 * y, {'é': 3 * y}]}",
    ],
)
def test_results_of_any_name(tmp_path, text, name, seed):
    """Called and from a library, with gradients: each result is a multiple of one that float64 gives."""
    torch.manual_seed(seed)
    f = program(text, name)
    library = f.compile("sm_80", SIGNATURE.format(name), tmp_path / "lib")
    given = [torch.randn(1, 2, 9, 16, requires_grad=True) for _ in range(3)]
    own, y = reference(*given)
    for results in (leaves(f(*given)), leaves(library.differentiable("f")(*given))):
        for number, result in enumerate(results, 1):
            torch.testing.assert_close(result.double(), number * y, rtol=0, atol=3e-6)
        found = torch.autograd.grad([each.sum() for each in results], given)
        factor = sum(range(1, len(results) + 1))
        wanted = torch.autograd.grad(factor * y.sum(), own, retain_graph=True)
        for gradient, exact in zip(found, wanted, strict=True):
            torch.testing.assert_close(gradient.double(), exact, rtol=0, atol=factor * 1e-5)


@pytest.mark.parametrize("name", ["t_q", "t_out", "t_q_", "d_out"])
@pytest.mark.parametrize("text", ["y", "{'t_q': y}", "{'out': y, 't_out': y * 2}"])
def test_tangents_of_any_name(tmp_path, text, name, seed):
    """Called and from a library: tangents, of all arguments and of the last alone, as those of float64."""
    torch.manual_seed(seed)
    f = program(text, name)
    library = f.compile("sm_80", SIGNATURE.format(name), tmp_path / "lib", tangents=True)
    given = [torch.randn(1, 2, 9, 16) for _ in range(3)]
    changes = [torch.randn(1, 2, 9, 16) for _ in range(3)]

    def exact(*tensors):
        q, k, v = tensors
        return (q @ k.transpose(-1, -2) / 4).softmax(-1) @ v

    for moving in ((0, 1, 2), (2,)):
        own = [c if i in moving else torch.zeros_like(c) for i, c in enumerate(changes)]
        wanted = torch.func.jvp(exact, tuple(x.double() for x in given), tuple(c.double() for c in own))[1]
        for function in (f, library.differentiable("f")):

            def call(*tensors, function=function, places=moving):
                filled = [*given]
                for place, tensor in zip(places, tensors, strict=True):
                    filled[place] = tensor
                return tuple(leaves(function(*filled)))

            found = torch.func.jvp(call, tuple(given[i] for i in moving), tuple(changes[i] for i in moving))[1]
            for number, tangent in enumerate(found, 1):
                torch.testing.assert_close(tangent.double(), number * wanted, rtol=0, atol=number * 1e-5)


def test_a_name_of_what_is_saved():
    x = np.ones((1, 1, 16, 16), np.float16)
    with pytest.raises(weft.CompilationError, match="those of what a forward saves, but got 'saved_lse1'"):
        program("y", "saved_lse1")(x, x, x)


@pytest.mark.parametrize(
    ("text", "given"),
    [
        ("(q, y)", "result 0 is the argument 'q'"),
        ("(y, y)", "result 1 is result 0 again"),
        ("[y, None]", "result 1 is None"),
        ("{'a': y, 'b': (y + 1, k)}", "result 2 is the argument 'k'"),
    ],
)
def test_results_that_a_library_would_leave_out(tmp_path, text, given):
    """A call gives them; a library, which gives what its kernels write, would give fewer results without a word."""
    x = [torch.randn(1, 2, 9, 16) for _ in range(3)]
    assert len(leaves(program(text, "v")(*x))) >= 2
    for out in (None, tmp_path / "lib"):
        with pytest.raises(weft.CompilationError, match=f"as a library gives them, but {given}"):
            program(text, "v").compile("sm_80", SIGNATURE.format("v"), out)
    assert not (tmp_path / "lib").exists()

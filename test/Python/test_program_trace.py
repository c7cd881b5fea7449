# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Programs as they are traced: the attn IR, the sizes that operations unify, specialisation, and errors at the user's
line."""

import re

import numpy as np
import pytest
import weft


class Written:
    """A pattern by its text."""

    def __init__(self, text):
        self.text = text

    def lower(self, operands, masks):
        return self.text


CAUSAL = Written("#attn.causal")


def half(*shape):
    return np.zeros(shape, np.float16)


def arguments_of(ir):
    """The types of the program's arguments by name."""
    line = next(line for line in ir.splitlines() if "func.func" in line)
    return {name: kind for kind, name in re.findall(r'%arg\d+: (!attn\.tensor<.*?>) \{.*?attn\.name = "(.*?)"\}', line)}


def position(error):
    return f"{error.value.position.line}"


@weft.program
def sema(q, k, v, lepe, *, w):
    q, k = weft.rope(q, k, window=w)
    local = weft.softmax(q, k, Written(f"#attn.block_window<[{w}]>"))
    return (local + weft.mean() + weft.toeplitz(lepe, centred=True)) @ v


@weft.program
def attention(q, k, v):
    return weft.softmax(q, k, CAUSAL) @ v


def test_a_mechanism_of_mixers():
    ir = sema.ir(half(2, 8, 100, 64), half(2, 2, 100, 64), half(2, 2, 100, 64), half(3, 128), w=16)
    types = arguments_of(ir)
    assert types["q"] == '!attn.tensor<[B, "4*Hkv", N, 64], f16>'
    assert types["k"] == types["v"] == "!attn.tensor<[B, Hkv, N, 64], f16>"
    assert types["lepe"] == '!attn.tensor<[3, "64*Hkv"], f16>'
    names = re.findall(r"= (attn\.\w+)", ir)
    assert names == ["attn." + n for n in ("rope", "rope", "softmax", "mean", "add", "toeplitz", "add", "apply")]
    assert "#attn.block_window<[16]>" in ir and "attn.program" in ir


def test_keys_may_have_a_length_of_their_own():
    types = arguments_of(attention.ir(half(2, 3, 5, 32), half(2, 3, 7, 32), half(2, 3, 7, 16)))
    assert types["q"] == "!attn.tensor<[B, H, N, 32], f16>"
    assert types["k"] == "!attn.tensor<[B, H, M, 32], f16>"
    assert types["v"] == "!attn.tensor<[B, H, M, 16], f16>"


def test_one_form_serves_every_length_and_batch():
    a = attention.trace(attention.bind((half(2, 4, 8, 64),) * 3, {}))
    b = attention.trace(attention.bind((half(3, 5, 99, 64),) * 3, {}))
    other_head = attention.trace(attention.bind((half(3, 5, 99, 32),) * 3, {}))
    grouped = attention.trace(attention.bind((half(2, 4, 8, 64), half(2, 2, 8, 64), half(2, 2, 8, 64)), {}))
    assert a is b and a is not other_head and a is not grouped
    assert grouped is attention.trace(attention.bind((half(1, 6, 9, 64), half(1, 3, 9, 64), half(1, 3, 9, 64)), {}))


def test_alignment_is_part_of_the_form():
    whole = np.zeros((2, 3, 8, 72), np.float16)
    ir = attention.ir(whole[..., :64], half(2, 3, 8, 64), np.zeros((2, 3, 8, 66), np.float16)[..., :64])
    found = re.findall(r"\{(attn\.aligned, )?attn\.name = \"(\w)\"\}", ir)
    assert [(bool(aligned), name) for aligned, name in found] == [(True, "q"), (True, "k"), (False, "v")]


def test_keywords_are_part_of_the_form():
    operands = (half(1, 1, 64, 32),) * 3 + (half(3, 32),)
    assert "[16]" in sema.ir(*operands, w=16) and "[8]" in sema.ir(*operands, w=8)


def test_elementwise_expressions_are_maps():
    @weft.program
    def f(x, y):
        return weft.silu(x) * 2.0 - y / 3, (x + 1).to("fp32"), x < y

    ir = f.ir(half(2, 3, 4, 8), np.zeros((2, 3, 4, 8), np.float32))
    results = re.search(r"-> \((.*)\) attributes", ir).group(1)
    assert re.findall(r"8\], (\w+)>", results) == ["f32", "f32", "i1"]
    assert "math.exp" in ir and "arith.cmpf olt" in ir


def test_maps_broadcast_and_repeat_heads():
    @weft.program
    def f(x, y, z):
        return x * y + z

    types = arguments_of(f.ir(half(2, 6, 4, 8), half(2, 3, 4, 8), half(6, 1, 8)))
    assert types["x"] == '!attn.tensor<[B, "2*H", N, 8], f16>'
    assert types["y"] == "!attn.tensor<[B, H, N, 8], f16>"
    assert types["z"] == '!attn.tensor<["2*H", 1, 8], f16>'


def test_score_mod_with_captured_tensors():
    slopes = np.ones(4, np.float32)

    @weft.program
    def f(q, k, v, bias):
        def mod(s, b, h, n, m):
            return 30 * weft.tanh((s - slopes[h] * (n - m)) / 30) + bias[b, h, n, m]

        return weft.softmax(q, k, CAUSAL, score_mod=mod) @ v

    ir = f.ir(*(half(2, 4, 5, 32),) * 3, half(1, 4, 5, 5))
    types = arguments_of(ir)
    assert types["bias"] == "!attn.tensor<[1, H, N, M], f16>" and types["captured0"] == "!attn.tensor<[H], f32>"
    region = ir[ir.index("score_mod") :]
    assert region.count("attn.element") == 2 and "math.tanh" in region and "arith.sitofp" in region


def test_integers_divide_as_in_python():
    @weft.program
    def f(q, k, v):
        return weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s + (n - m) // 3 + h % 2) @ v

    region = f.ir(*(half(2, 4, 5, 32),) * 3)
    assert region.count("arith.select") == 1  # h % 2 needs no correction


def test_several_domains_and_a_sink():
    @weft.program
    def f(q, k1, v1, k2, v2, sink, count):
        one, two = weft.domain(k1, CAUSAL, count=count), weft.domain(k2, count=count)
        return weft.softmax(q, one, two, sink=sink, scale=1.0) @ (v1, v2)

    many, few = half(2, 4, 9, 32), half(2, 2, 3, 32)
    other = half(2, 2, 5, 32)
    ir = f.ir(many, few, few, other, other, np.zeros(4, np.float32), np.zeros((2, 2), np.int32))
    types = arguments_of(ir)
    assert types["k1"] == "!attn.tensor<[B, Hkv, M, 32], f16>" and types["v2"] == "!attn.tensor<[B, Hkv, M2, 32], f16>"
    assert types["sink"] == '!attn.tensor<["2*Hkv"], f32>' and types["count"] == "!attn.tensor<[B, Hkv], i32>"
    assert "[#attn.causal, #attn.full]" in ir and "scale = 1.0" in ir


def test_programs_within_programs_and_structures():
    @weft.program
    def outer(q, weights):
        return {"y": attention(q, weights["k"], weights["v"]), "q": q * 2}

    ir = outer.ir(half(1, 1, 4, 16), {"k": half(1, 1, 4, 16), "v": half(1, 1, 4, 16)})
    assert set(arguments_of(ir)) == {"q", "weights_k", "weights_v"}
    assert re.findall(r'attn.name = "(\w+)"\}[,)]', ir)[-2:] == ["y", "q"]


def test_a_size_read_by_python_fixes_it():
    @weft.program
    def f(q, k, v):
        return weft.softmax(q, k, scale=1 / int(q.shape[2])) @ v

    one, two = half(1, 1, 8, 16), half(1, 1, 9, 16)
    assert "[B, H, 8, 16]" in f.ir(one, one, one) and "[B, H, 9, 16]" in f.ir(two, two, two)


def _fails(function, *operands, **keywords):
    with pytest.raises(weft.CompilationError) as error:
        function.ir(*operands, **keywords)
    return error


def test_a_batch_that_differs_is_an_error_at_the_softmax():
    error = _fails(attention, half(2, 3, 5, 32), half(1, 3, 7, 32), half(1, 3, 7, 32))
    assert "expected queries and keys of one batch: expected equal sizes, but got 2 and 1" in str(error.value)
    assert "weft.softmax(q, k, CAUSAL)" in str(error.value) and "^~~" in str(error.value)
    assert error.value.position.file == __file__


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        (((2, 3, 5, 32), (2, 2, 5, 32), (2, 2, 5, 32)), "expected the key heads to divide the query heads"),
        (((2, 3, 5, 32), (2, 3, 5, 16), (2, 3, 5, 32)), "queries and keys of one head size"),
        (((2, 3, 5, 32), (2, 3, 5, 32), (2, 3, 6, 32)), "expected values that fit the mixer"),
        (((2, 3, 5, 32), (3, 5, 32), (2, 3, 5, 32)), "expected keys of 4 axes"),
    ],
)
def test_shapes_that_do_not_fit(shapes, message):
    assert message in str(_fails(attention, *(half(*shape) for shape in shapes)).value)


def _tests_a_scalar(q, k, v):
    return weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s if n > m else 0.0) @ v


def _gives_a_mixer(q, k, v):
    return weft.softmax(q, k)


def _gives_a_number(q, k, v):
    return weft.maximum(3, 5)


def _multiplies_tensors(q, k, v):
    return q @ v


def _multiplies_a_mixer(q, k, v):
    return weft.softmax(q, k) * v


def _indexes_a_tensor(q, k, v):
    return q[0, 0, 0, 0]


def _even_taps(q, k, v):
    return weft.toeplitz(q, centred=True) @ v


def _computes_with_sizes(q, k, v):
    return weft.softmax(q, k, weft.mask(lambda b, h, n, m: m < k.shape[2] - q.shape[2])) @ v


def _asks_a_size(q, k, v):
    return weft.softmax(q, k, weft.window(8, 0) if q.shape[2] > 4 else None) @ v


@pytest.mark.parametrize(
    ("function", "message", "remedy"),
    [
        (_tests_a_scalar, "one that the kernel computes", "weft.where(condition, a, b)"),
        (_gives_a_mixer, "to give tensors, but got 'Mixer'", "A @ v"),
        (_gives_a_number, "to give tensors, but got 'Scalar'", "let one of its arguments be a tensor"),
        (_multiplies_tensors, "expected a mixer on the left of '@'", "weft.softmax(q, k) @ v"),
        (_multiplies_a_mixer, "expected a number to multiply a mixer by", "weft.diag(g) @ A"),
        (_indexes_a_tensor, "but got an element of one", "score_mod"),
        (_even_taps, "expected taps [K, H·D], but got [1, 1, 4, 32] of fp16", ""),
        (_computes_with_sizes, "but got the size 'M', which each call has its own of", "m - k.shape[2] + q.shape[2]"),
        (_asks_a_size, "but got the size 'N', which each call has its own of", "int(x.shape[2])"),
    ],
)
def test_mistakes_name_the_line_and_a_remedy(function, message, remedy):
    error = _fails(weft.program(function), *(half(1, 1, 4, 32),) * 3)
    assert message in str(error.value) and remedy in str(error.value)
    code = function.__code__
    assert error.value.position.file == __file__
    assert code.co_firstlineno <= error.value.position.line <= code.co_firstlineno + 1


def test_arguments_that_programs_do_not_take():
    with pytest.raises(TypeError, match=r"argument 'is_causal'; it takes \(q, k, v, pattern=None, \*, score_mod=None,"):
        weft.attention.attend(*(half(1, 1, 4, 32),) * 3, is_causal=True)
    with pytest.raises(TypeError, match=r"'attention': missing a required argument: 'v'"):
        attention.ir(half(1, 1, 4, 32), half(1, 1, 4, 32))
    with pytest.raises(weft.CompilationError, match=r"expected 'q' of .*, but got float64"):
        attention.ir(*(np.zeros((1, 1, 4, 32)),) * 3)


def test_operations_outside_of_programs_ask_for_one():
    with pytest.raises(weft.CompilationError, match="expected queries or keys to be a tensor"):
        weft.rope(3)


@pytest.mark.parametrize(
    ("function", "message"),
    [
        (lambda x: weft.rope(x, base=0.0), "expected 'base' to be positive, but got 0.0"),
        (lambda x: weft.rope(x, base=-1.0), "expected 'base' to be positive, but got -1.0"),
        (lambda x: weft.rms_norm(x, None, eps=-1e-6), "expected 'eps' to be at least 0, but got -1e-06"),
        (lambda x: weft.sum(x, (1, -3)), r"expected different axes, but got \(1, -3\)"),
    ],
)
def test_numbers_that_would_give_nan_and_axes_twice(function, message):
    with pytest.raises(weft.CompilationError, match=message):
        function(half(1, 1, 4, 32))

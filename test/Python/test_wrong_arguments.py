# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Every public function, with each argument in turn something that it cannot be: what is refused is refused in words,
what was expected and what came, and no error is one of the inside."""

import importlib
import re

import numpy as np
import pytest
import torch
import weft
import weft.language as wl
from weft.programs import calls, inputs, known

B, H, N, D = 1, 2, 8, 16
Q = torch.randn(B, H, N, D)
U = Q[:, :1]
CAUSAL = weft.causal()


def zeros(*shape, to=torch.float32):
    return torch.zeros(shape, dtype=to)


def integers(*shape):
    return zeros(*shape, to=torch.int32)


def seen(b, h, n, m):
    return n >= m


def same(s, b, h, n, m):
    return s


#: what no argument, or few, can be
WRONG = {
    "None": None, "text": "text", "bytes": b"x", "object": object(), "-1": -1, "0": 0, "7": 7, "1.5": 1.5, "1j": 1j,
    "nan": float("nan"), "True": True, "2**70": 2**70, "[]": [], "{}": {}, "()": (), "[1, 2, 3]": [1, 2, 3],
    "['a']": ["a"], "(-1, 0)": (-1, 0), "(1.5, 2)": (1.5, 2), "a set": {1}, "a class": int, "a module": np,
    "integers": integers(B, H, N, D), "truths": zeros(B, H, N, D, to=torch.bool), "doubles": Q.double(),
    "one number": torch.tensor(0.5), "1 axis": zeros(3), "2 axes": zeros(3, 5), "5 axes": zeros(1, 1, 1, 2, 2),
    "no batch": zeros(0, H, N, D), "other sizes": zeros(B, H + 1, N + 1, D + 8), "objects": np.array([object()]),
    "texts": np.array(["a"]), "a type": torch.float32, "a pattern": CAUSAL, "a mixer": weft.mean(),
    "a domain": weft.domain(Q), "a function": seen, "one of nothing": lambda: 0, "a program": weft.Program(seen),
}  # fmt: skip

WEIGHTS = {"conv1.weight": zeros(4, H, 3), "conv1.bias": zeros(4)}
WEIGHTS |= {"conv2.weight": zeros(4, 4, 3), "conv2.bias": zeros(4)}
QKV = {"q": Q, "k": Q, "v": Q}
JOINS, IDS, TABLE, STARTS = zeros(B, H, N, to=torch.bool), integers(N), integers(B, H, N), torch.tensor([0, N]).int()
INDEX, COUNT = integers(B, H, 1, 1), integers(B, H, 1)
THRESHOLDS = {"similarity_heads": 1, "similarity_threshold": 0.1, "difference_threshold": 0.1}
PLACE = {"dim": 32, "heads": 2, "kv_heads": 1, "head_size": 16, "bias": True}
of = weft.attention
program = weft.program(lambda q, k, v, w=1: weft.softmax(q, k) @ v)


def used(make):
    """A function that attends over the pattern that it makes."""
    return lambda **options: of.attend(Q, Q, Q, make(**options))


#: functions with arguments that they take
FUNCTIONS = {
    "attend": (
        of.attend,
        QKV | {"pattern": CAUSAL, "score_mod": same, "bias": zeros(N, N), "sink": zeros(H), "scale": 1.0}
        | {"return_lse": False, "precision": None, "deterministic": True},
    ),
    "attend, dropout": (of.attend, QKV | {"dropout_p": 0.5, "dropout_seed": STARTS}),
    "decode": (
        of.decode,
        {"q": Q, "k_cache": Q, "v_cache": Q, "pattern": None, "seqused_k": integers(B), "num_splits": None}
        | {"score_mod": None, "sink": None, "scale": None, "return_lse": False}
        | {"k_scale": zeros(H), "v_scale": None},
    ),
    "decode from pages": (
        of.decode,
        {"q": Q, "k_cache": zeros(3, 4, H, D), "v_cache": zeros(3, 4, H, D), "block_table": integers(B, 2)}
        | {"seqused_k": integers(B), "k_scale": None, "v_scale": zeros(3, H)},
    ),
    "append": (
        of.append,
        {"k_cache": zeros(B, H, 20, D), "v_cache": zeros(B, H, 20, D), "k_new": Q, "v_new": Q}
        | {"seqused_k": torch.tensor([N]).int(), "slot_mapping": None, "rope_base": None, "k_scale": zeros(H)},
    ),
    "attend, packed": (of.attend, QKV | {"cu_seqlens_q": STARTS, "cu_seqlens_k": STARTS}),
    "flex_attention": (
        of.flex_attention,
        {"query": Q, "key": Q, "value": Q, "score_mod": same, "block_mask": CAUSAL, "scale": 1.0, "enable_gqa": False}
        | {"return_lse": False, "kernel_options": None, "return_aux": None},
    ),
    "sema": (
        of.sema,
        QKV | {"lepe_weight": zeros(H * D, 1, 3), "lepe_bias": zeros(H * D), "window": 4, "grid": None, "rope": True}
        | {"mean": True, "scale": None, "rope_values": False, "rope_2d": "axial", "cu_seqlens": None},
    ),
    "sema over a grid": (of.sema, QKV | {"window": (2, 2), "grid": (2, 4)}),
    "sfa": (
        of.sfa,
        QKV | {"q_gain": zeros(H, D), "k_gain": zeros(H, D), "eps": 1e-6, "max_joins": 3, "decisions": None}
        | {"value_merge": "sum", "value_offset": 0, "cu_seqlens": None, "rope": False, "deterministic": False}
        | {"scale": None, "return_loss": False, "loss_factor": 1.0, "loss_pairs": "all"} | THRESHOLDS,
    ),
    "sas": (
        of.sas,
        QKV | {"q_expand": WEIGHTS, "k_expand": WEIGHTS, "v_expand": WEIGHTS, "kernel": 3, "causal": True}
        | {"scale": None, "cu_seqlens": None},
    ),
    "peaa": (of.peaa, {"y": Q, "weight": zeros(5, H * D), "bias": zeros(5), "heads": H}),
    "gau": (
        of.gau,
        {"u": U, "v": U, "g": U, **{name: zeros(D) for name in ("kappa_q", "mu_q", "kappa_k", "mu_k")}}
        | {"pattern": None, "scale": None, "cu_seqlens": None},
    ),
    "rope": (weft.rope, {"x": Q, "window": 4, "base": 1e4, "grid": None, "form": None, "cu_seqlens": None}),
    "rms_norm": (weft.rms_norm, {"x": Q, "gain": zeros(H, D), "eps": 1e-6}),
    "sum": (weft.sum, {"x": Q, "axis": 1, "keepdims": False}),
    "head_conv": (weft.head_conv, {"x": Q, "weight": zeros(3, H, 3), "bias": zeros(3)}),
    "linear": (weft.linear, {"x": Q, "weight": zeros(5, D), "bias": zeros(5), "heads": None}),
    "mean_heads": (weft.mean_heads, {"x": Q, "heads": 1}),
    "shift": (weft.shift, {"x": Q, "by": 1, "cu_seqlens": None}),
    "merge_decide": (weft.merge_decide, {"k": Q, "gain": zeros(H, D), "cu_seqlens": None} | THRESHOLDS),
    "merge_units": (
        lambda joins, source, **options: weft.merge_units(joins, source, **options),
        {"joins": JOINS, "source": Q, "max_joins": 3, "modes": "sum", "offsets": 0, "to": None, "cu_seqlens": None},
    ),
    "merge_loss": (
        weft.merge_loss,
        {"k": Q, "gain": None, "kept": JOINS, "similarity_heads": 1, "pairs": "all", "cu_seqlens": None},
    ),
    "softmax": (
        lambda v, **options: weft.softmax(**options) @ v,
        {"v": Q, "q": Q, "k": Q, "pattern": CAUSAL, "score_mod": same, "scale": 1.0, "sink": zeros(H)}
        | {"deterministic": True, "cu_seqlens": None},
    ),
    "softmax of domains": (
        lambda q, one, other, v: weft.softmax(q, one, other) @ (v, Q),
        {"q": Q, "one": weft.domain(Q), "other": weft.domain(Q, CAUSAL), "v": Q},
    ),
    "domain": (
        lambda k, pattern, count: weft.softmax(Q, weft.domain(k, pattern, count=count)) @ Q,
        {"k": Q, "pattern": CAUSAL, "count": integers(B, H)},
    ),
    "mean": (lambda **options: weft.mean(**options) @ Q, {"causal": False, "cu_seqlens": None}),
    "toeplitz": (
        lambda **options: weft.toeplitz(**options) @ Q,
        {"taps": zeros(3, H * D), "centred": False, "dilation": 1, "grid": None, "cu_seqlens": None},
    ),
    "diag": (lambda g, v: weft.diag(g) @ v, {"g": Q, "v": Q}),
    "linear_attention": (
        lambda v, **options: weft.linear_attention(**options) @ v,
        {"v": Q, "q": Q, "k": Q, "log_decay": zeros(B, H, N), "scale": 1.0, "initial_state": zeros(B, H, D, D)}
        | {"cu_seqlens": None},
    ),
    "delta_rule": (
        lambda v, **options: weft.delta_rule(**options) @ v,
        {"v": Q, "q": Q, "k": Q, "beta": zeros(B, H, N), "log_decay": zeros(B, H, N), "scale": 1.0}
        | {"initial_state": zeros(B, H, D, D), "cu_seqlens": None},
    ),
    "final_state": (lambda v: weft.linear_attention(Q, Q).final_state(v), {"v": Q}),
    "merge": (weft.merge, {"out1": Q, "lse1": zeros(B, H, N), "out2": Q, "lse2": zeros(B, H, N)}),
    "paged": (
        lambda pages, block_table, lengths: of.attend(Q, *[weft.paged(pages, block_table, lengths)] * 2),
        {"pages": zeros(3, 4, H, D), "block_table": integers(B, 2), "lengths": integers(B)},
    ),
    "A + B": (lambda a, b: (a + b) @ Q, {"a": weft.mean(), "b": weft.softmax(Q, Q)}),
    "A @ v": (lambda v: weft.mean() @ v, {"v": Q}),
    "matrix": (weft.mean().matrix, {"n": 8, "heads": None}),
    "where": (weft.where, {"condition": JOINS, "x": Q[..., 0], "y": Q[..., 0]}),
    "maximum": (weft.maximum, {"x": Q, "y": Q}),
    "minimum": (weft.minimum, {"x": Q, "y": Q}),
    "gelu": (weft.gelu, {"x": Q, "approximate": "none"}),
    **{
        name: (getattr(weft, name), {"x": Q})
        for name in (*("abs", "cos", "erf", "exp", "log", "relu"), *("rsqrt", "sigmoid", "silu", "sin", "sqrt", "tanh"))
    },
    "select_blocks": (weft.select_blocks, {"q": Q, "k": Q, "top": 2, "block": (8, 8), "causal": True, "scale": None}),
    "window": (weft.window, {"left": 1, "right": 1}),
    "block_window": (weft.block_window, {"w": (2, 2), "grid": (4, 4)}),
    "prefix": (weft.prefix, {"n": 1}),
    "global_tokens": (weft.global_tokens, {"n": 1}),
    "strided": (weft.strided, {"step": 1}),
    "dilated": (weft.dilated, {"step": 1, "width": 2}),
    "neighbourhood": (weft.neighbourhood, {"shape": 8, "kernel": 3, "dilation": 1}),
    "random_blocks": (weft.random_blocks, {"seed": 1, "per_row": 1, "block": 4}),
    "document": (used(weft.document), {"q_ids": IDS, "k_ids": IDS}),
    "blocks": (used(weft.blocks), {"index": INDEX, "count": COUNT, "block": 8}),
    "block_bitmap": (used(weft.block_bitmap), {"bits": INDEX.bool(), "block": 8}),
    "span": (used(weft.span), dict.fromkeys(("lower", "upper", "first", "past"), TABLE)),
    "mask": (used(weft.mask), {"f": seen}),
    "mask on the host": (lambda f: weft.mask(f).matrix(4), {"f": seen}),
    "document on the host": (lambda q, k: weft.document(q, k).matrix(N), {"q": IDS, "k": IDS}),
    "per_head": (used(weft.per_head), {"patterns": [CAUSAL, CAUSAL]}),
    "pattern.shift": (CAUSAL.shift, {"n": 1}),
    "pattern.matrix": (CAUSAL.matrix, {"n": 4, "m": 4, "batch": 1, "heads": 1}),
    "pattern.blocks_summary": (CAUSAL.blocks_summary, {"n": 4, "m": 4, "bm": 2, "bn": 2, "batch": 1, "heads": 1}),
    "p & q": (lambda p, q: p & q, {"p": CAUSAL, "q": CAUSAL}),
    "p | q": (lambda p, q: p | q, {"p": CAUSAL, "q": CAUSAL}),
    "cdiv": (weft.cdiv, {"x": 3, "y": 2}),
    "next_power_of_2": (weft.next_power_of_2, {"n": 3}),
    "@program": (weft.program, {"function": seen}),
    "@jit": (weft.jit, {"fn": seen}),
    "autotune": (
        lambda **options: weft.autotune(**options)(weft.jit(seen)),
        {"configs": [weft.Config({})], "key": ["h"], "reset_to_zero": None, "restore_value": None},
    ),
    "heuristics": (lambda values: weft.heuristics(values)(weft.jit(seen)), {"values": {}}),
    "Config": (weft.Config, {"kwargs": {}}),
    "compile": (weft.compile, {"fn": program, "target": "sm_80"}),
    "load": (weft.load, {"path": "/nowhere"}),
    "a program": (program, QKV | {"w": 1}),
    "program.ir": (program.ir, QKV | {"stage": None}),
    "program.explain": (program.explain, QKV | {"target": "sm_80", "backward": True}),
    "program.compile": (
        program.compile,
        {"signature": ", ".join(f"{x}:fp16[B,H,N,64]" for x in "qkv"), "constants": None, "differentiate": False}
        | {"target": "sm_80"},
    ),
    "nn.Attention": (weft.nn.Attention, PLACE | {"pattern": CAUSAL, "rope": False, "scale": 1.0}),
    "nn.SEMA": (weft.nn.SEMA, PLACE | {"window": 8, "grid": None, "kernel": 3, "rope_2d": "axial"}),
    "nn.SFA": (
        weft.nn.SFA,
        PLACE | {"similarity_heads": 1, "value_merge": "sum", "value_offset": 0, "loss_pairs": "all"},
    ),
    "nn.SAS": (weft.nn.SAS, PLACE | {"expanded_heads": 4, "expanded_size": 24, "kernel": 3}),
    "nn.PEAA": (weft.nn.PEAA, {"heads": 2, "head_size": 16, "out": 32, "bias": True}),
    "nn.GAU": (weft.nn.GAU, {"dim": 32, "size": 16, "expansion": 2, "pattern": CAUSAL, "kernel": 0, "bias": True}),
}  # fmt: skip

INSIDE = re.compile(r"\b(attn|tile|arith|math|llvm|scf)\.[a-z_]+|must be Tensor, not|builtin\.|NotImplemented")
WORDS = re.compile(r"expected|unknown target|cannot open|missing .* argument|has no")


@pytest.fixture
def traced_only(monkeypatch):
    """Programs are traced, and give tensors of no meaning: nothing is compiled or run."""

    def ready(found, arrays):
        wide = torch.zeros(1, H, N, 64)
        of_torch = any(isinstance(array, torch.Tensor) for array in arrays)
        return lambda given: inputs.rebuild(found.result, lambda _: wide if of_torch else wide.numpy())

    monkeypatch.setattr(calls, "ready", ready)
    monkeypatch.setattr(known, "known", lambda *_: None)  # nothing of this is kept


@pytest.mark.parametrize("name", FUNCTIONS)
def test_what_cannot_be_is_refused_in_words(name, traced_only):
    function, arguments = FUNCTIONS[name]
    for argument in arguments:
        for wrong, value in WRONG.items():
            what = f"{name} with {argument} = {wrong}"
            try:
                function(**{**arguments, argument: value})
            except (weft.Error, TypeError, ValueError) as error:
                said = str(error)
                assert WORDS.search(said) and not INSIDE.search(said), f"{what}: {said}"
            except Exception as error:
                pytest.fail(f"{what}: {type(error).__name__}: {error}")


def test_all_functions_are_here():
    known = {name.split(",")[0].split(" on ")[0].split(" over ")[0].removeprefix("@") for name in FUNCTIONS}
    classes = {"CompilationError", "Error", "JITFunction", "Kernel", "Library", "Pattern", "Program"}
    others = {"causal", "full", "device", "draw"}  # which take nothing; and draw.py's own tests
    assert set(weft.__all__) - classes - others <= known
    assert {f"nn.{name}" for name in weft.nn.__all__} | set(of.__all__) <= known


@pytest.mark.parametrize("wrong", WRONG)
def test_a_path_that_is_none(wrong, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((weft.Error, TypeError), match=r"expected .*but got"):
        weft.draw(CAUSAL, WRONG[wrong])


def test_names_that_only_triton_has():
    @weft.jit
    def kernel(x):
        wl.store(x, wl.load(x).to(wl.float8e4b8))

    with pytest.raises(weft.CompilationError, match="got 'float8e4b8', which only Triton's language has") as caught:
        kernel.compile("x:*fp32")
    assert "sqrt" not in str(caught.value).splitlines()[-1]
    with pytest.raises(AttributeError, match="has no attribute 'float8e4b8', which only Triton's language has"):
        wl.float8e4b8  # noqa: B018
    tl = pytest.importorskip("triton.language")
    ours = importlib.import_module("weft.triton.language")
    absent = {name for name in tl.__all__ if not hasattr(ours, name) and callable(getattr(tl, name))}
    functions = {name for name in absent if not isinstance(getattr(tl, name), type)}
    assert functions <= weft.language.errors.ABSENT | {"const", "str_to_ty", "slice", "tuple"}, functions


class Layer:
    def __init__(self, factor):
        self.factor, self.table = factor, torch.tensor([0.25, -0.5], requires_grad=True)

    @weft.program
    def attend(self, q, k, v, *, more=0.0):
        return weft.softmax(q, k, score_mod=lambda s, b, h, n, m: s * self.factor + self.table[h] * m + more) @ v

    @staticmethod
    @weft.program
    def plain(q, k, v):
        return weft.softmax(q, k) @ v

    @classmethod
    @weft.program
    def of_class(cls, q, k, v):
        return weft.softmax(q, k) @ v

    @weft.program
    def without_self(*, q):
        return q * 2


def test_a_program_in_a_class(seed):
    """The object comes first, and its attributes are those at the time of the call."""
    torch.manual_seed(seed)
    q = torch.randn(B, H, N, D)
    wide, positions = q.double(), torch.arange(N)
    layers = [Layer(0.5), Layer(2.0)]

    for layer in (*layers, layers[0]):
        bias = (layer.table.detach().double()[:, None, None] * positions).expand(B, H, N, N).requires_grad_()
        formula = ((wide @ wide.mT / 4) * layer.factor + bias).softmax(-1) @ wide
        found = layer.attend(q, q, q, more=0.5)
        assert (found - formula).abs().max() < 1e-5
        assert (Layer.attend(layer, q, q, q) - formula).abs().max() < 1e-5
        (terms,) = torch.autograd.grad((formula**2).sum(), bias)
        # A term is p (dp - delta), of both signs: what is rounded is larger than what is summed.
        p, dp = ((wide @ wide.mT / 4) * layer.factor + bias).softmax(-1).detach(), (2 * formula @ wide.mT).detach()
        rounded = p * (dp.abs() + (p * dp).sum(-1, keepdim=True).abs()) * positions
        (mine,) = torch.autograd.grad((found**2).sum(), layer.table)
        assert ((mine - (terms * positions).sum((0, 2, 3))).abs() < 2e-6 * rounded.sum((0, 2, 3))).all()
        layer.factor = -1.0
        with torch.no_grad():
            layer.table.mul_(2)
    for plain in (layers[0].plain, Layer.plain, layers[0].of_class, Layer.of_class):
        assert (plain(q, q, q) - (wide @ wide.mT / 4).softmax(-1) @ wide).abs().max() < 1e-5
    assert "attn.softmax" in layers[0].attend.ir(q, q, q)
    with pytest.raises(TypeError, match="missing a required argument: 'k'; it takes"):
        layers[0].attend(Q)
    with pytest.raises(TypeError, match="expected 'without_self', a program in a class, to take the object first"):
        layers[0].without_self(q=Q)

# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Plans of many ranks: the bytes and steps of the routes that calls take, without calls."""

import json

import numpy as np
import pytest
import weft
from weft import distributed
from weft.cli.__main__ import main
from weft.distributed.needs import classes
from weft.distributed.routes import ROTATIONS, arrivals, route

IDS = np.repeat(np.arange(4), [100, 30, 26, 100]).astype(np.int32)
PATTERNS = {
    "full": weft.full(),
    "causal": weft.causal(),
    "window": weft.window(40, 0),
    "both sides": weft.window(5, 70),
    "documents": weft.document(IDS, IDS) & weft.causal(),
    "prefix": weft.prefix(20) & weft.causal(),
    "dilated": weft.dilated(8, 9),
}
SIZES = {"heads": 4, "kv_heads": 2, "head_dim": 8}


@pytest.mark.parametrize("rotate", ROTATIONS)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize(("kind", "ranks"), [("consecutive", 8), ("head-tail", 4), ("counted", 4), ("consecutive", 1)])
def test_a_plan_has_the_bytes_of_its_route(pattern, rotate, kind, ranks):
    pattern = PATTERNS[pattern]
    found = distributed.plan(pattern, 256, ranks, rotate=rotate, layout=kind, dtype="fp32", gpu="H100", **SIZES)
    needed = np.stack([(found.classes[list(runs)] > 0).any(axis=0) for runs in found.layout.runs])
    steps = route(needed, found.layout.owners, rotate)
    one = 2 * 2 * 8 * 4 * 256 // found.layout.count
    sent, received = np.zeros_like(found.sent), np.zeros_like(found.sent)
    for number, moves in enumerate(steps):
        for move in moves:
            sent[number, move.source] += one
            received[number, move.target] += one
    assert found.steps == len(steps)
    assert (found.sent == sent).all()
    assert (found.received == received).all()
    there = np.full(needed.shape, -1)
    there[found.layout.owners, np.arange(found.layout.count)] = 0
    for number, moves in enumerate(steps, 1):
        for move in moves:
            assert there[move.source, move.run] in (0, number - 1), "it has what it sends"
            there[move.target, move.run] = number
    assert (np.where(needed, there, -1) == arrivals(needed, found.layout.owners, rotate)).all()
    if rotate == "all-to-all":
        assert (there[~needed] <= 0).all()
    for rank in range(ranks):
        parts = [tuple(move for move in moves if rank in (move.source, move.target)) for moves in steps]
        assert parts == list(route(needed, found.layout.owners, rotate, rank))
    back = distributed.plan(pattern, 256, ranks, rotate=rotate, layout=kind, dtype="fp32", backward=True, **SIZES)
    assert back.sent.sum() == back.received.sum() == sent.sum() + one * ((there > 0) & needed).sum()


@pytest.mark.parametrize("name", PATTERNS)
def test_classes_of_long_patterns_leave_nothing_out(name, monkeypatch):
    pattern = PATTERNS[name]
    exact = classes(pattern, 256, 256, 16)
    monkeypatch.setattr("weft.distributed.needs._FEW", 0)
    pattern = pattern & weft.mask(lambda b, h, n, m: n != -1)
    bounds = classes(pattern, 256, 256, 16)
    assert (bounds[exact > 0] > 0).all()
    assert (exact[bounds == 2] == 2).all()
    if name != "dilated":
        assert (bounds == 0).sum() > 0.8 * (exact == 0).sum() or name == "full"


def test_a_window_needs_its_neighbours():
    for w in (1, 32, 33, 64, 100):
        found = distributed.plan(weft.window(w, 0), 32 * 64, 64, heads=1, head_dim=8, dtype="fp32")
        assert found.received.sum(axis=0)[-1] == -(-w // 32) * 2 * 8 * 4 * 32
        assert found.steps == -(-w // 32)


def test_head_tail_balances_causal_patterns():
    uneven = distributed.plan(weft.causal(), 1 << 14, 16, heads=4, head_dim=64, gpu="H100")
    even = distributed.plan(weft.causal(), 1 << 14, 16, heads=4, head_dim=64, gpu="H100", layout="head-tail")
    counted = distributed.plan(IDS_CAUSAL, 256, 4, heads=4, head_dim=64, gpu="H100", layout="counted")
    assert uneven.balance < 0.55 < 0.99 < even.balance
    assert counted.balance > distributed.plan(IDS_CAUSAL, 256, 4, heads=4, head_dim=64, gpu="H100").balance
    assert even.total < uneven.total
    # 4 flops a pair and channel, of half of the pairs
    flops = 4 * 4 * 64 * (1 << 14) ** 2 / 2
    assert abs(even.computing.sum() * even.gpu.matrix["bf16"] * 1e9 / flops - 1) < 0.01


IDS_CAUSAL = weft.document(IDS, IDS) & weft.causal()


def test_a_plan_is_drawn_and_printed(tmp_path):
    found = distributed.plan(weft.causal(), 1 << 12, 1024, heads=4, head_dim=64)
    found.draw(tmp_path / "plan.svg")
    assert "4096 tokens on 1024 ranks, ring" in (tmp_path / "plan.svg").read_text()
    found.draw(tmp_path / "plan.png")
    assert (tmp_path / "plan.png").read_bytes().startswith(b"\x89PNG")
    assert "512 steps" in str(found)
    with pytest.raises(weft.CompilationError, match=r"ends in .svg or .png, but got .plan.pdf."):
        found.draw(tmp_path / "plan.pdf")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"length": 100}, "a length that 8 runs divide, but got 100"),
        ({"ranks": 0}, "'ranks' to be at least 1, but got 0"),
        ({"rotate": "round"}, "'rotate' among ring, all-gather, all-to-all, but got 'round'"),
        ({"dtype": "int8"}, "'dtype' among fp32"),
        ({"kv_heads": 3}, "'kv_heads' to divide 4 heads, but got 3"),
        ({"link": 0}, "'link' to be more than 0"),
        ({"layout": "round"}, "a layout among consecutive, head-tail, counted"),
        ({"layout": distributed.layout("consecutive", 3)}, "a layout of 8 ranks, but got one of 3"),
        ({"gpu": "none"}, "expected one of"),
    ],
)
def test_what_no_plan_is_made_of(given, said):
    with pytest.raises(ValueError, match=said):
        distributed.plan(**{"pattern": weft.causal(), "length": 256, "ranks": 8, "heads": 4, "head_dim": 8, **given})


def test_layouts():
    with pytest.raises(ValueError, match="each run lies on one rank"):
        distributed.Layout(((0, 1), (1, 2)))
    with pytest.raises(ValueError, match="each run lies on one rank"):
        distributed.Layout(((0, 1), (2,)))
    with pytest.raises(ValueError, match="which 8 runs divide"):
        distributed.layout("counted", 4, weft.causal(), 100)
    assert distributed.layout("counted", 2, weft.causal(), 64).runs == ((0, 3), (1, 2))


def test_the_command_line_plans(tmp_path, capsys):
    sizes = ["--length", "4096", "--heads", "4", "--head-dim", "64"]
    assert main(["plan", "causal()", *sizes, "--ranks", "8,64", "-o", str(tmp_path / "plan.svg")]) == 0
    said = capsys.readouterr().out
    assert "4096 tokens on 8 ranks, ring" in said
    assert "4096 tokens on 64 ranks, ring" in said
    assert "drew causal() into" in said
    assert main(["plan", "window(100, 0)", *sizes, "--ranks", "8", "--json", "--dtype", "fp32", "--backward"]) == 0
    found = json.loads(capsys.readouterr().out)
    one = 2 * 4 * 64 * 512 * 4
    assert (found["ranks"], found["steps"], found["sent"]) == (8, 2, 2 * one)
    assert main(["plan", "causal()", *sizes, "--ranks", "0"]) == 1
    assert "expected --ranks to be numbers of at least 1" in capsys.readouterr().err

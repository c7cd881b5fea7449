# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""torch's FlopCounterMode counts programs: of attention what torch's own formulas say, less the pairs that a pattern
leaves out.
"""

import functools

import pytest
import torch
import weft
from torch.utils.flop_counter import FlopCounterMode, sdpa_backward_flop_count, sdpa_flop_count
from weft.attention import attend
from weft.testing import masks

B, H, N, M, D, DV = 2, 4, 45, 70, 16, 32


@pytest.fixture(autouse=True)
def fresh(seed):
    torch.manual_seed(seed)


@weft.program
def mixed(q, k, v, *, pattern=None):
    return weft.softmax(q, k, pattern) @ v


def counted(call):
    """Operations by the name of the operator without its key: forward and backward of what ``call`` gives."""
    with FlopCounterMode(display=False) as counter:
        call().sum().backward()
    found = {}
    for operator, count in counter.get_flop_counts()["Global"].items():
        part = "backward" if str(operator).endswith("_backward") else "forward"
        found[part] = found.get(part, 0) + count
    return found


def tensors(n=N, m=M, heads=H, device=None):
    shapes = (B, H, n, D), (B, heads, m, D), (B, heads, m, DV)
    return [torch.randn(shape, requires_grad=True, device=device) for shape in shapes]


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_dense_attention_counts_as_torch_counts_its_own(device):
    q, k, v = tensors(device=device)
    expected = {
        "forward": sdpa_flop_count(q.shape, k.shape, v.shape),
        "backward": sdpa_backward_flop_count((B, H, N, DV), q.shape, k.shape, v.shape),
    }
    assert counted(lambda: mixed(q, k, v)) == expected
    with FlopCounterMode(display=False) as inference, torch.no_grad():
        mixed(q, k, v)
    assert inference.get_total_flops() == expected["forward"]


SHAPES = ((N, M), (M, N), (60, 60))
PATTERNS = {
    "causal": (weft.causal(), masks.causal),
    "window": (weft.window(7, 3), lambda n, m: masks.window(n, m, 7, 3)),
    "block window": (weft.block_window(9), lambda n, m: masks.block_window(n, m, 9)),
    "prefix or causal": (
        weft.prefix(20) | weft.causal(),
        lambda n, m: masks.prefix(n, m, 20) | masks.causal(n, m),
    ),
    "longformer": (
        weft.window(5, 5) | weft.global_tokens(3),
        lambda n, m: masks.window(n, m, 5, 5) | masks.global_tokens(n, m, 3),
    ),
    "not": (
        weft.causal() & ~weft.window(10, 0),
        lambda n, m: masks.causal(n, m) & ~masks.window(n, m, 10, 0),
    ),
}


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("n, m", SHAPES)
def test_pairs_that_a_pattern_leaves_out_are_not_counted(name, n, m):
    pattern, dense = PATTERNS[name]
    pairs = B * H * int(dense(n, m).sum())
    found = counted(lambda: mixed(*tensors(n, m, heads=2, device="meta"), pattern=pattern))
    assert found == {"forward": 2 * pairs * (D + DV), "backward": 2 * pairs * (3 * D + 2 * DV)}


def test_patterns_of_grids_count_the_keys_of_their_windows():
    pattern = weft.neighbourhood((6, 10), (3, 5))
    pairs = B * H * int(masks.neighbourhood(60, 60, (6, 10), (3, 5)).sum())
    assert counted(lambda: mixed(*tensors(60, 60), pattern=pattern))["forward"] == 2 * pairs * (D + DV)


def test_each_head_counts_its_own_pattern():
    parts = [weft.causal(), weft.causal(), weft.window(3, 0), weft.full()]
    dense = (masks.causal, masks.causal, lambda n, m: masks.window(n, m, 3, 0), masks.full)
    pattern = weft.per_head(parts)
    pairs = B * sum(int(each(60, 60).sum()) for each in dense)
    assert counted(lambda: mixed(*tensors(60, 60), pattern=pattern))["forward"] == 2 * pairs * (D + DV)


def test_pairs_that_data_leaves_out_are_counted():
    """What no plan can know: the count is that of the rest of the pattern."""
    ids = (torch.arange(60) // 7).to(torch.int32)
    q, k, v = tensors(60, 60)
    found = counted(lambda: attend(q, k, v, weft.causal() & weft.mask(lambda b, h, n, m: ids[n] == ids[m])))
    assert found["forward"] == 2 * B * H * (60 * 61 // 2) * (D + DV)


def test_gradients_that_nobody_takes_are_counted_as_the_operator_computes_them():
    q, k, v = (each.detach() for each in tensors())
    found = counted(functools.partial(mixed, q.requires_grad_(), k, v))
    assert found["backward"] <= sdpa_backward_flop_count((B, H, N, DV), q.shape, k.shape, v.shape)


def test_products_with_weights():
    @weft.program
    def projected(x, w):
        return weft.linear(x, w)

    x, w = torch.randn(B, H, N, D, requires_grad=True), torch.randn(24, D, requires_grad=True)
    each = 2 * B * H * N * 24 * D
    assert counted(lambda: projected(x, w)) == {"forward": each, "backward": 2 * each}


def test_programs_of_libraries_and_of_exported_models(tmp_path):
    q, k, v = tensors(40, 40)
    dims = ["q:fp32[B,H,N,16]", "k:fp32[B,H,N,16]", "v:fp32[B,H,N,32]"]
    library = mixed.compile(signature=", ".join(dims), constants={"pattern": weft.causal()}, out=tmp_path / "l")
    expected = counted(lambda: mixed(q, k, v, pattern=weft.causal()))
    assert counted(lambda: library.differentiable("mixed")(q, k, v)) == expected

    class Model(torch.nn.Module):
        def forward(self, q, k, v):
            return mixed(q, k, v, pattern=weft.causal())

    exported = torch.export.export(Model(), (q, k, v)).module()
    assert counted(lambda: exported(q, k, v)) == expected

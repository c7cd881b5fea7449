# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tensors that kernels reach by tables of their addresses, on the simulator."""

import numpy as np
import pytest
import torch
import weft
import weft.language as wl

SEED = int(np.random.default_rng().integers(1 << 30))
torch.manual_seed(SEED)
print(f"seed {SEED}")


@weft.jit
def products(lefts, rights, outs, sizes, M: wl.constexpr, N: wl.constexpr, K: wl.constexpr):
    g = wl.program_id(0)
    a = wl.load(lefts + g).to(wl.pointer_type(wl.float16))
    b = wl.load(rights + g).to(wl.pointer_type(wl.float16))
    c = wl.load(outs + g).to(wl.pointer_type(wl.float32))
    k, m, n = wl.load(sizes + g), wl.arange(0, M)[:, None], wl.arange(0, N)[None, :]
    total = wl.zeros([M, N], wl.float32)
    for at in range(0, k, K):
        inner = at + wl.arange(0, K)
        x = wl.load(a + m * k + inner[None, :], mask=inner[None, :] < k, other=0)
        y = wl.load(b + inner[:, None] * N + n, mask=inner[:, None] < k, other=0)
        total = wl.dot(x, y, total)
    wl.store(c + m * N + n, total)


def addresses(tensors):
    return torch.tensor([each.data_ptr() for each in tensors])


def test_tables_of_tensors():
    sizes = [40, 16, 7]
    lefts, rights = [torch.randn(32, k).half() for k in sizes], [torch.randn(k, 16).half() for k in sizes]
    whole = torch.full((4, 32, 16), float("nan"))
    outs = list(whole[1:])  # views: their storage begins before them
    tables = [addresses(each) for each in (lefts, rights, outs)]
    products[3,](*tables, torch.tensor(sizes, dtype=torch.int32), M=32, N=16, K=16)
    for a, b, c in zip(lefts, rights, outs, strict=True):
        torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=1e-3, atol=1e-3)
    assert whole[0].isnan().all()


@weft.jit
def doubled(address: wl.int64, y, N: wl.constexpr):
    x = address.to(wl.pointer_type(wl.float32)) + wl.arange(0, N)
    wl.store(x, wl.load(x) * 2)
    wl.store(y + wl.arange(0, N), wl.load(x))


def test_an_address_as_a_number_beside_the_array_itself():
    x = torch.randn(64)
    expected = x.clone() * 2
    doubled[1,](x.data_ptr(), y := torch.empty(32), N=32)
    torch.testing.assert_close(y, expected[:32])
    torch.testing.assert_close(x[:32], expected[:32])


def test_what_is_no_tensor_is_found():
    held = torch.randn(64)
    address = held.data_ptr() + 4 * 60  # the last elements lie beyond it
    with pytest.raises(weft.runtime.Error, match="out-of-bounds"):
        doubled[1,](address, torch.empty(32), N=32)


def test_tuned_kernels_reach_them_too():
    """Counted on the simulator, where an argument that such memory overlaps is the same memory."""
    configs = [weft.Config({"M": 32, "N": 16, "K": 16}, num_warps=warps) for warps in (1, 2)]
    tuned = weft.autotune(configs=configs, key=[])(products)
    sizes = [40, 16]
    lefts, rights = [torch.randn(32, k).half() for k in sizes], [torch.randn(k, 16).half() for k in sizes]
    outs = [torch.full((32, 16), float("nan")) for _ in sizes]
    tables = [addresses(each) for each in (lefts, rights, outs)]
    tuned[2,](*tables, torch.tensor(sizes, dtype=torch.int32))
    for a, b, c in zip(lefts, rights, outs, strict=True):
        torch.testing.assert_close(c.double(), a.double() @ b.double(), rtol=1e-3, atol=1e-3)
    x = torch.randn(64)
    expected = x.clone() * 2
    with weft.kernels.counting.counted() as found:
        doubled[1,](x.data_ptr(), x[32:], N=32)
    torch.testing.assert_close(x, expected[:32].repeat(2))
    assert found.milliseconds > 0


ADD = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry add(.param .u64 table)
{
    .reg .b64 %a<3>;
    .reg .f32 %f;
    ld.param.u64 %a0, [table];
    ld.global.u64 %a1, [%a0];
    ld.global.f32 %f, [%a1];
    add.f32 %f, %f, 0f3F800000;
    st.global.f32 [%a1], %f;
    ret;
}
"""


def test_memory_of_launches():
    x = np.zeros(4, np.float32)
    table = np.array([x[2:].ctypes.data], np.uint64)
    report = weft.simulator.launch(ADD, "add", 1, 1, [table])
    assert [each.kind for each in report.findings] == ["out-of-bounds"] * 2 and not x.any()
    report = weft.simulator.launch(ADD, "add", 1, 1, [table], memory=[x])
    assert not report.findings and x.tolist() == [0, 0, 1, 0]
    with pytest.raises(weft.simulator.SimulatorError, match="expected 'memory' to be a list of arrays, but got 3"):
        weft.simulator.launch(ADD, "add", 1, 1, [table], memory=3)


def test_numbers_that_are_no_addresses_cost_no_search(monkeypatch):
    """A search goes over all objects of the process."""
    monkeypatch.setattr(weft.runtime.addressed.gc, "get_objects", lambda: pytest.fail("searched"))
    x = torch.tensor([-1, 5, 1 << 23, 1 << 48, -(1 << 62), (1 << 63) - 1])
    doubled_numbers[1,](x, y := torch.zeros_like(x), N=8, count=len(x))
    assert torch.equal(y, x * 2)


@weft.jit
def doubled_numbers(x, y, N: wl.constexpr, count):
    at = wl.arange(0, N)
    wl.store(y + at, wl.load(x + at, mask=at < count) * 2, mask=at < count)


@weft.jit
def spans(starts, y, n, BLOCK: wl.constexpr):
    at = wl.arange(0, BLOCK)
    first = wl.load(starts + at, at < n, 0)
    wl.store(y + at, wl.load(starts + at + 1, at < n, 0) - first, at < n)


def test_the_memory_around_a_view(monkeypatch):
    """All but the last of the offsets of a sparse matrix are handed on, and each row reads where the next begins."""
    offsets, y = torch.tensor([0, 3, 3, 7, 12]), torch.zeros(6, dtype=torch.int64)
    end = offsets.data_ptr() + offsets[:-1].nbytes
    way_out = f"out-of-bounds(.|\n)*\n  {end:#x} is in the memory .* view of, .* set WEFT_SIMULATOR_BOUNDS=memory$"
    with pytest.raises(weft.runtime.Error, match=way_out) as refused:
        spans[(1,)](offsets[:-1], y[1:5], 4, BLOCK=8)
    assert refused.value.status == "finding"
    monkeypatch.setenv("WEFT_SIMULATOR_BOUNDS", "memory")
    spans[(1,)](offsets[:-1], y[1:5], 4, BLOCK=8)
    assert y.tolist() == [0, 3, 0, 4, 5, 0]
    with pytest.raises(weft.runtime.Error, match="out-of-bounds") as refused:
        spans[(1,)](offsets[:-1], y, 5, BLOCK=8)
    assert "WEFT_SIMULATOR_BOUNDS" not in str(refused.value), "expected no setting to be named that is in force"
    spans[(1,)](offsets[1:3], offsets[:2], 2, BLOCK=8)  # views of one memory
    assert offsets.tolist() == [0, 4, 3, 7, 12]
    monkeypatch.setenv("WEFT_SIMULATOR_BOUNDS", "somewhere")
    with pytest.raises(ValueError, match="expected WEFT_SIMULATOR_BOUNDS to be 'tensors' or 'memory', but got"):
        spans[(1,)](offsets[1:3], offsets[:2], 2, BLOCK=8)


def test_memory_around_a_view_is_named_where_it_helps():
    """What is read lies beyond the view's memory, too, or the view is of memory that nobody knows."""
    offsets, y = torch.tensor([0, 3, 3, 7, 12]), torch.zeros(6, dtype=torch.int64)
    numbers = np.array([0, 3, 3, 7, 12])
    for starts in (offsets[1:], offsets, numbers[:-1], torch.from_numpy(numbers[:-1])):
        with pytest.raises(weft.runtime.Error, match="out-of-bounds") as refused:
            spans[(1,)](starts, y, len(starts), BLOCK=8)
        assert "WEFT_SIMULATOR_BOUNDS" not in str(refused.value)

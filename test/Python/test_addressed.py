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

# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Tables of blocks have blocks for all queries and keys: a smaller one is refused, whoever calls, and no kernel reads
past it."""

import pytest
import torch
import weft


@weft.program
def listed(q, k, v, index, count):
    return weft.softmax(q, k, weft.blocks(index, count, block=(16, 32))) @ v


@weft.program
def mapped(q, k, v, bits):
    return weft.softmax(q, k, weft.block_bitmap(bits, block=(16, 32)) & weft.causal()) @ v


@weft.program
def turned(q, k, v, bits):
    return weft.softmax(q, k, weft.block_bitmap(bits, block=(16, 32)).transpose()) @ v


def operands(n, m):
    return [torch.randn(1, 2, tokens, 16) for tokens in (n, m, m)]


def table(rows, columns):
    return torch.ones(1, 2, rows, columns, dtype=torch.bool)


def lists(rows, count_rows=None):
    index = torch.zeros(1, 2, rows, 1, dtype=torch.int32)
    return index, torch.ones(1, 2, count_rows or rows, dtype=torch.int32)


def test_calls_are_refused_at_the_programs_line():
    q, k, v = operands(40, 70)
    for rows, columns, wanted in (
        (2, 3, "16 for all queries, 3 for 40, but got 2"),
        (3, 2, "32 for all keys, 3 for 70"),
    ):
        with pytest.raises(
            weft.CompilationError, match=f"'bits' of weft.block_bitmap to have blocks of {wanted}"
        ) as error:
            mapped(q, k, v, table(rows, columns))
        assert "weft.softmax(q, k, weft.block_bitmap" in str(error.value)
    with pytest.raises(weft.CompilationError, match=r"'count' of weft.blocks to have blocks of 16 for all queries"):
        listed(q, k, v, *lists(3, 2))
    with pytest.raises(weft.CompilationError, match=r"'index' of weft.blocks to have blocks of 16 for all queries"):
        listed(q, k, v, *lists(2, 3))
    with pytest.raises(weft.CompilationError, match="blocks of 16 for all keys, 5 for 70, but got 3"):
        turned(q, k, v, table(3, 2))
    assert turned(q, k, v, table(5, 2)).shape == q.shape


def test_forms_that_are_there_are_for_tables_that_are_enough():
    """A form serves all sizes, and its later calls run without Python."""
    enough = mapped(*operands(40, 70), table(3, 3))
    assert enough.isfinite().all()
    for n, m in ((40, 70), (48, 96)):
        mapped(*operands(n, m), table(3, 3))
    for n, m in ((49, 96), (48, 97)):
        with pytest.raises(weft.CompilationError, match="to have blocks of"):
            mapped(*operands(n, m), table(3, 3))
    mapped(*operands(49, 97), table(9, 7))


def test_libraries_refuse_too(tmp_path):
    signature = "q:fp32[B,H,N,16], k:fp32[B,H,M,16], v:fp32[B,H,M,16], bits:i1[B,H,R,C]"
    library = mapped.compile("sm_80", signature, out=tmp_path / "lib")
    program, differentiable = library.programs["mapped"], library.differentiable("mapped")
    wanted = "'bits' of weft.block_bitmap to have blocks of 16 for all queries, but got 16[*]R = 32 for N = 40"
    calls = (lambda *x: program.run(x), program, differentiable, torch.func.vmap(differentiable))
    for call in calls:
        given = [x[None] if call is calls[-1] else x for x in (*operands(40, 70), table(2, 3))]
        with pytest.raises((weft.runtime.Error, ValueError), match=wanted):
            call(*given)
    with pytest.raises(ValueError, match=wanted):
        program(*(x.to("meta") for x in (*operands(40, 70), table(2, 3))))
    q, k, v = (x.requires_grad_() for x in operands(40, 70))
    with pytest.raises((weft.runtime.Error, ValueError), match=wanted):
        differentiable(q, k, v, table(2, 3))
    differentiable(q, k, v, table(3, 3)).sum().backward()
    assert q.grad.isfinite().all()


class Mapped(torch.nn.Module):
    def forward(self, q, k, v, bits):
        return mapped(q, k, v, bits)


def test_exported_sizes_stay_free():
    """Symbols of torch's are asked nothing while a module is exported; what runs has integers."""
    tokens = {name: torch.export.Dim(name, max=4096) for name in ("n", "m", "rows", "columns")}
    sides = [{2: tokens[name]} for name in ("n", "m", "m")] + [{2: tokens["rows"], 3: tokens["columns"]}]
    exported = torch.export.export(Mapped(), (*operands(40, 70), table(3, 3)), dynamic_shapes=tuple(sides)).module()
    given = (*operands(49, 97), table(4, 4))
    torch.testing.assert_close(exported(*given), mapped(*given), atol=0, rtol=0)
    with pytest.raises(weft.runtime.Error, match=r"to have blocks of 16 for all queries, but got .* = 32 for N = 49"):
        exported(*given[:3], table(2, 4))


def _expanded(tensor):
    return tensor.expand(2, 4, *tensor.shape[2:]).contiguous()


def _with_gradients(pattern, qkv):
    out = weft.attention.attend(*qkv, pattern)
    return [out, *torch.autograd.grad(out.square().sum(), qkv)]


@pytest.mark.parametrize("key_heads", [4, 2])
@pytest.mark.parametrize("batches", [1, 2])
@pytest.mark.parametrize("heads", [1, 4])
def test_one_batch_or_head_stands_for_all(batches, heads, key_heads):
    """As FlexAttention's BlockMasks: the bits are those of the table repeated."""
    qkv = [torch.randn(2, h, 64, 16).requires_grad_() for h in (4, key_heads, key_heads)]
    bits = torch.rand(batches, heads, 4, 4) < 0.5
    bits[..., 0] = True
    index = torch.argsort(bits.int(), dim=-1, descending=True, stable=True).int()
    count = bits.sum(-1).int()
    for own, whole in (
        (weft.block_bitmap(bits, block=16), weft.block_bitmap(_expanded(bits), block=16)),
        (weft.blocks(index, count, block=16), weft.blocks(_expanded(index), _expanded(count), block=16)),
    ):
        for found, wanted in zip(_with_gradients(own, qkv), _with_gradients(whole, qkv), strict=True):
            assert torch.equal(found, wanted)


def test_documents_of_one_batch_stand_for_all():
    qkv = [torch.randn(2, 1, 24, 16).requires_grad_() for _ in range(3)]
    ids = torch.arange(24, dtype=torch.int32)[None] // 10
    repeated = ids.expand(2, 24).contiguous()
    mine, theirs = (_with_gradients(weft.document(each, each), qkv) for each in (ids, repeated))
    assert all(map(torch.equal, mine, theirs))


def test_tables_of_other_batches_and_heads_are_refused():
    for shape in ((3, 2, 3, 3), (2, 3, 3, 3)):
        with pytest.raises(weft.CompilationError, match=r"'bits' of weft.block_bitmap to fit queries and keys"):
            mapped(*(x.expand(2, 2, -1, -1) for x in operands(40, 70)), torch.ones(*shape, dtype=torch.bool))


def test_spans_of_one_batch_and_head_stand_for_all():
    qkv = [torch.randn(2, heads, 24, 16).requires_grad_() for heads in (4, 2, 2)]
    tokens = torch.arange(24, dtype=torch.int32)[None, None]
    tables = (torch.zeros_like(tokens), tokens + 1, tokens, torch.full_like(tokens, 24))
    repeated = (table.expand(2, 2, 24).contiguous() for table in tables)
    mine, theirs = (_with_gradients(weft.span(*each), qkv) for each in (tables, repeated))
    assert all(map(torch.equal, mine, theirs))
    for found, wanted in zip(mine, _with_gradients(weft.causal(), qkv), strict=True):
        torch.testing.assert_close(found, wanted)

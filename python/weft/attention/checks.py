# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the functions of weft.attention ask of tensors before they are traced: an error names the argument, what was
expected and what came."""

from __future__ import annotations

from typing import Any

from weft.compiler.diagnostics import CompilationError
from weft.programs.dtypes import dtype_of
from weft.programs.facts import is_array
from weft.programs.tensors import Tensor
from weft.runtime.plain import described, objection, promised, refuse


def tensor(name: str, x: Any, shape: str, sizes: tuple[Any, ...] = ()) -> None:
    """Refuse what is no tensor with data, of the axes that ``shape`` spells ("[B, H, N, D]") and the integers of
    ``sizes``.

    None is any size; sizes that are symbols, in a program, are the program's to compare.
    """
    spelled = f"'{name}' {shape}"
    if not described(x) and not promised(x) and (wrong := objection(x, differentiable=True)):
        raise ValueError(f"{wrong.text(spelled)}; {wrong.remedy}")
    if not is_array(x) and not isinstance(x, Tensor):
        raise TypeError(f"expected '{name}' to be a tensor {shape}, but got '{type(x).__name__}'")
    if len(x.shape) != shape.count(",") + 1:
        raise ValueError(f"expected {spelled}, but got {list(x.shape)}")
    pairs = zip(x.shape, sizes or x.shape, strict=True)
    if any(isinstance(size, int) and isinstance(wanted, int) and size != wanted for size, wanted in pairs):
        wanted = ", ".join("any" if size is None else str(size) for size in sizes)
        raise ValueError(f"expected {spelled} = [{wanted}], but got {list(x.shape)}")


def readable(**tensors: Any) -> None:
    """Refuse, by its name, what no kernel can read or write in its memory: what follows launches kernels by itself, to
    which their parameters' names mean something and the user's nothing."""
    refuse((name, x) for name, x in tensors.items() if x is not None)


def without_gradients(**tensors: Any) -> None:
    """Refuse, by its name, what requires a gradient that autograd would not follow into a cache."""
    import torch

    for name, x in tensors.items():
        if torch.is_grad_enabled() and getattr(x, "requires_grad", False):
            raise ValueError(
                f"expected '{name}' without gradients, which a cache does not pass on, but got one that requires them; "
                "use .detach(), or run under torch.no_grad()"
            )


def operands(q: Any, k: Any, v: Any) -> None:
    """Refuse queries [B, H, N, D], keys [B, Hkv, N, D] and values [B, Hkv, N, Dv] of one sequence that do not agree."""
    tensor("q", q, "[B, H, N, D]")
    tensor("k", k, "[B, Hkv, N, D]", (q.shape[0], None, q.shape[2], q.shape[3]))
    tensor("v", v, "[B, Hkv, N, Dv]", (q.shape[0], k.shape[1], q.shape[2], None))
    heads, groups = q.shape[1], k.shape[1]
    if isinstance(heads, int) and isinstance(groups, int) and (groups == 0 or heads % groups):
        raise ValueError(f"expected the heads of 'k' and 'v' to divide those of 'q', {heads}, but got {groups}")
    for name, x in (("q", q), ("k", k), ("v", v)):
        floating(name, x)


def starts(cu_seqlens: Any, q: Any) -> None:
    """Refuse what does not say where the sequences packed into q [1, H, N, D] start; None does not."""
    if cu_seqlens is None:
        return
    indices("cu_seqlens", cu_seqlens, "[S+1]")
    tensor("q", q, "[1, H, N, D]")
    if isinstance(q.shape[0], int) and q.shape[0] != 1:
        raise ValueError(f"expected a batch of 1 with cu_seqlens, but got {q.shape[0]}")


def floating(name: str, x: Any) -> str:
    """The tensor's type; refuse one that is no floating-point type of programs."""
    try:
        found = dtype_of(x.dtype)
    except CompilationError:
        found = None
    if found is None or not found.is_floating() or found.is_fp8():
        given = str(x.dtype).removeprefix("torch.")
        raise TypeError(f"expected '{name}' of float16, bfloat16 or float32, but got {given}")
    return str(found)


def indices(name: str, x: Any, shape: str, sizes: tuple[Any, ...] = ()) -> None:
    """Refuse what is no tensor of int32, of the axes that ``shape`` spells and the integers of ``sizes``."""
    tensor(name, x, shape, sizes)
    if str(x.dtype).removeprefix("torch.") != "int32":
        raise ValueError(f"expected '{name}' {shape} of int32, but got {x.dtype}")


def appended(letter: str, new: Any, cache: Any, scale: Any, paged: bool) -> None:
    """Refuse new keys ("k") or values ("v") that do not fit their cache [B, Hkv, M, D], or pages [P, page, Hkv, D]."""
    form, page_heads = ("[P, page, Hkv, D]", "[P, Hkv]") if paged else ("[B, Hkv, M, D]", "[Hkv]")
    for name, each in ((f"{letter}_new", new), (f"{letter}_cache", cache)):
        _of_torch(name, each)
    tensor(f"{letter}_cache", cache, form)
    heads = cache.shape[2 if paged else 1]
    tensor(f"{letter}_new", new, "[B, Hkv, N, D]", (None if paged else cache.shape[0], heads, None, cache.shape[3]))
    narrow = "float8" in str(cache.dtype)
    if new.dtype != cache.dtype and not (narrow and new.dtype.is_floating_point):
        raise TypeError(f"expected '{letter}_new' of its cache's type {cache.dtype}, but got {new.dtype}")
    if cache.stride(3) != 1:
        raise ValueError(f"expected '{letter}_cache' {form} whose last axis has stride 1, but got {cache.stride(3)}")
    if any(step == 0 and size > 1 for size, step in zip(cache.shape, cache.stride(), strict=True)):
        raise ValueError(
            f"expected '{letter}_cache' whose rows are apart in memory, to be written, but got an expanded tensor of "
            f"strides {list(cache.stride())}; use .contiguous()"
        )
    if scale is None:
        return
    _of_torch(f"{letter}_scale", scale)
    by_page = paged and scale.ndim == 2
    tensor(
        f"{letter}_scale", scale, page_heads if by_page else "[Hkv]", (cache.shape[0], heads) if by_page else (heads,)
    )
    if str(scale.dtype) != "torch.float32":
        raise TypeError(f"expected '{letter}_scale' of float32, but got {scale.dtype}")


def places(new: Any, lengths: Any, table: Any, slots: Any) -> None:
    """Refuse lengths, a table of pages or slots, None apart, that are not those of the tokens [B, Hkv, N, D]."""
    batch, tokens = new.shape[0], new.shape[2]
    _of_torch("seqused_k", lengths)
    indices("seqused_k", lengths, "[B]", (batch,))
    if table is not None:
        _of_torch("block_table", table)
        indices("block_table", table, "[B, most pages]", (batch, None))
    if slots is None:
        return
    _of_torch("slot_mapping", slots)
    if str(slots.dtype) not in ("torch.int32", "torch.int64") or slots.numel() != batch * tokens:
        raise ValueError(
            f"expected 'slot_mapping' of int32 or int64 for {batch} x {tokens} tokens, but got "
            f"{slots.dtype} {list(slots.shape)}"
        )


def _of_torch(name: str, x: Any) -> None:
    if not hasattr(x, "data_ptr") or not hasattr(x, "stride"):
        raise TypeError(f"expected '{name}' to be a torch tensor, but got '{type(x).__name__}'")

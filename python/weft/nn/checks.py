# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What the modules ask of their sizes and of the tensors that they are called with, and their casts under autocast."""

from __future__ import annotations

from typing import Any

import torch

from weft.compiler.arguments import Wrong, wrong_integer, wrong_truth
from weft.patterns import Pattern
from weft.programs import autocast

_TYPES = (torch.float32, torch.bfloat16, torch.float16)


def positive(module: str, **sizes: int | None) -> None:
    """Refuse a size that is no positive integer; None stands for a default."""
    given(module, **{name: size for name, size in sizes.items() if size is not None})


def given(module: str, **sizes: Any) -> None:
    """Refuse a size that is no positive integer; there is no default."""
    for name, size in sizes.items():
        _refuse(module, wrong_integer(name, size, 1))


def truth(module: str, **flags: Any) -> None:
    """Refuse what is neither True nor False."""
    for name, flag in flags.items():
        _refuse(module, wrong_truth(name, flag))


def _refuse(module: str, wrong: Wrong | None) -> None:
    if wrong is not None:
        raise wrong.kind(f"{module}: {wrong.text}")


def among(module: str, name: str, value: Any, *allowed: Any) -> None:
    """Refuse what is none of these."""
    if not any(type(value) is type(each) and value == each for each in allowed):
        wanted = " or ".join([", ".join(map(repr, allowed[:-1])), repr(allowed[-1])])
        raise ValueError(f"{module}: expected '{name}' to be {wanted}, but got {value!r}")


def divides(module: str, **pair: int) -> None:
    """Refuse two sizes, the divisor last, of which the second does not divide the first."""
    (name, whole), (divisor, part) = pair.items()
    if whole % part:
        raise ValueError(f"{module}: expected '{divisor}' to divide '{name}' = {whole}, but got {part}")


def head_size(module: str, name: str, size: int) -> None:
    """Refuse a head size that kernels cannot have."""
    given(module, **{name: size})
    if size % 8:
        raise ValueError(f"{module}: expected '{name}' to be a multiple of 8, but got {size}")


def odd(module: str, **kernel: int) -> None:
    """Refuse a kernel that has no middle."""
    given(module, **kernel)
    for name, size in kernel.items():
        if size % 2 == 0:
            raise ValueError(f"{module}: expected '{name}' to be odd, but got {size}")


def pattern(module: str, value: Any) -> None:
    """Refuse what is neither a pattern nor None."""
    if value is not None and not isinstance(value, Pattern):
        raise TypeError(
            f"{module}: expected 'pattern' to be a pattern such as weft.causal(), or None, but got {value!r}"
        )


def tensor(module: str, name: str, x: Any, shape: str, sizes: tuple[int | None, ...], part: torch.nn.Module) -> None:
    """Refuse what is no floating tensor of these sizes, None being any, on the device and of the type of the weight of
    ``part``. One that has no weight of its own, as where a module of the user's stands around it, takes what it takes.

    Under torch.autocast other floating types do too: operands are cast.
    """
    if not isinstance(x, torch.Tensor):
        raise TypeError(f"{module}: expected '{name}' to be a torch.Tensor {shape}, but got '{type(x).__name__}'")
    fits = x.is_nested or (
        x.dim() == len(sizes)
        and all(wanted is None or size == wanted for size, wanted in zip(x.shape, sizes, strict=True))
    )
    if not fits:
        raise ValueError(f"{module}: expected '{name}' {shape}, but got {list(x.shape)}")
    if x.layout != torch.strided or x.is_nested:
        given = "a nested one" if x.is_nested else f"one of layout {_name(x.layout)}"
        raise ValueError(f"{module}: expected '{name}' to be a tensor with strides, but got {given}")
    # (Not ``part.weight``: where it is parametrized, that computes it, and may draw numbers or take a step.)
    like = dict(part.named_parameters(recurse=False)).get("weight", x)
    if x.device != like.device:
        raise ValueError(f"{module}: expected '{name}' on {like.device} as the parameters are, but got {x.device}")
    if autocast.is_on(x.device.type):
        if x.dtype not in _TYPES:
            raise TypeError(f"{module}: expected '{name}' of float32, bfloat16 or float16, but got {_name(x.dtype)}")
        return
    if like.dtype not in _TYPES:
        raise TypeError(f"{module}: expected parameters of float32, bfloat16 or float16, but got {_name(like.dtype)}")
    if x.dtype != like.dtype:
        raise TypeError(
            f"{module}: expected '{name}' of {_name(like.dtype)} as the parameters are, but got {_name(x.dtype)}; "
            "convert one of them with .to(dtype), or call the module under torch.autocast"
        )


def truths(module: str, name: str, given: Any, shape: tuple[int, ...], x: torch.Tensor) -> None:
    """Refuse what is no bool tensor of this shape on x's device."""
    if not isinstance(given, torch.Tensor):
        raise TypeError(
            f"{module}: expected '{name}' to be a torch.Tensor {list(shape)} of bool, but got '{type(given).__name__}'"
        )
    if given.dtype != torch.bool or tuple(given.shape) != shape:
        raise ValueError(
            f"{module}: expected '{name}' {list(shape)} of bool, but got {list(given.shape)} of {_name(given.dtype)}"
        )
    if given.device != x.device:
        raise ValueError(f"{module}: expected '{name}' on {x.device} as 'x' is, but got {given.device}")


def starts(module: str, cu_seqlens: Any, x: torch.Tensor) -> None:
    """Refuse what does not say where the sequences packed into x [1, total, dim] start; None does not."""
    if cu_seqlens is None:
        return
    name = "cu_seqlens"
    if not isinstance(cu_seqlens, torch.Tensor):
        raise TypeError(
            f"{module}: expected '{name}' to be a torch.Tensor [S+1] of int32, but got '{type(cu_seqlens).__name__}'"
        )
    if cu_seqlens.dim() != 1 or cu_seqlens.shape[0] < 1 or cu_seqlens.dtype != torch.int32:
        raise ValueError(
            f"{module}: expected '{name}' [S+1] of int32, but got {list(cu_seqlens.shape)} of {_name(cu_seqlens.dtype)}"
        )
    if cu_seqlens.device != x.device:
        raise ValueError(f"{module}: expected '{name}' on {x.device} as 'x' is, but got {cu_seqlens.device}")
    if x.shape[0] != 1:
        raise ValueError(f"{module}: expected 'x' [1, total, dim] with '{name}', but got {list(x.shape)}")


def cast(*operands: Any) -> tuple[Any, ...]:
    """The operands of one mechanism as PyTorch's autocast has those of scaled_dot_product_attention and convolutions:
    under it floating ones are of its type. Without it, and for None, they stay as they are."""
    first = next(operand for operand in operands if operand is not None)
    kind = first.device.type
    if not autocast.is_on(kind):
        return operands
    wanted = torch.get_autocast_dtype(kind)
    return tuple(x.to(wanted) if x is not None and x.is_floating_point() else x for x in operands)


def _name(dtype: torch.dtype | torch.layout) -> str:
    return str(dtype).removeprefix("torch.")

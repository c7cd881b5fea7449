# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Masks of transformers' models as patterns, and the numbers of a pattern for models that compute with their mask.

A mask function that is a pattern with formulas becomes it, any other is traced, and one that cannot be traced is
refused where it is used. None is left out.
"""

from __future__ import annotations

import functools
import inspect
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from torch.nn.attention.flex_attention import BlockMask
from torch.utils._pytree import tree_map
from transformers.masking_utils import causal_mask_function, sdpa_mask

from weft.attention.block_masks import mask_pattern
from weft.compiler import places
from weft.patterns import Pattern, mask
from weft.programs.torch_reads import AsTorch

# Patterns of which only the distance from the query to the key counts. Others without arrays and functions are of
# positions, which are the mask function's where the first key is at position 0.
_DISTANCES = frozenset(("full", "causal", "window", "and", "or", "not"))
# What says otherwise of 0 and the lowest number, which some models expect, than of true and false.
_SUMS = frozenset(("add", "__add__", "__radd__"))
_COMPARISONS = ("__eq__", "__ne__", "__lt__", "__le__", "__gt__", "__ge__", "__mul__", "__rmul__")
_UNCLEAR = frozenset(_COMPARISONS) | frozenset(
    ("eq", "ne", "lt", "le", "gt", "ge", "mul", "add_", "__iadd__", "float", "half", "bfloat16", "type", "to", "long")
)
_OPERATORS = (*_COMPARISONS, "__and__", "__rand__", "__or__", "__ror__", "__xor__", "__invert__", "__add__", "__radd__")


class PatternMask(BlockMask):
    """A pattern in the place of a model's mask [B, 1, N, M]. It has no tables; transformers hands on BlockMasks that
    have four axes as they are.

    A model that computes with its mask gets a mask of bool, as for SDPA, or where it adds it to scores 0 and the lowest
    number, as for eager attention; what could be meant of either is refused. ``pattern`` is None where the model took
    a part, whose numbers alone say who attends.
    """

    dtype = torch.bool

    def __init__(self, pattern: Pattern | None, shape: tuple[int, ...], made: Callable[[], Any]):
        self.pattern = pattern
        self._shape = tuple(shape)
        self.seq_lengths: Any = self._shape[2:]
        self._made = made
        self._numbers: torch.Tensor | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """[B, 1, N, M]."""
        return self._shape

    @property
    def ndim(self) -> int:
        """How many axes there are."""
        return len(self._shape)

    def numbers(self) -> torch.Tensor:
        """Which pairs attend, of bool."""
        if self._numbers is None:
            self._numbers = self._made()
        return self._numbers

    def to(self, *given: Any, **more: Any) -> PatternMask:
        """Itself on a device, where it is; CompilationError for another type than bool."""
        for each in (*given, *more.values()):
            if isinstance(each, torch.Tensor | torch.dtype) and getattr(each, "dtype", each) != torch.bool:
                raise _unclear("to")
        return self

    def contiguous(self) -> PatternMask:
        """Itself, where a generation asks it as it would a tensor."""
        return self

    def size(self, axis: int | None = None) -> Any:
        """Its shape, or one of its sizes."""
        return self._shape if axis is None else self._shape[axis]

    def dim(self) -> int:
        """How many axes there are."""
        return len(self._shape)

    def __getitem__(self, index: Any) -> PatternMask:
        part = self.numbers()[index]
        return PatternMask(None, part.shape, lambda: part)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or not hasattr(torch.Tensor, name):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        if name in _UNCLEAR:
            raise _unclear(name)
        return getattr(self.numbers(), name)

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = getattr(func, "__name__", "")
        if name in _UNCLEAR:
            raise _unclear(name)
        kind = next((x.dtype for x in args if isinstance(x, torch.Tensor)), torch.float32)

        def seen(x: Any) -> Any:
            if not isinstance(x, PatternMask):
                return x
            return _added(x.numbers(), kind) if name in _SUMS else x.numbers()

        return func(*tree_map(seen, args), **tree_map(seen, kwargs or {}))

    def __repr__(self) -> str:
        return f"<mask {self.pattern!r} {list(self._shape)}>"

    __str__ = __repr__
    __hash__ = object.__hash__


def _operator(name: str) -> Callable[..., Any]:
    def apply(self: PatternMask, *other: Any) -> Any:
        if other and not isinstance(other[0], torch.Tensor | PatternMask | int | float):
            return NotImplemented
        return PatternMask.__torch_function__(getattr(torch.Tensor, name), (PatternMask,), (self, *other))

    return apply


for _name in _OPERATORS:
    setattr(PatternMask, _name, _operator(_name))


def _unclear(name: str) -> Exception:
    return places.error(
        f"expected a model that hands on its mask, takes a part of it or adds it to scores, but got '{name}' of it, "
        "which is another thing of true and false than of 0 and the lowest number",
        "load the model with attn_implementation='eager', or 'sdpa' where it has that",
    )


def _added(allowed: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """0 where a pair attends, and elsewhere the lowest number."""
    return torch.zeros_like(allowed, dtype=kind).masked_fill_(~allowed, torch.finfo(kind).min)


def attention_mask(
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | torch.Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = causal_mask_function,
    attention_mask: torch.Tensor | None = None,
    config: Any = None,
    device: Any = "cpu",
    **more: Any,
) -> PatternMask | torch.Tensor:
    """The mask of a model's layers, as transformers' mask interface asks for it.

    ``mask_function(b, h, q_idx, kv_idx)`` says which pairs attend, of positions in the whole sequence: query n is at
    n + q_offset, key m at m + kv_offset. ``attention_mask`` [B, positions] of bool is false where a token is padding.
    Models that do not hand on masks of other kinds get numbers.
    """
    q_offset = q_offset.clone() if isinstance(q_offset, torch.Tensor) else q_offset
    given = {"q_offset": q_offset, "kv_offset": kv_offset, "mask_function": mask_function, "device": device}
    given |= {"attention_mask": attention_mask, "use_vmap": more.get("use_vmap", False), "allow_is_causal_skip": False}
    whole: Callable[[], Any] = functools.partial(sdpa_mask, batch_size, q_length, kv_length, **given)
    habit = habits(type(config).__module__.replace(".configuration_", ".modeling_"))
    if habit is not None:
        return whole() if habit == "bool" else _added(whole(), more.get("dtype", torch.float32))
    found = _placed(mask_function, q_offset, kv_offset, kv_length - q_length)
    if attention_mask is not None:
        found = _without_padding(found, attention_mask[:, kv_offset : kv_offset + kv_length], kv_length)
    return PatternMask(found, (batch_size, 1, q_length, kv_length), whole)


_FOUND: dict[str, str | None] = {}


def habits(name: str) -> str | None:
    """What models of a module ``transformers.models....modeling_...`` do with masks, None where they hand them on.

    "sums" are those that have eager attention alone: they add masks to scores, and None is every pair. "bool" are those
    that look for BlockMasks themselves. Of models that take any attention's name and never call it, a warning tells.
    """
    if name in sys.modules and name not in _FOUND:
        _FOUND[name] = _habits(sys.modules[name])
    return _FOUND.get(name)


def _habits(module: Any) -> str | None:
    own = module.__name__.startswith("transformers.models.")
    if own and not hasattr(module, "ALL_ATTENTION_FUNCTIONS") and not hasattr(module, "AutoModel"):
        what = module.__name__.removeprefix("transformers.models.").partition(".")[0]
        warnings.warn(
            f"expected an attention to be Weft's, but '{what}' computes its own by no interface", stacklevel=3
        )
    if getattr(module, "BlockMask", None) is BlockMask:
        return "bool"
    models = (
        [x for x in vars(module).values() if inspect.isclass(x) and x.__module__ == module.__name__] if module else []
    )
    others = [getattr(x, each, None) for x in models for each in ("_supports_sdpa", "_supports_flex_attn")]
    return "sums" if False in others and True not in others else None


def _placed(function: Callable[..., Any], queries: Any, keys: int, longer: int) -> Pattern:
    """The pattern of a mask function for queries and keys that start at these positions, of ``longer`` more keys.

    Where the last query is at the last key, as in a cache that grows, a pattern of distances is the function's; one of
    positions needs keys from position 0 too. Elsewhere positions are computed from the offsets, which are tensors:
    each step of a generation has others, and one compiled form serves them all. They are copied: a static cache moves
    its own on in place before its layer's attention runs.
    """
    if isinstance(queries, int) and queries - keys == longer:
        found = mask_pattern(function, True)
        if queries == keys == 0 or (_spellings(found) <= _DISTANCES if keys else found.is_plain):
            return found
    n0, m0 = (None if isinstance(x, int) and x == 0 else torch.as_tensor(x).clone() for x in (queries, keys))
    return mask(AsTorch(_Moved(function, n0, m0)))


@dataclass(frozen=True, eq=False)
class _Moved:
    """A mask function of positions from the first query and the first key that there are; None is 0."""

    function: Callable[..., Any]
    n0: torch.Tensor | None
    m0: torch.Tensor | None
    __weft_fields__: ClassVar[tuple[str, ...]] = ("function", "n0", "m0")

    def __call__(self, b: Any, h: Any, n: Any, m: Any) -> Any:
        return self.function(b, h, n if self.n0 is None else n + self.n0, m if self.m0 is None else m + self.m0)


@dataclass(frozen=True, eq=False)
class _Seen:
    """The pairs whose key is no padding: ``seen`` [B, M] of bool."""

    seen: torch.Tensor
    __weft_fields__: ClassVar[tuple[str, ...]] = ("seen",)

    def __call__(self, b: Any, h: Any, n: Any, m: Any) -> Any:
        return self.seen[b, m]


def _spellings(pattern: Pattern) -> set[str]:
    return {pattern.spelling}.union(*map(_spellings, pattern.parts))


def _without_padding(found: Pattern, seen: torch.Tensor, keys: int) -> Pattern:
    """A pattern's pairs whose key is no padding: ``seen`` [B, positions] of bool; what it does not name is padding."""
    if seen.shape[1] == keys and bool(seen.all()):
        return found
    seen = torch.nn.functional.pad(seen.bool(), (0, keys - seen.shape[1]))
    return found & mask(AsTorch(_Seen(seen)))

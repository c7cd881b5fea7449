# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""BlockMasks of torch.nn.attention.flex_attention as patterns.

A BlockMask has a mask_mod, a function of (b, h, q_idx, kv_idx), and tables of blocks. A pair in a full block attends,
one in a partial block does where the mask_mod is true, and one in no block of a table does not. create_block_mask fills
the tables from the mask_mod; others may fill them otherwise, so both count. Where the mask_mod is a pattern with
formulas that has the tables' blocks, the pattern alone says it all.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

from weft.compiler import places
from weft.patterns import Pattern, full, mask
from weft.programs.recognise import pattern_of
from weft.programs.torch_reads import AsTorch
from weft.runtime.plain import described

_MAKER = "torch.nn.attention.flex_attention"
# The modules whose and_masks and or_masks join masks pair by pair.
_JOINERS = (_MAKER, "transformers.masking_utils")
_REMEDY = f"make one by {_MAKER}.create_block_mask(mask_mod, B, H, Q_LEN, KV_LEN), or by weft.causal() and the like"
# the side of a block that stands for every pair
_EVERYTHING = 1 << 30


def pattern(block_mask: Any, query: Any, keys: Any) -> Pattern | None:
    """The pattern of a BlockMask for queries [B, H, N, D] and so many keys; a pattern of weft's is itself, None every
    pair.

    CompilationError for what is no BlockMask, for one of other lengths, batches or heads, and for one that was sliced
    and has no mask_mod since.
    """
    if block_mask is None or isinstance(block_mask, Pattern):
        return block_mask
    if not all(hasattr(block_mask, name) for name in ("mask_mod", "kv_num_blocks", "BLOCK_SIZE", "seq_lengths")):
        raise places.error(f"expected 'block_mask' to be a BlockMask, but got {places.described(block_mask)}", _REMEDY)
    mod = block_mask.mask_mod
    if _named(mod, "_sliced_mask_mod_error"):
        raise places.error(
            "expected 'block_mask' with a mask_mod, but got one that was sliced, which has none since",
            "assign its mask_mod: that of the whole BlockMask, moved to the slice's first query",
        )
    if tuple(block_mask.BLOCK_SIZE) == (_EVERYTHING, _EVERYTHING):
        return None if _is_noop(mod) else mask_pattern(mod, query.shape[2] == keys)
    lengths = block_mask.seq_lengths
    for name, given, wanted in (("queries", lengths[0], query.shape[2]), ("keys", lengths[1], keys)):
        if not wanted == given:
            raise places.error(
                f"expected 'block_mask' for {wanted} {name}, but got one for {given}", "create it for these lengths"
            )
    if block_mask.kv_indices.dim() != 4:
        given = list(block_mask.kv_indices.shape)
        raise places.error(
            f"expected tables of 'block_mask' [B, H, blocks of queries, blocks of keys], but got {given}",
            "slice it by ranges, as in block_mask[0:1, 0:1], so that axes stay",
        )
    for axis, (name, argument) in enumerate((("batches", "B"), ("heads", "H"))):
        given, wanted = block_mask.kv_indices.shape[axis], query.shape[axis]
        if given != 1 and not wanted == given:
            raise places.error(
                f"expected 'block_mask' for {wanted} {name} or for 1, but got one for {given}",
                f"create it with {argument}=None where it is the same for all",
            )
    said = mask_pattern(mod, lengths[0] == lengths[1])
    if _has_formulas(said) and _asked(block_mask, lambda given: _says(given, said)):
        return said
    return _with_tables(block_mask, None if _is_noop(mod) else said)


def _asked(block_mask: Any, question: Callable[[Any], bool]) -> bool:
    """What a question about a BlockMask's tables comes to; no, of tables without numbers that torch.compile makes."""
    if not described(block_mask.kv_indices):
        return question(block_mask)
    return hasattr(block_mask, "asked") and bool(block_mask.asked(question))


def mask_pattern(mod: Callable[..., Any], square: bool) -> Pattern:
    """The pattern of a mask_mod(b, h, q_idx, kv_idx): one with formulas where it is such, and the numbers of queries
    and keys are equal (``square``); else the mask itself, traced when it is used."""
    joined = _joined(mod)
    if joined is not None:
        sign, masks = joined
        return _reduced(sign, [mask_pattern(each, square) for each in masks])
    if _is_noop(mod):
        return full()
    made = AsTorch(mod)
    found = pattern_of(made) if square else None
    return mask(made) if found is None else found


def _reduced(sign: str, parts: Sequence[Pattern]) -> Pattern:
    """All the parts' intersection, or their union, without those that do not change it."""
    nothing, join = (full(), operator.and_) if sign == "and" else (~full(), operator.or_)
    return functools.reduce(join, [each for each in parts if each != nothing] or [nothing])


def _joined(mod: Any) -> tuple[str, tuple[Any, ...]] | None:
    """What and_masks and or_masks have joined: which of them, and the masks. None for other functions."""
    for sign in ("and", "or"):
        made = f"{sign}_masks.<locals>.{sign}_mask"
        if getattr(mod, "__qualname__", "") == made and getattr(mod, "__module__", "") in _JOINERS:
            cells = dict(zip(mod.__code__.co_freevars, mod.__closure__ or (), strict=True))
            parts = [cell.cell_contents for cell in cells.values()]
            if len(parts) == 1 and isinstance(parts[0], tuple) and all(map(callable, parts[0])):
                return sign, parts[0]
    return None


def _named(mod: Any, name: str) -> bool:
    return getattr(mod, "__name__", "") == name and getattr(mod, "__module__", "") == _MAKER


def _is_noop(mod: Any) -> bool:
    return mod is None or _named(mod, "noop_mask")


def _has_formulas(said: Pattern) -> bool:
    return said.spelling != "mask" and all(map(_has_formulas, said.parts))


def _says(block_mask: Any, said: Pattern) -> bool:
    """Whether a pattern with formulas has pairs in those blocks that the tables name, and all pairs in the full ones.
    The tables' full blocks may be fewer: torch calls a ragged one at the end of a sequence partial.
    """
    (n, m), (rows, columns) = block_mask.seq_lengths, block_mask.BLOCK_SIZE
    classes = said.blocks_summary(n, m, rows, columns)
    partial, whole = _tables(block_mask)
    partial, whole = partial.cpu().numpy(), None if whole is None else whole.cpu().numpy()
    named = partial if whole is None else partial | whole
    if named.shape[-2:] != classes.shape[-2:] or not (named == (classes > 0)).all():
        return False
    return whole is None or bool((~whole | (classes == 2)).all())


def _tables(block_mask: Any) -> tuple[Any, Any]:
    """Which blocks are partial, and which are full, or None: of bool, [B, H, rows of blocks, columns of blocks]."""
    partial = _dense(block_mask.kv_num_blocks, block_mask.kv_indices)
    if block_mask.full_kv_num_blocks is None:
        return partial, None
    return partial, _dense(block_mask.full_kv_num_blocks, block_mask.full_kv_indices)


def _dense(count: Any, index: Any) -> Any:
    """The blocks that a table lists: the first ``count`` [B, H, R] of ``index`` [B, H, R, C]."""
    import torch

    columns = index.shape[-1]
    listed = torch.arange(columns, device=index.device) < count[..., None]
    found = torch.zeros((*index.shape[:-1], columns + 1), dtype=torch.bool, device=index.device)
    found = found.scatter(-1, torch.where(listed, index, columns).long(), True)
    return found[..., :columns].contiguous()


def _with_tables(block_mask: Any, said: Pattern | None) -> Pattern:
    """The pairs in full blocks, and those in partial ones of which the mask_mod is true."""
    partial, whole = _tables(block_mask)
    found = _bitmap(partial, block_mask) if said is None else _bitmap(partial, block_mask) & said
    return found if whole is None else found | _bitmap(whole, block_mask)


def _bitmap(bits: Any, block_mask: Any) -> Pattern:
    """The pairs of the blocks that are set in ``bits``, of which a batch or a head may stand for all."""
    rows, columns = block_mask.BLOCK_SIZE
    of_batch, of_head = (int(size > 1) for size in bits.shape[:2])
    return mask(lambda b, h, n, m: bits[b if of_batch else 0, h if of_head else 0, n // rows, m // columns])

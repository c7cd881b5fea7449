# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Domains of a softmax, and their patterns as attributes with the tensors and mask regions that these name."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ..compiler import places
from ..patterns import Pattern
from .graph import Region, agreeing, tracing
from .regions import mask_region
from .sizes import Requirement, Size, fix, unify
from .tensors import Tensor, described, lift


@dataclass(frozen=True)
class Domain:
    """Keys with their pattern, and how many of them there are."""

    keys: Any
    pattern: Any = None
    count: Any = None

    def __weft_parts__(self) -> list[tuple[str, Any]]:
        return [("keys", self.keys), ("pattern", self.pattern), ("count", self.count)]

    @staticmethod
    def __weft_rebuild__(parts: dict[str, Any]) -> Domain:
        return Domain(**parts)


@dataclass(frozen=True)
class Lowered:
    """Patterns as MLIR text, one for each domain, and what they refer to by number."""

    texts: list[str] = field(default_factory=list)
    operands: list[Tensor] = field(default_factory=list)
    masks: list[Region] = field(default_factory=list)


def lower_patterns(q: Tensor, domains: Sequence[Domain]) -> Lowered:
    """The patterns of a softmax's domains; None is every pair."""
    found = Lowered()
    for domain in domains:
        operands: list[Any] = list(found.operands)
        masks: list[Any] = list(found.masks)
        text = _text(domain.pattern, operands, masks)
        _fit_heads(domain.pattern, q)
        found.operands[:] = [lift(each) for each in operands]
        extents = (*q.sizes[:3], domain.keys.sizes[2])
        for function, place in masks[len(found.masks) :]:
            runs = [None if index.moved else extents[index.axis] for index in place]
            found.masks.append(mask_region(function, runs, moved=[index.moved for index in place]))
        found.texts.append(text)
        own = _outside_sections(text)
        _fit_grid(own, domain.keys)
        _fit_operands(text, own, q, domain.keys, found.operands)
        _fit_sections(text, found.operands)
    return found


def _text(pattern: Any, operands: list[Any], masks: list[Any]) -> str:
    if pattern is None:
        return "#attn.full"
    if isinstance(pattern, (str, bytes)) or not hasattr(type(pattern), "lower"):
        raise places.error(f"expected a pattern, but got '{type(pattern).__name__}'", _in_its_place(pattern))
    return str(pattern.lower(operands, masks))


def _in_its_place(given: Any) -> str:
    """What to write where something other than a pattern was given."""
    if hasattr(given, "mask_mod"):
        return "weft.flex_attention(q, k, v, block_mask=...) takes a BlockMask"
    if hasattr(given, "shape"):
        return "attend(..., bias=mask) takes a bool tensor of pairs; weft.block_bitmap takes one of blocks"
    if callable(given) and getattr(given, "__module__", "").startswith("weft.patterns"):
        return f"weft.{given.__name__}(...) makes one: call it"
    if callable(given):
        return "weft.mask(f) makes one of a function f(b, h, n, m) that says who attends"
    return "weft.causal(), weft.window(left, right), ... make patterns"


def without_tables_of_tokens(texts: Sequence[str]) -> None:
    """Refuse, beside the starts of packed sequences, patterns whose tables are of all tokens."""
    found = re.search(r"#attn\.(document|span|section)\b", "".join(texts))
    if found is None:
        return
    name = "Pattern.section" if found[1] == "section" else f"weft.{found[1]}"
    raise places.error(
        f"expected cu_seqlens or {name}, but got both: tables of a pattern are of all tokens, not of one sequence",
        "leave out cu_seqlens: a document for each sequence keeps them apart by itself",
    )


def _fit_heads(pattern: Any, q: Tensor) -> None:
    """Patterns by head are as many as queries have heads."""
    for count in pattern.heads() if isinstance(pattern, Pattern) else ():
        with agreeing(f"expected as many patterns in weft.per_head, {count}, as queries have heads"):
            unify(q.sizes[1], Size(count))


_NAMING = r"#attn\.(?:document|blocks|block_bitmap|span)<([^>]*)>"


def _fit_operands(text: str, outside: str, q: Tensor, keys: Tensor, operands: Sequence[Any]) -> None:
    """The tensors that a pattern names by number have the sizes of queries and keys; inside of sections, what the text
    ``outside`` lacks, they have those of longer sequences, and the same batches and heads."""
    here = {number for found in re.finditer(_NAMING, outside) for number in re.findall(r"\w+ = (\d+)", found[1])}
    for found in re.finditer(_NAMING, text):
        queries, others = (keys, q) if _is_transposed(text, found.start()) else (q, keys)
        for name, number in re.findall(r"(\w+) = (\d+)", found[1]):
            if name.startswith("block"):
                continue
            tensor = operands[int(number)]
            if not isinstance(tensor, Tensor):
                raise places.error(f"expected a tensor of the pattern, but got '{type(tensor).__name__}'")
            wanted = "int1" if name == "bits" else "int32"
            if tensor.dtype.name != wanted:
                spelled = "bool" if name == "bits" else wanted
                raise places.error(
                    f"expected {_SPELLED[name]} of {spelled}, but got {tensor.dtype}", f"use .to(torch.{spelled})"
                )
            sizes = tensor.sizes
            along = (
                queries.sizes[2]
                if name in ("queryIds", "lower", "upper")
                else others.sizes[2]
                if name in ("keyIds", "first", "past")
                else None
            )
            with agreeing(f"expected {_SPELLED[name]} to fit queries and keys"):
                if len(sizes) > 1:
                    _repeat(sizes[0], q.sizes[0])
                if len(sizes) > 2:
                    _repeat(sizes[1], q.sizes[1] if along is None else keys.sizes[1])
                if along is not None and number in here:
                    unify(sizes[-1], along)
        if found[0].startswith("#attn.block") and re.findall(r"= (\d+)", found[1])[0] in here:
            _fit_table(found[1], queries is q, (queries, others), operands)


def _repeat(size: Size, wanted: Size) -> None:
    """A table's batch or heads: as many as wanted, or one that stands for all."""
    if size.value == 1 and wanted.value != 1:
        fix(size)
    else:
        unify(size, wanted)


def _fit_table(parameters: str, upright: bool, tokens: tuple[Tensor, Tensor], operands: Sequence[Tensor]) -> None:
    """The blocks of a table, whose ``parameters`` are those of its attribute, reach all rows and columns of what it is
    asked about: now, and in every call of the compiled form."""
    named = {name: int(number) for name, number in re.findall(r"(\w+) = (\d+)", parameters)}
    wanted = [("bits", 3, "blockN", 1)] if "bits" in named else [("count", 2, "blockM", 0)]
    wanted.append(("bits" if "bits" in named else "index", 2, "blockM", 0))
    for name, axis, block, of in wanted:
        side, what = named[block], ("queries", "keys")[of if upright else 1 - of]
        required = Requirement(
            operands[named[name]].sizes[axis].times(side),
            tokens[of].sizes[2],
            f"{_SPELLED[name]} to have blocks of {side} for all {what}",
        )
        if not required.holds(lambda size: size.value):
            least = -(-(tokens[of].sizes[2].value or 0) // side)
            raise places.error(
                f"expected {required.what}, {least} for {required.at_least.value}, "
                f"but got {operands[named[name]].sizes[axis].value}",
                "give the pattern a table as large, or as many tokens as it has blocks for",
            )
        tracing().required.append(required)


def _outside_sections(text: str) -> str:
    """The text without what is said of longer sequences, whose lengths memory has."""
    kept, depth, sections = "", 0, [0]
    for piece in re.findall(r"#attn\.\w+|[<>]|[^<>#]+", text):
        if piece == "<":
            depth += 1
        elif piece == ">":
            depth -= 1
        if piece == "#attn.section" and len(sections) == 1:
            sections.append(depth)
        if len(sections) == 1:
            kept += piece
        elif piece == ">" and depth == sections[-1]:
            sections.pop()
            kept += "#attn.full"
    return kept


def _fit_sections(text: str, operands: Sequence[Any]) -> None:
    """Where a section lies is said by two numbers for rows, and two for keys."""
    for found in re.finditer(r", rows = (\d+), keys = (\d+)>", text):
        for what, number in zip(("rows", "keys"), found.groups(), strict=True):
            place = operands[int(number)]
            if not isinstance(place, Tensor) or place.ndim != 1 or place.dtype.name != "int32":
                raise places.error(f"expected '{what}' of Pattern.section [2] of int32, but got {described(place)}")
            with agreeing(f"expected '{what}' of Pattern.section [2]: the first one, and how many the whole has"):
                unify(place.sizes[0], Size(2))


def _is_transposed(text: str, at: int) -> bool:
    """Whether the pattern at a place in the text sees keys as queries: an odd number of transposes is around it."""
    around: list[str] = []
    for bracket in re.finditer(r"(#attn\.\w+)?<|>", text[:at]):
        if bracket[0] == ">":
            around.pop()
        else:
            around.append(bracket[0])
    return around.count("#attn.transpose<") % 2 == 1


# The tensors of patterns by their names in attributes, as those who make a pattern call them.
_SPELLED = {
    "queryIds": "'q_ids' of weft.document",
    "keyIds": "'k_ids' of weft.document",
    "index": "'index' of weft.blocks",
    "count": "'count' of weft.blocks",
    "bits": "'bits' of weft.block_bitmap",
    **{name: f"'{name}' of weft.span" for name in ("lower", "upper", "first", "past")},
}


def _fit_grid(text: str, keys: Tensor) -> None:
    """A pattern over a grid of tokens has as many keys as the grid has tokens."""
    for sides in re.findall(r"(?:grid|shape) = \[([\d, ]+)\]", text):
        tokens = 1
        for side in sides.split(","):
            tokens *= int(side)
        with agreeing(f"expected as many keys as the pattern's grid [{sides}] has tokens"):
            unify(keys.sizes[2], Size(tokens))

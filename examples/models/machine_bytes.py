# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Bytes of files that every machine with Python has: what the models of this folder are trained on."""

from __future__ import annotations

import functools
import pathlib
import sysconfig

import torch

KINDS = {"source": "*.py", "byte code": "*.pyc", "machine code": "*.so"}
_LEAST, _MOST, _FILES = 4_096, 262_144, 60


@functools.cache
def bytes_of(kind: str) -> torch.Tensor:
    """uint8 of up to 60 files of a kind, one after another, up to 256 KB of each: the standard library's, and, as some
    Pythons have nearly all of it built in, NumPy's and torch's."""
    folders = [pathlib.Path(sysconfig.get_paths()["stdlib"]), *(pathlib.Path(p) for p in _packages())]
    found: list[bytes] = []
    for folder in folders:
        for path in sorted(folder.rglob(KINDS[kind])):
            if len(found) == _FILES:
                break
            if path.is_file() and path.stat().st_size >= _LEAST:
                with path.open("rb") as file:
                    found.append(file.read(_MOST))
    if not found:
        raise FileNotFoundError(f"expected {KINDS[kind]} under {', '.join(map(str, folders))}, but there is none")
    return torch.frombuffer(bytearray(b"".join(found)), dtype=torch.uint8)


def _packages() -> list[pathlib.Path]:
    import numpy

    return [pathlib.Path(package.__file__).parent for package in (numpy, torch)]


def text(batch: int, tokens: int, generator: torch.Generator) -> torch.Tensor:
    """int64 [batch, tokens + 1]: stretches of source text, a byte a token."""
    return _stretches("source", batch, tokens + 1, generator).long()


def images(batch: int, side: int, generator: torch.Generator) -> tuple[torch.Tensor, torch.Tensor]:
    """Stretches of files of all kinds, laid out as pictures of three channels, fp32 [batch, 3, side, side] in [-1, 1];
    and of which kind each is, int64 [batch]."""
    kinds = torch.randint(len(KINDS), (batch,), generator=generator)
    rows = [_stretches(list(KINDS)[kind], 1, 3 * side * side, generator) for kind in kinds]
    return torch.cat(rows).view(batch, 3, side, side).float() / 127.5 - 1, kinds


def _stretches(kind: str, batch: int, length: int, generator: torch.Generator) -> torch.Tensor:
    whole = bytes_of(kind)
    starts = torch.randint(len(whole) - length, (batch,), generator=generator)
    return torch.stack([whole[start : start + length] for start in starts])

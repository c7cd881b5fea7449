# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Folders that are written whole or not at all."""

from __future__ import annotations

import contextlib
import os
import pathlib
import shutil
from collections.abc import Iterator


@contextlib.contextmanager
def new_folder(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder to write into, beside ``folder``, which it becomes at the end: whole or not there. Raises ValueError
    where something is there already."""
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise ValueError(f"expected a folder that is not there yet, or empty, but got '{folder}'")
    if not folder.absolute().parent.is_dir():
        raise ValueError(f"expected a folder in one that is there, but got '{folder}'")
    partial = folder.absolute().with_name(folder.absolute().name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir()
    try:
        yield partial
        partial.replace(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise

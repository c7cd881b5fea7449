# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Folders and files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import os
import pathlib
import shutil
import threading
from collections.abc import Iterator

#: what goes wrong where bytes are written, and of which the system names no file
_OF_WRITING = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS)


@contextlib.contextmanager
def new_folder(folder: pathlib.Path) -> Iterator[pathlib.Path]:
    """A folder to write into, beside ``folder``, which it becomes at the end: whole or not there. Raises ValueError
    where something is there already, and OSError, which names ``folder``, where it cannot be written."""
    if os.path.lexists(folder) and not (folder.is_dir() and not any(folder.iterdir())):
        raise ValueError(f"expected a folder that is not there yet, or empty, but got '{folder}'")
    if not folder.absolute().parent.is_dir():
        raise ValueError(f"expected a folder in one that is there, but got '{folder}'")
    partial = folder.absolute().with_name(folder.absolute().name + ".partial")
    shutil.rmtree(partial, ignore_errors=True)
    try:
        with named(folder, partial):
            partial.mkdir()
            yield partial
            partial.replace(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


@contextlib.contextmanager
def new_file(path: str | os.PathLike[str]) -> Iterator[pathlib.Path]:
    """A file to write, beside ``path`` and of its suffix, which it becomes at the end: whole, or what was there before.
    Where ``path`` is a link, the file that it leads to is written; a device or a pipe is written itself. Raises
    OSError, which names ``path``."""
    target = pathlib.Path(path).resolve()
    if target.exists() and not target.is_file():
        with named(path):
            yield target
        return
    beside = target.with_name(f".{os.getpid()}.{threading.get_ident()}.partial{target.suffix}")
    try:
        with named(path, beside):
            yield beside
            beside.replace(target)
    finally:
        beside.unlink(missing_ok=True)


@contextlib.contextmanager
def named(path: str | os.PathLike[str], beside: pathlib.Path | None = None) -> Iterator[None]:
    """Errors of writing in the body that name no file, or what is written beside ``path`` for it, name ``path``."""
    try:
        yield
    except OSError as error:
        if error.errno is None:  # of NumPy: it says how many elements were written, and nothing else
            raise OSError(f"cannot write '{os.fspath(path)}': {error}") from error
        name = error.filename
        if error.errno in _OF_WRITING if name is None else pathlib.Path(os.fsdecode(name)) == beside:
            raise OSError(error.errno, error.strerror, os.fspath(path)) from error
        raise

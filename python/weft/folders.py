# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Folders and files that are written whole or not at all."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pathlib
import shutil
import tempfile
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
def scratch_folder(prefix: str, parent: str | os.PathLike[str] | None = None) -> Iterator[pathlib.Path]:
    """A folder in ``parent``, or where temporary files go, that is removed at the end. Those of the same prefix whose
    processes ended before their time are removed first: a process holds a lock on its own."""
    place = pathlib.Path(parent or tempfile.gettempdir())
    for left in place.glob(f"{prefix}*"):
        _remove_if_left(left)
    while True:
        folder = pathlib.Path(tempfile.mkdtemp(prefix=prefix, dir=place))
        lock = os.open(folder, os.O_RDONLY)
        with contextlib.suppress(OSError):  # some file systems have no locks: nobody takes the folder for one left
            fcntl.flock(lock, fcntl.LOCK_EX)
        if folder.exists():
            break
        os.close(lock)  # another process found it before the lock was held
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_if_left(folder: pathlib.Path) -> None:
    try:
        lock = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError:  # gone, another user's, or no folder
        return
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except OSError:  # somebody's
        pass
    finally:
        os.close(lock)


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

# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``triton.runtime.cache``: where compiled kernels are kept, and files that scripts keep beside them."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

from weft.compiler.cache import directory
from weft.compiler.fingerprint import compiler_fingerprint as triton_key
from weft.triton.errors import TritonError


def default_cache_dir() -> str:
    """The folder of compiled kernels; "" where none are kept."""
    return str(directory() or "")


class FileCacheManager:
    """Files that belong to a key, in a folder of their own under that of compiled kernels: ``put`` keeps one,
    ``get_file`` finds it. A file is written beside and renamed, so that readers see all of it or none. They do not
    count for WEFT_CACHE_BYTES, and nothing deletes them. Raises TritonError where nothing is kept."""

    def __init__(self, key: str, override: bool = False, dump: bool = False):
        folder = directory()
        if folder is None:
            raise TritonError("expected a folder to keep files in, but WEFT_CACHE=0 turns it off")
        if not key or Path(key).name != key or key in (".", ".."):
            raise TritonError(f"expected a key that names a folder, but got {key!r}")
        self.key = key
        self._folder = folder / "files" / key

    @property
    def cache_dir(self) -> str:
        """The folder of the key."""
        return str(self._folder)

    def _path(self, filename: str) -> Path:
        if not filename or Path(filename).name != filename or filename in (".", ".."):
            raise TritonError(f"expected the name of a file, without a folder, but got {filename!r}")
        return self._folder / filename

    def has_file(self, filename: str) -> bool:
        """Whether a file is kept."""
        return self._path(filename).exists()

    def get_file(self, filename: str) -> str | None:
        """The path of a file that is kept, else None."""
        return str(self._path(filename)) if self.has_file(filename) else None

    def put(self, data: bytes | str, filename: str, binary: bool = True) -> str:
        """Keep a file, in the place of one of that name; its path."""
        path = self._path(filename)
        self._folder.mkdir(parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(dir=self._folder, prefix=".", suffix=".partial")
        try:
            with os.fdopen(handle, "wb") as file:
                file.write(data if isinstance(data, bytes) else str(data).encode())
            Path(beside).replace(path)
        except BaseException:
            Path(beside).unlink(missing_ok=True)
            raise
        return str(path)

    def put_group(self, filename: str, group: Mapping[str, str]) -> str:
        """Keep which paths belong together under a name."""
        return self.put(json.dumps(dict(group)), f"__grp__{filename}")

    def get_group(self, filename: str) -> dict[str, str] | None:
        """The paths that were kept under a name; None where there are none, or one of them is gone."""
        found = self.get_file(f"__grp__{filename}")
        if found is None:
            return None
        try:
            group = json.loads(Path(found).read_text())
        except ValueError:
            return None
        return dict(group) if all(map(os.path.exists, group.values())) else None


def get_cache_manager(key: str) -> FileCacheManager:
    """The files of a key."""
    return FileCacheManager(key)


__all__ = ["FileCacheManager", "default_cache_dir", "get_cache_manager", "triton_key"]

# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Packs wheels anew, by libdeflate's slowest level, which makes them 3 % smaller than zlib's best. Unpacking takes the
same time. Usage: repack.py WHEEL... FOLDER"""

from __future__ import annotations

import pathlib
import sys
import zipfile
from unittest import mock

import deflate


class _Compressor:
    """A file's bytes, compressed at its end: what zipfile asks of zlib's compressors."""

    def __init__(self, *_: object) -> None:
        self._data = bytearray()

    def compress(self, data: bytes) -> bytes:
        self._data += data
        return b""

    def flush(self) -> bytes:
        return bytes(deflate.deflate_compress(self._data, 12))


def repack(wheel: pathlib.Path, folder: pathlib.Path) -> None:
    """The same files under the same name in a folder."""
    made = folder / f".{wheel.name}"
    with (
        zipfile.ZipFile(wheel) as given,
        zipfile.ZipFile(made, "w", zipfile.ZIP_DEFLATED) as smaller,
        mock.patch.object(zipfile, "_get_compressor", _Compressor),
    ):
        for entry in given.infolist():
            entry.compress_type = zipfile.ZIP_DEFLATED
            smaller.writestr(entry, given.read(entry))
    with zipfile.ZipFile(made) as smaller:
        wrong = smaller.testzip()
        if wrong is not None:
            raise SystemExit(f"repack: expected '{wrong}' of {wheel} to be as it was, but it is not")
    made.replace(folder / wheel.name)


if __name__ == "__main__":
    *wheels, target = map(pathlib.Path, sys.argv[1:])
    for each in wheels:
        repack(each, target)

# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""What tells one compiler from another, so that no cache entry outlives the compiler that made it."""

from __future__ import annotations

import functools
import hashlib
import pathlib

from .. import native


@functools.cache
def compiler_fingerprint() -> str:
    """What changes when the compiler does: its version, and a digest of its library and of the front end's sources.

    Of contents: sizes and times may be those of another build, where an installer has set them.
    """
    compiler = native.load("_compiler")
    binding = pathlib.Path(str(compiler.__file__))
    package = pathlib.Path(__file__).parents[1]
    sources = [file for part in ("compiler", "language") for file in sorted((package / part).rglob("*.py"))]
    digest = hashlib.sha256()
    for file in (binding, binding.parent / "libweft-compiler.so", *sources):
        if file.exists():  # a binding may hold the compiler in itself
            contents = file.read_bytes()
            digest.update(f"{file.name} {len(contents)}\n".encode())
            digest.update(contents)
    return f"{compiler.version()} {digest.hexdigest()}"

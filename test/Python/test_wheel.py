# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The wheels that `make wheel` left in dist/, tried where neither this tree nor LLVM can be seen."""

import os
import pathlib
import subprocess
import sys

import pytest
import weft

ROOT = pathlib.Path(__file__).resolve().parents[2]
LARGEST = {"weft_attention": 16e6, "weft_attention_runtime": 2.5e6}
"""Bytes that wheels may have"""


def wheels():
    """The wheels of this version for this Python, by distribution."""
    tag = f"cp3{sys.version_info.minor}"
    found = (ROOT / "dist").glob(f"weft_attention*-{weft.__version__}-{tag}-{tag}-manylinux_2_34_x86_64.whl")
    return {path.name.partition("-")[0]: path for path in found}


@pytest.mark.slow
@pytest.mark.skipif(set(wheels()) != set(LARGEST), reason="dist/ has no wheels of this version: make wheel")
def test_wheels():
    for name, path in wheels().items():
        assert path.stat().st_size <= LARGEST[name], path
    namespaces = subprocess.run(["unshare", "--map-root-user", "--mount", "true"], capture_output=True, check=False)
    if os.geteuid() != 0 and namespaces.returncode != 0:
        pytest.skip("expected root or user namespaces, to hide the tree and LLVM")
    done = subprocess.run([ROOT / "tools" / "try_wheel.sh"], capture_output=True, text=True, timeout=1200, check=False)
    assert done.returncode == 0 and "all of it went well" in done.stdout, done.stdout + done.stderr

# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Scripts that run other people's operators with ``weft.triton`` in Triton's place, and print a line for each: its
name, and the errors of its results and gradients."""

import os
import subprocess
import sys


def operator_errors(script, folder, seed, **environment):
    """Of each operator that ``script`` prints: its name and its errors. Kernels are compiled anew, into ``folder``."""
    environment = {**os.environ, **environment, "WEFT_CACHE_DIR": str(folder), "WEFT_TEST_SEED": str(seed)}
    done = subprocess.run(
        [sys.executable, "-m", "weft.triton", script], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 0, done.stderr
    return [(name, [float(each) for each in errors]) for name, *errors in map(str.split, done.stdout.splitlines())]

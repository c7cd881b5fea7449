# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Attention by an installed wheel, in a process of its own: what tools/try_wheel.sh times and looks into.

Prints the seconds of the imports and of the first call as JSON. Fails where the result is wrong, or LLVM's or MLIR's
shared libraries are in the process.
"""

import json
import pathlib
import time

started = time.perf_counter()
import numpy as np  # noqa: E402 (imports are timed)
import weft  # noqa: E402

imported = time.perf_counter()


@weft.program
def attend(q, k, v):
    return weft.softmax(q, k, weft.causal()) @ v


q, k, v = np.random.default_rng(0).standard_normal((3, 1, 1, 16, 16), dtype=np.float32)
before = time.perf_counter()
out = np.asarray(attend(q, k, v))
called = time.perf_counter()

scores = np.where(np.tri(16, dtype=bool), q[0, 0] @ k[0, 0].T / 4, -np.inf)
weights = np.exp(scores - scores.max(1, keepdims=True))
assert np.abs(out[0, 0] - weights / weights.sum(1, keepdims=True) @ v[0, 0]).max() < 1e-5, "attention is wrong"
mapped = {line.split()[-1] for line in pathlib.Path("/proc/self/maps").read_text().splitlines() if "/" in line}
foreign = [path for path in mapped if "libLLVM" in path or "libMLIR" in path]
assert not foreign, f"expected no shared library of LLVM or MLIR in the process, but got {foreign}"
print(json.dumps({"import": imported - started, "first call": called - before}))

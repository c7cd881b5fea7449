# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A process that evaluates candidates: jobs come as lines of JSON, records go as lines of JSON, until the input ends.

A process of its own can be killed by a candidate, and can run beside others; ``python -m weft.tuning.worker``.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import traceback
from typing import Any

from .evaluate import Job, evaluate


def main() -> None:
    """Judge jobs, a line of JSON each on standard input, until it ends; a line with the record of each goes to standard
    output."""
    # records alone go to the standard output; whatever else prints goes to the standard error
    records = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    with contextlib.suppress(BrokenPipeError):  # who asked has gone
        for line in sys.stdin:
            records.write(json.dumps(_record(json.loads(line))) + "\n")
            records.flush()


def _record(job: dict[str, Any]) -> dict[str, Any]:
    try:
        return evaluate(Job(**job))
    except Exception:
        return {"status": "failed", "reason": traceback.format_exc(limit=-3)}


if __name__ == "__main__":
    main()

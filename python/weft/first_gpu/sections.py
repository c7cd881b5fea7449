# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The sections by name. What makes their cases is imported by the process that runs them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Section:
    """``module`` has ``cases(options)``; ``columns`` are the values of its rows that the page shows, in order."""

    title: str
    module: str
    parts: tuple[str, ...]
    """what the parts of a row's name are"""
    columns: tuple[str, ...]
    about: str


SECTIONS = {
    "tests": Section(
        "Tests that need a GPU", "suite", ("file",), ("passed", "skipped"), "The tests marked gpu, by pytest."
    ),
    "corpus": Section(
        "Simulator and GPU",
        "corpus",
        ("from", "kernel", "mode"),
        ("agreement", "largest difference", "not fixed by PTX"),
        "The same PTX on both. Where the PTX ISA says what each instruction gives, results are compared bit for bit; "
        "where it does not (approximate functions, the order of a matrix instruction's sums), each result is within "
        "the tolerance that the row names.",
    ),
    "attention": Section(
        "Attention: times",
        "attention_times",
        ("direction", "head size", "pairs", "length", "by"),
        ("ms", "fastest quarter", "slowest quarter", "TFLOP/s", "relative error"),
        "bfloat16, as users call it; CUDA events around each run after warm-up, the L2 cache overwritten before each. "
        "The median, and the quarters around it. Operations: forward 4 · B · H · D · pairs, backward 2.5 times that.",
    ),
    "mechanisms": Section(
        "SEMA, SFA, SAS, GAU: times",
        "mechanism_times",
        ("direction", "mechanism", "length", "by"),
        ("ms", "fastest quarter", "slowest quarter", "TFLOP/s"),
        "Timed as attention is. Operations are those of scores and values alone, of SFA those of tokens that do not "
        "merge.",
    ),
}

# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Texts of a kernel that each lack one of its fences, waits, commits, arrivals, expectations or barriers.

    for drop in drops(ptx):
        assert is_found(drop, run), drop

`run(text, seed)` launches a text on fresh memory and returns the report. What a compiler put in twice, or a later
instruction makes up for, is dropped without harm: tests say which and why.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator

import weft.simulator as simulator

#: What is dropped whole. A wait at an mbarrier becomes one that has succeeded. An arrival that expects bytes is
#: dropped and, as one more text, expects none.
FAMILIES = {
    "fence": r"fence\.[\w.:]+|membar\.\w+",
    "wgmma": r"wgmma\.(?:fence|commit_group|wait_group)[\w.]*",
    "tensor": r"tcgen05\.(?:wait::ld|wait::st|commit|dealloc|fence::\w+)[\w.:]*",
    "copy": r"cp\.async\.(?:bulk\.)?(?:commit_group|wait_group|wait_all)[\w.]*",
    "arrive": r"mbarrier\.(?:arrive|arrive_drop|expect_tx|complete_tx)[\w.:]*",
    "wait": r"mbarrier\.(?:try_wait|test_wait)[\w.:]*",
    "barrier": r"bar\.(?:sync|arrive)|barrier\.(?:sync|arrive|cluster\.arrive|cluster\.wait)[\w.]*",
    "init": r"mbarrier\.init[\w.:]*",
}
STATEMENT = re.compile(
    r"(?P<guard>@!?[%\w$]+\s+)?(?P<name>" + "|".join(f"(?P<{key}>{value})" for key, value in FAMILIES.items()) + r")"
    r"(?P<operands>[^;{}]*(?:\{[^;{}]*\}[^;{}]*)*);"
)


@dataclasses.dataclass(frozen=True)
class Drop:
    """A text without the instruction at a line of the whole one."""

    line: int
    family: str
    instruction: str
    text: str = dataclasses.field(repr=False)


def drops(ptx: str) -> Iterator[Drop]:
    """One text for each instruction of the families, and one more for each expectation."""
    body = re.sub(r"//[^\n]*", lambda comment: " " * len(comment.group()), ptx)
    for match in STATEMENT.finditer(body):
        family = next(key for key in FAMILIES if match[key])
        line = body.count("\n", 0, match.start()) + 1
        whole = match.group()
        for name, rest in replacements(family, match):
            yield Drop(line, name, whole, body[: match.start()] + rest + body[match.end() :])


def replacements(family: str, match: re.Match) -> Iterator[tuple[str, str]]:
    if family == "wait":
        predicate = match["operands"].split(",")[0].strip()
        yield "wait", f"setp.eq.u32 {predicate}, 0, 0;"
        return
    yield family, ""
    if ".expect_tx" in match["name"] and "arrive" in match["name"]:
        address = match["operands"].rsplit(",", 1)[0]
        yield "expect", f"{match['guard'] or ''}{match['name'].replace('.expect_tx', '')}{address};"


def is_found(drop: Drop, run: Callable[[str, int], simulator.Report], seeds=(0, 1, 2, 3, 4, 5, 6, 7)) -> bool:
    """Whether some order of threads and copies gives a finding, or misses a fence before a copy that writes."""
    reports = (run(drop.text, seed) for seed in seeds)
    return any(
        report.findings or any(advisory.kind == "missing-proxy-fence" for advisory in report.advisories)
        for report in reports
    )


def survivors(ptx: str, run: Callable[[str, int], simulator.Report], families=None, **options) -> list[Drop]:
    """The drops that no order gives a finding for."""
    return [
        drop
        for drop in drops(ptx)
        if (families is None or drop.family in families) and not is_found(drop, run, **options)
    ]


def without_redundant(ptx: str, lost: list[Drop], run: Callable[[str, int], simulator.Report], **options) -> str:
    """The text without as many of the drops as leave it without a finding, taken one after the other."""
    rest = ptx
    for drop in reversed(lost):  # from the end: the places of those before stay
        again = [other for other in drops(rest) if (other.line, other.family) == (drop.line, drop.family)]
        for other in again:
            if not is_found(other, run, **options):
                rest = other.text
                break
    return rest

# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The whole of it: every section run, one HTML and one JSON file written."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import pathlib
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.errors import Error
from weft.first_gpu import machine
from weft.first_gpu.cases import Options
from weft.first_gpu.page import page
from weft.first_gpu.rows import FAILED, Rows
from weft.first_gpu.sections import SECTIONS
from weft.first_gpu.watch import run_section

_TIMED = ("attention", "mechanisms")


def run(
    folder: pathlib.Path,
    sections: Sequence[str],
    options: Options,
    environment: Mapping[str, str],
    *,
    patience: float = 600,
) -> int:
    """Run sections and write folder/report.html and report.json; 1 where something of Weft's failed.

    ``environment`` is what else is to be told of the machine. Rows are kept in the folder: run again, what is done of
    the same GPU, driver, commit and options is not run again. Raises Error where there is no GPU.
    """
    _check(sections)
    gpu = machine.gpu()
    clocks, versions, commit = machine.clocks(), machine.versions(), machine.commit()
    identity = {
        "gpu": gpu["model"],
        "driver": clocks.get("driver"),
        "versions": versions,
        "commit": commit,
        "options": dataclasses.asdict(options),
    }
    all_rows = {name: Rows(folder / "rows" / f"{name}.jsonl") for name in SECTIONS}
    reasons: dict[str, str] = {}
    for name in sections:
        rows = all_rows[name]
        rows.start(identity)
        reasons[name] = run_section(name, rows, options, _told(name), patience=patience)
        wrong = sum(row["state"] == FAILED for row in rows.all())
        more = f"; {reasons[name]}" if reasons[name] else ""
        _tell(f"{SECTIONS[name].title}: {wrong} of {len(rows.all())} cases failed{more}\n")
        there = {each: rows for each, rows in all_rows.items() if rows.are_of(identity)}  # of earlier runs too
        found = {each: _section(each, rows, reasons.get(each, "")) for each, rows in there.items()}
        report = {
            "verdict": _verdict(found), "note": _note(there), "date": machine.today(), "commit": commit,
            "gpu": gpu, "clocks": clocks, "versions": versions, "environment": environment, "sections": found,
        }  # fmt: skip
        _write(folder, report)  # after each section: what is there can be read
    _tell(f"{report['verdict']}\nThe page: {(folder / 'report.html').resolve()}\n")
    return 1 if _failures(found) else 0


def _section(name: str, rows: Rows, reason: str) -> dict[str, Any]:
    """A section as the report has it."""
    of = SECTIONS[name]
    facts = {"title": of.title, "about": of.about, "parts": of.parts, "columns": of.columns}
    return facts | {"reason": reason, "rows": rows.all()}


def _check(sections: Sequence[str]) -> None:
    unknown = [name for name in sections if name not in SECTIONS]
    if unknown or not sections:
        raise ValueError(f"expected sections among {', '.join(SECTIONS)}, but got {', '.join(unknown) or 'none'}")
    missing = [name for name in ("torch", "jinja2") if importlib.util.find_spec(name) is None]
    if importlib.util.find_spec("weft.testing") is None:
        raise Error("expected the compiler and the references of weft-attention, but this is weft-attention-runtime")
    if missing:
        raise Error(
            f"expected {' and '.join(missing)} to be installed, which the report takes: pip install torch jinja2"
        )


def _failures(found: Mapping[str, Any]) -> list[str]:
    """What failed of Weft's, a line each."""
    failed = [f"{section['title']}: {section['reason']}" for section in found.values() if section["reason"]]
    for section in found.values():
        failed += [
            f"{section['title']}, {', '.join(row['name'])}: {row['reason']}"
            for row in section["rows"]
            if row["state"] == FAILED and row["ours"]
        ]
    return failed


def _verdict(found: Mapping[str, Any]) -> str:
    failed = _failures(found)
    if not failed:
        return f"Of {sum(len(section['rows']) for section in found.values())} cases none of Weft's failed."
    return f"{len(failed)} of Weft's cases failed. The first: {failed[0]}"


def _note(sections: Iterable[str]) -> str:
    import torch

    if torch.cuda.is_available() or not set(sections) & set(_TIMED):
        return ""
    return (
        "This PyTorch has no CUDA: tensors are on the host, and each run copies them in and out. The times say that "
        "the way works, and nothing of speed."
    )


def _write(folder: pathlib.Path, report: Mapping[str, Any]) -> None:
    for name, text in (("report.json", json.dumps(report, indent=1)), ("report.html", page(report))):
        beside = folder / f"{name}.partial"
        beside.write_text(text, encoding="utf-8")
        beside.replace(folder / name)


def _told(section: str) -> Any:
    def progress(ended: int, total: int | None, name: str) -> None:
        if sys.stderr.isatty():
            _tell(f"\r\x1b[K{section} {ended}/{total or '?'}: {name}\r")

    return progress


def _tell(text: str) -> None:
    sys.stderr.write(("\x1b[K" if sys.stderr.isatty() else "") + text)
    sys.stderr.flush()

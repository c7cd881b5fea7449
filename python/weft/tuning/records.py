# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Measurements as lines of JSON, one each, that are only ever appended: of this machine beside the cache, and of others
in files that are merged.

A record says what ran (the PTX's hash, its functions, the sizes), where (target, device), how it was measured
(policy), and what came: whether the results are right, seconds or counters. Its key is all but the last. What is chosen
is derived from records and never stored alone. Merging is a union of lines: in any order, as often as one likes.
"""

from __future__ import annotations

import datetime
import fcntl
import functools
import hashlib
import json
import os
import pathlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from weft import native
from weft.folders import named, new_file

SCHEMA = 1
#: what a measurement goes by
KEY = ("ptx", "target", "device", "policy", "functions", "sizes")
_NEEDED = {
    "schema": int, "ptx": str, "target": str, "device": str, "policy": str, "functions": list, "sizes": dict,
    "program": str, "schedules": dict, "status": str, "reason": str, "seconds": list, "launches": list,
}  # fmt: skip
_MAY_HAVE = {"weft": str, "when": str, "name": str, "tuned_for": dict}
_STATUS = ("right", "refused", "dropped")

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Read:
    """The records of a file, in its order, and how many of its lines are none: torn, or of another schema."""

    records: list[dict[str, Any]]
    torn: int = 0
    foreign: int = 0


def made(version: str, **facts: Any) -> dict[str, Any]:
    """A record of now. ValueError where a fact is missing or of another type."""
    when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    record = {"schema": SCHEMA, "weft": version, "when": when, **facts}
    if wrong := _wrong(record):
        raise ValueError(wrong)
    loaded: dict[str, Any] = json.loads(_line(record))
    return loaded


def measured(
    key: Record, found: Record, *, program: str, name: str, tuned_for: Mapping[str, int], schedules: Mapping[str, Any]
) -> dict[str, Any]:
    """A record of what was ``found`` now of a ``key``: status, reason, the seconds of every round in "samples", and the
    simulator's "launches"; of a program, its name, the sizes that it is tuned for, and its schedules by place."""
    return made(
        native.load("_runtime").version,
        **key,
        program=program,
        name=name,
        tuned_for=dict(tuned_for),
        schedules=dict(schedules),
        status=found["status"],
        reason=found.get("reason", ""),
        seconds=found.get("samples", []),
        launches=found.get("launches", []),
    )


def _wrong(record: Any) -> str:
    """What keeps a value from being a record; empty where it is one."""
    if not isinstance(record, dict):
        return f"expected a record to be an object, but got {type(record).__name__}"
    for name, kind in _NEEDED.items():
        if not isinstance(record.get(name), kind) or isinstance(record[name], bool):
            return f"expected '{name}' of a record to be {kind.__name__}, but got {record.get(name)!r}"
    for name, kind in _MAY_HAVE.items():
        if not isinstance(record.get(name, kind()), kind):
            return f"expected '{name}' of a record to be {kind.__name__}, but got {record[name]!r}"
    if record["status"] not in _STATUS:
        return f"expected a status of {', '.join(_STATUS)}, but got '{record['status']}'"
    numbers = [*record["seconds"], *record["sizes"].values()]
    if not all(isinstance(each, (int, float)) and each == each and abs(each) != float("inf") for each in numbers):
        return "expected seconds and sizes to be numbers"
    if not all(isinstance(each, str) for each in record["functions"]):
        return "expected functions to be names"
    if not all(map(_is_schedule, record["schedules"].values())):
        return "expected schedules to be lists of 2, 4, 5, 6 or 7 sizes"
    if not all(isinstance(each, dict) for each in record["launches"]):
        return "expected launches to be objects"
    return ""


def _is_schedule(value: Any) -> bool:
    if not isinstance(value, list) or len(value) not in (2, 4, 5, 6, 7):
        return False
    return all(type(each) is int and each >= 0 for each in value) and (len(value) == 2 or all(value[:4]))


def _line(record: Record) -> str:
    return json.dumps(record, sort_keys=True, separators=(",", ":"), allow_nan=False)


def identity(record: Record) -> str:
    """The hash of all that a record says."""
    return hashlib.sha256(_line(record).encode()).hexdigest()


def key_of(record: Record) -> str:
    """What a measurement goes by, as text."""
    return _line({name: record[name] for name in KEY})


# ---- Files


def append(path: str | os.PathLike[str], records: Sequence[Record]) -> None:
    """Add records to the end of a file, whole lines, while no other process does. A line that an interrupted process
    left torn is ended first."""
    if not records:
        return
    file = pathlib.Path(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    text = "".join(_line(record) + "\n" for record in records).encode()
    with named(file), file.open("ab+") as stream:
        fcntl.flock(stream, fcntl.LOCK_EX)
        end = stream.seek(0, os.SEEK_END)
        if end:
            stream.seek(end - 1)
            if stream.read(1) != b"\n":
                text = b"\n" + text
        stream.write(text)
        stream.flush()
        os.fsync(stream.fileno())


def read(path: str | os.PathLike[str]) -> Read:
    """The records of a file. Lines that are none are counted and passed by."""
    return parse(pathlib.Path(path).read_bytes())


def parse(data: bytes) -> Read:
    """The records in a file's bytes."""
    found: list[dict[str, Any]] = []
    torn = foreign = 0
    for line in data.split(b"\n"):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
            _line(record)  # no number of JSON's is infinite, or none
        except (ValueError, RecursionError):  # UnicodeDecodeError is a ValueError
            torn += 1
            continue
        if isinstance(record, dict) and isinstance(record.get("schema"), int) and record["schema"] != SCHEMA:
            foreign += 1
        elif _wrong(record):
            torn += 1
        else:
            found.append(record)
    return Read(found, torn, foreign)


def write(path: str | os.PathLike[str], records: Iterable[Record]) -> None:
    """Write a file anew, whole or not at all."""
    with new_file(path) as file:
        file.write_text("".join(_line(record) + "\n" for record in records), encoding="utf-8")


# ---- Sets of records


def merge(*several: Iterable[Record]) -> list[dict[str, Any]]:
    """The union, in one order whatever that of the arguments is: by key, then by time, then by all the rest."""
    union = {identity(record): dict(record) for records in several for record in records}
    return sorted(union.values(), key=lambda record: (key_of(record), record.get("when", ""), identity(record)))


def prune(
    records: Iterable[Record], keep: Callable[[Record], bool] = lambda record: True, latest: int | None = None
) -> list[dict[str, Any]]:
    """The records that ``keep`` says yes of, and of each key the ``latest`` alone, where that is a number."""
    kept: dict[str, list[dict[str, Any]]] = {}
    for record in merge(records):
        if keep(record):
            kept.setdefault(key_of(record), []).append(record)
    return [record for group in kept.values() for record in (group if latest is None else group[-latest:])]


def derived(records: Sequence[Record]) -> dict[str, Any] | None:
    """What records of one key say together: wrong where one found wrong results, else right, with the median of the
    runs' medians and the last's counters, else the last one's reason. None of none."""
    ordered = merge(records)
    for record in ordered:
        if record["status"] == "refused" and record["reason"].startswith("wrong"):
            return record
    right = [record for record in ordered if record["status"] == "right"]
    if not right:
        return ordered[-1] if ordered else None
    timed = [median(record["seconds"]) for record in right if record["seconds"]]
    return {**right[-1], "seconds": [median(timed)] if timed else []}


def outcome(record: Record) -> dict[str, Any]:
    """What a derived record says of a candidate: status, reason, launches, and where it was timed its seconds."""
    seconds = {"seconds": record["seconds"][0]} if record["seconds"] else {}
    return {**{name: record[name] for name in ("status", "reason", "launches")}, **seconds}


def by_key(records: Iterable[Record]) -> dict[str, list[Record]]:
    """Records grouped by their keys."""
    groups: dict[str, list[Record]] = {}
    for record in records:
        groups.setdefault(key_of(record), []).append(record)
    return groups


def known(path: str, key: Record) -> dict[str, Any] | None:
    """What a file's records say of a key; None where it has none, or is not there."""
    try:
        state = pathlib.Path(path).stat()
    except OSError:
        return None
    group = _indexed(path, state.st_mtime_ns, state.st_size).get(key_of(key))
    return derived(group) if group else None


@functools.lru_cache(maxsize=2)
def _indexed(path: str, changed: int, size: int) -> dict[str, list[Record]]:
    return by_key(read(path).records)

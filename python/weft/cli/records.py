# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft records``: measurements of many machines merged, shown, pruned, and put to use in a library."""

from __future__ import annotations

import argparse
import datetime
import json
import pathlib
import sys
from collections.abc import Sequence
from typing import Any

from weft.cli import output
from weft.tables import table_class

DESCRIPTION = """\
Records are measurements, a line of JSON each, in files that are only appended to: what 'weft measure' writes, and this
machine's own (records.jsonl beside the cache), the default where no file is given. A record goes by its PTX's hash, the
GPU, the sizes and the way of measuring, whatever build of Weft compiled it."""

EXAMPLE = """\
examples:
  weft records show h100.jsonl
  weft records merge mine.jsonl theirs.jsonl -o all.jsonl     whatever the order and however often, the same file
  weft records prune all.jsonl --device "the GPU by its name" --latest 3
  weft records to-library libattention all.jsonl

exit codes: 0 done; 1 it failed, the reason is on stderr; 2 wrong usage"""


def add(commands: Any) -> None:
    """Add this command's part of the command line."""
    part = commands.add_parser(
        "records",
        help="measurements: merge, show, prune, tune a library by them",
        description=DESCRIPTION,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = part.add_subparsers(dest="action", required=True, metavar="ACTION")
    merge = actions.add_parser("merge", help="the union of several files, as one")
    merge.add_argument("files", nargs="+", metavar="FILE")
    merge.add_argument("-o", "--out", required=True, metavar="FILE", help="the union; it may be one of the files")
    merge.set_defaults(function=_merge)
    show = actions.add_parser("show", help="what was measured, by program, device and sizes")
    show.add_argument(
        "files",
        nargs="*",
        metavar="FILE",
        help="without any: this machine's, and those that ship with Weft",
    )
    show.add_argument("--json", action="store_true", help="the derived measurements as JSON")
    show.set_defaults(function=_show)
    prune = actions.add_parser("prune", help="drop records of a file")
    prune.add_argument("file", nargs="?", metavar="FILE")
    prune.add_argument("--device", metavar="NAME", help="keep those of this GPU alone")
    prune.add_argument("--since", metavar="DATE", help="keep those of this day (2026-01-31) and later")
    prune.add_argument("--latest", type=int, metavar="N", help="keep the last N of each measurement")
    prune.set_defaults(function=_prune)
    library = actions.add_parser("to-library", help="tune a library by records, and write it anew")
    library.add_argument("library", metavar="DIR")
    library.add_argument("files", nargs="+", metavar="FILE")
    library.add_argument("--device", metavar="NAME", help="whose records count (default: the only one's)")
    library.set_defaults(function=_to_library)


def _read(files: Sequence[str]) -> list[dict[str, Any]]:
    """The union of files; what is no record of them is said on standard error."""
    from weft.tuning import records

    found = []
    for file in files:
        read = records.read(file)
        for number, what in ((read.torn, "torn"), (read.foreign, "of another schema")):
            if number:
                print(f"weft records: {file}: {number} line{'s' * (number != 1)} passed by, {what}", file=sys.stderr)
        found.append(read.records)
    return records.merge(*found)


def _here() -> list[str]:
    """This machine's records, and those that ship with Weft."""
    from weft.programs import modelled
    from weft.tuning import store

    own = store.records_file()
    shipped = [str(modelled.FILE)] if modelled.FILE.exists() else []
    return [*([own] if own and pathlib.Path(own).exists() else []), *shipped]


def _merge(arguments: argparse.Namespace) -> int:
    from weft.tuning import records

    union = _read(arguments.files)
    records.write(arguments.out, union)
    print(f"{len(union)} records: {arguments.out}")
    return 0


def _show(arguments: argparse.Namespace) -> int:
    from weft.programs.modelled import POLICY
    from weft.tuning import records
    from weft.tuning.space import spelled

    found = [records.derived(group) for group in records.by_key(_read(arguments.files or _here())).values()]
    known = [each for each in found if each is not None]
    if arguments.json:
        print(json.dumps(known, indent=2))
        return 0
    table = table_class()("program", "target", "device", "sizes", "functions", "schedules", "µs", "result")
    for each in sorted(known, key=lambda each: (each.get("name", ""), _order(each))):
        schedules = ", ".join(f"{place} = {spelled(s)}" for place, s in each["schedules"].items()) or "default"
        sizes = ", ".join(f"{name}={size}" for name, size in each["sizes"].items())
        seconds = f"{each['seconds'][0] * 1e6:,.1f}" if each["seconds"] else "counted" if each["launches"] else ""
        status = f"{each['status']}, modelled" if each["policy"].startswith(POLICY) else each["status"]
        result = status + (f": {each['reason']}" if each["reason"] else "")
        functions = ", ".join(each["functions"])
        table.add_row(
            str(each.get("name", "")), each["target"], each["device"], sizes, functions, schedules, seconds, result
        )
    output.console().print(table)
    return 0


def _order(record: dict[str, Any]) -> tuple[Any, ...]:
    seconds = record["seconds"][0] if record["seconds"] else float("inf")
    return record["target"], record["device"], sorted(record["sizes"].items()), record["functions"], seconds


def _prune(arguments: argparse.Namespace) -> int:
    from weft.tuning import records, store

    file = arguments.file or store.records_file()
    found = _read([file])
    if arguments.latest is not None and arguments.latest < 1:
        raise ValueError(f"expected --latest to be at least 1, but got {arguments.latest}")
    if arguments.since:
        _check_day(arguments.since)
    devices = sorted({record["device"] for record in found})
    if arguments.device and found and arguments.device not in devices:
        raise ValueError(f"expected --device among {', '.join(devices)}, but got '{arguments.device}'")

    def keep(record: Any) -> bool:
        known = not arguments.device or record["device"] == arguments.device
        return known and (not arguments.since or record.get("when", "") >= arguments.since)

    kept = records.prune(found, keep, arguments.latest)
    records.write(file, kept)
    print(f"{len(kept)} records kept of {len(found)}: {file}")
    return 0


def _check_day(text: str) -> None:
    try:
        day = datetime.date.fromisoformat(text).isoformat()
    except ValueError:
        day = ""
    if day != text:  # 20260131 is a day too, but comes before 2026-01-31 as text
        raise ValueError(f"expected --since to be a day such as 2026-01-31, but got '{text}'")


def _to_library(arguments: argparse.Namespace) -> int:
    from weft.tuning.libraries import tune_library_by_records
    from weft.tuning.table import show

    if not pathlib.Path(arguments.library).is_dir():
        raise ValueError(f"expected a library, but there is no folder '{arguments.library}'")
    for result in tune_library_by_records(arguments.library, _read(arguments.files), arguments.device):
        show(result, output.console())
    print(f"wrote {arguments.library}")
    return 0

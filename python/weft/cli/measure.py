# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft measure``: the candidates of a bundle, checked and timed on this machine's GPU; the runtime is enough."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from weft.cli import output

DESCRIPTION = """\
Measures a bundle that 'weft tune --bundle' wrote: each candidate is checked against the references in it, and
timed. Its record is appended to a file as soon as it is there: an interrupted run goes on where it was. It needs a GPU
and the runtime (the package weft-attention-runtime), no compiler and no PyTorch. For the records: 'weft records'."""

EXAMPLE = """\
examples:
  weft tune attention.py --sizes B=2,H=16,N=4096 --bundle bundle    (where the compiler is)
  weft measure bundle -o h100.jsonl                                   (where the GPU is)
  weft records to-library libattention h100.jsonl                     (where the compiler is)

exit codes: 0 done; 1 it failed, the reason is on stderr; 2 wrong usage; 130 interrupted"""


def add(commands: Any) -> None:
    """Add this command's part of the command line."""
    part = commands.add_parser(
        "measure",
        help="time the candidates of a bundle on this machine",
        description=DESCRIPTION,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    part.add_argument("bundle", metavar="BUNDLE", help="the folder that 'weft tune --bundle' wrote")
    part.add_argument("-o", "--out", required=True, metavar="FILE.jsonl", help="the records, which are added to it")
    part.add_argument(
        "--device", metavar="D", help="'cuda:0', ... (default: the first GPU); 'simulator' tells no times"
    )
    part.add_argument("--json", action="store_true", help="print one JSON object")
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Measure, and say how many candidates are right."""
    from weft.runtime.devices import open_device
    from weft.tuning.bundles import measure_bundle, open_bundle

    device = open_device(arguments.device)
    facts = open_bundle(arguments.bundle)
    if device.simulated and not arguments.device:
        print("weft measure: expected a GPU; --device simulator takes the simulator, whose times tell nothing",
              file=sys.stderr)  # fmt: skip
        return 1
    found = []
    with output.progress(len(facts["candidates"]), "candidates") as advance:
        for record in measure_bundle(arguments.bundle, device, arguments.out):
            found.append(record)
            advance()
    right = sum(record["status"] == "right" for record in found)
    if arguments.json:
        print(json.dumps({"device": device.properties["model"], "measured": len(found), "right": right}))
    else:
        print(f"{len(found)} candidates on {device.properties['model']}, {right} right: {arguments.out}")
        for record in found:
            if record["status"] != "right":
                print(f"  {record['schedules'] or 'the default'}: {record['status']}: {record['reason']}")
    return 0

# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft plan``: what attention over many ranks would send and compute."""

from __future__ import annotations

import argparse
import json
from typing import Any

from weft.cli.choices import described, gpu_names
from weft.cli.draw import evaluated

DESCRIPTION = """\
Says what weft.distributed.attend would do with a sequence on so many ranks: the bytes that each sends, the steps, and
the time by a roofline of the GPU and of the links between ranks. Nothing is run. PATTERN is a Python expression over
the names of weft.

    weft plan "causal() & window(4096, 0)" --length 1048576 --ranks 8,64,512 --heads 32 --head-dim 128"""


def add(commands: Any) -> None:
    """Add this command's part of the command line."""
    part = commands.add_parser(
        "plan",
        help="what attention over many ranks would send and compute",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    part.add_argument("pattern", metavar="PATTERN", help="an expression over weft's names")
    part.add_argument("--length", type=int, required=True, metavar="N", help="tokens of the whole sequence")
    part.add_argument("--ranks", required=True, metavar="P[,P...]", help="how many ranks; a plan for each")
    part.add_argument("--heads", type=int, required=True, metavar="H")
    part.add_argument("--head-dim", type=int, required=True, metavar="D")
    part.add_argument("--kv-heads", type=int, metavar="H", help="of keys and values (default: as many as of queries)")
    part.add_argument("--batch", type=int, default=1, metavar="B")
    part.add_argument("--dtype", default="bf16", help="bf16, fp16, fp32 or tf32 (default: bf16)")
    part.add_argument("--rotate", default="ring", help="ring, all-to-all or all-gather (default: ring)")
    part.add_argument("--layout", default="consecutive", help="consecutive (the default), head-tail or counted")
    part.add_argument("--gpu", metavar="GPU", help=described(gpu_names()))
    part.add_argument("--link", type=float, default=50.0, metavar="GB/S", help="between two ranks (default: 50)")
    part.add_argument("--backward", action="store_true", help="the backward instead of the forward")
    part.add_argument("-o", "--out", metavar="FILE", help="draw the last plan, .svg or .png")
    part.add_argument("--json", action="store_true", help="figures as JSON, a line for each plan")
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Plan, and print."""
    import weft

    counts = [int(each) if each.strip().isdigit() else 0 for each in arguments.ranks.split(",")]
    if min(counts) < 1:
        raise ValueError(f"expected --ranks to be numbers of at least 1, P[,P...], but got '{arguments.ranks}'")
    pattern = evaluated(arguments.pattern)
    for ranks in counts:
        found = weft.distributed.plan(
            *(pattern, arguments.length, ranks),
            heads=arguments.heads,
            kv_heads=arguments.kv_heads,
            head_dim=arguments.head_dim,
            batch=arguments.batch,
            dtype=arguments.dtype,
            rotate=arguments.rotate,
            layout=arguments.layout,
            gpu=arguments.gpu,
            link=arguments.link * 1e9,
            backward=arguments.backward,
        )
        print(json.dumps(found.figures()) if arguments.json else f"{found}\n")
    if arguments.out:
        found.draw(arguments.out, arguments.pattern)
        if not arguments.json:
            print(f"drew {arguments.pattern} into {arguments.out}")
    return 0

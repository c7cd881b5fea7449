# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""``weft tune``: the schedules of a program's kernels tried, checked, ranked, and the best kept."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from typing import Any

from weft.cli import output
from weft.cli.arguments import read
from weft.cli.choices import described, gpu_names, target_names
from weft.cli.files import load_file, parted, select
from weft.cli.shapes import sizes_of

DESCRIPTION = """\
Tries schedules of every attention kernel of a program, forward and backward: compiles them on all cores, checks each
one's results against the program in float32, refuses what is wrong, and ranks the others, by their time where there is
a GPU and elsewhere by a cost model that is fed with the simulator's counters and ptxas' report. The choice is kept for
the sizes' bucket: later calls of the program, 'weft compile' and -o take it. What was measured is kept too: an
interrupted run goes on where it was, and a candidate more is measured alone.

With --library DIR the programs of a library are tuned, and the library is written anew with a plan for each bucket."""

EXAMPLE = """\
examples:
  weft tune attention.py --signature "q:fp16[B,H,N,64]:16, k:fp16[B,H,N,64]:16, v:fp16[B,H,N,64]:16" \\
      --sizes B=2,H=16,N=1024 --sizes B=2,H=16,N=8192 -o libattention
  weft tune attention.py --sizes B=2,H=16,N=1024 --candidate forward=64x64x4x3 --candidate forward=128x64x8x2
  weft tune --library libattention --sizes B=1,H=32,N=4096

exit codes: 0 done; 1 it failed, the reason is on stderr; 2 wrong usage; 130 interrupted"""


def add(commands: Any) -> None:
    """Add this command's part of the command line."""
    part = commands.add_parser(
        "tune",
        help="try schedules of a program's kernels and keep the best",
        description=DESCRIPTION,
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    part.add_argument("file", nargs="?", metavar="FILE.py[:NAME]", help="the file, and the program in it")
    part.add_argument("--library", metavar="DIR", help="tune the programs of a library instead, and write it anew")
    part.add_argument("-o", "--out", metavar="DIR", help="write a library with the choices, and all kept before")
    part.add_argument(
        "--target",
        metavar="T[,T...]",
        help=f"one or several of {described(target_names())}; of a library, its own are the default",
    )
    part.add_argument("--signature", metavar="S", help="types of the inputs, and values of the other arguments")
    part.add_argument("--sizes", action="append", metavar="B=1,N=1024", help="sizes to tune for; repeat for more")
    part.add_argument("--input", action="append", default=[], metavar="NAME=FILE.npy",
                      help="an input that cannot be made up, such as lengths; no size is reduced then")  # fmt: skip
    part.add_argument("--candidate", action="append", default=[], metavar="PLACE=SCHEDULE",
                      help="a schedule to try, in the place of those generated: [N.]ROLE=RxCxWxS[xK[xP[x1]]], rows, "
                      "columns, warps, stages, and channels of wide values (else 0), programs of a cluster, 1 where "
                      "one block on each multiprocessor goes over the programs, of the role forward, backward.query, "
                      "backward.keys or backward.values (of attention N); or rows and warps of another kernel, such as "
                      "forward.rows.0=32x4; repeat for more")  # fmt: skip
    part.add_argument("--limit", type=_limit, default=16, metavar="N",
                      help="candidates for each kernel (default: 16); 'all': all that the target can hold, up to 512, "
                      "and of more these 512 that optuna draws")  # fmt: skip
    part.add_argument("--longest", type=int, default=8192, metavar="N",
                      help="tokens that are simulated at most; the rest is extrapolated (default: 8192)")  # fmt: skip
    part.add_argument("--gpu", metavar="G", help=f"whose rates the cost model takes: {', '.join(gpu_names())}")
    part.add_argument("--judge", choices=("model", "cycles"), default="model",
                      help="what ranks without a GPU: the cost model (default), or the loop model, which times the "
                      "kernels' main loops by their machine code and needs ptxas and nvdisasm")  # fmt: skip
    part.add_argument("--jobs", type=int, metavar="N", help="processes (default: one a core)")
    part.add_argument("--executor", metavar="FILE.py:NAME",
                      help="what runs the candidates in the place of processes here: a function in a file that gives "
                      "an executor, of concurrent.futures, of a Dask client or of submitit")  # fmt: skip
    part.add_argument("--folder", metavar="DIR", help="a folder that the executor's workers see, for inputs")
    part.add_argument("--seed", type=int, metavar="N",
                      help="of inputs that are made up (default: a fresh one, which is printed)")  # fmt: skip
    part.add_argument("--records", metavar="FILE", help="measurements: taken from there, and added")
    part.add_argument("--bundle", metavar="DIR",
                      help="measure nothing: write the candidates, compiled, with inputs and references, for "
                      "'weft measure' on other machines")  # fmt: skip
    part.add_argument("--forward-only", action="store_true", help="leave the backward out")
    part.add_argument("--json", action="store_true", help="report as JSON")
    part.set_defaults(function=run)


def run(arguments: argparse.Namespace) -> int:
    """Tune, print a table for each target and sizes, and write what is asked for."""
    from weft.tuning.table import show

    if wrong := _wrong_usage(arguments):
        print(f"weft tune: {wrong}", file=sys.stderr)
        return 2
    if arguments.bundle:
        with output.bars() as progress:
            return _bundle(arguments, progress)
    results = []
    try:
        with output.bars() as progress:
            for result in (_of_library if arguments.library else _of_program)(arguments, progress):
                results.append(result)
                if not arguments.json:
                    show(result, output.console())
    except KeyboardInterrupt:
        print(
            "weft tune: interrupted; what was measured is kept: the same command goes on from there",
            file=sys.stderr,
        )
        return 130
    if arguments.json:
        print(json.dumps([result.as_dict() for result in results], indent=2))
    elif written := arguments.library or arguments.out:
        print(f"wrote {written}")
    return 0


def _wrong_usage(arguments: argparse.Namespace) -> str:
    if bool(arguments.file) == bool(arguments.library):
        return "expected either FILE.py or --library DIR"
    for option in ("signature", "out", "input", "bundle"):
        if arguments.library and getattr(arguments, option):
            return f"expected no --{option} with --library, which is written anew from what is in it"
    if (
        (arguments.limit is not None and arguments.limit < 1)
        or arguments.longest < 1
        or (arguments.jobs is not None and arguments.jobs < 1)
    ):
        return "expected --limit, --longest and --jobs to be at least 1"
    if arguments.seed is not None and arguments.seed < 0:
        return "expected --seed to be at least 0"
    if arguments.bundle and (len(arguments.sizes or ()) > 1 or "," in (arguments.target or "")):
        return "expected one target and one --sizes with --bundle"
    return ""


def _of_program(arguments: argparse.Namespace, progress: Any) -> Iterator[Any]:
    from weft.targets import default_target
    from weft.tuning.run import tune

    program = _program(arguments)
    targets = [target.strip() for target in (arguments.target or default_target()).split(",")]
    inputs = _inputs(arguments.input)
    executor = _executor(arguments.executor)
    for target in targets:
        for sizes in arguments.sizes or [""]:
            yield tune(
                program,
                target=target,
                sizes=sizes_of(sizes),
                signature=arguments.signature,
                inputs=inputs,
                candidates=_candidates(arguments.candidate),
                progress=progress,
                backward=not arguments.forward_only,
                limit=arguments.limit,
                longest=arguments.longest,
                gpu=arguments.gpu,
                judge=arguments.judge,
                jobs=arguments.jobs,
                executor=executor,
                folder=arguments.folder,
                records=arguments.records,
                inputs_seed=arguments.seed,
            )
    if arguments.out:
        program.compile(targets, arguments.signature, arguments.out, differentiate=not arguments.forward_only)


def _program(arguments: argparse.Namespace) -> Any:
    path, name = parted(arguments.file)
    return select(load_file(path), str(path), name, ("__weft_program__",), "program")[0]


def _inputs(texts: list[str]) -> dict[str, Any]:
    found = {}
    for text in texts:
        name, sign, file = text.partition("=")
        if not sign:
            raise ValueError(f"expected an input such as lengths=lengths.npy, but got '{text}'")
        found[name] = read(file)
    return found


def _bundle(arguments: argparse.Namespace, progress: Any) -> int:
    """Write one bundle."""
    from weft.tuning.run import bundle

    count = bundle(
        _program(arguments),
        arguments.bundle,
        target=arguments.target,
        sizes=sizes_of((arguments.sizes or [""])[0]),
        signature=arguments.signature,
        inputs=_inputs(arguments.input),
        candidates=_candidates(arguments.candidate),
        limit=arguments.limit,
        backward=not arguments.forward_only,
        jobs=arguments.jobs,
        inputs_seed=arguments.seed,
        progress=progress,
    )
    print(f"{count} candidates: {arguments.bundle}\nwhere the GPU is: weft measure {arguments.bundle} -o FILE.jsonl")
    return 0


def _of_library(arguments: argparse.Namespace, progress: Any) -> Iterator[Any]:
    from weft.tuning.libraries import tune_library
    from weft.tuning.tuner import Options

    options = Options(
        candidates=_candidates(arguments.candidate),
        limit=arguments.limit,
        gpu=arguments.gpu,
        judge=arguments.judge,
        jobs=arguments.jobs,
        longest=arguments.longest,
        executor=_executor(arguments.executor),
        folder=arguments.folder,
        records=arguments.records,
        seed=arguments.seed,
        progress=progress,
    )
    targets = [target.strip() for target in arguments.target.split(",")] if arguments.target else []
    yield from tune_library(arguments.library, [sizes_of(each) for each in arguments.sizes or [""]], options, targets)


def _limit(text: str) -> int | None:
    return None if text == "all" else int(text)


def _executor(text: str | None) -> Any:
    """The executor that a function in a file gives."""
    if not text:
        return None
    path, name = parted(text)
    make = getattr(load_file(path), name, None) if name else None
    if not callable(make):
        raise ValueError(f"expected FILE.py:NAME, a function that gives an executor, but got '{text}'")
    executor = make()
    if not hasattr(executor, "submit"):
        raise ValueError(f"expected '{text}' to give an executor, which has submit, but got {executor!r}")
    return executor


def _candidates(texts: list[str]) -> dict[str, list[Any]] | None:
    """Schedules by place or role; None where there are none."""
    from weft.tuning.space import parse, role_of

    found: dict[str, list[Any]] = {}
    for text in texts:
        place, _, schedule = text.partition("=")
        try:
            role_of(place)
        except ValueError as error:
            raise ValueError(f"expected a candidate such as forward=128x64x4x3, but got '{text}': {error}") from None
        found.setdefault(place, []).append(parse(schedule))
    return found or None

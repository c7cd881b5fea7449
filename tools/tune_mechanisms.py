# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The choices that ship with Weft: tunes the papers' mechanisms at representative sizes, without a GPU.

    make choices
    .venv/bin/python tools/tune_mechanisms.py [--case TEXT ...] [--target T] [--limit N] [--longest N] [--judge J]
                                              [--jobs N]
    .venv/bin/python tools/tune_mechanisms.py --forms

Writes python/weft/programs/modelled.jsonl, a record for each mechanism, target and sizes whose choice is not the
default one, ranked by the loop model (`weft tune --judge cycles`); with --case, those of the cases named by a part of
their names are replaced. What was measured is in the cache: an interrupted run goes on where it was. --forms tunes
nothing: it says anew which IR the records are of, after a change of what programs are spelled like.
"""

from __future__ import annotations

import argparse
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
import weft
from weft.programs import modelled
from weft.programs.buckets import Symbols
from weft.programs.choices import program_hash
from weft.programs.program import Program
from weft.runtime.plans import bind
from weft.targets import targets
from weft.tuning import records
from weft.tuning.run import subject_of
from weft.tuning.tuner import Options, tune_subject

#: larger than any size
UNBOUNDED = 2**31
#: times as fast as the default that a whole program has to be for its choice to ship
LEAST = 1.01


def heads(*sizes: int, dtype: torch.dtype = torch.bfloat16) -> list[Any]:
    """Queries, keys and values."""
    return [torch.zeros(sizes, dtype=dtype) for _ in "qkv"]


def expansion(few: int, many: int, kernel: int, perceptron: bool) -> dict[str, Any]:
    """The weights of an operand of SAS, heads of 64 and 96 channels."""
    shapes: dict[str, tuple[int, ...]] = {
        "conv1.weight": (many, few, kernel),
        "conv1.bias": (many,),
        "conv2.weight": (many, many, kernel),
        "conv2.bias": (many,),
    }
    if perceptron:
        shapes |= {"linear1.weight": (96, 64), "linear1.bias": (96,), "linear2.weight": (96, 96), "linear2.bias": (96,)}
    return {name: torch.zeros(shape, dtype=torch.bfloat16) for name, shape in shapes.items()}


def attention(q: Any, k: Any, v: Any) -> Any:
    return weft.attention.attend(q, k, v, weft.causal())


def sfa(q: Any, k: Any, v: Any) -> Any:
    return weft.attention.sfa(q, k, v)


def sema(q: Any, k: Any, v: Any, *lepe: Any, window: Any, grid: Any) -> Any:
    return weft.attention.sema(q, k, v, *lepe, window=window, grid=grid)


def sas(q: Any, k: Any, v: Any) -> Any:
    wide = functools.partial(expansion, q.shape[1], 3 * q.shape[1], 3)
    return weft.attention.sas(q, k, v, wide(True), wide(True), wide(False), kernel=3)


def gau(u: Any, v: Any, g: Any) -> Any:
    vectors = [torch.zeros(u.shape[3], dtype=u.dtype) for _ in range(4)]
    return weft.attention.gau(u, v, g, *vectors, weft.causal())


@dataclasses.dataclass(frozen=True)
class Case:
    """A mechanism as it is called. ``beyond``: the choice is taken for longer sequences too."""

    name: str
    call: Callable[[], Any]
    beyond: bool = True


def cases() -> Iterator[Case]:
    """The papers' sizes."""
    for size in (64, 128):
        for dtype in (torch.float16, torch.bfloat16):
            kind = str(dtype).removeprefix("torch.")
            yield Case(
                f"causal attention, {kind}, heads of {size}",
                functools.partial(lambda s, d: attention(*heads(2, 16, 2048, s, dtype=d)), size, dtype),
            )
    for count in (8, 16):
        yield Case(f"SFA, {count} heads of 128", functools.partial(lambda h: sfa(*heads(1, h, 4096, 128)), count))
    yield Case(
        "SEMA, windows of 64 tokens, heads of 64",
        lambda: sema(*heads(2, 8, 4096, 64), torch.zeros(512, 1, 3).bfloat16(), window=64, grid=None),
    )
    for side, count in ((56, 2), (28, 4), (14, 8)):
        yield Case(
            f"SEMA, windows of 7 × 7 on {side} × {side}, {count} heads of 32",
            functools.partial(
                lambda s, h: sema(
                    *heads(64, h, s * s, 32),
                    torch.zeros(h * 32, 1, 3, 3).bfloat16(),
                    window=(7, 7),
                    grid=(s, s),
                ),
                side,
                count,
            ),
        )
    yield Case("SAS, 125M", lambda: sas(*heads(4, 12, 512, 64)))
    yield Case(
        "GAU, 1,536 channels",
        lambda: gau(*(torch.zeros(2, 1, 1024, size).bfloat16() for size in (128, 1536, 1536))),
    )


class Called(Exception):  # no error: what a call would run
    """A program and what it is called with."""


def called(call: Callable[[], Any]) -> tuple[Any, Any]:
    """The program that a call runs, and the call bound."""

    def stop(program: Any, given: Any) -> Any:
        raise Called(program, given)

    kept = Program.trace
    Program.trace = stop  # type: ignore[method-assign,assignment]
    try:
        call()
    except Called as found:
        return found.args[0], found.args[1]
    finally:
        Program.trace = kept  # type: ignore[method-assign]
    raise ValueError("expected a call that runs a program")


def guards(result: Any, traced: Any, beyond: bool) -> list[list[Any]]:
    """The bucket of a result, without an end where more of the same keeps the ranking: batches and heads beyond those
    that fill a GPU, and longer sequences."""
    symbols = Symbols.of([{"dims": each.dims} for each in traced.inputs])
    batch = "*".join(symbols.batch)
    found = []
    for each in result.guards:
        open_ended = each["size"] == batch or beyond
        found.append([each["size"], each["at_least"], UNBOUNDED if open_ended else each["below"]])
    return found


def record_of(case: Case, target: str, options: argparse.Namespace) -> dict[str, Any] | None:
    """What the tuner chooses for a case, as a record; None where the default is as fast."""
    program, call = called(case.call)
    traced = program.trace(call)
    sizes = bind({"inputs": [{"dims": each.dims} for each in traced.inputs]}, [*call.arrays, *traced.captured])
    how = Options(limit=options.limit, judge=options.judge, longest=options.longest, jobs=options.jobs)
    result = tune_subject(subject_of(traced, backward=True), target, sizes, how)
    said = f"{case.name}, {target}: {result.default_seconds / result.seconds:.2f} ×, {len(result.rows)} candidates"
    print(said, {place: "x".join(map(str, each)) for place, each in result.schedules.items()}, flush=True)
    if result.default_seconds < LEAST * result.seconds:
        return None
    form = modelled.form_hash(traced.plain)
    key = {
        "ptx": form,  # of no one form: the choice is of several functions
        "target": target,
        "device": result.device,
        "policy": f"{modelled.POLICY}, {options.judge}",
        "functions": [traced.name, f"{traced.name}.backward"],
        "sizes": dict(result.sizes),
    }
    found = {"status": "right", "samples": [result.seconds]}
    of = {"program": program_hash(traced.plain), "name": case.name, "tuned_for": result.sizes}
    record = records.measured(key, found, schedules=result.schedules, **of)
    return {**record, "form": form, "guards": guards(result, traced, case.beyond)}


def kept_records() -> dict[tuple[str, str], dict[str, Any]]:
    """The records of the file whose cases are still there, by name and target."""
    if not modelled.FILE.exists():
        return {}
    names = {each.name for each in cases()}
    found = {(each["name"], each["target"]): each for each in records.read(modelled.FILE).records}
    return {key: each for key, each in found.items() if key[0] in names}


def renewed(record: dict[str, Any]) -> dict[str, Any]:
    """A record of the IR that its case has now."""
    program, call = called(next(each.call for each in cases() if each.name == record["name"]))
    plain = program.trace(call).plain
    return {
        **record,
        "form": modelled.form_hash(plain),
        "ptx": modelled.form_hash(plain),
        "program": program_hash(plain),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description="Tune the mechanisms, for the choices that ship with Weft.")
    parser.add_argument("--case", action="append", help="a part of the names of the cases to tune (default: all)")
    parser.add_argument("--target", action="append", choices=tuple(targets()))
    parser.add_argument("--limit", type=int, default=3, help="candidates for each kernel (default: 3)")
    parser.add_argument("--longest", type=int, default=512, help="tokens that are simulated at most")
    parser.add_argument("--jobs", type=int, help="processes (default: one a core)")
    parser.add_argument("--judge", choices=("model", "cycles"), default="cycles")
    parser.add_argument("--forms", action="store_true", help="tune nothing: say anew which IR the records are of")
    options = parser.parse_args()
    kept = kept_records()
    if options.forms:
        records.write(modelled.FILE, [renewed(kept[key]) for key in sorted(kept)])
        return
    wanted = [each for each in cases() if not options.case or any(text in each.name for text in options.case)]
    wanted_targets = options.target or list(targets())[:2]  # those that others' code runs on too
    for case in wanted:
        for target in wanted_targets:
            started = time.perf_counter()
            record = record_of(case, target, options)
            kept.pop((case.name, target), None)
            if record:
                kept[case.name, target] = record
            records.write(modelled.FILE, [kept[key] for key in sorted(kept)])
            print(f"  {time.perf_counter() - started:.0f} s", flush=True)


if __name__ == "__main__":
    main()

# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""A case measured: compiled by both, run on the simulator by both, compared with float64."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import warnings
import zlib
from typing import Any

import numpy as np
import torch
from weft.targets import occupancy, target_named

from . import CASES, Case, load
from .compiled import TARGET, Made, Peer, Request, by_weft, request, warm
from .counted import static

_state: dict[str, Any] = {}
#: how far rounding to a type may put an element, over the largest that is expected
ROUNDING = {
    torch.float64: 1e-12,
    torch.float32: 2e-5,
    torch.float16: 2e-3,
    torch.bfloat16: 1.2e-2,
    torch.float8_e4m3fn: 0.07,
    torch.float8_e5m2: 0.13,
}


def begin(folder: pathlib.Path, peer: bool = True) -> None:
    """Make this process one that measures, with its caches in a folder: Weft stands in Triton's place, and Triton in a
    process beside it."""
    warnings.simplefilter("ignore")
    os.environ["WEFT_CACHE"] = "0"
    os.environ.setdefault("WEFT_AUTOTUNE", "first")
    os.environ["WEFT_CACHE_DIR"] = str(folder / f"weft-{os.getpid()}")
    torch.set_num_threads(1)
    from weft.triton.replace import replace

    replace()
    load()
    by_weft(warm())
    _state["peer"] = Peer(folder / f"triton-{os.getpid()}") if peer else None


def made(name: str, seed: int) -> Case:
    """A case, whose inputs are its own whatever else is measured."""
    torch.manual_seed(seed + zlib.crc32(name.encode()) % 2**20)
    return CASES[name]()


def requested(case: Case, target: str = TARGET) -> Request:
    return request(case.kernel, case.arguments, case.constants, case.warps, case.stages, target)


def run(wanted: Request, code: Made, case: Case, checks: str) -> tuple[dict[str, torch.Tensor], Any]:
    """The tensors after a launch on copies of the case's, and the simulator's report."""
    import weft.simulator

    memory: dict[int, np.ndarray] = {}
    tensors: dict[str, torch.Tensor] = {}
    given: list[Any] = []
    for name, kind in wanted.types.items():
        value = case.arguments[name]
        if isinstance(value, torch.Tensor):
            storage = value.untyped_storage()
            if storage.data_ptr() not in memory:
                memory[storage.data_ptr()] = np.frombuffer(bytes(storage), np.uint8).copy()
            whole = torch.from_numpy(memory[storage.data_ptr()])
            tensors[name] = whole.view(value.dtype).as_strided(value.shape, value.stride(), value.storage_offset())
            given.append(memory[storage.data_ptr()][value.storage_offset() * value.element_size() :])
        else:
            given.append({"i32": np.int32, "i64": np.int64, "fp32": np.float32, "i1": np.bool_}[kind](value))
    given += [np.uint64(0)] * (code.parameters - len(given))
    report = weft.simulator.launch(
        code.ptx, code.entry, case.grid, 32 * code.warps, given, shared=code.shared_bytes, checks=checks, threads=1
    )
    return tensors, report


def errors(case: Case, tensors: dict[str, torch.Tensor]) -> dict[str, float]:
    """For each output, how far it is from float64, over the largest element; above 1: over what is allowed."""
    found = {}
    for name, exact in case.expected.items():
        got = tensors[name].double().reshape(exact.shape)
        allowed = case.tolerance if case.tolerance is not None else ROUNDING.get(tensors[name].dtype, 0.0)
        largest = float(exact.abs().max()) or 1.0
        off = float((got - exact).abs().max()) / largest
        found[name] = 1e9 if not np.isfinite(off) else off / allowed if allowed else (0.0 if off == 0 else 1e9)
    return found


def beside(ours: dict[str, torch.Tensor], theirs: dict[str, torch.Tensor]) -> dict[str, float]:
    """How far each tensor is from Triton's, over twice what rounding explains: products in TF32 round in both."""
    found = {}
    for name, tensor in theirs.items():
        exact, got = tensor.double(), ours[name].double()
        differ = (exact != got) & ~(exact.isnan() & got.isnan())
        found[f"{name} beside Triton's"] = 0.0
        if differ.any():
            allowed = 2 * max(ROUNDING.get(tensor.dtype, 0.0), 2e-3)
            largest = float(exact[exact.isfinite()].abs().max()) or 1.0
            off = float((got - exact)[differ].abs().max()) / largest
            found[f"{name} beside Triton's"] = off / allowed if np.isfinite(off) else 1e9
    return found


def counted(report: Any) -> dict[str, int]:
    """The counters of a launch that the table compares."""
    total = report.profile.total()
    return {
        "instructions": report.counters["warp_instructions"],
        "read": total.global_sectors_read,
        "written": total.global_sectors_written,
        "wavefronts": total.shared_wavefronts,
        "barriers": report.counters["barriers"],
    }


def measure(
    name: str, seed: int, folder: pathlib.Path | None, target: str = TARGET, warps: float = 1, stages: int | None = None
) -> dict[str, Any]:
    """A row of the table as JSON holds it; the PTX goes to the folder. ``warps``: as many times the kernel's own, 1 to
    16; ``stages`` in place of its own."""
    row: dict[str, Any] = {"name": name, "target": target, "seed": seed, "findings": [], "error": "", "peer_error": ""}
    try:
        case = made(name, seed)
        count = min(max(int(case.warps * warps), 1), 16)
        case = dataclasses.replace(case, warps=count, stages=stages or case.stages)
        wanted = requested(case, target)
        code = by_weft(wanted)
        _keep(folder, name, "weft", code)
        row["weft"], row["findings"], ours = _figures(wanted, code, case, "all")
    except Exception as error:
        row["error"] = f"{type(error).__name__}: {error}"
        return row
    try:
        wanted = dataclasses.replace(wanted, constants=wanted.constants | case.peer_constants)
        code = _state["peer"].compile(wanted)
        _keep(folder, name, "triton", code)
        row["triton"], _, theirs = _figures(wanted, code, case, "none")
        if not case.expected:
            row["weft"]["off"] |= case.known | beside(ours, theirs)
    except Exception as error:
        row["peer_error"] = f"{type(error).__name__}: {error}"
    return row


def _keep(folder: pathlib.Path | None, name: str, side: str, code: Made) -> None:
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{name.replace(' ', '_')}.{side}.ptx").write_text(code.ptx)


def _figures(wanted: Request, code: Made, case: Case, checks: str) -> tuple[dict[str, Any], list[str], Any]:
    """What the table compares, the simulator's findings, and the tensors after the launch."""
    tensors, report = run(wanted, code, case, checks)
    found = static(code)
    blocks = occupancy(found.registers, code.warps, code.shared_bytes, target_named(wanted.target))
    figures = counted(report) | vars(found) | {"blocks": blocks, "shared": code.shared_bytes}
    figures |= {"seconds": code.seconds, "off": errors(case, tensors)}
    return figures, [str(each) for each in report.findings], tensors


__all__ = ["begin", "made", "measure", "requested", "run"]

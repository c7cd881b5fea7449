# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""The GPU, its driver and clocks, and the versions of what was measured."""

from __future__ import annotations

import csv
import datetime
import hashlib
import importlib.metadata
import io
import shutil
import subprocess
from typing import Any

from weft.errors import Error
from weft.first_gpu.cases import CHECKOUT
from weft.native import load
from weft.runtime.devices import open_device

_PACKAGES = ("weft-attention", "torch", "triton", "flash-attn", "flash-attn-3", "flash-attn-4", "numpy")
#: what nvidia-smi is asked for, and under which name it is reported
_QUERIED = {
    "driver_version": "driver", "vbios_version": "VBIOS", "clocks.sm": "clock of multiprocessors, MHz",
    "clocks.max.sm": "highest, MHz", "clocks.mem": "clock of memory, MHz", "power.limit": "power limit, W",
    "temperature.gpu": "temperature, °C", "ecc.mode.current": "ECC", "mig.mode.current": "MIG",
}  # fmt: skip


def gpu() -> dict[str, Any]:
    """The first GPU's facts, as the runtime knows them. Raises Error where there is none."""
    if not load("_runtime").cuda_device_count():
        raise Error(
            "expected a GPU, but NVIDIA's driver gives none: `weft doctor` says what was found of it. On a machine "
            "with a GPU, install NVIDIA's driver (R525 or newer); in a container, give it the GPU"
        )
    facts = open_device("cuda:0").properties
    return {**facts, "capability": ".".join(map(str, facts["capability"]))}


def clocks() -> dict[str, str]:
    """What nvidia-smi says of the driver and of clock rates; empty where it cannot be asked."""
    found: dict[str, str] = {}
    tool = shutil.which("nvidia-smi")
    for query, name in _QUERIED.items() if tool else ():
        command = [str(tool), "--id=0", f"--query-gpu={query}", "--format=csv,noheader,nounits"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        for row in csv.reader(io.StringIO(done.stdout)) if done.returncode == 0 else ():
            found[name] = row[0].strip()
    return found


def versions() -> dict[str, str]:
    """The packages' versions that are installed, and CUDA's of PyTorch."""
    found = {}
    for name in _PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def commit() -> str:
    """The commit of the checkout; where files differ from it, with a digest of the changes. "" outside of one."""
    git = shutil.which("git")
    if git is None or not (CHECKOUT / ".git").exists():
        return ""

    def said(*arguments: str) -> str:
        done = subprocess.run([git, "-C", str(CHECKOUT), *arguments], capture_output=True, text=True, check=False)
        return done.stdout.strip()

    number, changes = said("rev-parse", "HEAD"), said("diff", "HEAD")
    return f"{number} and changes {hashlib.sha256(changes.encode()).hexdigest()[:12]}" if changes else number


def today() -> str:
    """The date and time, UTC."""
    return datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC")

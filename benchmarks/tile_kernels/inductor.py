# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Kernels that torch.compile writes, with the arguments of a launch, from the folder that WEFT_INDUCTOR_LAUNCHES names.

inductor_launches.py has made it. Results are compared with Triton's.
"""

from __future__ import annotations

import functools
import importlib
import os
import pathlib
import sys

import torch

from tile_kernels import Case, case
from tile_kernels.compiled import innermost


def launched(file: pathlib.Path) -> Case:
    kept = torch.load(file, weights_only=False)
    module, name = kept["kernel"]
    kernel = innermost(getattr(importlib.import_module(module), name))
    warps, stages = kept["schedule"]
    return Case(kernel, kept["grid"], kept["arguments"], kept["constants"], {}, warps, stages)


folder = pathlib.Path(os.environ["WEFT_INDUCTOR_LAUNCHES"])
sys.path.insert(0, str(folder))
for each in sorted(folder.glob("*.pt")):
    case(torch.load(each, weights_only=False)["name"])(functools.partial(launched, each))

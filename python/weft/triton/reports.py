# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Benchmarks over a range of sizes: ``triton.testing.perf_report``, printed as a table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from weft.folders import new_file


@dataclass
class Benchmark:
    """What a benchmark varies and shows: arguments ``x_names`` over ``x_vals``, a column for each of ``line_vals`` of
    ``line_arg``, ``args`` fixed. The settings of plots are kept and without effect."""

    x_names: Sequence[str]
    x_vals: Iterable[Any]
    line_arg: str
    line_vals: Sequence[Any]
    line_names: Sequence[str]
    plot_name: str
    args: dict[str, Any] = field(default_factory=dict)
    xlabel: str = ""
    ylabel: str = ""
    x_log: bool = False
    y_log: bool = False
    styles: Any = None


class Mark:
    """A function of measurements with its benchmarks."""

    def __init__(self, fn: Callable[..., Any], benchmarks: Benchmark | Sequence[Benchmark]):
        self.fn = fn
        self.benchmarks = [benchmarks] if isinstance(benchmarks, Benchmark) else list(benchmarks)

    def run(
        self,
        show_plots: bool = False,
        print_data: bool = False,
        save_path: str = "",
        return_df: bool = False,
        **kwargs: Any,
    ) -> Any:
        """Measure every size: a list of rows for each benchmark with ``return_df``, else None. ``print_data`` prints
        them, ``save_path`` is a folder for tables of comma-separated values. No plot is drawn."""
        tables = [self._rows(bench, kwargs) for bench in self.benchmarks]
        for bench, table in zip(self.benchmarks, tables, strict=True):
            lines = [",".join(map(str, row)) for row in [[*bench.x_names, *bench.line_names], *table]]
            if print_data:
                print(f"{bench.plot_name}:", *lines, sep="\n")
            if save_path:
                folder = Path(save_path)
                folder.mkdir(parents=True, exist_ok=True)
                with new_file(folder / f"{bench.plot_name}.csv") as file:
                    file.write_text("\n".join(lines) + "\n")
        return (tables if len(tables) > 1 else tables[0]) if return_df else None

    def _rows(self, bench: Benchmark, kwargs: dict[str, Any]) -> list[list[Any]]:
        rows = []
        for x in bench.x_vals:
            values = list(x) if isinstance(x, (list, tuple)) else [x] * len(bench.x_names)
            named = dict(zip(bench.x_names, values, strict=True))
            found = [self.fn(**named, **{bench.line_arg: line}, **bench.args, **kwargs) for line in bench.line_vals]
            rows.append([*values, *(each[0] if isinstance(each, (list, tuple)) else each for each in found)])
        return rows


def perf_report(benchmarks: Benchmark | Sequence[Benchmark]) -> Callable[[Callable[..., Any]], Mark]:
    """Decorate a function of measurements so that its ``run()`` makes a table of each benchmark."""
    return lambda fn: Mark(fn, benchmarks)


def assert_close(x: Any, y: Any, atol: float | None = None, rtol: float | None = None, err_msg: str = "") -> None:
    """Raise AssertionError unless two arrays are equal within ``atol`` + ``rtol`` times the second, 0.01 and 0 by
    default; NaN equals NaN."""
    a, b = (np.asarray(v.detach().cpu().float() if hasattr(v, "detach") else v, np.float64) for v in (x, y))
    np.testing.assert_allclose(
        a, b, rtol=0.0 if rtol is None else rtol, atol=1e-2 if atol is None else atol, err_msg=err_msg, equal_nan=True
    )

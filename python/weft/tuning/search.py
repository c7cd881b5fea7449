# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Schedules of spaces too large to go through: the default, its neighbours, and then what Optuna's tree-structured
Parzen estimator takes for likely, asked and told in batches.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from weft.errors import Error

from .space import Kernel, Schedule, Target, axes, why_not

EXHAUSTIVE = 512  # candidates that are all tried; of more, so many
FIRST = 9  # of a larger space: the default and its nearest neighbours, before anything is sampled
_BARREN = 64  # draws without a schedule that is new and can be held, after which no more is asked


def is_large(kernel: Kernel, target: Target) -> bool:
    """Whether a kernel has more schedules that the target can hold than are all tried."""
    feasible = (each for each in itertools.product(*axes(kernel)) if not why_not(each, kernel, target))
    return sum(1 for _ in itertools.islice(feasible, EXHAUSTIVE + 1)) > EXHAUSTIVE


class Sampler:
    """Draws schedules of one kernel, each once. Raises weft.Error where Optuna is not installed."""

    def __init__(self, kernel: Kernel, target: Target, seed: int) -> None:
        try:
            import optuna
        except ImportError as error:
            raise Error(
                f"{kernel.place} has more than {EXHAUSTIVE} schedules, which are sampled by optuna, which is not "
                "installed: pip install optuna, or give a limit"
            ) from error
        self._kernel, self._target, self._optuna = kernel, target, optuna
        self._axes = {f"axis{number}": list(axis) for number, axis in enumerate(axes(kernel))}
        self._space = {name: optuna.distributions.CategoricalDistribution(axis) for name, axis in self._axes.items()}
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True, n_startup_trials=FIRST)
        self._study: Any = optuna.create_study(sampler=sampler)
        self._asked: dict[Schedule, Any] = {}
        self._told: set[Schedule] = set()

    def tell(self, seconds: Mapping[Schedule, float | None]) -> None:
        """What schedules took; None of those that are wrong or cannot be held."""
        trial, state = self._optuna.trial, self._optuna.trial.TrialState
        for schedule, value in seconds.items():
            self._told.add(schedule)
            if schedule in self._asked:
                number = self._asked.pop(schedule)
                self._study.tell(number, value, state=state.COMPLETE if value is not None else state.FAIL)
            elif value is not None and all(v in axis for v, axis in zip(schedule, self._axes.values(), strict=True)):
                named = dict(zip(self._axes, schedule, strict=True))
                self._study.add_trial(trial.create_trial(params=named, distributions=self._space, value=value))

    def ask(self, count: int) -> Sequence[Schedule]:
        """Up to so many schedules that were not asked for before; none once enough were tried."""
        found: list[Schedule] = []
        barren = 0
        while len(found) < min(count, EXHAUSTIVE - len(self._told)) and barren < _BARREN:
            asked = self._study.ask(self._space)
            schedule = tuple(asked.params[name] for name in self._axes)
            if schedule in self._told or schedule in self._asked or why_not(schedule, self._kernel, self._target):
                self._study.tell(asked, state=self._optuna.trial.TrialState.FAIL)
                barren += 1
                continue
            self._asked[schedule] = asked
            found.append(schedule)
            barren = 0
        return found

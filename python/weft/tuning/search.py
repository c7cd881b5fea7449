# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Schedules of spaces too large to go through: the default, its neighbours, and then what Optuna's tree-structured
Parzen estimator takes for likely, asked and told in batches.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Mapping, Sequence
from typing import Any

from weft.errors import Error

from .space import Kernel, Schedule, Target, Tiled, axes, why_not

EXHAUSTIVE = 512  # candidates that are all tried; of more, so many
FIRST = 9  # of a larger space: the default and its nearest neighbours, before anything is sampled
_DRAWS = 8  # of the estimator, without a schedule that is new and can be held, after which one is drawn evenly


def is_large(kernel: Kernel | Tiled, target: Target) -> bool:
    """Whether a kernel has more schedules that the target can hold than are all tried."""
    return len(_feasible(kernel, target)) > EXHAUSTIVE


def _feasible(kernel: Kernel | Tiled, target: Target) -> list[Schedule]:
    return [each for each in itertools.product(*axes(kernel, target)) if not why_not(each, kernel, target)]


class Sampler:
    """Draws schedules of one kernel, each once. Raises weft.Error where Optuna is not installed."""

    def __init__(self, kernel: Kernel | Tiled, target: Target, seed: int) -> None:
        try:
            import optuna
        except ImportError as error:
            raise Error(
                f"{kernel.place} has more than {EXHAUSTIVE} schedules, which are sampled by optuna, which is not "
                "installed: pip install optuna, or give a limit"
            ) from error
        self._optuna, self._random = optuna, random.Random(seed)
        self._left = _feasible(kernel, target)
        self._axes = {f"axis{number}": list(axis) for number, axis in enumerate(axes(kernel, target))}
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
            if schedule in self._left:
                self._left.remove(schedule)
            if schedule in self._asked:
                number = self._asked.pop(schedule)
                self._study.tell(number, value, state=state.COMPLETE if value is not None else state.FAIL)
            elif value is not None and all(v in axis for v, axis in zip(schedule, self._axes.values(), strict=True)):
                named = dict(zip(self._axes, schedule, strict=True))
                self._study.add_trial(trial.create_trial(params=named, distributions=self._space, value=value))

    def ask(self, count: int) -> Sequence[Schedule]:
        """Up to so many schedules that were not asked for before; none once enough were tried."""
        wanted = min(count, EXHAUSTIVE - len(self._told))
        found: list[Schedule] = []
        while len(found) < wanted and self._left:
            schedule = next(filter(None, (self._drawn() for _ in range(_DRAWS))), None)
            schedule = schedule or self._random.choice(self._left)
            self._left.remove(schedule)
            found.append(schedule)
        return found

    def _drawn(self) -> Schedule | None:
        """What the estimator draws, where it is new and can be held."""
        asked = self._study.ask(self._space)
        schedule = tuple(asked.params[name] for name in self._axes)
        if schedule in self._left:
            self._asked[schedule] = asked
            return schedule
        self._study.tell(asked, state=self._optuna.trial.TrialState.FAIL)
        return None

# Part of Weft. SPDX-License-Identifier: Apache-2.0
"""Candidates ranked by what other machines measured: records in the place of a GPU."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from weft.errors import Error

from . import records
from .evaluate import Job, simulated_wrong
from .records import Record
from .space import is_backward


class Recorded:
    """Takes the place of a GPU's timer in a tuning run: a candidate's seconds are those that a device's records have of
    its PTX. The winners together, which bundles have not, are checked on the simulator, and take what the functions
    took by default and the winners less or more, each measured alone: their launches follow one another."""

    def __init__(self, known: Iterable[Record], device: str) -> None:
        mine = [record for record in known if record["device"] == device]
        if not mine:
            raise Error(f"expected records of '{device}', but there are none")
        self.name, self.policy = device, mine[-1]["policy"]
        self._by_key = records.by_key(mine)
        self._by_schedules: dict[str, list[Record]] = {}
        for record in mine:
            self._by_schedules.setdefault(_schedules_key(record, record["schedules"]), []).append(record)

    def measure(self, record: Mapping[str, Any], job: Job) -> dict[str, Any]:
        """The record of a candidate that compiled ("ptx", "info"): as another machine measured it."""
        key = {**job.key, "ptx": record["code"], "policy": self.policy}
        found = records.derived(self._by_key.get(records.key_of(key), ()))
        if found is None and len(job.counted) > 1:
            return self._added(record, job)
        if found is None:
            reason = f"{self.name} has no record of its PTX: it was not measured, or another build of Weft compiled it"
            return {"status": "failed", "reason": reason}
        return {**records.outcome(found), "code": record["code"]}

    def _added(self, record: Mapping[str, Any], job: Job) -> dict[str, Any]:
        if reason := simulated_wrong(job, record["ptx"], record["info"]):
            return {"status": "failed", "reason": reason}
        total = 0.0
        for part in job.counted:
            default = self._seconds(job, part, {})
            alone = [
                self._seconds(job, part, {place: schedule})
                for place, schedule in job.schedules.items()
                if is_backward(place) == (part == ".backward")
            ]
            if default is None or None in alone:
                return {"status": "failed", "reason": f"{self.name} has no records of '{job.name}{part}' alone"}
            total += default + sum(each - default for each in alone if each is not None)
        return {"status": "right", "reason": "", "launches": [], "code": record["code"], "seconds": total}

    def _seconds(self, job: Job, part: str, schedules: Mapping[str, Any]) -> float | None:
        key = _schedules_key({**job.key, "functions": [job.name + part]}, schedules)
        found = records.derived(self._by_schedules.get(key, ()))
        return found["seconds"][0] if found and found["seconds"] else None


def _schedules_key(facts: Mapping[str, Any], schedules: Mapping[str, Any]) -> str:
    return records.key_of({**facts, "ptx": dict(sorted(schedules.items())), "policy": ""})
